import { totalmem } from 'node:os';
import { DomainError } from '../domain/errors.js';

const MIB = 1_048_576;
/** The `Retry-After`, in seconds, of a refused request. Memory is likely to be free by then. */
const RETRY_SECONDS = 2;

/**
 * Limits the bytes that all connections of a process hold for unauthenticated callers and for responses that
 * callers do not read. A holder is an address, or a partner with a checked key. Each holder may hold at most
 * as much as it leaves free. One holder uses at most half of the budget, two use a third each, and a new
 * holder always finds room.
 */
export class ByteBudget {
  readonly #limit: number;
  readonly #byHolder = new Map<string, number>();
  #held = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get held(): number {
    return this.#held;
  }

  fits(holder: string, bytes: number): boolean {
    return (this.#byHolder.get(holder) ?? 0) + bytes <= this.#limit - this.#held - bytes;
  }

  /**
   * Counts the bytes as held.
   * @returns false, without counting, when there are too many
   */
  take(holder: string, bytes: number): boolean {
    if (!this.fits(holder, bytes)) return false;
    this.#byHolder.set(holder, (this.#byHolder.get(holder) ?? 0) + bytes);
    this.#held += bytes;
    return true;
  }

  giveBack(holder: string, bytes: number): void {
    const own = this.#byHolder.get(holder)! - bytes;
    if (own === 0) this.#byHolder.delete(holder);
    else this.#byHolder.set(holder, own);
    this.#held -= bytes;
  }

  lease(holder: string): Lease {
    return new Lease(this, holder);
  }
}

/** The part of the budget that one request holds. */
export class Lease {
  readonly #budget: ByteBudget;
  #holder: string;
  #bytes = 0;
  #ended = false;

  constructor(budget: ByteBudget, holder: string) {
    this.#budget = budget;
    this.#holder = holder;
  }

  /** Changes the holder that pays for the memory. Does nothing when memory is already held. */
  belongTo(holder: string): void {
    if (this.#bytes === 0) this.#holder = holder;
  }

  /**
   * Raises the held bytes to a total.
   * @throws DomainError `unavailable` / `ingress_full` when the budget has no room. The bytes held before
   * stay held.
   */
  growTo(bytes: number): void {
    const more = bytes - this.#bytes;
    if (more <= 0 || this.#ended) return;
    if (!this.#budget.take(this.#holder, more)) {
      throw new DomainError('unavailable', 'The service is receiving too much data at once.', {
        reason: 'ingress_full',
        retryAfterSeconds: RETRY_SECONDS,
      });
    }
    this.#bytes = bytes;
  }

  /** Releases all bytes. May be called twice. The lease holds nothing afterwards. */
  end(): void {
    if (this.#bytes > 0) this.#budget.giveBack(this.#holder, this.#bytes);
    this.#bytes = 0;
    this.#ended = true;
  }
}

/**
 * Returns an eighth of the memory that the process may use, within 32 to 512 MiB. A container's limit counts
 * as that memory.
 */
export function defaultBudgetBytes(): number {
  // 0, absent or larger than the machine's memory when the process has no limit.
  const constrained = process.constrainedMemory?.() ?? 0;
  const memory = constrained > 0 ? Math.min(constrained, totalmem()) : totalmem();
  return Math.min(512 * MIB, Math.max(32 * MIB, Math.floor(memory / 8)));
}
