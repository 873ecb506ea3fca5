import { randomUUID } from 'node:crypto';
import { defined } from '../../../core/domain/defined.js';
import { isRecordDamaged } from '../../../core/domain/errors.js';
import {
  billedSource,
  freeSource,
  type UsageCount,
  type UsageEvent,
  unitsCounted,
} from '../../domain/events.js';
import { dayOf, monthOf } from '../../domain/usage-window.js';
import type { EarlierCharge, UsageCharge, UsageStore } from '../../ports/stores.js';
import type { Batch, Transaction } from './commit-queue.js';
import {
  type BilledRow,
  billedKey,
  type DayRow,
  dayKey,
  expiryKey,
  type Interval,
  lastPart,
  monthKey,
  sourceKey,
} from './keys.js';
import type { Outbox } from './outbox.js';
import type { Rows } from './rows.js';

/** Seconds for which a dedupe row outlives its time: a call that began within it may come to its charge after it. */
const SPARE_SECONDS = 600;

type Operations = Readonly<Record<string, number>>;

export function usageStore(rows: Rows, outbox: Outbox): UsageStore {
  const free = freeSource(randomUUID());
  const addUnits = unitEvents(outbox);
  return {
    charge: (charge) =>
      rows.run((tx) => {
        const { partnerId, operation, dedupeKey, at, monthlyQuota, units = 1, dedupeUntil, request } = charge;
        const day = dayOf(at);
        const month = monthKey(partnerId, day.slice(0, 7));
        const counted = tx.get(month);
        const used = counted?.used ?? 0;
        const billed = billedKey(partnerId, dedupeKey);
        const earlier = tx.get(billed);
        const outcome = earlierCharge(earlier, charge);
        if (outcome !== undefined) return { outcome, used };
        if (used + units > monthlyQuota) return { outcome: 'quota_exceeded', used };

        countUnits(tx, partnerId, day, operation, units);
        tx.put(month, { ...counted, used: used + units });
        if (earlier !== undefined) tx.delete(expiryKey(earlier.until + SPARE_SECONDS, billed));
        tx.put(billed, defined({ until: dedupeUntil, request }));
        tx.put(expiryKey(dedupeUntil + SPARE_SECONDS, billed), null);
        addUnits(tx, charge, day, used);
        return { outcome: 'charged', used: used + units };
      }),

    findCharge: async (charge) =>
      earlierCharge(rows.get(billedKey(charge.partnerId, charge.dedupeKey)), charge),

    aggregateUsage: (events) =>
      rows.run((tx) => {
        for (const event of events) aggregate(tx, event);
      }),

    getUsed: async (partnerId, at) => rows.get(monthKey(partnerId, monthOf(at)))?.used ?? 0,

    async meter(counts, at, number) {
      const damage = await rows.run((tx) => {
        const day = dayOf(at);
        const partners = new Map<string, MutableCount[]>();
        for (const { partnerId, operation, count: units } of counts)
          partners.set(partnerId, add(partners.get(partnerId) ?? [], day, operation, units));
        outbox.checkCapacity('usage', partners.size);
        const events: UsageEvent[] = [];
        let failure: unknown;
        for (const [partnerId, counted] of partners) {
          try {
            const key = sourceKey(partnerId, free);
            const row = tx.get(key);
            // A call that failed has kept it all the same.
            if (row?.batch !== undefined && row.batch >= number) continue;
            const used = row?.used ?? 0;
            // The rows of a partner are all read before the first of them is written.
            for (const { operation, units } of counted) countUnits(tx, partnerId, day, operation, units);
            tx.put(key, { ...row, used: used + 1, batch: number });
            events.push(
              unitsCounted({ partnerId, source: free, from: used, to: used + 1, counts: counted }, at),
            );
          } catch (error) {
            if (!isRecordDamaged(error)) throw error;
            failure ??= error;
          }
        }
        for (const event of events) outbox.add(tx, event);
        return failure;
      });
      if (damage !== undefined) throw damage;
    },

    async getDailyUsage(partnerId, fromDay, toDay) {
      // The range includes `toDay`: `/` sorts after the end of its key and before any later day.
      const days = await rows.entries<DayRow>({
        gte: dayKey(partnerId, fromDay),
        lt: `${dayKey(partnerId, toDay)}/`,
      });
      return days.map(([key, { operations, unfolded = {} }]) => {
        const all = { ...operations };
        for (const [operation, units] of Object.entries(unfolded))
          all[operation] = (all[operation] ?? 0) + units;
        return { day: lastPart(key), operations: all };
      });
    },
  };
}

/** Returns the outcome of a charge whose key was charged earlier, or undefined if the key is free. */
function earlierCharge(
  earlier: BilledRow | undefined,
  { at, request }: Pick<UsageCharge, 'at' | 'request'>,
): EarlierCharge | undefined {
  if (earlier === undefined || earlier.until <= at) return undefined;
  return request === undefined || request === earlier.request ? 'already_charged' : 'key_reused';
}

/** Counts units of a day that are on their way to a consumer from now on. */
function countUnits(tx: Transaction, partnerId: string, day: string, operation: string, units: number): void {
  const key = dayKey(partnerId, day);
  const row = tx.get(key);
  tx.put(key, {
    operations: row?.operations ?? {},
    unfolded: withUnits(row?.unfolded ?? {}, operation, units),
  });
}

function aggregate(tx: Transaction, { data }: UsageEvent): void {
  const { partnerId, source, from, to, counts } = data;
  const key = sourceKey(partnerId, source);
  const row = tx.get(key) ?? { used: 0 };
  const aggregated = withInterval(row.folded ?? [], [from, to]);
  if (aggregated === undefined) return;
  tx.put(key, { ...row, folded: aggregated });
  // A number beyond `used` was charged after this copy of the store was made: its units were never on their way
  // here.
  const isOnItsWay = to <= row.used;
  for (const { day, operation, units } of counts) {
    const dayRow = dayKey(partnerId, day);
    const { operations = {}, unfolded = {} } = tx.get(dayRow) ?? {};
    tx.put(dayRow, {
      operations: withUnits(operations, operation, units),
      unfolded: isOnItsWay ? withUnits(unfolded, operation, -units) : unfolded,
    });
  }
}

/** Adds an interval to ordered ones that do not touch. Returns undefined if it overlaps one of them. */
function withInterval(intervals: readonly Interval[], [from, to]: Interval): readonly Interval[] | undefined {
  if (intervals.some((interval) => interval[0] < to && from < interval[1])) return undefined;
  const before = intervals.filter((interval) => interval[1] < from);
  const after = intervals.filter((interval) => interval[0] > to);
  const start = intervals.find((interval) => interval[1] === from)?.[0] ?? from;
  const end = intervals.find((interval) => interval[0] === to)?.[1] ?? to;
  return [...before, [start, end], ...after];
}

/**
 * Adds units to events: the units of a partner's month that reach the disk in one batch share one event, so
 * that fewer events wait.
 */
function unitEvents(
  outbox: Outbox,
): (tx: Transaction, charge: UsageCharge, day: string, used: number) => void {
  const gathering = new WeakMap<Batch, Map<string, { to: number; readonly counts: MutableCount[] }>>();
  return (tx, { partnerId, operation, at, units = 1 }, day, used) => {
    let events = gathering.get(tx.batch);
    if (events === undefined) {
      events = new Map();
      gathering.set(tx.batch, events);
    }
    const name = `${partnerId}/${day.slice(0, 7)}`;
    const shared = events.get(name);
    if (shared !== undefined) {
      shared.to = used + units;
      add(shared.counts, day, operation, units);
      return;
    }
    const gathered = { to: used + units, counts: add([], day, operation, units) };
    const event = () =>
      unitsCounted({ partnerId, source: billedSource(monthOf(at)), from: used, ...gathered }, at);
    const key = outbox.add(tx, event());
    events.set(name, gathered);
    tx.batch.beforeWrite((put) => {
      if (gathered.to > used + units) put(key, event());
    });
  };
}

type MutableCount = { -readonly [Member in keyof UsageCount]: UsageCount[Member] };

function add(counts: MutableCount[], day: string, operation: string, units: number): MutableCount[] {
  const same = counts.find((count) => count.operation === operation && count.day === day);
  if (same === undefined) counts.push({ day, operation, units });
  else same.units += units;
  return counts;
}

/** Changes the units of one operation, and leaves the operation out if its units come to 0. */
function withUnits(operations: Operations, operation: string, units: number): Operations {
  const after = (operations[operation] ?? 0) + units;
  if (after !== 0) return { ...operations, [operation]: after };
  const { [operation]: _, ...others } = operations;
  return others;
}
