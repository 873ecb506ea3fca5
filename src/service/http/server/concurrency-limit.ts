import { DomainError } from '../../../core/domain/errors.js';

/** The `Retry-After`, in seconds, of a refused request. A slot is likely to be free by then. */
const RETRY_SECONDS = 2;

/** Limits how many requests of one kind hold memory at the same time. */
export class ConcurrencyLimit {
  readonly #max: number;
  #inside = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /**
   * Runs `work` within the limit (rule 3.9).
   * @throws DomainError `unavailable` / `concurrency_exceeded` when the limit is reached
   */
  async admit<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#inside >= this.#max) {
      throw new DomainError('unavailable', 'Too many concurrent requests of this kind.', {
        reason: 'concurrency_exceeded',
        retryAfterSeconds: RETRY_SECONDS,
      });
    }
    this.#inside += 1;
    try {
      return await work();
    } finally {
      this.#inside -= 1;
    }
  }
}
