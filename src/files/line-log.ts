import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { basename, dirname, resolve } from 'node:path';
import { openReplacement, syncDirectory, writeAll } from './durable.js';

const CHUNK_BYTES = 262_144;

export interface Line {
  /** Place of its first byte in the file. */
  readonly start: number;
  /** Place behind its newline. */
  readonly end: number;
  /** Text without its newline; undefined where it is longer than the log's longest line. */
  readonly text: Buffer | undefined;
}

export interface LineLogOptions {
  readonly path: string;
  /** Bytes; a longer line is passed over without holding it in memory. */
  readonly longestLine?: number;
  /**
   * Sees every whole line that is there when the log is opened, oldest first, and the size of the file. A log
   * ends before the first line for which it returns false; an error leaves the file as it is.
   */
  readonly each?: (line: Line, size: number) => boolean;
}

/**
 * A file (mode 0600) to which whole lines are appended. An append is on disk when it resolves; one that a
 * kill or a full disk cuts short leaves no part of a line that a later open would find. It belongs to one
 * process at a time, and to one append at a time.
 */
export class LineLog {
  readonly #path: string;
  readonly #longestLine: number;
  #handle: FileHandle;
  #length: number;
  /** True when the file's name is on disk. */
  #named = false;
  /** True while there may be a part of a line behind the whole ones. */
  #isTorn = false;

  private constructor({ path, longestLine = Number.POSITIVE_INFINITY }: LineLogOptions, handle: FileHandle) {
    this.#path = path;
    this.#longestLine = longestLine;
    this.#handle = handle;
    this.#length = 0;
  }

  /**
   * Reads the whole file once, and makes it where there is none. A last line without its end is what a kill
   * in the middle of a write leaves: nobody was told that it is kept, and it is cut off.
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

  /** Bytes of the lines that are kept. */
  get length(): number {
    return this.#length;
  }

  /**
   * @param lines whole lines, each with its newline
   * @throws Error where another process has written to the file: what it wrote stays
   */
  async append(lines: string): Promise<void> {
    const bytes = Buffer.from(lines);
    if (!this.#isTorn && (await this.#handle.stat()).size !== this.#length)
      throw Object.assign(new Error(`${basename(this.#path)} is written by another process, too`), {
        code: 'WRITTEN_BY_ANOTHER_PROCESS',
      });
    try {
      await writeAll(this.#handle, bytes, this.#length);
      await this.#handle.datasync();
      await this.#keepName();
      this.#length += bytes.length;
      this.#isTorn = false;
    } catch (error) {
      // A line that was half written must not end up between whole lines.
      this.#isTorn = true;
      await this.#handle.truncate(this.#length).then(
        () => (this.#isTorn = false),
        () => undefined,
      );
      throw error;
    }
  }

  /** Every line that is kept now, oldest first; a line that is being appended is not among them. */
  async *lines(): AsyncGenerator<Line, void, undefined> {
    const length = this.#length;
    // A file of its own: the log may be replaced while it is read.
    const handle = await open(this.#path, 'r');
    try {
      yield* this.#linesOf(handle, 0, length);
    } finally {
      await handle.close();
    }
  }

  /** Text of the line that begins at a place; undefined where none does, or where it is too long. */
  async lineAt(start: number): Promise<Buffer | undefined> {
    for await (const { text } of this.#linesOf(this.#handle, start, this.#length)) return text;
    return undefined;
  }

  /**
   * Other lines in place of all that are there. After a kill the file holds the former ones or these, and
   * these from the next append on.
   */
  async replace(lines: string): Promise<void> {
    const former = this.#handle;
    this.#handle = await openReplacement(this.#path, lines);
    this.#named = false;
    this.#length = Buffer.byteLength(lines);
    // The new file has its place: that the former one could not be closed changes nothing.
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

  /** Lines that end with a newline before `to`, one in memory at a time. */
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
        // A copy: the chunk is read into again.
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
