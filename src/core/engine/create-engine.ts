import { availableParallelism } from 'node:os';
import { performance } from 'node:perf_hooks';
import type { AudioEngine, EngineObserver, EngineStats, HeldMemory } from '../ports/audio-engine.js';
import { SLAB_BYTES } from './ingest.js';
import type { LaneTest } from './lane-test.js';
import { WorkerEngine } from './worker-engine.js';

/** The options of an engine. Every member but `kind` has a default that suits any host. */
export interface EngineOptions {
  /**
   * The kind of engine. `wasm`: the sandboxed core parses and hashes. `native`: the core parses, and Node hashes, for
   * hosts where that is measured to pay.
   */
  readonly kind: EngineStats['kind'];
  /**
   * The number of worker threads. Default: one less than the cores, and at least one, because the ingress needs a
   * core to itself.
   */
  readonly workers?: number;
  /**
   * The number of slabs in the pool, the memory that uploads cost. Default: two for each upload, at most 240. An
   * upload never holds more than three.
   */
  readonly slabs?: number;
  /** The bytes of a slab, at least 64 KiB. A file alone needs fewer tasks with longer slabs. Default: 512 KiB. */
  readonly slabBytes?: number;
  /**
   * The number of decoders of 2.1 MB each. An upload of FLAC whose samples are wanted has one until its end, if one
   * is free for its owner. Default: one for each upload, at most 32.
   */
  readonly decoders?: number;
  /**
   * The largest number of uploads in flight, of 12 KiB each: many more than any plan allows. `Places` decides which
   * one ends for one more. Default: 512.
   */
  readonly maxUploads?: number;
  /** The number of tasks that may wait for a worker (wasm), besides those that run. Default: one for each worker. */
  readonly maxQueue?: number;
  /**
   * The pause in milliseconds after which a part-filled slab is hashed instead of kept, and the interval at which the
   * rates of uploads are updated. Default: 100 ms.
   */
  readonly tickMs?: number;
  /** Returns the milliseconds on a clock that never jumps. Default: the process's monotonic clock. */
  readonly now?: () => number;
  /** The observer of workers that die, and of uploads that lose their place. */
  readonly observer?: EngineObserver;
  /**
   * The limit of the memory for credentials of uploads that have not ended, by owner. By default there is no
   * limit.
   */
  readonly memoryOfOwners?: HeldMemory;
  /**
   * Allows eight lanes (wasm) where every worker finds them right and faster. Default: false, because the compiler of
   * the whole process then uses an experimental flag.
   */
  readonly eightLanes?: boolean;
  /** Receives each choice of lanes: at the start, and when a replaced worker may not use eight. */
  readonly lanesChosen?: (choice: LaneTest) => void;
}

/**
 * Returns an audio engine of the chosen kind that is not started yet.
 * @throws RangeError for an option out of its range
 */
export function createAudioEngine(options: EngineOptions): AudioEngine {
  return new WorkerEngine(completeOptions(options));
}

/** @throws RangeError for a count that is not a whole number in its range. */
export function completeOptions(options: EngineOptions): Required<EngineOptions> {
  const workers = options.workers ?? Math.max(1, availableParallelism() - 1);
  const maxUploads = options.maxUploads ?? 512;
  const complete: Required<EngineOptions> = {
    workers,
    maxUploads,
    // With the contexts of 512 uploads no more than 64 uploads with two slabs each would take.
    slabs: Math.min(2 * maxUploads, 240),
    slabBytes: SLAB_BYTES,
    decoders: Math.min(maxUploads, 32),
    maxQueue: workers,
    tickMs: 100,
    now: () => performance.now(),
    observer: { fault: () => undefined, displaced: () => undefined },
    memoryOfOwners: { take: () => true, giveBack: () => undefined },
    eightLanes: false,
    lanesChosen: () => undefined,
    ...options,
  };
  for (const [name, least, most] of [
    ['workers', 1, 256],
    ['slabs', 1, 3500],
    ['slabBytes', 65_536, 8 << 20],
    ['decoders', 1, 256],
    ['maxUploads', 1, 4096],
    ['maxQueue', 0, 1024],
    ['tickMs', 1, 10_000],
  ] as const) {
    const value = complete[name];
    if (!Number.isInteger(value) || value < least || value > most)
      throw new RangeError(`engine option ${name} must be a whole number from ${least} to ${most}`);
  }
  return complete;
}
