import { DomainError } from '../domain/errors.js';
import type { Observer } from '../ports/observer.js';
import type { ListenerLimits } from './exchange.js';

interface Place {
  /** Refuses the form that holds the place. */
  readonly giveWay: (refusal: DomainError) => void;
}

/**
 * The places of upload forms that have not shown a slot's signed fields yet: whoever holds one is a stranger. A newcomer always
 * gets a place, from the oldest form of its own address where that has too many, and from the oldest of all where no place is
 * left; an honest form needs its place for the moment that its first packets take.
 */
export class FormPlaces {
  readonly #limits: Pick<ListenerLimits, 'forms' | 'formsOfAddress'>;
  readonly #observer: Pick<Observer, 'displaced'>;
  /** The oldest first, as are those of an address. */
  readonly #places = new Set<Place>();
  readonly #ofAddress = new Map<string, Set<Place>>();

  constructor(limits: Pick<ListenerLimits, 'forms' | 'formsOfAddress'>, observer: Pick<Observer, 'displaced'>) {
    this.#limits = limits;
    this.#observer = observer;
  }

  /**
   * Takes a place.
   * @param giveWay is told to refuse the form when its place goes to another; the place is gone then
   * @returns gives the place back; safe at any time, any number of times
   */
  enter(address: string, giveWay: (refusal: DomainError) => void): () => void {
    const own = this.#ofAddress.get(address);
    if (own !== undefined && own.size >= this.#limits.formsOfAddress) {
      this.#displace(own, new DomainError('rate_limited', 'Too many upload forms of one address are without their signed fields.', { reason: 'concurrency_exceeded', retryAfterSeconds: 2 }));
      this.#observer.displaced('form_of_address');
    } else if (this.#places.size >= this.#limits.forms) {
      this.#displace(this.#places, new DomainError('unavailable', 'Too many upload forms are without their signed fields.', { reason: 'concurrency_exceeded', retryAfterSeconds: 2 }));
      this.#observer.displaced('form_oldest');
    }
    const place: Place = { giveWay };
    this.#places.add(place);
    const ofAddress = this.#ofAddress.get(address) ?? new Set();
    this.#ofAddress.set(address, ofAddress.add(place));
    return () => {
      this.#places.delete(place);
      ofAddress.delete(place);
      if (ofAddress.size === 0 && this.#ofAddress.get(address) === ofAddress) this.#ofAddress.delete(address);
    };
  }

  /** The refused form gives its place back by itself. */
  #displace(places: ReadonlySet<Place>, refusal: DomainError): void {
    const [oldest] = places;
    oldest?.giveWay(refusal);
  }
}
