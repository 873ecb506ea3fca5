import { constants } from 'node:fs';
import { type FileHandle, open, stat } from 'node:fs/promises';
import { namedFile } from './batch/find-audio.js';
import { RuntimeError } from './command.js';

/** How many bytes are read at once. */
const CHUNK_BYTES = 262_144;

/** A regular file that stays open, so that every reading is of the same file even if its name is given away. */
export interface LocalFile {
  /** Reads the file from its start to the length that it had when it was opened. */
  read(): AsyncGenerator<Uint8Array>;
  close(): Promise<void>;
}

/**
 * Opens a file to read it several times.
 * @param signal ends every reading when it aborts
 * @param stored the path as it is stored, if the file was found and its path is not UTF-8
 * @throws RuntimeError for a pipe, a device or a directory
 */
export async function openLocalFile(path: string, signal: AbortSignal, stored?: Buffer): Promise<LocalFile> {
  const named = stored === undefined ? await namedFile(path) : { path: stored };
  const place = typeof named === 'string' ? named : named.path;
  // A pipe is refused before it is opened, because opening it would wake its writer.
  if (!(await stat(place)).isFile()) throw notRegular(path);
  // Without O_NONBLOCK, opening a pipe that took the name meanwhile would wait for a writer. Windows has no such flag.
  const handle = await open(place, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  try {
    const info = await handle.stat();
    if (!info.isFile()) throw notRegular(path);
    return { read: () => readAll(handle, info.size, signal), close: () => handle.close() };
  } catch (error) {
    await handle.close();
    throw error;
  }
}

async function* readAll(handle: FileHandle, size: number, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < size; ) {
    signal.throwIfAborted();
    const buffer = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, size - at));
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, at);
    if (bytesRead === 0) return;
    yield buffer.subarray(0, bytesRead);
    at += bytesRead;
  }
}

function notRegular(path: string): RuntimeError {
  return new RuntimeError(`${path} is not a regular file`);
}
