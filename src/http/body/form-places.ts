import { DomainError } from '../../domain/errors.js';
import type { Displacement, Observer } from '../../ports/observer.js';

export interface FormPlacesOptions {
  readonly max: number;
  readonly maxOfAddress: number;
  /** Why these forms have to give way, as their callers are told. */
  readonly state: string;
  readonly displacedByAny: Displacement;
  readonly displacedByAddress: Displacement;
  readonly observer: Pick<Observer, 'displaced'>;
}

interface Place {
  /** Refuses the form that holds the place. */
  readonly giveWay: (refusal: DomainError) => void;
}

/**
 * Places of upload forms that have not earned one. A newcomer always gets in: in place of the oldest form of
 * its own address where that has too many, and of the oldest of all where no place is left.
 */
export class FormPlaces {
  readonly #options: FormPlacesOptions;
  /** The oldest first, as are those of an address. */
  readonly #places = new Set<Place>();
  readonly #ofAddress = new Map<string, Set<Place>>();

  constructor(options: FormPlacesOptions) {
    this.#options = options;
  }

  /**
   * Takes a place.
   * @param giveWay refuses the form when its place goes to another; it gives the place back as it does
   * @returns gives the place back; safe at any time, any number of times
   */
  enter(address: string, giveWay: (refusal: DomainError) => void): () => void {
    const { max, maxOfAddress, state, displacedByAny, displacedByAddress, observer } = this.#options;
    const own = this.#ofAddress.get(address);
    if (own !== undefined && own.size >= maxOfAddress) {
      observer.displaced(displacedByAddress);
      oldest(own).giveWay(
        new DomainError('rate_limited', `Too many upload forms of one address ${state}.`, {
          reason: 'concurrency_exceeded',
          retryAfterSeconds: 2,
        }),
      );
    } else if (this.#places.size >= max) {
      observer.displaced(displacedByAny);
      oldest(this.#places).giveWay(
        new DomainError('unavailable', `Too many upload forms ${state}.`, {
          reason: 'concurrency_exceeded',
          retryAfterSeconds: 2,
        }),
      );
    }
    const place: Place = { giveWay };
    const ofAddress = this.#ofAddress.get(address) ?? new Set();
    this.#places.add(place);
    this.#ofAddress.set(address, ofAddress.add(place));
    return () => {
      this.#places.delete(place);
      ofAddress.delete(place);
      if (ofAddress.size === 0 && this.#ofAddress.get(address) === ofAddress) this.#ofAddress.delete(address);
    };
  }
}

function oldest(places: ReadonlySet<Place>): Place {
  const [first] = places;
  return first!;
}
