import { readdirSync, readFileSync, rmdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { openAssetDirectory } from '../../src/adapters/assets/directory.js';
import { assetContract, publish } from '../store-contract/asset-contract.js';

assetContract(t, 'directory', (t) => openAssetDirectory({ directory: join(t.testdir(), 'assets') }));

void t.test('assets are files for their owner alone', async (t) => {
  const directory = join(t.testdir(), 'assets');
  const assets = await openAssetDirectory({ directory });
  t.equal(statSync(directory).mode & 0o777, 0o700);
  await publish(assets, 'prf_1', Buffer.from('audio'));
  t.strictSame(readdirSync(directory), ['prf_1.asset']);
  t.equal(statSync(join(directory, 'prf_1.asset')).mode & 0o777, 0o600);
  const staged = await assets.stage('prf_2');
  await staged.append(Buffer.from('half'));
  await staged.discard();
  await assets.delete('prf_1');
  t.strictSame(readdirSync(directory), []);
});

void t.test('leftovers of a kill are collected', async (t) => {
  const directory = t.testdir();
  const killed = await openAssetDirectory({ directory });
  await (await killed.stage('prf_killed')).append(Buffer.from('x'));
  await publish(killed, 'prf_kept', Buffer.from('kept'));
  await publish(killed, 'prf:orphan', Buffer.from('orphan'));
  writeFileSync(join(directory, 'README'), 'not ours');

  const assets = await openAssetDirectory({ directory });
  t.equal(
    await assets.collectOrphans(async (proofId) => proofId === 'prf_kept'),
    2,
    'the staged file of a process that is gone, and the orphan',
  );
  t.strictSame(readdirSync(directory).sort(), ['README', 'prf_kept.asset']);
});

void t.test('no name leads out of the directory', async (t) => {
  const directory = t.testdir({ inside: {}, 'secret.asset': 'secret' });
  const assets = await openAssetDirectory({ directory: join(directory, 'inside') });
  for (const hostile of ['../secret', 'a/../../secret']) {
    await t.rejects(assets.read(hostile), { code: 'invalid_request' });
    await t.rejects(assets.delete(hostile), { code: 'invalid_request' });
  }
  t.equal(readFileSync(join(directory, 'secret.asset'), 'utf8'), 'secret');
});

void t.test('a directory that cannot be written makes assets unavailable', async (t) => {
  const directory = join(t.testdir(), 'assets');
  const assets = await openAssetDirectory({ directory });
  // Permissions do not stop root; a file where the directory was stops everyone.
  rmdirSync(directory);
  writeFileSync(directory, '');
  await t.rejects(assets.stage('prf_1'), {
    code: 'unavailable',
    reason: 'store_unavailable',
    cause: { code: 'ENOTDIR' },
  });
  await t.rejects(openAssetDirectory({ directory }), { code: 'EEXIST' });
});
