import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { ENCRYPTION_BYTES } from '../../src/core/codec/encrypt.js';
import { openAssetDirectory } from '../../src/service/adapters/assets/directory.js';
import { encryptedAssets } from '../../src/service/adapters/encryption/encrypted-assets.js';
import { openKeyDirectory } from '../../src/service/adapters/encryption/key-directory.js';
import { shardedPath } from '../fixtures/sharded-path.js';
import { assetContract, bytesOf, publish } from '../store-contract/asset-contract.js';

const BLOCK = 65_536;

async function openEncrypted(t: Test) {
  const directory = t.testdir();
  const plain = await openAssetDirectory({ directory: join(directory, 'assets') });
  const keys = await openKeyDirectory({ directory: join(directory, 'keys') });
  const path = (name: string) => shardedPath(join(directory, 'assets'), name);
  return { assets: encryptedAssets(plain, keys), plain, keys, path };
}

assetContract(t, 'encrypted', async (t) => (await openEncrypted(t)).assets);

void t.test('files of every length come back whole, and in every range', async (t) => {
  const { assets, path } = await openEncrypted(t);
  for (const length of [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK - 1, 3 * BLOCK, 3 * BLOCK + 1]) {
    const content = randomBytes(length);
    await publish(assets, 'prf_1', content);
    t.equal(await assets.size('prf_1'), length);
    t.ok((await bytesOf(await assets.read('prf_1')))?.equals(content), `${length} bytes`);
    const blocks = Math.floor(length / BLOCK) + 1;
    t.equal(readFileSync(path('prf_1.asset')).length, length + blocks * ENCRYPTION_BYTES);
    const edges = [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, length - 1, length, length + BLOCK];
    for (const start of edges.filter((edge) => edge >= 0 && edge < length))
      for (const end of edges.filter((edge) => edge >= start)) {
        const found = await bytesOf(await assets.read('prf_1', { start, end }));
        if (!found?.equals(content.subarray(start, end + 1))) t.fail(`${start} to ${end} of ${length}`);
      }
    const behind = await bytesOf(await assets.read('prf_1', { start: length, end: length + 1 }));
    t.equal(behind?.length ?? 0, 0, 'nothing after the end');
    await assets.delete('prf_1');
  }
});

void t.test('bytes are overwritten in any block before a file is published', async (t) => {
  const { assets } = await openEncrypted(t);
  const content = randomBytes(3 * BLOCK + 100);
  const staged = await assets.stage('prf_1');
  await staged.append(content);
  for (const [at, length] of [
    [4, 4],
    [BLOCK - 2, 4],
    [BLOCK - 1, BLOCK + 2],
    [3 * BLOCK - 1, 2],
    [3 * BLOCK + 90, 10],
  ] as const) {
    const bytes = randomBytes(length);
    await staged.patch(at, bytes);
    bytes.copy(content, at);
    t.ok((await bytesOf(staged.read()))?.equals(content), `${length} bytes at ${at}`);
  }
  await staged.append(Buffer.from('end'));
  await staged.publish();
  const whole = Buffer.concat([content, Buffer.from('end')]);
  t.ok((await bytesOf(await assets.read('prf_1')))?.equals(whole));
});

void t.test('no part of a file is stored in plain text, also while it is built', async (t) => {
  const { assets, plain, keys } = await openEncrypted(t);
  const mark = Buffer.from('a mark that is sought in every file');
  const staged = await assets.stage('prf_1', 'trace');
  await staged.append(Buffer.concat([randomBytes(100_000), mark]));
  await staged.patch(70_000, mark);
  await staged.publish();
  const stored = await bytesOf(await plain.read('prf_1', undefined, 'trace'));
  t.equal(stored?.includes(mark), false);
  await publish(assets, 'prf_1', mark);
  await keys.destroy('prf_1');
  t.equal((await bytesOf(await assets.read('prf_1')))?.includes(mark), false, 'without its key it is noise');
});

void t.test('a file is damaged when it was changed, cut off or moved', async (t) => {
  const { assets, path } = await openEncrypted(t);
  const encrypted = BLOCK + ENCRYPTION_BYTES;
  const content = randomBytes(2 * BLOCK + 10);
  await publish(assets, 'prf_1', content);
  const stored = readFileSync(path('prf_1.asset'));
  const fails = async (what: string, change: (bytes: Buffer) => Uint8Array) => {
    writeFileSync(path('prf_1.asset'), change(Buffer.from(stored)));
    await t.rejects(async () => bytesOf(await assets.read('prf_1')), { name: 'DecryptionError' }, what);
  };
  for (const at of [0, 11, 12, 5000, encrypted - 1, encrypted, stored.length - 1])
    await fails(`a bit at ${at}`, (bytes) => {
      bytes[at]! ^= 1;
      return bytes;
    });
  await fails('without its last block', (bytes) => bytes.subarray(0, 2 * encrypted));
  await fails('without its last byte', (bytes) => bytes.subarray(0, -1));
  await fails('empty', () => Buffer.alloc(0));
  await fails('with two blocks in the other order', (bytes) =>
    Buffer.concat([
      bytes.subarray(encrypted, 2 * encrypted),
      bytes.subarray(0, encrypted),
      bytes.subarray(2 * encrypted),
    ]),
  );
  await publish(assets, 'prf_2', content);
  await fails('of another proof', () => readFileSync(path('prf_2.asset')));
  const detail = await assets.stage('prf_1', 'detail');
  await detail.append(content);
  await detail.publish();
  await fails('another file of the proof', () => readFileSync(path('prf_1.detail')));
});

void t.test('files of a version that encrypted nothing are read as they lie', async (t) => {
  const { assets, plain } = await openEncrypted(t);
  const content = randomBytes(BLOCK + 5);
  await publish(plain, 'prf_1', content);
  t.ok((await bytesOf(await assets.read('prf_1')))?.equals(content));
  t.ok((await bytesOf(await assets.read('prf_1', { start: 3, end: 9 })))?.equals(content.subarray(3, 10)));
  t.equal(await assets.size('prf_1'), content.length);
  t.equal(await assets.delete('prf_1'), true);
});

void t.test('a stream that is given up gives its file up', async (t) => {
  const { assets, plain } = await openEncrypted(t);
  await publish(assets, 'prf_1', randomBytes(10 * BLOCK));
  const streams: import('node:stream').Readable[] = [];
  const keys = {
    obtain: async () => Buffer.alloc(32),
    read: async () => Buffer.alloc(32),
    destroy: async () => undefined,
    release: async () => undefined,
  };
  const watched = encryptedAssets(
    {
      ...plain,
      async read(...args) {
        const stream = await plain.read(...args);
        if (stream !== undefined) streams.push(stream);
        return stream;
      },
    },
    keys,
  );
  const unread = await watched.read('prf_1');
  unread?.on('error', () => undefined).destroy();
  await new Promise((resolve) => setImmediate(resolve));
  await new Promise((resolve) => setImmediate(resolve));
  t.strictSame(
    streams.map(({ destroyed }) => destroyed),
    [true],
  );
});
