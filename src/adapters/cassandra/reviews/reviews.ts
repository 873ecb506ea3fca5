import { defined } from '../../../domain/defined.js';
import { DomainError } from '../../../domain/errors.js';
import { isUnresolved } from '../../../domain/review.js';
import type { ReviewStore } from '../../../ports/stores.js';
import type { Intents } from '../commit/intents.js';
import type { Outbox } from '../commit/outbox.js';
import type { Blobs } from '../driver/blobs.js';
import { KeyedMutex } from '../driver/keyed-mutex.js';
import type { Session } from '../driver/session.js';
import type { ProofRows } from '../proofs/proof-rows.js';
import { reviewCreating } from './creating.js';
import { removeReviewsOf } from './removal.js';
import { ReviewCounts } from './review-counts.js';
import { ReviewRows } from './review-rows.js';
import { ReviewVisibility } from './review-visibility.js';
import { type ReviewScope, textOf, UniquenessRows } from './uniqueness-rows.js';

/** Attempts, lost to quicker processes, before the caller is told to come back. */
const ATTEMPTS = 200;

interface Change {
  readonly reviewId: string;
  /** Uniqueness row that a change to a final outcome releases. */
  readonly place?: ReviewScope & { readonly createOp: string };
}

export interface CassandraReviews {
  readonly store: ReviewStore;
  /** Removes the reviews of all partners on a proof whose tombstone is written. */
  readonly removeReviewsOf: (proofId: string) => Promise<void>;
  /** Hides for good what had expired by `now`. */
  readonly expireUpTo: (now: number) => void;
}

/** Changing: intent, the review (the decision), the uniqueness row where the outcome is final, audit. */
export function reviewStore(
  session: Session,
  intents: Intents,
  blobs: Blobs,
  proofs: ProofRows,
  outbox: Outbox,
): CassandraReviews {
  const mutex = new KeyedMutex();
  const rows = new ReviewRows(session);
  const serialRows = new ReviewRows(session.serialReads());
  const counts = new ReviewCounts(session);
  const uniqueness = new UniquenessRows(session);
  const visibility = new ReviewVisibility(rows, proofs);
  const createReview = reviewCreating(session, intents, {
    blobs,
    proofs,
    outbox,
    rows,
    counts,
    visibility,
    uniqueness,
  });
  const changing = intents.operations<Change>({
    kind: 'review_changed',
    isDecided: async ({ op, target }) => (await serialRows.get(target.reviewId))?.ops.has(op) === true,
    async follow({ target: { place } }) {
      if (place !== undefined) await uniqueness.release(place, place.createOp);
    },
  });

  const store: ReviewStore = {
    createReview: (review, ...rest) =>
      mutex.run(`${review.proofId}/${review.partnerId}/${textOf(review.bindings)}`, () =>
        createReview(review, ...rest),
      ),

    async getReview(partnerId, reviewId, now) {
      const stored = await visibility.find(reviewId, now);
      return stored?.review.partnerId === partnerId ? stored.review : undefined;
    },

    changeReview: (partnerId, reviewId, now, change, audit) =>
      mutex.run(reviewId, async () => {
        for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
          const stored = await visibility.find(reviewId, now);
          if (stored?.review.partnerId !== partnerId) return undefined;
          const changed = change(stored.review);
          if (changed === undefined || 'refused' in changed || changed.review === stored.review)
            return changed;
          const { proofId, bindings } = stored.review;
          const isFinal = isUnresolved(stored.review) && !isUnresolved(changed.review);
          const target = defined({
            reviewId,
            place: isFinal ? { proofId, partnerId, bindings, createOp: stored.createOp } : undefined,
          });
          const { applied } = await changing.commit(target, audit, async (transact, { op }) => ({
            applied: await rows.change(transact, { stored, changed: changed.review, op, now }),
          }));
          if (applied) return changed;
        }
        throw new DomainError('unavailable', 'The case is being changed by many at once.', {
          reason: 'store_unavailable',
          retryAfterSeconds: 1,
        });
      }),

    async findReviewPartner(reviewId, now) {
      return (await visibility.find(reviewId, now))?.review.partnerId;
    },
  };

  return {
    store,
    removeReviewsOf: (proofId) => removeReviewsOf(proofId, { session, rows, counts }),
    expireUpTo: (now) => visibility.expireUpTo(now),
  };
}
