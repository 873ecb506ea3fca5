import type { UsageStore } from '../../ports/stores.js';
import { billedKey, type DayRow, dayKey, expiryKey, lastPart, monthKey } from './keys.js';
import type { Rows } from './rows.js';

export function usageStore(rows: Rows): UsageStore {
  return {
    charge: ({ partnerId, operation, dedupeKey, at, monthlyQuota, dedupeUntil }) =>
      rows.run((tx) => {
        const date = utcDay(at);
        const month = monthKey(partnerId, date.slice(0, 7));
        const used = tx.get(month)?.used ?? 0;
        const billed = billedKey(partnerId, dedupeKey);
        const earlier = tx.get(billed);
        if (earlier !== undefined && earlier.until > at) return { outcome: 'already_charged', used };
        if (used >= monthlyQuota) return { outcome: 'quota_exceeded', used };

        const day = dayKey(partnerId, date);
        const operations = tx.get(day)?.operations ?? {};
        tx.put(day, { operations: { ...operations, [operation]: (operations[operation] ?? 0) + 1 } });
        tx.put(month, { used: used + 1 });
        if (earlier !== undefined) tx.delete(expiryKey(earlier.until, billed));
        tx.put(billed, { until: dedupeUntil });
        tx.put(expiryKey(dedupeUntil, billed), null);
        return { outcome: 'charged', used: used + 1 };
      }),

    foldUsage: async () => undefined, // stub
    getUsed: async (partnerId, at) => rows.get(monthKey(partnerId, utcDay(at).slice(0, 7)))?.used ?? 0,

    meter: (counts, at) =>
      rows.run((tx) => {
        const date = utcDay(at);
        for (const { partnerId, operation, count } of counts) {
          const day = dayKey(partnerId, date);
          const operations = tx.get(day)?.operations ?? {};
          tx.put(day, { operations: { ...operations, [operation]: (operations[operation] ?? 0) + count } });
        }
      }),

    async getDailyUsage(partnerId, fromDay, toDay) {
      // Up to and with `toDay`: `/` sorts behind its end and before any later day.
      const days = await rows.entries<DayRow>({ gte: dayKey(partnerId, fromDay), lt: `${dayKey(partnerId, toDay)}/` });
      return days.map(([key, row]) => ({ day: lastPart(key), operations: row.operations }));
    },
  };
}

/** `YYYY-MM-DD` of a time in unix seconds. */
function utcDay(at: number): string {
  return new Date(at * 1000).toISOString().slice(0, 10);
}
