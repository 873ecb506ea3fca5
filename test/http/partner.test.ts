import { Agent, request as httpRequest, type IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import t from 'tap';
import type { Route } from '../../src/service/contract/route.js';
import { ROUTES } from '../../src/service/contract/routes/routes.js';
import { SCOPES } from '../../src/service/domain/partner.js';
import { toOriginForm } from '../../src/service/http/server/http-grammar.js';
import { until } from '../fixtures/until.js';
import { KEY, sleep, startPartner } from './doubles.js';
import { ask, jsonOf, matchError, RawClient, request } from './raw-client.js';

const AUTH = { 'x-api-key': KEY };
const JSON_AUTH = { ...AUTH, 'Content-Type': 'application/json' };

t.test('health answers without a key, and HEAD like GET', async (t) => {
  const { port, listener } = await startPartner();
  t.teardown(() => listener.close(100));

  const health = await ask(port, request('GET', '/v1/health?probe=1'));
  t.equal(health!.status, 200);
  t.strictSame(jsonOf(health), {
    ok: true,
    version: '1.0.0',
    commit: 'abc',
    deployedAt: 1,
    environment: 'production',
    contract: '3.0.0',
  });
  t.equal(
    health!.headers.get('x-request-id'),
    health!.headers.get('x-gateway-id'),
    'a second header name carries the same id',
  );

  const head = new RawClient(port, { head: true });
  await head.send(request('HEAD', '/v1/health'));
  const answer = await head.read();
  t.equal(
    answer!.headers.get('content-length'),
    health!.headers.get('content-length'),
    'HEAD answers like GET',
  );
  t.equal(head.unread, 0, 'without a body');
  head.destroy();
});

t.test('a slot is of the purpose in the body or the query', async (t) => {
  const { port, listener } = await startPartner();
  t.teardown(() => listener.close(100));

  for (const [name, bytes] of [
    ['body', request('POST', '/v1/uploads', JSON_AUTH, '{"purpose":"identify"}')],
    ['query', request('POST', '/v1/uploads?purpose=identify', AUTH)],
    [
      'both',
      request(
        'POST',
        '/v1/uploads?purpose=identify',
        JSON_AUTH,
        '{"purpose":"identify","contentLength":68157440}',
      ),
    ],
  ] as const) {
    const slot = await ask(port, bytes);
    t.equal(slot!.status, 201, name);
    t.match(jsonOf(slot), { fields: { purpose: 'identify' }, uploadId: /^upl_/ }, name);
    t.equal(slot!.headers.get('cache-control'), 'no-store', name);
  }
  t.match(
    jsonOf(await ask(port, request('POST', '/v1/uploads', { ...AUTH, 'Content-Length': '0' }))),
    { fields: { purpose: 'verify' } },
    'no purpose means verify',
  );
  t.match(
    jsonOf(
      await ask(
        port,
        request('POST', '/v1/uploads?purpose=verify_large', JSON_AUTH, '{"contentLength":100000000}'),
      ),
    ),
    { fields: { purpose: 'verify_large' } },
    'a length suits the purpose of the query',
  );
  const chunks = (body: string, headers = ''): Buffer =>
    Buffer.from(
      `POST /v1/uploads HTTP/1.1\r\nHost: a\r\nx-api-key: ${KEY}\r\n${headers}Transfer-Encoding: chunked\r\n\r\n${body}0\r\n\r\n`,
    );
  t.equal((await ask(port, chunks('')))!.status, 201, 'an empty body in chunks needs no type');
  t.equal((await ask(port, chunks('2\r\n{}\r\n', 'Content-Type: application/json\r\n')))!.status, 201);
  for (const body of ['2\r\n{}\r\n', `20000\r\n${' '.repeat(0x20000)}\r\n`])
    matchError(
      t,
      await ask(port, chunks(body)),
      'unsupported_media_type',
      undefined,
      'a body without a type',
    );
  matchError(
    t,
    await ask(port, request('POST', '/v1/uploads?purpose=verify', JSON_AUTH, '{"purpose":"identify"}')),
    'invalid_request',
    'purpose_mismatch',
    'body and query disagree',
  );
});

t.test('verify takes a sidecar of 32 KiB, or an empty one', async (t) => {
  const { port, listener, operations } = await startPartner();
  t.teardown(() => listener.close(100));

  operations.uploads.set('upl_1', { uploadId: 'upl_1', bytes: 1, sha256: '' });
  const sidecar = Buffer.alloc(32_768, 7);
  const verified = await ask(
    port,
    request(
      'POST',
      '/v1/verify',
      { ...AUTH, 'Content-Type': 'application/json ;; charset="utf-8" ; ;' },
      JSON.stringify({ uploadId: 'upl_1', sidecar: sidecar.toString('base64') }),
    ),
  );
  t.equal(verified!.status, 200, 'a sidecar of 32 KiB passes');
  t.equal(verified!.headers.get('cache-control'), 'no-store');
  t.ok(sidecar.equals(operations.verified.at(-1)!.sidecar!), 'and arrives as it was');
  await ask(port, request('POST', '/v1/verify', JSON_AUTH, '{"uploadId":"upl_1","sidecar":""}'));
  t.equal(operations.verified.at(-1)!.sidecar!.length, 0, 'an empty sidecar is a sidecar');
  matchError(
    t,
    await ask(port, request('POST', '/v1/verify', JSON_AUTH, '{"uploadId":"upl_2"}')),
    'not_found',
    undefined,
    'unknown upload',
  );
});

t.test('a request is read chunked, byte by byte, pipelined and in absolute form', async (t) => {
  const { port, listener, operations } = await startPartner();
  t.teardown(() => listener.close(100));

  operations.uploads.set('upl_1', { uploadId: 'upl_1', bytes: 1, sha256: '' });
  const chunked = await ask(
    port,
    Buffer.concat([
      request('POST', '/v1/verify', { ...JSON_AUTH, 'Transfer-Encoding': 'Chunked' }),
      Buffer.from('13\r\n{"uploadId":"upl_1"\r\n1\r\n}\r\n0\r\n\r\n'),
    ]),
  );
  t.equal(chunked!.status, 200, 'a chunked body');
  const slow = new RawClient(port);
  const whole = request('POST', '/v1/verify', JSON_AUTH, '{"uploadId":"upl_1"}');
  for (const byte of whole) await slow.send(Buffer.from([byte]));
  t.equal((await slow.read())!.status, 200, 'byte by byte');
  await slow.send(Buffer.concat([whole, whole]));
  t.strictSame(
    [(await slow.read())!.status, (await slow.read())!.status],
    [200, 200],
    'pipelined on the same connection',
  );
  slow.destroy();
  t.equal(
    (await ask(port, request('GET', 'http://api.example.com/v1/health')))!.status,
    200,
    'absolute form',
  );
});

t.test('a target in absolute form is read as its path, and its authority as the host', async (t) => {
  const { port, listener } = await startPartner();
  t.teardown(() => listener.close(100));
  for (const [target, url, host] of [
    ['http://a.example:8080/v1/verify?x=1', '/v1/verify?x=1', 'a.example:8080'],
    ['HTTPS://[::1]', '/', '[::1]'],
    ['http://a?http://b/', '/?http://b/', 'a'],
    ['/http://a/b', '/http://a/b', 'other'],
    ['*', '*', 'other'],
    ['ftp://a/b', 'ftp://a/b', 'other'],
  ] as const) {
    const read = { url: target, headers: { host: 'other' } };
    t.equal(toOriginForm(read as unknown as IncomingMessage), undefined, target);
    t.strictSame(read, { url, headers: { host } }, target);
  }
  for (const target of ['http:///v1/health', 'http://a@b/v1/health', 'http://a\\b/v1/health'])
    matchError(t, await ask(port, request('GET', target)), 'invalid_request', 'malformed_http', target);
  t.equal((await ask(port, request('GET', 'http://a//v1/health')))!.status, 404);
});

t.test('an answer comes whole to a caller that sends without waiting for 100 Continue', async (t) => {
  const { port, listener } = await startPartner();
  t.teardown(() => listener.close(100));
  // More than the buffers of both sides hold.
  const body = Buffer.alloc(16 * 1_048_576);
  for (const length of [20, body.length]) {
    const hasty = new RawClient(port);
    void hasty.send(
      request('POST', '/v1/verify', { Expect: '100-continue', 'Content-Length': String(length) }),
    );
    await hasty.send(body.subarray(0, length));
    matchError(t, await hasty.read(), 'forbidden', 'key_missing', `${length} bytes`);
    t.ok(await hasty.ended());
    hasty.destroy();
  }
});

t.test('a body in countless pieces is given up once', async (t) => {
  const { port, listener } = await startPartner();
  t.teardown(() => listener.close(100));
  const warnings: Error[] = [];
  const warned = (warning: Error): void => void warnings.push(warning);
  process.on('warning', warned);
  t.teardown(() => process.off('warning', warned));
  const client = new RawClient(port);
  await client.send(request('GET', '/v1/health', { 'Transfer-Encoding': 'chunked' }));
  for (let batch = 0; batch < 20; batch += 1) await client.send('1\r\nx\r\n'.repeat(2000));
  t.ok(await client.ended());
  client.destroy();
  t.strictSame(warnings, []);
});

t.test('a request is logged without an id of its body and without a secret', async (t) => {
  const { port, listener, operations, reports } = await startPartner();
  t.teardown(() => listener.close(100));

  operations.uploads.set('upl_1', { uploadId: 'upl_1', bytes: 1, sha256: '' });
  const sidecar = Buffer.alloc(32_768, 7);
  const verified = await ask(
    port,
    request(
      'POST',
      '/v1/verify',
      { ...AUTH, 'Content-Type': 'application/json ;; charset="utf-8" ; ;' },
      JSON.stringify({ uploadId: 'upl_1', sidecar: sidecar.toString('base64') }),
    ),
  );
  await ask(port, request('POST', '/v1/uploads', JSON_AUTH, '{"purpose":"identify"}'));
  await ask(port, request('POST', '/v1/verify', JSON_AUTH, '{"uploadId":"upl_2"}'));
  t.ok(await until(() => reports.records.length >= 3));
  const record = reports.records.find(({ route, status }) => route === '/v1/verify' && status === 200)!;
  t.match(record, {
    listener: 'partner',
    method: 'POST',
    keyId: 'key_1',
    requestId: verified!.headers.get('x-request-id'),
    bytesOut: verified!.body.length,
  });
  t.match(
    reports.records.find(({ status }) => status === 404),
    { partnerId: 'ptr_1', address: '127.0.0.1', code: 'not_found' },
    'a refusal is logged with its code',
  );
  t.ok(record.bytesIn > sidecar.length && record.durationMs > 0);
  t.notMatch(JSON.stringify(reports.records), /upl_|tmk_/, 'no id of a body and no secret is logged');
});

t.test('a fault is an error without its text, and is reported', async (t) => {
  const { port, listener, operations, reports } = await startPartner();
  t.teardown(() => listener.close(100));

  operations.uploads.set('upl_1', { uploadId: 'upl_1', bytes: 1, sha256: '' });
  operations.verifyFault = new Error('/secret/path in leveldb');
  const whole = request('POST', '/v1/verify', JSON_AUTH, '{"uploadId":"upl_1"}');
  const answer = await ask(port, whole);
  matchError(t, answer, 'internal', undefined, 'a fault');
  t.equal(reports.faults.length, 1, 'is reported');
  t.match(
    reports.faultedCalls,
    [{ requestId: answer!.headers.get('x-request-id'), route: '/v1/verify', partnerId: 'ptr_1' }],
    'with its call',
  );
});

t.test('a call is answered in its time, however long its steps take', async (t) => {
  const { port, listener, operations, reports } = await startPartner({ callMs: 1000, quotaMs: 500 });
  t.teardown(() => listener.close(100));
  const { partner } = operations;
  const { authenticate } = partner;
  const slowly = <Value>(ms: number, value: () => Promise<Value>): Promise<Value> =>
    new Promise((resolve, reject) => void setTimeout(() => value().then(resolve, reject), ms));
  const read = () => ask(port, request('GET', '/v1/partner/usage', AUTH));
  Object.assign(partner, {
    authenticate: (key: string) => slowly(600, () => authenticate(key)),
    readUsage: () => slowly(600, () => Promise.reject(new Error('late'))),
  });
  const late = await read();
  matchError(t, late, 'unavailable', 'store_unavailable', 'two steps, each within the limit');
  t.equal(late?.headers.get('retry-after'), '1');
  t.ok(late?.headers.has('x-ratelimit-limit'), 'with what could still be read');
  t.ok(await until(() => reports.faults.length === 1), 'how it ended is reported');
  t.match(reports.faults, [{ message: 'late' }]);

  const bytes = Readable.from(['audio']);
  Object.assign(partner, {
    authenticate,
    readAsset: () =>
      slowly(1300, async () => ({
        bytes: 5,
        sha256: '',
        fileName: 'take.wav',
        mediaType: 'audio/wav',
        read: async () => bytes,
      })),
  });
  matchError(
    t,
    await ask(port, request('GET', '/v1/proofs/prf_1/asset', AUTH)),
    'unavailable',
    'store_unavailable',
    'a file that comes too late',
  );
  t.ok(await until(() => bytes.destroyed), 'is closed');

  Object.assign(partner, { authenticate, quota: () => new Promise(() => undefined) });
  const rotated = await fetch(`http://127.0.0.1:${port}/v1/partner/keys/rotate`, {
    method: 'POST',
    headers: { ...AUTH, 'idempotency-key': 'k'.repeat(16) },
  });
  t.strictSame(
    [rotated.status, rotated.headers.has('x-ratelimit-remaining')],
    [201, false],
    'an answer does not wait for its headers',
  );
  t.equal(reports.faults.length, 2, 'which is a fault');
});

t.test('checks come in their order, and every fault of a JSON request has its error', async (t) => {
  const { port, listener, operations } = await startPartner({ drainMs: 500 });
  t.teardown(() => listener.close(100));
  const verify = (body: string | Uint8Array, headers: Record<string, string> = {}) =>
    request('POST', '/v1/verify', { ...JSON_AUTH, ...headers }, body);
  const cases: [string, Uint8Array, Parameters<typeof matchError>[2], string | undefined][] = [
    ['unknown route', request('GET', '/nothing'), 'not_found', 'unknown_route'],
    ['trailing slash', request('GET', '/v1/health/'), 'not_found', 'unknown_route'],
    ['other case', request('GET', '/V1/health'), 'not_found', 'unknown_route'],
    ['double slash', request('GET', '//v1/health'), 'not_found', 'unknown_route'],
    ['dot segment', request('GET', '/v1/./health'), 'not_found', 'unknown_route'],
    ['encoded letter in a route', request('GET', '/v1/h%65alth'), 'not_found', 'unknown_route'],
    ['asterisk', request('OPTIONS', '*'), 'not_found', 'unknown_route'],
    ['broken escape in no path', request('GET', '/v1/nothing/%ZZ'), 'not_found', 'unknown_route'],
    ['broken escape and another method', request('PUT', '/v1/proofs/%ZZ'), 'method_not_allowed', undefined],
    ['broken escape and no key', request('GET', '/v1/proofs/%ZZ'), 'forbidden', 'key_missing'],
    ['broken escape', request('GET', '/v1/proofs/%ZZ', AUTH), 'invalid_request', 'invalid_member'],
    ['broken escape, public', request('GET', '/docs/%ZZ'), 'invalid_request', 'invalid_member'],
    ['operator route', request('GET', '/operator/v1/authority'), 'not_found', 'unknown_route'],
    ['metrics', request('GET', '/metrics'), 'not_found', 'unknown_route'],
    [
      'unknown route with a body and no key',
      request('POST', '/nothing', {}, 'x'.repeat(100)),
      'not_found',
      'unknown_route',
    ],
    ['method before key', request('GET', '/v1/verify'), 'method_not_allowed', undefined],
    ['OPTIONS', request('OPTIONS', '/v1/verify'), 'method_not_allowed', undefined],
    ['TRACE', request('TRACE', '/v1/health'), 'method_not_allowed', undefined],
    ['DELETE', request('DELETE', '/uploads/upl_1'), 'method_not_allowed', undefined],
    [
      'key before media type',
      request('POST', '/v1/verify', { 'Content-Type': 'text/plain' }, 'x'),
      'forbidden',
      'key_missing',
    ],
    [
      'wrong key',
      request('POST', '/v1/verify', { 'x-api-key': 'nonsense', 'Content-Type': 'application/json' }, '{}'),
      'forbidden',
      undefined,
    ],
    [
      'key twice',
      request('POST', '/v1/verify', { ...JSON_AUTH, 'X-API-KEY': KEY }, '{}'),
      'forbidden',
      undefined,
    ],
    [
      'media type before size',
      request('POST', '/v1/verify', { ...AUTH, 'Content-Length': '99999999', 'Content-Type': 'text/plain' }),
      'unsupported_media_type',
      undefined,
    ],
    ['no media type', request('POST', '/v1/verify', AUTH, '{}'), 'unsupported_media_type', undefined],
    [
      'other charset',
      verify('{}', { 'Content-Type': 'application/json; charset=latin1' }),
      'unsupported_media_type',
      undefined,
    ],
    [
      'two character sets',
      verify('{}', { 'Content-Type': 'application/json; charset=utf-8; charset=utf-8' }),
      'unsupported_media_type',
      undefined,
    ],
    ['compressed', verify('{}', { 'Content-Encoding': 'gzip' }), 'unsupported_media_type', undefined],
    ['no length', request('POST', '/v1/verify', JSON_AUTH), 'length_required', undefined],
    [
      'too large by its length',
      request('POST', '/v1/verify', { ...JSON_AUTH, 'Content-Length': '2000000' }),
      'payload_too_large',
      'body_too_large',
    ],
    [
      'uploads have 64 KiB',
      request('POST', '/v1/uploads', JSON_AUTH, JSON.stringify({ purpose: ' '.repeat(65_536) })),
      'payload_too_large',
      'body_too_large',
    ],
    [
      'too large as it comes',
      Buffer.concat([
        request('POST', '/v1/uploads', { ...JSON_AUTH, 'Transfer-Encoding': 'chunked' }),
        Buffer.from(`20000\r\n${' '.repeat(0x20000)}\r\n0\r\n\r\n`),
      ]),
      'payload_too_large',
      'body_too_large',
    ],
    ['empty body', verify('', { 'Content-Length': '0' }), 'invalid_request', 'malformed_json'],
    ['not JSON', verify('{"uploadId":'), 'invalid_request', 'malformed_json'],
    ['not UTF-8', verify(Buffer.from([0x22, 0xff, 0x22])), 'invalid_request', 'malformed_json'],
    ['byte order mark', verify('\ufeff{"uploadId":"upl_1"}'), 'invalid_request', 'malformed_json'],
    ['member twice', verify('{"uploadId":"upl_1","uploadId":"upl_1"}'), 'invalid_request', 'malformed_json'],
    [
      'member twice, once escaped',
      verify('{"uploadId":"upl_1","upload\\u0049d":"upl_1"}'),
      'invalid_request',
      'malformed_json',
    ],
    ['33 levels', verify('['.repeat(33) + ']'.repeat(33)), 'invalid_request', 'malformed_json'],
    ['10,000 levels', verify('[{"a":'.repeat(10_000)), 'invalid_request', 'malformed_json'],
    ['32 levels', verify('['.repeat(32) + ']'.repeat(32)), 'invalid_request', 'invalid_member'],
    ['an array', verify('[]'), 'invalid_request', 'invalid_member'],
    ['null', verify('null'), 'invalid_request', 'invalid_member'],
    ['nothing required', verify('{}'), 'invalid_request', 'invalid_member'],
    ['unknown member', verify('{"uploadId":"upl_1","extra":1}'), 'invalid_request', 'invalid_member'],
    ['__proto__', verify('{"uploadId":"upl_1","__proto__":{"a":1}}'), 'invalid_request', 'invalid_member'],
    ['wrong type', verify('{"uploadId":1}'), 'invalid_request', 'invalid_member'],
    ['malformed id', verify('{"uploadId":"upl 1"}'), 'invalid_request', 'invalid_member'],
    ['id with a line end', verify('{"uploadId":"upl_1\\n"}'), 'invalid_request', 'invalid_member'],
    ['null id', verify('{"uploadId":null}'), 'invalid_request', 'invalid_member'],
    [
      'null for an unknown member',
      verify('{"uploadId":"upl_1","extra":null}'),
      'invalid_request',
      'invalid_member',
    ],
    [
      'sidecar too long',
      verify(JSON.stringify({ uploadId: 'upl_1', sidecar: 'A'.repeat(43_696) })),
      'invalid_request',
      'invalid_member',
    ],
    ...['AAA', 'AA=', 'AA', 'AB==', 'A A=', 'AA==\\n', 'AA-_', '=AAA', 'AA==AA=='].map(
      (sidecar): [string, Uint8Array, 'invalid_request', string] => [
        `sidecar ${sidecar}`,
        verify(`{"uploadId":"upl_1","sidecar":"${sidecar}"}`),
        'invalid_request',
        'sidecar_not_base64',
      ],
    ),
    [
      'unknown purpose',
      request('POST', '/v1/uploads?purpose=other', AUTH),
      'invalid_request',
      'invalid_member',
    ],
    [
      'query parameter twice',
      request('POST', '/v1/uploads?purpose=verify&purpose=verify', AUTH),
      'invalid_request',
      'duplicate_parameter',
    ],
    [
      'query parameter twice, once escaped',
      request('POST', '/v1/uploads?purpose=verify&purp%6fse=verify', AUTH),
      'invalid_request',
      'duplicate_parameter',
    ],
    [
      'unknown query parameter',
      request('POST', '/v1/uploads?other=1', AUTH),
      'invalid_request',
      'invalid_member',
    ],
    [
      '__proto__ in the query',
      request('POST', '/v1/uploads?__proto__=1', AUTH),
      'invalid_request',
      'invalid_member',
    ],
    [
      'broken escape in the query',
      request('POST', '/v1/uploads?purpose=%zz', AUTH),
      'invalid_request',
      'invalid_member',
    ],
    [
      'contentLength too large',
      request('POST', '/v1/uploads', JSON_AUTH, '{"purpose":"verify","contentLength":68157441}'),
      'invalid_request',
      'invalid_member',
    ],
    [
      'contentLength a fraction',
      request('POST', '/v1/uploads', JSON_AUTH, '{"contentLength":1.5}'),
      'invalid_request',
      'invalid_member',
    ],
  ];
  for (const [name, bytes, code, reason] of cases) matchError(t, await ask(port, bytes), code, reason, name);
  // A separate listener that waits at most this long for a body.
  const impatient = await startPartner({ bodyMs: 200, drainMs: 500 });
  t.teardown(() => impatient.listener.close(100));
  matchError(
    t,
    await ask(impatient.port, request('POST', '/v1/verify', { ...JSON_AUTH, 'Content-Length': '100' }, '{')),
    'timeout',
    'client_too_slow',
    'a body that stalls',
  );
  t.equal((await ask(port, request('PUT', '/v1/health')))!.headers.get('allow'), 'GET, HEAD');
  t.equal((await ask(port, request('PUT', '/uploads/upl_1')))!.headers.get('allow'), 'POST');
  t.equal(operations.verified.length, 0, 'none of them reached the operation');
  operations.scopes = ['proofs'];
  matchError(
    t,
    await ask(port, verify('{"uploadId":"upl_1"}')),
    'forbidden',
    'scope_missing',
    'a key without the scope',
  );
  operations.scopes = SCOPES;

  const client = new RawClient(port);
  await client.send(request('POST', '/nothing', {}, 'x'.repeat(1000)));
  await client.read();
  await client.send(request('GET', '/v1/health'));
  t.equal((await client.read())!.status, 200, 'a refusal with a small body keeps the connection');
  client.destroy();
  const large = new RawClient(port);
  void large.send(request('POST', '/v1/verify', JSON_AUTH, Buffer.alloc(8 * 1_048_576, 32)));
  const refused = await large.read();
  matchError(t, refused, 'payload_too_large', 'body_too_large', 'readable while 8 MiB are still coming');
  t.equal(refused!.headers.get('connection'), 'close');
  t.ok(await large.ended(), 'and the connection ends');
});

t.test('an optional member that is null is as absent', async (t) => {
  const { port, operations, listener } = await startPartner();
  t.teardown(() => listener.close(100));
  const post = (path: string, body: string) => ask(port, request('POST', path, JSON_AUTH, body));
  operations.uploads.set('upl_1', { uploadId: 'upl_1', bytes: 1, sha256: '0'.repeat(64) });
  t.equal((await post('/v1/verify', '{"uploadId":"upl_1","sidecar":null}'))!.status, 200);
  t.strictSame(operations.verified, [{ uploadId: 'upl_1' }]);
  t.equal((await post('/v1/uploads', '{"purpose":null,"contentLength":null}'))!.status, 201);
});

t.test('the error of a member names the member, and repeats no value', async (t) => {
  const { port, listener } = await startPartner();
  t.teardown(() => listener.close(100));
  const sentence = async (path: string, body: string) => {
    const answer = await ask(port, request('POST', path, JSON_AUTH, body));
    return jsonOf(answer)['error'];
  };
  const binding = (creatorId: string) =>
    JSON.stringify({
      proofId: 'prf_1',
      bindings: { creatorId, accountId: 'a', submissionId: 's', trackId: 't' },
    });
  const identifier =
    'must be an identifier: 1 to 128 letters, digits, dots, underscores, colons and hyphens, starting with a letter or digit';
  for (const [path, body, expected] of [
    ['/v1/verify', '{}', 'uploadId is missing.'],
    ['/v1/verify', '[]', 'The body must be an object.'],
    ['/v1/verify', '{"uploadId":7}', 'uploadId must be a string.'],
    ['/v1/verify', '{"uploadId":"secret stuff"}', `uploadId ${identifier}.`],
    ['/v1/verify', '{"uploadId":"upl_1","extra":"secret"}', 'The body has the unknown member `extra`.'],
    ['/v1/verify', '{"__proto__":1,"uploadId":"upl_1"}', 'The body has the unknown member `__proto__`.'],
    ['/v1/verify?a=secret', '{"uploadId":"upl_1"}', 'The query has the unknown parameter `a`.'],
    ['/v1/uploads?purpos=verify', '{}', 'The query has the unknown parameter `purpos`.'],
    ['/v1/uploads?a=1&a=2', '{}', 'The query parameter `a` is repeated.'],
    ['/v1/uploads', `{"${'n'.repeat(65)}":1}`, `The body has the unknown member \`${'n'.repeat(64)}\`.`],
    ['/v1/uploads', '{"\\u202e\\ud83d":1}', 'The body has the unknown member `\ufffd\ufffd`.'],
    ['/v1/uploads', '{"purpose":"verify","purpose":"x"}', 'The member `purpose` is repeated.'],
    [
      '/v1/partner/reviews',
      '{"proofId":"prf_1","bindings":{"extra":"secret"}}',
      'bindings.creatorId is missing.',
    ],
    [
      '/v1/uploads',
      '{"purpose":"secret"}',
      'purpose must be one of verify, identify, verify_large, identify_large.',
    ],
    ['/v1/uploads', '{"contentLength":0}', 'contentLength must be at least 1.'],
    ['/v1/uploads', '{"contentLength":1.5}', 'contentLength must be a whole number.'],
    [
      '/v1/uploads',
      '{"purpose":"verify","contentLength":68157441}',
      'contentLength must be at most 68157440.',
    ],
    [
      '/v1/uploads',
      '{"purpose":"identify","contentLength":68157441}',
      'contentLength must be at most 68157440.',
    ],
    ['/v1/uploads', '{"purpose":"verify_large"}', 'contentLength is missing.'],
    [
      '/v1/uploads',
      '{"purpose":"verify_large","contentLength":1099511627777}',
      'contentLength must be at most 1099511627776.',
    ],
    ['/v1/partner/reviews', binding('a@b'), `bindings.creatorId ${identifier}.`],
    ['/v1/telemetry', '{"events":[]}', 'events must have at least 1 entry.'],
    ...identifyProblems(),
  ] as const)
    t.equal(await sentence(path, body), expected);
});

t.test('every route with a scope refuses a key without it, and calls nothing', async (t) => {
  const { port, listener, operations } = await startPartner();
  t.teardown(() => listener.close(100));
  const routes = Object.entries(ROUTES as Readonly<Record<string, Route>>);
  const own = new Set(['authenticate', 'checkSignature', 'admit', 'rate', 'quota']);
  const called: string[] = [];
  // `until` only binds the operations to the call.
  for (const [name, operation] of Object.entries(operations.partner) as [
    string,
    (...args: never[]) => unknown,
  ][])
    if (!own.has(name) && name !== 'until')
      Object.assign(operations.partner, {
        [name]: (...args: never[]) => {
          called.push(name);
          return operation(...args);
        },
      });
  const open: string[] = [];
  for (const [id, route] of routes) {
    if (route.auth !== 'key') continue;
    const { method, path, scope } = route;
    operations.scopes = SCOPES.filter((held) => held !== scope);
    const answer = await ask(port, request(method, path.replaceAll(/\{\w+\}/g, 'prf_1'), AUTH));
    if (scope === 'any') {
      open.push(id);
      t.not(answer!.status, 403, `${id} is open to every key`);
      called.length = 0;
    } else {
      matchError(t, answer, 'forbidden', 'scope_missing', `${id} without ${scope}`);
      t.strictSame(called, [], `${id} did nothing`);
    }
  }
  t.strictSame(
    open.sort(),
    ['download', 'readSandboxFile', 'sandboxFixtures', 'telemetry'],
    'routes that every key may call',
  );
});

t.test('malformed HTTP is refused as the contract says', async (t) => {
  const { port, listener, reports } = await startPartner();
  const impatient = await startPartner({ headersMs: 300, checkMs: 50 });
  t.teardown(() => Promise.all([listener.close(100), impatient.listener.close(100)]));
  const post = (lines: string, body = '') => `POST /v1/verify HTTP/1.1\r\n${lines}\r\n${body}`;
  const cases: [string, string, Parameters<typeof matchError>[2], string][] = [
    ['not HTTP', 'hello\r\n\r\n', 'invalid_request', 'malformed_http'],
    ['TLS', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', 'invalid_request', 'malformed_http'],
    ['HTTP/2 preface', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'invalid_request', 'malformed_http'],
    ['unknown method', 'FROB /v1/health HTTP/1.1\r\nHost: a\r\n\r\n', 'invalid_request', 'malformed_http'],
    ['unknown version', 'GET /v1/health HTTP/3.7\r\nHost: a\r\n\r\n', 'invalid_request', 'malformed_http'],
    ['HTTP/2.0', 'GET /v1/health HTTP/2.0\r\nHost: a\r\n\r\n', 'invalid_request', 'malformed_http'],
    ['HTTP/0.9', 'GET /v1/health\r\n\r\n', 'invalid_request', 'malformed_http'],
    [
      'Host with a path',
      'GET /v1/health HTTP/1.1\r\nHost: a/b@c\r\n\r\n',
      'invalid_request',
      'malformed_http',
    ],
    [
      'space in the target',
      'GET /v1/he alth HTTP/1.1\r\nHost: a\r\n\r\n',
      'invalid_request',
      'malformed_http',
    ],
    ['fragment', 'GET /v1/health#a HTTP/1.1\r\nHost: a\r\n\r\n', 'invalid_request', 'malformed_http'],
    ['no Host', 'GET /v1/health HTTP/1.1\r\n\r\n', 'invalid_request', 'malformed_http'],
    [
      'two Hosts',
      'GET /v1/health HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n',
      'invalid_request',
      'malformed_http',
    ],
    [
      'xchunked',
      post('Host: a\r\nTransfer-Encoding: xchunked\r\n', '0\r\n\r\n'),
      'invalid_request',
      'malformed_http',
    ],
    [
      'gzip, chunked',
      post('Host: a\r\nTransfer-Encoding: gzip, chunked\r\n', '0\r\n\r\n'),
      'invalid_request',
      'malformed_http',
    ],
    [
      'chunked twice',
      post('Host: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n', '0\r\n\r\n'),
      'invalid_request',
      'malformed_http',
    ],
    ['identity', post('Host: a\r\nTransfer-Encoding: identity\r\n'), 'invalid_request', 'malformed_http'],
    [
      'chunked in 1.0',
      'POST /v1/verify HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      'invalid_request',
      'malformed_http',
    ],
    [
      'both length headers',
      post('Host: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n', '0\r\n\r\n'),
      'invalid_request',
      'malformed_http',
    ],
    [
      'both length headers, other order',
      post('Host: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n', '0\r\n\r\n'),
      'invalid_request',
      'malformed_http',
    ],
    [
      'two lengths',
      post('Host: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n', 'x'),
      'invalid_request',
      'malformed_http',
    ],
    [
      'length not a number',
      post('Host: a\r\nContent-Length: 1a\r\n', 'x'),
      'invalid_request',
      'malformed_http',
    ],
    ['negative length', post('Host: a\r\nContent-Length: -1\r\n', 'x'), 'invalid_request', 'malformed_http'],
    [
      'space before the colon',
      'GET /v1/health HTTP/1.1\r\nHost : a\r\n\r\n',
      'invalid_request',
      'malformed_http',
    ],
    [
      'folded header',
      'GET /v1/health HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n',
      'invalid_request',
      'malformed_http',
    ],
    [
      'NUL in a header',
      'GET /v1/health HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n',
      'invalid_request',
      'malformed_http',
    ],
    [
      'other expectation',
      'GET /v1/health HTTP/1.1\r\nHost: a\r\nExpect: wonders\r\n\r\n',
      'invalid_request',
      'malformed_http',
    ],
    [
      'two content types',
      post(
        `Host: a\r\nx-api-key: ${KEY}\r\nContent-Type: application/json\r\nContent-Type: application/json\r\nContent-Length: 2\r\n`,
        '{}',
      ),
      'invalid_request',
      'malformed_http',
    ],
    [
      'headers too large',
      `GET /v1/health HTTP/1.1\r\nHost: a\r\nX: ${'a'.repeat(20_000)}\r\n\r\n`,
      'headers_too_large',
      'malformed_http',
    ],
    [
      'target too large',
      `GET /${'a'.repeat(20_000)} HTTP/1.1\r\nHost: a\r\n\r\n`,
      'headers_too_large',
      'malformed_http',
    ],
    [
      'bad chunk size',
      post(
        `Host: a\r\nx-api-key: ${KEY}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n`,
        '2\r\n{}\r\nzz\r\n',
      ),
      'invalid_request',
      'malformed_http',
    ],
    ['headers never end', 'GET /v1/health HTTP/1.1\r\nHost: a\r\n', 'timeout', 'client_too_slow'],
    ['nothing at all', '', 'timeout', 'client_too_slow'],
  ];
  for (const [name, bytes, code, reason] of cases) {
    const client = new RawClient(code === 'timeout' ? impatient.port : port);
    await client.send(bytes);
    matchError(t, await client.read(), code, reason, name);
    t.ok(await client.ended(), `${name}: the connection ends`);
    t.equal(client.unread, 0, `${name}: after one answer`);
    client.destroy();
  }
  const many = Array.from({ length: 1200 }, (_, i) => `a${i}:\r\n`).join('');
  matchError(
    t,
    await ask(port, `GET /v1/health HTTP/1.1\r\nHost: a\r\n${many}Host: b\r\n\r\n`),
    'invalid_request',
    'malformed_http',
    'a second Host after 1,200 headers',
  );
  t.equal((await ask(port, 'GET /v1/health HTTP/1.0\r\n\r\n'))!.status, 200, 'HTTP/1.0 needs no Host');

  const connect = await ask(port, 'CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n');
  matchError(t, connect, 'method_not_allowed', undefined, 'CONNECT');
  const upgrade = await ask(
    port,
    request('GET', '/v1/health', { Connection: 'Upgrade', Upgrade: 'websocket' }),
  );
  t.equal(upgrade!.status, 200, 'an upgrade is not taken up');

  const reset = new RawClient(port);
  await reset.send('CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n');
  matchError(t, await reset.read(), 'method_not_allowed', undefined, 'CONNECT, and then a reset');
  reset.socket.resetAndDestroy();
  await sleep(50);
  t.equal((await ask(port, request('GET', '/v1/health')))!.status, 200, 'ends nothing but its connection');
  const behind = new RawClient(port);
  await behind.send(
    Buffer.concat([
      request('POST', '/v1/uploads', AUTH),
      Buffer.from('CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n'),
    ]),
  );
  t.equal((await behind.read())!.status, 201, 'a CONNECT after a request waits for its answer');
  matchError(t, await behind.read(), 'method_not_allowed', undefined, 'and has one of its own');

  const pipelined = new RawClient(port);
  await pipelined.send(Buffer.concat([request('POST', '/v1/uploads', AUTH), Buffer.from('garbage\r\n\r\n')]));
  t.equal((await pipelined.read())!.status, 201, 'garbage after a request does not take its answer');
  matchError(t, await pipelined.read(), 'invalid_request', 'malformed_http', 'and is answered after it');
  t.ok(await pipelined.ended());

  const half = new RawClient(port);
  await half.send(request('POST', '/v1/verify', { ...JSON_AUTH, 'Content-Length': '100' }, '{'));
  half.socket.end();
  matchError(
    t,
    await half.read(),
    'invalid_request',
    'upload_aborted',
    'a body that ends early, the other half still open',
  );
  t.ok(await half.ended());
  await until(() => reports.records.at(-1)!.route === '/v1/verify');
  const gone = new RawClient(port);
  await gone.send(request('POST', '/v1/verify', { ...JSON_AUTH, 'Content-Length': '100' }, '{'));
  await gone.arrived();
  const before = reports.records.length;
  gone.socket.resetAndDestroy();
  t.ok(await until(() => reports.records.length > before), 'a caller that leaves is logged');
  t.match(reports.records.at(-1), { route: '/v1/verify', status: 0 }, 'without a status');
  t.equal(reports.faults.length + impatient.reports.faults.length, 0, 'none of it is a fault');
});

t.test('a refused request does nothing', async (t) => {
  const { port, listener, operations } = await startPartner();
  t.teardown(() => listener.close(100));
  const { partner } = operations;
  const erased: string[] = [];
  const bytes: Readable[] = [];
  Object.assign(partner, {
    eraseProof: async (_caller: unknown, { proofId }: { readonly proofId: string }) => {
      erased.push(proofId);
      return { proofId, outcome: 'erased', erasedAt: 1 };
    },
    readAsset: async () => ({
      bytes: 5,
      sha256: '',
      fileName: 'take.wav',
      mediaType: 'audio/wav',
      read: async () => (bytes.push(Readable.from(['aud'])), bytes.at(-1)!),
    }),
  });
  const erase = `DELETE /v1/proofs/prf_1 HTTP/1.1\r\nHost: a\r\nx-api-key: ${KEY}\r\n`;
  matchError(
    t,
    await ask(port, `${erase}Transfer-Encoding: chunked\r\n\r\nzz\r\n`),
    'invalid_request',
    'malformed_http',
    'a body that turns out to be malformed',
  );
  matchError(
    t,
    await ask(port, `${erase}Content-Type: application/json\r\nContent-Length: 7\r\n\r\n{"x":1}`),
    'invalid_request',
    'invalid_member',
    'a body where none belongs',
  );
  const smuggled = new RawClient(port);
  await smuggled.send(
    `POST /v1/verify HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n${erase}\r\n`,
  );
  matchError(
    t,
    await smuggled.read(),
    'invalid_request',
    'malformed_http',
    'a message whose end is in doubt',
  );
  t.ok(await smuggled.ended(), 'ends the connection');
  const large = new RawClient(port);
  await large.send(`POST /v1/verify HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n`);
  matchError(t, await large.read(), 'forbidden', 'key_missing', 'a large message that was refused');
  await large.send(`${'x'.repeat(100_000)}${erase}\r\n`);
  t.ok(await large.ended(), 'ends it too');
  await sleep(50);
  t.strictSame(erased, [], 'and nothing was done');
  t.equal((await ask(port, `${erase}\r\n`))!.status, 200);
  t.strictSame(erased, ['prf_1']);

  const short = new RawClient(port);
  await short.send(
    Buffer.concat([request('GET', '/v1/proofs/prf_1/asset', AUTH), request('GET', '/v1/health')]),
  );
  t.equal(await short.read(), undefined, 'nothing follows a file that is shorter than announced');
  t.ok(bytes[0]?.destroyed);
});

t.test('a caller that does not read is cut off', async (t) => {
  const { port, listener, reports } = await startPartner({ stallMs: 200 });
  t.teardown(() => listener.close(100));
  const whole = (await ask(port, request('GET', '/v1/openapi.json')))!.body.length;
  const client = new RawClient(port);
  client.socket.pause();
  await client.send(Buffer.concat(Array.from({ length: 200 }, () => request('GET', '/v1/openapi.json'))));
  t.ok(await until(() => reports.records.some(({ status }) => status === 200)), 'is answered');
  await until(() => client.peer!.destroyed);
  client.socket.resume();
  t.ok(await client.ended(), 'until nothing has moved for a while');
  t.ok(client.unread < 200 * whole, 'and the rest of the answers is not sent');
  client.destroy();
});

t.test('expectations, kept connections and stopping end in order', async (t) => {
  const { port, listener, operations } = await startPartner();
  const expecting = new RawClient(port);
  await expecting.send(
    request('POST', '/v1/verify', { ...JSON_AUTH, Expect: '100-continue', 'Content-Length': '20' }),
  );
  t.equal((await expecting.read())!.status, 100, 'a request in order is invited');
  operations.uploads.set('upl_1', { uploadId: 'upl_1', bytes: 1, sha256: '' });
  await expecting.send('{"uploadId":"upl_1"}');
  t.equal((await expecting.read())!.status, 200);
  expecting.destroy();
  const refused = new RawClient(port);
  await refused.send(request('POST', '/v1/verify', { Expect: '100-continue', 'Content-Length': '20' }));
  matchError(t, await refused.read(), 'forbidden', 'key_missing', 'one without a key is not');
  t.ok(await refused.ended(), 'its connection ends, because the body may never arrive');

  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const once = (path: string) =>
    new Promise<number>((resolve, reject) => {
      httpRequest({ port, path, agent }, (response) =>
        response.resume().on('end', () => resolve(response.statusCode!)),
      )
        .on('error', reject)
        .end();
    });
  t.equal(await once('/v1/health'), 200);
  t.equal(await once('/nothing'), 404);

  const inFlight = new RawClient(port);
  await inFlight.send(request('POST', '/v1/verify', { ...JSON_AUTH, 'Content-Length': '20' }, '{"uploadId"'));
  const stuck = new RawClient(port);
  await stuck.send('GET /v1/health HTTP/1.1\r\n');
  await Promise.all([inFlight.arrived(), stuck.arrived()]);
  const started = Date.now();
  const closed = listener.close(10_000);
  await t.rejects(once('/v1/health'), 'no new connections');
  await inFlight.send(':"upl_1"}');
  const last = await inFlight.read();
  t.equal(last!.status, 200, 'a request in flight is answered');
  t.ok(await inFlight.ended());
  await closed;
  t.ok(Date.now() - started < 40_000, 'what is left is cut');
  agent.destroy();
  stuck.destroy();
});

/** Returns bodies of an identify, with the problem that the error names. */
function identifyProblems(): readonly (readonly [path: string, body: string, problem: string])[] {
  const digest = 'a'.repeat(64);
  const lower = 'must be a SHA-256 in lower-case hex.';
  const entries = (count: number) => `{"digests":[${`{"sha256":"${digest}"},`.repeat(count).slice(0, -1)}]}`;
  return (
    [
      [
        `{"digests":[{"sha256":"${digest}"},{"sha256":"${digest.toUpperCase()}"}]}`,
        `digests.1.sha256 ${lower}`,
      ],
      [`{"digests":[{"sha256":"${digest}0"}]}`, `digests.0.sha256 ${lower}`],
      [
        `{"digests":[{"sha256":"${digest}","of":"acoustic"}]}`,
        'digests.0.of must be one of file, bound, samples.',
      ],
      [`{"digests":[{"sha256":"${digest}","note":"x"}]}`, 'digests.0 has the unknown member `note`.'],
      ['{"digests":[]}', 'digests must have at least 1 entry.'],
      [entries(1001), 'digests must have at most 1000 entries.'],
      [
        `{"uploadId":"upl_1","digests":[{"sha256":"${digest}"}]}`,
        'The body has the unknown member `digests`.',
      ],
      ['{}', 'uploadId is missing.'],
      ['[]', 'The body must be an object.'],
    ] as const
  ).map(([body, problem]) => ['/v1/recordings/identify', body, problem] as const);
}

t.test('an identify takes 1,000 digests of any form, and null for what it lacks', async (t) => {
  const { port, listener } = await startPartner();
  t.teardown(() => listener.close(100));
  const digests = Array.from({ length: 1000 }, (_, i) => ({
    sha256: String(i).padStart(64, '0'),
    of: (['file', 'bound', 'samples', null] as const)[i % 4],
  }));
  const body = JSON.stringify({ uploadId: null, digests }, null, 2);
  t.ok(body.length > 65_536);
  const answer = await ask(port, request('POST', '/v1/recordings/identify', JSON_AUTH, body));
  t.equal(answer!.status, 200);
  const { results } = jsonOf(answer) as { readonly results: readonly { readonly sha256: string }[] };
  t.strictSame(
    results.map(({ sha256 }) => sha256),
    digests.map(({ sha256 }) => sha256),
  );
});
