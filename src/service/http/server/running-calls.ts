import { type EventLoopUtilization, performance } from 'node:perf_hooks';
import { DomainError } from '../../../core/domain/errors.js';
import type { Observer } from '../../ports/observer.js';

/** The `Retry-After` of a refused call, in seconds. Earlier repeats would cost more than they can gain. */
const RETRY_SECONDS = 3;

/**
 * Bounds the partners' calls that run at the same time while the main thread is busy. More calls at the same
 * time then do not give more results: each call becomes slower and more expensive, until its caller gives up
 * and its work is lost. A call is refused only if as many calls run as all partners share, and its own partner has an
 * even share of them.
 */
export class RunningCalls {
  readonly #max: number;
  readonly #observer: Pick<Observer, 'refused'>;
  readonly #isBusy: () => boolean;
  readonly #byPartner = new Map<string, number>();
  #running = 0;

  /**
   * @param max the calls that all partners share evenly while the main thread is busy
   * @param isBusy returns true while the main thread is busy
   */
  constructor(max: number, observer: Pick<Observer, 'refused'>, isBusy: () => boolean) {
    this.#max = max;
    this.#observer = observer;
    this.#isBusy = isBusy;
  }

  /**
   * Counts a call.
   * @returns a function that records the end of the call. It is called once
   * @throws DomainError `unavailable` / `concurrency_exceeded` when the main thread is busy with as many calls as
   * the partners share, and the partner has its share of them
   */
  begin(partnerId: string): () => void {
    // Asked at each call, so that the load is always that of the last moments.
    const isBusy = this.#isBusy();
    const own = this.#byPartner.get(partnerId) ?? 0;
    const partners = this.#byPartner.size + (own === 0 ? 1 : 0);
    // A partner without a running call is never refused.
    const share = Math.max(1, Math.floor(this.#max / partners));
    if (isBusy && this.#running >= this.#max && own >= share) {
      this.#observer.refused('calls_of_partner');
      throw new DomainError('unavailable', 'Too many calls of this partner are running at the same time.', {
        reason: 'concurrency_exceeded',
        retryAfterSeconds: RETRY_SECONDS,
      });
    }
    this.#byPartner.set(partnerId, own + 1);
    this.#running += 1;
    return () => {
      this.#running -= 1;
      const left = this.#byPartner.get(partnerId)! - 1;
      if (left === 0) this.#byPartner.delete(partnerId);
      else this.#byPartner.set(partnerId, left);
    };
  }
}

/** The time over which the load of the main thread is averaged, in milliseconds. */
const WINDOW_MS = 250;
/** The part of a window in which a busy main thread has work. */
const BUSY = 0.9;

/**
 * Returns a function that reports whether the main thread is busy. The answer is an average of the last
 * window, so that one burst on an idle process does not count. Without calls the window grows.
 */
export function mainThreadLoad(): () => boolean {
  let since: EventLoopUtilization = performance.eventLoopUtilization();
  let at = performance.now();
  let busy = false;
  return () => {
    const now = performance.now();
    if (now - at < WINDOW_MS) return busy;
    const until = performance.eventLoopUtilization();
    busy = performance.eventLoopUtilization(until, since).utilization > BUSY;
    since = until;
    at = now;
    return busy;
  };
}
