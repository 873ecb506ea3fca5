import { createHash } from 'node:crypto';
import type { Session } from '../driver/session.js';

const MINUTE_MS = 60_000;
export const SHARDS = 8;
/** A month: longer than any outage after which a cluster comes back with its data. */
export const SWEPT_TTL_SECONDS = 30 * 24 * 3600;
/** No decision is begun later than this after its row. */
const DECIDE_WITHIN_MS = 60_000;
/**
 * From then on nobody is still at it: past the last moment to decide, every timeout of driver and server, and
 * some skew of clocks.
 */
const ABANDONED_MS = 2 * MINUTE_MS;
/**
 * Minutes that are looked at again although they were seen to: processes whose clocks are behind write into
 * them.
 */
const LOOK_BACK_MINUTES = 10;
/** Of a long way, after a long outage. */
const STORE_EVERY_MINUTES = 240;
const PAGE = 1000;
/** Minutes in which something stays, of one sweep. */
const KEPT_AT_ONCE = 60;
/** One after the other: a store that does not answer fails at every row. */
const MAX_FAILURES = 20;

const POSITION = 'SELECT minute FROM intent_position WHERE name = ?';
const SET_POSITION = 'INSERT INTO intent_position (name, minute) VALUES (?, ?)';

export interface MinuteRow {
  readonly minute: number;
  readonly id: string;
  readonly data: Buffer;
}

/**
 * What became of a row: it is gone, it stays and must be looked at again, or there is no room for it and what
 * follows.
 */
export type Seen = 'gone' | 'kept' | 'no_room';

/** One sweep on its way. */
interface Sweep {
  readonly see: (row: MinuteRow) => Promise<Seen>;
  gone: number;
  readonly failures: unknown[];
  inARow: number;
  /** Why it goes no further. */
  over: 'no_room' | 'failures' | undefined;
}

/**
 * Rows that processes leave for the sweep of any other, by the minute in which they were written: a minute is
 * read some times and then, behind the position, never again, so that nothing scans what has been deleted.
 */
export class MinuteRows {
  readonly #session: Session;
  readonly #position: string;
  readonly #insert: string;
  readonly #delete: string;
  readonly #page: string;
  /** All minutes before it were seen to by this process, some but for rows that stay. */
  #next = 0;
  /** Those, the one first that was looked at longest ago. */
  readonly #kept = new Set<number>();

  constructor(
    session: Session,
    { table, key, position }: { readonly table: string; readonly key: string; readonly position: string },
  ) {
    this.#session = session;
    this.#position = position;
    this.#insert = `INSERT INTO ${table} (minute, shard, ${key}, data) VALUES (?, ?, ?, ?) USING TTL ?`;
    this.#delete = `DELETE FROM ${table} WHERE minute = ? AND shard = ? AND ${key} = ?`;
    this.#page = `SELECT ${key} AS id, data FROM ${table} WHERE minute = ? AND shard = ? AND ${key} > ? LIMIT ${PAGE}`;
  }

  async put(minute: number, id: string, data: Buffer): Promise<void> {
    await this.#session.write(this.#insert, [minute, shardOf(id), id, data, SWEPT_TTL_SECONDS]);
  }

  async remove(minute: number, id: string): Promise<void> {
    await this.#session.write(this.#delete, [minute, shardOf(id), id]);
  }

  /** From then on the sweep begins here. */
  async start(now: number): Promise<void> {
    if ((await this.#readPosition()) === undefined)
      await this.#session.write(SET_POSITION, [this.#position, minuteOf(now) - LOOK_BACK_MINUTES]);
  }

  /**
   * Shows the rows of minutes that are old enough, oldest first, then those in which something stayed, and
   * moves the position up to the first that is kept. One that fails is kept, and keeps none of the others.
   * @returns how many rows were seen to
   * @throws what the first of those that failed threw, at the end
   */
  async sweep(now: number, see: (row: MinuteRow) => Promise<Seen>): Promise<number> {
    const seenTo = minuteOf(now) - LOOK_BACK_MINUTES;
    const position = (await this.#readPosition()) ?? seenTo;
    for (const minute of this.#kept) if (minute < position) this.#kept.delete(minute);
    const first = Math.max(position, this.#next);
    const end = minuteOf(now - ABANDONED_MS);
    const again = [...this.#kept].filter((minute) => minute < first).slice(0, KEPT_AT_ONCE);
    const sweep: Sweep = { see, gone: 0, failures: [], inARow: 0, over: undefined };
    let stored = position;
    const store = async (): Promise<void> => {
      const next = Math.min(this.#next, ...this.#kept);
      if (next <= stored) return;
      stored = next;
      await this.#session.write(SET_POSITION, [this.#position, next]);
    };
    for (let minute = first; minute < end && sweep.over === undefined; minute += 1) {
      await this.#seeMinute(minute, sweep);
      // What failed is among the kept, and what comes behind it does not wait.
      if (sweep.over !== 'no_room') this.#next = Math.min(minute + 1, seenTo);
      if ((minute - first) % STORE_EVERY_MINUTES === STORE_EVERY_MINUTES - 1) await store();
    }
    for (const minute of again) if (sweep.over === undefined) await this.#seeMinute(minute, sweep);
    await store();
    if (sweep.failures.length > 0) throw sweep.failures[0];
    return sweep.gone;
  }

  async #seeMinute(minute: number, sweep: Sweep): Promise<void> {
    let stays = false;
    const shards = await Promise.all(
      Array.from({ length: SHARDS }, (_, shard) => this.#rowsOf(minute, shard, '')),
    );
    // Until all of it was seen.
    this.#kept.delete(minute);
    this.#kept.add(minute);
    for (const [shard, page] of shards.entries()) {
      for (
        let rows = page;
        rows.length > 0;
        rows = rows.length < PAGE ? [] : await this.#rowsOf(minute, shard, rows.at(-1)!.id)
      ) {
        for (const row of rows) {
          const seen = await this.#seeRow(row, sweep);
          if (seen === 'gone') sweep.gone += 1;
          else stays = true;
          if (sweep.over !== undefined) return;
        }
      }
    }
    if (!stays) this.#kept.delete(minute);
  }

  async #seeRow(row: MinuteRow, sweep: Sweep): Promise<Seen> {
    try {
      const seen = await sweep.see(row);
      sweep.inARow = 0;
      if (seen === 'no_room') sweep.over = seen;
      return seen;
    } catch (error) {
      sweep.failures.push(error);
      sweep.inARow += 1;
      if (sweep.inARow === MAX_FAILURES) sweep.over = 'failures';
      return 'kept';
    }
  }

  async #rowsOf(minute: number, shard: number, after: string): Promise<readonly MinuteRow[]> {
    return (await this.#session.rows(this.#page, [minute, shard, after])).map((row) => ({
      minute,
      id: row['id'] as string,
      data: row['data'] as Buffer,
    }));
  }

  async #readPosition(): Promise<number | undefined> {
    return (await this.#session.first(POSITION, [this.#position]))?.['minute'] as number | undefined;
  }
}

/** @param now milliseconds since the epoch */
export function minuteOf(now: number): number {
  return Math.floor(now / MINUTE_MS);
}

/**
 * Whether what began then may still be decided: a process that was stopped in between must not decide what
 * the sweep has dropped.
 */
export function isTimely(startedAt: number): boolean {
  return Date.now() - startedAt <= DECIDE_WITHIN_MS;
}

export function shardOf(id: string): number {
  return createHash('sha256').update(id).digest()[0]! % SHARDS;
}
