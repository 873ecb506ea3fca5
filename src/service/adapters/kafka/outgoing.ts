import { setTimeout as sleep } from 'node:timers/promises';
import { withDeadline } from '../../../core/async/deadline.js';
import {
  type FaultReport,
  type KafkaConnection,
  KafkaError,
  type loadLibrary,
  type OutgoingMessage,
  ProducerClient,
} from './client.js';

export interface NamedMessage extends OutgoingMessage {
  /** The name. Two messages with one name are the same message. */
  readonly name: string;
}

/** The time in milliseconds after which a sender learns that sending failed. */
const SEND_MS = 10_000;
/** The time in milliseconds between two looks for topics that were missing. */
const LOOK_MS = 5000;
const PING_MS = 2000;
const FULL_MS = 20;
const FLUSH_MS = 5000;

/**
 * Messages on their way to Kafka. The connection is made with the first message, and again as often as it
 * takes. A message stays in the producer's queue until it is delivered, also after its sender has given up: a
 * message that is sent again meanwhile is the one that waits, so that nothing overtakes it. The queue is
 * longer than an outbox, so that what waits for one partition keeps out no message for another.
 */
export class Outgoing {
  readonly #library: Awaited<ReturnType<typeof loadLibrary>>;
  readonly #connection: KafkaConnection;
  readonly #fault: FaultReport;
  readonly #underWay = new Map<string, Promise<void>>();
  #client: ProducerClient | undefined;
  /** The topics that the brokers have. */
  #topics: ReadonlySet<string> = new Set();
  #lookedAt = 0;
  #connecting: Promise<ProducerClient> | undefined;
  #last: Promise<unknown> = Promise.resolve();
  #closed = false;

  constructor(
    library: Awaited<ReturnType<typeof loadLibrary>>,
    connection: KafkaConnection,
    fault: FaultReport,
  ) {
    this.#library = library;
    this.#connection = connection;
    this.#fault = fault;
  }

  /** Resolves with the last delivery report. @throws KafkaError within ten seconds */
  async send(messages: readonly NamedMessage[]): Promise<void> {
    const deadline = Date.now() + SEND_MS;
    await withDeadline(
      this.#queue(messages, deadline).then((reports) => Promise.all(reports)),
      deadline - Date.now(),
      () => {
        throw new KafkaError('Kafka did not acknowledge in time');
      },
    );
  }

  /**
   * Resolves when Kafka was reached: with the delivery report of each message, for however long it takes. The
   * report of a message that was not even taken is its error.
   * @throws KafkaError within ten seconds; none of the messages is on its way
   */
  async deliver(messages: readonly NamedMessage[]): Promise<readonly Promise<void>[]> {
    const deadline = Date.now() + SEND_MS;
    await withDeadline(this.reach(), SEND_MS, () => {
      throw new KafkaError('Kafka could not be reached in time');
    });
    return this.#queue(messages, deadline);
  }

  /** Resolves once Kafka was reached, now or earlier. @throws KafkaError, also where the topic is missing */
  async reach(topic?: string): Promise<void> {
    const client = await this.#connect();
    if (topic !== undefined) this.#find(client, topic);
  }

  /** Resolves when a broker answers now. @throws KafkaError */
  async ping(): Promise<void> {
    this.#topics = await (await this.#connect()).topics(PING_MS);
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#last;
    await this.#connecting?.catch(() => undefined);
    await this.#client?.close(FLUSH_MS);
    this.#client = undefined;
  }

  /** Queues the messages of a sender. Senders follow one another, in the order of their coming. */
  #queue(messages: readonly NamedMessage[], deadline: number): Promise<readonly Promise<void>[]> {
    const queued = this.#last.then(async () => {
      // Keys with a message that was returned. No later message of these keys may overtake it.
      const heldUp = new Set<string>();
      const reports: Promise<void>[] = [];
      for (const message of messages) {
        const lane = `${message.topic} ${String(message.key)}`;
        const enqueued = heldUp.has(lane)
          ? Promise.reject(new KafkaError('an earlier message with the same key was not accepted'))
          : this.#enqueue(message, deadline);
        const report = enqueued.then(({ delivered }) => delivered);
        report.catch(() => heldUp.add(lane));
        reports.push(report);
        await enqueued.catch(() => undefined);
      }
      return reports;
    });
    this.#last = queued;
    return queued;
  }

  /** Resolves when the producer has the message in its queue. */
  async #enqueue(message: NamedMessage, deadline: number): Promise<{ readonly delivered: Promise<void> }> {
    for (;;) {
      const underWay = this.#underWay.get(message.name);
      if (underWay !== undefined) return { delivered: underWay };
      // The sender has gone, and will send again.
      if (Date.now() > deadline) throw new KafkaError('the send queue for Kafka is full');
      const client = await this.#connect();
      this.#find(client, message.topic);
      const delivered = this.#produce(client, message);
      if (delivered !== undefined) return { delivered };
      await sleep(FULL_MS);
    }
  }

  /** @throws KafkaError where the brokers have no such topic; nothing must be sent to it */
  #find(client: ProducerClient, topic: string): void {
    if (this.#topics.has(topic)) return;
    if (Date.now() - this.#lookedAt > LOOK_MS) {
      this.#lookedAt = Date.now();
      // Messages to other topics do not wait for it.
      client.topics(LOOK_MS).then((topics) => (this.#topics = topics), this.#fault);
    }
    throw new KafkaError(`the topic ${topic} does not exist: run \`takemark operator migrate\``);
  }

  #produce(client: ProducerClient, message: NamedMessage): Promise<void> | undefined {
    let reported: ((error: Error | undefined) => void) | undefined;
    const report = new Promise<void>((resolve, reject) => {
      reported = (error) => {
        this.#underWay.delete(message.name);
        if (error === undefined) resolve();
        else reject(error);
      };
    });
    report.catch(() => undefined);
    if (!client.produce(message, reported!)) return undefined;
    this.#underWay.set(message.name, report);
    return report;
  }

  /** Returns the connection. Callers that wait for it share one attempt. */
  async #connect(): Promise<ProducerClient> {
    if (this.#closed) throw new KafkaError('the bus is closed');
    if (this.#client?.broken === false) return this.#client;
    this.#connecting ??= this.#attempt().finally(() => (this.#connecting = undefined));
    return this.#connecting;
  }

  async #attempt(): Promise<ProducerClient> {
    const broken = this.#client;
    this.#client = undefined;
    // The broken client's messages must have failed before the next client sends anything: otherwise one
    // key's events could change places.
    await broken?.close(0);
    const { client, topics } = await ProducerClient.connect(this.#library, this.#connection, (error) => {
      this.#fault(error);
      // Without a running send, the messages in this client's queue are reported as failed, and sent again.
      if (this.#client?.broken === true && !this.#closed) this.#connect().catch(this.#fault);
    });
    this.#topics = topics;
    this.#lookedAt = Date.now();
    this.#client = client;
    return client;
  }
}
