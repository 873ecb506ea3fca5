import { workerData } from 'node:worker_threads';
import {
  type Core,
  forkReport,
  type HostDigests,
  instantiateCore,
  isPaused,
  type Lanes,
  type Slice,
  samplesReport,
} from './core.js';
import { ForkedHash } from './forked-hash.js';
import { type LaneTest, testModule } from './lane-test.js';

/**
 * The bytes of samples that a task decodes for each upload before the upload waits for its next turn. A few bytes of
 * FLAC can have very many samples.
 */
const DECODES = 512 * 1024;

/** The data that every worker is started with. */
export interface WorkerInput {
  readonly module: WebAssembly.Module;
  readonly memory: WebAssembly.Memory;
  /** True if the worker tests at its start whether it may use eight lanes. */
  readonly testsLanes: boolean;
}

/** The work of one call of the pool. */
export interface HashTask {
  /** The address of the scratch area that is this task's alone. */
  readonly scratch: number;
  /** The slices of different uploads, at most `lanes`. Without any, the worker only gets ready. */
  readonly slices: readonly TaskSlice[];
  /** The widest kernel that the task may use. A worker whose test failed uses four lanes all the same. */
  readonly lanes: Lanes;
  /**
   * True if Node and not the core hashes the slices. The state of an upload is then this thread's, and all its tasks
   * must come here.
   */
  readonly native?: boolean;
}

export interface TaskSlice extends Slice {
  /** True if the slice begins its file. */
  readonly first: boolean;
  /** True if the slice ends its file. It may be empty. */
  readonly last: boolean;
}

export interface TaskOutcome {
  /** The stack or message of the error that kept the task from its work. */
  readonly trap?: string;
  /**
   * The digests by Node of the files that have ended, in the place of their slices. `gone` for an upload whose state
   * was lost with another thread, in whose place this one is.
   */
  readonly digests?: readonly (HostDigests | 'gone' | undefined)[];
  /** The worker's test of the kernels, if the worker only got ready or did not use the lanes of the task. */
  readonly laneTest?: LaneTest;
}

// Mutable state of a module, which test/style/module-state.test.ts allows here: a task is a function call
// into this file, so a thread has no other place for what it keeps between two tasks. The cores are a cache:
// an instance holds nothing but the address of its scratch area.
const cores = new Map<number, Core>();
/** The states of uploads by context. The number of contexts bounds them. An aborted one stays until the next. */
const hashes = new Map<number, ForkedHash>();

/** The result of the test. Undefined in workers that use four lanes without a test. */
const laneTest = inputOf()?.testsLanes === true ? testModule(inputOf()!.module) : undefined;

/** Returns undefined on the main thread. */
function inputOf(): WorkerInput | undefined {
  return workerData as WorkerInput | undefined;
}

/**
 * Runs a task of the pool. A fault is returned and not thrown, so that a rejected task means a dead thread and
 * nothing else.
 */
export function hash({ scratch, slices, lanes, native = false }: HashTask): TaskOutcome {
  try {
    let core = cores.get(scratch);
    if (core === undefined) {
      const { module, memory } = inputOf()!;
      core = instantiateCore(module, memory, scratch);
      cores.set(scratch, core);
    }
    if (native) return { digests: slices.map((slice) => hashByNode(core, slice)) };
    const allowed = laneTest?.lanes ?? 4;
    if (slices.length > 0) core.update(slices, lanes > allowed ? allowed : lanes, DECODES);
    return laneTest !== undefined && (slices.length === 0 || lanes > allowed) ? { laneTest } : {};
  } catch (error) {
    return { trap: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
}

function hashByNode(core: Core, slice: TaskSlice): HostDigests | 'gone' | undefined {
  const { memory } = inputOf()!;
  const { context, address, length, first, last } = slice;
  const state = first ? new ForkedHash() : hashes.get(context);
  if (state === undefined) return 'gone';
  core.parse(slice);
  const bytes = new Uint8Array(memory.buffer, address, length);
  state.update(bytes, forkReport(memory, context));
  core.samples(slice, DECODES);
  const samples = samplesReport(memory, context);
  if (samples !== undefined) state.addSamples(bytes, samples);
  if (!last || isPaused(memory, context)) {
    hashes.set(context, state);
    return undefined;
  }
  hashes.delete(context);
  return state.digests();
}
