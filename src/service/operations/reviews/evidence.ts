import { type EvidenceKind, openEvidence as open, stepEvidence } from '../../domain/review.js';
import type { ReviewStore } from '../../ports/stores.js';
import type { Clock, Ids } from '../../ports/system.js';
import type { Caller } from '../caller.js';
import { changeReview, noSuchReview, type ReviewView } from './reviews.js';

/** Opens an evidence request. A review can open each kind once, so it has at most three requests. */
export async function openEvidence(
  deps: { readonly stores: ReviewStore; readonly clock: Clock; readonly ids: Ids },
  caller: Caller,
  { reviewId, kind }: { readonly reviewId: string; readonly kind: EvidenceKind },
): Promise<ReviewView> {
  const now = Math.floor(deps.clock.now() / 1000);
  const requestId = deps.ids.next('evidenceRequest');
  const { partnerId, keyId: actor } = caller;
  return changeReview(
    deps.stores,
    { partnerId, reviewId, now, actor, action: 'review_evidence_opened', requestId },
    (review) => open(review, kind, requestId, now),
  );
}

const TRIGGERS = { accepted: 'accept', declined: 'decline' } as const;

/** Closes an evidence request permanently. A second closing is refused, even with the same status. */
export async function closeEvidence(
  { stores, clock }: { readonly stores: ReviewStore; readonly clock: Clock },
  caller: Caller,
  {
    reviewId,
    requestId,
    status,
    responseReference,
  }: {
    readonly reviewId: string;
    readonly requestId: string;
    readonly status: 'accepted' | 'declined';
    readonly responseReference?: string;
  },
): Promise<ReviewView> {
  const now = Math.floor(clock.now() / 1000);
  const { partnerId, keyId: actor } = caller;
  return changeReview(
    stores,
    { partnerId, reviewId, now, actor, action: 'review_evidence_closed', requestId },
    (review) => stepEvidence(review, requestId, TRIGGERS[status], responseReference, now),
  );
}

/**
 * Marks evidence as supplied, for the operator, who keeps the evidence. Repeating the call changes nothing.
 */
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
