import { setTimeout as sleep } from 'node:timers/promises';
import { TakemarkError } from './errors.js';

export interface RetryPolicy {
  /** The total number of attempts, including the first one. */
  readonly maxAttempts: number;
  /** The first pause in milliseconds without Retry-After. It doubles with each attempt. */
  readonly baseDelayMs: number;
  /**
   * The longest pause in milliseconds. If the service asks for a longer pause, the call fails, and the caller
   * can use `retryAfterSeconds`. A computed pause is capped.
   */
  readonly maxDelayMs: number;
}

const RETRYABLE_STATUSES: ReadonlySet<number> = new Set([408, 429, 500, 502, 503, 504]);

/**
 * Returns whether the same call may succeed later. Whether repeating the call is safe is for the caller to
 * know.
 */
export function isTransient(error: unknown): error is TakemarkError {
  if (!(error instanceof TakemarkError)) return false;
  if (error.status !== undefined) return RETRYABLE_STATUSES.has(error.status);
  return error.code === 'connection_failed' || error.code === 'timed_out';
}

/**
 * Returns the milliseconds to wait before attempt `attempt + 1`, or undefined if the call should fail.
 * Retry-After is a lower bound: jitter is only added to it, so that many clients do not return in the same
 * second.
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
 * Returns true for a 429, the only failure that guarantees for every call that nothing was done (rule 17.1).
 */
export function isRefusedForNow(error: unknown): error is TakemarkError {
  return error instanceof TakemarkError && error.status === 429;
}

/**
 * Runs a call until it succeeds, fails permanently, or the policy is exhausted.
 * @param repeatable returns whether the call may be repeated after a failure. Default: any transient failure
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

/** Waits, or rejects with the reason of the signal when the signal is aborted. */
export async function pauseFor(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  try {
    await sleep(milliseconds, undefined, signal === undefined ? {} : { signal });
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  }
}
