import { withDeadline } from '../../async/deadline.js';
import { DomainError } from '../../domain/errors.js';

/**
 * What a partner waits at most for the work on one call, the reading of its body aside. Each step has limits
 * of its own; this one holds where several are slow, one after the other.
 */
export class Deadline {
  readonly #failedLate: (error: unknown) => void;
  #leftMs: number;

  /**
   * @param limitMs milliseconds, over all steps together
   * @param failedLate is told how work ended that was given up and then failed
   */
  constructor(limitMs: number, failedLate: (error: unknown) => void) {
    this.#leftMs = limitMs;
    this.#failedLate = failedLate;
  }

  /**
   * The same, within what is left. Work that is given up goes on: what it does is found by asking again.
   * @param discard takes what such work brings in the end
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
