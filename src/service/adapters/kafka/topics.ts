import { setTimeout as sleep } from 'node:timers/promises';
import { TOPICS, type Topic } from '../../domain/events.js';
import { REVIEW_LIFE_SECONDS } from '../../domain/review.js';
import {
  type KafkaConnection,
  KafkaError,
  loadLibrary,
  makeTopics,
  type NewTopic,
  ProducerClient,
} from './client.js';
import { allNames, deadLetterName, topicName } from './topic-names.js';

export interface TopicOptions extends KafkaConnection {
  readonly prefix: string;
  readonly partitions: number;
  readonly replication: number;
}

const DAY_MS = 86_400_000;
export const KEEPING: Readonly<Record<Topic, Readonly<Record<string, string>>>> = {
  // The journal of erasures: a backup of any age may come back.
  erasure: { 'cleanup.policy': 'compact' },
  usage: { 'cleanup.policy': 'delete', 'retention.ms': String(14 * DAY_MS) },
  // Longer than a review lives: a consumer that returns late finds each review that has not ended.
  retention: { 'cleanup.policy': 'delete', 'retention.ms': String(REVIEW_LIFE_SECONDS * 1000 + 14 * DAY_MS) },
};
// Room for the headers of a dead letter beside the largest message that a topic takes by default.
export const DEAD_LETTERS: Readonly<Record<string, string>> = {
  'cleanup.policy': 'delete',
  'retention.ms': String(90 * DAY_MS),
  'max.message.bytes': '2097152',
};
const LOOKS = 40;
const LOOK_MS = 250;

/**
 * Makes the topics that are missing; several machines may do it at the same time. A topic that is there keeps
 * its settings, its partitions above all: with another number of them, keys would change their places and
 * lose their order.
 * @returns the names of those that were missing
 * @throws Error with a message for the operator
 */
export async function createTopics({
  prefix,
  partitions,
  replication,
  ...connection
}: TopicOptions): Promise<readonly string[]> {
  const library = await loadLibrary();
  const look = async () => {
    const { client, topics } = await ProducerClient.connect(library, connection, () => undefined);
    await client.close(0);
    return allNames(prefix).filter((name) => !topics.has(name));
  };
  const missing = await look();
  if (missing.length === 0) return [];
  const common = {
    replication_factor: replication,
    config: { 'min.insync.replicas': String(Math.max(1, replication - 1)) },
  };
  const all = TOPICS.flatMap((topic): NewTopic[] => [
    {
      topic: topicName(prefix, topic),
      num_partitions: partitions,
      ...common,
      config: { ...common.config, ...KEEPING[topic] },
    },
    // A single partition: dead letters are few, and are listed in their order.
    {
      topic: deadLetterName(prefix, topic),
      num_partitions: 1,
      ...common,
      config: { ...common.config, ...DEAD_LETTERS },
    },
  ]);
  await makeTopics(
    library,
    connection,
    all.filter(({ topic }) => missing.includes(topic)),
  );
  // The brokers hear of a topic some time after it was made.
  for (let looks = 0; looks < LOOKS; looks += 1) {
    if ((await look()).length === 0) return missing;
    await sleep(LOOK_MS);
  }
  throw new KafkaError('the topics were created, but the brokers do not list them');
}
