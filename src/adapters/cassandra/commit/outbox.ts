import { DomainError } from '../../../domain/errors.js';
import type { ServiceEvent } from '../../../domain/events.js';
import type { OutboxStore, WaitingEvent } from '../../../ports/stores.js';
import type { Blobs } from '../driver/blobs.js';
import type { Session } from '../driver/session.js';
import { isTimely, MinuteRows, minuteOf, type Seen } from './time-buckets.js';

/** Events that a process takes over from others: with more of its own it does not look for them. */
const ROOM_FOR_OTHERS = 1000;
const DELETES_AT_ONCE = 256;
const RETRY_AFTER_SECONDS = 5;

interface Held {
  readonly event: ServiceEvent;
  /** Of its row; undefined where it lies elsewhere. */
  readonly minute: number | undefined;
  /** Makes sure that nobody finds it again. */
  readonly published: () => Promise<void>;
}

/** What a process that dies leaves of something in its minute. */
type Left = { readonly event: ServiceEvent } | { readonly charges: Charges };

/** Says that a writer's batches of this minute changed the partner's charges: its events lie there. */
export interface Charges {
  readonly partnerId: string;
  readonly writer: string;
}

/**
 * What this process has to publish, in memory, oldest first. Each event is durable elsewhere before it is
 * here: in a row of table `outbox`, or in the partition of the charges that it tells of. Rows that are
 * minutes old were left by a process that died, or by one that cannot publish: whoever sweeps publishes them
 * too, under the same id.
 */
export class Outbox implements OutboxStore {
  readonly #rows: MinuteRows;
  readonly #blobs: Blobs;
  readonly #limit: number;
  readonly #held = new Map<string, Held>();
  #reserved = 0;
  #listener: () => void = () => undefined;

  constructor(session: Session, blobs: Blobs, limit: number) {
    this.#rows = new MinuteRows(session, { table: 'outbox', key: 'id', position: 'outbox' });
    this.#blobs = blobs;
    this.#limit = limit;
  }

  /** Whether one more event may come to be. */
  hasRoom(): boolean {
    return this.#held.size + this.#reserved < this.#limit;
  }

  /**
   * Keeps a place for the event that the work may add.
   * @throws DomainError `unavailable` / `outbox_full` before the work has begun
   */
  async withRoom<Value>(work: () => Promise<Value>): Promise<Value> {
    if (!this.hasRoom()) throw outboxFull();
    this.#reserved += 1;
    try {
      return await work();
    } finally {
      this.#reserved -= 1;
    }
  }

  /** Resolves when the event is durable; it waits from then on. Repeating it is harmless. */
  async add(event: ServiceEvent): Promise<void> {
    if (this.#held.has(event.id)) return;
    this.#holdRow(event, await this.#leave(event.id, { event }));
  }

  /**
   * Adds counts of free calls. Where a row's outcome is not known its event waits all the same: counted again
   * under another number it might be added twice, and what a crash loses of it costs nobody anything.
   * @param begun called when there is room for all of them
   * @throws DomainError `unavailable` / `outbox_full`
   */
  async addAll(events: readonly ServiceEvent[], begun: () => void): Promise<void> {
    if (this.#held.size + this.#reserved + events.length > this.#limit) throw outboxFull();
    begun();
    const rows = events.map((event) => ({ event, minute: minuteOf(Date.now()) }));
    for (const { event, minute } of rows) this.#holdRow(event, minute);
    await Promise.allSettled(
      rows.map(({ event, minute }) =>
        this.#rows.put(minute, event.id, this.#blobs.encode(`outbox/${event.id}`, { event } satisfies Left)),
      ),
    );
  }

  /** Has an event wait that is durable already. @returns false where it waits */
  hold(event: ServiceEvent, published: Held['published'], minute?: number): boolean {
    if (this.#held.has(event.id)) return false;
    this.#held.set(event.id, { event, minute, published });
    this.#listener();
    return true;
  }

  /** Before the first batch of a minute: whoever sweeps will look there. */
  async announceCharges(minute: number, charges: Charges): Promise<void> {
    const id = chargesId(charges);
    await this.#rows.put(minute, id, this.#blobs.encode(`outbox/${id}`, { charges } satisfies Left));
  }

  async withdrawCharges(minute: number, charges: Charges): Promise<void> {
    await this.#rows.remove(minute, chargesId(charges));
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
    // Forgotten first: where a row cannot be deleted now the sweep finds it, and nothing is published again
    // and again meanwhile.
    for (const { rowKey } of events) this.#held.delete(rowKey);
    const failures: unknown[] = [];
    for (let i = 0; i < held.length; i += DELETES_AT_ONCE) {
      const results = await Promise.allSettled(
        held.slice(i, i + DELETES_AT_ONCE).map(({ published }) => published()),
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
    await this.#rows.start(now);
  }

  /**
   * Takes over what others left.
   * @param adopt does so for the events of a minute's charges
   */
  async sweep(now: number, adopt: (minute: number, charges: Charges) => Promise<Seen>): Promise<void> {
    const hasRoom = () => this.#held.size < Math.min(ROOM_FOR_OTHERS, this.#limit);
    if (!hasRoom()) return;
    await this.#rows.sweep(now, async ({ minute, id, data }) => {
      const held = this.#held.get(id);
      if (held?.minute !== undefined && held.minute !== minute) {
        // An operation that was finished twice left two rows. One is enough: the older one, for every process
        // that holds either.
        await this.#rows.remove(Math.max(held.minute, minute), id);
        if (held.minute < minute) return 'gone';
        if (this.#held.has(id)) {
          this.#held.set(id, { event: held.event, minute, published: () => this.#rows.remove(minute, id) });
          return 'kept';
        }
        // Published meanwhile.
        await this.#rows.remove(minute, id);
        return 'gone';
      }
      if (held !== undefined) return 'kept';
      if (!hasRoom()) return 'no_room';
      const left = this.#blobs.decode<Left>(`outbox/${id}`, data);
      if ('charges' in left) return adopt(minute, left.charges);
      this.#holdRow(left.event, minute);
      return 'kept';
    });
  }

  #holdRow(event: ServiceEvent, minute: number): void {
    this.hold(event, () => this.#rows.remove(minute, event.id), minute);
  }

  async #leave(id: string, left: Left): Promise<number> {
    const data = this.#blobs.encode(`outbox/${id}`, left);
    for (;;) {
      const begun = Date.now();
      await this.#rows.put(minuteOf(begun), id, data);
      // A process that was stopped in between may have written behind the sweep's position.
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
