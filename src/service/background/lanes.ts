import { type Backoff, pauseAfter } from '../../core/async/backoff.js';
import type { ServiceEvent } from '../domain/events.js';

type Keyed = Pick<ServiceEvent, 'topic' | 'key'>;

interface Lane {
  /** The number of events that are being published. */
  underWay: number;
  /** When they were sent, in milliseconds of a monotonic clock. */
  since: number;
  /** The number of consecutive attempts with a failed event. */
  failures: number;
  /** True when an event of the current attempt failed. */
  hasFailed: boolean;
  restsUntil: number;
}

/**
 * Keeps the order of events with the same topic and key, in a lane each. A lane sends nothing while any of
 * its events is being published. A lane pauses after an attempt with a failed event. No lane waits for
 * another.
 */
export class Lanes {
  readonly #pauses: Backoff;
  readonly #lanes = new Map<string, Lane>();

  constructor(pauses: Backoff) {
    this.#pauses = pauses;
  }

  /**
   * Returns the state of an event's lane. `again` means that an event of the lane failed in the last attempt,
   * and the pause is over.
   */
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
    // Insert the lane last, so that the lane with the oldest attempt stays first.
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

  /** Returns true when an event failed and was not stored since. */
  get hasFailed(): boolean {
    for (const { failures, hasFailed } of this.#lanes.values()) if (failures > 0 || hasFailed) return true;
    return false;
  }

  /** Returns when the oldest event that is being published was sent, or undefined without any. */
  get oldest(): number | undefined {
    for (const { underWay, since } of this.#lanes.values()) if (underWay > 0) return since;
    return undefined;
  }

  /** Returns when the first paused lane is free again, or infinity without any. */
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
