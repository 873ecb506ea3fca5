import type { EvidenceKind } from '../../domain/review.js';
import { openEvidence as open } from '../../domain/review.js';
import type { Clock } from '../../ports/clock.js';
import type { Ids } from '../../ports/ids.js';
import type { ReviewStore } from '../../ports/stores.js';
import type { Caller, ReviewView } from '../operations.js';
import { requireScope } from '../require-scope.js';
import { changeReview } from './review-change.js';

export interface OpenEvidenceDeps {
  readonly stores: ReviewStore;
  readonly clock: Clock;
  readonly ids: Ids;
}

/** "A review can open each evidence kind once, so at most three evidence requests exist per review." */
export async function openEvidence(
  deps: OpenEvidenceDeps,
  caller: Caller,
  reviewId: string,
  { kind }: { readonly kind: EvidenceKind },
): Promise<ReviewView> {
  requireScope(caller, 'reviews');
  const now = Math.floor(deps.clock.now() / 1000);
  const requestId = deps.ids.next('evidenceRequest');
  const { partnerId, keyId: actor } = caller;
  return changeReview(
    deps.stores,
    { partnerId, reviewId, now, actor, action: 'review_evidence_opened', requestId },
    (review) => open(review, kind, requestId, now),
  );
}
