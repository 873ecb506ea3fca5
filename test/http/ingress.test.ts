import { once } from 'node:events';
import { Readable } from 'node:stream';
import t from 'tap';
import { GrowingBuffer } from '../../src/service/http/body/growing-buffer.js';
import { ByteBudget } from '../../src/service/http/byte-budget.js';
import { DEFAULT_LIMITS } from '../../src/service/http/exchange.js';
import { ChunkSizes } from '../../src/service/http/response/chunk-sizes.js';
import { until } from '../fixtures/until.js';
import { KEY, sleep, startPartner } from './doubles.js';
import { ask, jsonOf, matchError, RawClient, request } from './raw-client.js';

const AUTH = { 'x-api-key': KEY };
const HEALTH = request('GET', '/v1/health');
const TRUSTED = { trustedProxies: ['127.0.0.1'] };
const chunked = (body: string): string => [...body].map((letter) => `1\r\n${letter}\r\n`).join('');

t.test('held bytes stay within their budget', async (t) => {
  const budget = new ByteBudget(1200);
  t.ok(budget.take('a', 600), 'one holder has half of it');
  t.notOk(budget.take('a', 1));
  t.ok(budget.take('b', 300), 'and leaves another half of the rest');
  t.notOk(budget.take('b', 1));
  budget.giveBack('a', 600);
  t.equal(budget.held, 300);
  const lease = budget.lease('c');
  lease.growTo(400);
  lease.growTo(300);
  t.equal(budget.held, 700, 'a lease grows and does not shrink');
  t.throws(() => lease.growTo(500), { code: 'unavailable', reason: 'ingress_full', retryAfterSeconds: 2 });
  t.equal(budget.held, 700);
  lease.end();
  lease.end();
  lease.growTo(100);
  t.equal(budget.held, 300, 'and ends once');

  const buffer = new GrowingBuffer(budget.lease('d'));
  t.throws(() => buffer.append(Buffer.alloc(500)), { code: 'unavailable' });
  const free = new GrowingBuffer();
  const bytes = Buffer.from(Array.from({ length: 5000 }, (_, i) => i & 255));
  for (const byte of bytes) free.append(Buffer.from([byte]));
  t.ok(free.bytes().equals(bytes));

  const sizes = new ChunkSizes();
  t.ok(Array.from({ length: 1000 }, () => sizes.count(1)).every(Boolean), 'a thousand pieces of any size');
  t.notOk(sizes.count(1));
  t.ok(sizes.count(64 * 1002), 'it is the mean that counts');
});

t.test('a connection ends when its caller stops amid a body that was refused', async (t) => {
  const { port, listener } = await startPartner();
  t.teardown(() => listener.close(100));
  // A short pause, after which the connection would still be kept.
  const whole = request('POST', '/v1/verify', { 'Content-Type': 'application/json', 'Content-Length': '20' });
  const client = new RawClient(port);
  t.teardown(() => client.destroy());
  await client.send(Buffer.concat([whole, Buffer.from('half')]));
  matchError(t, await client.read(), 'forbidden', 'key_missing', 'no key');
  const began = performance.now();
  client.socket.end();
  t.ok(await client.ended());
  t.ok(performance.now() - began < DEFAULT_LIMITS.keepAliveMs, 'not by the time of an idle connection');
});

t.test('an offer to upgrade is ignored, and nothing after its message is taken for a request', async (t) => {
  const { port, listener, operations } = await startPartner();
  t.teardown(() => listener.close(100));
  operations.uploads.set('upl_1', { uploadId: 'upl_1', bytes: 1, sha256: '' });
  const { partner } = operations;
  let smuggled = 0;
  const { readUsage } = partner;
  Object.assign(partner, {
    readUsage: (...given: Parameters<typeof readUsage>) => {
      smuggled += 1;
      return readUsage(...given);
    },
  });
  const json = '{"uploadId":"upl_1"}';
  const usage = request('GET', '/v1/partner/usage', AUTH).toString();
  const offer = 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAA\r\n';
  const verify = `POST /v1/verify HTTP/1.1\r\nHost: a\r\nx-api-key: ${KEY}\r\nContent-Type: application/json\r\n`;
  const withLength = (body: string): string =>
    `${verify}${offer}Content-Length: ${json.length}\r\n\r\n${body}`;
  const withChunks = `${verify}${offer}Transfer-Encoding: chunked\r\n\r\n${chunked(json)}0\r\n\r\n`;
  const slot = `POST /v1/uploads?purpose=identify HTTP/1.1\r\nHost: a\r\nx-api-key: ${KEY}\r\n${offer}`;
  const sent = async (...pieces: readonly string[]) => {
    const client = new RawClient(port);
    t.teardown(() => client.destroy());
    for (const piece of pieces) {
      await client.send(piece);
      if (pieces.length > 1) await sleep(20);
    }
    return client;
  };

  for (const [name, ...pieces] of [
    ['a length', withLength(json)],
    ['a length, byte by byte', ...withLength(json)],
    ['a length, after its head', withLength(''), json],
    ['chunks', withChunks],
    ['chunks, in pieces', withChunks.slice(0, 300), withChunks.slice(300)],
  ] as const) {
    const client = await sent(...pieces);
    const answer = await client.read();
    t.equal(answer?.status, 200, `a body with ${name}`);
    t.equal(answer?.headers.get('connection'), 'close', `${name}: the connection ends`);
    t.ok(await client.ended(), name);
  }
  const kept = await sent(`${slot}Content-Length: 0\r\n\r\n`);
  t.equal((await kept.read())?.status, 201, 'a length of zero means no body');
  await kept.send(usage);
  t.equal((await kept.read())?.status, 200, 'what comes after the answer is the next request');
  kept.destroy();
  t.equal(smuggled, 1);
  smuggled = 0;

  for (const [name, message] of [
    ['no body', `${slot}\r\n`],
    ['a length of nothing', `${slot}Content-Length: 0\r\n\r\n`],
    ['a body with a length', withLength(json)],
    ['a body longer than its length', withLength(`${json} `)],
  ] as const) {
    const client = await sent(`${message}${usage}`);
    matchError(t, await client.read(), 'invalid_request', 'malformed_http', `a request after ${name}`);
    t.ok(await client.ended(), name);
  }
  for (const [name, ...pieces] of [
    ['chunks', `${withChunks}${usage}`],
    ['chunks, in pieces', withChunks.slice(0, 300), `${withChunks.slice(300)}${usage}`],
    ['chunks, and the rest of the slice', `${withChunks}${'x'.repeat(4096)}\r\n\r\n${usage}`],
    ['a length, after its head', withLength(''), `${json}${usage}`],
    ['a length, and once more', withLength(json), usage],
  ] as const) {
    const client = await sent(...pieces);
    t.equal((await client.read())?.status, 200, name);
    t.equal(await client.read(), undefined, `${name}: one answer, and the end`);
  }
  // After a chunked body the parser gets more than one message at once. It drops everything after the offer.
  const plain = `${verify}Transfer-Encoding: chunked\r\n\r\n${chunked(json)}0\r\n\r\n`;
  const behind = await sent(`${plain}${slot}\r\n${'x'.repeat(8192)}\r\n\r\n${usage}`);
  t.equal((await behind.read())?.status, 200);
  const last = await behind.read();
  t.equal(last?.headers.get('connection'), 'close', 'answered, or refused, for the last time');
  t.equal(await behind.read(), undefined, 'an offer amid a slice is the last of its connection');
  const shorter = await sent(withLength(json.slice(0, -1)));
  shorter.socket.end();
  t.not((await shorter.read())?.status, 200, 'a body shorter than its length is not complete');
  t.equal(smuggled, 0, 'nothing after an offer was executed');
});

t.test('requests of one connection are taken one at a time', async (t) => {
  const { port, listener, operations, reports } = await startPartner();
  t.teardown(() => listener.close(100));
  const { partner } = operations;
  let open = 0;
  let most = 0;
  let begun = 0;
  let release: (() => void) | undefined;
  const gate = new Promise<void>((resolve) => (release = resolve));
  const { readUsage } = partner;
  Object.assign(partner, {
    readUsage: async (...given: Parameters<typeof readUsage>) => {
      begun += 1;
      most = Math.max(most, (open += 1));
      await gate;
      await sleep(1);
      open -= 1;
      return readUsage(...given);
    },
  });
  const usage = request('GET', '/v1/partner/usage', AUTH);
  const client = new RawClient(port);
  const rounds = 300;
  await client.send(
    Buffer.concat(
      Array.from({ length: rounds }, (_, i) =>
        i % 3 === 0
          ? usage
          : i % 3 === 1
            ? HEALTH
            : Buffer.concat([Buffer.from('\r\n'), request('POST', '/v1/uploads?purpose=identify', AUTH)]),
      ),
    ),
  );
  t.ok(await until(() => begun === 1));
  await sleep(50);
  t.equal(begun, 1, 'later ones are not begun');
  release!();
  const statuses = [];
  for (let i = 0; i < rounds; i += 1) statuses.push((await client.read())?.status);
  t.strictSame(
    statuses,
    Array.from({ length: rounds }, (_, i) => (i % 3 === 2 ? 201 : 200)),
    'all are answered, in their order',
  );
  t.equal(most, 1, 'one at a time');
  client.destroy();

  const halved = new RawClient(port);
  await halved.send(Buffer.concat([usage, HEALTH, request('GET', '/nothing')]));
  halved.socket.end();
  t.strictSame(
    [(await halved.read())?.status, (await halved.read())?.status, (await halved.read())?.status],
    [200, 200, 404],
    'so is a client that has ended its side',
  );
  t.ok(await halved.ended());

  // A head that arrives in pieces of every size, after another request.
  for (let cut = 1; cut < HEALTH.length; cut += 1) {
    const pieces = new RawClient(port);
    await pieces.send(Buffer.concat([HEALTH, HEALTH.subarray(0, cut)]));
    await pieces.send(HEALTH.subarray(cut));
    t.strictSame([(await pieces.read())?.status, (await pieces.read())?.status], [200, 200], `cut at ${cut}`);
    pieces.destroy();
  }
  const behind = new RawClient(port);
  const body = `POST /v1/verify HTTP/1.1\r\nHost: a\r\nx-api-key: ${KEY}\r\nContent-Type: application/json\r\n`;
  operations.uploads.set('upl_1', { uploadId: 'upl_1', bytes: 1, sha256: '' });
  const json = '{"uploadId":"upl_1"}';
  await behind.send(
    `${body}Transfer-Encoding: chunked\r\n\r\n${chunked(json)}0\r\n\r\n${body}Content-Length: ${json.length}\r\n\r\n${json}${body}Transfer-Encoding: chunked\r\n\r\n14\r\n${json}\r\n0\r\nX: y\r\n\r\n${HEALTH.toString()}`,
  );
  for (const name of ['chunks', 'a length', 'a trailer', 'nothing'])
    t.equal((await behind.read())?.status, 200, `a body with ${name}`);
  behind.destroy();

  const upgrade = request('GET', '/v1/health', { Connection: 'keep-alive, Upgrade', Upgrade: 'websocket' });
  const upgrading = new RawClient(port);
  await upgrading.send(Buffer.concat([upgrade, usage]));
  matchError(
    t,
    await upgrading.read(),
    'invalid_request',
    'malformed_http',
    'something after a request to upgrade',
  );
  t.ok(await upgrading.ended());
  t.equal((await ask(port, upgrade))?.status, 200, 'alone it is answered as what it is');
  t.ok(await until(() => reports.records.length > 0));
  for (const type of [
    "multipart/form-data; boundary*=utf-8''A; boundary=A",
    'multipart/form-data; boundary=A; boundary*0=A',
  ]) {
    matchError(
      t,
      await ask(port, request('POST', '/uploads/upl_1', { 'Content-Type': type, 'Content-Length': '10' })),
      'invalid_request',
      'form_malformed',
      type,
    );
  }
});

t.test('a request is not begun when its answer is not read, and each begun one is logged', async (t) => {
  const { port, listener, operations, reports } = await startPartner();
  t.teardown(() => listener.close(100));
  const streams: Readable[] = [];
  let begun = 0;
  const logged = () => reports.records.filter(({ method }) => method === 'DELETE').length;
  const endless = () =>
    new Readable({
      read() {
        this.push(Buffer.alloc(65_536));
      },
    });
  Object.assign(operations.partner, {
    readAsset: async () => ({
      bytes: 1e12,
      sha256: '',
      fileName: 'take.wav',
      mediaType: 'audio/wav',
      read: async () => (streams.push(endless()), streams.at(-1)!),
    }),
    eraseProof: async (_caller: unknown, { proofId }: { readonly proofId: string }) => {
      begun += 1;
      await sleep(20);
      return { proofId, outcome: 'erased', erasedAt: 1 };
    },
  });
  const asset = request('GET', '/v1/proofs/prf_1/asset', AUTH);
  const erase = request('DELETE', '/v1/proofs/prf_1', AUTH);
  const unread = new RawClient(port);
  unread.socket.pause();
  await unread.send(Buffer.concat([asset, erase, ...Array.from({ length: 50 }, () => asset)]));
  t.ok(await until(() => streams.length > 0));
  await sleep(200);
  unread.socket.resetAndDestroy();
  t.ok(
    await until(() => streams.every(({ destroyed }) => destroyed)),
    'every stream is closed with the connection',
  );
  t.ok(await until(() => reports.records.length > 0));
  await sleep(100);
  t.ok(await until(() => logged() === begun), 'an erasure is logged, or was not begun');
  t.ok(streams.length <= 4, 'few were open');

  const gone = new RawClient(port);
  const earlier = begun;
  await gone.send(erase);
  await until(() => begun > earlier);
  gone.socket.resetAndDestroy();
  t.ok(await until(() => logged() === begun), 'a caller that leaves does not take the line with it');
  await sleep(50);
  t.equal(logged(), begun, 'each erasure has one line');
  t.strictSame(reports.faults, [], 'none of it is a fault');
});

t.test('a body in crumbs is refused', async (t) => {
  const budget = new ByteBudget(8_000_000);
  const { port, listener } = await startPartner({ drainMs: 60_000 }, { budget });
  t.teardown(() => listener.close(100));
  const crumbs = chunked('x'.repeat(5000));
  const cases: [string, string][] = [
    [
      'of a form',
      'POST /uploads/upl_1 HTTP/1.1\r\nHost: a\r\nContent-Type: multipart/form-data; boundary=X\r\nTransfer-Encoding: chunked\r\n\r\n',
    ],
    [
      'of JSON',
      `POST /v1/verify HTTP/1.1\r\nHost: a\r\nx-api-key: ${KEY}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`,
    ],
  ];
  for (const [name, head] of cases) {
    const client = new RawClient(port);
    await client.send(
      `${head}${name === 'of a form' ? chunked('--X\r\nContent-Disposition: form-data; name="a"\r\n\r\n') : ''}${crumbs}`,
    );
    matchError(t, await client.read(), 'invalid_request', 'chunks_too_small', name);
    void client.send(crumbs);
    t.ok(await client.ended(), `${name}: ends the connection`);
    client.destroy();
  }
  const refused = new RawClient(port);
  await refused.send(`POST /v1/verify HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n`);
  matchError(t, await refused.read(), 'forbidden', 'key_missing', 'a refusal');
  void refused.send(crumbs);
  t.ok(await refused.ended(30_000), 'is not followed by crumbs for long');
  t.ok(await until(() => budget.held === 0), 'nothing stays held');
});

t.test('a full connection table gives up what has waited longest', async (t) => {
  const open = async (port: number, count: number, bytes = ''): Promise<RawClient[]> => {
    const clients = [];
    for (let i = 0; i < count; i += 1) {
      const client = new RawClient(port);
      await once(client.socket, 'connect');
      if (bytes !== '') await client.send(bytes);
      clients.push(client);
    }
    return clients;
  };
  const closed = (clients: RawClient[]) =>
    clients.map(({ socket }) => socket.readableEnded || socket.destroyed);

  const full = await startPartner({ connections: 6 }, TRUSTED);
  t.teardown(() => full.listener.close(100));
  let release: (() => void) | undefined;
  Object.assign(full.operations.partner, {
    readUsage: () => new Promise<never>((_, reject) => (release = () => reject(new Error('released')))),
  });
  const busy = await open(full.port, 1, request('GET', '/v1/partner/usage', AUTH).toString());
  t.ok(await until(() => release !== undefined));
  const idle = await open(full.port, 1, HEALTH.toString());
  t.equal((await idle[0]!.read())?.status, 200);
  const silent = await open(full.port, 2);
  const trickling = await open(full.port, 2, 'GET /v1/health HTTP/1.1\r\n');
  for (let i = 0; i < 5; i += 1) t.equal((await ask(full.port, HEALTH))?.status, 200, 'a newcomer is served');
  t.ok(await until(() => closed(silent)[0]!), 'in the place of the oldest that said nothing');
  const late = [];
  for (let i = 0; i < 5; i += 1) {
    late.push(...(await open(full.port, 1, HEALTH.toString())));
    t.equal((await late.at(-1)!.read())?.status, 200);
  }
  t.ok(
    await until(() => closed([...silent, ...trickling]).every(Boolean)),
    'heads that never end give way too',
  );
  t.ok(await until(() => closed(idle)[0]!), 'then those that wait for nothing');
  t.strictSame(closed(busy), [false], 'a request that is carried out keeps its place');
  release!();
  matchError(t, await busy[0]!.read(), 'internal', undefined, 'and is answered');
  for (const client of [...busy, ...late]) client.destroy();

  const share = await startPartner({ connections: 16 });
  t.teardown(() => share.listener.close(100));
  const crowd = await open(share.port, 8);
  t.ok(
    await until(() => closed(crowd).filter(Boolean).length === 4),
    'one address has a quarter of the table',
  );
  t.strictSame(closed(crowd), [true, true, true, true, false, false, false, false], 'its own oldest go');
  t.equal((await ask(share.port, HEALTH))?.status, 200);
  for (const client of crowd) client.destroy();

  const pressed = await startPartner({ connections: 8, firstByteMs: 100, checkMs: 20 }, TRUSTED);
  t.teardown(() => pressed.listener.close(100));
  const few = await open(pressed.port, 4);
  await sleep(300);
  t.ok(
    closed(few).every((is) => !is),
    'while there is room, silence has its time',
  );
  const more = await open(pressed.port, 3);
  t.ok(await until(() => closed([...few, ...more]).some(Boolean)), 'and has little when there is hardly any');
  matchError(t, await few[0]!.read(), 'timeout', 'client_too_slow', 'with the reason');
  for (const client of [...few, ...more]) client.destroy();
});

t.test('a response is given up when it is not read', async (t) => {
  const budget = new ByteBudget(4_000_000);
  const { port, listener } = await startPartner({}, { budget });
  t.teardown(() => listener.close(100));
  const document = request('GET', '/v1/openapi.json');
  const clients = Array.from({ length: 40 }, () => new RawClient(port));
  for (const client of clients) {
    client.socket.pause();
    await client.send(Buffer.concat(Array.from({ length: 100 }, () => document)));
  }
  t.ok(
    await until(
      () => clients.some(({ socket }) => socket.destroyed || socket.readableEnded) || budget.held > 1_000_000,
    ),
  );
  let held = 0;
  for (let i = 0; i < 20; i += 1) {
    held = Math.max(held, budget.held);
    await sleep(20);
  }
  t.ok(held > 0 && held <= 4_000_000, 'are held within the budget');
  t.equal(jsonOf(await ask(port, HEALTH))['ok'], true, 'others are served');
  for (const client of clients) client.destroy();
  t.ok(await until(() => budget.held === 0), 'and nothing stays held');
});
