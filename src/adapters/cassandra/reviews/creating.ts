import { DomainError } from '../../../domain/errors.js';
import { reviewCreated } from '../../../domain/events.js';
import { isUnresolved, REVIEW_BOUNDS, type ReviewBounds, type ReviewCase } from '../../../domain/review.js';
import type { ReviewCreation, ReviewStore } from '../../../ports/stores.js';
import type { Intent, Intents } from '../commit/intents.js';
import type { Outbox } from '../commit/outbox.js';
import type { Blobs } from '../driver/blobs.js';
import { numberIn, type Row, type Session, textIn } from '../driver/session.js';
import type { ProofRows } from '../proofs/proof-rows.js';
import type { ReviewCounts } from './review-counts.js';
import { ReviewRows, ttlOf } from './review-rows.js';
import type { ReviewVisibility } from './review-visibility.js';
import type { UniquenessRows } from './uniqueness-rows.js';

const INDEX = 'INSERT INTO review_by_proof (proof_id, review_id) VALUES (?, ?) USING TTL ?';
const UNINDEX = 'DELETE FROM review_by_proof WHERE proof_id = ? AND review_id = ?';

/** Attempts, lost to quicker processes, before the caller is told to come back. */
const ATTEMPTS = 200;

interface Creation {
  readonly review: ReviewCase;
}

/**
 * Outcome for a review whose uniqueness row was taken: `proof_gone` where the proof was erased meanwhile,
 * `taken` where another review has the id.
 */
type Written = 'created' | 'proof_gone' | 'taken';

export interface CreatingParts {
  readonly blobs: Blobs;
  readonly proofs: ProofRows;
  readonly outbox: Outbox;
  readonly rows: ReviewRows;
  readonly counts: ReviewCounts;
  readonly visibility: ReviewVisibility;
  readonly uniqueness: UniquenessRows;
}

/**
 * Creating: a look at the bounds, intent, the uniqueness row of these bindings (the decision), indexes by
 * proof and partner, the review, its event, audit. The uniqueness row holds all of the creation, so that
 * whoever finds it without its review writes the review. A look at the proof comes last: an erasure that did
 * not find the review in the index has written its tombstone by then, and the creation takes its review back.
 */
export function reviewCreating(
  session: Session,
  intents: Intents,
  { blobs, proofs, outbox, rows, counts, visibility, uniqueness }: CreatingParts,
): ReviewStore['createReview'] {
  const serialRows = new ReviewRows(session.serialReads());
  const serialUniqueness = uniqueness.serialReads();

  /** Writes a review whose uniqueness row was taken, and takes it back where it must not be. */
  const write = async ({ op, target: { review }, startedAt }: Intent<Creation>): Promise<Written> => {
    const { reviewId, proofId } = review;
    // A process that finishes the creation later writes for the time that remains by then.
    const now = review.createdAt + Math.floor(Math.max(0, Date.now() - startedAt) / 1000);
    const ttl = ttlOf(review, now);
    await Promise.all([session.write(INDEX, [proofId, reviewId, ttl]), counts.add(review, ttl)]);
    const created = await rows.create(review, op, now);
    const isGone = !(await proofs.isIssued(proofId));
    if (created && !isGone) return 'created';
    if (created) await rows.remove(reviewId);
    if (created) await Promise.all([session.write(UNINDEX, [proofId, reviewId]), counts.remove(review)]);
    await uniqueness.release(review, op);
    return isGone ? 'proof_gone' : 'taken';
  };

  const creating = intents.operations<Creation>({
    kind: 'review_created',
    async isDecided(intent) {
      const { review } = intent.target;
      const row = await serialUniqueness.get(review);
      const isTaken =
        row !== undefined && textIn(row, 'op') === intent.op && textIn(row, 'review_id') !== undefined;
      const isWritten = (await serialRows.get(review.reviewId))?.createOp === intent.op;
      // A review that is written needs the last look at its proof as well: the proof may have been erased
      // before the review was there to be found.
      return (isTaken || isWritten) && (await write(intent)) === 'created';
    },
    follow: ({ target }) => outbox.add(reviewCreated(target.review)),
  });

  /**
   * The review that holds a uniqueness row, once it is written; undefined where the row may be taken over.
   */
  const holderOf = async (row: Row, now: number): Promise<string | undefined> => {
    const reviewId = textIn(row, 'review_id');
    if (reviewId === undefined || visibility.isOver({ expiresAt: numberIn(row, 'expires_at')! }, now))
      return undefined;
    const review = (await rows.get(reviewId))?.review;
    if (review !== undefined)
      return isUnresolved(review) && !visibility.isOver(review, now) ? reviewId : undefined;
    const creation = blobs.decode<Intent<Creation>>(`creation/${textIn(row, 'op')!}`, row['creation']);
    return (await creating.resume(creation)) ? reviewId : undefined;
  };

  const takeAndWrite = (
    review: ReviewCase,
    audit: Parameters<ReviewStore['createReview']>[1],
    row: Row | undefined,
  ): Promise<{ readonly applied: boolean; readonly outcome: Written | 'refused' }> =>
    creating.commit({ review }, audit, async (transact, intent) => {
      const creation = blobs.encode(`creation/${intent.op}`, intent);
      const { applied } = await transact(uniqueness.taking(review, row, intent.op, creation));
      if (!applied) return { applied, outcome: 'refused' };
      const outcome = await write(intent);
      return { applied: outcome === 'created', outcome };
    });

  return async (review, audit, bounds: ReviewBounds = REVIEW_BOUNDS): Promise<ReviewCreation> => {
    const { reviewId, partnerId, proofId, createdAt } = review;
    let isCounted = false;
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      if (!(await proofs.isIssued(proofId))) return { outcome: 'proof_gone' };
      const same = (await rows.get(reviewId))?.review;
      if (same !== undefined) {
        if (same.partnerId === partnerId && same.proofId === proofId && same.createdAt === createdAt)
          return { outcome: 'created' };
        throw idTaken();
      }
      const row = await uniqueness.get(review);
      const holder = row && (await holderOf(row, createdAt));
      if (holder === reviewId) continue;
      if (holder !== undefined) return { outcome: 'exists', reviewId: holder };
      if (!isCounted) {
        const until = await counts.fullUntil(review, bounds);
        if (until !== undefined) return { outcome: 'full', until };
        isCounted = true;
      }
      const { outcome } = await outbox.withCapacity(() => takeAndWrite(review, audit, row));
      if (outcome === 'refused') continue;
      if (outcome === 'taken') throw idTaken();
      return { outcome };
    }
    throw idTaken();
  };
}

function idTaken(): DomainError {
  return new DomainError('conflict', 'This id is taken.');
}
