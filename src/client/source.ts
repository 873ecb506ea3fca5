import { constants, createReadStream } from 'node:fs';
import { open, readFile, stat } from 'node:fs/promises';
import { TakemarkError } from './errors.js';

/** A file by its path. A path that is not UTF-8 is given as its bytes. */
export interface FileInput {
  readonly path: string | Uint8Array;
}

/** The audio to send: a path, bytes, a file, or anything that yields bytes, such as a Readable. */
export type AudioInput = string | Uint8Array | FileInput | AsyncIterable<Uint8Array>;

export interface AudioSource {
  /** The length in bytes. Undefined for a stream without a given length. */
  readonly bytes: number | undefined;
  /** True if `open` works more than once. Only then can a failed upload be retried. */
  readonly reopenable: boolean;
  open(): AsyncIterable<Uint8Array>;
}

/** The maximum size of a sidecar in bytes. */
const MAX_SIDECAR_BYTES = 32_768;
const READ_CHUNK_BYTES = 262_144;

/** @param bytes the length of a stream, if known */
export async function audioSource(input: AudioInput, bytes?: number): Promise<AudioSource> {
  if (typeof input === 'string') return fileSource(input);
  if (input instanceof Uint8Array)
    return { bytes: input.byteLength, reopenable: true, open: () => slices(input) };
  if (!isStream(input)) return fileSource(input.path);
  let opened = false;
  return {
    bytes,
    reopenable: false,
    open() {
      if (opened) throw new TakemarkError('source_failed', 'a stream can be read only once');
      opened = true;
      return input;
    },
  };
}

/** Returns true for a stream. A stream of a file has a `path` too. */
function isStream(input: AudioInput): input is AsyncIterable<Uint8Array> {
  return typeof input === 'object' && Symbol.asyncIterator in input;
}

async function fileSource(given: string | Uint8Array): Promise<AudioSource> {
  const path = typeof given === 'string' ? given : Buffer.from(given);
  const info = await stat(path).catch((cause: unknown) => {
    throw sourceError(cause);
  });
  // The length of a pipe or a device is unknown until it has been read.
  if (!info.isFile()) throw new TakemarkError('source_failed', 'not a regular file');
  return {
    bytes: info.size,
    reopenable: true,
    open: () => createReadStream(path, { highWaterMark: READ_CHUNK_BYTES }),
  };
}

/**
 * Closes a stream that was not read to its end. The stream is destroyed, because its iterator's `return` would
 * wait for a pending read. Any other input stays as it is.
 */
export function release(chunks: AudioInput): void {
  if (isStream(chunks) && 'destroy' in chunks && typeof chunks.destroy === 'function') chunks.destroy();
}

async function* slices(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.byteLength; at += READ_CHUNK_BYTES)
    yield bytes.subarray(at, at + READ_CHUNK_BYTES);
}

/** Reads a whole sidecar. A file above the size limit is refused before it is read. */
export async function sidecarBytes(input: string | Uint8Array | FileInput): Promise<Uint8Array> {
  if (input instanceof Uint8Array) return checkedSidecar(input);
  const given = typeof input === 'string' ? input : input.path;
  const path = typeof given === 'string' ? given : Buffer.from(given);
  try {
    // O_NONBLOCK: a delivery may contain a named pipe, and opening it must not wait forever for a writer.
    const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const info = await handle.stat();
      if (!info.isFile()) throw new TakemarkError('source_failed', 'the sidecar is not a regular file');
      if (info.size > MAX_SIDECAR_BYTES) throw sidecarTooLarge();
      return checkedSidecar(await readFile(handle));
    } finally {
      await handle.close();
    }
  } catch (error) {
    throw error instanceof TakemarkError ? error : sourceError(error);
  }
}

function checkedSidecar(bytes: Uint8Array): Uint8Array {
  if (bytes.byteLength > MAX_SIDECAR_BYTES) throw sidecarTooLarge();
  return bytes;
}

function sidecarTooLarge(): TakemarkError {
  return new TakemarkError('source_failed', 'the sidecar is larger than 32 KiB');
}

/** Returns the error of a failed local read. Node's message contains the path, which the caller knows. */
export function sourceError(cause: unknown): TakemarkError {
  return new TakemarkError(
    'source_failed',
    cause instanceof Error ? cause.message : 'the source could not be read',
    { cause },
  );
}
