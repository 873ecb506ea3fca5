import type { LimitName } from '../../../core/domain/errors.js';
import type { PlanLimits } from '../../domain/partner.js';
import { monthStart } from '../../domain/usage-window.js';
import type { QuotaFacts } from '../../operations/usage/quota.js';
import type { RateFacts } from '../../operations/usage/rate-limits.js';

/**
 * Returns the headers that state a partner's limits: those of the contract (rule 6.9) for the quota, and those
 * of draft-ietf-httpapi-ratelimit-headers-10 (rule 6.16) for rate and quota.
 * @param quota only its window if the counter cannot be read
 */
export function limitHeaders(
  { burst, requestsPerSecond }: PlanLimits,
  rate: RateFacts,
  quota: QuotaFacts | Pick<QuotaFacts, 'limit' | 'reset'>,
): Readonly<Record<string, string>> {
  const limits: readonly Limit[] = [
    // A caller that spreads a burst over the time in which it is refilled is never limited.
    { name: 'request_rate', units: burst, windowSeconds: Math.ceil(burst / requestsPerSecond), ...rate },
    ...('remaining' in quota
      ? [
          {
            name: 'monthly_quota' as const,
            units: quota.limit,
            windowSeconds: quota.reset - monthStart(quota.reset - 1),
            ...quota,
          },
        ]
      : []),
  ];
  return {
    'RateLimit-Policy': limits
      .map(({ name, units, windowSeconds }) => `"${name}";q=${units};w=${windowSeconds}`)
      .join(', '),
    RateLimit: limits
      .map(({ name, remaining, resetSeconds }) => `"${name}";r=${remaining};t=${resetSeconds}`)
      .join(', '),
    'X-RateLimit-Limit': String(quota.limit),
    ...('remaining' in quota && { 'X-RateLimit-Remaining': String(quota.remaining) }),
    'X-RateLimit-Reset': String(quota.reset),
  };
}

interface Limit extends RateFacts {
  readonly name: LimitName;
  readonly units: number;
  readonly windowSeconds: number;
}
