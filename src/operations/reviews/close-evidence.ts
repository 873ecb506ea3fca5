import { stepEvidence } from '../../domain/review.js';
import type { Clock } from '../../ports/clock.js';
import type { ReviewStore } from '../../ports/stores.js';
import type { Caller, ReviewView } from '../operations.js';
import { requireScope } from '../require-scope.js';
import { changeReview } from './review-change.js';

const TRIGGERS = { accepted: 'accept', declined: 'decline' } as const;

/**
 * "`accepted` and `declined` are terminal and immutable": the second of two closings is refused, the same one
 * included.
 */
export async function closeEvidence(
  { stores, clock }: { readonly stores: ReviewStore; readonly clock: Clock },
  caller: Caller,
  reviewId: string,
  requestId: string,
  {
    status,
    responseReference,
  }: { readonly status: 'accepted' | 'declined'; readonly responseReference?: string },
): Promise<ReviewView> {
  requireScope(caller, 'reviews');
  const now = Math.floor(clock.now() / 1000);
  const { partnerId, keyId: actor } = caller;
  return changeReview(
    stores,
    { partnerId, reviewId, now, actor, action: 'review_evidence_closed', requestId },
    (review) => stepEvidence(review, requestId, TRIGGERS[status], responseReference, now),
  );
}
