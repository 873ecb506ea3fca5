import { once } from 'node:events';
import http from 'node:http';
import https from 'node:https';
import { type AddressInfo, connect } from 'node:net';
import { Readable } from 'node:stream';
import t from 'tap';
import { z } from 'zod';
import {
  CLIENT_VERSION,
  createClient,
  type DeprecationNotice,
  type Exchange,
} from '../../src/client/index.js';
import type { OpenRoute } from '../../src/service/contract/route.js';
import { DEFAULT_LIMITS } from '../../src/service/http/exchange.js';
import { json } from '../../src/service/http/response/response.js';
import { createListener } from '../../src/service/http/server/listener.js';
import { setUp } from '../cli/bench.js';
import { wav } from '../fixtures/wav.js';
import { ids, MemoryReports } from '../http/doubles.js';
import { ServiceDouble } from './service-double.js';

async function start(t: { teardown(end: () => Promise<void>): void }): Promise<ServiceDouble> {
  const service = await new ServiceDouble().start();
  t.teardown(() => service.stop());
  return service;
}

t.test(
  'a dummy operation that is deprecated is seen on the server, in the client and on the command line',
  async (t) => {
    const [since, sunset] = ['2026-02-01', '2026-09-01'].map(
      (text) => Date.parse(`${text}T00:00:00Z`) / 1000,
    ) as [number, number];
    const guide = 'https://docs.example.com/move';
    const health = {
      ok: true,
      version: '1',
      commit: 'c',
      deployedAt: 1,
      environment: 'beta',
      contract: '3.0.0',
    };
    const route: OpenRoute = {
      listener: 'partner',
      group: 'System',
      summary: 'A dummy in the place of an operation',
      auth: 'public',
      noStore: false,
      method: 'GET',
      path: '/v1/health',
      responses: {
        200: { description: 'A response', mediaTypes: ['application/json'], schema: z.looseObject({}) },
      },
      errors: { 400: ['malformed_http'], 500: [] },
      deprecation: { since, sunset, guide, inProduction: false },
    };
    const reports = new MemoryReports();
    const listener = createListener(
      'partner',
      [{ id: 'dummy', auth: 'public', route, run: () => json(200, health) }],
      DEFAULT_LIMITS,
      { ids, requestLog: reports, observer: reports },
    );
    const { port } = await listener.listen(0, '127.0.0.1');
    t.teardown(() => listener.close(100));
    const url = `http://127.0.0.1:${port}`;

    const { headers } = await fetch(`${url}/v1/health`);
    t.equal(headers.get('deprecation'), `@${since}`);
    t.equal(headers.get('sunset'), 'Tue, 01 Sep 2026 00:00:00 GMT');

    const notices: DeprecationNotice[] = [];
    const client = createClient({ baseUrl: url, onDeprecation: (notice) => notices.push(notice) });
    t.teardown(() => client.close());
    await client.health();
    t.strictSame(notices, [{ method: 'GET', path: '/v1/health', since, sunset, guide }]);

    const { takemark } = await setUp(t, { url });
    t.match(await takemark('health'), {
      code: 0,
      err: [
        'takemark: GET /v1/health, or a part of it, is deprecated by the service;',
        `it may be removed after 2026-09-01T00:00:00Z. Update takemark, see ${guide}\n`,
      ].join(' '),
    });
  },
);

t.test('a batch reports one end once, and foreign text does not control the terminal', async (t) => {
  const { service, takemark, file } = await setUp(t);
  const headers = {
    sunset: 'Tue, 01 Sep 2026 00:00:00 GMT',
    link: '<https://a.example/\u009b31m>; rel="deprecation"',
  };
  service.on('/v1/verifications', () => ({ status: 200, headers, body: service.verdict }));
  const { err } = await takemark('verify', await file('a.wav'), await file('b.wav'));
  t.equal(err.match(/deprecated/g)?.length, 1);
  t.match(err, /a\.example\/\\u\{9b\}31m/);
  t.notMatch(err, /\u009b/);
});

t.test('a refused download reports an end too', async (t) => {
  const service = await start(t);
  const notices: DeprecationNotice[] = [];
  const client = createClient({
    baseUrl: service.url,
    apiKey: 'tmk_key',
    onDeprecation: (notice) => notices.push(notice),
  });
  t.teardown(() => client.close());
  service.queue('/v1/proofs/prf_1/asset', {
    status: 404,
    body: { error: 'None.', code: 'not_found' },
    headers: { deprecation: '@5' },
  });
  await t.rejects(client.readAsset('prf_1'), { code: 'not_found' });
  t.strictSame(notices, [{ method: 'GET', path: '/v1/proofs/prf_1/asset', since: 5 }]);
});

t.test('a logger gets every attempt, without key or body', async (t) => {
  const service = await start(t);
  const seen: Exchange[] = [];
  const client = createClient({
    baseUrl: service.url,
    apiKey: 'tmk_secret',
    retry: { baseDelayMs: 1 },
    onExchange: (exchange) => void seen.push(exchange),
  });
  t.teardown(() => client.close());
  service.queue('/v1/uploads', { status: 503, body: { error: 'Full.', code: 'unavailable' } });
  await client.verifyFile(Readable.from([wav(1000)]));
  await client.verifyFile(wav(1000));
  t.match(seen, [
    { method: 'POST', path: '/v1/uploads', status: 503, code: 'unavailable', requestId: 'rq_1' },
    { method: 'POST', path: '/v1/uploads', status: 201, requestId: 'rq_2' },
    { method: 'POST', path: '/uploads/upl_1', status: 201 },
    { method: 'POST', path: '/v1/verify', status: 200 },
    { method: 'POST', path: '/v1/verifications', status: 200 },
  ]);
  t.ok(seen.every(({ durationMs }) => durationMs > 0));
  t.notMatch(JSON.stringify(seen), /tmk_secret|RIFF/);
  seen.length = 0;
  service.queue('/v1/proofs/prf_1', { status: 404, body: { error: 'None.', code: 'not_found' } });
  await t.rejects(client.readProof('prf_1'), { code: 'not_found' });
  const abort = new AbortController();
  service.queue('/v1/partner/usage', { status: 200, hang: true });
  const late = client.readUsage({ signal: abort.signal });
  setTimeout(() => abort.abort(new Error('enough')), 50);
  await t.rejects(late, { message: 'enough' });
  service.queue('/v1/proofs/prf_1/asset', { status: 200, body: Buffer.from('abc') });
  for await (const _ of (await client.readAsset('prf_1')).body);
  t.match(seen, [
    { path: '/v1/proofs/prf_1', status: 404, code: 'not_found' },
    { path: '/v1/partner/usage', code: 'aborted' },
    { path: '/v1/proofs/prf_1/asset', status: 200 },
  ]);
});

t.test('a hook that throws hides no response', async (t) => {
  const service = await start(t);
  const fail = () => {
    throw new Error('the hook');
  };
  const client = createClient({ baseUrl: service.url, onExchange: fail, onDeprecation: fail });
  t.teardown(() => client.close());
  service.queue('/v1/health', { status: 200, body: { ok: true }, headers: { deprecation: '@1' } });
  t.match(await client.health(), { ok: true });
  const late = createClient({ baseUrl: service.url, onExchange: async () => fail() });
  t.teardown(() => late.close());
  t.match(await late.health(), { ok: true }, 'nor one that rejects');
});

t.test('an agent of another protocol is reported in words', async (t) => {
  const service = await start(t);
  const codes: (string | undefined)[] = [];
  const client = createClient({
    baseUrl: service.url,
    agent: new https.Agent(),
    retry: { maxAttempts: 1 },
    onExchange: ({ code }) => codes.push(code),
  });
  t.teardown(() => client.close());
  await t.rejects(client.health(), { code: 'connection_failed', message: /the agent is for https:/ });
  t.strictSame(codes, ['connection_failed']);
});

t.test('the client says who it is, and who calls', async (t) => {
  const service = await start(t);
  const agentOf = async (options: { readonly userAgent?: string }) => {
    const client = createClient({ baseUrl: service.url, ...options });
    await client.health();
    client.close();
    return service.requests('/v1/health').at(-1)!.headers['user-agent'];
  };
  const own = `takemark-client/${CLIENT_VERSION} node/${process.versions.node}`;
  t.equal(await agentOf({}), own);
  t.equal(await agentOf({ userAgent: 'ingest/2.1' }), `ingest/2.1 ${own}`);
  t.throws(() => createClient({ baseUrl: service.url, userAgent: 'a\r\nb: c' }), TypeError);
  const { takemark, service: other } = await setUp(t);
  await takemark('health');
  t.equal(other.requests('/v1/health')[0]!.headers['user-agent'], `takemark-cli/1.2.3 ${own}`);
});

t.test('an agent of the caller carries every call, through a proxy for example', async (t) => {
  const service = await start(t);
  // A proxy as RFC 9110 has it: it is asked for the whole address.
  const targets: string[] = [];
  const proxy = http.createServer((request, response) => {
    targets.push(new URL(request.url ?? '').pathname);
    const onward = http.request(
      request.url ?? '',
      { method: request.method, headers: request.headers },
      (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(response);
      },
    );
    request.pipe(onward);
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  const { port } = proxy.address() as AddressInfo;
  class ProxyAgent extends http.Agent {
    override createConnection(): ReturnType<typeof connect> {
      return connect(port, '127.0.0.1');
    }
    // Node's agent calls it before a request is written.
    addRequest(request: http.ClientRequest, options: object): void {
      request.path = `${service.url}${request.path}`;
      (
        http.Agent.prototype as unknown as { addRequest(request: http.ClientRequest, options: object): void }
      ).addRequest.call(this, request, options);
    }
  }
  const agent = new ProxyAgent({ keepAlive: true });
  t.teardown(() => {
    agent.destroy();
    proxy.closeAllConnections();
    proxy.close();
  });
  const client = createClient({ baseUrl: service.url, apiKey: 'tmk_key', agent });
  t.match(await client.verifyFile(wav(1000)), { accepted: true });
  t.match(await client.verifyFile(Readable.from([wav(1000)])), { accepted: true });
  t.strictSame(targets, ['/v1/verifications', '/v1/uploads', '/uploads/upl_1', '/v1/verify']);
  client.close();
  t.match(await client.health(), { ok: true }, "closing the client leaves its caller's agent alone");
});
