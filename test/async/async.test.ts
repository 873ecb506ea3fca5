import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { jittered, pauseAfter } from '../../src/core/async/backoff.js';
import { Batches } from '../../src/core/async/batches.js';
import { withDeadline } from '../../src/core/async/deadline.js';
import { WorkQueue } from '../../src/core/async/work-queue.js';

const never = (): never => {
  throw new Error('too late');
};

t.test('work that ends in time gives its own outcome, a failure too', async (t) => {
  t.equal(await withDeadline(Promise.resolve(7), 1000, never), 7);
  await t.rejects(withDeadline(Promise.reject(new Error('of the work')), 1000, never), {
    message: 'of the work',
  });
});

t.test('work that takes longer is given up with what giveUp returns or throws', async (t) => {
  const slow = sleep(5000, 'slow', { ref: false });
  t.equal(await withDeadline(slow, 5, () => 'given up'), 'given up');
  await t.rejects(withDeadline(slow, 5, never), { message: 'too late' });
  await t.rejects(withDeadline(slow, -1, never), { message: 'too late' });
});

t.test('work that fails after it was given up ends no process', async (t) => {
  const unhandled: unknown[] = [];
  const note = (error: unknown) => void unhandled.push(error);
  process.on('unhandledRejection', note);
  const failing = sleep(20).then(() => Promise.reject(new Error('late')));
  await withDeadline<void>(failing, 1, () => undefined);
  await sleep(60);
  process.off('unhandledRejection', note);
  t.strictSame(unhandled, []);
});

t.test('pauses double with each failure up to the longest', (t) => {
  const pauses = { firstMs: 100, longestMs: 1000 };
  t.strictSame(
    [1, 2, 3, 4, 5, 5000].map((failures) => pauseAfter(failures, pauses)),
    [100, 200, 400, 800, 1000, 1000],
  );
  for (let i = 0; i < 100; i += 1) {
    const pause = jittered(100);
    t.ok(pause >= 50 && pause <= 150);
  }
  t.end();
});

t.test('items that come during a write share the next one, in their order', async (t) => {
  const written: (readonly number[])[] = [];
  const batches = new Batches<number>(async (items) => {
    await sleep(5);
    written.push(items);
  });
  const first = [batches.add(1), batches.add(2)];
  await sleep(1);
  const second = [batches.add(3), batches.add(4)];
  await batches.settled();
  await Promise.all([...first, ...second]);
  t.strictSame(written, [
    [1, 2],
    [3, 4],
  ]);
});

t.test('a write that fails fails its own batch alone', async (t) => {
  const batches = new Batches<string>(async (items) => {
    if (items.includes('bad')) throw new Error('full');
  });
  await t.rejects(batches.add('bad'), { message: 'full' });
  await t.resolves(batches.add('good'));
});

t.test('a queue of works keeps its limit and their order when some fail', async (t) => {
  const queue = new WorkQueue(3);
  const begun: number[] = [];
  let atWork = 0;
  let most = 0;
  const results = await Promise.allSettled(
    Array.from({ length: 20 }, (_, i) =>
      queue.run(async () => {
        begun.push(i);
        most = Math.max(most, (atWork += 1));
        await new Promise((resolve) => setImmediate(resolve));
        atWork -= 1;
        if (i % 3 === 0) throw new Error(`${i}`);
        return i;
      }),
    ),
  );
  t.equal(most, 3);
  t.strictSame(begun, [...begun.keys()]);
  t.strictSame(
    results.map((result) => (result.status === 'fulfilled' ? result.value : result.reason.message)),
    Array.from({ length: 20 }, (_, i) => (i % 3 === 0 ? `${i}` : i)),
  );
});
