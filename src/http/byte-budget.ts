import { totalmem } from 'node:os';
import { DomainError } from '../domain/errors.js';

const MIB = 1_048_576;
/** Seconds after which bytes are likely free again. */
const RETRY_SECONDS = 2;

/**
 * The bytes that may be held for callers before their worth is known, and for answers that they do not read:
 * one bound for all connections of a process. A holder (an address, or a partner whose key was checked) may
 * hold as much as it leaves free, so one takes at most half of it all, two a third each, and a newcomer finds
 * something.
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

/** What one piece of work holds of the budget. */
export class Lease {
  readonly #budget: ByteBudget;
  #holder: string;
  #bytes = 0;
  #ended = false;

  constructor(budget: ByteBudget, holder: string) {
    this.#budget = budget;
    this.#holder = holder;
  }

  /** Somebody else is known to answer for what is held from now on. */
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
  // Where nothing constrains the process, this is 0, absent or larger than any memory.
  const constrained = process.constrainedMemory?.() ?? 0;
  const memory = constrained > 0 ? Math.min(constrained, totalmem()) : totalmem();
  return Math.min(512 * MIB, Math.max(32 * MIB, Math.floor(memory / 8)));
}
