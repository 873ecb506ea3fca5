import { DomainError } from '../../domain/errors.js';

/** Seconds after which a place is likely free again. */
const RETRY_SECONDS = 2;

/** A bound on how many requests of one kind hold memory at once. */
export class ConcurrencyLimit {
  readonly #max: number;
  #inside = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /**
   * Runs `work` inside the bound (rule 3.9).
   * @throws DomainError `unavailable` / `concurrency_exceeded` when the bound is reached
   */
  async admit<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#inside >= this.#max) {
      throw new DomainError('unavailable', 'Too many requests of this kind at once.', {
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
