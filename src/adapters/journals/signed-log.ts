import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
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

/** The state of the chain behind a line, which the next line covers. */
interface Chain {
  /**
   * Mac of the last line; over lines of a former version, a digest of all their macs. 64 hexadecimal digits.
   */
  readonly link: string;
  readonly chained: boolean;
}

const GENESIS: Chain = { link: '0'.repeat(64), chained: false };
/** The entry of a line that covers lines of a former version. */
const SEAL = null;

interface Waiting {
  readonly entry: unknown;
  readonly done: () => void;
  readonly failed: (error: unknown) => void;
}

/**
 * A file (mode 0600) to which lines are appended and synced: `<mac> <secret id> <JSON>`, the mac over
 * purpose, the mac of the line before and JSON under the audit secret. So a line that is edited, taken out,
 * moved or repeated is found when the file is opened; a whole end that is cut off is not. Lines that come
 * while others are being synced share the next sync. It belongs to one process at a time.
 *
 * Files of former versions begin with lines whose mac covers the line alone. They are read, and followed at
 * once by a line without an entry that covers all of their macs.
 */
export class SignedLog {
  readonly #options: SignedLogOptions;
  #handle: FileHandle;
  /** Bytes that are known to be good: the next line goes there. */
  #length: number;
  #lines: number;
  #chain: Chain;
  #waiting: Waiting[] = [];
  #writing: Promise<void> | undefined;
  #closed = false;

  private constructor(
    options: SignedLogOptions,
    handle: FileHandle,
    found: { readonly length: number; readonly lines: number; readonly chain: Chain },
  ) {
    this.#options = options;
    this.#handle = handle;
    this.#length = found.length;
    this.#lines = found.lines;
    this.#chain = found.chain;
  }

  /**
   * Reads the whole file once. A last line without its end is what a kill in the middle of a write leaves, or
   * one with zeros where the power failed: nobody was told of it, and it is cut off. Anything else that does
   * not fit was not written here.
   * @throws JournalOpenError
   */
  static async open(options: SignedLogOptions): Promise<SignedLog> {
    const { path, each } = options;
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    const handle = await open(path, 'a', 0o600).then(async (made) => {
      await made.close();
      return open(path, 'r+');
    });
    try {
      const found = { length: 0, lines: 0, chain: GENESIS };
      const { size } = await handle.stat();
      for await (const line of linesOf(handle)) {
        const end = found.length + Buffer.byteLength(line) + 1;
        const read = end > size ? undefined : readLine(line, found.chain, options);
        if (read === undefined) {
          if (end < size || (end === size && !line.includes('\0'))) {
            throw new JournalOpenError(
              `${basename(path)} does not hold together at line ${found.lines + 1}: that line was changed, one before it was taken out, moved or repeated, or it is signed with a secret that is not kept any more`,
            );
          }
          break;
        }
        if (read.entry !== SEAL) each?.(read.entry);
        found.length = end;
        found.lines += 1;
        found.chain = read.chain;
      }
      if (found.length < size) await handle.truncate(found.length);
      await handle.sync();
      await syncDirectory(dirname(resolve(path)));
      const log = new SignedLog(options, handle, found);
      await log.#compact();
      if (log.#lines > 0 && !log.#chain.chained) await log.append(SEAL);
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
      let chain = GENESIS;
      for await (const line of linesOf(handle)) {
        const read = readLine(line, chain, this.#options);
        // The line that is being written.
        if (read === undefined) return;
        chain = read.chain;
        if (read.entry !== SEAL) yield read.entry;
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
        const { bytes, chain } = this.#linesOf(
          batch.map(({ entry }) => entry),
          this.#chain,
        );
        for (let written = 0; written < bytes.length; ) {
          written += (
            await this.#handle.write(bytes, written, bytes.length - written, this.#length + written)
          ).bytesWritten;
        }
        await this.#handle.datasync();
        this.#length += bytes.length;
        this.#lines += batch.length;
        this.#chain = chain;
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
    const { bytes, chain } = this.#linesOf(entries, GENESIS);
    const handle = await open(`${path}.new`, 'w', 0o600);
    try {
      await handle.writeFile(bytes);
      await handle.sync();
      await rename(`${path}.new`, path);
    } catch (error) {
      await handle.close();
      throw error;
    }
    const former = this.#handle;
    this.#handle = handle;
    this.#length = bytes.length;
    this.#lines = entries.length;
    this.#chain = chain;
    await former.close();
    await syncDirectory(dirname(resolve(path)));
  }

  /** Lines that follow on `before`. */
  #linesOf(entries: readonly unknown[], before: Chain): { readonly bytes: Buffer; readonly chain: Chain } {
    const { id, key } = this.#options.secrets.current('audit');
    let { link } = before;
    const lines = entries.map((entry) => {
      const text = JSON.stringify(entry);
      link = chainedMac(key, this.#options.purpose, link, text).toString('hex');
      return `${link} ${id} ${text}\n`;
    });
    return {
      bytes: Buffer.from(lines.join('')),
      chain: { link, chained: before.chained || entries.length > 0 },
    };
  }
}

/** @returns undefined for a line that does not follow on `before` */
function readLine(
  line: string,
  before: Chain,
  { purpose, secrets }: SignedLogOptions,
): { readonly entry: unknown; readonly chain: Chain } | undefined {
  const [, mac, id, text] = /^([0-9a-f]{64}) ([0-9a-zA-Z_-]+) (.+)$/.exec(line) ?? [];
  const secret = id === undefined ? undefined : secrets.find('audit', id);
  if (mac === undefined || text === undefined || secret === undefined) return undefined;
  const isMac = (expected: Buffer): boolean => timingSafeEqual(Buffer.from(mac, 'hex'), expected);
  const entry = (): unknown => JSON.parse(text);
  if (isMac(chainedMac(secret.key, purpose, before.link, text)))
    return { entry: entry(), chain: { link: mac, chained: true } };
  // A line of a former version, of which none can come behind those of today.
  if (before.chained || !isMac(loneMac(secret.key, purpose, text))) return undefined;
  return {
    entry: entry(),
    chain: { link: createHash('sha256').update(before.link).update(mac).digest('hex'), chained: false },
  };
}

function chainedMac(key: Uint8Array, purpose: string, link: string, text: string): Buffer {
  return createHmac('sha256', key).update(`takemark ${purpose}, after ${link}: ${text}`).digest();
}

function loneMac(key: Uint8Array, purpose: string, text: string): Buffer {
  return createHmac('sha256', key).update(`takemark ${purpose} ${text}`).digest();
}

function linesOf(handle: FileHandle): AsyncIterable<string> {
  return createInterface({
    input: handle.createReadStream({ start: 0, autoClose: false, encoding: 'utf8' }),
    crlfDelay: Number.POSITIVE_INFINITY,
  });
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
  return new DomainError('unavailable', 'The journals cannot be written at the moment.', {
    reason: 'store_unavailable',
    retryAfterSeconds: 1,
    cause,
  });
}
