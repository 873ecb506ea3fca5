import type { Test } from 'tap';
import type { UsageCharge } from '../../src/service/ports/stores.js';
import { takeWaiting, usageOf } from './outbox-contract.js';
import { NOW, nextBatch, usageCharge } from './samples.js';
import type { Contract } from './suite.js';

export async function usageContract(t: Test, { opened, id }: Contract): Promise<void> {
  await t.test('a charge counts once for its dedupe key, within the quota of its month', async (t) => {
    const { stores } = opened();
    const partnerId = id('ptr', 'usage');
    const charge = (dedupeKey: string, over: Partial<UsageCharge> = {}) =>
      stores.charge(usageCharge(partnerId, dedupeKey, over));
    t.equal(await stores.getUsed(partnerId, NOW), 0);
    t.strictSame(await charge('a'), { outcome: 'charged', used: 1 });
    t.strictSame(await charge('a'), { outcome: 'already_charged', used: 1 });
    t.strictSame(await charge('b', { operation: 'identify' }), { outcome: 'charged', used: 2 });
    t.strictSame(await charge('c', { monthlyQuota: 2 }), { outcome: 'quota_exceeded', used: 2 });
    t.strictSame(
      await charge('a', { monthlyQuota: 2 }),
      { outcome: 'already_charged', used: 2 },
      'a repeated call is answered in a full month too',
    );
    t.strictSame(await charge('c'), { outcome: 'charged', used: 3 }, 'a refused call left nothing');
    t.strictSame(await charge('odd / key ☃'), { outcome: 'charged', used: 4 });
    t.strictSame(
      await stores.charge(usageCharge(id('ptr', 'usage2'), 'a')),
      { outcome: 'charged', used: 1 },
      'another partner’s dedupeKey is another',
    );
    t.strictSame(await charge('zero', { monthlyQuota: 0 }), { outcome: 'quota_exceeded', used: 4 });

    // A second later is the next day and the next month.
    t.equal(await stores.getUsed(partnerId, NOW + 1), 0);
    t.strictSame(await charge('a', { at: NOW + 1 }), { outcome: 'already_charged', used: 0 });
    t.strictSame(await charge('d', { at: NOW + 1, monthlyQuota: 1 }), { outcome: 'charged', used: 1 });
    t.strictSame(await charge('e', { at: NOW + 1, monthlyQuota: 1 }), {
      outcome: 'quota_exceeded',
      used: 1,
    });
    t.equal(await stores.getUsed(partnerId, NOW), 4, 'the month before keeps its count');

    const until = usageCharge(partnerId, 'a').dedupeUntil;
    t.equal((await charge('a', { at: until - 1 })).outcome, 'already_charged');
    t.equal(
      (await charge('a', { at: until, dedupeUntil: until + 60 })).outcome,
      'charged',
      'at its end a dedupeKey may come again',
    );
    t.equal((await charge('a', { at: until + 59 })).outcome, 'already_charged');

    t.strictSame(await stores.getDailyUsage(partnerId, '2026-03-31', '2026-04-01'), [
      { day: '2026-03-31', operations: { verify: 3, identify: 1 } },
      { day: '2026-04-01', operations: { verify: 2 } },
    ]);
    t.strictSame(await stores.getDailyUsage(partnerId, '2026-04-01', '2026-04-01'), [
      { day: '2026-04-01', operations: { verify: 2 } },
    ]);
    t.strictSame(await stores.getDailyUsage(partnerId, '2026-04-02', '2026-12-31'), []);
    t.strictSame(await stores.getDailyUsage(id('ptr', 'none'), '2026-01-01', '2026-12-31'), []);
  });

  await t.test('a charge of several units counts all of them, or none beyond the quota', async (t) => {
    const { stores } = opened();
    const partnerId = id('ptr', 'units');
    const charge = (dedupeKey: string, over: Partial<UsageCharge> = {}) =>
      stores.charge(usageCharge(partnerId, dedupeKey, { monthlyQuota: 40, ...over }));
    t.strictSame(
      await Promise.all([
        charge('a', { units: 32 }),
        charge('b'),
        charge('c', { operation: 'identify', units: 3 }),
      ]),
      [
        { outcome: 'charged', used: 32 },
        { outcome: 'charged', used: 33 },
        { outcome: 'charged', used: 36 },
      ],
    );
    t.strictSame(await charge('a', { units: 32 }), { outcome: 'already_charged', used: 36 });
    t.strictSame(await charge('d', { units: 5 }), { outcome: 'quota_exceeded', used: 36 });
    t.strictSame(await charge('d', { units: 4 }), { outcome: 'charged', used: 40 });
    const events = usageOf(await takeWaiting(stores), partnerId);
    t.equal(
      events.flatMap(({ data }) => data.counts).reduce((sum, { units }) => sum + units, 0),
      40,
      'the events have every unit',
    );
    await stores.aggregateUsage(events);
    t.strictSame(await stores.getDailyUsage(partnerId, '2026-03-31', '2026-03-31'), [
      { day: '2026-03-31', operations: { verify: 37, identify: 3 } },
    ]);
  });

  await t.test('a charge binds its dedupe key to the request, until the key may come again', async (t) => {
    const { stores } = opened();
    const partnerId = id('ptr', 'bound');
    const charge = (request: string | undefined, over: Partial<UsageCharge> = {}) =>
      stores.charge({ ...usageCharge(partnerId, 'key', over), ...(request !== undefined && { request }) });
    const find = (request?: string, at = NOW) =>
      stores.findCharge({ partnerId, dedupeKey: 'key', at, ...(request !== undefined && { request }) });
    t.equal(await find(), undefined);
    t.equal(await find('a'), undefined);
    t.strictSame(await charge('a'), { outcome: 'charged', used: 1 });
    t.strictSame(await charge('a', { monthlyQuota: 1 }), { outcome: 'already_charged', used: 1 });
    t.strictSame(await charge('b', { monthlyQuota: 1 }), { outcome: 'key_reused', used: 1 });
    t.strictSame(
      [await find(), await find('a'), await find('b')],
      ['already_charged', 'already_charged', 'key_reused'],
    );
    t.equal(
      await stores.findCharge({ partnerId: id('ptr', 'bound2'), dedupeKey: 'key', at: NOW }),
      undefined,
      'another partner’s key is another',
    );
    const { dedupeUntil: until } = usageCharge(partnerId, 'key');
    t.equal(await find('b', until - 1), 'key_reused');
    t.equal(await find('b', until), undefined);
    const later = { at: until, dedupeUntil: until + 60 };
    t.equal((await charge('b', later)).outcome, 'charged');
    t.equal((await charge('a', later)).outcome, 'key_reused');
  });

  await t.test(
    'of parallel charges of one key one request is charged, and the others are refused',
    async (t) => {
      const { stores } = opened();
      const partnerId = id('ptr', 'bound-race');
      const results = await Promise.all(
        Array.from({ length: 60 }, async (_, i) => ({
          request: `r${i % 3}`,
          ...(await stores.charge({ ...usageCharge(partnerId, 'key'), request: `r${i % 3}` })),
        })),
      );
      const charged = results.filter(({ outcome }) => outcome === 'charged');
      t.equal(charged.length, 1);
      for (const { request, outcome } of results)
        if (request !== charged[0]!.request) t.equal(outcome, 'key_reused');
      t.equal(results.filter(({ outcome }) => outcome === 'already_charged').length, 19);
      t.equal(await stores.getUsed(partnerId, NOW), 1);
    },
  );

  await t.test('of 200 parallel charges of a quota of 50, 50 are charged', async (t) => {
    const { stores } = opened();
    const partnerId = id('ptr', 'quota');
    const results = await Promise.all(
      Array.from({ length: 200 }, (_, i) =>
        stores.charge(usageCharge(partnerId, `call-${i}`, { monthlyQuota: 50 })),
      ),
    );
    const charged = results.filter(({ outcome }) => outcome === 'charged');
    t.equal(charged.length, 50);
    t.strictSame(
      charged.map(({ used }) => used).sort((a, b) => a - b),
      Array.from({ length: 50 }, (_, i) => i + 1),
      'every unit was given once',
    );
    t.equal(results.filter(({ outcome }) => outcome === 'quota_exceeded').length, 150);
    t.equal(await stores.getUsed(partnerId, NOW), 50);
    t.strictSame(await stores.getDailyUsage(partnerId, '2026-03-31', '2026-03-31'), [
      { day: '2026-03-31', operations: { verify: 50 } },
    ]);
  });

  await t.test('of 200 parallel charges of ten calls ten are charged', async (t) => {
    const { stores } = opened();
    const partnerId = id('ptr', 'dedupe');
    const results = await Promise.all(
      Array.from({ length: 200 }, (_, i) => stores.charge(usageCharge(partnerId, `call-${i % 10}`))),
    );
    t.equal(results.filter(({ outcome }) => outcome === 'charged').length, 10);
    t.equal(results.filter(({ outcome }) => outcome === 'already_charged').length, 190);
    t.equal(await stores.getUsed(partnerId, NOW), 10);
  });

  await t.test('free calls join the day’s counts and cost no unit', async (t) => {
    const { stores } = opened();
    const partnerId = id('ptr', 'meter');
    const other = id('ptr', 'meter2');
    await stores.charge(usageCharge(partnerId, 'a'));
    await stores.meter([], NOW, nextBatch());
    await Promise.all([
      ...Array.from({ length: 50 }, () =>
        stores.meter(
          [
            { partnerId, operation: 'list_proofs', count: 2 },
            { partnerId, operation: 'read_record', count: 1 },
            { partnerId: other, operation: 'read_record', count: 3 },
          ],
          NOW,
          nextBatch(),
        ),
      ),
      ...Array.from({ length: 50 }, (_, i) => stores.charge(usageCharge(partnerId, `call-${i}`))),
      stores.meter(
        [
          { partnerId, operation: 'read_record', count: 1 },
          { partnerId, operation: 'read_record', count: 1 },
        ],
        NOW + 1,
        nextBatch(),
      ),
    ]);
    t.equal(await stores.getUsed(partnerId, NOW), 51);
    const events = await takeWaiting(stores);
    await stores.aggregateUsage([...usageOf(events, partnerId), ...usageOf(events, other)]);
    t.equal(await stores.getUsed(other, NOW), 0);
    t.strictSame(await stores.getDailyUsage(partnerId, '2026-03-31', '2026-04-01'), [
      { day: '2026-03-31', operations: { verify: 51, list_proofs: 100, read_record: 50 } },
      { day: '2026-04-01', operations: { read_record: 2 } },
    ]);
    t.strictSame(await stores.getDailyUsage(other, '2026-03-31', '2026-04-01'), [
      { day: '2026-03-31', operations: { read_record: 150 } },
    ]);
  });

  await t.test('a batch of free calls that comes again is counted once', async (t) => {
    const { stores } = opened();
    const partnerId = id('ptr', 'meter-again');
    for (const number of [nextBatch(), nextBatch()])
      for (let i = 0; i < 2; i += 1)
        await stores.meter([{ partnerId, operation: 'read_record', count: 3 }], NOW, number);
    const events = usageOf(await takeWaiting(stores), partnerId);
    t.equal(events.length, 2);
    await stores.aggregateUsage(events);
    t.strictSame(await stores.getDailyUsage(partnerId, '2026-03-31', '2026-03-31'), [
      { day: '2026-03-31', operations: { read_record: 6 } },
    ]);
  });
}
