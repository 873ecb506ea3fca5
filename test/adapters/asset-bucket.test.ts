import { randomBytes } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setInterval as every } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { openAssetBucket, type AssetBucketOptions } from '../../src/adapters/assets/s3.js';
import { assetContract, publish } from '../store-contract/asset-contract.js';

const { TAKEMARK_S3_ENDPOINT: endpoint, TAKEMARK_S3_REGION: region = 'us-east-1', TAKEMARK_S3_BUCKET: bucket = 'takemark-assets' } = process.env;
const { TAKEMARK_S3_ACCESS_KEY: accessKey = '', TAKEMARK_S3_SECRET_KEY: secretKey = '' } = process.env;
const NEEDS_SERVER = 'needs an S3 server: npm run services:up, then the variables that it prints';

/** A prefix of its own each time: the server keeps what earlier runs left. */
async function open(t: Test, options: Partial<AssetBucketOptions> = {}) {
  const assets = await openAssetBucket({
    endpoint,
    region,
    bucket,
    prefix: `test/${Date.now().toString(36)}-${randomBytes(4).toString('hex')}/`,
    credentials: { accessKey, secretKey },
    spoolDirectory: join(t.testdir(), 'spool'),
    sweepGraceSeconds: 0,
    ...options,
  });
  t.teardown(() => assets.close());
  return assets;
}

if (endpoint === undefined) {
  void t.test('bucket', { skip: NEEDS_SERVER }, () => undefined);
} else {
  assetContract(t, 'bucket', open);

  void t.test('a deliverable passes through, whatever its size', async (t) => {
    const assets = await open(t);
    const chunk = randomBytes(1 << 20);
    const staged = await assets.stage('prf_1');
    for (let i = 0; i < 96; i++) await staged.append(chunk);
    const before = process.memoryUsage().arrayBuffers;
    const stopped = new AbortController();
    let most = 0;
    const watching = (async () => {
      for await (const _ of every(5, undefined, { signal: stopped.signal })) most = Math.max(most, process.memoryUsage().arrayBuffers);
    })().catch(() => undefined);
    await staged.publish();
    let read = 0;
    for await (const part of (await assets.read('prf_1'))!) read += (part as Buffer).length;
    stopped.abort();
    await watching;
    t.equal(read, 96 << 20);
    t.ok(most - before < 48 << 20, `at most ${Math.round((most - before) / (1 << 20))} of 96 MiB in memory`);
    t.strictSame(readdirSync(join(t.testdirName, 'spool')), [], 'no file by any name, even before it is closed');
    await assets.delete('prf_1');
  });

  void t.test('another process is about to register it', async (t) => {
    const prefix = `test/${randomBytes(8).toString('hex')}/`;
    const [assets, patient] = await Promise.all([open(t, { prefix }), open(t, { prefix, sweepGraceSeconds: 3_600 })]);
    await publish(assets, 'prf_1', Buffer.from('young'));
    t.equal(await patient.sweep(async () => t.fail('not even asked') as never), 0);
    t.equal(await assets.sweep(async () => false), 1);
  });

  void t.test('more than one page of orphans', { timeout: 120_000 }, async (t) => {
    const assets = await open(t);
    for (let i = 0; i < 21; i++) await Promise.all(Array.from({ length: 50 }, (_, j) => publish(assets, `prf_${i}.${j}`, Buffer.from('x'))));
    t.equal(await assets.sweep(async () => false), 1_050);
    t.equal(await assets.sweep(async () => false), 0);
  });

  void t.test('a key that the store does not know', async (t) => {
    await t.rejects(open(t, { credentials: { accessKey, secretKey: 'wrong' } }), { code: 'unavailable', reason: 'store_unavailable' });
    await t.rejects(open(t, { bucket: 'there-is-no-such-bucket' }), { code: 'unavailable', reason: 'store_unavailable' });
  });
}

/** A store that behaves as it is told, for what no real one does on request. */
async function misbehaving(t: Test, answer: (request: IncomingMessage, response: ServerResponse, body: Buffer) => void) {
  const server = createServer((request, response) => {
    void request.toArray().then((chunks) => answer(request, response, Buffer.concat(chunks as Buffer[])));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => server.close());
  return { endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, credentials: { accessKey: 'a', secretKey: 'b' } };
}

void t.test('an upload is repeated from its beginning', async (t) => {
  const bodies: string[] = [];
  const store = await misbehaving(t, (request, response, body) => {
    if (request.method === 'PUT') response.writeHead(bodies.push(String(body)) < 3 ? 503 : 200).end();
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
  await t.rejects(publish(assets, 'prf_1', Buffer.from('audio')), { reason: 'store_unavailable', cause: { message: 'the store does not have what it took' } });
  await t.rejects(assets.delete('prf_1'), { reason: 'store_unavailable', cause: { message: 'the store still has what it deleted' } });
});

void t.test('a bucket that keeps versions is refused', async (t) => {
  const store = await misbehaving(t, (_, response) => response.writeHead(200, { 'content-type': 'application/xml' }).end('<VersioningConfiguration><Status>Suspended</Status></VersioningConfiguration>'));
  await t.rejects(open(t, store), /keeps versions/);
});

void t.test('a store that goes away', async (t) => {
  let there = true;
  const store = await misbehaving(t, (_, response) => (there ? response.writeHead(501).end() : response.destroy()));
  const assets = await open(t, store);
  there = false;
  const away = { code: 'unavailable', reason: 'store_unavailable', retryAfterSeconds: 1 };
  await t.rejects(assets.read('prf_1'), away);
  await t.rejects(assets.size('prf_1'), away);
  await t.rejects(assets.delete('prf_1'), away);
  await t.rejects(assets.sweep(async () => true), away);
  await t.rejects(publish(assets, 'prf_1', Buffer.from('audio')), away);
});
