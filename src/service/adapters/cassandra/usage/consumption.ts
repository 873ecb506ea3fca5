import { billedUnitsOf, type UsageEvent } from '../../../domain/events.js';
import { numberIn, type Session, type Statement, storeUnavailable, textIn } from '../driver/session.js';
import { type Intervals, overlaps, withInterval } from './intervals.js';

const ITEMS = 'SELECT item, units, spans FROM consumption WHERE partner_id = ? AND month = ? AND item IN ?';
// The items `billed`, `billed/<epoch>` and `day/...`, which are adjacent; `0` sorts after the `/`.
const TOTALS =
  "SELECT item, units, spans FROM consumption WHERE partner_id = ? AND month = ? AND item >= 'billed' AND item < 'day0'";
const SET_VERSION =
  'UPDATE consumption SET units = ? WHERE partner_id = ? AND month = ? AND item = ? IF units = ?';
const SET_UNITS = 'UPDATE consumption SET units = ? WHERE partner_id = ? AND month = ? AND item = ?';
const SET_INTERVALS = 'UPDATE consumption SET spans = ? WHERE partner_id = ? AND month = ? AND item = ?';

const VERSION = 'version';
const BILLED = 'billed';
const DAY = 'day/';
/** The attempts that may be lost to quicker processes before the caller gets 503. */
const ATTEMPTS = 100;

/** Sums of a partner and month. */
export interface Aggregated {
  /** Units of the month's quota that are in the sums, by epoch. */
  readonly billed: ReadonlyMap<number, Intervals>;
  readonly days: readonly { readonly day: string; readonly operation: string; readonly units: number }[];
}

/**
 * Sums that consumers have aggregated. The intervals of a source and the sums are in one partition and change in one
 * conditional batch, so an event is added once, in any order and after any repetition. The partition follows from the
 * event alone: it is of the source's month or, for free calls, of the month of the first day.
 */
export class Consumption {
  readonly #session: Session;

  constructor(session: Session) {
    this.#session = session;
  }

  async aggregate(events: readonly UsageEvent[]): Promise<void> {
    const groups = new Map<string, UsageEvent[]>();
    for (const event of events) {
      const month = monthOf(event);
      if (month === undefined) continue;
      const name = `${month} ${event.data.partnerId}`;
      const group = groups.get(name);
      if (group === undefined) groups.set(name, [event]);
      else group.push(event);
    }
    await Promise.all(
      [...groups].map(([name, group]) =>
        this.#aggregateGroup(group[0]!.data.partnerId, name.slice(0, 7), group),
      ),
    );
  }

  async read(partnerId: string, month: string): Promise<Aggregated> {
    const rows = await this.#session.rows(TOTALS, [partnerId, month]);
    const days = rows
      .filter((row) => textIn(row, 'item')!.startsWith(DAY))
      .map((row) => {
        const [day, ...operation] = textIn(row, 'item')!.slice(DAY.length).split('/') as [
          string,
          ...string[],
        ];
        return { day, operation: operation.join('/'), units: numberIn(row, 'units')! };
      });
    const billed = rows.flatMap((row): [number, Intervals][] => {
      const [kind, epoch = '0'] = textIn(row, 'item')!.split('/');
      return kind === BILLED ? [[Number(epoch), (row['spans'] as Intervals | null) ?? []]] : [];
    });
    return { billed: new Map(billed), days };
  }

  /** Writes the sums of another store into a month that has none. Sums that exist stay as they are. */
  async insert(
    partnerId: string,
    month: string,
    { folded, days }: { readonly folded: Intervals; readonly days: Aggregated['days'] },
  ): Promise<void> {
    const statements = days.map(
      (count): Statement => ({
        query: SET_UNITS,
        params: [count.units, partnerId, month, dayItem(count)],
      }),
    );
    if (folded.length > 0)
      statements.push({ query: SET_INTERVALS, params: [folded, partnerId, month, BILLED] });
    if (statements.length === 0) return;
    await this.#session.lightweightTransaction(
      { query: SET_VERSION, params: [1, partnerId, month, VERSION, null] },
      ...statements,
    );
  }

  async #aggregateGroup(partnerId: string, month: string, events: readonly UsageEvent[]): Promise<void> {
    const names = new Set([
      VERSION,
      ...events.flatMap(({ data }) => [sourceItem(data.source), ...data.counts.map(dayItem)]),
    ]);
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      const units = new Map<string, number>();
      const intervals = new Map<string, Intervals>();
      for (const row of await this.#session.rows(ITEMS, [partnerId, month, [...names]])) {
        const item = textIn(row, 'item')!;
        units.set(item, numberIn(row, 'units') ?? 0);
        intervals.set(item, (row['spans'] as Intervals | null) ?? []);
      }
      const changed = addUp(events, units, intervals);
      // After a refusal, too: the sums of a sending whose outcome was lost are seen here.
      if (changed.size === 0) return;
      const version = units.get(VERSION);
      const statements = [...changed].map(
        (item): Statement =>
          item.startsWith(DAY)
            ? { query: SET_UNITS, params: [units.get(item), partnerId, month, item] }
            : { query: SET_INTERVALS, params: [intervals.get(item), partnerId, month, item] },
      );
      const condition: Statement = {
        query: SET_VERSION,
        params: [(version ?? 0) + 1, partnerId, month, VERSION, version ?? null],
      };
      if ((await this.#session.lightweightTransaction(condition, ...statements)).applied) return;
    }
    throw storeUnavailable();
  }
}

/** Adds the events that are not in the sums yet. @returns the items that changed */
function addUp(
  events: readonly UsageEvent[],
  units: Map<string, number>,
  intervals: Map<string, Intervals>,
): ReadonlySet<string> {
  const changed = new Set<string>();
  for (const { data } of events) {
    const source = sourceItem(data.source);
    const added = intervals.get(source) ?? [];
    if (overlaps(added, data.from, data.to)) continue;
    intervals.set(source, withInterval(added, data.from, data.to));
    changed.add(source);
    for (const count of data.counts) {
      const item = dayItem(count);
      units.set(item, (units.get(item) ?? 0) + count.units);
      changed.add(item);
    }
  }
  return changed;
}

function monthOf({ data }: UsageEvent): string | undefined {
  return billedUnitsOf(data.source)?.month ?? data.counts[0]?.day.slice(0, 7);
}

function sourceItem(source: string): string {
  const units = billedUnitsOf(source);
  if (units === undefined) return source;
  return units.epoch === 0 ? BILLED : `${BILLED}/${units.epoch}`;
}

function dayItem({ day, operation }: UsageEvent['data']['counts'][number]): string {
  return `${DAY}${day}/${operation}`;
}
