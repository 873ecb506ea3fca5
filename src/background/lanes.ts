import { type Backoff, pauseAfter } from '../async/backoff.js';
import type { ServiceEvent } from '../domain/events.js';

type Keyed = Pick<ServiceEvent, 'topic' | 'key'>;

interface Lane {
  /** Events on their way. */
  underWay: number;
  /** When they went; milliseconds of a clock that is never set. */
  since: number;
  /** Attempts in a row of which an event came back. */
  failures: number;
  /** An event of the present attempt came back. */
  hasFailed: boolean;
  restsUntil: number;
}

/**
 * Lanes of a topic and key, in which events keep their order: a lane sends nothing more while any of its
 * events is on its way, and rests after an attempt of which one came back. No lane waits for another.
 */
export class Lanes {
  readonly #pauses: Backoff;
  readonly #lanes = new Map<string, Lane>();

  constructor(pauses: Backoff) {
    this.#pauses = pauses;
  }

  /** `again`: an event of the lane came back the last time, and the lane has rested. */
  stateOf(event: Keyed, now: number): 'free' | 'again' | 'closed' {
    const lane = this.#lanes.get(nameOf(event));
    if (lane === undefined) return 'free';
    return lane.underWay > 0 || now < lane.restsUntil ? 'closed' : 'again';
  }

  begin(event: Keyed, now: number): void {
    const name = nameOf(event);
    const lane = this.#lanes.get(name);
    if (lane !== undefined && lane.underWay > 0) {
      lane.underWay += 1;
      return;
    }
    // Behind those that went before, so that the longest under way comes first.
    this.#lanes.delete(name);
    this.#lanes.set(name, {
      underWay: 1,
      since: now,
      failures: lane?.failures ?? 0,
      hasFailed: false,
      restsUntil: 0,
    });
  }

  end(event: Keyed, outcome: 'kept' | 'failed', now: number): void {
    const name = nameOf(event);
    const lane = this.#lanes.get(name)!;
    lane.underWay -= 1;
    lane.hasFailed ||= outcome === 'failed';
    if (lane.underWay > 0) return;
    if (lane.hasFailed) {
      lane.failures += 1;
      lane.restsUntil = now + pauseAfter(lane.failures, this.#pauses);
    } else this.#lanes.delete(name);
  }

  /** True where an event came back and has not been kept since. */
  get hasFailed(): boolean {
    for (const { failures, hasFailed } of this.#lanes.values()) if (failures > 0 || hasFailed) return true;
    return false;
  }

  /** Since when the event is under way that went first; undefined where none is. */
  get oldest(): number | undefined {
    for (const { underWay, since } of this.#lanes.values()) if (underWay > 0) return since;
    return undefined;
  }

  /** When the first resting lane is free again; infinite where none rests. */
  get nextFree(): number {
    let next = Number.POSITIVE_INFINITY;
    for (const { underWay, restsUntil } of this.#lanes.values())
      if (underWay === 0 && restsUntil < next) next = restsUntil;
    return next;
  }
}

function nameOf({ topic, key }: Keyed): string {
  return `${topic} ${key}`;
}
