import type { ConsumerClient, Message, TopicPartition } from './client.js';

/** The time between two looks in milliseconds. */
const EVERY_MS = 10_000;

type Asked = Pick<ConsumerClient, 'bounds' | 'committed' | 'held' | 'isAnswered'>;

/**
 * A watch over whether a member's partitions are read. librdkafka can leave one unread for good without an error. It
 * asks a single time from where to read, and a broker that is no longer the group's coordinator may refuse that
 * question as a whole (confluentinc/librdkafka#5586). It asks again if the partition is assigned anew.
 */
export class ReadingWatch {
  readonly #everyMs: number;
  /** The offset after the last message that arrived of each partition since it was assigned. */
  readonly #next = new Map<number, number>();
  /** The partitions that had unread messages at the last look, with their reading positions. */
  #behind: ReadonlyMap<number, number> = new Map();
  #lookedAt = performance.now();
  #isLooking = false;
  #isStuck = false;

  constructor(everyMs = EVERY_MS) {
    this.#everyMs = everyMs;
  }

  /** True if a partition with unread messages made no progress between two looks. */
  get isStuck(): boolean {
    return this.#isStuck;
  }

  /** Forgets what was seen: partitions were assigned, or taken away. */
  reset(): void {
    this.#next.clear();
    this.#behind = new Map();
    this.#isStuck = false;
    this.#lookedAt = performance.now();
  }

  took(messages: readonly Message[]): void {
    for (const { partition, offset } of messages) this.#next.set(partition, offset + 1);
  }

  /** Looks where it is time to, while brokers answer; meant to be called whenever nothing fetched is left to take. */
  look(client: Asked): void {
    if (this.#isLooking || !client.isAnswered || performance.now() - this.#lookedAt < this.#everyMs) return;
    this.#isLooking = true;
    this.#lookedAt = performance.now();
    const before = this.#behind;
    void this.#find(client)
      .then((behind) => {
        // Partitions were assigned meanwhile: what was asked is of the time before.
        if (this.#behind !== before) return;
        this.#behind = behind;
        this.#isStuck = [...behind].some(([partition, position]) => before.get(partition) === position);
      })
      // Brokers that do not answer are another watch's matter.
      .catch(() => undefined)
      .finally(() => (this.#isLooking = false));
  }

  /** Asks of one partition after the other: each question that waits holds one of Node's few worker threads. */
  async #find(client: Asked): Promise<ReadonlyMap<number, number>> {
    const behind = new Map<number, number>();
    for (const { topic, partition } of client.held) {
      const position = this.#next.get(partition) ?? (await committedIn(client, { topic, partition }));
      const { low, high } = await client.bounds(topic, partition);
      // Messages that have expired are not there to be read.
      const from = Math.max(position, low);
      if (high > from) behind.set(partition, from);
    }
    return behind;
  }
}

async function committedIn(client: Asked, { topic, partition }: TopicPartition): Promise<number> {
  return (await client.committed(topic, [partition])).get(partition) ?? 0;
}
