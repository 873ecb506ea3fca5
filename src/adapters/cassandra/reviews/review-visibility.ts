import type { ReviewCase } from '../../../domain/review.js';
import type { ProofRows } from '../proofs/proof-rows.js';
import type { ReviewRows, StoredReview } from './review-rows.js';

/** Visibility of reviews: callers see reviews in their time, of a proof that is issued. */
export class ReviewVisibility {
  readonly #rows: ReviewRows;
  readonly #proofs: ProofRows;
  #expiredUpTo = 0;

  constructor(rows: ReviewRows, proofs: ProofRows) {
    this.#rows = rows;
    this.#proofs = proofs;
  }

  /** Hides for good what had expired by `now`, from a caller whose clock has gone back, too. */
  expireUpTo(now: number): void {
    this.#expiredUpTo = Math.max(this.#expiredUpTo, now);
  }

  isOver({ expiresAt }: Pick<ReviewCase, 'expiresAt'>, now: number): boolean {
    return expiresAt <= Math.max(now, this.#expiredUpTo);
  }

  async find(reviewId: string, now: number): Promise<StoredReview | undefined> {
    const stored = await this.#rows.get(reviewId);
    if (stored === undefined || this.isOver(stored.review, now)) return undefined;
    return (await this.#proofs.isIssued(stored.review.proofId)) ? stored : undefined;
  }
}
