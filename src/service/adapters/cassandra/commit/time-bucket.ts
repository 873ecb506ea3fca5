import { createHash } from 'node:crypto';

/** The length of the time buckets of pointers and of charges, in milliseconds. */
const TIME_BUCKET_MS = 15_000;
const MINUTE_MS = 60_000;
/** The number of partitions of one time bucket of pointers. */
export const SHARDS = 8;
/**
 * The age in milliseconds from which pointers are visited, longer than all timeouts of driver and server. A visit
 * that is too early refuses a running call, and does no other harm.
 */
const ABANDONED_MS = 20_000;
/**
 * The time in milliseconds for which a time bucket is visited again although it is done. Slow processes, and
 * processes with slow clocks, may still write into it.
 */
const LOOK_BACK_MS = 120_000;
/** The most earlier time buckets, in which rows stayed, that one pass visits again. */
const REVISITS = 60;

/** The time buckets that one pass visits. */
export interface PassPlan {
  /** The time buckets from where the earlier passes ended, oldest first. */
  readonly fresh: readonly number[];
  /** The earlier time buckets in which rows stayed. The one that was visited longest ago is first. */
  readonly revisits: readonly number[];
}

/** The progress of the passes when one begins. */
export interface PassState {
  /** The first time bucket that is not done, for all processes together. */
  readonly watermark: number;
  /** The first time bucket that this process has not visited; 0 before its first pass. */
  readonly nextFresh: number;
  /** The time buckets in which this process left rows. The one that was visited longest ago is first. */
  readonly unfinished: readonly number[];
}

/** @param now milliseconds since the epoch */
export function planPass({ watermark, nextFresh, unfinished }: PassState, now: number): PassPlan {
  const first = Math.max(watermark, nextFresh);
  const end = pointerBucketOf(now - ABANDONED_MS);
  return {
    fresh: Array.from({ length: Math.max(0, end - first) }, (_, i) => first + i),
    revisits: unfinished
      .filter((timeBucket) => timeBucket >= watermark && timeBucket < first)
      .slice(0, REVISITS),
  };
}

/** Returns the first time bucket that may still get rows. Passes visit this and all later time buckets again. */
export function openFrom(now: number): number {
  return pointerBucketOf(now - LOOK_BACK_MS);
}

/** Returns the number of the time bucket of pointers at a time. @param now milliseconds since the epoch */
export function pointerBucketOf(now: number): number {
  return timeBucketOf(now, TIME_BUCKET_MS);
}

/** Returns the start of a time bucket of pointers, in milliseconds since the epoch. */
export function startOf(pointerBucket: number): number {
  return pointerBucket * TIME_BUCKET_MS;
}

/** Returns the number of the time bucket of charges at a time. @param now milliseconds since the epoch */
export function chargeBucketOf(now: number): number {
  return timeBucketOf(now, TIME_BUCKET_MS);
}

/** Returns how many time buckets of charges a number of minutes has. */
export function chargeBucketsIn(minutes: number): number {
  return (minutes * MINUTE_MS) / TIME_BUCKET_MS;
}

/** Returns the number of the minute of a time. @param now milliseconds since the epoch */
export function minuteOf(now: number): number {
  return timeBucketOf(now, MINUTE_MS);
}

/** Returns the number of the time bucket of a time, which is in the unit of `length`. */
export function timeBucketOf(at: number, length: number): number {
  return Math.floor(at / length);
}

/** @param shards at most 256 */
export function shardOf(id: string, shards: number): number {
  return createHash('sha256').update(id).digest()[0]! % shards;
}
