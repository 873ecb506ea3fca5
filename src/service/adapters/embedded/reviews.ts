import { defined } from '../../../core/domain/defined.js';
import { DomainError } from '../../../core/domain/errors.js';
import { reviewCreated } from '../../domain/events.js';
import { isUnresolved, REVIEW_BOUNDS, type ReviewCase } from '../../domain/review.js';
import type { ReviewCreation, ReviewPlace, ReviewStore } from '../../ports/stores.js';
import type { AuditLog } from './audit-log.js';
import type { Transaction } from './commit-queue.js';
import {
  lastPart,
  partnerReviewKey,
  preceding,
  proofKey,
  proofReviewKey,
  type RowKey,
  reviewCountKey,
  reviewKey,
  reviewOpenKey,
  reviewReplayKey,
  timeBefore,
  under,
} from './keys.js';
import type { Outbox } from './outbox.js';
import { addReview, type ReviewRows, removeReview } from './review-rows.js';
import type { Rows } from './rows.js';

type Read = <Row>(key: RowKey<Row>) => Row | undefined;

export function reviewStore(rows: Rows, log: AuditLog, outbox: Outbox, reviewRows: ReviewRows): ReviewStore {
  /** Returns a review that callers may see: it has not expired, and its proof is issued. */
  const findVisible = (get: Read, reviewId: string, now: number): ReviewCase | undefined => {
    const review = get(reviewKey(reviewId))?.review;
    return review !== undefined && review.expiresAt > now && get(proofKey(review.proofId))?.state === 'issued'
      ? review
      : undefined;
  };
  const readFromDisk: Read = (key) => rows.get(key);

  return {
    async createReview(review, now, audit, { bounds = REVIEW_BOUNDS, replay } = {}) {
      const { reviewId, partnerId, proofId, createdAt } = review;
      /** @param erasing proofs whose reviews are counted, and are not there any more */
      const create = (erasing: readonly string[]) =>
        log.run((tx, append): ReviewCreation | 'proof_full' | 'partner_full' => {
          if (tx.get(proofKey(proofId))?.state !== 'issued') return { outcome: 'proof_gone' };
          const same = tx.get(reviewKey(reviewId))?.review;
          if (same !== undefined) {
            if (same.partnerId === partnerId && same.proofId === proofId && same.createdAt === createdAt)
              return { outcome: 'kept', reviewId, createdAt };
            throw new DomainError('conflict', 'This id is taken.');
          }
          const record = replay && tx.get(reviewReplayKey(replay.key));
          if (replay !== undefined && record !== undefined && record.expiresAt > now) {
            if (record.requestSha256 !== replay.requestSha256) return { outcome: 'key_reused' };
            const first = tx.get(reviewKey(record.reviewId))?.review;
            // Earlier versions wrote the record first, so it may name a review that was never created.
            if (first !== undefined)
              return { outcome: 'kept', reviewId: first.reviewId, createdAt: first.createdAt };
          }
          const open = tx.get(reviewOpenKey(proofId, partnerId, review.bindings));
          const earlier = open && tx.get(reviewKey(open.reviewId))?.review;
          if (earlier !== undefined) {
            if (earlier.expiresAt > now) return { outcome: 'exists', reviewId: earlier.reviewId };
            // The earlier review has expired and was not collected yet.
            removeReview(tx, earlier.reviewId);
          }
          if (countOf(tx, partnerId, proofId) >= bounds.perProof) return 'proof_full';
          const gone = erasing.reduce((sum, erased) => sum + countOf(tx, partnerId, erased), 0);
          if (countOf(tx, partnerId) - gone >= bounds.perPartner) return 'partner_full';
          addReview(tx, review, replay);
          append(audit);
          outbox.add(tx, reviewCreated(review));
          return { outcome: 'created' };
        });

      const first = await create([]);
      if (typeof first !== 'string') return first;
      // The counts include reviews that have ended and were not removed yet.
      const firstEnd = (full: typeof first & string) =>
        reviewRows.firstEnd(
          full === 'proof_full'
            ? under('proof-review', proofId, partnerId)
            : under('partner-review', partnerId),
          now,
        );
      const until = await firstEnd(first);
      const second = await create(await reviewRows.erasing());
      if (typeof second !== 'string') return second;
      return { outcome: 'full', until: (second === first ? until : await firstEnd(second)) ?? now + 1 };
    },

    async listReviews(partnerId, { limit, before, proofId }, now) {
      const range =
        proofId === undefined
          ? under('partner-review', partnerId)
          : under('proof-review', proofId, partnerId);
      const entryOf = (place: ReviewPlace) =>
        proofId === undefined
          ? partnerReviewKey({ partnerId, ...place })
          : proofReviewKey({ partnerId, proofId, ...place });
      const entries = await rows.keys(
        before === undefined ? range : preceding(range, entryOf(before)),
        limit,
        true,
      );
      const end = entries.length < limit ? undefined : entries.at(-1);
      return defined({
        reviews: entries.flatMap((entry) => findVisible(readFromDisk, lastPart(entry), now) ?? []),
        last: end && { createdAt: timeBefore(end), reviewId: lastPart(end) },
      });
    },

    async getReview(partnerId, reviewId, now) {
      const review = findVisible(readFromDisk, reviewId, now);
      return review?.partnerId === partnerId ? review : undefined;
    },

    changeReview: (partnerId, reviewId, now, change, audit) =>
      log.run((tx, append) => {
        const review = findVisible((key) => tx.get(key), reviewId, now);
        if (review?.partnerId !== partnerId) return undefined;
        const changed = change(review);
        if (changed === undefined || 'refused' in changed || changed.review === review) return changed;
        tx.put(reviewKey(reviewId), { ...tx.get(reviewKey(reviewId)), review: changed.review });
        if (isUnresolved(review) && !isUnresolved(changed.review))
          tx.delete(reviewOpenKey(review.proofId, partnerId, review.bindings));
        append(audit);
        return changed;
      }),

    async findReviewPartner(reviewId, now) {
      return findVisible(readFromDisk, reviewId, now)?.partnerId;
    },
  };
}

function countOf(tx: Transaction, partnerId: string, proofId?: string): number {
  return tx.get(reviewCountKey(partnerId, proofId))?.count ?? 0;
}
