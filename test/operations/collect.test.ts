import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import t, { type Test } from 'tap';
import {
  collectionJobs,
  type JobDeps,
  RESERVATION_SECONDS,
  reminderJob,
} from '../../src/service/background/jobs.js';
import type { TestService } from '../fixtures/service.js';
import { keyNamesBelow, namesBelow, shardedPath } from '../fixtures/sharded-path.js';
import { until } from '../fixtures/until.js';
import { wav } from '../fixtures/wav.js';
import { RestartedService } from './restarted-service.js';

const NOT_AUDIO = Buffer.from('not a WAV file');

/** Returns the ids that have a key, and the names of the files of proofs. */
function leftIn(directory: string): { readonly keys: readonly string[]; readonly files: readonly string[] } {
  return {
    keys: keyNamesBelow(join(directory, 'content-keys'))
      .filter((name) => name.endsWith('.key'))
      .map((name) => name.slice(0, -'.key'.length)),
    files: namesBelow(join(directory, 'assets')),
  };
}

async function refuse(t: Test, service: TestService, partnerId: string, count: number): Promise<void> {
  for (let i = 0; i < count; i += 1)
    await t.rejects(service.issue(partnerId, NOT_AUDIO), { code: 'unprocessable' });
}

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
  const jobs = [...collectionJobs(deps), reminderJob(deps)];
  t.equal(jobs.length, 3);
  for (const job of jobs) await job.run(new AbortController().signal);
  t.strictSame(asked, []);
  maySweep = true;
  for (const job of jobs) await t.rejects(job.run(new AbortController().signal), { message: 'asked' });
  t.equal(asked.length, jobs.length);
});

t.test('a running service of one machine removes what issuings left that came to nothing', async (t) => {
  const timers: { readonly run: () => void; readonly everyMs: number | undefined }[] = [];
  const { setInterval: real } = globalThis;
  globalThis.setInterval = ((run: () => void, everyMs?: number) => {
    timers.push({ run, everyMs });
    return real(run, everyMs);
  }) as typeof setInterval;
  t.teardown(() => void (globalThis.setInterval = real));
  const house = await RestartedService.start();
  t.teardown(() => house.stop());
  /** Runs every job of ten minutes, as their timers do. */
  const collect = (): void => timers.forEach(({ run, everyMs }) => everyMs === 600_000 && run());
  const isCollected = (): boolean => leftIn(house.directory).keys.length <= 1;
  const { partnerId } = await house.service.partner();
  const { proofId } = await house.service.issue(partnerId, wav(3000), { idempotencyKey: 'k'.repeat(20) });
  const issued = leftIn(house.directory);
  t.strictSame(issued.keys, [proofId]);

  await refuse(t, house.service, partnerId, 5);
  for (let i = 0; i < 5; i += 1) {
    const repeated = await house.service.issue(partnerId, wav(3000), { idempotencyKey: 'k'.repeat(20) });
    t.equal(repeated.proofId, proofId);
  }
  t.equal(leftIn(house.directory).keys.length, 11);
  house.clock.advance(RESERVATION_SECONDS - 1);
  collect();
  await delay(500);
  t.equal(leftIn(house.directory).keys.length, 11, 'an issuing may still be under way');
  house.clock.advance(1);
  collect();
  await until(isCollected);
  t.strictSame(leftIn(house.directory), issued, 'what was issued is left');

  async function* overrunning(): AsyncGenerator<Uint8Array> {
    yield wav(3000);
    house.clock.advance(RESERVATION_SECONDS);
    collect();
    await until(isCollected);
  }
  const late = { partnerId, songTitle: 'Late', fileName: 'late.wav', carrier: 'embedded' } as const;
  await t.rejects(house.operator.issueProof({ ...late, audio: overrunning() }), { code: 'conflict' });
  t.strictSame(leftIn(house.directory), issued, 'one that took too long leaves nothing');
  t.equal(
    (await house.service.issue(partnerId, wav(3000), { idempotencyKey: 'k'.repeat(20) })).replayed,
    true,
  );
});

t.test('a removal that fails leaves nothing for good, and holds up no start', async (t) => {
  const house = await RestartedService.start();
  t.teardown(() => house.stop());
  const { partnerId } = await house.service.partner();
  await refuse(t, house.service, partnerId, 5);
  const { keys } = leftIn(house.directory);
  t.equal(keys.length, 5);
  const obstacle = shardedPath(join(house.directory, 'assets'), `${keys[1]!}.asset`);
  await mkdir(obstacle, { recursive: true });
  await house.restart();
  t.ok(
    house.service.log.some((line) => line.includes('"fault"') && line.includes('collect')),
    'it is reported',
  );
  t.strictSame(leftIn(house.directory).keys, [], 'the others have gone');
  // As if the key had been what could not be removed.
  await rm(obstacle, { recursive: true });
  await writeFile(shardedPath(join(house.directory, 'content-keys'), `${keys[1]!}.key`), Buffer.alloc(32, 1));
  await writeFile(obstacle, 'file');
  await house.restart();
  t.strictSame(leftIn(house.directory), { keys: [], files: [] });
});
