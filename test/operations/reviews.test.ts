import t from 'tap';
import { REVIEW_BOUNDS, REVIEW_LIFE_SECONDS } from '../../src/service/domain/review.js';
import type { Caller } from '../../src/service/operations/caller.js';
import { type CreateReviewDeps, createReview } from '../../src/service/operations/reviews/reviews.js';
import type { ReviewCreation } from '../../src/service/ports/stores.js';
import { stillClock } from './doubles.js';
import { bindings } from './restarted-service.js';

const NOW = 1_700_000_000;
const caller = { partnerId: 'ptr_1', keyId: 'key_1', scopes: ['reviews'] } as unknown as Caller;

function depsWith(outcome: ReviewCreation): CreateReviewDeps {
  return {
    stores: {
      getProof: async () => ({ state: 'issued' }),
      createReview: async () => outcome,
    } as unknown as CreateReviewDeps['stores'],
    clock: stillClock(NOW * 1000 + 900),
    ids: { next: () => 'rev_1' } as unknown as CreateReviewDeps['ids'],
  };
}

t.test('a partner with the most cases learns when the oldest ends', async (t) => {
  t.strictSame(REVIEW_BOUNDS, { perProof: 1000, perPartner: 100_000 });
  const attempt = (until: number) =>
    createReview(depsWith({ outcome: 'full', until }), caller, { proofId: 'prf_1', bindings: bindings('s') });
  await t.rejects(attempt(NOW + 77), {
    name: 'DomainError',
    code: 'rate_limited',
    reason: 'review_limit',
    retryAfterSeconds: 77,
  });
  await t.rejects(attempt(NOW + REVIEW_LIFE_SECONDS), {
    code: 'rate_limited',
    retryAfterSeconds: REVIEW_LIFE_SECONDS,
  });
  await t.rejects(attempt(NOW), { code: 'rate_limited', retryAfterSeconds: 1 }, 'never at once');
  t.match(
    await createReview(depsWith({ outcome: 'created' }), caller, {
      proofId: 'prf_1',
      bindings: bindings('s'),
    }),
    { reviewId: 'rev_1', expiresAt: NOW + REVIEW_LIFE_SECONDS },
  );
});
