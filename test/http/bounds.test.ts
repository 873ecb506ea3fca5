/** Tests the bounds of what one partner may have at the same time, and of what it holds. */
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import t from 'tap';
import { ByteBudget } from '../../src/service/http/byte-budget.js';
import { DEFAULT_LIMITS, type Exchange, MessageEnd } from '../../src/service/http/exchange.js';
import { ReaderPace } from '../../src/service/http/response/reader-pace.js';
import { send } from '../../src/service/http/response/response.js';
import { mainThreadLoad } from '../../src/service/http/server/running-calls.js';
import { until } from '../fixtures/until.js';
import { KEY, OTHER_KEY, sleep, startPartner } from './doubles.js';
import { ask, matchError, RawClient, request } from './raw-client.js';

const PIECE_BYTES = 65_536;
/** The number of pieces of a file. It is larger than the buffers of a connection. */
const FILE_PIECES = 1024;
const assetOf = (key: string, method = 'GET', headers = {}) =>
  request(method, '/v1/proofs/prf_1/asset', { 'x-api-key': key, ...headers });
const verifyOf = (key: string) =>
  request(
    'POST',
    '/v1/verify',
    { 'x-api-key': key, 'Content-Type': 'application/json' },
    '{"uploadId":"upl_1"}',
  );

function* pieces(): Generator<Buffer> {
  const piece = Buffer.alloc(PIECE_BYTES);
  for (let i = 0; i < FILE_PIECES; i += 1) yield piece;
}

/** Starts a listener whose asset is larger than the buffers of a connection. */
async function startDownloads(...parts: Parameters<typeof startPartner>) {
  const started = await startPartner(...parts);
  const opened: Readable[] = [];
  const { readAsset } = started.operations.partner;
  Object.assign(started.operations.partner, {
    readAsset: async (...args: Parameters<typeof readAsset>) => ({
      ...(await readAsset(...args)),
      bytes: FILE_PIECES * PIECE_BYTES,
      read: async () => {
        const stream = Readable.from(pieces(), { objectMode: false });
        opened.push(stream);
        return stream;
      },
    }),
  });
  return { ...started, opened };
}

/** Asks for the asset and reads only the head of the response. */
async function unreadDownload(port: number, key: string): Promise<RawClient> {
  const client = new RawClient(port);
  const head = once(client.socket, 'data');
  await client.send(assetOf(key));
  await head;
  client.socket.pause();
  return client;
}

t.test('bytes count for two holders, and once in total', async (t) => {
  const budget = new ByteBudget(1200);
  t.ok(budget.take('partner', 400, 'address'));
  t.equal(budget.held, 400);
  t.notOk(budget.take('other', 300, 'address'), 'an address of two partners has one share');
  t.notOk(budget.take('partner', 300, 'elsewhere'), 'a partner of two addresses has one share');
  t.ok(budget.take('other', 300, 'elsewhere'));
  t.ok(budget.take('same', 100, 'same'), 'one holder may be both');
  budget.giveBack('same', 100, 'same');
  budget.giveBack('partner', 400, 'address');
  budget.giveBack('other', 300, 'elsewhere');
  t.equal(budget.held, 0);
  t.ok(budget.take('partner', 600, 'address'));
});

t.test('callers without a key that do not read are disconnected before bytes are refused', async (t) => {
  const budget = new ByteBudget(1200);
  const strangers = Array.from({ length: 5 }, (_, n) => `stranger ${n}`);
  for (const stranger of strangers) t.ok(budget.take(stranger, 100));
  budget.evictBy(() => {
    const stranger = strangers.shift();
    if (stranger !== undefined) budget.giveBack(stranger, 100);
    return stranger !== undefined;
  });
  t.notOk(budget.takeFree('partner', 400));
  t.notOk(budget.take('partner', 601), 'more than a share');
  t.equal(strangers.length, 5, 'of no use');
  const lease = budget.lease('address');
  lease.holdStream(400);
  t.strictSame([strangers.length, budget.held], [4, 800], 'no more than are needed');
  lease.end();
  t.ok(budget.take('credential', 450));
  t.equal(strangers.length, 3);
  const body = budget.lease('address');
  body.growTo(300);
  t.strictSame([strangers.length, budget.held], [1, 850]);
  t.throws(
    () => body.growTo(700),
    { code: 'unavailable', reason: 'ingress_full' },
    'nothing of that size is left',
  );
});

t.test('a public response that is not read gives way to a partner, and a download does not', async (t) => {
  const budget = new ByteBudget(8_000_000);
  const { port, listener, opened } = await startDownloads({}, { budget });
  t.teardown(() => listener.close(0));
  const download = await unreadDownload(port, KEY);
  const documents = Buffer.concat(Array.from({ length: 100 }, () => request('GET', '/v1/openapi.json')));
  const strangers = Array.from({ length: 6 }, () => new RawClient(port));
  t.teardown(() => [download, ...strangers].forEach((client) => client.destroy()));
  for (const client of strangers) {
    client.socket.pause();
    await client.send(documents);
  }
  t.ok(await until(() => budget.held > 1_500_000), 'public responses are held');
  const lease = budget.lease('another address');
  const { held } = budget;
  t.doesNotThrow(() => lease.holdStream(3_400_000));
  t.ok(budget.held < held + 3_400_000, 'some of them were given up');
  await sleep(50);
  t.equal(opened[0]!.destroyed, false, 'the download of a partner was not');
  lease.end();
});

t.test('a lease ends what was begun under it, also when it has ended already', async (t) => {
  const lease = new ByteBudget(1200).lease('address');
  let ended = 0;
  lease.atEnd(() => (ended += 1));
  t.equal(ended, 0);
  lease.end();
  lease.end();
  t.equal(ended, 1);
  lease.atEnd(() => (ended += 1));
  t.equal(ended, 2);
});

t.test(
  'a partner has a limit of downloads at the same time, and other partners do not share it',
  async (t) => {
    const { port, listener, reports, opened } = await startDownloads({ downloadsOfPartner: 2 });
    t.teardown(() => listener.close(0));
    const clients = [await unreadDownload(port, KEY), await unreadDownload(port, KEY)];
    t.teardown(() => clients.forEach((client) => client.destroy()));
    const refused = await ask(port, assetOf(KEY));
    matchError(t, refused, 'rate_limited', 'concurrency_exceeded', 'a third download is refused');
    t.equal(refused!.headers.get('retry-after'), '2');
    t.equal(opened.length, 2, 'no file was opened for it');
    t.strictSame(reports.refusals, ['downloads_of_partner']);
    t.equal((await ask(port, assetOf(KEY, 'HEAD'), { head: true }))!.status, 200, 'HEAD needs no place');
    clients.push(await unreadDownload(port, OTHER_KEY));
    t.equal(opened.length, 3, 'another partner is served');

    const closed = once(opened[0]!, 'close');
    clients[0]!.destroy();
    await closed;
    t.ok(await until(() => reports.records.some(({ bytesOut }) => bytesOut > 0)), 'the download is logged');
    clients.push(await unreadDownload(port, KEY));
    t.equal(opened.length, 4, 'a download that has ended frees its place');
  },
);

t.test('the memory of a download counts for its partner until the response has ended', async (t) => {
  const budget = new ByteBudget(16 * 1_048_576);
  const { port, listener } = await startDownloads({}, { budget });
  t.teardown(() => listener.close(0));
  const client = await unreadDownload(port, KEY);
  t.ok(await until(() => budget.held > 5 * PIECE_BYTES), 'the stream and the unsent output are counted');
  client.destroy();
  t.ok(await until(() => budget.held === 0), 'a caller that leaves holds nothing');
  const small = new ByteBudget(9 * PIECE_BYTES);
  const full = await startDownloads({}, { budget: small });
  t.teardown(() => full.listener.close(0));
  const answer = await ask(full.port, assetOf(KEY));
  matchError(t, answer, 'unavailable', 'ingress_full', 'a download without room is refused');
  t.ok(await until(() => full.opened.every(({ destroyed }) => destroyed)), 'and its file is closed');
});

t.test('a download is cut when the caller does not read it', async (t) => {
  const { port, listener, opened, reports } = await startDownloads({ graceMs: 100 });
  t.teardown(() => listener.close(0));
  const client = await unreadDownload(port, KEY);
  await once(opened[0]!, 'close');
  client.socket.resume();
  t.ok(await client.ended());
  t.ok(client.unread < FILE_PIECES * PIECE_BYTES, 'the response is not complete');
  t.strictSame(reports.faults, [], 'a slow caller is not a fault of the service');
});

t.test('a piece is read when the network has taken the one before', async (t) => {
  let pulled = 0;
  const counted = async function* () {
    for (; pulled < 10; pulled += 1) yield Buffer.alloc(PIECE_BYTES);
  };
  const stream = Readable.from(counted(), { objectMode: false });
  let take: () => void = () => t.fail('nothing was written');
  let wrote: () => void = () => undefined;
  let ended = false;
  const response = {
    headersSent: false,
    destroyed: false,
    writeHead: () => undefined,
    write: (_piece: Buffer, done: () => void) => {
      take = done;
      wrote();
      return false;
    },
    end: () => (ended = true),
  } as unknown as ServerResponse;
  const exchange = {
    request: { method: 'GET' },
    response,
    limits: DEFAULT_LIMITS,
    headers: {},
    lease: new ByteBudget(Infinity).lease('address'),
    gone: new AbortController().signal,
    message: new MessageEnd(response, false, false),
    log: { bytesOut: 0 },
  } as unknown as Exchange;
  let written = new Promise<void>((resolve) => (wrote = resolve));
  const sent = send(exchange, {
    kind: 'stream',
    status: 200,
    mediaType: 'audio/wav',
    bytes: 10 * PIECE_BYTES,
    stream,
  });
  for (let piece = 1; piece <= 10; piece += 1) {
    await written;
    for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    t.ok(pulled <= piece + 1, `at most one piece is read ahead of piece ${piece}`);
    written = new Promise<void>((resolve) => (wrote = resolve));
    take();
  }
  await sent;
  t.ok(ended);
});

t.test('the pace of a reader counts waits, and a large buffer earns no more than the grace', async (t) => {
  const cut: string[] = [];
  const wait = (name: string, pace: (tooSlow: () => void) => ReaderPace) =>
    new Promise<void>((resolve) =>
      pace(() => {
        cut.push(name);
        resolve();
      }).waiting(),
    );
  const limits = { minRate: 1000, graceMs: 20 };
  await wait('unread', (tooSlow) => new ReaderPace(limits, tooSlow));
  await wait('unread after a large buffer', (tooSlow) => {
    const pace = new ReaderPace(limits, tooSlow);
    pace.waiting();
    pace.took(1_000_000_000);
    return pace;
  });
  const steady = new ReaderPace({ minRate: 1000, graceMs: 3_600_000 }, () => cut.push('steady'));
  for (let i = 0; i < 100; i += 1) {
    steady.waiting();
    steady.took(1000);
  }
  steady.waiting();
  steady.stop();
  t.strictSame(cut, ['unread', 'unread after a large buffer']);
});

t.test('a partner has an even share of the running calls while the main thread is busy', async (t) => {
  const { port, listener, operations, reports } = await startPartner({ calls: 4 }, { isBusy: () => true });
  t.teardown(() => listener.close(0));
  operations.uploads.set('upl_1', { uploadId: 'upl_1', bytes: 1, sha256: '' });
  let open: () => void = () => undefined;
  operations.verifyGate = new Promise((resolve) => (open = resolve));
  const running = Array.from({ length: 4 }, () => ask(port, verifyOf(KEY)));
  t.ok(await until(() => operations.verified.length === 4), 'a single partner has all of them');
  const { length: admitted } = operations.contract.admitted;
  const refused = await ask(port, verifyOf(KEY));
  matchError(t, refused, 'unavailable', 'concurrency_exceeded', 'one call more is refused');
  t.equal(refused!.headers.get('retry-after'), '3');
  t.ok(refused!.headers.has('x-ratelimit-remaining'));
  t.equal(operations.verified.length, 4, 'the refused call did not run');
  t.equal(operations.contract.admitted.length, admitted, 'the refused call costs nothing of the rate');
  t.strictSame(reports.refusals, ['calls_of_partner']);
  running.push(ask(port, verifyOf(OTHER_KEY)), ask(port, verifyOf(OTHER_KEY)));
  t.ok(await until(() => operations.verified.length === 6), 'another partner has its share');
  matchError(t, await ask(port, verifyOf(OTHER_KEY)), 'unavailable', 'concurrency_exceeded', 'and no more');
  open();
  t.strictSame(
    (await Promise.all(running)).map((answer) => answer!.status),
    [200, 200, 200, 200, 200, 200],
  );
  t.equal((await ask(port, verifyOf(KEY)))!.status, 200, 'a call that has ended frees its place');
});

t.test('a partner has more than an even share of the running calls while others leave theirs', async (t) => {
  const { port, listener, operations } = await startPartner({ calls: 4 }, { isBusy: () => true });
  t.teardown(() => listener.close(0));
  operations.uploads.set('upl_1', { uploadId: 'upl_1', bytes: 1, sha256: '' });
  let open: () => void = () => undefined;
  operations.verifyGate = new Promise((resolve) => (open = resolve));
  const running = [KEY, OTHER_KEY, OTHER_KEY, OTHER_KEY].map((key) => ask(port, verifyOf(key)));
  t.ok(await until(() => operations.verified.length === 4), 'three of four calls are of one partner');
  matchError(t, await ask(port, verifyOf(OTHER_KEY)), 'unavailable', 'concurrency_exceeded', 'a fifth call');
  running.push(ask(port, verifyOf(KEY)));
  t.ok(await until(() => operations.verified.length === 5), 'the other one gets its share all the same');
  open();
  t.ok((await Promise.all(running)).every((answer) => answer!.status === 200));
});

t.test('no call is refused for the number of running calls while the main thread is not busy', async (t) => {
  const { port, listener, operations } = await startPartner({ calls: 1 }, { isBusy: () => false });
  t.teardown(() => listener.close(0));
  operations.uploads.set('upl_1', { uploadId: 'upl_1', bytes: 1, sha256: '' });
  let open: () => void = () => undefined;
  operations.verifyGate = new Promise((resolve) => (open = resolve));
  const running = Array.from({ length: 8 }, () => ask(port, verifyOf(KEY)));
  t.ok(await until(() => operations.verified.length === 8));
  open();
  t.ok((await Promise.all(running)).every((answer) => answer!.status === 200));
});

t.test('a call that was given up counts while its work runs', async (t) => {
  const { port, listener, operations } = await startPartner(
    { calls: 1, callMs: 500 },
    { isBusy: () => true },
  );
  t.teardown(() => listener.close(0));
  operations.uploads.set('upl_1', { uploadId: 'upl_1', bytes: 1, sha256: '' });
  let open: () => void = () => undefined;
  operations.verifyGate = new Promise((resolve) => (open = resolve));
  matchError(t, await ask(port, verifyOf(KEY)), 'unavailable', 'store_unavailable', 'given up');
  matchError(t, await ask(port, verifyOf(KEY)), 'unavailable', 'concurrency_exceeded', 'its work runs');
  open();
  operations.verifyGate = undefined;
  t.equal((await ask(port, verifyOf(KEY)))!.status, 200);
});

t.test('the main thread is busy after a window of work, and not after a burst on an idle one', async (t) => {
  const isBusy = mainThreadLoad();
  t.notOk(isBusy(), 'a new process is not busy');
  const work = (ms: number): void => {
    for (const until = performance.now() + ms; performance.now() < until; );
  };
  while (!isBusy()) {
    work(50);
    await new Promise((resolve) => setImmediate(resolve));
  }
  while (isBusy()) await sleep(100);
  work(10);
  t.notOk(isBusy());
});
