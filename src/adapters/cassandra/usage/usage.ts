import { freeSource, type UsageCount, type UsageEvent, unitsCounted } from '../../../domain/events.js';
import { dayOf, monthOf } from '../../../domain/usage-window.js';
import type { UsageStore } from '../../../ports/stores.js';
import type { Outbox } from '../commit/outbox.js';
import type { Session } from '../driver/session.js';
import type { ChargeEvents } from './charge-events.js';
import { chargeInGroups, unitsOfMonth } from './charging.js';
import type { Consumption } from './consumption.js';
import { overlaps, sizeOf } from './intervals.js';

/** Reads of a month, begun anew because events were aggregated and removed meanwhile. */
const READS = 5;

export interface UsageParts {
  readonly session: Session;
  readonly outbox: Outbox;
  readonly events: ChargeEvents;
  readonly consumption: Consumption;
  /** Name of this process, which no other process has. */
  readonly writer: string;
}

export function usageStore({ session, outbox, events, consumption, writer }: UsageParts): UsageStore {
  /** Count of this process's events of free calls, for each partner. */
  const freeCalls = new Map<string, number>();

  /** Aggregated counts of a month, and counts of its units that were charged and are in no interval yet. */
  const countsOfMonth = async (partnerId: string, month: string): Promise<readonly UsageCount[]> => {
    let aggregated = await consumption.read(partnerId, month);
    for (let read = 1; ; read += 1) {
      // The count is read after the sums: an event that is aggregated from here on is still found below, and
      // a charge from there on is not in the count.
      const used = await unitsOfMonth(session, partnerId, month);
      const counts: UsageCount[] = [...aggregated.days];
      let missing = used - sizeOf(aggregated.billed);
      if (missing <= 0) return counts;
      for await (const { data } of events.onTheirWay(partnerId, month, used)) {
        if (overlaps(aggregated.billed, data.from, data.to)) continue;
        counts.push(...data.counts);
        missing -= data.to - data.from;
        if (missing === 0) return counts;
      }
      // The missing events were aggregated and removed meanwhile, or are not there at all.
      const latest = await consumption.read(partnerId, month);
      if (read === READS || sizeOf(latest.billed) === sizeOf(aggregated.billed)) return counts;
      aggregated = latest;
    }
  };

  return {
    charge: chargeInGroups({ session, outbox, events }),

    getUsed: (partnerId, at) => unitsOfMonth(session, partnerId, monthOf(at)),

    async meter(counts, at) {
      const day = dayOf(at);
      const units = new Map<string, Map<string, number>>();
      for (const { partnerId, operation, count } of counts) {
        const operations = units.get(partnerId) ?? new Map<string, number>();
        units.set(partnerId, operations.set(operation, (operations.get(operation) ?? 0) + count));
      }
      const metered = [...units].map(([partnerId, operations]): UsageEvent => {
        const from = freeCalls.get(partnerId) ?? 0;
        return unitsCounted(
          {
            partnerId,
            source: freeSource(writer),
            from,
            to: from + 1,
            counts: [...operations].map(([operation, count]) => ({ day, operation, units: count })),
          },
          at,
        );
      });
      await outbox.addAll(metered, () => {
        for (const { data } of metered) freeCalls.set(data.partnerId, data.to);
      });
    },

    aggregateUsage: (counted) => consumption.aggregate(counted),

    async getDailyUsage(partnerId, fromDay, toDay) {
      const days = new Map<string, Record<string, number>>();
      for (const { day, operation, units } of (
        await Promise.all(monthsOf(fromDay, toDay).map((month) => countsOfMonth(partnerId, month)))
      ).flat()) {
        if (day < fromDay || day > toDay) continue;
        const operations = days.get(day) ?? {};
        operations[operation] = (operations[operation] ?? 0) + units;
        days.set(day, operations);
      }
      return [...days].sort(([a], [b]) => (a < b ? -1 : 1)).map(([day, operations]) => ({ day, operations }));
    },
  };
}

function monthsOf(fromDay: string, toDay: string): readonly string[] {
  const months: string[] = [];
  const last = toDay.slice(0, 7);
  for (
    let at = Date.parse(`${fromDay.slice(0, 7)}-01T00:00:00Z`) / 1000;
    monthOf(at) <= last;
    at += 31 * 86_400
  ) {
    // The first of a month and 31 days is always in the next month; the loop goes on from the first of it.
    months.push(monthOf(at));
    at = Date.parse(`${monthOf(at)}-01T00:00:00Z`) / 1000;
  }
  return months;
}
