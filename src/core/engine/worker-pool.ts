import type { Worker } from 'node:worker_threads';
import { Piscina } from 'piscina';
import type { HashTask, TaskOutcome, WorkerInput } from './worker.js';

/**
 * The number of tasks that a worker holds: the one it works on and the next. With one task it would wait until this
 * thread has looked up from its sockets. The next one fails with its worker.
 */
const TASKS_OF_A_WORKER = 2;

/** The pause in milliseconds before a pool that lacks threads is completed. */
const COMPLETE_MS = 100;

export interface WorkerPoolOptions {
  readonly workers: number;
  readonly input: WorkerInput;
  /** The address of the scratch area of tasks that hash nothing. */
  readonly idleScratch: number;
  /** Receives an error for each worker that dies without being stopped, or if the pool cannot be completed. */
  readonly onDeath: (error: unknown) => void;
}

type ThreadPool = Piscina<HashTask, TaskOutcome>;

/** A pool of worker threads, which start once. A thread that dies is replaced. */
export class WorkerPool {
  readonly #options: WorkerPoolOptions;
  /**
   * The threads that may still run, each with a promise of its exit. The pool itself forgets a thread before it is
   * gone.
   */
  readonly #alive = new Map<Worker, Promise<void>>();
  #pool: ThreadPool;
  #closing = false;
  #completing = false;
  #filling = false;
  #deaths = 0;

  constructor(options: WorkerPoolOptions) {
    this.#options = options;
    this.#pool = this.#create();
    this.#watch();
  }

  get deaths(): number {
    return this.#deaths;
  }

  /** The threads of this moment, for tests and probes. */
  get threads(): readonly Worker[] {
    return this.#pool.threads;
  }

  /**
   * Resolves with the outcomes when so many tasks have run as all workers hold. Rejects, when all have settled, with
   * the error that kept one from it.
   */
  async ready(): Promise<readonly TaskOutcome[]> {
    const { workers, idleScratch } = this.#options;
    const idle = () => this.run({ scratch: idleScratch, slices: [], lanes: 4 });
    const settled = await Promise.allSettled(Array.from({ length: TASKS_OF_A_WORKER * workers }, idle));
    return settled.map((outcome) => {
      if (outcome.status === 'rejected') throw outcome.reason;
      return outcome.value;
    });
  }

  /**
   * Resolves or rejects when no thread touches the task's memory any more, and not earlier. A task waits for
   * however long no thread is there, and the caller bounds their number. No AbortSignal: the pool answers one by
   * ending the thread, and with it the other uploads of its tasks.
   */
  async run(task: HashTask): Promise<TaskOutcome> {
    const pool = this.#pool;
    let outcome: TaskOutcome;
    try {
      const running = pool.run(task);
      // A task that finds no thread makes the pool start one.
      this.#watch();
      outcome = await running;
    } catch (error) {
      // A pool is given up when it has no thread left, so a task that it rejects then has never run.
      if (pool !== this.#pool) return this.run(task);
      // The pool rejects on a thread's `error`, when the thread may still be unwinding; the task's memory
      // is free at the thread's exit.
      await this.#gone();
      throw new Error('the worker died', { cause: error });
    }
    if (outcome.trap !== undefined) throw new Error(`the audio core failed: ${outcome.trap}`);
    return outcome;
  }

  /** Ends all threads. Tasks must have settled. */
  async close(): Promise<void> {
    this.#closing = true;
    await this.#pool.destroy();
    await Promise.all(this.#alive.values());
  }

  #create(): ThreadPool {
    const { workers, input, onDeath } = this.#options;
    const pool: ThreadPool = new Piscina({
      filename: new URL('./worker-thread.cjs', import.meta.url).href,
      name: 'hash',
      minThreads: workers,
      maxThreads: workers,
      concurrentTasksPerWorker: TASKS_OF_A_WORKER,
      recordTiming: false,
      execArgv: [],
      workerData: input,
    });
    // A thread that dies without a task is reported here; with no listener it would end the process.
    pool.on('error', onDeath);
    pool.on('workerCreate', () => this.#watch());
    return pool;
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
    this.#completeSoon();
  }

  /**
   * Completes a pool that lacks threads. Piscina 5.3 replaces a worker that dies, but not any more once a
   * replacement died while it started: from then on Piscina starts a thread only for a task that finds no
   * room.
   */
  #completeSoon(): void {
    if (this.#completing || this.#pool.threads.length >= this.#options.workers) return;
    this.#completing = true;
    setTimeout(() => {
      this.#completing = false;
      if (this.#closing) return;
      if (this.#pool.threads.length === 0) this.#renew();
      else void this.#fill().then(() => this.#completeSoon());
    }, COMPLETE_MS).unref();
  }

  #renew(): void {
    const empty = this.#pool;
    this.#pool = this.#create();
    this.#watch();
    // Rejects the tasks in its queue, which `run` gives to the new pool.
    void empty.destroy();
  }

  /** Runs the tasks of a whole pool: missing threads are started for want of one with room. */
  async #fill(): Promise<void> {
    if (this.#filling) return;
    this.#filling = true;
    await this.ready().catch(this.#options.onDeath);
    this.#filling = false;
  }
}
