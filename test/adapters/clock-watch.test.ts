/** Compares clocks: of a fake cluster, and of a real node. */
import { errors } from 'cassandra-driver';
import t from 'tap';
import { chargeBucketOf, chargeBucketsIn } from '../../src/service/adapters/cassandra/commit/time-bucket.js';
import { ClockWatch } from '../../src/service/adapters/cassandra/driver/clock-watch.js';
import { connect } from '../../src/service/adapters/cassandra/driver/session.js';
import { SteadyClock } from '../../src/service/adapters/system/steady-clock.js';
import { usageCharge } from '../store-contract/samples.js';
import {
  ADDRESSES,
  connection,
  intercepted,
  migrated,
  openStore,
  withClient,
} from './cassandra-under-test.js';

const realNow = Date.now;

/** Returns nodes whose clocks are off by this many seconds. Undefined is a node that does not answer. */
function cluster(off: Readonly<Record<string, number | undefined>>) {
  return {
    nodes: () => Object.keys(off),
    async timeOf(node: string) {
      const seconds = off[node];
      if (seconds === undefined) throw new Error('no answer');
      return Date.now() + seconds * 1000;
    },
  };
}

/** Returns the watch of a process whose clock is off by this many seconds, after its first look. */
async function looked(seconds: number, off: Readonly<Record<string, number | undefined>>) {
  const wall = { off: seconds * 1000, now: () => Date.now() + wall.off };
  const watch = new ClockWatch(cluster(off), wall);
  return { watch, wall, reported: await watch.look() };
}

void t.test('before the first look nothing is swept', async (t) => {
  const watch = new ClockWatch(cluster({ a: 0 }), { now: () => Date.now() });
  t.equal(watch.maySweep(), false);
  await watch.look();
  t.equal(watch.maySweep(), true);
});

void t.test(
  'a process beyond 5 seconds is reported, and beyond 20 it neither serves nor sweeps',
  async (t) => {
    const nodes = { a: 0, b: 0.4, c: -0.4 };
    for (const [seconds, isReported, isRight] of [
      [0, false, true],
      [4, false, true],
      [6, true, true],
      [-6, true, true],
      [19, true, true],
      [21, true, false],
      [-21, true, false],
      [3600, true, false],
    ] as const) {
      const { watch, reported } = await looked(seconds, nodes);
      t.equal(reported.length, isReported ? 1 : 0, `${seconds} s`);
      t.equal(watch.isRight, isRight, `${seconds} s: serves`);
      t.equal(watch.maySweep(), isRight, `${seconds} s: sweeps`);
      if (isRight) t.ok(Math.abs(watch.now() - Date.now()) < 1000, `${seconds} s: acts by the age of rows`);
      else t.throws(() => watch.now(), { code: 'unavailable', reason: 'store_unavailable' });
      t.ok(Math.abs(watch.processSeconds - seconds) < 1, `${seconds} s: the metric`);
    }
  },
);

void t.test('a node that differs is named, and stops sweeps but not service', async (t) => {
  const { watch, reported } = await looked(0, { a: 0, b: 3600, c: 0 });
  t.match(reported, [{ node: 'b', seconds: Number }]);
  t.equal(reported.length, 1);
  t.equal(watch.isRight, true, 'the process is right by most of the nodes');
  t.equal(watch.maySweep(), false, 'the watermark would get a timestamp of the future');
  t.ok(Math.abs(watch.nodesSeconds - 3600) < 1);
  const two = await looked(0, { a: 0, b: -3600 });
  t.strictSame([two.watch.isRight, two.watch.maySweep()], [true, false], 'of two the one that agrees counts');
  t.equal((await looked(3600, { a: 0, b: 0 })).watch.isRight, false);
});

void t.test('a clock that is set between two looks is noticed at once', async (t) => {
  const { watch, wall } = await looked(0, { a: 0 });
  t.equal(watch.maySweep(), true);
  wall.off = 60_000;
  t.strictSame([watch.isRight, watch.maySweep()], [false, false]);
  wall.off = -60_000;
  t.strictSame([watch.isRight, watch.maySweep()], [false, false]);
  wall.off = 0;
  t.strictSame([watch.isRight, watch.maySweep()], [true, true]);
});

void t.test('a clock that is set during a look is noticed', async (t) => {
  const wall = { off: 0, now: () => Date.now() + wall.off };
  const nodes = {
    nodes: () => ['a', 'b'],
    async timeOf(node: string) {
      if (node === 'b') {
        await new Promise((resolve) => setTimeout(resolve, 50));
        wall.off = 3_600_000;
        throw new Error('no answer');
      }
      return Date.now();
    },
  };
  const watch = new ClockWatch(nodes, wall);
  await watch.look();
  t.strictSame([watch.isRight, watch.maySweep()], [false, false]);
});

void t.test(
  'a clock that is set back is wrong at once although the watched clock never runs back',
  async (t) => {
    t.teardown(() => {
      Date.now = realNow;
    });
    const watch = new ClockWatch(cluster({ a: 0 }), new SteadyClock({ now: () => Date.now() }, 0));
    await watch.look();
    t.ok(Math.abs(watch.now() - realNow()) < 5000);
    Date.now = () => realNow() - 3_600_000;
    t.throws(() => watch.now(), { code: 'unavailable', reason: 'store_unavailable' });
    t.strictSame([watch.isRight, watch.maySweep()], [false, false]);
  },
);

void t.test('nodes that do not answer are left out, and none that answers is a failure', async (t) => {
  t.equal((await looked(0, { a: undefined, b: 0 })).watch.maySweep(), true);
  await t.rejects(looked(0, { a: undefined }), { code: 'unavailable', reason: 'store_unavailable' });
});

void t.test('a slow answer reports no node', async (t) => {
  // Off by 4.5 seconds. The middle of the round trip would give 5.25.
  const slow = new ClockWatch(
    {
      nodes: () => ['a'],
      timeOf: async () => {
        const now = Date.now() - 4500;
        await new Promise((resolve) => setTimeout(resolve, 1500));
        return now;
      },
    },
    { now: () => Date.now() },
  );
  t.strictSame(await slow.look(), [], 'what the round trip may hide is not counted');
});

const real =
  ADDRESSES === undefined
    ? { skip: 'TAKEMARK_CASSANDRA is not set: npm run services:up starts a server and prints it' }
    : {};

void t.test('on a real node', real, async (t) => {
  await migrated();

  await t.test('a store’s process is compared with the nodes', async (t) => {
    const right = await openStore();
    t.teardown(() => right.close());
    t.equal(right.clocks.maySweep(), true);
    t.ok(Math.abs(right.clocks.processSeconds) < 5);
    const ahead = await openStore({ clock: { now: () => Date.now() + 900_000 } });
    t.teardown(() => ahead.close());
    t.strictSame([ahead.clocks.isRight, ahead.clocks.maySweep()], [false, false]);
    t.ok(Math.abs(ahead.clocks.processSeconds - 900) < 5);
  });

  await t.test('a decision is given up in time when the clock is set meanwhile', async (t) => {
    const session = await connect(connection, connection.keyspace);
    t.teardown(() => {
      Date.now = realNow;
      return session.close();
    });
    let sent = 0;
    const begun = performance.now();
    await intercepted(
      () => {
        sent += 1;
        if (sent === 2) Date.now = () => realNow() - 3_600_000;
        // Far beyond the limit by the clock that cannot be set.
        if (performance.now() - begun > 20_000) return;
        throw new errors.OperationTimedOutError('the answer was lost');
      },
      () =>
        t.rejects(
          session.lightweightTransaction({
            query: 'INSERT INTO uploads_of_nobody (id) VALUES (?) IF NOT EXISTS',
            params: ['x'],
          }),
          { code: 'unavailable', reason: 'store_unavailable' },
        ),
    );
    t.ok(sent > 2, `sent ${sent} times`);
    t.ok(performance.now() - begun < 18_000, 'some 8 seconds');
  });

  await t.test('plain writes carry the server’s time when the process has a wrong clock', async (t) => {
    const stores = await openStore();
    t.teardown(() => {
      Date.now = realNow;
      return stores.close();
    });
    const before = realNow();
    Date.now = () => realNow() + 3_600_000;
    await stores.ping();
    Date.now = realNow;
    const written = await withClient(
      (client) => client.execute("SELECT WRITETIME(at) AS at FROM ping WHERE name = 'ping'"),
      connection.keyspace,
    );
    const at = Number(String(written.rows[0]?.['at'])) / 1000;
    t.ok(at >= before - 20_000 && at <= realNow() + 20_000, `written at ${at - before} ms`);
  });

  await t.test(
    'a clock that is set during a collection does not move the time buckets of charges',
    async (t) => {
      const stores = await openStore({ clock: { now: () => Date.now() } });
      t.teardown(() => {
        Date.now = realNow;
        return stores.close();
      });
      const unavailable = { code: 'unavailable', reason: 'store_unavailable' };
      const partnerId = `ptr_clock_${realNow()}`;
      const last = chargeBucketOf(realNow()) + chargeBucketsIn(10);
      Date.now = () => realNow() + 3_600_000;
      await t.rejects(stores.collectExpired(Math.floor(realNow() / 1000), 1000), unavailable);
      await t.rejects(stores.charge(usageCharge(partnerId, 'ahead')), unavailable);
      Date.now = realNow;
      await stores.charge(usageCharge(partnerId, 'right'));
      const { rows } = await withClient(
        (client) =>
          client.execute(
            "SELECT item FROM charge WHERE partner_id = ? AND item > 'event/' AND item < 'event0'",
            [partnerId],
          ),
        connection.keyspace,
      );
      const timeBuckets = rows.map((row) => Number(String(row['item']).split('/')[1]));
      t.equal(timeBuckets.length, 1);
      t.ok(timeBuckets[0]! < last, 'any process publishes the event once this minute is over');
    },
  );
});
