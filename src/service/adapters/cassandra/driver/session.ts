import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { auth, Client, type ClientOptions, errors, policies, types } from 'cassandra-driver';
import { jittered, pauseAfter } from '../../../../core/async/backoff.js';
import { withDeadline } from '../../../../core/async/deadline.js';
import { defined } from '../../../../core/domain/defined.js';
import { DomainError } from '../../../../core/domain/errors.js';
import { patchDriver } from './driver-patches.js';

export interface ConnectionOptions {
  /** The addresses, each as `host:port`. */
  readonly contactPoints: readonly string[];
  readonly localDataCenter: string;
  readonly credentials?: { readonly username: string; readonly password: string };
  /** The path of the PEM file of the servers' authority. If present, connections are encrypted. */
  readonly tls?: { readonly authority: string };
  /** The data centres of the keyspace, and which of them serve. The default is `one_data_centre`. */
  readonly topology?: TopologyKind;
  /** Makes the driver's client; a simulation puts one of its own in its place. */
  readonly openClient?: (options: ClientOptions) => Client;
}

/**
 * The data centres of a keyspace. `one_active`: the others get copies, and no process serves there. `all_active`:
 * processes serve in each, so decisions and reads need a quorum over all data centres.
 */
export type TopologyKind = 'one_data_centre' | 'one_active' | 'all_active';

export type Row = types.Row;

export interface Statement {
  readonly query: string;
  readonly params: readonly unknown[];
  /**
   * The operation id that a conditional statement leaves in its row, and the column for it. A refusal by a row
   * with this id counts as applied, because an earlier sending of the same statement took effect.
   */
  readonly operation?: { readonly column: string; readonly id: string };
}

/** A node of the cluster, as the driver knows it. */
export interface ClusterNode {
  /** The address with the port. */
  readonly address: string;
  readonly dataCenter: string;
  /** The release of Cassandra, such as `5.0.6`. */
  readonly release: string;
  readonly isUp: boolean;
}

/** The outcome of a lightweight transaction (LWT), which is Cassandra's conditional write. */
export interface LwtOutcome {
  readonly applied: boolean;
  /** The first row that a condition names, in the columns that conditions name; undefined without a row. */
  readonly current: Row | undefined;
  /**
   * True where an earlier sending of the same statements had no known outcome. A refusal is not final then: the
   * earlier one may be on its way still, and take effect where its conditions hold again.
   */
  readonly isUncertain: boolean;
}

const CONNECT_MS = 3000;
const REQUEST_MS = 6000;
/** The milliseconds in which an LWT, or a serial read, is sent again while its outcome is not known. */
const LWT_RETRY_MS = 8000;
/** The deadline of a statement in milliseconds, even if driver and servers continue with it. */
const STATEMENT_DEADLINE_MS = 9000;
/** The deadline of a store's call in milliseconds. Work that has not begun by then is not begun. */
export const CALL_DEADLINE_MS = 10_000;
/** The consistencies of plain statements and of conditions. A condition and a read that differ split a registry. */
const CONSISTENCIES = {
  one_data_centre: { plain: types.consistencies.localQuorum, serial: types.consistencies.localSerial },
  one_active: { plain: types.consistencies.localQuorum, serial: types.consistencies.localSerial },
  all_active: { plain: types.consistencies.quorum, serial: types.consistencies.serial },
} as const;
/** The absence of a generator, so that servers set timestamps. The driver takes null, which its types leave out. */
const NO_TIMESTAMPS = null as unknown as policies.timestampGeneration.TimestampGenerator;
const LWT_PAUSES = { firstMs: 20, longestMs: 500 };
/**
 * The bound, in microseconds, of the difference between any two clocks of processes and nodes, and of the time after
 * which a node that hung still carries out a statement.
 */
const AHEAD_MICROSECONDS = 3_600_000_000;

/**
 * A session with a keyspace of a cluster. Every statement is prepared. Plain statements are idempotent, so the
 * driver may send them again. The driver never repeats conditional statements: `lightweightTransaction` does,
 * because each of them leaves an operation id.
 */
export class Session {
  readonly #client: Client;
  readonly #serial: types.consistencies;
  readonly #reads: { readonly consistency?: types.consistencies };

  /** @param reads the consistency of reads alone, if it is not the client's */
  constructor(
    client: Client,
    serial: types.consistencies,
    reads: { readonly consistency?: types.consistencies } = {},
  ) {
    this.#client = client;
    this.#serial = serial;
    this.#reads = reads;
  }

  /**
   * Returns a session of the same keyspace with serial reads, for rows that are written under conditions. A serial
   * read first completes what others have left half done in the row's partition. So a conditional write that the read
   * does not show, of a process that has given up, never takes effect.
   */
  serialReads(): Session {
    return new Session(this.#client, this.#serial, { consistency: this.#serial });
  }

  /**
   * Returns all rows of all pages of the result. A serial read that meets a conditional write of others may time out
   * within milliseconds, above all while a node is down. So serial reads are sent again, like conditional writes.
   */
  async rows(query: string, params: readonly unknown[] = []): Promise<readonly Row[]> {
    if (this.#reads.consistency === undefined) return this.#run(() => this.#read(query, params));
    return (await this.#repeated(() => this.#read(query, params))).value;
  }

  async first(query: string, params: readonly unknown[] = []): Promise<Row | undefined> {
    return (await this.rows(query, params))[0];
  }

  async write(query: string, params: readonly unknown[]): Promise<void> {
    await this.rows(query, params);
  }

  /**
   * Runs one conditional statement, or several on one partition as one. After a timeout or a lost connection
   * the outcome is not known, and the same statements are sent again. A refusal of the repetition may then
   * come from the first sending: `Statement.operation` recognises this; a caller without one must read again.
   * An operation id must stay in its row for as long as the effect could be repeated. A node that hung
   * carries out the first sending seconds after the second, and the row must refuse it even then.
   * @throws DomainError `unavailable` when the outcome stays unknown or nothing could be sent
   */
  async lightweightTransaction(...statements: readonly Statement[]): Promise<LwtOutcome> {
    const { value, attempt } = await this.#repeated(() => this.#send(statements));
    return { ...outcomeOf(value.rows, statements), isUncertain: attempt > 0 };
  }

  /** Runs a definition of the schema, which cannot be prepared. */
  async define(query: string): Promise<void> {
    await this.#run(() => this.#client.execute(query));
  }

  /** Returns whether all nodes that are up have the same schema. */
  isSchemaAgreed(): Promise<boolean> {
    // The driver's types leave the method out.
    const metadata = this.#client.metadata as unknown as { checkSchemaAgreement(): Promise<boolean> };
    return this.#run(() => metadata.checkSchemaAgreement());
  }

  /** Returns all nodes that the driver knows of, in every data centre. */
  nodes(): readonly ClusterNode[] {
    return this.#client.hosts.values().map((host) => ({
      address: host.address,
      dataCenter: host.datacenter,
      release: host.cassandraVersion,
      isUp: host.isUp(),
    }));
  }

  /** Reads a table of one node's own. @param address of a node of the local data centre, as `nodes` has it */
  rowsOf(address: string, query: string): Promise<readonly Row[]> {
    const host = this.#client.hosts.values().find((one) => one.address === address);
    if (host === undefined) throw storeUnavailable();
    return this.#run(
      async () => (await this.#client.execute(query, [], { prepare: true, isIdempotent: true, host })).rows,
    );
  }

  async close(): Promise<void> {
    await this.#client.shutdown();
  }

  /**
   * Sends a request that goes through Paxos, until its answer is known or the time is over.
   * @returns the answer, and how many attempts came before
   */
  async #repeated<Value>(
    send: () => Promise<Value>,
  ): Promise<{ readonly value: Value; readonly attempt: number }> {
    const begun = performance.now();
    const elapsed = (): number => performance.now() - begun;
    for (let attempt = 0; ; attempt += 1) {
      try {
        return { value: await within(STATEMENT_DEADLINE_MS - elapsed(), send()), attempt };
      } catch (error) {
        if (isDefect(error)) throw error;
        if (
          isRejection(error) ||
          (attempt === 0 && error instanceof errors.NoHostAvailableError) ||
          elapsed() > LWT_RETRY_MS
        )
          throw storeUnavailable(error);
        await delay(jittered(pauseAfter(attempt + 1, LWT_PAUSES)));
        // A process that was stopped meanwhile must not decide what others have given up.
        if (elapsed() > LWT_RETRY_MS) throw storeUnavailable(error);
      }
    }
  }

  async #read(query: string, params: readonly unknown[]): Promise<readonly Row[]> {
    const result = await this.#client.execute(query, [...params], {
      prepare: true,
      isIdempotent: true,
      fetchSize: 5000,
      ...this.#reads,
    });
    if (!result.pageState) return result.rows ?? [];
    const rows: Row[] = [];
    for await (const row of result) rows.push(row);
    return rows;
  }

  #send(statements: readonly Statement[]): Promise<types.ResultSet> {
    const [only] = statements;
    if (statements.length === 1 && only !== undefined)
      return this.#client.execute(only.query, [...only.params], { prepare: true, isIdempotent: false });
    return this.#client.batch(
      statements.map(({ query, params }) => ({ query, params: [...params] })),
      { prepare: true, isIdempotent: false },
    );
  }

  async #run<Value>(call: () => Promise<Value>): Promise<Value> {
    try {
      return await within(STATEMENT_DEADLINE_MS, call());
    } catch (error) {
      throw isDefect(error) ? error : storeUnavailable(error);
    }
  }
}

function outcomeOf(rows: readonly Row[], statements: readonly Statement[]): Omit<LwtOutcome, 'isUncertain'> {
  const [row] = rows;
  if (row?.['[applied]'] === true) return { applied: true, current: undefined };
  // Without a row, the server sends only the result. A batch returns each row that a condition names.
  const found = rows.filter((each) => each.keys().length > 1);
  const isOwn = statements.some(
    ({ operation }) =>
      operation !== undefined && found.some((each) => textIn(each, operation.column) === operation.id),
  );
  return { applied: isOwn, current: found[0] };
}

/** @throws the driver's error when no contact point answers, or the credentials are refused */
export async function connect(options: ConnectionOptions, keyspace?: string): Promise<Session> {
  patchDriver();
  const { plain, serial } = CONSISTENCIES[options.topology ?? 'one_data_centre'];
  const openClient = options.openClient ?? ((given) => new Client(given));
  const client = openClient({
    contactPoints: [...options.contactPoints],
    localDataCenter: options.localDataCenter,
    ...defined({
      keyspace,
      authProvider:
        options.credentials &&
        new auth.PlainTextAuthProvider(options.credentials.username, options.credentials.password),
      sslOptions: options.tls && { ca: [readFileSync(options.tls.authority)], rejectUnauthorized: true },
    }),
    policies: {
      // The default policy re-sends conditional statements to another host.
      retry: new policies.retry.IdempotenceAwareRetryPolicy(new policies.retry.RetryPolicy()),
      // Not the client's clock: a later write counts as later even if the clock of the process is wrong.
      timestampGeneration: NO_TIMESTAMPS,
      reconnection: new policies.reconnection.ExponentialReconnectionPolicy(100, 1000, false),
    },
    queryOptions: { consistency: plain, serialConsistency: serial },
    socketOptions: { connectTimeout: CONNECT_MS, readTimeout: REQUEST_MS },
    // An undefined value leaves its column as it is, where a null would write a tombstone.
    encoding: { useUndefinedAsUnset: true },
  });
  try {
    await client.connect();
  } catch (error) {
    await client.shutdown().catch(() => undefined);
    throw error;
  }
  return new Session(client, serial);
}

/**
 * Returns the outcome of the work within the time. Work that is given up continues, and its outcome is ignored.
 * @throws DomainError `unavailable` / `store_unavailable` when the time is up
 */
export function within<Value>(milliseconds: number, work: Promise<Value>): Promise<Value> {
  return withDeadline(work, milliseconds, () => {
    throw storeUnavailable();
  });
}

export function storeUnavailable(cause?: unknown): DomainError {
  return new DomainError('unavailable', 'The registry cannot be reached at the moment.', {
    reason: 'store_unavailable',
    retryAfterSeconds: 1,
    dependency: 'cassandra',
    ...defined({ cause }),
  });
}

/** Returns true if the error is of a value that the driver cannot encode, which is a defect of this code. */
function isDefect(error: unknown): boolean {
  return error instanceof TypeError || error instanceof RangeError;
}

/** Returns true if a server did nothing, because of the syntax, rights, the schema or too few live replicas. */
function isRejection(error: unknown): boolean {
  return (
    error instanceof errors.ResponseError &&
    (error.code >= 0x2000 || error.code === types.responseErrorCodes.unavailableException)
  );
}

/** Returns whether a start failed because the nodes refuse the credentials. */
export function isRefusedUser(error: unknown): boolean {
  const causes =
    error instanceof errors.NoHostAvailableError ? Object.values(error.innerErrors ?? {}) : [error];
  return causes.some((cause) => cause instanceof errors.AuthenticationError);
}

/** Returns true if replicas gave up a read, as they do when it passes over too much that was removed. */
export function isReadFailure(error: unknown): boolean {
  const cause = error instanceof DomainError ? error.cause : error;
  return cause instanceof errors.ResponseError && cause.code === types.responseErrorCodes.readFailure;
}

/**
 * Returns the timestamp, in microseconds, for a removal after which nothing is written under the same key. The
 * timestamp is later than any of a process or a node.
 */
export function aheadOfClocks(): number {
  return Date.now() * 1000 + AHEAD_MICROSECONDS;
}

/** Returns a bigint column as a number, such as a time in unix seconds. */
export function numberIn(row: Row, column: string): number | undefined {
  const value = row[column] as types.Long | number | null | undefined;
  if (value === null || value === undefined) return undefined;
  return typeof value === 'number' ? value : value.toNumber();
}

export function textIn(row: Row, column: string): string | undefined {
  return (row[column] as string | null | undefined) ?? undefined;
}
