import { randomUUID } from 'node:crypto';
import { link, mkdir, open, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * A small secret file of mode 0600 that appears whole or not at all, and that nobody else's start replaces.
 * @param make what to write where there is none yet
 * @returns the text that is there now, and whether this call made it
 */
export async function keepFile(
  directory: string,
  name: string,
  make: () => string,
): Promise<{ readonly text: string; readonly made: boolean }> {
  const path = join(directory, name);
  const kept = await read(path);
  if (kept !== undefined) return { text: kept, made: false };
  await mkdir(directory, { recursive: true, mode: 0o700 });
  await place(directory, make(), (unfinished) =>
    // Unlike rename, link never replaces what another process made meanwhile.
    link(unfinished, path).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    }),
  );
  return { text: await readFile(path, 'utf8'), made: true };
}

/**
 * Another text for such a file, by a process that alone may do so: the former one is there until the new one
 * is, whole.
 */
export async function replaceFile(directory: string, name: string, text: string): Promise<void> {
  await place(directory, text, (unfinished) => rename(unfinished, join(directory, name)));
}

async function place(
  directory: string,
  text: string,
  put: (unfinished: string) => Promise<void>,
): Promise<void> {
  const unfinished = join(directory, `.unfinished-${randomUUID()}`);
  try {
    const file = await open(unfinished, 'wx', 0o600);
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await put(unfinished);
  } finally {
    await rm(unfinished, { force: true });
  }
  const parent = await open(directory, 'r');
  try {
    await parent.sync();
  } finally {
    await parent.close();
  }
}

async function read(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
