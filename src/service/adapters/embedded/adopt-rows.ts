import { type RecordCodec, RecordError } from '../../../core/codec/record.js';
import type { Database } from './database.js';
import { formatKey } from './keys.js';

/** Rows in one synced batch, of some hundred bytes each. */
const STEP = 1000;
const ALL = { gte: '', lt: '\uffff' };

/**
 * Gives every row of a store of a former format its code. A kill leaves rows of both forms and the former
 * format, so the next start goes on. A row whose checksum does not hold is left as it is, and fails its
 * reader.
 */
export async function adoptRows(database: Database, codec: RecordCodec): Promise<void> {
  for (let range = ALL; ; ) {
    const found = await database.scan(range, { limit: STEP });
    const last = found.at(-1);
    if (last === undefined) return;
    const adopted = new Map<string, Uint8Array>();
    for (const [key, row] of found) {
      // The format is rewritten last of all: it says that the rest is done.
      if (key === formatKey || !codec.isFormer(row)) continue;
      try {
        adopted.set(key, codec.adopt(key, row));
      } catch (error) {
        if (!(error instanceof RecordError)) throw error;
      }
    }
    if (adopted.size > 0) await database.write(adopted);
    range = { gte: `${last[0]}\0`, lt: ALL.lt };
  }
}
