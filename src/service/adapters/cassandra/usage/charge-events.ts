import { isRecordDamaged } from '../../../../core/domain/errors.js';
import {
  billedSource,
  billedUnitsOf,
  type UsageCount,
  type UsageEvent,
  unitsCounted,
} from '../../../domain/events.js';
import type { Outbox } from '../commit/outbox.js';
import { type Pointer, type Pointers, ROW_TTL_SECONDS, type Visited } from '../commit/pointers.js';
import { chargeBucketOf, chargeBucketsIn } from '../commit/time-bucket.js';
import type { Blobs } from '../driver/blobs.js';
import { type Session, type Statement, textIn } from '../driver/session.js';
import type { Consumption } from './consumption.js';
import { covers, type Intervals } from './intervals.js';

const INSERT = 'INSERT INTO charge (partner_id, item, event) VALUES (?, ?, ?) USING TTL ?';
const LIST_WRITER = 'SELECT item, event FROM charge WHERE partner_id = ? AND item > ? AND item < ? LIMIT ?';
const LIST_NEWEST =
  'SELECT item, event FROM charge WHERE partner_id = ? AND item >= ? AND item < ? ORDER BY item DESC LIMIT ?';
const REMOVE = 'DELETE FROM charge USING TIMESTAMP ? WHERE partner_id = ? AND item >= ? AND item < ?';

// A row for a writer's time bucket, which no batch can do without and only a takeover changes to any effect.
const DEMAND_OPEN = 'UPDATE charge USING TTL ? SET op = ? WHERE partner_id = ? AND item = ? IF closed = null';
const CLOSE =
  'UPDATE charge USING TTL ? SET closed = true WHERE partner_id = ? AND item = ? IF closed = null';
const GET_CLOSED = 'SELECT closed FROM charge WHERE partner_id = ? AND item = ?';

/**
 * The time after a time bucket during which its writer's last batch may still arrive, or its clock may be late. A later
 * batch is refused, and begins a new time bucket.
 */
const LATE_MS = 15_000;
/** The life of the row that a batch leaves, in seconds. A closed row lives as long as its events. */
const OPEN_SECONDS = 3600;
const PAGE = 500;
/**
 * The number of time buckets after which aggregated events are removed: ten minutes. Conditional batches wrote them
 * under a node's clock, and a plain write removes them under this process's clock. This is safe because a name is
 * written once and never again, and after so long no clock of the cluster is still before the time bucket. An event
 * that stayed all the same would be passed over, and expires with its TTL.
 */
const KEPT = chargeBucketsIn(10);
/**
 * The number of time buckets that one step of a read goes back, and the number of steps. In the newest step nothing
 * was removed yet. The last step goes back to the beginning, beyond what a fold leaves.
 */
const STEP = KEPT;
const STEPS = 9;
/** The number of time buckets after which the fold has added and removed what was left, unless it failed. */
const FOLDED = chargeBucketsIn(180);
/** The most time buckets whose removal waits for a consumer. Beyond them the oldest are left to the fold. */
const REMEMBERED = 40_000;
/** The most reads of sums by one compaction. */
const READS = 500;

/** The kind of the pointers that register charges. */
const CHARGES = 'charges';

/** The name of the charges that a writer made for a partner in one time bucket. */
interface Charges {
  readonly partnerId: string;
  readonly writer: string;
  readonly timeBucket: number;
}

interface WriterBucket extends Charges {
  /** The pointer that registers the charges, so that any process finds them. */
  readonly registered: Promise<Pointer>;
  /** The number of batches under way. */
  inFlight: number;
  /** The number of events that wait to be published. */
  waiting: number;
  /** False where events may be in the table and not here: a batch's outcome was never known, or there was no room. */
  isCertain: boolean;
  isUnregistered: boolean;
  /** The items whose events were taken over while another event of the time bucket is damaged. */
  readonly taken: Set<string>;
  /** The first and the last number of each source. */
  readonly sources: Map<string, { readonly from: number; readonly to: number }>;
}

/** A batch of charges on its way. */
export interface Charging {
  readonly writerBucket: WriterBucket;
}

interface StoredEvent {
  readonly to: number;
  readonly at: number;
  readonly counts: readonly UsageCount[];
}

/**
 * Events of charges. An event is stored in the partition of the charges that it reports, by the same batch. For each
 * writer and time bucket a pointer registers them. The pointer is deleted when all events of the time bucket were
 * published. The events stay until they were aggregated, so that a read can add those that are not aggregated yet.
 */
export class ChargeEvents {
  readonly #session: Session;
  readonly #blobs: Blobs;
  readonly #pointers: Pointers;
  readonly #outbox: Outbox;
  readonly #consumption: Consumption;
  readonly #writer: string;
  readonly #writerBuckets = new Map<string, WriterBucket>();
  #timeBucket = 0;

  constructor({
    session,
    blobs,
    pointers,
    outbox,
    consumption,
    writer,
  }: {
    readonly session: Session;
    readonly blobs: Blobs;
    readonly pointers: Pointers;
    readonly outbox: Outbox;
    readonly consumption: Consumption;
    readonly writer: string;
  }) {
    this.#session = session;
    this.#blobs = blobs;
    this.#pointers = pointers;
    this.#outbox = outbox;
    this.#consumption = consumption;
    this.#writer = writer;
    pointers.onVisit(CHARGES, (pointer) => this.#visit(pointer));
  }

  /**
   * Resolves when any process would find what the next batch writes.
   * @throws DomainError `unavailable` / `store_unavailable` while this process's clock is wrong
   */
  async begin(partnerId: string): Promise<Charging> {
    // Never back, even if the clock is set back: a closed time bucket is not written into again. A clock that is
    // wrong does not move it, or the events of a later charge would wait for as long as the clock was ahead.
    this.#timeBucket = Math.max(this.#timeBucket, chargeBucketOf(this.#pointers.now()));
    const writerBucket = this.#writerBucketOf({
      partnerId,
      writer: this.#writer,
      timeBucket: this.#timeBucket,
    });
    writerBucket.inFlight += 1;
    try {
      await writerBucket.registered;
    } catch (error) {
      writerBucket.inFlight -= 1;
      this.#writerBuckets.delete(nameOf(writerBucket));
      throw error;
    }
    return { writerBucket };
  }

  /** Returns the statement with which a batch demands that the time bucket is not closed. */
  demanding({ writerBucket }: Charging): Statement {
    return {
      query: DEMAND_OPEN,
      params: [OPEN_SECONDS, writerBucket.writer, writerBucket.partnerId, closingOf(writerBucket)],
    };
  }

  /** Moves past the time bucket of a refused batch if it was closed, even if this process's clock disagrees. */
  async refused({ writerBucket }: Charging): Promise<void> {
    const row = await this.#session.first(GET_CLOSED, [writerBucket.partnerId, closingOf(writerBucket)]);
    if (row?.['closed'] === true) this.#timeBucket = Math.max(this.#timeBucket, writerBucket.timeBucket + 1);
  }

  insertion({ writerBucket }: Charging, { data, at }: UsageEvent): Statement {
    const { month, epoch } = billedUnitsOf(data.source)!;
    const number = `${month}/${String(data.from).padStart(10, '0')}`;
    const item = `${prefixOf(writerBucket)}${number}${epoch === 0 ? '' : `/${epoch}`}`;
    const stored: StoredEvent = { to: data.to, at, counts: data.counts };
    return {
      query: INSERT,
      params: [data.partnerId, item, this.#blobs.encode(item, stored), ROW_TTL_SECONDS],
    };
  }

  /**
   * Adds the events of a batch that took effect to the outbox. If the outbox has no room, the events stay in the
   * table alone, until there is room again or the fold of what is left adds them.
   */
  charged({ writerBucket }: Charging, events: readonly UsageEvent[]): void {
    if (this.#outbox.hasCapacity('usage')) for (const event of events) this.#hold(writerBucket, event);
    else writerBucket.isCertain = false;
  }

  /** Ends a batch after its last attempt. @param isCertain true if the batch's outcome is known */
  end({ writerBucket }: Charging, isCertain: boolean): void {
    writerBucket.inFlight -= 1;
    if (!isCertain) writerBucket.isCertain = false;
  }

  /** Visits a pointer that registers charges. */
  #visit(pointer: Pointer): Promise<Visited> {
    const [timeBucket, writer] = pointer.op.split('/') as [string, string];
    const charges = { timeBucket: Number(timeBucket), writer, partnerId: pointer.key };
    const hasCapacity = this.#writerBuckets.has(nameOf(charges))
      ? this.#outbox.hasCapacity('usage')
      : this.#outbox.hasCapacityForOthers('usage');
    const isFolded = charges.timeBucket + FOLDED < chargeBucketOf(this.#pointers.now());
    return hasCapacity || isFolded ? this.#takeOver(charges, pointer) : Promise.resolve('stays');
  }

  /**
   * Takes over the events of a time bucket that is over: of another writer, or of a batch whose outcome was
   * not known.
   */
  async #takeOver(charges: Charges, pointer: Pointer): Promise<Visited> {
    if (chargeBucketOf(this.#pointers.now() - LATE_MS) <= charges.timeBucket) return 'stays';
    const known = this.#writerBuckets.get(nameOf(charges));
    if (known !== undefined && (known.isCertain || known.inFlight > 0)) return 'stays';
    const writerBucket = known ?? this.#writerBucketOf(charges, Promise.resolve(pointer));
    // Until all events were read: after a failure that leaves some unread, a time bucket must not look done.
    writerBucket.isCertain = false;
    // First closed, then read: a batch that is carried out later is refused for good.
    await this.#session.lightweightTransaction({
      query: CLOSE,
      params: [ROW_TTL_SECONDS, charges.partnerId, closingOf(writerBucket)],
    });
    const prefix = prefixOf(writerBucket);
    // Serial reads: a batch that hangs between two replicas either shows here or never takes effect.
    const serialReads = this.#session.serialReads();
    let damage: unknown;
    for (let after = prefix, isMore = true; isMore; ) {
      const rows = await serialReads.rows(LIST_WRITER, [charges.partnerId, after, endOf(prefix), PAGE]);
      if (rows.length > 0 && !this.#outbox.hasCapacity('usage')) return 'stays';
      for (const row of rows) {
        try {
          this.#takeEvent(writerBucket, textIn(row, 'item')!, row['event']);
        } catch (error) {
          if (!isRecordDamaged(error)) throw error;
          damage ??= error;
        }
      }
      isMore = rows.length === PAGE;
      if (isMore) after = textIn(rows.at(-1)!, 'item')!;
    }
    if (damage !== undefined) throw damage;
    writerBucket.taken.clear();
    writerBucket.isCertain = true;
    if (writerBucket.waiting > 0) return 'stays';
    await this.#unregister(writerBucket);
    return 'removed';
  }

  /** Removes the events of time buckets that are over where all were published and aggregated. */
  async compact(now: number): Promise<void> {
    const read = new Map<string, Promise<Intervals>>();
    const failures: unknown[] = [];
    this.#timeBucket = Math.max(this.#timeBucket, chargeBucketOf(now));
    for (const [name, writerBucket] of this.#writerBuckets) {
      const { timeBucket, partnerId, sources } = writerBucket;
      if (timeBucket >= this.#timeBucket) continue;
      const isOld = timeBucket + KEPT < chargeBucketOf(now);
      const { isCertain, inFlight, waiting } = writerBucket;
      if (!isCertain && inFlight === 0 && waiting === 0 && isOld && !this.#outbox.hasCapacity('usage')) {
        // Its pointer leads back to it.
        this.#writerBuckets.delete(name);
        continue;
      }
      // Another process may have taken the time bucket over, and removed the pointer that leads to it.
      if (!isCertain && inFlight === 0 && isOld)
        await this.#takeOver(writerBucket, await writerBucket.registered).catch((error: unknown) =>
          failures.push(error),
        );
      if (writerBucket.inFlight > 0 || writerBucket.waiting > 0 || !writerBucket.isCertain) continue;
      if (!writerBucket.isUnregistered) await this.#unregister(writerBucket);
      if (!isOld) continue;
      const isRead = [...sources.keys()].every((source) => read.has(`${source} ${partnerId}`));
      if (read.size >= READS && !isRead) continue;
      if (!(await this.#isAggregated(writerBucket, read))) continue;
      const prefix = prefixOf(writerBucket);
      await this.#session.write(REMOVE, [now * 1000, partnerId, prefix, endOf(prefix)]);
      this.#writerBuckets.delete(name);
    }
    for (const [name, { isUnregistered }] of this.#writerBuckets) {
      if (this.#writerBuckets.size <= REMEMBERED) break;
      if (isUnregistered) this.#writerBuckets.delete(name);
    }
    if (failures.length > 0) throw failures[0];
  }

  /**
   * Reads the events of the time buckets before one, in pages, oldest time bucket first. A damaged event is not among
   * the sound ones of its page, and the first error of a page is its failure.
   */
  async *before(
    partnerId: string,
    timeBucket: number,
  ): AsyncGenerator<{ readonly sound: readonly UsageEvent[]; readonly failure: unknown }> {
    // Serial reads, as when a time bucket is taken over.
    const serialReads = this.#session.serialReads();
    for (let after = FIRST; ; ) {
      const rows = await serialReads.rows(LIST_WRITER, [partnerId, after, firstOf(timeBucket), PAGE]);
      if (rows.length === 0) return;
      const sound: UsageEvent[] = [];
      let failure: unknown;
      for (const row of rows) {
        try {
          sound.push(this.#eventOf(partnerId, textIn(row, 'item')!, row['event']));
        } catch (error) {
          failure ??= error;
        }
      }
      yield { sound, failure };
      after = textIn(rows.at(-1)!, 'item')!;
    }
  }

  /** Removes the events of the time buckets before one, which must be older than any that `compact` removes. */
  async removeBefore(partnerId: string, timeBucket: number, now: number): Promise<void> {
    await this.#session.write(REMOVE, [now * 1000, partnerId, FIRST, firstOf(timeBucket)]);
  }

  /**
   * Reads the events of a month's charges that still exist, newest time bucket first. The read goes in steps, because
   * each removed time bucket of a writer is a range that it passes over, until a fold has joined them all.
   */
  async *onTheirWay(partnerId: string, month: string): AsyncGenerator<UsageEvent> {
    const now = chargeBucketOf(Date.now());
    let before = 'event0';
    for (let step = 1; step <= STEPS; step += 1) {
      const from = step === STEPS ? FIRST : firstOf(now - STEP * step);
      for (let isMore = true; isMore; ) {
        const rows = await this.#session.rows(LIST_NEWEST, [partnerId, from, before, PAGE]);
        for (const row of rows) {
          const event = this.#eventOf(partnerId, textIn(row, 'item')!, row['event']);
          if (billedUnitsOf(event.data.source)?.month === month) yield event;
        }
        isMore = rows.length === PAGE;
        before = isMore ? textIn(rows.at(-1)!, 'item')! : from;
      }
    }
  }

  #writerBucketOf(charges: Charges, registered?: Promise<Pointer>): WriterBucket {
    const { partnerId, writer, timeBucket } = charges;
    const name = nameOf(charges);
    let writerBucket = this.#writerBuckets.get(name);
    if (writerBucket === undefined) {
      writerBucket = {
        timeBucket,
        partnerId,
        writer,
        // Before the first batch of the time bucket.
        registered:
          registered ?? this.#pointers.put(`${timeBucket}/${writer}/${partnerId}`, CHARGES, partnerId),
        inFlight: 0,
        waiting: 0,
        isCertain: true,
        isUnregistered: false,
        taken: new Set(),
        sources: new Map(),
      };
      this.#writerBuckets.set(name, writerBucket);
    }
    return writerBucket;
  }

  /** Takes over an event of a time bucket once: each visit finds all events again while one of them is damaged. */
  #takeEvent(writerBucket: WriterBucket, item: string, bytes: unknown): void {
    if (writerBucket.taken.has(item)) return;
    this.#hold(writerBucket, this.#eventOf(writerBucket.partnerId, item, bytes));
    writerBucket.taken.add(item);
  }

  #hold(writerBucket: WriterBucket, event: UsageEvent): void {
    const onPublished = async (): Promise<void> => {
      writerBucket.waiting -= 1;
    };
    if (!this.#outbox.hold({ event, onPublished })) return;
    writerBucket.waiting += 1;
    const { source, from, to } = event.data;
    const numbers = writerBucket.sources.get(source);
    writerBucket.sources.set(source, {
      from: Math.min(numbers?.from ?? from, from),
      to: Math.max(numbers?.to ?? 0, to),
    });
  }

  async #unregister(writerBucket: WriterBucket): Promise<void> {
    await this.#pointers.remove(await writerBucket.registered);
    writerBucket.isUnregistered = true;
  }

  /** @param read billed intervals that were read before, by source and partner */
  async #isAggregated(
    { partnerId, sources }: WriterBucket,
    read: Map<string, Promise<Intervals>>,
  ): Promise<boolean> {
    for (const [source, { from, to }] of sources) {
      const name = `${source} ${partnerId}`;
      const { month, epoch } = billedUnitsOf(source)!;
      const billed =
        read.get(name) ??
        this.#consumption.read(partnerId, month).then((aggregated) => aggregated.billed.get(epoch) ?? []);
      read.set(name, billed);
      if (!covers(await billed, from, to)) return false;
    }
    return true;
  }

  #eventOf(partnerId: string, item: string, bytes: unknown): UsageEvent {
    const [, , , month = '', from, epoch = '0'] = item.split('/');
    const { to, at, counts } = this.#blobs.decode<StoredEvent>(item, bytes);
    const source = billedSource(month, Number(epoch));
    return unitsCounted({ partnerId, source, from: Number(from), to, counts }, at);
  }
}

function nameOf({ timeBucket, partnerId, writer }: Charges): string {
  return `${timeBucket}/${partnerId}/${writer}`;
}

/** The prefix of the items of all events. */
const FIRST = 'event/';

/** Returns the key that sorts before the items of a time bucket and after those of earlier time buckets. */
function firstOf(timeBucket: number): string {
  return `${FIRST}${String(timeBucket).padStart(9, '0')}`;
}

/** Returns the item of the row that says whether a writer's time bucket was closed. */
function closingOf({ timeBucket, writer }: Charges): string {
  return `writer/${String(timeBucket).padStart(9, '0')}/${writer}`;
}

/** Returns the prefix of the items of a writer's time bucket. */
function prefixOf({ timeBucket, writer }: WriterBucket): string {
  return `${firstOf(timeBucket)}/${writer}/`;
}

/** Returns the end of the range of a prefix: `0` sorts after the `/` at its end. */
function endOf(prefix: string): string {
  return `${prefix.slice(0, -1)}0`;
}
