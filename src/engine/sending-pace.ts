/** An upload's rate is that of its last so many milliseconds. */
const WINDOW_MS = 5000;
/** Before it was waited for this long an upload has no rate yet. */
const YOUNG_MS = 1000;
const STALLED_MS = 2000;

/**
 * How fast one client sends, as the sweep sees it, so that no write costs anything for it. It decides who
 * goes when places are scarce and nothing else: a least rate that holds always is the listener's to demand.
 */
export class SendingPace {
  #waitedMs = 0;
  #idleMs = 0;
  #received = 0;
  #rate = 0;

  /** Bytes a millisecond; a young upload counts as fast. */
  get rate(): number {
    return this.#waitedMs < YOUNG_MS ? Infinity : this.#rate;
  }

  /** The client was waited for and sent nothing at all. */
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
