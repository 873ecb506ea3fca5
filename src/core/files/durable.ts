import { randomBytes } from 'node:crypto';
import { type FileHandle, link, open, rename, rm, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';

/** The prefix of files that are being written. A crash leaves them, recognizable by their name. */
export const UNFINISHED = '.unfinished-';

/** The whole content, or its parts in order. */
export type Content = string | Uint8Array | Iterable<Uint8Array> | AsyncIterable<Uint8Array>;

/**
 * Syncs the entries of a directory to disk. Until then a power failure can lose a new name, even if the
 * file's content was synced.
 */
export async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Writes all bytes at a position of the file. A single write(2) may write fewer bytes than it was given. */
export async function writeAll(handle: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < bytes.length; )
    done += (await handle.write(bytes, done, bytes.length - done, position + done)).bytesWritten;
}

/**
 * Creates or replaces a file. A reader sees either the complete former content or the complete new content,
 * also after a crash. The file is durable when the promise resolves.
 * @param mode the permissions of the new file, reduced by the process's umask
 */
export async function replaceFile(path: string, content: Content, mode = 0o600): Promise<void> {
  await (await openReplacement(path, content, mode)).close();
  await syncDirectory(directoryOf(path));
}

/**
 * Replaces a file and leaves the new one open. The new name is durable only after the caller has synced the
 * directory. The caller must switch to the new file first, because writes to the former file are lost from
 * now on.
 */
export async function openReplacement(path: string, content: Content, mode = 0o600): Promise<FileHandle> {
  return writeIn(directoryOf(path), content, mode, (unfinished) => rename(unfinished, path));
}

/**
 * Creates a complete and durable file that does not exist yet. Never replaces a file that another process has
 * created meanwhile.
 * @param workshop the directory for writing it, on the same file system. By default the file's own directory.
 * @returns false when the file already exists, which then stays unchanged
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
      // Unlike rename, link never replaces a file.
      await link(unfinished, path);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      // File systems without hard links, such as FAT.
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

/**
 * Writes a new file in a directory, syncs it and moves it to its place.
 * @returns the open file
 */
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
