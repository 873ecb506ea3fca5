import { mkdir } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { ClassicLevel } from 'classic-level';
import { DomainError } from '../../domain/errors.js';
import { syncDirectory } from '../../files/durable.js';
import type { KeyRange } from './keys.js';
import { checkDirectory } from './log-check.js';
import { StoreOpenError } from './open-error.js';

/** Keys to their new rows; null removes. */
export type Writes = ReadonlyMap<string, Uint8Array | null>;

/**
 * Larger than LevelDB's default, for fewer compactions under load; a log of this size is read back in well
 * under a second.
 */
const WRITE_BUFFER_BYTES = 16 * 1024 * 1024;
const CACHE_BYTES = 32 * 1024 * 1024;
const REOPEN_DELAY_MS = 250;

/**
 * LevelDB in one directory, owned by this process. What `get` and `scan` see is on disk: LevelDB shows a
 * batch only after its log was synced.
 */
export class Database {
  readonly #level: ClassicLevel<string, Uint8Array>;
  #reopening: Promise<void> | undefined;
  readonly #closing = new AbortController();

  private constructor(level: ClassicLevel<string, Uint8Array>) {
    this.#level = level;
  }

  /** @throws StoreOpenError */
  static async open(directory: string): Promise<Database> {
    try {
      await mkdir(directory, { recursive: true, mode: 0o700 });
      await checkDirectory(directory);
      const level = new ClassicLevel<string, Uint8Array>(directory, {
        keyEncoding: 'utf8',
        valueEncoding: 'view',
        writeBufferSize: WRITE_BUFFER_BYTES,
        cacheSize: CACHE_BYTES,
      });
      await level.open();
      // LevelDB syncs its files; that a new directory is found again after a power cut is up to us.
      await syncDirectory(directory);
      await syncDirectory(dirname(resolve(directory)));
      return new Database(level);
    } catch (error) {
      if (error instanceof StoreOpenError) throw error;
      const code = causeCode(error);
      if (code === 'LEVEL_LOCKED') {
        throw new StoreOpenError(
          'in_use',
          `The store in ${directory} is in use by another process. It belongs to one process at a time.`,
          error,
        );
      }
      if (code === 'LEVEL_CORRUPTION')
        throw new StoreOpenError('damaged', `The store in ${directory} is damaged.`, error);
      throw new StoreOpenError('io_failed', `The store in ${directory} could not be opened.`, error);
    }
  }

  /** @throws DomainError `unavailable` / `store_unavailable` */
  get(key: string): Uint8Array | undefined {
    try {
      return this.#level.getSync(key);
    } catch (error) {
      throw storeUnavailable(error);
    }
  }

  /** Rows in key order. @throws as `get` */
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

  /**
   * One atomic batch, on disk when it resolves. After a failure it is unknown whether the batch is kept, and
   * LevelDB must not be written to again as it is: a record that was written in part would hide those after
   * it, and a failed sync blocks it for good. So it is closed and opened anew, which reads the log back up to
   * the last whole batch; until then everything is refused.
   * @throws as `get`
   */
  async write(writes: Writes): Promise<void> {
    if (this.#reopening !== undefined) throw storeUnavailable();
    try {
      // Chained, because an array of operations costs three times as much here: abstract-level copies each
      // one.
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
   * Takes the former values of removed rows out of the files, where they lie until a compaction happens to
   * come by. One compaction may put a row and its removal into the same file of the lowest level, which it
   * then leaves as it is; a second removal ends above that file, and the second compaction merges the two.
   * @param keys of one kind of rows, none of which is written again
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

  /** Tries until it is open: opening writes too, so a full disk lets it fail as long as the disk is full. */
  async #reopen(): Promise<void> {
    while (!this.#closing.signal.aborted) {
      try {
        await this.#level.close();
        await this.#level.open();
        return;
      } catch {
        // Waiting is cut short by `close`; the timer alone keeps no process alive.
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
    ...(cause === undefined ? {} : { cause }),
  });
}

/** abstract-level wraps what went wrong in LEVEL_DATABASE_NOT_OPEN. */
function causeCode(error: unknown): string | undefined {
  const inner = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return (inner as NodeJS.ErrnoException).code;
}
