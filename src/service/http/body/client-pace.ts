import type { ListenerLimits } from '../exchange.js';

/**
 * Watches the pace of a caller that sends a streamed body (rules 3.8 and 6.13). Only time in which the
 * service was ready to read counts against the caller.
 */
export class ClientPace {
  readonly #limits: ListenerLimits;
  readonly #startedAt = performance.now();
  readonly #timer: NodeJS.Timeout;
  #minRate: number;
  #streamMs: number;
  #waitingSince: number | undefined = this.#startedAt;
  #waitedMs = 0;
  #bytes = 0;

  /**
   * @param tooSlow called when the caller is too slow
   * @param stalled called at intervals, with true while the caller sends nothing
   */
  constructor(
    limits: ListenerLimits,
    { tooSlow, stalled }: { readonly tooSlow: () => void; readonly stalled?: (stalled: boolean) => void },
  ) {
    this.#limits = limits;
    this.#minRate = limits.minRate;
    this.#streamMs = limits.streamMs;
    this.#timer = setInterval(
      () => {
        const now = performance.now();
        if (this.#isTooSlow(now)) tooSlow();
        else stalled?.(this.#waitingSince !== undefined && now - this.#waitingSince > limits.stalledMs);
      },
      Math.max(10, Math.min(1000, limits.idleMs / 4, limits.stalledMs / 4)),
    );
  }

  /** Replaces the time limit of a body by the least rate of a large file (rule 7.13). @param bytes its length */
  allowLarge(bytes: number): void {
    const { minLargeRate, streamMs } = this.#limits;
    this.#minRate = minLargeRate;
    this.#streamMs = streamMs + (bytes / minLargeRate) * 1000;
  }

  /** Counts bytes that have arrived. */
  received(bytes: number): void {
    this.#bytes += bytes;
    if (this.#waitingSince === undefined) return;
    const now = performance.now();
    this.#waitedMs += now - this.#waitingSince;
    this.#waitingSince = now;
  }

  /** Records that the service has stopped reading. */
  holding(): void {
    this.#waitingSince = undefined;
  }

  /** Records that the service is ready to read. */
  waiting(): void {
    this.#waitingSince ??= performance.now();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #isTooSlow(now: number): boolean {
    const { idleMs, graceMs } = this.#limits;
    if (now - this.#startedAt > this.#streamMs) return true;
    if (this.#waitingSince === undefined) return false;
    const idle = now - this.#waitingSince;
    const waited = this.#waitedMs + idle;
    return idle > idleMs || (waited > graceMs && (this.#bytes * 1000) / waited < this.#minRate);
  }
}
