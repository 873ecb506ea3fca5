import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { basename, dirname } from 'node:path';
import { Batches } from '../../../core/async/batches.js';
import { DomainError } from '../../../core/domain/errors.js';
import { LineLog } from '../../../core/files/line-log.js';
import { makeDirectory } from '../../../core/files/make-directory.js';
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
  /**
   * Entries that the file is to hold instead, once it has grown to `lines`; undefined while it may grow on.
   */
  readonly compact?: (lines: number) => readonly unknown[] | undefined;
}

/** The state of the chain after a line, which the next line covers. */
interface Chain {
  /**
   * The MAC of the last line, or, after lines of a former version, a digest of all their MACs: 64 hexadecimal digits.
   */
  readonly link: string;
  readonly chained: boolean;
}

const GENESIS: Chain = { link: '0'.repeat(64), chained: false };
/** The entry of a line that covers lines of a former version. */
const SEAL = null;

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
  readonly #log: LineLog;
  readonly #batches = new Batches<unknown>((entries) => this.#write(entries));
  #lines: number;
  #chain: Chain;
  #closed = false;

  private constructor(
    options: SignedLogOptions,
    log: LineLog,
    found: { readonly lines: number; readonly chain: Chain },
  ) {
    this.#options = options;
    this.#log = log;
    this.#lines = found.lines;
    this.#chain = found.chain;
  }

  /**
   * Reads the whole file once. A last line with zeros is what a power failure in the middle of a write
   * leaves: no caller was answered that it is kept, and it is cut off. Anything else that does not fit was not
   * written here.
   * @throws JournalOpenError
   */
  static async open(options: SignedLogOptions): Promise<SignedLog> {
    const { path, each } = options;
    await makeDirectory(dirname(path));
    const found = { lines: 0, chain: GENESIS };
    const file = await LineLog.open({
      path,
      each: ({ text, end }, size) => {
        const line = text!.toString('utf8');
        const read = readLine(line, found.chain, options);
        if (read === undefined) {
          if (end === size && line.includes('\0')) return false;
          throw new JournalOpenError(
            `${basename(path)} is broken at line ${found.lines + 1}. Either this line was changed, or an earlier line was removed, moved or repeated, or the line is signed with a secret that is no longer kept`,
          );
        }
        if (read.entry !== SEAL) each?.(read.entry);
        found.lines += 1;
        found.chain = read.chain;
        return true;
      },
    });
    const log = new SignedLog(options, file, found);
    try {
      await log.#compact();
      if (log.#lines > 0 && !log.#chain.chained) await log.append(SEAL);
      return log;
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  /**
   * Appends an entry, which is durable when the promise resolves.
   * @throws DomainError `unavailable` / `store_unavailable`
   */
  append(entry: unknown): Promise<void> {
    if (this.#closed) return Promise.reject(unavailable(undefined));
    return this.#batches.add(entry);
  }

  /** Resolves when everything that was appended so far has been tried. */
  settled(): Promise<void> {
    return this.#batches.settled();
  }

  /** Yields the entries that are in the file now, oldest first. */
  async *read(): AsyncGenerator<unknown> {
    let chain = GENESIS;
    for await (const { text } of this.#log.lines()) {
      const read = readLine(text!.toString('utf8'), chain, this.#options);
      if (read === undefined) return;
      chain = read.chain;
      if (read.entry !== SEAL) yield read.entry;
    }
  }

  /** Writes what waits. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#batches.settled();
    await this.#log.close();
  }

  async #write(entries: readonly unknown[]): Promise<void> {
    try {
      const { text, chain } = this.#linesOf(entries, this.#chain);
      await this.#log.append(text);
      this.#lines += entries.length;
      this.#chain = chain;
    } catch (cause) {
      throw unavailable(cause);
    }
    // A file that cannot be made smaller is still a good one; the next batch tries again.
    await this.#compact().catch(() => undefined);
  }

  /** Replaces the file with a new one if `compact` returns the entries for it. */
  async #compact(): Promise<void> {
    const entries = this.#options.compact?.(this.#lines);
    if (entries === undefined) return;
    const { text, chain } = this.#linesOf(entries, GENESIS);
    await this.#log.replace(text);
    this.#lines = entries.length;
    this.#chain = chain;
  }

  /** Returns the lines that follow on `before`, and the chain after them. */
  #linesOf(entries: readonly unknown[], before: Chain): { readonly text: string; readonly chain: Chain } {
    const { id, key } = this.#options.secrets.current('audit');
    let { link } = before;
    const lines = entries.map((entry) => {
      const text = JSON.stringify(entry);
      link = chainedMac(key, this.#options.purpose, link, text).toString('hex');
      return `${link} ${id} ${text}\n`;
    });
    return {
      text: lines.join(''),
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
  // A line of a former version, which cannot follow those of today.
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

function unavailable(cause: unknown): DomainError {
  return new DomainError('unavailable', 'The journals cannot be written at the moment.', {
    reason: 'store_unavailable',
    retryAfterSeconds: 1,
    dependency: 'disk',
    cause,
  });
}
