/**
 * Fuzzes the WASM core with mutated audio: `node dist/test/lab/fuzz/core-fuzz.js --runs N --seed S`. Every
 * input is hashed twice: whole in four or eight lanes beside seven others, and cut at random. It must not
 * trap, and must give the same context both times and the digests of node:crypto. The memory around contexts
 * must stay unchanged. Seeds are built files, and small files below TAKEMARK_CORPUS.
 */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import {
  CONTEXT_BYTES,
  createCoreMemory,
  instantiateCore,
  loadCore,
  SCRATCH_BYTES,
} from '../../../src/core/engine/core.js';
import * as layout from '../../../src/core/engine/core-layout.js';
import { randomNumbers } from '../../core/core-under-test.js';
import { chunk, fmtChunk, noise, riff } from '../../fixtures/wav.js';

const { values } = parseArgs({
  options: { runs: { type: 'string', default: '200000' }, seed: { type: 'string', default: '1' } },
});
const runs = Number(values.runs);
const seed = Number(values.seed);
if (!Number.isSafeInteger(runs) || runs < 1 || !Number.isSafeInteger(seed))
  throw new RangeError('--runs and --seed are whole numbers');

const random = randomNumbers(Math.imul(seed, 0x9e37_79b1) || 1);
const LANES = 8;
const ROOM = 4096;
/** The number of guard bytes after every context and scratch. They must stay unchanged. */
const GAP = 64;
const CANARY = 0xa5;
const STRIDE = CONTEXT_BYTES + GAP;

const SIZES = [
  0,
  1,
  2,
  3,
  4,
  7,
  8,
  9,
  15,
  16,
  17,
  18,
  24,
  28,
  40,
  601,
  602,
  1 << 20,
  (1 << 20) + 1,
  0x7fff_ffff,
  0x8000_0000,
  0xffff_fff7,
  0xffff_fff8,
  0xffff_fffe,
  0xffff_ffff,
];
const IDS = [
  'C2PA',
  'c2pa',
  'LIST',
  'fmt ',
  'data',
  'ds64',
  'bext',
  'fact',
  'JUNK',
  'RIFF',
  'WAVE',
  ' BAD',
  '\0\0\0\0',
  'C2PB',
];
const MAGICS = ['RIFF', 'RF64', 'BW64', 'RIFX', 'FORM'];

/** A file with the offsets of its four-character codes. A size follows each code. */
interface Seed {
  readonly bytes: Buffer;
  readonly ids: readonly number[];
}

/** Finds everything that looks like a chunk header, also inside lists. */
function toSeed(bytes: Buffer): Seed {
  const ids = [0];
  for (let at = 12; at + 8 <= bytes.length; ) {
    ids.push(at);
    const isList = bytes.toString('latin1', at, at + 4) === 'LIST';
    const size = bytes.readUInt32LE(at + 4);
    at += isList ? 12 : 8 + size + (size & 1);
  }
  return { bytes, ids };
}

function builtSeeds(): Buffer[] {
  const fmt = fmtChunk();
  const data = chunk({ id: 'data', data: noise(100) });
  const credential = chunk({ id: 'C2PA', data: noise(121, 2) });
  const member = chunk({ id: 'ISFT', data: noise(5) });
  const list = (inner: Uint8Array): Buffer =>
    chunk({ id: 'LIST', data: Buffer.concat([Buffer.from('INFO'), inner]) });
  const ds64 = Buffer.alloc(40);
  ds64.writeBigUInt64LE(BigInt(4 + 48 + fmt.length + data.length), 0);
  ds64.writeBigUInt64LE(100n, 8);
  ds64.writeUInt32LE(1, 24);
  ds64.write('axml', 28);
  const bext = Buffer.alloc(640, 'x');
  bext.writeUInt16LE(2, 346);
  const many = Array.from({ length: 280 }, () => chunk({ id: 'JUNK', data: Buffer.alloc(0) }));
  return [
    riff([fmt, data]),
    riff([fmt, data, credential]),
    riff([credential, fmt, data]),
    riff([fmt, data, list(Buffer.concat([member, member])), credential]),
    riff([fmt, data, list(list(list(list(list(list(list(list(member))))))))]),
    riff([chunk({ id: 'bext', data: bext }), fmt, data, credential]),
    riff([chunk({ id: 'ds64', data: ds64 }), fmt, data], { magic: 'RF64', riffSize: 0xffff_ffff }),
    riff([fmt, data, ...many]),
  ];
}

function corpusSeeds(): Buffer[] {
  const corpus = process.env.TAKEMARK_CORPUS;
  if (corpus === undefined) return [];
  return readdirSync(corpus, { recursive: true, encoding: 'utf8' })
    .sort()
    .filter(
      (name) =>
        !name.endsWith('.txt') &&
        statSync(join(corpus, name)).isFile() &&
        statSync(join(corpus, name)).size <= 2048,
    )
    .map((name) => readFileSync(join(corpus, name)));
}

const pick = <T>(from: readonly T[]): T => from[random(from.length)]!;
const built = builtSeeds().map(toSeed);
const seeds = [...built, ...corpusSeeds().map(toSeed)];

const draft = Buffer.alloc(ROOM);

/** Writes a mutated file to `draft`. Returns its length. */
function mutate(): number {
  // Few real files have a credential, so the built ones get half of the runs.
  const { bytes, ids } = pick(random(2) === 0 ? built : seeds);
  bytes.copy(draft);
  let { length } = bytes;
  for (let times = random(4) + 1; times > 0; times -= 1) {
    const at = Math.min(pick(ids), ROOM - 8);
    switch (random(9)) {
      case 0:
        draft.writeUInt32LE(random(2) === 0 ? pick(SIZES) : random(length + 2), at + 4);
        break;
      case 1:
        draft.writeUInt32LE((draft.readUInt32LE(at + 4) + random(5) - 2) >>> 0, at + 4);
        break;
      case 2:
        draft.write(at === 0 ? pick(MAGICS) : pick(IDS), at, 'latin1');
        break;
      case 3:
        length = random(length + 1);
        break;
      case 4: {
        // Appends a copy of a chunk, or of the bytes at this offset.
        const from = Math.min(at, length);
        const count = Math.min(random(64) + 8, length - from, ROOM - length);
        draft.copy(draft, length, from, from + count);
        length += count;
        break;
      }
      case 5: {
        const other = pick(seeds);
        const from = Math.min(pick(other.ids), other.bytes.length);
        const count = Math.min(other.bytes.length - from, ROOM - at, 400);
        other.bytes.copy(draft, at, from, from + count);
        length = Math.max(length, at + count);
        break;
      }
      case 6:
        if (length > 0) {
          const position = random(length);
          draft[position] = draft[position]! ^ (1 << random(8));
        }
        break;
      case 7: {
        // Writes a chunk header into data.
        const position = random(Math.max(1, Math.min(length, ROOM - 8)));
        draft.write(pick(IDS), position, 'latin1');
        draft.writeUInt32LE(random(2) === 0 ? random(40) : pick(SIZES), position + 4);
        break;
      }
      default:
        // Corrects the RIFF size, so that the reader gets to the chunks.
        draft.writeUInt32LE(Math.max(0, length - 8), 4);
    }
  }
  return length;
}

function sha256(...parts: readonly Uint8Array[]): Buffer {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest();
}

function fault(what: string, file: Uint8Array): never {
  throw new Error(`${what}; seed ${seed}, input ${Buffer.from(file).toString('hex')}`);
}

const slabs = 2 * SCRATCH_BYTES + 2 * GAP + (LANES + 1) * STRIDE;
const memory = createCoreMemory(slabs + LANES * ROOM);
const all = Buffer.from(memory.buffer);
all.fill(CANARY, 0, slabs);
const module = await loadCore();
const lanes = instantiateCore(module, memory, 0);
const alone = instantiateCore(module, memory, SCRATCH_BYTES + GAP);
const contextAt = (i: number): number => 2 * (SCRATCH_BYTES + GAP) + i * STRIDE;
const cutContext = contextAt(LANES);
const gaps = [
  SCRATCH_BYTES,
  2 * SCRATCH_BYTES + GAP,
  ...Array.from({ length: LANES + 1 }, (_, i) => contextAt(i) + CONTEXT_BYTES),
];
const untouched = Buffer.alloc(GAP, CANARY);

/** Compares what a reader sees of two finished contexts: fixed fields, chunk table, bext. */
function sameAnswer(a: number, b: number): boolean {
  const same = (offset: number, length: number): boolean =>
    all.compare(all, b + offset, b + offset + length, a + offset, a + offset + length) === 0;
  const chunks = Math.min(all.readUInt32LE(a + layout.CHUNK_COUNT), layout.CHUNK_TABLE_LIMIT);
  // With a second credential the core abandons the binding digest at a point that depends on the cuts.
  const binding = all.readUInt32LE(a + layout.CREDENTIALS) < 2;
  if (
    !same(0, binding ? layout.STATE : layout.BINDING) ||
    !same(layout.STATE, layout.ZEROED_BYTES - layout.STATE)
  )
    return false;
  for (let i = 0; i < chunks; i += 1) {
    const entry = layout.CHUNKS + i * layout.CHUNK_ENTRY_BYTES;
    if (!same(entry, 4) || !same(entry + 8, 16)) return false;
  }
  const hasBext = (all.readUInt32LE(a + layout.FLAGS) & layout.FLAG_BEXT_WHOLE) !== 0;
  const bext = layout.BEXT_FIXED_BYTES + layout.CODING_HISTORY_LIMIT;
  return !hasBext || same(layout.BEXT, Math.min(Number(all.readBigUInt64LE(a + layout.BEXT_SIZE)), bext));
}

function runCut(address: number, length: number): void {
  alone.init(cutContext);
  const cuts = random(6);
  let from = 0;
  for (let i = 0; i <= cuts; i += 1) {
    const to = i === cuts ? length : from + random(length - from + 1);
    alone.update([{ context: cutContext, address: address + from, length: to - from }]);
    from = to;
  }
  alone.finish(cutContext);
}

function check(context: number, file: Buffer): void {
  if (sha256(file).compare(all, context + layout.WHOLE, context + layout.WHOLE + 32) !== 0)
    fault('whole-file digest', file);
  if (
    (all.readUInt32LE(context + layout.FLAGS) & layout.FLAG_CREDENTIAL) === 0 ||
    all.readUInt32LE(context + layout.CREDENTIALS) !== 1
  )
    return;
  const forkAt = Number(all.readBigUInt64LE(context + layout.FORK_AT));
  const resumeAt = Number(all.readBigUInt64LE(context + layout.RESUME_AT));
  if (resumeAt > file.length || file.toString('latin1', forkAt, forkAt + 4) !== 'C2PA')
    fault('extent of the credential', file);
  const binding = sha256(file.subarray(0, forkAt), file.subarray(resumeAt));
  if (binding.compare(all, context + layout.BINDING, context + layout.BINDING + 32) !== 0)
    fault('binding digest', file);
}

const begun = performance.now();
let forks = 0;
for (let done = 0; done < runs; done += LANES) {
  const slices = Array.from({ length: LANES }, (_, i) => {
    const length = mutate();
    const address = slabs + i * ROOM;
    draft.copy(all, address, 0, length);
    return { context: contextAt(i), address, length };
  });
  for (const { context } of slices) lanes.init(context);
  try {
    lanes.update(slices, (done / LANES) % 2 === 0 ? 4 : 8);
    for (const { context } of slices) lanes.finish(context);
    for (const { context, address, length } of slices) {
      runCut(address, length);
      const file = all.subarray(address, address + length);
      if (!sameAnswer(context, cutContext)) fault('another answer for another cut', file);
      check(context, file);
      if (all.readUInt32LE(context + layout.FORK_AT) !== 0) forks += 1;
    }
  } catch (error) {
    if (error instanceof WebAssembly.RuntimeError)
      fault(
        `trap: ${error.message}, in one of eight inputs, the first`,
        all.subarray(slabs, slabs + slices[0]!.length),
      );
    throw error;
  }
  if (done % 1000 === 0 && gaps.some((at) => untouched.compare(all, at, at + GAP) !== 0))
    throw new Error(`memory outside contexts was written; seed ${seed}`);
}
const seconds = (performance.now() - begun) / 1000;
console.log(
  `core-fuzz: ${runs} inputs from ${seeds.length} seeds, ${forks} with a credential, no fault; ${Math.round(runs / seconds)} inputs/s, seed ${seed}`,
);
