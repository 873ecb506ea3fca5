import type { Test } from 'tap';
import { noticeDue, noticesOf, proofErased, reviewCreated, type ServiceEvent, unitsCounted, type UsageCount, type UsageEvent } from '../../src/domain/events.js';
import type { IssuedProof } from '../../src/domain/proof.js';
import type { Stores } from '../../src/ports/stores.js';
import { actionsOf } from './audit-contract.js';
import { audit, issuedProof, issuingReplay, NOW, partnerKey, reviewCase, uploadSlot, usageCharge } from './samples.js';
import type { Contract } from './suite.js';

const DAY = '2026-03-31';
const NEXT_DAY = '2026-04-01';

/** Everything that waits, oldest first; it is marked as published. */
export async function takeWaiting(stores: Stores): Promise<readonly ServiceEvent[]> {
  const taken: ServiceEvent[] = [];
  for (;;) {
    const waiting = await stores.waitingEvents(500);
    if (waiting.length === 0) return taken;
    taken.push(...waiting.map(({ event }) => event));
    await stores.markPublished(waiting);
  }
}

/** The usage events of a partner among these. */
export function usageOf(events: readonly ServiceEvent[], partnerId: string): readonly UsageEvent[] {
  return events.filter((event): event is UsageEvent => event.topic === 'usage' && event.key === partnerId);
}

/** Units by `day operation`. */
export function unitsOf(counts: readonly UsageCount[]): Readonly<Record<string, number>> {
  const units: Record<string, number> = {};
  for (const { day, operation, units: more } of counts) units[`${day} ${operation}`] = (units[`${day} ${operation}`] ?? 0) + more;
  return units;
}

/** Events written together with what they tell of, and what consumers do with them. */
export async function outboxContract(t: Test, contract: Contract): Promise<void> {
  const { opened, id } = contract;
  const issue = async (stores: Stores, name: string): Promise<IssuedProof> => {
    const proof = issuedProof(id('prf', name), id('ptr', name));
    await stores.reserveProof(proof.proofId, proof.partnerId, NOW);
    await stores.issueProof(proof, audit(proof.partnerId, 'proof_issued', proof.proofId));
    return proof;
  };
  const erase = (stores: Stores, { proofId, partnerId }: IssuedProof, at = NOW) => stores.eraseProof(proofId, partnerId, at, audit(partnerId, 'proof_erased', proofId));
  const dailyUnits = async (stores: Stores, partnerId: string) => {
    const days = await stores.getDailyUsage(partnerId, '2026-01-01', '2026-12-31');
    return unitsOf(days.flatMap(({ day, operations }) => Object.entries(operations).map(([operation, units]) => ({ day, operation, units }))));
  };
  /** Whole events, whose spans follow each other from the source's first number on. */
  const checkSpans = (t: Test, events: readonly UsageEvent[], source: string | undefined, counts: Readonly<Record<string, number>>) => {
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
        t.equal(data.counts.reduce((sum, { units }) => sum + units, 0), data.to - data.from, 'the numbers of what is billed are units');
      }
    }
    t.strictSame(unitsOf(events.flatMap(({ data }) => data.counts)), counts);
  };

  await t.test('an erasure and a new case leave their events, once', async (t) => {
    const { stores } = opened();
    await takeWaiting(stores);
    const proof = await issue(stores, 'told');
    const { proofId, partnerId } = proof;
    await stores.createKey(partnerKey(id('key', 'told'), partnerId), audit(partnerId, 'key_created', id('key', 'told')));
    await stores.createSlot(uploadSlot(id('upl', 'told')));
    t.strictSame(await takeWaiting(stores), [], 'of other changes nobody is told');

    const review = reviewCase(id('rev', 'told'), partnerId, proofId);
    const create = (over = {}) => stores.createReview({ ...review, ...over }, audit(partnerId, 'review_created', review.reviewId));
    t.equal((await create()).outcome, 'created');
    t.strictSame(await takeWaiting(stores), [reviewCreated(review)]);
    t.equal((await create()).outcome, 'created');
    t.equal((await create({ reviewId: id('rev', 'told-2') })).outcome, 'exists');
    t.equal((await create({ reviewId: id('rev', 'told-3'), proofId: id('prf', 'told-never') })).outcome, 'proof_gone');
    t.strictSame(await takeWaiting(stores), []);

    t.equal(await erase(stores, { ...proof, partnerId: id('ptr', 'told-other') }), 'not_found');
    t.strictSame(await takeWaiting(stores), []);
    t.match(await erase(stores, proof, NOW + 5), { outcome: 'erased' });
    t.strictSame(await takeWaiting(stores), [proofErased({ proofId, partnerId, erasedAt: NOW + 5 })]);
    t.match(await erase(stores, proof, NOW + 6), { outcome: 'already_erased' });
    t.strictSame(await takeWaiting(stores), []);
  });

  await t.test('every unit and every free count is in one event', async (t) => {
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
    t.strictSame(await takeWaiting(stores), [], 'what was not charged is not told');

    await charge('d', { at: NOW + 1 });
    const second = usageOf(await takeWaiting(stores), partnerId);
    checkSpans(t, second, 'billed/2026-04', { [`${NEXT_DAY} verify`]: 1 });
    await charge('e');
    const third = usageOf(await takeWaiting(stores), partnerId);
    t.match(third, [{ data: { source: 'billed/2026-03', from: 3, to: 4 } }], 'numbers go on where they were');

    const other = id('ptr', 'spans-2');
    await stores.meter([{ partnerId, operation: 'list_proofs', count: 2 }, { partnerId, operation: 'read_record', count: 1 }, { partnerId: other, operation: 'read_record', count: 4 }], NOW);
    await stores.meter([{ partnerId, operation: 'list_proofs', count: 5 }], NOW + 1);
    await stores.meter([], NOW);
    const free = await takeWaiting(stores);
    checkSpans(t, usageOf(free, partnerId), undefined, { [`${DAY} list_proofs`]: 2, [`${DAY} read_record`]: 1, [`${NEXT_DAY} list_proofs`]: 5 });
    checkSpans(t, usageOf(free, other), undefined, { [`${DAY} read_record`]: 4 });
  });

  await t.test('of parallel calls each change is told once', async (t) => {
    const { stores } = opened();
    await takeWaiting(stores);
    const proof = await issue(stores, 'crowd');
    const { proofId, partnerId } = proof;
    const reviews = Array.from({ length: 100 }, (_, i) => reviewCase(id('rev', `crowd-${i}`), partnerId, proofId));
    const created = await Promise.all(reviews.map((review) => stores.createReview(review, audit(partnerId, 'review_created', review.reviewId))));
    t.strictSame(await takeWaiting(stores), [reviewCreated(reviews[created.findIndex(({ outcome }) => outcome === 'created')]!)]);
    const erased = await Promise.all(reviews.map((_, i) => erase(stores, proof, NOW + i)));
    const first = erased.findIndex((each) => each !== 'not_found' && each.outcome === 'erased');
    t.strictSame(await takeWaiting(stores), [proofErased({ proofId, partnerId, erasedAt: NOW + first })]);

    const charger = id('ptr', 'crowd-charges');
    const charges = await Promise.all(Array.from({ length: 200 }, (_, i) => stores.charge(usageCharge(charger, `call-${Math.floor(i / 2)}`, { monthlyQuota: 50 }))));
    t.equal(charges.filter(({ outcome }) => outcome === 'charged').length, 50);
    checkSpans(t, usageOf(await takeWaiting(stores), charger), 'billed/2026-03', { [`${DAY} verify`]: 50 });
  });

  await t.test('events wait until they are marked', async (t) => {
    const { stores } = opened();
    await takeWaiting(stores);
    t.equal(stores.countWaiting(), 0);
    let called = 0;
    stores.onWaiting(() => called++);
    const partnerId = id('ptr', 'waits');
    for (let i = 0; i < 6; i++) await stores.charge(usageCharge(partnerId, `call-${i}`));
    const proof = await issue(stores, 'waits');
    await erase(stores, proof);
    t.ok(called > 0, 'the listener was told');
    const before = called;
    const all = await stores.waitingEvents(500);
    t.strictSame(await stores.waitingEvents(500), all, 'the same ones');
    t.equal(stores.countWaiting(), all.length);
    t.equal(new Set(all.map(({ position }) => position)).size, all.length);
    t.strictSame((await stores.waitingEvents(1)).length, 1, 'as many as were asked for');
    await t.resolves(stores.markPublished([]));

    const erasure = all.filter(({ event }) => event.topic === 'erasure');
    await stores.markPublished(erasure);
    const rest = await stores.waitingEvents(500);
    t.strictSame(rest.map(({ event }) => event), all.filter(({ event }) => event.topic === 'usage').map(({ event }) => event), 'those that were marked, and no others, are gone');
    checkSpans(t, usageOf(rest.map(({ event }) => event), partnerId), 'billed/2026-03', { [`${DAY} verify`]: 6 });
    t.equal(stores.countWaiting(), rest.length);
    await stores.markPublished([...erasure, ...rest]);
    t.strictSame(await stores.waitingEvents(500), [], 'marking again is harmless');
    t.equal(stores.countWaiting(), 0);
    await stores.charge(usageCharge(partnerId, 'later'));
    t.ok(called > before, 'and it is told again');
    t.equal((await stores.waitingEvents(500)).length, 1);
    stores.onWaiting(() => undefined);
  });

  await t.test('a full outbox takes nothing more', async (t) => {
    const bounded = await contract.open({ outboxLimit: 3 });
    t.teardown(() => bounded.close());
    const { stores } = bounded;
    await takeWaiting(stores);
    const kept = await issue(stores, 'bound-kept');
    const [one, two, late] = ['bound-1', 'bound-2', 'bound-late'].map((name) => id('ptr', name)) as [string, string, string];
    const review = reviewCase(id('rev', 'bound'), kept.partnerId, kept.proofId);
    const create = () => stores.createReview(review, audit(review.partnerId, 'review_created', review.reviewId));
    await stores.scheduleNotices(noticesOf(reviewCreated(review)), NOW);
    const notice = noticesOf(reviewCreated(review))[0]!;
    const settle = () => stores.settleNotice(notice, noticeDue(notice));

    await stores.charge(usageCharge(one, 'a'));
    await stores.charge(usageCharge(two, 'a'));
    await erase(stores, await issue(stores, 'bound-erased'));
    t.equal(stores.countWaiting(), 3);
    const full = { code: 'unavailable', reason: 'outbox_full' };
    await t.rejects(stores.charge(usageCharge(late, 'a')), full);
    await t.rejects(erase(stores, kept), full);
    await t.rejects(create(), full);
    await t.rejects(stores.meter([{ partnerId: late, operation: 'list_proofs', count: 1 }], NOW), full);
    await t.rejects(settle(), full);
    t.equal(await stores.getUsed(late, NOW), 0, 'nothing was charged');
    t.strictSame(await dailyUnits(stores, late), {});
    t.strictSame(await stores.getProof(kept.proofId), kept, 'nothing erased');
    t.equal(await stores.getReview(review.partnerId, review.reviewId, NOW), undefined, 'nothing created');
    t.strictSame(await actionsOf(bounded, kept.partnerId), ['proof_issued'], 'nor audited');
    t.equal((await stores.dueNotices(notice.dueAt, 500)).filter(({ reviewId }) => reviewId === review.reviewId).length, 1, 'nor settled');
    t.equal((await stores.waitingEvents(500)).length, 3);

    t.strictSame(await stores.charge(usageCharge(one, 'a')), { outcome: 'already_charged', used: 1 }, 'what adds no event is answered');
    t.strictSame(await stores.charge(usageCharge(late, 'a', { monthlyQuota: 0 })), { outcome: 'quota_exceeded', used: 0 });
    t.equal(await erase(stores, { ...kept, partnerId: late }), 'not_found');

    await stores.markPublished(await stores.waitingEvents(1));
    t.equal((await create()).outcome, 'created', 'marking made room for one');
    await t.rejects(stores.charge(usageCharge(late, 'a')), full);
    await takeWaiting(stores);
    t.strictSame(await stores.charge(usageCharge(late, 'a')), { outcome: 'charged', used: 1 });
    await settle();
    t.match(await erase(stores, kept), { outcome: 'erased' });
    t.strictSame((await takeWaiting(stores)).map((event) => event.id).sort(), [`proof_erased/${kept.proofId}`, `review_expiring/${review.reviewId}`, `units_counted/${late}/billed/2026-03/0`]);
    const last = noticesOf(reviewCreated(review))[1]!;
    await stores.settleNotice(last, undefined);
  });

  await t.test('parallel calls do not outrun the bound', async (t) => {
    const bounded = await contract.open({ outboxLimit: 10 });
    t.teardown(() => bounded.close());
    const { stores } = bounded;
    await takeWaiting(stores);
    const results = await Promise.allSettled(Array.from({ length: 40 }, (_, i) => stores.charge(usageCharge(id('ptr', `outrun-${i}`), 'a'))));
    const taken = results.filter(({ status }) => status === 'fulfilled').length;
    t.ok(taken > 0 && taken <= 10, `${taken} of 10`);
    for (const result of results) if (result.status === 'rejected') t.match(result.reason, { code: 'unavailable', reason: 'outbox_full' });
    t.equal((await takeWaiting(stores)).length, taken);
  });

  await t.test('folding: any order, any number of times, all at once', async (t) => {
    const { stores } = opened();
    await takeWaiting(stores);
    const partners = [id('ptr', 'fold-1'), id('ptr', 'fold-2')];
    const sources = ['billed/2026-03', 'billed/2026-04', `free/${id('process', 1)}`, `free/${id('process', 2)}`];
    const events = partners.flatMap((partnerId, p) =>
      sources.flatMap((source, s) => {
        let from = 0;
        return Array.from({ length: 8 }, (_, i) => {
          const counts = [{ day: s === 1 ? NEXT_DAY : DAY, operation: 'verify', units: 1 + ((i + s + p) % 3) }, { day: NEXT_DAY, operation: 'identify', units: 2 }];
          const event = unitsCounted({ partnerId, source, from, to: from + 2 + counts[0]!.units, counts }, NOW);
          from = event.data.to;
          return event;
        });
      }),
    );
    const total = (of: readonly UsageEvent[], partnerId: string) => unitsOf(of.filter(({ key }) => key === partnerId).flatMap(({ data }) => data.counts));
    const agree = async (folded: readonly UsageEvent[], why: string) => {
      for (const partnerId of partners) t.strictSame(await dailyUnits(stores, partnerId), total(folded, partnerId), why);
    };
    const odd = events.filter((_, i) => i % 2 === 1);
    await stores.foldUsage(odd.toReversed());
    await agree(odd, 'later ones first, with gaps between them');
    await stores.foldUsage([...odd, odd[0]!]);
    await agree(odd, 'again');
    const shuffled = events.map((event, i) => ({ event, order: (i * 37) % 64 })).sort((a, b) => a.order - b.order).map(({ event }) => event);
    await Promise.all([shuffled, shuffled.toReversed(), events.slice(0, 40), events.slice(20), events.filter((_, i) => i % 3 === 0)].map((batch) => stores.foldUsage(batch)));
    await agree(events, 'overlapping batches at once');
    await stores.foldUsage([]);
    await Promise.all(events.slice(0, 8).map((event) => stores.foldUsage([event])));
    await agree(events, 'one by one');
    t.equal(await stores.getUsed(partners[0]!, NOW), 0, 'the quota’s count is not the consumers’ to move');
    t.strictSame(await takeWaiting(stores), [], 'folding tells nobody');
  });

  await t.test('what is folded is what was counted: a read is exact before, between and after', async (t) => {
    const { stores } = opened();
    await takeWaiting(stores);
    const partnerId = id('ptr', 'live');
    const expected = { [`${DAY} verify`]: 4, [`${DAY} identify`]: 1, [`${NEXT_DAY} verify`]: 1, [`${DAY} list_proofs`]: 7 };
    for (const [dedupeKey, over] of [['a', {}], ['b', {}], ['c', { operation: 'identify' }], ['d', {}], ['e', {}], ['f', { at: NOW + 1 }]] as const) await stores.charge(usageCharge(partnerId, dedupeKey, over));
    await stores.meter([{ partnerId, operation: 'list_proofs', count: 7 }], NOW);
    t.strictSame(await dailyUnits(stores, partnerId), expected, 'nothing was folded yet');
    const waiting = await stores.waitingEvents(500);
    const events = usageOf(waiting.map(({ event }) => event), partnerId);
    await stores.foldUsage(events.slice(-1));
    t.strictSame(await dailyUnits(stores, partnerId), expected, 'folded before it was marked');
    await stores.markPublished(waiting);
    t.strictSame(await dailyUnits(stores, partnerId), expected, 'marked, and on its way');
    for (const event of events.toReversed()) {
      await stores.foldUsage([event]);
      t.strictSame(await dailyUnits(stores, partnerId), expected);
    }
    await stores.foldUsage(events);
    t.strictSame(await dailyUnits(stores, partnerId), expected, 'all was folded');
    await stores.charge(usageCharge(partnerId, 'g'));
    t.strictSame(await dailyUnits(stores, partnerId), { ...expected, [`${DAY} verify`]: 5 }, 'and it goes on');
    t.equal(await stores.getUsed(partnerId, NOW), 6);
    await stores.foldUsage(usageOf(await takeWaiting(stores), partnerId));
    t.strictSame(await dailyUnits(stores, partnerId), { ...expected, [`${DAY} verify`]: 5 });
  });

  await t.test('reads while charges, marks and folds go on', async (t) => {
    const { stores } = opened();
    await takeWaiting(stores);
    const partnerId = id('ptr', 'busy');
    const ended = { charges: false, relay: false };
    let begun = 0;
    let done = 0;
    const charger = async (name: number) => {
      for (let i = 0; i < 30; i++) {
        begun++;
        await stores.charge(usageCharge(partnerId, `${name}-${i}`));
        done++;
      }
    };
    const relay = async () => {
      const folds: Promise<void>[] = [];
      for (;;) {
        const last = ended.charges;
        const waiting = await stores.waitingEvents(7);
        const events = usageOf(waiting.map(({ event }) => event), partnerId);
        // Delivered before or after the mark, and twice.
        folds.push(stores.foldUsage(events));
        await stores.markPublished(waiting);
        folds.push(stores.foldUsage(events.toReversed()));
        if (last && waiting.length === 0) break;
      }
      await Promise.all(folds);
      ended.relay = true;
    };
    const wrong: string[] = [];
    let reads = 0;
    const reader = async () => {
      while (!ended.relay) {
        const least = done;
        const read = (await dailyUnits(stores, partnerId))[`${DAY} verify`] ?? 0;
        if (read < least || read > begun) wrong.push(`${read}, between ${least} and ${begun}`);
        reads++;
      }
    };
    await Promise.all([Promise.all(Array.from({ length: 8 }, (_, i) => charger(i))).then(() => (ended.charges = true)), relay(), reader()]);
    t.strictSame(wrong, [], `${reads} reads`);
    t.strictSame(await dailyUnits(stores, partnerId), { [`${DAY} verify`]: 240 });
    t.equal(await stores.getUsed(partnerId, NOW), 240);
  });

  await t.test('notices: in the order of time, until they are settled', async (t) => {
    const { stores } = opened();
    await takeWaiting(stores);
    const reviews = [40, 20, 30].map((after, i) => reviewCase(id('rev', `notice-${i}`), id('ptr', 'notice'), id('prf', 'notice'), { createdAt: NOW + after }));
    const notices = reviews.flatMap((review) => noticesOf(reviewCreated(review)));
    const own = new Set(reviews.map(({ reviewId }) => reviewId));
    const due = async (now: number) => (await stores.dueNotices(now, 500)).filter(({ reviewId }) => own.has(reviewId));
    const byTime = notices.toSorted((a, b) => a.dueAt - b.dueAt);
    await stores.scheduleNotices(notices, NOW);
    await Promise.all([stores.scheduleNotices(notices, NOW + 1), stores.scheduleNotices(notices.slice(2), NOW + 2)]);
    await stores.scheduleNotices([], NOW);
    t.strictSame(await due(byTime[0]!.dueAt - 1), []);
    t.strictSame(await due(byTime[0]!.dueAt), byTime.slice(0, 1), 'due at its own second');
    t.strictSame(await due(byTime[2]!.dueAt), byTime.slice(0, 3));
    t.strictSame(await due(byTime[5]!.dueAt + 1), byTime, 'each once, however often it was scheduled');
    t.equal((await stores.dueNotices(byTime[5]!.dueAt, 2)).length, 2);

    await stores.settleNotice(byTime[0]!, undefined);
    t.strictSame(await takeWaiting(stores), [], 'one of which nobody is told');
    const [, told] = byTime as [unknown, (typeof byTime)[number]];
    await stores.settleNotice(told, noticeDue(told));
    const waiting = await takeWaiting(stores);
    t.strictSame(waiting, [noticeDue(told)]);
    t.equal(waiting[0]?.id, `review_expiring/${told.reviewId}`);
    t.strictSame(await due(byTime[5]!.dueAt), byTime.slice(2));
    await stores.settleNotice(byTime[0]!, undefined);
    await stores.settleNotice(told, noticeDue(told));
    for (const event of await takeWaiting(stores)) t.strictSame(event, noticeDue(told), 'again, at most the same event');
    t.strictSame(await due(byTime[5]!.dueAt), byTime.slice(2));
    await Promise.all(byTime.slice(2).map((notice) => stores.settleNotice(notice, noticeDue(notice))));
    t.strictSame(await due(byTime[5]!.dueAt), []);
    t.strictSame((await takeWaiting(stores)).map((event) => event.id).sort(), byTime.slice(2).map((notice) => noticeDue(notice).id).sort());

    const late = reviewCase(id('rev', 'notice-late'), id('ptr', 'notice'), id('prf', 'notice'), { createdAt: NOW - 400 * 86_400 });
    own.add(late.reviewId);
    const overdue = noticesOf(reviewCreated(late));
    await stores.scheduleNotices(overdue, NOW);
    t.strictSame(await due(NOW), overdue, 'late ones are due at once');
    for (const notice of overdue) await stores.settleNotice(notice, undefined);
    t.strictSame(await due(NOW), []);
  });

  await t.test('an erasure is confirmed once', async (t) => {
    const { stores } = opened();
    await takeWaiting(stores);
    const proof = await issue(stores, 'confirm');
    const { proofId, partnerId } = proof;
    t.equal(await stores.confirmErasure(id('prf', 'confirm-never'), NOW), 'not_erased');
    t.equal(await stores.confirmErasure(proofId, NOW), 'not_erased');
    t.strictSame(await stores.getProof(proofId), proof, 'and it was not touched');
    await stores.reserveProof(id('prf', 'confirm-pending'), partnerId, NOW);
    t.equal(await stores.confirmErasure(id('prf', 'confirm-pending'), NOW), 'not_erased');

    await erase(stores, proof);
    const tombstone = { state: 'erased', proofId, partnerId, erasedAt: NOW };
    t.strictSame(await stores.getProof(proofId), tombstone);
    const outcomes = await Promise.all(Array.from({ length: 20 }, (_, i) => stores.confirmErasure(proofId, NOW + 10 + i)));
    t.equal(outcomes.filter((outcome) => outcome === 'confirmed').length, 1);
    const confirmed = { ...tombstone, confirmedAt: NOW + 10 + outcomes.indexOf('confirmed') };
    t.strictSame(await stores.getProof(proofId), confirmed);
    t.equal(await stores.confirmErasure(proofId, NOW + 100), 'already_confirmed');
    t.strictSame(await stores.getProof(proofId), confirmed, 'the first time stays');
    t.strictSame(await erase(stores, proof, NOW + 200), { outcome: 'already_erased', proof: confirmed });
    t.strictSame((await takeWaiting(stores)).map((event) => event.id), [`proof_erased/${proofId}`], 'confirming tells nobody');
    t.strictSame(await actionsOf(opened(), partnerId), ['proof_issued', 'proof_erased']);
    await t.rejects(stores.issueProof(proof, audit(partnerId, 'proof_issued', proofId), issuingReplay(id('replay', 'confirm'), proofId)), { code: 'conflict' });
  });
}
