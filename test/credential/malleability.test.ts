import { createHash } from 'node:crypto';
import { encode } from 'cborg';
import t from 'tap';
import {
  extentOf,
  issued,
  now,
  readFile,
  readStore,
  storeIn,
  withStore,
} from '../fixtures/credentialed-file.js';
import { encodeInOrder, type Node, readNode, SALT, superbox, writeNode } from '../fixtures/foreign-store.js';
import { judge, startJudge } from '../fixtures/judge.js';
import { sampled } from '../fixtures/sampling.js';
import { testSigning } from '../fixtures/signing.js';
import { chunk, noise, wav } from '../fixtures/wav.js';

startJudge();
const P256_ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;

/** Returns the tree once for each node, with that node replaced. */
function bendings(root: Node, bend: (node: Node) => Node | undefined): Node[] {
  const results: Node[] = [];
  const walk = (node: Node, put: (replacement: Node) => Node): void => {
    const bent = bend(node);
    if (bent !== undefined) results.push(put(bent));
    node.children?.forEach((child, at) =>
      walk(child, (replacement) => put({ ...node, children: node.children!.with(at, replacement) })),
    );
  };
  walk(root, (replacement) => replacement);
  return results;
}

t.test('structural variants, many of them trusted by c2pa-rs, are not ours', async (t) => {
  for (const algorithm of ['Ed25519', 'ES256'] as const) {
    const { signer, trust, authority } = testSigning({ algorithm });
    const file = issued(wav(300), signer);
    const extent = extentOf(file)!;
    const store = storeIn(file, extent);
    const tree = readNode(store);
    t.strictSame(writeNode(tree), store, 'the tree is faithful');
    const [manifest] = tree.children!;
    const [assertionStore, claim, signature] = manifest!.children!;
    const rebuilt = (children: Node[]): Node => ({ ...tree, children: [{ ...manifest!, children }] });
    const coseBytes = Buffer.from(signature!.children![0]!.content!);
    const withCose = (content: Uint8Array): Node =>
      rebuilt([assertionStore!, claim!, { ...signature!, children: [{ box: 'cbor', content }] }]);
    const header = coseBytes.subarray(2, coseBytes.length - 68);
    const sig = coseBytes.subarray(coseBytes.length - 66);

    const variants: [string, Node | Buffer][] = [];
    const add = (name: string, node: Node | Buffer): number => variants.push([name, node]);
    for (const bit of [0x04, 0x08, 0x10, 0x20, 0x40, 0x80])
      bendings(tree, (node) => (node.type === undefined ? undefined : { ...node, toggles: 3 | bit })).forEach(
        (node, at) => add(`toggle ${bit} of ${at}`, node),
      );
    bendings(tree, (node) =>
      node.type === undefined ? undefined : { ...node, size: writeNode(node).length + 1 },
    ).forEach((node, at) => add(`larger LBox of ${at}`, node));
    bendings(tree, (node) => (node.type === undefined ? undefined : { ...node, size: 0xffffffff })).forEach(
      (node, at) => add(`endless LBox of ${at}`, node),
    );
    bendings(tree, (node) => ({ ...node, size: 0 })).forEach((node, at) => add(`LBox 0 of ${at}`, node));
    bendings(tree, (node) => ({ ...node, long: true })).forEach((node, at) =>
      add(`64-bit LBox of ${at}`, node),
    );
    bendings(tree, (node) => ({ ...node, long: true, size: Number.MAX_SAFE_INTEGER })).forEach((node, at) =>
      add(`absurd LBox of ${at}`, node),
    );
    bendings(tree, (node) =>
      node.type === undefined ? undefined : { ...node, label: `X${node.label!.slice(1)}` },
    ).forEach((node, at) => add(`label of ${at}`, node));
    bendings(tree, (node) => (node.type === undefined ? undefined : { ...node, label: 'c' })).forEach(
      (node, at) => add(`short label of ${at}`, node),
    );
    bendings(tree, (node) => (node.type === undefined ? undefined : { ...node, ...SALT })).forEach(
      (node, at) => add(`salt in ${at}`, node),
    );
    bendings(tree, (node) =>
      node.type === undefined ? undefined : { ...node, toggles: 7, extra: Buffer.alloc(4) },
    ).forEach((node, at) => add(`box id in ${at}`, node));
    bendings(tree, (node) =>
      node.type === undefined ? undefined : { ...node, toggles: 11, extra: Buffer.alloc(32) },
    ).forEach((node, at) => add(`hash in ${at}`, node));
    for (const free of [
      { box: 'free', content: Buffer.alloc(8) },
      superbox('cbor', 'extra', [{ box: 'cbor', content: Buffer.from([0xa0]) }]),
    ]) {
      bendings(tree, (node) =>
        node.type === undefined ? undefined : { ...node, children: [...node.children!, free] },
      ).forEach((node, at) => add(`box after the children of ${at}`, node));
      bendings(tree, (node) =>
        node.type === undefined ? undefined : { ...node, children: [free, ...node.children!] },
      ).forEach((node, at) => add(`box before the children of ${at}`, node));
    }
    for (const order of [
      [0, 2, 1],
      [1, 0, 2],
      [1, 2, 0],
      [2, 0, 1],
      [2, 1, 0],
    ])
      add(`manifest order ${order.join('')}`, rebuilt(order.map((at) => manifest!.children![at]!)));
    for (const order of [
      [0, 1, 3, 2],
      [0, 2, 1, 3],
      [1, 0, 2, 3],
      [2, 1, 0, 3],
      [3, 2, 1, 0],
    ])
      add(
        `assertion order ${order.join('')}`,
        rebuilt([
          { ...assertionStore!, children: order.map((at) => assertionStore!.children![at]!) },
          claim!,
          signature!,
        ]),
      );
    for (const at of [0, 1, 2, 3]) {
      add(
        `assertion ${at} twice`,
        rebuilt([
          { ...assertionStore!, children: [...assertionStore!.children!, assertionStore!.children![at]!] },
          claim!,
          signature!,
        ]),
      );
      add(
        `assertion ${at} gone`,
        rebuilt([
          { ...assertionStore!, children: assertionStore!.children!.toSpliced(at, 1) },
          claim!,
          signature!,
        ]),
      );
    }
    for (const type of ['c2md', 'c2um', 'c2cm', 'xxxx'])
      add(`manifest type ${type}`, { ...tree, children: [{ ...manifest!, type }] });
    add('manifest twice', { ...tree, children: [manifest!, manifest!] });
    add('manifest under two labels', {
      ...tree,
      children: [{ ...manifest!, label: 'urn:c2pa:00000000-0000-4000-8000-000000000000' }, manifest!],
    });
    add('no manifest', { ...tree, children: [] });
    add('bytes after the store', Buffer.concat([store, Buffer.from([0])]));
    add('noise after the store', Buffer.concat([store, noise(100)]));
    add(
      'payload undefined',
      withCose(Buffer.concat([coseBytes.subarray(0, coseBytes.length - 67), Buffer.from([0xf7]), sig])),
    );
    add(
      'payload of bytes',
      withCose(
        Buffer.concat([coseBytes.subarray(0, coseBytes.length - 67), Buffer.from([0x43, 1, 2, 3]), sig]),
      ),
    );
    add('long tag', withCose(Buffer.concat([Buffer.from([0xd8, 0x12]), coseBytes.subarray(1)])));
    add('long array head', withCose(Buffer.concat([Buffer.from([0xd2, 0x98, 0x04]), coseBytes.subarray(2)])));
    add(
      'indefinite array',
      withCose(Buffer.concat([Buffer.from([0xd2, 0x9f]), coseBytes.subarray(2), Buffer.from([0xff])])),
    );
    add('no tag', withCose(coseBytes.subarray(1)));
    add(
      'long bstr head',
      withCose(
        Buffer.concat([
          Buffer.from([0xd2, 0x84, 0x5a, 0, 0]),
          header.subarray(1),
          coseBytes.subarray(coseBytes.length - 68),
        ]),
      ),
    );
    add(
      'indefinite empty map',
      withCose(
        Buffer.concat([coseBytes.subarray(0, coseBytes.length - 68), Buffer.from([0xbf, 0xff, 0xf6]), sig]),
      ),
    );
    for (const [name, map] of [
      ['pad', { pad: new Uint8Array(50) }],
      ['pad with freight', { pad: noise(50) }],
      ['sigTst2', { sigTst2: { tstTokens: [] } }],
      ['anything', { anything: 1 }],
    ] as const) {
      add(
        `unprotected ${name}`,
        withCose(
          Buffer.concat([
            coseBytes.subarray(0, coseBytes.length - 68),
            encode(map),
            Buffer.from([0xf6]),
            sig,
          ]),
        ),
      );
    }
    add('trailing byte after COSE', withCose(Buffer.concat([coseBytes, Buffer.from([0])])));
    if (algorithm === 'ES256') {
      const s = BigInt(`0x${sig.subarray(34).toString('hex')}`);
      add(
        'n - s',
        withCose(
          Buffer.concat([
            coseBytes.subarray(0, coseBytes.length - 32),
            Buffer.from((P256_ORDER - s).toString(16).padStart(64, '0'), 'hex'),
          ]),
        ),
      );
    }
    const isJudged = sampled(13);
    const trusted: string[] = [];
    for (const [name, node] of variants) {
      const bytes = Buffer.isBuffer(node) ? node : writeNode(node);
      const bent = withStore(file.subarray(0, extent.offset), bytes);
      const { reading } = readFile(bent, trust);
      // `xxxx` leaves no manifest, and a bent root type is not a store. All others began as a store and are
      // altered.
      if (reading?.kind !== 'altered' && reading?.kind !== 'not_a_store') t.fail(`${name}: ${reading?.kind}`);
      if (isJudged() && (await judge(bent, authority)).state === 'Trusted') trusted.push(name);
    }
    t.comment(
      `${algorithm}: ${variants.length} variants refused, ${trusted.length} of them Trusted in c2pa-rs`,
    );
    t.ok(variants.length > 150);
    t.ok(trusted.length > 0);
  }
});

t.test('content our writer would not make is altered even when we sign it', (t) => {
  const { signer, trust } = testSigning();
  const file = issued(wav(300), signer);
  const extent = extentOf(file)!;
  const store = storeIn(file, extent);
  const tree = readNode(store);
  /**
   * Bends the assertions and signs again with the service's own key, as a careless or older writer might have
   * done.
   */
  const resigned = (
    bend: (assertions: Node[], claim: Map<string, unknown>) => void,
    unprotected: object = {},
  ): Buffer => {
    const [manifest] = tree.children!;
    const [assertionStore] = manifest!.children!;
    const assertions = [...assertionStore!.children!];
    const info = new Map<string, unknown>([
      ['alg', 'sha256'],
      ['signature', `self#jumbf=/c2pa/${manifest!.label}/c2pa.signature`],
      ['instanceID', `xmp:iid:${manifest!.label!.slice(9)}`],
      [
        'claim_generator_info',
        new Map([
          ['name', 'Takemark'],
          ['version', '1.0.0'],
          ['specVersion', '2.4.0'],
        ]),
      ],
    ]);
    bend(assertions, info);
    if (!info.has('created_assertions'))
      info.set(
        'created_assertions',
        assertions.map(
          (node) =>
            new Map<string, unknown>([
              ['url', `self#jumbf=c2pa.assertions/${node.label}`],
              ['hash', createHash('sha256').update(writeNode(node).subarray(8)).digest()],
            ]),
        ),
      );
    const claim = encodeCanonicalOrNot(info);
    const header = encodeInOrder(
      new Map<number, unknown>([
        [1, -8],
        [33, signer.identity.certificate],
      ]),
    );
    const signature = signer.sign(encodeInOrder(['Signature1', header, new Uint8Array(0), claim]));
    const cose = Buffer.concat([Buffer.from([0xd2]), encodeInOrder([header, unprotected, null, signature])]);
    return writeNode({
      ...tree,
      children: [
        {
          ...manifest!,
          children: [
            { ...assertionStore!, children: assertions },
            superbox('c2cl', 'c2pa.claim.v2', [{ box: 'cbor', content: claim }]),
            superbox('c2cs', 'c2pa.signature', [{ box: 'cbor', content: cose }]),
          ],
        },
      ],
    });
  };
  const encodeCanonicalOrNot = (info: Map<string, unknown>): Uint8Array =>
    info.delete('in order') ? encodeInOrder(info) : encode(info, { mapSorter: bytewise });
  const read = (bytes: Uint8Array): string => {
    const reading = readStore(bytes, { offset: extent.offset, length: 8 + bytes.length }, trust);
    return reading.kind === 'altered' ? reading.reason : reading.kind;
  };
  t.equal(read(resigned(() => {})), 'service', 'nothing bent');
  t.equal(
    read(resigned((_, claim) => claim.set('in order', 1))),
    'not_writer_form',
    'claim in another order',
  );
  t.equal(read(resigned((_, claim) => claim.set('dc:title', 'x'))), 'not_writer_form', 'a further key');
  t.equal(read(resigned((_, claim) => claim.set('gathered_assertions', []))), 'not_writer_form');
  t.equal(read(resigned((_, claim) => claim.set('instanceID', 'x'))), 'not_writer_form');
  t.equal(
    read(resigned(() => {}, { pad: new Uint8Array(1000) })),
    'not_writer_form',
    'COSE padding: the slack of shrink-and-inject',
  );
  t.equal(read(resigned(() => {}, { pad: noise(1000) })), 'cose_padding_not_zero', 'freight in the padding');
  const bytesOf = (content: object): Node => ({
    box: 'cbor',
    content: encode(content, { mapSorter: bytewise }),
  });
  const parent = { relationship: 'parentOf' };
  const opened = (node: Node, more: object[] = [], allActionsIncluded: unknown = false): object => ({
    actions: [
      {
        action: 'c2pa.opened',
        parameters: {
          ingredients: [
            {
              url: 'self#jumbf=c2pa.assertions/c2pa.ingredient.v3',
              hash: createHash('sha256').update(writeNode(node).subarray(8)).digest(),
            },
          ],
        },
      },
      ...more,
    ],
    allActionsIncluded,
  });
  const history = (actions: (node: Node) => object, ...ingredients: object[]): string =>
    read(
      resigned((assertions) => {
        const nodes = ingredients.map((content, at) =>
          superbox('cbor', `c2pa.ingredient.v3${at === 0 ? '' : `__${at}`}`, [bytesOf(content)]),
        );
        const actionsNode = superbox('cbor', 'c2pa.actions.v2', [
          bytesOf(actions(nodes[0] ?? assertions[1]!)),
        ]);
        assertions.splice(0, 2, actionsNode, ...nodes);
      }),
    );
  t.equal(
    history((node) => opened(node), parent),
    'service',
    'nothing bent',
  );
  t.equal(
    history((node) => opened(node, [counted('c2pa.edited', 3)]), parent),
    'exclusion_not_chunk',
    'of our form, and of another length',
  );
  for (const [name, reason] of [
    ['an action removed', history(() => ({ actions: [], allActionsIncluded: false }), parent)],
    ['a parent removed', history((node) => opened(node))],
    ['a parent twice', history((node) => opened(node), parent, parent)],
    ['a title', history((node) => opened(node), { ...parent, 'dc:title': 'x' })],
    ['another relationship', history((node) => opened(node), { relationship: 'inputTo' })],
    ['an ingredient that was not placed', history((node) => opened(node), parent, imported('ab'.repeat(32)))],
    ['a digest in capitals', history((node) => opened(node), parent, imported('AB'.repeat(32)))],
    ['no word of completeness', history((node) => opened(node, [], null), parent)],
    ['a count of zero', history((node) => opened(node, [counted('c2pa.edited', 0)]), parent)],
    ['a negative count', history((node) => opened(node, [counted('c2pa.edited', -1)]), parent)],
    ['a fraction', history((node) => opened(node, [counted('c2pa.edited', 1.5)]), parent)],
    ['an action of another kind', history((node) => opened(node, [counted('c2pa.dubbed', 1)]), parent)],
    [
      'an action twice',
      history((node) => opened(node, [counted('c2pa.edited', 1), counted('c2pa.edited', 1)]), parent),
    ],
    ['many actions', history((node) => opened(node, Array(5000).fill(counted('c2pa.edited', 1))), parent)],
    ['many ingredients', history((node) => opened(node), ...Array(100).fill(parent))],
    [
      'the former action beside the new version',
      history(() => ({ actions: [{ action: 'c2pa.created', digitalSourceType: COMPOSITE }] })),
    ],
    [
      'a capture without a take',
      history(() => ({
        actions: [
          { action: 'c2pa.created', digitalSourceType: COMPOSITE.replace('composite', 'digitalCapture') },
        ],
        allActionsIncluded: false,
      })),
    ],
  ] as const)
    t.equal(reason, 'not_writer_form', name);
  const record = (members: object, label = 'io.takemark.production-record'): Node =>
    superbox('cbor', label, [{ box: 'cbor', content: encode(members, { mapSorter: bytewise }) }]);
  const statement = {
    version: 1,
    proofId: 'prf_1',
    createdAt: now(),
    kid: signer.identity.kid,
    issuer: 'Takemark',
    evidenceSha256: null,
  };
  const put = (members: object, label?: string): string =>
    read(resigned((assertions) => (assertions[2] = record(members, label))));
  // Another length of the record would change the length of the store, and the exclusion would not fit. So
  // the id keeps its length.
  const sameLength = { ...statement, proofId: 'prf_01J00000000000000000000000' };
  t.equal(put(sameLength), 'service');
  t.equal(put(statement), 'exclusion_not_chunk');
  t.equal(put({ ...sameLength, version: 2 }), 'statement_malformed');
  t.equal(put({ ...sameLength, more: 1 }), 'statement_malformed');
  t.equal(put({ ...sameLength, createdAt: 1.5 }), 'statement_malformed');
  t.equal(put({ ...sameLength, issuer: 'Takemarc' }), 'issuer_mismatch');
  t.equal(put({ ...sameLength, kid: '0'.repeat(64) }), 'kid_mismatch');
  t.equal(put({ ...sameLength, createdAt: 0x60000000 }), 'outside_validity');
  t.equal(put(sameLength, 'io.takemark.production-record.v2'), 'statement_malformed');
  t.equal(
    put(sameLength, 'com.example.other'),
    'statement_malformed',
    'our key signs nothing but our assertions',
  );
  t.equal(
    read(
      resigned((assertions) =>
        assertions.push(
          record(
            { version: 1, sealedAt: now(), kid: signer.identity.kid, device: 'x' },
            'io.takemark.local-seal',
          ),
        ),
      ),
    ),
    'statement_malformed',
    'both assertions',
  );
  const hashData = (members: object): string =>
    read(resigned((assertions) => (assertions[3] = record(members, 'c2pa.hash.data'))));
  const hash = {
    exclusions: [{ start: extent.offset, length: extent.length }],
    alg: 'sha256',
    hash: new Uint8Array(32),
    pad: new Uint8Array(0),
  };
  t.equal(hashData(hash), 'service');
  t.equal(
    hashData({ ...hash, exclusions: [{ start: extent.offset + 2, length: extent.length }] }),
    'service',
    'another start is a hard binding that fails',
  );
  t.equal(
    hashData({ ...hash, exclusions: [{ start: extent.offset, length: extent.length - 2 }] }),
    'exclusion_not_chunk',
  );
  t.equal(
    hashData({ ...hash, exclusions: [...hash.exclusions, { start: 12, length: 24 }] }),
    'not_writer_form',
  );
  t.equal(hashData({ ...hash, pad: new Uint8Array(1) }), 'not_writer_form');
  t.equal(hashData({ ...hash, hash: new Uint8Array(31) }), 'hash_data_malformed');
  t.end();
});

const COMPOSITE = 'http://cv.iptc.org/newscodes/digitalsourcetype/composite';

function counted(action: string, count: number): object {
  return { action, parameters: { 'io.takemark.count': count } };
}

function imported(sha256: string): object {
  return {
    description: 'Imported source, named by the SHA-256 of its file',
    instanceID: `nih:sha-256;${sha256}`,
    relationship: 'componentOf',
  };
}

t.test('no changed byte of a credential with ingredients is ours', (t) => {
  const { signer, trust } = testSigning();
  const file = issued(wav(100), signer, 'prf_1', {
    complete: false,
    captured: false,
    imports: [{ sha256: 'ab'.repeat(32), of: 'file' }, { sha256: 'cd'.repeat(32), of: 'samples' }, {}],
    importCount: 4,
    takes: 1,
    notes: 30,
    edits: 500,
  });
  const extent = extentOf(file)!;
  t.match(readFile(file, trust), {
    reading: { kind: 'service', report: { integrity: 'verified' } },
    bound: true,
  });
  const isTried = sampled(11);
  let changes = 0;
  let accepted = 0;
  for (let at = extent.offset; at < file.length; at += 1) {
    for (const flip of [1 << (at % 8), 0xff]) {
      if (!isTried()) continue;
      changes += 1;
      const bent = Buffer.from(file);
      bent[at]! ^= flip;
      const { reading, bound } = readFile(bent, trust);
      if (reading?.kind === 'service' && bound) accepted += 1;
    }
  }
  t.equal(accepted, 0, `${changes} changes`);
  t.end();
});

/** Sorts by the encoded key (RFC 8949 section 4.2.1). The keys are short text, so the length comes first. */
function bytewise(a: unknown, b: unknown): number {
  const key = (entry: unknown): Buffer => Buffer.from(encode((entry as { value: unknown }[])[0]!.value));
  return Buffer.compare(key(a), key(b));
}

t.test('shrink and inject: bytes freed inside the excluded range are found', async (t) => {
  const { signer, trust } = testSigning();
  const file = issued(wav(300), signer);
  const extent = extentOf(file)!;
  const tree = readNode(storeIn(file, extent));
  const [manifest] = tree.children!;
  const [assertionStore, claim, signature] = manifest!.children!;
  // The unsigned labels are 39 bytes shorter in all. Signature and hashes still hold, and the file keeps its
  // length.
  const shrunk = writeNode({
    ...tree,
    children: [
      {
        ...manifest!,
        children: [
          { ...assertionStore!, label: 'c' },
          { ...claim!, label: 'c' },
          { ...signature!, label: 'c' },
        ],
      },
    ],
  });
  const freed = extent.length - 8 - shrunk.length;
  t.ok(freed >= 39);
  const inside = Buffer.concat([
    file.subarray(0, extent.offset + 8),
    shrunk,
    noise(freed),
    file.subarray(extent.offset + extent.length),
  ]);
  t.equal(inside.length, file.length);
  t.equal(readFile(inside, trust).reading?.kind, 'altered');
  const second = chunk({ id: 'data', data: noise(freed - 8 - (freed % 2)) });
  const outside = Buffer.concat([
    file.subarray(0, extent.offset),
    chunk({ id: 'C2PA', data: shrunk, pad: null }),
    second.subarray(0, freed),
    Buffer.alloc(Math.max(0, freed - second.length)),
    file.subarray(extent.offset + extent.length),
  ]);
  t.equal(readFile(outside, trust).reading?.kind, 'altered');
  t.end();
});
