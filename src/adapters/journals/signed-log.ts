import { createHmac, timingSafeEqual } from 'node:crypto';
import { type FileHandle, mkdir, open, rename } from 'node:fs/promises';
import { basename, dirname, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { DomainError } from '../../domain/errors.js';
import type { Secrets } from '../../ports/secrets.js';

/** An error at start, for the operator. */
export class JournalOpenError extends Error {
  override readonly name = 'JournalOpenError';
}

export interface SignedLogOptions {
  readonly path: string;
  /** Goes into every mac, so that a line of one log means nothing in another. */
  readonly purpose: string;
  readonly secrets: Secrets;
  /** Sees every entry that is there, oldest first. */
  readonly each?: (entry: unknown) => void;
  /** What the file is to hold instead, once it has grown to `lines`; undefined while it may grow on. */
  readonly compact?: (lines: number) => readonly unknown[] | undefined;
}

interface Waiting {
  readonly entry: unknown;
  readonly done: () => void;
  readonly failed: (error: unknown) => void;
}

/**
 * A file (mode 0600) to which lines are appended and synced: `<mac> <secret id> <JSON>`, the mac over purpose and JSON under the
 * audit secret. Lines that come while others are being synced share the next sync. It belongs to one process at a time.
 */
export class SignedLog {
  readonly #options: SignedLogOptions;
  #handle: FileHandle;
  /** Bytes that are known to be good: the next line goes there. */
  #length: number;
  #lines: number;
  #waiting: Waiting[] = [];
  #writing: Promise<void> | undefined;
  #closed = false;

  private constructor(options: SignedLogOptions, handle: FileHandle, found: { readonly length: number; readonly lines: number }) {
    this.#options = options;
    this.#handle = handle;
    this.#length = found.length;
    this.#lines = found.lines;
  }

  /**
   * Reads the whole file once. A torn last line is what a kill in the middle of a write leaves: nobody was told of it, and it
   * is cut off. Anything else that does not fit was not written here.
   * @throws JournalOpenError
   */
  static async open(options: SignedLogOptions): Promise<SignedLog> {
    const { path, purpose, secrets, each } = options;
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    const handle = await open(path, 'a', 0o600).then(async (made) => {
      await made.close();
      return open(path, 'r+');
    });
    try {
      const found = { length: 0, lines: 0 };
      const { size } = await handle.stat();
      for await (const line of linesOf(handle)) {
        const entry = readLine(line, purpose, secrets);
        const end = found.length + Buffer.byteLength(line) + 1;
        if (entry === undefined || end > size) {
          if (end < size) throw new JournalOpenError(`${basename(path)} is damaged at line ${found.lines + 1}, or signed with a secret that is not kept any more`);
          break;
        }
        each?.(entry);
        found.length = end;
        found.lines += 1;
      }
      if (found.length < size) await handle.truncate(found.length);
      await handle.sync();
      await syncDirectory(dirname(resolve(path)));
      const log = new SignedLog(options, handle, found);
      await log.#compact();
      return log;
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  /** Durable when it resolves. @throws DomainError `unavailable` / `store_unavailable` */
  append(entry: unknown): Promise<void> {
    if (this.#closed) return Promise.reject(unavailable(undefined));
    return new Promise((done, failed) => {
      this.#waiting.push({ entry, done, failed });
      this.#writing ??= this.#write();
    });
  }

  /** Resolves when everything that was appended so far has been tried. */
  async settled(): Promise<void> {
    await this.#writing;
  }

  /** What is in the file now, oldest first. */
  async *read(): AsyncGenerator<unknown> {
    const handle = await open(this.#options.path, 'r');
    try {
      for await (const line of linesOf(handle)) {
        const entry = readLine(line, this.#options.purpose, this.#options.secrets);
        // The line that is being written.
        if (entry === undefined) return;
        yield entry;
      }
    } finally {
      await handle.close();
    }
  }

  /** Writes what waits. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#writing;
    await this.#handle.close();
  }

  async #write(): Promise<void> {
    // The rest of the current turn joins this batch.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const batch = this.#waiting;
      this.#waiting = [];
      try {
        const bytes = Buffer.from(batch.map(({ entry }) => this.#line(entry)).join(''));
        for (let written = 0; written < bytes.length; ) {
          written += (await this.#handle.write(bytes, written, bytes.length - written, this.#length + written)).bytesWritten;
        }
        await this.#handle.datasync();
        this.#length += bytes.length;
        this.#lines += batch.length;
        for (const { done } of batch) done();
      } catch (cause) {
        // What was half written must not end up between good lines.
        await this.#handle.truncate(this.#length).catch(() => undefined);
        for (const { failed } of batch) failed(unavailable(cause));
      }
      // A file that cannot be made smaller is still a good one; the next batch tries again.
      await this.#compact().catch(() => undefined);
    }
    this.#writing = undefined;
  }

  /** A new file takes the old one's place. */
  async #compact(): Promise<void> {
    const entries = this.#options.compact?.(this.#lines);
    if (entries === undefined) return;
    const { path } = this.#options;
    const text = entries.map((entry) => this.#line(entry)).join('');
    const handle = await open(`${path}.new`, 'w', 0o600);
    try {
      await handle.writeFile(text);
      await handle.sync();
      await rename(`${path}.new`, path);
    } catch (error) {
      await handle.close();
      throw error;
    }
    const former = this.#handle;
    this.#handle = handle;
    this.#length = Buffer.byteLength(text);
    this.#lines = entries.length;
    await former.close();
    await syncDirectory(dirname(resolve(path)));
  }

  #line(entry: unknown): string {
    const { id, key } = this.#options.secrets.current('audit');
    const text = JSON.stringify(entry);
    return `${macOf(key, this.#options.purpose, text).toString('hex')} ${id} ${text}\n`;
  }
}

function readLine(line: string, purpose: string, secrets: Secrets): unknown {
  const [, mac, id, text] = /^([0-9a-f]{64}) ([0-9a-zA-Z_-]+) (.+)$/.exec(line) ?? [];
  const secret = id === undefined ? undefined : secrets.find('audit', id);
  if (mac === undefined || text === undefined || secret === undefined) return undefined;
  return timingSafeEqual(Buffer.from(mac, 'hex'), macOf(secret.key, purpose, text)) ? (JSON.parse(text) as unknown) : undefined;
}

function macOf(key: Uint8Array, purpose: string, text: string): Buffer {
  return createHmac('sha256', key).update(`takemark ${purpose} ${text}`).digest();
}

function linesOf(handle: FileHandle): AsyncIterable<string> {
  return createInterface({ input: handle.createReadStream({ start: 0, autoClose: false, encoding: 'utf8' }), crlfDelay: Number.POSITIVE_INFINITY });
}

async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function unavailable(cause: unknown): DomainError {
  return new DomainError('unavailable', 'The journals cannot be written at the moment.', { reason: 'store_unavailable', retryAfterSeconds: 1, cause });
}
