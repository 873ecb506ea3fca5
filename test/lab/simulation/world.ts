import { Random } from './random.js';

/** A process of the service in the simulated world. */
export class Process {
  readonly name: string;
  readonly bornAt: number;
  /** The lead of the process's clock in milliseconds. */
  skewMs: number;
  isDead = false;
  isPaused = false;
  /** The events that arrived while the process was paused. */
  readonly held: (() => void)[] = [];

  constructor(name: string, bornAt: number, skewMs: number) {
    this.name = name;
    this.bornAt = bornAt;
    this.skewMs = skewMs;
  }
}

interface Event {
  readonly at: number;
  readonly order: number;
  readonly process: Process | undefined;
  run: () => void;
  isCancelled: boolean;
}

export interface Scheduled {
  isCancelled: boolean;
  run: () => void;
}

/** Cancels an event, and frees what it would have done. */
export function cancel(event: Scheduled): void {
  event.isCancelled = true;
  event.run = nothing;
}

function nothing(): void {}

/** The start in milliseconds since the epoch: 2026-03-31T22:00:00Z. A month ends two hours later. */
const START_MS = 1_774_994_400_000;
/** The number of steps in one turn of the real event loop. */
const TURN = 64;

/**
 * A single-threaded world with its own time. One event happens at a time, and events of the same time happen
 * in order of creation. Before the next event, all promises that follow from the event are settled. They run
 * in the process of the event, so `current` is a plain member.
 */
export class World {
  readonly random: Random;
  /** The source of ids and secrets. It is separate, so the product's use of randomness does not change the faults. */
  readonly entropy: Random;
  /** The time of the one right clock, in milliseconds since the epoch. */
  now = START_MS;
  current: Process | undefined;
  readonly history: string[] = [];
  readonly #events: Event[] = [];
  readonly #realImmediate: (run: () => void) => void;
  #order = 0;

  constructor(seed: number, realImmediate: (run: () => void) => void) {
    this.random = new Random(seed);
    this.entropy = new Random(seed ^ 0x5bd1e995);
    this.#realImmediate = realImmediate;
  }

  get seconds(): number {
    return (this.now - START_MS) / 1000;
  }

  note(who: string, what: string): void {
    this.history.push(`${this.seconds.toFixed(3).padStart(9)} ${who.padEnd(9)} ${what}`);
  }

  /** @param process the process of the event, or undefined for an event of no process */
  at(delayMs: number, process: Process | undefined, run: () => void): Scheduled {
    const event = {
      at: this.now + Math.max(0, delayMs),
      order: this.#order++,
      process,
      run,
      isCancelled: false,
    };
    push(this.#events, event);
    return event;
  }

  /** Sleeps, also outside a process. */
  sleep(ms: number): Promise<void> {
    const process = this.current;
    return new Promise((resolve) => this.at(ms, process, resolve));
  }

  kill(process: Process): void {
    process.isDead = true;
    process.held.length = 0;
  }

  pause(process: Process): void {
    process.isPaused = true;
  }

  resume(process: Process): void {
    process.isPaused = false;
    for (const run of process.held.splice(0)) this.at(0, process, run);
  }

  /** Plays all events up to a time, or until none is left, or until `isDone`. */
  run(untilMs: number, isDone: () => boolean = () => false): Promise<void> {
    return new Promise((resolve) => {
      let hasEnded = false;
      const step = (): void => {
        if (hasEnded) return;
        this.current = undefined;
        if (isDone()) hasEnded = true;
        else {
          const event = this.#next(untilMs);
          if (event === undefined) hasEnded = true;
          else {
            this.now = event.at;
            this.current = event.process;
            event.run();
          }
        }
        if (hasEnded) {
          if (!isDone()) this.now = Math.max(this.now, untilMs);
          resolve();
        }
      };
      const turn = (): void => {
        for (let i = 0; i < TURN && !hasEnded; i += 1) this.#realImmediate(step);
        this.#realImmediate(() => hasEnded || turn());
      };
      turn();
    });
  }

  /**
   * Takes the next event that can happen. Drops events of dead processes, and keeps events of paused ones.
   */
  #next(untilMs: number): Event | undefined {
    for (;;) {
      const event = this.#events[0];
      if (event === undefined || event.at > untilMs) return undefined;
      pop(this.#events);
      if (event.isCancelled || event.process?.isDead === true) continue;
      if (event.process?.isPaused !== true) return event;
      event.process.held.push(() => event.isCancelled || event.run());
    }
  }
}

function isBefore(a: Event, b: Event): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}

function push(heap: Event[], event: Event): void {
  heap.push(event);
  for (let i = heap.length - 1; i > 0; ) {
    const above = (i - 1) >> 1;
    if (!isBefore(heap[i]!, heap[above]!)) return;
    [heap[i], heap[above]] = [heap[above]!, heap[i]!];
    i = above;
  }
}

function pop(heap: Event[]): void {
  const last = heap.pop()!;
  if (heap.length === 0) return;
  heap[0] = last;
  for (let i = 0; ; ) {
    const left = 2 * i + 1;
    let least = i;
    if (left < heap.length && isBefore(heap[left]!, heap[least]!)) least = left;
    if (left + 1 < heap.length && isBefore(heap[left + 1]!, heap[least]!)) least = left + 1;
    if (least === i) return;
    [heap[i], heap[least]] = [heap[least]!, heap[i]!];
    i = least;
  }
}
