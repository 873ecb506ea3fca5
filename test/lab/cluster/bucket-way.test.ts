/** Tests that the proxy of the bucket plays each of its faults, and recovers from each. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import t from 'tap';
import { BucketProxy } from './bucket-way.js';

const CONTENT = Buffer.alloc(3_000_000, 7);

async function bucketAndWay(t: { teardown(end: () => Promise<void>): void }): Promise<BucketProxy> {
  const server: Server = createServer((_, response) => response.end(CONTENT));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const proxy = await BucketProxy.open(
    `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    '127.0.0.1',
  );
  t.teardown(async () => {
    await proxy.close();
    server.closeAllConnections();
    server.close();
  });
  return proxy;
}

const sizeOf = async (proxy: BucketProxy): Promise<number> =>
  (await fetch(proxy.endpoint).then((answer) => answer.arrayBuffer())).byteLength;

t.test('an open proxy forwards everything', async (t) => {
  const proxy = await bucketAndWay(t);
  t.equal(await sizeOf(proxy), CONTENT.length);
});

t.test('a bucket answers no call while the fault "away" lasts, and answers afterwards', async (t) => {
  const proxy = await bucketAndWay(t);
  proxy.turn('away');
  await t.rejects(sizeOf(proxy));
  proxy.turn('open');
  t.equal(await sizeOf(proxy), CONTENT.length);
});

t.test('a late answer arrives whole when the fault ends, and not before', async (t) => {
  const proxy = await bucketAndWay(t);
  proxy.turn('late');
  let arrived = false;
  const size = sizeOf(proxy).finally(() => (arrived = true));
  await delay(300);
  t.notOk(arrived);
  proxy.turn('open');
  t.equal(await size, CONTENT.length);
});

t.test('a slow answer takes its time', async (t) => {
  const proxy = await bucketAndWay(t);
  proxy.turn('slow');
  const began = performance.now();
  const size = sizeOf(proxy);
  await delay(1000);
  // A request in flight continues at once when the proxy opens. Only the delayed piece still waits.
  proxy.turn('open');
  t.equal(await size, CONTENT.length);
  t.ok(performance.now() - began > 1400);
});
