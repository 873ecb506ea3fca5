import { type RecordCodec, RecordError } from '../../../core/codec/record.js';
import { DomainError, recordDamaged } from '../../../core/domain/errors.js';
import type { Damages } from './damages.js';
import { type Database, storeUnavailable } from './database.js';
import type { KeptRows } from './kept-rows.js';
import type { RowKey } from './keys.js';

/** The calls of an operation. All are synchronous, so that no other operation runs in between. */
export interface Transaction {
  /** Returns the row as this operation and all before it left it, also if it is not on disk yet. */
  get<Row>(key: RowKey<Row>): Row | undefined;
  /** Returns the row, for work on many rows. A damaged row is reported, and counts as none. */
  getSound<Row>(key: RowKey<Row>): Row | undefined;
  put<Row>(key: RowKey<Row>, row: Row): void;
  delete(key: RowKey<unknown>): void;
  /** The batch that takes the operation's writes to the disk. */
  readonly batch: Batch;
}

/** A batch of operations that reach the disk together, or not at all. */
export interface Batch {
  /** A promise that is fulfilled when the batch is on disk, and rejected when it failed. */
  readonly settled: Promise<void>;
  /**
   * Registers `finish`, which is called when no more operations come to the batch. It puts the last state of rows
   * that many operations of the batch change, so that this state is encoded once. No operation may read such a row
   * before the batch is on disk.
   */
  beforeWrite(finish: (put: Transaction['put']) => void): void;
}

/** A synced batch, for the observer of a store. */
export interface Commit {
  /** The number of operations that were acknowledged together. */
  readonly operations: number;
  /** The number of rows that were written and removed. */
  readonly rows: number;
  readonly milliseconds: number;
}

// Bounds of what waits for the disk. Beyond them callers are refused rather than memory filled.
const MAX_WAITING_OPERATIONS = 16_384;
const MAX_WAITING_BYTES = 64 * 1024 * 1024;

/**
 * The one writer. An operation reads, checks and writes against memory at once, in the order of the calls.
 * Then it waits for the disk, with all operations that came while the batch before was being synced (group
 * commit). So conditions are linearizable, and a sync is paid once for a group.
 *
 * An operation that wrote nothing waits as well, because what it saw may not be on disk yet: a result never
 * rests on a write that may still be lost. When a batch fails, its operations and the ones that ran on top of
 * it fail, and their writes are forgotten.
 */
export class CommitQueue {
  readonly #database: Database;
  readonly #codec: RecordCodec;
  readonly #kept: KeptRows;
  readonly #onCommit: ((commit: Commit) => void) | undefined;
  #gathering = new Group();
  #syncing: Group | undefined;
  #draining: Promise<void> | undefined;
  #closed = false;
  /** The writes of the running operation, as Group has them. */
  #staged = new Map<string, Uint8Array | null>();
  readonly #transaction: Transaction;

  /** @param kept the rows that are kept decoded, which each batch changes */
  constructor(
    database: Database,
    codec: RecordCodec,
    damages: Damages,
    kept: KeptRows,
    onCommit?: (commit: Commit) => void,
  ) {
    this.#database = database;
    this.#codec = codec;
    this.#kept = kept;
    this.#onCommit = onCommit;
    const gathering = () => this.#gathering;
    this.#transaction = {
      get: <Row>(key: RowKey<Row>) => this.#get(key),
      getSound: <Row>(key: RowKey<Row>) => damages.sound(key, () => this.#get(key)),
      put: (key, row) => void this.#staged.set(key, codec.document(row)),
      delete: (key) => void this.#staged.set(key, null),
      get batch() {
        return gathering();
      },
    };
  }

  /**
   * Runs `operation` now and resolves with its value when all it wrote and saw is on disk. An operation that
   * throws writes nothing.
   * @throws DomainError `unavailable`: whether the operation took effect is not known; repeating it shows the outcome
   */
  async run<Value>(operation: (transaction: Transaction) => Value): Promise<Value> {
    if (this.#closed)
      throw new DomainError('unavailable', 'The service is stopping.', { reason: 'shutting_down' });
    const group = this.#gathering;
    if (group.operations >= MAX_WAITING_OPERATIONS || group.bytes >= MAX_WAITING_BYTES)
      throw storeUnavailable();
    let value: Value;
    this.#staged = new Map();
    try {
      value = operation(this.#transaction);
      for (const [key, row] of this.#staged) group.write(key, row);
    } catch (error) {
      // An error may rest on a write that is still on its way, too.
      await this.#join(group);
      throw error;
    }
    await this.#join(group);
    return value;
  }

  /** Reports whether a batch with this row is being written: the disk has the row of before or of after it. */
  isWriting(key: string): boolean {
    return this.#syncing?.writes.has(key) ?? false;
  }

  /** Resolves when everything that was accepted is on disk or has failed. Nothing is accepted any more. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#draining;
  }

  #join(group: Group): Promise<void> {
    group.operations += 1;
    this.#draining ??= this.#drain();
    return group.settled;
  }

  async #drain(): Promise<void> {
    // All operations of this turn of the event loop share the first batch.
    await new Promise(setImmediate);
    while (this.#gathering.operations > 0) {
      const group = this.#gathering;
      this.#gathering = new Group();
      this.#syncing = group;
      const start = performance.now();
      try {
        group.finish((key, row) => group.write(key, this.#codec.document(row)));
        if (group.writes.size > 0) {
          for (const key of group.writes.keys()) this.#kept.drop(key);
          await this.#database.write(
            Array.from(group.writes, ([key, row]) => [key, row && this.#codec.seal(key, row)] as const),
          );
          this.#onCommit?.({
            operations: group.operations,
            rows: group.writes.size,
            milliseconds: performance.now() - start,
          });
        }
        this.#syncing = undefined;
        group.resolve();
      } catch (error) {
        const dependent = this.#gathering;
        this.#gathering = new Group();
        this.#syncing = undefined;
        group.reject(error);
        if (dependent.operations > 0) dependent.reject(error);
      }
    }
    // In the same turn as the loop's last condition, so that a later operation starts the next drain.
    this.#draining = undefined;
  }

  #get<Row>(key: RowKey<Row>): Row | undefined {
    const written = this.#written(key);
    if (written !== undefined) return written === null ? undefined : (this.#codec.read(written) as Row);
    const row = this.#database.get(key);
    return row === undefined ? undefined : decodeRow(this.#codec, key, row);
  }

  /** Returns the row if it waits for the disk, or null if its removal does. */
  #written(key: string): Uint8Array | null | undefined {
    for (const writes of [this.#staged, this.#gathering.writes, this.#syncing?.writes]) {
      const row = writes?.get(key);
      if (row !== undefined) return row;
    }
    return undefined;
  }
}

/** @throws DomainError `internal` / `record_damaged` for a row that was never written so, or of a later version */
export function decodeRow<Row>(codec: RecordCodec, key: RowKey<Row>, bytes: Uint8Array): Row {
  try {
    return codec.decode(key, bytes) as Row;
  } catch (error) {
    throw error instanceof RecordError ? recordDamaged(error) : error;
  }
}

class Group implements Batch {
  /**
   * Rows as MessagePack, null for one that is removed. Each gets its code when the group is written, so that a
   * row that many operations change gets one, and none is checked that has not left the process.
   */
  readonly writes = new Map<string, Uint8Array | null>();
  operations = 0;
  bytes = 0;
  resolve!: () => void;
  reject!: (error: unknown) => void;
  readonly settled = new Promise<void>((resolve, reject) => {
    this.resolve = resolve;
    this.reject = reject;
  });
  readonly #finishing: ((put: Transaction['put']) => void)[] = [];

  beforeWrite(finish: (put: Transaction['put']) => void): void {
    this.#finishing.push(finish);
  }

  finish(put: Transaction['put']): void {
    for (const finish of this.#finishing) finish(put);
  }

  write(key: string, row: Uint8Array | null): void {
    this.writes.set(key, row);
    this.bytes += key.length + (row?.length ?? 0);
  }
}
