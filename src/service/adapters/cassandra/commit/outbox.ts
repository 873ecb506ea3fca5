import { DomainError } from '../../../../core/domain/errors.js';
import type { ServiceEvent, Topic } from '../../../domain/events.js';
import type { OutboxStore, WaitingEvent } from '../../../ports/stores.js';
import type { Blobs } from '../driver/blobs.js';
import type { Pointer, Pointers } from './pointers.js';
import { pointerBucketOf } from './time-bucket.js';

/** The number of events of a topic at which a process stops taking more of them over from others. */
const CAPACITY_FOR_OTHERS = 1000;
const DELETES_AT_ONCE = 256;
const RETRY_AFTER_SECONDS = 5;

/** The kind of the pointers that contain their event. */
const COUNTED = 'calls_counted';

interface HeldEvent {
  readonly event: ServiceEvent;
  /** Removes what another process would find the event by. */
  readonly onPublished: () => Promise<void>;
}

/**
 * Events that this process has to publish, in memory, oldest first. Each event is durable elsewhere before it
 * is here: as the act of its operation, in the partition of the charges that it reports, as a reminder, or, for
 * counts of free calls, as a pointer. What is minutes old was left by a process that died, or by one that
 * cannot publish. Every process takes it over and publishes it, under the same event id.
 */
export class Outbox implements OutboxStore {
  readonly #pointers: Pointers;
  readonly #blobs: Blobs;
  readonly #limit: number;
  readonly #held = new Map<string, HeldEvent>();
  /** The counts of the events that are held, and of those for which there is capacity reserved. */
  readonly #counts: Record<Topic, number> = { erasure: 0, usage: 0, retention: 0 };
  #listener: () => void = () => undefined;

  /** @param limit of each topic */
  constructor(pointers: Pointers, blobs: Blobs, limit: number) {
    this.#pointers = pointers;
    this.#blobs = blobs;
    this.#limit = limit;
    pointers.onVisit(COUNTED, async (pointer) => {
      if (!this.#held.has(pointer.op) && this.hasCapacityForOthers('usage'))
        this.hold(
          this.#counted(this.#blobs.decode<ServiceEvent>(`event/${pointer.op}`, pointer.data), pointer),
        );
      return 'stays';
    });
  }

  /** Returns whether one more event of a topic may be added. */
  hasCapacity(topic: Topic): boolean {
    return this.#counts[topic] < this.#limit;
  }

  /**
   * Returns whether an event of a topic may be taken over from another process. Events of a stuck topic do not keep
   * others from being taken over.
   */
  hasCapacityForOthers(topic: Topic): boolean {
    return this.#counts[topic] < Math.min(CAPACITY_FOR_OTHERS, this.#limit);
  }

  /**
   * Reserves capacity for the one event of a topic that the work may add.
   * @throws DomainError `unavailable` / `outbox_full` before the work has begun
   */
  async withCapacity<Value>(topic: Topic, work: () => Promise<Value>): Promise<Value> {
    if (!this.hasCapacity(topic)) throw outboxFull();
    this.#counts[topic] += 1;
    try {
      return await work();
    } finally {
      this.#counts[topic] -= 1;
    }
  }

  /**
   * Adds counts of free calls, which are of the topic `usage`. An event waits even if the outcome of its row is unknown:
   * counted again under another number, the calls might be added twice. A crash that loses some of them costs no
   * partner anything.
   * @param begun called when there is capacity for all events
   * @throws DomainError `unavailable` / `outbox_full`
   */
  async addAll(events: readonly ServiceEvent[], begun: () => void): Promise<void> {
    if (this.#counts.usage + events.length > this.#limit) throw outboxFull();
    begun();
    await Promise.allSettled(
      events.map((event) => {
        const pointer = { bucket: pointerBucketOf(Date.now()), op: event.id, kind: COUNTED, key: event.key };
        this.hold(this.#counted(event, pointer));
        return this.#pointers.putInto(pointer, this.#blobs.encode(`event/${event.id}`, event));
      }),
    );
  }

  /** Adds an event that is durable already to the waiting ones. @returns false for an event that waits already */
  hold(held: HeldEvent): boolean {
    if (this.#held.has(held.event.id)) return false;
    this.#held.set(held.event.id, held);
    this.#counts[held.event.topic] += 1;
    this.#listener();
    return true;
  }

  async waitingEvents(
    limit: number,
    isHeldBack: (event: ServiceEvent) => boolean = () => false,
  ): Promise<readonly WaitingEvent[]> {
    const waiting: WaitingEvent[] = [];
    for (const [rowKey, { event }] of this.#held) {
      if (waiting.length >= limit) break;
      if (!isHeldBack(event)) waiting.push({ event, rowKey });
    }
    return waiting;
  }

  async markPublished(events: readonly WaitingEvent[]): Promise<void> {
    const held = events.flatMap(({ rowKey }) => this.#held.get(rowKey) ?? []);
    // Forgotten first: a row that cannot be deleted now is taken over later, and meanwhile nothing is
    // published again and again.
    for (const { rowKey, event } of events) if (this.#held.delete(rowKey)) this.#counts[event.topic] -= 1;
    const failures: unknown[] = [];
    for (let i = 0; i < held.length; i += DELETES_AT_ONCE) {
      const results = await Promise.allSettled(
        held.slice(i, i + DELETES_AT_ONCE).map(({ onPublished }) => onPublished()),
      );
      for (const result of results) if (result.status === 'rejected') failures.push(result.reason);
    }
    if (failures.length > 0) throw failures[0];
  }

  countWaiting(topic?: Topic): number {
    if (topic === undefined) return this.#held.size;
    let count = 0;
    for (const { event } of this.#held.values()) if (event.topic === topic) count += 1;
    return count;
  }

  onWaiting(listener: () => void): void {
    this.#listener = listener;
  }

  #counted(event: ServiceEvent, pointer: Pointer): HeldEvent {
    return { event, onPublished: () => this.#pointers.remove(pointer) };
  }
}

export function outboxFull(): DomainError {
  return new DomainError('unavailable', 'Too many events are waiting to be published.', {
    reason: 'outbox_full',
    retryAfterSeconds: RETRY_AFTER_SECONDS,
  });
}
