import {
  billedSource,
  billedUnitsOf,
  type UsageCount,
  type UsageEvent,
  unitsCounted,
} from '../../../domain/events.js';
import type { Outbox } from '../commit/outbox.js';
import { type Pointer, type Pointers, ROW_TTL_SECONDS, type Visited } from '../commit/pointers.js';
import { minuteOf } from '../commit/time-bucket.js';
import type { Blobs } from '../driver/blobs.js';
import { type Session, type Statement, textIn } from '../driver/session.js';
import type { Consumption } from './consumption.js';
import { covers, type Intervals } from './intervals.js';

const INSERT = 'INSERT INTO charge (partner_id, item, event) VALUES (?, ?, ?) USING TTL ?';
const LIST_WRITER = 'SELECT item, event FROM charge WHERE partner_id = ? AND item > ? AND item < ? LIMIT ?';
const LIST_NEWEST =
  'SELECT item, event FROM charge WHERE partner_id = ? AND item >= ? AND item < ? ORDER BY item DESC LIMIT ?';
const REMOVE = 'DELETE FROM charge USING TIMESTAMP ? WHERE partner_id = ? AND item >= ? AND item < ?';

// A row for a writer's minute, which no batch can do without and only a takeover changes to any effect.
const DEMAND_OPEN = 'UPDATE charge USING TTL ? SET op = ? WHERE partner_id = ? AND item = ? IF closed = null';
const CLOSE =
  'UPDATE charge USING TTL ? SET closed = true WHERE partner_id = ? AND item = ? IF closed = null';
const GET_CLOSED = 'SELECT closed FROM charge WHERE partner_id = ? AND item = ?';

/** Life of the row that a batch leaves; a closed one lives as long as its events. */
const OPEN_SECONDS = 3600;
const PAGE = 500;
/**
 * Minutes after which aggregated events are removed. Conditional batches wrote them under a node's clock, and
 * a plain write removes them under this process's clock. This is safe because a name is written once and
 * never again, and after so long no clock of the cluster is still before the minute. An event that stayed all
 * the same would be passed over, and goes with its TTL.
 */
const KEEP_MINUTES = 10;
/** Minutes of events that one read goes back, and reads: the last goes back to the beginning, beyond what a fold leaves. */
const STEP_MINUTES = 20;
const STEPS = 8;
/** Minutes after which the hourly fold has added and removed what is left, unless it failed. */
const FOLDED_MINUTES = 180;
/** Minutes whose removal waits for a consumer; beyond them the oldest are left to their TTL. */
const REMEMBERED = 20_000;
/** Reads of sums by one compaction. */
const READS = 500;

/** Kind of the pointers that register charges. */
const CHARGES = 'charges';

/** Name of the charges that a writer made for a partner in one minute. */
interface Charges {
  readonly partnerId: string;
  readonly writer: string;
  readonly minute: number;
}

interface WriterMinute extends Charges {
  /** The pointer that registers the charges, so that any process finds them. */
  readonly registered: Promise<Pointer>;
  /** Batches under way. */
  inFlight: number;
  /** Events that wait to be published. */
  waiting: number;
  /** False where events may be in the table and not here: a batch's outcome was never known, or there was no room. */
  isCertain: boolean;
  isUnregistered: boolean;
  /** The first and the last number of each source. */
  readonly sources: Map<string, { readonly from: number; readonly to: number }>;
}

/** A batch of charges on its way. */
export interface Charging {
  readonly writerMinute: WriterMinute;
}

interface StoredEvent {
  readonly to: number;
  readonly at: number;
  readonly counts: readonly UsageCount[];
}

/**
 * Events of charges. An event lies in the partition of the charges that it reports, written by the same
 * batch. For each writer and minute a pointer registers them; the pointer goes when all of the minute's
 * events were published. The events themselves stay until they were aggregated, so that a read can add what
 * is still on its way.
 */
export class ChargeEvents {
  readonly #session: Session;
  readonly #blobs: Blobs;
  readonly #pointers: Pointers;
  readonly #outbox: Outbox;
  readonly #consumption: Consumption;
  readonly #writer: string;
  readonly #writerMinutes = new Map<string, WriterMinute>();
  #minute = 0;

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

  /** Resolves when any process would find what the next batch writes. */
  async begin(partnerId: string): Promise<Charging> {
    // Never back, whatever the clock does: a minute that was closed is not written into again.
    this.#minute = Math.max(this.#minute, minuteOf(Date.now()));
    const writerMinute = this.#writerMinuteOf({ partnerId, writer: this.#writer, minute: this.#minute });
    writerMinute.inFlight += 1;
    try {
      await writerMinute.registered;
    } catch (error) {
      writerMinute.inFlight -= 1;
      this.#writerMinutes.delete(nameOf(writerMinute));
      throw error;
    }
    return { writerMinute };
  }

  /** The statement by which a batch demands that nobody has closed the minute. */
  demanding({ writerMinute }: Charging): Statement {
    return {
      query: DEMAND_OPEN,
      params: [OPEN_SECONDS, writerMinute.writer, writerMinute.partnerId, closingOf(writerMinute)],
    };
  }

  /** To be called after a refusal: a minute that somebody closed is over, whatever this process's clock says. */
  async refused({ writerMinute }: Charging): Promise<void> {
    const row = await this.#session.first(GET_CLOSED, [writerMinute.partnerId, closingOf(writerMinute)]);
    if (row?.['closed'] === true) this.#minute = Math.max(this.#minute, writerMinute.minute + 1);
  }

  insertion({ writerMinute }: Charging, { data, at }: UsageEvent): Statement {
    const { month, epoch } = billedUnitsOf(data.source)!;
    const number = `${month}/${String(data.from).padStart(10, '0')}`;
    const item = `${prefixOf(writerMinute)}${number}${epoch === 0 ? '' : `/${epoch}`}`;
    const stored: StoredEvent = { to: data.to, at, counts: data.counts };
    return {
      query: INSERT,
      params: [data.partnerId, item, this.#blobs.encode(item, stored), ROW_TTL_SECONDS],
    };
  }

  /**
   * Has the events of a batch that took effect wait from now on. In an outbox without room for them they stay in
   * the table alone, until there is room again or the hourly fold adds them.
   */
  charged({ writerMinute }: Charging, events: readonly UsageEvent[]): void {
    if (this.#outbox.hasCapacity('usage')) for (const event of events) this.#hold(writerMinute, event);
    else writerMinute.isCertain = false;
  }

  /** To be called after the batch's last attempt. @param isCertain whether the batch's outcome is known */
  end({ writerMinute }: Charging, isCertain: boolean): void {
    writerMinute.inFlight -= 1;
    if (!isCertain) writerMinute.isCertain = false;
  }

  /** Visits a pointer that registers charges. */
  #visit(pointer: Pointer): Promise<Visited> {
    const [minute, writer] = pointer.op.split('/') as [string, string];
    const charges = { minute: Number(minute), writer, partnerId: pointer.key };
    const hasCapacity = this.#writerMinutes.has(nameOf(charges))
      ? this.#outbox.hasCapacity('usage')
      : this.#outbox.hasCapacityForOthers('usage');
    const isFolded = charges.minute + FOLDED_MINUTES < minuteOf(Date.now());
    return hasCapacity || isFolded ? this.#takeOver(charges, pointer) : Promise.resolve('stays');
  }

  /**
   * Takes over the events of a minute that is over: of another writer, or of a batch whose outcome was not
   * known.
   */
  async #takeOver(charges: Charges, pointer: Pointer): Promise<Visited> {
    // The writer's last batch may still be on its way.
    if (charges.minute + 1 >= minuteOf(Date.now())) return 'stays';
    const known = this.#writerMinutes.get(nameOf(charges));
    if (known !== undefined && (known.isCertain || known.inFlight > 0)) return 'stays';
    const writerMinute = known ?? this.#writerMinuteOf(charges, Promise.resolve(pointer));
    // Until all events were read: a minute of which a failure leaves some unread must not look done.
    writerMinute.isCertain = false;
    // First closed, then read: a batch that is carried out later is refused for good.
    await this.#session.lightweightTransaction({
      query: CLOSE,
      params: [ROW_TTL_SECONDS, charges.partnerId, closingOf(writerMinute)],
    });
    const prefix = prefixOf(writerMinute);
    // Serial reads: a batch that hangs between two replicas either shows here or never takes effect.
    const serialReads = this.#session.serialReads();
    for (let after = prefix, isMore = true; isMore; ) {
      const rows = await serialReads.rows(LIST_WRITER, [charges.partnerId, after, endOf(prefix), PAGE]);
      if (rows.length > 0 && !this.#outbox.hasCapacity('usage')) return 'stays';
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
      const { minute, partnerId, sources } = writerMinute;
      if (minute >= this.#minute) continue;
      const isOld = minute + KEEP_MINUTES < minuteOf(now);
      const { isCertain, inFlight, waiting } = writerMinute;
      if (!isCertain && inFlight === 0 && waiting === 0 && isOld && !this.#outbox.hasCapacity('usage')) {
        // Its pointer leads back to it.
        this.#writerMinutes.delete(name);
        continue;
      }
      // Another process may have taken the minute over, and removed the pointer that leads to it.
      if (!isCertain && inFlight === 0 && isOld)
        await this.#takeOver(writerMinute, await writerMinute.registered).catch((error: unknown) =>
          failures.push(error),
        );
      if (writerMinute.inFlight > 0 || writerMinute.waiting > 0 || !writerMinute.isCertain) continue;
      if (!writerMinute.isUnregistered) await this.#unregister(writerMinute);
      if (!isOld) continue;
      const isRead = [...sources.keys()].every((source) => read.has(`${source} ${partnerId}`));
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
   * Events of the minutes before one, in pages, oldest first. A damaged one is not among the sound ones of
   * its page, and is its failure.
   */
  async *before(
    partnerId: string,
    minute: number,
  ): AsyncGenerator<{ readonly sound: readonly UsageEvent[]; readonly failure: unknown }> {
    // Serial reads, as when a minute is taken over.
    const serialReads = this.#session.serialReads();
    for (let after = FIRST; ; ) {
      const rows = await serialReads.rows(LIST_WRITER, [partnerId, after, firstOf(minute), PAGE]);
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

  /** Removes the events of the minutes before one, which must be older than any that `compact` removes. */
  async removeBefore(partnerId: string, minute: number, now: number): Promise<void> {
    await this.#session.write(REMOVE, [now * 1000, partnerId, FIRST, firstOf(minute)]);
  }

  /**
   * Events of a month's charges that are still there, newest first. Read in steps: each writer's minute that was
   * removed is a range that a read passes over, until a fold has joined them all.
   */
  async *onTheirWay(partnerId: string, month: string): AsyncGenerator<UsageEvent> {
    const now = minuteOf(Date.now());
    let before = 'event0';
    for (let step = 1; step <= STEPS; step += 1) {
      const from = step === STEPS ? FIRST : firstOf(now - STEP_MINUTES * step);
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

  #writerMinuteOf(charges: Charges, registered?: Promise<Pointer>): WriterMinute {
    const { partnerId, writer, minute } = charges;
    const name = nameOf(charges);
    let writerMinute = this.#writerMinutes.get(name);
    if (writerMinute === undefined) {
      writerMinute = {
        minute,
        partnerId,
        writer,
        // Before the first batch of the minute.
        registered: registered ?? this.#pointers.put(`${minute}/${writer}/${partnerId}`, CHARGES, partnerId),
        inFlight: 0,
        waiting: 0,
        isCertain: true,
        isUnregistered: false,
        sources: new Map(),
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
    const numbers = writerMinute.sources.get(source);
    writerMinute.sources.set(source, {
      from: Math.min(numbers?.from ?? from, from),
      to: Math.max(numbers?.to ?? 0, to),
    });
  }

  async #unregister(writerMinute: WriterMinute): Promise<void> {
    await this.#pointers.remove(await writerMinute.registered);
    writerMinute.isUnregistered = true;
  }

  /** @param read billed intervals that were read before, by source and partner */
  async #isAggregated(
    { partnerId, sources }: WriterMinute,
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

function nameOf({ minute, partnerId, writer }: Charges): string {
  return `${minute}/${partnerId}/${writer}`;
}

/** Before every item of an event. */
const FIRST = 'event/';

/** Before the items of a minute, and behind those of the minutes before it. */
function firstOf(minute: number): string {
  return `${FIRST}${String(minute).padStart(9, '0')}`;
}

/** Item of the row that says whether a writer's minute was closed. */
function closingOf({ minute, writer }: Charges): string {
  return `writer/${String(minute).padStart(9, '0')}/${writer}`;
}

/** Prefix of the items of a writer's minute. */
function prefixOf({ minute, writer }: WriterMinute): string {
  return `${firstOf(minute)}/${writer}/`;
}

/** End of the range of a prefix: `0` sorts behind the `/` at its end. */
function endOf(prefix: string): string {
  return `${prefix.slice(0, -1)}0`;
}
