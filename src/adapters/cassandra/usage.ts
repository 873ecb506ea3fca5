import { randomUUID } from 'node:crypto';
import { dayOf, monthOf } from '../../domain/usage-window.js';
import type { UsageCharge, UsageStore } from '../../ports/stores.js';
import { numberIn, type Session, type Statement, storeUnavailable, textIn } from './session.js';

const ITEMS = 'SELECT item, used, until, op FROM charge WHERE partner_id = ? AND item IN ?';
const DAYS = 'SELECT item, used FROM charge WHERE partner_id = ? AND item >= ? AND item < ?';
const SET_MONTH = 'UPDATE charge SET used = ? WHERE partner_id = ? AND item = ? IF used = ?';
// Without a condition of its own: every unit of a day is one of its month, whose condition holds for the whole batch.
const SET_DAY = 'UPDATE charge SET used = ? WHERE partner_id = ? AND item = ?';
const SET_BILLED = 'UPDATE charge USING TTL ? SET until = ?, op = ? WHERE partner_id = ? AND item = ? IF until = ?';
const SET_METERED = 'INSERT INTO metered (partner_id, month, day, operation, writer, count) VALUES (?, ?, ?, ?, ?, ?) USING TIMESTAMP ?';
const METERED = 'SELECT day, operation, count FROM metered WHERE partner_id = ? AND month = ? AND day >= ? AND day <= ?';

/** Charges decided in one batch: some 10 kB. */
const GROUP = 40;
/** Times that other processes may be quicker before the caller is told to come back. */
const ATTEMPTS = 100;
const SPARE_SECONDS = 3_600;
/** Days whose totals are kept in memory, to be counted on. */
const METERED_DAYS = 3;

type Answer = Awaited<ReturnType<UsageStore['charge']>>;

interface Waiting {
  readonly charge: UsageCharge;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

/** What the partition says of the items that were asked for. */
interface Items {
  readonly used: Map<string, number>;
  readonly billed: Map<string, { readonly until: number; readonly op: string }>;
}

/**
 * One partition a partner: month, day and dedupe rows commit together, so a charge is exact without leases, and no process's
 * death strands a unit. Charges that arrive while a batch is under way share the next one. A partner's month is one row, so
 * processes contend for it; groups are what makes that cheap.
 */
export function usageStore(session: Session): UsageStore {
  const queues = new Map<string, Waiting[]>();
  const totals = new Map<string, number>();
  const writer = randomUUID();
  let stamp = 0;

  const drain = async (partnerId: string, queue: Waiting[]): Promise<void> => {
    await Promise.resolve();
    while (queue.length > 0) {
      const group = queue.splice(0, GROUP);
      try {
        const answers = await chargeGroup(session, partnerId, group.map(({ charge }) => charge));
        for (const [i, { resolve }] of group.entries()) resolve(answers[i]!);
      } catch (error) {
        for (const { reject } of group) reject(error);
      }
    }
    queues.delete(partnerId);
  };

  return {
    charge: (charge) =>
      new Promise((resolve, reject) => {
        const waiting = { charge, resolve, reject };
        const queue = queues.get(charge.partnerId);
        if (queue !== undefined) return void queue.push(waiting);
        const started = [waiting];
        queues.set(charge.partnerId, started);
        void drain(charge.partnerId, started);
      }),

    foldUsage: async () => undefined, // stub
    async getUsed(partnerId, at) {
      const month = monthItem(at);
      return (await itemsOf(session, partnerId, [month])).used.get(month) ?? 0;
    },

    async meter(counts, at) {
      const day = dayOf(at);
      const oldest = dayOf(at - METERED_DAYS * 86_400);
      for (const name of totals.keys()) if (name.slice(0, 10) < oldest) totals.delete(name);
      const written = new Map<string, Statement>();
      for (const { partnerId, operation, count } of counts) {
        const name = `${day}/${operation}/${partnerId}`;
        const total = (totals.get(name) ?? 0) + count;
        totals.set(name, total);
        stamp = Math.max(stamp + 1, Date.now() * 1_000);
        written.set(name, { query: SET_METERED, params: [partnerId, monthOf(at), day, operation, writer, total, stamp] });
      }
      // Totals of this process alone and only growing, and so do their timestamps: the highest stays, in any order of arrival.
      await Promise.all([...written.values()].map(({ query, params }) => session.write(query, params)));
    },

    async getDailyUsage(partnerId, fromDay, toDay) {
      const days = new Map<string, Record<string, number>>();
      const add = (day: string, operation: string, count: number): void => {
        const operations = days.get(day) ?? {};
        operations[operation] = (operations[operation] ?? 0) + count;
        days.set(day, operations);
      };
      // `0` sorts behind the `/` that follows a day.
      const billed = session.rows(DAYS, [partnerId, `day/${fromDay}/`, `day/${toDay}0`]);
      const free = await Promise.all(monthsOf(fromDay, toDay).map((month) => session.rows(METERED, [partnerId, month, fromDay, toDay])));
      for (const row of await billed) {
        const [, day, operation] = textIn(row, 'item')!.split('/') as [string, string, string];
        add(day, operation, numberIn(row, 'used')!);
      }
      for (const row of free.flat()) add(textIn(row, 'day')!, textIn(row, 'operation')!, numberIn(row, 'count')!);
      return [...days].sort(([a], [b]) => (a < b ? -1 : 1)).map(([day, operations]) => ({ day, operations }));
    },
  };
}

async function chargeGroup(session: Session, partnerId: string, group: readonly UsageCharge[]): Promise<readonly Answer[]> {
  const op = randomUUID();
  const names = new Set(group.flatMap((charge) => [billedItem(charge), monthItem(charge.at), dayItem(charge)]));
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const found = await itemsOf(session, partnerId, [...names]);
    const { answers, statements, billed } = decideGroup(partnerId, group, found, op);
    // What was only looked at holds: units are never given back, and a dedupe key that is seen has been charged.
    if (statements.length === 0) return answers;
    if ((await session.decide(...statements)).applied) return answers;
    // Refused by another process's charges, or by this very batch of an attempt whose answer was lost: its rows tell.
    const now = await itemsOf(session, partnerId, [billed]);
    if (now.billed.get(billed)?.op === op) return answers;
  }
  throw storeUnavailable();
}

/** Answers each charge as if they came one after another, and says what must then be written. */
function decideGroup(partnerId: string, group: readonly UsageCharge[], found: Items, op: string) {
  const used = new Map(found.used);
  const until = new Map([...found.billed].map(([item, row]) => [item, row.until]));
  const statements: Statement[] = [];
  const touched = new Set<string>();
  let billed = '';
  const count = (item: string): number => {
    const units = (used.get(item) ?? 0) + 1;
    used.set(item, units);
    touched.add(item);
    return units;
  };
  const answers = group.map((charge): Answer => {
    const item = billedItem(charge);
    const month = monthItem(charge.at);
    const so = used.get(month) ?? 0;
    if ((until.get(item) ?? 0) > charge.at) return { outcome: 'already_charged', used: so };
    if (so >= charge.monthlyQuota) return { outcome: 'quota_exceeded', used: so };
    statements.push({ query: SET_BILLED, params: [charge.dedupeUntil - charge.at + SPARE_SECONDS, charge.dedupeUntil, op, partnerId, item, found.billed.get(item)?.until ?? null] });
    until.set(item, charge.dedupeUntil);
    billed = item;
    count(dayItem(charge));
    return { outcome: 'charged', used: count(month) };
  });
  for (const item of touched) {
    if (item.startsWith('month/')) statements.push({ query: SET_MONTH, params: [used.get(item), partnerId, item, found.used.get(item) ?? null] });
    else statements.push({ query: SET_DAY, params: [used.get(item), partnerId, item] });
  }
  return { answers, statements, billed };
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

function dayItem({ at, operation }: UsageCharge): string {
  return `day/${dayOf(at)}/${operation}`;
}

function monthsOf(fromDay: string, toDay: string): readonly string[] {
  const months: string[] = [];
  const last = toDay.slice(0, 7);
  for (let at = Date.parse(`${fromDay.slice(0, 7)}-01T00:00:00Z`) / 1_000; monthOf(at) <= last; at += 31 * 86_400) {
    // The first of a month and 31 days is always in the next month; from there on back to its first.
    months.push(monthOf(at));
    at = Date.parse(`${monthOf(at)}-01T00:00:00Z`) / 1_000;
  }
  return months;
}
