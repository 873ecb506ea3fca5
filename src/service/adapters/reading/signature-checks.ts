import { type Waiting, WaitingLines } from '../../../core/async/waiting-lines.js';
import { type checkSignature, checkSignatureInPool } from '../../../core/credential/signature.js';
import { readerFull, readerStopping } from './refusals.js';

export type SignatureInput = Parameters<typeof checkSignature>;

/**
 * Checks that libuv's pool has at once. Each takes up to 0.1 ms of one of its four threads, so together they delay a
 * write of the store by 2 ms at most. With fewer, the pool would be idle between two turns of the event loop.
 */
const CHECKS_IN_POOL = 64;
/** Checks that may wait for the pool. Each waits with a sidecar of at most 20 KiB, which counts for its caller. */
const MAX_WAITING = 1024;

export interface SignatureChecksOptions {
  readonly check?: (...input: SignatureInput) => Promise<boolean>;
  readonly inPool?: number;
  readonly maxWaiting?: number;
}

interface Check extends Waiting {
  readonly input: SignatureInput;
  readonly resolve: (isValid: boolean) => void;
  readonly refuse: (error: Error) => void;
}

/**
 * Checks signatures in libuv's pool, by turns between their owners. An owner within its share of what may wait is not
 * refused for the load of others.
 */
export class SignatureChecks {
  readonly #check: (...input: SignatureInput) => Promise<boolean>;
  readonly #inPool: number;
  readonly #waiting: WaitingLines<Check>;
  #running = 0;
  #stopped = false;

  constructor(options: SignatureChecksOptions = {}) {
    this.#check = options.check ?? checkSignatureInPool;
    this.#inPool = options.inPool ?? CHECKS_IN_POOL;
    this.#waiting = new WaitingLines(options.maxWaiting ?? MAX_WAITING);
  }

  /** @throws DomainError `unavailable`: `reader_full` or `shutting_down` */
  check(owner: string, input: SignatureInput): Promise<boolean> {
    if (this.#stopped) return Promise.reject(readerStopping());
    if (this.#running < this.#inPool) return this.#run(input);
    return new Promise((resolve, refuse) => {
      const check: Check = { owner, weight: 1, input, resolve, refuse };
      for (const gone of this.#waiting.admit(check) ?? [check]) gone.refuse(readerFull());
    });
  }

  /** Refuses what waits. Checks in the pool run to their end. */
  stop(): void {
    this.#stopped = true;
    for (let check = this.#waiting.shift(); check !== undefined; check = this.#waiting.shift())
      check.refuse(readerStopping());
  }

  async #run(input: SignatureInput): Promise<boolean> {
    this.#running += 1;
    try {
      return await this.#check(...input);
    } finally {
      this.#running -= 1;
      const next = this.#waiting.shift();
      if (next !== undefined) this.#run(next.input).then(next.resolve, next.refuse);
    }
  }
}
