/**
 * Backups and restores of one machine that are killed, and a backup under load. The gate kills at two places, the
 * laboratory at ten.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { access, mkdtemp, readdir, rename, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import t, { type Test } from 'tap';
import { restoreBackup } from '../../src/service/compose/backup.js';
import { readConfig } from '../../src/service/config/config.js';
import { onlyInFull, sized } from '../fixtures/sampling.js';
import { type Issued, inParallel, TestService } from '../fixtures/service.js';
import { wav } from '../fixtures/wav.js';

const CLI = fileURLToPath(new URL('../../src/cli/main.js', import.meta.url));
const PLACES = sized(10, 2);
const PROOFS = sized(300, 12);
const CLIENTS = 4;

async function machine(t: Test) {
  const directory = await mkdtemp(join(tmpdir(), 'takemark-drill-'));
  t.teardown(() => rm(directory, { recursive: true, force: true }));
  const settings = {
    TAKEMARK_DATA_DIR: join(directory, 'data'),
    TAKEMARK_CONTENT_KEYS_DIR: join(directory, 'keys'),
    TAKEMARK_JOURNAL_DIR: join(directory, 'journals'),
    TAKEMARK_MIRROR_DIR: join(directory, 'mirror'),
  };
  const service = await TestService.start(settings);
  t.teardown(() => service.stop({ keep: true }));
  const command = (...words: readonly string[]): ChildProcess =>
    spawn(process.execPath, [CLI, 'operator', ...words], {
      env: { PATH: process.env['PATH'], ...settings },
      stdio: 'ignore',
    });
  return { directory, settings, service, command, config: readConfig(settings) };
}

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );

const filesBelow = async (directory: string): Promise<number> =>
  (await readdir(directory, { recursive: true }).catch(() => [])).length;

/** Kills a process when a directory has that many files, or lets it end. */
async function killAt(child: ChildProcess, directory: string, files: number): Promise<void> {
  const ended = once(child, 'exit');
  let hasEnded = false;
  void ended.then(() => (hasEnded = true));
  while (!hasEnded && (await filesBelow(directory)) < files) await delay(1);
  child.kill('SIGKILL');
  await ended;
}

async function startRestored(settings: Readonly<Record<string, string>>): Promise<TestService> {
  const refusal = await TestService.start(settings).catch((error: Error) => error);
  if (refusal instanceof TestService) return refusal;
  const code = /TAKEMARK_ACCEPT_PUT_BACK=([0-9a-f]{16})/.exec(refusal.message)?.[1];
  if (code === undefined) throw refusal;
  return TestService.start({ ...settings, TAKEMARK_ACCEPT_PUT_BACK: code });
}

t.test(
  'a killed backup is never taken for a whole one, and a killed restore never for a store',
  async (t) => {
    const { directory, settings, service, command, config } = await machine(t);
    const { partnerId, caller } = await service.partner();
    const issued: Issued[] = [];
    await inParallel(Array.from({ length: PROOFS }).keys(), CLIENTS, async (seed) => {
      issued.push(await service.issue(partnerId, wav(500, {}, seed)));
    });
    const whole = join(directory, 'whole');
    const [code] = (await once(command('backup', '--out', whole), 'exit')) as [number];
    t.equal(code, 0);
    const files = await filesBelow(whole);

    for (let place = 1; place <= PLACES; place += 1) {
      const out = join(directory, `cut-${place}`);
      await killAt(command('backup', '--out', out), out, Math.ceil((files * place) / (PLACES + 1)));
      if (await exists(join(out, 'backup.json'))) continue;
      await t.rejects(
        restoreBackup(config, out),
        /is not a complete backup/,
        `backup killed at place ${place}`,
      );
    }

    await service.stop({ keep: true });
    await rename(settings.TAKEMARK_DATA_DIR, join(directory, 'former'));
    for (let place = 1; place <= PLACES; place += 1) {
      const data = settings.TAKEMARK_DATA_DIR;
      const before = await filesBelow(data);
      // The first restore begins in an empty directory, each later one in what the one before has left.
      const target = place === 1 ? Math.ceil(files / (PLACES + 1)) : before + 1;
      await killAt(command('restore', '--from', whole), data, target);
      if (!(await exists(join(data, 'restore-unfinished')))) break;
      await t.rejects(TestService.start(settings), /did not end/, `restore killed at place ${place}`);
    }
    const data = settings.TAKEMARK_DATA_DIR;
    if ((await exists(join(data, 'restore-unfinished'))) || !(await exists(join(data, 'store'))))
      await restoreBackup(config, whole);
    const again = await startRestored(settings);
    t.teardown(() => again.stop({ keep: true }));
    for (const { file } of issued) {
      const { verdict } = await again.verify(caller, file);
      if (verdict !== 'valid') t.fail(`a proof is ${verdict}`);
    }
  },
);

t.test(
  'a drill under load keeps what was acknowledged before, and every erasure',
  { skip: onlyInFull() },
  async (t) => {
    const { directory, settings, service, command, config } = await machine(t);
    const { partnerId, caller } = await service.partner();
    const { partner } = service.service.operations;
    const before: Issued[] = [];
    await inParallel(Array.from({ length: 1000 }).keys(), CLIENTS, async (seed) => {
      before.push(await service.issue(partnerId, wav(500, {}, seed)));
    });
    let isOver = false;
    const erased = new Set<string>();
    const verifies: number[] = [];
    let seed = before.length;
    const victims = before.slice(0, 300);
    const clients = Array.from({ length: CLIENTS }, async () => {
      while (!isOver) {
        await service.issue(partnerId, wav(500, {}, (seed += 1)));
        const victim = victims.pop();
        if (victim !== undefined) {
          await partner.eraseProof(caller, { proofId: victim.proofId });
          erased.add(victim.proofId);
        }
        const begun = performance.now();
        await service.verify(caller, before.at(-1)!.file);
        verifies.push(performance.now() - begun);
      }
    });
    const percentile = (share: number) =>
      Math.round(verifies.toSorted((a, b) => a - b)[Math.floor(verifies.length * share)]! * 10) / 10;
    await delay(10_000);
    t.comment(`verify without a backup: p50 ${percentile(0.5)} ms, p99 ${percentile(0.99)} ms`);
    verifies.length = 0;
    const out = join(directory, 'backup');
    const begun = performance.now();
    t.strictSame(await once(command('backup', '--out', out), 'exit'), [0, null]);
    t.comment(`verify during a backup: p50 ${percentile(0.5)} ms, p99 ${percentile(0.99)} ms`);
    t.comment(`the backup took ${Math.round(performance.now() - begun)} ms, ${await bytesBelow(out)} bytes`);
    t.comment(`the store has ${await bytesBelow(join(settings.TAKEMARK_DATA_DIR, 'store'))} bytes`);
    await delay(2000);
    isOver = true;
    await Promise.all(clients);
    await service.stop({ keep: true });
    for (const path of [
      settings.TAKEMARK_DATA_DIR,
      settings.TAKEMARK_CONTENT_KEYS_DIR,
      settings.TAKEMARK_JOURNAL_DIR,
    ])
      await rm(path, { recursive: true });

    await restoreBackup(config, out);
    const again = await startRestored(settings);
    t.teardown(() => again.stop({ keep: true }));
    t.ok(erased.size > 0, `${erased.size} erasures`);
    for (const { proofId, file } of before) {
      const { verdict } = await again.verify(caller, file);
      const expected = erased.has(proofId) ? 'unregistered' : 'valid';
      if (verdict !== expected) t.fail(`${proofId} is ${verdict} and not ${expected}`);
    }
    t.match(await again.service.operations.operator.verifyAudit({ partnerId }), { ok: true });
  },
);

async function bytesBelow(directory: string): Promise<number> {
  let bytes = 0;
  for (const name of await readdir(directory, { recursive: true })) {
    const found = await stat(join(directory, name)).catch(() => undefined);
    if (found?.isFile() === true) bytes += found.size;
  }
  return bytes;
}
