import { setTimeout as sleep } from 'node:timers/promises';
import type { ServiceEvent, Topic } from '../../domain/events.js';
import { type EventHandler, PoisonError } from '../../ports/bus.js';
import { type ConsumerClient, KafkaError, type Message, type TopicPartitionOffset } from './client.js';
import { decodeEvent, type EventReader } from './event-message.js';

export interface TopicConsumerOptions {
  readonly topic: Topic;
  /** Its name in Kafka. */
  readonly name: string;
  readonly reader: EventReader;
  readonly handler: EventHandler;
  readonly connect: () => Promise<ConsumerClient>;
  /** Puts a message to the dead letters; resolves when it is there. */
  readonly bury: (message: Message, reason: string) => Promise<void>;
  readonly fault: (error: unknown) => void;
}

interface Received {
  readonly message: Message;
  readonly event: ServiceEvent;
}

/** Messages that are given to the handler, or buried, together. */
type Step = { readonly give: readonly Received[] } | { readonly bury: Message; readonly reason: string };

const BATCH = 500;
const IDLE_MS = 40;
/** While a handler is at work or rests: so often the group hears of us. */
const KEEPALIVE_MS = 1000;
const FIRST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 5000;
const LEAVE_MS = 5000;

/**
 * One topic's events for one handler, as a member of the group. A position is committed when its batch was
 * taken.
 */
export class TopicConsumer {
  readonly #options: TopicConsumerOptions;
  readonly #closing = new AbortController();
  readonly #running: Promise<void>;
  #client: ConsumerClient | undefined;
  /** Came while a batch was at work. */
  #held: Message[] = [];
  /** Of the batch at work. */
  #inHand = 0;

  constructor(options: TopicConsumerOptions) {
    this.#options = options;
    this.#running = this.#run();
  }

  get topic(): Topic {
    return this.#options.topic;
  }

  /**
   * Messages of its partitions that were not taken yet, those that it has in hand included; undefined while
   * it is not connected.
   */
  get behind(): number | undefined {
    return this.#client === undefined ? undefined : this.#inHand + this.#held.length + this.#client.unread;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#running;
  }

  get #closed(): boolean {
    return this.#closing.signal.aborted;
  }

  async #run(): Promise<void> {
    for (let pause = FIRST_PAUSE_MS; !this.#closed; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
      try {
        const client = await this.#options.connect();
        try {
          this.#client = client;
          client.subscribe(this.#options.name);
          while (!this.#closed) {
            await this.#step(client);
            pause = FIRST_PAUSE_MS;
          }
        } finally {
          this.#client = undefined;
          await this.#leave(client);
        }
      } catch (error) {
        if (!this.#closed) this.#options.fault(error);
      }
      await this.#rest(pause);
    }
  }

  async #step(client: ConsumerClient): Promise<void> {
    await this.#followRebalances(client);
    const messages = this.#held.length > 0 ? this.#held.splice(0, BATCH) : await this.#poll(client, BATCH);
    if (messages.length === 0) return this.#rest(IDLE_MS);
    // Who gets these partitions now gets these messages, too.
    if (client.rebalances.length > 0) return;
    if (await this.#take(client, messages)) client.commit(positionsAfter(messages));
  }

  /** @returns false where it was given up: the messages come again, here or elsewhere */
  async #take(client: ConsumerClient, messages: readonly Message[]): Promise<boolean> {
    const steps = this.#stepsOf(messages);
    this.#inHand = messages.length;
    let paused = false;
    try {
      for (let pause = FIRST_PAUSE_MS; steps.length > 0; ) {
        try {
          await this.#tend(client, this.#do(steps));
          pause = FIRST_PAUSE_MS;
        } catch (error) {
          this.#options.fault(error);
          if (!paused) client.pause();
          paused = true;
          await this.#tend(client, this.#rest(pause));
          if (this.#closed || client.rebalances.length > 0) return false;
          pause = Math.min(2 * pause, LONGEST_PAUSE_MS);
        }
      }
      return true;
    } finally {
      this.#inHand = 0;
      if (paused) client.resume();
    }
  }

  #stepsOf(messages: readonly Message[]): Step[] {
    const give: Received[] = [];
    const bury: Step[] = [];
    for (const message of messages) {
      const reading = decodeEvent(this.#options.reader, this.#options.topic, message);
      if (reading.ok) give.push({ message, event: reading.event });
      else bury.push({ bury: message, reason: reading.fault });
    }
    return give.length > 0 ? [...bury, { give }] : bury;
  }

  /** The first step; what was done is taken off. */
  async #do(steps: Step[]): Promise<void> {
    const step = steps[0]!;
    if ('bury' in step) await this.#options.bury(step.bury, step.reason);
    else {
      try {
        await this.#options.handler(step.give.map(({ event }) => event));
      } catch (error) {
        if (!(error instanceof PoisonError)) throw error;
        const [only, ...others] = step.give;
        steps.splice(
          0,
          1,
          ...(others.length === 0
            ? [{ bury: only!.message, reason: error.message }]
            : step.give.map((one) => ({ give: [one] }))),
        );
        return;
      }
    }
    steps.shift();
  }

  /** Keeps the membership while something else goes on. */
  async #tend<Value>(client: ConsumerClient, work: Promise<Value>): Promise<Value> {
    const settled = work.then(
      () => true,
      () => true,
    );
    try {
      while (!(await Promise.race([settled, sleep(KEEPALIVE_MS, false, { ref: false })])))
        this.#held.push(...(await this.#poll(client, 1)));
    } finally {
      // Never two batches at once, whatever became of the connection.
      await settled;
    }
    return work;
  }

  async #followRebalances(client: ConsumerClient): Promise<void> {
    if (client.rebalances.length === 0) return;
    await this.#settleCommits(client);
    for (const { kind, partitions } of client.rebalances.splice(0)) {
      this.#held = [];
      if (kind === 'assign') client.assign(partitions);
      else client.unassign();
    }
  }

  /** So that the next owner does not begin with what was taken here. */
  async #settleCommits(client: ConsumerClient): Promise<void> {
    for (const deadline = Date.now() + LEAVE_MS; client.commitsUnderWay > 0 && Date.now() < deadline; )
      this.#held.push(...(await this.#poll(client, 1)));
  }

  async #leave(client: ConsumerClient): Promise<void> {
    this.#held = [];
    try {
      await this.#settleCommits(client);
      client.unsubscribe();
      let left = false;
      for (const deadline = Date.now() + LEAVE_MS; !left && Date.now() < deadline; ) {
        await this.#poll(client, 1);
        await this.#followRebalances(client);
        left = !client.holds();
      }
    } finally {
      this.#held = [];
      await client.close();
    }
  }

  async #poll(client: ConsumerClient, limit: number): Promise<readonly Message[]> {
    try {
      return await client.poll(limit);
    } catch (error) {
      if (!(error instanceof KafkaError) || error.fatal) throw error;
      this.#options.fault(error);
      await this.#rest(KEEPALIVE_MS);
      return [];
    }
  }

  async #rest(ms: number): Promise<void> {
    await sleep(ms, undefined, { signal: this.#closing.signal }).catch(() => undefined);
  }
}

/** Where each partition goes on after these. */
function positionsAfter(messages: readonly Message[]): readonly TopicPartitionOffset[] {
  const last = new Map<number, TopicPartitionOffset>();
  for (const { topic, partition, offset } of messages)
    last.set(partition, { topic, partition, offset: offset + 1 });
  return [...last.values()];
}
