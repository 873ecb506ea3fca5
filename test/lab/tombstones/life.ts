/**
 * Simulates a life of every table of the Cassandra store, and then a restart. The store writes as fast as the
 * server allows, under a given clock. The server's counters report the tombstones that reads passed over.
 */
import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { Client, type ClientOptions, type policies } from 'cassandra-driver';
import { eachOf } from '../../../src/core/async/each-of.js';
import { type MigrationOptions, migrate } from '../../../src/service/adapters/cassandra/driver/migrations.js';
import { type CassandraStore, openCassandraStore } from '../../../src/service/adapters/cassandra/store.js';
import type { ReviewReminder } from '../../../src/service/domain/events.js';
import type { IssuedProof } from '../../../src/service/domain/proof.js';
import { authenticator } from '../../fixtures/authentication.js';
import { takeWaiting } from '../../store-contract/outbox-contract.js';
import {
  audit,
  issuedProof,
  partner,
  reviewCase,
  takeBack,
  usageCharge,
} from '../../store-contract/samples.js';

export interface LifeSize {
  readonly issued: number;
  /** The number of issued proofs that each get a review and are erased. */
  readonly erased: number;
  /** The units of one partner. Their dedupe rows have expired at the restart. */
  readonly units: number;
  /**
   * The number of processes that charged for the partner, and the removed minutes of each, in whole quarters
   * of an hour.
   */
  readonly writers: number;
  readonly minutes: number;
  /** The reminders of one hour, all delivered. */
  readonly reminders: number;
}

/** The former layouts. One of them replaces the present layout between store and server. */
export const FORMER_SHAPES = {
  /** Places all pointers in one partition. */
  'one-partition': (query: string, params: readonly unknown[]) =>
    /\bpointer\b/.test(query) ? [0, Array.isArray(params[1]) ? [0] : 0, ...params.slice(2)] : params,
  /** Places all reviews of a partner in one partition. */
  'reviews-of-a-partner': (query: string, params: readonly unknown[]) =>
    /\breview_by_partner\b/.test(query)
      ? [params[0], Array.isArray(params[1]) ? [0] : 0, ...params.slice(2)]
      : params,
  /** Places all reminders of an hour in one partition. */
  'reminders-of-an-hour': (query: string, params: readonly unknown[]) =>
    /\bdue_notice\b/.test(query)
      ? [params[0], Array.isArray(params[1]) ? [0] : 0, ...params.slice(2)]
      : params,
} as const;
export type FormerShape = keyof typeof FORMER_SHAPES;

export interface LifeOptions {
  readonly connection: MigrationOptions;
  readonly size: LifeSize;
  readonly planted?: FormerShape;
  readonly say: (line: string) => void;
}

export interface LifeResult {
  /**
   * The most tombstones that one read of each table passed over, from the server's counter. It is up to a
   * fifth too high.
   */
  readonly passed: ReadonlyMap<string, number>;
  /** The calls that failed after the restart. */
  readonly failed: readonly string[];
  readonly issuedPerSecond: number;
}

const ISSUED_PER_SECOND = 300;
const LANES = 32;
const PARTNERS = ['ptr_life-0', 'ptr_life-1', 'ptr_life-2', 'ptr_life-3'] as const;
const QUIET = 'ptr_life-quiet';
const REVIEWER = 'ptr_life-reviewer';
/** The number of reservations whose process dies. */
const ABANDONED = 20;
/** The remaining life of a dedupe row when it is written, in seconds. The row has expired at the restart. */
const UNIT_SECONDS = 2;
/** The time in seconds for which the store's `charge` rows outlive their key. */
const SPARE_SECONDS = 3600;
/**
 * The offset of the given clock from the server's time, in milliseconds. Deletions carry the time of a
 * process.
 */
const AHEAD_MS = 1_800_000;
const MINUTE_MS = 60_000;
/** The minutes between two folds of unread charges, and the minutes for which events are kept. */
const FOLD_MINUTES = 15;
const KEPT_MINUTES = 10;
/** The length of the time buckets of charges, in milliseconds. */
const TIME_BUCKET_MS = 15_000;
const LOOK_EVERY_MS = 5000;

export async function liveAndRestart({ connection, size, planted, say }: LifeOptions): Promise<LifeResult> {
  const { now: systemNow } = Date;
  const started = systemNow() + AHEAD_MS;
  let elapsedMs = 0;
  const openClient = (options: ClientOptions): Client =>
    planted === undefined ? new Client(options) : shaped(new Client(options), FORMER_SHAPES[planted]);
  const open = (): Promise<CassandraStore> =>
    openCassandraStore({
      ...connection,
      openClient,
      authenticator,
      audit: { key: Buffer.alloc(32, 7) },
      // The real clock, because the clock watch would report the speed of this life.
      clock: { now: () => systemNow() },
    });
  await migrate(connection);
  const counters = await Counters.of(connection);
  Date.now = () => started + Math.floor(elapsedMs);
  try {
    const before = await open();
    const issuedPerSecond = await issueAll(before, size, (issued) => {
      elapsedMs = Math.max(elapsedMs, (issued / ISSUED_PER_SECOND) * 1000);
    });
    say(`issued ${size.issued} proofs, ${Math.round(issuedPerSecond)} a second`);
    await eraseAll(before, size.erased);
    say(`erased ${size.erased} of them, each with a review`);
    await chargeAll(before, size, connection, (minutes) => {
      elapsedMs += minutes * MINUTE_MS;
    });
    say(`charged ${size.units} units, removed ${size.writers * size.minutes} minutes`);
    const late = await remindAll(before, size.reminders);
    say(`gave out ${size.reminders} reminders`);
    await before.close();
    await delay(UNIT_SECONDS * 1000 + 1000);

    elapsedMs += 150_000;
    const after = await open();
    const failed = await served(after, late);
    await after.close();
    return { passed: await counters.most(), failed, issuedPerSecond };
  } finally {
    Date.now = systemNow;
    await counters.close();
  }
}

/** Issues at 300 a second of the given clock, and reserves ids that are never issued. */
async function issueAll(
  stores: CassandraStore,
  { issued }: LifeSize,
  atIssued: (issued: number) => void,
): Promise<number> {
  for (const partnerId of [...PARTNERS, QUIET, REVIEWER])
    await stores.createPartner(partner(partnerId), audit(partnerId, 'partner_created', partnerId));
  const begun = performance.now();
  let done = 0;
  await eachOf(
    Array.from({ length: issued }, (_, i) => i),
    LANES,
    async (i) => {
      const proof = proofOf(i);
      await stores.reserveProof(proof.proofId, proof.partnerId, proof.createdAt);
      await stores.issueProof(proof, audit(proof.partnerId, 'proof_issued', proof.proofId));
      done += 1;
      atIssued(done);
    },
  );
  const seconds = (performance.now() - begun) / 1000;
  for (let i = 0; i < ABANDONED; i += 1)
    await stores.reserveProof(`prf_left-${i}`, PARTNERS[0], nowSeconds());
  return issued / seconds;
}

async function eraseAll(stores: CassandraStore, erased: number): Promise<void> {
  await eachOf(
    Array.from({ length: erased }, (_, i) => i),
    LANES,
    async (i) => {
      const proof = await stores.getProof(idOf(i));
      if (proof?.state !== 'issued') throw new Error(`proof ${i} is not issued`);
      const { proofId, partnerId } = proof;
      const review = reviewCase(`rev_life-${i}`, REVIEWER, proofId, { createdAt: nowSeconds() });
      await stores.createReview(review, review.createdAt, audit(REVIEWER, 'review_created', review.reviewId));
      await stores.eraseProof(proofId, partnerId, nowSeconds(), audit(partnerId, 'proof_erased', proofId));
      await stores.confirmErasure(proofId, nowSeconds());
    },
  );
  await takeWaiting(stores);
}

/** Charges a partner's units, after which it is quiet. Deletes time buckets as other processes do. */
async function chargeAll(
  stores: CassandraStore,
  { units, writers, minutes }: LifeSize,
  connection: MigrationOptions,
  goOn: (minutes: number) => void,
): Promise<void> {
  await eachOf(
    Array.from({ length: units }, (_, i) => i),
    200,
    async (i) => {
      const at = nowSeconds();
      const dedupeUntil = at + UNIT_SECONDS - SPARE_SECONDS;
      await stores.charge(usageCharge(QUIET, `unit-${i}`, { at, dedupeUntil, monthlyQuota: 1e9 }));
    },
  );
  const events = await takeWaiting(stores);
  await stores.aggregateUsage(events.flatMap((event) => (event.topic === 'usage' ? [event] : [])));
  const client = clientOf(connection);
  try {
    for (let done = 0; done < minutes; done += FOLD_MINUTES) {
      goOn(FOLD_MINUTES);
      const last = Math.floor((Date.now() - KEPT_MINUTES * MINUTE_MS) / TIME_BUCKET_MS);
      await eachOf(
        Array.from({ length: (writers * FOLD_MINUTES * MINUTE_MS) / TIME_BUCKET_MS }, (_, i) => i),
        LANES,
        async (i) => {
          const timeBucket = String(last - Math.floor(i / writers)).padStart(9, '0');
          const range = `event/${timeBucket}/writer-${i % writers}`;
          await client.execute(
            'DELETE FROM charge WHERE partner_id = ? AND item >= ? AND item < ?',
            [QUIET, `${range}/`, `${range}0`],
            { prepare: true, isIdempotent: true },
          );
        },
      );
      await stores.collectExpired(nowSeconds(), 1000);
    }
  } finally {
    await client.shutdown();
  }
}

/** @returns a reminder that is due at the restart */
async function remindAll(stores: CassandraStore, count: number): Promise<ReviewReminder> {
  const now = nowSeconds();
  const reminders = Array.from(
    { length: count + 1 },
    (_, i): ReviewReminder => ({
      kind: 'review_expired',
      dueAt: now,
      reviewId: `rev_due-${i}`,
      partnerId: REVIEWER,
      proofId: idOf(-1),
      expiresAt: now + 86_400,
    }),
  );
  const last = reminders.pop()!;
  await eachOf(
    Array.from({ length: Math.ceil(count / 200) }, (_, i) => reminders.slice(200 * i, 200 * (i + 1))),
    2,
    async (part) => {
      await stores.scheduleReminders(part, now);
      await eachOf(part, LANES, (reminder) => stores.completeReminder(reminder, undefined));
    },
  );
  await stores.scheduleReminders([last], now);
  return last;
}

/**
 * Makes the calls of a process that has just started.
 * @returns the failed calls with their errors
 */
async function served(stores: CassandraStore, due: ReviewReminder): Promise<readonly string[]> {
  const failed: string[] = [];
  const call = async (name: string, work: () => Promise<unknown>): Promise<void> => {
    const problem = await work().then(
      (value) => (value === false ? 'another answer than expected' : undefined),
      (error: unknown) => `${(error as Error).message} ${String((error as Error).cause ?? '')}`,
    );
    if (problem !== undefined) failed.push(`${name}: ${problem}`);
  };
  const proof = proofOf(-2);
  const { proofId, partnerId } = proof;
  const now = nowSeconds();
  // A read of usage before the next fold must add up the charges in flight.
  await call('charge', async () => {
    const { outcome } = await stores.charge(usageCharge(QUIET, 'after', { at: now, dedupeUntil: now + 60 }));
    return outcome === 'charged';
  });
  for (let pass = 0; pass < 2; pass += 1) await call('sweep', () => stores.collectExpired(now, 1000));
  await call('usage', async () => {
    const day = new Date(now * 1000).toISOString().slice(0, 10);
    const first = `${day.slice(0, 7)}-01`;
    const days = await stores.getDailyUsage(QUIET, first, day);
    return days.some(({ operations }) => (operations['verify'] ?? 0) > 0);
  });
  await call('collect', () => takeBack(stores, 0));
  await call('issue', async () => {
    await stores.reserveProof(proofId, partnerId, now);
    return (await stores.issueProof(proof, audit(partnerId, 'proof_issued', proofId))) === 'issued';
  });
  await call('read', async () => (await stores.getProof(proofId))?.state === 'issued');
  await call(
    'identify',
    async () => (await stores.findProofs('bound', proof.boundAudioSha256, 5)).length === 1,
  );
  await call('list', async () => (await stores.listProofs(partnerId, { limit: 50 })).length > 0);
  const review = reviewCase('rev_after', REVIEWER, proofId, { createdAt: now });
  await call('create a review', async () => {
    const { outcome } = await stores.createReview(
      review,
      review.createdAt,
      audit(REVIEWER, 'review_created', 'rev_after'),
    );
    return outcome === 'created';
  });
  await call('reminders', async () =>
    (await stores.dueReminders(now, 10)).some(({ reviewId }) => reviewId === due.reviewId),
  );
  await call('erase', async () => {
    const erased = await stores.eraseProof(
      proofId,
      partnerId,
      now,
      audit(partnerId, 'proof_erased', proofId),
    );
    return erased !== 'not_found' && erased.outcome === 'erased';
  });
  await call('confirm', async () => (await stores.confirmErasure(proofId, now)) === 'confirmed');
  await call('list partners', async () => (await stores.listPartners()).length >= PARTNERS.length);
  await call('read the log', async () => (await stores.readAudit(REVIEWER, 1, 10)).length > 0);
  return failed;
}

/**
 * A node's counters of the tombstones that a read passes over. The counters fade, so they are read
 * repeatedly.
 */
class Counters {
  readonly #client: Client;
  readonly #keyspace: string;
  readonly #most = new Map<string, number>();
  readonly #timer: NodeJS.Timeout;

  private constructor(client: Client, keyspace: string) {
    this.#client = client;
    this.#keyspace = keyspace;
    this.#timer = setInterval(() => void this.most().catch(() => undefined), LOOK_EVERY_MS);
  }

  static async of(connection: MigrationOptions): Promise<Counters> {
    const client = clientOf(connection);
    await client.connect();
    return new Counters(client, connection.keyspace);
  }

  async most(): Promise<ReadonlyMap<string, number>> {
    const { rows } = await this.#client.execute(
      'SELECT keyspace_name, table_name, max FROM system_views.tombstones_per_read',
      [],
      { fetchSize: 5000 },
    );
    for (const row of rows) {
      if (row['keyspace_name'] !== this.#keyspace) continue;
      const table = row['table_name'] as string;
      this.#most.set(table, Math.max(this.#most.get(table) ?? 0, Number(row['max'])));
    }
    return this.#most;
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#client.shutdown();
  }
}

function clientOf({ contactPoints, localDataCenter, keyspace }: MigrationOptions): Client {
  return new Client({
    contactPoints: [...contactPoints],
    localDataCenter,
    keyspace,
    policies: { timestampGeneration: null as unknown as policies.timestampGeneration.TimestampGenerator },
  });
}

/** Returns a client that sends the parameters of a former layout. */
function shaped(
  client: Client,
  shape: (query: string, params: readonly unknown[]) => readonly unknown[],
): Client {
  const execute = client.execute.bind(client) as (...args: unknown[]) => unknown;
  (client as unknown as Record<string, unknown>)['execute'] = (
    query: string,
    params: readonly unknown[],
    ...rest: readonly unknown[]
  ) => execute(query, shape(query, params), ...rest);
  return client;
}

function idOf(i: number): string {
  return `prf_life-${i}`;
}

function proofOf(i: number): IssuedProof {
  const proofId = idOf(i);
  const partnerId = PARTNERS[Math.abs(i) % PARTNERS.length]!;
  const digest = (of: string): string => createHash('sha256').update(`${of} ${i}`).digest('hex');
  return issuedProof(proofId, partnerId, {
    createdAt: nowSeconds(),
    originalSha256: digest('original'),
    boundAudioSha256: digest('bound'),
  });
}

function nowSeconds(): number {
  return Math.floor(Date.now() / 1000);
}
