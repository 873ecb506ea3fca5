import { Readable } from 'node:stream';
import type { Authenticator } from '../../../core/codec/authenticator.js';
import { RecordCodec, RecordError } from '../../../core/codec/record.js';
import { encodeSnapshot, type SnapshotRow } from '../../../core/codec/store-snapshot.js';
import { DomainError } from '../../../core/domain/errors.js';
import type { AuditedStore } from '../../ports/audited-store.js';
import type { MoveSource } from '../../ports/moved-rows.js';
import type { SnapshotSource } from '../../ports/store-snapshot.js';
import type { Stores } from '../../ports/stores.js';
import { adoptRows } from './adopt-rows.js';
import { AuditLog, type AuditOptions } from './audit-log.js';
import { auditedStore } from './audited-store.js';
import { type Commit, CommitQueue } from './commit-queue.js';
import { Damages } from './damages.js';
import { Database } from './database.js';
import { KeptRows } from './kept-rows.js';
import {
  before,
  expiringRow,
  following,
  formatKey,
  isReviewKey,
  isRotationReplayKey,
  lastPart,
  pingKey,
  type RowKey,
} from './keys.js';
import { moveSource } from './moved-rows.js';
import { StoreOpenError } from './open-error.js';
import { Outbox } from './outbox.js';
import { keyStore, partnerStore } from './partners.js';
import { rebuildDigests } from './proof-digests.js';
import { proofStore } from './proofs.js';
import { reminderStore } from './reminders.js';
import { ReviewRows, removeReview } from './review-rows.js';
import { reviewStore } from './reviews.js';
import { Rows } from './rows.js';
import { uploadStore } from './uploads.js';
import { usageStore } from './usage.js';

/**
 * The number of the layout in keys.ts. A change that older code would misread takes the next number, and a step
 * that brings stores up to it.
 */
export const STORE_FORMAT = 8;
/** The last format in which rows had no codes. */
const FORMER_FORMAT = 3;

/** The most rows that one batch removes, so that a collection never delays the next writers for long. */
const COLLECT_STEP = 256;
const OUTBOX_LIMIT = 100_000;
/** The longest time of a snapshot in milliseconds. LevelDB keeps former values of rows during it. */
const SNAPSHOT_MS = 6 * 3_600_000;

export interface EmbeddedStoreOptions {
  /** The directory, which one process at a time uses. It is made if it does not exist. */
  readonly directory: string;
  /** The observer of every synced batch. */
  readonly onCommit?: (commit: Commit) => void;
  readonly audit: AuditOptions;
  /** Makes and checks the codes of the rows. */
  readonly authenticator: Authenticator;
  /** Gives codes to the rows of a former format, which had none. By default such a store is refused. */
  readonly adoptFormerRows?: boolean;
  /** The observer of damaged rows that are passed over. A damaged row that a call asks for fails the call. */
  readonly onDamage?: (error: unknown) => void;
  /** The most events of a topic that wait to be published. The default is 100,000, some 30 MB. */
  readonly outboxLimit?: number;
  /** The observer of a raise to a later format, which earlier versions refuse. */
  readonly onFormatRaised?: (from: number, to: number) => void;
}

/** The store of one machine, with what the auditor, a backup and a move read. */
export type EmbeddedStore = Stores &
  SnapshotSource & { readonly audited: AuditedStore; readonly moveSource: MoveSource };

/**
 * Opens the store of one machine: LevelDB with a synced log, one writer with group commit, reads of what is on disk.
 * @throws StoreOpenError `in_use`, `newer_format`, `not_a_store`, `unauthenticated`, `damaged`, `io_failed`
 * @throws the audit heads' error when they cannot be read or recorded
 */
export async function openEmbeddedStore({
  directory,
  onCommit,
  audit,
  authenticator,
  adoptFormerRows = false,
  onDamage = () => undefined,
  outboxLimit = OUTBOX_LIMIT,
  onFormatRaised = () => undefined,
}: EmbeddedStoreOptions): Promise<EmbeddedStore> {
  const codec = new RecordCodec(authenticator);
  const damages = new Damages(onDamage);
  const database = await Database.open(directory);
  const kept = new KeptRows();
  const queue = new CommitQueue(database, codec, damages, kept, onCommit);
  const rows = new Rows(database, queue, codec, damages, kept);
  const log = new AuditLog(rows, audit);
  const reviews = new ReviewRows(rows);
  let outbox: Outbox;
  try {
    const former = await checkFormat({ directory, database, codec, queue, rows, reviews, adoptFormerRows });
    if (former !== undefined && former < STORE_FORMAT) onFormatRaised(former, STORE_FORMAT);
    await log.catchUp();
    outbox = await Outbox.open(rows, outboxLimit);
  } catch (error) {
    await database.close();
    throw error;
  }
  return {
    ...partnerStore(rows, log),
    ...keyStore(rows, log),
    ...uploadStore(rows),
    ...proofStore(rows, log, outbox, reviews),
    ...usageStore(rows, outbox),
    ...reviewStore(rows, log, outbox, reviews),
    ...reminderStore(rows, outbox),
    waitingEvents: (limit, isHeldBack) => outbox.waitingEvents(limit, isHeldBack),
    markPublished: (events) => outbox.markPublished(events),
    countWaiting: (topic) => outbox.countWaiting(topic),
    onWaiting: (listener) => outbox.onWaiting(listener),
    readAudit: (partnerId, fromSequence, limit) => log.readAudit(partnerId, fromSequence, limit),
    appendAudit: (draft) => log.appendAudit(draft),

    audited: auditedStore(rows),
    moveSource: moveSource(rows),

    async snapshot() {
      if (database.hasSnapshot)
        throw new DomainError('conflict', 'Another snapshot of the store is being read.', {
          reason: 'snapshot_running',
        });
      const { pages, close } = database.snapshot();
      const stream = Readable.from(encodeSnapshot(withoutReplays(pages)), { objectMode: false });
      const timer = setTimeout(() => stream.destroy(new Error('the snapshot took too long')), SNAPSHOT_MS);
      timer.unref();
      // A stream that was not read has not begun, and would hold the snapshot.
      stream.once('close', () => {
        clearTimeout(timer);
        void close();
      });
      return stream;
    },

    async collectExpired(now, limit) {
      let collected = await reviews.removeErased(limit);
      const shredded: string[] = [];
      let range = before(now + 1, 'expiry');
      while (collected < limit) {
        const entries = await rows.keys(range, Math.min(COLLECT_STEP, limit - collected));
        const last = entries.at(-1);
        if (last === undefined) break;
        // From the last entry on: from the start LevelDB would read over all that it has just removed.
        range = following(range, last);
        await rows.run((tx) => {
          for (const entry of entries) {
            const row = expiringRow(entry);
            // A later collection deletes it: now its former value would stay in the files.
            if (isRotationReplayKey(row) && database.hasSnapshot) continue;
            // An entry that is gone since it was read: the row was given more time.
            if (tx.getSound(entry) === undefined) continue;
            tx.delete(entry);
            if (isReviewKey(row)) removeReview(tx, lastPart(row));
            else tx.delete(row);
            if (isRotationReplayKey(row)) shredded.push(row);
            collected += 1;
          }
        });
      }
      if (shredded.length > 0) await database.shred(shredded);
      return collected;
    },

    async ping() {
      const at = Math.floor(Date.now() / 1000);
      await rows.run((tx) => tx.put(pingKey, { at }));
      rows.get(pingKey);
    },

    async close() {
      await queue.close();
      await database.close();
    },
  };
}

/**
 * Leaves out the replays of rotations. New keys of partners are derived from them, and the store removes them from
 * its files when their time has passed.
 */
async function* withoutReplays(
  pages: AsyncIterable<readonly SnapshotRow[]>,
): AsyncGenerator<readonly SnapshotRow[]> {
  for await (const rows of pages) yield rows.filter(([key]) => !isRotationReplayKey(key as RowKey<unknown>));
}

interface FormatCheck {
  readonly directory: string;
  readonly database: Database;
  readonly codec: RecordCodec;
  readonly queue: CommitQueue;
  readonly rows: Rows;
  readonly reviews: ReviewRows;
  readonly adoptFormerRows: boolean;
}

/**
 * Brings the store to the format of this version.
 * @returns the format that the store had, or undefined for a new store
 * @throws StoreOpenError
 */
async function checkFormat({
  directory,
  database,
  codec,
  queue,
  rows,
  reviews,
  adoptFormerRows,
}: FormatCheck): Promise<number | undefined> {
  const stored = database.get(formatKey);
  if (stored === undefined) {
    const first = await database.scan({ gte: '', lt: '\uffff' }, { limit: 1 });
    if (first.length > 0)
      throw new StoreOpenError('not_a_store', `${directory} holds data that is not a Takemark store.`);
    await queue.run((tx) => tx.put(formatKey, { format: STORE_FORMAT }));
    return undefined;
  }
  if (codec.isFormer(stored)) {
    // The row alone is not trusted: an attacker who can write to the store could fake it, so that rows without codes
    // are accepted.
    if (!adoptFormerRows)
      throw new StoreOpenError(
        'unauthenticated',
        `The store in ${directory} has an older format without authenticated rows, or was changed to look like it. To accept its rows as they are, start once with TAKEMARK_UNAUTHENTICATED=accept.`,
      );
    const { format } = codec.decodeFormer(formatKey, stored) as { readonly format: number };
    if (format > FORMER_FORMAT) throw newerFormat(directory, format);
    await adoptRows(database, codec);
    // Format 1 had no events: its rows are valid as they are, but older code would not see what is still to
    // be aggregated. Format 2 had other indexes of reviews.
    if (format < 3) await reviews.rebuildIndexes();
    await rebuildDigests(rows);
    await queue.run((tx) => tx.put(formatKey, { format: STORE_FORMAT }));
    return format;
  }
  const format = formatOf(directory, codec, stored);
  if (format > STORE_FORMAT) throw newerFormat(directory, format);
  // Format 4 had neither evidence nor overlays: older code would leave them out of an erasure. Some versions
  // of format 5 encrypted no records: they would answer calls for encrypted ones with an error. Format 6 had no
  // rows of the proofs that have a digest: older code would leave the digests of an erased proof there. In format 7
  // these rows named proofs only by their ids.
  if (format < STORE_FORMAT) {
    await rebuildDigests(rows);
    await queue.run((tx) => tx.put(formatKey, { format: STORE_FORMAT }));
  }
  return format;
}

function newerFormat(directory: string, format: number): StoreOpenError {
  return new StoreOpenError(
    'newer_format',
    `The store in ${directory} has format ${format}, but this version reads only formats up to ${STORE_FORMAT}. Use the version that wrote the store, or a later version.`,
  );
}

function formatOf(directory: string, codec: RecordCodec, stored: Uint8Array): number {
  try {
    return (codec.decode(formatKey, stored) as { readonly format: number }).format;
  } catch (error) {
    if (!(error instanceof RecordError)) throw error;
    throw new StoreOpenError(
      'unauthenticated',
      `The store in ${directory} was not written with the secrets of this service, or it is damaged.`,
      error,
    );
  }
}
