import type { Test } from 'tap';
import {
  reminderDue,
  remindersOf,
  reviewCreated,
  type UsageEvent,
  unitsCounted,
} from '../../src/service/domain/events.js';
import { actionsOf } from './audit-contract.js';
import {
  DAY,
  dailyUnits,
  eraseProof,
  issueProof,
  NEXT_DAY,
  takeWaiting,
  unitsOf,
  usageOf,
} from './outbox-contract.js';
import { audit, issuingReplay, NOW, nextBatch, reviewCase, usageCharge } from './samples.js';
import type { Contract } from './suite.js';

/** Calls of the consumers of events: aggregating usage, announcing reviews in time, confirming erasures. */
export async function consumerContract(t: Test, contract: Contract): Promise<void> {
  const { opened, id } = contract;

  await t.test('events aggregated in any order, repeatedly and at once count once', async (t) => {
    const { stores } = opened();
    await takeWaiting(stores);
    const partners = [id('ptr', 'fold-1'), id('ptr', 'fold-2')];
    const sources = [
      'billed/2026-03',
      'billed/2026-04',
      `free/${id('process', 1)}`,
      `free/${id('process', 2)}`,
    ];
    const events = partners.flatMap((partnerId, p) =>
      sources.flatMap((source, s) => {
        let from = 0;
        return Array.from({ length: 8 }, (_, i) => {
          const counts = [
            { day: s === 1 ? NEXT_DAY : DAY, operation: 'verify', units: 1 + ((i + s + p) % 3) },
            { day: NEXT_DAY, operation: 'identify', units: 2 },
          ];
          const event = unitsCounted(
            { partnerId, source, from, to: from + 2 + counts[0]!.units, counts },
            NOW,
          );
          from = event.data.to;
          return event;
        });
      }),
    );
    const total = (of: readonly UsageEvent[], partnerId: string) =>
      unitsOf(of.filter(({ key }) => key === partnerId).flatMap(({ data }) => data.counts));
    const agree = async (aggregated: readonly UsageEvent[], why: string) => {
      for (const partnerId of partners)
        t.strictSame(await dailyUnits(stores, partnerId), total(aggregated, partnerId), why);
    };
    const odd = events.filter((_, i) => i % 2 === 1);
    await stores.aggregateUsage(odd.toReversed());
    await agree(odd, 'later ones first, with gaps between them');
    await stores.aggregateUsage([...odd, odd[0]!]);
    await agree(odd, 'again');
    const shuffled = events
      .map((event, i) => ({ event, order: (i * 37) % 64 }))
      .sort((a, b) => a.order - b.order)
      .map(({ event }) => event);
    await Promise.all(
      [
        shuffled,
        shuffled.toReversed(),
        events.slice(0, 40),
        events.slice(20),
        events.filter((_, i) => i % 3 === 0),
      ].map((batch) => stores.aggregateUsage(batch)),
    );
    await agree(events, 'overlapping batches at once');
    await stores.aggregateUsage([]);
    await Promise.all(events.slice(0, 8).map((event) => stores.aggregateUsage([event])));
    await agree(events, 'one by one');
    t.equal(await stores.getUsed(partners[0]!, NOW), 0, 'the quota’s count is not the consumers’ to move');
    t.strictSame(await takeWaiting(stores), [], 'folding publishes nothing');
  });

  await t.test('usage reads are exact before, during and after aggregation', async (t) => {
    const { stores } = opened();
    await takeWaiting(stores);
    const partnerId = id('ptr', 'live');
    const expected = {
      [`${DAY} verify`]: 4,
      [`${DAY} identify`]: 1,
      [`${NEXT_DAY} verify`]: 1,
      [`${DAY} list_proofs`]: 7,
    };
    for (const [dedupeKey, over] of [
      ['a', {}],
      ['b', {}],
      ['c', { operation: 'identify' }],
      ['d', {}],
      ['e', {}],
      ['f', { at: NOW + 1 }],
    ] as const)
      await stores.charge(usageCharge(partnerId, dedupeKey, over));
    await stores.meter([{ partnerId, operation: 'list_proofs', count: 7 }], NOW, nextBatch());
    const waiting = await stores.waitingEvents(500);
    const events = usageOf(
      waiting.map(({ event }) => event),
      partnerId,
    );
    // A store promises only the aggregated counts of free calls.
    await stores.aggregateUsage(events.filter(({ data }) => data.source.startsWith('free/')));
    t.strictSame(await dailyUnits(stores, partnerId), expected, 'nothing that was charged was folded yet');
    await stores.aggregateUsage(events.slice(-1));
    t.strictSame(await dailyUnits(stores, partnerId), expected, 'aggregated before the mark');
    await stores.markPublished(waiting);
    t.strictSame(await dailyUnits(stores, partnerId), expected, 'marked, and on its way');
    for (const event of events.toReversed()) {
      await stores.aggregateUsage([event]);
      t.strictSame(await dailyUnits(stores, partnerId), expected);
    }
    await stores.aggregateUsage(events);
    t.strictSame(await dailyUnits(stores, partnerId), expected, 'all was aggregated');
    await stores.charge(usageCharge(partnerId, 'g'));
    t.strictSame(
      await dailyUnits(stores, partnerId),
      { ...expected, [`${DAY} verify`]: 5 },
      'and it goes on',
    );
    t.equal(await stores.getUsed(partnerId, NOW), 6);
    await stores.aggregateUsage(usageOf(await takeWaiting(stores), partnerId));
    t.strictSame(await dailyUnits(stores, partnerId), { ...expected, [`${DAY} verify`]: 5 });
  });

  await t.test('usage reads are exact while charges, marks and aggregation go on', async (t) => {
    const { stores } = opened();
    await takeWaiting(stores);
    const partnerId = id('ptr', 'busy');
    const ended = { charges: false, relay: false };
    let begun = 0;
    let done = 0;
    const charger = async (name: number) => {
      for (let i = 0; i < 30; i += 1) {
        begun += 1;
        await stores.charge(usageCharge(partnerId, `${name}-${i}`));
        done += 1;
      }
    };
    const relay = async () => {
      const folds: Promise<void>[] = [];
      for (;;) {
        const last = ended.charges;
        const waiting = await stores.waitingEvents(7);
        const events = usageOf(
          waiting.map(({ event }) => event),
          partnerId,
        );
        // Events are delivered before or after the mark, and twice.
        folds.push(stores.aggregateUsage(events));
        await stores.markPublished(waiting);
        folds.push(stores.aggregateUsage(events.toReversed()));
        if (last && waiting.length === 0) break;
        // A store that holds the events in memory answers at once; other work would never have its turn.
        if (waiting.length === 0) await new Promise((resolve) => setImmediate(resolve));
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
        reads += 1;
      }
    };
    await Promise.all([
      Promise.all(Array.from({ length: 8 }, (_, i) => charger(i))).then(() => (ended.charges = true)),
      relay(),
      reader(),
    ]);
    t.strictSame(wrong, [], `${reads} reads`);
    t.strictSame(await dailyUnits(stores, partnerId), { [`${DAY} verify`]: 240 });
    t.equal(await stores.getUsed(partnerId, NOW), 240);
  });

  await t.test('reminders come in the order of time until they are completed', async (t) => {
    const { stores } = opened();
    await takeWaiting(stores);
    const reviews = [40, 20, 30].map((after, i) =>
      reviewCase(id('rev', `reminder-${i}`), id('ptr', 'reminder'), id('prf', 'reminder'), {
        createdAt: NOW + after,
      }),
    );
    const reminders = reviews.flatMap((review) => remindersOf(reviewCreated(review)));
    const own = new Set(reviews.map(({ reviewId }) => reviewId));
    const due = async (now: number) =>
      (await stores.dueReminders(now, 500)).filter(({ reviewId }) => own.has(reviewId));
    const byTime = reminders.toSorted((a, b) => a.dueAt - b.dueAt);
    await stores.scheduleReminders(reminders, NOW);
    await Promise.all([
      stores.scheduleReminders(reminders, NOW + 1),
      stores.scheduleReminders(reminders.slice(2), NOW + 2),
    ]);
    await stores.scheduleReminders([], NOW);
    t.strictSame(await due(byTime[0]!.dueAt - 1), []);
    t.strictSame(await due(byTime[0]!.dueAt), byTime.slice(0, 1), 'due at its own second');
    t.strictSame(await due(byTime[2]!.dueAt), byTime.slice(0, 3));
    t.strictSame(await due(byTime[5]!.dueAt + 1), byTime, 'each once, however often it was scheduled');
    t.equal((await stores.dueReminders(byTime[5]!.dueAt, 2)).length, 2);

    await stores.completeReminder(byTime[0]!, undefined);
    t.strictSame(await takeWaiting(stores), [], 'a reminder without an event publishes nothing');
    const [, expiring] = byTime as [unknown, (typeof byTime)[number]];
    await stores.completeReminder(expiring, reminderDue(expiring));
    const waiting = await takeWaiting(stores);
    t.strictSame(waiting, [reminderDue(expiring)]);
    t.equal(waiting[0]?.id, `review_expiring/${expiring.reviewId}`);
    t.strictSame(await due(byTime[5]!.dueAt), byTime.slice(2));
    await stores.completeReminder(byTime[0]!, undefined);
    await stores.completeReminder(expiring, reminderDue(expiring));
    for (const event of await takeWaiting(stores))
      t.strictSame(event, reminderDue(expiring), 'again, at most the same event');
    t.strictSame(await due(byTime[5]!.dueAt), byTime.slice(2));
    await Promise.all(
      byTime.slice(2).map((reminder) => stores.completeReminder(reminder, reminderDue(reminder))),
    );
    t.strictSame(await due(byTime[5]!.dueAt), []);
    t.strictSame(
      (await takeWaiting(stores)).map((event) => event.id).sort(),
      byTime
        .slice(2)
        .map((reminder) => reminderDue(reminder).id)
        .sort(),
    );

    const late = reviewCase(id('rev', 'reminder-late'), id('ptr', 'reminder'), id('prf', 'reminder'), {
      createdAt: NOW - 400 * 86_400,
    });
    own.add(late.reviewId);
    const overdue = remindersOf(reviewCreated(late));
    await stores.scheduleReminders(overdue, NOW);
    t.strictSame(await due(NOW), overdue, 'late ones are due at once');
    for (const reminder of overdue) await stores.completeReminder(reminder, undefined);
    t.strictSame(await due(NOW), []);
  });

  await t.test('an erasure removes the reminders of its reviews and no others', async (t) => {
    const { stores } = opened();
    const proofs = [
      await issueProof(contract, stores, 'noticed'),
      await issueProof(contract, stores, 'noticed-other'),
    ] as const;
    // Hours that are not late: the test before has moved the watermark half a year on.
    const createdAt = NOW + 200 * 86_400;
    const reviews = proofs.flatMap(({ proofId, partnerId }, p) =>
      [1, 2].map((i) =>
        reviewCase(id('rev', `noticed-${p}-${i}`), partnerId, proofId, {
          createdAt,
          bindings: { creatorId: 'c', accountId: 'a', submissionId: 's', trackId: `${i}` },
        }),
      ),
    );
    for (const review of reviews)
      t.strictSame(
        await stores.createReview(
          review,
          review.createdAt,
          audit(review.partnerId, 'review_created', review.reviewId),
        ),
        { outcome: 'created' },
      );
    const reminders = reviews.flatMap((review) => remindersOf(reviewCreated(review)));
    await stores.scheduleReminders(reminders, NOW);
    const named = async () =>
      (await stores.dueReminders(Math.max(...reminders.map(({ dueAt }) => dueAt)), 500))
        .filter(({ proofId }) => proofs.some((proof) => proof.proofId === proofId))
        .map(({ kind, reviewId }) => `${kind} ${reviewId}`);
    t.equal((await named()).length, 8);
    await eraseProof(stores, proofs[0]);
    t.equal(await stores.confirmErasure(proofs[0].proofId, NOW), 'confirmed');
    t.strictSame(
      (await named()).toSorted(),
      reminders
        .slice(4)
        .map(({ kind, reviewId }) => `${kind} ${reviewId}`)
        .toSorted(),
    );
    for (const reminder of reminders.slice(4)) await stores.completeReminder(reminder, undefined);
    await takeWaiting(stores);
  });

  await t.test('an erasure is confirmed once', async (t) => {
    const { stores } = opened();
    await takeWaiting(stores);
    const proof = await issueProof(contract, stores, 'confirm');
    const { proofId, partnerId } = proof;
    t.equal(await stores.confirmErasure(id('prf', 'confirm-never'), NOW), 'not_erased');
    t.equal(await stores.confirmErasure(proofId, NOW), 'not_erased');
    t.strictSame(await stores.getProof(proofId), proof, 'and it was not touched');
    await stores.reserveProof(id('prf', 'confirm-pending'), partnerId, NOW);
    t.equal(await stores.confirmErasure(id('prf', 'confirm-pending'), NOW), 'not_erased');

    await eraseProof(stores, proof);
    const tombstone = { state: 'erased', proofId, partnerId, erasedAt: NOW };
    t.strictSame(await stores.getProof(proofId), tombstone);
    const outcomes = await Promise.all(
      Array.from({ length: 20 }, (_, i) => stores.confirmErasure(proofId, NOW + 10 + i)),
    );
    t.equal(outcomes.filter((outcome) => outcome === 'confirmed').length, 1);
    const confirmed = { ...tombstone, confirmedAt: NOW + 10 + outcomes.indexOf('confirmed') };
    t.strictSame(await stores.getProof(proofId), confirmed);
    t.equal(await stores.confirmErasure(proofId, NOW + 100), 'already_confirmed');
    t.strictSame(await stores.getProof(proofId), confirmed, 'the first time stays');
    t.strictSame(await eraseProof(stores, proof, NOW + 200), { outcome: 'already_erased', proof: confirmed });
    t.strictSame(
      (await takeWaiting(stores)).map((event) => event.id),
      [`proof_erased/${proofId}`],
      'confirming publishes nothing',
    );
    t.strictSame(await actionsOf(opened(), partnerId), ['proof_issued', 'proof_erased']);
    await t.rejects(
      stores.issueProof(
        proof,
        audit(partnerId, 'proof_issued', proofId),
        issuingReplay(id('replay', 'confirm'), proofId),
      ),
      { code: 'conflict' },
    );
  });
}
