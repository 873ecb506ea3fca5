import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { Client } from 'cassandra-driver';
import t, { type Test } from 'tap';
import { Pointers } from '../../src/service/adapters/cassandra/commit/pointers.js';
import {
  planPass,
  pointerBucketOf,
  SHARDS,
  shardOf,
} from '../../src/service/adapters/cassandra/commit/time-bucket.js';
import { connect as connectSession, type Row } from '../../src/service/adapters/cassandra/driver/session.js';
import {
  covers,
  type Intervals,
  overlaps,
  sizeWithin,
  withInterval,
} from '../../src/service/adapters/cassandra/usage/intervals.js';
import { AUDIT_GENESIS } from '../../src/service/domain/audit.js';
import {
  proofErased,
  remindersOf,
  reviewCreated,
  type UsageEvent,
  unitsCounted,
} from '../../src/service/domain/events.js';
import type { ReviewCase } from '../../src/service/domain/review.js';
import type { Stores } from '../../src/service/ports/stores.js';
import { seedsOf } from '../fixtures/seeds.js';
import { until } from '../fixtures/until.js';
import { takeWaiting, usageOf } from '../store-contract/outbox-contract.js';
import {
  audit,
  issuedProof,
  NOW,
  nextBatch,
  partner,
  partnerKey,
  reviewCase,
  takeBack,
  usageCharge,
} from '../store-contract/samples.js';
import {
  ADDRESSES,
  connection,
  KEY,
  killedAt,
  leftInTheEnd,
  migrated,
  openStore,
  partsOf,
  withClient,
} from './cassandra-under-test.js';

const DAY = '2026-03-31';
const MINUTE_MS = 60_000;
const TIME_BUCKET_MS = 15_000;

void t.test('intervals added in any order become one', async (t) => {
  let seed = 42;
  const random = (below: number) => (seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31) % below;
  for (let run = 0; run < 50; run += 1) {
    const ends = [0];
    while (ends.length < 40) ends.push(ends.at(-1)! + 1 + random(5));
    const left = ends.slice(1).map((to, i) => [ends[i]!, to] as const);
    const numbers = new Set<number>();
    let intervals: Intervals = [];
    while (left.length > 0) {
      const [[from, to]] = left.splice(random(left.length), 1) as [readonly [number, number]];
      t.notOk(overlaps(intervals, from, to));
      intervals = withInterval(intervals, from, to);
      for (let number = from + 1; number <= to; number += 1) numbers.add(number);
      const [low, high] = [random(ends.at(-1)!), ends.at(-1)!];
      const within = Array.from({ length: high - low }, (_, i) => numbers.has(low + 1 + i));
      if (
        overlaps(intervals, low, high) !== within.includes(true) ||
        covers(intervals, low, high) !== !within.includes(false) ||
        sizeWithin(intervals, 0, Infinity) !== numbers.size
      )
        t.fail(`${low} to ${high} of ${JSON.stringify(intervals)}`);
    }
    t.strictSame(intervals, [0, ends.at(-1)]);
  }
});

void t.test('a pass visits fresh time buckets, then those in which pointers stayed', async (t) => {
  const now = 1000 * TIME_BUCKET_MS + 7500;
  const plan = (watermark: number, nextFresh: number, unfinished: readonly number[] = []) =>
    planPass({ watermark, nextFresh, unfinished }, now);
  t.strictSame(
    plan(995, 0),
    { fresh: [995, 996, 997, 998], revisits: [] },
    'a new process begins at the watermark',
  );
  t.strictSame(plan(900, 996), { fresh: [996, 997, 998], revisits: [] }, 'another where it has come to');
  t.strictSame(plan(999, 0), { fresh: [], revisits: [] }, 'calls that are at work are left alone');
  t.strictSame(
    plan(900, 997, [950, 899, 920, 997]),
    { fresh: [997, 998], revisits: [950, 920] },
    'in the order of their visits, none before the watermark, none twice',
  );
  const many = Array.from({ length: 70 }, (_, i) => 910 + i);
  t.strictSame(plan(900, 998, many).revisits, many.slice(0, 60), 'a bounded number of them');
});

if (ADDRESSES === undefined) {
  void t.test(
    'events of the Cassandra store',
    { skip: 'TAKEMARK_CASSANDRA is not set: npm run services:up starts a server and prints it' },
    () => undefined,
  );
} else {
  t.before(migrated);
  void t.test('many pointers of one time bucket are read in bounded pages', boundedPages);
  void t.test('another process publishes what a dead one left unpublished', foundAfterDeath);
  void t.test(
    'an operation that two processes finish leaves nothing when either has published',
    finishedTwice,
  );
  void t.test(
    'an erasure also erases a review whose process died, and its event is still published',
    erasedMeanwhile,
  );
  void t.test('a pointer that fails holds up no other pointer', failingRow);
  void t.test('a proof that is damaged holds up no reminders but its own', damagedProof);
  void t.test('a batch of charges whose outcome was lost is found and counted once', unheardBatch);
  void t.test(
    'charges of a process that died while the bus was away are there when it is back',
    diedInOutage,
  );
  void t.test('a process takes over no more events than it can hold', boundedTakeOver);
  void t.test('no charge is refused because events of others wait', chargesAtBound);
  void t.test('charges that reached no consumer are aggregated from the store', lostByBus);
  void t.test('two stores aggregate the same events in any order, each once', aggregatedByTwo);
  void t.test('the heads of audit logs are the cluster’s', clusterHeads);
  void t.test('calls to a server that is gone or silent end in time, and work again afterwards', outages);
  t.teardown(() => {
    // The driver looks for a lost node even after its close.
    setTimeout(() => process.exit(), 1000).unref();
  });
}

/**
 * Sets the process's clock forward, so that sweeps visit old rows. The clock never goes back, because rows
 * would be from the future.
 */
function goOn(minutes: number): void {
  const now = Date.now;
  Date.now = () => now() + minutes * MINUTE_MS;
}

async function rowsOf(query: string): Promise<readonly Record<string, unknown>[]> {
  return withClient(
    async (client) => (await client.execute(query)).rows as unknown as Record<string, unknown>[],
    connection.keyspace,
  );
}

async function issue(stores: Stores, name: string) {
  const proof = issuedProof(`prf_${name}`, `ptr_${name}`);
  await stores.reserveProof(proof.proofId, proof.partnerId, NOW);
  await stores.issueProof(proof, audit(proof.partnerId, 'proof_issued', proof.proofId));
  return proof;
}

async function damagedProof(t: Test): Promise<void> {
  const stores = await openStore();
  t.teardown(() => stores.close());
  const now = Math.floor(Date.now() / 1000);
  const reviews: string[] = [];
  for (const name of ['reminded_damaged', 'reminded']) {
    const { proofId, partnerId } = await issue(stores, name);
    const review = reviewCase(`rev_${name}`, partnerId, proofId, { expiresAt: now });
    reviews.push(review.reviewId);
    await stores.scheduleReminders(remindersOf(reviewCreated(review)).slice(1), now);
  }
  await withClient(
    (client) =>
      client.execute(
        "UPDATE record SET partner_id = 'ptr_other' WHERE proof_id = 'prf_reminded_damaged' AND part = '' IF EXISTS",
      ),
    connection.keyspace,
  );
  const due = (await stores.dueReminders(now, 100)).map(({ reviewId }) => reviewId);
  t.strictSame(due.sort(), reviews.sort(), 'the reader of a damaged one gets the damage');
}

async function foundAfterDeath(t: Test): Promise<void> {
  const doomed = await openStore();
  const other = await openStore();
  t.teardown(() => other.close());
  const proof = await issue(doomed, 'death');
  const { proofId, partnerId } = proof;
  const review = reviewCase('rev_death', partnerId, proofId);
  await doomed.createReview(review, review.createdAt, audit(partnerId, 'review_created', review.reviewId));
  for (const name of ['a', 'b', 'c']) await doomed.charge(usageCharge(partnerId, name));
  await doomed.meter([{ partnerId, operation: 'read_proof', count: 4 }], NOW, nextBatch());
  const [early] = await doomed.waitingEvents(1);
  t.equal(early?.event.kind, 'review_created');
  await doomed.markPublished([early!]);
  const firstCharge = (await doomed.waitingEvents(1))[0]!;
  await doomed.markPublished([firstCharge]);
  await doomed.eraseProof(proofId, partnerId, NOW, audit(partnerId, 'proof_erased', proofId));
  const waited = (await doomed.waitingEvents(100)).map(({ event }) => event);
  await doomed.close();

  await other.collectExpired(NOW, 100);
  t.strictSame(await other.waitingEvents(100), [], 'young rows are left alone');
  goOn(4);
  await other.collectExpired(NOW, 100);
  await other.collectExpired(NOW, 100);
  const found = (await other.waitingEvents(100)).map(({ event }) => event);
  const byId = (a: { readonly id: string }, b: { readonly id: string }) => (a.id < b.id ? -1 : 1);
  // The charges of a minute are published as a whole. So a part that the dead process had published appears
  // again, under the same id.
  t.strictSame(found.toSorted(byId), [firstCharge.event, ...waited].toSorted(byId), 'all of it, each once');
  t.ok(found.some(({ id }) => id === proofErased({ proofId, partnerId, erasedAt: NOW }).id));
  t.notOk(found.some(({ id }) => id === reviewCreated(review).id));

  t.strictSame(
    await other.getDailyUsage(partnerId, DAY, DAY),
    [{ day: DAY, operations: { verify: 3 } }],
    'and a read was exact all the time',
  );
  const usage = usageOf(await takeWaiting(other), partnerId);
  goOn(20);
  await other.collectExpired(NOW, 100);
  t.equal(
    (
      await rowsOf(
        `SELECT item FROM charge WHERE partner_id = '${partnerId}' AND item > 'event/' AND item < 'event0'`,
      )
    ).length,
    3,
    'events that were not aggregated stay readable',
  );
  t.strictSame(
    await leftInTheEnd(() => leftOf(proofId, partnerId)),
    [],
    'what was published is not found again',
  );
  await other.aggregateUsage([firstCharge.event as UsageEvent, ...usage]);
  await other.collectExpired(NOW, 100);
  t.strictSame(
    await rowsOf(
      `SELECT item FROM charge WHERE partner_id = '${partnerId}' AND item > 'event/' AND item < 'event0'`,
    ),
    [],
    'and go when they were aggregated',
  );
  t.strictSame(await other.getDailyUsage(partnerId, DAY, DAY), [
    { day: DAY, operations: { verify: 3, read_proof: 4 } },
  ]);
  t.strictSame(await other.charge(usageCharge(partnerId, 'd')), { outcome: 'charged', used: 4 });
  await other.collectExpired(NOW, 100);
  t.strictSame(
    (await takeWaiting(other)).map(({ id }) => id),
    [`units_counted/${partnerId}/billed/2026-03/3`],
  );
}

/** Returns the acts of a proof, and the pointers to it or its partner. */
async function leftOf(proofId: string, partnerId: string): Promise<readonly string[]> {
  const pointers = (await rowsOf('SELECT kind, key FROM pointer')).filter(
    ({ key }) => key === proofId || key === partnerId,
  );
  const acts = (await partsOf(proofId)).filter((part) => part.startsWith('act/'));
  return [...pointers.map(({ kind }) => String(kind)), ...acts.map(() => 'act')];
}

/**
 * Tests that two processes hold an event through one act and one pointer. The act and the pointer are deleted
 * when either process has published the event.
 */
async function finishedTwice(t: Test): Promise<void> {
  const pair = [await openStore(), await openStore()] as const;
  t.teardown(() => Promise.all(pair.map((stores) => stores.close())));
  const { proofId, partnerId } = await issue(pair[0], 'twice');
  await pair[0].eraseProof(proofId, partnerId, NOW, audit(partnerId, 'proof_erased', proofId));
  const { id } = proofErased({ proofId, partnerId, erasedAt: NOW });
  goOn(5);
  for (const stores of [...pair, ...pair]) {
    await stores.collectExpired(NOW, 100);
    t.strictSame((await leftOf(proofId, partnerId)).toSorted(), ['act', 'proof_erased'], 'after each sweep');
  }
  for (const stores of pair)
    t.equal(
      (await stores.waitingEvents(100)).filter(({ event }) => event.id === id).length,
      1,
      'each of them waits with it, once',
    );
  t.ok((await takeWaiting(pair[1])).some((event) => event.id === id));
  t.strictSame(await leftInTheEnd(() => leftOf(proofId, partnerId)), []);
  await takeWaiting(pair[0]);
  goOn(5);
  for (const stores of pair) {
    await stores.collectExpired(NOW, 100);
    t.notOk(
      (await takeWaiting(stores)).some((event) => event.id === id),
      'and none finds it again',
    );
  }
  t.strictSame(
    (await pair[0].readAudit(partnerId, 1, 10)).map(({ action }) => action),
    ['proof_issued', 'proof_erased'],
    'the audit log has it once',
  );
}

/**
 * Tests that units are counted although the bus loses published and marked events and no living process
 * remembers them. An event of another partner is damaged.
 */
async function lostByBus(t: Test): Promise<void> {
  const charger = await openStore();
  const events = async (partnerId: string) =>
    (
      await rowsOf(
        `SELECT item FROM charge WHERE partner_id = '${partnerId}' AND item > 'event/' AND item < 'event0'`,
      )
    ).length;
  for (const partnerId of ['ptr_lost', 'ptr_lost_damaged']) {
    await charger.createPartner(partner(partnerId), audit(partnerId, 'partner_created', partnerId));
    for (const name of ['a', 'b', 'c']) await charger.charge(usageCharge(partnerId, name));
  }
  const usage = usageOf(await takeWaiting(charger), 'ptr_lost');
  await charger.collectExpired(NOW, 100);
  await charger.close();
  await withClient(
    (client) =>
      client.execute(
        "INSERT INTO charge (partner_id, item, event) VALUES ('ptr_lost_damaged', 'event/000000001/writer/2026-03/0000000900', 0x00)",
      ),
    connection.keyspace,
  );
  const other = await openStore();
  t.teardown(() => other.close());
  goOn(50);
  await other.collectExpired(NOW, 100).catch(() => undefined);
  t.ok((await events('ptr_lost')) > 0, 'for an hour it is a consumer’s');
  goOn(70);
  await t.rejects(
    other.collectExpired(NOW, 100),
    { code: 'internal', reason: 'record_damaged' },
    'the damage is reported',
  );
  t.equal(await events('ptr_lost'), 0, 'they are no more on their way');
  t.equal(await events('ptr_lost_damaged'), 4, 'nothing is removed beside a damaged one');
  const units = async (partnerId: string) =>
    (
      await rowsOf(
        `SELECT item, units FROM consumption WHERE partner_id = '${partnerId}' AND month = '2026-03'`,
      )
    )
      .filter(({ item }) => String(item).startsWith('day/'))
      .map((row) => [row['item'], row['units']]);
  t.strictSame(await units('ptr_lost'), [[`day/${DAY}/verify`, 3]]);
  t.strictSame(
    await units('ptr_lost_damaged'),
    [[`day/${DAY}/verify`, 3]],
    'and holds up none of the others',
  );
  await other.aggregateUsage(usage);
  t.strictSame(
    await units('ptr_lost'),
    [[`day/${DAY}/verify`, 3]],
    'an event that comes after all adds nothing',
  );
  t.strictSame(await other.getDailyUsage('ptr_lost', DAY, DAY), [{ day: DAY, operations: { verify: 3 } }]);
  await withClient(
    (client) =>
      client.execute(
        "DELETE FROM charge WHERE partner_id = 'ptr_lost_damaged' AND item > 'event/' AND item < 'event0'",
      ),
    connection.keyspace,
  );
}

/** Tests the erasure of a proof after the process that created its review died right after the decision. */
async function erasedMeanwhile(t: Test): Promise<void> {
  const doomed = await openStore();
  const other = await openStore();
  t.teardown(() => other.close());
  const review = await createReviewThenKill(doomed, 'meanwhile');
  const { reviewId, proofId, partnerId } = review;
  await doomed.close();
  t.strictSame(await other.getReview(partnerId, reviewId, NOW), review);
  await other.eraseProof(proofId, partnerId, NOW, audit(partnerId, 'proof_erased', proofId));
  t.strictSame(
    (await partsOf(proofId)).filter((part) => !part.startsWith('act/')),
    [''],
    'nothing of the review is left beside the tombstone',
  );
  t.strictSame(
    await rowsOf(`SELECT review_id FROM review_by_partner WHERE partner_id = '${partnerId}' ALLOW FILTERING`),
    [],
    'nor is it counted',
  );
  t.equal(await other.getReview(partnerId, reviewId, NOW), undefined);
  goOn(5);
  await other.collectExpired(NOW, 100);
  t.strictSame(
    (await takeWaiting(other))
      .filter(({ key }) => key === reviewId || key === proofId)
      .map(({ kind }) => kind)
      .toSorted(),
    ['proof_erased', 'review_created'],
    'both are published',
  );
  t.strictSame((await other.readAudit(partnerId, 1, 10)).map(({ action }) => action).toSorted(), [
    'proof_erased',
    'proof_issued',
    'review_created',
  ]);
  t.strictSame(await leftInTheEnd(() => leftOf(proofId, partnerId)), []);
}

/** The number of pointers of one shard, which exceeds a page, and of each other shard. */
const CROWDED_SHARD = 520;
const QUIET_SHARDS = 40;

async function boundedPages(t: Test): Promise<void> {
  const session = await connectSession(connection, connection.keyspace);
  t.teardown(() => session.close());
  const pages: (readonly Row[])[] = [];
  const rows = session.rows.bind(session);
  session.rows = async (query, params) => {
    const found = await rows(query, params);
    if (query.includes(' FROM pointer ')) pages.push(found);
    return found;
  };
  const pointers = new Pointers(session, { now: () => Date.now() });
  const visited: string[] = [];
  pointers.onVisit('crowd', async ({ op }) => {
    visited.push(op);
    return 'removed';
  });
  const now = Date.now();
  const bucket = pointerBucketOf(now - MINUTE_MS);
  const ops: string[] = [];
  for (let i = 0, crowded = 0, quiet = 0; crowded < CROWDED_SHARD || quiet < QUIET_SHARDS; i += 1) {
    const op = `crowd-${i}`;
    const isCrowded = shardOf(op, SHARDS) === 3;
    if (isCrowded ? crowded++ < CROWDED_SHARD : quiet++ < QUIET_SHARDS) ops.push(op);
  }
  for (let i = 0; i < ops.length; i += 100)
    await Promise.all(
      ops.slice(i, i + 100).map((op) => pointers.putInto({ bucket, op, kind: 'crowd', key: 'ptr_crowd' })),
    );
  t.equal(await pointers.sweep(now), ops.length);
  t.strictSame(visited.sort(), ops.sort(), 'each once');
  const lengths = pages.map(({ length }) => length).filter((length) => length > 0);
  t.strictSame(
    lengths,
    [500 + QUIET_SHARDS, 20],
    'all shards by one statement, and the rest of the crowded one',
  );
}

/** The number of damaged pointers in each of three time buckets. It exceeds the failures in a row that end a pass. */
const DAMAGED = 30;

/** Tests that pointers that are damaged, or of an unknown version, are reported and block no others. */
async function failingRow(t: Test): Promise<void> {
  const stores = await openStore();
  t.teardown(() => stores.close());
  const bucket = Math.floor(Date.now() / TIME_BUCKET_MS);
  await withClient(async (client) => {
    // The first partition that a pass reads, in the time bucket of the charge.
    for (const each of [bucket, bucket + 1, bucket + 2])
      for (let i = 0; i < DAMAGED; i += 1)
        await client.execute(
          'INSERT INTO pointer (bucket, shard, op, kind, key, data) VALUES (?, ?, ?, ?, ?, ?)',
          [each, 0, `damaged-${i}`, 'calls_counted', 'ptr_failing', Buffer.from('nothing of ours')],
          { prepare: true },
        );
  }, connection.keyspace);
  const doomed = await openStore();
  await doomed.charge(usageCharge('ptr_failing', 'a'));
  await doomed.close();
  goOn(5);
  await t.rejects(
    stores.collectExpired(NOW, 100),
    { code: 'internal', reason: 'record_damaged' },
    'it is reported',
  );
  t.strictSame(
    usageOf(await takeWaiting(stores), 'ptr_failing').map(({ id }) => id),
    ['units_counted/ptr_failing/billed/2026-03/0'],
    'and the rest was seen to',
  );
  t.equal(
    (await rowsOf('SELECT op FROM pointer')).filter(({ op }) => String(op).startsWith('damaged')).length,
    3 * DAMAGED,
    'it stays, to be looked at again',
  );

  goOn(60);
  const later = await openStore();
  await later.charge(usageCharge('ptr_failing', 'b'));
  await createReviewThenKill(later, 'failing');
  await later.close();
  goOn(5);
  const found: string[] = [];
  for (let sweep = 0; sweep < 8; sweep += 1) {
    await stores.collectExpired(NOW, 100).catch(() => undefined);
    found.push(...(await takeWaiting(stores)).map(({ id }) => id));
  }
  t.strictSame(
    found.filter((id) => id.includes('failing')).toSorted(),
    ['review_created/rev_failing', 'units_counted/ptr_failing/billed/2026-03/1'],
    'an hour later it blocks nothing',
  );
  await withClient((client) => client.execute('TRUNCATE pointer'), connection.keyspace);
}

/** Creates a review by a process that is killed after the decision. */
async function createReviewThenKill(stores: Stores, name: string): Promise<ReviewCase> {
  const { proofId, partnerId } = await issue(stores, name);
  const review = reviewCase(`rev_${name}`, partnerId, proofId);
  await killedAt('UPDATE record SET', true, () =>
    stores.createReview(review, review.createdAt, audit(partnerId, 'review_created', review.reviewId)),
  );
  return review;
}

/** Tests a batch of charges that the server accepts while the process gets no answer. */
async function unheardBatch(t: Test): Promise<void> {
  const stores = await openStore();
  t.teardown(() => stores.close());
  const patched = Client.prototype as unknown as { batch: (...args: unknown[]) => Promise<unknown> };
  const { batch } = patched;
  patched.batch = async function (this: unknown, ...args: unknown[]) {
    await batch.apply(this, args);
    throw new TypeError('lost');
  };
  try {
    await t.rejects(stores.charge(usageCharge('ptr_unheard', 'a')));
  } finally {
    patched.batch = batch;
  }
  t.strictSame(await stores.charge(usageCharge('ptr_unheard', 'a')), { outcome: 'already_charged', used: 1 });
  t.strictSame(await stores.charge(usageCharge('ptr_unheard', 'b')), { outcome: 'charged', used: 2 });
  const heard = await takeWaiting(stores);
  t.strictSame(
    heard.map(({ id }) => id),
    ['units_counted/ptr_unheard/billed/2026-03/1'],
  );
  t.strictSame(await stores.getDailyUsage('ptr_unheard', DAY, DAY), [
    { day: DAY, operations: { verify: 2 } },
  ]);
  goOn(4);
  await stores.collectExpired(NOW, 100);
  const swept = await takeWaiting(stores);
  t.ok(
    swept.some(({ id }) => id === 'units_counted/ptr_unheard/billed/2026-03/0'),
    'its own next pass finds the event',
  );
  await stores.aggregateUsage([...usageOf(heard, 'ptr_unheard'), ...usageOf(swept, 'ptr_unheard')]);
  t.strictSame(await stores.getDailyUsage('ptr_unheard', DAY, DAY), [
    { day: DAY, operations: { verify: 2 } },
  ]);
  t.strictSame(
    (
      await rowsOf(
        "SELECT spans FROM consumption WHERE partner_id = 'ptr_unheard' AND month = '2026-03' AND item = 'billed'",
      )
    )[0]?.['spans'],
    [0, 2],
  );
  goOn(1);
  await stores.collectExpired(NOW, 100);
  await stores.collectExpired(NOW, 100);
  t.strictSame(
    (await takeWaiting(stores)).map(({ id }) => id),
    [],
    'once',
  );
}

/** The seconds from a death until a sweep has found its remains, and between two sweeps. */
const FOUND_SECONDS = 45;
const SWEEP_SECONDS = 10;

/** Tests a death while the bus is down. The bus recovers in the time that a fault run allows after a death. */
async function diedInOutage(t: Test): Promise<void> {
  const doomed = await openStore();
  const other = await openStore();
  t.teardown(() => other.close());
  const partnerId = 'ptr_outage';
  // Nothing is published from here on.
  for (const name of ['a', 'b']) await doomed.charge(usageCharge(partnerId, name));
  await other.charge(usageCharge(partnerId, 'c'));
  await doomed.close();
  for (let seconds = SWEEP_SECONDS; seconds <= FOUND_SECONDS; seconds += SWEEP_SECONDS) {
    goOn(SWEEP_SECONDS / 60);
    await other.collectExpired(NOW, 100);
  }
  const published = usageOf(await takeWaiting(other), partnerId);
  t.strictSame(
    published.map(({ data }) => [data.from, data.to]).toSorted(([a], [b]) => a! - b!),
    [
      [0, 1],
      [1, 2],
      [2, 3],
    ],
  );
  await other.aggregateUsage(published);
  t.strictSame(
    (
      await rowsOf(
        `SELECT item, units FROM consumption WHERE partner_id = '${partnerId}' AND month = '2026-03'`,
      )
    ).find(({ item }) => item === `day/${DAY}/verify`)?.['units'],
    3,
  );
}

async function boundedTakeOver(t: Test): Promise<void> {
  const doomed = await openStore();
  const ids: string[] = [];
  for (let i = 0; i < 12; i += 1) {
    await doomed.charge(usageCharge(`ptr_bounded-${i}`, 'a'));
    await doomed.meter(
      [{ partnerId: `ptr_bounded-${i}`, operation: 'list_proofs', count: 1 }],
      NOW,
      nextBatch(),
    );
  }
  ids.push(...(await doomed.waitingEvents(100)).map(({ event }) => event.id));
  t.equal(ids.length, 24);
  await doomed.close();
  const small = await openStore({ outboxLimit: 5 });
  t.teardown(() => small.close());
  goOn(4);
  const found: string[] = [];
  // Far more rounds than a watermark that does not wait would need to pass the rows.
  for (let round = 0; round < 20; round++, goOn(5)) {
    await small.collectExpired(NOW, 100);
    t.ok(small.countWaiting() <= 5);
    if (round >= 2) found.push(...(await takeWaiting(small)).map(({ id }) => id));
  }
  t.strictSame(found.filter((id) => id.includes('ptr_bounded')).toSorted(), ids.toSorted(), 'each once');
}

async function chargesAtBound(t: Test): Promise<void> {
  const stores = await openStore({ outboxLimit: 5 });
  t.teardown(() => stores.close());
  const chargeAll = async (name: string) => {
    const partnerIds = Array.from({ length: 12 }, (_, i) => `ptr_${name}-${i}`);
    for (const partnerId of partnerIds) {
      await stores.createPartner(partner(partnerId), audit(partnerId, 'partner_created', partnerId));
      t.strictSame(await stores.charge(usageCharge(partnerId, 'a')), { outcome: 'charged', used: 1 });
    }
    return partnerIds;
  };
  const used = async (partnerIds: readonly string[]) =>
    (await Promise.all(partnerIds.map((partnerId) => stores.getDailyUsage(partnerId, DAY, DAY)))).flat();
  const each = (partnerIds: readonly string[]) =>
    partnerIds.map(() => ({ day: DAY, operations: { verify: 1 } }));

  // Each sweep reports the row that another test has damaged.
  const sweep = () => stores.collectExpired(NOW, 100).catch(() => undefined);

  const first = await chargeAll('at-bound');
  t.equal(stores.countWaiting('usage'), 5);
  t.strictSame(await used(first), each(first), 'all of them are in the usage');
  goOn(15);
  await sweep();
  t.equal(stores.countWaiting('usage'), 5, 'nothing is taken over without room');
  const found: string[] = [];
  for (let round = 0; round < 20; round++, goOn(5)) {
    found.push(...(await takeWaiting(stores)).map(({ key }) => key));
    await sweep();
    t.ok(stores.countWaiting() <= 5);
  }
  t.strictSame(
    found.filter((key) => first.includes(key)).toSorted(),
    first.toSorted(),
    'each is published once there is room',
  );

  const stuck = await chargeAll('stuck');
  t.equal(stores.countWaiting('usage'), 5);
  goOn(120);
  await sweep();
  t.equal(stores.countWaiting('usage'), 5);
  t.strictSame(
    (await rowsOf("SELECT partner_id, item FROM consumption WHERE month = '2026-03' ALLOW FILTERING"))
      .filter(({ partner_id: partnerId }) => stuck.includes(String(partnerId)))
      .filter(({ item }) => item === 'billed').length,
    stuck.length,
    'without any room the fold adds them',
  );
  t.strictSame(await used(stuck), each(stuck));
  goOn(120);
  await sweep();
  const held = (await stores.waitingEvents(10)).map(({ event }) => event.key);
  t.strictSame(
    (await rowsOf('SELECT key FROM pointer'))
      .map(({ key }) => String(key))
      .filter((key) => stuck.includes(key) && !held.includes(key)),
    [],
    'no pointer is left to what was added',
  );
  await takeWaiting(stores);
}

async function aggregatedByTwo(t: Test): Promise<void> {
  const pair = [await openStore(), await openStore()] as const;
  t.teardown(() => Promise.all(pair.map((stores) => stores.close())));
  for (const seed of seedsOf('aggregations')) await aggregatedFrom(t, pair, seed);
}

async function aggregatedFrom(t: Test, pair: readonly [Stores, Stores], seed: number): Promise<void> {
  const partnerIds = [`ptr_aggregated-${seed}-1`, `ptr_aggregated-${seed}-2`];
  let state = seed;
  const random = (below: number) => (state = (state * 48_271) % 2_147_483_647) % below;
  const events = partnerIds.flatMap((partnerId) =>
    ['billed/2026-03', 'free/one', 'free/two'].flatMap((source) =>
      Array.from({ length: 60 }, (_, i) =>
        unitsCounted(
          {
            partnerId,
            source,
            from: 3 * i,
            to: 3 * i + 3,
            counts: [{ day: DAY, operation: source.startsWith('free') ? 'list_proofs' : 'verify', units: 3 }],
          },
          NOW,
        ),
      ),
    ),
  );
  const shuffled = () => {
    const left = [...events, ...events.slice(0, 50)];
    const batches: UsageEvent[][] = [];
    while (left.length > 0)
      batches.push(
        Array.from(
          { length: Math.min(left.length, 1 + random(25)) },
          () => left.splice(random(left.length), 1)[0]!,
        ),
      );
    return batches;
  };
  await Promise.all(
    [...pair, ...pair].map(async (stores) => {
      for (const batch of shuffled()) await stores.aggregateUsage(batch);
    }),
  );
  for (const [i, partnerId] of partnerIds.entries()) {
    t.strictSame(await pair[i % 2]!.getDailyUsage(partnerId, DAY, DAY), [
      { day: DAY, operations: { list_proofs: 360, verify: 180 } },
    ]);
    const rows = await rowsOf(
      `SELECT item, spans FROM consumption WHERE partner_id = '${partnerId}' AND month = '2026-03'`,
    );
    t.strictSame(
      rows.filter(({ spans }) => spans !== null).map(({ item, spans }) => [item, spans]),
      [
        ['billed', [0, 180]],
        ['free/one', [0, 180]],
        ['free/two', [0, 180]],
      ],
      'one interval each',
    );
  }
}

async function clusterHeads(t: Test): Promise<void> {
  const audited = { audit: { key: KEY } };
  const pair = [await openStore(audited), await openStore(audited)] as const;
  t.teardown(() => Promise.all(pair.map((stores) => stores.close())));
  const head = (sequence: number) => ({
    partnerId: 'ptr_heads',
    sequence,
    mac: String(sequence).padStart(64, '0'),
  });
  t.equal(await pair[0].heads.get('ptr_heads'), undefined);
  await Promise.all([7, 3, 9, 1, 8].map((sequence, i) => pair[i % 2]!.heads.record(head(sequence))));
  await pair[0].heads.record(head(2));
  for (const { heads } of pair) t.strictSame(await heads.get('ptr_heads'), head(9), 'the highest');

  await Promise.all(
    Array.from({ length: 20 }, (_, i) =>
      pair[i % 2]!.createKey(
        partnerKey(`key_heads-${i}`, 'ptr_heads-log'),
        audit('ptr_heads-log', 'key_created', `key_heads-${i}`),
      ),
    ),
  );
  // A process that reads the log first chains its own entries, and knows none of the other process.
  await pair[0].readAudit('ptr_heads-log', 1, 100);
  const last = (await pair[1].readAudit('ptr_heads-log', 1, 100)).at(-1)!;
  t.strictNotSame(last.mac, AUDIT_GENESIS);
  t.strictSame(
    await pair[0].heads.get('ptr_heads-log'),
    { partnerId: 'ptr_heads-log', sequence: 20, mac: last.mac },
    'and the log records its own there',
  );
}

/** Starts a proxy to one server, which can cut its connections or go silent. */
async function proxyTo(address: string) {
  const [host, port] = address.split(':') as [string, string];
  const sockets = new Set<Socket>();
  let mode: 'open' | 'cut' | 'silent' = 'open';
  const server = createServer((near) => {
    if (mode === 'cut') return void near.destroy();
    const far = connect(Number(port), host);
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from);
      from.on('data', (bytes) => void (to.destroyed || to.write(bytes)));
      from.on('error', () => undefined);
      from.on('close', () => {
        sockets.delete(from);
        to.destroy();
      });
      if (mode === 'silent') from.pause();
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const set = (next: typeof mode) => {
    mode = next;
    for (const socket of sockets) {
      if (next === 'cut') socket.destroy();
      else if (next === 'silent') socket.pause();
      else socket.resume();
    }
  };
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    set,
    close: () => (set('cut'), server.close()),
  };
}

async function outages(t: Test): Promise<void> {
  const proxy = await proxyTo(ADDRESSES!.split(',')[0]!);
  const stores = await openStore({ contactPoints: [proxy.address] });
  t.teardown(async () => {
    proxy.set('open');
    await stores.close();
    proxy.close();
  });
  const proof = await issue(stores, 'outage');
  const { proofId, partnerId } = proof;
  // A reservation that must be taken back.
  await stores.reserveProof('prf_outage-reserved', partnerId, 0);
  const key = partnerKey('key_outage', partnerId);
  const review = reviewCase('rev_outage', partnerId, proofId);
  await stores.createKey(key, audit(partnerId, 'key_created', key.keyId));
  let round = 0;
  const calls = (): readonly Promise<unknown>[] => [
    stores.ping(),
    stores.getKey(key.keyId),
    stores.getProof(proofId),
    stores.listProofs(partnerId, { limit: 5 }),
    stores.getDailyUsage(partnerId, DAY, DAY),
    // Charges that wait for each other in this process.
    ...Array.from({ length: 45 }, (_, i) => stores.charge(usageCharge(partnerId, `outage-${round}-${i}`))),
    ...Array.from({ length: 3 }, () =>
      stores.eraseProof(proofId, partnerId, NOW, audit(partnerId, 'proof_erased', proofId)),
    ),
    ...Array.from({ length: 3 }, () =>
      stores.createReview(review, review.createdAt, audit(partnerId, 'review_created', review.reviewId)),
    ),
    stores.revokeKey({ partnerId, keyId: key.keyId, at: NOW }),
    stores.aggregateUsage([
      unitsCounted(
        {
          partnerId,
          source: 'free/outage',
          from: round,
          to: round + 1,
          counts: [{ day: DAY, operation: 'list_proofs', units: 1 }],
        },
        NOW,
      ),
    ]),
    stores.scheduleReminders(remindersOf(reviewCreated(review)), NOW),
    stores.dueReminders(NOW, 5),
    stores.confirmErasure(proofId, NOW),
    takeBack(stores, 1),
  ];
  for (const mode of ['cut', 'silent'] as const) {
    round += 1;
    proxy.set(mode);
    const begun = Date.now();
    const results = await Promise.allSettled(calls());
    // A call is limited to ten seconds. The rest is allowed for a slow machine.
    t.ok(Date.now() - begun < 30_000, `${mode}: all ended after ${Date.now() - begun} ms`);
    t.equal(results.filter(({ status }) => status === 'fulfilled').length, 0, 'none was answered');
    for (const result of results)
      if (result.status === 'rejected' && result.reason.reason !== 'store_unavailable')
        t.fail(String(result.reason));
    proxy.set('open');
    const isBack = () =>
      stores.ping().then(
        () => true,
        () => false,
      );
    t.ok(await until(isBack), `${mode}: it is back, without a restart`);
  }
  const charged = await Promise.all(
    Array.from({ length: 45 }, (_, i) => stores.charge(usageCharge(partnerId, `outage-2-${i}`))),
  );
  t.ok(charged.every(({ outcome }) => outcome !== 'quota_exceeded'));
  const used = await stores.getUsed(partnerId, NOW);
  t.strictSame(
    (await stores.getDailyUsage(partnerId, DAY, DAY)).map(({ operations }) => operations['verify']),
    [used],
    'what was charged without an answer is read as well',
  );
  t.match(await stores.eraseProof(proofId, partnerId, NOW, audit(partnerId, 'proof_erased', proofId)), {
    proof: { state: 'erased' },
  });
}
