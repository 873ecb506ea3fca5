import { createHash } from 'node:crypto';

/** Length of the time buckets of intents and outbox rows. */
const MINUTE_MS = 60_000;
/** Partitions of one time bucket. */
export const SHARDS = 8;
/** No operation is decided later than this after its intent. */
const DECIDE_WITHIN_MS = 60_000;
/**
 * Age from which nobody is at work on a row any more: past the last moment to decide, every timeout of driver
 * and server, and some skew of clocks.
 */
const ABANDONED_MS = 2 * MINUTE_MS;
/** Time buckets that are visited again although they are done: processes with slow clocks write into them. */
const LOOK_BACK = 10;
/** Time buckets with rows that stay, visited again in one pass. */
const REVISITS = 60;

/** Time buckets that one pass visits. */
export interface PassPlan {
  /** Time buckets from where the passes before have come, oldest first. */
  readonly fresh: readonly number[];
  /** Earlier time buckets in which rows stayed, the one that was visited longest ago first. */
  readonly revisits: readonly number[];
}

/** Where passes have come when one begins. */
export interface PassState {
  /** The first time bucket that is not done, for all processes together. */
  readonly watermark: number;
  /** The first time bucket that this process has not visited; 0 before its first pass. */
  readonly nextFresh: number;
  /** Time buckets in which this process left rows, the one that was visited longest ago first. */
  readonly unfinished: readonly number[];
}

/** @param now milliseconds since the epoch */
export function planPass({ watermark, nextFresh, unfinished }: PassState, now: number): PassPlan {
  const first = Math.max(watermark, nextFresh);
  const end = minuteOf(now - ABANDONED_MS);
  return {
    fresh: Array.from({ length: Math.max(0, end - first) }, (_, i) => first + i),
    revisits: unfinished
      .filter((timeBucket) => timeBucket >= watermark && timeBucket < first)
      .slice(0, REVISITS),
  };
}

/** The first time bucket that may still get rows: passes visit it, and all behind it, again. */
export function openFrom(now: number): number {
  return minuteOf(now) - LOOK_BACK;
}

/** Number of the minute, which is the time bucket of intents and outbox rows. @param now milliseconds */
export function minuteOf(now: number): number {
  return timeBucketOf(now, MINUTE_MS);
}

/** Number of the time bucket of a time, in the unit of `length`. */
export function timeBucketOf(at: number, length: number): number {
  return Math.floor(at / length);
}

/**
 * Tells whether an operation that began then may still be decided. A process that was stopped in between must
 * not decide what the sweep has dropped.
 */
export function isTimely(startedAt: number): boolean {
  return Date.now() - startedAt <= DECIDE_WITHIN_MS;
}

export function shardOf(id: string): number {
  return createHash('sha256').update(id).digest()[0]! % SHARDS;
}
