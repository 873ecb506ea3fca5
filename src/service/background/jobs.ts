import type { AssetStore } from '../ports/assets.js';
import type { Stores } from '../ports/stores.js';
import type { Clock } from '../ports/system.js';
import type { Auditor } from './auditor.js';
import { collectExpired, collectReservations } from './collect.js';
import type { FileDigests } from './file-digests.js';
import { remindDue } from './remind.js';
import type { RestoreGate } from './restore-gate.js';
import type { PeriodicJob } from './scheduler.js';

const EXPIRED_MS = 10_000;
const RESERVATIONS_MS = 600_000;
const REMIND_MS = 30_000;
const AUDIT_SECONDS = 10;
const FILE_DIGESTS_SECONDS = 10;
const LOOK_MS = 10_000;
const BEAT_MS = 60_000;
/** The age, in seconds, up to which an issuing may still use its reserved id, longer than any upload. */
export const RESERVATION_SECONDS = 3600;

export interface JobDeps {
  readonly stores: Stores;
  /** The files of ids under which nothing was issued. */
  readonly unissued: Pick<AssetStore, 'delete'>;
  readonly clock: Clock;
  /**
   * Returns false while a clock is wrong, because ages of rows are then unknown. Always true without servers.
   */
  readonly maySweep: () => boolean;
}

/** Returns the jobs that delete expired rows, and the rows and assets of failed issuings. */
export function collectionJobs({ stores, unissued, clock, maySweep }: JobDeps): readonly PeriodicJob[] {
  const sweeping = (run: () => Promise<unknown>) => async () => (maySweep() ? run() : undefined);
  return [
    { where: 'collect', everyMs: EXPIRED_MS, run: sweeping(() => collectExpired({ stores, clock })) },
    {
      where: 'collect',
      everyMs: RESERVATIONS_MS,
      run: sweeping(() =>
        collectReservations({ stores, unissued, clock, graceSeconds: RESERVATION_SECONDS }),
      ),
    },
  ];
}

/**
 * Returns the jobs of the gate, and the other jobs. The other jobs do not run while the gate is closed,
 * because they might delete data that the restore still needs.
 */
export function gatedJobs(gate: RestoreGate, jobs: readonly PeriodicJob[]): readonly PeriodicJob[] {
  return [
    { where: 'restore', everyMs: LOOK_MS, run: () => gate.look() },
    { where: 'restore', everyMs: BEAT_MS, atStart: true, run: () => gate.beat() },
    ...jobs.map((job) => ({
      ...job,
      run: async (ending: AbortSignal) => {
        if (!gate.isClosed) await job.run(ending);
      },
    })),
  ];
}

/**
 * Returns the job of the auditor. The auditor pauses while a clock is wrong, because the age of data is then
 * unknown.
 */
export function auditJob(auditor: Auditor, { maySweep }: Pick<JobDeps, 'maySweep'>): PeriodicJob {
  return {
    where: 'audit',
    everyMs: AUDIT_SECONDS * 1000,
    run: async (ending) => (maySweep() ? auditor.run(AUDIT_SECONDS, ending, maySweep) : undefined),
  };
}

/** Returns the job that adds the digests of files to records of former versions. */
export function fileDigestsJob(fileDigests: FileDigests): PeriodicJob {
  return {
    where: 'file_digests',
    everyMs: FILE_DIGESTS_SECONDS * 1000,
    atStart: true,
    run: (ending) => fileDigests.run(FILE_DIGESTS_SECONDS, ending),
  };
}

export function reminderJob({
  stores,
  clock,
  maySweep,
}: Pick<JobDeps, 'stores' | 'clock' | 'maySweep'>): PeriodicJob {
  return {
    where: 'retention',
    everyMs: REMIND_MS,
    atStart: true,
    run: async () => (maySweep() ? remindDue({ stores, clock }) : undefined),
  };
}
