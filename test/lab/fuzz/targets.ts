/** Every reader of untrusted bytes, with the properties that must hold for all inputs. */
import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { decodeCborStrict, decodeCborTolerant, encodeCbor } from '../../../src/core/codec/cbor.js';
import { decodeMessagePackStrict, encodeMessagePack } from '../../../src/core/codec/messagepack.js';
import { chainHangsTogether, readCertificate } from '../../../src/core/credential/certificate.js';
import { protectedHeader, readSign1, writeSign1 } from '../../../src/core/credential/cose.js';
import { type Box, readBox } from '../../../src/core/credential/jumbf.js';
import { readEmbedded } from '../../../src/core/credential/read-embedded.js';
import { readSidecar, writeSidecar } from '../../../src/core/credential/sidecar.js';
import { stateProduction } from '../../../src/core/credential/statement.js';
import { DomainError } from '../../../src/core/domain/errors.js';
import {
  CONTEXT_BYTES,
  createCoreMemory,
  instantiateCore,
  SCRATCH_BYTES,
} from '../../../src/core/engine/core.js';
import * as layout from '../../../src/core/engine/core-layout.js';
import { parseJson } from '../../../src/service/http/body/json-text.js';
import { createCursors } from '../../../src/service/operations/page.js';
import { createUploadPolicySigner } from '../../../src/service/operations/uploads/upload-policy.js';
import type { TraceEvent } from '../../../src/witness/domain/trace.js';
import { type ReadTrace, readTrace } from '../../../src/witness/trace/read-trace.js';
import { encodeTraceEvent, MAX_EVENT_BYTES } from '../../../src/witness/trace/trace-events.js';
import { opened, SESSION } from '../../capture/write-trace.js';
import { Forge } from '../../evidence/forge-trace.js';
import { now as currentSecond, extentOf, issued, sealed, storeIn } from '../../fixtures/credentialed-file.js';
import { foreignManifest, foreignSigner, storeOf } from '../../fixtures/foreign-store.js';
import { testDevice, testSigning } from '../../fixtures/signing.js';
import { chunk, fmtChunk, noise, riff, wav } from '../../fixtures/wav.js';
import { secretsOf } from '../../operations/doubles.js';
import { BlockCoverage, type Coverage } from './coverage.js';
import type { Target } from './guided.js';
import { BranchCoverage, buildInstrumentedCore } from './instrumented-core.js';

export interface OpenTarget extends Target {
  readonly coverage: Coverage;
  close(): Promise<void>;
}

export const text = (...words: readonly string[]): Buffer[] =>
  words.map((word) => Buffer.from(word, 'latin1'));
export const must = (holds: boolean, what: string): void => {
  if (!holds) throw new Error(what);
};
/** Runs a reader. Only a refusal may be thrown. */
function orRefusal<Value>(read: () => Value): Value | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof DomainError && error.code !== 'internal') return undefined;
    throw error;
  }
}

/** Returns a reader in this process. Coverage counts its folders of `src/`. */
function plain(target: Target, ...folders: readonly string[]): () => Promise<OpenTarget> {
  return async () => ({ ...target, coverage: new BlockCoverage(folders), close: async () => undefined });
}

const ours = testSigning();
const ES256 = foreignSigner('ES256');
const PLAIN = wav(300);
const ISSUED = issued(PLAIN, ours.signer);
const SEALED = sealed(PLAIN, testDevice());
const ISSUED_EXTENT = extentOf(ISSUED)!;
const ISSUED_STORE = storeIn(ISSUED, ISSUED_EXTENT);
const FOREIGN_STORE = storeOf([
  foreignManifest(ES256, { exclusions: [{ start: PLAIN.length, length: 1 }], binding: new Uint8Array(32) }),
]);
const STORES = [ISSUED_STORE, storeIn(SEALED, extentOf(SEALED)!), FOREIGN_STORE];
const SIDECAR = Buffer.from(
  writeSidecar({
    statement: stateProduction(ours.signer.identity, {
      proofId: 'prf_01J00000000000000000000000',
      createdAt: currentSecond(),
      evidenceSha256: null,
    }),
    binding: { bytes: 344, sha256: 'ab'.repeat(32) },
    signer: ours.signer,
  }),
);
const LEAF = Buffer.from(ours.signer.identity.certificate);
const SIGN1 = Buffer.from(writeSign1(protectedHeader('Ed25519', LEAF), new Uint8Array(64)));
const CBOR_WORDS = [
  Buffer.from([0xa1]),
  Buffer.from([0x9f]),
  Buffer.from([0xff]),
  Buffer.from([0xd8, 0x18]),
  Buffer.from([0x5b]),
  Buffer.from([0x18, 0x21]),
  Buffer.from([0xfb]),
  Buffer.from([0xc2]),
];
const BOX_WORDS = text(
  'jumb',
  'jumd',
  'cbor',
  'json',
  'c2sh',
  'c2pa.signature',
  'c2pa.claim.v2',
  'c2pa.assertions',
  'c2pa.hash.data',
  '\0\0\0\x01',
  '\0\0\0\x08',
);
const TRACE_WORDS = [
  Buffer.from([0x94, 1]),
  Buffer.from([0x94, 2]),
  Buffer.from([0x94, 3]),
  Buffer.from([0xc0]),
  Buffer.from([0xc4, 0x20]),
  Buffer.from([0xc6, 0xff, 0xff, 0xff, 0xff]),
  Buffer.from([0xcb, 0x7f, 0xf8]),
  Buffer.from([0xcf, 0, 0x20]),
];
const TRACE_BODY = bodyOf(SESSION);
const TRACE_SEED = signedTrace(TRACE_BODY);
const now = 1_700_000_000;
const secrets = secretsOf();

export const TARGETS: Readonly<Record<string, () => Promise<OpenTarget>>> = {
  'riff-core': openRiffCore,

  'message-pack': plain(
    {
      name: 'message-pack',
      seeds: [
        SIDECAR,
        Buffer.from(encodeMessagePack({ a: 1, b: [true, null, 'text', 1.5, -3], c: new Uint8Array(40) })),
      ],
      words: [
        Buffer.from([0x81]),
        Buffer.from([0xdc, 0, 1]),
        Buffer.from([0xc4, 1]),
        Buffer.from([0xcf]),
        Buffer.from([0xd6, 0xff]),
        Buffer.from([0xdf, 0, 0, 0, 2]),
      ],
      maxBytes: 8192,
      run(input) {
        const read = decodeMessagePackStrict(input, 4096);
        if (read.ok)
          must(Buffer.compare(encodeMessagePack(read.value), input) === 0, 'another spelling was taken');
      },
    },
    '/src/core/codec/',
    'msgpack',
  ),

  cbor: plain(
    {
      name: 'cbor',
      seeds: [
        Buffer.from(
          encodeCbor(
            new Map<string, never>([
              ['a', 1],
              ['b', [true, null, 'text', new Uint8Array(30)]],
            ] as never),
          ),
        ),
        SIGN1,
        Buffer.from([0x9f, 0x01, 0xff]),
      ],
      words: CBOR_WORDS,
      maxBytes: 8192,
      run(input) {
        const tolerant = decodeCborTolerant(input, { bytes: 4096, depth: 16, items: 512 });
        const strict = decodeCborStrict(input);
        if (!strict.ok) return;
        must(Buffer.compare(encodeCbor(strict.value), input) === 0, 'another spelling was taken');
        must(
          tolerant.ok || tolerant.fault === 'over_budget',
          'the tolerant reader refuses what the strict one takes',
        );
      },
    },
    '/src/core/codec/',
    'cborg',
  ),

  jumbf: plain(
    {
      name: 'jumbf',
      seeds: STORES,
      words: BOX_WORDS,
      maxBytes: 16_384,
      run(input) {
        const read = readBox(input);
        if (!read.ok) return;
        const inside = ({ start, end, children }: Box, from: number, to: number): void => {
          must(from <= start && start <= end && end <= to, 'a box exceeds the one around it');
          let at = start;
          for (const child of children) {
            inside(child, at, end);
            at = child.end;
          }
        };
        inside(read.box, 0, input.length);
      },
    },
    '/src/core/credential/jumbf',
  ),

  cose: plain(
    {
      name: 'cose',
      seeds: [SIGN1, Buffer.from(cborContentOf(FOREIGN_STORE))],
      words: CBOR_WORDS,
      maxBytes: 8192,
      run(input) {
        const read = readSign1(input);
        if (read.ok)
          for (const certificate of read.sign1.chain) must(certificate.length > 0, 'an empty certificate');
      },
    },
    '/src/core/credential/cose',
    '/src/core/codec/',
  ),

  certificate: plain(
    {
      name: 'certificate',
      seeds: [LEAF, Buffer.from(ES256.chain[0]!)],
      words: [
        Buffer.from('0603551d0f', 'hex'),
        Buffer.from('0603551d13', 'hex'),
        Buffer.from('06082b06010505070304', 'hex'),
        Buffer.from([0x30, 0x82]),
        Buffer.from([0x30, 0x80]),
      ],
      maxBytes: 8192,
      run(input) {
        readCertificate(input);
        chainHangsTogether([input, LEAF]);
      },
    },
    '/src/core/credential/certificate',
  ),

  'embedded-credential': plain(
    {
      name: 'embedded-credential',
      seeds: STORES,
      words: [...BOX_WORDS, ...CBOR_WORDS, LEAF],
      maxBytes: 16_384,
      run(input) {
        const { kind } = readEmbedded(
          input,
          { offset: ISSUED_EXTENT.offset, length: input.length + 8 },
          ours.trust,
          0,
        );
        must(
          kind !== 'service' || input.equals(ISSUED_STORE),
          'a store that was never issued counts as ours',
        );
      },
    },
    '/src/core/credential/',
  ),

  sidecar: plain(
    {
      name: 'sidecar',
      seeds: [SIDECAR],
      words: [LEAF, ...text('takemark', 'signature', 'certificate')],
      maxBytes: 8192,
      run(input) {
        must(
          readSidecar(input, ours.trust).kind !== 'service' || input.equals(SIDECAR),
          'a sidecar that was never issued counts as ours',
        );
      },
    },
    '/src/core/credential/sidecar',
    '/src/core/codec/',
  ),

  'json-text': plain(
    {
      name: 'json-text',
      seeds: text(
        '{"uploadId":"upl_1","sidecar":"AAAA"}',
        '{"events":[{"name":"a","count":1,"at":2}],"x":[[],{}]}',
        '"\\u00e9\\ud83d\\ude00"',
        '[1e5,-0.1,true,null]',
      ),
      words: text('"', '\\"', '\\u0000', '{"a":1,"a":2}', '[[[[', '\u00ef\u00bb\u00bf', '__proto__', '1e999'),
      maxBytes: 4096,
      run(input) {
        const value = orRefusal(() => parseJson(Buffer.from(input)));
        if (value !== undefined)
          must(
            isDeepStrictEqual(value, JSON.parse(input.toString('utf8'))),
            'read differently from JSON.parse',
          );
      },
    },
    '/src/service/http/body/json-text',
  ),

  'trace-file': plain(
    {
      name: 'trace-file',
      seeds: [TRACE_SEED],
      words: TRACE_WORDS,
      maxBytes: 8192,
      async run(input) {
        const read = await readEvents(input);
        // The test knows the signed bytes of this device's trace only.
        if (read === undefined || !TRACE_SEED.includes(Buffer.from(read.trace.header.publicKey))) return;
        must(
          bodyOf(read.events).equals(TRACE_BODY.subarray(0, bodyOf(read.events).length)),
          'events that were not signed',
        );
      },
    },
    '/src/witness/trace/',
    '/src/witness/trace/trace',
  ),

  'trace-events': plain(
    {
      name: 'trace-events',
      seeds: [TRACE_BODY, ...SESSION.map((event) => bodyOf([event]))],
      words: TRACE_WORDS,
      maxBytes: 4096,
      async run(input) {
        if (input.length === 0) return;
        const read = await readEvents(signedTrace(input));
        if (read !== undefined) must(bodyOf(read.events).equals(input), 'another spelling was taken');
      },
    },
    '/src/witness/trace/',
    '/src/witness/trace/trace',
    '/src/witness/domain/trace',
  ),

  cursor: openCursor,
  'slot-policy': openSlotPolicy,
  // Loaded on demand, because reading coverage takes time for all loaded code.
  'http-framing': async () => (await import('./http-targets.js')).openFraming(),
  'upload-form': async () => (await import('./http-targets.js')).openForm(),
};

function bodyOf(events: readonly TraceEvent[]): Buffer {
  const bytes = Buffer.alloc(events.length * MAX_EVENT_BYTES);
  let end = 0;
  for (const event of events) end = encodeTraceEvent(event, bytes, end);
  return bytes.subarray(0, end);
}

/** Returns a sealed trace with one segment. */
function signedTrace(body: Uint8Array): Buffer {
  const forge = new Forge();
  return Buffer.concat([forge.header, forge.segment(body, 0), forge.sign(true)]);
}

async function readEvents(
  input: Buffer,
): Promise<{ readonly trace: ReadTrace; readonly events: readonly TraceEvent[] } | undefined> {
  try {
    const trace = await readTrace(opened(input, 700));
    const events: TraceEvent[] = [];
    for await (const batch of trace.events()) events.push(...batch);
    return { trace, events };
  } catch (error) {
    if (error instanceof DomainError && error.code !== 'internal') return undefined;
    throw error;
  }
}

async function openCursor(): Promise<OpenTarget> {
  const cursors = createCursors(secrets, 'production');
  const scope = { partnerId: 'ptr_1', route: 'listProofs', filter: [null, 5] };
  const written = cursors.write(scope, { createdAt: now, id: 'prf_1' });
  return plain(
    {
      name: 'cursor',
      seeds: [
        Buffer.from(written),
        Buffer.from(cursors.write({ ...scope, partnerId: 'ptr_2' }, { createdAt: now, id: 'prf_1' })),
      ],
      words: text('==', '+/', '_-', 'AAAA'),
      maxBytes: 512,
      run(input) {
        const sent = input.toString('latin1');
        must(
          orRefusal(() => cursors.read(scope, sent)) === undefined || sent === written,
          'a cursor that was never written was read',
        );
      },
    },
    '/src/service/operations/page',
  )();
}

async function openSlotPolicy(): Promise<OpenTarget> {
  const policies = createUploadPolicySigner(secrets, 'production');
  const signed = policies.sign({ uploadId: 'upl_1', maxBytes: 68_157_440, expiresAt: now + 900 });
  const fields = (input: Buffer): ReadonlyMap<string, string> =>
    new Map(
      input
        .toString('utf8')
        .split('\n')
        .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
    );
  const seed = Buffer.from(
    Object.entries(signed)
      .map(([name, value]) => `${name}=${value}`)
      .join('\n'),
  );
  return plain(
    {
      name: 'slot-policy',
      seeds: [seed, Buffer.from('policy=W10\nsignature=AAAA')],
      words: text('policy=', 'signature=', '\n', 'file=x', '=='),
      maxBytes: 1024,
      run(input) {
        const sent = fields(input);
        const policy = orRefusal(() => policies.check('upl_1', sent, now));
        must(
          policy === undefined || isDeepStrictEqual(Object.fromEntries(sent), signed),
          'fields that were never signed were taken',
        );
      },
    },
    '/src/service/operations/uploads/upload-policy',
  )();
}

/** Returns where an input is cut in two, which its bytes determine. */
export const cutOf = (input: Uint8Array): number =>
  createHash('sha256').update(input).digest().readUInt32LE(0) % (input.length + 1);

/**
 * Reads an input whole and in slices. The core must read the same, return the digests of node:crypto, and
 * leave other memory unchanged.
 */
async function openRiffCore(): Promise<OpenTarget> {
  const room = 16_384;
  const context = SCRATCH_BYTES;
  const cutContext = context + CONTEXT_BYTES + 64;
  const gap = cutContext + CONTEXT_BYTES;
  const slice = gap + 64;
  const countersAt = Math.ceil((slice + room) / 8) * 8;
  const core = await buildInstrumentedCore(countersAt);
  const memory = createCoreMemory(countersAt + core.counterBytes);
  const bytes = Buffer.from(memory.buffer);
  const instance = instantiateCore(core.module, memory, 0);
  const guards = [context + CONTEXT_BYTES, gap];
  for (const at of guards) bytes.fill(0xa5, at, at + 64);
  const digest = (...parts: readonly Uint8Array[]): Buffer => {
    const hash = createHash('sha256');
    for (const part of parts) hash.update(part);
    return hash.digest();
  };
  const list = (inner: Uint8Array): Buffer =>
    chunk({ id: 'LIST', data: Buffer.concat([Buffer.from('INFO'), inner]) });
  const data = chunk({ id: 'data', data: noise(60) });
  const bext = Buffer.alloc(640, 'x');
  bext.writeUInt16LE(2, 346);
  const ds64 = Buffer.alloc(28);
  ds64.writeBigUInt64LE(60n, 8);
  const target: Target = {
    name: 'riff-core',
    seeds: [
      PLAIN,
      ISSUED,
      riff([
        fmtChunk(),
        data,
        list(chunk({ id: 'ISFT', data: noise(5) })),
        chunk({ id: 'C2PA', data: noise(31, 2) }),
      ]),
      riff([chunk({ id: 'bext', data: bext }), fmtChunk(), data]),
      riff([chunk({ id: 'ds64', data: ds64 }), fmtChunk(), data], { magic: 'RF64', riffSize: 0xffff_ffff }),
      riff([fmtChunk(), list(list(list(list(chunk({ id: 'ICRD', data: noise(4) })))))]),
    ],
    words: text(
      'RIFF',
      'RF64',
      'BW64',
      'WAVE',
      'C2PA',
      'LIST',
      'INFO',
      'fmt ',
      'data',
      'ds64',
      'bext',
      'JUNK',
      'FORM',
      '\xff\xff\xff\xff',
      '\0\0\0\0',
    ),
    maxBytes: room,
    run(input) {
      bytes.set(input, slice);
      instance.init(context);
      instance.update([{ context, address: slice, length: input.length }]);
      instance.finish(context);
      const cut = cutOf(input);
      instance.init(cutContext);
      instance.update([{ context: cutContext, address: slice, length: cut }]);
      instance.update([{ context: cutContext, address: slice + cut, length: input.length - cut }]);
      instance.finish(cutContext);
      const at = (base: number, offset: number, length: number): Buffer =>
        bytes.subarray(base + offset, base + offset + length);
      must(digest(input).equals(at(context, layout.WHOLE, 32)), 'the digest of the file is wrong');
      must(
        at(context, 0, layout.WHOLE + 32).equals(at(cutContext, 0, layout.WHOLE + 32)),
        'in two slices it is read differently',
      );
      for (const guard of guards)
        must(
          at(guard, 0, 64).every((byte) => byte === 0xa5),
          'memory outside the context was written',
        );
      if (
        (bytes.readUInt32LE(context + layout.FLAGS) & layout.FLAG_CREDENTIAL) === 0 ||
        bytes.readUInt32LE(context + layout.CREDENTIALS) !== 1
      )
        return;
      const forkAt = Number(bytes.readBigUInt64LE(context + layout.FORK_AT));
      const resumeAt = Number(bytes.readBigUInt64LE(context + layout.RESUME_AT));
      must(
        resumeAt <= input.length && input.toString('latin1', forkAt, forkAt + 4) === 'C2PA',
        'the credential is elsewhere',
      );
      must(
        digest(input.subarray(0, forkAt), input.subarray(resumeAt)).equals(at(context, layout.BINDING, 32)),
        'the binding digest is wrong',
      );
    },
  };
  return { ...target, coverage: new BranchCoverage(memory, countersAt, core), close: async () => undefined };
}

/** Returns the bytes of the first COSE structure of a store. */
function cborContentOf(store: Buffer): Uint8Array {
  const read = readBox(store);
  if (!read.ok) throw new Error('the built store cannot be read');
  const find = (box: Box): Box | undefined =>
    box.description?.label === 'c2pa.signature'
      ? box.children[0]
      : box.children.map(find).find((found) => found !== undefined);
  const content = find(read.box);
  if (content === undefined) throw new Error('the built store has no signature');
  return store.subarray(content.start, content.end);
}
