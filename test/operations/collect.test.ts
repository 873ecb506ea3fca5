import t from 'tap';
import { collectionJobs, type JobDeps, reminderJob } from '../../src/background/jobs.js';

t.test('while a clock is wrong nothing is swept, collected or reminded of', async (t) => {
  const asked: string[] = [];
  // Every call of a store or a bucket is counted, and fails.
  const silent = new Proxy({} as JobDeps['stores'] & JobDeps['unissued'], {
    get: (_, name) => async () => {
      asked.push(String(name));
      throw new Error('asked');
    },
  });
  let maySweep = false;
  const deps = { stores: silent, unissued: silent, clock: { now: () => 0 }, maySweep: () => maySweep };
  const jobs = [...collectionJobs(deps, true), reminderJob(deps)];
  t.equal(jobs.length, 3);
  for (const job of jobs) await job.run();
  t.strictSame(asked, []);
  maySweep = true;
  for (const job of jobs) await t.rejects(job.run(), { message: 'asked' });
  t.equal(asked.length, jobs.length);
});
