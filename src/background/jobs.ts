import type { AssetStore } from '../ports/assets.js';
import type { Stores } from '../ports/stores.js';
import type { Clock } from '../ports/system.js';
import { collectExpired, collectOrphans, collectReservations } from './collect.js';
import { remindDue } from './remind.js';
import type { PeriodicJob } from './scheduler.js';

const EXPIRED_MS = 30_000;
const RESERVATIONS_MS = 600_000;
const ORPHANS_MS = 6 * 3_600_000;
const REMIND_MS = 30_000;
/**
 * Age up to which a reserved id, or an asset in a bucket that no record names, may be of another process that
 * issues.
 */
export const ORPHAN_GRACE_SECONDS = 3600;

export interface JobDeps {
  readonly stores: Stores;
  readonly assets: AssetStore;
  readonly clock: Clock;
}

/**
 * The removal of rows and assets whose time has passed, or that a kill left behind.
 * @param shared which of the two other processes use as well: what belongs to one process alone was collected
 * at its start
 */
export function collectionJobs(
  { stores, assets, clock }: JobDeps,
  shared: { readonly store: boolean; readonly assets: boolean },
): readonly PeriodicJob[] {
  const jobs: PeriodicJob[] = [
    { where: 'collect', everyMs: EXPIRED_MS, run: () => collectExpired({ stores, clock }) },
  ];
  if (shared.store)
    jobs.push({
      where: 'collect',
      everyMs: RESERVATIONS_MS,
      run: () => collectReservations({ stores, clock, graceSeconds: ORPHAN_GRACE_SECONDS }),
    });
  if (shared.assets)
    jobs.push({
      where: 'collect',
      everyMs: ORPHANS_MS,
      atStart: true,
      run: () => collectOrphans({ stores, assets, shared: true }),
    });
  return jobs;
}

export function reminderJob({ stores, clock }: Pick<JobDeps, 'stores' | 'clock'>): PeriodicJob {
  return {
    where: 'retention',
    everyMs: REMIND_MS,
    atStart: true,
    run: () => remindDue({ stores, clock }),
  };
}
