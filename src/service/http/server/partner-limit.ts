import type { DomainError } from '../../../core/domain/errors.js';

/** Limits how much of one kind each partner has at the same time. Partners do not share the limit. */
export class PartnerLimit {
  readonly #max: number;
  readonly #refusal: () => DomainError;
  readonly #counts = new Map<string, number>();

  /** @param refusal returns the error for one more than `max` */
  constructor(max: number, refusal: () => DomainError) {
    this.#max = max;
    this.#refusal = refusal;
  }

  /**
   * Counts one more.
   * @returns a function that counts it back. It is called once
   */
  take(partnerId: string): () => void {
    const count = this.#counts.get(partnerId) ?? 0;
    if (count >= this.#max) throw this.#refusal();
    this.#counts.set(partnerId, count + 1);
    return () => {
      const left = this.#counts.get(partnerId)! - 1;
      if (left === 0) this.#counts.delete(partnerId);
      else this.#counts.set(partnerId, left);
    };
  }
}
