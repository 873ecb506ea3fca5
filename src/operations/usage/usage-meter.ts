import type { UsageStore } from '../../ports/stores.js';
import type { Clock } from '../../ports/system.js';
import type { Caller } from '../caller.js';

/** Counters held between two flushes; beyond them a free call goes uncounted. */
const HELD = 65_536;

/** Counts of calls that are metered but free, gathered here and written in batches. */
export interface UsageMeter {
  /** Never fails and never waits. @param operation from a closed list */
  count(partnerId: string, operation: string): void;
  /**
   * Writes the counts since the last flush. A batch that fails comes again as it is with the next flush: whether it
   * was kept is not known.
   */
  flush(): Promise<void>;
}

/** Counts of one day. */
interface Batch {
  readonly number: number;
  readonly counters: readonly Counter[];
}

interface Counter {
  readonly partnerId: string;
  readonly operation: string;
  /** Time of the day's first call: a batch that is written after midnight still counts for its day. */
  readonly at: number;
  count: number;
}

export function createUsageMeter(stores: Pick<UsageStore, 'meter'>, clock: Clock): UsageMeter {
  const held = new Map<string, Counter>();
  /** Batches that are not acknowledged, in order. */
  const batches: Batch[] = [];
  let lastNumber = 0;
  const take = (): void => {
    for (const counters of groupByDay(held.values()).values()) {
      lastNumber += 1;
      batches.push({ number: lastNumber, counters });
    }
    held.clear();
  };
  const write = async (): Promise<void> => {
    // Counts since a failure wait until the batches before them are written, and stay bounded so.
    await writeAll();
    take();
    await writeAll();
  };
  const writeAll = async (): Promise<void> => {
    for (let batch = batches[0]; batch !== undefined; batch = batches[0]) {
      const { number, counters } = batch;
      await stores.meter(
        counters.map(({ partnerId, operation, count }) => ({ partnerId, operation, count })),
        counters[0]!.at,
        number,
      );
      batches.shift();
    }
  };
  let last: Promise<void> = Promise.resolve();
  return {
    count(partnerId, operation) {
      const at = Math.floor(clock.now() / 1000);
      const name = `${dayNumber(at)} ${operation} ${partnerId}`;
      const earlier = held.get(name);
      if (earlier !== undefined) earlier.count += 1;
      else if (held.size < HELD) held.set(name, { partnerId, operation, at, count: 1 });
    },
    flush() {
      // Flushes follow one another: a batch is no longer the first once it is written.
      const done = last.then(write);
      last = done.catch(() => undefined);
      return done;
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
