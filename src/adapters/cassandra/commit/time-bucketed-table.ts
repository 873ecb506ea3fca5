import type { Session } from '../driver/session.js';
import { openFrom, planPass, SHARDS, shardOf } from './time-bucket.js';
import { Watermark } from './watermark.js';

/** Life of a row: a month, longer than any outage after which a cluster comes back with its data. */
export const ROW_TTL_SECONDS = 30 * 24 * 3600;
/** Time buckets after which a pass over a long way, as after a long outage, stores its watermark. */
const STORE_EVERY = 240;
const PAGE = 1000;
/** Failures in a row that end a pass: a store that does not answer fails at every row. */
const MAX_FAILURES = 20;

export interface TimeBucketedRow {
  readonly timeBucket: number;
  readonly id: string;
  readonly data: Buffer;
}

/**
 * Outcome of a visit of a row. `removed`: it is gone. `stays`: it must be visited again. `no_capacity`: the
 * process can take neither this row nor any that follows.
 */
export type Visited = 'removed' | 'stays' | 'no_capacity';

/** A pass on its way. */
interface Pass {
  readonly visit: (row: TimeBucketedRow) => Promise<Visited>;
  removed: number;
  readonly failures: unknown[];
  failuresInARow: number;
  /** Why the pass goes no further. */
  endedBy: 'no_capacity' | 'failures' | undefined;
}

/**
 * A table of rows that processes leave for each other, in time buckets of the minute in which they were
 * written. A time bucket is read some times and then, behind the watermark, never again, so that nothing
 * scans what has been deleted.
 */
export class TimeBucketedTable {
  readonly #session: Session;
  readonly #watermark: Watermark;
  readonly #insert: string;
  readonly #delete: string;
  readonly #select: string;
  /** The first time bucket that this process has not visited. */
  #nextFresh = 0;
  /** Visited time buckets in which rows stayed, the one that was visited longest ago first. */
  readonly #unfinished = new Set<number>();

  constructor(
    session: Session,
    { table, key, watermark }: { readonly table: string; readonly key: string; readonly watermark: string },
  ) {
    this.#session = session;
    this.#watermark = new Watermark(session, watermark);
    this.#insert = `INSERT INTO ${table} (minute, shard, ${key}, data) VALUES (?, ?, ?, ?) USING TTL ?`;
    this.#delete = `DELETE FROM ${table} WHERE minute = ? AND shard = ? AND ${key} = ?`;
    this.#select = `SELECT ${key} AS id, data FROM ${table} WHERE minute = ? AND shard = ? AND ${key} > ? LIMIT ${PAGE}`;
  }

  async put(timeBucket: number, id: string, data: Buffer): Promise<void> {
    await this.#session.write(this.#insert, [timeBucket, shardOf(id), id, data, ROW_TTL_SECONDS]);
  }

  async remove(timeBucket: number, id: string): Promise<void> {
    await this.#session.write(this.#delete, [timeBucket, shardOf(id), id]);
  }

  /** Sets the watermark where there is none, so that the first pass of any process begins here. */
  async start(now: number): Promise<void> {
    if ((await this.#watermark.read()) === undefined) await this.#watermark.write(openFrom(now));
  }

  /**
   * Visits the rows of all time buckets that `planPass` names, and moves the watermark up to the first one in
   * which a row stays. A row whose visit fails stays, and holds up none of the others.
   * @returns how many rows were removed
   * @throws the first failure of a visit, at the end
   */
  async visitRows(now: number, visit: Pass['visit']): Promise<number> {
    const watermark = (await this.#watermark.read()) ?? openFrom(now);
    for (const timeBucket of this.#unfinished)
      if (timeBucket < watermark) this.#unfinished.delete(timeBucket);
    const plan = planPass({ watermark, nextFresh: this.#nextFresh, unfinished: [...this.#unfinished] }, now);
    const pass: Pass = { visit, removed: 0, failures: [], failuresInARow: 0, endedBy: undefined };
    let stored = watermark;
    const store = async (): Promise<void> => {
      const reached = Math.min(this.#nextFresh, ...this.#unfinished);
      if (reached <= stored) return;
      stored = reached;
      await this.#watermark.write(reached);
    };
    for (const [i, timeBucket] of plan.fresh.entries()) {
      if (pass.endedBy !== undefined) break;
      await this.#visitTimeBucket(timeBucket, pass);
      // A failed row is among the unfinished, and the rows behind it do not wait.
      if (pass.endedBy !== 'no_capacity') this.#nextFresh = Math.min(timeBucket + 1, openFrom(now));
      if (i % STORE_EVERY === STORE_EVERY - 1) await store();
    }
    for (const timeBucket of plan.revisits)
      if (pass.endedBy === undefined) await this.#visitTimeBucket(timeBucket, pass);
    await store();
    if (pass.failures.length > 0) throw pass.failures[0];
    return pass.removed;
  }

  async #visitTimeBucket(timeBucket: number, pass: Pass): Promise<void> {
    let hasLeft = false;
    const firstPages = await Promise.all(
      Array.from({ length: SHARDS }, (_, shard) => this.#readPage(timeBucket, shard, '')),
    );
    // Unfinished until all of its rows were visited, and at the end of the queue.
    this.#unfinished.delete(timeBucket);
    this.#unfinished.add(timeBucket);
    for (const [shard, firstPage] of firstPages.entries()) {
      for (
        let rows = firstPage;
        rows.length > 0;
        rows = rows.length < PAGE ? [] : await this.#readPage(timeBucket, shard, rows.at(-1)!.id)
      ) {
        for (const row of rows) {
          if ((await this.#visitRow(row, pass)) === 'removed') pass.removed += 1;
          else hasLeft = true;
          if (pass.endedBy !== undefined) return;
        }
      }
    }
    if (!hasLeft) this.#unfinished.delete(timeBucket);
  }

  async #visitRow(row: TimeBucketedRow, pass: Pass): Promise<Visited> {
    try {
      const visited = await pass.visit(row);
      pass.failuresInARow = 0;
      if (visited === 'no_capacity') pass.endedBy = visited;
      return visited;
    } catch (error) {
      pass.failures.push(error);
      pass.failuresInARow += 1;
      if (pass.failuresInARow === MAX_FAILURES) pass.endedBy = 'failures';
      return 'stays';
    }
  }

  async #readPage(timeBucket: number, shard: number, after: string): Promise<readonly TimeBucketedRow[]> {
    return (await this.#session.rows(this.#select, [timeBucket, shard, after])).map((row) => ({
      timeBucket,
      id: row['id'] as string,
      data: row['data'] as Buffer,
    }));
  }
}
