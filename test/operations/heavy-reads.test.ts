import t from 'tap';
import { SHIPPED_PLANS } from '../../src/service/domain/partner.js';
import { HeavyReads } from '../../src/service/operations/usage/heavy-reads.js';
import { admitTurn, createRateLimits, weigh } from '../../src/service/operations/usage/rate-limits.js';
import { stillClock } from './doubles.js';

/** Reads that the test ends, in the order in which they started. */
function openReads(reads: HeavyReads) {
  const started: string[] = [];
  const ends: (() => void)[] = [];
  const read = (partnerId: string, name: string, signal?: AbortSignal): Promise<string> =>
    reads.run(
      { partnerId },
      () =>
        new Promise((resolve) => {
          started.push(name);
          ends.push(() => resolve(name));
        }),
      signal,
    );
  return { started, ends, read };
}

/** Lets every promise that can settle do so. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

t.test('partners take turns when more reads wait than may run', async (t) => {
  const { started, ends, read } = openReads(
    new HeavyReads({ atOnce: 2, atOnceOfPartner: 1, waitingOfPartner: 9 }),
  );
  const all = ['a1', 'a2', 'a3', 'b1', 'b2', 'c1'].map((name) => read(name[0]!, name));
  await settled();
  t.strictSame(started, ['a1', 'b1'], 'one of each partner, two in all');
  for (let at = 0; at < all.length; at += 1) {
    ends[at]!();
    await settled();
  }
  t.strictSame(started, ['a1', 'b1', 'a2', 'b2', 'c1', 'a3'], 'each partner once in a round');
  t.strictSame(await Promise.all(all), ['a1', 'a2', 'a3', 'b1', 'b2', 'c1']);
});

t.test('a read beyond the bound of its partner is refused, and no other partner is', async (t) => {
  const { started, ends, read } = openReads(
    new HeavyReads({ atOnce: 2, atOnceOfPartner: 1, waitingOfPartner: 1 }),
  );
  const first = read('a', 'a1');
  const second = read('a', 'a2');
  await t.rejects(read('a', 'a3'), {
    code: 'rate_limited',
    reason: 'concurrency_exceeded',
    limit: 'large_reads',
    retryAfterSeconds: 1,
  });
  const other = read('b', 'b1');
  await settled();
  t.strictSame(started, ['a1', 'b1']);
  ends[0]!();
  await settled();
  for (const end of ends) end();
  await Promise.all([first, second, other]);
});

t.test('a read that is given up leaves the line, and a read that fails frees its place', async (t) => {
  const reads = new HeavyReads({ atOnce: 1, atOnceOfPartner: 1, waitingOfPartner: 1 });
  const { started, ends, read } = openReads(reads);
  const first = read('a', 'a1');
  const left = new AbortController();
  const waiting = read('a', 'a2', left.signal);
  left.abort(new Error('left'));
  await t.rejects(waiting, { message: 'left' });
  await t.rejects(read('a', 'a3', left.signal), { message: 'left' }, 'before it waits');
  const next = read('a', 'a4');
  ends[0]!();
  await first;
  await settled();
  t.strictSame(started, ['a1', 'a4']);
  ends[1]!();
  await next;
  await t.rejects(
    reads.run({ partnerId: 'a' }, () => Promise.reject(new Error('failed'))),
    {
      message: 'failed',
    },
  );
  t.equal(await reads.run({ partnerId: 'a' }, async () => 'free'), 'free');
});

const exceeded = (retryAfterSeconds: number) =>
  ({ code: 'rate_limited', reason: 'rate_exceeded', retryAfterSeconds }) as const;

t.test('a read weighs in the rate by what it read, and Retry-After includes the weight', (t) => {
  const clock = stillClock();
  const limits = createRateLimits(clock);
  const plan = SHIPPED_PLANS.find(({ name }) => name === 'standard')!;
  const caller = { partnerId: 'ptr_1', plan };
  const lists = (count: number): void => {
    for (let i = 0; i < count; i += 1) {
      limits.spend(caller.partnerId, plan, 'standard');
      weigh({ limits }, caller, { entries: 100 });
    }
  };
  lists(plan.burst / 10);
  t.throws(() => lists(1), exceeded(1));
  for (let second = 0; second < 3; second += 1) {
    clock.advanceMs(1000);
    lists(5);
    t.throws(() => lists(1), exceeded(1), 'five lists of 100 a second, and no sixth');
  }
  clock.advanceMs(1000);
  limits.spend(caller.partnerId, plan, 'standard');
  weigh({ limits }, caller, { reportBytes: 100 * 65_536 });
  t.throws(() => lists(1), exceeded(2));
  clock.advanceMs(1000);
  t.throws(() => lists(1), exceeded(1));
  clock.advanceMs(1000);
  t.doesNotThrow(() => lists(1), 'after exactly the announced time');
  limits.spend(caller.partnerId, plan, 'standard');
  t.doesNotThrow(() => admitTurn({ limits }, caller), 'a turn spends nothing');
  const { remaining } = limits.read(caller.partnerId, plan);
  weigh({ limits }, caller, { digests: 100 * (remaining + 2 * plan.requestsPerSecond + 1) });
  t.throws(() => admitTurn({ limits }, caller), exceeded(2), 'a call whose turn comes later');
  t.equal(limits.read(caller.partnerId, plan).remaining, 0);
  clock.advanceMs(2000);
  t.doesNotThrow(() => lists(1), 'after exactly the announced time');
  const small = { partnerId: 'ptr_2', plan };
  for (let i = 0; i < plan.burst; i += 1) {
    limits.spend(small.partnerId, plan, 'standard');
    weigh({ limits }, small, { entries: 10, reportBytes: 65_536 });
  }
  t.throws(
    () => limits.spend(small.partnerId, plan, 'standard'),
    exceeded(1),
    'a small read weighs one call',
  );
  t.end();
});
