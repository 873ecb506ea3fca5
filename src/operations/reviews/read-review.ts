import type { Clock } from '../../ports/clock.js';
import type { ReviewStore } from '../../ports/stores.js';
import type { Caller, ReviewView } from '../operations.js';
import { requireScope } from '../require-scope.js';
import { noSuchReview, reviewView } from './review-change.js';

/** "Review case including evidence requests, scoped to the calling partner." */
export async function readReview(
  { stores, clock }: { readonly stores: ReviewStore; readonly clock: Clock },
  caller: Caller,
  reviewId: string,
): Promise<ReviewView> {
  requireScope(caller, 'reviews');
  const review = await stores.getReview(caller.partnerId, reviewId, Math.floor(clock.now() / 1000));
  if (review === undefined) throw noSuchReview();
  return reviewView(review);
}
