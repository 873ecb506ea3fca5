import { Worker } from 'node:worker_threads';
import { type Waiting, WaitingLines } from '../../../core/async/waiting-lines.js';
import { DomainError } from '../../../core/domain/errors.js';
import type { Replayed } from '../../../witness/replay/replay-trace.js';
import type { OpenTrace } from '../../../witness/trace/read-trace.js';
import { WORK_UNITS } from '../../../witness/trace/work-budget.js';
import type { FromReplay, ToReplay } from './replay-messages.js';

const ENTRY = new URL('./replay-entry.js', import.meta.url);
/** The number of threads. One takes up to 200 MiB with its buffers, and a container of 512 MiB has room for one. */
const THREADS = 1;
/** The old generation of a thread's heap in MiB. A trace with everything that may live at once needs 64. */
const HEAP_MIB = 96;
/** The young generation of the heap in MiB. Node's default is several times larger and a few percent faster. */
const YOUNG_HEAP_MIB = 8;
/** The seconds after which another call may find capacity. A large trace takes a few. */
const RETRY_SECONDS = 5;
/**
 * The longest replay in milliseconds. The budget of work ends every replay after some ten seconds of a processor. A
 * replay that takes longer waits for its bytes, or for a machine that has too much to do.
 */
const DEADLINE_MS = 120_000;

export interface ReplayOptions {
  /** The number of threads at once. */
  readonly threads?: number;
  /** The most replays that wait for a thread. Beyond it, the owner with the most waiting replays loses one. */
  readonly waiting?: number;
  /** The old generation of a thread's heap in MiB. */
  readonly heapMib?: number;
  /** The budget of work of one replay in units. */
  readonly workUnits?: number;
}

/** A replay that waits for a thread. */
interface WaitingReplay extends Waiting {
  readonly start: () => void;
  readonly refuse: (reason: unknown) => void;
}

/**
 * Replays of capture traces, each in its own thread, which ends with it: a trace of two million events takes seconds
 * of a processor that callers need, and its memory is bounded by the thread's. The partners take turns. A partner
 * waits for at most one replay of each other partner, and is not refused because another one has many waiting.
 */
export class Replays {
  readonly #threads: number;
  readonly #heapMib: number;
  readonly #workUnits: number;
  readonly #waiting: WaitingLines<WaitingReplay>;
  readonly #running = new Set<Worker>();
  #busy = 0;
  #stopped = false;

  constructor({
    threads = THREADS,
    waiting = 16,
    heapMib = HEAP_MIB,
    workUnits = WORK_UNITS,
  }: ReplayOptions = {}) {
    this.#workUnits = workUnits;
    this.#threads = threads;
    this.#waiting = new WaitingLines(waiting);
    this.#heapMib = heapMib;
  }

  /**
   * Replays a trace, in two passes over its bytes.
   * @param owner the partner that the replay is for
   * @param signal gives the replay up: its thread ends, and its place is free at once
   * @throws DomainError `unprocessable` for an invalid trace, or for one that takes too much work or memory.
   * `unavailable` / `replay_full` when too many replays wait, when this one takes too long, or when the service stops.
   * Also throws the errors of reading the bytes, and the reason of the signal
   */
  async replay(owner: string, open: OpenTrace, signal?: AbortSignal): Promise<Replayed> {
    await this.#acquire(owner, signal);
    try {
      return await this.#run(open, signal);
    } finally {
      this.#busy -= 1;
      this.#startNext();
    }
  }

  /** Ends the running replays and refuses the waiting ones. */
  async stop(): Promise<void> {
    this.#stopped = true;
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift())
      next.refuse(full());
    await Promise.all([...this.#running].map((worker) => worker.terminate()));
  }

  /** Waits for a thread. The thread is then taken. */
  #acquire(owner: string, signal: AbortSignal | undefined): Promise<void> {
    return new Promise<void>((resolve, reject) => {
      signal?.throwIfAborted();
      if (this.#stopped) throw full();
      const giveUp = (): void => {
        this.#waiting.remove(waiting);
        waiting.refuse(signal!.reason);
      };
      const waiting: WaitingReplay = {
        owner,
        weight: 1,
        start: () => {
          signal?.removeEventListener('abort', giveUp);
          resolve();
        },
        refuse: (reason) => {
          signal?.removeEventListener('abort', giveUp);
          reject(reason);
        },
      };
      signal?.addEventListener('abort', giveUp, { once: true });
      // A replay that finds a free thread takes its turn at once.
      const hasThread = this.#busy < this.#threads;
      if (hasThread) this.#waiting.putBack(waiting);
      else for (const refused of this.#waiting.admit(waiting) ?? [waiting]) refused.refuse(full());
      this.#startNext();
    });
  }

  #startNext(): void {
    while (this.#busy < this.#threads) {
      const next = this.#waiting.shift();
      if (next === undefined) return;
      this.#busy += 1;
      next.start();
    }
  }

  async #run(open: OpenTrace, signal: AbortSignal | undefined): Promise<Replayed> {
    const worker = new Worker(ENTRY, {
      resourceLimits: { maxOldGenerationSizeMb: this.#heapMib, maxYoungGenerationSizeMb: YOUNG_HEAP_MIB },
      env: {},
      workerData: this.#workUnits,
      // Loaders and hooks of the process would live in a heap that is measured for replays alone.
      execArgv: [],
      stdin: false,
    });
    this.#running.add(worker);
    const streams = new Map<number, AsyncIterator<Uint8Array>>();
    let deadline: NodeJS.Timeout | undefined;
    let giveUp: (() => void) | undefined;
    try {
      return await new Promise<Replayed>((resolve, reject) => {
        deadline = setTimeout(() => reject(tooSlow()), DEADLINE_MS);
        giveUp = () => reject(signal!.reason);
        if (signal?.aborted) giveUp();
        signal?.addEventListener('abort', giveUp, { once: true });
        worker.on('error', (error) =>
          reject(isOutOfMemory(error) ? tooGreat() : new Error('a replay failed', { cause: error })),
        );
        worker.on('exit', () => reject(new Error('a replay ended without a result')));
        worker.on('message', (message: FromReplay) => {
          switch (message.kind) {
            case 'read':
              next(streams, message.stream, open).then((chunk) => send(worker, chunk), reject);
              return;
            case 'replayed':
              resolve(message.replayed);
              return;
            case 'refused': {
              const { reason } = message;
              reject(new DomainError(message.code, message.message, reason === undefined ? {} : { reason }));
              return;
            }
            case 'failed':
              reject(new Error(message.message));
          }
        });
      });
    } finally {
      clearTimeout(deadline);
      if (giveUp !== undefined) signal?.removeEventListener('abort', giveUp);
      this.#running.delete(worker);
      await worker.terminate();
      // Not awaited, because a stalled stream would keep the place.
      for (const stream of streams.values()) Promise.resolve(stream.return?.()).catch(() => undefined);
    }
  }
}

async function next(
  streams: Map<number, AsyncIterator<Uint8Array>>,
  number: number,
  open: OpenTrace,
): Promise<Uint8Array | undefined> {
  let stream = streams.get(number);
  if (stream === undefined) {
    stream = open()[Symbol.asyncIterator]();
    streams.set(number, stream);
  }
  const { done, value } = await stream.next();
  return done === true ? undefined : value;
}

/** Hands a chunk over in memory of its own: a view's whole buffer would be copied otherwise. */
function send(worker: Worker, chunk: Uint8Array | undefined): void {
  const owned = chunk === undefined ? undefined : Uint8Array.from(chunk);
  worker.postMessage({ chunk: owned } satisfies ToReplay, owned === undefined ? [] : [owned.buffer]);
}

function isOutOfMemory(error: Error): boolean {
  return 'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY';
}

function tooGreat(): DomainError {
  return new DomainError('unprocessable', 'Replaying the trace needs more memory than allowed.', {
    reason: 'trace_too_large',
  });
}

/** Blames the machine and not the trace: another attempt, or another machine, may be fast enough. */
function tooSlow(): DomainError {
  return new DomainError('unavailable', 'Replaying the trace took too long. Send the request again.', {
    reason: 'replay_full',
    retryAfterSeconds: RETRY_SECONDS,
  });
}

function full(): DomainError {
  return new DomainError('unavailable', 'Too many traces are being replayed. Send the request again.', {
    reason: 'replay_full',
    retryAfterSeconds: RETRY_SECONDS,
  });
}
