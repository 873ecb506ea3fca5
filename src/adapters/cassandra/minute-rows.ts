import { createHash } from 'node:crypto';
import type { Session } from './session.js';

const MINUTE_MS = 60_000;
const SHARDS = 8;
/** A month: longer than any outage after which a cluster comes back with its data. */
export const SWEPT_TTL_SECONDS = 30 * 24 * 3_600;
/** No decision is begun later than this after its row. */
const DECIDE_WITHIN_MS = 60_000;
/** From then on nobody is still at it: past the last moment to decide, every timeout of driver and server, and some skew of clocks. */
const ABANDONED_MS = 2 * MINUTE_MS;
/** Minutes that are looked at again although they were seen to: processes whose clocks are behind write into them. */
const LOOK_BACK_MINUTES = 10;
const MINUTES_AT_ONCE = 240;
const PAGE = 1_000;
/** Of one sweep: a store that does not answer fails at every row. */
const MAX_FAILURES = 20;

const POSITION = 'SELECT minute FROM intent_position WHERE name = ?';
const SET_POSITION = 'INSERT INTO intent_position (name, minute) VALUES (?, ?)';

export interface MinuteRow {
  readonly minute: number;
  readonly id: string;
  readonly data: Buffer;
}

/** What became of a row: it is gone, it stays and must be looked at again, or there is no room for it and what follows. */
export type Seen = 'gone' | 'kept' | 'no_room';

/**
 * Rows that processes leave for the sweep of any other, by the minute in which they were written: a minute is read some times and
 * then, behind the position, never again, so that nothing scans what has been deleted.
 */
export class MinuteRows {
  readonly #session: Session;
  readonly #position: string;
  readonly #insert: string;
  readonly #delete: string;
  readonly #page: string;

  constructor(session: Session, { table, key, position }: { readonly table: string; readonly key: string; readonly position: string }) {
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
    if ((await this.#readPosition()) === undefined) await this.#session.write(SET_POSITION, [this.#position, minuteOf(now) - LOOK_BACK_MINUTES]);
  }

  /**
   * Shows the rows of all minutes that are old enough, oldest first, and moves the position up to the first one that is kept. One
   * that fails is kept, and the others are seen to all the same.
   * @returns how many rows were seen to
   * @throws what the first of those that failed threw, at the end
   */
  async sweep(now: number, see: (row: MinuteRow) => Promise<Seen>): Promise<number> {
    const first = (await this.#readPosition()) ?? minuteOf(now) - LOOK_BACK_MINUTES;
    const end = Math.min(minuteOf(now - ABANDONED_MS), first + MINUTES_AT_ONCE);
    let next = Math.min(end, minuteOf(now) - LOOK_BACK_MINUTES);
    let gone = 0;
    const failures: unknown[] = [];
    sweeping: for (let minute = first; minute < end; minute++) {
      const shards = await Promise.all(Array.from({ length: SHARDS }, (_, shard) => this.#rowsOf(minute, shard, '')));
      for (const [shard, page] of shards.entries()) {
        for (let rows = page; rows.length > 0; rows = rows.length < PAGE ? [] : await this.#rowsOf(minute, shard, rows.at(-1)!.id)) {
          for (const row of rows) {
            const seen = await see(row).catch((error: unknown): Seen => {
              failures.push(error);
              return failures.length < MAX_FAILURES ? 'kept' : 'no_room';
            });
            if (seen === 'gone') gone += 1;
            else next = Math.min(next, minute);
            if (seen === 'no_room') break sweeping;
          }
        }
      }
    }
    if (next > first) await this.#session.write(SET_POSITION, [this.#position, next]);
    if (failures.length > 0) throw failures[0];
    return gone;
  }

  async #rowsOf(minute: number, shard: number, after: string): Promise<readonly MinuteRow[]> {
    return (await this.#session.rows(this.#page, [minute, shard, after])).map((row) => ({ minute, id: row['id'] as string, data: row['data'] as Buffer }));
  }

  async #readPosition(): Promise<number | undefined> {
    return (await this.#session.first(POSITION, [this.#position]))?.['minute'] as number | undefined;
  }
}

/** @param now milliseconds since the epoch */
export function minuteOf(now: number): number {
  return Math.floor(now / MINUTE_MS);
}

/** Whether what began then may still be decided: a process that was stopped in between must not decide what the sweep has dropped. */
export function isTimely(startedAt: number): boolean {
  return Date.now() - startedAt <= DECIDE_WITHIN_MS;
}

function shardOf(id: string): number {
  return createHash('sha256').update(id).digest()[0]! % SHARDS;
}
