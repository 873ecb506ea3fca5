/** Results that may wait for the one that is due, where they are to come in order. */
const MAX_AHEAD = 1000;

export interface BatchPlan<Job, Result> {
  readonly jobs: AsyncIterator<Job, void, undefined>;
  readonly concurrency: number;
  /** True where results come in the order of the jobs, and not in that of their completion. */
  readonly ordered: boolean;
  /** Does a job. A rejection ends the batch: a failure that concerns one job alone is a result. */
  readonly work: (job: Job) => Promise<Result>;
  readonly report: (result: Result) => void;
  /** True where no more jobs are to be taken; asked before each one. */
  readonly stopped: () => boolean;
}

/** Works on several jobs at a time, in memory that does not grow with their number. */
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
      // A generator answers in the order it is asked, so the number taken here is that of the job to come.
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
