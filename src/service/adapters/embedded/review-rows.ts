import { defined } from '../../../core/domain/defined.js';
import { remindersOf, reviewCreated } from '../../domain/events.js';
import type { ReviewCase } from '../../domain/review.js';
import type { ReviewReplay } from '../../ports/stores.js';
import type { Transaction } from './commit-queue.js';
import {
  erasingKey,
  expiryKey,
  following,
  type KeyRange,
  lastPart,
  partnerReviewKey,
  proofKey,
  proofReviewKey,
  type ReviewRow,
  type RowKey,
  reminderKey,
  reviewCountKey,
  reviewKey,
  reviewOpenKey,
  reviewReplayKey,
  under,
} from './keys.js';
import type { Rows } from './rows.js';

/** The most reviews that one batch removes. It takes about a millisecond, in which no other operation runs. */
const REMOVAL_STEP = 32;
/** The most erased proofs that are read at once. */
const ERASED_STEP = 256;

/** The removal, in steps, of reviews that expired or whose proof was erased. */
export class ReviewRows {
  readonly #rows: Rows;

  constructor(rows: Rows) {
    this.#rows = rows;
  }

  /** Returns the ids of erased proofs that may have reviews left. These reviews do not count any more. */
  async erasing(): Promise<readonly string[]> {
    return (await this.#rows.keys(under('erasing'), ERASED_STEP)).map(lastPart);
  }

  /**
   * Removes the reviews of all partners on an erased proof, with their reminders.
   * @returns how many index entries were removed; fewer than `limit` means that none are left
   */
  async removeAllOn(proofId: string, limit = Number.POSITIVE_INFINITY): Promise<number> {
    let range = under('proof-review', proofId);
    let removed = 0;
    for (;;) {
      const entries = await this.#rows.keys(range, Math.min(REMOVAL_STEP, limit - removed));
      const last = entries.at(-1);
      if (last === undefined) break;
      // From the last entry on: from the start LevelDB would read over all that it has just removed.
      range = following(range, last);
      await this.#rows.run((tx) => {
        for (const entry of entries) removeEntry(tx, entry);
      });
      removed += entries.length;
      if (removed >= limit) return removed;
    }
    // An erased proof gets no more reviews.
    await this.#rows.run((tx) => tx.delete(erasingKey(proofId)));
    return removed;
  }

  /**
   * Removes reviews of erased proofs, also those that another call has begun with.
   * @returns how many, at most `limit`; fewer means that none are left
   */
  async removeErased(limit: number): Promise<number> {
    for (let removed = 0; ; ) {
      const proofs = await this.erasing();
      if (proofs.length === 0) return removed;
      for (const proofId of proofs) {
        removed += await this.removeAllOn(proofId, limit - removed);
        if (removed >= limit) return removed;
      }
    }
  }

  /**
   * Removes the reviews that ended from the front of an index in which the oldest come first.
   * @returns when the first of the other reviews ends; undefined where there is none
   */
  async firstEnd(range: KeyRange, now: number): Promise<number | undefined> {
    let rest = range;
    for (;;) {
      const entries = await this.#rows.keys(rest, REMOVAL_STEP);
      const last = entries.at(-1);
      if (last === undefined) return undefined;
      const expired: string[] = [];
      const erased: RowKey<null>[] = [];
      let end: number | undefined;
      for (const entry of entries) {
        const review = this.#rows.get(reviewKey(lastPart(entry)))?.review;
        if (review === undefined) continue;
        if (review.expiresAt <= now) expired.push(review.reviewId);
        else if (this.#rows.get(proofKey(review.proofId))?.state !== 'issued') erased.push(entry);
        else {
          end = review.expiresAt;
          break;
        }
      }
      await this.#rows.run((tx) => {
        for (const reviewId of expired) removeReview(tx, reviewId);
        for (const entry of erased) removeEntry(tx, entry);
      });
      if (end !== undefined) return end;
      rest = following(rest, last);
    }
  }

  /**
   * Makes the indexes and counts of reviews anew for a store of format 2, which numbered the reviews of a
   * proof. After a crash it begins from the start.
   */
  async rebuildIndexes(): Promise<void> {
    for (const former of ['proof-review', 'review-count']) {
      for (let range = under(former), last: string | undefined; ; range = following(range, last)) {
        const entries = await this.#rows.keys(range, REMOVAL_STEP);
        last = entries.at(-1);
        if (last === undefined) break;
        await this.#rows.run((tx) => entries.forEach((entry) => tx.delete(entry)));
      }
    }
    for (let range = under('review'), last: string | undefined; ; range = following(range, last)) {
      const found = await this.#rows.soundEntries<ReviewRow>(range, REMOVAL_STEP);
      last = found.at(-1)?.[0];
      if (last === undefined) break;
      await this.#rows.run((tx) => {
        for (const [, { review }] of found) addToIndexes(tx, review);
      });
    }
  }
}

/** Writes a new review with all its entries, and the record of its Idempotency-Key. */
export function addReview(tx: Transaction, review: ReviewCase, replay: ReviewReplay | undefined): void {
  const { reviewId, partnerId, proofId, expiresAt } = review;
  tx.put(reviewKey(reviewId), defined({ review, replayKey: replay?.key }));
  if (replay !== undefined) {
    removeRecord(tx, replay.key);
    tx.put(reviewReplayKey(replay.key), { ...replay, proofId, reviewId });
    tx.put(expiryKey(replay.expiresAt, reviewReplayKey(replay.key)), null);
  }
  tx.put(reviewOpenKey(proofId, partnerId, review.bindings), { reviewId });
  tx.put(expiryKey(expiresAt, reviewKey(reviewId)), null);
  addToIndexes(tx, review);
}

function addToIndexes(tx: Transaction, review: ReviewCase): void {
  tx.put(partnerReviewKey(review), null);
  tx.put(proofReviewKey(review), null);
  count(tx, review, 1);
}

/** Removes a review with all its entries. */
export function removeReview(tx: Transaction, reviewId: string): void {
  const row = tx.getSound(reviewKey(reviewId));
  if (row === undefined) return;
  const { review, replayKey } = row;
  const { proofId, partnerId, bindings, expiresAt } = review;
  tx.delete(reviewKey(reviewId));
  tx.delete(partnerReviewKey(review));
  tx.delete(proofReviewKey(review));
  count(tx, review, -1);
  tx.delete(expiryKey(expiresAt, reviewKey(reviewId)));
  // A resolved review has released its uniqueness row, and another review may hold it.
  const openKey = reviewOpenKey(proofId, partnerId, bindings);
  if (tx.getSound(openKey)?.reviewId === reviewId) tx.delete(openKey);
  // The key may belong to a later review.
  if (replayKey !== undefined && tx.getSound(reviewReplayKey(replayKey))?.reviewId === reviewId)
    removeRecord(tx, replayKey);
}

/** Removes the record of an Idempotency-Key, if it exists. */
function removeRecord(tx: Transaction, replayKey: string): void {
  const row = reviewReplayKey(replayKey);
  const record = tx.getSound(row);
  if (record === undefined) return;
  tx.delete(row);
  tx.delete(expiryKey(record.expiresAt, row));
}

/** Removes an index entry with its review and the reminders. */
function removeEntry(tx: Transaction, entry: RowKey<null>): void {
  const reviewId = lastPart(entry);
  const review = tx.getSound(reviewKey(reviewId))?.review;
  tx.delete(entry);
  if (review === undefined) return;
  for (const reminder of remindersOf(reviewCreated(review))) tx.delete(reminderKey(reminder));
  removeReview(tx, reviewId);
}

function count(tx: Transaction, { partnerId, proofId }: ReviewCase, step: 1 | -1): void {
  for (const key of [reviewCountKey(partnerId), reviewCountKey(partnerId, proofId)]) {
    const next = (tx.getSound(key)?.count ?? 0) + step;
    if (next > 0) tx.put(key, { count: next });
    else tx.delete(key);
  }
}
