import { totalmem } from 'node:os';
import { DomainError } from '../../core/domain/errors.js';

const MIB = 1_048_576;
/** The `Retry-After`, in seconds, of a refused request. Memory is likely to be free by then. */
const RETRY_SECONDS = 2;

/**
 * Limits the bytes that a process holds for unauthenticated callers, for responses that callers do not read,
 * and for uploads that hold a credential. A holder is an address, or a partner with a checked key. Each
 * holder may hold at most as much as it leaves free. One holder uses at most half of the budget, two use a
 * third each, and a new holder always finds room.
 */
export class ByteBudget {
  readonly #limit: number;
  readonly #byHolder = new Map<string, number>();
  readonly #evictions: (() => boolean)[] = [];
  #held = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get held(): number {
    return this.#held;
  }

  /**
   * Adds a way to free memory.
   * @param evict disconnects one caller without a key that does not read its response. Returns false without one
   */
  evictBy(evict: () => boolean): void {
    this.#evictions.push(evict);
  }

  /** @param also a second holder for which the same bytes count */
  fits(holder: string, bytes: number, also?: string): boolean {
    const most = this.#limit - this.#held - 2 * bytes;
    return this.#of(holder) <= most && (also === undefined || this.#of(also) <= most);
  }

  /**
   * Counts the bytes as held, once in the total. If they do not fit, callers without a key that do not read their
   * responses are disconnected first.
   * @returns false, without counting, when there are too many
   */
  take(holder: string, bytes: number, also = holder): boolean {
    // A holder that exceeds its share alone gains nothing from the memory of others.
    const own = Math.max(this.#of(holder), this.#of(also)) + bytes;
    while (2 * own <= this.#limit && !this.fits(holder, bytes, also))
      if (!this.#evictions.some((evict) => evict())) break;
    return this.takeFree(holder, bytes, also);
  }

  /** Counts the bytes as held, as `take` does, but disconnects no caller. */
  takeFree(holder: string, bytes: number, also?: string): boolean {
    if (!this.fits(holder, bytes, also)) return false;
    this.#add(holder, bytes);
    if (also !== undefined && also !== holder) this.#add(also, bytes);
    this.#held += bytes;
    return true;
  }

  /** @param also the second holder that `take` was called with */
  giveBack(holder: string, bytes: number, also?: string): void {
    this.#add(holder, -bytes);
    if (also !== undefined && also !== holder) this.#add(also, -bytes);
    this.#held -= bytes;
  }

  lease(address: string): Lease {
    return new Lease(this, address);
  }

  #of(holder: string): number {
    return this.#byHolder.get(holder) ?? 0;
  }

  #add(holder: string, bytes: number): void {
    const own = this.#of(holder) + bytes;
    if (own === 0) this.#byHolder.delete(holder);
    else this.#byHolder.set(holder, own);
  }
}

/** The part of the budget that one request holds. */
export class Lease {
  readonly #budget: ByteBudget;
  readonly #address: string;
  readonly #releases: (() => void)[] = [];
  #holder: string;
  #bytes = 0;
  #streamBytes = 0;
  #ended = false;

  constructor(budget: ByteBudget, address: string) {
    this.#budget = budget;
    this.#address = address;
    this.#holder = address;
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

  /**
   * Holds the memory of a streamed response, once. It counts for the partner and for the address, so that
   * neither many addresses of one partner nor many partners of one address exceed a share.
   * @throws DomainError `unavailable` / `ingress_full`
   */
  holdStream(bytes: number): void {
    if (this.#ended) return;
    if (!this.#budget.take(this.#holder, bytes, this.#address)) {
      throw new DomainError('unavailable', 'The service is sending too many files at once.', {
        reason: 'ingress_full',
        retryAfterSeconds: RETRY_SECONDS,
      });
    }
    this.#streamBytes = bytes;
  }

  /** Calls `release` when the request ends, or now when it has ended. */
  atEnd(release: () => void): void {
    if (this.#ended) release();
    else this.#releases.push(release);
  }

  /** Releases everything. May be called twice. The lease holds nothing afterwards. */
  end(): void {
    if (this.#bytes > 0) this.#budget.giveBack(this.#holder, this.#bytes);
    if (this.#streamBytes > 0) this.#budget.giveBack(this.#holder, this.#streamBytes, this.#address);
    this.#bytes = 0;
    this.#streamBytes = 0;
    this.#ended = true;
    for (const release of this.#releases.splice(0)) release();
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
