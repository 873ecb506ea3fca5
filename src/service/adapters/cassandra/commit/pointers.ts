import { isRecordDamaged } from '../../../../core/domain/errors.js';
import type { ClockWatch } from '../driver/clock-watch.js';
import type { Session } from '../driver/session.js';
import { openFrom, planPass, pointerBucketOf, SHARDS, shardOf } from './time-bucket.js';
import { Watermark } from './watermark.js';

/** The life of a row in seconds: 30 days, longer than any outage after which a cluster comes back with its data. */
export const ROW_TTL_SECONDS = 30 * 24 * 3600;
/**
 * The time in milliseconds within which a pointer must be written, or it is written again. Passes revisit a time
 * bucket for longer than this time.
 */
const PUT_WITHIN_MS = 60_000;
/** The number of time buckets after which a long pass, as after a long outage, stores its watermark. */
const STORE_EVERY = 240;
/** The number of time buckets that are read at once. After a long outage nearly all of them are empty. */
const READ_AHEAD = 16;
/** The most pointers of a shard that are read at once. Those of all shards fit into one page of the driver. */
const PAGE = 500;
/** The number of failures in a row that ends a pass. A store that does not answer fails at every row. */
const MAX_FAILURES = 20;

const INSERT =
  'INSERT INTO pointer (bucket, shard, op, kind, key, data) VALUES (?, ?, ?, ?, ?, ?) USING TTL ?';
const DELETE = 'DELETE FROM pointer WHERE bucket = ? AND shard = ? AND op = ?';
// With a limit that a page of the driver holds the server reads all shards at once; with pages, one after the other.
const SELECT = `SELECT shard, op, kind, key, data FROM pointer WHERE bucket = ? AND shard IN ? AND op > ?
  PER PARTITION LIMIT ${PAGE} LIMIT ${SHARDS * PAGE}`;
const ALL_SHARDS = Array.from({ length: SHARDS }, (_, shard) => shard);

/** A pointer to a partition in which something may be left to do. */
export interface Pointer {
  /** The time bucket of the pointer. */
  readonly bucket: number;
  /** The id of the operation, which is the key of the pointer. */
  readonly op: string;
  readonly kind: string;
  /** The key of the partition in which the operation is decided. */
  readonly key: string;
  /** The content, if no other row has it. */
  readonly data?: Buffer;
}

/** The outcome of a visit: `removed` if nothing is left to do, `stays` if the pointer must be visited again. */
export type Visited = 'removed' | 'stays';
type Visit = (pointer: Pointer) => Promise<Visited>;

/** The first pointers of each shard of a time bucket that has any. */
type FirstPages = ReadonlyMap<number, readonly Pointer[]>;

/** A pass on its way. */
interface Pass {
  removed: number;
  readonly failures: unknown[];
  failuresInARow: number;
  hasGivenUp: boolean;
}

/**
 * Pointers that processes leave for each other, in buckets by the time of their write. A pointer is written before
 * its operation is decided, and has no content: the remaining steps follow from the rows in which the operation was
 * decided. A time bucket is read several times. Once the watermark has passed it, it is never read again, so that no
 * read scans deleted rows.
 */
export class Pointers {
  readonly #session: Session;
  readonly #clocks: Pick<ClockWatch, 'now'>;
  readonly #watermark: Watermark;
  readonly #visits = new Map<string, Visit>();
  /** The first time bucket that this process has not visited. */
  #nextFresh = 0;
  /** The visited time buckets in which pointers stayed. The one that was visited longest ago is first. */
  readonly #unfinished = new Set<number>();

  constructor(session: Session, clocks: Pick<ClockWatch, 'now'>) {
    this.#session = session;
    this.#clocks = clocks;
    this.#watermark = new Watermark(session, 'pointers');
  }

  /**
   * Returns the time of this process in milliseconds since the epoch, for a step that acts by the age of rows.
   * @throws DomainError `unavailable` / `store_unavailable` while this process's clock is wrong
   */
  now(): number {
    return this.#clocks.now();
  }

  /** Registers how pointers of a kind are visited, by the sweep of any process. */
  onVisit(kind: string, visit: Visit): void {
    this.#visits.set(kind, visit);
  }

  /**
   * Writes a pointer into the present time bucket.
   * @throws DomainError `unavailable` / `store_unavailable` if no sweep would visit the time bucket of a wrong clock
   */
  async put(op: string, kind: string, key: string, data?: Buffer): Promise<Pointer> {
    for (;;) {
      const begun = performance.now();
      const wallBegun = this.now();
      const pointer: Pointer = { bucket: pointerBucketOf(wallBegun), op, kind, key };
      await this.putInto(pointer, data);
      // A process that was paused in between may have written into a bucket that the watermark has passed. If its whole
      // machine was paused, its monotonic clock may not have advanced.
      const took = Math.max(performance.now() - begun, Date.now() - wallBegun);
      if (took <= PUT_WITHIN_MS) return pointer;
    }
  }

  /** Writes a pointer into a time bucket of its own; a later one is visited when it has come. */
  async putInto({ bucket, op, kind, key }: Pointer, data?: Buffer): Promise<void> {
    await this.#session.write(INSERT, [bucket, shardOf(op, SHARDS), op, kind, key, data, ROW_TTL_SECONDS]);
  }

  async remove({ bucket, op }: Pick<Pointer, 'bucket' | 'op'>): Promise<void> {
    await this.#session.write(DELETE, [bucket, shardOf(op, SHARDS), op]);
  }

  /** Sets the watermark where there is none, so that the first pass of any process begins here. */
  async start(now: number): Promise<void> {
    if ((await this.#watermark.read()) === undefined) await this.#watermark.write(openFrom(now));
  }

  /**
   * Visits the pointers of all time buckets that `planPass` names, and moves the watermark up to the first one
   * in which a pointer stays. A pointer whose visit fails stays, and holds up none of the others. Two processes
   * that sweep at once do the same twice, which is harmless.
   * @returns how many pointers were removed
   * @throws the first failure of a visit, at the end
   */
  async sweep(now: number): Promise<number> {
    const watermark = (await this.#watermark.read()) ?? openFrom(now);
    for (const timeBucket of this.#unfinished)
      if (timeBucket < watermark) this.#unfinished.delete(timeBucket);
    const plan = planPass({ watermark, nextFresh: this.#nextFresh, unfinished: [...this.#unfinished] }, now);
    const pass: Pass = { removed: 0, failures: [], failuresInARow: 0, hasGivenUp: false };
    let stored = watermark;
    const store = async (): Promise<void> => {
      const reached = Math.min(this.#nextFresh, ...this.#unfinished);
      if (reached <= stored) return;
      stored = reached;
      await this.#watermark.write(reached);
    };
    let ahead: readonly FirstPages[] = [];
    for (const [i, timeBucket] of plan.fresh.entries()) {
      if (pass.hasGivenUp) break;
      if (i % READ_AHEAD === 0)
        ahead = await Promise.all(
          plan.fresh.slice(i, i + READ_AHEAD).map((each) => this.#readPages(each, ALL_SHARDS, '')),
        );
      await this.#visitTimeBucket(timeBucket, ahead[i % READ_AHEAD]!, pass);
      // A failed pointer is among the unfinished ones, and later pointers do not wait for it.
      this.#nextFresh = Math.min(timeBucket + 1, openFrom(now));
      if (i % STORE_EVERY === STORE_EVERY - 1) await store();
    }
    for (const timeBucket of plan.revisits)
      if (!pass.hasGivenUp)
        await this.#visitTimeBucket(timeBucket, await this.#readPages(timeBucket, ALL_SHARDS, ''), pass);
    await store();
    if (pass.failures.length > 0) throw pass.failures[0];
    return pass.removed;
  }

  async #visitTimeBucket(timeBucket: number, firstPages: FirstPages, pass: Pass): Promise<void> {
    let hasLeft = false;
    // Unfinished until all of its pointers were visited, and at the end of the queue.
    this.#unfinished.delete(timeBucket);
    this.#unfinished.add(timeBucket);
    for (const [shard, firstPage] of firstPages) {
      let page: readonly Pointer[] | undefined = firstPage;
      while (page !== undefined) {
        for (const pointer of page) {
          if ((await this.#visit(pointer, pass)) === 'removed') pass.removed += 1;
          else hasLeft = true;
          if (pass.hasGivenUp) return;
        }
        if (page.length < PAGE) break;
        page = (await this.#readPages(timeBucket, [shard], page.at(-1)!.op)).get(shard);
      }
    }
    if (!hasLeft) this.#unfinished.delete(timeBucket);
  }

  async #visit(pointer: Pointer, pass: Pass): Promise<Visited> {
    try {
      // A kind of a newer version is left to a process of that version.
      const visited = (await this.#visits.get(pointer.kind)?.(pointer)) ?? 'stays';
      // The removal is awaited, because no sweep looks again once the watermark has passed.
      if (visited === 'removed') await this.remove(pointer);
      pass.failuresInARow = 0;
      return visited;
    } catch (error) {
      pass.failures.push(error);
      // Damage is of one pointer, and says nothing of the next one.
      if (isRecordDamaged(error)) return 'stays';
      pass.failuresInARow += 1;
      if (pass.failuresInARow === MAX_FAILURES) pass.hasGivenUp = true;
      return 'stays';
    }
  }

  /** Reads a page of each shard, after an operation id. */
  async #readPages(bucket: number, shards: readonly number[], after: string): Promise<FirstPages> {
    const pages = new Map<number, Pointer[]>();
    for (const row of await this.#session.rows(SELECT, [bucket, shards, after])) {
      const data = row['data'] as Buffer | null;
      const pointer = {
        bucket,
        op: row['op'] as string,
        kind: row['kind'] as string,
        key: row['key'] as string,
      };
      const shard = row['shard'] as number;
      const page = pages.get(shard) ?? [];
      page.push(data === null ? pointer : { ...pointer, data });
      pages.set(shard, page);
    }
    return pages;
  }
}
