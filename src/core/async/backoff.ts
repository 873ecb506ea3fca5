/** The first and the longest pause between attempts, in milliseconds. */
export interface Backoff {
  readonly firstMs: number;
  readonly longestMs: number;
}

/**
 * Returns the milliseconds to wait after `failures` consecutive failures (1 or more). The pause doubles with
 * each failure, up to the longest.
 */
export function pauseAfter(failures: number, { firstMs, longestMs }: Backoff): number {
  return Math.min(firstMs * 2 ** (failures - 1), longestMs);
}

/**
 * Returns the pause times a random factor from 0.5 to 1.5, so that callers who failed together retry at
 * different times.
 */
export function jittered(pauseMs: number): number {
  return pauseMs * (0.5 + Math.random());
}
