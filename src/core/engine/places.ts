import type { Displacement } from '../ports/audio-engine.js';
import { engineFull } from './errors.js';

/** The window in milliseconds over which the rate of an upload is averaged. */
const WINDOW_MS = 5000;
/** The time in milliseconds that the engine must have waited for an upload before the upload has a rate. */
const YOUNG_MS = 1000;
const STALLED_MS = 2000;

/**
 * The pace at which one client sends. The ticker charges it, so that no write costs anything for it. The pace only
 * decides which upload loses its place when places are scarce. The least rate that holds always is demanded by
 * the listener.
 */
export class SendingPace {
  #waitedMs = 0;
  #idleMs = 0;
  #received = 0;
  #rate = 0;

  /** The rate in bytes per millisecond. It is infinite for a young upload. */
  get rate(): number {
    return this.#waitedMs < YOUNG_MS ? Infinity : this.#rate;
  }

  /** True if the client was waited for and sent nothing at all for STALLED_MS. */
  get stalled(): boolean {
    return this.#idleMs >= STALLED_MS;
  }

  /**
   * @param waitedMs time since the last call in which the engine waited for the client
   * @param received bytes of this upload so far
   */
  charge(waitedMs: number, received: number): void {
    if (waitedMs <= 0) return;
    const bytes = received - this.#received;
    this.#received = received;
    this.#waitedMs += waitedMs;
    this.#idleMs = bytes > 0 ? 0 : this.#idleMs + waitedMs;
    // The plain average until there is a whole window of it, and a decaying one from then on.
    const weight = Math.min(1, waitedMs / Math.min(this.#waitedMs, WINDOW_MS));
    this.#rate += (bytes / waitedMs - this.#rate) * weight;
  }
}

/** An upload as it competes for its place. */
export interface PlaceHolder {
  readonly owner: string;
  readonly pace: SendingPace;
}

/**
 * The places of an engine, shared between owners. A free place goes to any owner. If none is free, the fair share is
 * an even split among all owners that hold a place, the newcomer included, and at least one place. An owner below the
 * share gets the place of an owner above it. If there is none, only an upload that is stalled loses its place, and
 * only if its owner has the share or more.
 */
export class Places<Holder extends PlaceHolder> {
  readonly #max: number;
  readonly #holders = new Set<Holder>();
  readonly #counts = new Map<string, number>();

  constructor(max: number) {
    this.#max = max;
  }

  /**
   * Returns the upload that has to end before `owner` may open another one, or undefined while a place is free.
   * @throws DomainError `unavailable` / `engine_full` when no upload has to end
   */
  toDisplace(owner: string): { readonly holder: Holder; readonly reason: Displacement } | undefined {
    if (this.#holders.size < this.#max) return undefined;
    const own = this.#counts.get(owner) ?? 0;
    const owners = this.#counts.size + (own === 0 ? 1 : 0);
    const share = Math.max(1, Math.floor(this.#max / owners));
    const above = own < share ? this.#slowest(({ owner }) => this.#counts.get(owner)! > share) : undefined;
    if (above !== undefined) return { holder: above, reason: 'upload_over_share' };
    // An owner below its share keeps a place even while its upload is stalled.
    const stalled = this.#slowest(({ owner, pace }) => pace.stalled && this.#counts.get(owner)! >= share);
    if (stalled === undefined) throw engineFull();
    return { holder: stalled, reason: 'upload_stalled' };
  }

  add(holder: Holder): void {
    this.#holders.add(holder);
    this.#counts.set(holder.owner, (this.#counts.get(holder.owner) ?? 0) + 1);
  }

  /** Frees the upload's place. Has no effect if it has none any more. */
  remove(holder: Holder): void {
    if (!this.#holders.delete(holder)) return;
    const left = this.#counts.get(holder.owner)! - 1;
    if (left === 0) this.#counts.delete(holder.owner);
    else this.#counts.set(holder.owner, left);
  }

  /** Returns the slowest eligible upload, and of equally slow ones the oldest. */
  #slowest(eligible: (holder: Holder) => boolean): Holder | undefined {
    let slowest: Holder | undefined;
    for (const holder of this.#holders) {
      if (eligible(holder) && (slowest === undefined || holder.pace.rate < slowest.pace.rate))
        slowest = holder;
    }
    return slowest;
  }
}
