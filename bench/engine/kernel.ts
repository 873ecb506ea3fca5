import {
  CONTEXT_BYTES,
  type Core,
  createCoreMemory,
  instantiateCore,
  type Lanes,
  loadCore,
  readMeasurement,
  SCRATCH_BYTES,
  type Slice,
} from '../../src/core/engine/core.js';
import { SLAB_BYTES } from '../../src/core/engine/ingest.js';
import { seededBytes } from '../fixtures/random.js';

const PAGE = 65_536;
const BLOCK = 16_384;
/** The number of slabs: as many as eight uploads hold in the engine, and more than the second-level cache holds. */
export const SLABS = 24;

export interface HashRun {
  readonly megabytesPerSecond: number;
  readonly digests: readonly string[];
}

/** Returns the slabs that every contender hashes, over and over. */
export function hashSlabs(): readonly Buffer[] {
  return Array.from({ length: SLABS }, (_, i) => seededBytes(`slab ${i}`, SLAB_BYTES));
}

/** Returns the slabs of one lane, in the order in which it takes them. Without a lane, all slabs take turns. */
export function slabOrder(lane: number | undefined, count: number, lanes: Lanes = 4): readonly number[] {
  const own = SLABS / lanes;
  return Array.from({ length: count }, (_, i) => (lane === undefined ? i % SLABS : lane * own + (i % own)));
}

/**
 * The core on this thread, called as the engine's worker calls it: slabs in place, in one stream or
 * in lanes.
 */
export class Kernel {
  readonly #memory: WebAssembly.Memory;
  readonly #core: Core;

  private constructor(memory: WebAssembly.Memory, core: Core) {
    this.#memory = memory;
    this.#core = core;
  }

  static async load(): Promise<Kernel> {
    const module = await loadCore();
    const memory = createCoreMemory(slabAddress(SLABS));
    const core = instantiateCore(module, memory, PAGE);
    hashSlabs().forEach((slab, i) => new Uint8Array(memory.buffer).set(slab, slabAddress(i)));
    return new Kernel(memory, core);
  }

  single(slabs: number): HashRun {
    const order = slabOrder(undefined, slabs);
    return this.#run(
      [0],
      order.map((slab) => [slice(0, slab)]),
    );
  }

  /** @param slabs of all lanes together */
  lanes(slabs: number, count: Lanes = 4): HashRun {
    const lanes = Array.from({ length: count }, (_, i) => i);
    const orders = lanes.map((lane) => slabOrder(lane, slabs / count, count));
    return this.#run(
      lanes,
      orders[0]!.map((_, i) => lanes.map((lane) => slice(lane, orders[lane]![i]!))),
      count,
    );
  }

  #run(lanes: readonly number[], calls: readonly (readonly Slice[])[], kernel: Lanes = 4): HashRun {
    const start = performance.now();
    for (const lane of lanes) this.#core.init(contextAddress(lane));
    for (const slices of calls) this.#core.update(slices, kernel);
    for (const lane of lanes) this.#core.finish(contextAddress(lane));
    const seconds = (performance.now() - start) / 1000;
    const bytes = calls.reduce((total, slices) => total + slices.length * SLAB_BYTES, 0);
    return {
      megabytesPerSecond: bytes / seconds / 1e6,
      digests: lanes.map((lane) => readMeasurement(this.#memory, contextAddress(lane)).sha256),
    };
  }
}

function slice(lane: number, slab: number): Slice {
  return { context: contextAddress(lane), address: slabAddress(slab), length: SLAB_BYTES };
}

function contextAddress(lane: number): number {
  return PAGE + Math.ceil(SCRATCH_BYTES / BLOCK) * BLOCK + lane * Math.ceil(CONTEXT_BYTES / BLOCK) * BLOCK;
}

function slabAddress(slab: number): number {
  return 4 * PAGE + slab * SLAB_BYTES;
}
