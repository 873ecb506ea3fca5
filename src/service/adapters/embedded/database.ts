import { dirname, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { ClassicLevel } from 'classic-level';
import { defined } from '../../../core/domain/defined.js';
import { DomainError } from '../../../core/domain/errors.js';
import { syncDirectory } from '../../../core/files/durable.js';
import { makeDirectory } from '../../../core/files/make-directory.js';
import type { KeyRange } from './keys.js';
import { checkDirectory } from './log-check.js';
import { StoreOpenError } from './open-error.js';

/** The new rows by key, without a key twice. Null removes the row. */
export type Writes = Iterable<readonly [key: string, row: Uint8Array | null]>;

/**
 * The size of the write buffer in bytes, larger than LevelDB's default for fewer compactions under load. A log of
 * this size is read back in well under a second.
 */
const WRITE_BUFFER_BYTES = 16 * 1024 * 1024;
const CACHE_BYTES = 32 * 1024 * 1024;
const REOPEN_DELAY_MS = 250;
/** The rows of a page of a snapshot, and the bytes after which a page ends. */
const SNAPSHOT_ROWS = 256;
const SNAPSHOT_BYTES = 256 * 1024;

/**
 * A LevelDB database in one directory, owned by this process. Rows that `get` and `scan` see are on disk: LevelDB
 * shows a batch only after its log was synced.
 */
export class Database {
  readonly #level: ClassicLevel<string, Uint8Array>;
  #reopening: Promise<void> | undefined;
  readonly #closing = new AbortController();
  #snapshots = 0;

  private constructor(level: ClassicLevel<string, Uint8Array>) {
    this.#level = level;
  }

  /** @throws StoreOpenError */
  static async open(directory: string): Promise<Database> {
    try {
      await makeDirectory(directory);
      await checkDirectory(directory);
      const level = new ClassicLevel<string, Uint8Array>(directory, {
        keyEncoding: 'utf8',
        valueEncoding: 'view',
        writeBufferSize: WRITE_BUFFER_BYTES,
        cacheSize: CACHE_BYTES,
      });
      await level.open();
      // LevelDB syncs its files but not a new directory, which a power cut would lose.
      await syncDirectory(directory);
      await syncDirectory(dirname(resolve(directory)));
      return new Database(level);
    } catch (error) {
      if (error instanceof StoreOpenError) throw error;
      const { code } = causeOf(error);
      if (code === 'LEVEL_LOCKED') {
        throw new StoreOpenError(
          'in_use',
          `The store in ${directory} is in use by another process. Only one process at a time can use it.`,
          error,
        );
      }
      if (code === 'LEVEL_CORRUPTION')
        throw new StoreOpenError(
          'damaged',
          `The store in ${directory} is damaged: ${causeOf(error).message}`,
          error,
        );
      throw new StoreOpenError(
        'io_failed',
        `The store in ${directory} could not be opened: ${causeOf(error).message}`,
        error,
      );
    }
  }

  /**
   * Reports whether a batch failed and LevelDB is not open anew yet. Opened anew, LevelDB may find the batch in its
   * log.
   */
  get isReopening(): boolean {
    return this.#reopening !== undefined;
  }

  /** @throws DomainError `unavailable` / `store_unavailable` */
  get(key: string): Uint8Array | undefined {
    try {
      return this.#level.getSync(key);
    } catch (error) {
      throw storeUnavailable(error);
    }
  }

  /** Returns the rows of keys, in the order of the keys. @throws as `get` */
  async getMany(keys: readonly string[]): Promise<readonly (Uint8Array | undefined)[]> {
    try {
      return await this.#level.getMany([...keys]);
    } catch (error) {
      throw storeUnavailable(error);
    }
  }

  /** Returns the rows of a range in key order, or in reverse order if `reverse` is set. @throws as `get` */
  async scan(
    range: KeyRange,
    options: { readonly limit?: number; readonly reverse?: boolean } = {},
  ): Promise<readonly (readonly [key: string, row: Uint8Array])[]> {
    try {
      return await this.#level
        .iterator({ ...range, limit: options.limit ?? -1, reverse: options.reverse ?? false })
        .all();
    } catch (error) {
      throw storeUnavailable(error);
    }
  }

  /** True while a snapshot holds former values of rows, which a compaction then leaves in the files. */
  get hasSnapshot(): boolean {
    return this.#snapshots > 0;
  }

  /**
   * Reads every row as it is at the call, in key order, while later writes go on.
   * @returns the pages, and a function that ends the reading. Call it in any case, also repeatedly.
   */
  snapshot(): {
    readonly pages: AsyncIterable<readonly (readonly [key: string, row: Uint8Array])[]>;
    readonly close: () => Promise<void>;
  } {
    // LevelDB takes the snapshot now, and not at the first read.
    const iterator = this.#level.iterator({ highWaterMarkBytes: SNAPSHOT_BYTES });
    this.#snapshots += 1;
    let closed: Promise<void> | undefined;
    const close = (): Promise<void> =>
      (closed ??= iterator.close().finally(() => {
        this.#snapshots -= 1;
      }));
    async function* pages() {
      try {
        for (;;) {
          const rows = await iterator.nextv(SNAPSHOT_ROWS);
          if (rows.length === 0) return;
          yield rows;
        }
      } catch (error) {
        throw storeUnavailable(error);
      } finally {
        await close();
      }
    }
    return { pages: pages(), close };
  }

  /**
   * Writes one atomic batch, which is on disk when the promise resolves. After a failure it is unknown
   * whether the batch is kept, and LevelDB must not be written to as it is: a record that was written in part
   * would hide the records after it, and a failed sync blocks LevelDB for good. So LevelDB is closed and
   * opened anew, which reads the log back up to the last whole batch. Until then every write is refused.
   * @throws as `get`
   */
  async write(writes: Writes): Promise<void> {
    if (this.#reopening !== undefined) throw storeUnavailable();
    try {
      // A chained batch: an array of operations costs three times as much here, because abstract-level copies
      // each of them.
      const batch = this.#level.batch();
      for (const [key, row] of writes) {
        if (row === null) batch.del(key);
        else batch.put(key, row);
      }
      await batch.write({ sync: true });
    } catch (error) {
      this.#reopening ??= this.#reopen().finally(() => {
        this.#reopening = undefined;
      });
      throw storeUnavailable(error);
    }
  }

  /**
   * Takes the former values of removed rows out of the files, where they would lie until a compaction happens
   * to come by. One compaction may put a row and its removal into the same file of the lowest level, and
   * leave the file as it is. A second removal ends above that file, and a second compaction merges the two.
   * @param keys keys of one kind of rows that are never written again
   * @throws as `get`
   */
  async shred(keys: readonly string[]): Promise<void> {
    const sorted = keys.toSorted();
    const compact = async () => {
      try {
        await this.#level.compactRange(sorted[0]!, sorted.at(-1)!);
      } catch (error) {
        throw storeUnavailable(error);
      }
    };
    await compact();
    await this.write(new Map(sorted.map((key) => [key, null])));
    await compact();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#reopening;
    await this.#level.close();
  }

  /** Opens LevelDB anew, however often it takes: opening writes, so it fails as long as the disk is full. */
  async #reopen(): Promise<void> {
    while (!this.#closing.signal.aborted) {
      try {
        await this.#level.close();
        await this.#level.open();
        return;
      } catch {
        // `close` cuts the pause short; the timer alone keeps no process alive.
        await delay(REOPEN_DELAY_MS, undefined, { signal: this.#closing.signal, ref: false }).catch(
          () => undefined,
        );
      }
    }
  }
}

export function storeUnavailable(cause?: unknown): DomainError {
  return new DomainError('unavailable', 'The registry cannot be reached at the moment.', {
    reason: 'store_unavailable',
    retryAfterSeconds: 1,
    dependency: 'disk',
    ...defined({ cause }),
  });
}

/** Returns the failure that abstract-level wraps in LEVEL_DATABASE_NOT_OPEN, or the error itself. */
function causeOf(error: unknown): NodeJS.ErrnoException {
  return (error instanceof Error && error.cause instanceof Error ? error.cause : error) as Error;
}
