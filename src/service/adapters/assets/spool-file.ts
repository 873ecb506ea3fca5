import { randomBytes } from 'node:crypto';
import { type FileHandle, open, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { writeAll } from '../../../core/files/durable.js';
import type { ByteRange } from '../../ports/assets.js';

const CHUNK = 256 * 1024;

/**
 * A file without a name. It is unlinked as soon as it is open, so that no kill leaves an asset on the disk. Its errors
 * are those of the file system.
 */
export class SpoolFile {
  readonly #handle: FileHandle;
  #length = 0;
  #closed = false;

  private constructor(handle: FileHandle) {
    this.#handle = handle;
  }

  static async open(directory: string): Promise<SpoolFile> {
    const path = join(directory, `${randomBytes(8).toString('hex')}.spool`);
    const handle = await open(path, 'wx+', 0o600);
    await unlink(path);
    return new SpoolFile(handle);
  }

  /** Bytes. */
  get length(): number {
    return this.#length;
  }

  async append(chunk: Uint8Array): Promise<void> {
    await writeAll(this.#handle, chunk, this.#length);
    this.#length += chunk.length;
  }

  /** Overwrites bytes within what was appended. */
  async patch(offset: number, bytes: Uint8Array): Promise<void> {
    await writeAll(this.#handle, bytes, offset);
  }

  /** Returns a stream of the content, or of a range of it. It may be called any number of times. */
  read(range?: ByteRange): Readable {
    return readFrom(this.#handle, this.#length, range);
  }

  /** Gives the space back. Safe any number of times. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#handle.close();
  }
}

/**
 * Returns a stream of the first `length` bytes of a file that stays open, or of a range of them. The platform's own
 * stream of a file would close the file when it is destroyed, or leave a listener on it.
 */
export function readFrom(handle: FileHandle, length: number, range?: ByteRange): Readable {
  async function* chunks(): AsyncGenerator<Buffer> {
    const end = Math.min(length, (range?.end ?? length) + 1);
    for (let position = range?.start ?? 0; position < end; ) {
      const size = Math.min(CHUNK, end - position);
      const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(size), 0, size, position);
      if (bytesRead === 0) throw new Error('the file is shorter than the data written to it');
      yield buffer.subarray(0, bytesRead);
      position += bytesRead;
    }
  }
  return Readable.from(chunks(), { objectMode: false });
}
