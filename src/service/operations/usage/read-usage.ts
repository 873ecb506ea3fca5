import type { ResultOf } from '../../contract/results.js';
import { BILLED_OPERATIONS, dayOf, monthEnd, monthStart } from '../../domain/usage-window.js';
import type { UsageStore } from '../../ports/stores.js';
import type { Clock } from '../../ports/system.js';
import type { Caller } from '../caller.js';

const DAY_SECONDS = 24 * 3600;

/**
 * Returns the limit and the consumption of the last `days` UTC days, including today. Days without use are
 * zero.
 */
export async function readUsage(
  { stores, clock }: { readonly stores: UsageStore; readonly clock: Clock },
  caller: Caller,
  { days }: { readonly days: number },
): Promise<ResultOf<'readUsage'>> {
  const now = Math.floor(clock.now() / 1000);
  const asked = Array.from({ length: days }, (_, i) => dayOf(now - (days - 1 - i) * DAY_SECONDS));
  const found = new Map(
    (await stores.getDailyUsage(caller.partnerId, asked[0]!, asked.at(-1)!)).map(({ day, operations }) => [
      day,
      operations,
    ]),
  );
  const used = await stores.getUsed(caller.partnerId, now);
  const {
    name,
    monthlyQuota: limit,
    requestsPerSecond,
    burst,
    concurrentUploads,
    rotationsPerDay,
  } = caller.plan;
  return {
    plan: name,
    period: { start: monthStart(now), end: monthEnd(now) },
    limit,
    limits: { requestsPerSecond, burst, concurrentUploads, rotationsPerDay },
    used,
    remaining: Math.max(0, limit - used),
    days: asked.map((day) => {
      const operations = found.get(day) ?? {};
      // Operations that are not billed are metered but free.
      const units = BILLED_OPERATIONS.reduce((sum, operation) => sum + (operations[operation] ?? 0), 0);
      return { day, units, operations };
    }),
  };
}
