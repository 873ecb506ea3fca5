import { limited } from '../../domain/errors.js';
import type { Plan } from '../../domain/partner.js';
import type { Clock } from '../../ports/system.js';
import type { Caller } from '../caller.js';

/** Classes of the request rate. Rotation has its own, deliberately low one. */
export type RateClass = 'standard' | 'rotation' | 'rotation_calls';

/** Interval between two removals of full token buckets; the next call of their partner makes an equal one. */
const DROP_IDLE_MS = 60_000;
const SECOND_MS = 1000;
/**
 * Requests to rotate that one partner may make at once, whatever its plan: the partner's many processes may
 * all learn at the same time that their key ends.
 */
const ROTATION_CALLS = 256;
const DAY_MS = 24 * 3600 * SECOND_MS;

/** The request rates of every plan, in this process: one token bucket for each partner and rate class. */
export interface RateLimits {
  /** @throws DomainError `rate_limited` / `rate_exceeded`; a refused call costs nothing */
  spend(partnerId: string, plan: Plan, rateClass: RateClass): void;
  /** For a call that turned out to do nothing. */
  giveBack(partnerId: string, plan: Plan, rateClass: RateClass): void;
  /** Token buckets that are held. */
  readonly size: number;
}

/** Shape of a token bucket: `rate` calls come back every `period`, at most `burst` are held. */
interface Shape {
  readonly burst: number;
  readonly rate: number;
  readonly periodMs: number;
}

interface TokenBucket {
  readonly plan: Plan;
  readonly shape: Shape;
  /** Level in calls times the period, so that a refill is a whole number and exact. */
  level: number;
  /** Milliseconds of the clock at which `level` held. */
  at: number;
}

/** @param processes that are called by turns: each lets pass its share of a plan's rates */
export function createRateLimits(clock: Clock, processes = 1): RateLimits {
  const buckets = new Map<string, TokenBucket>();
  let droppedAt = clock.now();

  const bucketOf = (partnerId: string, plan: Plan, rateClass: RateClass): TokenBucket => {
    const now = clock.now();
    if (Math.abs(now - droppedAt) >= DROP_IDLE_MS) {
      droppedAt = now;
      for (const [name, bucket] of buckets)
        if (refill(bucket, now).level === capacity(bucket.shape)) buckets.delete(name);
    }
    const name = `${rateClass} ${partnerId}`;
    const held = buckets.get(name);
    // A partner that gets another plan, or whose plan gets other limits, starts with a full bucket of it.
    if (held?.plan === plan) return refill(held, now);
    const shape = shapeOf(plan, rateClass, processes);
    const bucket = { plan, shape, level: capacity(shape), at: now };
    buckets.set(name, bucket);
    return bucket;
  };

  return {
    spend(partnerId, plan, rateClass) {
      const bucket = bucketOf(partnerId, plan, rateClass);
      const { rate, periodMs } = bucket.shape;
      const missing = periodMs - bucket.level;
      if (missing > 0) {
        // After this many whole seconds a call's worth has come back, if nobody else takes it.
        const retryAfterSeconds = Math.ceil(missing / (rate * SECOND_MS));
        throw limited(
          rateClass === 'rotation' ? 'Keys are being rotated too often.' : 'Too many requests; slow down.',
          { reason: 'rate_exceeded', now: bucket.at / SECOND_MS, retryAfterSeconds },
        );
      }
      bucket.level -= periodMs;
    },
    giveBack(partnerId, plan, rateClass) {
      const bucket = bucketOf(partnerId, plan, rateClass);
      bucket.level = Math.min(capacity(bucket.shape), bucket.level + bucket.shape.periodMs);
    },
    get size() {
      return buckets.size;
    },
  };
}

/**
 * Spends one call of the partner's request rate. `rotateKey` spends the rotation rate itself, because its
 * replays do not.
 * @throws DomainError `rate_limited` / `rate_exceeded` with a `retryAfterSeconds` after which a lone caller's
 * next call succeeds
 */
export function admit(
  { limits }: { readonly limits: RateLimits },
  caller: Caller,
  rateClass: RateClass,
): void {
  limits.spend(caller.partnerId, caller.plan, rateClass);
}

/** Rotations have a lower rate of their own. Requests to rotate spend no standard calls, and have as many. */
function shapeOf(plan: Plan, rateClass: RateClass, processes: number): Shape {
  const rotations = shareOf(plan.rotationsPerDay, processes);
  if (rateClass === 'rotation') return { burst: rotations, rate: rotations, periodMs: DAY_MS };
  const burst = rateClass === 'rotation_calls' ? Math.max(plan.burst, ROTATION_CALLS) : plan.burst;
  return {
    burst: shareOf(burst, processes),
    rate: shareOf(plan.requestsPerSecond, processes),
    periodMs: SECOND_MS,
  };
}

/** The share of a plan's number that one of so many processes lets pass: a whole number, and never zero. */
export function shareOf(number: number, processes: number): number {
  return Math.ceil(number / processes);
}

function capacity(shape: Shape): number {
  return shape.burst * shape.periodMs;
}

/** A clock that was set back gives nothing and takes nothing. */
function refill(bucket: TokenBucket, now: number): TokenBucket {
  const elapsed = Math.max(0, now - bucket.at);
  bucket.level = Math.min(capacity(bucket.shape), bucket.level + elapsed * bucket.shape.rate);
  bucket.at = now;
  return bucket;
}
