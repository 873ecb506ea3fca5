import type { RecordCodec } from '../../../core/codec/record.js';
import { defined } from '../../../core/domain/defined.js';
import { type CommitQueue, decodeRow, type Transaction } from './commit-queue.js';
import type { Damages } from './damages.js';
import type { Database } from './database.js';
import type { KeptRows } from './kept-rows.js';
import { following, type KeyRange, type RowKey } from './keys.js';

/** The typed rows of the database. Reads see what is on disk, and writes go through the queue. */
export class Rows {
  readonly #database: Database;
  readonly #queue: CommitQueue;
  readonly #codec: RecordCodec;
  readonly #damages: Damages;
  readonly #kept: KeptRows;

  constructor(database: Database, queue: CommitQueue, codec: RecordCodec, damages: Damages, kept: KeptRows) {
    this.#database = database;
    this.#queue = queue;
    this.#codec = codec;
    this.#damages = damages;
    this.#kept = kept;
  }

  /** Returns the row, read synchronously: LevelDB's memory gives it sooner than a thread could be asked for it. */
  get<Row>(key: RowKey<Row>): Row | undefined {
    const row = this.#database.get(key);
    return row === undefined ? undefined : decodeRow(this.#codec, key, row);
  }

  /** Returns the rows of many keys, in the order of the keys, by one read. */
  async getMany<Row>(keys: readonly RowKey<Row>[]): Promise<readonly (Row | undefined)[]> {
    const found = await this.#database.getMany(keys);
    return found.map((row, i) => row && decodeRow(this.#codec, keys[i]!, row));
  }

  /**
   * Returns the row as `get` does, and keeps it decoded and frozen. A kept row is always that of the disk: its batch
   * drops it before it is written. No row of a batch is kept while it is being written, or while it is not known
   * whether it was written.
   */
  getKept<Row>(key: RowKey<Row>): Row | undefined {
    const kept = this.#kept.get(key);
    if (kept !== undefined) return kept as Row;
    const bytes = this.#database.get(key);
    if (bytes === undefined) return undefined;
    const row = decodeRow(this.#codec, key, bytes);
    if (!this.#queue.isWriting(key) && !this.#database.isReopening) this.#kept.keep(key, row, bytes.length);
    return row;
  }

  run<Value>(operation: (transaction: Transaction) => Value): Promise<Value> {
    return this.#queue.run(operation);
  }

  /** Returns the rows of a range, in key order. The limit may be absent for ranges that are small by nature. */
  async entries<Row>(
    range: KeyRange,
    limit?: number,
  ): Promise<readonly (readonly [key: RowKey<Row>, row: Row])[]> {
    const found = await this.#database.scan(range, defined({ limit }));
    return found.map(([text, row]) => {
      const key = text as RowKey<Row>;
      return [key, decodeRow(this.#codec, key, row)];
    });
  }

  /**
   * Returns the first `limit` rows of a range that are not damaged, for work that goes through the rows of everybody.
   * Damaged rows are reported.
   */
  async soundEntries<Row>(
    range: KeyRange,
    limit: number,
  ): Promise<readonly (readonly [key: RowKey<Row>, row: Row])[]> {
    const sound: (readonly [key: RowKey<Row>, row: Row])[] = [];
    let rest = range;
    while (sound.length < limit) {
      const asked = limit - sound.length;
      const found = await this.#database.scan(rest, { limit: asked });
      for (const [text, bytes] of found) {
        const key = text as RowKey<Row>;
        const row = this.#damages.sound(key, () => decodeRow(this.#codec, key, bytes));
        if (row !== undefined) sound.push([key, row]);
      }
      if (found.length < asked) break;
      rest = following(rest, found.at(-1)![0]);
    }
    return sound;
  }

  /** Returns the keys of index entries, at most `limit`, and in reverse order if `reverse` is set. */
  async keys(range: KeyRange, limit: number, reverse = false): Promise<readonly RowKey<null>[]> {
    const found = await this.#database.scan(range, { limit, reverse });
    return found.map(([key]) => key as RowKey<null>);
  }
}
