import { setTimeout as delay } from 'node:timers/promises';
import { Client, type policies, type QueryOptions, types } from 'cassandra-driver';
import t from 'tap';
import { defined } from '../../src/core/domain/defined.js';
import { type MigrationOptions, migrate } from '../../src/service/adapters/cassandra/driver/migrations.js';
import {
  type CassandraStore,
  type CassandraStoreOptions,
  openCassandraStore,
} from '../../src/service/adapters/cassandra/store.js';
import type { AuditHead } from '../../src/service/domain/audit.js';
import type { AuditHeads } from '../../src/service/ports/journals.js';
import { again } from '../fixtures/again.js';
import { authenticator } from '../fixtures/authentication.js';

// An empty variable counts as not set, as in the service's configuration.
export const ADDRESSES = process.env['TAKEMARK_CASSANDRA'] || undefined;
export const DATA_CENTER = process.env['TAKEMARK_CASSANDRA_DC'] || 'datacenter1';
export const KEY = Buffer.alloc(32, 7);

/** The keyspace of this process, which the test files of one process share. */
export const connection: MigrationOptions = {
  contactPoints: (ADDRESSES ?? '').split(','),
  localDataCenter: DATA_CENTER,
  keyspace: `takemark_test_${Date.now().toString(36)}_${process.pid}`,
  replication: Number(process.env['TAKEMARK_CASSANDRA_REPLICATION'] || 1),
};

let migration: Promise<unknown> | undefined;

/** Migrates the keyspace of this process once. The keyspace is dropped when all tests of the process have ended. */
export async function migrated(): Promise<void> {
  if (migration === undefined) {
    migration = again(() => migrate(connection));
    t.teardown(() => dropKeyspace(connection.keyspace));
  }
  await migration;
}

export function memoryHeads(): AuditHeads {
  const heads = new Map<string, AuditHead>();
  return {
    async record(head) {
      if ((heads.get(head.partnerId)?.sequence ?? 0) < head.sequence) heads.set(head.partnerId, head);
    },
    async get(partnerId) {
      return heads.get(partnerId);
    },
    async close() {},
  };
}

const READ = /^(get|list|find|read|due|waiting)/;
export const isUnanswered = (error: unknown): boolean =>
  (error as { readonly reason?: unknown }).reason === 'store_unavailable';

/**
 * Returns the stores with reads that are repeated where the server did not respond, until the stores are
 * closed.
 */
export function patient<Opened extends object>(stores: Opened): Opened {
  let isClosed = false;
  return new Proxy(stores, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function' || typeof name !== 'string') return value;
      const method = value.bind(target) as (...args: unknown[]) => Promise<unknown>;
      if (name === 'close') isClosed = true;
      if (isClosed) return method;
      return READ.test(name) ? (...args: unknown[]) => again(() => method(...args), isUnanswered) : method;
    },
  });
}

const realNow = Date.now;

/** Opens a store whose clock watch does not notice that a test sets the clock forward. */
export function openStore(over: Partial<CassandraStoreOptions> = {}): Promise<CassandraStore> {
  return again(() =>
    openCassandraStore({
      ...connection,
      authenticator,
      audit: { key: KEY, heads: memoryHeads() },
      clock: { now: () => realNow() },
      ...over,
    }),
  );
}

/**
 * The time limit of schema changes, in milliseconds. Each table of a dropped keyspace makes the server flush
 * all writes, also of other tests. With many tables that takes seconds.
 */
const DEFINITION_MS = 120_000;
/** Limits of a client that waits for schema changes. */
export const PATIENT = { connectTimeout: DEFINITION_MS, readTimeout: DEFINITION_MS };

export async function withClient<Value>(
  work: (client: Client) => Promise<Value>,
  keyspace?: string,
): Promise<Value> {
  const client = new Client({
    contactPoints: [...connection.contactPoints],
    localDataCenter: DATA_CENTER,
    socketOptions: PATIENT,
    // The server assigns timestamps, as for the store's own rows, because tests set the clock of their
    // process forward.
    policies: { timestampGeneration: null as unknown as policies.timestampGeneration.TimestampGenerator },
    ...(keyspace === undefined ? {} : { keyspace }),
  });
  try {
    return await work(client);
  } finally {
    await client.shutdown();
  }
}

/** Drops a keyspace, except in CI, where the servers are erased anyway. A drop slows the tests beside it. */
export async function dropKeyspace(keyspace: string): Promise<void> {
  if (process.env['CI'] === undefined)
    await withClient((client) => client.execute(`DROP KEYSPACE IF EXISTS ${keyspace}`));
}

export interface Sent {
  readonly query: string;
  readonly params: unknown[];
  /** The consistency of the statement, if it is not the client's. */
  readonly consistency?: types.consistencies;
}

/**
 * Runs the work while `look` sees, changes and delays the statements of every request to the driver.
 * @param isAnswered returns whether the caller gets the answer to a request
 */
export async function intercepted<Value>(
  look: (sent: readonly Sent[]) => void | Promise<void>,
  work: () => Promise<Value>,
  isAnswered: (sent: readonly Sent[]) => boolean = () => true,
): Promise<Value> {
  const { execute, batch } = Client.prototype as unknown as Record<
    'execute' | 'batch',
    (...args: unknown[]) => Promise<unknown>
  >;
  const patched = Client.prototype as unknown as Record<string, unknown>;
  const pass = async (sent: readonly Sent[], send: () => Promise<unknown>): Promise<unknown> => {
    await look(sent);
    const mayKnow = isAnswered(sent);
    const answer = await send();
    // An error of this kind means a defect of the program, so no caller waits and repeats.
    if (!mayKnow) throw new TypeError('no answer');
    return answer;
  };
  patched['execute'] = function (this: unknown, query: string, params: unknown[], options?: QueryOptions) {
    const sent = defined({ query, params, consistency: options?.consistency });
    return pass([sent], () => execute.call(this, query, params, options));
  };
  patched['batch'] = function (this: unknown, statements: Sent[], ...rest: unknown[]) {
    return pass(statements, () => batch.call(this, statements, ...rest));
  };
  try {
    return await work();
  } finally {
    Object.assign(patched, { execute, batch });
  }
}

/**
 * Runs the work as if its process died at a statement.
 * @param at the statement's beginning
 * @param taken whether the server still gets the statement
 */
export async function killedAt<Value>(
  at: string,
  taken: boolean,
  work: () => Promise<Value>,
): Promise<{ readonly wasKilled: boolean; readonly answer: Value | undefined }> {
  let wasKilled = false;
  const answer = await intercepted(
    (sent) => {
      if (wasKilled) throw new TypeError('killed');
      wasKilled = sent.some(({ query }) => query.startsWith(at));
      if (wasKilled && !taken) throw new TypeError('killed');
    },
    async () => {
      const value = await work().catch(() => undefined);
      // The call does not wait for work that follows its answer.
      for (const limit = Date.now() + 60_000; !wasKilled && Date.now() < limit; ) await delay(20);
      return value;
    },
    () => !wasKilled,
  );
  return { wasKilled, answer };
}

/**
 * Runs the work while the first request with such a statement is held in flight. Its caller gets no answer.
 * @returns the request, for `carryOut`
 */
export async function withheld(at: string, work: () => Promise<unknown>): Promise<readonly Sent[]> {
  let held: readonly Sent[] = [];
  await intercepted(
    (sent) => {
      if (held.length > 0 || !sent.some(({ query }) => query.startsWith(at))) return;
      held = sent.map(({ query, params }) => ({ query, params: [...params] }));
      throw new TypeError('no answer');
    },
    () => work().catch(() => undefined),
  );
  return held;
}

/**
 * Executes a held request on a server.
 * @returns whether its conditions were met
 */
export async function carryOut(held: readonly Sent[], keyspace = connection.keyspace): Promise<boolean> {
  const [row] = await withClient(async (client) => {
    const options = { prepare: true, isIdempotent: false };
    const sent = held.map(({ query, params }) => ({
      query,
      // The store's client does not set undefined values.
      params: params.map((value) => (value === undefined ? types.unset : value)),
    }));
    return sent.length === 1
      ? (await client.execute(sent[0]!.query, sent[0]!.params, options)).rows
      : (await client.batch(sent, options)).rows;
  }, keyspace);
  return row?.['[applied]'] === true;
}

/** Returns the parts of a proof's partition on the servers. */
export async function partsOf(proofId: string, keyspace = connection.keyspace): Promise<readonly string[]> {
  const { rows } = await withClient(
    (client) => client.execute('SELECT part FROM record WHERE proof_id = ?', [proofId], { prepare: true }),
    keyspace,
  );
  return rows.map((row) => row['part'] as string);
}

/**
 * Repeats the question until the answer is empty, for at most 30 s. Acts and pointers are deleted after the
 * calls that left them are answered.
 */
export async function leftInTheEnd<Left>(question: () => Promise<readonly Left[]>): Promise<readonly Left[]> {
  const limit = realNow() + 30_000;
  for (;;) {
    const left = await question();
    if (left.length === 0 || realNow() > limit) return left;
    await delay(10);
  }
}
