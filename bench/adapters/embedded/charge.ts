import { join } from 'node:path';
import { ClassicLevel } from 'classic-level';
import { openEmbeddedStore } from '../../../src/service/adapters/embedded/store.js';
import { figure, interleave, type Measure, type Run, ratio, type Section } from '../../measure.js';
import { UNAUDITED } from './unaudited.js';

const CONCURRENCY = 64;
const PARTNER = 'ptr_bench';

export const store: Measure = { name: 'store', run: measureStore };

async function measureStore(run: Run): Promise<Section> {
  const { rounds, charges } = run.scale;
  const stores = await openEmbeddedStore({ directory: join(run.dataDir, 'charges'), ...UNAUDITED });
  const level = new ClassicLevel<string, string>(join(run.dataDir, 'puts'));
  await level.open();
  const now = Math.floor(Date.now() / 1000);
  let charged = 0;
  let put = 0;
  try {
    const speeds = await interleave(run, 'store', rounds, [
      // A sync for each write is slow on real disks: fewer of them.
      {
        name: 'put',
        once: () =>
          perSecond(Math.ceil(charges / 8), () =>
            level.put(`key-${(put += 1)}`, String(now), { sync: true }),
          ),
      },
      {
        name: 'charge',
        once: () =>
          perSecond(charges, async () => {
            const { outcome } = await stores.charge({
              partnerId: PARTNER,
              operation: 'verify',
              dedupeKey: `unit-${(charged += 1)}`,
              at: now,
              monthlyQuota: 1e9,
              dedupeUntil: now + 3600,
            });
            if (outcome !== 'charged') run.wrong(`store: a new unit was answered with ${outcome}`);
          }),
      },
    ]);
    const used = await stores.getUsed(PARTNER, now);
    if (used !== charged) run.wrong(`store: ${charged} units were charged, ${used} are counted`);
    return {
      id: 'store',
      title: 'Store',
      method: `charge() of the embedded store with ${CONCURRENCY} in flight: dedupe row, expiry row, month and day counters in one transaction, on disk when it resolves. The baseline writes one small row by itself, synced, as often as ${CONCURRENCY} callers can. The count of units is checked.`,
      figures: [
        figure('store.charge', 'charge(), durable', 'calls/s', 'ours', speeds.get('charge')!),
        figure('store.put', 'classic-level put with sync', 'calls/s', 'baseline', speeds.get('put')!),
      ],
      comparisons: [
        ratio(
          'store.charge/put',
          'charge()',
          'classic-level put with sync',
          'calls/s',
          speeds.get('charge')!,
          speeds.get('put')!,
        ),
      ],
      notes: [],
    };
  } finally {
    await stores.close();
    await level.close();
  }
}

async function perSecond(calls: number, once: () => Promise<void>): Promise<number> {
  let left = calls;
  const start = performance.now();
  await Promise.all(
    Array.from({ length: CONCURRENCY }, async () => {
      while (left-- > 0) await once();
    }),
  );
  return (calls / (performance.now() - start)) * 1000;
}
