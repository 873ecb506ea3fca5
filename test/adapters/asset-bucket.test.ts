import { randomBytes } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setInterval as every } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { defined } from '../../src/core/domain/defined.js';
import { type AssetBucketOptions, openAssetBucket } from '../../src/service/adapters/assets/s3.js';
import { collectGarbage } from '../fixtures/garbage.js';
import { collect, TestService } from '../fixtures/service.js';
import { wav } from '../fixtures/wav.js';
import { assetContract, namesOf, publish } from '../store-contract/asset-contract.js';

const {
  TAKEMARK_S3_ENDPOINT: endpoint,
  TAKEMARK_S3_REGION: region = 'us-east-1',
  TAKEMARK_S3_BUCKET: bucket = 'takemark-assets',
} = process.env;
const { TAKEMARK_S3_ACCESS_KEY: accessKey = '', TAKEMARK_S3_SECRET_KEY: secretKey = '' } = process.env;
const NEEDS_SERVER = 'needs an S3 server: npm run services:up, then the variables that it prints';

/** The most bytes in memory while a deliverable of twice the size passes through. */
const MOST_HELD = 48 << 20;

/** Opens the bucket under a new prefix, because the server keeps the objects of earlier runs. */
async function open(t: Test, options: Partial<AssetBucketOptions> = {}) {
  const assets = await openAssetBucket({
    ...defined({ endpoint }),
    region,
    bucket,
    prefix: `test/${Date.now().toString(36)}-${randomBytes(4).toString('hex')}/`,
    credentials: { accessKey, secretKey },
    spoolDirectory: join(t.testdir(), 'spool'),
    ...options,
  });
  t.teardown(() => assets.close());
  return assets;
}

if (endpoint === undefined) {
  void t.test('bucket', { skip: NEEDS_SERVER }, () => undefined);
} else {
  assetContract(t, 'bucket', open);

  void t.test('a deliverable of any size passes through', async (t) => {
    const assets = await open(t);
    const chunk = randomBytes(1 << 20);
    const staged = await assets.stage('prf_1');
    for (let i = 0; i < 96; i += 1) await staged.append(chunk);
    const inBuffers = (): number => process.memoryUsage().arrayBuffers;
    collectGarbage();
    const before = inBuffers();
    // A garbage collection takes longer than the transfer. It runs only if the held and the garbage bytes
    // together exceed the limit.
    const held = (): number => {
      if (inBuffers() - before >= MOST_HELD) collectGarbage();
      return inBuffers();
    };
    const stopped = new AbortController();
    let most = 0;
    const watching = (async () => {
      for await (const _ of every(100, undefined, { signal: stopped.signal })) most = Math.max(most, held());
    })().catch(() => undefined);
    await staged.publish();
    let read = 0;
    for await (const part of (await assets.read('prf_1'))!) read += (part as Buffer).length;
    stopped.abort();
    await watching;
    t.equal(read, 96 << 20);
    t.ok(most > 0, 'it was looked at');
    t.ok(most - before < MOST_HELD, `at most ${Math.round((most - before) / (1 << 20))} of 96 MiB in memory`);
    t.strictSame(
      readdirSync(join(t.testdirName, 'spool')),
      [],
      'no file by any name, even before it is closed',
    );
    await assets.delete('prf_1');
  });

  void t.test('an asset in parts is published, and one that a kill left is deleted', async (t) => {
    const assets = await open(t, { partBytes: 5 << 20 });
    const audio = randomBytes(11 << 20);
    const build = async (proofId: string) => {
      const staged = await assets.stage(proofId);
      await staged.append(audio);
      await staged.patch(4, Buffer.from('SIZE'));
      return staged;
    };
    const staged = await build('prf_1');
    const left = await build('prf_2');
    await assets.deleteUnfinished('prf_2');
    await t.rejects(left.publish(), { code: 'unavailable', dependency: 'bucket' });
    await left.discard();
    await staged.publish();
    audio.write('SIZE', 4);
    const read = Buffer.concat(await (await assets.read('prf_1'))!.toArray());
    t.ok(read.equals(audio));
    const around = { start: (5 << 20) - 3, end: (5 << 20) + 3 };
    t.ok(
      Buffer.concat(await (await assets.read('prf_1', around))!.toArray()).equals(
        audio.subarray(around.start, around.end + 1),
      ),
    );
    t.strictSame(await namesOf(assets), ['prf_1']);
    await assets.delete('prf_1');
  });

  void t.test('a service keeps its assets in a bucket', async (t) => {
    const prefix = `test/${randomBytes(8).toString('hex')}/`;
    const house = await TestService.start(settings(prefix));
    t.teardown(() => house.stop());
    const { partner, operator } = house.service.operations;
    const { partnerId, caller } = await house.partner();
    const { proofId, file } = await house.issue(partnerId, wav(200_000));
    const asset = await partner.readAsset(caller, proofId, 'audio');
    t.ok(
      (await collect(await asset.read({ start: 1000, end: 70_000 }))).equals(file.subarray(1000, 70_001)),
      'a range passes through',
    );
    t.match(await operator.erasureStatus(proofId), { assetPresent: true });
    await partner.eraseProof(caller, { proofId });
    t.match(await operator.erasureStatus(proofId), { state: 'erased', assetPresent: false });
    t.strictSame(await namesOf(await open(t, { prefix })), []);
    t.strictSame(readdirSync(join(house.directory, 'spool')), []);
  });

  void t.test('a key that the store does not know stops the start', async (t) => {
    await t.rejects(open(t, { credentials: { accessKey, secretKey: 'wrong' } }), {
      code: 'unavailable',
      reason: 'store_unavailable',
    });
    await t.rejects(open(t, { credentials: { accessKey: 'wrong', secretKey } }), {
      code: 'unavailable',
      reason: 'store_unavailable',
    });
    await t.rejects(open(t, { bucket: 'there-is-no-such-bucket' }), {
      code: 'unavailable',
      reason: 'store_unavailable',
    });
  });
}

/** Returns the service's settings for the bucket. */
function settings(prefix: string): Record<string, string> {
  return {
    TAKEMARK_ASSETS: 's3',
    TAKEMARK_S3_ENDPOINT: endpoint!,
    TAKEMARK_S3_REGION: region,
    TAKEMARK_S3_BUCKET: bucket,
    TAKEMARK_S3_PREFIX: prefix,
    TAKEMARK_S3_ACCESS_KEY: accessKey,
    TAKEMARK_S3_SECRET_KEY: secretKey,
  };
}

/** Starts a store with chosen answers, because real stores do not fail on request. */
async function misbehaving(
  t: Test,
  answer: (request: IncomingMessage, response: ServerResponse, body: Buffer) => void,
) {
  const server = createServer((request, response) => {
    void request.toArray().then((chunks) => answer(request, response, Buffer.concat(chunks as Buffer[])));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => server.close());
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    credentials: { accessKey: 'a', secretKey: 'b' },
  };
}

void t.test('an upload is repeated from its beginning', async (t) => {
  const bodies: string[] = [];
  const store = await misbehaving(t, (request, response, body) => {
    if (/^\/[^/]+\/?$/.test(request.url!)) response.writeHead(200).end();
    else if (request.method === 'PUT') response.writeHead(bodies.push(String(body)) < 3 ? 503 : 200).end();
    else if (request.method === 'HEAD') response.writeHead(200, { 'content-length': 5 }).end();
    else response.writeHead(501).end();
  });
  await publish(await open(t, store), 'prf_1', Buffer.from('audio'));
  t.strictSame(bodies, ['audio', 'audio', 'audio']);
});

void t.test('what the store says is not taken for done', async (t) => {
  const store = await misbehaving(t, (request, response) => {
    if (request.method === 'HEAD') response.writeHead(200, { 'content-length': 4 }).end();
    else response.writeHead(request.method === 'GET' ? 501 : 200).end();
  });
  const assets = await open(t, store);
  await t.rejects(publish(assets, 'prf_1', Buffer.from('audio')), {
    reason: 'store_unavailable',
    cause: { message: 'the bucket lacks an object that it accepted' },
  });
  await t.rejects(assets.delete('prf_1'), {
    reason: 'store_unavailable',
    cause: { message: 'the bucket still has an object that it deleted' },
  });
});

void t.test('a bucket that keeps versions is refused', async (t) => {
  const store = await misbehaving(t, (_, response) =>
    response
      .writeHead(200, { 'content-type': 'application/xml' })
      .end('<VersioningConfiguration><Status>Suspended</Status></VersioningConfiguration>'),
  );
  await t.rejects(open(t, store), /has versioning/);
});

void t.test('a store that goes away makes assets unavailable', async (t) => {
  let there = true;
  const store = await misbehaving(t, (request, response) =>
    there ? response.writeHead(request.method === 'HEAD' ? 200 : 501).end() : response.destroy(),
  );
  const assets = await open(t, store);
  there = false;
  const away = { code: 'unavailable', reason: 'store_unavailable', retryAfterSeconds: 1 };
  await t.rejects(assets.read('prf_1'), away);
  await t.rejects(assets.size('prf_1'), away);
  await t.rejects(assets.delete('prf_1'), away);
  await t.rejects(assets.list(undefined, 10), away);
  await t.rejects(publish(assets, 'prf_1', Buffer.from('audio')), away);
});

void t.test('a store that takes an upload and says nothing is given up after one attempt', async (t) => {
  const uploads: string[] = [];
  const store = await misbehaving(t, (request, response, body) => {
    if (request.method === 'PUT') uploads.push(String(body));
    else response.writeHead(request.method === 'HEAD' ? 200 : 501).end();
  });
  const warned = t.capture(console, 'warn');
  await t.rejects(publish(await open(t, store), 'prf_1', Buffer.from('audio')), {
    code: 'unavailable',
    reason: 'store_unavailable',
  });
  t.strictSame(uploads, ['audio']);
  t.strictSame(warned(), [], 'the library writes no line of its own into the log');
});
