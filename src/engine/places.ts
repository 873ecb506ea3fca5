import type { Displacement } from '../ports/observer.js';
import { engineFull, gaveWay } from './refusals.js';
import type { SendingPace } from './sending-pace.js';

/** An upload as it competes for its place. */
export interface PlaceHolder {
  readonly owner: string;
  readonly pace: SendingPace;
  /** Ends the upload, and its place is free. */
  giveUp(reason: unknown): void;
}

/**
 * The places of an engine, shared between owners. As long as one is free anybody gets it. When none is, an
 * owner's fair share is what an even split among all who hold one, the newcomer included, would give: below
 * it an owner always gets a place, from whoever is above; at or above it only the place of an upload that
 * stands still.
 */
export class Places<Holder extends PlaceHolder> {
  readonly #max: number;
  readonly #displaced: (reason: Displacement) => void;
  readonly #holders = new Set<Holder>();
  readonly #counts = new Map<string, number>();

  constructor(max: number, displaced: (reason: Displacement) => void) {
    this.#max = max;
    this.#displaced = displaced;
  }

  /**
   * Sees to it that a place is free for an upload of `owner`, ending another one where it must.
   * @throws DomainError `unavailable` / `engine_full`
   */
  makeRoom(owner: string): void {
    if (this.#holders.size < this.#max) return;
    const own = this.#counts.get(owner) ?? 0;
    const owners = this.#counts.size + (own === 0 ? 1 : 0);
    const share = Math.max(1, Math.floor(this.#max / owners));
    const above = own < share ? this.#slowest(({ owner }) => this.#counts.get(owner)! > share) : undefined;
    // Whoever has less than a share keeps it even while it stands still.
    const goes =
      above ?? this.#slowest(({ owner, pace }) => pace.stalled && this.#counts.get(owner)! >= share);
    if (goes === undefined) throw engineFull();
    this.#displaced(above === undefined ? 'upload_stalled' : 'upload_over_share');
    goes.giveUp(gaveWay());
  }

  add(holder: Holder): void {
    this.#holders.add(holder);
    this.#counts.set(holder.owner, (this.#counts.get(holder.owner) ?? 0) + 1);
  }

  /** Without effect where it has no place any more. */
  remove(holder: Holder): void {
    if (!this.#holders.delete(holder)) return;
    const left = this.#counts.get(holder.owner)! - 1;
    if (left === 0) this.#counts.delete(holder.owner);
    else this.#counts.set(holder.owner, left);
  }

  /** Of equally slow ones the oldest. */
  #slowest(eligible: (holder: Holder) => boolean): Holder | undefined {
    let slowest: Holder | undefined;
    for (const holder of this.#holders) {
      if (eligible(holder) && (slowest === undefined || holder.pace.rate < slowest.pace.rate))
        slowest = holder;
    }
    return slowest;
  }
}
