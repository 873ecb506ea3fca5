import { DomainError } from '../../../core/domain/errors.js';
import { BatchDelivery } from '../../domain/batch-delivery.js';
import { type ServiceEvent, TOPICS, type Topic } from '../../domain/events.js';
import type {
  DeadLetter,
  DeadLetterReport,
  EventBus,
  EventHandler,
  Replayed,
  Settled,
} from '../../ports/bus.js';
import type { FaultPlace } from '../../ports/observer.js';
import { ConsumerClient, type KafkaConnection, KafkaError, loadLibrary, type Message } from './client.js';
import { deadLettered, deadLetterOf, passDeadLetters, readDeadLetters, requeued } from './dead-letters.js';
import { decodeEvent, type EventReader, encodeEvent, eventHeaders } from './event-message.js';
import { type NamedMessage, Outgoing } from './outgoing.js';
import { readTopic } from './read-topic.js';
import { TopicConsumer } from './topic-consumer.js';
import { deadLetterName, topicName } from './topic-names.js';

export interface KafkaBusOptions extends KafkaConnection, EventReader {
  /** The prefix of the topics, which are `<prefix>.<topic>` and `<prefix>.<topic>.dlq`. */
  readonly prefix: string;
  /** The prefix of the consumer groups, which are `<group>.<topic>` and `<group>.<topic>.dlq`. */
  readonly group: string;
  /** Reports what goes wrong in the background, where everything is tried again anyway. */
  readonly onFault: (where: FaultPlace, error: unknown) => void;
  readonly onDeadLetter?: DeadLetterReport;
  /** The Kafka library. The default is node-rdkafka, and a simulation brings its own. */
  readonly library?: Library;
}

type Library = Awaited<ReturnType<typeof loadLibrary>>;

const RETRY_SECONDS = 2;
/** The time in milliseconds in which a fault is not reported a second time. */
const QUIET_MS = 30_000;

/**
 * Creates the bus over Kafka. Nothing is connected here: Kafka may be down, and may go and come back at any time.
 * @throws Error where node-rdkafka cannot be loaded
 */
export async function openKafkaBus(options: KafkaBusOptions): Promise<EventBus> {
  return new KafkaBus(options.library ?? (await loadLibrary()), options);
}

class KafkaBus implements EventBus {
  readonly #library: Library;
  readonly #options: KafkaBusOptions;
  readonly #outgoing: Outgoing;
  readonly #handlers = new Map<Topic, EventHandler>();
  #consumers: readonly TopicConsumer[] | undefined;
  #closing: Promise<void> | undefined;
  /** The times of the reported faults by kind, in milliseconds since the epoch. */
  readonly #reported = new Map<string, number>();

  constructor(library: Library, options: KafkaBusOptions) {
    this.#library = library;
    this.#options = options;
    this.#outgoing = new Outgoing(library, options, (error) => this.#fault('producer', error));
  }

  publish(events: readonly ServiceEvent[], onSettled: Settled = () => undefined): Promise<void> {
    return passedOn(async () => {
      this.#checkOpen();
      const reports = await this.#outgoing.deliver(events.map((event) => this.#messageOf(event)));
      const settled = await Promise.allSettled(
        reports.map(async (report, i) => {
          try {
            await report;
          } catch (error) {
            onSettled(events[i]!, unavailable(error));
            throw error;
          }
          onSettled(events[i]!);
        }),
      );
      const refused = settled.find(({ status }) => status === 'rejected');
      if (refused !== undefined) throw (refused as PromiseRejectedResult).reason;
    });
  }

  handle(topic: Topic, handler: EventHandler): void {
    if (this.#consumers !== undefined || this.#handlers.has(topic))
      throw new Error(`the topic ${topic} can have only one handler, and it must be added before the start`);
    this.#handlers.set(topic, handler);
  }

  async start(): Promise<void> {
    const { prefix, group } = this.#options;
    this.#consumers ??= TOPICS.flatMap((topic) => {
      const handler = this.#handlers.get(topic);
      if (handler === undefined) return [];
      const fault = (error: unknown) => this.#fault(`consumer of ${topic}`, error);
      const connect = async () => {
        // The producer says why a broker refuses, and whether the topics are there.
        await this.#outgoing.reach(topicName(prefix, topic));
        return ConsumerClient.connect(this.#library, this.#options, { group: `${group}.${topic}`, fault });
      };
      return [
        new TopicConsumer({
          topic,
          name: topicName(prefix, topic),
          reader: this.#options,
          handler,
          connect,
          deadLetter: (message, reason) => this.#deadLetter(topic, message, reason),
          fault,
        }),
      ];
    });
  }

  replay(topic: Topic, handler: EventHandler): Promise<Replayed> {
    let messageCount = 0;
    let left = 0;
    return this.#reading(`${this.#options.group}.replay`, async (client) => {
      await readTopic(client, { name: topicName(this.#options.prefix, topic) }, async (messages) => {
        messageCount += messages.length;
        const events = messages.flatMap((message) => {
          const decoded = decodeEvent(this.#options, topic, message);
          return decoded.ok ? [decoded.event] : [];
        });
        // The group's consumer has put them to the dead letters.
        left += messages.length - events.length;
        await new BatchDelivery(events, handler, () => {
          left += 1;
        }).run();
      });
      return { taken: messageCount - left, left };
    });
  }

  lag(): ReadonlyMap<Topic, number> {
    return new Map(
      (this.#consumers ?? []).flatMap(({ topic, lag }) => (lag === undefined ? [] : [[topic, lag] as const])),
    );
  }

  deadLetters(topic: Topic, limit: number): ReturnType<EventBus['deadLetters']> {
    const name = deadLetterName(this.#options.prefix, topic);
    return this.#reading(this.#deadLetterGroup(topic), async (client) =>
      (await readDeadLetters(client, name, limit)).map((message) => deadLetterOf(topic, message)),
    );
  }

  replayDeadLetters(topic: Topic, limit: number): Promise<number> {
    const { prefix } = this.#options;
    return this.#reading(this.#deadLetterGroup(topic), async (client) => {
      const messages = await readDeadLetters(client, deadLetterName(prefix, topic), limit);
      if (messages.length === 0) return 0;
      await this.#outgoing.send(messages.map((message) => requeued(message, topicName(prefix, topic))));
      await passDeadLetters(client, messages);
      return messages.length;
    });
  }

  discardDeadLetters(
    topic: Topic,
    limit: number,
    record: (letters: readonly DeadLetter[]) => Promise<void>,
  ): Promise<readonly DeadLetter[]> {
    const name = deadLetterName(this.#options.prefix, topic);
    return this.#reading(this.#deadLetterGroup(topic), async (client) => {
      const messages = await readDeadLetters(client, name, limit);
      const letters = messages.map((message) => deadLetterOf(topic, message));
      if (messages.length === 0) return letters;
      await record(letters);
      await passDeadLetters(client, messages);
      return letters;
    });
  }

  ping(): Promise<void> {
    return passedOn(async () => {
      this.#checkOpen();
      await this.#outgoing.ping();
      const away = this.#consumers?.find(({ lag }) => lag === undefined);
      if (away !== undefined) throw new KafkaError(`the consumer of ${away.topic} is not connected`);
    });
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const consumers = this.#consumers ?? [];
    this.#consumers = [];
    await Promise.all(consumers.map((consumer) => consumer.close()));
    await this.#outgoing.close();
  }

  #fault(where: FaultPlace, error: unknown): void {
    const kind = `${where} ${error instanceof Error ? `${error.name} ${error.message}` : typeof error}`;
    if (Date.now() - (this.#reported.get(kind) ?? 0) < QUIET_MS) return;
    // Few kinds there are; a message with a number in it must not make them many.
    if (this.#reported.size > 100) this.#reported.clear();
    this.#reported.set(kind, Date.now());
    this.#options.onFault(where, error);
  }

  #messageOf(event: ServiceEvent): NamedMessage {
    const value = encodeEvent(event);
    return {
      name: `${event.topic} ${event.id}`,
      topic: topicName(this.#options.prefix, event.topic),
      key: event.key,
      value,
      headers: eventHeaders(this.#options.authenticator, event, value),
    };
  }

  #deadLetterGroup(topic: Topic): string {
    return `${this.#options.group}.${topic}.dlq`;
  }

  async #deadLetter(topic: Topic, message: Message, reason: string): Promise<void> {
    await this.#outgoing.send([
      deadLettered(
        message,
        deadLetterName(this.#options.prefix, topic),
        reason,
        Math.floor(Date.now() / 1000),
      ),
    ]);
    this.#options.onDeadLetter?.(topic);
  }

  /** Works with a consumer of its own that joins no group. */
  async #reading<Value>(group: string, work: (client: ConsumerClient) => Promise<Value>): Promise<Value> {
    this.#checkOpen();
    const client = await passedOn(async () => {
      await this.#outgoing.reach();
      return ConsumerClient.connect(this.#library, this.#options, {
        group,
        fault: (error) => this.#fault('reader', error),
      });
    });
    try {
      return await work(client);
    } catch (error) {
      // A handler's own errors are its caller's.
      throw error instanceof KafkaError ? unavailable(error) : error;
    } finally {
      await client.close();
    }
  }

  #checkOpen(): void {
    if (this.#closing !== undefined) throw unavailable(new Error('the bus is closed'));
  }
}

async function passedOn<Value>(work: () => Promise<Value>): Promise<Value> {
  try {
    return await work();
  } catch (error) {
    throw error instanceof DomainError ? error : unavailable(error);
  }
}

function unavailable(cause: unknown): DomainError {
  return new DomainError('unavailable', 'Events cannot be published at the moment.', {
    reason: 'bus_unavailable',
    retryAfterSeconds: RETRY_SECONDS,
    dependency: 'kafka',
    cause,
  });
}
