import { randomBytes } from 'node:crypto';
import { type FileHandle, mkdir, open, opendir, rename, stat, unlink } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { Readable } from 'node:stream';
import { EVIDENCE_PARTS, type EvidencePart } from '../../domain/evidence.js';
import { syncDirectory, writeAll } from '../../files/durable.js';
import type { AssetStore, StagedAsset } from '../../ports/assets.js';
import { checkProofId, guarded } from './failure.js';

/** Endings of published files. A name has exactly one of them behind the id, which may hold dots itself. */
const ENDINGS = {
  asset: '.asset',
  facts: '.facts',
  detail: '.detail',
  trace: '.trace',
} as const satisfies Record<'asset' | EvidencePart, string>;
const STAGED = '.staged';

/**
 * Assets as files of one directory (mode 0700, files 0600): `<proof id>.asset`, parts of evidence with an ending of
 * their own, and `<proof id>.<random>.staged` while they are built. It belongs to one process at a time, as the store beside it
 * does. Renaming makes a file visible; file and directory are synced before anyone is told. I/O failures are
 * DomainError `unavailable` / `store_unavailable`; one in the middle of a read is an error of its stream.
 */
export async function openAssetDirectory({ directory }: { readonly directory: string }): Promise<AssetStore> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  await syncDirectory(dirname(resolve(directory)));
  /** Names that this process is building, which `collectOrphans` must not take. */
  const building = new Set<string>();
  const published = (proofId: string, part: 'asset' | EvidencePart = 'asset') =>
    fileName(proofId) + ENDINGS[part];

  return {
    stage: (proofId, part) =>
      guarded(async () => {
        const name = `${fileName(proofId)}.${randomBytes(8).toString('hex')}${STAGED}`;
        building.add(name);
        try {
          const handle = await open(join(directory, name), 'wx+', 0o600);
          return new StagedFile(handle, directory, name, published(proofId, part), () =>
            building.delete(name),
          );
        } catch (error) {
          building.delete(name);
          throw error;
        }
      }),

    read: (proofId, range, part) =>
      guarded(async () => {
        const handle = await ifPresent(open(join(directory, published(proofId, part)), 'r'));
        return handle?.createReadStream(range === undefined ? {} : { start: range.start, end: range.end });
      }),

    size: (proofId, part) =>
      guarded(async () => (await ifPresent(stat(join(directory, published(proofId, part)))))?.size),

    delete: (proofId) =>
      guarded(async () => {
        const removed = await remove(join(directory, published(proofId)));
        for (const part of EVIDENCE_PARTS) await remove(join(directory, published(proofId, part)));
        // Also where it was not there: an earlier call may have ended between the removal and its sync.
        await syncDirectory(directory);
        return removed;
      }),

    collectOrphans: (keep) =>
      guarded(async () => {
        let collected = 0;
        for await (const { name } of await opendir(directory)) {
          const proofId = proofIdOf(name);
          const left = name.endsWith(STAGED)
            ? !building.has(name)
            : proofId !== undefined && !(await keep(proofId));
          if (left && (await remove(join(directory, name)))) collected += 1;
        }
        if (collected > 0) await syncDirectory(directory);
        return collected;
      }),
  };
}

class StagedFile implements StagedAsset {
  readonly #handle: FileHandle;
  readonly #directory: string;
  readonly #path: string;
  readonly #publishedPath: string;
  readonly #release: () => void;
  #length = 0;
  #closed = false;

  constructor(
    handle: FileHandle,
    directory: string,
    name: string,
    publishedName: string,
    release: () => void,
  ) {
    this.#handle = handle;
    this.#directory = directory;
    this.#path = join(directory, name);
    this.#publishedPath = join(directory, publishedName);
    this.#release = release;
  }

  append(chunk: Uint8Array): Promise<void> {
    return guarded(async () => {
      await writeAll(this.#handle, chunk, this.#length);
      this.#length += chunk.length;
    });
  }

  async patch(offset: number, bytes: Uint8Array): Promise<void> {
    if (!Number.isSafeInteger(offset) || offset < 0 || offset + bytes.length > this.#length)
      throw new RangeError('patch outside of what was appended');
    await guarded(() => writeAll(this.#handle, bytes, offset));
  }

  read(): Readable {
    if (this.#length === 0) return Readable.from([]);
    return this.#handle.createReadStream({ start: 0, end: this.#length - 1, autoClose: false });
  }

  publish(): Promise<void> {
    return guarded(async () => {
      await this.#handle.sync();
      await this.#close();
      await rename(this.#path, this.#publishedPath);
      await syncDirectory(this.#directory);
      this.#release();
    });
  }

  /**
   * Nothing after `publish`; safe any number of times. What cannot be removed is left to `collectOrphans`.
   */
  async discard(): Promise<void> {
    await this.#close().catch(() => undefined);
    await remove(this.#path).catch(() => false);
    this.#release();
  }

  async #close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#handle.close();
  }
}

/** Name of a proof's file: `:`, alone of an identifier's characters, means something to some file systems. */
function fileName(proofId: string): string {
  checkProofId(proofId);
  return proofId.replaceAll(':', '=');
}

/** Proof of a published file; undefined for other names. */
function proofIdOf(name: string): string | undefined {
  const ending = Object.values(ENDINGS).find((each) => name.endsWith(each));
  return ending === undefined ? undefined : name.slice(0, -ending.length).replaceAll('=', ':');
}

async function ifPresent<Value>(found: Promise<Value>): Promise<Value | undefined> {
  try {
    return await found;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

async function remove(path: string): Promise<boolean> {
  return (await ifPresent(unlink(path).then(() => true))) ?? false;
}
