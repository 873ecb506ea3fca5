import { withDeadline } from '../../async/deadline.js';
import { DomainError } from '../../domain/errors.js';

/**
 * Time budget of one call of a partner, the reading of its body aside (rule 3.6). Each step has limits of its
 * own; this one holds where several are slow, one after the other.
 */
export class Deadline {
  readonly #failedLate: (error: unknown) => void;
  #leftMs: number;

  /**
   * @param limitMs milliseconds, over all steps together
   * @param failedLate takes the error of work that was given up and then failed
   */
  constructor(limitMs: number, failedLate: (error: unknown) => void) {
    this.#leftMs = limitMs;
    this.#failedLate = failedLate;
  }

  /**
   * The value of `work`, within the time that is left. Work that is given up goes on; its effect is found by
   * asking again.
   * @param discard takes the late value of such work
   * @throws DomainError `unavailable` / `store_unavailable`
   */
  async of<Value>(work: Promise<Value>, discard: (value: Value) => void = () => undefined): Promise<Value> {
    const began = performance.now();
    try {
      return await withDeadline(work, this.#leftMs, () => {
        work.then(discard, this.#failedLate);
        throw new DomainError('unavailable', 'The service could not answer in time.', {
          reason: 'store_unavailable',
          retryAfterSeconds: 1,
        });
      });
    } finally {
      this.#leftMs -= performance.now() - began;
    }
  }
}
