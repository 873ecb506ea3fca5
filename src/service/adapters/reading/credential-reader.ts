import { setTimeout as sleep } from 'node:timers/promises';
import { pauseAfter } from '../../../core/async/backoff.js';
import { type Waiting, WaitingLines } from '../../../core/async/waiting-lines.js';
import { recogniseEmbedded } from '../../../core/credential/read-embedded.js';
import { recogniseSidecar } from '../../../core/credential/sidecar.js';
import type { DomainError } from '../../../core/domain/errors.js';
import type { TrustList } from '../../../core/ports/signing.js';
import type { CredentialReader } from '../../ports/credential-reader.js';
import type { Observer } from '../../ports/observer.js';
import type { Question } from './question.js';
import { ReadingProcess } from './reading-process.js';
import { readerFailed, readerFull, readerStopping } from './refusals.js';
import { embeddedReply, sidecarReply } from './reply.js';
import { SignatureChecks } from './signature-checks.js';

export interface CredentialReaderOptions {
  readonly trust: TrustList;
  readonly observer: Pick<Observer, 'fault'>;
  /** Milliseconds of one reading; the slowest hostile ones known take some 15 ms of a core. */
  readonly readingMs?: number;
  /** Milliseconds from the call after which a reading that is not under way is given up. */
  readonly waitingMs?: number;
  /** Milliseconds until a new process replies. */
  readonly startMs?: number;
  /**
   * Bytes of all readings that wait, each counted as 64 KiB at least: what bounds their memory and their number.
   * The one under way, of 1 MiB at most, comes on top.
   */
  readonly maxWaitingBytes: number;
}

const DEFAULTS = {
  readingMs: 3000,
  waitingMs: 10_000,
  startMs: 30_000,
} as const;
/** The number of tries of a reading, or of a start. A process may end for a reason that does not come again. */
const TRIES = 2;
const RESTART_PAUSES = { firstMs: 50, longestMs: 5000 };
/** The least weight of a waiting reading in bytes, so that the bytes bound the number of readings as well. */
export const LEAST_BYTES = 65_536;

export interface StartedReader extends CredentialReader {
  /** Resolves when the reading process replies. @throws Error when it does not come to that */
  start(): Promise<void>;
  /** Refuses what waits and ends the process. */
  stop(): Promise<void>;
}

/**
 * Recognises in place what the service signed itself, byte for byte. The signature of a sidecar is checked on a thread
 * of libuv's pool. Everything else is read in a process without secrets, one after the other and by turns between
 * owners. An owner within its share of what may wait is not refused for the load of others. Not yet started.
 */
export function createCredentialReader(options: CredentialReaderOptions): StartedReader {
  const { trust } = options;
  const queue = new ReadingQueue({ ...DEFAULTS, ...options });
  const checks = new SignatureChecks();
  return {
    readEmbedded: async (owner, store, extent) =>
      recogniseEmbedded(store, extent, trust) ??
      (await queue.ask(owner, { kind: 'embedded', bytes: store, extent }, embeddedReply)),
    readSidecar: async (owner, sidecar) => {
      const read = recogniseSidecar(sidecar, trust);
      if (read === undefined) return queue.ask(owner, { kind: 'sidecar', bytes: sidecar }, sidecarReply);
      return 'signature' in read ? read.complete(await checks.check(owner, read.signature)) : read;
    },
    start: () => queue.start(),
    stop: () => {
      checks.stop();
      return queue.stop();
    },
  };
}

interface Reading extends Waiting {
  readonly question: Question;
  /** Takes a reply; throws for bytes that are none, which do not end the reading. */
  readonly complete: (reply: Buffer) => void;
  readonly refuse: (error: DomainError) => void;
  readonly deadline: NodeJS.Timeout;
  tries: number;
  overdue: boolean;
}

class ReadingQueue {
  readonly #options: Required<CredentialReaderOptions>;
  readonly #stopping = new AbortController();
  readonly #waiting: WaitingLines<Reading>;
  #process: ReadingProcess | undefined;
  /** Ends of processes since the last reply. */
  #ends = 0;
  #working = false;

  constructor(options: Required<CredentialReaderOptions>) {
    this.#options = options;
    this.#waiting = new WaitingLines(options.maxWaitingBytes);
  }

  /** Starts a process, and another one if the first does not reply or inherited a file that a thread just opened. */
  async start(): Promise<void> {
    for (let tries = 1; ; tries += 1)
      try {
        await this.#begin();
        return;
      } catch (error) {
        if (tries === TRIES || this.#stopping.signal.aborted) throw error;
      }
  }

  ask<Reply>(owner: string, question: Question, read: (reply: Buffer) => Reply): Promise<Reply> {
    if (this.#stopping.signal.aborted) return Promise.reject(readerStopping());
    return new Promise<Reply>((resolve, reject) => {
      const reading: Reading = {
        owner,
        weight: Math.max(question.bytes.length, LEAST_BYTES),
        question,
        complete: (reply) => {
          const value = read(reply);
          clearTimeout(reading.deadline);
          resolve(value);
        },
        refuse: (error) => {
          clearTimeout(reading.deadline);
          reject(error);
        },
        deadline: setTimeout(() => this.#isOverdue(reading), this.#options.waitingMs),
        tries: 0,
        overdue: false,
      };
      const gone = this.#waiting.admit(reading) ?? [reading];
      for (const one of gone) one.refuse(readerFull());
      void this.#work();
    });
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    for (let reading = this.#waiting.shift(); reading !== undefined; reading = this.#waiting.shift())
      reading.refuse(readerStopping());
    const process = this.#process;
    process?.end(new Error('the service is stopping'));
    await process?.gone;
  }

  /**
   * Marks a reading that may not be tried again; one that is under way is bounded by the time for a reading.
   */
  #isOverdue(reading: Reading): void {
    reading.overdue = true;
    if (!this.#waiting.remove(reading)) return;
    reading.refuse(reading.tries === 0 ? readerFull() : readerFailed());
  }

  /** Does the readings, one after the other, for as long as there are any. */
  async #work(): Promise<void> {
    if (this.#working) return;
    this.#working = true;
    while (!this.#waiting.empty) {
      const process = await this.#running();
      // The reading may have waited too long while a process was started.
      const reading = process === undefined ? undefined : this.#waiting.shift();
      if (process !== undefined && reading !== undefined) await this.#read(process, reading);
    }
    this.#working = false;
  }

  async #read(process: ReadingProcess, reading: Reading): Promise<void> {
    reading.tries += 1;
    try {
      const reply = await process.ask(reading.question, this.#options.readingMs);
      try {
        reading.complete(reply);
        this.#ends = 0;
      } catch {
        // Its reply is not for a log: the words may be anybody's.
        throw process.end(new Error('the reading process sent an invalid reply'));
      }
    } catch (error) {
      if (this.#stopping.signal.aborted) reading.refuse(readerStopping());
      else if (reading.tries >= TRIES || reading.overdue) reading.refuse(readerFailed(error));
      else this.#waiting.putBack(reading);
    }
  }

  /** Returns the process, or a new one if none is running, or undefined if that does not start. */
  async #running(): Promise<ReadingProcess | undefined> {
    if (this.#process?.running === true) return this.#process;
    try {
      if (this.#ends > 0)
        await sleep(pauseAfter(this.#ends, RESTART_PAUSES), undefined, {
          signal: this.#stopping.signal,
        });
      return await this.#begin();
    } catch {
      // Reported when it ended.
      return undefined;
    }
  }

  async #begin(): Promise<ReadingProcess> {
    const { trust, observer, startMs } = this.#options;
    const process = new ReadingProcess((reason) => {
      this.#ends += 1;
      if (!this.#stopping.signal.aborted) observer.fault('credential_reader', reason);
    });
    this.#process = process;
    await process.prepare({ identities: trust.identities(), authorities: trust.authorities() }, startMs);
    return process;
  }
}
