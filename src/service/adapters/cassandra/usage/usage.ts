import {
  billedUnitsOf,
  freeSource,
  type UsageCount,
  type UsageEvent,
  unitsCounted,
} from '../../../domain/events.js';
import { dayOf, monthOf } from '../../../domain/usage-window.js';
import type { UsageStore } from '../../../ports/stores.js';
import type { Outbox } from '../commit/outbox.js';
import type { Session } from '../driver/session.js';
import type { ChargeEvents } from './charge-events.js';
import { chargeInGroups, findCharge, unitsOfMonth } from './charging.js';
import type { Aggregated, Consumption } from './consumption.js';
import { type EpochSpan, lastEpoch, spansOf } from './epochs.js';
import { overlaps, sizeWithin } from './intervals.js';

/** The most reads of a month, which begin anew if events were aggregated and removed meanwhile. */
const READS = 5;

export interface UsageParts {
  readonly session: Session;
  readonly outbox: Outbox;
  readonly events: ChargeEvents;
  readonly consumption: Consumption;
  /** The name of this process, which no other process has. */
  readonly writer: string;
}

export function usageStore({ session, outbox, events, consumption, writer }: UsageParts): UsageStore {
  /** The count of this process's events of free calls, for each partner. */
  const freeCalls = new Map<string, number>();
  /** The number of the last batch of free calls whose events wait. */
  let lastBatch = 0;

  const balance = (partnerId: string, month: string) =>
    balanceOfMonth({ session, events, consumption }, partnerId, month);

  return {
    charge: chargeInGroups({ session, events }),

    findCharge: (charge) => findCharge(session, charge),

    getUsed: async (partnerId, at) => (await unitsOfMonth(session, partnerId, monthOf(at))).used,

    async meter(counts, at, number) {
      // A call that came to its deadline has its events waiting.
      if (number <= lastBatch) return;
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
        lastBatch = number;
        for (const { data } of metered) freeCalls.set(data.partnerId, data.to);
      });
    },

    aggregateUsage: (counted) => consumption.aggregate(counted),

    async getDailyUsage(partnerId, fromDay, toDay) {
      const days = new Map<string, Record<string, number>>();
      for (const { day, operation, units } of (
        await Promise.all(monthsOf(fromDay, toDay).map((month) => balance(partnerId, month)))
      ).flatMap(({ counts }) => counts)) {
        if (day < fromDay || day > toDay) continue;
        const operations = days.get(day) ?? {};
        operations[operation] = (operations[operation] ?? 0) + units;
        days.set(day, operations);
      }
      return [...days].sort(([a], [b]) => (a < b ? -1 : 1)).map(([day, operations]) => ({ day, operations }));
    },
  };
}

/**
 * Reads the aggregated counts of a month, and adds those of units that were charged and are in no interval yet.
 * @returns the counts, and the units that are in neither; negative where intervals are beyond the month's count
 */
export async function balanceOfMonth(
  { session, events, consumption }: Pick<UsageParts, 'session' | 'events' | 'consumption'>,
  partnerId: string,
  month: string,
): Promise<{ readonly counts: readonly UsageCount[]; readonly difference: number }> {
  let aggregated = await consumption.read(partnerId, month);
  for (let read = 1; ; read += 1) {
    // The count is read after the sums: an event that is aggregated from here on is still found below, and
    // a charge from there on is not in the count.
    const { used, epochs } = await unitsOfMonth(session, partnerId, month);
    const spans = spansOf(epochs, used);
    const counts: UsageCount[] = [...aggregated.days];
    let missing = used - addedOf(spans, aggregated);
    if (missing <= 0) return { counts, difference: -beyond(lastEpoch(epochs), used, aggregated) };
    for await (const { data } of events.onTheirWay(partnerId, month)) {
      const { epoch } = billedUnitsOf(data.source)!;
      // A later charge is not in the count.
      if (data.to > (spans.get(epoch)?.to ?? 0)) continue;
      if (overlaps(aggregated.billed.get(epoch) ?? [], data.from, data.to)) continue;
      counts.push(...data.counts);
      missing -= data.to - data.from;
      if (missing === 0) return { counts, difference: -beyond(lastEpoch(epochs), used, aggregated) };
    }
    // The missing events were aggregated and removed meanwhile, or are not there at all.
    const latest = await consumption.read(partnerId, month);
    if (read === READS || addedOf(spans, latest) === addedOf(spans, aggregated))
      return { counts, difference: missing };
    aggregated = latest;
  }
}

/**
 * Returns the units of the last epoch that are in the sums and above the month's count. A restore leaves an earlier
 * epoch at the backup's count, and consumers had added more.
 */
function beyond(epoch: number, used: number, { billed }: Aggregated): number {
  return sizeWithin(billed.get(epoch) ?? [], used, Number.MAX_SAFE_INTEGER);
}

/** Returns the units of a month's count that are in the sums. */
function addedOf(spans: ReadonlyMap<number, EpochSpan>, { billed }: Aggregated): number {
  return [...spans].reduce(
    (size, [epoch, { from, to }]) => size + sizeWithin(billed.get(epoch) ?? [], from, to),
    0,
  );
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
