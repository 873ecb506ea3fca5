import { monthEnd } from '../../domain/usage-window.js';
import type { Clock } from '../../ports/clock.js';
import type { UsageStore } from '../../ports/stores.js';
import type { Caller, QuotaFacts } from '../operations.js';

/**
 * "`X-RateLimit-Limit` (monthly quota) and `X-RateLimit-Reset` (unix seconds at which the quota window
 * resets)."
 */
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
