import { DomainError } from '../../domain/errors.js';
import { noticesOf, reviewCreated } from '../../domain/events.js';
import { isUnresolved } from '../../domain/review.js';
import type { ReviewStore } from '../../ports/stores.js';
import type { AuditLog } from './audit-log.js';
import type { Transaction } from './commit-queue.js';
import { expiryKey, noticeKey, proofKey, proofReviewKey, reviewCountKey, reviewKey, reviewOpenKey } from './keys.js';
import type { Outbox } from './outbox.js';
import type { Rows } from './rows.js';

export function reviewStore(rows: Rows, log: AuditLog, outbox: Outbox): ReviewStore {
  return {
    createReview: (review, audit) =>
      log.run((tx, append) => {
        const { reviewId, partnerId, proofId } = review;
        if (tx.get(proofKey(proofId))?.state !== 'issued') return { outcome: 'proof_gone' };
        const same = tx.get(reviewKey(reviewId))?.review;
        if (same !== undefined) {
          if (same.partnerId === partnerId && same.proofId === proofId && same.createdAt === review.createdAt) return { outcome: 'created' };
          throw new DomainError('conflict', 'This id is taken.');
        }
        const openKey = reviewOpenKey(proofId, partnerId, review.bindings);
        const open = tx.get(openKey);
        const earlier = open && tx.get(reviewKey(open.reviewId))?.review;
        if (earlier !== undefined) {
          if (earlier.expiresAt > review.createdAt) return { outcome: 'exists', reviewId: earlier.reviewId };
          // Expired, and not swept yet.
          removeReview(tx, earlier.reviewId);
        }
        const number = tx.get(reviewCountKey(proofId))?.count ?? 0;
        tx.put(reviewKey(reviewId), { review, number });
        tx.put(openKey, { reviewId });
        tx.put(reviewCountKey(proofId), { count: number + 1 });
        tx.put(proofReviewKey(proofId, number), { reviewId });
        tx.put(expiryKey(review.expiresAt, reviewKey(reviewId)), null);
        append(audit);
        outbox.add(tx, reviewCreated(review));
        return { outcome: 'created' };
      }),

    async getReview(partnerId, reviewId, now) {
      const review = rows.get(reviewKey(reviewId))?.review;
      return review !== undefined && review.partnerId === partnerId && review.expiresAt > now ? review : undefined;
    },

    changeReview: (partnerId, reviewId, now, change, audit) =>
      log.run((tx, append) => {
        const row = tx.get(reviewKey(reviewId));
        if (row === undefined || row.review.partnerId !== partnerId || row.review.expiresAt <= now) return undefined;
        const changed = change(row.review);
        if (changed === undefined || 'refused' in changed || changed.review === row.review) return changed;
        tx.put(reviewKey(reviewId), { ...row, review: changed.review });
        if (isUnresolved(row.review) && !isUnresolved(changed.review)) tx.delete(reviewOpenKey(row.review.proofId, partnerId, row.review.bindings));
        append(audit);
        return changed;
      }),

    async findReviewPartner(reviewId, now) {
      const review = rows.get(reviewKey(reviewId))?.review;
      return review !== undefined && review.expiresAt > now ? review.partnerId : undefined;
    },
  };
}

/** Removes a case with all its entries. */
export function removeReview(tx: Transaction, reviewId: string): void {
  const row = tx.get(reviewKey(reviewId));
  if (row === undefined) return;
  const { proofId, partnerId, bindings, expiresAt } = row.review;
  tx.delete(reviewKey(reviewId));
  tx.delete(proofReviewKey(proofId, row.number));
  tx.delete(expiryKey(expiresAt, reviewKey(reviewId)));
  // A resolved case has given its place up, and another one may hold it.
  const openKey = reviewOpenKey(proofId, partnerId, bindings);
  if (tx.get(openKey)?.reviewId === reviewId) tx.delete(openKey);
}

/** Removes the cases of all partners on a proof, and what is still to be announced of them. */
export function removeReviewsOf(tx: Transaction, proofId: string): void {
  const count = tx.get(reviewCountKey(proofId))?.count ?? 0;
  for (let number = 0; number < count; number++) {
    const link = tx.get(proofReviewKey(proofId, number));
    if (link === undefined) continue;
    const row = tx.get(reviewKey(link.reviewId));
    if (row !== undefined) for (const notice of noticesOf(reviewCreated(row.review))) tx.delete(noticeKey(notice));
    removeReview(tx, link.reviewId);
  }
  if (count > 0) tx.delete(reviewCountKey(proofId));
}
