import { DomainError } from '../../../core/domain/errors.js';
import type { Caller } from '../caller.js';

/** The number of heavy reads that run at once in this process, and for one partner. */
const AT_ONCE = 8;
const AT_ONCE_OF_PARTNER = 2;
/** The number of heavy reads that wait for a partner whose plan is not known here. Further ones are refused. */
const WAITING_OF_PARTNER = 30;

/**
 * The partner that reads. As many of its reads may wait as its plan allows calls at once, so that this bound
 * refuses no call that the rate admits.
 */
interface Reader extends Pick<Caller, 'partnerId'> {
  readonly plan?: Pick<Caller['plan'], 'burst'>;
}

interface Line {
  running: number;
  readonly waiting: (() => void)[];
}

/**
 * Admits heavy reads: lists of proofs, identifies of digests, and reports that are composed outside the main
 * thread. The partners take turns, so that no partner waits for all reads of another.
 */
export class HeavyReads {
  readonly #atOnce: number;
  readonly #atOnceOfPartner: number;
  readonly #waitingOfPartner: number | undefined;
  /** The partners with reads. The first one has the next turn. */
  readonly #lines = new Map<string, Line>();
  #running = 0;

  constructor({
    atOnce = AT_ONCE,
    atOnceOfPartner = AT_ONCE_OF_PARTNER,
    waitingOfPartner,
  }: {
    readonly atOnce?: number;
    readonly atOnceOfPartner?: number;
    readonly waitingOfPartner?: number;
  } = {}) {
    this.#atOnce = atOnce;
    this.#atOnceOfPartner = atOnceOfPartner;
    this.#waitingOfPartner = waitingOfPartner;
  }

  /**
   * Runs `work` when it is the partner's turn.
   * @param signal the signal that gives up the wait
   * @throws DomainError `rate_limited` / `concurrency_exceeded`. The reason of the signal
   */
  async run<Value>(
    { partnerId, plan }: Reader,
    work: () => Promise<Value>,
    signal?: AbortSignal,
  ): Promise<Value> {
    signal?.throwIfAborted();
    const line = this.#lineOf(partnerId);
    if (line.waiting.length === 0 && this.#isFree(line)) this.#enter(partnerId, line);
    else {
      const most = this.#waitingOfPartner ?? plan?.burst ?? WAITING_OF_PARTNER;
      if (line.waiting.length >= most)
        throw new DomainError('rate_limited', 'Too many large reads of the partner are running.', {
          reason: 'concurrency_exceeded',
          limit: 'large_reads',
          retryAfterSeconds: 1,
        });
      await this.#wait(partnerId, line, signal);
    }
    try {
      return await work();
    } finally {
      this.#running -= 1;
      line.running -= 1;
      this.#forgetIdle(partnerId, line);
      this.#admitNext();
    }
  }

  async #wait(partnerId: string, line: Line, signal: AbortSignal | undefined): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      const enter = (): void => {
        signal?.removeEventListener('abort', giveUp);
        resolve();
      };
      const giveUp = (): void => {
        line.waiting.splice(line.waiting.indexOf(enter), 1);
        this.#forgetIdle(partnerId, line);
        reject(signal!.reason);
      };
      line.waiting.push(enter);
      signal?.addEventListener('abort', giveUp, { once: true });
    });
  }

  /**
   * Starts the reads that may run now. A partner whose read starts moves to the end of the order, so the loop
   * reaches it again after the others.
   */
  #admitNext(): void {
    for (const [partnerId, line] of this.#lines) {
      if (this.#running >= this.#atOnce) return;
      if (line.waiting.length === 0 || !this.#isFree(line)) continue;
      this.#enter(partnerId, line);
      line.waiting.shift()!();
    }
  }

  #isFree({ running }: Line): boolean {
    return this.#running < this.#atOnce && running < this.#atOnceOfPartner;
  }

  /** Counts a read, and moves its partner to the end of the order. */
  #enter(partnerId: string, line: Line): void {
    this.#running += 1;
    line.running += 1;
    this.#lines.delete(partnerId);
    this.#lines.set(partnerId, line);
  }

  #lineOf(partnerId: string): Line {
    const known = this.#lines.get(partnerId);
    if (known !== undefined) return known;
    const line: Line = { running: 0, waiting: [] };
    this.#lines.set(partnerId, line);
    return line;
  }

  #forgetIdle(partnerId: string, line: Line): void {
    if (line.running === 0 && line.waiting.length === 0) this.#lines.delete(partnerId);
  }
}
