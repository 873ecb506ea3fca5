import { workerData } from 'node:worker_threads';
import { type Core, instantiateCore, type Slice } from './core.js';

/** Data that every worker is started with. */
export interface WorkerInput {
  readonly module: WebAssembly.Module;
  readonly memory: WebAssembly.Memory;
}

export interface HashTask {
  /** Address of the scratch area that is this task's alone. */
  readonly scratch: number;
  /** At most four, of different uploads; none: only get ready. */
  readonly slices: readonly Slice[];
}

// Mutable state of a module, which test/style/module-state.test.ts allows here: a task is a function call
// into this file, so a thread has no other place for what it keeps between two tasks. The map is a cache: an
// instance holds nothing but the address of its scratch area.
const cores = new Map<number, Core>();

/**
 * Task of the pool. A fault is returned and not thrown, so that a rejected task means a dead thread and
 * nothing else.
 */
export function hash({ scratch, slices }: HashTask): string | undefined {
  try {
    let core = cores.get(scratch);
    if (core === undefined) {
      const { module, memory } = workerData as WorkerInput;
      core = instantiateCore(module, memory, scratch);
      cores.set(scratch, core);
    }
    if (slices.length > 0) core.update(slices);
    return undefined;
  } catch (error) {
    return error instanceof Error ? (error.stack ?? error.message) : String(error);
  }
}
