import type { RecordCodec } from '../../../core/codec/record.js';
import { defined } from '../../../core/domain/defined.js';
import { type CommitQueue, decodeRow, type Transaction } from './commit-queue.js';
import type { Damages } from './damages.js';
import type { Database } from './database.js';
import { following, type KeyRange, type RowKey } from './keys.js';

/** Rows that are kept as they were decoded. */
const KEPT_ROWS = 1024;

/** Typed rows over the database. Reads see what is on disk, writes go through the queue. */
export class Rows {
  /**
   * Rows as they were decoded from these bytes, the one that was read longest ago first. Each is read from the
   * database all the same, and decoded anew where one byte differs, so that a change is seen at once.
   */
  readonly #kept = new Map<string, { readonly bytes: Uint8Array; readonly row: unknown }>();
  readonly #database: Database;
  readonly #queue: CommitQueue;
  readonly #codec: RecordCodec;
  readonly #damages: Damages;

  constructor(database: Database, queue: CommitQueue, codec: RecordCodec, damages: Damages) {
    this.#database = database;
    this.#queue = queue;
    this.#codec = codec;
    this.#damages = damages;
  }

  /** The row, read synchronously: LevelDB's memory gives it sooner than a thread could be asked for it. */
  get<Row>(key: RowKey<Row>): Row | undefined {
    const row = this.#database.get(key);
    return row === undefined ? undefined : decodeRow(this.#codec, key, row);
  }

  /** Returns the rows of many keys, in the order of the keys, by one read. */
  async getMany<Row>(keys: readonly RowKey<Row>[]): Promise<readonly (Row | undefined)[]> {
    const found = await this.#database.getMany(keys);
    return found.map((row, i) => row && decodeRow(this.#codec, keys[i]!, row));
  }

  /** As `get`, for rows of accounts, which every call reads: one that has not changed is not decoded again. */
  getOften<Row>(key: RowKey<Row>): Row | undefined {
    const bytes = this.#database.get(key);
    const kept = this.#kept.get(key);
    if (kept !== undefined) this.#kept.delete(key);
    if (bytes === undefined) return undefined;
    const row =
      kept !== undefined && Buffer.compare(kept.bytes, bytes) === 0
        ? (kept.row as Row)
        : decodeRow(this.#codec, key, bytes);
    this.#kept.set(key, { bytes, row });
    if (this.#kept.size > KEPT_ROWS) this.#kept.delete(this.#kept.keys().next().value!);
    return row;
  }

  run<Value>(operation: (transaction: Transaction) => Value): Promise<Value> {
    return this.#queue.run(operation);
  }

  /** Rows of a range, in key order. The limit may lack for ranges that are small by nature. */
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
   * The first `limit` rows of a range that are not damaged, for work that goes through the rows of everybody.
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

  /** Keys of index entries, at most `limit`; in reverse order where `reverse` is set. */
  async keys(range: KeyRange, limit: number, reverse = false): Promise<readonly RowKey<null>[]> {
    const found = await this.#database.scan(range, { limit, reverse });
    return found.map(([key]) => key as RowKey<null>);
  }
}
