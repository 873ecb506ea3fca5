import { freeze } from '../../domain/freeze.js';

/** The default of the memory for kept rows, in bytes. */
const LIMIT_BYTES = 32 * 1024 * 1024;
/**
 * The memory of a decoded row: bytes that each row needs, and a multiple of its stored bytes. Together they are 1.7
 * times the measured memory of rows of proofs with their plaintexts, and of uploads.
 */
const ROW_BYTES = 512;
const BYTES_OF_BYTE = 3;

/**
 * Rows as they were decoded, the one that was read longest ago first. They are frozen, because all callers get the
 * same object. The queue drops a row before the batch that changes it is written.
 */
export class KeptRows {
  readonly #limit: number;
  readonly #rows = new Map<string, { readonly row: unknown; readonly bytes: number }>();
  #bytes = 0;

  constructor(limit = LIMIT_BYTES) {
    this.#limit = limit;
  }

  /** The estimated memory of all kept rows, in bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Returns the row, or undefined if it is not kept. */
  get(key: string): unknown {
    const kept = this.#rows.get(key);
    if (kept === undefined) return undefined;
    this.#rows.delete(key);
    this.#rows.set(key, kept);
    return kept.row;
  }

  /** Keeps and freezes a row. @param storedBytes the length of the row as it is stored */
  keep(key: string, row: unknown, storedBytes: number): void {
    this.drop(key);
    freeze(row);
    const bytes = ROW_BYTES + BYTES_OF_BYTE * storedBytes;
    this.#rows.set(key, { row, bytes });
    this.#bytes += bytes;
    for (const oldest of this.#rows.keys()) {
      if (this.#bytes <= this.#limit) return;
      this.drop(oldest);
    }
  }

  drop(key: string): void {
    const kept = this.#rows.get(key);
    if (kept === undefined) return;
    this.#rows.delete(key);
    this.#bytes -= kept.bytes;
  }
}
