import { DomainError } from '../../domain/errors.js';
import type { Displacement, Observer } from '../../ports/observer.js';

export interface FormPermitsOptions {
  readonly max: number;
  readonly maxOfAddress: number;
  /** The state in which these forms have to give way, in the words of the error. */
  readonly state: string;
  readonly displacedByAny: Displacement;
  readonly displacedByAddress: Displacement;
  readonly observer: Pick<Observer, 'displaced'>;
}

interface Permit {
  /** Ends the form that holds the permit. */
  readonly revoke: (error: DomainError) => void;
}

/**
 * A bounded number of permits for upload forms that have proven nothing yet, or bring nothing. A newcomer
 * always gets a permit: from the oldest form of its own address where the address holds too many, and from
 * the oldest of all where no permit is left.
 */
export class FormPermits {
  readonly #options: FormPermitsOptions;
  /** Permits, the oldest first, as in the set of each address. */
  readonly #permits = new Set<Permit>();
  readonly #ofAddress = new Map<string, Set<Permit>>();

  constructor(options: FormPermitsOptions) {
    this.#options = options;
  }

  /**
   * Takes a permit.
   * @param revoke ends the form when its permit goes to another, and releases the permit
   * @returns releases the permit; safe at any time, any number of times
   */
  acquire(address: string, revoke: (error: DomainError) => void): () => void {
    const { max, maxOfAddress, state, displacedByAny, displacedByAddress, observer } = this.#options;
    const own = this.#ofAddress.get(address);
    if (own !== undefined && own.size >= maxOfAddress) {
      observer.displaced(displacedByAddress);
      oldest(own).revoke(
        new DomainError('rate_limited', `Too many upload forms of one address ${state}.`, {
          reason: 'concurrency_exceeded',
          retryAfterSeconds: 2,
        }),
      );
    } else if (this.#permits.size >= max) {
      observer.displaced(displacedByAny);
      oldest(this.#permits).revoke(
        new DomainError('unavailable', `Too many upload forms ${state}.`, {
          reason: 'concurrency_exceeded',
          retryAfterSeconds: 2,
        }),
      );
    }
    const permit: Permit = { revoke };
    const ofAddress = this.#ofAddress.get(address) ?? new Set();
    this.#permits.add(permit);
    this.#ofAddress.set(address, ofAddress.add(permit));
    return () => {
      this.#permits.delete(permit);
      ofAddress.delete(permit);
      if (ofAddress.size === 0 && this.#ofAddress.get(address) === ofAddress) this.#ofAddress.delete(address);
    };
  }
}

function oldest(permits: ReadonlySet<Permit>): Permit {
  const [first] = permits;
  return first!;
}
