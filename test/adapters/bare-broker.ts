import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';

/** Requests by their numbers in Kafka's protocol. */
const API = {
  produce: 0,
  fetch: 1,
  listOffsets: 2,
  metadata: 3,
  offsetCommit: 8,
  offsetFetch: 9,
  findCoordinator: 10,
  joinGroup: 11,
  heartbeat: 12,
  leaveGroup: 13,
  syncGroup: 14,
  apiVersions: 18,
  initProducerId: 22,
} as const;

/** The highest version of each request that the broker reports. */
const VERSIONS: readonly (readonly [key: number, highest: number])[] = [
  [API.produce, 3],
  [API.fetch, 4],
  [API.listOffsets, 1],
  [API.metadata, 2],
  [API.offsetCommit, 2],
  [API.offsetFetch, 2],
  [API.findCoordinator, 0],
  [API.joinGroup, 0],
  [API.heartbeat, 0],
  [API.leaveGroup, 0],
  [API.syncGroup, 0],
  [API.apiVersions, 3],
  [API.initProducerId, 0],
];

const ERROR = {
  none: 0,
  leaderNotAvailable: 5,
  coordinatorNotAvailable: 15,
  notCoordinator: 16,
  notEnoughReplicas: 19,
} as const;

/** The number of topics of a broker that names no broker. A client needs milliseconds to read them. */
const TOPICS = 20_000;
/** How long a fetch without messages waits, in milliseconds. */
const FETCH_MS = 50;

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
const int64 = (value: number): Buffer => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64BE(BigInt(value));
  return bytes;
};
const string = (text: string): Buffer => Buffer.concat([int16(text.length), Buffer.from(text)]);
const bytes = (content: Uint8Array): Buffer => Buffer.concat([int32(content.length), content]);
const list = (items: readonly Buffer[]): Buffer => Buffer.concat([int32(items.length), ...items]);

/** The body of a request, read from its beginning. */
class Reading {
  readonly #body: Buffer;
  #at = 0;

  constructor(body: Buffer) {
    this.#body = body;
  }

  skip(count: number): this {
    this.#at += count;
    return this;
  }

  int32(): number {
    this.#at += 4;
    return this.#body.readInt32BE(this.#at - 4);
  }

  int64(): number {
    this.#at += 8;
    return Number(this.#body.readBigInt64BE(this.#at - 8));
  }

  string(): string {
    const length = this.#body.readInt16BE(this.#at);
    this.#at += 2 + length;
    return this.#body.toString('utf8', this.#at - length, this.#at);
  }

  bytes(): Buffer {
    const length = this.int32();
    this.#at += length;
    return this.#body.subarray(this.#at - length, this.#at);
  }
}

interface BareBrokerOptions {
  /**
   * How many queries for committed offsets are refused as a whole, as by a former coordinator. Without it the
   * broker has no group.
   */
  readonly refusals?: number;
  /**
   * Whether the first batch of messages is refused as soon as the second one has arrived, as while replicas
   * recover.
   */
  readonly refusesFirstBatch?: boolean;
}

/** The offset of the number of messages in a batch. */
const COUNT_AT = 57;

/**
 * The part of a broker that one client needs. The client connects, reads an empty partition alone in a group,
 * or writes messages.
 */
export class BareBroker {
  namesItself = true;
  /** Whether the broker serves connections but answers no query about topics. */
  isSilent = false;
  /** The offsets from which messages were fetched. */
  readonly fetched: number[] = [];
  /** The batches of messages that were stored, as received. */
  readonly stored: Buffer[] = [];
  /** The number of received batches, the refused one included. */
  batches = 0;
  readonly #topic: string;
  #refusals: number | undefined;
  readonly #refusesFirstBatch: boolean;
  /** Answers the first batch. */
  #answerFirst: (() => void) | undefined;
  #nextOffset = 0;
  readonly #sockets = new Set<Socket>();
  readonly #server: Server;

  private constructor(
    server: Server,
    topic: string,
    { refusals, refusesFirstBatch = false }: BareBrokerOptions,
  ) {
    this.#server = server;
    this.#topic = topic;
    this.#refusals = refusals;
    this.#refusesFirstBatch = refusesFirstBatch;
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
          const clientIdBytes = Math.max(0, request.readInt16BE(8));
          const body = this.#answer(
            api,
            request.readInt16BE(2),
            new Reading(request.subarray(10 + clientIdBytes)),
          );
          const answer = Buffer.concat([int32(4 + body.length), request.subarray(4, 8), body]);
          if (api === API.fetch) setTimeout(() => socket.write(answer), FETCH_MS);
          else if (api === API.produce) this.#answerBatch(() => socket.write(answer));
          else socket.write(answer);
        }
      });
    });
  }

  static async start(topic: string, options: BareBrokerOptions = {}): Promise<BareBroker> {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new BareBroker(server, topic, options);
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

  #answer(api: number, version: number, request: Reading): Buffer {
    switch (api) {
      case API.apiVersions:
        return versionsOf(version);
      case API.metadata:
        return this.#metadata(version);
      case API.findCoordinator:
        return this.#refusals === undefined
          ? Buffer.concat([int16(ERROR.coordinatorNotAvailable), int32(-1), string(''), int32(0)])
          : Buffer.concat([int16(ERROR.none), int32(1), string('127.0.0.1'), int32(this.port)]);
      case API.joinGroup: {
        request.string();
        request.skip(4).string();
        request.string();
        request.skip(4);
        // The member is alone, so it leads the group, with its preferred assignor.
        const protocol = request.string();
        const member = string('member');
        const members = list([Buffer.concat([member, bytes(request.bytes())])]);
        return Buffer.concat([int16(ERROR.none), int32(1), string(protocol), member, member, members]);
      }
      case API.syncGroup: {
        request.string();
        request.skip(4).string();
        request.skip(4).string();
        return Buffer.concat([int16(ERROR.none), bytes(request.bytes())]);
      }
      case API.offsetFetch:
        if (this.#refusals !== undefined && this.#refusals > 0) {
          this.#refusals -= 1;
          return Buffer.concat([list([]), int16(ERROR.notCoordinator)]);
        }
        return Buffer.concat([
          this.#ofPartition(int64(-1), string(''), int16(ERROR.none)),
          int16(ERROR.none),
        ]);
      case API.listOffsets:
        return this.#ofPartition(int16(ERROR.none), int64(-1), int64(0));
      case API.offsetCommit:
        return this.#ofPartition(int16(ERROR.none));
      case API.fetch:
        return this.#fetch(request);
      case API.initProducerId:
        return Buffer.concat([int32(0), int16(ERROR.none), int64(1), int16(0)]);
      case API.produce:
        return Buffer.concat([this.#store(request), int32(0)]);
      default:
        return int16(ERROR.none);
    }
  }

  #fetch(request: Reading): Buffer {
    request.skip(4 + 4 + 4 + 4 + 1 + 4).string();
    this.fetched.push(request.skip(4 + 4).int64());
    return Buffer.concat([
      int32(0),
      this.#ofPartition(int16(ERROR.none), int64(0), int64(0), list([]), bytes(Buffer.alloc(0))),
    ]);
  }

  /** Answers a batch, or delays the answer until the next batch is answered. */
  #answerBatch(answer: () => void): void {
    if (this.#refusesFirstBatch && this.batches === 1) {
      this.#answerFirst = answer;
      return;
    }
    this.#answerFirst?.();
    this.#answerFirst = undefined;
    answer();
  }

  /**
   * Stores a batch. If the broker has stored nothing of the producer, it accepts any sequence, as Kafka does.
   */
  #store(request: Reading): Buffer {
    request.skip(2 + 2 + 4 + 4).string();
    const batch = request.skip(4 + 4).bytes();
    this.batches += 1;
    if (this.#refusesFirstBatch && this.batches === 1)
      return this.#ofPartition(int16(ERROR.notEnoughReplicas), int64(-1), int64(-1));
    const offset = this.#nextOffset;
    this.#nextOffset += batch.readInt32BE(COUNT_AT);
    this.stored.push(batch);
    return this.#ofPartition(int16(ERROR.none), int64(offset), int64(-1));
  }

  /** Returns an answer with one topic and one partition. */
  #ofPartition(...parts: readonly Buffer[]): Buffer {
    return list([Buffer.concat([string(this.#topic), list([Buffer.concat([int32(0), ...parts])])])]);
  }

  #metadata(version: number): Buffer {
    const self = Buffer.concat([int32(1), string('127.0.0.1'), int32(this.port), int16(-1)]);
    const partition = Buffer.concat([int16(0), int32(0), int32(1), list([int32(1)]), list([int32(1)])]);
    // If no broker is known, the topics have no leaders. They are many, so that the client loses its brokers
    // while it reads them.
    const topics = this.namesItself
      ? [Buffer.concat([int16(ERROR.none), string(this.#topic), int8(0), list([partition])])]
      : Array.from({ length: TOPICS }, (_, i) =>
          Buffer.concat([
            int16(ERROR.leaderNotAvailable),
            string(i === 0 ? this.#topic : `topic-${i}`),
            int8(0),
            list([]),
          ]),
        );
    return Buffer.concat([
      list(this.namesItself ? [self] : []),
      ...(version >= 2 ? [string('cluster')] : []),
      int32(this.namesItself ? 1 : -1),
      list(topics),
    ]);
  }
}

function versionsOf(version: number): Buffer {
  return version < 3
    ? Buffer.concat([
        int16(ERROR.none),
        list(VERSIONS.map(([key, highest]) => Buffer.concat([int16(key), int16(0), int16(highest)]))),
        ...(version === 0 ? [] : [int32(0)]),
      ])
    : Buffer.concat([
        int16(ERROR.none),
        int8(VERSIONS.length + 1),
        ...VERSIONS.map(([key, highest]) => Buffer.concat([int16(key), int16(0), int16(highest), int8(0)])),
        int32(0),
        int8(0),
      ]);
}
