import type { Test } from 'tap';
import {
  proofErased,
  reminderDue,
  remindersOf,
  reviewCreated,
  type ServiceEvent,
  type UsageCount,
  type UsageEvent,
  unitsCounted,
} from '../../src/service/domain/events.js';
import type { IssuedProof } from '../../src/service/domain/proof.js';
import type { Stores } from '../../src/service/ports/stores.js';
import { actionsOf } from './audit-contract.js';
import {
  audit,
  issuedProof,
  NOW,
  nextBatch,
  partnerKey,
  reviewCase,
  uploadSlot,
  usageCharge,
} from './samples.js';
import type { Contract } from './suite.js';

export const DAY = '2026-03-31';
export const NEXT_DAY = '2026-04-01';

/** Returns all waiting events, oldest first, and marks them as published. */
export async function takeWaiting(stores: Stores): Promise<readonly ServiceEvent[]> {
  const taken: ServiceEvent[] = [];
  for (;;) {
    const waiting = await stores.waitingEvents(500);
    if (waiting.length === 0) return taken;
    taken.push(...waiting.map(({ event }) => event));
    await stores.markPublished(waiting);
  }
}

/** Returns the usage events of a partner among the events. */
export function usageOf(events: readonly ServiceEvent[], partnerId: string): readonly UsageEvent[] {
  return events.filter((event): event is UsageEvent => event.topic === 'usage' && event.key === partnerId);
}

/** Returns the units by `day operation`. */
export function unitsOf(counts: readonly UsageCount[]): Readonly<Record<string, number>> {
  const units: Record<string, number> = {};
  for (const { day, operation, units: more } of counts)
    units[`${day} ${operation}`] = (units[`${day} ${operation}`] ?? 0) + more;
  return units;
}

/** Issues a proof of a partner of the same name. */
export async function issueProof({ id }: Contract, stores: Stores, name: string): Promise<IssuedProof> {
  const proof = issuedProof(id('prf', name), id('ptr', name));
  await stores.reserveProof(proof.proofId, proof.partnerId, NOW);
  await stores.issueProof(proof, audit(proof.partnerId, 'proof_issued', proof.proofId));
  return proof;
}

export function eraseProof(
  stores: Stores,
  { proofId, partnerId }: IssuedProof,
  at = NOW,
): ReturnType<Stores['eraseProof']> {
  return stores.eraseProof(proofId, partnerId, at, audit(partnerId, 'proof_erased', proofId));
}

/** Reads the units of a partner's days, in the form of `unitsOf`. */
export async function dailyUnits(
  stores: Stores,
  partnerId: string,
): Promise<Readonly<Record<string, number>>> {
  const days = await stores.getDailyUsage(partnerId, '2026-01-01', '2026-12-31');
  return unitsOf(
    days.flatMap(({ day, operations }) =>
      Object.entries(operations).map(([operation, units]) => ({ day, operation, units })),
    ),
  );
}

/** Tests that events are written together with the change that they report, and wait in the outbox. */
export async function outboxContract(t: Test, contract: Contract): Promise<void> {
  const { opened, id } = contract;
  const issue = (stores: Stores, name: string) => issueProof(contract, stores, name);
  /**
   * Tests that events are whole and that their intervals follow each other from the source's first number on.
   */
  const checkSpans = (
    t: Test,
    events: readonly UsageEvent[],
    source: string | undefined,
    counts: Readonly<Record<string, number>>,
  ) => {
    let position = 0;
    for (const event of events) {
      const { data, at } = event;
      t.strictSame(event, unitsCounted(data, at));
      t.equal(event.id, `units_counted/${data.partnerId}/${data.source}/${data.from}`);
      t.equal(data.from, position, 'in the order of their key, without gap or overlap');
      t.ok(data.to > data.from);
      position = data.to;
      if (source === undefined) t.match(data.source, /^free\/[^/]+$/);
      else {
        t.equal(data.source, source);
        t.equal(
          data.counts.reduce((sum, { units }) => sum + units, 0),
          data.to - data.from,
          'the numbers of what is billed are units',
        );
      }
    }
    t.strictSame(unitsOf(events.flatMap(({ data }) => data.counts)), counts);
  };

  await t.test('an erasure and a new review each leave one event', async (t) => {
    const { stores } = opened();
    await takeWaiting(stores);
    const proof = await issue(stores, 'announced');
    const { proofId, partnerId } = proof;
    await stores.createKey(
      partnerKey(id('key', 'announced'), partnerId),
      audit(partnerId, 'key_created', id('key', 'announced')),
    );
    await stores.createSlot(uploadSlot(id('upl', 'announced')));
    t.strictSame(await takeWaiting(stores), [], 'other changes have no event');

    const review = reviewCase(id('rev', 'announced'), partnerId, proofId);
    const create = (over = {}) =>
      stores.createReview({ ...review, ...over }, NOW, audit(partnerId, 'review_created', review.reviewId));
    t.equal((await create()).outcome, 'created');
    t.strictSame(await takeWaiting(stores), [reviewCreated(review)]);
    t.equal((await create()).outcome, 'kept');
    t.equal((await create({ reviewId: id('rev', 'announced-2') })).outcome, 'exists');
    t.equal(
      (await create({ reviewId: id('rev', 'announced-3'), proofId: id('prf', 'announced-never') })).outcome,
      'proof_gone',
    );
    t.strictSame(await takeWaiting(stores), []);

    t.equal(await eraseProof(stores, { ...proof, partnerId: id('ptr', 'announced-other') }), 'not_found');
    t.strictSame(await takeWaiting(stores), []);
    t.match(await eraseProof(stores, proof, NOW + 5), { outcome: 'erased' });
    t.strictSame(await takeWaiting(stores), [proofErased({ proofId, partnerId, erasedAt: NOW + 5 })]);
    t.match(await eraseProof(stores, proof, NOW + 6), { outcome: 'already_erased' });
    t.strictSame(await takeWaiting(stores), []);
  });

  await t.test('every unit and every free call is in exactly one event', async (t) => {
    const { stores } = opened();
    await takeWaiting(stores);
    const partnerId = id('ptr', 'spans');
    const charge = (dedupeKey: string, over = {}) => stores.charge(usageCharge(partnerId, dedupeKey, over));
    await charge('a');
    await charge('b', { operation: 'identify' });
    await charge('c');
    const first = usageOf(await takeWaiting(stores), partnerId);
    checkSpans(t, first, 'billed/2026-03', { [`${DAY} verify`]: 2, [`${DAY} identify`]: 1 });
    t.equal(first.at(-1)?.data.to, 3);
    t.equal((await charge('a')).outcome, 'already_charged');
    t.equal((await charge('d', { monthlyQuota: 3 })).outcome, 'quota_exceeded');
    t.strictSame(await takeWaiting(stores), [], 'a call that was not charged has no event');

    await charge('d', { at: NOW + 1 });
    const second = usageOf(await takeWaiting(stores), partnerId);
    checkSpans(t, second, 'billed/2026-04', { [`${NEXT_DAY} verify`]: 1 });
    await charge('e');
    const third = usageOf(await takeWaiting(stores), partnerId);
    t.match(third, [{ data: { source: 'billed/2026-03', from: 3, to: 4 } }], 'numbers go on where they were');

    const other = id('ptr', 'spans-2');
    await stores.meter(
      [
        { partnerId, operation: 'list_proofs', count: 2 },
        { partnerId, operation: 'read_record', count: 1 },
        { partnerId: other, operation: 'read_record', count: 4 },
      ],
      NOW,
      nextBatch(),
    );
    await stores.meter([{ partnerId, operation: 'list_proofs', count: 5 }], NOW + 1, nextBatch());
    await stores.meter([], NOW, nextBatch());
    const free = await takeWaiting(stores);
    checkSpans(t, usageOf(free, partnerId), undefined, {
      [`${DAY} list_proofs`]: 2,
      [`${DAY} read_record`]: 1,
      [`${NEXT_DAY} list_proofs`]: 5,
    });
    checkSpans(t, usageOf(free, other), undefined, { [`${DAY} read_record`]: 4 });
  });

  await t.test('parallel calls publish each change once', async (t) => {
    const { stores } = opened();
    await takeWaiting(stores);
    const proof = await issue(stores, 'crowd');
    const { proofId, partnerId } = proof;
    const reviews = Array.from({ length: 100 }, (_, i) =>
      reviewCase(id('rev', `crowd-${i}`), partnerId, proofId),
    );
    const created = await Promise.all(
      reviews.map((review) =>
        stores.createReview(review, review.createdAt, audit(partnerId, 'review_created', review.reviewId)),
      ),
    );
    t.strictSame(await takeWaiting(stores), [
      reviewCreated(reviews[created.findIndex(({ outcome }) => outcome === 'created')]!),
    ]);
    const erased = await Promise.all(reviews.map((_, i) => eraseProof(stores, proof, NOW + i)));
    const first = erased.findIndex((each) => each !== 'not_found' && each.outcome === 'erased');
    t.strictSame(await takeWaiting(stores), [proofErased({ proofId, partnerId, erasedAt: NOW + first })]);

    const charger = id('ptr', 'crowd-charges');
    const charges = await Promise.all(
      Array.from({ length: 200 }, (_, i) =>
        stores.charge(usageCharge(charger, `call-${Math.floor(i / 2)}`, { monthlyQuota: 50 })),
      ),
    );
    t.equal(charges.filter(({ outcome }) => outcome === 'charged').length, 50);
    checkSpans(t, usageOf(await takeWaiting(stores), charger), 'billed/2026-03', { [`${DAY} verify`]: 50 });
  });

  await t.test('events wait until they are marked as published', async (t) => {
    const { stores } = opened();
    await takeWaiting(stores);
    t.equal(stores.countWaiting(), 0);
    let called = 0;
    stores.onWaiting(() => called++);
    const partnerId = id('ptr', 'waits');
    for (let i = 0; i < 6; i += 1) await stores.charge(usageCharge(partnerId, `call-${i}`));
    const proof = await issue(stores, 'waits');
    await eraseProof(stores, proof);
    t.ok(called > 0, 'the listener was called');
    const before = called;
    const all = await stores.waitingEvents(500);
    t.strictSame(await stores.waitingEvents(500), all, 'the same ones');
    t.equal(stores.countWaiting(), all.length);
    t.equal(new Set(all.map(({ rowKey }) => rowKey)).size, all.length);
    t.strictSame((await stores.waitingEvents(1)).length, 1, 'as many as were asked for');
    await t.resolves(stores.markPublished([]));

    const erasure = all.filter(({ event }) => event.topic === 'erasure');
    await stores.markPublished(erasure);
    const rest = await stores.waitingEvents(500);
    t.strictSame(
      rest.map(({ event }) => event),
      all.filter(({ event }) => event.topic === 'usage').map(({ event }) => event),
      'those that were marked, and no others, are gone',
    );
    checkSpans(
      t,
      usageOf(
        rest.map(({ event }) => event),
        partnerId,
      ),
      'billed/2026-03',
      { [`${DAY} verify`]: 6 },
    );
    t.equal(stores.countWaiting(), rest.length);
    await stores.markPublished([...erasure, ...rest]);
    t.strictSame(await stores.waitingEvents(500), [], 'marking again is harmless');
    t.equal(stores.countWaiting(), 0);
    await stores.charge(usageCharge(partnerId, 'later'));
    t.ok(called > before, 'and it is called again');
    t.equal((await stores.waitingEvents(500)).length, 1);
    stores.onWaiting(() => undefined);
  });

  await t.test('a full outbox refuses what would add an event, before anything changes', async (t) => {
    const bounded = await contract.open({ outboxLimit: 3 });
    t.teardown(() => bounded.close());
    const { stores, refusesCharges } = bounded;
    await takeWaiting(stores);
    const kept = await issue(stores, 'bound-kept');
    const [one, two, late] = ['bound-1', 'bound-2', 'bound-late'].map((name) => id('ptr', name)) as [
      string,
      string,
      string,
    ];
    const review = reviewCase(id('rev', 'bound'), kept.partnerId, kept.proofId);
    const create = () =>
      stores.createReview(
        review,
        review.createdAt,
        audit(review.partnerId, 'review_created', review.reviewId),
      );
    await stores.scheduleReminders(remindersOf(reviewCreated(review)), NOW);
    const notice = remindersOf(reviewCreated(review))[0]!;
    const settle = () => stores.completeReminder(notice, reminderDue(notice));

    const three = id('ptr', 'bound-3');
    for (const partnerId of [one, two, three]) await stores.charge(usageCharge(partnerId, 'a'));
    t.equal(stores.countWaiting('usage'), 3);
    const full = { code: 'unavailable', reason: 'outbox_full' };
    if (refusesCharges) await t.rejects(stores.charge(usageCharge(late, 'a')), full);
    await t.rejects(
      stores.meter([{ partnerId: late, operation: 'list_proofs', count: 1 }], NOW, nextBatch()),
      full,
    );
    for (const name of ['bound-erased-1', 'bound-erased-2', 'bound-erased-3'])
      t.match(
        await eraseProof(stores, await issue(stores, name)),
        { outcome: 'erased' },
        'charges at their bound refuse no erasure',
      );
    const others = ['bound-other-1', 'bound-other-2', 'bound-other-3'].map((name) =>
      remindersOf(reviewCreated(reviewCase(id('rev', name), kept.partnerId, kept.proofId))),
    );
    for (const [first, last] of others) {
      await stores.scheduleReminders([first!], NOW);
      await stores.completeReminder(first!, reminderDue(last!));
    }
    t.strictSame(
      [stores.countWaiting('erasure'), stores.countWaiting('retention'), stores.countWaiting()],
      [3, 3, 9],
    );
    await t.rejects(eraseProof(stores, kept), full);
    await t.rejects(create(), full);
    await t.rejects(settle(), full);
    t.equal(await stores.getUsed(late, NOW), 0, 'nothing was charged');
    t.strictSame(await dailyUnits(stores, late), {});
    t.strictSame(await stores.getProof(kept.proofId), kept, 'nothing erased');
    t.equal(await stores.getReview(review.partnerId, review.reviewId, NOW), undefined, 'nothing created');
    t.strictSame(await actionsOf(bounded, kept.partnerId), ['proof_issued'], 'nor audited');
    t.equal(
      (await stores.dueReminders(notice.dueAt, 500)).filter(({ reviewId }) => reviewId === review.reviewId)
        .length,
      1,
      'nor completed',
    );
    t.equal((await stores.waitingEvents(500)).length, 9);
    t.strictSame(
      (await stores.waitingEvents(2, ({ topic }) => topic !== 'retention')).map(({ event }) => event.topic),
      ['retention', 'retention'],
      'those after others that are held back',
    );

    t.strictSame(
      await stores.charge(usageCharge(one, 'a')),
      { outcome: 'already_charged', used: 1 },
      'what adds no event is answered',
    );
    t.strictSame(await stores.charge(usageCharge(late, 'a', { monthlyQuota: 0 })), {
      outcome: 'quota_exceeded',
      used: 0,
    });
    t.equal(await eraseProof(stores, { ...kept, partnerId: late }), 'not_found');

    const promised = await issue(stores, 'bound-promised');
    const { proofId, partnerId } = promised;
    t.match(
      await stores.eraseProof(proofId, partnerId, NOW, audit(partnerId, 'proof_erased', proofId), 'bypass'),
      { outcome: 'erased' },
      'what was promised before is kept',
    );
    t.equal(stores.countWaiting('erasure'), 4);
    const extra = (await stores.waitingEvents(500)).filter(
      ({ event }) => event.id === `proof_erased/${proofId}`,
    );
    t.equal(extra.length, 1);
    await stores.markPublished(extra);

    await stores.markPublished(await stores.waitingEvents(1, ({ topic }) => topic !== 'retention'));
    t.equal((await create()).outcome, 'created', 'marking made room for one');
    if (refusesCharges) await t.rejects(stores.charge(usageCharge(late, 'a')), full);
    await takeWaiting(stores);
    t.strictSame(await stores.charge(usageCharge(late, 'a')), { outcome: 'charged', used: 1 });
    await settle();
    t.match(await eraseProof(stores, kept), { outcome: 'erased' });
    t.strictSame((await takeWaiting(stores)).map((event) => event.id).sort(), [
      `proof_erased/${kept.proofId}`,
      `review_expiring/${review.reviewId}`,
      `units_counted/${late}/billed/2026-03/0`,
    ]);
    const last = remindersOf(reviewCreated(review))[1]!;
    await stores.completeReminder(last, undefined);
  });

  await t.test('parallel calls do not pass the outbox’s bound', async (t) => {
    const bounded = await contract.open({ outboxLimit: 10 });
    t.teardown(() => bounded.close());
    const { stores, refusesCharges } = bounded;
    await takeWaiting(stores);
    const results = await Promise.allSettled(
      Array.from({ length: 40 }, (_, i) => stores.charge(usageCharge(id('ptr', `outrun-${i}`), 'a'))),
    );
    const taken = results.filter(({ status }) => status === 'fulfilled').length;
    if (refusesCharges) t.ok(taken > 0 && taken <= 10, `${taken} of 10`);
    else t.equal(taken, 40, 'none is refused');
    for (const result of results)
      if (result.status === 'rejected')
        t.match(result.reason, { code: 'unavailable', reason: 'outbox_full' });
    const waiting = (await takeWaiting(stores)).length;
    if (refusesCharges) t.equal(waiting, taken);
    else t.ok(waiting > 0 && waiting <= 10, `${waiting} of 10 wait`);
  });
}
