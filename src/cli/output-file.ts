import { randomBytes } from 'node:crypto';
import type { Stats } from 'node:fs';
import { link, open, rename, rm, stat, unlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { TroubleError, UsageError } from './command.js';

/** A file that will be written, checked before the work whose result it takes. */
export interface PlannedOutput {
  readonly path: string;
  readonly force: boolean;
}

/**
 * @param inputs files that are read; an output is never one of them, not even by another name or with `force`
 * @throws UsageError
 */
export async function planOutput(
  path: string,
  force: boolean,
  inputs: readonly string[],
): Promise<PlannedOutput> {
  const directory = await statIfThere(dirname(path));
  if (directory?.isDirectory() !== true) throw new UsageError(`the directory of ${path} does not exist`);
  const existing = await statIfThere(path);
  if (existing !== undefined) {
    for (const input of inputs) {
      const other = await statIfThere(input);
      if (other !== undefined && other.dev === existing.dev && other.ino === existing.ino)
        throw new UsageError(`${path} is the input itself`);
    }
    if (!existing.isFile()) throw new UsageError(`${path} exists and is not a file`);
    if (!force) throw new UsageError(`${path} exists; give --force to replace it`);
  }
  return { path, force };
}

/**
 * Writes all or nothing: a reader sees the complete file or none, and an interruption leaves nothing behind.
 * @param mode permissions of the file, less the process's mask
 */
export async function writeOutput(
  { path, force }: PlannedOutput,
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  mode = 0o666,
): Promise<void> {
  const temporary = join(dirname(path), `.${basename(path)}.${randomBytes(6).toString('hex')}.tmp`);
  try {
    const handle = await open(temporary, 'wx', mode);
    try {
      // Not `handle.write`, which may write less than it is given.
      for await (const chunk of chunks) await handle.appendFile(chunk);
      await handle.sync();
    } finally {
      await handle.close();
    }
    if (force) await rename(temporary, path);
    else await publish(temporary, path);
  } finally {
    await rm(temporary, { force: true });
  }
}

/** A rename would silently replace a file that has appeared meanwhile; a link does not. */
async function publish(temporary: string, path: string): Promise<void> {
  try {
    await link(temporary, path);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === 'EEXIST') throw new TroubleError(`${path} has appeared meanwhile and was not replaced`);
    // File systems without links, such as FAT.
    if (code !== 'EPERM' && code !== 'ENOTSUP' && code !== 'ENOSYS') throw error;
    if ((await statIfThere(path)) !== undefined)
      throw new TroubleError(`${path} has appeared meanwhile and was not replaced`);
    await rename(temporary, path);
    return;
  }
  await unlink(temporary);
}

/** Without it a new name can be gone after a power cut, however well its content was synced. */
export async function syncDirectory(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function statIfThere(path: string): Promise<Stats | undefined> {
  return stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return undefined;
    throw error;
  });
}
