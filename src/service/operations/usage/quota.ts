import { defined } from '../../../core/domain/defined.js';
import { type DomainError, limited } from '../../../core/domain/errors.js';
import { monthEnd, secondsToNextMonth } from '../../domain/usage-window.js';
import type { UsageCharge, UsageStore } from '../../ports/stores.js';
import type { Clock } from '../../ports/system.js';
import type { Caller } from '../caller.js';
import { idempotencyKeyReused } from '../idempotency.js';

/** The values of the three `X-RateLimit-*` headers, which `RateLimit` repeats. */
export interface QuotaFacts {
  readonly limit: number;
  readonly remaining: number;
  /** The time in unix seconds at which the window resets, and the seconds until then. */
  readonly reset: number;
  readonly resetSeconds: number;
}

/**
 * Spends the units of a call from the partner's monthly quota. A test key spends none (rule 19.2).
 * @throws DomainError `rate_limited` / `quota_exceeded`, or `conflict` / `idempotency_key_reused`. A refused call
 * costs nothing
 */
export async function charge(
  stores: UsageStore,
  caller: Caller,
  { operation, dedupeKey, at, units, dedupeUntil, request }: Omit<UsageCharge, 'partnerId' | 'monthlyQuota'>,
): Promise<'charged' | 'already_charged'> {
  if (caller.testAnswer !== undefined) return 'charged';
  const { outcome, used } = await stores.charge(
    defined({
      partnerId: caller.partnerId,
      operation,
      dedupeKey,
      at,
      monthlyQuota: caller.plan.monthlyQuota,
      units,
      dedupeUntil,
      request,
    }),
  );
  caller.used = { units: used, at };
  if (outcome === 'quota_exceeded') throw quotaExceeded(at, caller.plan.monthlyQuota - used);
  if (outcome === 'key_reused') throw idempotencyKeyReused();
  return outcome;
}

/**
 * Refuses the call when the rest of the partner's monthly quota does not pay for it. Spends no unit.
 * @param now in unix seconds
 * @param needed the units of the call
 * @throws DomainError `rate_limited` / `quota_exceeded`
 */
export async function requireQuota(
  stores: UsageStore,
  caller: Caller,
  now: number,
  needed = 1,
): Promise<void> {
  const units = await stores.getUsed(caller.partnerId, now);
  caller.used = { units, at: now };
  const left = caller.plan.monthlyQuota - units;
  if (left < needed) throw quotaExceeded(now, left);
}

function quotaExceeded(now: number, left: number): DomainError {
  const message =
    left > 0
      ? `The call needs more units than the ${left} left of the month.`
      : 'The monthly quota is used up.';
  return limited(message, {
    reason: 'quota_exceeded',
    limit: 'monthly_quota',
    now,
    retryAfterSeconds: secondsToNextMonth(now),
  });
}

/**
 * Returns the partner's quota when the response is ready, including the call itself. A charged call already
 * has these numbers and needs no read of the store. They belong to the month that was charged, even if the
 * response is sent in the next month (rule 6.9).
 */
export function readQuota(
  { stores, clock }: { readonly stores: UsageStore; readonly clock: Clock },
  { partnerId, plan, used }: Caller,
): QuotaFacts | Promise<QuotaFacts> {
  const limit = plan.monthlyQuota;
  // After a plan was reduced, more units may be used than it allows.
  const facts = (units: number, at: number) => ({
    limit,
    remaining: Math.max(0, limit - units),
    reset: monthEnd(at),
    resetSeconds: secondsToNextMonth(at),
  });
  if (used !== undefined) return facts(used.units, used.at);
  const now = Math.floor(clock.now() / 1000);
  return stores.getUsed(partnerId, now).then((units) => facts(units, now));
}
