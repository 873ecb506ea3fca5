import { mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';

/**
 * Makes a directory, and those above it that are missing, for this user alone. One that is there stays as it is. The
 * platform's own recursive call never ends below a directory in which nothing can be made, such as /proc.
 * @throws the file system's error
 */
export async function makeDirectory(path: string): Promise<void> {
  if (await made(path)) return;
  const parent = dirname(path);
  if (parent !== path) await makeDirectory(parent);
  if (!(await made(path)))
    throw Object.assign(new Error(`ENOENT: no directory can be made here, mkdir '${path}'`), {
      code: 'ENOENT',
      path,
    });
}

/** @returns false where a directory above is missing */
async function made(path: string): Promise<boolean> {
  try {
    await mkdir(path, { mode: 0o700 });
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return false;
    if (code !== 'EEXIST' || !(await stat(path)).isDirectory()) throw error;
    return true;
  }
}
