import { randomUUID } from 'node:crypto';
import { DomainError } from '../../../domain/errors.js';
import {
  billedSource,
  freeSource,
  type UsageCount,
  type UsageEvent,
  unitsCounted,
} from '../../../domain/events.js';
import { dayOf, monthOf } from '../../../domain/usage-window.js';
import type { UsageCharge, UsageStore } from '../../../ports/stores.js';
import { type Outbox, outboxFull } from '../commit/outbox.js';
import {
  CALL_DEADLINE_MS,
  numberIn,
  type Session,
  type Statement,
  storeUnavailable,
  textIn,
} from '../driver/session.js';
import type { ChargeEvents } from './charge-events.js';
import type { Consumption } from './consumption.js';
import { overlaps, sizeOf } from './intervals.js';

const ITEMS = 'SELECT item, used, until, op FROM charge WHERE partner_id = ? AND item IN ?';
const SET_MONTH = 'UPDATE charge SET used = ? WHERE partner_id = ? AND item = ? IF used = ?';
const SET_BILLED =
  'UPDATE charge USING TTL ? SET until = ?, op = ? WHERE partner_id = ? AND item = ? IF until = ?';

/** Charges decided in one batch: some 10 kB. */
const GROUP = 40;
/** Attempts, lost to quicker processes, before the caller is told to come back. */
const ATTEMPTS = 100;
const SPARE_SECONDS = 3600;
/** Reads of a month, begun anew because events were aggregated and removed meanwhile. */
const READS = 5;

type ChargeResult = Awaited<ReturnType<UsageStore['charge']>>;

interface Waiting {
  readonly charge: UsageCharge;
  readonly since: number;
  readonly resolve: (result: ChargeResult) => void;
  readonly reject: (error: unknown) => void;
}

/** Items of a partner's partition, as they were read. */
interface Items {
  readonly used: Map<string, number>;
  readonly billed: Map<string, { readonly until: number; readonly op: string }>;
}

export interface UsageParts {
  readonly session: Session;
  readonly outbox: Outbox;
  readonly events: ChargeEvents;
  readonly consumption: Consumption;
  /** Name of this process, which no other process has. */
  readonly writer: string;
}

/**
 * Usage. A partner has one partition in which the month, the dedupe rows and the event commit together, so a
 * charge is exact without leases, and no process's death strands a unit. Charges that arrive while a batch is
 * under way share the next batch, and its event. A partner's month is one row for which processes contend;
 * groups make this cheap.
 */
export function usageStore(parts: UsageParts): UsageStore {
  const { session, outbox, events, consumption, writer } = parts;
  const queues = new Map<string, Waiting[]>();
  /** Count of this process's events of free calls, for each partner. */
  const freeCalls = new Map<string, number>();

  const drain = async (partnerId: string, queue: Waiting[]): Promise<void> => {
    await Promise.resolve();
    while (queue.length > 0) {
      const group = queue.splice(0, GROUP).filter(({ since, reject }) => {
        const isLate = Date.now() - since > CALL_DEADLINE_MS;
        // The caller of a late charge has been told that nothing is known, and comes again.
        if (isLate) reject(storeUnavailable());
        return !isLate;
      });
      if (group.length === 0) continue;
      try {
        const results = await chargeGroup(
          parts,
          partnerId,
          group.map(({ charge }) => charge),
        );
        for (const [i, { resolve, reject }] of group.entries()) {
          const result = results[i]!;
          if (result instanceof DomainError) reject(result);
          else resolve(result);
        }
      } catch (error) {
        for (const { reject } of group) reject(error);
      }
    }
    queues.delete(partnerId);
  };

  /** Aggregated counts of a month, and counts of its units that were charged and are in no interval yet. */
  const countsOfMonth = async (partnerId: string, month: string): Promise<readonly UsageCount[]> => {
    let aggregated = await consumption.read(partnerId, month);
    for (let read = 1; ; read += 1) {
      // The count is read after the sums: an event that is aggregated from here on is still found below, and
      // a charge from there on is not in the count.
      const used = (await itemsOf(session, partnerId, [`month/${month}`])).used.get(`month/${month}`) ?? 0;
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
    charge: (charge) =>
      new Promise((resolve, reject) => {
        const waiting = { charge, since: Date.now(), resolve, reject };
        const queue = queues.get(charge.partnerId);
        if (queue !== undefined) return void queue.push(waiting);
        const started = [waiting];
        queues.set(charge.partnerId, started);
        void drain(charge.partnerId, started);
      }),

    async getUsed(partnerId, at) {
      const month = monthItem(at);
      return (await itemsOf(session, partnerId, [month])).used.get(month) ?? 0;
    },

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

/** Results of the charges of a group, in its order, once they are durable. */
async function chargeGroup(
  { session, outbox, events }: UsageParts,
  partnerId: string,
  group: readonly UsageCharge[],
): Promise<readonly (ChargeResult | DomainError)[]> {
  const op = randomUUID();
  const names = new Set(group.flatMap((charge) => [billedItem(charge), monthItem(charge.at)]));
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const found = await itemsOf(session, partnerId, [...names]);
    const { results, statements, lastBilled, counted } = decideGroup(
      partnerId,
      group,
      found,
      op,
      outbox.hasCapacity(),
    );
    // Results that change nothing hold: units are never given back, and a dedupe key that is seen has been
    // charged.
    if (statements.length === 0) return results;
    const isCharged = await outbox.withCapacity(async () => {
      const charging = await events.begin(partnerId);
      let isCertain = false;
      try {
        events.assertTimely(charging);
        const { applied } = await session.lightweightTransaction(
          ...statements,
          ...counted.map((event) => events.insertion(charging, event)),
        );
        // The refusal comes from another process's charges, or from this very batch, of a sending whose
        // outcome was lost. The condition does not name `op`, so a dedupe row of the batch is read.
        const isOwn =
          applied || (await itemsOf(session, partnerId, [lastBilled])).billed.get(lastBilled)?.op === op;
        isCertain = true;
        if (isOwn) events.charged(charging, counted);
        return isOwn;
      } finally {
        events.end(charging, isCertain);
      }
    });
    if (isCharged) return results;
  }
  throw storeUnavailable();
}

/**
 * Results of the charges as if they came one after another, with the statements and events that make them
 * true.
 * @param hasCapacity whether an event may come to be; without it, a charge that would count is refused
 */
function decideGroup(
  partnerId: string,
  group: readonly UsageCharge[],
  found: Items,
  op: string,
  hasCapacity: boolean,
) {
  const used = new Map(found.used);
  const until = new Map([...found.billed].map(([item, row]) => [item, row.until]));
  const statements: Statement[] = [];
  const charges = new Map<string, UsageCharge[]>();
  let lastBilled = '';
  const results = group.map((charge): ChargeResult | DomainError => {
    const item = billedItem(charge);
    const month = monthItem(charge.at);
    const usedBefore = used.get(month) ?? 0;
    if ((until.get(item) ?? 0) > charge.at) return { outcome: 'already_charged', used: usedBefore };
    if (usedBefore >= charge.monthlyQuota) return { outcome: 'quota_exceeded', used: usedBefore };
    if (!hasCapacity) return outboxFull();
    statements.push({
      query: SET_BILLED,
      params: [
        charge.dedupeUntil - charge.at + SPARE_SECONDS,
        charge.dedupeUntil,
        op,
        partnerId,
        item,
        found.billed.get(item)?.until ?? null,
      ],
    });
    until.set(item, charge.dedupeUntil);
    lastBilled = item;
    charges.set(month, [...(charges.get(month) ?? []), charge]);
    used.set(month, usedBefore + 1);
    return { outcome: 'charged', used: usedBefore + 1 };
  });
  for (const month of charges.keys())
    statements.push({
      query: SET_MONTH,
      params: [used.get(month), partnerId, month, found.used.get(month) ?? null],
    });
  const counted = [...charges].map(([month, charged]) => {
    const at = charged.at(-1)!.at;
    return unitsCounted(
      {
        partnerId,
        source: billedSource(at),
        from: found.used.get(month) ?? 0,
        to: used.get(month)!,
        counts: countsOf(charged),
      },
      at,
    );
  });
  return { results, statements, lastBilled, counted };
}

function countsOf(charges: readonly UsageCharge[]): readonly UsageCount[] {
  const counts = new Map<string, { day: string; operation: string; units: number }>();
  for (const { at, operation } of charges) {
    const day = dayOf(at);
    const count = counts.get(`${day}/${operation}`);
    if (count === undefined) counts.set(`${day}/${operation}`, { day, operation, units: 1 });
    else count.units += 1;
  }
  return [...counts.values()];
}

async function itemsOf(session: Session, partnerId: string, items: readonly string[]): Promise<Items> {
  const found: Items = { used: new Map(), billed: new Map() };
  for (const row of await session.rows(ITEMS, [partnerId, items])) {
    const item = textIn(row, 'item')!;
    const used = numberIn(row, 'used');
    const until = numberIn(row, 'until');
    if (used !== undefined) found.used.set(item, used);
    if (until !== undefined) found.billed.set(item, { until, op: textIn(row, 'op')! });
  }
  return found;
}

function billedItem({ dedupeKey }: UsageCharge): string {
  return `billed/${dedupeKey}`;
}

function monthItem(at: number): string {
  return `month/${monthOf(at)}`;
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
