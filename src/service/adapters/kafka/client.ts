/**
 * node-rdkafka as promises and plain functions: its callbacks and events stay in this file.
 */
import type {
  ConsumerGlobalConfig,
  GlobalConfig,
  IAdminClient,
  KafkaConsumer,
  LibrdKafkaError,
  Message,
  MessageHeader,
  NewTopic,
  Producer,
  TopicPartition,
  TopicPartitionOffset,
  WatermarkOffsets,
} from 'node-rdkafka';

import { withDeadline } from '../../../core/async/deadline.js';
import { ServerError } from '../../../core/domain/errors.js';
import { type Asked, BrokerWatch } from './broker-watch.js';

export type { Message, NewTopic, TopicPartition, TopicPartitionOffset };

type Library = typeof import('node-rdkafka');

export interface KafkaConnection {
  /** The brokers, each as `host:port`. */
  readonly brokers: readonly string[];
  /** The credentials for SASL SCRAM-SHA-512. */
  readonly credentials?: { readonly username: string; readonly password: string };
  /** The path of a PEM file with the authority that brokers are verified against. If present, TLS is used. */
  readonly tls?: { readonly authority: string };
  /** The time in milliseconds between two questions whether a broker still answers, for tests that wait for them. */
  readonly questionMs?: number;
}

/** An error of Kafka or of the way to it. */
export class KafkaError extends ServerError {
  override readonly name = 'KafkaError';
  readonly dependency = 'kafka';
  /** The error code of librdkafka. It is negative if the error did not come from a broker. */
  readonly code: number | undefined;

  constructor(message: string, code?: number) {
    super(message);
    this.code = code;
  }

  /** The client that threw it is of no use any more. */
  get fatal(): boolean {
    return this.code === CODE.fatal || this.code === CODE.state || this.code === CODE.lost;
  }
}

export interface OutgoingMessage {
  readonly topic: string;
  readonly key: string | Buffer | null;
  readonly value: Buffer | null;
  readonly headers: Readonly<Record<string, string>>;
}

export type FaultReport = (error: KafkaError) => void;

const CONNECT_MS = 3000;
const ASK_MS = 5000;
/** The time limit of the watch's question in milliseconds. A waiting question holds a worker thread of Node. */
const WATCH_MS = 1000;
const CLOSE_MS = 10_000;
const POLL_MS = 5;
const IDLE_POLL_MS = 500;
const CODE = {
  queueFull: -184,
  timedOut: -185,
  state: -172,
  /** The code of this file for a client that has lost its brokers. */
  lost: -1_000_000,
  fatal: -150,
  authentication: -169,
  saslRefused: 58,
  tls: -181,
  assign: -175,
  revoke: -174,
  allDown: -187,
  exists: 36,
} as const;
/** Events have no code, only these words. */
const WORDS: Readonly<Record<string, number>> = {
  'authentication failure': CODE.authentication,
  'sasl authentication failed': CODE.saslRefused,
  'ssl error': CODE.tls,
  'all broker connections are down': CODE.allDown,
  'fatal error': CODE.fatal,
  'erroneous state': CODE.state,
};
/** The rest is about single connections, and mends itself. */
const REPORTED: ReadonlySet<number> = new Set([
  CODE.fatal,
  CODE.authentication,
  CODE.saslRefused,
  CODE.tls,
  CODE.allDown,
]);

/** @throws Error with a message for the operator */
export async function loadLibrary(): Promise<Library> {
  try {
    const { default: library } = (await import('node-rdkafka')) as unknown as { readonly default: Library };
    return library;
  } catch (cause) {
    throw new Error(
      'Kafka needs the optional dependency node-rdkafka, which is not installed or cannot be loaded; see deploy/kafka/README.md',
      { cause },
    );
  }
}

export class ProducerClient {
  readonly #producer: Producer;
  readonly #reports = new Map<number, (error: Error | undefined) => void>();
  #sent = 0;
  #timer: NodeJS.Timeout | undefined;
  readonly #watch: BrokerWatch;
  readonly #fault: FaultReport;
  #hasFailed = false;

  private constructor(producer: Producer, fault: FaultReport, questionMs: number | undefined) {
    this.#producer = producer;
    this.#fault = fault;
    this.#watch = new BrokerWatch(() => askAnyBroker(producer), questionMs);
  }

  /** Nothing can be sent with it any more: another one has to be made. */
  get broken(): boolean {
    return this.#hasFailed;
  }

  /** @returns also the topics that are there. @throws KafkaError */
  static async connect(
    library: Library,
    connection: KafkaConnection,
    fault: FaultReport,
  ): Promise<{ readonly client: ProducerClient; readonly topics: ReadonlySet<string> }> {
    const producer = new library.Producer(
      {
        ...settings(connection),
        'enable.idempotence': true,
        // More than an outbox holds, because the messages of a stalled partition stay here.
        'queue.buffering.max.messages': 2_000_000,
        'queue.buffering.max.kbytes': 262_144,
        // A dead letter is a foreign message and some headers.
        'message.max.bytes': 2_097_152,
        'linger.ms': 5,
        dr_cb: true,
      },
      // Never given up here. If a message were dropped while a later one of its key is sent, it would be sent again
      // after it.
      { acks: -1, 'message.timeout.ms': 0, 'request.timeout.ms': 10_000, partitioner: 'murmur2_random' },
    );
    const client = new ProducerClient(producer, fault, connection.questionMs);
    const refusal = listen(producer, (error) => {
      if (error.code === CODE.fatal) client.#hasFailed = true;
      fault(error);
    });
    producer.on('delivery-report', (error, { opaque, offset }) =>
      client.#report(opaque as number, error ? failure(error) : faultUnlessStored(offset)),
    );
    client.#poll();
    try {
      const metadata = await asked<{ readonly topics: readonly { readonly name: string }[] }>((done) =>
        producer.connect({ allTopics: true, timeout: CONNECT_MS }, done),
      );
      return { client, topics: new Set(metadata.topics.map(({ name }) => name)) };
    } catch (error) {
      clearTimeout(client.#timer);
      throw explained(library, refusal()) ?? error;
    }
  }

  /** Returns the names of the topics that the brokers have. @throws KafkaError */
  async topics(timeoutMs: number): Promise<ReadonlySet<string>> {
    const { topics } = await asked<{ readonly topics: readonly { readonly name: string }[] }>((done) =>
      this.#producer.getMetadata({ allTopics: true, timeout: timeoutMs }, done),
    );
    return new Set(topics.map(({ name }) => name));
  }

  /**
   * @param reported called once, with the delivery report. @returns false where the queue is full: nothing
   * was taken
   */
  produce(
    { topic, key, value, headers }: OutgoingMessage,
    reported: (error: Error | undefined) => void,
  ): boolean {
    const number = this.#sent++;
    try {
      this.#producer.produce(
        topic,
        null,
        value,
        key,
        null,
        number,
        Object.entries(headers).map(([name, text]) => ({ [name]: text })),
      );
    } catch (error) {
      if ((error as LibrdKafkaError).code === CODE.queueFull) return false;
      throw failure(error as LibrdKafkaError);
    }
    this.#reports.set(number, reported);
    if (this.#reports.size === 1) this.#poll();
    return true;
  }

  /** Drops and reports as failed what is not delivered within `flushMs`. */
  async close(flushMs: number): Promise<void> {
    await new Promise<void>((resolve) => this.#producer.disconnect(flushMs, () => resolve()));
    clearTimeout(this.#timer);
    for (const number of [...this.#reports.keys()])
      this.#report(number, new KafkaError('the producer was closed'));
  }

  #report(number: number, error: Error | undefined): void {
    this.#reports.get(number)?.(error);
    this.#reports.delete(number);
  }

  /** Asks for reports and errors, which come only then. */
  #poll(): void {
    clearTimeout(this.#timer);
    try {
      this.#producer.poll();
    } catch {
      // The client is not connected yet, or not any more.
    }
    this.#watch.look();
    if (this.#watch.isLost && !this.#hasFailed) {
      this.#hasFailed = true;
      this.#fault(new KafkaError('no broker responds', CODE.lost));
    }
    this.#timer = setTimeout(
      () => this.#poll(),
      this.#reports.size > 0 || !this.#producer.isConnected() ? POLL_MS : IDLE_POLL_MS,
    ).unref();
  }
}

export type Rebalance = {
  readonly kind: 'assign' | 'revoke';
  readonly partitions: readonly TopicPartition[];
};

export interface ConsumerOptions {
  readonly group: string;
  readonly fault: FaultReport;
}

/** A consumer that commits at its caller's word. Rebalances wait in `rebalances` until they are followed. */
export class ConsumerClient {
  readonly #consumer: KafkaConsumer;
  readonly rebalances: Rebalance[] = [];
  /** The partitions whose end was reached by reading. */
  readonly ended = new Set<number>();
  commitsUnderWay = 0;
  /** The error of the commit that failed last, until a caller removes it. */
  commitFault: KafkaError | undefined;
  readonly #watch: BrokerWatch;
  #closing = false;

  private constructor(consumer: KafkaConsumer, questionMs: number | undefined) {
    this.#consumer = consumer;
    this.#watch = new BrokerWatch(() => askAnyBroker(consumer), questionMs);
  }

  /** @throws KafkaError */
  static async connect(
    library: Library,
    connection: KafkaConnection,
    { group, fault }: ConsumerOptions,
  ): Promise<ConsumerClient> {
    const config: ConsumerGlobalConfig = {
      ...settings(connection),
      'group.id': group,
      'enable.auto.commit': false,
      'enable.partition.eof': true,
      // A killed process's partitions go to the others after this; a broker that restarts takes less.
      'session.timeout.ms': 15_000,
      'heartbeat.interval.ms': 2000,
      'queued.max.messages.kbytes': 4096,
      offset_commit_cb: true,
      rebalance_cb: (error: LibrdKafkaError, partitions: TopicPartition[]) => {
        client.#rebalance({ kind: error.code === CODE.assign ? 'assign' : 'revoke', partitions });
      },
    };
    const consumer = new library.KafkaConsumer(config, { 'auto.offset.reset': 'earliest' });
    const client: ConsumerClient = new ConsumerClient(consumer, connection.questionMs);
    const refusal = listen(consumer, fault);
    consumer.setDefaultConsumeTimeout(POLL_MS);
    consumer.on('partition.eof', ({ partition }) => void client.ended.add(partition));
    consumer.on('offset.commit', (error) => {
      client.commitsUnderWay = Math.max(0, client.commitsUnderWay - 1);
      if (!error) return;
      client.commitFault = new KafkaError(
        `the position in a topic was not stored: ${error.message}`,
        error.code,
      );
      fault(client.commitFault);
    });
    try {
      await asked((done) => consumer.connect({ allTopics: false, timeout: CONNECT_MS }, done));
      return client;
    } catch (error) {
      throw refusal() ?? error;
    }
  }

  subscribe(topic: string): void {
    this.#consumer.subscribe([topic]);
  }

  unsubscribe(): void {
    this.#consumer.unsubscribe();
  }

  assign(partitions: readonly (TopicPartition | TopicPartitionOffset)[]): void {
    this.#consumer.assign([...partitions]);
  }

  unassign(): void {
    this.#consumer.unassign();
  }

  /**
   * Returns messages that are there, at most `limit`. Polling also keeps the group's membership, so it must go on all
   * the time. @throws KafkaError, a fatal one where this client will find no broker any more
   */
  poll(limit: number): Promise<readonly Message[]> {
    this.#watch.look();
    if (this.#watch.isLost) return Promise.reject(new KafkaError('no broker responds', CODE.lost));
    return asked((done) => this.#consumer.consume(limit, done));
  }

  /** The number of messages of the held partitions that were not polled yet, as far as the brokers have reported. */
  get unread(): number {
    try {
      return this.#consumer.position().reduce((sum, { topic, partition, offset }) => {
        // Before its first message a partition has no position; a negative end is one that no broker has
        // named yet.
        const { highOffset } = this.#consumer.getWatermarkOffsets(topic, partition);
        return offset === undefined || offset < 0 ? sum : sum + Math.max(0, highOffset - offset);
      }, 0);
    } catch {
      // The client is not connected.
      return 0;
    }
  }

  /** False while the brokers do not answer. */
  get isAnswered(): boolean {
    return this.#watch.isAnswered;
  }

  /** The partitions that are assigned to this member. */
  get held(): readonly TopicPartition[] {
    return this.#consumer.assignments().map(({ topic, partition }) => ({ topic, partition }));
  }

  pause(): void {
    this.#consumer.pause(this.#consumer.assignments());
  }

  resume(): void {
    this.#consumer.resume(this.#consumer.assignments());
  }

  /** Sends a commit off; whether it was kept shows in a later `poll`. */
  commit(positions: readonly TopicPartitionOffset[]): void {
    this.#consumer.commit([...positions]);
    this.commitsUnderWay += 1;
  }

  async partitions(topic: string): Promise<readonly number[]> {
    const { topics } = await asked<{
      readonly topics: readonly {
        readonly name: string;
        readonly partitions: readonly { readonly id: number }[];
      }[];
    }>((done) => this.#consumer.getMetadata({ topic, allTopics: false, timeout: ASK_MS }, done));
    const found = topics.find(({ name }) => name === topic)?.partitions ?? [];
    if (found.length === 0) throw new KafkaError(`the topic ${topic} does not exist`);
    return found.map(({ id }) => id);
  }

  /** Returns the first and the next offset of a partition. */
  async bounds(topic: string, partition: number): Promise<{ readonly low: number; readonly high: number }> {
    const { lowOffset, highOffset } = await asked<WatermarkOffsets>((done) =>
      this.#consumer.queryWatermarkOffsets(topic, partition, ASK_MS, done),
    );
    return { low: lowOffset, high: highOffset };
  }

  /** Returns the group's committed offsets. A partition without one is absent. */
  async committed(topic: string, partitions: readonly number[]): Promise<ReadonlyMap<number, number>> {
    const found = await asked<readonly Partial<TopicPartitionOffset>[]>((done) =>
      this.#consumer.committed(
        partitions.map((partition) => ({ topic, partition })),
        ASK_MS,
        done,
      ),
    );
    return new Map(
      found.flatMap(({ partition, offset }) =>
        partition !== undefined && offset !== undefined && offset >= 0 ? [[partition, offset] as const] : [],
      ),
    );
  }

  async close(): Promise<void> {
    this.#closing = true;
    // The library's close waits, on a thread of Node's few, for an answer to each of them.
    if (this.rebalances.length > 0 && this.#consumer.isConnected()) this.#consumer.unassign();
    const closed = new Promise<void>((resolve) =>
      this.#consumer.isConnected() ? this.#consumer.disconnect(() => resolve()) : resolve(),
    );
    // A client without brokers has no group to leave.
    await withDeadline(closed, CLOSE_MS, () => undefined);
  }

  #rebalance(rebalance: Rebalance): void {
    // The library's close waits until what is held is given back.
    if (this.#closing) this.#consumer.unassign();
    else this.rebalances.push(rebalance);
  }
}

/** Makes topics; one that is there already is left as it is. @throws KafkaError */
export async function makeTopics(
  library: Library,
  connection: KafkaConnection,
  topics: readonly NewTopic[],
): Promise<void> {
  const admin: IAdminClient = library.AdminClient.create(settings(connection));
  try {
    for (const topic of topics) {
      await asked<void>((done) => admin.createTopic(topic, ASK_MS, done)).catch((error: unknown) => {
        if (!(error instanceof KafkaError) || error.code !== CODE.exists) throw error;
      });
    }
  } finally {
    admin.disconnect();
  }
}

/** Returns the text of a message's headers. The last header of a name counts. */
export function headersOf({
  headers,
}: {
  readonly headers?: readonly MessageHeader[];
}): Readonly<Record<string, string>> {
  return Object.fromEntries(
    (headers ?? []).flatMap((header) =>
      Object.entries(header).map(([name, value]) => [name, value.toString()]),
    ),
  );
}

function settings({ brokers, credentials, tls }: KafkaConnection): GlobalConfig {
  return {
    'metadata.broker.list': brokers.join(','),
    'client.id': 'takemark',
    'socket.keepalive.enable': true,
    'socket.timeout.ms': 10_000,
    'reconnect.backoff.ms': 100,
    'reconnect.backoff.max.ms': 1000,
    'security.protocol':
      credentials === undefined
        ? tls === undefined
          ? 'plaintext'
          : 'ssl'
        : tls === undefined
          ? 'sasl_plaintext'
          : 'sasl_ssl',
    ...(credentials === undefined
      ? {}
      : {
          'sasl.mechanisms': 'SCRAM-SHA-512',
          'sasl.username': credentials.username,
          'sasl.password': credentials.password,
        }),
    ...(tls === undefined
      ? {}
      : { 'ssl.ca.location': tls.authority, 'ssl.endpoint.identification.algorithm': 'https' }),
  };
}

/**
 * Reports faults, as often as they come: with every attempt. @returns a reader of a broker's last refusal
 */
function listen(client: Producer | KafkaConsumer, fault: FaultReport): () => KafkaError | undefined {
  let refusal: KafkaError | undefined;
  (client as Producer).on('event.error', (raw) => {
    const error = failure(raw);
    const code = error.code ?? 0;
    if (code === CODE.authentication || code === CODE.saslRefused || code === CODE.tls) refusal = error;
    if (REPORTED.has(code)) fault(error);
  });
  return () => refusal;
}

function failure(error: Error | LibrdKafkaError): KafkaError {
  const given = 'code' in error && typeof error.code === 'number' ? error.code : undefined;
  const code = WORDS[error.message.toLowerCase().replace(/^(local|broker): /, '')] ?? given;
  if (code === CODE.authentication || code === CODE.saslRefused)
    return new KafkaError('Kafka refuses the user name or the password', code);
  if (code === CODE.tls)
    return new KafkaError(
      "Kafka's certificate was not issued by the configured authority, or Kafka does not use TLS",
      code,
    );
  return new KafkaError(error.message, code);
}

/**
 * Returns true if this library supports SCRAM with every Kafka. Before 2.6.1 its nonce is wrong, and Kafka 4 refuses
 * such a nonce.
 */
export function provesPasswords({ librdkafkaVersion }: Library): boolean {
  const [major = 0, minor = 0, patch = 0] = librdkafkaVersion.split('.').map(Number.parseFloat);
  return major > 2 || (major === 2 && (minor > 6 || (minor === 6 && patch >= 1)));
}

function explained(library: Library, refusal: KafkaError | undefined): KafkaError | undefined {
  const oldLibrary = refusal?.code === CODE.authentication && !provesPasswords(library);
  return oldLibrary
    ? new KafkaError(
        `${refusal.message}. Another possible cause: librdkafka ${library.librdkafkaVersion} does not support SCRAM with Kafka 4 (2.6.1 does)`,
        refusal.code,
      )
    : refusal;
}

/**
 * Returns the error of a message that was reported as delivered without an offset (decision 0052). A broker may have
 * stored it or not.
 */
function faultUnlessStored(offset: number | undefined): KafkaError | undefined {
  return offset !== undefined && offset >= 0
    ? undefined
    : new KafkaError('no broker reported the position of a stored message');
}

/** Asks whichever broker is connected. */
function askAnyBroker(client: Producer | KafkaConsumer): Promise<Asked> {
  return asked((done) =>
    (client as Producer).getMetadata({ allTopics: false, timeout: WATCH_MS }, done),
  ).then(
    () => 'answered',
    (error: unknown) => (error instanceof KafkaError && error.code === CODE.timedOut ? 'late' : 'failed'),
  );
}

function asked<Value>(
  ask: (done: (error: Error | LibrdKafkaError | null | undefined, value?: unknown) => void) => unknown,
): Promise<Value> {
  return new Promise((resolve, reject) => {
    ask((error, value) => (error ? reject(failure(error)) : resolve(value as Value)));
  });
}
