import dns from 'node:dns';
import { once } from 'node:events';
import http from 'node:http';
import https from 'node:https';
import type { AddressInfo, LookupFunction } from 'node:net';
import { Readable } from 'node:stream';
import t, { type Test } from 'tap';
import { createClient, type TakemarkError } from '../../src/client/index.js';
import { setUp } from '../cli/bench.js';
import { makeTlsIdentity } from '../fixtures/tls.js';
import { ServiceDouble } from './service-double.js';

const KEY = 'tmk_key';

async function plainService(t: Test): Promise<ServiceDouble> {
  const service = await new ServiceDouble().start();
  t.teardown(() => service.stop());
  return service;
}

/** Speaks TLS and answers each path with one JSON body, or a redirect to a text. */
async function secureService(t: Test, answers: Readonly<Record<string, object | string>>) {
  const { cert, key } = makeTlsIdentity();
  const seen: string[] = [];
  const server = https.createServer({ cert, key }, (request, response) => {
    const path = new URL(request.url ?? '/', 'https://double').pathname;
    seen.push(path);
    const answer = answers[path] ?? {};
    request.resume().on('end', () => {
      if (typeof answer === 'string') response.writeHead(302, { location: answer }).end();
      else response.end(JSON.stringify(answer));
    });
  });
  server.on('tlsClientError', () => undefined);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  return { cert, seen, url: `https://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

const preferringV6: LookupFunction = (_hostname, { all }, callback) => {
  if (all === true) callback(null, [{ address: '::1', family: 6 }]);
  else callback(null, '::1', 6);
};

async function failure(call: Promise<unknown>): Promise<TakemarkError> {
  return call.then(
    () => {
      throw new Error('it succeeded');
    },
    (error: TakemarkError) => error,
  );
}

t.test('a key leaves this machine over TLS alone', async (t) => {
  for (const host of [
    'partner.example',
    '127.0.0.1.example',
    'localhost.example',
    '0.0.0.0',
    '[::]',
    '10.0.0.1',
    '[::ffff:10.0.0.1]',
    '128.0.0.1',
  ]) {
    t.throws(
      () => createClient({ baseUrl: `http://${host}:8080`, apiKey: KEY }),
      /use an https address, or allowPlainHttp/,
      host,
    );
    createClient({ baseUrl: `http://${host}:8080`, apiKey: KEY, allowPlainHttp: true }).close();
    createClient({ baseUrl: `https://${host}:8080`, apiKey: KEY }).close();
    // Without a key there is nothing to keep.
    createClient({ baseUrl: `http://${host}:8080` }).close();
  }
  for (const host of ['127.0.0.1', '127.255.0.9', '127.1', 'localhost', 'LOCALHOST', '[::1]'])
    createClient({ baseUrl: `http://${host}:8080`, apiKey: KEY }).close();
});

t.test('a key goes to 127.0.0.1 for localhost when another program listens on ::1', async (t) => {
  const service = await plainService(t);
  const { port } = new URL(service.url);
  const impostor = http.createServer((_request, response) => response.end('{}'));
  let calls = 0;
  impostor.on('connection', () => (calls += 1));
  impostor.listen(Number(port), '::1');
  // On a machine without IPv6 no program can listen there.
  await once(impostor, 'listening').catch(() => undefined);
  t.teardown(() => impostor.close());
  // As on a system that prefers ::1 for the name.
  t.intercept(dns, 'lookup', { value: preferringV6 });
  service.on('/v1/partner/usage', () => ({ status: 404, body: { code: 'not_found', error: 'none' } }));
  for (const agent of [undefined, new http.Agent()]) {
    const client = createClient({
      baseUrl: `http://localhost:${port}`,
      apiKey: KEY,
      ...(agent === undefined ? {} : { agent }),
    });
    t.match(await failure(client.readUsage()), { status: 404 });
    client.close();
    agent?.destroy();
  }
  t.strictSame(
    service.seen.map(({ headers }) => [headers.host, headers['x-api-key']]),
    Array.from({ length: 2 }, () => [`localhost:${port}`, KEY]),
  );
  t.equal(calls, 0);
});

t.test('audio goes to no address that is less protected than the service', async (t) => {
  const plain = await plainService(t);
  const slot = (url: string) => ({
    uploadId: 'upl_1',
    url,
    fields: { policy: 'p', signature: 's' },
    maxBytes: 1000,
    expiresAt: 2_000_000_000,
  });
  const downgrading = await secureService(t, {
    '/v1/uploads': slot(`${plain.url}/uploads/upl_1`),
    '/v1/download': `${plain.url}/app.dmg`,
  });
  for (const allowPlainHttp of [false, true]) {
    const client = createClient({
      baseUrl: downgrading.url,
      apiKey: KEY,
      ca: downgrading.cert,
      allowPlainHttp,
    });
    t.match(await failure(client.verifyFile(Readable.from([Buffer.from('audio')]))), {
      code: 'bad_response',
      message: /less protected than the service/,
    });
    t.match(await failure(client.download({ product: 'p', platform: 'm' })), { code: 'bad_response' });
    client.close();
  }
  t.strictSame(downgrading.seen, ['/v1/uploads', '/v1/download', '/v1/uploads', '/v1/download']);
  t.equal(plain.seen.length, 0, 'nothing was sent there');

  // 0.0.0.0 is this machine too, and not one of the names that are taken for it.
  const elsewhere = plain.url.replace('127.0.0.1', '0.0.0.0');
  plain.on('/v1/uploads', () => ({ status: 201, body: slot(`${elsewhere}/uploads/upl_1`) }));
  const client = createClient({ baseUrl: plain.url, apiKey: KEY });
  t.match(
    await failure(client.verifyFile(Readable.from([Buffer.from('audio')]))),
    { code: 'bad_response' },
    'nor from this machine to another one',
  );
  client.close();
  t.equal(plain.requests('/uploads').length, 0);
  const trusting = createClient({ baseUrl: elsewhere, apiKey: KEY, allowPlainHttp: true });
  t.match(await trusting.verifyFile(Readable.from([Buffer.from('audio')])), { verdict: 'valid' });
  trusting.close();
});

t.test("an authority of one's own vouches for a service", async (t) => {
  const service = await secureService(t, { '/v1/health': { ok: true } });
  const doubtful = createClient({ baseUrl: service.url, retry: { maxAttempts: 1 } });
  t.match(await failure(doubtful.health()), { code: 'tls_failed' });
  for (const ca of [service.cert, Buffer.from(service.cert)]) {
    const client = createClient({ baseUrl: service.url, ca });
    t.match(await client.health(), { ok: true });
    client.close();
  }
  const other = createClient({ baseUrl: service.url, ca: makeTlsIdentity().cert, retry: { maxAttempts: 1 } });
  t.match(await failure(other.health()), { code: 'tls_failed' });
  for (const client of [doubtful, other]) client.close();
});

t.test('the command line says what is wrong with an address, and how to allow it', async (t) => {
  const here = await setUp(t);
  const [url, operatorUrl] = [here.service.url, here.operator.url].map((address) =>
    address.replace('127.0.0.1', '0.0.0.0'),
  );
  const song = await here.file('song.wav');
  for (const words of [
    ['verify', song],
    ['verify', song, song, '--format', 'csv'],
    ['keys', 'list'],
    ['operator', 'plan', 'list'],
  ]) {
    const { takemark, service, operator } = await setUp(t, { url: url!, operatorUrl: operatorUrl! });
    t.match(
      await takemark(...words),
      {
        code: 2,
        out: '',
        err: /plain http to http:\/\/0\.0\.0\.0:\d+ would expose the secret: use an https address \(TAKEMARK_URL, TAKEMARK_OPERATOR_URL\), or --allow-plain-http/,
      },
      words.join(' '),
    );
    t.equal(service.seen.length + operator.calls.length, 0);
  }
  t.equal(here.service.seen.length + here.operator.calls.length, 0, 'nothing was sent');
  const allowed = await setUp(t, { url: url!, operatorUrl: operatorUrl! });
  here.service.on('/v1/uploads', () => ({
    status: 201,
    body: {
      uploadId: 'upl_1',
      url: `${url}/uploads/upl_1`,
      fields: {},
      maxBytes: 100_000,
      expiresAt: 2_000_000_000,
    },
  }));
  t.match(await allowed.takemark('verify', song, '--allow-plain-http'), { code: 0 });
  t.match(
    await (await setUp(t, { url: url!, allowPlainHttp: true })).takemark('verify', song),
    { code: 0 },
    'the variable does the same',
  );

  const secure = await secureService(t, { '/v1/partner/keys': { keys: [] } });
  t.match(await (await setUp(t, { url: secure.url })).takemark('keys', 'list'), {
    code: 3,
    err: /the TLS connection failed/,
  });
  const ca = await here.file('ca.pem', Buffer.from(secure.cert));
  t.match(await (await setUp(t, { url: secure.url, ca })).takemark('keys', 'list'), { code: 0, err: '' });
  t.match(await (await setUp(t, { url: secure.url, ca: `${ca}.absent` })).takemark('keys', 'list'), {
    code: 2,
    err: /TAKEMARK_CA cannot be read/,
  });
});
