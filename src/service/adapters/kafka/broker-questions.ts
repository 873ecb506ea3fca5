/**
 * Two questions of Kafka's protocol that node-rdkafka cannot ask: which topics a cluster has, with their
 * replicas, and what settings hold for them. Nothing here writes, and nothing but the doctor asks.
 */
import { createHash, createHmac, pbkdf2, randomBytes, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { connect as connectPlain, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { promisify } from 'node:util';
import { withDeadline } from '../../../core/async/deadline.js';
import { type KafkaConnection, KafkaError } from './client.js';

/** The versions that every broker from 1.1 to 4.x accepts. None needs the compact encoding. */
const API = {
  metadata: { key: 3, version: 4 },
  saslHandshake: { key: 17, version: 1 },
  describeConfigs: { key: 32, version: 1 },
  saslAuthenticate: { key: 36, version: 0 },
} as const;
const MECHANISM = 'SCRAM-SHA-512';
const TOPIC = 2;
/** A topic that is asked for and is not there stays so. */
const NOT_MADE = Buffer.of(0);
const ANSWER_MS = 5000;
const MAX_ANSWER_BYTES = 8 * 1024 * 1024;
/** Rounds of the password's hash. Kafka demands the minimum. A broker that asks for more than the maximum is refused. */
const ROUNDS = { least: 4096, most: 1_000_000 } as const;

export interface TopicReplicas {
  readonly name: string;
  readonly partitions: number;
  /** The number of replicas of the partition that has the fewest. */
  readonly replicas: number;
}

/** The settings of a topic, defaults of the brokers included. */
export interface TopicSettings {
  readonly name: string;
  /** Absent if the broker refuses the question. */
  readonly settings?: ReadonlyMap<string, string>;
}

export interface ClusterAnswers {
  readonly brokers: number;
  /** The topics that were asked for and exist. */
  readonly topics: readonly TopicReplicas[];
  readonly settings: readonly TopicSettings[];
}

/** Asks the first broker that answers. @throws KafkaError where none does, or the credentials are refused */
export async function askBrokers(
  connection: KafkaConnection,
  names: readonly string[],
  settings: readonly string[],
): Promise<ClusterAnswers> {
  let failure: unknown;
  for (const address of connection.brokers) {
    const asked = new AbortController();
    try {
      return await withDeadline(ask(address, connection, names, settings, asked.signal), ANSWER_MS, () => {
        throw new KafkaError('no answer');
      });
    } catch (error) {
      failure ??= error;
    } finally {
      asked.abort();
    }
  }
  throw failure instanceof KafkaError
    ? failure
    : new KafkaError(failure instanceof Error ? failure.message : 'no answer');
}

async function ask(
  address: string,
  connection: KafkaConnection,
  names: readonly string[],
  settings: readonly string[],
  signal: AbortSignal,
): Promise<ClusterAnswers> {
  const socket = await open(address, connection);
  signal.addEventListener('abort', () => socket.destroy());
  if (signal.aborted) socket.destroy();
  const exchange = exchangeOver(socket);
  if (connection.credentials !== undefined) await authenticate(exchange, connection.credentials);
  const { brokers, topics } = readMetadata(
    await exchange(API.metadata, [list(names.map(string)), NOT_MADE]),
    names,
  );
  const resources = topics.map(({ name }) =>
    Buffer.concat([Buffer.of(TOPIC), string(name), list(settings.map(string))]),
  );
  const described = await exchange(API.describeConfigs, [list(resources), Buffer.of(0)]);
  return { brokers, topics, settings: readSettings(described) };
}

async function open(address: string, { tls }: KafkaConnection): Promise<Socket> {
  const [, host = '', port = ''] = /^\[?(.*?)\]?:(\d+)$/.exec(address) ?? [];
  const to = { host, port: Number(port) };
  if (tls === undefined) {
    const socket = connectPlain(to);
    await once(socket, 'connect');
    return socket;
  }
  const ca = await readFile(tls.authority);
  const socket = connectTls({ ...to, ca, ...(isIP(host) === 0 ? { servername: host } : {}) });
  await once(socket, 'secureConnect');
  return socket;
}

type Exchange = (api: (typeof API)[keyof typeof API], fields: readonly Buffer[]) => Promise<Reader>;

/** Sends requests one after the other. Each response follows its correlation id. */
function exchangeOver(socket: Socket): Exchange {
  let got = Buffer.alloc(0);
  let correlation = 0;
  const more = async (): Promise<void> => {
    const ended = once(socket, 'close').then(() => {
      throw new KafkaError('the broker closed the connection');
    });
    const [chunk] = (await Promise.race([once(socket, 'data'), ended])) as [Buffer];
    got = Buffer.concat([got, chunk]);
  };
  return async ({ key, version }, fields) => {
    correlation += 1;
    const message = Buffer.concat([
      int16(key),
      int16(version),
      int32(correlation),
      string('takemark'),
      ...fields,
    ]);
    socket.write(Buffer.concat([int32(message.length), message]));
    while (got.length < 4) await more();
    const length = got.readInt32BE(0);
    if (length < 4 || length > MAX_ANSWER_BYTES)
      throw new KafkaError('the server at this address does not respond as a Kafka broker');
    while (got.length < 4 + length) await more();
    const answer = got.subarray(8, 4 + length);
    if (got.readInt32BE(4) !== correlation)
      throw new KafkaError('the server at this address does not respond as a Kafka broker');
    got = got.subarray(4 + length);
    return new Reader(answer);
  };
}

/** Authenticates with SCRAM (RFC 5802) without channel binding. The broker shows that it knows the password, too. */
async function authenticate(
  exchange: Exchange,
  { username, password }: NonNullable<KafkaConnection['credentials']>,
): Promise<void> {
  if ((await exchange(API.saslHandshake, [string(MECHANISM)])).int16() !== 0)
    throw new KafkaError(`the broker does not offer ${MECHANISM}`);
  const step = async (
    text: string,
  ): Promise<Readonly<Record<string, string>> & { readonly text: string }> => {
    const answer = await exchange(API.saslAuthenticate, [bytes(Buffer.from(text))]);
    if (answer.int16() !== 0) throw new KafkaError('credentials refused');
    answer.nullableString();
    const said = answer.bytes().toString();
    return { ...Object.fromEntries(said.split(',').map((part) => [part[0], part.slice(2)])), text: said };
  };
  const nonce = randomBytes(24).toString('hex');
  const first = `n=${username.replaceAll('=', '=3D').replaceAll(',', '=2C')},r=${nonce}`;
  const { r = '', s = '', i = '', text } = await step(`n,,${first}`);
  const rounds = Number(i);
  if (!r.startsWith(nonce) || !(rounds >= ROUNDS.least && rounds <= ROUNDS.most))
    throw new KafkaError('the broker violates the SCRAM protocol');
  const salted = await promisify(pbkdf2)(password, Buffer.from(s, 'base64'), rounds, 64, 'sha512');
  const final = `c=biws,r=${r}`;
  const signed = `${first},${text},${final}`;
  const clientKey = hmac(salted, 'Client Key');
  const signature = hmac(createHash('sha512').update(clientKey).digest(), signed);
  const proof = Buffer.from(clientKey.map((byte, index) => byte ^ signature[index]!));
  const { v = '' } = await step(`${final},p=${proof.toString('base64')}`);
  const own = hmac(hmac(salted, 'Server Key'), signed);
  const shown = Buffer.from(v, 'base64');
  if (shown.length !== own.length || !timingSafeEqual(shown, own))
    throw new KafkaError('the broker does not know the password');
}

function readMetadata(
  answer: Reader,
  names: readonly string[],
): { readonly brokers: number; readonly topics: readonly TopicReplicas[] } {
  answer.int32();
  const brokers = answer.list(() => {
    answer.int32();
    answer.nullableString();
    answer.int32();
    answer.nullableString();
  });
  answer.nullableString();
  answer.int32();
  const topics = answer.list(() => {
    const error = answer.int16();
    const name = answer.nullableString() ?? '';
    answer.bool();
    const replicas = answer.list(() => {
      answer.int16();
      answer.int32();
      answer.int32();
      const of = answer.list(() => answer.int32());
      answer.list(() => answer.int32());
      return of.length;
    });
    return { error, name, partitions: replicas.length, replicas: Math.min(...replicas) };
  });
  return {
    brokers: brokers.length,
    topics: topics
      .filter(({ error, name, partitions }) => error === 0 && partitions > 0 && names.includes(name))
      .map(({ name, partitions, replicas }) => ({ name, partitions, replicas })),
  };
}

function readSettings(answer: Reader): readonly TopicSettings[] {
  answer.int32();
  return answer.list(() => {
    const error = answer.int16();
    answer.nullableString();
    answer.bool();
    const name = answer.nullableString() ?? '';
    const settings = answer.list((): [string, string] => {
      const setting = answer.nullableString() ?? '';
      const value = answer.nullableString() ?? '';
      answer.bool();
      answer.bool();
      answer.bool();
      answer.list(() => {
        answer.nullableString();
        answer.nullableString();
        answer.bool();
      });
      return [setting, value];
    });
    return error === 0 ? { name, settings: new Map(settings) } : { name };
  });
}

/** Reads an answer from its beginning. Beyond its end every call throws a RangeError. */
class Reader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  int16(): number {
    this.#at += 2;
    return this.#bytes.readInt16BE(this.#at - 2);
  }

  int32(): number {
    this.#at += 4;
    return this.#bytes.readInt32BE(this.#at - 4);
  }

  bool(): boolean {
    this.#at += 1;
    return this.#bytes.readInt8(this.#at - 1) !== 0;
  }

  nullableString(): string | undefined {
    const length = this.int16();
    return length < 0 ? undefined : this.#take(length).toString();
  }

  bytes(): Buffer {
    return this.#take(Math.max(0, this.int32()));
  }

  /** Reads a list. Each item takes a byte or more, so no announced length makes a list longer than the answer. */
  list<Item>(read: () => Item): readonly Item[] {
    const length = this.int32();
    const items: Item[] = [];
    for (let count = 0; count < length; count += 1) items.push(read());
    return items;
  }

  #take(length: number): Buffer {
    if (this.#at + length > this.#bytes.length) throw new RangeError("the broker's response is too short");
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }
}

function hmac(key: Buffer, text: string): Buffer {
  return createHmac('sha512', key).update(text).digest();
}

function int16(value: number): Buffer {
  const encoded = Buffer.alloc(2);
  encoded.writeInt16BE(value);
  return encoded;
}

function int32(value: number): Buffer {
  const encoded = Buffer.alloc(4);
  encoded.writeInt32BE(value);
  return encoded;
}

function string(text: string): Buffer {
  return Buffer.concat([int16(Buffer.byteLength(text)), Buffer.from(text)]);
}

function bytes(content: Buffer): Buffer {
  return Buffer.concat([int32(content.length), content]);
}

function list(items: readonly Buffer[]): Buffer {
  return Buffer.concat([int32(items.length), ...items]);
}
