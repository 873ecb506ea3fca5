import { dayOf, monthEnd, monthStart } from '../../domain/usage-window.js';
import type { Clock } from '../../ports/clock.js';
import { BILLED_OPERATIONS, type UsageStore } from '../../ports/stores.js';
import type { Caller, UsageReport } from '../operations.js';
import { requireScope } from '../require-scope.js';

const DAY_SECONDS = 24 * 3600;

/**
 * "Returns limits and per-day consumption": the last `days` UTC days, today included; days without use are
 * zero.
 */
export async function readUsage(
  { stores, clock }: { readonly stores: UsageStore; readonly clock: Clock },
  caller: Caller,
  { days }: { readonly days: number },
): Promise<UsageReport> {
  requireScope(caller, 'usage');
  const now = Math.floor(clock.now() / 1000);
  const asked = Array.from({ length: days }, (_, i) => dayOf(now - (days - 1 - i) * DAY_SECONDS));
  const found = new Map(
    (await stores.getDailyUsage(caller.partnerId, asked[0]!, asked.at(-1)!)).map(({ day, operations }) => [
      day,
      operations,
    ]),
  );
  const used = await stores.getUsed(caller.partnerId, now);
  const limit = caller.plan.monthlyQuota;
  return {
    plan: caller.plan.name,
    period: { start: monthStart(now), end: monthEnd(now) },
    limit,
    used,
    remaining: Math.max(0, limit - used),
    days: asked.map((day) => {
      const operations = found.get(day) ?? {};
      // "The quota counts verify and identify; everything else is metered per day but free."
      const units = BILLED_OPERATIONS.reduce((sum, operation) => sum + (operations[operation] ?? 0), 0);
      return { day, units, operations };
    }),
  };
}
