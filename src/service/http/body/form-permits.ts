import { DomainError } from '../../../core/domain/errors.js';
import type { Displacement } from '../../../core/ports/audio-engine.js';
import type { Observer } from '../../ports/observer.js';

export interface FormPermitsOptions {
  readonly max: number;
  readonly maxOfAddress: number;
  /** What the forms that hold permits have in common. Completes the message "Too many upload forms ...". */
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
 * A limited number of permits for upload forms that are not authenticated yet, or that send nothing. A new
 * form always gets a permit. If its address holds too many, the oldest form of this address loses its permit.
 * If all permits are taken, the oldest form of all loses its permit.
 */
export class FormPermits {
  readonly #options: FormPermitsOptions;
  /** All permits, the oldest first. The set of each address has the same order. */
  readonly #permits = new Set<Permit>();
  readonly #ofAddress = new Map<string, Set<Permit>>();

  constructor(options: FormPermitsOptions) {
    this.#options = options;
  }

  /**
   * Takes a permit.
   * @param revoke ends the form when another form takes its permit, and releases the permit
   * @returns a function that releases the permit, at any time and repeatedly
   */
  acquire(address: string, revoke: (error: DomainError) => void): () => void {
    const { max, maxOfAddress, state, displacedByAny, displacedByAddress, observer } = this.#options;
    const own = this.#ofAddress.get(address);
    if (own !== undefined && own.size >= maxOfAddress) {
      observer.displaced(displacedByAddress);
      oldest(own).revoke(
        new DomainError('rate_limited', `Too many upload forms from one address ${state}.`, {
          reason: 'concurrency_exceeded',
          limit: 'uploads_of_address',
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
