/** Child process: repeats calls over kept-alive connections for a while, and obeys Retry-After. */
import { setTimeout as delay } from 'node:timers/promises';
import { answerCalls } from '../service/child.js';
import { type Connection, openConnections } from './connection.js';

export interface PatientLoad {
  /** Each connection sends them again and again, and begins at a place of its own. */
  readonly requests: readonly string[];
  /** The milliseconds of load before the measured time begins. */
  readonly warmMs: number;
  readonly measuredMs: number;
}

export interface PatientResult {
  readonly seconds: number;
  /** The milliseconds of each call that was answered with 200 in the measured time. */
  readonly times: readonly number[];
  /** The number of calls that were answered with 503 and Retry-After in the measured time. */
  readonly refused: number;
  /** Other responses, in words. */
  readonly wrong: readonly string[];
}

/** A call that costs next to nothing. */
const HEALTH = 'GET /v1/health HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n';

let connections: Connection[] = [];

/** Opens the connections. A server accepts one in a turn of its loop, so each is used once. */
async function open({ port, count }: { readonly port: number; readonly count: number }): Promise<void> {
  connections = await openConnections(port, count);
  await Promise.all(connections.map((connection) => connection.request([HEALTH])));
}

async function repeat({ requests, warmMs, measuredMs }: PatientLoad): Promise<PatientResult> {
  const times: number[] = [];
  const wrong: string[] = [];
  let refused = 0;
  const from = performance.now() + warmMs;
  const until = from + measuredMs;
  const work = async (connection: Connection, first: number): Promise<void> => {
    for (let next = first; performance.now() < until; next += 1) {
      const began = performance.now();
      const { status, retryAfterSeconds, body } = await connection.request([
        requests[next % requests.length]!,
      ]);
      const now = performance.now();
      const counts = now >= from && now < until;
      if (status === 503 && retryAfterSeconds !== undefined) {
        if (counts) refused += 1;
        // A caller that waits for the exact time would meet all others again.
        const pauseMs = retryAfterSeconds * 1000 * (1 + Math.random());
        await delay(Math.min(pauseMs, Math.max(0, until - now)));
      } else if (status !== 200) wrong.push(`${status} ${body.toString().slice(0, 500)}`);
      else if (counts) times.push(now - began);
    }
  };
  await Promise.all(
    connections.map((connection, i) =>
      work(connection, Math.floor((i * requests.length) / connections.length)),
    ),
  );
  for (const connection of connections) connection.close();
  return { seconds: measuredMs / 1000, times, refused, wrong };
}

const methods = { open, repeat };
export type PatientClient = typeof methods;

answerCalls(methods);
