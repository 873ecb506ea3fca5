import { DomainError } from '../domain/errors.js';
import type { MinimumRate } from './engine-options.js';

/** Whether one client keeps the minimum rate. Windows follow one another; a burst pays for the whole window it falls in. */
export class RateWindow {
  readonly #rate: MinimumRate;
  #waitedMs = 0;
  #receivedBefore = 0;

  constructor(rate: MinimumRate) {
    this.#rate = rate;
  }

  /**
   * @param waitedMs time since the last call in which the engine waited for the client
   * @param received bytes of this upload so far
   * @throws DomainError `timeout` / `client_too_slow` at the end of a window with too little in it
   */
  charge(waitedMs: number, received: number): void {
    this.#waitedMs += waitedMs;
    if (this.#waitedMs < this.#rate.windowMs) return;
    const due = (this.#rate.bytesPerSecond * this.#waitedMs) / 1_000;
    if (received - this.#receivedBefore < due) {
      throw new DomainError('timeout', `The upload was slower than ${this.#rate.bytesPerSecond} bytes per second.`, { reason: 'client_too_slow' });
    }
    this.#waitedMs = 0;
    this.#receivedBefore = received;
  }
}
