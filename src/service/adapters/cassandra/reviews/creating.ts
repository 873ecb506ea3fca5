import { DomainError } from '../../../../core/domain/errors.js';
import { reviewCreated } from '../../../domain/events.js';
import { REVIEW_BOUNDS, type ReviewCase } from '../../../domain/review.js';
import type { ReviewCreation, ReviewStore } from '../../../ports/stores.js';
import type { Decisions } from '../commit/decisions.js';
import type { Outbox } from '../commit/outbox.js';
import { numberIn, type Row, type Session, textIn } from '../driver/session.js';
import type { IdempotencyRecords } from '../proofs/idempotency-records.js';
import type { ProofRows } from '../proofs/proof-rows.js';
import type { ReviewCounts } from './review-counts.js';
import { type OnProof, type ReviewRows, ttlOf } from './review-rows.js';
import type { ReviewVisibility } from './review-visibility.js';

/** The attempts that may be lost to quicker processes before the caller gets 503. */
const ATTEMPTS = 200;

type Creation = Parameters<typeof reviewCreated>[0];

export interface CreatingParts {
  readonly proofs: ProofRows;
  readonly outbox: Outbox;
  readonly records: IdempotencyRecords;
  readonly rows: ReviewRows;
  readonly counts: ReviewCounts;
  readonly visibility: ReviewVisibility;
}

/**
 * Returns the call that creates a review. The call checks the bounds, writes what points at the review, and sends one
 * batch on the proof's partition. The batch takes the place of the bindings and writes the review, with the row of
 * its Idempotency-Key. The row that counts and lists the review follows the batch, because an erasure removes such
 * rows only of partners that have a review. The batch alone decides under which review a key is used on the proof.
 * For the other proofs of the environment the key also has a record in a table of its own (rule 12.18). That record
 * is taken just before the batch, and released by the call that took it if no review comes of it. A process that dies
 * in between leaves the record for a day. The record then refuses other data under the key, but not the same data.
 */
export function reviewCreating(
  session: Session,
  decisions: Decisions,
  { proofs, outbox, records, rows, counts, visibility }: CreatingParts,
): ReviewStore['createReview'] {
  const creating = decisions.operations<Creation>({
    kind: 'review_created',
    table: proofs.table,
    async follow(proofId, { data }) {
      // An erasure that came right behind removes what is added here, under a later timestamp.
      if ((await proofs.head(proofId))?.state === 'issued')
        await counts.add(data, ttlOf(data, data.createdAt));
    },
    event: { topic: 'retention', of: (_proofId, { data }) => reviewCreated(data) },
  });

  /** Returns whether another proof has a review with this id. */
  const isTakenElsewhere = async ({ reviewId, proofId }: ReviewCase): Promise<boolean> => {
    const other = await rows.proofOf(reviewId);
    return other !== undefined && other !== proofId && (await rows.get(other, reviewId)).stored !== undefined;
  };

  /** Returns the review of the key's record. Earlier versions wrote no row beside the review. */
  const createdEarlier = async (
    { proofId, partnerId, reviewId }: ReviewCase,
    record: Row | undefined,
  ): Promise<OnProof['stored']> => {
    const earlierId = record && textIn(record, 'op');
    if (earlierId === undefined || earlierId === reviewId) return undefined;
    const { stored } = await rows.get(proofId, earlierId);
    return stored?.review.partnerId === partnerId ? stored : undefined;
  };

  return async (review, now, audit, { bounds = REVIEW_BOUNDS, replay } = {}): Promise<ReviewCreation> => {
    const { reviewId, partnerId, proofId, createdAt } = review;
    const ttl = ttlOf(review, createdAt);
    let isPointedAt = false;
    let hasRecord = false;
    /** Releases the record that was taken for a review that did not come to be. */
    const without = async (outcome: ReviewCreation): Promise<ReviewCreation> => {
      if (hasRecord && replay !== undefined) await records.release(replay.key, reviewId);
      return outcome;
    };
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      const found = replay && (await records.get(replay.key));
      const record = found !== undefined && isHeld(found, now) ? found : undefined;
      const { head, stored, place, keyRow } = await rows.getWithPlace(review, reviewId, replay?.key);
      if (head?.state !== 'issued') return without({ outcome: 'proof_gone' });
      if (stored !== undefined) {
        if (stored.review.partnerId !== partnerId || stored.review.createdAt !== createdAt) throw idTaken();
        await creating.complete(proofId, stored.createOp);
        return { outcome: 'kept', reviewId, createdAt };
      }
      if (replay !== undefined) {
        const holds = keyRow !== undefined && keyRow.expiresAt > now ? keyRow : undefined;
        const sha256 = holds?.requestSha256 ?? (record && textIn(record, 'request_sha256'));
        if (sha256 !== undefined && sha256 !== replay.requestSha256)
          return without({ outcome: 'key_reused' });
        const earlier = holds === undefined ? await createdEarlier(review, record) : undefined;
        const first = holds ?? earlier?.review;
        if (first !== undefined) {
          await creating.complete(proofId, holds?.op ?? earlier!.createOp);
          // The record stays, whichever call took it: the key has its review.
          return { outcome: 'kept', reviewId: first.reviewId, createdAt: first.createdAt };
        }
      }
      if (place !== undefined && !visibility.isOver(place, now)) {
        // Its own call may have been interrupted.
        await creating.complete(proofId, place.op);
        return without({ outcome: 'exists', reviewId: place.reviewId });
      }
      if (!isPointedAt) {
        if (await isTakenElsewhere(review)) throw idTaken();
        const until = await counts.fullUntil(review, now, bounds);
        if (until !== undefined) return without({ outcome: 'full', until });
      }
      const isCreated = await outbox.withCapacity('retention', async () => {
        if (replay !== undefined && record === undefined) {
          const { applied } = await session.lightweightTransaction(
            records.taking({ ...replay, proofId }, found, reviewId, now),
          );
          if (!applied) return false;
          hasRecord = true;
        }
        if (!isPointedAt) await rows.point(review, ttl);
        isPointedAt = true;
        const { applied } = await creating.commit({
          key: proofId,
          audit,
          data: { reviewId, partnerId, proofId, createdAt, expiresAt: review.expiresAt },
          statements: (op) =>
            rows.creating(review, head, place, op, replay && { replay, former: keyRow, now }),
        });
        return applied;
      });
      if (isCreated) return { outcome: 'created' };
    }
    throw idTaken();
  };
}

/** Reports whether a record belongs to a call. A released record has only the id of its operation left. */
function isHeld(record: Row, now: number): boolean {
  return textIn(record, 'proof_id') !== undefined && numberIn(record, 'expires_at')! > now;
}

function idTaken(): DomainError {
  return new DomainError('conflict', 'This id is taken.');
}
