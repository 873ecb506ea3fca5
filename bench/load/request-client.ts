/** Child process: sends prepared requests over kept-alive connections and checks every answer. */
import { answerCalls } from '../service/child.js';
import { openConnections } from './connection.js';

export interface PreparedCall {
  readonly request: string;
  /** The answer is this text, or JSON with these members; a dot leads into an object. */
  readonly expect: string | Readonly<Record<string, unknown>>;
}

export interface RequestLoad {
  readonly port: number;
  readonly connections: number;
  readonly calls: readonly PreparedCall[];
}

export interface RequestLoadResult {
  readonly seconds: number;
  /** Milliseconds a call. */
  readonly times: readonly number[];
  readonly wrong: readonly string[];
}

async function send({ port, connections: count, calls }: RequestLoad): Promise<RequestLoadResult> {
  const connections = await openConnections(port, count);
  const wrong: string[] = [];
  const times: number[] = [];
  let next = 0;
  try {
    const start = performance.now();
    await Promise.all(
      connections.map(async (connection) => {
        while (next < calls.length) {
          const { request, expect } = calls[next++]!;
          const began = performance.now();
          const { status, body } = await connection.request([request]);
          times.push(performance.now() - began);
          const text = body.toString();
          if (status !== 200 || !isExpected(text, expect))
            wrong.push(`${status} ${text.slice(0, 500)}, expected ${JSON.stringify(expect)}`);
        }
      }),
    );
    return { seconds: (performance.now() - start) / 1000, times, wrong };
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
