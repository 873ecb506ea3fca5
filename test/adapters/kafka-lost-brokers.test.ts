/**
 * Brokers that are lost and that are not: one names no broker in its metadata for a while, as one does that is
 * starting, and one keeps its clients waiting, as one does whose replicas hang.
 */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { openKafkaBus } from '../../src/adapters/kafka/bus.js';
import { authenticator } from '../fixtures/authentication.js';

const PREFIX = 'lost';
const TOPIC = `${PREFIX}.erasure`;
/** Much longer than a client that recovers needs, and far from for ever. */
const PATIENCE_MS = 120_000;

/** Longer than a client without brokers takes to be told as lost. */
const SILENT_MS = 35_000;

/** Topics of a broker that names none: reading them takes a client some milliseconds. */
const TOPICS = 20_000;

const API = { metadata: 3, findCoordinator: 10, apiVersions: 18 } as const;
const VERSIONS: readonly (readonly [key: number, highest: number])[] = [
  [0, 3],
  [1, 4],
  [API.metadata, 2],
  [8, 2],
  [9, 1],
  [API.findCoordinator, 0],
  [11, 0],
  [12, 0],
  [13, 0],
  [14, 0],
  [API.apiVersions, 3],
];

const int8 = (value: number): Buffer => Buffer.from([value & 0xff]);
const int16 = (value: number): Buffer => {
  const bytes = Buffer.alloc(2);
  bytes.writeInt16BE(value);
  return bytes;
};
const int32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
};
const string = (text: string): Buffer => Buffer.concat([int16(text.length), Buffer.from(text)]);
const list = (items: readonly Buffer[]): Buffer => Buffer.concat([int32(items.length), ...items]);

/** As much of a broker as a client asks for that finds its way, and never a group. */
class BareBroker {
  namesItself = true;
  /** Connections are served, questions about topics are not answered. */
  isSilent = false;
  readonly #sockets = new Set<Socket>();
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
    server.on('connection', (socket) => {
      this.#sockets.add(socket);
      socket.on('error', () => undefined).on('close', () => this.#sockets.delete(socket));
      let input = Buffer.alloc(0);
      socket.on('data', (chunk) => {
        input = Buffer.concat([input, chunk]);
        while (input.length >= 4 && input.length >= 4 + input.readInt32BE(0)) {
          const request = input.subarray(4, 4 + input.readInt32BE(0));
          input = input.subarray(4 + request.length);
          const api = request.readInt16BE(0);
          if (this.isSilent && api === API.metadata) continue;
          const body = this.#answer(api, request.readInt16BE(2));
          socket.write(Buffer.concat([int32(4 + body.length), request.subarray(4, 8), body]));
        }
      });
    });
  }

  static async start(): Promise<BareBroker> {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new BareBroker(server);
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  dropConnections(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  close(): void {
    this.#server.close();
    this.dropConnections();
  }

  #answer(api: number, version: number): Buffer {
    switch (api) {
      case API.apiVersions:
        return version < 3
          ? Buffer.concat([
              int16(0),
              list(VERSIONS.map(([key, highest]) => Buffer.concat([int16(key), int16(0), int16(highest)]))),
              ...(version === 0 ? [] : [int32(0)]),
            ])
          : Buffer.concat([
              int16(0),
              int8(VERSIONS.length + 1),
              ...VERSIONS.map(([key, highest]) =>
                Buffer.concat([int16(key), int16(0), int16(highest), int8(0)]),
              ),
              int32(0),
              int8(0),
            ]);
      case API.metadata:
        return this.#metadata(version);
      default:
        // The coordinator is not available.
        return Buffer.concat([int16(15), int32(-1), string(''), int32(0)]);
    }
  }

  #metadata(version: number): Buffer {
    const self = Buffer.concat([int32(1), string('127.0.0.1'), int32(this.port), int16(-1)]);
    const partition = Buffer.concat([int16(0), int32(0), int32(1), list([int32(1)]), list([int32(1)])]);
    // Without leaders where no broker is known; and many: a client loses its brokers while it is reading them.
    const topics = this.namesItself
      ? [Buffer.concat([int16(0), string(TOPIC), int8(0), list([partition])])]
      : Array.from({ length: TOPICS }, (_, i) =>
          Buffer.concat([int16(5), string(i === 0 ? TOPIC : `topic-${i}`), int8(0), list([])]),
        );
    return Buffer.concat([
      list(this.namesItself ? [self] : []),
      ...(version >= 2 ? [string('cluster')] : []),
      int32(this.namesItself ? 1 : -1),
      list(topics),
    ]);
  }
}

t.test(
  'clients whose brokers named no broker for a while find them again',
  { timeout: 300_000 },
  async (t) => {
    const broker = await BareBroker.start();
    const faults = new Set<string>();
    const bus = await openKafkaBus({
      brokers: [`127.0.0.1:${String(broker.port)}`],
      prefix: PREFIX,
      group: PREFIX,
      authenticator,
      acceptWithoutMac: false,
      onFault: (where, error) =>
        faults.add(`${where}: ${error instanceof Error ? error.message : String(error)}`),
    });
    t.teardown(async () => {
      await bus.close();
      broker.close();
    });
    /** Tells whether a broker answers the producer and each consumer, now or before long. */
    const reaches = async (patienceMs: number): Promise<boolean> => {
      for (const deadline = Date.now() + patienceMs; Date.now() < deadline; await sleep(200))
        if (
          await bus.ping().then(
            () => true,
            () => false,
          )
        )
          return true;
      return false;
    };
    bus.handle('erasure', async () => undefined);
    await bus.start();
    t.ok(await reaches(PATIENCE_MS), 'all are connected');

    const isLost = (): boolean => [...faults].some((fault) => fault.endsWith('no broker answers'));
    broker.isSilent = true;
    await sleep(SILENT_MS);
    await t.rejects(bus.ping(), 'a silent broker is not there');
    t.notOk(bus.lag().has('erasure'), 'a consumer that no broker answers is told');
    t.notOk(isLost(), 'another client could not reach it either');
    broker.isSilent = false;
    t.ok(await reaches(PATIENCE_MS), 'the same clients are answered again');

    broker.namesItself = false;
    broker.dropConnections();
    for (const deadline = Date.now() + PATIENCE_MS; !isLost() && Date.now() < deadline; )
      await bus.ping().catch(() => sleep(200));
    t.ok(isLost(), [...faults].join(', '));
    t.notOk(bus.lag().has('erasure'), 'a consumer that no broker answers is told');
    broker.namesItself = true;

    t.ok(await reaches(PATIENCE_MS), 'all are connected again');
  },
);
