import { Worker } from 'node:worker_threads';
import { DomainError } from '../../domain/errors.js';
import type { Replayed } from '../../evidence/replay/replay-trace.js';
import type { OpenTrace } from '../../evidence/trace/read-trace.js';
import type { FromReplay, ToReplay } from './replay-messages.js';

const ENTRY = new URL('./replay-entry.js', import.meta.url);
/** Threads at once: with its buffers one takes up to 200 MiB, and a container of 512 has room for no second one. */
const THREADS = 1;
/** MiB of a thread's heap. A trace that has everything which may live at once needs 64. */
const HEAP_MIB = 96;
/** MiB of it for what is new: by itself a thread takes several times as much, for a few percent of its time. */
const YOUNG_HEAP_MIB = 8;
/** Seconds after which another call may find capacity: a large trace takes a few. */
const RETRY_SECONDS = 5;
/** Longest replay. The greatest trace takes some ten seconds; one that is not done then never will be. */
const DEADLINE_MS = 120_000;

export interface ReplayOptions {
  /** Threads at once. */
  readonly threads?: number;
  /** Replays that may wait for a thread; beyond it they are refused. */
  readonly waiting?: number;
  /** MiB of a thread's heap. */
  readonly heapMib?: number;
}

/**
 * Replays of capture traces, each in a thread of its own that ends with it: a trace of two million events takes
 * seconds of a processor that callers need, and its memory is bounded by the thread's.
 */
export class Replays {
  readonly #threads: number;
  readonly #maxWaiting: number;
  readonly #heapMib: number;
  readonly #waiting: (() => void)[] = [];
  readonly #running = new Set<Worker>();
  #busy = 0;
  #stopped = false;

  constructor({ threads = THREADS, waiting = 16, heapMib = HEAP_MIB }: ReplayOptions = {}) {
    this.#threads = threads;
    this.#maxWaiting = waiting;
    this.#heapMib = heapMib;
  }

  /**
   * Replays a trace, in two passes over its bytes.
   * @param signal gives the replay up: its thread ends, and its place is free at once
   * @throws DomainError `unprocessable` for what is no trace, or is too much for a thread; `unavailable` / `replay_full`
   * where too many wait, or the service stops; whatever reading the bytes throws; the reason of the signal
   */
  async replay(open: OpenTrace, signal?: AbortSignal): Promise<Replayed> {
    await this.#acquire(signal);
    try {
      return await this.#run(open, signal);
    } finally {
      // Whoever waits takes the place over: a newcomer must not slip in between.
      const waiter = this.#waiting.shift();
      if (waiter === undefined) this.#busy -= 1;
      else waiter();
    }
  }

  /** Ends what runs; its callers get an error. */
  async stop(): Promise<void> {
    this.#stopped = true;
    for (const wake of this.#waiting.splice(0)) wake();
    await Promise.all([...this.#running].map((worker) => worker.terminate()));
  }

  async #acquire(signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted();
    if (this.#stopped) throw full();
    if (this.#busy < this.#threads) {
      this.#busy += 1;
      return;
    }
    if (this.#waiting.length >= this.#maxWaiting) throw full();
    await new Promise<void>((resolve, reject) => {
      const wake = (): void => {
        signal?.removeEventListener('abort', giveUp);
        resolve();
      };
      const giveUp = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(wake), 1);
        reject(signal!.reason);
      };
      this.#waiting.push(wake);
      signal?.addEventListener('abort', giveUp, { once: true });
    });
    if (this.#stopped) throw full();
  }

  async #run(open: OpenTrace, signal: AbortSignal | undefined): Promise<Replayed> {
    const worker = new Worker(ENTRY, {
      resourceLimits: { maxOldGenerationSizeMb: this.#heapMib, maxYoungGenerationSizeMb: YOUNG_HEAP_MIB },
      env: {},
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
      // Not waited for: a stream that stands still would keep the place.
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

function tooSlow(): DomainError {
  return new DomainError('unprocessable', 'Replaying the trace takes too long.', {
    reason: 'trace_malformed',
  });
}

function full(): DomainError {
  return new DomainError('unavailable', 'Too many traces are being replayed. Send the request again.', {
    reason: 'replay_full',
    retryAfterSeconds: RETRY_SECONDS,
  });
}
