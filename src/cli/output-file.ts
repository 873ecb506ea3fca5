import type { Stats } from 'node:fs';
import { lstat, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { createFile, replaceFile } from '../core/files/durable.js';
import { RuntimeError, UsageError } from './command.js';

/** An output file, checked before the work that produces its content. */
export interface PlannedOutput {
  readonly path: string;
  readonly force: boolean;
}

/**
 * @param force undefined for a command without the option `--force`
 * @param inputs files that are read. An output is never one of them, not even under another name or with
 * `force`
 * @throws UsageError
 */
export async function planOutput(
  path: string,
  force: boolean | undefined,
  inputs: readonly string[],
): Promise<PlannedOutput> {
  const directory = await statIfThere(dirname(path));
  if (directory?.isDirectory() !== true) throw new UsageError(`the directory of ${path} does not exist`);
  const existing = await statIfThere(path);
  if (existing !== undefined) {
    for (const input of inputs) {
      const other = await statIfThere(input);
      if (other !== undefined && other.dev === existing.dev && other.ino === existing.ino)
        throw new UsageError(`${path} is the input file`);
    }
    if (!existing.isFile()) throw new UsageError(`${path} exists and is not a regular file`);
    if (!force)
      throw new UsageError(
        force === undefined
          ? `${path} exists and is never replaced; name another file`
          : `${path} exists; give --force to replace it`,
      );
  }
  return { path, force: force === true };
}

/**
 * Plans an output that never replaces anything, not even a link that leads nowhere.
 * @throws UsageError as `planOutput` does
 */
export async function planNewOutput(path: string, inputs: readonly string[]): Promise<PlannedOutput> {
  if ((await unlessMissing(lstat(path)))?.isSymbolicLink() === true)
    throw new UsageError(`${path} is a symbolic link, and is not replaced`);
  return planOutput(path, undefined, inputs);
}

/**
 * Writes atomically: a reader sees the complete file or none, and an interruption leaves no partial file.
 * @param mode the file permissions, reduced by the process's umask
 * @throws RuntimeError if the file was created after `planOutput`, without force
 */
export async function writeOutput(
  { path, force }: PlannedOutput,
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  mode = 0o666,
): Promise<void> {
  if (force) await replaceFile(path, chunks, mode);
  else if (!(await createFile(path, chunks, mode)))
    throw new RuntimeError(`${path} was created in the meantime and was not replaced`);
}

function statIfThere(path: string): Promise<Stats | undefined> {
  return unlessMissing(stat(path));
}

async function unlessMissing(found: Promise<Stats>): Promise<Stats | undefined> {
  return found.catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return undefined;
    throw error;
  });
}
