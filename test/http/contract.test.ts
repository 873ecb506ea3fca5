import { createHash } from 'node:crypto';
import t from 'tap';
import { DomainError } from '../../src/core/domain/errors.js';
import type { Route } from '../../src/service/contract/route.js';
import { ROUTES } from '../../src/service/contract/routes/routes.js';
import { SCOPES, SHIPPED_PLANS } from '../../src/service/domain/partner.js';
import { partnerContract } from '../fixtures/contract-check.js';
import { KEY, startOperator, startPartner, TOKEN } from './doubles.js';
import { ASSET, ASSET_SHA256 } from './memory-contract.js';
import { ask, jsonOf, matchError, request } from './raw-client.js';

const AUTH = { 'x-api-key': KEY };
const JSON_AUTH = { ...AUTH, 'Content-Type': 'application/json' };
const IDEMPOTENT = { ...AUTH, 'Idempotency-Key': '0b6f6c9e-9d0a-4b53-8f0e-0c5f0f3f1d2a' };
const BINDINGS = { creatorId: 'c-1', accountId: 'a:1', submissionId: 's.1', trackId: '1_t' };
const get = (path: string, headers: Record<string, string> = {}) =>
  request('GET', path, { ...AUTH, ...headers });
const send = (method: string, path: string, body: unknown) =>
  request(method, path, JSON_AUTH, JSON.stringify(body));

t.test('every authenticated call reports a restoration, on every route as the document says', async (t) => {
  const { port, listener } = await startPartner(
    {},
    {
      assertOpen: () => {
        throw new DomainError('unavailable', 'The registry is being restored.', { reason: 'restoring' });
      },
    },
  );
  t.teardown(() => listener.close(100));
  for (const { listener: name, method, path, auth, environments } of Object.values<Route>(ROUTES)) {
    if (name !== 'partner' || environments !== undefined) continue;
    const answer = await ask(port, request(method, path.replaceAll(/\{\w+\}/g, 'x'), AUTH));
    if (auth === 'public') t.not(answer!.status, 503, path);
    else matchError(t, answer, 'unavailable', 'restoring', `${method} ${path}`);
  }
});

t.test('every route of the partner listener answers as the document says', async (t) => {
  const { port, listener, operations } = await startPartner();
  t.teardown(() => listener.close(100));
  const { contract } = operations;
  const quota = { limit: 100_000, remaining: 99_999, reset: 1_769_904_000 };
  const checked = async (bytes: Uint8Array, status: number, name: string) => {
    const answer = await ask(port, bytes);
    t.equal(answer!.status, status, name);
    t.strictSame(
      [...answer!.headers]
        .filter(([header]) => header.startsWith('x-ratelimit'))
        .map(([, value]) => Number(value)),
      Object.values(quota),
      `${name}: exact quota`,
    );
    t.strictSame(
      ['ratelimit-policy', 'ratelimit'].map((header) => answer!.headers.get(header)),
      [
        '"request_rate";q=100;w=2, "monthly_quota";q=100000;w=2678400',
        '"request_rate";r=99;t=1, "monthly_quota";r=99999;t=60',
      ],
      `${name}: both limits by name`,
    );
    return answer!;
  };

  t.equal((jsonOf(await checked(get('/v1/proofs'), 200, 'list'))['proofs'] as unknown[]).length, 3);
  t.match(
    jsonOf(
      await checked(
        get('/v1/proofs?limit=1&issuedAfter=5&issuedBefore=9999999999&cursor=bmV4dA'),
        200,
        'a page',
      ),
    ),
    { nextCursor: 'bmV4dA' },
  );
  t.strictSame(
    contract.asked.at(-1),
    { limit: 1, issuedAfter: 5, issuedBefore: 9_999_999_999, cursor: 'bmV4dA' },
    'numbers arrive as numbers',
  );
  t.match(jsonOf(await checked(get('/v1/proofs/prf_1'), 200, 'one')), {
    proofId: 'prf_1',
    createdAt: 1_767_225_601,
  });
  t.match(jsonOf(await checked(get('/v1/records/prf_1'), 200, 'record')), {
    delivery: { bytes: ASSET.length },
  });
  t.match(jsonOf(await checked(request('DELETE', '/v1/proofs/prf_3', AUTH), 200, 'erase')), {
    outcome: 'erased',
  });
  t.match(jsonOf(await checked(request('DELETE', '/v1/proofs/prf_3', AUTH), 200, 'again')), {
    outcome: 'already_erased',
  });

  t.strictSame(jsonOf(await checked(get('/v1/partner/keys'), 200, 'keys')), {
    keys: [
      {
        keyId: 'key_1',
        name: 'ingest',
        status: 'active',
        scopes: ['verify'],
        plan: 'standard',
        createdAt: 1_767_225_600,
        lastUsedAt: 1_767_225_600,
      },
    ],
  });
  t.strictSame(contract.asked.at(-1), {}, 'neither limit nor cursor');
  await checked(get('/v1/partner/keys?limit=100'), 200, 'keys, a page');
  const metered = contract.metered.length;
  const rotated = await checked(request('POST', '/v1/partner/keys/rotate', IDEMPOTENT), 201, 'rotation');
  t.notOk(rotated.headers.has('idempotency-replayed'));
  t.equal(rotated.headers.get('cache-control'), 'no-store');
  const replayed = await checked(
    Buffer.concat([
      request('POST', '/v1/partner/keys/rotate', { ...IDEMPOTENT, 'Transfer-Encoding': 'chunked' }),
      Buffer.from('0\r\n\r\n'),
    ]),
    201,
    'an empty chunked body is none',
  );
  t.equal(replayed.headers.get('idempotency-replayed'), 'true');
  t.strictSame(replayed.body, rotated.body, 'the same bytes');
  t.not(replayed.headers.get('x-request-id'), rotated.headers.get('x-request-id'), 'under a new request id');
  t.notOk(contract.admitted.includes('rotation'), 'its lane is spent by the operation');
  t.strictSame(contract.metered.slice(metered), ['rotateKey', 'rotateKey']);
  t.equal(
    (jsonOf(await checked(get('/v1/partner/usage'), 200, 'usage'))['days'] as unknown[]).length,
    30,
    '30 days by default',
  );
  t.equal(
    (jsonOf(await checked(get('/v1/partner/usage?days=92'), 200, 'usage'))['days'] as unknown[]).length,
    92,
  );

  const { reviewId } = jsonOf(
    await checked(
      send('POST', '/v1/partner/reviews', { proofId: 'prf_1', bindings: BINDINGS }),
      201,
      'review',
    ),
  ) as { reviewId: string };
  t.match(jsonOf(await checked(get('/v1/partner/reviews'), 200, 'list')), { reviews: [{ reviewId }] });
  t.ok('nextCursor' in jsonOf(await checked(get('/v1/partner/reviews?limit=1&status=open'), 200, 'a page')));
  const keyed = () =>
    checked(
      request(
        'POST',
        '/v1/partner/reviews',
        { ...JSON_AUTH, ...IDEMPOTENT },
        JSON.stringify({
          proofId: 'prf_1',
          bindings: { ...BINDINGS, trackId: 'keyed' },
        }),
      ),
      201,
      'under a key',
    );
  const once = await keyed();
  t.notOk(once.headers.has('idempotency-replayed'));
  const twice = await keyed();
  t.equal(twice.headers.get('idempotency-replayed'), 'true');
  t.strictSame(twice.body, once.body, 'the same bytes');
  const path = `/v1/partner/reviews/${reviewId}`;
  t.match(jsonOf(await checked(get(path), 200, 'read')), { reviewId, bindings: BINDINGS, status: 'open' });
  const { evidenceRequests } = jsonOf(
    await checked(send('POST', `${path}/evidence-requests`, { kind: 'source_licence' }), 201, 'evidence'),
  ) as { evidenceRequests: { requestId: string }[] };
  const evidence = `${path}/evidence-requests/${evidenceRequests[0]!.requestId}`;
  matchError(
    t,
    await checked(send('POST', `${path}/resolve`, { outcome: 'held' }), 409, 'still open'),
    'conflict',
    'evidence_requests_open',
    'still open',
  );
  t.match(
    jsonOf(
      await checked(
        send('PATCH', evidence, { status: 'accepted', responseReference: 'e/2026.01:7_a-b' }),
        200,
        'close',
      ),
    ),
    { evidenceRequests: [{ status: 'accepted', responseReference: 'e/2026.01:7_a-b' }] },
  );
  matchError(
    t,
    await checked(send('PATCH', evidence, { status: 'declined' }), 409, 'final'),
    'conflict',
    'evidence_request_final',
    'final',
  );
  t.match(jsonOf(await checked(send('POST', `${path}/resolve`, { outcome: 'accepted' }), 200, 'resolve')), {
    status: 'resolved',
    outcome: 'accepted',
  });

  t.match(
    jsonOf(await checked(send('POST', '/v1/recordings/identify', { uploadId: 'upl_1' }), 200, 'identify')),
    { matches: [{ proofId: 'prf_1' }] },
  );
  matchError(
    t,
    await checked(send('POST', '/v1/recordings/identify', { uploadId: 'upl_text' }), 422, 'no audio'),
    'unprocessable',
    undefined,
    'no audio',
  );
  const download = await checked(get('/v1/download?product=companion&platform=macos'), 302, 'download');
  t.equal(download.headers.get('location'), 'https://downloads.example.com/companion/macos');
  t.equal(download.body.length, 0);
  t.strictSame(
    jsonOf(
      await checked(
        send('POST', '/v1/telemetry', { events: [{ name: 'app_started', count: 3, at: 1 }] }),
        202,
        'telemetry',
      ),
    ),
    { accepted: 1 },
  );
  await checked(send('POST', '/v1/uploads', {}), 201, 'slot');
  t.notOk(
    contract.metered.includes('identify') || contract.metered.includes('verify'),
    'what is billed is not metered as well',
  );
  t.ok(contract.metered.includes('createUpload') && contract.metered.includes('download'));

  // Refusals after authentication carry the quota, and earlier ones do not. No refusal is charged.
  const free = contract.metered.length;
  const refused = async (
    bytes: Uint8Array,
    ...[code, reason, name]: [Parameters<typeof matchError>[2], string | undefined, string]
  ) => matchError(t, await checked(bytes, (await ask(port, bytes))!.status, name), code, reason, name);
  await refused(get('/v1/proofs/prf_9'), 'not_found', undefined, 'unknown proof');
  await refused(
    get('/v1/proofs/%70rf_1'),
    'invalid_request',
    'invalid_member',
    'an escaped id is a second spelling',
  );
  await refused(get('/v1/proofs/prf_1%00'), 'invalid_request', 'invalid_member', 'NUL');
  await refused(get('/v1/proofs/prf_1%2Fasset'), 'invalid_request', 'invalid_member', 'an escaped slash');
  await refused(get('/v1/proofs/..'), 'invalid_request', 'invalid_member', 'dots');
  await refused(get(`/v1/records/${'a'.repeat(129)}`), 'invalid_request', 'invalid_member', '129 characters');
  await refused(get(`/v1/records/${'a'.repeat(128)}`), 'not_found', undefined, '128 characters');
  await refused(get('/v1/records/odd:prefix'), 'not_found', undefined, 'an odd prefix is not malformed');
  await refused(get('/v1/records/a@b'), 'invalid_request', 'invalid_member', 'an @');
  await refused(
    get('/v1/proofs/prf_1?x=1'),
    'invalid_request',
    'invalid_member',
    'a query that the row does not have',
  );
  await refused(get('/v1/proofs?limit=1&limit=1'), 'invalid_request', 'duplicate_parameter', 'twice');
  for (const path of ['/v1/health', '/v1/openapi.json', '/docs', '/'])
    t.ok((await ask(port, get(`${path}?x=1&x=%ff`)))!.status < 400, `${path} ignores the query (rule 2.8)`);
  for (const value of [
    '0',
    '101',
    '1.0',
    '01',
    '+1',
    '-1',
    '1e1',
    '0x1',
    '',
    ' 1',
    '1 ',
    '%31%00',
    'NaN',
    '99999999999',
    '१',
  ]) {
    await refused(
      get(`/v1/partner/keys?limit=${encodeURI(value)}`),
      'invalid_request',
      'invalid_member',
      `limit ${value}`,
    );
  }
  for (const query of ['days=0', 'days=93', 'days=', 'cursor=', 'day=1'])
    await refused(get(`/v1/partner/usage?${query}`), 'invalid_request', 'invalid_member', query);
  for (const query of [
    'cursor=',
    'cursor=x',
    'issuedAfter=-1',
    'issuedAfter=1.5',
    'issuedBefore=10000000000',
    'issuedAfter=2026-01-31',
    'issuedAfter=2026-01-31T12:00:00',
    'issuedAfter=2026-02-30T12:00:00Z',
    'issuedAfter=2026-01-31T24:00:01Z',
    'issuedAfter=2026-01-31T12:00:00+01:00',
    'issuedAfter=1969-12-31T23:59:59Z',
    'cursor[]=a',
  ])
    await refused(get(`/v1/proofs?${query}`), 'invalid_request', 'invalid_member', query);
  for (const query of [
    '',
    '?product=companion',
    '?product=companion&platform=',
    '?product=../x&platform=macos',
    '?product=a%20b&platform=x',
  ])
    await refused(get(`/v1/download${query}`), 'invalid_request', 'invalid_member', `download ${query}`);
  await refused(get('/v1/download?product=other&platform=macos'), 'not_found', undefined, 'no such download');
  const rotate = (headers: Record<string, string>, body = '') =>
    request('POST', '/v1/partner/keys/rotate', { ...AUTH, ...headers }, body);
  await refused(rotate({}), 'invalid_request', 'invalid_member', 'no Idempotency-Key');
  for (const key of [
    '',
    'k'.repeat(15),
    'k'.repeat(129),
    `${'k'.repeat(16)} ${'k'.repeat(16)}`,
    `${'k'.repeat(16)}\u00e9`,
  ])
    await refused(
      rotate({ 'Idempotency-Key': key }),
      'invalid_request',
      'invalid_member',
      `Idempotency-Key ${key.length}`,
    );
  await refused(
    rotate({ 'Idempotency-Key': 'k'.repeat(16) }),
    'conflict',
    'already_rotated',
    'another Idempotency-Key',
  );
  await refused(rotate(IDEMPOTENT, '{}'), 'invalid_request', 'invalid_member', 'a body');
  await refused(
    Buffer.concat([
      rotate({ ...IDEMPOTENT, 'Transfer-Encoding': 'chunked' }),
      Buffer.from('1\r\n \r\n0\r\n\r\n'),
    ]),
    'invalid_request',
    'invalid_member',
    'a chunked body',
  );
  for (const [name, body] of [
    ['e-mail address', { proofId: 'prf_1', bindings: { ...BINDINGS, creatorId: 'a@example.com' } }],
    ['name', { proofId: 'prf_1', bindings: { ...BINDINGS, accountId: 'Ada Lovelace' } }],
    ['three bindings', { proofId: 'prf_1', bindings: { creatorId: 'c', accountId: 'a', submissionId: 's' } }],
    ['a fifth', { proofId: 'prf_1', bindings: { ...BINDINGS, note: 'n' } }],
    ['free text', { proofId: 'prf_1', bindings: BINDINGS, note: 'a note' }],
    ['no bindings', { proofId: 'prf_1' }],
  ] as const)
    await refused(send('POST', '/v1/partner/reviews', body), 'invalid_request', 'invalid_member', name);
  await refused(
    send('POST', '/v1/partner/reviews', { proofId: 'prf_9', bindings: BINDINGS }),
    'not_found',
    undefined,
    'unknown proof',
  );
  await refused(
    send('POST', '/v1/partner/reviews', { proofId: 'prf_1', bindings: BINDINGS }),
    'conflict',
    'review_exists',
    'the same again',
  );
  for (const responseReference of ['', '/a', 'a b', 'a@b', 'a?b', 'r'.repeat(257), 'https://x/\u00e9'])
    await refused(
      send('PATCH', evidence, { status: 'accepted', responseReference }),
      'invalid_request',
      'invalid_member',
      `reference ${responseReference.slice(0, 9)}`,
    );
  for (const status of ['supplied', 'requested', 'Accepted', ''])
    await refused(
      send('PATCH', evidence, { status }),
      'invalid_request',
      'invalid_member',
      `status ${status}`,
    );
  for (const outcome of ['hold', 'reject', 'Accepted'])
    await refused(
      send('POST', `${path}/resolve`, { outcome }),
      'invalid_request',
      'invalid_member',
      `outcome ${outcome}`,
    );
  await refused(
    send('POST', `${path}/evidence-requests`, { kind: 'source_license' }),
    'invalid_request',
    'invalid_member',
    'another spelling of the kind',
  );
  for (const event of [
    { name: 'a text', count: 1, at: 1 },
    { name: 'app_started', count: 0, at: 1 },
    { name: 'app_started', count: 1, at: 1, note: 'x' },
  ])
    await refused(
      send('POST', '/v1/telemetry', { events: [event] }),
      'invalid_request',
      'invalid_member',
      JSON.stringify(event),
    );
  t.equal(contract.metered.length, free, 'refusals are not metered');

  const anonymous = await ask(port, request('GET', '/v1/proofs'));
  matchError(t, anonymous, 'forbidden', 'key_missing', 'no key');
  t.notOk(
    [...anonymous!.headers.keys()].some((header) => /^(x-)?ratelimit/.test(header)),
    'the quota has no owner',
  );
  contract.rateRefusal = new DomainError('rate_limited', 'Too many requests.', {
    reason: 'rate_exceeded',
    retryAfterSeconds: 2.2,
  });
  const limited = await checked(
    request('POST', '/v1/verify', { ...AUTH, 'Content-Type': 'text/plain' }, 'x'),
    429,
    'rate before media type',
  );
  t.equal(limited.headers.get('retry-after'), '3');
  t.equal((await ask(port, request('POST', '/v1/verify', {}, 'x')))!.status, 403, 'and key before rate');
  operations.scopes = SCOPES.filter((scope) => scope !== 'erase');
  t.equal((await checked(request('DELETE', '/v1/proofs/prf_1', AUTH), 403, 'scope before rate')).status, 403);
});

t.test('an asset is sent by ranges and preconditions', async (t) => {
  const { port, listener } = await startPartner();
  t.teardown(() => listener.close(100));
  const path = '/v1/proofs/prf_1/asset';
  const etag = `"${ASSET_SHA256}"`;
  const whole = await ask(port, get(path));
  t.strictSame(whole!.body, ASSET);
  t.match(Object.fromEntries(whole!.headers), {
    'content-type': 'audio/wav',
    'content-length': '1000',
    'accept-ranges': 'bytes',
    etag,
    'repr-digest': `sha-256=:${createHash('sha256').update(ASSET).digest('base64')}:`,
    'content-disposition': `attachment; filename="___ _1_.wav"; filename*=UTF-8''%E5%A4%9C%E6%98%8E%E3%81%91%20_1_.wav`,
    'cache-control': 'private, no-cache',
    'x-ratelimit-limit': '100000',
  });
  t.equal((await ask(port, get(`${path}?part=sidecar`)))!.body.toString(), 'the sidecar');
  const head = await ask(port, request('HEAD', path, { ...AUTH, Range: 'bytes=0-1' }), { head: true });
  t.match(
    [
      head!.status,
      head!.headers.get('content-length'),
      head!.headers.get('etag'),
      head!.headers.get('content-range'),
    ],
    [200, '1000', etag, undefined],
    'HEAD knows no ranges',
  );

  const ranges: [string, number, number][] = [
    ['0-0', 0, 0],
    ['0-999', 0, 999],
    ['10-19', 10, 19],
    ['990-', 990, 999],
    ['-1', 999, 999],
    ['-5000', 0, 999],
    ['999-99999999999999999999', 999, 999],
    ['0-', 0, 999],
  ];
  for (const [range, start, end] of ranges) {
    const answer = await ask(port, get(path, { Range: `bytes=${range}` }));
    t.equal(answer!.status, 206, range);
    t.equal(answer!.headers.get('content-range'), `bytes ${start}-${end}/1000`, range);
    t.strictSame(answer!.body, ASSET.subarray(start, end + 1), range);
    t.equal(answer!.headers.get('etag'), etag);
  }
  for (const range of ['bytes=1000-', 'bytes=1000-2000', 'bytes=-0']) {
    const answer = await ask(port, get(path, { Range: range }));
    matchError(
      t,
      { ...answer!, headers: new Map([...answer!.headers].filter(([name]) => name !== 'etag')) },
      'range_not_satisfiable',
      undefined,
      range,
    );
    t.equal(answer!.headers.get('content-range'), 'bytes */1000', range);
  }
  for (const range of [
    'bytes=0-1,5-6',
    'bytes=5-1',
    'bytes=',
    'bytes=-',
    'bytes=a-b',
    'items=0-1',
    '0-1',
    'bytes 0-1',
    'bytes=0x0-1',
  ]) {
    t.equal((await ask(port, get(path, { Range: range })))!.status, 200, `${range} is ignored`);
  }
  t.equal(
    (await ask(port, get(path, { Range: 'bytes=0-1', 'If-Range': etag })))!.status,
    206,
    'If-Range holds',
  );
  for (const other of ['"other"', `W/${etag}`, 'Wed, 21 Oct 2015 07:28:00 GMT'])
    t.equal(
      (await ask(port, get(path, { Range: 'bytes=2000-', 'If-Range': other })))!.status,
      200,
      `If-Range ${other}`,
    );
  for (const tags of [etag, `W/${etag}`, '*', `"a", ${etag}`]) {
    const answer = await ask(port, get(path, { 'If-None-Match': tags, Range: 'bytes=0-1' }));
    t.match(
      [answer!.status, answer!.body.length, answer!.headers.get('etag'), answer!.headers.get('content-type')],
      [304, 0, etag, undefined],
      `If-None-Match ${tags}`,
    );
  }
  t.equal(
    (await ask(port, request('HEAD', path, { ...AUTH, 'If-None-Match': etag }), { head: true }))!.status,
    304,
  );
  for (const tags of ['"a"', 'nonsense', ''])
    t.equal((await ask(port, get(path, { 'If-None-Match': tags })))!.status, 200, `If-None-Match ${tags}`);
  for (const tags of [etag, '*', `"a", ${etag}`])
    t.equal((await ask(port, get(path, { 'If-Match': tags })))!.status, 200, `If-Match ${tags}`);
  for (const tags of ['"a"', `W/${etag}`])
    matchError(
      t,
      await ask(port, get(path, { 'If-Match': tags })),
      'precondition_failed',
      undefined,
      `If-Match ${tags}`,
    );
  matchError(
    t,
    await ask(port, get('/v1/proofs/prf_9/asset', { Range: 'bytes=9999-', 'If-Match': '"a"' })),
    'not_found',
    undefined,
    'existence comes first',
  );
  matchError(
    t,
    await ask(port, get(`${path}?part=both`)),
    'invalid_request',
    'invalid_member',
    'an unknown part',
  );
});

t.test('a quota that cannot be read does not take the answer with it', async (t) => {
  const { port, listener, operations, reports } = await startPartner();
  t.teardown(() => listener.close(100));
  operations.contract.quotaFault = new Error('EIO');
  const client = await fetch(`http://127.0.0.1:${port}/v1/partner/keys/rotate`, {
    method: 'POST',
    headers: IDEMPOTENT,
  });
  t.equal(client.status, 201);
  t.equal(client.headers.get('x-ratelimit-limit'), '100000', 'the plan is known');
  t.equal(client.headers.get('x-ratelimit-remaining'), null);
  const reset = new Date(Number(client.headers.get('x-ratelimit-reset')) * 1000);
  t.ok(reset.getTime() > Date.now(), 'and so is the end of the month');
  t.match(reset.toISOString(), /^\d{4}-\d{2}-01T00:00:00.000Z$/);
  t.equal(reports.faults.length, 1, 'and is a fault');
});

t.test('a former host name serves the identical contract', async (t) => {
  const { port, listener } = await startPartner();
  t.teardown(() => listener.close(100));
  const [one, other] = await Promise.all(
    ['api.example.com', 'former-name.example.org:8443'].map((Host) =>
      ask(port, request('GET', '/v1/proofs/prf_1', { ...AUTH, Host })),
    ),
  );
  t.strictSame(one!.body, other!.body, '"keep serving the identical contract"');
});

t.test('every route of the operator listener answers as its table says', async (t) => {
  const { port, listener, operations } = await startOperator();
  t.teardown(() => listener.close(100));
  const auth = { Authorization: `Bearer ${TOKEN}` };
  const read = async (path: string, status = 200) => {
    const answer = await ask(port, request('GET', `/operator/v1/${path}`, auth));
    t.equal(answer!.status, status, path);
    return jsonOf(answer);
  };
  t.match(await read('partners'), { partners: [{ partnerId: 'ptr_1' }] });
  t.match(await read('plans'), { plans: [{ name: 'trial' }, { name: 'standard' }, { name: 'volume' }] });
  const write = async (method: string, path: string, body: object, status: number) => {
    const answer = await ask(
      port,
      request(
        method,
        `/operator/v1/${path}`,
        { ...auth, 'Content-Type': 'application/json' },
        JSON.stringify(body),
      ),
    );
    t.equal(answer!.status, status, `${method} ${path} ${JSON.stringify(body)}`);
    return jsonOf(answer);
  };
  const { name, ...limits } = SHIPPED_PLANS[0]!;
  t.match(await write('POST', 'plans', { ...limits, name: 'label' }, 201), { name: 'label', burst: 10 });
  t.match(await write('POST', 'plans', { ...limits, name }, 200), { name });
  t.match(await write('POST', 'plans', { ...limits, name, burst: 11 }, 409), { reason: 'plan_exists' });
  t.match(await write('PUT', 'plans/trial', { ...limits, burst: 11 }, 200), { name, burst: 11 });
  t.match(await write('PUT', 'plans/trial', { ...limits, burst: 11, effect: 'next_month' }, 200), {
    burst: 10,
    next: { burst: 11 },
  });
  await write('PUT', 'plans/none', limits, 404);
  t.match(await write('PUT', 'partners/ptr_1/plan', { plan: 'trial' }, 200), { plan: 'trial' });
  t.match(await write('PUT', 'partners/ptr_1/plan', { plan: 'trial', effect: 'next_month' }, 200), {
    plan: 'standard',
    nextPlan: { plan: 'trial' },
  });
  await write('PUT', 'partners/ptr_2/plan', { plan: 'trial' }, 404);
  t.match(await write('PUT', 'partners/ptr_1/plan', { plan: 'none' }, 400), { reason: 'plan_unknown' });
  for (const [path, body] of [
    ['plans/Label', limits],
    ['plans/trial', { ...limits, monthlyQuota: -1 }],
    ['plans/trial', { ...limits, requestsPerSecond: 0 }],
    ['plans/trial', { ...limits, concurrentUploads: 1.5 }],
    ['plans/trial', { ...limits, effect: 'later' }],
    ['plans/trial', { monthlyQuota: 1 }],
    ['plans/trial', { ...limits, name }],
  ] as const)
    t.match(await write('PUT', path, body, 400), { reason: 'invalid_member' });
  t.match(await read('openapi.json'), { info: { title: 'Takemark operator API' } });
  t.strictSame(await read('partners/ptr_1/reviews'), { reviews: [] });
  t.match(await read('partners/ptr_1/reviews?limit=2&status=open&proofId=prf_1'), { nextCursor: 'bmV4dA' });
  t.strictSame(operations.contract.asked.at(-1), { partnerId: 'ptr_1', status: 'open', proofId: 'prf_1' });
  await read('partners/ptr_2/reviews', 404);
  t.match(await read('partners/ptr_1/reviews?status=closed', 400), { reason: 'invalid_member' });
  await read('reviews/rev_never', 404);
  t.match(await read('partners/ptr_1/keys'), { keys: [{ keyId: 'key_1' }] });
  await read('partners/ptr_2/keys', 404);
  t.match(await read('partners/ptr_1/audit'), { entries: [{ sequence: 1 }] });
  t.strictSame(operations.contract.asked.at(-1), { partnerId: 'ptr_1', fromSequence: 1, limit: 100 });
  await read('partners/ptr_1/audit?from=5&limit=1000');
  t.strictSame(operations.contract.asked.at(-1), { partnerId: 'ptr_1', fromSequence: 5, limit: 1000 });
  for (const query of ['from=0', 'limit=1001', 'x=1'])
    t.match(await read(`partners/ptr_1/audit?${query}`, 400), { reason: 'invalid_member' });
  t.match(await read('partners/ptr_1/audit/verification'), { ok: true });
  const fill = (query: string) =>
    ask(port, request('POST', `/operator/v1/samples/fill${query}`, { Authorization: `Bearer ${TOKEN}` }));
  t.equal((await fill('?from=2:prf_1'))!.status, 200);
  t.strictSame(operations.contract.asked.at(-1), { from: '2:prf_1' });
  matchError(t, await fill('?from='), 'invalid_request', 'invalid_member', 'an empty place');
  t.strictSame(await read('audit/stores'), { findings: [], looked: 0 });
  t.strictSame(operations.contract.asked.at(-1), { limit: 200 });
  await read('audit/stores?from=objects:a-b&limit=500');
  t.strictSame(operations.contract.asked.at(-1), { from: 'objects:a-b', limit: 500 });
  for (const query of ['from=', 'limit=501', `from=${'x'.repeat(1501)}`])
    t.match(await read(`audit/stores?${query}`, 400), { reason: 'invalid_member' });
  t.match(await read('proofs/prf_1/erasure'), { state: 'issued', assetPresent: true });
  t.match(await read('dead-letters'), { deadLetters: [{ topic: 'usage', position: '0/17' }] });
  t.strictSame(operations.contract.asked.at(-1), { limit: 100 });
  const changeLetters = (act: string) =>
    ask(
      port,
      request(
        'POST',
        `/operator/v1/dead-letters/${act}`,
        { ...auth, 'Content-Type': 'application/json' },
        '{"topic":"usage","limit":10}',
      ),
    );
  const replayed = await changeLetters('replay');
  t.strictSame(jsonOf(replayed), { replayed: 1 });
  const discarded = await changeLetters('discard');
  t.match(jsonOf(discarded), { deadLetters: [{ topic: 'usage', position: '0/17' }] });
  const legacy = (proofId: string) =>
    ask(
      port,
      request(
        'POST',
        '/operator/v1/legacy-proofs',
        { ...auth, 'Content-Type': 'application/json' },
        JSON.stringify({
          proofId,
          partnerId: 'ptr_1',
          createdAt: 1,
          kid: ASSET_SHA256,
          carrier: 'embedded',
          song: { title: 'Old' },
          originalSha256: ASSET_SHA256,
          boundAudioSha256: ASSET_SHA256,
          credentialSha256: ASSET_SHA256,
          asset: { bytes: 1, sha256: ASSET_SHA256, fileName: 'old.wav', mediaType: 'audio/wav' },
        }),
      ),
    );
  t.strictSame(jsonOf(await legacy('tpf_1')), { proofId: 'tpf_1', outcome: 'imported' });
  matchError(t, await legacy('prf_1'), 'conflict', 'legacy_differs', 'of an id that is taken');
  const submission = {
    surveyVersion: '1',
    submissionId: 'sub_1',
    subject: 'creator_1',
    submittedAt: 1,
    answers: { declaredOrigin: 'from_scratch', disputedAssessment: 'disputed' },
  };
  const declare = (body: object, proofId = 'prf_1') =>
    ask(
      port,
      request(
        'POST',
        `/operator/v1/proofs/${proofId}/declarations`,
        { ...auth, 'Content-Type': 'application/json' },
        JSON.stringify(body),
      ),
    );
  const recorded = await declare(submission);
  t.equal(recorded!.status, 201);
  t.match(jsonOf(recorded), { ...submission, bindingStatus: 'authenticated_post_issuance_record' });
  const again = await declare(submission);
  t.equal(again!.status, 200, 'said again');
  t.strictSame(jsonOf(again), jsonOf(recorded));
  matchError(
    t,
    await declare({ ...submission, answers: { manualWork: 'some' } }),
    'conflict',
    'submission_id_reused',
    'said otherwise',
  );
  matchError(t, await declare(submission, 'prf_9'), 'not_found', undefined, 'of no proof');
  const { answers } = submission;
  for (const [name, over] of Object.entries({
    'no answer': { answers: {} },
    'an unknown dimension': { answers: { ...answers, note: 'none' } },
    'another word': { answers: { aiShareBand: '12 %' } },
    'free text': { answers: { manualWork: 'I played all of it' } },
    'no text': { answers: { manualWork: null } },
    'no role': { answers: { aiRoles: [] } },
    'an unknown role': { answers: { aiRoles: ['drums'] } },
    'a role twice': { answers: { aiRoles: ['vocals', 'vocals'] } },
    'none beside a role': { answers: { aiRoles: ['none', 'vocals'] } },
    'undisclosed beside a role': { answers: { aiRoles: ['vocals', 'undisclosed'] } },
    'a role that is not a list': { answers: { aiRoles: 'vocals' } },
    'more roles than there are': { answers: { aiRoles: Array(64).fill('vocals') } },
    'an unknown member': { note: 'x' },
    'a name': { subject: 'Ada Lovelace' },
    'an e-mail address': { subject: 'ada@example.com' },
    'a long id': { submissionId: 'a'.repeat(129) },
    'a version with spaces': { surveyVersion: 'the first' },
    'no time': { submittedAt: undefined },
    'half a second': { submittedAt: 1.5 },
    'before all time': { submittedAt: -1 },
  }))
    matchError(
      t,
      await declare({ ...submission, submissionId: 'sub_2', ...over }),
      'invalid_request',
      'invalid_member',
      name,
    );
  t.strictSame(await read('proofs/prf_1/declarations'), {
    declarations: [{ ...(jsonOf(recorded) as object), authentic: true }],
  });
  t.strictSame(await read('proofs/prf_2/declarations'), { declarations: [] });
  await read('proofs/prf_9/declarations', 404);
  const revoked = await ask(port, request('POST', '/operator/v1/partners/ptr_1/keys/key_1/revoke', auth));
  t.match(jsonOf(revoked), { status: 'revoked' });
  matchError(
    t,
    await ask(port, request('POST', '/operator/v1/partners/ptr_1/keys/key_9/revoke', auth)),
    'not_found',
    undefined,
    'unknown key',
  );

  const { signers } = (await read('signers')) as { readonly signers: readonly { readonly kid: string }[] };
  const signer = `/operator/v1/signers/${signers[0]!.kid}`;
  const revocation = { from: 1, reason: 'key_compromise' };
  const revoke = (path: string, body: object) =>
    ask(
      port,
      request(
        'POST',
        `${path}/revoke`,
        { ...auth, 'Content-Type': 'application/json' },
        JSON.stringify(body),
      ),
    );
  t.match(jsonOf(await revoke(signer, revocation)), { kid: signers[0]!.kid, revocation });
  matchError(
    t,
    await revoke(`/operator/v1/signers/${'cd'.repeat(32)}`, revocation),
    'not_found',
    undefined,
    'unknown signer',
  );
  matchError(
    t,
    await revoke(signer, { ...revocation, reason: 'a mood' }),
    'invalid_request',
    'invalid_member',
    'unknown reason',
  );
  t.notOk(
    'revocation' in jsonOf(await ask(port, request('POST', `${signer}/reinstate`, auth))),
    'taken back',
  );
  const put = (path: string, body: object) =>
    ask(
      port,
      request(
        'PUT',
        `/operator/v1/${path}`,
        { ...auth, 'Content-Type': 'application/json' },
        JSON.stringify(body),
      ),
    );
  const remove = (path: string) => ask(port, request('DELETE', `/operator/v1/${path}`, auth));
  const approval = { consentVersion: '2026-01' };
  t.match(jsonOf(await put('partners/ptr_1/source-detail', approval)), { sourceDetail: approval });
  t.notOk('sourceDetail' in jsonOf(await remove('partners/ptr_1/source-detail')));
  matchError(t, await put('partners/ptr_9/source-detail', approval), 'not_found', undefined, 'of no partner');
  matchError(t, await remove('partners/ptr_9/source-detail'), 'not_found', undefined, 'of no partner');
  const consent = { ...approval, grantedAt: 1_767_225_600 };
  const consentOf = (proofId: string) => `proofs/${proofId}/source-detail-consent`;
  t.strictSame(jsonOf(await put(consentOf('prf_1'), consent)), { proofId: 'prf_1', consent });
  t.strictSame(jsonOf(await remove(consentOf('prf_1'))), { proofId: 'prf_1' });
  matchError(t, await put(consentOf('prf_2'), consent), 'conflict', 'source_detail_absent', 'no detail');
  matchError(t, await put(consentOf('prf_9'), consent), 'not_found', undefined, 'of no proof');
  matchError(t, await remove(consentOf('prf_9')), 'not_found', undefined, 'of no proof');
  for (const [name, over] of Object.entries({
    'free text': { consentVersion: 'the first one' },
    'a long version': { consentVersion: 'a'.repeat(129) },
    'no version': { consentVersion: '' },
  })) {
    matchError(
      t,
      await put(consentOf('prf_1'), { ...consent, ...over }),
      'invalid_request',
      'invalid_member',
      name,
    );
    matchError(t, await put('partners/ptr_1/source-detail', over), 'invalid_request', 'invalid_member', name);
  }
  matchError(t, await put(consentOf('prf_1'), approval), 'invalid_request', 'invalid_member', 'no time');
  const deviceId = 'cd'.repeat(32);
  const enrol = (body: object) =>
    ask(
      port,
      request(
        'POST',
        '/operator/v1/devices',
        { ...auth, 'Content-Type': 'application/json' },
        JSON.stringify(body),
      ),
    );
  const enrolled = await enrol({ deviceId, algorithm: 'Ed25519' });
  t.equal(enrolled!.status, 201);
  t.equal((await enrol({ deviceId }))!.status, 200, 'said again');
  t.match(await read('devices?from=1&limit=10'), { devices: [{ deviceId }], deviceCount: 1 });
  t.strictSame(operations.contract.asked.at(-1), { from: 1, limit: 10 });
  for (const [name, body] of Object.entries({
    'no digest': { deviceId: 'studio-mac' },
    'capital letters': { deviceId: deviceId.toUpperCase() },
    'another algorithm': { deviceId, algorithm: 'RS256' },
    'a name': { deviceId, name: 'studio' },
  }))
    matchError(t, await enrol(body), 'invalid_request', 'invalid_member', name);
  const device = `/operator/v1/devices/${deviceId}`;
  t.match(jsonOf(await revoke(device, { from: 7 })), { deviceId, revocation: { from: 7 } });
  matchError(
    t,
    await revoke(`/operator/v1/devices/${'ab'.repeat(32)}`, {}),
    'not_found',
    undefined,
    'unknown device',
  );
  matchError(
    t,
    await revoke('/operator/v1/devices/studio-mac', {}),
    'invalid_request',
    'invalid_member',
    'no digest',
  );
  matchError(t, await enrol({ deviceId }), 'conflict', 'device_revoked', 'a revoked device');
  matchError(
    t,
    await ask(port, request('POST', '/operator/v1/partners/ptr_1/keys/key_1/revoke', auth, 'x')),
    'invalid_request',
    'invalid_member',
    'with a body',
  );
  const review = await operations.contract
    .partner()
    .createReview({} as never, { proofId: 'prf_1', bindings: BINDINGS });
  const opened = await operations.contract
    .partner()
    .openEvidence({} as never, { reviewId: review.reviewId, kind: 'source_evidence' });
  t.match(jsonOf(await ask(port, request('GET', `/operator/v1/reviews/${review.reviewId}`, auth))), {
    partnerId: 'ptr_1',
    reviewId: review.reviewId,
  });
  const supply = `/operator/v1/reviews/${review.reviewId}/evidence-requests/${opened.evidenceRequests[0]!.requestId}/supply`;
  t.match(jsonOf(await ask(port, request('POST', supply, auth))), {
    evidenceRequests: [{ status: 'supplied' }],
  });
  for (const route of ['GET /operator/v1/partners', 'GET /operator/v1/plans', `POST ${supply}`])
    matchError(
      t,
      await ask(port, request(...(route.split(' ') as [string, string]))),
      'forbidden',
      undefined,
      `${route} without a token`,
    );
  for (const [id, route] of Object.entries<Route>(ROUTES)) {
    if (
      route.listener === 'operator' &&
      route.auth === 'bearer' &&
      id !== 'issueProof' &&
      id !== 'createPartner' &&
      id !== 'createKey'
    ) {
      t.ok(
        Object.keys(route.responses).some((status) => partnerContract.seen.has(`${id} ${status}`)) ||
          id === 'readAsset' ||
          id === 'readAuthority' ||
          id === 'readSnapshot',
        `${id} was answered`,
      );
    }
  }
});

t.test('the list of proofs takes times in unix seconds and in RFC 3339 when they filter it', async (t) => {
  const { port, listener, operations } = await startPartner();
  t.teardown(() => listener.close(100));
  for (const [query, seconds] of [
    ['issuedAfter=1769860800', { issuedAfter: 1_769_860_800 }],
    ['issuedAfter=2026-01-31T12:00:00Z', { issuedAfter: 1_769_860_800 }],
    ['issuedAfter=2026-01-31t13:00:00%2B01:00', { issuedAfter: 1_769_860_800 }],
    ['issuedAfter=2026-01-31T12:00:00.0001Z', { issuedAfter: 1_769_860_801 }],
    ['issuedBefore=2026-01-31T07:00:00.9-05:00', { issuedBefore: 1_769_860_800 }],
  ] as const) {
    t.equal((await ask(port, get(`/v1/proofs?${query}`)))!.status, 200, query);
    t.strictSame(operations.contract.asked.at(-1), seconds, query);
  }
  const refused = jsonOf(await ask(port, get('/v1/proofs?issuedAfter=2026-01-31')));
  t.equal(
    refused['error'],
    'issuedAfter must be unix seconds, or a time such as 2026-01-31T12:00:00Z (send + as %2B).',
  );
});
