import type { Worker } from 'node:worker_threads';
import { Piscina } from 'piscina';
import type { HashTask, WorkerInput } from './worker.js';

/** A pool that could not replace a worker because the replacement died too is asked again after this pause. */
const REVIVE_MS = 100;

export interface WorkerPoolOptions {
  readonly workers: number;
  readonly maxQueue: number;
  readonly input: WorkerInput;
  /** Where a task that hashes nothing may have its scratch area. */
  readonly idleScratch: number;
  /** A worker died that nobody stopped. */
  readonly onDeath: (error: unknown) => void;
}

/** Worker threads that are always there: started once, replaced when one dies. */
export class WorkerPool {
  readonly #options: WorkerPoolOptions;
  readonly #pool: Piscina<HashTask, string | undefined>;
  /** Threads that may still run, with the moment of their exit; the pool itself forgets a thread before it is gone. */
  readonly #alive = new Map<Worker, Promise<void>>();
  #closing = false;
  #deaths = 0;

  constructor(options: WorkerPoolOptions) {
    this.#options = options;
    this.#pool = new Piscina<HashTask, string | undefined>({
      filename: new URL('./worker.js', import.meta.url).href,
      name: 'hash',
      minThreads: options.workers,
      maxThreads: options.workers,
      concurrentTasksPerWorker: 1,
      // One place more for each worker: the empty task of `#revive` must fit in beside a full queue.
      maxQueue: options.maxQueue + options.workers,
      recordTiming: false,
      execArgv: [],
      workerData: options.input,
    });
    // A thread that dies without a task is reported here; with no listener it would end the process.
    this.#pool.on('error', (error: unknown) => this.#options.onDeath(error));
    this.#pool.on('workerCreate', () => this.#watch());
    this.#watch();
  }

  get deaths(): number {
    return this.#deaths;
  }

  /** The threads of this moment, for tests and probes. */
  get threads(): readonly Worker[] {
    return this.#pool.threads;
  }

  /** Resolves when every worker has run its first task. Rejects with what kept one from it. */
  async ready(): Promise<void> {
    await Promise.all(Array.from({ length: this.#options.workers }, () => this.run(this.#emptyTask())));
  }

  /**
   * Resolves or rejects when no thread touches the task's memory any more, and not earlier. No AbortSignal: the pool answers
   * one by ending the thread, and three more uploads with it.
   */
  async run(task: HashTask): Promise<void> {
    let trap: string | undefined;
    try {
      trap = await this.#pool.run(task);
    } catch (error) {
      // The pool rejects on a thread's `error`, when the thread may still be unwinding; its memory is free at its exit.
      await this.#gone();
      throw new Error('the worker died', { cause: error });
    }
    if (trap !== undefined) throw new Error(`the audio core failed: ${trap}`);
  }

  /** Ends all threads. Tasks must have settled. */
  async close(): Promise<void> {
    this.#closing = true;
    await this.#pool.destroy();
    await Promise.all(this.#alive.values());
  }

  #emptyTask(): HashTask {
    return { scratch: this.#options.idleScratch, pieces: [] };
  }

  #watch(): void {
    for (const thread of this.#pool.threads) {
      if (this.#alive.has(thread)) continue;
      const exit = new Promise<void>((resolve) => {
        thread.once('exit', () => {
          this.#alive.delete(thread);
          this.#died();
          resolve();
        });
      });
      this.#alive.set(thread, exit);
    }
  }

  /** Resolves when no thread is alive that the pool has given up. */
  async #gone(): Promise<void> {
    const kept = new Set(this.#pool.threads);
    await Promise.all([...this.#alive].filter(([thread]) => !kept.has(thread)).map(([, exit]) => exit));
  }

  #died(): void {
    if (this.#closing) return;
    this.#deaths += 1;
    this.#options.onDeath(new Error('a worker thread ended'));
    this.#watch();
    setTimeout(() => this.#revive(), REVIVE_MS).unref();
  }

  /**
   * The pool replaces a worker, but gives up for ever once a replacement dies while it starts: tasks in its queue would wait
   * for a thread that never comes. A new task makes it try again.
   */
  #revive(): void {
    if (this.#closing || this.#pool.threads.length >= this.#options.workers) return;
    this.run(this.#emptyTask()).catch((error: unknown) => this.#options.onDeath(error));
    this.#watch();
  }
}
