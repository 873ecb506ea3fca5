import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { type Backoff, jittered, pauseAfter } from '../../../../core/async/backoff.js';
import { billedSource, type UsageCount, unitsCounted } from '../../../domain/events.js';
import { dayOf, monthOf } from '../../../domain/usage-window.js';
import type { EarlierCharge, UsageCharge, UsageStore } from '../../../ports/stores.js';
import {
  CALL_DEADLINE_MS,
  numberIn,
  type Session,
  type Statement,
  storeUnavailable,
  textIn,
} from '../driver/session.js';
import type { ChargeEvents } from './charge-events.js';
import { type Epochs, lastEpoch } from './epochs.js';

const ITEMS = 'SELECT item, used, epochs, until, op FROM charge WHERE partner_id = ? AND item IN ?';
// A restore that begins an epoch meanwhile refuses the batch.
const SET_MONTH = 'UPDATE charge SET used = ? WHERE partner_id = ? AND item = ? IF used = ? AND epochs = ?';
const SET_BILLED =
  'UPDATE charge USING TTL ? SET until = ?, op = ? WHERE partner_id = ? AND item = ? IF until = ?';

const INSERT_MONTH = 'INSERT INTO charge (partner_id, item, used) VALUES (?, ?, ?) IF NOT EXISTS';
const INSERT_BILLED =
  'INSERT INTO charge (partner_id, item, until, op) VALUES (?, ?, ?, ?) IF NOT EXISTS USING TTL ?';

/** Charges decided in one batch: some 10 kB. */
const GROUP = 40;
/** Pauses of a partner's charges that were refused for those of another process. */
const PAUSES: Backoff = { firstMs: 10, longestMs: 80 };
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
  readonly epochs: Map<string, Epochs>;
  readonly billed: Map<string, { readonly until: number; readonly op: string }>;
}

export interface ChargingParts {
  readonly session: Session;
  readonly events: ChargeEvents;
}

/**
 * Returns the call that charges units. A partner has one partition in which the month, the dedupe rows and the event
 * commit together. So a charge is exact without leases, and no process's death strands a unit. Charges that arrive
 * while a batch is under way share the next batch, and its event. A partner's month is one row for which processes
 * contend. Groups make the contention cheap: a group that loses pauses, and goes on with what has arrived meanwhile.
 */
export function chargeInGroups(parts: ChargingParts): UsageStore['charge'] {
  const queues = new Map<string, Waiting[]>();

  const drain = async (partnerId: string, queue: Waiting[]): Promise<void> => {
    await Promise.resolve();
    let refusals = 0;
    while (queue.length > 0) {
      const group = queue.splice(0, GROUP).filter(({ since, reject }) => {
        const isLate = performance.now() - since > CALL_DEADLINE_MS;
        // The caller of a late charge got 503 with an unknown outcome, and calls again.
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
        if (results === 'refused') {
          refusals += 1;
          queue.unshift(...group);
          await delay(jittered(pauseAfter(refusals, PAUSES)));
          continue;
        }
        refusals = 0;
        for (const [i, { resolve }] of group.entries()) resolve(results[i]!);
      } catch (error) {
        for (const { reject } of group) reject(error);
      }
    }
    queues.delete(partnerId);
  };

  return (charge) =>
    new Promise((resolve, reject) => {
      const waiting = { charge, since: performance.now(), resolve, reject };
      const queue = queues.get(charge.partnerId);
      if (queue !== undefined) return void queue.push(waiting);
      const started = [waiting];
      queues.set(charge.partnerId, started);
      void drain(charge.partnerId, started);
    });
}

/** Reads the units of a partner's month and their epochs from its quota's row. @param month as `YYYY-MM` */
export async function unitsOfMonth(
  session: Session,
  partnerId: string,
  month: string,
): Promise<{ readonly used: number; readonly epochs: Epochs }> {
  const item = `month/${month}`;
  const found = await itemsOf(session, partnerId, [item]);
  return { used: found.used.get(item) ?? 0, epochs: found.epochs.get(item) ?? [] };
}

/**
 * Returns the results of a group's charges, in its order, once they are durable, or `refused` where another process
 * was quicker.
 */
async function chargeGroup(
  { session, events }: ChargingParts,
  partnerId: string,
  group: readonly UsageCharge[],
): Promise<readonly ChargeResult[] | 'refused'> {
  const op = randomUUID();
  const names = new Set(group.flatMap((charge) => [...billedItems(charge), monthItem(charge.at)]));
  const found = await itemsOf(session, partnerId, [...names]);
  const { results, statements, lastBilled, counted } = decideGroup(partnerId, group, found, op);
  // Results that change nothing hold: units are never given back, and a dedupe key that is seen has been
  // charged.
  if (statements.length === 0) return results;
  const charging = await events.begin(partnerId);
  let isCertain = false;
  try {
    const { applied } = await session.lightweightTransaction(
      ...statements,
      events.demanding(charging),
      ...counted.map((event) => events.insertion(charging, event)),
    );
    // The refusal comes from another process's charges, or from this very batch, of a sending whose
    // outcome was lost. The condition does not name `op`, so a dedupe row of the batch is read.
    const isOwn =
      applied || (await itemsOf(session, partnerId, [lastBilled])).billed.get(lastBilled)?.op === op;
    isCertain = true;
    if (isOwn) {
      events.charged(charging, counted);
      return results;
    }
    await events.refused(charging);
    return 'refused';
  } finally {
    events.end(charging, isCertain);
  }
}

/**
 * Decides the charges as if they came one after another. Returns their results, with the statements and events
 * that make them true.
 */
function decideGroup(partnerId: string, group: readonly UsageCharge[], found: Items, op: string) {
  const used = new Map(found.used);
  const until = new Map([...found.billed].map(([item, row]) => [item, row.until]));
  const statements: Statement[] = [];
  const charges = new Map<string, UsageCharge[]>();
  let lastBilled = '';
  const results = group.map((charge): ChargeResult => {
    const month = monthItem(charge.at);
    const usedBefore = used.get(month) ?? 0;
    const earlier = earlierCharge(charge, (item) => until.get(item));
    if (earlier !== undefined) return { outcome: earlier, used: usedBefore };
    const usedAfter = usedBefore + unitsOf(charge);
    if (usedAfter > charge.monthlyQuota) return { outcome: 'quota_exceeded', used: usedBefore };
    for (const item of billedItems(charge)) {
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
    }
    charges.set(month, [...(charges.get(month) ?? []), charge]);
    used.set(month, usedAfter);
    return { outcome: 'charged', used: usedAfter };
  });
  for (const month of charges.keys())
    statements.push({
      query: SET_MONTH,
      params: [
        used.get(month),
        partnerId,
        month,
        found.used.get(month) ?? null,
        found.epochs.get(month) ?? null,
      ],
    });
  const counted = [...charges].map(([month, charged]) => {
    const at = charged.at(-1)!.at;
    return unitsCounted(
      {
        partnerId,
        source: billedSource(monthOf(at), lastEpoch(found.epochs.get(month))),
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
  for (const charge of charges) {
    const { at, operation } = charge;
    const units = unitsOf(charge);
    const day = dayOf(at);
    const count = counts.get(`${day}/${operation}`);
    if (count === undefined) counts.set(`${day}/${operation}`, { day, operation, units });
    else count.units += units;
  }
  return [...counts.values()];
}

function unitsOf({ units = 1 }: UsageCharge): number {
  return units;
}

async function itemsOf(session: Session, partnerId: string, items: readonly string[]): Promise<Items> {
  const found: Items = { used: new Map(), epochs: new Map(), billed: new Map() };
  for (const row of await session.rows(ITEMS, [partnerId, items])) {
    const item = textIn(row, 'item')!;
    const used = numberIn(row, 'used');
    const until = numberIn(row, 'until');
    const epochs = row['epochs'] as Epochs | null;
    if (used !== undefined) found.used.set(item, used);
    if (epochs !== null) found.epochs.set(item, epochs);
    if (until !== undefined) found.billed.set(item, { until, op: textIn(row, 'op')! });
  }
  return found;
}

/** Returns the outcome of an earlier charge with the same dedupe key, without charging. */
export async function findCharge(
  session: Session,
  charge: Parameters<UsageStore['findCharge']>[0],
): Promise<EarlierCharge | undefined> {
  const { billed } = await itemsOf(session, charge.partnerId, billedItems(charge));
  return earlierCharge(charge, (item) => billed.get(item)?.until);
}

/**
 * Returns the dedupe rows of a charge: the row of its key and, with a request, a row of the key with this request. One
 * batch writes both, so the key is bound to another request if only the first row exists.
 */
function billedItems({ dedupeKey, request }: Pick<UsageCharge, 'dedupeKey' | 'request'>): readonly string[] {
  const item = `billed/${dedupeKey}`;
  return request === undefined ? [item] : [item, `${item}/${request}`];
}

/** @param untilOf returns the unix second until which a dedupe row counts */
function earlierCharge(
  charge: Pick<UsageCharge, 'dedupeKey' | 'request' | 'at'>,
  untilOf: (item: string) => number | undefined,
): EarlierCharge | undefined {
  const [ofKey, ofRequest] = billedItems(charge).map((item) => (untilOf(item) ?? 0) > charge.at);
  if (!ofKey) return undefined;
  return ofRequest === false ? 'key_reused' : 'already_charged';
}

/** Inserts the units of a month of another store. A count that exists stays. @param month as `YYYY-MM` */
export async function insertMonth(
  session: Session,
  partnerId: string,
  month: string,
  used: number,
): Promise<void> {
  await session.lightweightTransaction({
    query: INSERT_MONTH,
    params: [partnerId, `month/${month}`, used],
  });
}

/** Inserts the dedupe rows of a charge of another store, for the rest of their life. */
export async function insertBilled(
  session: Session,
  charge: Pick<UsageCharge, 'partnerId' | 'dedupeKey' | 'request'> & { readonly until: number },
  now: number,
): Promise<void> {
  const { partnerId, until } = charge;
  const op = randomUUID();
  await session.lightweightTransaction(
    ...billedItems(charge).map((item) => ({
      query: INSERT_BILLED,
      params: [partnerId, item, until, op, until - now + SPARE_SECONDS],
    })),
  );
}

function monthItem(at: number): string {
  return `month/${monthOf(at)}`;
}
