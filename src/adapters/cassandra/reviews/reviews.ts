import { DomainError } from '../../../domain/errors.js';
import { reviewCreated } from '../../../domain/events.js';
import {
  isUnresolved,
  REVIEW_BOUNDS,
  type ReviewBindings,
  type ReviewBounds,
  type ReviewCase,
} from '../../../domain/review.js';
import type { ReviewCreation, ReviewStore } from '../../../ports/stores.js';
import type { Intent, Intents } from '../commit/intents.js';
import type { Outbox } from '../commit/outbox.js';
import type { Blobs } from '../driver/blobs.js';
import { Lanes } from '../driver/keyed-mutex.js';
import { aheadOfClocks, numberIn, type Row, type Session, textIn } from '../driver/session.js';
import type { ProofRows } from '../proofs/proof-rows.js';
import { forgetNotices } from './reminders.js';
import { ReviewCounts } from './review-counts.js';
import { ReviewRows, type StoredCase, ttlOf } from './review-rows.js';

const PLACE =
  'SELECT review_id, expires_at, op, creation FROM review_place WHERE proof_id = ? AND partner_id = ? AND bindings = ?';
const FORGET_PLACES = 'DELETE FROM review_place USING TIMESTAMP ? WHERE proof_id = ?';
const CLAIM =
  'INSERT INTO review_place (proof_id, partner_id, bindings, review_id, expires_at, op, creation) VALUES (?, ?, ?, ?, ?, ?, ?) IF NOT EXISTS USING TTL ?';
const TAKE_OVER =
  'UPDATE review_place USING TTL ? SET review_id = ?, expires_at = ?, op = ?, creation = ? WHERE proof_id = ? AND partner_id = ? AND bindings = ? IF op = ?';
// All but the witness: a node that hung may still carry out what took the place, after it was given up.
const RELEASE =
  'DELETE review_id, expires_at, creation FROM review_place WHERE proof_id = ? AND partner_id = ? AND bindings = ? IF op = ?';
const INDEX = 'INSERT INTO review_by_proof (proof_id, review_id) VALUES (?, ?) USING TTL ?';
const OF_PROOF = 'SELECT review_id FROM review_by_proof WHERE proof_id = ? AND review_id > ? LIMIT ?';
const UNINDEX = 'DELETE FROM review_by_proof WHERE proof_id = ? AND review_id = ?';
const FORGET_INDEX = 'DELETE FROM review_by_proof USING TIMESTAMP ? WHERE proof_id = ?';

/** Cases of an erased proof that are read at once, and removed at once. */
const REMOVAL_PAGE = 256;
const REMOVED_AT_ONCE = 8;
/** Times that other processes may be quicker before the caller is told to come back. */
const ATTEMPTS = 200;

interface Creation {
  readonly review: ReviewCase;
}
interface Change {
  readonly reviewId: string;
  /** Set by a change to a final outcome, which gives the place up. */
  readonly place?: {
    readonly proofId: string;
    readonly partnerId: string;
    readonly bindings: ReviewBindings;
    readonly createOp: string;
  };
}

export interface CassandraReviews {
  readonly store: ReviewStore;
  /** The cases of all partners on a proof, whose tombstone is written. */
  readonly removeReviewsOf: (proofId: string) => Promise<void>;
  /** What had expired by then is not shown again, to a caller whose clock has gone back either. */
  readonly passed: (now: number) => void;
}

/**
 * Creating: a look at the bounds, intent, the place of these bindings (the decision), indexes by proof and
 * partner, the case, its event, audit. The place holds all of the creation, so that whoever finds it without
 * its case writes the case. A look at the proof comes last: an erasure that did not find the case in the
 * index yet has then written its tombstone, and the creation takes its case back.
 *
 * Changing: intent, the case (the decision), the place where the outcome is final, audit. Whether a place is
 * held is its case's word, not the row's.
 */
export function reviewStore(
  session: Session,
  intents: Intents,
  blobs: Blobs,
  proofs: ProofRows,
  outbox: Outbox,
): CassandraReviews {
  const lanes = new Lanes();
  const rows = new ReviewRows(session);
  const counts = new ReviewCounts(session);
  let passed = 0;
  const isOver = ({ expiresAt }: Pick<ReviewCase, 'expiresAt'>, now: number): boolean =>
    expiresAt <= Math.max(now, passed);

  /** A case that is there for everybody: in its time, and of a proof that is issued. */
  const visible = async (reviewId: string, now: number): Promise<StoredCase | undefined> => {
    const stored = await rows.get(reviewId);
    return stored !== undefined &&
      !isOver(stored.review, now) &&
      (await proofs.isIssued(stored.review.proofId))
      ? stored
      : undefined;
  };

  const release = async (
    { proofId, partnerId, bindings }: Pick<ReviewCase, 'proofId' | 'partnerId' | 'bindings'>,
    op: string,
  ): Promise<void> => {
    await session.decide({ query: RELEASE, params: [proofId, partnerId, textOf(bindings), op] });
  };

  /** @returns `proof_gone` where the proof was erased meanwhile, `taken` where another case has the id */
  const finishCreating = async (intent: Intent<Creation>): Promise<'created' | 'proof_gone' | 'taken'> => {
    const { op, target } = intent;
    const { review } = target;
    const { reviewId, proofId } = review;
    // Whoever finishes it later writes for what remains by then.
    const now = review.createdAt + Math.floor(Math.max(0, Date.now() - intent.startedAt) / 1000);
    await Promise.all([
      session.write(INDEX, [proofId, reviewId, ttlOf(review, now)]),
      counts.add(review, ttlOf(review, now)),
    ]);
    const created = await rows.create(review, op, now);
    const gone = !(await proofs.isIssued(proofId));
    if (created && !gone) {
      await tellCreated(intent);
      return 'created';
    }
    if (created) await rows.remove(reviewId);
    if (created) await Promise.all([session.write(UNINDEX, [proofId, reviewId]), counts.remove(review)]);
    await release(review, op);
    intents.drop(intent);
    return gone ? 'proof_gone' : 'taken';
  };

  /** Before the intent goes, so that the event is there whenever the intent is not. */
  const tellCreated = async (intent: Intent<Creation>): Promise<void> => {
    await outbox.add(reviewCreated(intent.target.review));
    await intents.finish(intent);
  };

  const finishChanging = async (intent: Intent<Change>): Promise<void> => {
    const { place } = intent.target;
    if (place !== undefined) await release(place, place.createOp);
    await intents.finish(intent);
  };

  const settled = new ReviewRows(session.settled());
  intents.onAbandoned('review_created', async (intent: Intent<Creation>) => {
    const { review } = intent.target;
    const place = await session
      .settled()
      .first(PLACE, [review.proofId, review.partnerId, textOf(review.bindings)]);
    const stored = await settled.get(review.reviewId);
    const claimed =
      place !== undefined && textIn(place, 'op') === intent.op && textIn(place, 'review_id') !== undefined;
    // In both cases with a last look at the proof: it may have been erased before the case was there to be
    // found.
    if (stored?.createOp === intent.op || claimed) await finishCreating(intent);
  });
  intents.onAbandoned('review_changed', async (intent: Intent<Change>) => {
    const stored = await settled.get(intent.target.reviewId);
    if (stored?.ops.has(intent.op) === true) await finishChanging(intent);
  });

  /** The case that holds a place, once it is written; undefined where the place may be taken over. */
  const holderOf = async (place: Row, now: number): Promise<string | undefined> => {
    const reviewId = textIn(place, 'review_id');
    if (reviewId === undefined || isOver({ expiresAt: numberIn(place, 'expires_at')! }, now))
      return undefined;
    const stored = await rows.get(reviewId);
    if (stored !== undefined)
      return isUnresolved(stored.review) && !isOver(stored.review, now) ? reviewId : undefined;
    const creation = blobs.decode<Intent<Creation>>(`creation/${textIn(place, 'op')!}`, place['creation']);
    return (await finishCreating(creation)) === 'created' ? reviewId : undefined;
  };

  const create = async (
    review: ReviewCase,
    audit: Parameters<ReviewStore['createReview']>[1],
    bounds: ReviewBounds,
  ): Promise<ReviewCreation> => {
    const { reviewId, partnerId, proofId, createdAt, expiresAt } = review;
    const bindings = textOf(review.bindings);
    let intent: Intent<Creation> | undefined;
    let counted = false;
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      if (!(await proofs.isIssued(proofId))) return { outcome: 'proof_gone' };
      const same = (await rows.get(reviewId))?.review;
      if (same !== undefined) {
        if (same.partnerId === partnerId && same.proofId === proofId && same.createdAt === createdAt)
          return { outcome: 'created' };
        throw taken();
      }
      const place = await session.first(PLACE, [proofId, partnerId, bindings]);
      const holder = place && (await holderOf(place, createdAt));
      if (holder !== undefined && holder !== reviewId) {
        if (intent !== undefined) intents.drop(intent);
        return { outcome: 'exists', reviewId: holder };
      }
      if (holder === reviewId) continue;
      if (!counted) {
        const until = await counts.fullUntil(review, bounds);
        if (until !== undefined) return { outcome: 'full', until };
        counted = true;
      }
      const outcome = await outbox.withRoom(async () => {
        intent ??= await intents.begin('review_created', { review }, audit);
        intents.assertTimely(intent);
        const creation = blobs.encode(`creation/${intent.op}`, intent);
        const ttl = ttlOf(review, createdAt);
        const { applied, current } = await session.decide(
          place === undefined
            ? {
                query: CLAIM,
                params: [proofId, partnerId, bindings, reviewId, expiresAt, intent.op, creation, ttl],
              }
            : {
                query: TAKE_OVER,
                params: [
                  ttl,
                  reviewId,
                  expiresAt,
                  intent.op,
                  creation,
                  proofId,
                  partnerId,
                  bindings,
                  textIn(place, 'op'),
                ],
              },
        );
        return applied || (current !== undefined && textIn(current, 'op') === intent.op)
          ? finishCreating(intent)
          : 'refused';
      });
      if (outcome === 'refused') continue;
      if (outcome === 'taken') throw taken();
      return { outcome };
    }
    throw taken();
  };

  const store: ReviewStore = {
    createReview: (review, audit, bounds = REVIEW_BOUNDS) =>
      lanes.run(`${review.proofId}/${review.partnerId}/${textOf(review.bindings)}`, () =>
        create(review, audit, bounds),
      ),

    async getReview(partnerId, reviewId, now) {
      const stored = await visible(reviewId, now);
      return stored?.review.partnerId === partnerId ? stored.review : undefined;
    },

    changeReview: (partnerId, reviewId, now, change, audit) =>
      lanes.run(reviewId, async () => {
        for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
          const stored = await visible(reviewId, now);
          if (stored?.review.partnerId !== partnerId) return undefined;
          const changed = change(stored.review);
          if (changed === undefined || 'refused' in changed || changed.review === stored.review)
            return changed;
          const { proofId, bindings } = stored.review;
          const final = isUnresolved(stored.review) && !isUnresolved(changed.review);
          const target: Change = {
            reviewId,
            ...(final ? { place: { proofId, partnerId, bindings, createOp: stored.createOp } } : {}),
          };
          const intent = await intents.begin('review_changed', target, audit);
          intents.assertTimely(intent);
          if (await rows.change(stored, changed.review, intent.op, now)) {
            await finishChanging(intent);
            return changed;
          }
          intents.drop(intent);
        }
        throw new DomainError('unavailable', 'The case is being changed by many at once.', {
          reason: 'store_unavailable',
          retryAfterSeconds: 1,
        });
      }),

    async findReviewPartner(reviewId, now) {
      return (await visible(reviewId, now))?.review.partnerId;
    },
  };

  return {
    store,
    async removeReviewsOf(proofId) {
      const partners = new Set<string>();
      const remove = (reviewId: string) =>
        rows.remove(reviewId, async (review) => {
          await forgetNotices(session, review);
          if (partners.has(review.partnerId)) return;
          await counts.forget(review.partnerId, proofId);
          partners.add(review.partnerId);
        });
      for (let after = ''; ; ) {
        const page = (await session.rows(OF_PROOF, [proofId, after, REMOVAL_PAGE])).map(
          (row) => textIn(row, 'review_id')!,
        );
        for (let from = 0; from < page.length; from += REMOVED_AT_ONCE)
          await Promise.all(page.slice(from, from + REMOVED_AT_ONCE).map(remove));
        if (page.length < REMOVAL_PAGE) break;
        after = page.at(-1)!;
      }
      // Whole partitions, unread: a read would pass over all that was ever released there, and fail where
      // that is too much. Without a condition, and ahead of every clock: on this proof nothing comes to be
      // any more that is not taken back.
      const at = aheadOfClocks();
      await session.write(FORGET_INDEX, [at, proofId]);
      await session.write(FORGET_PLACES, [at, proofId]);
    },
    passed: (now) => {
      passed = Math.max(passed, now);
    },
  };
}

function textOf({ creatorId, accountId, submissionId, trackId }: ReviewBindings): string {
  return JSON.stringify([creatorId, accountId, submissionId, trackId]);
}

function taken(): DomainError {
  return new DomainError('conflict', 'This id is taken.');
}
