import { DomainError } from '../../domain/errors.js';
import type { ServiceEvent } from '../../domain/events.js';
import type { OutboxStore, WaitingEvent } from '../../ports/stores.js';
import type { Batch, Transaction } from './commit-queue.js';
import { lastPart, outboxKey, type RowKey, under, within } from './keys.js';
import type { Rows } from './rows.js';

const RETRY_SECONDS = 5;

/**
 * Events that wait to be published. Each is written by the operation that it reports, in a row with the next
 * number.
 */
export class Outbox implements OutboxStore {
  readonly #rows: Rows;
  readonly #limit: number;
  /** Counts of the events that a batch takes to the disk. */
  readonly #added = new WeakMap<Batch, { events: number }>();
  #next: number;
  /** Number before which no row lies: LevelDB would read over all that was removed there. */
  #first: number;
  /** Count of waiting events, also those that are still on their way to the disk. */
  #waiting: number;
  #listener: () => void = () => undefined;

  private constructor(rows: Rows, limit: number, numbers: readonly number[]) {
    this.#rows = rows;
    this.#limit = limit;
    this.#first = numbers[0] ?? 0;
    this.#next = (numbers.at(-1) ?? -1) + 1;
    this.#waiting = numbers.length;
  }

  static async open(rows: Rows, limit: number): Promise<Outbox> {
    const found = await rows.keys(under('outbox'), -1);
    return new Outbox(rows, limit, found.map(numberOf));
  }

  /** @throws DomainError `unavailable` / `outbox_full` where there is no capacity for so many more events */
  checkCapacity(events: number): void {
    if (this.#waiting + events > this.#limit) {
      throw new DomainError('unavailable', 'Too much waits to be passed on.', {
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
    if (capacity !== 'bypass') this.checkCapacity(1);
    const key = outboxKey(this.#next);
    tx.put(key, event);
    this.#next += 1;
    this.#waiting += 1;
    const added = this.#added.get(tx.batch);
    if (added === undefined) this.#countWhenWritten(tx.batch);
    else added.events += 1;
    return key;
  }

  async waitingEvents(limit: number): Promise<readonly WaitingEvent[]> {
    const found = await this.#rows.soundEntries<ServiceEvent>(within({ from: this.#first }, 'outbox'), limit);
    // Batches reach the disk in their order, so no row comes to be before the first one.
    if (found.length > 0) this.#first = Math.max(this.#first, numberOf(found[0]![0]));
    return found.map(([key, event]) => ({ event, rowKey: lastPart(key) }));
  }

  async markPublished(events: readonly WaitingEvent[]): Promise<void> {
    if (events.length === 0) return;
    const removed = await this.#rows.run((tx) => {
      let rows = 0;
      for (const { rowKey } of events) {
        const key = outboxKey(Number(rowKey));
        if (tx.getSound(key) === undefined) continue;
        tx.delete(key);
        rows += 1;
      }
      return rows;
    });
    // A batch that failed may have been kept after all. An outbox that runs empty puts the count right.
    this.#waiting = Math.max(0, this.#waiting - removed);
  }

  countWaiting(): number {
    return this.#waiting;
  }

  onWaiting(listener: () => void): void {
    this.#listener = listener;
  }

  #countWhenWritten(batch: Batch): void {
    const added = { events: 1 };
    this.#added.set(batch, added);
    batch.settled.then(
      () => this.#listener(),
      () => {
        this.#waiting = Math.max(0, this.#waiting - added.events);
      },
    );
  }
}

function numberOf(key: string): number {
  return Number(lastPart(key));
}
