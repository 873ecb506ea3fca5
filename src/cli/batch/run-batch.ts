/** How far results may run ahead of the one that is due, where they are to come in order. */
const MAX_AHEAD = 1000;

export interface BatchPlan<Job, Row> {
  readonly jobs: AsyncIterator<Job, void, undefined>;
  readonly concurrency: number;
  /** Whether rows come in the order of the jobs, and not in that of their completion. */
  readonly ordered: boolean;
  /** A rejection ends the batch: what concerns one job alone is a row. */
  readonly work: (job: Job) => Promise<Row>;
  readonly report: (row: Row) => void;
  /** Asked before each job is taken. */
  readonly stopped: () => boolean;
}

/** Works on several jobs at a time, in memory that does not grow with their number. */
export async function runBatch<Job, Row>({
  jobs,
  concurrency,
  ordered,
  work,
  report,
  stopped,
}: BatchPlan<Job, Row>): Promise<void> {
  const early = new Map<number, Row>();
  let taken = 0;
  let due = 0;
  let failed = false;
  let wake: (() => void)[] = [];

  const finish = (at: number, row: Row): void => {
    if (!ordered) {
      report(row);
      return;
    }
    early.set(at, row);
    for (let next = early.get(due); next !== undefined; next = early.get(due)) {
      early.delete(due);
      due += 1;
      report(next);
    }
    const sleepers = wake;
    wake = [];
    for (const resume of sleepers) resume();
  };

  const lane = async (): Promise<void> => {
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

  const lanes = Array.from({ length: concurrency }, lane).map((done) =>
    done.catch((error: unknown) => {
      failed = true;
      for (const resume of wake) resume();
      throw error;
    }),
  );
  const results = await Promise.allSettled(lanes);
  await jobs.return?.();
  const broken = results.find((result) => result.status === 'rejected');
  if (broken !== undefined) throw broken.reason;
}
