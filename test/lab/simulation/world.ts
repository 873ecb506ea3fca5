import { Random } from './random.js';

/** A process of the service, as far as time and death go. */
export class Process {
  readonly name: string;
  readonly bornAt: number;
  /** Milliseconds by which its clock is ahead. */
  skewMs: number;
  isDead = false;
  isPaused = false;
  /** Events that came for it while it was paused. */
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

/** Cancels an event, and lets go of what it would have done. */
export function cancel(event: Scheduled): void {
  event.isCancelled = true;
  event.run = nothing;
}

function nothing(): void {}

/** 2026-03-31T22:00:00Z: a month ends two hours later. */
const START_MS = 1_774_994_400_000;
/** Steps of one turn of the real event loop. */
const TURN = 64;

/**
 * A world of one thread with a time of its own. Whatever happens is an event at a time; events of one time happen
 * in the order of their making. Between two events everything that follows from the first one by promises alone
 * has been done, in the process of the event: so the process at work is a plain member.
 */
export class World {
  readonly random: Random;
  /** For ids and secrets, so that what is random in the product does not move the faults. */
  readonly entropy: Random;
  /** Milliseconds since the epoch, of the one right clock. */
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

  /** @param process process to which it happens; undefined for what belongs to none */
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

  /** Sleep of whoever is no process. */
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

  /** Lets everything happen up to a time, or until nothing is left to happen, or `isDone`. */
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

  /** The next event that can happen now; what comes for the dead is dropped, for the paused it is kept. */
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
