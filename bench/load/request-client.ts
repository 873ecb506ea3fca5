/** Child process: sends prepared requests over kept-alive connections and checks every answer. */
import { answerCalls } from '../service/child.js';
import { Connection, openConnections } from './connection.js';

export interface PreparedCall {
  readonly request: string;
  /** The answer is this text, or JSON with these members; a dot leads into an object. */
  readonly expect: string | Readonly<Record<string, unknown>>;
}

export interface RequestLoad {
  readonly port: number;
  readonly connections: number;
  readonly calls: readonly PreparedCall[];
  /**
   * A call that each connection makes before the clock starts. So the time of the first call does not include
   * the accepting of a connection.
   */
  readonly prime?: PreparedCall;
  /** A call of new connections that are opened one after the other while the load runs. */
  readonly newcomer?: PreparedCall;
}

export interface RequestLoadResult {
  readonly seconds: number;
  /** Milliseconds a call. */
  readonly times: readonly number[];
  /** Milliseconds from the opening of a new connection to the answer of its first call. */
  readonly waits: readonly number[];
  readonly wrong: readonly string[];
}

async function send({
  port,
  connections: count,
  calls,
  prime,
  newcomer,
}: RequestLoad): Promise<RequestLoadResult> {
  const connections = await openConnections(port, count);
  const wrong: string[] = [];
  const times: number[] = [];
  const waits: number[] = [];
  const call = async (connection: Connection, { request, expect }: PreparedCall): Promise<number> => {
    const began = performance.now();
    const { status, body } = await connection.request([request]);
    const took = performance.now() - began;
    const text = body.toString();
    if (status !== 200 || !isExpected(text, expect))
      wrong.push(`${status} ${text.slice(0, 500)}, expected ${JSON.stringify(expect)}`);
    return took;
  };
  let next = 0;
  const arrive = async (first: PreparedCall): Promise<void> => {
    while (next < calls.length) {
      const began = performance.now();
      const connection = await Connection.open(port);
      await call(connection, first);
      waits.push(performance.now() - began);
      connection.close();
    }
  };
  try {
    if (prime !== undefined) await Promise.all(connections.map((connection) => call(connection, prime)));
    const start = performance.now();
    const newcomers = newcomer === undefined ? undefined : arrive(newcomer);
    await Promise.all(
      connections.map(async (connection) => {
        while (next < calls.length) times.push(await call(connection, calls[next++]!));
      }),
    );
    const seconds = (performance.now() - start) / 1000;
    await newcomers;
    return { seconds, times, waits, wrong };
  } finally {
    for (const connection of connections) connection.close();
  }
}

function isExpected(text: string, expect: PreparedCall['expect']): boolean {
  if (typeof expect === 'string') return text === expect;
  const answer = JSON.parse(text) as unknown;
  return Object.entries(expect).every(
    ([path, value]) =>
      path
        .split('.')
        .reduce<unknown>((inner, name) => (inner as Record<string, unknown> | undefined)?.[name], answer) ===
      value,
  );
}

const methods = { send };
export type RequestClient = typeof methods;

answerCalls(methods);
