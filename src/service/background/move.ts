import { createHash } from 'node:crypto';
import { eachOf } from '../../core/async/each-of.js';
import { type ArchiveBlock, canonicalBytes } from '../../core/codec/sealed-archive.js';
import { defined } from '../../core/domain/defined.js';
import type { AssetStore } from '../ports/assets.js';
import type { ContentKeys } from '../ports/content-keys.js';
import type { ErasureJournal } from '../ports/journals.js';
import type { ArchiveRow, MovedFile, MovedRow, MoveSource, MoveTarget } from '../ports/moved-rows.js';
import type { ProofStore } from '../ports/stores.js';
import { CANARY } from './content-key-watch.js';

/** Rows that are written, or compared, at once. */
const ROWS_AT_ONCE = 32;
const FILES_PAGE = 250;
/** The largest file in bytes that travels in one row, and the largest piece of another file. */
const CHUNK_BYTES = 64 * 1024;
/** The progress of an import whose rows were compared, and of one that has opened the cluster, too. */
const COMPARED = -1;
const COMPLETE = -2;

export interface ExportSource {
  readonly source: MoveSource;
  /** The store as it is, without decryption. */
  readonly stores: Pick<ProofStore, 'getProof'>;
  readonly keys: Pick<ContentKeys, 'read'>;
  /** The files as they are, without decryption. */
  readonly files: AssetStore;
}

/** Yields everything of one machine that a cluster needs, except the installation's own row. */
export async function* readForExport(
  { source, stores, keys, files }: ExportSource,
  now: number,
): AsyncGenerator<ArchiveRow> {
  const canary = await keys.read(CANARY);
  if (canary !== undefined) yield { kind: 'content-key', proofId: CANARY, key: canary };
  for await (const row of source.moved(now)) {
    if (row.kind === 'proof') {
      // A record of a version that encrypted nothing has no key.
      const key = await keys.read(row.proof.proofId);
      if (key !== undefined) yield { kind: 'content-key', proofId: row.proof.proofId, key };
    }
    yield row;
  }
  for (let after: string | undefined; ; ) {
    const { items, next } = await files.list(after, FILES_PAGE);
    for (const { proofId, part } of items)
      if ((await stores.getProof(proofId))?.state === 'issued')
        yield* fileRows(files, { proofId, ...defined({ part }) });
    if (next === undefined) return;
    after = next;
  }
}

/** Returns true if a row must not be written together with the row before it, because it may depend on that row. */
export function isApart(row: ArchiveRow, before: ArchiveRow): boolean {
  return stepOf(row) !== stepOf(before);
}

function stepOf({ kind }: ArchiveRow): string {
  if (kind === 'chunk') return 'file';
  return kind === 'content-key' ? 'proof' : kind;
}

async function* fileRows(
  files: AssetStore,
  { proofId, part }: Pick<MovedFile, 'proofId' | 'part'>,
): AsyncGenerator<ArchiveRow> {
  const bytes = await files.size(proofId, part);
  const content = bytes === undefined ? undefined : await files.read(proofId, undefined, part);
  if (bytes === undefined || content === undefined)
    throw new Error(`a file of the proof ${proofId} disappeared during the export`);
  const file = { kind: 'file' as const, proofId, bytes, ...defined({ part }) };
  if (bytes <= CHUNK_BYTES) {
    const chunks: Buffer[] = [];
    for await (const chunk of content as AsyncIterable<Buffer>) chunks.push(chunk);
    yield { ...file, content: Buffer.concat(chunks) };
    return;
  }
  yield file;
  for await (const chunk of content as AsyncIterable<Buffer>) yield { kind: 'chunk', bytes: chunk };
}

export interface ImportTarget {
  readonly target: MoveTarget;
  readonly keys: Pick<ContentKeys, 'read' | 'destroy'> & {
    store(proofId: string, key: Uint8Array): Promise<void>;
  };
  readonly files: AssetStore;
  readonly journal: Pick<ErasureJournal, 'record'>;
}

export interface Imported {
  readonly exportId: string;
  /** True if an earlier call had ended the import. The other numbers are then 0. */
  readonly wasComplete: boolean;
  /** The rows, keys and files that were read back and compared. */
  readonly compared: number;
  readonly erased: number;
}

/**
 * Writes an archive into a cluster, then reads every row back and compares it. An interrupted call is simply repeated:
 * it goes on after the last block that is stored.
 * @param open reads the archive from a block on; block 0 is always read
 * @param gate closes every process of the cluster before the first row, and opens them after the last comparison
 * @throws Error with a message for the operator
 */
export async function importArchive(
  to: ImportTarget,
  exportId: string,
  open: (from: number) => AsyncIterable<ArchiveBlock<ArchiveRow>>,
  now: () => number,
  gate: { close(): Promise<void>; open(): Promise<void> },
): Promise<Imported> {
  const { target } = to;
  const progress = await target.progress(exportId);
  if (progress === COMPLETE) return { exportId, wasComplete: true, compared: 0, erased: 0 };
  if (progress === undefined && !(await target.isEmpty()))
    throw new Error(
      'the keyspace is not empty: an import needs a keyspace that no process has used, or one that has a part of the same export',
    );
  const counts = { compared: 0, erased: 0 };
  if (progress !== COMPARED) await writeAndCompare(to, exportId, open, now, gate, progress ?? 0, counts);
  await gate.open();
  await target.setProgress(exportId, COMPLETE);
  return { exportId, wasComplete: false, ...counts };
}

async function writeAndCompare(
  to: ImportTarget,
  exportId: string,
  open: Parameters<typeof importArchive>[2],
  now: () => number,
  gate: { close(): Promise<void> },
  done: number,
  counts: { compared: number; erased: number },
): Promise<void> {
  const { target } = to;
  await target.setProgress(exportId, done);
  await gate.close();
  await visit(open(done), writer(to, now), (blocks) =>
    blocks > done ? target.setProgress(exportId, blocks) : Promise.resolve(),
  );
  await visit(open(0), comparer(to, now, counts));
  await target.setProgress(exportId, COMPARED);
}

/** Handles the rows of an archive. The content of a large file comes in pieces, in their order. */
interface Visitor {
  row(row: Exclude<ArchiveRow, { readonly kind: 'chunk' }>): Promise<void>;
  file(file: MovedFile): Promise<{ chunk(bytes: Uint8Array): Promise<void>; end(): Promise<void> }>;
}

/** @param settled called when everything up to a block is done, with the number of the blocks */
async function visit(
  blocks: AsyncIterable<ArchiveBlock<ArchiveRow>>,
  visitor: Visitor,
  settled: (blocks: number) => Promise<void> = () => Promise.resolve(),
): Promise<void> {
  let open: (Awaited<ReturnType<Visitor['file']>> & { left: number }) | undefined;
  for await (const { number, values } of blocks) {
    const alone: Exclude<ArchiveRow, { readonly kind: 'chunk' }>[] = [];
    for (const row of values) {
      if (row.kind === 'chunk') {
        if (open === undefined || row.bytes.length > open.left) throw new Error('the export is damaged');
        await open.chunk(row.bytes);
        open.left -= row.bytes.length;
        if (open.left > 0) continue;
        await open.end();
        open = undefined;
      } else if (open !== undefined) throw new Error('the export is damaged');
      else if (row.kind === 'file' && row.content === undefined)
        open = { ...(await visitor.file(row)), left: row.bytes };
      else alone.push(row);
    }
    await eachOf(alone, ROWS_AT_ONCE, (row) => visitor.row(row));
    if (open === undefined) await settled(number + 1);
  }
}

function writer({ target, keys, files, journal }: ImportTarget, now: () => number): Visitor {
  return {
    async file({ proofId, part }) {
      // The id is issued, so no collection finds the parts that an interrupted import has left of this file.
      await files.deleteUnfinished(proofId);
      const staged = await files.stage(proofId, part);
      return { chunk: (bytes) => staged.append(bytes), end: () => staged.publish() };
    },
    async row(row) {
      const at = now();
      if (row.kind === 'installation' || hasEnded(row, at)) return;
      if (row.kind === 'content-key') return keys.store(row.proofId, row.key);
      if (row.kind === 'file') {
        const staged = await files.stage(row.proofId, row.part);
        await staged.append(row.content!);
        return staged.publish();
      }
      await target.put(row, at);
      if (row.kind !== 'tombstone') return;
      // As an erasure here would leave them, so that nothing of the id comes back from a backup.
      await journal.record(row.proof);
      await keys.destroy(row.proof.proofId);
    },
  };
}

function comparer(
  { target, keys, files }: ImportTarget,
  now: () => number,
  counts: { compared: number; erased: number },
): Visitor {
  const compareFile = async ({ proofId, part }: MovedFile, wanted: string): Promise<void> => {
    const content = await files.read(proofId, undefined, part);
    const hash = createHash('sha256');
    for await (const chunk of content ?? []) hash.update(chunk as Uint8Array);
    if (content === undefined || hash.digest('hex') !== wanted) throw different('file', proofId);
    counts.compared += 1;
  };
  return {
    async file(file) {
      const hash = createHash('sha256');
      return {
        chunk: async (bytes) => void hash.update(bytes),
        end: () => compareFile(file, hash.digest('hex')),
      };
    },
    async row(row) {
      const at = now();
      if (row.kind === 'installation' || hasEnded(row, at)) return;
      if (row.kind === 'file')
        return compareFile(row, createHash('sha256').update(row.content!).digest('hex'));
      if (row.kind === 'content-key') {
        const key = await keys.read(row.proofId);
        if (key === undefined || Buffer.compare(key, row.key) !== 0) throw different('key', row.proofId);
      } else {
        const found = await target.find(row, at);
        if (found === undefined || Buffer.compare(canonicalBytes(found), canonicalBytes(row)) !== 0)
          throw different(row.kind, nameOf(row));
      }
      if (row.kind === 'tombstone') {
        if ((await keys.read(row.proof.proofId)) !== undefined) throw different('key', row.proof.proofId);
        counts.erased += 1;
      }
      counts.compared += 1;
    },
  };
}

/** Reports whether a row has ended since the export, so that no store has to hold it. */
function hasEnded(row: ArchiveRow, now: number): boolean {
  switch (row.kind) {
    case 'replay':
      return row.replay.expiresAt <= now;
    case 'review':
      return row.review.expiresAt <= now;
    case 'upload':
      return (row.facts ?? row.slot).expiresAt <= now;
    case 'charge':
      return row.until <= now;
    default:
      return false;
  }
}

function nameOf(row: MovedRow): string {
  switch (row.kind) {
    case 'tombstone':
    case 'proof':
      return row.proof.proofId;
    case 'partner':
      return row.partner.partnerId;
    case 'key':
      return row.key.keyId;
    case 'audit':
      return `${row.entries[0]!.partnerId}, entry ${row.entries[0]!.sequence}`;
    case 'head':
      return row.head.partnerId;
    case 'review':
      return row.review.reviewId;
    case 'upload':
      return row.slot.uploadId;
    case 'month':
      return `${row.partnerId}, ${row.month}`;
    case 'replay':
      return row.replay.proofId;
    case 'charge':
      return row.partnerId;
  }
}

function different(kind: string, name: string): Error {
  return new Error(
    `the cluster does not hold what was exported: ${kind} of ${name}. No process serves. ` +
      'Drop the keyspace and the objects of the bucket, and import again',
  );
}
