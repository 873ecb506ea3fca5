import { randomUUID } from 'node:crypto';
import { DomainError } from '../../../domain/errors.js';
import { billedSource, type UsageCount, unitsCounted } from '../../../domain/events.js';
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

const ITEMS = 'SELECT item, used, until, op FROM charge WHERE partner_id = ? AND item IN ?';
const SET_MONTH = 'UPDATE charge SET used = ? WHERE partner_id = ? AND item = ? IF used = ?';
const SET_BILLED =
  'UPDATE charge USING TTL ? SET until = ?, op = ? WHERE partner_id = ? AND item = ? IF until = ?';

/** Charges decided in one batch: some 10 kB. */
const GROUP = 40;
/** Attempts, lost to quicker processes, before the caller is told to come back. */
const ATTEMPTS = 100;
const SPARE_SECONDS = 3600;

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

export interface ChargingParts {
  readonly session: Session;
  readonly outbox: Outbox;
  readonly events: ChargeEvents;
}

/**
 * Charging. A partner has one partition in which the month, the dedupe rows and the event commit together, so
 * a charge is exact without leases, and no process's death strands a unit. Charges that arrive while a batch
 * is under way share the next batch, and its event. A partner's month is one row for which processes contend;
 * groups make this cheap.
 */
export function chargeInGroups(parts: ChargingParts): UsageStore['charge'] {
  const queues = new Map<string, Waiting[]>();

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

  return (charge) =>
    new Promise((resolve, reject) => {
      const waiting = { charge, since: Date.now(), resolve, reject };
      const queue = queues.get(charge.partnerId);
      if (queue !== undefined) return void queue.push(waiting);
      const started = [waiting];
      queues.set(charge.partnerId, started);
      void drain(charge.partnerId, started);
    });
}

/** Units of a partner's month, from its quota's row. @param month as `YYYY-MM` */
export async function unitsOfMonth(session: Session, partnerId: string, month: string): Promise<number> {
  const item = `month/${month}`;
  return (await itemsOf(session, partnerId, [item])).used.get(item) ?? 0;
}

/** Results of the charges of a group, in its order, once they are durable. */
async function chargeGroup(
  { session, outbox, events }: ChargingParts,
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
