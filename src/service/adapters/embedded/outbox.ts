import { DomainError } from '../../../core/domain/errors.js';
import { type ServiceEvent, TOPICS, type Topic } from '../../domain/events.js';
import type { OutboxStore, WaitingEvent } from '../../ports/stores.js';
import type { Batch, Transaction } from './commit-queue.js';
import { following, lastPart, outboxKey, type RowKey, under, within } from './keys.js';
import type { Rows } from './rows.js';

const RETRY_SECONDS = 5;
/** The most rows that are read at a time when an outbox is opened. */
const PAGE = 1000;

type Counts = Record<Topic, number>;

/**
 * Events that wait to be published. Each is written by the operation that it reports, in a row with the next
 * number.
 */
export class Outbox implements OutboxStore {
  readonly #rows: Rows;
  readonly #limit: number;
  /** The counts of the events that a batch takes to the disk. */
  readonly #added = new WeakMap<Batch, Counts>();
  #next: number;
  /** The number of the first row that may exist. Before it, LevelDB would read over all removed rows. */
  #first: number;
  /** The counts of waiting events, also of those that are still on their way to the disk. */
  readonly #waiting: Counts;
  #listener: () => void = () => undefined;

  private constructor(rows: Rows, limit: number, numbers: readonly number[], waiting: Counts) {
    this.#rows = rows;
    this.#limit = limit;
    this.#first = numbers[0] ?? 0;
    this.#next = (numbers.at(-1) ?? -1) + 1;
    this.#waiting = waiting;
  }

  /** @param limit of each topic */
  static async open(rows: Rows, limit: number): Promise<Outbox> {
    const numbers = (await rows.keys(under('outbox'), -1)).map(numberOf);
    const waiting = noEvents();
    for await (const [, { topic }] of pagesOf(rows, numbers[0] ?? 0, PAGE)) waiting[topic] += 1;
    return new Outbox(rows, limit, numbers, waiting);
  }

  /**
   * @throws DomainError `unavailable` / `outbox_full` where there is no capacity for so many more events of a
   * topic
   */
  checkCapacity(topic: Topic, events: number): void {
    if (this.#waiting[topic] + events > this.#limit) {
      throw new DomainError('unavailable', 'Too many events are waiting to be published.', {
        reason: 'outbox_full',
        retryAfterSeconds: RETRY_SECONDS,
      });
    }
  }

  /**
   * Adds an event. An operation does this last: an error afterwards would leave the event counted.
   * @throws as `checkCapacity`
   */
  add(tx: Transaction, event: ServiceEvent, capacity?: 'bypass'): RowKey<ServiceEvent> {
    const { topic } = event;
    if (capacity !== 'bypass') this.checkCapacity(topic, 1);
    const key = outboxKey(this.#next);
    tx.put(key, event);
    this.#next += 1;
    this.#waiting[topic] += 1;
    const added = this.#added.get(tx.batch) ?? this.#countWhenWritten(tx.batch);
    added[topic] += 1;
    return key;
  }

  async waitingEvents(
    limit: number,
    isHeldBack: (event: ServiceEvent) => boolean = () => false,
  ): Promise<readonly WaitingEvent[]> {
    const waiting: WaitingEvent[] = [];
    let isFirst = true;
    for await (const [key, event] of pagesOf(this.#rows, this.#first, limit)) {
      // Batches reach the disk in their order, so no row comes to be before the first one.
      if (isFirst) this.#first = Math.max(this.#first, numberOf(key));
      isFirst = false;
      if (!isHeldBack(event)) waiting.push({ event, rowKey: lastPart(key) });
      if (waiting.length === limit) break;
    }
    return waiting;
  }

  async markPublished(events: readonly WaitingEvent[]): Promise<void> {
    if (events.length === 0) return;
    const removed = await this.#rows.run((tx) => {
      const found = noEvents();
      for (const { rowKey } of events) {
        const key = outboxKey(Number(rowKey));
        const event = tx.getSound(key);
        if (event === undefined) continue;
        tx.delete(key);
        found[event.topic] += 1;
      }
      return found;
    });
    // A batch that failed may have been kept after all. An outbox that runs empty puts the counts right.
    this.#subtract(removed);
  }

  countWaiting(topic?: Topic): number {
    const topics: readonly Topic[] = topic === undefined ? TOPICS : [topic];
    return topics.reduce((sum, each) => sum + this.#waiting[each], 0);
  }

  onWaiting(listener: () => void): void {
    this.#listener = listener;
  }

  #countWhenWritten(batch: Batch): Counts {
    const added = noEvents();
    this.#added.set(batch, added);
    batch.settled.then(
      () => this.#listener(),
      () => this.#subtract(added),
    );
    return added;
  }

  #subtract(counts: Counts): void {
    for (const topic of TOPICS) this.#waiting[topic] = Math.max(0, this.#waiting[topic] - counts[topic]);
  }
}

function noEvents(): Counts {
  return { erasure: 0, usage: 0, retention: 0 };
}

/** Yields the sound rows from a number on, in their order. */
async function* pagesOf(
  rows: Rows,
  first: number,
  page: number,
): AsyncGenerator<readonly [RowKey<ServiceEvent>, ServiceEvent]> {
  for (let range = within({ from: first }, 'outbox'); ; ) {
    const found = await rows.soundEntries<ServiceEvent>(range, page);
    yield* found;
    if (found.length < page) return;
    range = following(range, found.at(-1)![0]);
  }
}

function numberOf(key: string): number {
  return Number(lastPart(key));
}
