import { createHash } from 'node:crypto';
import type { Test } from 'tap';
import { defined } from '../../src/core/domain/defined.js';
import type { IssuedProof } from '../../src/service/domain/proof.js';
import {
  EVIDENCE_KINDS,
  type EvidenceKind,
  openEvidence,
  REVIEW_LIFE_SECONDS,
  type ReviewCase,
  type ReviewChange,
  type ReviewOutcome,
  resolveReview,
  stepEvidence,
} from '../../src/service/domain/review.js';
import type { ReviewCreation, ReviewPlace } from '../../src/service/ports/stores.js';
import { actionsOf } from './audit-contract.js';
import { audit, issuedProof, NOW, reviewCase } from './samples.js';
import type { Contract } from './suite.js';

/** Tests that equal bindings have one review. Its changes are sequential. It ends after 180 days to the second. */
export async function reviewContract(t: Test, { opened, id }: Contract): Promise<void> {
  const proofId = id('prf', 'reviewed');
  const partnerId = id('ptr', 'reviews');
  const foreign = id('ptr', 'reviews2');
  const proof = issuedProof(proofId, id('ptr', 1));
  await opened().stores.reserveProof(proofId, proof.partnerId, NOW);
  await opened().stores.issueProof(proof, audit(proof.partnerId, 'proof_issued', proofId));

  const create = (review: ReviewCase, now = review.createdAt) =>
    opened().stores.createReview(review, now, audit(review.partnerId, 'review_created', review.reviewId));
  const change = (
    review: ReviewCase,
    rule: (current: ReviewCase) => ReviewChange | undefined,
    now = NOW + 1,
  ) =>
    opened().stores.changeReview(
      review.partnerId,
      review.reviewId,
      now,
      rule,
      audit(review.partnerId, 'review_resolved', review.reviewId),
    );
  const resolve = (review: ReviewCase, outcome: ReviewOutcome, now = NOW + 1) =>
    change(review, (current) => resolveReview(current, outcome, now), now);
  const open = (review: ReviewCase, kind: EvidenceKind, requestId: string) =>
    change(review, (current) => openEvidence(current, kind, requestId, NOW + 1));
  /** Returns a review with bindings that no other review has. */
  const fresh = (name: string, over: Partial<ReviewCase> = {}) =>
    reviewCase(id('rev', name), partnerId, proofId, {
      bindings: { creatorId: id('c', name), accountId: 'a', submissionId: 's', trackId: 't' },
      ...over,
    });

  await t.test('a review is created, read and changed by its partner alone', async (t) => {
    const { stores } = opened();
    const review = fresh('one');
    t.strictSame(await create({ ...review, proofId: id('prf', 'never') }), { outcome: 'proof_gone' });
    await stores.reserveProof(id('prf', 'review-pending'), partnerId, NOW);
    t.strictSame(
      await create({ ...review, proofId: id('prf', 'review-pending') }),
      { outcome: 'proof_gone' },
      'a reserved id is not a proof',
    );
    t.equal(await stores.getReview(partnerId, review.reviewId, NOW), undefined);
    t.strictSame(await create(review), { outcome: 'created' });
    t.strictSame(await create(review), kept(review), 'the same call again is harmless');
    t.strictSame(await stores.getReview(partnerId, review.reviewId, NOW), review);
    t.equal(await stores.findReviewPartner(review.reviewId, NOW), partnerId);
    t.equal(await stores.getReview(foreign, review.reviewId, NOW), undefined);
    t.equal(await resolve({ ...review, partnerId: foreign }, 'accepted'), undefined);
    await t.rejects(create({ ...review, partnerId: foreign }), { code: 'conflict' }, 'an id that is taken');

    t.equal(await change(review, () => undefined), undefined);
    t.strictSame(await change(review, () => ({ refused: 'evidence_requests_open' })), {
      refused: 'evidence_requests_open',
    });
    t.strictSame(await change(review, (current) => ({ review: current })), { review });
    t.strictSame(await stores.getReview(partnerId, review.reviewId, NOW), review, 'none of this changed it');
    await t.rejects(
      change(review, () => {
        throw new RangeError('a rule that fails');
      }),
      RangeError,
    );
    const changed = await open(review, 'source_evidence', id('req', 1));
    t.strictSame(changed, openEvidence(review, 'source_evidence', id('req', 1), NOW + 1));
    t.strictSame({ review: await stores.getReview(partnerId, review.reviewId, NOW) }, changed);
    t.strictSame(
      await actionsOf(opened(), partnerId),
      ['review_created', 'review_resolved'],
      'one entry for each change',
    );
    t.strictSame(await actionsOf(opened(), foreign), []);
  });

  await t.test('100 parallel creates of the same review give one', async (t) => {
    const { stores } = opened();
    const { bindings } = fresh('same');
    const tries = Array.from({ length: 100 }, (_, i) => fresh(`same-${i}`, { bindings }));
    const outcomes = await Promise.all(tries.map((review) => create(review)));
    const won = outcomes.findIndex(({ outcome }) => outcome === 'created');
    const winner = tries[won]!;
    for (const [i, each] of outcomes.entries())
      t.strictSame(
        each,
        i === won ? { outcome: 'created' } : { outcome: 'exists', reviewId: winner.reviewId },
      );
    const found = await Promise.all(tries.map(({ reviewId }) => stores.getReview(partnerId, reviewId, NOW)));
    t.strictSame(
      found.filter((each) => each !== undefined),
      [winner],
    );
    // Any other binding, partner or proof is another review.
    t.strictSame(await create(fresh('same-track', { bindings: { ...bindings, trackId: 't2' } })), {
      outcome: 'created',
    });
    t.strictSame(await create({ ...fresh('same-partner', { bindings }), partnerId: foreign }), {
      outcome: 'created',
    });

    t.ok(await resolve(winner, 'held'));
    t.strictSame(
      await create(fresh('same-held', { bindings })),
      { outcome: 'exists', reviewId: winner.reviewId },
      'held is unresolved',
    );
    t.ok(await resolve(winner, 'rejected'));
    const next = fresh('same-next', { bindings });
    t.strictSame(await create(next), { outcome: 'created' }, 'a final outcome gives the place up');
    t.strictSame(await resolve(winner, 'accepted'), { refused: 'review_resolved' });
    t.strictSame(
      await create(fresh('same-third', { bindings })),
      { outcome: 'exists', reviewId: next.reviewId },
      'and the old review does not touch it again',
    );
    t.equal(
      (await stores.getReview(partnerId, winner.reviewId, NOW))?.outcome,
      'rejected',
      'which is still to be read',
    );
  });

  await t.test('100 parallel openings of one evidence kind give one', async (t) => {
    const { stores } = opened();
    const review = fresh('kinds');
    await create(review);
    // Kind after kind: a store may change a review one call after another, and gives up calls that wait for
    // seconds.
    const results: Awaited<ReturnType<typeof open>>[] = [];
    for (const kind of EVIDENCE_KINDS)
      results.push(
        ...(await Promise.all(
          Array.from({ length: 100 }, (_, i) => open(review, kind, id('req', `${kind}-${i}`))),
        )),
      );
    t.equal(results.filter((result) => result !== undefined && 'review' in result).length, 3);
    t.equal(
      results.filter(
        (result) =>
          result !== undefined && 'refused' in result && result.refused === 'evidence_kind_already_open',
      ).length,
      297,
    );
    t.strictSame(
      (await stores.getReview(partnerId, review.reviewId, NOW))?.evidenceRequests
        .map(({ kind }) => kind)
        .sort(),
      [...EVIDENCE_KINDS].sort(),
    );
  });

  await t.test('a resolution and an evidence request at once come one after the other', async (t) => {
    const { stores } = opened();
    const seen = new Set<string>();
    await Promise.all(
      Array.from({ length: 60 }, async (_, i) => {
        const review = fresh(`race-${i}`);
        await create(review);
        const requestId = id('req', `race-${i}`);
        const calls = [
          () => resolve(review, 'accepted'),
          () => open(review, 'source_licence', requestId),
          () => change(review, (current) => stepEvidence(current, requestId, 'decline', undefined, NOW + 1)),
        ];
        const order = [
          [0, 1, 2],
          [1, 0, 2],
          [1, 2, 0],
        ][i % 3]!;
        const results = await Promise.all(order.map((each) => calls[each]!()));
        const [resolved, requested, declined] = [0, 1, 2].map((each) => results[order.indexOf(each)]);
        const stored = await stores.getReview(partnerId, review.reviewId, NOW);
        const story = [resolved, requested, declined]
          .map((result) => (result === undefined ? 'none' : 'refused' in result ? result.refused : 'done'))
          .join();
        seen.add(story);
        const state = `${stored?.outcome ?? 'open'} ${stored?.evidenceRequests.map(({ status }) => status).join() ?? ''}`;
        const sound: Record<string, string> = {
          'done,review_resolved,none': 'accepted ',
          'evidence_requests_open,done,done': 'open declined',
          'evidence_requests_open,done,none': 'open requested',
          'done,done,done': 'accepted declined',
        };
        t.equal(state, sound[story], story);
      }),
    );
    t.ok(seen.size > 1, [...seen].join(' | '));
  });

  await t.test('a partner has a bounded number of reviews, on one proof and in all', async (t) => {
    const { stores } = opened();
    const bounded = id('ptr', 'bounded');
    const bounds = { perProof: 3, perPartner: 5 };
    const [first, second, third] = ['bounded-1', 'bounded-2', 'bounded-3'].map((name) =>
      issuedProof(id('prf', name), proof.partnerId),
    ) as [IssuedProof, IssuedProof, IssuedProof];
    for (const each of [first, second, third]) {
      await stores.reserveProof(each.proofId, each.partnerId, NOW);
      await stores.issueProof(each, audit(each.partnerId, 'proof_issued', each.proofId));
    }
    const attempt = (name: string, of: IssuedProof, createdAt: number, owner = bounded, now = createdAt) => {
      const review = reviewCase(id('rev', name), owner, of.proofId, {
        createdAt,
        bindings: { creatorId: id('c', name), accountId: 'a', submissionId: 's', trackId: 't' },
      });
      return {
        review,
        made: stores.createReview(review, now, audit(owner, 'review_created', review.reviewId), { bounds }),
      };
    };
    const outcome = async (...parameters: Parameters<typeof attempt>) => attempt(...parameters).made;
    const created = { outcome: 'created' };
    const endOf = (createdAt: number) => ({ outcome: 'full', until: createdAt + REVIEW_LIFE_SECONDS });

    const oldest = attempt('bounded-a1', first, NOW).review;
    t.strictSame(
      await stores.createReview(oldest, oldest.createdAt, audit(bounded, 'review_created', oldest.reviewId), {
        bounds,
      }),
      kept(oldest),
    );
    for (const i of [2, 3]) t.strictSame(await outcome(`bounded-a${i}`, first, NOW + i), created);
    t.strictSame(
      await outcome('bounded-a4', first, NOW + 4),
      endOf(NOW),
      'until the oldest on this proof ends',
    );
    t.strictSame(
      await stores.createReview(
        { ...oldest, reviewId: id('rev', 'bounded-again') },
        oldest.createdAt,
        audit(bounded, 'review_created'),
        { bounds },
      ),
      { outcome: 'exists', reviewId: oldest.reviewId },
      'an existing review is named',
    );
    t.equal(await stores.getReview(bounded, id('rev', 'bounded-a4'), NOW + 4), undefined);
    t.strictSame(
      await actionsOf(opened(), bounded),
      ['review_created', 'review_created', 'review_created'],
      'who is refused leaves no entry',
    );
    for (const i of [1, 2, 3])
      t.strictSame(
        await outcome(`bounded-foreign${i}`, first, NOW + i, id('ptr', 'bounded2')),
        created,
        'other partners do not count',
      );
    await resolve(oldest, 'accepted');
    t.strictSame(await outcome('bounded-a5', first, NOW + 5), endOf(NOW), 'a resolved review counts');

    for (const i of [1, 2]) t.strictSame(await outcome(`bounded-b${i}`, second, NOW + 10 + i), created);
    t.strictSame(await outcome('bounded-b3', second, NOW + 13), endOf(NOW), 'until the oldest of all ends');
    t.strictSame(await outcome('bounded-c1', third, oldest.expiresAt - 1), endOf(NOW), 'to the second');
    t.strictSame(
      await outcome('bounded-c1', third, oldest.expiresAt),
      created,
      'one that ended does not count',
    );
    t.strictSame(await outcome('bounded-c2', third, oldest.expiresAt), endOf(NOW + 2));
    t.strictSame(
      await outcome('bounded-c2', third, oldest.expiresAt - 3600, bounded, oldest.expiresAt + 1),
      endOf(NOW + 2),
      'ended by the time of the call, not of the creation',
    );

    await stores.eraseProof(
      first.proofId,
      first.partnerId,
      NOW,
      audit(first.partnerId, 'proof_erased', first.proofId),
    );
    t.equal(await stores.confirmErasure(first.proofId, NOW), 'confirmed');
    for (const i of [3, 4])
      t.strictSame(
        await outcome(`bounded-c${i}`, third, oldest.expiresAt),
        created,
        'those of an erased proof do not count',
      );
    t.strictSame(await outcome('bounded-c5', third, oldest.expiresAt), endOf(oldest.expiresAt));
    t.strictSame(await outcome('bounded-b5', second, oldest.expiresAt), endOf(NOW + 11));
  });

  await t.test('a review is gone with its proof for every call, before anything is cleaned up', async (t) => {
    const { stores } = opened();
    const erased = issuedProof(id('prf', 'gone'), id('ptr', 'gone'));
    await stores.reserveProof(erased.proofId, erased.partnerId, NOW);
    await stores.issueProof(erased, audit(erased.partnerId, 'proof_issued', erased.proofId));
    const review = fresh('gone', { proofId: erased.proofId });
    await create(review);
    const requestId = id('req', 'gone');
    await open(review, 'source_evidence', requestId);
    await stores.eraseProof(
      erased.proofId,
      erased.partnerId,
      NOW,
      audit(erased.partnerId, 'proof_erased', erased.proofId),
    );
    for (const cleaned of [false, true]) {
      if (cleaned) t.equal(await stores.confirmErasure(erased.proofId, NOW), 'confirmed');
      t.equal(await stores.getReview(partnerId, review.reviewId, NOW), undefined);
      t.equal(await stores.findReviewPartner(review.reviewId, NOW), undefined);
      t.equal(await resolve(review, 'accepted'), undefined);
      t.equal(await open(review, 'source_licence', id('req', 'gone2')), undefined);
      t.equal(
        await change(review, (current) => stepEvidence(current, requestId, 'supply', undefined, NOW)),
        undefined,
      );
      t.strictSame(await create(review), { outcome: 'proof_gone' }, 'the same call again');
      t.strictSame(await create(fresh('gone-other', { proofId: erased.proofId })), {
        outcome: 'proof_gone',
      });
    }
  });

  await t.test('a list has the reviews of its partner that are there, newest first', async (t) => {
    const { stores } = opened();
    const lister = id('ptr', 'lister');
    const other = issuedProof(id('prf', 'listed'), id('ptr', 'listed'));
    await stores.reserveProof(other.proofId, other.partnerId, NOW);
    await stores.issueProof(other, audit(other.partnerId, 'proof_issued', other.proofId));
    // Two of one second, and two half a life before: a list reads far back.
    const times = [NOW - REVIEW_LIFE_SECONDS / 2, NOW, NOW, NOW + 1, NOW + 3 * 86_400];
    const reviews = times.map((createdAt, at) => ({
      ...fresh(`listed-${at}`, { createdAt, proofId: at % 2 === 0 ? proofId : other.proofId }),
      partnerId: lister,
    }));
    for (const review of reviews) t.strictSame(await create(review), { outcome: 'created' });
    await create({ ...fresh('listed-foreign'), partnerId: id('ptr', 'lister2') });
    const newest = reviews.toReversed();
    const now = NOW + 4 * 86_400;
    const list = async (query: Parameters<typeof stores.listReviews>[1], at = now, of = lister) => {
      const { reviews: found, last } = await stores.listReviews(of, query, at);
      return { ids: found.map(({ reviewId }) => reviewId), last };
    };
    const idsOf = (found: readonly ReviewCase[]) => found.map(({ reviewId }) => reviewId);
    t.strictSame(await list({ limit: 10 }), { ids: idsOf(newest), last: undefined });
    t.strictSame((await stores.listReviews(lister, { limit: 1 }, now)).reviews, [newest[0]], 'whole cases');
    for (const limit of [1, 2, 3]) {
      const ids: string[] = [];
      for (let before: ReviewPlace | undefined; ; ) {
        const page = await list(defined({ limit, before }));
        t.ok(page.ids.length <= limit);
        ids.push(...page.ids);
        if (page.last === undefined) break;
        before = page.last;
      }
      t.strictSame(ids, idsOf(newest), `in pages of ${limit}`);
    }
    t.strictSame(
      (await list({ limit: 10, proofId: other.proofId })).ids,
      idsOf(newest.filter((review) => review.proofId === other.proofId)),
    );
    t.strictSame(await list({ limit: 10 }, now, id('ptr', 'lister-none')), { ids: [], last: undefined });

    await stores.eraseProof(
      other.proofId,
      other.partnerId,
      NOW,
      audit(other.partnerId, 'proof_erased', other.proofId),
    );
    for (const cleaned of [false, true]) {
      if (cleaned) t.equal(await stores.confirmErasure(other.proofId, NOW), 'confirmed');
      t.strictSame(
        (await list({ limit: 10 })).ids,
        idsOf(newest.filter((review) => review.proofId === proofId)),
        'those of an erased proof are not listed',
      );
      t.strictSame((await list({ limit: 10, proofId: other.proofId })).ids, []);
    }
    const ended = reviews[0]!.expiresAt;
    t.ok((await list({ limit: 10 }, ended - 1)).ids.includes(reviews[0]!.reviewId));
    t.notOk((await list({ limit: 10 }, ended)).ids.includes(reviews[0]!.reviewId), 'to the second');
  });

  await t.test('an Idempotency-Key belongs to the review that was created under it, for a day', async (t) => {
    const { stores } = opened();
    const second = issuedProof(id('prf', 'keyed'), proof.partnerId);
    await stores.reserveProof(second.proofId, second.partnerId, NOW);
    await stores.issueProof(second, audit(second.partnerId, 'proof_issued', second.proofId));
    const under = (review: ReviewCase, data: string, now = review.createdAt, key = 'keyed') =>
      stores.createReview(review, now, audit(review.partnerId, 'review_created', review.reviewId), {
        replay: {
          key: createHash('sha256').update(id('key', key)).digest('hex'),
          requestSha256: createHash('sha256').update(data).digest('hex'),
          expiresAt: now + 86_400,
        },
      });
    const { bindings } = fresh('keyed');
    const tries = Array.from({ length: 20 }, (_, at) => fresh(`keyed-${at}`, { bindings }));
    const outcomes = await Promise.all(tries.map((review) => under(review, 'data')));
    const first = tries[outcomes.findIndex(({ outcome }) => outcome === 'created')]!;
    for (const [at, each] of outcomes.entries())
      t.strictSame(each, tries[at] === first ? { outcome: 'created' } : kept(first), 'one review is created');
    t.strictSame(await under(fresh('keyed-other'), 'other'), { outcome: 'key_reused' });
    const elsewhere = fresh('keyed-elsewhere', { proofId: second.proofId });
    t.strictSame(await under(elsewhere, 'elsewhere'), { outcome: 'key_reused' }, 'on another proof, too');
    t.equal(await stores.getReview(partnerId, elsewhere.reviewId, NOW), undefined);

    await resolve(first, 'rejected');
    const last = NOW + 86_400 - 1;
    const again = { ...fresh('keyed-again', { bindings }), createdAt: last };
    t.strictSame(await under(again, 'data'), kept(first), 'its place is free, and the key is not');
    const next = { ...again, createdAt: last + 1 };
    t.strictSame(await under(next, 'data'), { outcome: 'created' }, 'after 24 hours the key is free');
    const third = { ...again, reviewId: id('rev', 'keyed-third'), createdAt: last + 2 };
    t.strictSame(await under(third, 'data'), kept(next));
    t.strictSame(await under(fresh('keyed-other'), 'other', last + 2), { outcome: 'key_reused' });
    t.strictSame(await under(fresh('keyed-free'), 'data', NOW, 'keyed-free'), { outcome: 'created' });
  });

  await t.test('a creation that is refused does not bind its Idempotency-Key', async (t) => {
    const { stores } = opened();
    const owner = id('ptr', 'unbound');
    const under = (review: ReviewCase, data: string, key: string, perProof = 100) =>
      stores.createReview(review, NOW, audit(owner, 'review_created', review.reviewId), {
        bounds: { perProof, perPartner: 1000 },
        replay: {
          key: createHash('sha256').update(id('key', key)).digest('hex'),
          requestSha256: createHash('sha256').update(data).digest('hex'),
          expiresAt: NOW + 86_400,
        },
      });
    const own = (name: string, over: Partial<ReviewCase> = {}) => ({
      ...fresh(name, over),
      partnerId: owner,
    });
    const holder = own('unbound-holder');
    t.strictSame(await create(holder), { outcome: 'created' });
    const { bindings } = holder;
    t.strictSame(await under(own('unbound-same', { bindings }), 'same', 'unbound'), {
      outcome: 'exists',
      reviewId: holder.reviewId,
    });
    t.strictSame(await under(own('unbound-full'), 'full', 'unbound', 1), {
      outcome: 'full',
      until: holder.expiresAt,
    });
    t.strictSame(await under(own('unbound-made'), 'made', 'unbound'), { outcome: 'created' });
    t.strictSame(await under(own('unbound-late', { bindings }), 'same', 'unbound'), {
      outcome: 'key_reused',
    });
    // The losers of a race for one place, each under a key of its own, bind nothing either.
    const raced = own('unbound-raced').bindings;
    const outcomes = await Promise.all(
      Array.from({ length: 10 }, (_, at) =>
        under(own(`unbound-raced-${at}`, { bindings: raced }), 'raced', `unbound-${at}`),
      ),
    );
    for (const [at, { outcome }] of outcomes.entries())
      t.match(await under(own(`unbound-next-${at}`), 'next', `unbound-${at}`), {
        outcome: outcome === 'created' ? 'key_reused' : 'created',
      });
  });

  await t.test('a review ends after 180 days, to the second', async (t) => {
    const { stores } = opened();
    const review = fresh('expiry');
    await create(review);
    const last = review.expiresAt - 1;
    t.ok(await stores.getReview(partnerId, review.reviewId, last));
    t.equal(await stores.findReviewPartner(review.reviewId, last), partnerId);
    t.ok(await change(review, (current) => ({ review: current }), last));
    t.equal(await stores.getReview(partnerId, review.reviewId, review.expiresAt), undefined);
    t.equal(await stores.findReviewPartner(review.reviewId, review.expiresAt), undefined);
    t.equal(await resolve(review, 'accepted', review.expiresAt), undefined);
    const early = fresh('expiry-early', { bindings: review.bindings, createdAt: last });
    t.strictSame(await create(early), { outcome: 'exists', reviewId: review.reviewId });
    const next = fresh('expiry-next', { bindings: review.bindings, createdAt: review.expiresAt });
    t.strictSame(
      await create(next),
      { outcome: 'created' },
      'an expired review releases its bindings before it is collected',
    );

    const older = fresh('expiry-kept', { createdAt: NOW + 1 });
    await create(older);
    const keyed = fresh('expiry-keyed', { bindings: older.bindings, createdAt: older.expiresAt - 3600 });
    t.strictSame(await create(keyed, older.expiresAt - 1), { outcome: 'exists', reviewId: older.reviewId });
    t.strictSame(await create(keyed, older.expiresAt), { outcome: 'created' }, 'the time of the call counts');
    t.strictSame(await create(keyed, older.expiresAt + 1), kept(keyed), 'again is the same review');
    t.strictSame(await stores.getReview(partnerId, keyed.reviewId, older.expiresAt), keyed);

    const other = fresh('expiry-other', { createdAt: NOW + 100 });
    await create(other);
    const resolved = fresh('expiry-resolved', { createdAt: NOW + 100 });
    await create(resolved);
    await resolve(resolved, 'accepted', NOW + 101);
    const successor = fresh('expiry-successor', { bindings: resolved.bindings, createdAt: NOW + 200 });
    await create(successor);
    while ((await stores.collectExpired(other.expiresAt - 1, 100)) === 100);
    t.strictSame(await stores.getReview(partnerId, other.reviewId, other.expiresAt - 1), other);
    while ((await stores.collectExpired(other.expiresAt, 100)) === 100);
    t.equal(await stores.getReview(partnerId, other.reviewId, other.expiresAt - 1), undefined, 'swept');
    t.equal(await stores.getReview(partnerId, resolved.reviewId, other.expiresAt - 1), undefined);
    t.strictSame(await create(fresh('expiry-again', { bindings: other.bindings })), { outcome: 'created' });
    t.strictSame(
      await create(fresh('expiry-second', { bindings: resolved.bindings, createdAt: NOW + 201 })),
      { outcome: 'exists', reviewId: successor.reviewId },
      'a sweep does not free a place that is another’s',
    );
    t.strictSame(await stores.getReview(partnerId, next.reviewId, next.expiresAt - 1), next);
  });
}

function kept({ reviewId, createdAt }: ReviewCase): ReviewCreation {
  return { outcome: 'kept', reviewId, createdAt };
}
