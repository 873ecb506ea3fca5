import { DomainError } from '../../domain/errors.js';
import type { Plan } from '../../domain/partner.js';
import type { Clock } from '../../ports/clock.js';
import type { RateLane } from '../operations.js';

/** Full buckets are dropped this often; the next call of their partner makes an equal one. */
const DROP_IDLE_MS = 60_000;
const SECOND_MS = 1000;
/**
 * Of one partner at once, whatever its plan: the many processes of a partner that all learn that their key
 * ends.
 */
const ROTATION_CALLS = 256;
const DAY_MS = 24 * 3600 * SECOND_MS;

/** "Every key is rate-limited by its plan", in this process: one bucket for each partner and lane. */
export interface RateLimits {
  /** @throws DomainError `rate_limited` / `rate_exceeded`; a refused call costs nothing */
  spend(partnerId: string, plan: Plan, lane: RateLane): void;
  /** For a call that turned out to do nothing. */
  giveBack(partnerId: string, plan: Plan, lane: RateLane): void;
  /** Buckets that are held. */
  readonly size: number;
}

/** What a lane's bucket is made of: `rate` calls come back every `period`, at most `burst` are held. */
interface Lane {
  readonly burst: number;
  readonly rate: number;
  readonly periodMs: number;
}

interface Bucket {
  readonly lane: Lane;
  /** In calls times the period, so that a refill is a whole number and exact. */
  level: number;
  /** Milliseconds of the clock at which `level` held. */
  at: number;
}

/** @param processes that are called by turns: each lets pass its share of a plan's rates */
export function createRateLimits(clock: Clock, processes = 1): RateLimits {
  const buckets = new Map<string, Bucket>();
  let droppedAt = clock.now();

  const bucketOf = (partnerId: string, plan: Plan, lane: RateLane): Bucket => {
    const now = clock.now();
    if (Math.abs(now - droppedAt) >= DROP_IDLE_MS) {
      droppedAt = now;
      for (const [name, bucket] of buckets)
        if (refill(bucket, now).level === capacity(bucket.lane)) buckets.delete(name);
    }
    // The plan is part of the name: a partner that changes its plan starts with that plan's bucket.
    const name = `${lane} ${plan.name} ${partnerId}`;
    const held = buckets.get(name);
    if (held !== undefined) return refill(held, now);
    const shape = laneOf(plan, lane, processes);
    const bucket = { lane: shape, level: capacity(shape), at: now };
    buckets.set(name, bucket);
    return bucket;
  };

  return {
    spend(partnerId, plan, lane) {
      const bucket = bucketOf(partnerId, plan, lane);
      const { rate, periodMs } = bucket.lane;
      const missing = periodMs - bucket.level;
      if (missing > 0) {
        // After this many whole seconds a call's worth has come back, if nobody else takes it.
        const retryAfterSeconds = Math.ceil(missing / (rate * SECOND_MS));
        throw new DomainError(
          'rate_limited',
          lane === 'rotation' ? 'Keys are being rotated too often.' : 'Too many requests; slow down.',
          { reason: 'rate_exceeded', retryAfterSeconds },
        );
      }
      bucket.level -= periodMs;
    },
    giveBack(partnerId, plan, lane) {
      const bucket = bucketOf(partnerId, plan, lane);
      bucket.level = Math.min(capacity(bucket.lane), bucket.level + bucket.lane.periodMs);
    },
    get size() {
      return buckets.size;
    },
  };
}

/**
 * "Rotation has its own separate, lower throttle lane." What asks for one spends no standard calls, and has
 * as many.
 */
function laneOf(plan: Plan, lane: RateLane, processes: number): Lane {
  const rotations = shareOf(plan.rotationsPerDay, processes);
  if (lane === 'rotation') return { burst: rotations, rate: rotations, periodMs: DAY_MS };
  const burst = lane === 'rotation_calls' ? Math.max(plan.burst, ROTATION_CALLS) : plan.burst;
  return {
    burst: shareOf(burst, processes),
    rate: shareOf(plan.requestsPerSecond, processes),
    periodMs: SECOND_MS,
  };
}

/** What one of so many processes lets pass of a plan's number: a whole one, and never none. */
export function shareOf(number: number, processes: number): number {
  return Math.ceil(number / processes);
}

function capacity(lane: Lane): number {
  return lane.burst * lane.periodMs;
}

/** A clock that was set back gives nothing and takes nothing. */
function refill(bucket: Bucket, now: number): Bucket {
  const elapsed = Math.max(0, now - bucket.at);
  bucket.level = Math.min(capacity(bucket.lane), bucket.level + elapsed * bucket.lane.rate);
  bucket.at = now;
  return bucket;
}
