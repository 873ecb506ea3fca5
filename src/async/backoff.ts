/** Pauses between attempts: the first one, and the longest, in milliseconds. */
export interface Backoff {
  readonly firstMs: number;
  readonly longestMs: number;
}

/**
 * Milliseconds to wait after `failures` failures in a row (1 or more): the pause doubles with each, up to the
 * longest.
 */
export function pauseAfter(failures: number, { firstMs, longestMs }: Backoff): number {
  return Math.min(firstMs * 2 ** (failures - 1), longestMs);
}

/** The pause times a random factor from 0.5 to 1.5, so that callers who failed together part. */
export function jittered(pauseMs: number): number {
  return pauseMs * (0.5 + Math.random());
}
