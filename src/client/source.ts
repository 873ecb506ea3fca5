import { constants, createReadStream } from 'node:fs';
import { open, readFile, stat } from 'node:fs/promises';
import { TakemarkError } from './errors.js';

/** Audio to send: a path, bytes, or anything that yields bytes (a Readable, for one). */
export type AudioInput = string | Uint8Array | AsyncIterable<Uint8Array>;

export interface AudioSource {
  /** Undefined for a stream whose length the caller did not give. */
  readonly bytes: number | undefined;
  /** True where `open` works more than once; only then can a failed upload be sent again. */
  readonly reopenable: boolean;
  open(): AsyncIterable<Uint8Array>;
}

/** A sidecar is at most 1 MiB on the wire. */
const MAX_SIDECAR_BYTES = 1_048_576;
const READ_CHUNK_BYTES = 262_144;

/** @param bytes length of a stream, where the caller knows it */
export async function audioSource(input: AudioInput, bytes?: number): Promise<AudioSource> {
  if (typeof input === 'string') return fileSource(input);
  if (input instanceof Uint8Array)
    return { bytes: input.byteLength, reopenable: true, open: () => slices(input) };
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

async function fileSource(path: string): Promise<AudioSource> {
  const info = await stat(path).catch((cause: unknown) => {
    throw sourceError(cause);
  });
  // The length of a pipe or a device is not known before it has been read.
  if (!info.isFile()) throw new TakemarkError('source_failed', 'not a regular file');
  return {
    bytes: info.size,
    reopenable: true,
    open: () => createReadStream(path, { highWaterMark: READ_CHUNK_BYTES }),
  };
}

/**
 * Closes a source that is not read to its end. A stream is destroyed: its iterator's `return` would wait for
 * a read that may never come.
 */
export function release(chunks: AsyncIterable<Uint8Array>): void {
  if ('destroy' in chunks && typeof chunks.destroy === 'function') chunks.destroy();
}

async function* slices(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.byteLength; at += READ_CHUNK_BYTES)
    yield bytes.subarray(at, at + READ_CHUNK_BYTES);
}

/** Reads a sidecar whole, refusing what cannot be one before it fills the memory. */
export async function sidecarBytes(input: string | Uint8Array): Promise<Uint8Array> {
  if (typeof input !== 'string') return checkedSidecar(input);
  try {
    // Without waiting for the writer of a pipe: a delivery may hold one, and nothing could end the wait.
    const handle = await open(input, constants.O_RDONLY | constants.O_NONBLOCK);
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
  return new TakemarkError('source_failed', 'the sidecar is larger than 1 MiB');
}

/** An error of reading on this side; Node's message carries the path, which is the caller's own. */
export function sourceError(cause: unknown): TakemarkError {
  return new TakemarkError(
    'source_failed',
    cause instanceof Error ? cause.message : 'the source could not be read',
    { cause },
  );
}
