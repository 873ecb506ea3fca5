import { randomUUID } from 'node:crypto';
import {
  billedSource,
  freeSource,
  type UsageCount,
  type UsageEvent,
  unitsCounted,
} from '../../domain/events.js';
import { dayOf, monthOf } from '../../domain/usage-window.js';
import type { UsageCharge, UsageStore } from '../../ports/stores.js';
import type { Batch, Transaction } from './commit-queue.js';
import {
  billedKey,
  type DayRow,
  dayKey,
  expiryKey,
  lastPart,
  monthKey,
  type Span,
  sourceKey,
} from './keys.js';
import type { Outbox } from './outbox.js';
import type { Rows } from './rows.js';

type Operations = Readonly<Record<string, number>>;

export function usageStore(rows: Rows, outbox: Outbox): UsageStore {
  const free = freeSource(randomUUID());
  const addUnit = unitEvents(outbox);
  return {
    charge: (charge) =>
      rows.run((tx) => {
        const { partnerId, operation, dedupeKey, at, monthlyQuota, dedupeUntil } = charge;
        const day = dayOf(at);
        const month = monthKey(partnerId, day.slice(0, 7));
        const counted = tx.get(month);
        const used = counted?.used ?? 0;
        const billed = billedKey(partnerId, dedupeKey);
        const earlier = tx.get(billed);
        if (earlier !== undefined && earlier.until > at) return { outcome: 'already_charged', used };
        if (used >= monthlyQuota) return { outcome: 'quota_exceeded', used };

        countUnits(tx, partnerId, day, operation, 1);
        tx.put(month, { ...counted, used: used + 1 });
        if (earlier !== undefined) tx.delete(expiryKey(earlier.until, billed));
        tx.put(billed, { until: dedupeUntil });
        tx.put(expiryKey(dedupeUntil, billed), null);
        addUnit(tx, charge, day, used);
        return { outcome: 'charged', used: used + 1 };
      }),

    aggregateUsage: (events) =>
      rows.run((tx) => {
        for (const event of events) fold(tx, event);
      }),

    getUsed: async (partnerId, at) => rows.get(monthKey(partnerId, monthOf(at)))?.used ?? 0,

    meter: (counts, at) =>
      rows.run((tx) => {
        const day = dayOf(at);
        const partners = new Map<string, Counting[]>();
        for (const { partnerId, operation, count: units } of counts)
          partners.set(partnerId, add(partners.get(partnerId) ?? [], day, operation, units));
        outbox.checkCapacity(partners.size);
        for (const [partnerId, own] of partners) {
          const key = sourceKey(partnerId, free);
          const row = tx.get(key);
          const used = row?.used ?? 0;
          tx.put(key, { ...row, used: used + 1 });
          for (const { operation, units } of own) countUnits(tx, partnerId, day, operation, units);
          outbox.add(
            tx,
            unitsCounted({ partnerId, source: free, from: used, to: used + 1, counts: own }, at),
          );
        }
      }),

    async getDailyUsage(partnerId, fromDay, toDay) {
      // Up to and with `toDay`: `/` sorts behind its end and before any later day.
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

/** On their way to a consumer from now on. */
function countUnits(tx: Transaction, partnerId: string, day: string, operation: string, units: number): void {
  const key = dayKey(partnerId, day);
  const row = tx.get(key);
  tx.put(key, { operations: row?.operations ?? {}, unfolded: moved(row?.unfolded ?? {}, operation, units) });
}

function fold(tx: Transaction, { data }: UsageEvent): void {
  const { partnerId, source, from, to, counts } = data;
  const key = sourceKey(partnerId, source);
  const row = tx.get(key) ?? { used: 0 };
  const folded = withSpan(row.folded ?? [], [from, to]);
  if (folded === undefined) return;
  tx.put(key, { ...row, folded });
  // Numbers that were never given here are of a store that this one is an older copy of: nothing of theirs is
  // on its way.
  const own = to <= row.used;
  for (const { day, operation, units } of counts) {
    const dayRow = dayKey(partnerId, day);
    const { operations = {}, unfolded = {} } = tx.get(dayRow) ?? {};
    tx.put(dayRow, {
      operations: moved(operations, operation, units),
      unfolded: own ? moved(unfolded, operation, -units) : unfolded,
    });
  }
}

/**
 * @returns ordered spans that do not touch, with this one in them; undefined where some of it is there
 * already
 */
function withSpan(spans: readonly Span[], [from, to]: Span): readonly Span[] | undefined {
  if (spans.some((span) => span[0] < to && from < span[1])) return undefined;
  const before = spans.filter((span) => span[1] < from);
  const after = spans.filter((span) => span[0] > to);
  const start = spans.find((span) => span[1] === from)?.[0] ?? from;
  const end = spans.find((span) => span[0] === to)?.[1] ?? to;
  return [...before, [start, end], ...after];
}

/**
 * One event for the units of a month that reach the disk in one batch: each is there whole, and fewer wait.
 */
function unitEvents(
  outbox: Outbox,
): (tx: Transaction, charge: UsageCharge, day: string, used: number) => void {
  const gathering = new WeakMap<Batch, Map<string, { to: number; readonly counts: Counting[] }>>();
  return (tx, { partnerId, operation, at }, day, used) => {
    let events = gathering.get(tx.batch);
    if (events === undefined) {
      events = new Map();
      gathering.set(tx.batch, events);
    }
    const name = `${partnerId}/${day.slice(0, 7)}`;
    const shared = events.get(name);
    if (shared !== undefined) {
      shared.to = used + 1;
      add(shared.counts, day, operation, 1);
      return;
    }
    const units = { to: used + 1, counts: add([], day, operation, 1) };
    const event = () => unitsCounted({ partnerId, source: billedSource(at), from: used, ...units }, at);
    const key = outbox.add(tx, event());
    events.set(name, units);
    tx.batch.beforeWrite((put) => {
      if (units.to > used + 1) put(key, event());
    });
  };
}

type Counting = { -readonly [Member in keyof UsageCount]: UsageCount[Member] };

function add(counts: Counting[], day: string, operation: string, units: number): Counting[] {
  const same = counts.find((each) => each.operation === operation && each.day === day);
  if (same === undefined) counts.push({ day, operation, units });
  else same.units += units;
  return counts;
}

/** Without an operation that comes to nothing. */
function moved(operations: Operations, operation: string, units: number): Operations {
  const after = (operations[operation] ?? 0) + units;
  if (after !== 0) return { ...operations, [operation]: after };
  const { [operation]: _, ...others } = operations;
  return others;
}
