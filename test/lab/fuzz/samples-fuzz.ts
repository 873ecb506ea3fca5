/**
 * Fuzzes the samples readers of the WASM core: `node dist/test/lab/fuzz/samples-fuzz.js --seconds N --seed
 * S`. Half of the inputs are mutations of built files and of the corpus. The other half is FLAC with random
 * frames and correct CRCs, so that the decoder reads the frames. Every input is read twice, whole and cut at
 * random. Both must not trap, must give the same answer, and must leave the memory around context and decoder
 * alone. An undamaged FLAC file must have the digest of its samples.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual, parseArgs } from 'node:util';
import type { MeasuredSamples } from '../../../src/core/domain/audio.js';
import {
  CONTEXT_BYTES,
  createCoreMemory,
  DECODER_BYTES,
  instantiateCore,
  lendDecoder,
  loadCore,
  readMeasurement,
  SCRATCH_BYTES,
} from '../../../src/core/engine/core.js';
import { randomNumbers } from '../../core/core-under-test.js';
import { type Frame, flacFile, interleaved, type Subframe } from '../../fixtures/flac.js';
import {
  aiffForm,
  cafData,
  cafFile,
  commChunk,
  descChunk,
  encode,
  extensibleWave,
  type SampleFormat,
  type Samples,
  samplesDigest,
  someSamples,
  ssndChunk,
} from '../../fixtures/samples.js';

const { values } = parseArgs({
  options: { seconds: { type: 'string', default: '60' }, seed: { type: 'string', default: '1' } },
});
const seconds = Number(values.seconds);
const seed = Number(values.seed);
if (!Number.isSafeInteger(seconds) || seconds < 1 || !Number.isSafeInteger(seed))
  throw new RangeError('--seconds and --seed are whole numbers');

const random = randomNumbers(Math.imul(seed, 0x9e37_79b1) || 1);
const pick = <T>(from: readonly T[]): T => from[random(from.length)]!;

const ROOM = 1 << 18;
const GAP = 4096;
const CANARY = 0xa5;
const CONTEXT = SCRATCH_BYTES + GAP;
const DECODER = CONTEXT + CONTEXT_BYTES + GAP;
const SLICE = DECODER + DECODER_BYTES + GAP;
const END = SLICE + ROOM;
const memory = createCoreMemory(END + GAP);
const all = Buffer.from(memory.buffer);
all.fill(CANARY);
const core = instantiateCore(await loadCore(), memory, 0);
const GAPS = [SCRATCH_BYTES, CONTEXT + CONTEXT_BYTES, DECODER + DECODER_BYTES, END] as const;
const untouched = Buffer.alloc(GAP, CANARY);

/** Reads a file in slices that end at the cuts. Each slice is placed at the end of the memory for slices. */
function read(file: Uint8Array, cuts: readonly number[]): MeasuredSamples | undefined {
  core.init(CONTEXT, true);
  lendDecoder(memory, CONTEXT, DECODER);
  let from = 0;
  for (const to of [...cuts, file.length]) {
    const address = END - (to - from);
    all.set(file.subarray(from, to), address);
    core.update([{ context: CONTEXT, address, length: to - from }]);
    from = to;
  }
  core.finish(CONTEXT);
  return readMeasurement(memory, CONTEXT).samples;
}

function fault(what: string, file: Uint8Array): never {
  throw new Error(`${what}; seed ${seed}, input ${Buffer.from(file).toString('base64')}`);
}

function check(file: Uint8Array, expected?: MeasuredSamples): MeasuredSamples | undefined {
  try {
    const whole = read(file, []);
    const cuts = Array.from({ length: random(12) }, () => random(file.length + 1)).sort((a, b) => a - b);
    const cut = read(file, cuts);
    if (!isDeepStrictEqual(whole, cut)) fault(`another answer for the cuts ${cuts.join(', ')}`, file);
    if (expected !== undefined && !isDeepStrictEqual(whole, expected)) fault('a wrong answer', file);
    for (const at of GAPS)
      if (untouched.compare(all, at, at + GAP) !== 0) fault('memory of another was written', file);
    return whole;
  } catch (error) {
    if (error instanceof WebAssembly.RuntimeError) fault(`trap: ${error.message}`, file);
    throw error;
  }
}

function corpusSeeds(): Buffer[] {
  const corpus = process.env['TAKEMARK_CORPUS'];
  if (corpus === undefined) return [];
  return readdirSync(corpus, { recursive: true, encoding: 'utf8' })
    .sort()
    .filter((name) => /\.(?:wav|aif|aiff|aifc|caf|flac)$/i.test(name))
    .map((name) => Buffer.from(readFileSync(join(corpus, name)).subarray(0, 40_000)));
}

function builtSeeds(): Buffer[] {
  const format = { bits: 16, channels: 2, rate: 44_100 };
  const values16 = someSamples(200, 16);
  const big = encode(values16, { bits: 16, width: 2, big: true });
  return [
    extensibleWave({ ...format, bits: 12 }, 2, someSamples(200, 12)),
    extensibleWave({ ...format, bits: 24 }, 4, someSamples(200, 24)),
    aiffForm([commChunk(format, 100), ssndChunk(big, { offset: 3 })]),
    aiffForm([commChunk(format, 100, { type: 'twos' }), ssndChunk(big)], 'AIFC'),
    cafFile([descChunk({ ...format, flags: 0 }), cafData(big)]),
    cafFile([descChunk({ ...format, flags: 0 }), cafData(big, -1n)]),
    flacFile(randomFlac().file),
    flacFile(randomFlac().file),
  ];
}

function mutate(original: Buffer): Buffer {
  let file = Buffer.from(original);
  for (let times = random(5) + 1; times > 0 && file.length > 0; times -= 1) {
    // Headers are at the beginning and determine the most.
    const at = random(random(2) === 0 ? Math.min(file.length, 80) : file.length);
    switch (random(6)) {
      case 0:
        file[at]! ^= 1 << random(8);
        break;
      case 1:
        file[at] = pick([0, 1, 0x7f, 0x80, 0xff]);
        break;
      case 2:
        file = Buffer.from(file.subarray(0, at));
        break;
      case 3: {
        const other = pick(seeds);
        const from = random(other.length);
        const part = other.subarray(from, from + random(64));
        file = Buffer.concat([file.subarray(0, at), part, file.subarray(at)]);
        break;
      }
      case 4:
        file = Buffer.concat([file.subarray(0, at), file.subarray(at + random(16))]);
        break;
      default:
        if (file.length >= at + 4) file.writeUInt32BE(pick([0, 1, 8, 0x7fff_ffff, 0xffff_ffff]), at);
    }
  }
  return Buffer.from(file.subarray(0, ROOM));
}

function randomSubframe(bits: number, size: number): Subframe {
  const kind = pick(['verbatim', 'fixed', 'linear'] as const);
  if (kind === 'verbatim') return { kind };
  const order = Math.min(kind === 'fixed' ? random(5) : 1 + random(32), size);
  const partitionOrder = pick([0, 1, 2, 3].filter((each) => size % 2 ** each === 0 && size >> each >= order));
  const isEscaped = random(4) === 0;
  // A parameter that is much too small makes quotients of thousands of bits.
  const isLong = bits > 14 || random(2) === 0;
  const parameter = isEscaped ? Math.min(31, bits + 8) : Math.max(0, bits - random(4));
  const residual = { partitionOrder, parameter, isEscaped, isLong };
  if (kind === 'fixed') return { kind, order, ...residual };
  if (order === 0) return { kind: 'verbatim' };
  const precision = 2 + random(6);
  return {
    kind,
    order,
    coefficients: someSamples(order, precision, 1 + random(1 << 30)),
    precision,
    shift: precision + 4,
    ...residual,
  };
}

/** Returns FLAC whose residuals fit into 32 bits, so that a reader must decode it. */
function randomFlac(): { readonly file: Parameters<typeof flacFile>[0]; readonly format: SampleFormat } {
  const bits = 4 + random(21);
  const channels = pick([1, 2, 2, 2, 3, 8]);
  const format = { bits, channels, rate: pick([1, 44_100, 655_350, 1_048_575]) };
  const frames = Array.from({ length: 1 + random(3) }, (): Frame => {
    const size = 1 + random(64);
    const quiet = random(bits);
    const own = Array.from(
      { length: channels },
      (): Samples => someSamples(size, bits, 1 + random(1 << 30)).map((sample) => sample >> BigInt(quiet)),
    );
    const assignment = channels === 2 ? pick([1, 8, 9, 10]) : channels - 1;
    return { channels: own, subframe: randomSubframe(bits, size), assignment };
  });
  return { file: { format, frames }, format };
}

/** Returns FLAC with correct CRCs over bits that no encoder writes. */
function spoiltFlac(): Buffer {
  const { file } = randomFlac();
  const spoil = (frame: Buffer): void => {
    for (let times = random(4) + 1; times > 0; times -= 1) {
      const at = 8 + random(frame.length - 8);
      if (at < frame.length) frame[at] = random(2) === 0 ? random(256) : frame[at]! ^ (1 << random(8));
    }
  };
  const frames = file.frames.map((frame) => ({ ...frame, spoil }));
  return flacFile({ ...file, frames, md5: null, total: 0 });
}

const seeds = [...corpusSeeds()];
seeds.push(...builtSeeds());

const answers = new Map<string, number>();
const count = (samples: MeasuredSamples | undefined): void => {
  const word = samples === undefined ? 'none' : 'reason' in samples ? samples.reason : 'digest';
  answers.set(word, (answers.get(word) ?? 0) + 1);
};
const end = performance.now() + seconds * 1000;
let inputs = 0;
while (performance.now() < end) {
  count(check(mutate(pick(seeds))));
  count(check(spoiltFlac()));
  const { file, format } = randomFlac();
  count(check(flacFile(file), { sha256: samplesDigest(format, interleaved(file.frames)) }));
  inputs += 3;
}
const found = [...answers].sort().map(([word, times]) => `${word} ${times}`);
console.log(
  `samples-fuzz: ${inputs} inputs from ${seeds.length} seeds, no fault; ${found.join(', ')}; seed ${seed}`,
);
