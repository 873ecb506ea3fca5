import { setTimeout as sleep } from 'node:timers/promises';
import { pauseAfter } from '../../async/backoff.js';
import { recogniseEmbedded } from '../../credential/read-embedded.js';
import { recogniseSidecar } from '../../credential/sidecar.js';
import { DomainError } from '../../domain/errors.js';
import type { CredentialReader } from '../../ports/credential-reader.js';
import type { Observer } from '../../ports/observer.js';
import type { TrustList } from '../../ports/signing.js';
import type { Question } from './question.js';
import { ReadingProcess } from './reading-process.js';
import { embeddedReply, sidecarReply } from './reply.js';

export interface CredentialReaderOptions {
  readonly trust: TrustList;
  readonly observer: Pick<Observer, 'fault'>;
  /** Milliseconds of one reading; the slowest hostile ones known take some 15 ms of a core. */
  readonly readingMs?: number;
  /** Milliseconds from the call after which a reading that is not under way is given up. */
  readonly waitingMs?: number;
  /** Milliseconds until a new process replies. */
  readonly startMs?: number;
  /** Readings that wait or are under way, and their bytes. */
  readonly maxWaiting?: number;
  readonly maxWaitingBytes?: number;
}

const DEFAULTS = {
  readingMs: 3000,
  waitingMs: 10_000,
  startMs: 30_000,
  maxWaiting: 256,
  maxWaitingBytes: 16 * 1_048_576,
} as const;
/** The reading that a process ended in, and one more, in case that the end had another cause. */
const TRIES = 2;
const RESTART_PAUSES = { firstMs: 50, longestMs: 5000 };
const RETRY_AFTER_SECONDS = 2;

export interface StartedReader extends CredentialReader {
  /** Resolves when the reading process replies. @throws Error when it does not come to that */
  start(): Promise<void>;
  /** Refuses what waits and ends the process. */
  stop(): Promise<void>;
}

/**
 * Recognises in place what the service signed itself, byte for byte, and has everything else read in a
 * process without secrets. Not yet started.
 */
export function createCredentialReader(options: CredentialReaderOptions): StartedReader {
  const { trust } = options;
  const queue = new ReadingQueue({ ...DEFAULTS, ...options });
  return {
    readEmbedded: async (store, extent) =>
      recogniseEmbedded(store, extent, trust) ??
      (await queue.ask({ kind: 'embedded', bytes: store, extent }, embeddedReply)),
    readSidecar: async (sidecar) =>
      recogniseSidecar(sidecar, trust) ??
      (await queue.ask({ kind: 'sidecar', bytes: sidecar }, sidecarReply)),
    start: () => queue.start(),
    stop: () => queue.stop(),
  };
}

interface Reading {
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
  #waiting: Reading[] = [];
  /** Readings that were asked for and have not ended. */
  #open = 0;
  #openBytes = 0;
  #process: ReadingProcess | undefined;
  /** Ends of processes since the last reply. */
  #ends = 0;
  #working = false;

  constructor(options: Required<CredentialReaderOptions>) {
    this.#options = options;
  }

  async start(): Promise<void> {
    await this.#begin();
  }

  ask<Reply>(question: Question, read: (reply: Buffer) => Reply): Promise<Reply> {
    const { maxWaiting, maxWaitingBytes, waitingMs } = this.#options;
    if (this.#stopping.signal.aborted) return Promise.reject(stopping());
    if (this.#open >= maxWaiting || this.#openBytes + question.bytes.length > maxWaitingBytes)
      return Promise.reject(full());
    return new Promise<Reply>((resolve, reject) => {
      const ended = (): void => {
        clearTimeout(reading.deadline);
        this.#open -= 1;
        this.#openBytes -= question.bytes.length;
      };
      const reading: Reading = {
        question,
        complete: (reply) => {
          const value = read(reply);
          ended();
          resolve(value);
        },
        refuse: (error) => {
          ended();
          reject(error);
        },
        deadline: setTimeout(() => this.#isOverdue(reading), waitingMs),
        tries: 0,
        overdue: false,
      };
      this.#open += 1;
      this.#openBytes += question.bytes.length;
      this.#waiting.push(reading);
      void this.#work();
    });
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    for (const reading of this.#waiting.splice(0)) reading.refuse(stopping());
    const process = this.#process;
    process?.end(new Error('the service stops'));
    await process?.gone;
  }

  /**
   * Marks a reading that may not be tried again; one that is under way is bounded by the time for a reading.
   */
  #isOverdue(reading: Reading): void {
    reading.overdue = true;
    const at = this.#waiting.indexOf(reading);
    if (at < 0) return;
    this.#waiting.splice(at, 1);
    reading.refuse(reading.tries === 0 ? full() : failed());
  }

  /** Does the readings, one after the other, for as long as there are any. */
  async #work(): Promise<void> {
    if (this.#working) return;
    this.#working = true;
    while (this.#waiting.length > 0) {
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
        throw process.end(new Error('the reading process gave a reply that is none'));
      }
    } catch (error) {
      if (this.#stopping.signal.aborted) reading.refuse(stopping());
      else if (reading.tries >= TRIES || reading.overdue) reading.refuse(failed(error));
      else this.#waiting.push(reading);
    }
  }

  /** The process, a new one where there is none; undefined when that came to nothing. */
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

function full(): DomainError {
  return new DomainError('unavailable', 'Too many credentials wait to be read.', {
    reason: 'reader_full',
    retryAfterSeconds: RETRY_AFTER_SECONDS,
  });
}

function failed(cause?: unknown): DomainError {
  return new DomainError('unavailable', 'The credential could not be read.', {
    reason: 'reader_failed',
    retryAfterSeconds: RETRY_AFTER_SECONDS,
    cause,
  });
}

function stopping(): DomainError {
  return new DomainError('unavailable', 'The service is shutting down.', {
    reason: 'shutting_down',
    retryAfterSeconds: RETRY_AFTER_SECONDS,
  });
}
