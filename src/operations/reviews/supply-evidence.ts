import { stepEvidence } from '../../domain/review.js';
import type { Clock } from '../../ports/clock.js';
import type { ReviewStore } from '../../ports/stores.js';
import type { ReviewView } from '../operations.js';
import { changeReview, noSuchReview } from './review-change.js';

/** "Said on the operator listener by the side that holds the evidence"; said again it changes nothing. */
export async function supplyEvidence(
  { stores, clock }: { readonly stores: ReviewStore; readonly clock: Clock },
  { reviewId, requestId }: { readonly reviewId: string; readonly requestId: string },
): Promise<ReviewView> {
  const now = Math.floor(clock.now() / 1000);
  const partnerId = await stores.findReviewPartner(reviewId, now);
  if (partnerId === undefined) throw noSuchReview();
  return changeReview(
    stores,
    { partnerId, reviewId, now, actor: 'operator', action: 'review_evidence_supplied', requestId },
    (review) => stepEvidence(review, requestId, 'supply', undefined, now),
  );
}
