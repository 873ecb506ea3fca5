import type { ListenerLimits } from '../exchange.js';

/**
 * Watches the pace at which a caller reads a streamed response (rule 6.18). Only time in which the service
 * waits for the caller counts. A caller has `graceMs` of waiting in advance. Each byte that the network takes
 * earns the time that the byte needs at the minimum rate, but never more than `graceMs` in all. So a large
 * buffer of the network earns no more time than a small one.
 */
export class ReaderPace {
  readonly #limits: Pick<ListenerLimits, 'minRate' | 'graceMs'>;
  readonly #tooSlow: () => void;
  #leftMs: number;
  #waitingSince = 0;
  #timer: NodeJS.Timeout | undefined;
  #lastLook: NodeJS.Immediate | undefined;

  /** @param tooSlow called once, when the caller has no time left */
  constructor(limits: Pick<ListenerLimits, 'minRate' | 'graceMs'>, tooSlow: () => void) {
    this.#limits = limits;
    this.#tooSlow = tooSlow;
    this.#leftMs = limits.graceMs;
  }

  /** Records that the service waits for the caller to read. */
  waiting(): void {
    this.#waitingSince = performance.now();
    // If this process was busy, the network may have taken the bytes already. Node runs timers first.
    this.#timer = setTimeout(() => {
      this.#lastLook = setImmediate(this.#tooSlow);
    }, this.#leftMs);
  }

  /** Records that the wait is over, because the network has taken `bytes`. */
  took(bytes: number): void {
    this.stop();
    const { graceMs, minRate } = this.#limits;
    const leftMs = Math.max(0, this.#leftMs - (performance.now() - this.#waitingSince));
    this.#leftMs = Math.min(graceMs, leftMs + (bytes * 1000) / minRate);
  }

  stop(): void {
    clearTimeout(this.#timer);
    clearImmediate(this.#lastLook);
  }
}
