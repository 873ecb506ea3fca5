import type { ReviewOutcome } from '../../domain/review.js';
import { resolveReview as resolve } from '../../domain/review.js';
import type { Clock } from '../../ports/clock.js';
import type { ReviewStore } from '../../ports/stores.js';
import type { Caller, ReviewView } from '../operations.js';
import { requireScope } from '../require-scope.js';
import { changeReview } from './review-change.js';

/** "The resolve outcome belongs to the partner and is not a claim of authorship or rights." */
export async function resolveReview(
  { stores, clock }: { readonly stores: ReviewStore; readonly clock: Clock },
  caller: Caller,
  reviewId: string,
  { outcome }: { readonly outcome: ReviewOutcome },
): Promise<ReviewView> {
  requireScope(caller, 'reviews');
  const now = Math.floor(clock.now() / 1000);
  return changeReview(
    stores,
    { partnerId: caller.partnerId, reviewId, now, actor: caller.keyId, action: 'review_resolved' },
    (review) => resolve(review, outcome, now),
  );
}
