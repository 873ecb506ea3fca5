/** Calls of a broker that the tests make besides the bus. */
import { connect, createServer, type Server } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  makeTopics as bareTopics,
  ConsumerClient,
  type KafkaConnection,
  loadLibrary,
  type Message,
  type OutgoingMessage,
  ProducerClient,
} from '../../src/service/adapters/kafka/client.js';
import { allNames } from '../../src/service/adapters/kafka/topic-names.js';
import { createTopics, type TopicOptions } from '../../src/service/adapters/kafka/topics.js';
import { again } from '../fixtures/again.js';
import { askBroker, int16, int32, int64, text } from '../fixtures/kafka-frames.js';

const quiet = () => undefined;

/** Creates topics, and repeats the call, because a pause of the broker is not the subject of a test. */
export async function makeTopics(options: TopicOptions): Promise<void> {
  for (const end = Date.now() + 60_000; ; await sleep(500)) {
    try {
      return void (await createTopics(options));
    } catch (error) {
      if (Date.now() > end) throw error;
    }
  }
}

export async function dropTopics(connection: KafkaConnection, prefix: string): Promise<void> {
  const library = await loadLibrary();
  const admin = library.AdminClient.create({ 'metadata.broker.list': connection.brokers.join(',') });
  await Promise.all(
    allNames(prefix).map(
      (name) => new Promise<void>((resolve) => admin.deleteTopic(name, 5000, () => resolve())),
    ),
  );
  admin.disconnect();
}

/** Creates one topic with its own settings. */
export async function makeTopic(
  connection: KafkaConnection,
  topic: string,
  config: Readonly<Record<string, string>> = {},
): Promise<void> {
  const made = { topic, num_partitions: 3, replication_factor: 1, config };
  await again(async () => bareTopics(await loadLibrary(), connection, [made]));
}

/** Resolves when the brokers no longer list the topic. */
export async function dropTopic(connection: KafkaConnection, topic: string): Promise<void> {
  const library = await loadLibrary();
  const admin = library.AdminClient.create({ 'metadata.broker.list': connection.brokers.join(',') });
  await new Promise<void>((resolve) => admin.deleteTopic(topic, 5000, () => resolve()));
  admin.disconnect();
  for (let isThere = true; isThere; await sleep(200)) {
    const { client, topics } = await ProducerClient.connect(library, connection, quiet);
    await client.close(0);
    isThere = topics.has(topic);
  }
}

/** Sends messages that the bus would never send. */
export async function produceRaw(
  connection: KafkaConnection,
  messages: readonly OutgoingMessage[],
): Promise<void> {
  const { client } = await ProducerClient.connect(await loadLibrary(), connection, quiet);
  await Promise.all(
    messages.map(
      (message) =>
        new Promise<void>((resolve, reject) =>
          client.produce(message, (error) => (error === undefined ? resolve() : reject(error))),
        ),
    ),
  );
  await client.close(1000);
}

/** Sends a message that is far larger than its compressed batch. */
export async function produceCompressed(
  { brokers }: KafkaConnection,
  topic: string,
  value: Buffer,
): Promise<void> {
  const { Producer } = await loadLibrary();
  const producer = new Producer(
    {
      'metadata.broker.list': brokers.join(','),
      'compression.codec': 'gzip',
      'message.max.bytes': 8_000_000,
      dr_cb: true,
    },
    {},
  );
  await new Promise<void>((resolve, reject) =>
    producer.connect({ allTopics: false, timeout: 5000 }, (error) => (error ? reject(error) : resolve())),
  );
  const polling = setInterval(() => producer.poll(), 20);
  try {
    const delivered = new Promise<void>((resolve, reject) =>
      producer.on('delivery-report', (error) => (error ? reject(error) : resolve())),
    );
    producer.produce(topic, null, value, 'key', null, 0, []);
    await delivered;
  } finally {
    clearInterval(polling);
    await new Promise<void>((resolve) => producer.disconnect(resolve));
  }
}

/** Adds a member to a group that takes messages and leaves without committing its offset. */
export async function takeAndForget(
  connection: KafkaConnection,
  group: string,
  topic: string,
): Promise<readonly Message[]> {
  const client = await ConsumerClient.connect(await loadLibrary(), connection, { group, fault: quiet });
  client.subscribe(topic);
  let messages: readonly Message[] = [];
  while (messages.length === 0) {
    for (const { kind, partitions } of client.rebalances.splice(0)) {
      if (kind === 'assign') client.assign(partitions);
      else client.unassign();
    }
    messages = await client.poll(10);
    await sleep(20);
  }
  await client.close();
  return messages;
}

export async function partitionsOf(connection: KafkaConnection, topic: string): Promise<number> {
  const client = await ConsumerClient.connect(await loadLibrary(), connection, {
    group: 'takemark-test',
    fault: quiet,
  });
  try {
    return (await client.partitions(topic)).length;
  } finally {
    await client.close();
  }
}

/** Returns a free port of this machine. */
export async function freePort(): Promise<number> {
  const server = await listening(createServer(), 0);
  const { port } = server.address() as { readonly port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Forwards connections to a broker. */
export async function forward(port: number, broker: string): Promise<{ close(): void }> {
  const [host, target] = broker.split(':');
  const server = createServer((from) => {
    const to = connect(Number(target), host);
    for (const socket of [from, to]) socket.on('error', () => void (from.destroy(), to.destroy()));
    from.pipe(to).pipe(from);
  });
  await listening(server, port);
  return server;
}

function listening(server: Server, port: number): Promise<Server> {
  return new Promise((resolve, reject) =>
    server.once('error', reject).listen(port, '127.0.0.1', () => resolve(server)),
  );
}

/**
 * Deletes every record of a topic, as an expired retention does. A committed offset is then outside the
 * topic. The client library has no such call, so the bytes of the request go to the one broker, which leads
 * all partitions.
 */
export async function removeRecords({ brokers }: KafkaConnection, topic: string): Promise<void> {
  const partitions = await partitionsOf({ brokers }, topic);
  // DeleteRecords, version 1, request 1 of a client. It names one topic with its partitions, each to its end,
  // and a timeout of ten seconds.
  const answer = await askBroker(brokers[0]!, [
    int16(21),
    int16(1),
    int32(1),
    text('test'),
    int32(1),
    text(topic),
    int32(partitions),
    ...Array.from({ length: partitions }, (_, partition) => [int32(partition), int64(-1n)]).flat(),
    int32(10_000),
  ]);
  // After correlation id, throttle time and topic: each partition's number, first offset and error.
  const results = answer.subarray(4 + 4 + 4 + 2 + topic.length + 4);
  if (results.length !== partitions * 14) throw new Error('the broker did not answer');
  for (let at = 12; at < results.length; at += 14)
    if (results.readInt16BE(at) !== 0) throw new Error(`not removed: error ${results.readInt16BE(at)}`);
}
