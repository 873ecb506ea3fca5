import { setTimeout as sleep } from 'node:timers/promises';
import { type Backoff, pauseAfter } from '../../../core/async/backoff.js';
import { BatchDelivery } from '../../domain/batch-delivery.js';
import type { ServiceEvent, Topic } from '../../domain/events.js';
import type { EventHandler } from '../../ports/bus.js';
import { type ConsumerClient, KafkaError, type Message, type TopicPartitionOffset } from './client.js';
import { decodeEvent, type EventReader } from './event-message.js';
import { ReadingWatch } from './reading-watch.js';

export interface TopicConsumerOptions {
  readonly topic: Topic;
  /** The topic's name in Kafka. */
  readonly name: string;
  readonly reader: EventReader;
  readonly handler: EventHandler;
  readonly connect: () => Promise<ConsumerClient>;
  /** Puts a message to the dead letters; resolves when it is there. */
  readonly deadLetter: (message: Message, reason: string) => Promise<void>;
  readonly fault: (error: unknown) => void;
  /** Watches whether partitions are read. The default has the usual pauses. */
  readonly watch?: ReadingWatch;
}

interface Received {
  readonly message: Message;
  readonly event: ServiceEvent;
}

interface Unreadable {
  readonly message: Message;
  readonly reason: string;
}

const BATCH = 500;
const IDLE_MS = 40;
/** The longest silence towards the group while a handler runs or pauses. */
const KEEPALIVE_MS = 1000;
const PAUSES: Backoff = { firstMs: 200, longestMs: 5000 };
const LEAVE_MS = 5000;
/** The pauses between two assignments of the same partitions. An assignment drops all fetched messages. */
const ASSIGN_AGAIN: Backoff = { firstMs: 1000, longestMs: 30_000 };
/** The time in milliseconds without such an assignment, after a pause, from which the pauses begin anew. */
const CALM_MS = 60_000;

/**
 * A consumer of a topic's events for its handler, as a member of the group. An offset is committed when its batch
 * was taken.
 */
export class TopicConsumer {
  readonly #options: TopicConsumerOptions;
  readonly #closing = new AbortController();
  readonly #running: Promise<void>;
  #client: ConsumerClient | undefined;
  /** The messages that came while a batch was being handled. */
  #held: Message[] = [];
  /** The number of messages of the batch that is being handled. */
  #inHand = 0;
  /**
   * True after an error of the group, and while a partition is not read, until the held partitions are assigned again.
   * If a coordinator refuses to name their offsets, the library reports such an error, or none, and leaves the
   * partitions unread until then.
   */
  #mustAssignAgain = false;
  #hasPollFailed = false;
  readonly #again = { count: 0, notBefore: 0 };
  readonly #watch: ReadingWatch;

  constructor(options: TopicConsumerOptions) {
    this.#options = options;
    this.#watch = options.watch ?? new ReadingWatch();
    this.#running = this.#run();
  }

  get topic(): Topic {
    return this.#options.topic;
  }

  /**
   * The messages of this member's partitions that were not handled yet, including those of the running batch.
   * Undefined without a connection, and while no broker answers.
   */
  get lag(): number | undefined {
    return this.#client?.isAnswered !== true
      ? undefined
      : this.#inHand + this.#held.length + this.#client.unread;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#running;
  }

  get #closed(): boolean {
    return this.#closing.signal.aborted;
  }

  async #run(): Promise<void> {
    for (let failures = 1; !this.#closed; failures += 1) {
      try {
        const client = await this.#options.connect();
        try {
          this.#client = client;
          this.#watch.reset();
          this.#mustAssignAgain = false;
          client.subscribe(this.#options.name);
          while (!this.#closed) {
            await this.#step(client);
            failures = 1;
          }
        } finally {
          this.#client = undefined;
          await this.#leave(client);
        }
      } catch (error) {
        if (!this.#closed) this.#options.fault(error);
      }
      await this.#rest(pauseAfter(failures, PAUSES));
    }
  }

  async #step(client: ConsumerClient): Promise<void> {
    await this.#followRebalances(client);
    const messages = this.#held.length > 0 ? this.#held.splice(0, BATCH) : await this.#poll(client, BATCH);
    // A poll ends at an error, and a message of the group may follow at once.
    if (!this.#hasPollFailed) this.#assignAgain(client);
    // After a full batch, earlier messages may still wait.
    if (messages.length < BATCH) this.#lookForUnread(client);
    if (messages.length === 0) return this.#rest(IDLE_MS);
    // The next owner of these partitions gets these messages.
    if (client.rebalances.length > 0) return;
    if (await this.#take(client, messages)) client.commit(offsetsAfter(messages));
  }

  /** @returns false where it was given up: the messages come again, here or elsewhere */
  async #take(client: ConsumerClient, messages: readonly Message[]): Promise<boolean> {
    const run = this.#deliveryOf(messages);
    this.#inHand = messages.length;
    let paused = false;
    try {
      for (let failures = 1; ; failures += 1) {
        try {
          await this.#tend(client, run());
          return true;
        } catch (error) {
          this.#options.fault(error);
          if (!paused) client.pause();
          paused = true;
          await this.#tend(client, this.#rest(pauseAfter(failures, PAUSES)));
          if (this.#closed || client.rebalances.length > 0) return false;
        }
      }
    } finally {
      this.#inHand = 0;
      if (paused) client.resume();
    }
  }

  /** Returns the work on a batch. After an error, another run goes on where the one before it stopped. */
  #deliveryOf(messages: readonly Message[]): () => Promise<void> {
    const { handler, deadLetter, reader, topic } = this.#options;
    const received: Received[] = [];
    const unreadable: Unreadable[] = [];
    for (const message of messages) {
      const decoded = decodeEvent(reader, topic, message);
      if (decoded.ok) received.push({ message, event: decoded.event });
      else unreadable.push({ message, reason: decoded.fault });
    }
    const delivery = new BatchDelivery<Received>(
      received,
      (batch) => handler(batch.map(({ event }) => event)),
      ({ message }, poison) => deadLetter(message, poison.message),
    );
    return async () => {
      for (let next = unreadable[0]; next !== undefined; next = unreadable[0]) {
        await deadLetter(next.message, next.reason);
        unreadable.shift();
      }
      await delivery.run();
    };
  }

  /** Keeps the membership while something else goes on. */
  async #tend<Value>(client: ConsumerClient, work: Promise<Value>): Promise<Value> {
    const ended = work.then(
      () => true,
      () => true,
    );
    try {
      while (!(await Promise.race([ended, sleep(KEEPALIVE_MS, false, { ref: false })])))
        this.#held.push(...(await this.#poll(client, 1)));
    } finally {
      // Never two batches at once, even if the connection was replaced.
      await ended;
    }
    return work;
  }

  async #followRebalances(client: ConsumerClient): Promise<void> {
    if (client.rebalances.length === 0) return;
    await this.#finishCommits(client);
    // The group's own is the last one, and answers for what waits before it. To assign partitions and take them away
    // at once would have the library stop them twice, which it does not survive.
    const last = client.rebalances.splice(0).at(-1);
    if (last === undefined) return;
    this.#held = [];
    this.#watch.reset();
    this.#mustAssignAgain = false;
    if (last.kind === 'assign') client.assign(last.partitions);
    else client.unassign();
  }

  #lookForUnread(client: ConsumerClient): void {
    this.#watch.look(client);
    if (!this.#watch.isStuck) return;
    this.#options.fault(new KafkaError('a partition has messages, but Kafka does not deliver them'));
    this.#watch.reset();
    this.#mustAssignAgain = true;
  }

  #assignAgain(client: ConsumerClient): void {
    const now = performance.now();
    if (!this.#mustAssignAgain || now < this.#again.notBefore) return;
    const { held, rebalances } = client;
    if (held.length === 0 || rebalances.length > 0) return;
    if (now - this.#again.notBefore > CALM_MS) this.#again.count = 0;
    this.#again.count += 1;
    this.#again.notBefore = now + pauseAfter(this.#again.count, ASSIGN_AGAIN);
    rebalances.push({ kind: 'assign', partitions: held });
  }

  /** Waits for commits under way, so that the next owner does not begin with what was taken here. */
  async #finishCommits(client: ConsumerClient): Promise<void> {
    for (const deadline = Date.now() + LEAVE_MS; client.commitsUnderWay > 0 && Date.now() < deadline; )
      this.#held.push(...(await this.#poll(client, 1)));
  }

  async #leave(client: ConsumerClient): Promise<void> {
    this.#held = [];
    try {
      await this.#finishCommits(client);
      client.unsubscribe();
      let left = false;
      for (const deadline = Date.now() + LEAVE_MS; !left && Date.now() < deadline; ) {
        await this.#poll(client, 1);
        await this.#followRebalances(client);
        left = client.held.length === 0;
      }
    } finally {
      this.#held = [];
      await client.close();
    }
  }

  async #poll(client: ConsumerClient, limit: number): Promise<readonly Message[]> {
    try {
      const messages = await client.poll(limit);
      this.#watch.took(messages);
      this.#hasPollFailed = false;
      return messages;
    } catch (error) {
      if (!(error instanceof KafkaError) || error.fatal) throw error;
      this.#options.fault(error);
      this.#hasPollFailed = true;
      this.#mustAssignAgain = true;
      await this.#rest(KEEPALIVE_MS);
      return [];
    }
  }

  async #rest(ms: number): Promise<void> {
    await sleep(ms, undefined, { signal: this.#closing.signal }).catch(() => undefined);
  }
}

/** Returns the offset at which each partition goes on after these messages. */
function offsetsAfter(messages: readonly Message[]): readonly TopicPartitionOffset[] {
  const last = new Map<number, TopicPartitionOffset>();
  for (const { topic, partition, offset } of messages)
    last.set(partition, { topic, partition, offset: offset + 1 });
  return [...last.values()];
}
