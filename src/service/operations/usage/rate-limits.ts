import { type LimitName, limited } from '../../../core/domain/errors.js';
import type { ContentDigest } from '../../domain/message-signature.js';
import type { Plan } from '../../domain/partner.js';
import type { Clock } from '../../ports/system.js';
import type { Caller } from '../caller.js';

/** The classes of the request rate. Rotation has a deliberately low rate of its own. */
export type RateClass = 'standard' | 'rotation' | 'rotation_calls';
/** What is limited beside calls: wrong signatures of a key, and events in the counters that partners share. */
export type OtherClass = 'wrong_signatures' | 'product_events';

/**
 * The interval in milliseconds between two removals of full token buckets. A removed bucket is created anew,
 * and full, at the next call.
 */
const DROP_IDLE_MS = 60_000;
const SECOND_MS = 1000;
/**
 * The lowest burst of requests to rotate for one partner, on any plan. All processes of a partner may learn
 * at the same time that their key expires.
 */
const ROTATION_CALLS = 256;
const DAY_MS = 24 * 3600 * SECOND_MS;
/** The most product events of one partner, at once and per day. The largest report has as many. */
const PRODUCT_EVENTS = 100_000_000;

/** The request rate of a partner, for the header `RateLimit`. */
export interface RateFacts {
  /** The calls that this process admits at once. */
  readonly remaining: number;
  /** The seconds until this process admits a whole burst again, if no call is made. */
  readonly resetSeconds: number;
}

/** The rates of every plan in this process, with one token bucket for each holder and class. */
export interface RateLimits {
  /**
   * Spends one call, or `count` of what the class counts.
   * @param holder a partner, or one of its keys
   * @throws DomainError `rate_limited` / `rate_exceeded`. A refused call costs nothing
   */
  spend(holder: string, plan: Plan, rateClass: RateClass | OtherClass, count?: number): void;
  /**
   * Spends further calls for a call that was admitted and read much. The bucket may go below zero, and the
   * next calls then wait until it is refilled.
   */
  weigh(partnerId: string, plan: Plan, calls: number): void;
  /** Returns one call to the bucket, for a call that had no effect. */
  giveBack(holder: string, plan: Plan, rateClass: RateClass | OtherClass): void;
  /** Returns the state of the partner's request rate in this process. */
  read(partnerId: string, plan: Plan): RateFacts;
  /** The number of token buckets held in memory. */
  readonly size: number;
}

/**
 * The shape of a token bucket. `rate` calls are refilled every `periodMs`, and the bucket holds at most
 * `burst` calls.
 */
interface Shape {
  readonly burst: number;
  readonly rate: number;
  readonly periodMs: number;
}

interface TokenBucket {
  readonly plan: Plan;
  /** The number of processes from which `shape` was computed. */
  processes: number;
  shape: Shape;
  /**
   * The level in calls multiplied by the period in milliseconds, so that a refill is an exact whole number.
   */
  level: number;
  /** The clock time in milliseconds at which `level` was computed. */
  at: number;
}

/**
 * Creates the rates of this process.
 * @param processes returns the number of processes that share the calls. Each admits its share of a plan's rates
 */
export function createRateLimits(clock: Clock, processes: () => number = () => 1): RateLimits {
  const buckets = new Map<string, TokenBucket>();
  let droppedAt = clock.now();

  const bucketOf = (holder: string, plan: Plan, rateClass: RateClass | OtherClass): TokenBucket => {
    const now = clock.now();
    if (Math.abs(now - droppedAt) >= DROP_IDLE_MS) {
      droppedAt = now;
      for (const [name, bucket] of buckets)
        if (refill(bucket, now).level === capacity(bucket.shape)) buckets.delete(name);
    }
    const name = `${rateClass} ${holder}`;
    const held = buckets.get(name);
    // A partner starts with a full bucket when its plan, or the limits of its plan, change.
    const count = processes();
    if (held?.plan === plan) {
      refill(held, now);
      if (held.processes !== count) reshape(held, shapeOf(plan, rateClass, count), count);
      return held;
    }
    const shape = shapeOf(plan, rateClass, count);
    const bucket = { plan, processes: count, shape, level: capacity(shape), at: now };
    buckets.set(name, bucket);
    return bucket;
  };

  return {
    spend(holder, plan, rateClass, count = 1) {
      const bucket = bucketOf(holder, plan, rateClass);
      const { rate, periodMs } = bucket.shape;
      const missing = count * periodMs - bucket.level;
      if (missing > 0) {
        // After this many whole seconds the bucket holds enough again, if no other call spends it.
        const retryAfterSeconds = Math.ceil(missing / (rate * SECOND_MS));
        throw limited(REFUSALS[rateClass].message, {
          reason: 'rate_exceeded',
          limit: REFUSALS[rateClass].limit,
          now: bucket.at / SECOND_MS,
          retryAfterSeconds,
        });
      }
      bucket.level -= count * periodMs;
    },
    weigh(partnerId, plan, calls) {
      const bucket = bucketOf(partnerId, plan, 'standard');
      bucket.level -= calls * bucket.shape.periodMs;
    },
    giveBack(holder, plan, rateClass) {
      const bucket = bucketOf(holder, plan, rateClass);
      bucket.level = Math.min(capacity(bucket.shape), bucket.level + bucket.shape.periodMs);
    },
    read(partnerId, plan) {
      const { level, shape } = bucketOf(partnerId, plan, 'standard');
      return {
        // What a read weighs may bring the level below zero.
        remaining: Math.max(0, Math.floor(level / shape.periodMs)),
        resetSeconds: Math.ceil((capacity(shape) - level) / (shape.rate * SECOND_MS)),
      };
    },
    get size() {
      return buckets.size;
    },
  };
}

/**
 * Spends one call of the partner's request rate, and then checks the call. `rotateKey` spends the rotation
 * rate itself, because its replays must not spend it.
 * @param check proves that the caller is the partner. It runs only within the rate, because it may be
 * expensive. A call that fails it costs the partner nothing, because a thief of the key may have sent the
 * call.
 * @returns the result of `check`
 * @throws DomainError `rate_limited` / `rate_exceeded` with a `retryAfterSeconds` after which the next call
 * of a single caller succeeds, or the error of `check`
 */
export function admit(
  { limits }: { readonly limits: RateLimits },
  { partnerId, plan }: Caller,
  rateClass: RateClass,
  check: () => ContentDigest | undefined,
): ContentDigest | undefined {
  limits.spend(partnerId, plan, rateClass);
  try {
    return check();
  } catch (error) {
    limits.giveBack(partnerId, plan, rateClass);
    throw error;
  }
}

/**
 * Refuses a call whose turn comes while the partner's rate is exceeded, because what other calls read meanwhile weighed
 * more than the rate allows. The refused call costs nothing.
 * @throws DomainError `rate_limited` / `rate_exceeded`
 */
export function admitTurn(
  { limits }: { readonly limits: Pick<RateLimits, 'spend' | 'giveBack'> },
  { partnerId, plan }: Pick<Caller, 'partnerId' | 'plan'>,
): void {
  try {
    limits.spend(partnerId, plan, 'standard', 0);
  } catch (error) {
    limits.giveBack(partnerId, plan, 'standard');
    throw error;
  }
}

/** Returns the state of the partner's request rate after this call. */
export function readRate({ limits }: { readonly limits: RateLimits }, caller: Caller): RateFacts {
  return limits.read(caller.partnerId, caller.plan);
}

/** What one call of the request rate pays for: entries of a list, digests, and bytes of a stored report. */
const ENTRIES_OF_CALL = 10;
const DIGESTS_OF_CALL = 100;
const REPORT_BYTES_OF_CALL = 65_536;

/**
 * Spends the calls that a read is worth beyond the one that admitted it (rule 6.17).
 * @param entries of the list. Absent for a read of one proof
 * @param digests that were looked for
 * @param reportBytes the size of the stored reports that were read
 */
export function weigh(
  { limits }: { readonly limits: Pick<RateLimits, 'weigh'> },
  { partnerId, plan }: Pick<Caller, 'partnerId' | 'plan'>,
  {
    entries = 0,
    digests = 0,
    reportBytes = 0,
  }: { readonly entries?: number; readonly digests?: number; readonly reportBytes?: number },
): void {
  const calls = Math.max(
    1,
    Math.ceil(entries / ENTRIES_OF_CALL),
    Math.ceil(digests / DIGESTS_OF_CALL),
    Math.ceil(reportBytes / REPORT_BYTES_OF_CALL),
  );
  if (calls > 1) limits.weigh(partnerId, plan, calls - 1);
}

/** The messages of refusals, and the limits that were exceeded. */
const REFUSALS: Readonly<
  Record<RateClass | OtherClass, { readonly message: string; readonly limit: LimitName }>
> = {
  standard: { message: 'The requests exceed the request rate.', limit: 'request_rate' },
  rotation_calls: { message: 'The requests exceed the request rate.', limit: 'request_rate' },
  rotation: { message: 'The partner rotates keys too often.', limit: 'rotation_rate' },
  wrong_signatures: {
    message: 'Too many calls with this key have a wrong signature.',
    limit: 'wrong_signatures',
  },
  product_events: { message: 'The partner reports too many events.', limit: 'product_events' },
};

/**
 * Returns the shape of a bucket. Rotations have a lower rate of their own. Requests to rotate and wrong
 * signatures spend no standard calls, but have the same rate.
 */
function shapeOf(plan: Plan, rateClass: RateClass | OtherClass, processes: number): Shape {
  if (rateClass === 'product_events')
    return { burst: PRODUCT_EVENTS, rate: PRODUCT_EVENTS, periodMs: DAY_MS };
  const rotations = shareOf(plan.rotationsPerDay, processes);
  if (rateClass === 'rotation') return { burst: rotations, rate: rotations, periodMs: DAY_MS };
  const burst = rateClass === 'rotation_calls' ? Math.max(plan.burst, ROTATION_CALLS) : plan.burst;
  return {
    burst: shareOf(burst, processes),
    rate: shareOf(plan.requestsPerSecond, processes),
    periodMs: SECOND_MS,
  };
}

/** Returns one process's share of a plan's limit, rounded up to a whole number that is never zero. */
export function shareOf(number: number, processes: number): number {
  return Math.ceil(number / processes);
}

function capacity(shape: Shape): number {
  return shape.burst * shape.periodMs;
}

/** Gives a bucket the share of another number of processes. No call is added: a larger share is refilled at its rate. */
function reshape(bucket: TokenBucket, shape: Shape, processes: number): void {
  bucket.shape = shape;
  bucket.processes = processes;
  bucket.level = Math.min(capacity(shape), bucket.level);
}

/** Refills a bucket. A clock that was set back neither adds nor removes calls. */
function refill(bucket: TokenBucket, now: number): TokenBucket {
  const elapsed = Math.max(0, now - bucket.at);
  bucket.level = Math.min(capacity(bucket.shape), bucket.level + elapsed * bucket.shape.rate);
  bucket.at = now;
  return bucket;
}
