import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { auth, Client, errors, policies, types } from 'cassandra-driver';
import { jittered, pauseAfter } from '../../../async/backoff.js';
import { withDeadline } from '../../../async/deadline.js';
import { DomainError } from '../../../domain/errors.js';
import { mendDriver } from './driver-patches.js';

export interface ConnectionOptions {
  /** `host:port` each. */
  readonly contactPoints: readonly string[];
  readonly localDataCenter: string;
  readonly credentials?: { readonly username: string; readonly password: string };
  /** Encrypts, and believes only what this authority signed. Path of a PEM file. */
  readonly tls?: { readonly authority: string };
  /** `LOCAL_QUORUM` by default. */
  readonly consistency?: 'LOCAL_QUORUM' | 'QUORUM' | 'LOCAL_ONE' | 'ONE' | 'ALL';
  /** `LOCAL_SERIAL` by default. `SERIAL` where more than one data centre takes writes. */
  readonly serialConsistency?: 'LOCAL_SERIAL' | 'SERIAL';
}

mendDriver();

export type Row = types.Row;

export interface Statement {
  readonly query: string;
  readonly params: readonly unknown[];
}

/** What a conditional statement came to. */
export interface Decision {
  readonly applied: boolean;
  /**
   * Where it was refused: the row as it is, as far as the condition names it; undefined where there is none.
   */
  readonly current: Row | undefined;
}

const CONNECT_MS = 3000;
const REQUEST_MS = 6000;
/** How long the outcome of one condition is asked for before the caller is told that it is not known. */
const SETTLE_MS = 8000;
/** After which a caller is told so, whatever driver and servers are still at. */
const LIMIT_MS = 9000;
/** After which a call's caller has been told so, and what has not begun is not begun. */
export const GIVE_UP_MS = 10_000;
const SETTLE_PAUSES = { firstMs: 20, longestMs: 500 };
/**
 * Clocks of processes and nodes agree better than that, and no node that hangs carries out so late what it
 * was sent.
 */
const AHEAD_MICROSECONDS = 3_600_000_000;

/**
 * One keyspace of a cluster. Every statement is prepared. Plain statements here are idempotent, and the
 * driver may send them again; conditional ones it never does: that is `decide`'s, which knows that they carry
 * a witness.
 */
export class Session {
  readonly #client: Client;
  readonly #serial: types.consistencies;
  readonly #reads: { readonly consistency?: types.consistencies };

  /** @param reads another consistency than the client's, for reads alone */
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
   * The same, for reads of rows that are written under conditions: each ends what others have left half done
   * in its partition. So a decision that it does not show, of a process that is not at it any more, will
   * never be.
   */
  settled(): Session {
    return new Session(this.#client, this.#serial, { consistency: this.#serial });
  }

  /** All of them, of as many pages as there are. */
  rows(query: string, params: readonly unknown[] = []): Promise<readonly Row[]> {
    return this.#run(async () => {
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
    });
  }

  async first(query: string, params: readonly unknown[] = []): Promise<Row | undefined> {
    return (await this.rows(query, params))[0];
  }

  async write(query: string, params: readonly unknown[]): Promise<void> {
    await this.rows(query, params);
  }

  /**
   * Runs one conditional statement, or several on one partition as one. An outcome that is not known (a
   * timeout, a lost connection) is settled by sending the same again: so every statement must leave a
   * witness, and a refusal by what the same call has left counts as success. That is the caller's to see, in
   * `current`. The witness must outlive what it stands for: a node that hung carries out the first one
   * seconds after the second, and must find itself refused even then.
   * @throws DomainError `unavailable` where it stays unknown, or nothing could be sent
   */
  async decide(...statements: readonly Statement[]): Promise<Decision> {
    const begun = Date.now();
    for (let attempt = 0; ; attempt += 1) {
      try {
        const { rows } = await within(begun + LIMIT_MS - Date.now(), this.#send(statements));
        const [row] = rows;
        if (row?.['[applied]'] === true) return { applied: true, current: undefined };
        // Without a row only the verdict comes back.
        return { applied: false, current: row !== undefined && row.keys().length > 1 ? row : undefined };
      } catch (error) {
        if (isDefect(error)) throw error;
        if (
          isRefusal(error) ||
          (attempt === 0 && error instanceof errors.NoHostAvailableError) ||
          Date.now() - begun > SETTLE_MS
        )
          throw storeUnavailable(error);
        await delay(jittered(pauseAfter(attempt + 1, SETTLE_PAUSES)));
        // A process that was stopped meanwhile must not decide what others have given up.
        if (Date.now() - begun > SETTLE_MS) throw storeUnavailable(error);
      }
    }
  }

  /** Runs what cannot be prepared: definitions of the schema. */
  async define(query: string): Promise<void> {
    await this.#run(() => this.#client.execute(query));
  }

  /** Whether all nodes that are up have the same schema. */
  agrees(): Promise<boolean> {
    // The driver's types leave it out.
    const metadata = this.#client.metadata as unknown as { checkSchemaAgreement(): Promise<boolean> };
    return this.#run(() => metadata.checkSchemaAgreement());
  }

  async close(): Promise<void> {
    await this.#client.shutdown();
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
      return await within(LIMIT_MS, call());
    } catch (error) {
      throw isDefect(error) ? error : storeUnavailable(error);
    }
  }
}

/** @throws what the driver throws when no contact point answers, or the credentials are refused */
export async function connect(options: ConnectionOptions, keyspace?: string): Promise<Session> {
  const serialConsistency = types.consistencies[consistencyName(options.serialConsistency ?? 'LOCAL_SERIAL')];
  const client = new Client({
    contactPoints: [...options.contactPoints],
    localDataCenter: options.localDataCenter,
    ...(keyspace === undefined ? {} : { keyspace }),
    ...(options.credentials === undefined
      ? {}
      : {
          authProvider: new auth.PlainTextAuthProvider(
            options.credentials.username,
            options.credentials.password,
          ),
        }),
    ...(options.tls === undefined
      ? {}
      : { sslOptions: { ca: [readFileSync(options.tls.authority)], rejectUnauthorized: true } }),
    policies: {
      // The default policy re-sends conditional statements to another host.
      retry: new policies.retry.IdempotenceAwareRetryPolicy(new policies.retry.RetryPolicy()),
      reconnection: new policies.reconnection.ExponentialReconnectionPolicy(100, 1000, false),
    },
    queryOptions: {
      consistency: types.consistencies[consistencyName(options.consistency ?? 'LOCAL_QUORUM')],
      serialConsistency,
    },
    socketOptions: { connectTimeout: CONNECT_MS, readTimeout: REQUEST_MS },
    // An undefined value leaves its column as it is: a null would write a tombstone.
    encoding: { useUndefinedAsUnset: true },
  });
  try {
    await client.connect();
  } catch (error) {
    await client.shutdown().catch(() => undefined);
    throw error;
  }
  return new Session(client, serialConsistency);
}

/**
 * The driver's outcome within the time. Work that is given up is left alone.
 * @throws DomainError `unavailable` / `store_unavailable` when the time is up
 */
export function within<Value>(milliseconds: number, work: Promise<Value>): Promise<Value> {
  return withDeadline(work, milliseconds, () => {
    throw storeUnavailable();
  });
}

type ConsistencyName = 'localQuorum' | 'quorum' | 'localOne' | 'one' | 'all' | 'localSerial' | 'serial';

function consistencyName(
  name: NonNullable<ConnectionOptions['consistency'] | ConnectionOptions['serialConsistency']>,
): ConsistencyName {
  return (
    {
      LOCAL_QUORUM: 'localQuorum',
      QUORUM: 'quorum',
      LOCAL_ONE: 'localOne',
      ONE: 'one',
      ALL: 'all',
      LOCAL_SERIAL: 'localSerial',
      SERIAL: 'serial',
    } as const
  )[name];
}

export function storeUnavailable(cause?: unknown): DomainError {
  return new DomainError('unavailable', 'The registry cannot be reached at the moment.', {
    reason: 'store_unavailable',
    retryAfterSeconds: 1,
    ...(cause === undefined ? {} : { cause }),
  });
}

/** The driver refuses values it cannot encode so: a mistake of ours, not a failure of the world. */
function isDefect(error: unknown): boolean {
  return error instanceof TypeError || error instanceof RangeError;
}

/** The server understood and did nothing: syntax, rights, schema, overload before the first step. */
function isRefusal(error: unknown): boolean {
  return (
    error instanceof errors.ResponseError &&
    (error.code >= 0x2000 || error.code === types.responseErrorCodes.unavailableException)
  );
}

/** Replicas gave a read up, as they do when it passes over too much that was removed. */
export function isReadFailure(error: unknown): boolean {
  const cause = error instanceof DomainError ? error.cause : undefined;
  return cause instanceof errors.ResponseError && cause.code === types.responseErrorCodes.readFailure;
}

/**
 * The time, in microseconds, of a removal after which nothing of the kind is written: later than what any
 * process or node has stamped.
 */
export function aheadOfClocks(): number {
  return Date.now() * 1000 + AHEAD_MICROSECONDS;
}

/** A bigint column as a number: times in unix seconds. */
export function numberIn(row: Row, column: string): number | undefined {
  const value = row[column] as types.Long | number | null | undefined;
  if (value === null || value === undefined) return undefined;
  return typeof value === 'number' ? value : value.toNumber();
}

export function textIn(row: Row, column: string): string | undefined {
  return (row[column] as string | null | undefined) ?? undefined;
}
