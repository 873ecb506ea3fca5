import type { Topic } from '../../domain/events.js';
import type { DeadLetter } from '../../ports/bus.js';
import { type ConsumerClient, headersOf, KafkaError, type Message } from './client.js';
import { namesOf } from './event-message.js';
import type { NamedMessage } from './outgoing.js';
import { readTopic } from './read-topic.js';

/** Headers that a message has among the dead letters, and loses when it goes back. */
const OWN = {
  reason: 'dead-letter-reason',
  at: 'dead-letter-at',
  topic: 'dead-letter-topic',
  partition: 'dead-letter-partition',
  offset: 'dead-letter-offset',
} as const;
const OWN_NAMES: ReadonlySet<string> = new Set(Object.values(OWN));
const COMMIT_MS = 10_000;
/** Bytes: some less than the topic of dead letters takes. A compressed message can be larger. */
const LARGEST_BYTES = 2_000_000;
const NOTHING = Buffer.alloc(0);

/**
 * Returns the message as it arrived, with the reason why it is a dead letter. A message that is too large, which no
 * process of this installation sends, leaves only its position and the reason.
 */
export function deadLettered(message: Message, name: string, reason: string, at: number): NamedMessage {
  const { topic, partition, offset } = message;
  const whole = { key: bytesOf(message.key), value: message.value, headers: headersOf(message) };
  const bytes = sizeOf(whole);
  // Under a key all the same: a compacted topic takes none without.
  const { key, value, headers } =
    bytes > LARGEST_BYTES ? { key: `${topic} ${partition} ${offset}`, value: NOTHING, headers: {} } : whole;
  const why =
    bytes > LARGEST_BYTES ? `${reason}; the event has ${bytes} bytes, which is too large to keep` : reason;
  return {
    name: `${name} ${partition} ${offset}`,
    topic: name,
    key,
    value,
    headers: {
      ...headers,
      [OWN.reason]: why,
      [OWN.at]: String(at),
      [OWN.topic]: topic,
      [OWN.partition]: String(partition),
      [OWN.offset]: String(offset),
    },
  };
}

function sizeOf({ key, value, headers }: Pick<NamedMessage, 'key' | 'value' | 'headers'>): number {
  const texts = Object.entries(headers)
    .flat()
    .reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  return texts + (value?.length ?? 0) + (key === null ? 0 : Buffer.byteLength(key));
}

/** Returns the message as it goes back to its topic, without the headers of a dead letter. */
export function requeued(message: Message, name: string): NamedMessage {
  const { topic, partition, offset, key, value } = message;
  const headers = Object.fromEntries(
    Object.entries(headersOf(message)).filter(([header]) => !OWN_NAMES.has(header)),
  );
  return { name: `${topic} ${partition} ${offset} again`, topic: name, key: bytesOf(key), value, headers };
}

export function deadLetterOf(topic: Topic, message: Message): DeadLetter {
  const headers = headersOf(message);
  const at = Number(headers[OWN.at]);
  return {
    topic,
    position: `${message.partition}:${message.offset}`,
    reason: headers[OWN.reason] ?? 'unknown',
    at: Number.isSafeInteger(at) ? at : 0,
    ...namesOf(message.value),
  };
}

/** Returns the messages after the group's offsets, in the order of their partition. */
export async function readDeadLetters(
  client: ConsumerClient,
  name: string,
  limit: number,
): Promise<readonly Message[]> {
  const from = await client.committed(name, await client.partitions(name));
  const found: Message[] = [];
  await readTopic(client, { name, from, limit }, async (messages) => void found.push(...messages));
  return found;
}

/** Commits the group's offsets after these messages. @throws KafkaError where they were not kept */
export async function passDeadLetters(client: ConsumerClient, messages: readonly Message[]): Promise<void> {
  const last = new Map(
    messages.map(({ topic, partition, offset }) => [partition, { topic, partition, offset: offset + 1 }]),
  );
  client.commitFault = undefined;
  client.commit([...last.values()]);
  for (const deadline = Date.now() + COMMIT_MS; client.commitsUnderWay > 0; ) {
    if (Date.now() > deadline)
      throw new KafkaError(
        'the position in the dead-letter topic was not stored, so some dead letters may be published again',
      );
    await client.poll(1);
  }
  if (client.commitFault !== undefined) throw client.commitFault;
}

function bytesOf(key: Message['key']): string | Buffer | null {
  return key ?? null;
}
