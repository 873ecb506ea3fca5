import type { Clock } from '../../ports/system.js';

/**
 * A clock that never runs backwards. If the system clock is set back, this clock stops until it has caught up. A key, a
 * slot or a review that has expired stays expired.
 */
export class SteadyClock implements Clock {
  readonly #below: Clock;
  #highest: number;

  /** @param floor milliseconds since the epoch that have been seen before, by an earlier process */
  constructor(below: Clock, floor: number) {
    this.#below = below;
    this.#highest = floor;
  }

  now(): number {
    this.#highest = Math.max(this.#highest, this.#below.now());
    return this.#highest;
  }

  /** Returns how many milliseconds the system clock is earlier than its latest time. It is usually 0. */
  behind(): number {
    return Math.max(0, this.now() - this.#below.now());
  }
}
