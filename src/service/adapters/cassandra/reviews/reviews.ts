import { defined } from '../../../../core/domain/defined.js';
import { DomainError } from '../../../../core/domain/errors.js';
import { isUnresolved } from '../../../domain/review.js';
import type { ReviewStore } from '../../../ports/stores.js';
import type { Decisions } from '../commit/decisions.js';
import type { Outbox } from '../commit/outbox.js';
import type { Blobs } from '../driver/blobs.js';
import { KeyedMutex } from '../driver/keyed-mutex.js';
import type { Session } from '../driver/session.js';
import { IdempotencyRecords } from '../proofs/idempotency-records.js';
import type { ProofRows } from '../proofs/proof-rows.js';
import { reviewCreating } from './creating.js';
import { reviewListing } from './listing.js';
import { ReviewCounts } from './review-counts.js';
import { ReviewRows, textOf } from './review-rows.js';
import { ReviewVisibility } from './review-visibility.js';

/** The attempts that may be lost to quicker processes before the caller gets 503. */
const ATTEMPTS = 200;

export interface CassandraReviews {
  readonly store: ReviewStore;
  /** Removes what counts a partner's reviews on an erased proof. */
  readonly forgetReviews: (partnerId: string, proofId: string) => Promise<void>;
  /** Hides for good what had expired by `now`. */
  readonly expireUpTo: (now: number) => void;
}

export function reviewStore(
  session: Session,
  decisions: Decisions,
  blobs: Blobs,
  proofs: ProofRows,
  outbox: Outbox,
): CassandraReviews {
  const mutex = new KeyedMutex();
  const rows = new ReviewRows(session, blobs, proofs);
  const counts = new ReviewCounts(session);
  const visibility = new ReviewVisibility(rows);
  const createReview = reviewCreating(session, decisions, {
    proofs,
    outbox,
    records: new IdempotencyRecords(session),
    rows,
    counts,
    visibility,
  });
  const changing = decisions.operations<undefined>({ kind: 'review_changed', table: proofs.table });

  const store: ReviewStore = {
    createReview: (review, ...rest) =>
      mutex.run(`${review.proofId}/${review.partnerId}/${textOf(review.bindings)}`, () =>
        createReview(review, ...rest),
      ),

    listReviews: reviewListing(session, visibility, async (partnerId, proofId) => {
      if ((await proofs.head(proofId))?.state === 'erased') await counts.forget(partnerId, proofId);
    }),

    async getReview(partnerId, reviewId, now) {
      const review = (await visibility.find(reviewId, now))?.stored.review;
      return review?.partnerId === partnerId ? review : undefined;
    },

    changeReview: (partnerId, reviewId, now, change, audit) =>
      mutex.run(reviewId, async () => {
        for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
          const found = await visibility.find(reviewId, now);
          if (found?.stored.review.partnerId !== partnerId) return undefined;
          const { head, stored } = found;
          const { review } = stored;
          const changed = change(review);
          if (changed === undefined || 'refused' in changed || changed.review === review) return changed;
          const isFinal = isUnresolved(review) && !isUnresolved(changed.review);
          const place = isFinal ? (await rows.getWithPlace(review, reviewId)).place : undefined;
          const { applied } = await changing.commit({
            key: review.proofId,
            audit,
            data: undefined,
            statements: (op) =>
              rows.changing(
                defined({
                  stored,
                  head,
                  changed: changed.review,
                  place: place?.reviewId === reviewId ? place : undefined,
                  op,
                }),
              ),
          });
          if (applied) return changed;
        }
        throw new DomainError('unavailable', 'Too many requests are changing the case at once.', {
          reason: 'store_unavailable',
          retryAfterSeconds: 1,
        });
      }),

    async findReviewPartner(reviewId, now) {
      return (await visibility.find(reviewId, now))?.stored.review.partnerId;
    },
  };

  return {
    store,
    forgetReviews: (partnerId, proofId) => counts.forget(partnerId, proofId),
    expireUpTo: (now) => visibility.expireUpTo(now),
  };
}
