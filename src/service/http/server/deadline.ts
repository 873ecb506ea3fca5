import { withDeadline } from '../../../core/async/deadline.js';
import { DomainError } from '../../../core/domain/errors.js';

/** Returns the error with which the steps of a call fail after it was given up. It is never sent. */
export function givenUp(): DomainError {
  return new DomainError('timeout', 'The call was given up.');
}

/**
 * The time budget of one partner call, without the time to read its body (rule 3.6). Each step has a limit of
 * its own. This limit applies to all steps together.
 */
export class Deadline {
  readonly #failedLate: (error: unknown) => void;
  readonly #giveUp: () => void;
  #leftMs: number;

  /**
   * @param limitMs the time limit of all steps together, in milliseconds
   * @param failedLate receives the error of work that fails after it was abandoned
   * @param giveUp stops abandoned work at its next step
   */
  constructor(limitMs: number, failedLate: (error: unknown) => void, giveUp: () => void = () => undefined) {
    this.#leftMs = limitMs;
    this.#failedLate = failedLate;
    this.#giveUp = giveUp;
  }

  /**
   * Returns the value of `work` if it settles within the remaining time. The step that abandoned work is in
   * ends by itself, and its effect is found by calling again.
   * @param discard receives the late value of abandoned work
   * @throws DomainError `unavailable` / `store_unavailable`
   */
  async of<Value>(work: Promise<Value>, discard: (value: Value) => void = () => undefined): Promise<Value> {
    const began = performance.now();
    try {
      return await withDeadline(work, this.#leftMs, () => {
        work.then(discard, this.#failedLate);
        this.#giveUp();
        throw new DomainError('unavailable', 'The service could not respond in time.', {
          reason: 'store_unavailable',
          retryAfterSeconds: 1,
        });
      });
    } finally {
      this.#leftMs -= performance.now() - began;
    }
  }
}
