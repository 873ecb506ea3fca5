import { Client } from 'cassandra-driver';
import type { MigrationOptions } from '../../src/adapters/cassandra/driver/migrations.js';
import {
  type CassandraStore,
  type CassandraStoreOptions,
  openCassandraStore,
} from '../../src/adapters/cassandra/store.js';
import type { AuditHead } from '../../src/domain/audit.js';
import type { AuditHeads } from '../../src/ports/journals.js';
import { again } from '../fixtures/again.js';
import { authenticator } from '../fixtures/authentication.js';

// An empty variable counts as not set, as in the service's configuration.
export const ADDRESSES = process.env['TAKEMARK_CASSANDRA'] || undefined;
export const DATA_CENTER = process.env['TAKEMARK_CASSANDRA_DC'] || 'datacenter1';
export const KEY = Buffer.alloc(32, 7);

/** A keyspace of its own for every run. */
export const connection: MigrationOptions = {
  contactPoints: (ADDRESSES ?? '').split(','),
  localDataCenter: DATA_CENTER,
  keyspace: `takemark_test_${Date.now().toString(36)}_${process.pid}`,
  replication: Number(process.env['TAKEMARK_CASSANDRA_REPLICATION'] || 1),
};

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
const isUnanswered = (error: unknown): boolean =>
  (error as { readonly reason?: unknown }).reason === 'store_unavailable';

/** The stores with reads that are repeated where the server did not respond. */
export function patient<Opened extends object>(stores: Opened): Opened {
  return new Proxy(stores, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function' || typeof name !== 'string') return value;
      const method = value.bind(target) as (...args: unknown[]) => Promise<unknown>;
      return READ.test(name) ? (...args: unknown[]) => again(() => method(...args), isUnanswered) : method;
    },
  });
}

export function openStore(over: Partial<CassandraStoreOptions> = {}): Promise<CassandraStore> {
  return again(() =>
    openCassandraStore({ ...connection, authenticator, audit: { key: KEY, heads: memoryHeads() }, ...over }),
  );
}

/**
 * Time limit of definitions: each table of a dropped keyspace makes the server flush all that is being
 * written, by other tests too, which takes seconds with many tables.
 */
const DEFINITION_MS = 120_000;

export async function withClient<Value>(
  work: (client: Client) => Promise<Value>,
  keyspace?: string,
): Promise<Value> {
  const client = new Client({
    contactPoints: [...connection.contactPoints],
    localDataCenter: DATA_CENTER,
    socketOptions: { connectTimeout: DEFINITION_MS, readTimeout: DEFINITION_MS },
    ...(keyspace === undefined ? {} : { keyspace }),
  });
  try {
    return await work(client);
  } finally {
    await client.shutdown();
  }
}

/** Drops a keyspace, but not in CI, where the servers are erased anyway: a drop slows the tests beside it. */
export async function dropKeyspace(keyspace: string): Promise<void> {
  if (process.env['CI'] === undefined)
    await withClient((client) => client.execute(`DROP KEYSPACE IF EXISTS ${keyspace}`));
}

export interface Sent {
  readonly query: string;
  readonly params: unknown[];
}

/** Runs the work while `look` sees, changes and holds up the statements of every request to the driver. */
export async function intercepted<Value>(
  look: (sent: readonly Sent[]) => void | Promise<void>,
  work: () => Promise<Value>,
): Promise<Value> {
  const { execute, batch } = Client.prototype as unknown as Record<
    'execute' | 'batch',
    (...args: unknown[]) => Promise<unknown>
  >;
  const patched = Client.prototype as unknown as Record<string, unknown>;
  patched['execute'] = async function (this: unknown, query: string, params: unknown[], ...rest: unknown[]) {
    await look([{ query, params }]);
    return execute.call(this, query, params, ...rest);
  };
  patched['batch'] = async function (this: unknown, statements: Sent[], ...rest: unknown[]) {
    await look(statements);
    return batch.call(this, statements, ...rest);
  };
  try {
    return await work();
  } finally {
    Object.assign(patched, { execute, batch });
  }
}
