import { defined } from '../../../../core/domain/defined.js';
import { REVIEW_LIFE_SECONDS, type ReviewCase } from '../../../domain/review.js';
import type { ReviewPlace, ReviewStore } from '../../../ports/stores.js';
import { numberIn, type Session, textIn } from '../driver/session.js';
import { ALL_SHARDS, shardOfProof } from './review-counts.js';
import type { ReviewVisibility } from './review-visibility.js';

/** Entries of a stretch of time that are read at once. No partner creates as many in a second. */
const MOST_READ = 5000;

const LIST_PROOF = `SELECT proof_id, created_at, review_id FROM review_by_partner
   WHERE partner_id = ? AND shard = ? AND proof_id = ? AND created_at > ? AND created_at <= ?`;
// ALLOW FILTERING reads the partner's partitions alone, because their keys are given.
const LIST_ALL = `SELECT proof_id, created_at, review_id FROM review_by_partner
   WHERE partner_id = ? AND shard IN ? AND created_at > ? AND created_at <= ? LIMIT ${MOST_READ} ALLOW FILTERING`;

/** The possible lead of a review over this process's clock, in seconds. */
const AHEAD_SECONDS = 3600;
/** Seconds of the first stretch of time that is read, and how many times longer each further one is. */
const FIRST_SECONDS = 3600;
const GROWTH = 8;
const READS_AT_ONCE = 16;

interface Entry extends ReviewPlace {
  readonly proofId: string;
}

/**
 * Returns the call that lists a partner's reviews from the rows that count them. These rows have only ids and times,
 * and earlier versions left rows of reviews that do not exist. So each review is read from the partition of its
 * proof.
 * @param forgetErased removes the partner's rows on a proof if the proof is erased. A backup can bring back rows of a
 * review without the review, and the erasure then does not know of the partner.
 */
export function reviewListing(
  session: Session,
  visibility: ReviewVisibility,
  forgetErased: (partnerId: string, proofId: string) => Promise<void>,
): ReviewStore['listReviews'] {
  const entriesOf = async (
    partnerId: string,
    proofId: string | undefined,
    after: number,
    upTo: number,
  ): Promise<readonly Entry[]> => {
    const rows = await (proofId === undefined
      ? session.rows(LIST_ALL, [partnerId, ALL_SHARDS, after, upTo])
      : session.rows(LIST_PROOF, [partnerId, shardOfProof(proofId), proofId, after, upTo]));
    return rows.map((row) => ({
      proofId: textIn(row, 'proof_id')!,
      createdAt: numberIn(row, 'created_at')!,
      reviewId: textIn(row, 'review_id')!,
    }));
  };

  return async (partnerId, { limit, before, proofId }, now) => {
    const ended = now - REVIEW_LIFE_SECONDS;
    const found: Entry[] = [];
    let upTo = before?.createdAt ?? now + AHEAD_SECONDS;
    for (let seconds = FIRST_SECONDS; found.length < limit && upTo > ended; ) {
      // The reviews of one proof are few.
      const after = proofId === undefined ? Math.max(ended, upTo - seconds) : ended;
      const entries = await entriesOf(partnerId, proofId, after, upTo);
      // The stretch may have newer ones than those that were read.
      if (proofId === undefined && entries.length >= MOST_READ && seconds > 1) {
        seconds = Math.max(1, Math.floor(seconds / GROWTH));
        continue;
      }
      seconds *= GROWTH;
      found.push(...entries.filter((entry) => before === undefined || newestFirst(before, entry) < 0));
      upTo = after;
    }
    const looked = found.sort(newestFirst).slice(0, limit);
    const reviews: ReviewCase[] = [];
    const unseen = new Set<string>();
    for (let at = 0; at < looked.length; at += READS_AT_ONCE) {
      const some = looked.slice(at, at + READS_AT_ONCE);
      const read = await Promise.all(some.map((entry) => visibility.at(entry.proofId, entry.reviewId, now)));
      for (const [i, review] of read.entries()) {
        if (review === undefined) unseen.add(some[i]!.proofId);
        else if (review.stored.review.partnerId === partnerId) reviews.push(review.stored.review);
      }
    }
    // Not waited for: the next list finds a row that stays.
    for (const erased of unseen) forgetErased(partnerId, erased).catch(() => undefined);
    const end = looked.length < limit ? undefined : looked.at(-1);
    return defined({
      reviews,
      last: end && { createdAt: end.createdAt, reviewId: end.reviewId },
    });
  };
}

function newestFirst(a: ReviewPlace, b: ReviewPlace): number {
  return b.createdAt - a.createdAt || (a.reviewId > b.reviewId ? -1 : a.reviewId < b.reviewId ? 1 : 0);
}
