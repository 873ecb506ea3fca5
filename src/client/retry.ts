import { setTimeout as sleep } from 'node:timers/promises';
import { TakemarkError } from './errors.js';

export interface RetryPolicy {
  /** All attempts, the first one included. */
  readonly maxAttempts: number;
  /** First pause without a Retry-After; doubles with each attempt. */
  readonly baseDelayMs: number;
  /**
   * A longer pause, asked for or computed, is not waited for: the error goes to the caller, who can plan with
   * `retryAfterSeconds`.
   */
  readonly maxDelayMs: number;
}

const RETRYABLE_STATUSES: ReadonlySet<number> = new Set([408, 429, 500, 502, 503, 504]);

/**
 * Tells whether the same call may succeed later. Says nothing on whether it is safe to send it again: that is
 * the caller's to know.
 */
export function isTransient(error: unknown): error is TakemarkError {
  if (!(error instanceof TakemarkError)) return false;
  if (error.status !== undefined) return RETRYABLE_STATUSES.has(error.status);
  return error.code === 'connection_failed' || error.code === 'timed_out';
}

/**
 * Milliseconds to wait before attempt `attempt + 1`, or undefined where it is not worth waiting. Retry-After
 * is a lower bound: jitter is only ever added to it, so that a crowd told the same second does not come back
 * in it.
 */
export function pauseBefore(
  error: TakemarkError,
  attempt: number,
  policy: RetryPolicy,
  random = Math.random,
): number | undefined {
  if (attempt >= policy.maxAttempts) return undefined;
  const backoff = Math.min(policy.maxDelayMs, policy.baseDelayMs * 2 ** (attempt - 1));
  if (error.retryAfterSeconds === undefined) return backoff * (0.5 + random() / 2);
  const asked = error.retryAfterSeconds * 1000;
  return asked > policy.maxDelayMs ? undefined : asked + random() * backoff;
}

/**
 * Rule 17.1: the one failure after which it is certain that nothing was done, whatever the
 * call.
 */
export function isRefusedForNow(error: unknown): error is TakemarkError {
  return error instanceof TakemarkError && error.status === 429;
}

/**
 * Runs a call until it succeeds, fails for good, or the policy is used up.
 * @param repeatable failures after which the call may be sent again; without it, those of a call that is safe
 * to repeat
 */
export async function retrying<T>(
  policy: RetryPolicy,
  signal: AbortSignal | undefined,
  call: () => Promise<T>,
  repeatable: (error: unknown) => error is TakemarkError = isTransient,
): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await call();
    } catch (error) {
      const pause = repeatable(error) ? pauseBefore(error, attempt, policy) : undefined;
      if (pause === undefined) throw error;
      await pauseFor(pause, signal);
    }
  }
}

/** Rejects with the reason of the signal as soon as it is aborted. */
export async function pauseFor(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  try {
    await sleep(milliseconds, undefined, signal === undefined ? {} : { signal });
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  }
}
