import type { Slice } from './core.js';
import type { Region } from './region.js';
import type { HashTask } from './worker.js';

/** Uploads one task carries: the lanes of the SIMD kernel. */
export const LANES = 4;

/** An upload as the scheduler sees it. */
export interface Lane {
  /**
   * Takes out the oldest ready slice. The lane is not offered again before `settled`: its slices are hashed
   * strictly in order.
   */
  take(): Slice;
  /**
   * No thread touches the slice or the lane's context any more. `failure`: it is unknown how far they were
   * processed.
   */
  settled(failure: unknown): void;
}

export interface GatherOptions {
  readonly workers: number;
  readonly maxQueue: number;
  /** One block for each task that may be in flight, `workers + maxQueue`. */
  readonly scratches: Region;
  /** Settles when no thread touches the task's memory any more. */
  readonly run: (task: HashTask) => Promise<void>;
  /** Uploads that may have something to hash, now or later. */
  readonly open: () => number;
  /** Nothing runs and nothing is ready. */
  readonly idle: () => void;
}

/**
 * Gathers ready slices of different uploads into tasks, oldest first.
 *
 * Four lanes cost little more CPU than one, so a task that carries one upload wastes most of a core. Hence:
 * an idle pool takes whatever is ready; while a task runs, the next one waits for four. No slice waits for
 * ever: when the running tasks settle the pool is idle. With fewer than four uploads open four can never come
 * together, and workers without a task are used at once.
 */
export class Gather {
  readonly #options: GatherOptions;
  /** In the order in which they became ready; each lane at most once, and none that is in flight. */
  readonly #ready = new Set<Lane>();
  #running = 0;
  #settling = false;
  #tasks = 0;
  #lanes = 0;

  constructor(options: GatherOptions) {
    this.#options = options;
  }

  get tasks(): number {
    return this.#tasks;
  }

  get lanes(): number {
    return this.#lanes;
  }

  get isIdle(): boolean {
    return this.#running === 0 && this.#ready.size === 0 && !this.#settling;
  }

  /** A lane that is not in flight has a slice ready. */
  offer(lane: Lane): void {
    this.#ready.add(lane);
    this.#pump();
  }

  /** Takes an offer back; without effect on a lane in flight. */
  withdraw(lane: Lane): void {
    this.#ready.delete(lane);
  }

  #pump(): void {
    // While a task's lanes settle one by one, the first must not leave alone before the other three had their
    // turn.
    if (this.#settling) return;
    while (this.#mayStart()) this.#start();
    if (this.isIdle) this.#options.idle();
  }

  #mayStart(): boolean {
    const { workers, maxQueue, open } = this.#options;
    if (this.#ready.size === 0 || this.#running >= workers + maxQueue) return false;
    if (this.#running === 0 || this.#ready.size >= LANES) return true;
    return this.#running < workers && open() < LANES;
  }

  #start(): void {
    // Scratch memory belongs to the task and not to a thread: so a dead worker's replacement cannot meet it.
    const scratch = this.#options.scratches.take();
    if (scratch === undefined) throw new Error('more tasks than scratch areas');
    const lanes: Lane[] = [];
    for (const lane of this.#ready) {
      this.#ready.delete(lane);
      if (lanes.push(lane) === LANES) break;
    }
    this.#running += 1;
    this.#tasks += 1;
    this.#lanes += lanes.length;
    this.#options.run({ scratch, slices: lanes.map((lane) => lane.take()) }).then(
      () => this.#settle(scratch, lanes, undefined),
      (failure: unknown) => this.#settle(scratch, lanes, failure ?? new Error('task failed')),
    );
  }

  #settle(scratch: number, lanes: readonly Lane[], failure: unknown): void {
    this.#options.scratches.give(scratch);
    this.#running -= 1;
    this.#settling = true;
    for (const lane of lanes) lane.settled(failure);
    this.#settling = false;
    this.#pump();
  }
}
