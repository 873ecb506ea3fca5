import { withDeadline } from '../../core/async/deadline.js';
import type { FaultPlace, Observer } from '../ports/observer.js';

/** A job that is repeated while the process runs. */
export interface PeriodicJob {
  /** The name under which its faults are reported. */
  readonly where: FaultPlace;
  readonly everyMs: number;
  /** True for a job that also runs immediately, not only after the first interval. */
  readonly atStart?: boolean;
  /** @param ending aborts when the schedule ends: a long job must not begin another step */
  run(ending: AbortSignal): Promise<unknown>;
}

/**
 * Runs each job at its interval, and never the same job twice at once. A failed job is reported, and runs
 * again at its next interval.
 * @returns a function that ends the schedule. No further job starts, and the function waits for running jobs
 * at most `graceMs()` milliseconds.
 */
export function startJobs(
  jobs: readonly PeriodicJob[],
  observer: Pick<Observer, 'fault'>,
  graceMs: () => number,
): () => Promise<void> {
  const running = new Map<PeriodicJob, Promise<void>>();
  const ending = new AbortController();
  const begin = (job: PeriodicJob): void => {
    if (running.has(job)) return;
    const done = job
      .run(ending.signal)
      .catch((error: unknown) => observer.fault(job.where, error))
      .then(() => void running.delete(job));
    running.set(job, done);
  };
  const timers = jobs.map((job) => setInterval(() => begin(job), job.everyMs));
  for (const job of jobs) if (job.atStart === true) begin(job);
  return async () => {
    timers.forEach(clearInterval);
    ending.abort();
    const ended = Promise.all(running.values()).then(() => undefined);
    await withDeadline(ended, graceMs(), () => undefined);
  };
}
