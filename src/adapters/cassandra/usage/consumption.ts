import type { UsageEvent } from '../../../domain/events.js';
import { numberIn, type Session, type Statement, storeUnavailable, textIn } from '../driver/session.js';
import { overlaps, type Spans, withSpan } from './intervals.js';

const ITEMS = 'SELECT item, units, spans FROM consumption WHERE partner_id = ? AND month = ? AND item IN ?';
// `billed` and all of `day/`, which stand beside each other; `0` sorts behind the `/`.
const FOLDED =
  "SELECT item, units, spans FROM consumption WHERE partner_id = ? AND month = ? AND item >= 'billed' AND item < 'day0'";
const SET_VERSION =
  'UPDATE consumption SET units = ? WHERE partner_id = ? AND month = ? AND item = ? IF units = ?';
const SET_UNITS = 'UPDATE consumption SET units = ? WHERE partner_id = ? AND month = ? AND item = ?';
const SET_SPANS = 'UPDATE consumption SET spans = ? WHERE partner_id = ? AND month = ? AND item = ?';

const VERSION = 'version';
const BILLED = 'billed';
const BILLED_SOURCE = 'billed/';
const DAY = 'day/';
/** Times that other processes may be quicker before the caller is told to come back. */
const ATTEMPTS = 100;

/** What was added for a partner and month. */
export interface Folded {
  /** Of the source `billed/<month>`. */
  readonly billed: Spans;
  readonly days: readonly { readonly day: string; readonly operation: string; readonly units: number }[];
}

/**
 * What consumers have added up. The spans of a source and the totals lie in one partition and move in one
 * conditional batch, so an event is added once, in whatever order events come and however often. An event
 * belongs to one partition, which follows from the event alone: that of its source's month, or, of free
 * calls, that of its first day.
 */
export class Consumption {
  readonly #session: Session;

  constructor(session: Session) {
    this.#session = session;
  }

  async fold(events: readonly UsageEvent[]): Promise<void> {
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
      [...groups].map(([name, group]) => this.#foldGroup(group[0]!.data.partnerId, name.slice(0, 7), group)),
    );
  }

  async read(partnerId: string, month: string): Promise<Folded> {
    const rows = await this.#session.rows(FOLDED, [partnerId, month]);
    const days = rows
      .filter((row) => textIn(row, 'item')!.startsWith(DAY))
      .map((row) => {
        const [day, ...operation] = textIn(row, 'item')!.slice(DAY.length).split('/') as [
          string,
          ...string[],
        ];
        return { day, operation: operation.join('/'), units: numberIn(row, 'units')! };
      });
    const billed = rows.find((row) => textIn(row, 'item') === BILLED);
    return { billed: (billed?.['spans'] as Spans | null | undefined) ?? [], days };
  }

  async #foldGroup(partnerId: string, month: string, events: readonly UsageEvent[]): Promise<void> {
    const names = new Set([
      VERSION,
      ...events.flatMap(({ data }) => [sourceItem(data.source), ...data.counts.map(dayItem)]),
    ]);
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      const units = new Map<string, number>();
      const spans = new Map<string, Spans>();
      for (const row of await this.#session.rows(ITEMS, [partnerId, month, [...names]])) {
        const item = textIn(row, 'item')!;
        units.set(item, numberIn(row, 'units') ?? 0);
        spans.set(item, (row['spans'] as Spans | null) ?? []);
      }
      const changed = addUp(events, units, spans);
      // After a refusal too: what an attempt whose answer was lost has added is seen here.
      if (changed.size === 0) return;
      const version = units.get(VERSION);
      const statements = [...changed].map(
        (item): Statement =>
          item.startsWith(DAY)
            ? { query: SET_UNITS, params: [units.get(item), partnerId, month, item] }
            : { query: SET_SPANS, params: [spans.get(item), partnerId, month, item] },
      );
      const condition: Statement = {
        query: SET_VERSION,
        params: [(version ?? 0) + 1, partnerId, month, VERSION, version ?? null],
      };
      if ((await this.#session.decide(condition, ...statements)).applied) return;
    }
    throw storeUnavailable();
  }
}

/** Adds what is not there yet. @returns the items that changed */
function addUp(
  events: readonly UsageEvent[],
  units: Map<string, number>,
  spans: Map<string, Spans>,
): ReadonlySet<string> {
  const changed = new Set<string>();
  for (const { data } of events) {
    const source = sourceItem(data.source);
    const added = spans.get(source) ?? [];
    if (overlaps(added, data.from, data.to)) continue;
    spans.set(source, withSpan(added, data.from, data.to));
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
  return data.source.startsWith(BILLED_SOURCE)
    ? data.source.slice(BILLED_SOURCE.length)
    : data.counts[0]?.day.slice(0, 7);
}

function sourceItem(source: string): string {
  return source.startsWith(BILLED_SOURCE) ? BILLED : source;
}

function dayItem({ day, operation }: UsageEvent['data']['counts'][number]): string {
  return `${DAY}${day}/${operation}`;
}
