import { isRecordDamaged } from '../../../core/domain/errors.js';
import type { UsageStore } from '../../ports/stores.js';
import type { Clock } from '../../ports/system.js';
import type { Caller } from '../caller.js';

/**
 * The number of counters held between two flushes. Beyond it, a new counter is not added and the free call is
 * not counted.
 */
const HELD = 65_536;

/** The counts of free calls, collected here and written in batches. */
export interface UsageMeter {
  /**
   * Counts one call. Never fails and never waits.
   * @param operation from a closed list
   */
  count(partnerId: string, operation: string): void;
  /**
   * Writes the counts since the last flush. A failed batch is written again unchanged at the next flush,
   * because the store may already have counted it. A batch that met damaged rows is not: it would hold up all later
   * ones until the repair.
   */
  flush(): Promise<void>;
}

/** The counts of one day. */
interface Batch {
  readonly number: number;
  readonly counters: readonly Counter[];
}

interface Counter {
  readonly partnerId: string;
  readonly operation: string;
  /**
   * The time of the first call in unix seconds. A batch that is written after midnight still counts for that
   * day.
   */
  readonly at: number;
  count: number;
}

export function createUsageMeter(stores: Pick<UsageStore, 'meter'>, clock: Clock): UsageMeter {
  const held = new Map<string, Counter>();
  /** The batches that are not acknowledged yet, in order. */
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
    // Older batches are written first. Newer counts stay in `held`, which keeps memory bounded after a
    // failure.
    await writeAll();
    take();
    await writeAll();
  };
  const writeAll = async (): Promise<void> => {
    for (let batch = batches[0]; batch !== undefined; batch = batches[0]) {
      const { number, counters } = batch;
      try {
        await stores.meter(
          counters.map(({ partnerId, operation, count }) => ({ partnerId, operation, count })),
          counters[0]!.at,
          number,
        );
      } catch (error) {
        if (isRecordDamaged(error)) batches.shift();
        throw error;
      }
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
      // Flushes run one after the other, because a written batch is removed from the front of the list.
      const done = last.then(write);
      last = done.catch(() => undefined);
      return done;
    },
  };
}

/** Counts a free call. Never fails and never waits. */
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
