/** The most results that may wait for an earlier one in ordered mode. Beyond it, workers wait. */
const MAX_AHEAD = 1000;

export interface BatchPlan<Job, Result> {
  readonly jobs: AsyncIterator<Job, void, undefined>;
  readonly concurrency: number;
  /** True if results are reported in the order of the jobs instead of their completion. */
  readonly ordered: boolean;
  /** Does a job. A rejection ends the batch. A failure of a single job must be a result instead. */
  readonly work: (job: Job) => Promise<Result>;
  readonly report: (result: Result) => void;
  /** Returns true if no more jobs may be started. It is called before each job. */
  readonly stopped: () => boolean;
}

/** Runs several jobs in parallel, in memory that does not grow with their number. */
export async function runBatch<Job, Result>({
  jobs,
  concurrency,
  ordered,
  work,
  report,
  stopped,
}: BatchPlan<Job, Result>): Promise<void> {
  const early = new Map<number, Result>();
  let taken = 0;
  let due = 0;
  let failed = false;
  let wake: (() => void)[] = [];

  const finish = (at: number, result: Result): void => {
    if (!ordered) {
      report(result);
      return;
    }
    early.set(at, result);
    for (let next = early.get(due); next !== undefined; next = early.get(due)) {
      early.delete(due);
      due += 1;
      report(next);
    }
    const sleepers = wake;
    wake = [];
    for (const resume of sleepers) resume();
  };

  const worker = async (): Promise<void> => {
    for (;;) {
      while (ordered && !failed && taken - due >= MAX_AHEAD)
        await new Promise<void>((resolve) => wake.push(resolve));
      if (failed || stopped()) return;
      // A generator answers calls in order, so this number belongs to the job that `next` returns.
      const at = taken;
      taken += 1;
      const next = await jobs.next();
      if (next.done === true) return;
      finish(at, await work(next.value));
    }
  };

  const workers = Array.from({ length: concurrency }, worker).map((done) =>
    done.catch((error: unknown) => {
      failed = true;
      for (const resume of wake) resume();
      throw error;
    }),
  );
  const results = await Promise.allSettled(workers);
  await jobs.return?.();
  const broken = results.find((result) => result.status === 'rejected');
  if (broken !== undefined) throw broken.reason;
}
