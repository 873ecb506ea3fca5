/**
 * Decisions on a real Cassandra: what a sweep has given up never takes effect, what was decided is finished
 * once, by whomever. Processes die at a statement, and statements stay on their way for as long as a test
 * wants.
 */
import { setTimeout as delay } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { migrate } from '../../src/adapters/cassandra/driver/migrations.js';
import type { AuditAction } from '../../src/domain/audit.js';
import { proofErased, reviewCreated } from '../../src/domain/events.js';
import { openEvidence, resolveReview } from '../../src/domain/review.js';
import type { Stores } from '../../src/ports/stores.js';
import { again } from '../fixtures/again.js';
import { takeWaiting } from '../store-contract/outbox-contract.js';
import {
  audit,
  issuedProof,
  issuingReplay,
  NOW,
  overlayOf,
  partner,
  partnerKey,
  reviewCase,
  rotation,
  usageCharge,
} from '../store-contract/samples.js';
import {
  ADDRESSES,
  carryOut,
  connection,
  dropKeyspace,
  intercepted,
  killedAt,
  openStore,
  partsOf,
  type Sent,
  withClient,
  withheld,
} from './cassandra-under-test.js';

const LISTED = { limit: 10 } as const;
const HOUR_SECONDS = 3600;
/** Seconds after which a sweep visits a pointer, and some. */
const ABANDONED_SECONDS = 60;

const realNow = Date.now;
let ahead = 0;

/** Puts the process's clock forward, by which sweeps find what is old. Never back: rows would be of the future. */
function goOn(seconds: number): void {
  ahead += seconds * 1000;
  Date.now = () => realNow() + ahead;
}

if (ADDRESSES === undefined) {
  void t.test(
    'decisions on Cassandra',
    { skip: 'TAKEMARK_CASSANDRA is not set: npm run services:up starts a server and prints it' },
    () => undefined,
  );
} else {
  t.before(() => again(() => migrate(connection)));
  t.teardown(async () => {
    Date.now = realNow;
    await dropKeyspace(connection.keyspace);
  });
  void t.test('a decision that a sweep gave up is refused for ever, and its repetition works', lateDecisions);
  void t.test('a late issuing is refused once its id was taken back', lateIssuing);
  void t.test('a process that dies at any step leaves what another one finishes once', abandonedDecisions);
  void t.test('a sweep raises the generation before it looks', fenceThenLook);
  void t.test('an answer that builds on an interrupted call completes it', interruptedCalls);
  void t.test('an abandoned reservation is taken back after its hour', abandonedReservation);
  void t.test(
    'reservations of processes that died are collected by one process, at the cost of these',
    collectionCosts,
  );
  void t.test('no review survives an erasure, and none is created after it', racedErasures);
  void t.test('operations need as many conditional writes as the model says', conditionalWrites);
}

/** An operation of those that change something, on things of its own. */
interface Operation {
  /** Beginning of a statement of its decision. */
  readonly decision: string;
  readonly table: string;
  readonly keyColumn: string;
  readonly key: string;
  readonly partnerId: string;
  readonly action: AuditAction;
  /** Id of the event that tells of it. */
  readonly event?: string;
  readonly prepare: (stores: Stores) => Promise<unknown>;
  readonly call: (stores: Stores) => Promise<unknown>;
  /** Tells whether a reader finds that it was done, in all places. */
  readonly isDone: (stores: Stores) => Promise<boolean>;
  /** True where the same call may come again after it was given up: ids of partners and keys are drawn once. */
  readonly isRepeatable: boolean;
}

async function issue(stores: Stores, proofId: string, partnerId: string, replayKey?: string) {
  const proof = issuedProof(proofId, partnerId);
  await stores.reserveProof(proofId, partnerId, NOW);
  await stores.issueProof(
    proof,
    audit(partnerId, 'proof_issued', proofId),
    replayKey === undefined ? undefined : issuingReplay(replayKey, proofId),
  );
  return proof;
}

async function isListed(stores: Stores, partnerId: string, proofId: string): Promise<boolean> {
  return (await stores.listProofs(partnerId, LISTED)).some((proof) => proof.proofId === proofId);
}

/** @param name makes the ids of its partner, proof, key and review */
function operationsOf(name: string): Readonly<Record<string, Operation>> {
  const partnerId = `ptr_${name}`;
  const proofId = `prf_${name}`;
  const key = partnerKey(`key_${name}`, partnerId);
  const next = partnerKey(`key_${name}-next`, partnerId);
  const review = reviewCase(`rev_${name}`, partnerId, proofId);
  const { reviewId } = review;
  const onRecord = { table: 'record', keyColumn: 'proof_id', key: proofId, partnerId, isRepeatable: true };
  const onKey = { table: 'api_key', keyColumn: 'key_id', key: key.keyId, partnerId, isRepeatable: true };
  const onPartner = {
    table: 'partner',
    keyColumn: 'partner_id',
    key: partnerId,
    partnerId,
    isRepeatable: true,
  };
  const createKey = (stores: Stores) => stores.createKey(key, audit(partnerId, 'key_created', key.keyId));
  const createReview = (stores: Stores) =>
    stores.createReview(review, audit(partnerId, 'review_created', reviewId));
  const createPartner = (stores: Stores) =>
    stores.createPartner(partner(partnerId), audit(partnerId, 'partner_created', partnerId));
  return {
    'creating a partner': {
      ...onPartner,
      decision: 'INSERT INTO partner',
      action: 'partner_created',
      prepare: async () => undefined,
      call: createPartner,
      isDone: async (stores) =>
        (await stores.getPartner(partnerId)) !== undefined &&
        (await stores.listPartners()).some((each) => each.partnerId === partnerId),
      isRepeatable: false,
    },
    'approving a partner': {
      ...onPartner,
      decision: 'UPDATE partner SET source_detail',
      action: 'source_detail_approved',
      prepare: createPartner,
      call: (stores) =>
        stores.setSourceDetail(
          partnerId,
          { consentVersion: 'v1', approvedAt: NOW },
          audit(partnerId, 'source_detail_approved', partnerId),
        ),
      isDone: async (stores) => (await stores.getPartner(partnerId))?.sourceDetail !== undefined,
    },
    'creating a key': {
      ...onKey,
      decision: 'INSERT INTO api_key',
      action: 'key_created',
      prepare: async () => undefined,
      call: createKey,
      isDone: async (stores) =>
        (await stores.getKey(key.keyId)) !== undefined &&
        (await stores.listKeys(partnerId)).some(({ keyId }) => keyId === key.keyId),
      isRepeatable: false,
    },
    'rotating a key': {
      ...onKey,
      decision: 'UPDATE api_key SET expires_at',
      action: 'key_rotated',
      prepare: createKey,
      call: (stores) =>
        stores.rotateKey(rotation(key, next.keyId, 1), next, audit(partnerId, 'key_rotated', key.keyId)),
      // The successor first: asking for the rotation would bring it.
      isDone: async (stores) =>
        (await stores.getKey(next.keyId)) !== undefined &&
        (await stores.listKeys(partnerId)).length === 2 &&
        (await stores.getRotation(key.keyId)) !== undefined,
    },
    'revoking a key': {
      ...onKey,
      decision: 'UPDATE api_key SET revoked_at',
      action: 'key_revoked',
      prepare: createKey,
      call: (stores) =>
        stores.revokeKey(partnerId, key.keyId, NOW, audit(partnerId, 'key_revoked', key.keyId)),
      isDone: async (stores) => (await stores.getKey(key.keyId))?.revokedAt !== undefined,
    },
    'changing an overlay': {
      ...onRecord,
      decision: 'UPDATE record SET body',
      action: 'consent_granted',
      prepare: (stores) => issue(stores, proofId, partnerId),
      call: (stores) =>
        stores.changeOverlay(
          proofId,
          ({ overlay }) =>
            overlay === undefined
              ? { result: 'changed', overlay: overlayOf([], 1) }
              : { result: 'unchanged' },
          audit(partnerId, 'consent_granted', proofId),
        ),
      isDone: async (stores) => {
        const proof = await stores.getProof(proofId);
        return proof?.state === 'issued' && proof.overlay?.revision === 1;
      },
    },
    'creating a review': {
      ...onRecord,
      decision: 'INSERT INTO record (proof_id, part, version',
      action: 'review_created',
      event: reviewCreated(review).id,
      prepare: (stores) => issue(stores, proofId, partnerId),
      call: createReview,
      isDone: async (stores) => (await stores.getReview(partnerId, reviewId, NOW)) !== undefined,
    },
    'changing a review': {
      ...onRecord,
      decision: 'UPDATE record USING TTL ? SET version',
      action: 'review_resolved',
      prepare: async (stores) => {
        await issue(stores, proofId, partnerId);
        await createReview(stores);
        await takeWaiting(stores);
      },
      call: (stores) =>
        stores.changeReview(
          partnerId,
          reviewId,
          NOW,
          (now) => resolveReview(now, 'accepted', NOW),
          audit(partnerId, 'review_resolved', reviewId),
        ),
      isDone: async (stores) =>
        (await stores.getReview(partnerId, reviewId, NOW))?.status === 'resolved' &&
        !(await partsOf(proofId)).some((part) => part.startsWith('place/')),
    },
    'erasing a proof': {
      ...onRecord,
      decision: "UPDATE record SET state = 'erased'",
      action: 'proof_erased',
      event: proofErased({ proofId, partnerId, erasedAt: NOW }).id,
      prepare: (stores) => issue(stores, proofId, partnerId, `replay-${name}`),
      call: (stores) => stores.eraseProof(proofId, partnerId, NOW, audit(partnerId, 'proof_erased', proofId)),
      isDone: async (stores) =>
        (await stores.getProof(proofId))?.state === 'erased' &&
        !(await isListed(stores, partnerId, proofId)) &&
        (await stores.getIssuingReplay(`replay-${name}`, NOW)) === undefined,
    },
  };
}

async function entriesOf(stores: Stores, { partnerId, action }: Operation): Promise<number> {
  return (await stores.readAudit(partnerId, 1, 100)).filter((entry) => entry.action === action).length;
}

/** Acts of an operation's partition, and pointers that lead there. */
async function leftOf({ table, keyColumn, key }: Operation): Promise<readonly string[]> {
  return withClient(async (client) => {
    const acts = await client.execute(
      `SELECT part FROM ${table} WHERE ${keyColumn} = ? ALLOW FILTERING`,
      [key],
      { prepare: true },
    );
    const pointers = await client.execute('SELECT kind, key FROM pointer');
    return [
      ...acts.rows.filter((row) => String(row['part']).startsWith('act/')).map(() => 'act'),
      ...pointers.rows.filter((row) => row['key'] === key).map((row) => `pointer ${row['kind']}`),
    ];
  }, connection.keyspace);
}

/** Publishes what waits, and tells how often the operation's event was there. */
async function tellings(stores: Stores, { event }: Operation): Promise<number> {
  return (await takeWaiting(stores)).filter(({ id }) => id === event).length;
}

async function sweep(stores: Stores): Promise<void> {
  goOn(ABANDONED_SECONDS);
  await stores.collectExpired(NOW, 100);
}

async function lateDecisions(t: Test): Promise<void> {
  const [late, other] = [await openStore(), await openStore()];
  t.teardown(() => Promise.all([late.close(), other.close()]));
  const whats = Object.keys(operationsOf(''));
  const given = whats.map((what, i) => operationsOf(`late-${i}`)[what]!);
  const held: (readonly Sent[])[] = [];
  for (const [i, operation] of given.entries()) {
    await operation.prepare(other);
    held.push(await withheld(operation.decision, () => operation.call(late)));
    t.ok(held[i]!.length > 1, `${whats[i]}: the decision and its act`);
  }
  // The same statements do take effect where no sweep comes in between.
  const timely = whats.map((what, i) => operationsOf(`timely-${i}`)[what]!);
  for (const [i, operation] of timely.entries()) {
    await operation.prepare(other);
    const sent = await withheld(operation.decision, () => operation.call(late));
    t.ok(await carryOut(sent), `${whats[i]}: takes effect without a sweep`);
  }
  await sweep(other);
  const told = (await takeWaiting(other)).map(({ id }) => id);
  for (const [i, operation] of timely.entries()) {
    const what = whats[i]!;
    t.ok(await operation.isDone(other), `${what}: is finished`);
    t.equal(await entriesOf(other, operation), 1, `${what}: is audited`);
    if (operation.event !== undefined) t.ok(told.includes(operation.event), `${what}: is told of`);
  }
  for (const [i, operation] of given.entries()) {
    const what = whats[i]!;
    t.notOk(await operation.isDone(other));
    t.notOk(await carryOut(held[i]!), `${what}: refused`);
    t.notOk(await operation.isDone(other), `${what}: nothing is changed`);
    t.equal(await entriesOf(other, operation), 0);
    t.notOk(told.includes(String(operation.event)));
    if (operation.isRepeatable) {
      await operation.call(late);
      t.ok(await operation.isDone(other), `${what}: its repetition works`);
      t.notOk(await carryOut(held[i]!), `${what}: refused behind its repetition, too`);
    } else
      await t.rejects(operation.call(late), { code: 'conflict' }, `${what}: its id is not given out again`);
  }
  const repeated = (await takeWaiting(late)).map(({ id }) => id);
  await sweep(other);
  for (const [i, operation] of given.entries()) {
    t.equal(await entriesOf(late, operation), operation.isRepeatable ? 1 : 0, `${whats[i]}: audited once`);
    t.equal(repeated.filter((id) => id === operation.event).length, operation.event === undefined ? 0 : 1);
  }
  await sweep(other);
  for (const operation of [...given, ...timely]) t.strictSame(await leftOf(operation), []);
  t.strictSame(await takeWaiting(other), []);
}

async function lateIssuing(t: Test): Promise<void> {
  const [stores, other] = [await openStore(), await openStore()];
  t.teardown(() => Promise.all([stores.close(), other.close()]));
  const partnerId = 'ptr_late-issue';
  const issueLate = (proofId: string, replayKey?: string) =>
    withheld('INSERT INTO record', () => issue(stores, proofId, partnerId, replayKey));

  const collected = await issueLate('prf_collected');
  t.ok(collected.length > 1);
  t.strictSame(await stores.collectReservations(NOW + 1), ['prf_collected']);
  t.notOk(await carryOut(collected), 'its own process took the id back');
  t.equal(await other.getProof('prf_collected'), undefined);

  const displaced = await issueLate('prf_displaced', 'late-issue');
  t.strictSame(await other.getIssuingReplay('late-issue', NOW), undefined);
  await issue(other, 'prf_second', partnerId, 'late-issue');
  t.notOk(await carryOut(displaced), 'a request under the same key took it back');
  t.match(await stores.getIssuingReplay('late-issue', NOW), { proofId: 'prf_second' });
  t.equal(await other.getProof('prf_displaced'), undefined);

  t.ok(await carryOut(await issueLate('prf_timely', 'timely-issue')), 'without that it takes effect');
  await sweep(stores);
  t.ok(await isListed(other, partnerId, 'prf_timely'));
  t.match(await other.getIssuingReplay('timely-issue', NOW), { proofId: 'prf_timely' });
  await sweep(other);
  t.strictSame(
    (await other.readAudit(partnerId, 1, 10)).map(({ subjects }) => subjects[0]),
    ['prf_second', 'prf_timely'],
  );
}

/** Statements at which a process dies, in the order of an operation, and whether the server gets them. */
const DEATHS = [
  ['before the decision', (operation: Operation) => operation.decision, false],
  ['behind the decision', (operation: Operation) => operation.decision, true],
  ['before the audit entry', () => 'INSERT INTO audit_entry', false],
  ['behind the audit entry', () => 'INSERT INTO audit_entry', true],
  ['before the act is removed', ({ table }: Operation) => `DELETE FROM ${table} USING TIMESTAMP`, false],
  ['before the pointer is removed', () => 'DELETE FROM pointer', false],
] as const;

async function abandonedDecisions(t: Test): Promise<void> {
  const other = await openStore();
  t.teardown(() => other.close());
  const issuing = (name: string): Operation => {
    const [partnerId, proofId] = [`ptr_${name}`, `prf_${name}`];
    return {
      decision: 'INSERT INTO record',
      table: 'record',
      keyColumn: 'proof_id',
      key: proofId,
      partnerId,
      action: 'proof_issued',
      prepare: async () => undefined,
      call: (stores) => issue(stores, proofId, partnerId, name),
      isDone: async (stores) =>
        (await stores.getProof(proofId))?.state === 'issued' &&
        (await isListed(stores, partnerId, proofId)) &&
        (await stores.getIssuingReplay(name, NOW))?.proofId === proofId,
      isRepeatable: false,
    };
  };
  for (const [j, [when, statement, taken]] of DEATHS.entries()) {
    const isDecided = j > 0;
    const operations = new Map(
      Object.keys(operationsOf('')).map((what, i) => [what, operationsOf(`dead-${i}-${j}`)[what]!]),
    );
    // An issuing that was not decided leaves a reservation, which has its own test.
    if (isDecided) operations.set('issuing a proof', issuing(`dead-issue-${j}`));
    await t.test(when, async (t) => {
      for (const [what, operation] of operations) {
        await operation.prepare(other);
        const doomed = await openStore();
        const { wasKilled } = await killedAt(statement(operation), taken, async () => {
          await operation.call(doomed);
          await takeWaiting(doomed);
        });
        await doomed.close();
        t.ok(wasKilled, what);
        t.strictNotSame(await leftOf(operation), [], `${what}: a pointer tells of it`);
      }
      await takeWaiting(other);
      await sweep(other);
      const told = (await takeWaiting(other)).map(({ id }) => id);
      t.equal(new Set(told).size, told.length);
      for (const [what, operation] of operations) {
        const { event } = operation;
        t.equal(await operation.isDone(other), isDecided, `${what}: done or not, as it was decided`);
        t.equal(await entriesOf(other, operation), isDecided ? 1 : 0, `${what}: audited once`);
        // A published event may be published again, where the process died before it could note it.
        if (event !== undefined && j < 3) t.equal(told.includes(event), isDecided, `${what}: told of`);
      }
      await sweep(other);
      await sweep(other);
      t.strictSame(await takeWaiting(other), [], 'nothing is told again');
      for (const [what, operation] of operations) {
        t.strictSame(await leftOf(operation), [], `${what}: nothing is left to do`);
        if (!operation.isRepeatable) continue;
        await operation.call(other);
        t.ok(await operation.isDone(other), `${what}: the client's repetition finds it done`);
        t.equal(await entriesOf(other, operation), 1, `${what}: and is no second one`);
      }
      await takeWaiting(other);
    });
  }
}

async function fenceThenLook(t: Test): Promise<void> {
  const [caller, sweeper] = [await openStore(), await openStore()];
  t.teardown(() => Promise.all([caller.close(), sweeper.close()]));
  const FENCE = 'UPDATE record SET gen = ? WHERE proof_id = ? AND part = ';
  const isFence = (sent: readonly Sent[]) => sent.length === 1 && sent[0]!.query.startsWith(FENCE);
  const reviewing = (name: string) => operationsOf(name)['creating a review']!;

  // The decision arrives between the sweep's first look and its fence, and its process dies.
  const between = reviewing('between');
  await between.prepare(caller);
  const doomed = await openStore();
  const held = await withheld(between.decision, () => between.call(doomed));
  await doomed.close();
  let arrivals = 0;
  goOn(ABANDONED_SECONDS);
  await intercepted(
    async (sent) => {
      if (!isFence(sent) || arrivals > 0) return;
      arrivals += 1;
      t.ok(await carryOut(held));
    },
    () => sweeper.collectExpired(NOW, 100),
  );
  t.equal(arrivals, 1, 'the sweep fences what it does not find');
  t.ok(await between.isDone(sweeper));
  t.equal(await entriesOf(sweeper, between), 1, 'and finds it behind the fence');
  t.equal(await tellings(sweeper, between), 1);

  // The decision of a call that is at work arrives behind the sweep.
  const behind = reviewing('behind');
  await behind.prepare(caller);
  let decisions = 0;
  await intercepted(
    async (sent) => {
      if (!sent.some(({ query }) => query.startsWith(behind.decision))) return;
      decisions += 1;
      if (decisions === 1) await sweep(sweeper);
    },
    () => behind.call(caller),
  );
  t.equal(decisions, 2, 'it is refused and decides once more');
  t.ok(await behind.isDone(sweeper));
  t.equal(await entriesOf(caller, behind), 1);
  t.equal(await tellings(caller, behind), 1);
  await sweep(sweeper);
  t.equal(await tellings(sweeper, behind), 0);
  t.equal(await entriesOf(sweeper, behind), 1);
}

async function interruptedCalls(t: Test): Promise<void> {
  const other = await openStore();
  t.teardown(() => other.close());
  const interrupted = async (operation: Operation) => {
    await operation.prepare(other);
    await takeWaiting(other);
    const doomed = await openStore();
    await killedAt(operation.decision, true, () => operation.call(doomed));
    await doomed.close();
    t.equal(await entriesOf(other, operation), 0);
  };
  const operations = operationsOf('interrupted');

  const creating = operations['creating a review']!;
  await interrupted(creating);
  t.match(await creating.call(other), { outcome: 'created' });
  t.equal(await entriesOf(other, creating), 1, 'a repeated creation chains the entry');
  t.equal(await tellings(other, creating), 1, 'and has the event published');

  const erasing = operationsOf('interrupted-erasure')['erasing a proof']!;
  await interrupted(erasing);
  t.match(await erasing.call(other), { outcome: 'already_erased' });
  t.ok(await erasing.isDone(other), 'a repeated erasure removes what pointed at the proof');
  t.equal(await entriesOf(other, erasing), 1);
  t.equal(await tellings(other, erasing), 1);

  const [proofId, partnerId] = ['prf_interrupted-issue', 'ptr_interrupted-issue'];
  const doomed = await openStore();
  await killedAt('INSERT INTO record', true, () => issue(doomed, proofId, partnerId, 'interrupted'));
  await doomed.close();
  t.notOk(await isListed(other, partnerId, proofId));
  t.match(await other.getIssuingReplay('interrupted', NOW), { proofId });
  t.ok(await isListed(other, partnerId, proofId), 'a proof that is told of is listed');
  t.strictSame(
    (await other.readAudit(partnerId, 1, 10)).map(({ action }) => action),
    ['proof_issued'],
  );

  const rotating = operationsOf('interrupted-rotation')['rotating a key']!;
  await interrupted(rotating);
  t.match(await rotating.call(other), { newKeyId: 'key_interrupted-rotation-next' });
  t.ok(await rotating.isDone(other), 'a rotation that is told of has its successor');

  const whole = (partnerId: string) => other.listKeys(partnerId);
  const inPages = async (partnerId: string) => {
    const page = await other.listKeys(partnerId, { limit: 1 });
    return [...page, ...(await other.listKeys(partnerId, { limit: 1, after: page[0]! }))];
  };
  for (const [name, list] of Object.entries({ whole, inPages })) {
    const listing = operationsOf(`interrupted-listing-${name}`)['rotating a key']!;
    await interrupted(listing);
    t.strictSame(
      (await list(listing.partnerId)).map(({ keyId, expiresAt }) => [keyId, expiresAt !== undefined]),
      [
        [listing.key, true],
        [`${listing.key}-next`, false],
      ],
      `a list with a key that expires has the key in its place (${name})`,
    );
  }

  for (let round = 0; round < 3; round += 1) {
    await sweep(other);
    t.strictSame(await takeWaiting(other), [], 'the sweep does nothing twice');
    for (const operation of [creating, erasing, rotating]) t.equal(await entriesOf(other, operation), 1);
  }
  for (const operation of [creating, erasing, rotating]) t.strictSame(await leftOf(operation), []);
}

async function abandonedReservation(t: Test): Promise<void> {
  const doomed = await openStore();
  let other = await openStore();
  t.teardown(() => other.close());
  const [proofId, partnerId] = ['prf_reserved', 'ptr_reserved'];
  const held = await withheld('INSERT INTO record', () => issue(doomed, proofId, partnerId, 'reserved'));
  await doomed.close();
  const collect = async () => {
    await other.collectExpired(NOW, 100);
    return (await other.collectReservations(NOW - HOUR_SECONDS)).filter((each) => each === proofId);
  };
  /** A time in which sweeps found nothing else. */
  const quietly = async (seconds: number) => {
    await other.close();
    goOn(seconds);
    await withClient(async (client) => {
      await client.execute(
        "INSERT INTO watermark (name, bucket) VALUES ('pointers', ?)",
        [Math.floor((Date.now() - 2 * HOUR_SECONDS * 1000) / 15_000)],
        { prepare: true },
      );
      // The lease ends by the server's clock, which goes no faster here.
      await client.execute('TRUNCATE lease');
    }, connection.keyspace);
    other = await openStore();
  };
  goOn(HOUR_SECONDS / 2);
  t.strictSame(await collect(), [], 'an upload may still be on its way');
  t.strictSame(await partsOf(proofId), []);
  goOn(HOUR_SECONDS / 2 + ABANDONED_SECONDS);
  t.strictSame(await collect(), [proofId], 'its files are to be removed');
  t.notOk(await carryOut(held), 'an issuing that comes now is refused');
  t.equal(await other.getProof(proofId), undefined);
  t.equal(await other.getIssuingReplay('reserved', NOW), undefined);
  t.strictSame(await other.readAudit(partnerId, 1, 10), []);
  t.strictSame(await collect(), [], 'once');
  await quietly(25 * HOUR_SECONDS);
  t.strictSame([...(await collect()), ...(await collect())], [proofId], 'and a day later, for late files');
  await quietly(25 * HOUR_SECONDS);
  t.strictSame([...(await collect()), ...(await collect())], [], 'then it is done');
  t.notOk(await carryOut(held), 'and still refused');
  await t.rejects(other.reserveProof(proofId, partnerId, NOW), { code: 'conflict' }, 'nor is the id free');
}

/** Statements that collecting asks for, beside a number of proofs that were issued. */
async function collectionBeside(t: Test, issued: number): Promise<readonly number[]> {
  await withClient((client) => client.execute('TRUNCATE lease'), connection.keyspace);
  const doomed = await openStore();
  for (let i = 0; i < issued; i += 1) await issue(doomed, `prf_beside-${issued}-${i}`, 'ptr_beside');
  const left = Array.from({ length: 5 }, (_, i) => `prf_left-${issued}-${i}`);
  for (const proofId of left) await doomed.reserveProof(proofId, 'ptr_beside', NOW);
  await doomed.close();
  goOn(HOUR_SECONDS + ABANDONED_SECONDS);
  const pair = [await openStore(), await openStore()] as const;
  // Proofs that were issued are behind the sweeps.
  const sweepBoth = async (): Promise<void> => {
    for (const stores of pair) await stores.collectExpired(NOW, 100);
  };
  for (let round = 0; round < 3; round += 1) await sweepBoth();
  const counts: number[] = [];
  const given: (readonly string[])[] = [];
  for (const stores of [pair[0], pair[1], pair[1], pair[0]]) {
    let asked = 0;
    given.push(
      await intercepted(
        (sent) => void (asked += sent.length),
        () => stores.collectReservations(NOW - HOUR_SECONDS),
      ),
    );
    counts.push(asked);
    await sweepBoth();
  }
  t.strictSame(
    given[0]!.filter((proofId) => proofId.startsWith('prf_left')).toSorted(),
    left,
    'one process collects what was left',
  );
  t.strictSame(given.slice(1), [[], [], []], 'and no other one, nor again');
  for (const stores of pair) await stores.close();
  return counts;
}

async function collectionCosts(t: Test): Promise<void> {
  // Ids that other tests have left go with the first.
  await collectionBeside(t, 1);
  const few = await collectionBeside(t, 10);
  t.strictSame(await collectionBeside(t, 150), few, 'it costs what was left, and not what is stored');
  t.ok(few[0]! > 5 && few[0]! < 40, `${few[0]} statements of 5 ids`);
  t.ok(few[1]! <= 2, 'a process without the lease asks for it alone');
}

const ROUNDS = 200;
const CREATORS = 4;

async function racedErasures(t: Test): Promise<void> {
  const pair = [await openStore(), await openStore()] as const;
  t.teardown(() => Promise.all(pair.map((stores) => stores.close())));
  const partnerId = 'ptr_raced';
  const counts = { created: 0, beside: 0 };
  for (let round = 0; round < ROUNDS; round += 1) {
    const { proofId } = await issue(pair[round % 2]!, `prf_raced-${round}`, partnerId);
    let isErased = false;
    let isBegun = (): void => undefined;
    const begun = new Promise<void>((resolve) => (isBegun = resolve));
    const create = async (stores: Stores, name: string) => {
      const began = isErased;
      const { outcome } = await stores.createReview(
        reviewCase(`rev_raced-${round}-${name}`, partnerId, proofId, {
          bindings: {
            creatorId: name,
            accountId: 'account',
            submissionId: 'submission',
            trackId: 'track',
          },
        }),
        audit(partnerId, 'review_created', name),
      );
      if (outcome === 'created') counts.created += 1;
      isBegun();
      if (outcome === 'created' && began) t.fail(`round ${round}: created after the erasure was answered`);
      return outcome;
    };
    const creators = Array.from({ length: CREATORS }, async (_, i) => {
      for (let n = 0; n < 50; n += 1)
        if ((await create(pair[i % 2]!, `${i}-${n}`)) !== 'created') return isErased || 'beside';
      return t.fail('never erased');
    });
    await begun;
    await delay(round % 20);
    await pair[(round + 1) % 2]!.eraseProof(
      proofId,
      partnerId,
      NOW,
      audit(partnerId, 'proof_erased', proofId),
    );
    isErased = true;
    if ((await create(pair[round % 2]!, 'after')) !== 'proof_gone') t.fail('after');
    for (const outcome of await Promise.all(creators)) if (outcome === 'beside') counts.beside += 1;
    if (round % 20 === 0) for (const stores of pair) await takeWaiting(stores);
  }
  const rows = await withClient(async (client) => {
    const found: string[] = [];
    for (let round = 0; round < ROUNDS; round += 1)
      for (const row of (
        await client.execute('SELECT part FROM record WHERE proof_id = ?', [`prf_raced-${round}`], {
          prepare: true,
        })
      ).rows)
        found.push(String(row['part']).split('/')[0]!);
    return found;
  }, connection.keyspace);
  t.equal(rows.filter((part) => part === '').length, ROUNDS);
  t.strictSame(
    rows.filter((part) => part !== '' && part !== 'act'),
    [],
    'nothing lies beside a tombstone',
  );
  t.comment(`${counts.created} created, ${counts.beside} refused before the erasure was answered`);
  t.ok(counts.created >= ROUNDS && counts.beside > 0, 'the rounds were contended');
  // The other process chains what it has decided.
  await pair[1].readAudit(partnerId, 1, 1);
  t.equal(
    (await pair[0].readAudit(partnerId, 1, 100_000)).filter(({ action }) => action === 'proof_erased').length,
    ROUNDS,
  );
}

/** Conditional writes of the work, without the audit log's. */
async function conditionalWritesOf(work: () => Promise<unknown>): Promise<number> {
  let count = 0;
  await intercepted((sent) => {
    const isConditional = sent.some(({ query }) => /\bIF (NOT EXISTS|EXISTS|\w+ (=|IN))/.test(query));
    if (isConditional && !sent[0]!.query.startsWith('INSERT INTO audit_entry')) count += 1;
  }, work);
  return count;
}

async function conditionalWrites(t: Test): Promise<void> {
  const stores = await openStore();
  t.teardown(() => stores.close());
  const operations = operationsOf('counted');
  const reviews = operationsOf('counted-review');
  const creating = reviews['creating a review']!;
  const resolving = operationsOf('counted-resolved')['changing a review']!;
  const erasing = operationsOf('counted-erasure')['erasing a proof']!;
  const { partnerId } = creating;
  const rotating = operations['rotating a key']!;
  await rotating.prepare(stores);
  for (const operation of [creating, resolving, erasing]) await operation.prepare(stores);
  await issue(stores, 'prf_counted-plain', partnerId);
  await stores.charge(usageCharge(partnerId, 'first'));
  const plainErasure = () =>
    stores.eraseProof('prf_counted-plain', partnerId, NOW, audit(partnerId, 'proof_erased', 'plain'));
  const evidence = () =>
    stores.changeReview(
      partnerId,
      'rev_counted-review',
      NOW,
      (now) => openEvidence(now, 'source_licence', 'req_counted', NOW),
      audit(partnerId, 'review_evidence_opened', 'rev_counted-review'),
    );
  const counted: Record<string, number> = {};
  for (const [what, work] of [
    ['issue', () => issue(stores, 'prf_counted-1', partnerId)],
    ['issue under a key', () => issue(stores, 'prf_counted-2', partnerId, 'counted')],
    ['verify', () => stores.charge(usageCharge(partnerId, 'second'))],
    ['create a review', () => creating.call(stores)],
    ['change a review', evidence],
    ['resolve a review', () => resolving.call(stores)],
    ['change an overlay', () => reviews['changing an overlay']!.call(stores)],
    ['erase', plainErasure],
    ['erase what was issued under a key', () => erasing.call(stores)],
    ['confirm', () => stores.confirmErasure('prf_counted-erasure', NOW)],
    ['rotate', () => rotating.call(stores)],
    ['revoke', () => operations['revoking a key']!.call(stores)],
  ] as const) {
    counted[what] = await conditionalWritesOf(work);
    // An erasure is confirmed when its event was published; before that its confirmation would complete it.
    await takeWaiting(stores);
  }
  t.strictSame(counted, {
    issue: 1,
    'issue under a key': 2,
    verify: 1,
    'create a review': 1,
    'change a review': 1,
    'resolve a review': 1,
    'change an overlay': 1,
    erase: 1,
    'erase what was issued under a key': 2,
    confirm: 1,
    rotate: 2,
    revoke: 1,
  });
  const shared = await conditionalWritesOf(() =>
    Promise.all(Array.from({ length: 40 }, (_, i) => stores.charge(usageCharge(partnerId, `shared-${i}`)))),
  );
  t.ok(shared <= 4, `${shared} for 40 verifications at once`);
}
