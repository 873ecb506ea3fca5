/**
 * A timer with a steady beat. Each beat reports the milliseconds that passed, as far as clients may be charged.
 */
export class Ticker {
  readonly #timer: NodeJS.Timeout;

  constructor(
    { tickMs, now }: { readonly tickMs: number; readonly now: () => number },
    tick: (elapsedMs: number) => void,
  ) {
    let last = now();
    this.#timer = setInterval(() => {
      const at = now();
      // A process that was stopped or starved for a while must not take its own pause for the slowness of
      // every client.
      const elapsed = Math.min(at - last, 10 * tickMs);
      last = at;
      tick(elapsed);
    }, tickMs).unref();
  }

  /** @param alive whether the timer keeps the process alive; at first it does not */
  hold(alive: boolean): void {
    if (alive) this.#timer.ref();
    else this.#timer.unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}
