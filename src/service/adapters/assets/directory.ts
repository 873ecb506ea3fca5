import { randomBytes } from 'node:crypto';
import { type FileHandle, mkdir, open, rename, rm, stat, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Readable } from 'node:stream';
import { defined } from '../../../core/domain/defined.js';
import { syncDirectory, writeAll } from '../../../core/files/durable.js';
import { ifPresent } from '../../../core/files/if-present.js';
import { ShardedDirectory } from '../../../core/files/sharded-directory.js';
import { EVIDENCE_PARTS, type EvidencePart } from '../../../witness/domain/evidence.js';
import type { AssetEntry, AssetStore, ByteRange, StagedAsset } from '../../ports/assets.js';
import { checkProofId, guarded } from './failure.js';
import { readFrom } from './spool-file.js';

/** The endings of published files. A name has exactly one of them after the id, which may contain dots. */
const ENDINGS = {
  asset: '.asset',
  facts: '.facts',
  detail: '.detail',
  trace: '.trace',
} as const satisfies Record<'asset' | EvidencePart, string>;
/** The directory of files that are being built. It is on the same file system, so that renaming moves them. */
const STAGING = 'staging';

/**
 * Opens assets as files of a sharded directory (mode 0700, files 0600): `<proof id>.asset`, parts of evidence with
 * other endings, and `staging/<proof id>.<random>` while they are built. It belongs to one process at a time, as the
 * store beside it does. Renaming makes a file visible. File and directory are synced before the call resolves. I/O
 * failures are DomainError `unavailable` / `store_unavailable`. A failure during a read is an error of its stream.
 */
export async function openAssetDirectory({ directory }: { readonly directory: string }): Promise<AssetStore> {
  const files = await ShardedDirectory.open(directory, Object.values(ENDINGS));
  // A kill left what is there: the directory has one process at a time.
  const staging = join(directory, STAGING);
  await rm(staging, { recursive: true, force: true });
  await mkdir(staging, { mode: 0o700 });
  const published = (proofId: string, part: 'asset' | EvidencePart = 'asset') =>
    files.path(fileName(proofId) + ENDINGS[part]);

  return {
    stage: (proofId, part) =>
      guarded('disk', async () => {
        const path = join(staging, `${fileName(proofId)}.${randomBytes(8).toString('hex')}`);
        await files.prepare(fileName(proofId));
        return new StagedFile(await open(path, 'wx+', 0o600), path, published(proofId, part));
      }),

    read: (proofId, range, part) =>
      guarded('disk', async () => {
        const handle = await ifPresent(open(published(proofId, part), 'r'));
        return handle?.createReadStream(range === undefined ? {} : { start: range.start, end: range.end });
      }),

    size: (proofId, part) =>
      guarded('disk', async () => (await ifPresent(stat(published(proofId, part))))?.size),

    delete: (proofId) =>
      guarded('disk', async () => {
        const removed = await remove(published(proofId));
        for (const part of EVIDENCE_PARTS) await remove(published(proofId, part));
        // Also where it was not there: an earlier call may have ended between the removal and its sync.
        await files.sync(fileName(proofId));
        return removed;
      }),

    // The start has removed every unfinished file.
    deleteUnfinished: async () => undefined,

    list: (after, limit) =>
      guarded('disk', async () => {
        const { names, next } = await files.page(after, limit);
        const items = await Promise.all(
          names.map(async (name) => {
            const found = await ifPresent(stat(files.path(name)));
            return found && { ...entryOf(name), writtenAt: Math.floor(found.mtimeMs / 1000) };
          }),
        );
        return { items: items.filter((item) => item !== undefined), ...defined({ next }) };
      }),
  };
}

class StagedFile implements StagedAsset {
  readonly #handle: FileHandle;
  readonly #path: string;
  readonly #publishedPath: string;
  #length = 0;
  #closed = false;

  constructor(handle: FileHandle, path: string, publishedPath: string) {
    this.#handle = handle;
    this.#path = path;
    this.#publishedPath = publishedPath;
  }

  append(chunk: Uint8Array): Promise<void> {
    return guarded('disk', async () => {
      await writeAll(this.#handle, chunk, this.#length);
      this.#length += chunk.length;
    });
  }

  async patch(offset: number, bytes: Uint8Array): Promise<void> {
    if (!Number.isSafeInteger(offset) || offset < 0 || offset + bytes.length > this.#length)
      throw new RangeError('a patch is outside the appended bytes');
    await guarded('disk', () => writeAll(this.#handle, bytes, offset));
  }

  read(range?: ByteRange): Readable {
    return readFrom(this.#handle, this.#length, range);
  }

  publish(): Promise<void> {
    return guarded('disk', async () => {
      await this.#handle.sync();
      await this.#close();
      await rename(this.#path, this.#publishedPath);
      await syncDirectory(dirname(this.#publishedPath));
    });
  }

  /** Removes the file unless it is published. It may be called again. The next start removes what is left. */
  async discard(): Promise<void> {
    await this.#close().catch(() => undefined);
    await remove(this.#path).catch(() => false);
  }

  async #close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#handle.close();
  }
}

/** Returns a proof's file name. `:`, alone of an identifier's characters, has a meaning in some file systems. */
function fileName(proofId: string): string {
  checkProofId(proofId);
  return proofId.replaceAll(':', '=');
}

/** Returns the proof and the part of a published file. */
function entryOf(name: string): Omit<AssetEntry, 'writtenAt'> {
  const ending = Object.values(ENDINGS).find((each) => name.endsWith(each))!;
  const proofId = name.slice(0, -ending.length).replaceAll('=', ':');
  return defined({ proofId, part: EVIDENCE_PARTS.find((part) => ENDINGS[part] === ending) });
}

async function remove(path: string): Promise<boolean> {
  return (await ifPresent(unlink(path).then(() => true))) ?? false;
}
