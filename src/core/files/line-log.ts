import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { basename, dirname, resolve } from 'node:path';
import { openReplacement, syncDirectory, writeAll } from './durable.js';

const CHUNK_BYTES = 262_144;

export interface Line {
  /** The offset of its first byte in the file. */
  readonly start: number;
  /** The offset after its newline. */
  readonly end: number;
  /** The text without its newline. Undefined when it is longer than the longest allowed line. */
  readonly text: Buffer | undefined;
}

export interface LineLogOptions {
  readonly path: string;
  /** The maximum length of a line in bytes. A longer line is skipped without holding it in memory. */
  readonly longestLine?: number;
  /**
   * Receives at opening every complete line, oldest first, with the size of the file in bytes. The log ends before
   * the first line for which it returns false. An error leaves the file unchanged.
   */
  readonly each?: (line: Line, size: number) => boolean;
}

/**
 * A file (mode 0600) to which complete lines are appended. An append is on disk when its promise resolves. If
 * a crash or a full disk interrupts an append, a later open finds no part of its line. Only one process may
 * use the file, with one append at a time.
 */
export class LineLog {
  readonly #path: string;
  readonly #longestLine: number;
  #handle: FileHandle;
  #length: number;
  /** True once the file's name is on disk. */
  #named = false;
  /** True while a partial line may follow the complete ones. */
  #isTorn = false;

  private constructor({ path, longestLine = Number.POSITIVE_INFINITY }: LineLogOptions, handle: FileHandle) {
    this.#path = path;
    this.#longestLine = longestLine;
    this.#handle = handle;
    this.#length = 0;
  }

  /**
   * Reads the whole file once, and creates it if it does not exist. A last line without a newline remains
   * from a crash during a write. The append of this line was never confirmed, so the line is cut off.
   */
  static async open(options: LineLogOptions): Promise<LineLog> {
    const handle = await open(options.path, constants.O_RDWR | constants.O_CREAT, 0o600);
    try {
      const log = new LineLog(options, handle);
      const { size } = await handle.stat();
      for await (const line of log.#linesOf(handle, 0, size)) {
        if (options.each?.(line, size) === false) break;
        log.#length = line.end;
      }
      if (log.#length < size) await handle.truncate(log.#length);
      await handle.sync();
      await log.#keepName();
      return log;
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  /** Returns the bytes of all stored lines. */
  get length(): number {
    return this.#length;
  }

  /**
   * Appends lines.
   * @param lines complete lines, each with its newline
   * @throws Error when another process has written to the file, whose lines stay
   */
  async append(lines: string): Promise<void> {
    const bytes = Buffer.from(lines);
    if (!this.#isTorn && (await this.#handle.stat()).size !== this.#length)
      throw Object.assign(new Error(`${basename(this.#path)} is written by another process`), {
        code: 'WRITTEN_BY_ANOTHER_PROCESS',
      });
    try {
      await writeAll(this.#handle, bytes, this.#length);
      await this.#handle.datasync();
      await this.#keepName();
      this.#length += bytes.length;
      this.#isTorn = false;
    } catch (error) {
      // A partial line must not end up between complete lines.
      this.#isTorn = true;
      await this.#handle.truncate(this.#length).then(
        () => (this.#isTorn = false),
        () => undefined,
      );
      throw error;
    }
  }

  /** Yields every stored line, oldest first. A line that is being appended is not included. */
  async *lines(): AsyncGenerator<Line, void, undefined> {
    const length = this.#length;
    // A separate handle, because the log may be replaced while it is read.
    const handle = await open(this.#path, 'r');
    try {
      yield* this.#linesOf(handle, 0, length);
    } finally {
      await handle.close();
    }
  }

  /**
   * Returns the text of the line that begins at an offset. Returns undefined when no line begins there, or
   * when it is too long.
   */
  async lineAt(start: number): Promise<Buffer | undefined> {
    for await (const { text } of this.#linesOf(this.#handle, start, this.#length)) return text;
    return undefined;
  }

  /**
   * Replaces all lines. After a crash the file has either the former lines or the new ones. From the next
   * append on it has the new ones.
   */
  async replace(lines: string): Promise<void> {
    const former = this.#handle;
    this.#handle = await openReplacement(this.#path, lines);
    this.#named = false;
    this.#length = Buffer.byteLength(lines);
    // The new file is in place, so a failure to close the former one changes nothing.
    await former.close().catch(() => undefined);
  }

  close(): Promise<void> {
    return this.#handle.close();
  }

  async #keepName(): Promise<void> {
    if (this.#named) return;
    await syncDirectory(dirname(resolve(this.#path)));
    this.#named = true;
  }

  /** Yields the lines that end with a newline before `to`, with one in memory at a time. */
  async *#linesOf(handle: FileHandle, from: number, to: number): AsyncGenerator<Line, void, undefined> {
    const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
    let start = from;
    let parts: Buffer[] = [];
    let bytes = 0;
    for (let at = from; at < to; ) {
      const { bytesRead } = await handle.read(chunk, 0, Math.min(CHUNK_BYTES, to - at), at);
      if (bytesRead === 0) return;
      for (let offset = 0; offset < bytesRead; ) {
        const newline = chunk.subarray(0, bytesRead).indexOf(0x0a, offset);
        const part = chunk.subarray(offset, newline < 0 ? bytesRead : newline);
        bytes += part.length;
        // A copy, because the chunk is reused for the next read.
        if (bytes <= this.#longestLine) parts.push(Buffer.from(part));
        else parts = [];
        if (newline < 0) break;
        const end = at + newline + 1;
        yield { start, end, text: bytes <= this.#longestLine ? Buffer.concat(parts) : undefined };
        [start, parts, bytes] = [end, [], 0];
        offset = newline + 1;
      }
      at += bytesRead;
    }
  }
}
