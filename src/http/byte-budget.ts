import { totalmem } from 'node:os';
import { DomainError } from '../domain/errors.js';

const MIB = 1_048_576;
/** Seconds after which bytes are likely free again. */
const RETRY_SECONDS = 2;

/**
 * A bound on the bytes that all connections of a process hold for callers of unknown worth, and for responses
 * that callers do not read. A holder (an address, or a partner whose key was checked) may hold as much as it
 * leaves free: one takes at most half of the budget, two take a third each, and a newcomer finds something.
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

  /** Counts the bytes as held. @returns false, with nothing counted, where they are too many */
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

/** The part of the budget that one piece of work holds. */
export class Lease {
  readonly #budget: ByteBudget;
  #holder: string;
  #bytes = 0;
  #ended = false;

  constructor(budget: ByteBudget, holder: string) {
    this.#budget = budget;
    this.#holder = holder;
  }

  /** Names another holder, who pays for the memory from now on. */
  belongTo(holder: string): void {
    if (this.#bytes === 0) this.#holder = holder;
  }

  /**
   * @throws DomainError `unavailable` / `ingress_full` where the budget has no such room; what was held
   * before stays held
   */
  growTo(bytes: number): void {
    const more = bytes - this.#bytes;
    if (more <= 0 || this.#ended) return;
    if (!this.#budget.take(this.#holder, more)) {
      throw new DomainError('unavailable', 'Too much is being received at once.', {
        reason: 'ingress_full',
        retryAfterSeconds: RETRY_SECONDS,
      });
    }
    this.#bytes = bytes;
  }

  /** Gives everything back. Safe to call twice; nothing is taken afterwards. */
  end(): void {
    if (this.#bytes > 0) this.#budget.giveBack(this.#holder, this.#bytes);
    this.#bytes = 0;
    this.#ended = true;
  }
}

/** An eighth of the memory that the process may use, its container's where there is one: 32 to 512 MiB. */
export function defaultBudgetBytes(): number {
  // 0, absent or larger than any memory where nothing constrains the process.
  const constrained = process.constrainedMemory?.() ?? 0;
  const memory = constrained > 0 ? Math.min(constrained, totalmem()) : totalmem();
  return Math.min(512 * MIB, Math.max(32 * MIB, Math.floor(memory / 8)));
}
