import type { ReviewCase } from '../../../domain/review.js';
import type { Head } from '../proofs/proof-rows.js';
import type { ReviewRows, StoredReview } from './review-rows.js';

/** The visibility of reviews: callers see a review until it expires, while its proof is issued. */
export class ReviewVisibility {
  readonly #rows: ReviewRows;
  #expiredUpTo = 0;

  constructor(rows: ReviewRows) {
    this.#rows = rows;
  }

  /** Hides for good what had expired by `now`, from a caller whose clock has gone back, too. */
  expireUpTo(now: number): void {
    this.#expiredUpTo = Math.max(this.#expiredUpTo, now);
  }

  isOver({ expiresAt }: Pick<ReviewCase, 'expiresAt'>, now: number): boolean {
    return expiresAt <= Math.max(now, this.#expiredUpTo);
  }

  async find(
    reviewId: string,
    now: number,
  ): Promise<{ readonly stored: StoredReview; readonly head: Head } | undefined> {
    const proofId = await this.#rows.proofOf(reviewId);
    return proofId === undefined ? undefined : this.at(proofId, reviewId, now);
  }

  /** Returns a review on a proof with the proof's head, or undefined if the review is not visible at `now`. */
  async at(
    proofId: string,
    reviewId: string,
    now: number,
  ): Promise<{ readonly stored: StoredReview; readonly head: Head } | undefined> {
    const { head, stored } = await this.#rows.get(proofId, reviewId);
    if (head?.state !== 'issued' || stored === undefined || this.isOver(stored.review, now)) return undefined;
    return { stored, head };
  }
}
