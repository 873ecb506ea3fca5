import {
  CONTEXT_BYTES,
  type Core,
  type CoreMeasurement,
  createCoreMemory,
  DECODER_BYTES,
  instantiateCore,
  isPaused,
  lendDecoder,
  loadCore,
  readMeasurement,
  SCRATCH_BYTES,
} from '../../src/core/engine/core.js';
import { WHOLE } from '../../src/core/engine/core-layout.js';
import { mergeVectors, testModule } from '../../src/core/engine/lane-test.js';

const CONTEXTS = 13;
const INSTANCES = 4;
/** The number of tests of the lanes until their code must be optimised. */
const MOST_TRIES = 50;
/** The address of the one decoder. */
const DECODER = INSTANCES * SCRATCH_BYTES + CONTEXTS * CONTEXT_BYTES + 65_536;
/** The lowest address of slices. It is odd, as the fill level of a slab can be. */
const FLOOR = DECODER + DECODER_BYTES + 1;

/** A set of instances on one memory, with contexts and room for `room` bytes of slices. */
export class CoreUnderTest {
  readonly memory: WebAssembly.Memory;
  readonly bytes: Uint8Array;
  readonly cores: readonly Core[];
  readonly #room: number;
  /** The number of pauses of the decoder in all files so far. */
  pauses = 0;

  private constructor(module: WebAssembly.Module, room: number) {
    this.#room = room;
    this.memory = createCoreMemory(FLOOR + room);
    this.bytes = new Uint8Array(this.memory.buffer);
    this.cores = Array.from({ length: INSTANCES }, (_, i) =>
      instantiateCore(module, this.memory, i * SCRATCH_BYTES),
    );
  }

  static async load(room = 16 << 20): Promise<CoreUnderTest> {
    if (process.env['TAKEMARK_LAB'] === 'eight-lanes') mergeVectors();
    const module = await loadCore();
    if (process.env['TAKEMARK_LAB'] === 'eight-lanes') optimise(module);
    return new CoreUnderTest(module, room);
  }

  get core(): Core {
    return this.cores[0]!;
  }

  context(i: number): number {
    return INSTANCES * SCRATCH_BYTES + i * CONTEXT_BYTES;
  }

  /** Puts bytes where a slice may be, and returns their address. */
  place(bytes: Uint8Array, at = 0): number {
    if (at + bytes.length > this.#room) throw new RangeError('no room for the slice');
    this.bytes.set(bytes, FLOOR + at);
    return FLOOR + at;
  }

  digest(context: number): string {
    return Buffer.from(this.bytes.slice(context + WHOLE, context + WHOLE + 32)).toString('hex');
  }

  /**
   * Measures a file through one context. `cuts` are the ends of its slices (the last one is implied). A
   * different instance reads each slice. With `decodes` the decoder pauses after so many bytes of samples.
   */
  measure(
    file: Uint8Array,
    cuts: Iterable<number> = [],
    { samples = false, decodes }: { readonly samples?: boolean; readonly decodes?: number } = {},
  ): CoreMeasurement {
    const context = this.context(0);
    const address = this.place(file);
    this.core.init(context, samples);
    if (samples) lendDecoder(this.memory, context, DECODER);
    let from = 0;
    let turn = 0;
    const slice = (to: number): void => {
      const update = (length: number): void =>
        this.cores[turn++ % INSTANCES]!.update([{ context, address: address + from, length }], 4, decodes);
      update(to - from);
      for (; isPaused(this.memory, context); this.pauses += 1) update(0);
      from = to;
    };
    for (const cut of cuts) slice(cut);
    slice(file.length);
    this.core.finish(context);
    return readMeasurement(this.memory, context);
  }
}

/** Runs the kernels until their code is optimised with merged vectors. V8 gives each module with these bytes this code. */
function optimise(module: WebAssembly.Module): void {
  for (let tries = 0; tries < MOST_TRIES; tries += 1) if (testModule(module).outcome === 'passed') return;
  throw new Error('eight lanes are not faster on this machine and this release of Node');
}

/** Returns a source of whole numbers below `bound` that repeat for the same seed (xorshift32). */
export function randomNumbers(seed: number): (bound: number) => number {
  let x = seed | 0 || 1;
  return (bound) => {
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    return (x >>> 0) % bound;
  };
}

/** Returns up to `most` ascending cuts in [0, length], with repeats (empty slices) among them. */
export function randomCuts(random: (bound: number) => number, length: number, most: number): number[] {
  return Array.from({ length: random(most) + 1 }, () => random(length + 1)).sort((a, b) => a - b);
}

/** Yields every position from `from` to `to`, for slices of one byte. */
export function* everyByte(from: number, to: number): Generator<number> {
  for (let i = from; i <= to; i += 1) yield i;
}
