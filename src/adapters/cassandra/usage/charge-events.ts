import { type UsageCount, type UsageEvent, unitsCounted } from '../../../domain/events.js';
import type { Charges, Outbox } from '../commit/outbox.js';
import { isTimely, minuteOf } from '../commit/time-bucket.js';
import { ROW_TTL_SECONDS, type Visited } from '../commit/time-bucketed-table.js';
import type { Blobs } from '../driver/blobs.js';
import { type Session, type Statement, storeUnavailable, textIn } from '../driver/session.js';
import type { Consumption } from './consumption.js';
import { covers, type Intervals } from './intervals.js';

const INSERT = 'INSERT INTO charge (partner_id, item, event) VALUES (?, ?, ?) USING TTL ?';
const LIST_WRITER = 'SELECT item, event FROM charge WHERE partner_id = ? AND item > ? AND item < ? LIMIT ?';
const LIST_NEWEST =
  "SELECT item, event FROM charge WHERE partner_id = ? AND item >= 'event/' AND item < ? ORDER BY item DESC LIMIT ?";
const REMOVE = 'DELETE FROM charge USING TIMESTAMP ? WHERE partner_id = ? AND item >= ? AND item < ?';

const PAGE = 500;
/**
 * Minutes after which aggregated events are removed. Conditional batches wrote them under a node's clock, and
 * a plain write removes them under this process's clock. This is safe because a name is written once and
 * never again, and after so long no clock of the cluster is still before the minute. An event that stayed all
 * the same would be passed over, and goes with its TTL.
 */
const KEEP_MINUTES = 10;
/** Minutes whose removal waits for a consumer; beyond them the oldest are left to their TTL. */
const REMEMBERED = 20_000;
/** Reads of sums by one compaction. */
const READS = 500;

/** Charges that one writer made for a partner in one minute. */
interface WriterMinute extends Charges {
  readonly minute: number;
  readonly registered: Promise<void>;
  /** Batches under way. */
  inFlight: number;
  /** Events that wait to be published. */
  waiting: number;
  /** False where a batch's outcome was never known: its event may be in the table and not here. */
  isCertain: boolean;
  isUnregistered: boolean;
  /** The first and the last number of each month. */
  readonly months: Map<string, { readonly from: number; readonly to: number }>;
}

/** A batch of charges on its way. */
export interface Charging {
  readonly writerMinute: WriterMinute;
  readonly startedAt: number;
}

interface StoredEvent {
  readonly to: number;
  readonly at: number;
  readonly counts: readonly UsageCount[];
}

/**
 * Events of charges. An event lies in the partition of the charges that it reports, written by the same
 * batch. For each writer and minute a row in the outbox registers them; the row goes when all of the minute's
 * events were published. The events themselves stay until they were aggregated, so that a read can add what
 * is still on its way.
 */
export class ChargeEvents {
  readonly #session: Session;
  readonly #blobs: Blobs;
  readonly #outbox: Outbox;
  readonly #consumption: Consumption;
  readonly #writer: string;
  readonly #writerMinutes = new Map<string, WriterMinute>();
  #minute = 0;

  constructor(session: Session, blobs: Blobs, outbox: Outbox, consumption: Consumption, writer: string) {
    this.#session = session;
    this.#blobs = blobs;
    this.#outbox = outbox;
    this.#consumption = consumption;
    this.#writer = writer;
  }

  /** Resolves when any process would find what the next batch writes. */
  async begin(partnerId: string): Promise<Charging> {
    const startedAt = Date.now();
    // Never back, whatever the clock does: a minute that was unregistered is not written into again.
    this.#minute = Math.max(this.#minute, minuteOf(startedAt));
    const writerMinute = this.#writerMinuteOf(this.#minute, { partnerId, writer: this.#writer });
    writerMinute.inFlight += 1;
    try {
      await writerMinute.registered;
    } catch (error) {
      writerMinute.inFlight -= 1;
      this.#writerMinutes.delete(nameOf(writerMinute));
      throw error;
    }
    return { writerMinute, startedAt };
  }

  /** To be called right before the batch. */
  assertTimely({ startedAt }: Charging): void {
    if (!isTimely(startedAt)) throw storeUnavailable();
  }

  insertion({ writerMinute }: Charging, { data, at }: UsageEvent): Statement {
    const item = `${prefixOf(writerMinute)}${data.source.slice(-7)}/${String(data.from).padStart(10, '0')}`;
    const stored: StoredEvent = { to: data.to, at, counts: data.counts };
    return {
      query: INSERT,
      params: [data.partnerId, item, this.#blobs.encode(item, stored), ROW_TTL_SECONDS],
    };
  }

  /** Has the events of a batch that took effect wait from now on. */
  charged({ writerMinute }: Charging, events: readonly UsageEvent[]): void {
    for (const event of events) this.#hold(writerMinute, event);
  }

  /** To be called after the batch's last attempt. @param isCertain whether the batch's outcome is known */
  end({ writerMinute }: Charging, isCertain: boolean): void {
    writerMinute.inFlight -= 1;
    if (!isCertain) writerMinute.isCertain = false;
  }

  /**
   * Takes over the events of a minute that is over: of another writer, or of a batch whose outcome was not
   * known.
   */
  async takeOver(minute: number, charges: Charges): Promise<Visited> {
    const known = this.#writerMinutes.get(nameOf({ minute, ...charges }));
    if (known !== undefined && (known.isCertain || known.inFlight > 0)) return 'stays';
    const writerMinute = known ?? this.#writerMinuteOf(minute, charges, Promise.resolve());
    // Until all events were read: a minute of which a failure leaves some unread must not look done.
    writerMinute.isCertain = false;
    const prefix = prefixOf(writerMinute);
    // Serial reads: a batch that hangs between two replicas either shows here or never takes effect.
    const serialReads = this.#session.serialReads();
    for (let after = prefix, isMore = true; isMore; ) {
      const rows = await serialReads.rows(LIST_WRITER, [charges.partnerId, after, endOf(prefix), PAGE]);
      for (const row of rows)
        this.#hold(writerMinute, this.#eventOf(charges.partnerId, textIn(row, 'item')!, row['event']));
      isMore = rows.length === PAGE;
      if (isMore) after = textIn(rows.at(-1)!, 'item')!;
    }
    writerMinute.isCertain = true;
    if (writerMinute.waiting > 0) return 'stays';
    await this.#unregister(writerMinute);
    return 'removed';
  }

  /** Removes the events of minutes that are over where all were published and aggregated. */
  async compact(now: number): Promise<void> {
    const read = new Map<string, Promise<Intervals>>();
    const failures: unknown[] = [];
    this.#minute = Math.max(this.#minute, minuteOf(now));
    for (const [name, writerMinute] of this.#writerMinutes) {
      const { minute, partnerId, months } = writerMinute;
      if (minute >= this.#minute) continue;
      const isOld = minute + KEEP_MINUTES < minuteOf(now);
      // Another process may have taken the minute over, and removed the outbox row that leads to it.
      if (!writerMinute.isCertain && writerMinute.inFlight === 0 && isOld)
        await this.takeOver(minute, writerMinute).catch((error: unknown) => failures.push(error));
      if (writerMinute.inFlight > 0 || writerMinute.waiting > 0 || !writerMinute.isCertain) continue;
      if (!writerMinute.isUnregistered) await this.#unregister(writerMinute);
      if (!isOld) continue;
      const isRead = [...months.keys()].every((month) => read.has(`${month} ${partnerId}`));
      if (read.size >= READS && !isRead) continue;
      if (!(await this.#isAggregated(writerMinute, read))) continue;
      const prefix = prefixOf(writerMinute);
      await this.#session.write(REMOVE, [now * 1000, partnerId, prefix, endOf(prefix)]);
      this.#writerMinutes.delete(name);
    }
    for (const [name, { isUnregistered }] of this.#writerMinutes) {
      if (this.#writerMinutes.size <= REMEMBERED) break;
      if (isUnregistered) this.#writerMinutes.delete(name);
    }
    if (failures.length > 0) throw failures[0];
  }

  /**
   * Events of a month's charges that are still there, newest first.
   * @param upTo the month's count; later charges are passed over
   */
  async *onTheirWay(partnerId: string, month: string, upTo: number): AsyncGenerator<UsageEvent> {
    for (let before = 'event0'; ; ) {
      const rows = await this.#session.rows(LIST_NEWEST, [partnerId, before, PAGE]);
      for (const row of rows) {
        const event = this.#eventOf(partnerId, textIn(row, 'item')!, row['event']);
        if (event.data.source.endsWith(month) && event.data.to <= upTo) yield event;
      }
      if (rows.length < PAGE) return;
      before = textIn(rows.at(-1)!, 'item')!;
    }
  }

  #writerMinuteOf(minute: number, { partnerId, writer }: Charges, registered?: Promise<void>): WriterMinute {
    const name = nameOf({ minute, partnerId, writer });
    let writerMinute = this.#writerMinutes.get(name);
    if (writerMinute === undefined) {
      writerMinute = {
        minute,
        partnerId,
        writer,
        registered: registered ?? this.#outbox.registerCharges(minute, { partnerId, writer }),
        inFlight: 0,
        waiting: 0,
        isCertain: true,
        isUnregistered: false,
        months: new Map(),
      };
      this.#writerMinutes.set(name, writerMinute);
    }
    return writerMinute;
  }

  #hold(writerMinute: WriterMinute, event: UsageEvent): void {
    const onPublished = async (): Promise<void> => {
      writerMinute.waiting -= 1;
    };
    if (!this.#outbox.hold({ event, onPublished })) return;
    writerMinute.waiting += 1;
    const { source, from, to } = event.data;
    const month = source.slice(-7);
    const numbers = writerMinute.months.get(month);
    writerMinute.months.set(month, {
      from: Math.min(numbers?.from ?? from, from),
      to: Math.max(numbers?.to ?? 0, to),
    });
  }

  async #unregister(writerMinute: WriterMinute): Promise<void> {
    await this.#outbox.unregisterCharges(writerMinute.minute, writerMinute);
    writerMinute.isUnregistered = true;
  }

  /** @param read billed intervals that were read before, by month and partner */
  async #isAggregated(
    { partnerId, months }: WriterMinute,
    read: Map<string, Promise<Intervals>>,
  ): Promise<boolean> {
    for (const [month, { from, to }] of months) {
      const name = `${month} ${partnerId}`;
      const billed =
        read.get(name) ?? this.#consumption.read(partnerId, month).then((aggregated) => aggregated.billed);
      read.set(name, billed);
      if (!covers(await billed, from, to)) return false;
    }
    return true;
  }

  #eventOf(partnerId: string, item: string, bytes: unknown): UsageEvent {
    const [, , , month, from] = item.split('/') as [string, string, string, string, string];
    const { to, at, counts } = this.#blobs.decode<StoredEvent>(item, bytes);
    return unitsCounted({ partnerId, source: `billed/${month}`, from: Number(from), to, counts }, at);
  }
}

function nameOf({ minute, partnerId, writer }: Charges & { readonly minute: number }): string {
  return `${minute}/${partnerId}/${writer}`;
}

/** Prefix of the items of a writer's minute. */
function prefixOf({ minute, writer }: WriterMinute): string {
  return `event/${String(minute).padStart(9, '0')}/${writer}/`;
}

/** End of the range of a prefix: `0` sorts behind the `/` at its end. */
function endOf(prefix: string): string {
  return `${prefix.slice(0, -1)}0`;
}
