/**
 * Tests decisions on a real Cassandra. A decision that a sweep has given up never takes effect, and a process
 * finishes every other decision exactly once. Processes die at a statement, and statements stay in flight as
 * long as a test wants.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { errors, types } from 'cassandra-driver';
import t, { type Test } from 'tap';
import { shardOfProof } from '../../src/service/adapters/cassandra/reviews/review-counts.js';
import { createEventRelay } from '../../src/service/background/relay.js';
import type { AuditAction } from '../../src/service/domain/audit.js';
import { proofErased, reviewCreated } from '../../src/service/domain/events.js';
import { openEvidence, REVIEW_LIFE_SECONDS, resolveReview } from '../../src/service/domain/review.js';
import type { Stores } from '../../src/service/ports/stores.js';
import { sized } from '../fixtures/sampling.js';
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
  takeBack,
  usageCharge,
} from '../store-contract/samples.js';
import {
  ADDRESSES,
  carryOut,
  connection,
  intercepted,
  killedAt,
  leftInTheEnd,
  migrated,
  openStore,
  partsOf,
  type Sent,
  withClient,
  withheld,
} from './cassandra-under-test.js';

const LISTED = { limit: 10 } as const;
const HOUR_SECONDS = 3600;
/** The time after which a sweep visits a pointer, with a margin, in seconds. */
const ABANDONED_SECONDS = 60;

const realNow = Date.now;
let ahead = 0;

/**
 * Sets the process's clock forward, so that sweeps find old decisions. The clock never goes back, because
 * rows would be from the future.
 */
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
  t.before(migrated);
  t.teardown(() => void (Date.now = realNow));
  void t.test('a decision is refused after a sweep gave it up, and its repetition works', lateDecisions);
  void t.test('a late issuing is refused once its id was taken back', lateIssuing);
  void t.test('a process that dies at any step leaves what another one finishes once', abandonedDecisions);
  void t.test('an approval that was withdrawn does not come back by a late sending', lateApproval);
  void t.test('an erasure is published and audited when its cleaning fails', failedCleaning);
  void t.test('a log that is stuck holds up no events, nor repeats its own', stuckLog);
  void t.test('a sweep raises the generation before it looks', fenceThenLook);
  void t.test('a creation that was refused does not take effect by its first sending', lateCreation);
  void t.test('a pointer is written where sweeps look for it, with any clock', timelyPointers);
  void t.test('an issuing that arrives while a sweep looks is finished', issuedBetweenLooks);
  void t.test('an answer that builds on an interrupted call completes it', interruptedCalls);
  void t.test('reviews that came to nothing count for no bound of a proof', uncountedReviews);
  void t.test('a review that came to nothing leaves no row that names its erased proof', failedReviews);
  void t.test('an abandoned reservation is taken back after its hour', abandonedReservation);
  void t.test(
    'reservations of processes that died are collected by one process, at the cost of these',
    collectionCosts,
  );
  void t.test('no review survives an erasure, and none is created after it', racedErasures);
  void t.test('operations need as many conditional writes as the model says', conditionalWrites);
}

/** A changing operation on its own things. */
interface Operation {
  /** The start of a statement of its decision. */
  readonly decision: string;
  readonly table: string;
  readonly keyColumn: string;
  readonly key: string;
  readonly partnerId: string;
  readonly action: AuditAction;
  /** The start of the first statement after the decision. */
  readonly follows?: string;
  /** The partition of the decisions that follow. */
  readonly followsBy?: Pick<Operation, 'table' | 'keyColumn' | 'key'>;
  /** The id of the event that reports it. */
  readonly event?: string;
  readonly prepare: (stores: Stores) => Promise<unknown>;
  readonly call: (stores: Stores) => Promise<unknown>;
  /** Returns whether readers find in all places that the operation was done. */
  readonly isDone: (stores: Stores) => Promise<boolean>;
  /**
   * Whether the same call may be repeated after it was given up. Ids of partners and keys are drawn only
   * once.
   */
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
    stores.createReview(review, review.createdAt, audit(partnerId, 'review_created', reviewId));
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
      follows: 'INSERT INTO key_by_partner',
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
      follows: 'INSERT INTO key_by_partner',
      action: 'key_rotated',
      prepare: createKey,
      call: (stores) =>
        stores.rotateKey(rotation(key, next.keyId, 1), next, audit(partnerId, 'key_rotated', key.keyId)),
      // Asks for the successor first, because asking for the rotation would complete it.
      isDone: async (stores) =>
        (await stores.getKey(next.keyId)) !== undefined &&
        (await stores.listKeys(partnerId)).length === 2 &&
        (await stores.getRotation(key.keyId)) !== undefined,
    },
    'revoking a key': {
      table: 'key_revocation',
      keyColumn: 'partner_id',
      key: partnerId,
      partnerId,
      isRepeatable: true,
      decision: 'UPDATE key_revocation SET gen = ?, revocation',
      follows: 'UPDATE api_key SET revoked_at',
      followsBy: onKey,
      action: 'key_revoked',
      prepare: createKey,
      call: (stores) => stores.revokeKey({ partnerId, keyId: key.keyId, at: NOW }),
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
      follows: 'INSERT INTO review_by_partner',
      action: 'review_created',
      event: reviewCreated(review).id,
      prepare: (stores) => issue(stores, proofId, partnerId),
      call: createReview,
      isDone: async (stores) =>
        (await stores.getReview(partnerId, reviewId, NOW)) !== undefined &&
        (await stores.listReviews(partnerId, LISTED, NOW)).reviews.some((each) => each.reviewId === reviewId),
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
      follows: 'DELETE FROM proof_by_',
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

/** Returns the acts of an operation's partition, and the pointers to it. */
async function leftOf({
  table,
  keyColumn,
  key,
  followsBy,
}: Pick<Operation, 'table' | 'keyColumn' | 'key' | 'followsBy'>): Promise<readonly string[]> {
  const behind = followsBy === undefined ? [] : await leftOf(followsBy);
  return withClient(async (client) => {
    const acts = await client.execute(
      `SELECT part FROM ${table} WHERE ${keyColumn} = ? ALLOW FILTERING`,
      [key],
      { prepare: true },
    );
    const pointers = await client.execute('SELECT kind, key FROM pointer');
    return [
      ...behind,
      ...acts.rows.filter((row) => String(row['part']).startsWith('act/')).map(() => 'act'),
      ...pointers.rows.filter((row) => row['key'] === key).map((row) => `pointer ${row['kind']}`),
    ];
  }, connection.keyspace);
}

/** Publishes what waits. Returns how often the operation's event was among it. */
async function publications(stores: Stores, { event }: Operation): Promise<number> {
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
  // Shows that the same statements take effect without a sweep between.
  const timely = whats.map((what, i) => operationsOf(`timely-${i}`)[what]!);
  for (const [i, operation] of timely.entries()) {
    await operation.prepare(other);
    const sent = await withheld(operation.decision, () => operation.call(late));
    t.ok(await carryOut(sent), `${whats[i]}: takes effect without a sweep`);
  }
  await sweep(other);
  const published = (await takeWaiting(other)).map(({ id }) => id);
  for (const [i, operation] of timely.entries()) {
    const what = whats[i]!;
    t.ok(await operation.isDone(other), `${what}: is finished`);
    t.equal(await entriesOf(other, operation), 1, `${what}: is audited`);
    if (operation.event !== undefined) t.ok(published.includes(operation.event), `${what}: is published`);
  }
  for (const [i, operation] of given.entries()) {
    const what = whats[i]!;
    t.notOk(await operation.isDone(other));
    t.notOk(await carryOut(held[i]!), `${what}: refused`);
    t.notOk(await operation.isDone(other), `${what}: nothing is changed`);
    t.equal(await entriesOf(other, operation), 0);
    t.notOk(published.includes(String(operation.event)));
    if (operation.isRepeatable) {
      await operation.call(late);
      t.ok(await operation.isDone(other), `${what}: its repetition works`);
      t.notOk(await carryOut(held[i]!), `${what}: refused after its repetition, too`);
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
  for (const operation of [...given, ...timely])
    t.strictSame(await leftInTheEnd(() => leftOf(operation)), []);
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
  t.strictSame(await takeBack(stores, NOW + 1), ['prf_collected']);
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

/** The statements at which a process dies, in the order of an operation, and whether the server gets them. */
const DEATHS = [
  ['before the decision', (operation: Operation) => operation.decision, false],
  ['after the decision', (operation: Operation) => operation.decision, true],
  ['between the event and what follows', ({ follows }: Operation) => follows, false],
  ['before the audit entry', () => 'INSERT INTO audit_entry', false],
  ['after the audit entry', () => 'INSERT INTO audit_entry', true],
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
      follows: 'INSERT INTO proof_by_',
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
    // An undecided issuing leaves a reservation, which has its own test.
    if (isDecided) operations.set('issuing a proof', issuing(`dead-issue-${j}`));
    await t.test(when, async (t) => {
      for (const [what, operation] of operations) {
        const at = statement(operation);
        if (at === undefined) {
          operations.delete(what);
          continue;
        }
        await operation.prepare(other);
        // Otherwise the doomed process would first remove the remains, and die there.
        await leftInTheEnd(() => leftOf(operation));
        const doomed = await openStore();
        const { wasKilled } = await killedAt(at, taken, async () => {
          await operation.call(doomed).catch(() => undefined);
          await takeWaiting(doomed);
        });
        await doomed.close();
        t.ok(wasKilled, what);
        t.strictNotSame(await leftOf(operation), [], `${what}: a pointer leads to it`);
      }
      await takeWaiting(other);
      await sweep(other);
      const published = (await takeWaiting(other)).map(({ id }) => id);
      t.equal(new Set(published).size, published.length);
      for (const [what, operation] of operations) {
        const { event } = operation;
        t.equal(await operation.isDone(other), isDecided, `${what}: done or not, as it was decided`);
        t.equal(await entriesOf(other, operation), isDecided ? 1 : 0, `${what}: audited once`);
        // If the process died before it could mark a published event, the event may be published again.
        if (event !== undefined && j < 4) t.equal(published.includes(event), isDecided, `${what}: published`);
      }
      await sweep(other);
      await sweep(other);
      t.strictSame(await takeWaiting(other), [], 'nothing is published again');
      for (const [what, operation] of operations) {
        t.strictSame(await leftInTheEnd(() => leftOf(operation)), [], `${what}: nothing is left to do`);
        if (!operation.isRepeatable) continue;
        await operation.call(other);
        t.ok(await operation.isDone(other), `${what}: the client's repetition finds it done`);
        t.equal(await entriesOf(other, operation), 1, `${what}: and not twice`);
      }
      await takeWaiting(other);
    });
  }
}

async function failedCleaning(t: Test): Promise<void> {
  const stores = await openStore();
  t.teardown(() => stores.close());
  const erasing = operationsOf('cleaning')['erasing a proof']!;
  await erasing.prepare(stores);
  await intercepted(
    (sent) => {
      if (sent.some(({ query }) => query.startsWith('DELETE FROM proof_by_original')))
        throw new errors.OperationTimedOutError('no answer');
    },
    async () => {
      for (let attempt = 0; attempt < 2; attempt += 1)
        await t.rejects(erasing.call(stores), { code: 'unavailable' }, 'it is not acknowledged');
      t.equal(await publications(stores, erasing), 1);
      t.equal(await entriesOf(stores, erasing), 1);
      goOn(ABANDONED_SECONDS);
      await t.rejects(stores.collectExpired(NOW, 100), { code: 'unavailable' });
      t.equal(await entriesOf(stores, erasing), 1, 'once');
    },
  );
  t.match(await erasing.call(stores), { outcome: 'already_erased' });
  t.ok(await erasing.isDone(stores));
  await sweep(stores);
  t.equal(await publications(stores, erasing), 0, 'it is not published again');
  await sweep(stores);
  t.equal(await entriesOf(stores, erasing), 1);
  t.strictSame(await leftInTheEnd(() => leftOf(erasing)), []);
}

async function stuckLog(t: Test): Promise<void> {
  const stores = await openStore();
  const erasures = ['stuck-log', 'other-log'].map((name) => operationsOf(name)['erasing a proof']!);
  const [stuck, free] = [erasures[0]!, erasures[1]!];
  const sent: string[] = [];
  let marked = 0;
  let areMarked = (): void => undefined;
  const bothMarked = new Promise<string>((resolve) => (areMarked = () => resolve('marked')));
  const relay = createEventRelay({
    stores,
    bus: {
      async publish(events, settled) {
        sent.push(...events.map(({ id }) => id));
        for (const event of events) settled?.(event);
      },
    },
    observer: {
      events(_topic, _what, count) {
        marked += count;
        if (marked === 2) areMarked();
      },
      fault: () => undefined,
    },
  });
  t.teardown(async () => {
    await relay.stop();
    await stores.close();
  });
  for (const erasing of erasures) {
    await erasing.prepare(stores);
    await entriesOf(stores, erasing);
  }
  relay.start();
  let hangs = true;
  let goesOn = (): void => undefined;
  const released = new Promise<void>((resolve) => (goesOn = resolve));
  await intercepted(
    async ([first]) => {
      if (!first?.query.startsWith('INSERT INTO audit_entry') || first.params[0] !== stuck.partnerId) return;
      if (hangs) await released;
      throw new TypeError('no answer');
    },
    async () => {
      await stuck.call(stores);
      while (sent.length === 0) await delay(1);
      await free.call(stores);
      const chained = entriesOf(stores, stuck).then(() => 'the log has ended');
      t.equal(await Promise.race([bothMarked, chained]), 'marked');
      hangs = false;
      goesOn();
      for (let round = 0; round < 3; round += 1) await sweep(stores);
    },
  );
  t.equal(await entriesOf(stores, stuck), 0);
  await sweep(stores);
  await sweep(stores);
  t.equal(await entriesOf(stores, stuck), 1, 'a later sweep audits it');
  t.strictSame(await leftInTheEnd(() => leftOf(stuck)), []);
  t.strictSame(sent.toSorted(), erasures.map(({ event }) => event).toSorted(), 'each is sent once');
}

const FENCE = 'UPDATE record SET gen = ? WHERE proof_id = ? AND part = ';

function isFence(sent: readonly Sent[]): boolean {
  return sent.length === 1 && sent[0]!.query.startsWith(FENCE);
}

/**
 * Runs the call, and leaves its first request with the decision in flight without an answer. So the request
 * is sent again.
 * @param meanwhile what others do before the second sending
 * @returns the first request, for `carryOut`, and the result of the call
 */
async function sentAgain<Value>(
  decision: string,
  call: () => Promise<Value>,
  meanwhile: () => Promise<unknown> = async () => undefined,
): Promise<{ readonly first: readonly Sent[]; readonly answer: Value }> {
  let first: readonly Sent[] = [];
  const answer = await intercepted(async (sent) => {
    if (first.length > 0 || !sent.some(({ query }) => query.startsWith(decision))) return;
    first = sent.map(({ query, params }) => ({ query, params: [...params] }));
    await meanwhile();
    throw new errors.OperationTimedOutError('no answer');
  }, call);
  return { first, answer };
}

async function lateApproval(t: Test): Promise<void> {
  const stores = await openStore();
  t.teardown(() => stores.close());
  const approving = operationsOf('approval')['approving a partner']!;
  const { partnerId } = approving;
  await approving.prepare(stores);
  const { first, answer } = await sentAgain(approving.decision, () => approving.call(stores));
  t.equal(answer, 'changed');
  await leftInTheEnd(() => leftOf(approving));
  t.notOk(await carryOut(first), 'refused after its own second sending');
  t.equal(
    await stores.setSourceDetail(
      partnerId,
      undefined,
      audit(partnerId, 'source_detail_withdrawn', partnerId),
    ),
    'changed',
  );
  t.notOk(await carryOut(first), 'and after the withdrawal');
  t.strictSame((await stores.getPartner(partnerId))?.sourceDetail, undefined);
}

async function fenceThenLook(t: Test): Promise<void> {
  const [caller, sweeper] = [await openStore(), await openStore()];
  t.teardown(() => Promise.all([caller.close(), sweeper.close()]));
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
  t.equal(await entriesOf(sweeper, between), 1, 'and finds it after the fence');
  t.equal(await publications(sweeper, between), 1);

  // The decision of a running call arrives after the sweep.
  const behind = reviewing('later');
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
  t.equal(await publications(caller, behind), 1);
  await sweep(sweeper);
  t.equal(await publications(sweeper, behind), 0);
  t.equal(await entriesOf(sweeper, behind), 1);
}

async function lateCreation(t: Test): Promise<void> {
  const [caller, other] = [await openStore(), await openStore()];
  t.teardown(() => Promise.all([caller.close(), other.close()]));
  /** Prepares the creation of a review whose place another process takes before the second sending. */
  const refused = async (name: string) => {
    const operation = operationsOf(name)['creating a review']!;
    const { key: proofId, partnerId } = operation;
    const rival = reviewCase(`rev_${name}-rival`, partnerId, proofId);
    await operation.prepare(other);
    const createRival = () =>
      other
        .createReview(rival, rival.createdAt, audit(partnerId, 'review_created', rival.reviewId))
        .then(async (created) => {
          t.match(created, { outcome: 'created' });
          await takeWaiting(other);
        });
    const resolveRival = () =>
      other.changeReview(
        partnerId,
        rival.reviewId,
        NOW,
        (now) => resolveReview(now, 'accepted', NOW),
        audit(partnerId, 'review_resolved', rival.reviewId),
      );
    return { operation, createRival, resolveRival };
  };

  const late = await refused('late-creation');
  const { first, answer } = await sentAgain(
    late.operation.decision,
    () => late.operation.call(caller),
    late.createRival,
  );
  t.match(answer, { outcome: 'exists', reviewId: 'rev_late-creation-rival' });
  await late.resolveRival();
  t.notOk(await carryOut(first), 'the place is free again, and the first sending is refused');
  t.notOk(await late.operation.isDone(other));

  // The first sending arrives before its caller looks for it.
  const found = await refused('found-creation');
  let held: readonly Sent[] = [];
  let arrivals = 0;
  const created = await intercepted(
    async (sent) => {
      if (sent.some(({ params }) => params.includes('case/rev_found-creation')))
        held = sent.map(({ query, params }) => ({ query, params: [...params] }));
      if (arrivals > 0 || !isFence(sent) || sent[0]!.params[1] !== found.operation.key) return;
      arrivals += 1;
      await found.resolveRival();
      t.ok(await carryOut(held));
    },
    async () =>
      (await sentAgain(found.operation.decision, () => found.operation.call(caller), found.createRival))
        .answer,
  );
  t.equal(arrivals, 1);
  t.match(created, { outcome: 'created' });
  t.ok(await found.operation.isDone(other));
  t.equal(await publications(caller, found.operation), 1, 'it is published');
  t.equal(await entriesOf(caller, found.operation), 2, 'and audited, beside its rival');
  await sweep(other);
  t.equal(await publications(other, found.operation), 0);
  t.strictSame(await leftInTheEnd(() => leftOf(found.operation)), []);
}

async function timelyPointers(t: Test): Promise<void> {
  const clock = { off: 0, now: () => realNow() + clock.off };
  const stores = await openStore({ clock });
  t.teardown(() => stores.close());
  /** Returns the time buckets of a reservation's pointer, if the clock advances after the first one. */
  const timeBuckets = async (proofId: string, seconds: number) => {
    const found: number[] = [];
    await intercepted(
      ([sent]) => {
        if (!sent?.query.startsWith('INSERT INTO pointer')) return;
        found.push(Number(sent.params[0]));
        if (found.length === 1) goOn(seconds);
      },
      () => stores.reserveProof(proofId, 'ptr_timely', NOW),
    );
    return found;
  };
  t.equal((await timeBuckets('prf_timely-0', 0)).length, 1);
  const [first, second, ...others] = await timeBuckets('prf_timely-1', 61);
  t.ok(second! - first! >= 4, 'a machine that was frozen writes it again');
  t.strictSame(others, []);
  clock.off = -21_000;
  await t.rejects(stores.reserveProof('prf_timely-2', 'ptr_timely', NOW), {
    code: 'unavailable',
    reason: 'store_unavailable',
  });
  clock.off = 0;
  await stores.reserveProof('prf_timely-2', 'ptr_timely', NOW);
}

async function issuedBetweenLooks(t: Test): Promise<void> {
  const [doomed, sweeper] = [await openStore(), await openStore()];
  t.teardown(() => sweeper.close());
  const [proofId, partnerId] = ['prf_between-looks', 'ptr_between-looks'];
  const held = await withheld('INSERT INTO record', () => issue(doomed, proofId, partnerId));
  await doomed.close();
  let hasLooked = false;
  let arrivals = 0;
  goOn(ABANDONED_SECONDS);
  await intercepted(
    async ([sent]) => {
      if (sent?.params[0] !== proofId) return;
      if (sent.query.startsWith('SELECT act')) hasLooked = true;
      // The next read is of the head, with which the sweep decides the fate of the reservation.
      else if (hasLooked && arrivals === 0) {
        arrivals += 1;
        t.ok(await carryOut(held));
      }
    },
    () => sweeper.collectExpired(NOW, 100),
  );
  t.equal(arrivals, 1);
  await sweep(sweeper);
  t.ok(await isListed(sweeper, partnerId, proofId));
  t.strictSame(
    (await sweeper.readAudit(partnerId, 1, 10)).map(({ action }) => action),
    ['proof_issued'],
  );
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
  t.match(await creating.call(other), { outcome: 'kept' });
  t.equal(await entriesOf(other, creating), 1, 'a repeated creation chains the entry');
  t.equal(await publications(other, creating), 1, 'and has the event published');

  const named = operationsOf('interrupted-named')['creating a review']!;
  await interrupted(named);
  const rival = reviewCase('rev_interrupted-rival', named.partnerId, named.key);
  t.strictSame(
    await other.createReview(
      rival,
      rival.createdAt,
      audit(named.partnerId, 'review_created', rival.reviewId),
    ),
    {
      outcome: 'exists',
      reviewId: 'rev_interrupted-named',
    },
  );
  t.equal(await entriesOf(other, named), 1, 'a review that a refusal names is completed');
  t.equal(await publications(other, named), 1);

  const erasing = operationsOf('interrupted-erasure')['erasing a proof']!;
  await interrupted(erasing);
  const consistencies: unknown[] = [];
  const repeated = await intercepted(
    ([sent]) => {
      if (sent?.query.startsWith('SELECT act')) consistencies.push(sent.consistency);
    },
    () => erasing.call(other),
  );
  t.match(repeated, { outcome: 'already_erased' });
  t.strictSame(consistencies, [types.consistencies.localSerial], 'no half of a decision is missed');
  t.ok(await erasing.isDone(other), 'a repeated erasure removes what pointed at the proof');
  t.equal(await entriesOf(other, erasing), 1);
  t.equal(await publications(other, erasing), 1);

  const [proofId, partnerId] = ['prf_interrupted-issue', 'ptr_interrupted-issue'];
  const doomed = await openStore();
  await killedAt('INSERT INTO record', true, () => issue(doomed, proofId, partnerId, 'interrupted'));
  await doomed.close();
  t.notOk(await isListed(other, partnerId, proofId));
  t.match(await other.getIssuingReplay('interrupted', NOW), { proofId });
  t.ok(await isListed(other, partnerId, proofId), 'a replayed proof is listed');
  t.strictSame(
    (await other.readAudit(partnerId, 1, 10)).map(({ action }) => action),
    ['proof_issued'],
  );

  const rotating = operationsOf('interrupted-rotation')['rotating a key']!;
  await interrupted(rotating);
  t.match(await rotating.call(other), { newKeyId: 'key_interrupted-rotation-next' });
  t.ok(await rotating.isDone(other), 'a replayed rotation has its successor');

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
    for (const operation of [creating, named, erasing, rotating])
      t.equal(await entriesOf(other, operation), 1);
  }
  for (const operation of [creating, named, erasing, rotating])
    t.strictSame(await leftInTheEnd(() => leftOf(operation)), []);
}

/** Writes a row that counts and lists a review, without the review. */
async function writeRowAlone(partnerId: string, proofId: string, reviewId: string): Promise<void> {
  await withClient(
    (client) =>
      client.execute(
        'INSERT INTO review_by_partner (partner_id, shard, proof_id, created_at, review_id) VALUES (?, ?, ?, ?, ?)',
        [partnerId, shardOfProof(proofId), proofId, NOW, reviewId],
        { prepare: true },
      ),
    connection.keyspace,
  );
}

async function uncountedReviews(t: Test): Promise<void> {
  const stores = await openStore();
  t.teardown(() => stores.close());
  const [proofId, partnerId] = ['prf_uncounted', 'ptr_uncounted'];
  await issue(stores, proofId, partnerId);
  const bounds = { perProof: 2, perPartner: 100 };
  const create = (name: string, createdAt: number) => {
    const { bindings, ...review } = reviewCase(`rev_uncounted-${name}`, partnerId, proofId, { createdAt });
    return stores.createReview(
      { ...review, bindings: { ...bindings, trackId: name } },
      NOW,
      audit(partnerId, 'review_created', review.reviewId),
      { bounds },
    );
  };
  // Earlier versions wrote these rows before the review.
  for (const name of ['a', 'b', 'c']) await writeRowAlone(partnerId, proofId, `rev_uncounted-${name}`);
  t.strictSame(await create('d', NOW + 1), { outcome: 'created' });
  t.strictSame(await create('e', NOW + 2), { outcome: 'created' });
  t.strictSame(
    await create('f', NOW + 3),
    { outcome: 'full', until: NOW + 1 + REVIEW_LIFE_SECONDS },
    'until the oldest ends that is there',
  );

  // A backup brought the row back and not the review, so the erasure does not know of the partner.
  const other = 'ptr_uncounted-other';
  await writeRowAlone(other, proofId, 'rev_uncounted-other');
  await stores.eraseProof(proofId, partnerId, NOW, audit(partnerId, 'proof_erased', proofId));
  const left = async () =>
    (
      await withClient(
        (client) =>
          client.execute(
            'SELECT review_id FROM review_by_partner WHERE partner_id = ? AND shard = ?',
            [other, shardOfProof(proofId)],
            { prepare: true },
          ),
        connection.keyspace,
      )
    ).rows.map((row) => String(row['review_id']));
  t.strictSame(await left(), ['rev_uncounted-other']);
  t.strictSame((await stores.listReviews(other, { limit: 10 }, NOW + 5)).reviews, []);
  t.strictSame(await leftInTheEnd(left), [], 'the list removes the row');
}

async function failedReviews(t: Test): Promise<void> {
  const stores = await openStore();
  t.teardown(() => stores.close());
  for (const at of ['INSERT INTO pointer', 'INSERT INTO record (proof_id, part, op']) {
    const operation = operationsOf(`failed-review-${at.split(' ')[2]}`);
    const [creating, erasing] = [operation['creating a review']!, operation['erasing a proof']!];
    await creating.prepare(stores);
    await withheld(at, () => creating.call(stores));
    t.match(await erasing.call(stores), { outcome: 'erased' });
    const { rows } = await withClient(
      (client) =>
        client.execute(
          'SELECT review_id FROM review_by_partner WHERE partner_id = ? AND shard = ?',
          [creating.partnerId, shardOfProof(creating.key)],
          { prepare: true },
        ),
      connection.keyspace,
    );
    t.strictSame(rows, [], `${at}: no row names the erased proof`);
  }
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
    return (await takeBack(other, NOW - HOUR_SECONDS)).filter((each) => each === proofId);
  };
  /** Lets a time in seconds pass in which sweeps find nothing else. */
  const quietly = async (seconds: number) => {
    await other.close();
    goOn(seconds);
    await withClient(async (client) => {
      await client.execute(
        "INSERT INTO watermark (name, bucket) VALUES ('pointers', ?)",
        [Math.floor((Date.now() - 2 * HOUR_SECONDS * 1000) / 15_000)],
        { prepare: true },
      );
      // The lease ends by the server's clock, which does not go faster here.
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

/** Returns the numbers of statements of a collection, beside a number of issued proofs. */
async function collectionBeside(t: Test, issued: number): Promise<readonly number[]> {
  await withClient((client) => client.execute('TRUNCATE lease'), connection.keyspace);
  const doomed = await openStore();
  for (let i = 0; i < issued; i += 1) await issue(doomed, `prf_beside-${issued}-${i}`, 'ptr_beside');
  const left = Array.from({ length: 5 }, (_, i) => `prf_left-${issued}-${i}`);
  for (const proofId of left) await doomed.reserveProof(proofId, 'ptr_beside', NOW);
  await doomed.close();
  goOn(HOUR_SECONDS + ABANDONED_SECONDS);
  const pair = [await openStore(), await openStore()] as const;
  // These sweeps pass over the issued proofs.
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
        () => takeBack(stores, NOW - HOUR_SECONDS),
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
  // The first collection removes the ids of other tests.
  await collectionBeside(t, 1);
  const few = await collectionBeside(t, 10);
  t.strictSame(await collectionBeside(t, 150), few, 'it costs what was left, and not what is stored');
  t.ok(few[0]! > 5 && few[0]! < 40, `${few[0]} statements of 5 ids`);
  t.ok(few[1]! <= 2, 'a process without the lease asks for it alone');
}

const ROUNDS = sized(200, 30);
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
        NOW,
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
    'nothing is stored beside a tombstone',
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

/** Counts the conditional writes of the work, without those of the audit log. */
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
    // An erasure is confirmed after its event was published, because the confirmation would complete it
    // earlier.
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
    'erase what was issued under a key': 1,
    confirm: 1,
    rotate: 2,
    revoke: 3,
  });
  const shared = await conditionalWritesOf(() =>
    Promise.all(Array.from({ length: 40 }, (_, i) => stores.charge(usageCharge(partnerId, `shared-${i}`)))),
  );
  t.ok(shared <= 4, `${shared} for 40 verifications at once`);
}
