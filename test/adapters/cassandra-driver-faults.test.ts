/**
 * Tests faults of the driver with a proxy before a real server: frames on the wrong stream, and outages of
 * all nodes.
 */
import { type AddressInfo, connect as connectTo, createServer, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { connect, type Session } from '../../src/service/adapters/cassandra/driver/session.js';
import { again } from '../fixtures/again.js';
import { until } from '../fixtures/until.js';
import { ADDRESSES, connection, DATA_CENTER, dropKeyspace, withClient } from './cassandra-under-test.js';

const HEADER_BYTES = 9;
const OVERLOADED = 0x1001;
const KEYS = Array.from({ length: 48 }, (_, index) => `key ${index}`);
const ROUNDS = 40;
const OUTAGES = 4;
const OUTAGE_MS = 1000;
const PATIENCE_MS = 60_000;

interface Proxy {
  readonly address: string;
  /** Returns the number of all accepted connections. */
  readonly connections: () => number;
  readonly open: () => number;
  /** Cuts all connections and refuses new ones, until `up`. */
  down(): Promise<void>;
  up(): Promise<void>;
  /** Sends this number of misdirected frames after the next response on each connection. */
  misdirect(count: number): void;
}

/**
 * Returns a frame on stream 0 with the error that Cassandra 5.0.6 sends there ("Query timed out before it
 * could start").
 */
function misdirected(): Buffer {
  const message = Buffer.from('Query timed out before it could start');
  const frame = Buffer.alloc(HEADER_BYTES + 6 + message.length);
  frame.writeUInt8(0x84, 0);
  frame.writeUInt32BE(frame.length - HEADER_BYTES, 5);
  frame.writeUInt32BE(OVERLOADED, HEADER_BYTES);
  frame.writeUInt16BE(message.length, HEADER_BYTES + 4);
  message.copy(frame, HEADER_BYTES + 6);
  return frame;
}

async function startProxy(target: string): Promise<Proxy> {
  const [host, port] = target.split(':') as [string, string];
  const sockets = new Map<Socket, number>();
  let connections = 0;
  const server = createServer((client) => {
    const upstream = connectTo(Number(port), host);
    connections += 1;
    sockets.set(client, 0);
    let pending: Buffer = Buffer.alloc(0);
    upstream.on('data', (chunk) => {
      pending = Buffer.concat([pending, chunk]);
      for (
        let length: number;
        pending.length >= HEADER_BYTES && pending.length >= (length = HEADER_BYTES + pending.readUInt32BE(5));
      ) {
        client.write(pending.subarray(0, length));
        pending = pending.subarray(length);
        for (let left = sockets.get(client) ?? 0; left > 0; left -= 1) client.write(misdirected());
        if (sockets.has(client)) sockets.set(client, 0);
      }
    });
    client.on('data', (chunk) => upstream.write(chunk));
    const end = (): void => {
      sockets.delete(client);
      client.destroy();
      upstream.destroy();
    };
    for (const socket of [client, upstream]) socket.on('close', end).on('error', end);
  });
  const up = (port: number): Promise<void> =>
    new Promise((resolve) => server.listen(port, '127.0.0.1', resolve));
  const down = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => resolve());
      for (const socket of sockets.keys()) socket.destroy();
    });
  await up(0);
  const own = (server.address() as AddressInfo).port;
  return {
    address: `127.0.0.1:${own}`,
    connections: () => connections,
    open: () => sockets.size,
    misdirect: (count) => {
      for (const socket of sockets.keys()) sockets.set(socket, count);
    },
    down,
    up: () => up(own),
  };
}

interface Pairs {
  readonly proxy: Proxy;
  readonly session: Session;
  read(key: string): Promise<string>;
  /** @returns how many reads were answered */
  readAll(): Promise<number>;
  untilAllAnswer(): Promise<boolean>;
  /** The wrong values of reads. */
  readonly wrong: string[];
}

let keyspaces = 0;

/**
 * Runs the work with a table of pairs, over a session whose connections all use a proxy. At the end no
 * connection may be left.
 */
async function withPairs(t: Test, work: (pairs: Pairs) => Promise<void>): Promise<void> {
  const { replication } = connection;
  const keyspace = `${connection.keyspace}_${(keyspaces += 1)}`;
  await withClient(async (client) => {
    await client.execute(
      `CREATE KEYSPACE ${keyspace} WITH replication = {'class': 'NetworkTopologyStrategy', '${DATA_CENTER}': ${replication}}`,
    );
    await client.execute(`CREATE TABLE ${keyspace}.pair (key text PRIMARY KEY, value text)`);
    for (const key of KEYS)
      await client.execute(
        `INSERT INTO ${keyspace}.pair (key, value) VALUES (?, ?)`,
        [key, `value of ${key}`],
        { prepare: true },
      );
  });
  const proxy = await startProxy(ADDRESSES!.split(',')[0]!);
  const session = await again(() =>
    connect({ contactPoints: [proxy.address], localDataCenter: DATA_CENTER }, keyspace),
  );
  const read = async (key: string): Promise<string> =>
    ((await session.first('SELECT value FROM pair WHERE key = ?', [key]))?.['value'] as string | undefined) ??
    'nothing';
  const wrong: string[] = [];
  const readAll = async (): Promise<number> => {
    const answers = await Promise.allSettled(KEYS.map(read));
    answers.forEach((answer, index) => {
      if (answer.status === 'fulfilled' && answer.value !== `value of ${KEYS[index]}`)
        wrong.push(`${KEYS[index]}: ${answer.value}`);
      if (answer.status === 'rejected' && (answer.reason as { code?: string }).code !== 'unavailable')
        throw answer.reason;
    });
    return answers.filter(({ status }) => status === 'fulfilled').length;
  };
  const untilAllAnswer = () => until(async () => (await readAll()) === KEYS.length);
  try {
    await work({ proxy, session, read, readAll, untilAllAnswer, wrong });
  } finally {
    await session.close();
    for (const end = Date.now() + PATIENCE_MS; proxy.open() > 0 && Date.now() < end; ) await delay(50);
    t.equal(proxy.open(), 0, 'no connection is left');
    await proxy.down();
    await dropKeyspace(keyspace);
  }
}

const skip = ADDRESSES === undefined && 'TAKEMARK_CASSANDRA is not set';

t.test('a response is never taken for another when a server names a wrong stream', { skip }, (t) =>
  withPairs(t, async ({ proxy, session, read, readAll, untilAllAnswer, wrong }) => {
    t.ok(await untilAllAnswer(), 'the proxy lets all through');
    const before = proxy.connections();
    let answered = 0;
    for (let round = 0; round < ROUNDS; round += 1) {
      if (round % 4 === 0) {
        if (!(await untilAllAnswer())) break;
        proxy.misdirect(3);
      }
      answered += await readAll();
      // Only this test writes the key, so an applied write must be found.
      const { applied } = await session
        .lightweightTransaction({
          query: 'INSERT INTO pair (key, value) VALUES (?, ?) IF NOT EXISTS',
          params: [`new ${round}`, `value of new ${round}`],
        })
        .catch(() => ({ applied: undefined }));
      if (applied === true && (await read(`new ${round}`).catch(() => undefined)) === 'nothing')
        wrong.push(`new ${round} was said to be written`);
    }
    t.strictSame(wrong, []);
    t.ok(answered > 0, `${answered} of ${KEYS.length * ROUNDS} reads were answered meanwhile`);
    t.ok(proxy.connections() > before, 'connections on which nothing can be trusted were given up');
    t.ok(await untilAllAnswer(), 'and it goes on as if nothing had been');
  }),
);

t.test('after each outage of all nodes there are as many connections as before', { skip }, (t) =>
  withPairs(t, async ({ proxy, untilAllAnswer }) => {
    t.ok(await untilAllAnswer());
    const before = proxy.open();
    for (let outage = 0; outage < OUTAGES; outage += 1) {
      await proxy.down();
      await delay(OUTAGE_MS);
      await proxy.up();
      t.ok(await untilAllAnswer(), 'it comes back');
      // Surplus connections would be opened within this time. A connection that a slow machine lost is open
      // again.
      let steady = 0;
      for (const end = Date.now() + PATIENCE_MS; steady < OUTAGE_MS && Date.now() < end; await delay(50))
        steady = proxy.open() === before ? steady + 50 : 0;
      t.equal(proxy.open(), before);
    }
  }),
);
