import type { UsageStore } from '../../ports/stores.js';
import type { Clock } from '../../ports/system.js';
import type { Caller } from '../caller.js';

/** Counters held between two flushes; beyond them a free call goes uncounted. */
const HELD = 65_536;

/** Counts of calls that are metered but free, gathered here and written in batches. */
export interface UsageMeter {
  /** Never fails and never waits. @param operation from a closed list */
  count(partnerId: string, operation: string): void;
  /** Writes the counts since the last flush. A batch that fails stays for the next flush. */
  flush(): Promise<void>;
}

interface Counter {
  readonly partnerId: string;
  readonly operation: string;
  /** Time of the day's first call: a batch that is written after midnight still counts for its day. */
  readonly at: number;
  count: number;
}

export function createUsageMeter(stores: Pick<UsageStore, 'meter'>, clock: Clock): UsageMeter {
  let held = new Map<string, Counter>();
  const add = (counter: Counter): void => {
    const name = `${dayNumber(counter.at)} ${counter.operation} ${counter.partnerId}`;
    const earlier = held.get(name);
    if (earlier !== undefined) earlier.count += counter.count;
    else if (held.size < HELD) held.set(name, { ...counter });
  };
  return {
    count: (partnerId, operation) =>
      add({ partnerId, operation, at: Math.floor(clock.now() / 1000), count: 1 }),
    async flush() {
      if (held.size === 0) return;
      const days = groupByDay(held.values());
      held = new Map();
      for (const [day, counters] of days) {
        try {
          await stores.meter(
            counters.map(({ partnerId, operation, count }) => ({ partnerId, operation, count })),
            counters[0]!.at,
          );
          days.delete(day);
        } catch (error) {
          for (const left of days.values()) left.forEach(add);
          throw error;
        }
      }
    },
  };
}

/** Counts a call that is metered but free; never fails and never waits. */
export function meterCall(
  { meter }: { readonly meter: UsageMeter },
  caller: Caller,
  operation: string,
): void {
  meter.count(caller.partnerId, operation);
}

function groupByDay(counters: Iterable<Counter>): Map<number, Counter[]> {
  const days = new Map<number, Counter[]>();
  for (const counter of counters) {
    const day = dayNumber(counter.at);
    const group = days.get(day);
    if (group === undefined) days.set(day, [counter]);
    else group.push(counter);
  }
  return days;
}

function dayNumber(at: number): number {
  return Math.floor(at / 86_400);
}
