import { aheadOfClocks, type Session, textIn } from '../driver/session.js';
import { removeReminders } from './reminders.js';
import type { ReviewCounts } from './review-counts.js';
import type { ReviewRows } from './review-rows.js';

const LIST = 'SELECT review_id FROM review_by_proof WHERE proof_id = ? AND review_id > ? LIMIT ?';
const REMOVE_INDEX = 'DELETE FROM review_by_proof USING TIMESTAMP ? WHERE proof_id = ?';
const REMOVE_UNIQUENESS_ROWS = 'DELETE FROM review_place USING TIMESTAMP ? WHERE proof_id = ?';

/** Reviews of an erased proof that are read at once. */
const PAGE = 256;
/** Reviews of an erased proof that are removed at once. */
const REMOVED_AT_ONCE = 8;

/** Removes the reviews of all partners on a proof whose tombstone is written. */
export async function removeReviewsOf(
  proofId: string,
  {
    session,
    rows,
    counts,
  }: {
    readonly session: Session;
    readonly rows: ReviewRows;
    readonly counts: ReviewCounts;
  },
): Promise<void> {
  const partners = new Set<string>();
  const remove = (reviewId: string) =>
    rows.remove(reviewId, async (review) => {
      await removeReminders(session, review);
      if (partners.has(review.partnerId)) return;
      await counts.forget(review.partnerId, proofId);
      partners.add(review.partnerId);
    });
  for (let after = ''; ; ) {
    const page = (await session.rows(LIST, [proofId, after, PAGE])).map((row) => textIn(row, 'review_id')!);
    for (let from = 0; from < page.length; from += REMOVED_AT_ONCE)
      await Promise.all(page.slice(from, from + REMOVED_AT_ONCE).map(remove));
    if (page.length < PAGE) break;
    after = page.at(-1)!;
  }
  // Whole partitions, unread: a read would pass over all that was ever released there, and fail where that is
  // too much. Without a condition, and ahead of every clock: a review that still comes to be on this proof is
  // taken back by its own creation.
  const at = aheadOfClocks();
  await session.write(REMOVE_INDEX, [at, proofId]);
  await session.write(REMOVE_UNIQUENESS_ROWS, [at, proofId]);
}
