import { type UsageCount, type UsageEvent, unitsCounted } from '../../../domain/events.js';
import type { Charges, Outbox } from '../commit/outbox.js';
import { isTimely, minuteOf, type Seen, SWEPT_TTL_SECONDS } from '../commit/time-buckets.js';
import type { Blobs } from '../driver/blobs.js';
import { type Session, type Statement, storeUnavailable, textIn } from '../driver/session.js';
import type { Consumption } from './consumption.js';
import { covers, type Spans } from './intervals.js';

const INSERT = 'INSERT INTO charge (partner_id, item, event) VALUES (?, ?, ?) USING TTL ?';
const OF_WRITER = 'SELECT item, event FROM charge WHERE partner_id = ? AND item > ? AND item < ? LIMIT ?';
const NEWEST =
  "SELECT item, event FROM charge WHERE partner_id = ? AND item >= 'event/' AND item < ? ORDER BY item DESC LIMIT ?";
const REMOVE = 'DELETE FROM charge USING TIMESTAMP ? WHERE partner_id = ? AND item >= ? AND item < ?';

const PAGE = 500;
/**
 * Minutes after which folded events are removed. They were written by conditional batches, under a node's
 * clock, and are removed by a plain write under this process's: that is safe because a name is written once
 * and never again, and after so long no clock of the cluster is still before the minute. One that stayed all
 * the same would be passed over, and goes with its TTL.
 */
const KEEP_MINUTES = 10;
/** Minutes whose removal waits for a consumer; beyond them the oldest are left to their TTL. */
const REMEMBERED = 20_000;
/** Positions that one tidying asks for. */
const ASKED = 500;

/** What one writer charged a partner for in one minute. */
interface Bucket extends Charges {
  readonly minute: number;
  readonly announced: Promise<void>;
  /** Batches under way. */
  inFlight: number;
  /** Events that wait to be published. */
  waiting: number;
  /** False where a batch's outcome was never known: its event may be there and not here. */
  certain: boolean;
  withdrawn: boolean;
  /** For each month the first and the last number. */
  readonly spans: Map<string, { readonly from: number; readonly to: number }>;
}

/** What `begin` gives for one batch. */
export interface Charging {
  readonly bucket: Bucket;
  readonly startedAt: number;
}

interface StoredEvent {
  readonly to: number;
  readonly at: number;
  readonly counts: readonly UsageCount[];
}

/**
 * Events of charges lie in the partition of the charges, written by the batch that they tell of. For each
 * minute and partner a row in the outbox says so; it goes when all of the minute was published. The events
 * themselves stay until they were folded, so that a read can add what is on its way.
 */
export class ChargeEvents {
  readonly #session: Session;
  readonly #blobs: Blobs;
  readonly #outbox: Outbox;
  readonly #consumption: Consumption;
  readonly #writer: string;
  readonly #buckets = new Map<string, Bucket>();
  #minute = 0;

  constructor(session: Session, blobs: Blobs, outbox: Outbox, consumption: Consumption, writer: string) {
    this.#session = session;
    this.#blobs = blobs;
    this.#outbox = outbox;
    this.#consumption = consumption;
    this.#writer = writer;
  }

  /** Resolves when a sweep would find what the next batch writes. */
  async begin(partnerId: string): Promise<Charging> {
    const startedAt = Date.now();
    // Never back, whatever the clock does: a minute that was withdrawn is not written into again.
    this.#minute = Math.max(this.#minute, minuteOf(startedAt));
    const bucket = this.#bucketOf(this.#minute, { partnerId, writer: this.#writer });
    bucket.inFlight += 1;
    try {
      await bucket.announced;
    } catch (error) {
      bucket.inFlight -= 1;
      this.#buckets.delete(nameOf(bucket));
      throw error;
    }
    return { bucket, startedAt };
  }

  /** To be called right before the batch. */
  assertTimely({ startedAt }: Charging): void {
    if (!isTimely(startedAt)) throw storeUnavailable();
  }

  insertion({ bucket }: Charging, { data, at }: UsageEvent): Statement {
    const item = `${prefixOf(bucket)}${data.source.slice(-7)}/${String(data.from).padStart(10, '0')}`;
    const stored: StoredEvent = { to: data.to, at, counts: data.counts };
    return {
      query: INSERT,
      params: [data.partnerId, item, this.#blobs.encode(item, stored), SWEPT_TTL_SECONDS],
    };
  }

  /** The batch is in: its events wait from now on. */
  charged({ bucket }: Charging, events: readonly UsageEvent[]): void {
    for (const event of events) this.#hold(bucket, event);
  }

  /** After the last attempt. @param certain whether it is known what became of it */
  end({ bucket }: Charging, certain: boolean): void {
    bucket.inFlight -= 1;
    if (!certain) bucket.certain = false;
  }

  /** The sweep's: what another writer, or a batch of unknown outcome, left of a minute that is over. */
  async adopt(minute: number, charges: Charges): Promise<Seen> {
    const known = this.#buckets.get(nameOf({ minute, ...charges }));
    if (known !== undefined && (known.certain || known.inFlight > 0)) return 'kept';
    const bucket = known ?? this.#bucketOf(minute, charges, Promise.resolve());
    // Until all of it was read: what a failure leaves unread must not look as if it were done.
    bucket.certain = false;
    const prefix = prefixOf(bucket);
    for (let after = prefix, more = true; more; ) {
      // Settled: a batch that hangs between two replicas either shows here or will never be.
      const rows = await this.#session
        .settled()
        .rows(OF_WRITER, [charges.partnerId, after, endOf(prefix), PAGE]);
      for (const row of rows)
        this.#hold(bucket, this.#eventOf(charges.partnerId, textIn(row, 'item')!, row['event']));
      more = rows.length === PAGE;
      if (more) after = textIn(rows.at(-1)!, 'item')!;
    }
    bucket.certain = true;
    if (bucket.waiting > 0) return 'kept';
    await this.#withdraw(bucket);
    return 'gone';
  }

  /** Removes what was published and folded, of minutes that are over. */
  async tidy(now: number): Promise<void> {
    const asked = new Map<string, Promise<Spans>>();
    const failures: unknown[] = [];
    this.#minute = Math.max(this.#minute, minuteOf(now));
    for (const [name, bucket] of this.#buckets) {
      if (bucket.minute >= this.#minute) continue;
      // Another's sweep may have taken the row by which this one's would come here.
      if (!bucket.certain && bucket.inFlight === 0 && bucket.minute + KEEP_MINUTES < minuteOf(now)) {
        await this.adopt(bucket.minute, bucket).catch((error: unknown) => failures.push(error));
      }
      if (bucket.inFlight > 0 || bucket.waiting > 0 || !bucket.certain) continue;
      if (!bucket.withdrawn) await this.#withdraw(bucket);
      if (bucket.minute + KEEP_MINUTES >= minuteOf(now)) continue;
      if (
        asked.size >= ASKED &&
        ![...bucket.spans.keys()].every((month) => asked.has(`${month} ${bucket.partnerId}`))
      )
        continue;
      if (await this.#isFolded(bucket, asked)) {
        const prefix = prefixOf(bucket);
        await this.#session.write(REMOVE, [now * 1000, bucket.partnerId, prefix, endOf(prefix)]);
        this.#buckets.delete(name);
      }
    }
    for (const [name, { withdrawn }] of this.#buckets) {
      if (this.#buckets.size <= REMEMBERED) break;
      if (withdrawn) this.#buckets.delete(name);
    }
    if (failures.length > 0) throw failures[0];
  }

  /**
   * Events of a month's charges that are still there, newest first.
   * @param upTo the month's count: what came later is not looked at
   */
  async *onTheirWay(partnerId: string, month: string, upTo: number): AsyncGenerator<UsageEvent> {
    for (let before = 'event0'; ; ) {
      const rows = await this.#session.rows(NEWEST, [partnerId, before, PAGE]);
      for (const row of rows) {
        const event = this.#eventOf(partnerId, textIn(row, 'item')!, row['event']);
        if (event.data.source.endsWith(month) && event.data.to <= upTo) yield event;
      }
      if (rows.length < PAGE) return;
      before = textIn(rows.at(-1)!, 'item')!;
    }
  }

  #bucketOf(minute: number, { partnerId, writer }: Charges, announced?: Promise<void>): Bucket {
    const name = nameOf({ minute, partnerId, writer });
    let bucket = this.#buckets.get(name);
    if (bucket === undefined) {
      bucket = {
        minute,
        partnerId,
        writer,
        announced: announced ?? this.#outbox.announceCharges(minute, { partnerId, writer }),
        inFlight: 0,
        waiting: 0,
        certain: true,
        withdrawn: false,
        spans: new Map(),
      };
      this.#buckets.set(name, bucket);
    }
    return bucket;
  }

  #hold(bucket: Bucket, event: UsageEvent): void {
    const held = this.#outbox.hold(event, async () => {
      bucket.waiting -= 1;
    });
    if (!held) return;
    bucket.waiting += 1;
    const month = event.data.source.slice(-7);
    const span = bucket.spans.get(month);
    bucket.spans.set(month, {
      from: Math.min(span?.from ?? event.data.from, event.data.from),
      to: Math.max(span?.to ?? 0, event.data.to),
    });
  }

  async #withdraw(bucket: Bucket): Promise<void> {
    await this.#outbox.withdrawCharges(bucket.minute, bucket);
    bucket.withdrawn = true;
  }

  async #isFolded({ partnerId, spans }: Bucket, asked: Map<string, Promise<Spans>>): Promise<boolean> {
    for (const [month, { from, to }] of spans) {
      const name = `${month} ${partnerId}`;
      const billed =
        asked.get(name) ?? this.#consumption.read(partnerId, month).then((folded) => folded.billed);
      asked.set(name, billed);
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

/** Items of a writer's minute begin with it. */
function prefixOf({ minute, writer }: Bucket): string {
  return `event/${String(minute).padStart(9, '0')}/${writer}/`;
}

/** `0` sorts behind the `/` at the end of a prefix. */
function endOf(prefix: string): string {
  return `${prefix.slice(0, -1)}0`;
}
