import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t from 'tap';
import { openAssetDirectory } from '../../src/service/adapters/assets/directory.js';
import { namesBelow, shardedPath } from '../fixtures/sharded-path.js';
import { assetContract, namesOf, publish } from '../store-contract/asset-contract.js';

assetContract(t, 'directory', (t) => openAssetDirectory({ directory: join(t.testdir(), 'assets') }));

void t.test('assets are files for their owner alone', async (t) => {
  const directory = join(t.testdir(), 'assets');
  const assets = await openAssetDirectory({ directory });
  t.equal(statSync(directory).mode & 0o777, 0o700);
  await publish(assets, 'prf_1', Buffer.from('audio'));
  t.strictSame(namesBelow(directory), ['prf_1.asset']);
  const path = shardedPath(directory, 'prf_1.asset');
  t.equal(statSync(path).mode & 0o777, 0o600);
  t.equal(statSync(dirname(path)).mode & 0o777, 0o700);
  const staged = await assets.stage('prf_2');
  await staged.append(Buffer.from('half'));
  await staged.discard();
  await assets.delete('prf_1');
  t.strictSame(namesBelow(directory), []);
});

void t.test('what a kill left half built is gone after a start, and nothing else', async (t) => {
  const directory = t.testdir();
  const killed = await openAssetDirectory({ directory });
  const halfBuilt = await killed.stage('prf_killed');
  await halfBuilt.append(Buffer.from('x'));
  await publish(killed, 'prf_kept', Buffer.from('kept'));
  writeFileSync(join(directory, 'README'), 'not ours');
  t.equal(readdirSync(join(directory, 'staging')).length, 1);

  const assets = await openAssetDirectory({ directory });
  t.strictSame(namesBelow(directory), ['README', 'prf_kept.asset']);
  t.strictSame(await namesOf(assets), ['prf_kept']);
  // The file is gone already. Newer versions of Node end a process with an unclosed handle.
  await halfBuilt.discard();
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
  // Permissions do not stop root, but a file in place of the directory does.
  rmSync(directory, { recursive: true });
  writeFileSync(directory, '');
  await t.rejects(assets.stage('prf_1'), {
    code: 'unavailable',
    reason: 'store_unavailable',
    cause: { code: 'ENOTDIR' },
  });
  await t.rejects(openAssetDirectory({ directory }), { code: 'EEXIST' });
});

void t.test('files that a version before left in one directory are found, listed and erased', async (t) => {
  const directory = t.testdir({
    'prf=1.asset': 'audio',
    'prf=1.trace': 'trace',
    'prf_2.asset': 'other',
    README: 'not ours',
  });
  const assets = await openAssetDirectory({ directory });
  t.equal(await assets.size('prf:1'), 5);
  t.equal(await assets.size('prf:1', 'trace'), 5);
  t.strictSame((await namesOf(assets)).toSorted(), ['prf:1', 'prf:1 trace', 'prf_2']);
  t.ok(await assets.delete('prf:1'));
  t.strictSame(namesBelow(directory), ['README', 'prf_2.asset']);
});
