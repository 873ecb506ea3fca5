import { openCassandraStore } from '../../src/service/adapters/cassandra/store.js';
import { UNAUDITED } from '../adapters/embedded/unaudited.js';
import { percentile } from '../statistics.js';

const SECONDS = 6;
const IN_FLIGHT = 128;
const STORES = [1, 3, 6] as const;

export interface Contention {
  /** Stores as processes have one each, here in one process. */
  readonly stores: number;
  readonly inFlight: number;
  readonly chargesPerSecond: number;
  /** Milliseconds. */
  readonly p50: number;
  readonly p99: number;
}

/**
 * Measures how fast one partner's units can be counted. The partner's month is one row that every process
 * changes under a condition.
 */
export async function chargeOnePartner(connection: {
  readonly contactPoints: readonly string[];
  readonly localDataCenter: string;
  readonly keyspace: string;
}): Promise<readonly Contention[]> {
  const results: Contention[] = [];
  // Once more at the beginning: the first pass warms up.
  for (const [pass, count] of [1, ...STORES].entries()) {
    const stores = await Promise.all(
      Array.from({ length: count }, () =>
        openCassandraStore({
          ...connection,
          audit: { key: new Uint8Array(32) },
          authenticator: UNAUDITED.authenticator,
        }),
      ),
    );
    const times: number[] = [];
    const end = performance.now() + SECONDS * 1000;
    const charge = async (store: (typeof stores)[number], unit: string): Promise<void> => {
      const began = performance.now();
      const at = Math.floor(Date.now() / 1000);
      const { outcome } = await store.charge({
        partnerId: `ptr_alone-${pass}`,
        operation: 'verify',
        dedupeKey: unit,
        at,
        monthlyQuota: 1e9,
        dedupeUntil: at + 3600,
      });
      if (outcome !== 'charged') throw new Error(`a new unit was answered with ${outcome}`);
      times.push(performance.now() - began);
    };
    const lane = async (store: (typeof stores)[number], name: string): Promise<void> => {
      for (let unit = 0; performance.now() < end; unit += 1) await charge(store, `${name}-${unit}`);
    };
    await Promise.all(
      stores.flatMap((store, at) =>
        Array.from({ length: IN_FLIGHT }, (_, number) => lane(store, `${at}-${number}`)),
      ),
    );
    await Promise.all(stores.map((store) => store.close()));
    if (pass > 0)
      results.push({
        stores: count,
        inFlight: count * IN_FLIGHT,
        chargesPerSecond: Math.round(times.length / SECONDS),
        p50: Math.round(percentile(times, 50)),
        p99: Math.round(percentile(times, 99)),
      });
  }
  return results;
}
