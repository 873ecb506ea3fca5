import { randomBytes } from 'node:crypto';
import { open, readdir, readFile, rm, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { CONTENT_KEY_BYTES } from '../../../core/codec/encrypt.js';
import { defined } from '../../../core/domain/defined.js';
import { DomainError } from '../../../core/domain/errors.js';
import { IDENTIFIER_PATTERN } from '../../../core/domain/identifiers.js';
import { createFile, writeAll } from '../../../core/files/durable.js';
import { ifPresent } from '../../../core/files/if-present.js';
import { makeDirectory } from '../../../core/files/make-directory.js';
import { ShardedDirectory } from '../../../core/files/sharded-directory.js';
import type { ContentKeys } from '../../ports/content-keys.js';

/** The directory of keys that are being made, in the directory of the keys. */
const UNFINISHED_KEYS = 'unfinished';
const ENDING = '.key';

/** The keys in a directory. A second directory can hold a copy of them. */
export interface KeyDirectory extends ContentKeys {
  /** Stores a key that exists elsewhere, durably. An existing key stays unchanged. */
  store(proofId: string, key: Uint8Array): Promise<void>;
  /** Lists the ids of keys after `after`, at most `limit`. `next` is given as long as more ids follow. */
  list(
    after: string | undefined,
    limit: number,
  ): Promise<{ readonly proofIds: readonly string[]; readonly next?: string }>;
}

/**
 * Opens the keys, which are files of a sharded directory (mode 0700, files 0600): `<proof id>.key`. A key that is
 * destroyed is overwritten in its place before its name is removed. Nothing brings it back: a key is made in the
 * process that gives it its place, and is never sent twice.
 */
export async function openKeyDirectory({ directory }: { readonly directory: string }): Promise<KeyDirectory> {
  const files = await ShardedDirectory.open(directory, [ENDING]);
  // Left by a kill; a key that another process makes at this moment is refused to it, and made at the repeat. They are
  // not overwritten: one that has its place already is the same file.
  const unfinished = join(directory, UNFINISHED_KEYS);
  await makeDirectory(unfinished);
  for (const name of await readdir(unfinished)) await rm(join(unfinished, name), { force: true });
  const stemOf = (proofId: string): string => {
    if (!IDENTIFIER_PATTERN.test(proofId))
      throw new DomainError('invalid_request', 'This is not an identifier.');
    // Alone of an identifier's characters it means something to some file systems.
    return proofId.replaceAll(':', '=');
  };
  const read = async (stem: string): Promise<Uint8Array | undefined> => {
    const key = await ifPresent(readFile(files.path(stem + ENDING)));
    // A file that a kill left overwritten, and not yet removed, holds no key.
    return key?.length === CONTENT_KEY_BYTES && key.some((byte) => byte !== 0) ? key : undefined;
  };

  const destroy = (proofId: string): Promise<void> =>
    guarded(async () => {
      const stem = stemOf(proofId);
      const path = files.path(stem + ENDING);
      const handle = await ifPresent(open(path, 'r+'));
      if (handle !== undefined) {
        try {
          await writeAll(handle, Buffer.alloc(CONTENT_KEY_BYTES), 0);
          await handle.sync();
        } finally {
          await handle.close();
        }
        await ifPresent(unlink(path));
      }
      // Also where it was not there: an earlier call may have ended between the removal and its sync.
      await files.sync(stem);
    });

  return {
    obtain: (proofId) =>
      guarded(async () => {
        const stem = stemOf(proofId);
        const key = randomBytes(CONTENT_KEY_BYTES);
        await files.prepare(stem);
        if (await createFile(files.path(stem + ENDING), key, 0o600, unfinished)) return key;
        const made = await read(stem);
        if (made === undefined) throw new Error('the content key is being destroyed');
        return made;
      }),

    read: (proofId) => guarded(() => read(stemOf(proofId))),

    store: (proofId, key) =>
      guarded(async () => {
        const stem = stemOf(proofId);
        // The usual case, which needs no sync.
        if ((await read(stem)) !== undefined) return;
        const path = files.path(stem + ENDING);
        await files.prepare(stem);
        if (await createFile(path, key, 0o600, unfinished)) return;
        if ((await read(stem)) !== undefined) return;
        // A kill left an overwritten file without a key.
        await ifPresent(unlink(path));
        await createFile(path, key, 0o600, unfinished);
      }),

    list: (after, limit) =>
      guarded(async () => {
        const { names, next } = await files.page(after && nameOf(after), limit);
        return { proofIds: names.map(idOf), ...defined({ next: next && idOf(next) }) };
      }),

    destroy,
    release: destroy,
  };
}

function idOf(name: string): string {
  return name.slice(0, -ENDING.length).replaceAll('=', ':');
}

/** Returns the name of a key's file. `:`, alone of an identifier's characters, has a meaning in some file systems. */
function nameOf(proofId: string): string {
  return proofId.replaceAll(':', '=') + ENDING;
}

async function guarded<Value>(work: () => Promise<Value>): Promise<Value> {
  try {
    return await work();
  } catch (cause) {
    if (cause instanceof DomainError) throw cause;
    throw new DomainError('unavailable', 'The content keys cannot be reached at the moment.', {
      reason: 'store_unavailable',
      retryAfterSeconds: 1,
      dependency: 'disk',
      cause,
    });
  }
}
