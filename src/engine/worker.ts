import { workerData } from 'node:worker_threads';
import { type Core, instantiateCore, type Slice } from './core.js';

/** What every worker is born with. */
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

// The one mutable state of a module in this code base: a task is a function call into this file, so what a
// thread keeps between two tasks can live nowhere else. It is a cache: an instance holds nothing but the
// address of its scratch area.
const cores = new Map<number, Core>();

/**
 * The pool's task. Returns what went wrong, instead of throwing it: so a rejected task means a dead thread
 * and nothing else.
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
