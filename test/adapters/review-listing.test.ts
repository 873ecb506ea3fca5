/**
 * Tests the pages of a partner with far more reviews than one page, over a session that respects the
 * statement's limit, and rows without a review.
 */
import t from 'tap';
import type { Session } from '../../src/service/adapters/cassandra/driver/session.js';
import { reviewListing } from '../../src/service/adapters/cassandra/reviews/listing.js';
import type { ReviewVisibility } from '../../src/service/adapters/cassandra/reviews/review-visibility.js';
import type { ReviewPlace } from '../../src/service/ports/stores.js';

const NOW = 1_900_000_000;
const MANY = 20_000;

t.test('no read takes more than the bound, and no review is passed over', async (t) => {
  // Four thousand reviews a second for five seconds, and one an hour before.
  const rows = Array.from({ length: MANY }, (_, i) => ({
    proof_id: `prf_${i % 50}`,
    created_at: i === 0 ? NOW - 9000 : NOW - Math.floor(i / 4000),
    review_id: `rev_${String(i).padStart(6, '0')}`,
  }));
  let most = 0;
  const session = {
    rows: async (query: string, params: readonly unknown[]) => {
      const [after, upTo] = params.slice(-2) as [number, number];
      const limit = Number(/LIMIT (\d+)/.exec(query)?.[1]);
      const found = rows.filter(({ created_at }) => created_at > after && created_at <= upTo).slice(0, limit);
      most = Math.max(most, found.length);
      return found;
    },
  } as unknown as Session;
  const visibility = {
    at: async (proofId: string, reviewId: string) => ({
      stored: { review: { partnerId: 'ptr_1', proofId, reviewId } },
    }),
  } as unknown as ReviewVisibility;
  const list = reviewListing(session, visibility, async () => undefined);
  const seen: string[] = [];
  let before: ReviewPlace | undefined;
  do {
    const page = await list('ptr_1', { limit: 500, ...(before === undefined ? {} : { before }) }, NOW);
    seen.push(...page.reviews.map(({ reviewId }) => reviewId));
    before = page.last;
  } while (before !== undefined);
  const expected = [...rows]
    .sort((a, b) => b.created_at - a.created_at || (a.review_id > b.review_id ? -1 : 1))
    .map(({ review_id }) => review_id);
  t.strictSame(seen, expected);
  t.ok(most <= 5000, `${most} rows of a read`);
});

t.test('the list forgets rows of a proof whose review it does not find, and waits for nothing', async (t) => {
  const row = (proofId: string, reviewId: string) => ({
    proof_id: proofId,
    created_at: NOW,
    review_id: reviewId,
  });
  const rows = [row('prf_1', 'rev_1'), row('prf_2', 'rev_2'), row('prf_2', 'rev_3')];
  const session = { rows: async () => rows.splice(0) } as unknown as Session;
  const visibility = {
    at: async (proofId: string, reviewId: string) =>
      proofId === 'prf_1' ? { stored: { review: { partnerId: 'ptr_1', proofId, reviewId } } } : undefined,
  } as unknown as ReviewVisibility;
  const forgotten: string[] = [];
  const list = reviewListing(session, visibility, (partnerId, proofId) => {
    forgotten.push(`${partnerId} ${proofId}`);
    return Promise.reject(new Error('away'));
  });
  const { reviews } = await list('ptr_1', { limit: 500 }, NOW);
  t.strictSame(
    reviews.map(({ reviewId }) => reviewId),
    ['rev_1'],
  );
  t.strictSame(forgotten, ['ptr_1 prf_2']);
});
