import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createFile } from '../../../core/files/durable.js';
import { makeDirectory } from '../../../core/files/make-directory.js';

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
  await makeDirectory(directory);
  const made = await createFile(path, make());
  return { text: await readFile(path, 'utf8'), made };
}

async function read(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
