import { workerData } from 'node:worker_threads';
import {
  type Core,
  forkReport,
  type HostDigests,
  instantiateCore,
  type Slice,
  samplesReport,
} from './core.js';
import { ForkedHash } from './forked-hash.js';

/** Data that every worker is started with. */
export interface WorkerInput {
  readonly module: WebAssembly.Module;
  readonly memory: WebAssembly.Memory;
}

/** Work of one call of the pool. */
export interface HashTask {
  /** Address of the scratch area that is this task's alone. */
  readonly scratch: number;
  /** At most four, of different uploads; none: only get ready. */
  readonly slices: readonly TaskSlice[];
  /**
   * The slices are hashed by Node and not in the core, so that the state of an upload is this thread's: all its
   * tasks must come here.
   */
  readonly native?: boolean;
}

export interface TaskSlice extends Slice {
  /** The slice begins its file. */
  readonly first: boolean;
  /** The slice ends its file; it may be empty. */
  readonly last: boolean;
}

export interface TaskOutcome {
  /** Error that kept the task from its work. */
  readonly trap?: string;
  /**
   * Digests by Node of the files that have ended, in the place of their slices; `gone` for an upload whose state
   * went with another thread, in whose place this one is.
   */
  readonly digests?: readonly (HostDigests | 'gone' | undefined)[];
}

// Mutable state of a module, which test/style/module-state.test.ts allows here: a task is a function call
// into this file, so a thread has no other place for what it keeps between two tasks. The cores are a cache:
// an instance holds nothing but the address of its scratch area.
const cores = new Map<number, Core>();
/** States of uploads by their context, of which there are so many; one that was aborted stays until the next. */
const hashes = new Map<number, ForkedHash>();

/**
 * Task of the pool. A fault is returned and not thrown, so that a rejected task means a dead thread and
 * nothing else.
 */
export function hash({ scratch, slices, native = false }: HashTask): TaskOutcome {
  try {
    let core = cores.get(scratch);
    if (core === undefined) {
      const { module, memory } = workerData as WorkerInput;
      core = instantiateCore(module, memory, scratch);
      cores.set(scratch, core);
    }
    if (native) return { digests: slices.map((slice) => hashByNode(core, slice)) };
    if (slices.length > 0) core.update(slices);
    return {};
  } catch (error) {
    return { trap: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
}

function hashByNode(core: Core, slice: TaskSlice): HostDigests | 'gone' | undefined {
  const { memory } = workerData as WorkerInput;
  const { context, address, length, first, last } = slice;
  const state = first ? new ForkedHash() : hashes.get(context);
  if (state === undefined) return 'gone';
  core.parse(slice);
  const bytes = new Uint8Array(memory.buffer, address, length);
  state.update(bytes, forkReport(memory, context));
  core.samples(slice);
  const samples = samplesReport(memory, context);
  if (samples !== undefined) state.addSamples(bytes, samples);
  if (!last) {
    hashes.set(context, state);
    return undefined;
  }
  hashes.delete(context);
  return state.digests();
}
