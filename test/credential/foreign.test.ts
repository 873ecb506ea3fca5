import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { encode } from 'cborg';
import t from 'tap';
import { writeSidecar } from '../../src/core/credential/sidecar.js';
import { stateProduction } from '../../src/core/credential/statement.js';
import type { EmbeddedParseResult } from '../../src/core/domain/parsed-credential.js';
import {
  extentOf,
  issued,
  now,
  readFile,
  readPair,
  readStore,
  storeIn,
  withStore,
} from '../fixtures/credentialed-file.js';
import { FOREIGN_SIGNER, foreignFile, PLAIN } from '../fixtures/foreign-file.js';
import {
  cborBox,
  foreignManifest,
  foreignSigner,
  storeOf,
  superbox,
  writeNode,
} from '../fixtures/foreign-store.js';
import { seededPicker } from '../fixtures/hostile-stores.js';
import { judge, startJudge } from '../fixtures/judge.js';
import { sampled, sized } from '../fixtures/sampling.js';
import { testSigning } from '../fixtures/signing.js';
import { noise, wav } from '../fixtures/wav.js';

startJudge();
const ours = testSigning();
const P256 = FOREIGN_SIGNER;

/** Returns the processor time of the process in milliseconds. What the machine does besides does not count. */
function spent(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

function outcome(file: Buffer): string {
  const { reading, bound } = readFile(file, ours.trust);
  if (reading === undefined) return 'no chunk';
  if (reading.kind === 'not_a_store' || reading.kind === 'altered')
    return `${reading.kind}: ${reading.reason}`;
  return [
    reading.kind,
    reading.report.integrity,
    ...(bound ? ['bound'] : []),
    ...reading.report.reasons,
  ].join(' ');
}

t.test('foreign stores are read with the liberties of C2PA', async (t) => {
  const intact: [string, Buffer][] = [
    ['plain', foreignFile()],
    [
      'claim version 1',
      foreignFile({ claimVersion: 1, label: 'urn:uuid:5f1ee0e3-994a-40d0-b407-75851f6d1be5' }),
    ],
    ['salted assertions', foreignFile({ salted: true })],
    ['gathered assertions', foreignFile({ gathered: true })],
    ['whole chain', foreignFile({ wholeChain: true })],
    ['x5chain as text', foreignFile({ chainIn: 'protected-text' })],
    ['x5chain unprotected', foreignFile({ chainIn: 'unprotected-text', wholeChain: true })],
    ['COSE padding', foreignFile({ unprotected: new Map([['pad', new Uint8Array(5000)]]) })],
    [
      'JSON assertion',
      foreignFile({
        moreAssertions: [
          superbox('json', 'stds.schema-org.CreativeWork', [{ box: 'json', content: Buffer.from('{}') }]),
        ],
      }),
    ],
    [
      'tags and deep maps',
      foreignFile({ bend: ({ claim }) => claim.set('metadata', [[[[[[{ a: [1.5, -7, null, true] }]]]]]]) }),
    ],
    [
      'padding after the store',
      foreignFile({}, (manifest) => Buffer.concat([storeOf([manifest]), Buffer.alloc(40)])),
    ],
    ['64-bit length of the store', foreignFile({}, (manifest) => storeOf([manifest], { long: true }))],
  ];
  for (const [name, file] of intact) t.equal(outcome(file), 'foreign verified bound', name);
  const stamped = foreignFile({
    unprotected: new Map<unknown, unknown>([['sigTst2', { tstTokens: [{ val: noise(200) }] }]]),
  });
  t.equal(outcome(stamped), 'foreign verified bound time_stamp_not_checked');
  for (const algorithm of ['Ed25519', 'ES256', 'ES384', 'ES512', 'PS256', 'PS384', 'PS512'] as const) {
    const file = foreignFile({ salted: true }, undefined, foreignSigner(algorithm));
    t.equal(outcome(file), 'foreign verified bound', algorithm);
    t.match(readFile(file, ours.trust).reading, {
      report: {
        algorithm,
        issuer: 'Somebody Else',
        generator: 'Other tool 9',
        claimVersion: 2,
        trust: 'unknown',
      },
    });
    t.equal((await judge(file)).state, 'Valid', `${algorithm}: c2pa-rs agrees that it is intact`);
  }
});

t.test('text of strangers is fit to be shown', (t) => {
  const file = foreignFile(
    {
      label: 'urn:c2pa:\u0007x',
      bend: ({ claim }) =>
        claim.set('claim_generator_info', { name: '\u001b[31mred\nline'.padEnd(400, '!') }),
    },
    undefined,
    foreignSigner('Ed25519', 'A\u202eB'),
  );
  const { reading } = readFile(file, ours.trust);
  t.match(reading, {
    kind: 'foreign',
    report: {
      issuer: 'A\ufffdB',
      manifestLabel: 'urn:c2pa:\ufffdx',
      generator: /^\ufffd\[31mred\ufffdline!{243}$/,
    },
  });
  t.end();
});

t.test('a report names what was not checked', (t) => {
  const other = foreignManifest(P256, { label: 'urn:c2pa:99999999-2222-4333-8444-555555555555' });
  const cases: [string, Buffer][] = [
    ['hash_algorithm_unsupported', foreignFile({ hash: 'sha384' })],
    ['hash_algorithm_unsupported', foreignFile({ hash: 'sha512' })],
    ['other_manifests', foreignFile({}, (manifest) => storeOf([other, manifest]))],
    ['ingredients', foreignFile({ moreAssertions: [superbox('cbor', 'c2pa.ingredient.v3', [cborBox({})])] })],
    ['update_manifest', foreignFile({ manifestType: 'c2um' })],
    ['manifest_type_old', foreignFile({ manifestType: 'c2md' })],
    ['hard_binding_missing', foreignFile({ withoutBinding: true })],
    [
      'hard_binding_several',
      foreignFile({ moreAssertions: [superbox('cbor', 'c2pa.hash.boxes', [cborBox({})])] }),
    ],
    [
      'hard_binding_unsupported',
      foreignFile({
        withoutBinding: true,
        moreAssertions: [superbox('cbor', 'c2pa.hash.bmff.v3', [cborBox({})])],
      }),
    ],
    ['exclusion_not_chunk', foreignFile({ exclusions: [{ start: 44, length: 100 }] })],
    ['exclusion_not_chunk', foreignFile({ exclusions: [] })],
    [
      'exclusion_not_chunk',
      foreignFile({
        exclusions: [
          { start: PLAIN.length, length: 1 },
          { start: 0, length: 1 },
        ],
      }),
    ],
    ['unprotected_header_unknown', foreignFile({ unprotected: new Map([['x', 1]]) })],
    [
      'unprotected_header_unknown',
      foreignFile({ unprotected: new Map([[33, foreignSigner('ES256').chain[0]!]]) }),
    ],
    [
      'assertions_not_checked',
      foreignFile({
        moreAssertions: [superbox('uuid', 'com.example.blob', [{ box: 'uuid', content: noise(40) }])],
      }),
    ],
    [
      'assertions_not_checked',
      foreignFile({ moreAssertions: [superbox('cbor', 'com.example.two', [cborBox({}), cborBox({})])] }),
    ],
    [
      'assertions_not_checked',
      foreignFile({
        moreAssertions: [
          superbox('cbor', 'com.example.id', [cborBox({})], { toggles: 15, extra: noise(36) }),
        ],
      }),
    ],
    ['boxes_unknown', foreignFile({}, (manifest) => storeOf([superbox('xxxx', 'x', []), manifest]))],
    ['certificate_not_signed', foreignFile({ chainIn: 'unprotected-text' })],
    ['bytes_after_store', foreignFile({}, (manifest) => Buffer.concat([storeOf([manifest]), noise(40)]))],
    ['signature_algorithm_unsupported', foreignFile({ statedAlgorithm: -47 })],
    [
      'certificate_chain_broken',
      foreignFile({ wholeChain: true }, undefined, {
        ...P256,
        chain: [P256.chain[0]!, foreignSigner('ES256').chain[1]!],
      }),
    ],
    [
      'compressed_manifest',
      withStore(
        Buffer.from(PLAIN),
        storeOf([superbox('c2cm', 'urn:c2pa:1', [{ box: 'brob', content: noise(50) }])]),
      ),
    ],
  ];
  const bindable = new Set([
    'assertions_not_checked',
    'boxes_unknown',
    'certificate_not_signed',
    'other_manifests',
    'ingredients',
    'update_manifest',
    'manifest_type_old',
    'unprotected_header_unknown',
    'bytes_after_store',
    'signature_algorithm_unsupported',
    'certificate_chain_broken',
  ]);
  for (const [slug, file] of cases)
    t.equal(outcome(file), `foreign not_checked ${bindable.has(slug) ? 'bound ' : ''}${slug}`);
  t.end();
});

t.test('what is broken is altered, foreign or not', (t) => {
  const cases: [string, Buffer][] = [
    [
      'signature_mismatch',
      foreignFile({}, undefined, { ...P256, privateKey: foreignSigner('ES256').privateKey }),
    ],
    ['algorithm_not_of_key', foreignFile({ statedAlgorithm: -8 })],
    ['algorithm_not_of_key', foreignFile({ statedAlgorithm: -35 })],
    ['cose_payload_present', foreignFile({ payload: noise(5) })],
    [
      'cose_malformed',
      foreignFile({
        moreProtected: new Map<unknown, unknown>([
          [2, ['x']],
          ['x', 1],
        ]),
      }),
    ],
    [
      'claim_malformed',
      foreignFile({
        bend: ({ claim }) => claim.set('redacted_assertions', ['self#jumbf=c2pa.assertions/c2pa.actions.v2']),
      }),
    ],
    ['cose_padding_not_zero', foreignFile({ unprotected: new Map([['pad', noise(50)]]) })],
    [
      'assertion_hash_mismatch',
      foreignFile({
        bend: ({ claim }) =>
          ((claim.get('created_assertions') as { hash: Buffer }[])[0]!.hash = Buffer.alloc(32)),
      }),
    ],
    [
      'assertion_missing',
      foreignFile({
        bend: ({ claim }) =>
          ((claim.get('created_assertions') as { url: string }[])[0]!.url =
            'self#jumbf=c2pa.assertions/none'),
      }),
    ],
    [
      'assertion_missing',
      foreignFile({
        bend: ({ claim }) =>
          ((claim.get('created_assertions') as { url: string }[])[0]!.url =
            'self#jumbf=/c2pa/urn:c2pa:other/c2pa.assertions/c2pa.actions.v2'),
      }),
    ],
    [
      'assertion_not_listed',
      foreignFile({ bend: ({ claim }) => (claim.get('created_assertions') as unknown[]).shift() }),
    ],
    [
      'assertion_listed_twice',
      foreignFile({
        bend: ({ claim }) =>
          (claim.get('created_assertions') as unknown[]).push(
            (claim.get('created_assertions') as unknown[])[0],
          ),
      }),
    ],
    [
      'signature_reference',
      foreignFile({
        bend: ({ claim }) => claim.set('signature', 'self#jumbf=/c2pa/urn:c2pa:other/c2pa.signature'),
      }),
    ],
    ['claim_malformed', foreignFile({ claimLabel: 'c2pa.claim' })],
    ['claim_malformed', foreignFile({ bend: ({ claim }) => claim.delete('created_assertions') })],
    ['claim_box_malformed', foreignFile({ claimLabel: 'x' })],
    [
      'certificate_malformed',
      foreignFile({}, undefined, { ...P256, chain: [Buffer.concat([P256.chain[0]!, Buffer.from([0])])] }),
    ],
    ['certificate_malformed', foreignFile({}, undefined, { ...P256, chain: [noise(100)] })],
    ['manifest_missing', withStore(Buffer.from(PLAIN), storeOf([]))],
    [
      'assertion_store_malformed',
      withStore(Buffer.from(PLAIN), storeOf([superbox('c2ma', 'urn:c2pa:1', [])])),
    ],
  ];
  for (const [slug, file] of cases) t.equal(outcome(file), `altered: ${slug}`);
  t.match(readFile(cases[0]![1], ours.trust).reading, {
    report: { integrity: 'failed', issuer: 'Somebody Else', reasons: ['signature_mismatch'] },
  });
  t.end();
});

t.test('of a foreign manifest beside ours the active one decides', (t) => {
  const file = issued(wav(300), ours.signer);
  const mine = storeIn(file, extentOf(file)!).subarray(38);
  const theirs = writeNode(foreignManifest(P256));
  const wrap = (...manifests: Uint8Array[]): Buffer => {
    const head = Buffer.from(storeOf([]));
    const store = Buffer.concat([head, ...manifests]);
    store.writeUInt32BE(store.length, 0);
    return withStore(Buffer.from(PLAIN), store);
  };
  t.equal(outcome(wrap(mine)), 'service verified bound');
  t.equal(
    outcome(wrap(theirs, mine)),
    'altered: not_writer_form',
    'ours is active: the file claims to be ours',
  );
  t.match(
    outcome(wrap(mine, theirs)),
    /^foreign not_checked other_manifests/,
    'theirs is active: somebody worked on our file',
  );
  t.end();
});

t.test('a store beyond the budgets is refused', (t) => {
  const read = (store: Buffer): EmbeddedParseResult =>
    readStore(store, { offset: 44, length: 8 + store.length }, ours.trust);
  let nested = writeNode(superbox('cbor', 'x', []));
  for (let level = 0; level < 2000; level += 1) nested = Buffer.concat([superHead(nested.length), nested]);
  t.match(read(storeOfBytes(nested)), { kind: 'altered', reason: 'box_too_deep' });
  t.match(
    read(
      storeOfBytes(
        Buffer.concat(Array.from({ length: 100_000 }, () => Buffer.from('0000000866726565', 'hex'))),
      ),
    ),
    { kind: 'altered', reason: 'too_many_boxes' },
  );
  t.match(read(storeOfBytes(Buffer.alloc(1_048_576))), { kind: 'altered', reason: 'store_too_large' });
  const claims: [string, Uint8Array][] = [
    ['deep arrays', Buffer.concat([Buffer.alloc(400_000, 0x81), Buffer.from([0])])],
    ['deep tags', Buffer.concat([Buffer.alloc(400_000, 0xc1), Buffer.from([0])])],
    ['deep indefinite', Buffer.alloc(400_000, 0x9f)],
    ['an array of 2^64 - 1', Buffer.from('9bffffffffffffffff', 'hex')],
    ['a map of 2^53', Buffer.from('bb0020000000000000', 'hex')],
    ['many items', encode(Array.from({ length: 400_000 }, () => 0))],
    ['a long text', Buffer.from('7bffffffffffffffff', 'hex')],
  ];
  for (const [name, content] of claims) {
    const began = spent();
    const store = storeOf([
      superbox('c2ma', 'urn:c2pa:1', [
        superbox('c2as', 'c2pa.assertions', []),
        superbox('c2cl', 'c2pa.claim.v2', [{ box: 'cbor', content }]),
        superbox('c2cs', 'c2pa.signature', [{ box: 'cbor', content }]),
      ]),
    ]);
    t.match(read(store), { kind: 'altered', reason: 'claim_malformed' }, name);
    t.ok(spent() - began < 500, `${name} in time`);
  }
  t.end();
});

function superHead(length: number): Buffer {
  const head = writeNode(superbox('cbor', '', []));
  head.writeUInt32BE(head.length + length, 0);
  return head;
}

function storeOfBytes(children: Buffer): Buffer {
  const store = Buffer.concat([storeOf([]), children]);
  store.writeUInt32BE(store.length, 0);
  return store;
}

const CORPUS = process.env['TAKEMARK_CORPUS'];
/** A time in unix seconds at which the certificates of the signed files were valid, or had expired. */
const SIGNED_FILES_READ_AT = Date.UTC(2026, 10, 1) / 1000;

t.test(
  'signed files of other makers are read, and a flipped byte of the store is noticed',
  { skip: CORPUS === undefined ? 'TAKEMARK_CORPUS is not set' : false },
  (t) => {
    const expected = {
      '100kb-signed.wav': {
        issuer: 'C2PA Test Signing Cert',
        generator: 'test 1.0',
        claimVersion: 1,
        integrity: 'not_checked',
        reasons: ['actions_not_checked'],
      },
      'cicadas_trusted.wav': {
        issuer: 'C2PA Extension Validator',
        generator: 'Test Signer c2patool/0.7.0 c2pa-rs/0.28.4',
        claimVersion: 1,
        integrity: 'not_checked',
        reasons: ['certificate_purpose', 'certificate_time', 'time_stamp_not_checked'],
      },
      'x509-es256-wav.wav': {
        issuer: 'Encypher Test Vectors',
        generator: 'Encypher Engine/0.1 0.1',
        claimVersion: 2,
        integrity: 'not_checked',
        reasons: ['assertions_not_checked'],
      },
    };
    for (const [name, report] of Object.entries(expected)) {
      const file = readFileSync(join(CORPUS!, 'signed', name));
      const { reading, bound } = readFile(file, ours.trust, SIGNED_FILES_READ_AT);
      t.match(
        reading,
        { kind: 'foreign', report: { ...report, algorithm: 'ES256', trust: 'unknown' } },
        name,
      );
      t.ok(bound);
      const extent = extentOf(file)!;
      const store = storeIn(file, extent);
      // A time-stamp token is countersigned by its own authority, which is not read here: its bytes are the
      // one blind spot.
      const token = store.indexOf('tstTokens');
      const tokenEnd = token < 0 ? 0 : store.indexOf('x5chain', token) - 1;
      // A claim that names its signature box relative to its manifest does not sign the manifest's label.
      const labelBound = reading?.kind === 'foreign' && reading.report.manifestLabel !== undefined;
      const blind = (at: number): boolean =>
        (at >= token && at < tokenEnd) || (!labelBound && at >= 71 && at < 117);
      const isTried = sampled(11);
      let accepted = 0;
      let flips = 0;
      for (let at = 0; at < store.length; at += 1) {
        if (at > 1500 && at < store.length - 700 && at % 13 !== 0) continue;
        for (const mask of at % 16 === 0 ? [1, 32, 255] : [255]) {
          if (!isTried()) continue;
          store[at]! ^= mask;
          const bent = readStore(store, extent, ours.trust, SIGNED_FILES_READ_AT);
          flips += 1;
          store[at]! ^= mask;
          if (bent.kind !== 'foreign' || bent.binding === undefined) continue;
          if (bent.report.integrity !== report.integrity) continue;
          if (bent.report.reasons.join() !== report.reasons.join()) continue;
          accepted += 1;
          if (!blind(at)) t.fail(`${name}: byte ${at} mask ${mask} is not noticed`);
        }
      }
      t.comment(
        `${name}: ${flips} flips in the store, ${accepted} in unsigned label or time-stamp not noticed`,
      );
    }
    t.end();
  },
);

t.test('fuzz: reading never throws and never takes a store for ours', (t) => {
  const pick = seededPicker(0x7a6b);
  const issuedFile = issued(wav(30), ours.signer);
  const own = storeIn(issuedFile, extentOf(issuedFile)!);
  const sidecar = writeSidecar({
    statement: stateProduction(ours.signer.identity, {
      proofId: 'prf_1',
      createdAt: now(),
      evidenceSha256: null,
    }),
    binding: { bytes: 5, sha256: '00'.repeat(32) },
    signer: ours.signer,
  });
  const foreign = foreignFile({ salted: true, wholeChain: true });
  const seeds = [own, storeIn(foreign, extentOf(foreign)!)];
  const kinds = new Map<string, number>();
  const count = (kind: string): unknown => kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
  const mutate = (bytes: Uint8Array): Buffer => {
    let bent = Buffer.from(bytes);
    for (let edits = 1 + pick(4); edits > 0; edits -= 1) {
      const at = pick(bent.length);
      const length = pick(24);
      switch (pick(6)) {
        case 0:
          bent[at]! ^= 1 << pick(8);
          break;
        case 1:
          bent[at] = [0, 1, 0x7f, 0x80, 0xff, 0x5f, 0x9f, 0xbf][pick(8)]!;
          break;
        case 2:
          bent = Buffer.concat([bent.subarray(0, at), bent.subarray(at + length)]);
          break;
        case 3:
          bent = Buffer.concat([bent.subarray(0, at), noise(length, at + 1), bent.subarray(at)]);
          break;
        case 4:
          bent = Buffer.concat([
            bent.subarray(0, at),
            bent.subarray(pick(bent.length)).subarray(0, length),
            bent.subarray(at),
          ]);
          break;
        default:
          if (at + 4 <= bent.length)
            bent.writeUInt32BE([0, 1, 7, 8, 0xffffffff, bent.length, 0x80000000][pick(7)]!, at);
      }
      if (bent.length === 0) bent = Buffer.alloc(1);
    }
    return bent;
  };
  let slowest = 0;
  for (let run = 0; run < sized(9000, 1500); run += 1) {
    const seed = run % 3 === 2 ? sidecar : seeds[run % 3]!;
    const bent = mutate(seed);
    if (bent.equals(seed)) continue;
    const began = spent();
    const reading =
      seed === sidecar
        ? readPair(bent, ours.trust)
        : readStore(bent, { offset: 74, length: 8 + bent.length }, ours.trust);
    slowest = Math.max(slowest, spent() - began);
    if (reading.kind === 'service' || reading.kind === 'local_seal') t.fail(`run ${run}: ${reading.kind}`);
    count(`${seed === sidecar ? 'sidecar' : 'store'} ${reading.kind}`);
  }
  t.ok(slowest < 500);
  t.comment(`slowest ${slowest.toFixed(1)} ms`, Object.fromEntries(kinds));
  t.end();
});

t.test('fuzz: well signed nonsense is never ours', (t) => {
  const pick = seededPicker(0x51);
  const words = [
    '',
    'url',
    'hash',
    'alg',
    'sha256',
    'sha384',
    'start',
    'length',
    'exclusions',
    'self#jumbf=c2pa.assertions/c2pa.hash.data',
    'self#jumbf=',
    'version',
    '__proto__',
    'proofId',
    'kid',
    'ü'.repeat(40),
  ];
  const value = (depth: number): unknown => {
    switch (pick(depth > 3 ? 8 : 11)) {
      case 0:
        return null;
      case 1:
        return pick(2) === 1;
      case 2:
        return pick(1000) - 500;
      case 3:
        return [1e20, -1.5, 2 ** 53 - 1, BigInt('18446744073709551615')][pick(4)];
      case 4:
        return words[pick(words.length)];
      case 5:
      case 6:
        return noise(pick(40), pick(9) + 1);
      case 7:
        return undefined;
      case 8:
        return Array.from({ length: pick(4) }, () => value(depth + 1));
      default:
        return new Map(
          Array.from({ length: pick(5) }, () => [
            pick(5) === 0 ? pick(40) : words[pick(words.length)],
            value(depth + 1),
          ]),
        );
    }
  };
  const keys = [
    'signature',
    'alg',
    'created_assertions',
    'gathered_assertions',
    'assertions',
    'claim_generator_info',
    'claim_generator',
    'instanceID',
  ];
  const labels = [
    'io.takemark.production-record',
    'io.takemark.local-seal',
    'c2pa.hash.data',
    'c2pa.hash.data__2',
    'c2pa.ingredient',
    'x',
  ];
  const device = foreignSigner('Ed25519');
  const kinds = new Map<string, number>();
  for (let run = 0; run < sized(2500, 500); run += 1) {
    const manifest = foreignManifest(run % 2 === 0 ? device : P256, {
      ...(pick(3) === 0 ? { exclusions: value(1) as never } : {}),
      ...(pick(4) === 0 ? { payload: value(2) ?? null } : {}),
      ...(pick(3) === 0
        ? {
            unprotected: new Map([
              [words[pick(words.length)], value(1)],
              ['pad', value(2)],
            ]),
          }
        : {}),
      withoutBinding: pick(3) === 0,
      claimVersion: pick(2) === 0 ? 1 : 2,
      moreAssertions:
        pick(2) === 0 ? [] : [superbox('cbor', labels[pick(labels.length)]!, [cborBox(value(0))])],
      bend: ({ claim }) => {
        for (let bends = pick(3); bends > 0; bends -= 1) claim.set(keys[pick(keys.length)]!, value(0));
      },
    });
    const store = storeOf([manifest]);
    const reading = readStore(store, { offset: PLAIN.length, length: 8 + store.length }, ours.trust);
    const kind =
      reading.kind === 'altered'
        ? `altered ${reading.reason}`
        : reading.kind === 'foreign'
          ? `foreign ${reading.report.integrity}`
          : reading.kind;
    kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
    if (reading.kind === 'service' || reading.kind === 'local_seal') t.fail(`run ${run}: ${reading.kind}`);
  }
  t.ok(kinds.size > 8);
  t.comment(Object.fromEntries(kinds));
  t.end();
});
