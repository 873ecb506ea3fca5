import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { examineMachine } from '../../src/service/adapters/system/machine-doctor.js';

const NOW = 1_780_000_000_000;

t.test('the doctor of a machine names what is open, late or beside the store', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'takemark-machine-'));
  t.teardown(() => rm(directory, { recursive: true, force: true }));
  const parts = {
    dataDirectory: directory,
    journalDirectory: join(directory, 'journals'),
    contentKeysDirectory: join(directory, 'content-keys'),
    secretFiles: ['secrets.json', 'operator-token'],
    now: NOW,
  };
  const check = async (name: string, more: Partial<Parameters<typeof examineMachine>[0]> = {}) =>
    (await examineMachine({ ...parts, ...more })).find((each) => each.name === `machine.${name}`);
  t.match(await check('disk'), { found: /^\d+ % of the disk of .* is free, \d+ MB$/, verdict: /ok|warn/ });
  t.match(await check('inodes'), { verdict: /ok|warn|not_checked/ });
  t.match(await check('clock'), { verdict: 'not_checked' });
  t.equal(await check('content_keys'), undefined, 'nothing is stored yet');
  t.equal(await check('certificate'), undefined);

  for (const name of ['journals', 'content-keys', 'store'])
    await mkdir(join(directory, name), { mode: 0o700 });
  await writeFile(join(directory, 'secrets.json'), '{}', { mode: 0o600 });
  t.match(await check('modes'), { verdict: 'ok' });
  await chmod(join(directory, 'secrets.json'), 0o640);
  t.match(await check('modes'), {
    verdict: 'warn',
    found: `${join(directory, 'secrets.json')} (640)`,
  });

  t.match(await check('content_keys'), { verdict: 'warn', found: 'on the device of the store' });
  await writeFile(join(directory, 'clock'), `${NOW + 60_000}\n`);
  t.match(await check('clock'), { verdict: 'warn', found: '60 s late' });
  t.match(await check('clock', { now: NOW + 60_000 }), { verdict: 'ok' });
  await writeFile(join(directory, 'cert.pem'), 'nothing');
  t.match(await check('certificate', { certificate: join(directory, 'cert.pem') }), { verdict: 'warn' });
  t.match(await check('certificate', { certificate: join(directory, 'none.pem') }), {
    verdict: 'warn',
    found: 'unusable (ENOENT)',
  });
  t.match(await examineMachine({ ...parts, dataDirectory: join(directory, 'none') }), [
    { name: 'machine.data_directory', verdict: 'not_checked' },
  ]);
});
