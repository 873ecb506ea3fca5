import { type Client, type ClientOptions, errors, types } from 'cassandra-driver';
import type { Database, Request, ResultRow } from './database.js';
import type { Weather } from './weather.js';
import { cancel, type World } from './world.js';

/** The time after which the driver gives up a request, in milliseconds. */
const REQUEST_MS = 6000;

/** The options of the driver that determine the timestamps of plain writes. */
interface Timestamps {
  readonly policies?: { readonly timestampGeneration?: unknown };
}

type Execute = (
  request: Request | readonly Request[],
  nodeMs: number,
  clientMicroseconds?: number,
) => readonly ResultRow[];

/** The link from a process to the database. */
export interface Link {
  readonly world: World;
  readonly weather: Weather;
  readonly database: Database;
}

/** Returns the driver's client over a link that may lose, delay, repeat and reorder requests. */
export function simulatedClient(link: Link, options: ClientOptions): Client {
  return new SimulatedClient(link, options) as unknown as Client;
}

const HOSTS = {
  values: () => [
    {
      address: 'cassandra:9042',
      datacenter: 'datacenter1',
      cassandraVersion: '5.0.6',
      isUp: (): boolean => true,
    },
  ],
};

class SimulatedClient {
  readonly hosts = HOSTS;
  readonly metadata = { checkSchemaAgreement: async () => true };
  readonly #link: Link;
  readonly #stampsPlainWrites: boolean;
  #stamped = 0;

  constructor(link: Link, options: ClientOptions) {
    this.#link = link;
    this.#stampsPlainWrites = (options as Timestamps).policies?.timestampGeneration !== null;
  }

  async connect(): Promise<void> {}

  async shutdown(): Promise<void> {}

  execute(query: string, params: readonly unknown[] = []): Promise<types.ResultSet> {
    const { database } = this.#link;
    return this.#send(
      { query, params },
      () => database.describe(query),
      database.isConditional(query),
      (request, nodeMs, clientMicroseconds) =>
        database.execute(request as Request, momentOf(nodeMs, clientMicroseconds)),
    );
  }

  batch(queries: readonly Request[]): Promise<types.ResultSet> {
    const { database } = this.#link;
    return this.#send(
      queries,
      () => `batch of ${queries.map(({ query }) => database.describe(query)).join(', ')}`,
      queries.some(({ query }) => database.isConditional(query)),
      (requests, nodeMs, clientMicroseconds) =>
        database.batch(requests as readonly Request[], momentOf(nodeMs, clientMicroseconds)),
    );
  }

  #send(
    request: Request | readonly Request[],
    words: () => string,
    isDecision: boolean,
    execute: Execute,
  ): Promise<types.ResultSet> {
    const { world, weather } = this.#link;
    const process = world.current;
    const who = process?.name ?? 'no process';
    const clientMicroseconds = this.#stampsPlainWrites ? this.#stamp() : undefined;
    const passage = weather.passage(isDecision);
    return new Promise((resolve, reject) => {
      let isAnswered = false;
      const timer = world.at(REQUEST_MS, process, () => {
        isAnswered = true;
        reject(new errors.OperationTimedOutError('The host did not reply in time.'));
      });
      const answer = (settle: () => void): void => {
        if (passage.back === undefined) return;
        world.at(passage.back, process, () => {
          if (isAnswered) return;
          isAnswered = true;
          cancel(timer);
          settle();
        });
      };
      const first = passage.arrivals[0];
      if (first === undefined) world.note(who, `LOST ${words()}`);
      for (const [copy, delay] of passage.arrivals.entries())
        world.at(delay, undefined, () => {
          if (isDecision && weather.happens('uncertain', 0.05)) {
            const tookEffect = world.random.chance(0.3);
            if (tookEffect) execute(request, world.now, clientMicroseconds);
            world.note(who, `UNCERTAIN, ${tookEffect ? 'in' : 'without'} effect: ${words()}`);
            if (copy === 0) answer(() => reject(casTimeout()));
            return;
          }
          let rows: readonly ResultRow[];
          try {
            rows = execute(request, world.now, clientMicroseconds);
          } catch (error) {
            answer(() => reject(new errors.ResponseError(0x2200, String(error))));
            world.note(who, `REFUSED ${String(error)}`);
            return;
          }
          if (delay > REQUEST_MS || copy > 0)
            world.note(
              who,
              `${copy > 0 ? 'DOUBLE' : 'LATE'} by ${(delay / 1000).toFixed(1)} s${process?.isDead === true ? ' (its sender is dead)' : ''}: ${words()}${isDecision ? (rows[0]?.['[applied]'] === true ? ', applied' : ', refused') : ''}`,
            );
          if (copy === 0) {
            if (passage.back === undefined) world.note(who, `ANSWER LOST of ${words()}`);
            answer(() => resolve(resultOf(rows)));
          }
        });
    });
  }

  /** Returns a unique timestamp of the process's clock, as the driver does by default. */
  #stamp(): number {
    this.#stamped = Math.max(Date.now() * 1000, this.#stamped + 1);
    return this.#stamped;
  }
}

function momentOf(nodeMs: number, clientMicroseconds: number | undefined) {
  return clientMicroseconds === undefined ? { nodeMs } : { nodeMs, clientMicroseconds };
}

function casTimeout(): Error {
  return Object.assign(
    new errors.ResponseError(types.responseErrorCodes.writeTimeout, 'Server timeout during CAS write'),
    { writeType: 'CAS' },
  );
}

function resultOf(rows: readonly ResultRow[]): types.ResultSet {
  return { rows, pageState: undefined } as unknown as types.ResultSet;
}

/** Returns the driver's client over a database that answers at once. It serves setup and judges. */
export function immediateClient(database: Database): Client {
  const run = (execute: () => readonly ResultRow[]): Promise<types.ResultSet> =>
    new Promise((resolve) => resolve(resultOf(execute())));
  return {
    hosts: HOSTS,
    metadata: { checkSchemaAgreement: async () => true },
    connect: async () => undefined,
    shutdown: async () => undefined,
    execute: (query: string, params: readonly unknown[] = []) =>
      run(() => database.execute({ query, params }, { nodeMs: Date.now() })),
    batch: (queries: readonly Request[]) => run(() => database.batch(queries, { nodeMs: Date.now() })),
  } as unknown as Client;
}
