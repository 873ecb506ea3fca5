import { randomBytes } from 'node:crypto';
import { type FileHandle, link, open, rename, rm, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';

/** Prefix of files that are being written. A kill leaves them behind, under a name that tells so. */
export const UNFINISHED = '.unfinished-';

/** Whole content, or the parts of it in their order. */
export type Content = string | Uint8Array | Iterable<Uint8Array> | AsyncIterable<Uint8Array>;

/**
 * Puts the directory's entries on disk: a new name is lost in a power cut until then, however well its
 * content was synced.
 */
export async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Writes all bytes at a place of the file: write(2) may take less than it was given. */
export async function writeAll(handle: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < bytes.length; )
    done += (await handle.write(bytes, done, bytes.length - done, position + done)).bytesWritten;
}

/**
 * Makes or replaces a file. A reader finds the former content or the new one, whole; a kill leaves one of the
 * two. Durable when it resolves.
 * @param mode permissions of the new file, less the process's mask
 */
export async function replaceFile(path: string, content: Content, mode = 0o600): Promise<void> {
  await (await openReplacement(path, content, mode)).close();
  await syncDirectory(directoryOf(path));
}

/**
 * Replaces a file and leaves the new one open. Its name is durable only when the caller has synced the
 * directory: the caller turns to the new file first, because writes to the former one are lost from now on.
 */
export async function openReplacement(path: string, content: Content, mode = 0o600): Promise<FileHandle> {
  return writeIn(directoryOf(path), content, mode, (unfinished) => rename(unfinished, path));
}

/**
 * Makes a file that is not there yet, whole and durable, and never replaces what another process has made
 * meanwhile.
 * @param workshop where it is written, on the same file system; the file's own directory where none is given
 * @returns false where there is such a file already, which stays as it is
 */
export async function createFile(
  path: string,
  content: Content,
  mode = 0o600,
  workshop = directoryOf(path),
): Promise<boolean> {
  let made = true;
  const handle = await writeIn(workshop, content, mode, async (unfinished) => {
    try {
      // Unlike rename, link replaces nothing.
      await link(unfinished, path);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      // File systems without links, such as FAT.
      if (code === 'EPERM' || code === 'ENOTSUP' || code === 'ENOSYS') {
        made = !(await isThere(path));
        if (made) await rename(unfinished, path);
      } else if (code === 'EEXIST') made = false;
      else throw error;
    }
  });
  await handle.close();
  await syncDirectory(directoryOf(path));
  return made;
}

/** Writes a new file in a directory, syncs it and gives it its place. @returns the file, open */
async function writeIn(
  directory: string,
  content: Content,
  mode: number,
  place: (unfinished: string) => Promise<void>,
): Promise<FileHandle> {
  const unfinished = join(directory, `${UNFINISHED}${randomBytes(8).toString('hex')}`);
  try {
    const handle = await open(unfinished, 'wx+', mode);
    try {
      if (typeof content === 'string' || content instanceof Uint8Array) await handle.writeFile(content);
      else for await (const part of content) await handle.appendFile(part);
      await handle.sync();
      await place(unfinished);
      return handle;
    } catch (error) {
      await handle.close();
      throw error;
    }
  } finally {
    await rm(unfinished, { force: true });
  }
}

function directoryOf(path: string): string {
  return dirname(resolve(path));
}

async function isThere(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return false;
      throw error;
    },
  );
}
