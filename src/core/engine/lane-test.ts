import { createHash, randomFillSync, randomInt } from 'node:crypto';
import { setFlagsFromString } from 'node:v8';
import { aligned } from './blocks.js';
import {
  CONTEXT_BYTES,
  type Core,
  createCoreMemory,
  instantiateCore,
  type Lanes,
  readMeasurement,
  SCRATCH_BYTES,
} from './core.js';

/** The kernel that a worker's test allows, and what the test found. */
export interface LaneTest {
  readonly lanes: Lanes;
  readonly outcome:
    | 'passed'
    /** Eight lanes were not faster by LEAST_GAIN. */
    | 'too_slow'
    /** A digest of eight lanes differed from that of node:crypto. */
    | 'wrong_digest'
    /** The time was over before the test knew. */
    | 'out_of_time'
    /** The core failed. */
    | 'trap';
  /** The speed of eight lanes as a multiple of that of four lanes, or 0 if it was not measured. */
  readonly gain: number;
}

/** The first major release of V8 whose compiler is known to merge the two groups of four lanes. */
const FIRST_V8 = 13;
/** The least speed of eight lanes, as a multiple of that of four. */
const LEAST_GAIN = 1.2;
const LIMIT_MS = 300;
const MESSAGES = 400;
/** The number of choices for the length of a message: its number in bytes, plus 0 to 63 blocks of 64 bytes. */
const MESSAGE_BLOCKS = 64;
/** The number of measurements of a kernel whose median counts. */
const MEASUREMENTS = 9;
const SLICE_BYTES = 32 * 1024;
const STREAMS = 8;
const CONTEXTS_AT = aligned(SCRATCH_BYTES);
const SLICES_AT = CONTEXTS_AT + STREAMS * aligned(CONTEXT_BYTES);
/** The memory of a test in bytes. */
export const LANE_TEST_BYTES = SLICES_AT + STREAMS * SLICE_BYTES;

/**
 * Allows V8 to merge neighbouring vector operations of 128 bits into operations of 256 bits, in every module that the
 * process compiles from now on. The flag is experimental. Releases that lack it print a line and go on.
 */
export function mergeVectors(): void {
  if (Number.parseInt(process.versions.v8, 10) >= FIRST_V8)
    setFlagsFromString('--experimental-wasm-revectorize');
}

/** Tests the kernels of a module on this thread, in a memory of the test's own. */
export function testModule(module: WebAssembly.Module): LaneTest {
  try {
    const memory = createCoreMemory(LANE_TEST_BYTES);
    return testLanes(instantiateCore(module, memory, 0), memory);
  } catch {
    return { lanes: 4, outcome: 'trap', gain: 0 };
  }
}

/**
 * Decides whether eight lanes may hash:
 * 1. Both kernels run in turn until the compiler has optimised eight lanes, which their speed shows.
 * 2. Messages of all lengths are hashed in eight lanes, and each digest is compared with node:crypto.
 * 3. Both kernels are measured again.
 * Any doubt, also when the time is over, means four lanes.
 * @param memory the core's memory, LANE_TEST_BYTES long, with the core's scratch at 0
 */
export function testLanes(
  core: Core,
  memory: WebAssembly.Memory,
  now: () => number = () => performance.now(),
): LaneTest {
  const end = now() + LIMIT_MS;
  const bytes = new Uint8Array(memory.buffer);
  const fails = (outcome: LaneTest['outcome'], gain: number): LaneTest => ({ lanes: 4, outcome, gain });
  const measured = { four: [] as number[], eight: [] as number[] };
  const slices = Array.from({ length: STREAMS }, (_, i) => slice(i, SLICE_BYTES));

  /** Measures both kernels on the same bytes, and returns the gain of the last measurements. */
  const compare = (): number => {
    const start = now();
    core.update(slices.slice(0, 4));
    core.update(slices.slice(4));
    const middle = now();
    core.update(slices, 8);
    measured.four.push(middle - start);
    measured.eight.push(now() - middle);
    return median(measured.four.slice(-MEASUREMENTS)) / median(measured.eight.slice(-MEASUREMENTS));
  };

  for (const { context } of slices) core.init(context);
  let gain = 0;
  do {
    if (now() > end) return fails('too_slow', gain);
    gain = compare();
  } while (measured.four.length < MEASUREMENTS || !(gain >= LEAST_GAIN));

  for (let first = 0; first < MESSAGES; first += STREAMS) {
    if (now() > end) return fails('out_of_time', gain);
    const messages = slices.map((_, i) => slice(i, first + i + 64 * randomInt(MESSAGE_BLOCKS)));
    for (const { context, address, length } of messages) {
      randomFillSync(bytes, address, length);
      core.init(context);
    }
    core.update(messages, 8);
    for (const { context, address, length } of messages) {
      core.finish(context);
      const expected = createHash('sha256')
        .update(bytes.subarray(address, address + length))
        .digest('hex');
      if (readMeasurement(memory, context).sha256 !== expected) return fails('wrong_digest', gain);
    }
  }

  for (const { context } of slices) core.init(context);
  for (let i = 0; i < MEASUREMENTS; i += 1) gain = compare();
  if (now() > end) return fails('out_of_time', gain);
  return gain >= LEAST_GAIN ? { lanes: 8, outcome: 'passed', gain } : fails('too_slow', gain);
}

function slice(i: number, length: number) {
  return {
    context: CONTEXTS_AT + i * aligned(CONTEXT_BYTES),
    address: SLICES_AT + i * SLICE_BYTES,
    length,
  };
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1]!;
}
