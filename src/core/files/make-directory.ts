import { mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';

/**
 * Creates a directory and its missing parents, for this user alone. An existing directory stays unchanged.
 * Node's own recursive mkdir never returns below a directory in which none can be created, such as /proc.
 * @throws the file system's error
 */
export async function makeDirectory(path: string): Promise<void> {
  if (await made(path)) return;
  const parent = dirname(path);
  if (parent !== path) await makeDirectory(parent);
  if (!(await made(path)))
    throw Object.assign(new Error(`ENOENT: no directory can be created here, mkdir '${path}'`), {
      code: 'ENOENT',
      path,
    });
}

/**
 * Creates one directory, or finds an existing one.
 * @returns false when a parent is missing
 */
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
