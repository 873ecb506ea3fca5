import { type DomainError, limited } from '../../domain/errors.js';
import { monthEnd, secondsToNextMonth } from '../../domain/usage-window.js';
import type { UsageCharge, UsageStore } from '../../ports/stores.js';
import type { Clock } from '../../ports/system.js';
import type { Caller } from '../caller.js';

/** Numbers of the three `X-RateLimit-*` headers of a partner-scoped response. */
export interface QuotaFacts {
  readonly limit: number;
  readonly remaining: number;
  /** Unix seconds at which the window resets. */
  readonly reset: number;
}

/**
 * Spends one unit of the partner's month; none for a test key (rule 19.2).
 * @throws DomainError `rate_limited` / `quota_exceeded`; a refused call costs nothing
 */
export async function charge(
  stores: UsageStore,
  caller: Caller,
  {
    operation,
    dedupeKey,
    at,
    dedupeUntil,
  }: Pick<UsageCharge, 'operation' | 'dedupeKey' | 'at' | 'dedupeUntil'>,
): Promise<void> {
  if (caller.testAnswer !== undefined) return;
  const { outcome, used } = await stores.charge({
    partnerId: caller.partnerId,
    operation,
    dedupeKey,
    at,
    monthlyQuota: caller.plan.monthlyQuota,
    dedupeUntil,
  });
  caller.used = used;
  if (outcome === 'quota_exceeded') throw quotaExceeded(at);
}

/**
 * Refuses where the partner's month has no unit left. Spends none.
 * @param now in unix seconds
 * @throws DomainError `rate_limited` / `quota_exceeded`
 */
export async function requireQuota(stores: UsageStore, caller: Caller, now: number): Promise<void> {
  caller.used = await stores.getUsed(caller.partnerId, now);
  if (caller.used >= caller.plan.monthlyQuota) throw quotaExceeded(now);
}

function quotaExceeded(now: number): DomainError {
  return limited('The monthly quota is used up.', {
    reason: 'quota_exceeded',
    now,
    retryAfterSeconds: secondsToNextMonth(now),
  });
}

/**
 * The partner's quota when the response is ready: the call itself is counted. A call that was charged knows it
 * without the store.
 */
export function readQuota(
  { stores, clock }: { readonly stores: UsageStore; readonly clock: Clock },
  caller: Caller,
): QuotaFacts | Promise<QuotaFacts> {
  const now = Math.floor(clock.now() / 1000);
  const limit = caller.plan.monthlyQuota;
  // A plan that was made smaller leaves more used than it allows.
  const facts = (used: number) => ({ limit, remaining: Math.max(0, limit - used), reset: monthEnd(now) });
  return caller.used === undefined ? stores.getUsed(caller.partnerId, now).then(facts) : facts(caller.used);
}
