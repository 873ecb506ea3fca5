import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createFile } from '../../../core/files/durable.js';
import { makeDirectory } from '../../../core/files/make-directory.js';

/**
 * Reads or makes a small secret file of mode 0600. It appears whole or not at all, and no other start replaces it.
 * @param make returns the text of a new file
 * @returns the text of the file, and whether this call made it
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
