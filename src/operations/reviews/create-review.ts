import { DomainError } from '../../domain/errors.js';
import type { ReviewBindings, ReviewCase } from '../../domain/review.js';
import { REVIEW_LIFE_SECONDS } from '../../domain/review.js';
import type { Clock } from '../../ports/clock.js';
import type { Ids } from '../../ports/ids.js';
import type { ProofStore, ReviewStore } from '../../ports/stores.js';
import type { Caller, ReviewView } from '../operations.js';
import { findIssued, noSuchProof } from '../proofs/find-proof.js';
import { requireScope } from '../require-scope.js';
import { reviewView } from './review-change.js';

export interface CreateReviewDeps {
  readonly stores: ProofStore & ReviewStore;
  readonly clock: Clock;
  readonly ids: Ids;
}

/**
 * "Creates a metadata-only case for a registered proof": any of the environment, not only the partner's own.
 */
export async function createReview(
  deps: CreateReviewDeps,
  caller: Caller,
  request: { readonly proofId: string; readonly bindings: ReviewBindings },
): Promise<ReviewView> {
  requireScope(caller, 'reviews');
  await findIssued(deps.stores, request.proofId);
  const now = Math.floor(deps.clock.now() / 1000);
  const { creatorId, accountId, submissionId, trackId } = request.bindings;
  const review: ReviewCase = {
    reviewId: deps.ids.next('review'),
    partnerId: caller.partnerId,
    proofId: request.proofId,
    bindings: { creatorId, accountId, submissionId, trackId },
    status: 'open',
    createdAt: now,
    updatedAt: now,
    expiresAt: now + REVIEW_LIFE_SECONDS,
    evidenceRequests: [],
  };
  const created = await deps.stores.createReview(review, {
    partnerId: caller.partnerId,
    action: 'review_created',
    at: now,
    actor: caller.keyId,
    subjects: [review.reviewId, review.proofId],
  });
  if (created.outcome === 'exists')
    throw new DomainError('conflict', 'There is an unresolved review of this proof with the same bindings.', {
      reason: 'review_exists',
    });
  if (created.outcome === 'full')
    throw new DomainError(
      'rate_limited',
      'There are as many reviews as a partner may have on a proof, or in all.',
      { reason: 'review_limit', retryAfterSeconds: Math.max(1, created.until - now) },
    );
  if (created.outcome === 'proof_gone') throw noSuchProof();
  return reviewView(review);
}
