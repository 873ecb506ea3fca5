import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { eachOf } from '../../src/core/async/each-of.js';
import { defined } from '../../src/core/domain/defined.js';
import { formatIdentifier } from '../../src/core/domain/identifiers.js';
import { connectBucket } from '../../src/service/adapters/assets/bucket-connection.js';
import { type BucketNotesOptions, openBucketNotes } from '../../src/service/adapters/assets/bucket-notes.js';
import { openAssetBucket } from '../../src/service/adapters/assets/s3.js';
import { authenticator } from '../fixtures/authentication.js';
import { namesOf, publish } from '../store-contract/asset-contract.js';

const {
  TAKEMARK_S3_ENDPOINT: endpoint,
  TAKEMARK_S3_REGION: region = 'us-east-1',
  TAKEMARK_S3_BUCKET: bucket = 'takemark-assets',
  TAKEMARK_S3_ACCESS_KEY: accessKey = '',
  TAKEMARK_S3_SECRET_KEY: secretKey = '',
} = process.env;

/** Returns options with a new prefix, because the server keeps the objects of earlier runs. */
const options = (over: Partial<BucketNotesOptions> = {}): BucketNotesOptions => ({
  ...defined({ endpoint }),
  region,
  bucket,
  prefix: `test/${randomBytes(8).toString('hex')}/`,
  credentials: { accessKey, secretKey },
  authenticator,
  ...over,
});

function open(t: Test, over: Partial<BucketNotesOptions> = {}) {
  const notes = openBucketNotes(options(over));
  t.teardown(() => notes.journal.close());
  return notes;
}

const erasure = (n: number) => ({
  proofId: formatIdentifier('proof', 1_780_000_000_000 + n, Buffer.alloc(10, n)),
  partnerId: `ptr_${n % 3}`,
  erasedAt: 1_780_000_000 + n,
});

async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const list: Item[] = [];
  for await (const item of items) list.push(item);
  return list;
}

const server = endpoint === undefined ? { skip: 'needs an S3 server: npm run services:up' } : {};

t.test('erasures come back from every page, and a repeated one once', server, async (t) => {
  const prefix = `test/${randomBytes(8).toString('hex')}/`;
  const { journal } = open(t, { prefix });
  t.strictSame(await all(journal.read()), []);
  const erasures = Array.from({ length: 1100 }, (_, n) => erasure(n));
  await eachOf([...erasures, erasures[0]!], 32, (each) => journal.record(each));
  t.strictSame(await all(open(t, { prefix }).journal.read()), erasures, 'for another process too');
});

t.test('deliverables and their lists do not meet the notes', server, async (t) => {
  const prefix = `test/${randomBytes(8).toString('hex')}/`;
  const { journal, marks } = open(t, { prefix });
  const assets = await openAssetBucket({
    ...options({ prefix }),
    spoolDirectory: join(t.testdir(), 'spool'),
  });
  t.teardown(() => assets.close());
  const { proofId } = erasure(1);
  await publish(assets, proofId, Buffer.from('audio'));
  await journal.record(erasure(1));
  await marks.setBeat(4);
  t.strictSame(await namesOf(assets), [proofId]);
  await assets.delete(proofId);
  t.strictSame(await all(journal.read()), [erasure(1)]);
  t.strictSame(await marks.read(), { beat: 4, epoch: 0 });
});

t.test('a foreign entry is refused, and reported after all own entries', server, async (t) => {
  const prefix = `test/${randomBytes(8).toString('hex')}/`;
  const { journal } = open(t, { prefix });
  for (const n of [1, 2, 3]) await journal.record(erasure(n));
  const client = connectBucket(options());
  t.teardown(() => client.destroy());
  const { CopyObjectCommand } = await import('@aws-sdk/client-s3');
  const nameOf = (n: number) => `${prefix}erasures/${erasure(n).proofId}`;
  // An entry under another name claims that another proof was erased.
  await client.send(
    new CopyObjectCommand({ Bucket: bucket, Key: nameOf(4), CopySource: `${bucket}/${nameOf(2)}` }),
  );
  const read: unknown[] = [];
  await t.rejects(
    (async () => {
      for await (const each of journal.read()) read.push(each);
    })(),
    { message: new RegExp(`1 entries .*${erasure(4).proofId}`) },
  );
  t.strictSame(read, [erasure(1), erasure(2), erasure(3)]);
});

t.test('an unfinished entry of a killed server blocks no read', server, async (t) => {
  const prefix = `test/${randomBytes(8).toString('hex')}/`;
  const { journal } = open(t, { prefix });
  await journal.record(erasure(1));
  const client = connectBucket(options());
  t.teardown(() => client.destroy());
  const { PutObjectCommand } = await import('@aws-sdk/client-s3');
  const left = [`${erasure(1).proofId}-6f1b7c1e`, `${erasure(2).proofId}-0c9d1f3a`];
  for (const [at, name] of left.entries())
    await client.send(
      new PutObjectCommand({
        Bucket: bucket,
        Key: `${prefix}erasures/${name}`,
        Body: at === 0 ? '' : 'half',
      }),
    );
  const once = <Value>(attempt: () => Promise<Value>) => attempt();
  const asked: string[] = [];
  const isHeld = (held: readonly string[]) => async (proofId: string) => {
    asked.push(proofId);
    return held.includes(proofId);
  };
  t.strictSame(await all(journal.read(once, isHeld([erasure(1).proofId]))), [erasure(1)]);
  t.strictSame(asked.sort(), left, 'the store is asked for what cannot be believed, and for nothing else');
  await t.rejects(all(journal.read(once, isHeld([left[0]!]))), {
    name: 'ServerError',
    message: new RegExp(`1 entries .*${left[0]}$`),
  });
  await t.rejects(all(journal.read()), { message: /2 entries/ }, 'without a store to ask, all are named');
});

t.test('a bucket that is away or accepts nothing is reported in time', async (t) => {
  let answer = false;
  const store = createServer((_, response) => {
    if (answer) response.writeHead(403).end();
  });
  await new Promise<void>((resolve) => store.listen(0, '127.0.0.1', resolve));
  t.teardown(() => store.close().closeAllConnections());
  const { journal, marks } = open(t, {
    endpoint: `http://127.0.0.1:${(store.address() as AddressInfo).port}`,
    credentials: { accessKey: 'a', secretKey: 'b' },
  });
  const away = { code: 'unavailable', reason: 'store_unavailable' };
  await t.rejects(journal.record(erasure(1)), away, 'hangs');
  answer = true;
  await t.rejects(journal.record(erasure(1)), away, 'refuses');
  await t.rejects(all(journal.read()), away);
  await t.rejects(marks.read(), away);
  await t.rejects(journal.record({ ...erasure(1), proofId: '../x' }), { code: 'invalid_request' });
});
