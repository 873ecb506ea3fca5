import { setTimeout as sleep } from 'node:timers/promises';
import { withDeadline } from '../../async/deadline.js';
import {
  type FaultReport,
  type KafkaConnection,
  KafkaError,
  type loadLibrary,
  type OutgoingMessage,
  ProducerClient,
} from './client.js';

export interface NamedMessage extends OutgoingMessage {
  /** Two messages of one name are the same message. */
  readonly name: string;
}

/** Milliseconds after which a sender learns that sending failed. */
const SEND_MS = 10_000;
const FULL_MS = 20;
const FLUSH_MS = 5000;

/**
 * Messages on their way to Kafka. The connection is made with the first message, and again as often as it
 * takes. A message stays in the producer's queue until it is delivered, also after its sender has given up: a
 * message that is sent again meanwhile is the one that waits, so that nothing overtakes it.
 */
export class Outgoing {
  readonly #library: Awaited<ReturnType<typeof loadLibrary>>;
  readonly #connection: KafkaConnection;
  /** Topics without which there is nothing to send to. */
  readonly #needed: readonly string[];
  readonly #fault: FaultReport;
  readonly #underWay = new Map<string, Promise<void>>();
  #client: ProducerClient | undefined;
  #connecting: Promise<ProducerClient> | undefined;
  #last: Promise<unknown> = Promise.resolve();
  #closed = false;

  constructor(
    library: Awaited<ReturnType<typeof loadLibrary>>,
    connection: KafkaConnection,
    needed: readonly string[],
    fault: FaultReport,
  ) {
    this.#library = library;
    this.#connection = connection;
    this.#needed = needed;
    this.#fault = fault;
  }

  /** Resolves with the last delivery report. @throws KafkaError within ten seconds */
  async send(messages: readonly NamedMessage[]): Promise<void> {
    const deadline = Date.now() + SEND_MS;
    // Senders follow one another, in the order of their coming.
    const queued = this.#last.then(() => this.#enqueue(messages, deadline));
    this.#last = queued.catch(() => undefined);
    await withDeadline(
      queued.then((reports) => Promise.all(reports)),
      deadline - Date.now(),
      () => {
        throw new KafkaError('Kafka did not acknowledge in time');
      },
    );
  }

  /** Resolves once Kafka was reached, now or earlier. @throws KafkaError */
  async reach(): Promise<void> {
    await this.#connect();
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#last;
    await this.#connecting?.catch(() => undefined);
    await this.#client?.close(FLUSH_MS);
    this.#client = undefined;
  }

  async #enqueue(messages: readonly NamedMessage[], deadline: number): Promise<readonly Promise<void>[]> {
    const reports: Promise<void>[] = [];
    for (const message of messages) {
      let report = this.#underWay.get(message.name);
      while (report === undefined) {
        // The sender has gone, and will send again.
        if (Date.now() > deadline) throw new KafkaError('Kafka takes no more for now');
        report = this.#produce(await this.#connect(), message);
        if (report === undefined) await sleep(FULL_MS);
      }
      reports.push(report);
    }
    return reports;
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
    // The sender that waited for the report may have gone.
    report.catch(() => undefined);
    if (!client.produce(message, reported!)) return undefined;
    this.#underWay.set(message.name, report);
    return report;
  }

  /** The connection; callers that wait for it share one attempt. */
  async #connect(): Promise<ProducerClient> {
    if (this.#closed) throw new KafkaError('the bus is closed');
    if (this.#client?.broken === true) {
      const broken = this.#client;
      this.#client = undefined;
      // The broken client's messages must have failed before the next client sends anything: otherwise one
      // key's events could change places.
      await broken.close(0);
    }
    if (this.#client !== undefined) return this.#client;
    this.#connecting ??= this.#attempt().finally(() => (this.#connecting = undefined));
    return this.#connecting;
  }

  async #attempt(): Promise<ProducerClient> {
    const { client, topics } = await ProducerClient.connect(this.#library, this.#connection, this.#fault);
    const missing = this.#needed.filter((topic) => !topics.has(topic));
    if (missing.length > 0) {
      await client.close(0);
      throw new KafkaError(`there is no topic ${missing.join(', ')}: run \`takemark operator migrate\``);
    }
    this.#client = client;
    return client;
  }
}
