import { DomainError } from '../../../domain/errors.js';
import type { ServiceEvent } from '../../../domain/events.js';
import type { OutboxStore, WaitingEvent } from '../../../ports/stores.js';
import type { Blobs } from '../driver/blobs.js';
import type { Session } from '../driver/session.js';
import { isTimely, minuteOf } from './time-bucket.js';
import { TimeBucketedTable, type Visited } from './time-bucketed-table.js';

/** Events with which a process takes no more over from others. */
const CAPACITY_FOR_OTHERS = 1000;
const DELETES_AT_ONCE = 256;
const RETRY_AFTER_SECONDS = 5;

interface HeldEvent {
  readonly event: ServiceEvent;
  /** Minute of the event's outbox row; absent for an event that lies in a partition of charges. */
  readonly minute?: number;
  /** Removes what another process would find the event by. */
  readonly onPublished: () => Promise<void>;
}

/** Content of an outbox row: an event, or the announcement of a writer's charges. */
type OutboxRow = { readonly event: ServiceEvent } | { readonly charges: Charges };

/** Charges of a partner that a writer changed in the row's minute; their events lie beside them. */
export interface Charges {
  readonly partnerId: string;
  readonly writer: string;
}

/**
 * Events that this process has to publish, in memory, oldest first. Each event is durable elsewhere before it
 * is here: in a row of table `outbox`, or in the partition of the charges that it reports. A row that is
 * minutes old was left by a process that died, or by one that cannot publish. Every
 * process takes such rows over and publishes them, under the same event id.
 */
export class Outbox implements OutboxStore {
  readonly #table: TimeBucketedTable;
  readonly #blobs: Blobs;
  readonly #limit: number;
  readonly #held = new Map<string, HeldEvent>();
  #reserved = 0;
  #listener: () => void = () => undefined;

  constructor(session: Session, blobs: Blobs, limit: number) {
    this.#table = new TimeBucketedTable(session, { table: 'outbox', key: 'id', watermark: 'outbox' });
    this.#blobs = blobs;
    this.#limit = limit;
  }

  /** Tells whether one more event may come to be. */
  hasCapacity(): boolean {
    return this.#held.size + this.#reserved < this.#limit;
  }

  /**
   * Reserves capacity for the one event that the work may add.
   * @throws DomainError `unavailable` / `outbox_full` before the work has begun
   */
  async withCapacity<Value>(work: () => Promise<Value>): Promise<Value> {
    if (!this.hasCapacity()) throw outboxFull();
    this.#reserved += 1;
    try {
      return await work();
    } finally {
      this.#reserved -= 1;
    }
  }

  /** Resolves when the event is durable; the event waits from then on. Repeating the call is harmless. */
  async add(event: ServiceEvent): Promise<void> {
    if (this.#held.has(event.id)) return;
    this.hold(this.#heldRow(event, await this.#putTimely(event.id, { event })));
  }

  /**
   * Adds counts of free calls. An event waits even where the outcome of its row is not known: counted again
   * under another number the calls might be added twice, and what a crash loses of them costs nobody
   * anything.
   * @param begun called when there is capacity for all events
   * @throws DomainError `unavailable` / `outbox_full`
   */
  async addAll(events: readonly ServiceEvent[], begun: () => void): Promise<void> {
    if (this.#held.size + this.#reserved + events.length > this.#limit) throw outboxFull();
    begun();
    const rows = events.map((event) => ({ event, minute: minuteOf(Date.now()) }));
    for (const { event, minute } of rows) this.hold(this.#heldRow(event, minute));
    await Promise.allSettled(rows.map(({ event, minute }) => this.#put(minute, event.id, { event })));
  }

  /** Has an event wait that is durable already. @returns false for an event that waits already */
  hold(held: HeldEvent): boolean {
    if (this.#held.has(held.event.id)) return false;
    this.#held.set(held.event.id, held);
    this.#listener();
    return true;
  }

  /** Registers charges before the first batch of a minute, so that any process finds them. */
  async registerCharges(minute: number, charges: Charges): Promise<void> {
    await this.#put(minute, chargesId(charges), { charges });
  }

  async unregisterCharges(minute: number, charges: Charges): Promise<void> {
    await this.#table.remove(minute, chargesId(charges));
  }

  async waitingEvents(limit: number): Promise<readonly WaitingEvent[]> {
    const waiting: WaitingEvent[] = [];
    for (const [rowKey, { event }] of this.#held) {
      if (waiting.length >= limit) break;
      waiting.push({ event, rowKey });
    }
    return waiting;
  }

  async markPublished(events: readonly WaitingEvent[]): Promise<void> {
    const held = events.flatMap(({ rowKey }) => this.#held.get(rowKey) ?? []);
    // Forgotten first: a row that cannot be deleted now is taken over later, and meanwhile nothing is
    // published again and again.
    for (const { rowKey } of events) this.#held.delete(rowKey);
    const failures: unknown[] = [];
    for (let i = 0; i < held.length; i += DELETES_AT_ONCE) {
      const results = await Promise.allSettled(
        held.slice(i, i + DELETES_AT_ONCE).map(({ onPublished }) => onPublished()),
      );
      for (const result of results) if (result.status === 'rejected') failures.push(result.reason);
    }
    if (failures.length > 0) throw failures[0];
  }

  countWaiting(): number {
    return this.#held.size;
  }

  onWaiting(listener: () => void): void {
    this.#listener = listener;
  }

  async start(now: number): Promise<void> {
    await this.#table.start(now);
  }

  /**
   * Takes over events that other processes left.
   * @param takeCharges takes over the events of charges that a writer registered in a minute
   */
  async takeOver(
    now: number,
    takeCharges: (minute: number, charges: Charges) => Promise<Visited>,
  ): Promise<void> {
    const hasCapacity = () => this.#held.size < Math.min(CAPACITY_FOR_OTHERS, this.#limit);
    if (!hasCapacity()) return;
    await this.#table.visitRows(now, async ({ timeBucket: minute, id, data }) => {
      const held = this.#held.get(id);
      if (held?.minute !== undefined && held.minute !== minute)
        return this.#removeYounger(held.event, held.minute, minute);
      if (held !== undefined) return 'stays';
      if (!hasCapacity()) return 'no_capacity';
      const row = this.#blobs.decode<OutboxRow>(`outbox/${id}`, data);
      if ('charges' in row) return takeCharges(minute, row.charges);
      this.hold(this.#heldRow(row.event, minute));
      return 'stays';
    });
  }

  /**
   * Removes one of two rows that an operation left which was finished twice. The older row stays, so that
   * every process that holds either comes to the same one.
   * @param held minute of the row that is held
   * @param visited minute of the row that is visited
   */
  async #removeYounger(event: ServiceEvent, held: number, visited: number): Promise<Visited> {
    const { id } = event;
    await this.#table.remove(Math.max(held, visited), id);
    if (held < visited) return 'removed';
    if (this.#held.has(id)) {
      this.#held.set(id, this.#heldRow(event, visited));
      return 'stays';
    }
    // The event was published meanwhile.
    await this.#table.remove(visited, id);
    return 'removed';
  }

  #heldRow(event: ServiceEvent, minute: number): HeldEvent {
    return { event, minute, onPublished: () => this.#table.remove(minute, event.id) };
  }

  async #put(minute: number, id: string, row: OutboxRow): Promise<void> {
    await this.#table.put(minute, id, this.#blobs.encode(`outbox/${id}`, row));
  }

  /** Puts a row into the present minute. @returns the minute */
  async #putTimely(id: string, row: OutboxRow): Promise<number> {
    for (;;) {
      const begun = Date.now();
      await this.#put(minuteOf(begun), id, row);
      // A process that was stopped in between may have written behind the watermark.
      if (isTimely(begun)) return minuteOf(begun);
    }
  }
}

export function outboxFull(): DomainError {
  return new DomainError('unavailable', 'Too much waits to be passed on at the moment.', {
    reason: 'outbox_full',
    retryAfterSeconds: RETRY_AFTER_SECONDS,
  });
}

function chargesId({ partnerId, writer }: Charges): string {
  return `charges/${partnerId}/${writer}`;
}
