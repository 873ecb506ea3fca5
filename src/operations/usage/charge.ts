import { DomainError } from '../../domain/errors.js';
import { secondsToNextMonth } from '../../domain/usage-window.js';
import type { UsageCharge, UsageStore } from '../../ports/stores.js';
import type { Caller } from '../operations.js';

/**
 * Spends one unit of the partner's month. "Exceeding a limit returns 429 with `Retry-After`"; refused calls
 * cost nothing.
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
