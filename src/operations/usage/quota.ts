import { DomainError } from '../../domain/errors.js';
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
 * Spends one unit of the partner's month.
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
  const { outcome, used } = await stores.charge({
    partnerId: caller.partnerId,
    operation,
    dedupeKey,
    at,
    monthlyQuota: caller.plan.monthlyQuota,
    dedupeUntil,
  });
  caller.used = used;
  if (outcome === 'quota_exceeded') {
    throw new DomainError('rate_limited', 'The monthly quota is used up.', {
      reason: 'quota_exceeded',
      retryAfterSeconds: secondsToNextMonth(at),
    });
  }
}

/** The partner's quota when the response is ready: the call itself is counted. */
export async function readQuota(
  { stores, clock }: { readonly stores: UsageStore; readonly clock: Clock },
  caller: Caller,
): Promise<QuotaFacts> {
  const now = Math.floor(clock.now() / 1000);
  const limit = caller.plan.monthlyQuota;
  const used = caller.used ?? (await stores.getUsed(caller.partnerId, now));
  // A plan that was made smaller leaves more used than it allows.
  return { limit, remaining: Math.max(0, limit - used), reset: monthEnd(now) };
}
