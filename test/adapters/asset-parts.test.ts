import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { openAssetBucket } from '../../src/service/adapters/assets/s3.js';
import { unissuedAssets } from '../../src/service/adapters/encryption/encrypted-assets.js';
import { openKeyDirectory } from '../../src/service/adapters/encryption/key-directory.js';
import { type BucketRequest, BucketServer } from '../fixtures/bucket-server.js';
import { assetContract, bytesOf, publish } from '../store-contract/asset-contract.js';

const PART = 100_000;

async function open(t: Test, partBytes = PART) {
  const server = await BucketServer.start();
  t.teardown(() => server.stop());
  const assets = await openAssetBucket({
    ...server.connection,
    spoolDirectory: join(t.testdir(), 'spool'),
    partBytes,
  });
  t.teardown(() => assets.close());
  return { server, assets };
}

/** Returns the numbers of the parts that the server got, in their order. */
function partsOf({ requests }: BucketServer): readonly number[] {
  return requests.flatMap(({ method, query }) =>
    method === 'PUT' && query.has('partNumber') ? [Number(query.get('partNumber'))] : [],
  );
}

const isPart = ({ method, query }: BucketRequest, number: number): boolean =>
  method === 'PUT' && query.get('partNumber') === String(number);

assetContract(t, 'bucket in parts', async (t) => (await open(t)).assets);

void t.test('an asset of one part is sent in one request, and a longer one in parts', async (t) => {
  const { server, assets } = await open(t);
  for (const [proofId, length, parts] of [
    ['prf_1', PART, []],
    ['prf_2', PART + 1, [1, 2]],
    ['prf_3', 3 * PART, [1, 2, 3]],
  ] as const) {
    server.requests.length = 0;
    const bytes = randomBytes(length);
    await publish(assets, proofId, bytes);
    t.strictSame(partsOf(server), parts, `${length} bytes`);
    t.ok(server.objects.get(`test/${proofId}`)?.equals(bytes));
    t.ok(
      (await bytesOf(await assets.read(proofId, { start: PART - 5, end: PART + 5 })))?.equals(
        bytes.subarray(PART - 5, PART + 6),
      ),
    );
  }
  t.equal(server.unfinished.size, 0);
});

void t.test('a part is sent before the asset has ended', async (t) => {
  const { server, assets } = await open(t);
  const arrived = new Promise<void>((resolve) => {
    server.refuse = (request) => {
      if (isPart(request, 1)) resolve();
      return undefined;
    };
  });
  const staged = await assets.stage('prf_1');
  await staged.append(Buffer.alloc(PART + 1));
  await arrived;
  t.equal(server.objects.size, 0);
  await staged.discard();
});

void t.test('a part is sent again when its bytes change after it was sent', async (t) => {
  const { server, assets } = await open(t);
  const bytes = randomBytes(3 * PART + 10);
  const staged = await assets.stage('prf_1');
  await staged.append(bytes);
  await staged.patch(4, Buffer.from('SIZE'));
  await staged.patch(2 * PART - 2, Buffer.from('both'));
  await staged.publish();
  await staged.discard();
  bytes.write('SIZE', 4);
  bytes.write('both', 2 * PART - 2);
  t.ok(server.objects.get('test/prf_1')?.equals(bytes));
  t.strictSame(partsOf(server), [1, 2, 3, 1, 2, 3, 4]);
});

void t.test('a part is repeated when the bucket has a fault, and alone', async (t) => {
  const { server, assets } = await open(t);
  let faults = 2;
  server.refuse = (request) => (isPart(request, 2) && faults-- > 0 ? 503 : undefined);
  const bytes = randomBytes(3 * PART);
  await publish(assets, 'prf_1', bytes);
  t.strictSame(partsOf(server), [1, 2, 2, 2, 3]);
  t.ok(server.objects.get('test/prf_1')?.equals(bytes));
});

void t.test('an asset whose part is refused is given up, and its parts are deleted', async (t) => {
  const { server, assets } = await open(t);
  server.refuse = (request) => (isPart(request, 2) ? 503 : undefined);
  await t.rejects(publish(assets, 'prf_1', randomBytes(4 * PART)), {
    code: 'unavailable',
    reason: 'store_unavailable',
    dependency: 'bucket',
  });
  t.strictSame(partsOf(server), [1, 2, 2, 2], 'no later part is sent');
  t.equal(server.unfinished.size, 0);
  t.equal(server.objects.size, 0);
  t.strictSame(readdirSync(join(t.testdirName, 'spool')), []);
});

void t.test('an asset that is given up while a part is sent leaves no part', async (t) => {
  const { server, assets } = await open(t);
  const given = new EventTarget();
  const arrived = once(given, 'part');
  server.refuse = async (request) => {
    if (isPart(request, 1)) {
      given.dispatchEvent(new Event('part'));
      await once(given, 'end');
    }
    return undefined;
  };
  const staged = await assets.stage('prf_1');
  await staged.append(Buffer.alloc(PART + 1));
  await arrived;
  await staged.discard();
  given.dispatchEvent(new Event('end'));
  t.equal(server.unfinished.size, 0);
});

void t.test('an object whose answer was lost counts as made', async (t) => {
  const { server, assets } = await open(t);
  let answers = 0;
  server.refuse = async ({ method, key, query }) => {
    if (method !== 'POST' || !query.has('uploadId')) return undefined;
    answers += 1;
    if (answers > 1) return undefined;
    const { parts } = server.unfinished.get(query.get('uploadId')!)!;
    server.objects.set(key, Buffer.concat([...parts.values()]));
    server.unfinished.clear();
    return 500;
  };
  const bytes = randomBytes(2 * PART);
  await publish(assets, 'prf_1', bytes);
  t.equal(answers, 2);
  t.ok(server.objects.get('test/prf_1')?.equals(bytes));
});

void t.test('the collection deletes the parts that a kill left, of this id alone', async (t) => {
  const { server, assets } = await open(t);
  const keys = await openKeyDirectory({ directory: t.testdir({}) });
  const left = (key: string, id: string) =>
    server.unfinished.set(id, { key, parts: new Map([[1, Buffer.from('audio')]]) });
  left('test/prf_1', '1');
  left('test/prf_1', '2');
  left('test/prf_1!trace', '3');
  left('test/prf_12', '4');
  await unissuedAssets(assets, keys).delete('prf_1');
  t.strictSame(
    [...server.unfinished.values()].map(({ key }) => key),
    ['test/prf_12'],
  );
});
