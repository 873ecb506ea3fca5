import { DomainError } from '../../../domain/errors.js';
import { reviewCreated } from '../../../domain/events.js';
import { REVIEW_BOUNDS, type ReviewBounds, type ReviewCase } from '../../../domain/review.js';
import type { ReviewCreation, ReviewStore } from '../../../ports/stores.js';
import type { Decisions } from '../commit/decisions.js';
import type { Outbox } from '../commit/outbox.js';
import type { ProofRows } from '../proofs/proof-rows.js';
import type { ReviewCounts } from './review-counts.js';
import { type ReviewRows, ttlOf } from './review-rows.js';
import type { ReviewVisibility } from './review-visibility.js';

/** Attempts, lost to quicker processes, before the caller is told to come back. */
const ATTEMPTS = 200;

type Creation = Parameters<typeof reviewCreated>[0];

export interface CreatingParts {
  readonly proofs: ProofRows;
  readonly outbox: Outbox;
  readonly rows: ReviewRows;
  readonly counts: ReviewCounts;
  readonly visibility: ReviewVisibility;
}

/**
 * Creating: a look at the bounds, what points at the review, and one batch on the proof's partition that takes
 * the place of its bindings and writes the review.
 */
export function reviewCreating(
  decisions: Decisions,
  { proofs, outbox, rows, counts, visibility }: CreatingParts,
): ReviewStore['createReview'] {
  const creating = decisions.operations<Creation>({
    kind: 'review_created',
    table: proofs.table,
    event: { topic: 'retention', of: (_proofId, { data }) => reviewCreated(data) },
  });

  /** Tells whether another proof has a review with this id. */
  const isTakenElsewhere = async ({ reviewId, proofId }: ReviewCase): Promise<boolean> => {
    const other = await rows.proofOf(reviewId);
    return other !== undefined && other !== proofId && (await rows.get(other, reviewId)).stored !== undefined;
  };

  return async (review, now, audit, bounds: ReviewBounds = REVIEW_BOUNDS): Promise<ReviewCreation> => {
    const { reviewId, partnerId, proofId, createdAt } = review;
    const ttl = ttlOf(review, createdAt);
    let isCounted = false;
    /** Takes back what was counted for a review that did not come to be. */
    const without = async (outcome: ReviewCreation): Promise<ReviewCreation> => {
      if (isCounted) await counts.remove(review);
      return outcome;
    };
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      const { head, stored, place } = await rows.getWithPlace(review, reviewId);
      if (head?.state !== 'issued') return without({ outcome: 'proof_gone' });
      if (stored !== undefined) {
        if (stored.review.partnerId !== partnerId || stored.review.createdAt !== createdAt) throw idTaken();
        await creating.complete(proofId, stored.createOp);
        return { outcome: 'kept' };
      }
      if (place !== undefined && !visibility.isOver(place, now)) {
        // Its own call may have been interrupted.
        await creating.complete(proofId, place.op);
        return without({ outcome: 'exists', reviewId: place.reviewId });
      }
      if (!isCounted) {
        if (await isTakenElsewhere(review)) throw idTaken();
        const until = await counts.fullUntil(review, now, bounds);
        if (until !== undefined) return { outcome: 'full', until };
      }
      const { applied } = await outbox.withCapacity('retention', async () => {
        if (!isCounted) await Promise.all([rows.point(review, ttl), counts.add(review, ttl)]);
        isCounted = true;
        return creating.commit({
          key: proofId,
          audit,
          data: { reviewId, partnerId, proofId, createdAt, expiresAt: review.expiresAt },
          statements: (op) => rows.creating(review, head, place, op),
        });
      });
      if (applied) return { outcome: 'created' };
    }
    throw idTaken();
  };
}

function idTaken(): DomainError {
  return new DomainError('conflict', 'This id is taken.');
}
