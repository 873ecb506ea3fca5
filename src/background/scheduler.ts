import { withDeadline } from '../async/deadline.js';
import type { Observer } from '../ports/observer.js';

/** Work that is done now and then for as long as the process runs. */
export interface PeriodicJob {
  /** Place under which its faults are reported. */
  readonly where: string;
  readonly everyMs: number;
  /** True for a job that runs at once too, not only after the first interval. */
  readonly atStart?: boolean;
  run(): Promise<unknown>;
}

/**
 * Runs each job at its interval, never the same one twice at once. A job that fails is reported, and run
 * again the next time.
 * @returns ends the schedule: begins nothing more, and waits for the jobs under way, at most what `graceMs` then says
 */
export function startJobs(
  jobs: readonly PeriodicJob[],
  observer: Pick<Observer, 'fault'>,
  graceMs: () => number,
): () => Promise<void> {
  const running = new Map<PeriodicJob, Promise<void>>();
  const begin = (job: PeriodicJob): void => {
    if (running.has(job)) return;
    const done = job
      .run()
      .catch((error: unknown) => observer.fault(job.where, error))
      .then(() => void running.delete(job));
    running.set(job, done);
  };
  const timers = jobs.map((job) => setInterval(() => begin(job), job.everyMs));
  for (const job of jobs) if (job.atStart === true) begin(job);
  return async () => {
    timers.forEach(clearInterval);
    const ended = Promise.all(running.values()).then(() => undefined);
    await withDeadline(ended, graceMs(), () => undefined);
  };
}
