import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import t from 'tap';
import { challengeNonce } from '../../src/service/contract/operator-challenge.js';
import { MAX_UPLOAD_BYTES } from '../../src/service/domain/upload.js';
import { until } from '../fixtures/until.js';
import { noise } from '../fixtures/wav.js';
import { sleep, startOperator, TOKEN } from './doubles.js';
import { ask, jsonOf, matchError, RawClient, request } from './raw-client.js';

const AUTH = { Authorization: `Bearer ${TOKEN}` };
const JSON_AUTH = { ...AUTH, 'Content-Type': 'application/json' };
const AUDIO = { ...AUTH, 'Content-Type': 'audio/wav' };
const TITLE = 'Morgenröte – 夜明け';
const ISSUE = `/operator/v1/proofs?partnerId=ptr_1&song=${encodeURIComponent(TITLE)}&fileName=${encodeURIComponent('夜.wav')}`;

t.test('operator routes ask for the token and answer as their table says', async (t) => {
  const { port, listener, operations, state, reports } = await startOperator();
  t.teardown(() => listener.close(100));
  const partner = await ask(
    port,
    request('POST', '/operator/v1/partners', JSON_AUTH, JSON.stringify({ name: TITLE, plan: 'volume' })),
  );
  t.equal(partner!.status, 201);
  t.match(jsonOf(partner), { name: TITLE, plan: 'volume', partnerId: /^ptr_/ });
  const key = await ask(
    port,
    request('POST', '/operator/v1/partners/ptr_1/keys', JSON_AUTH, '{"name":"ingest","scopes":["verify"]}'),
  );
  t.equal(key!.status, 201);
  t.equal(key!.headers.get('cache-control'), 'no-store');
  t.match(jsonOf(key), { apiKey: 'tmk_secret', name: 'ingest' });

  const audio = noise(200_000);
  const idempotent = { ...AUDIO, 'Idempotency-Key': '0b6f6c9e-9d0a-4b53-8f0e-0c5f0f3f1d2a' };
  const issued = await ask(port, request('POST', ISSUE, idempotent, audio));
  t.equal(issued!.status, 201);
  t.match(jsonOf(issued), {
    proofId: 'prf_1',
    carrier: 'embedded',
    originalSha256: createHash('sha256').update(audio).digest('hex'),
    asset: { fileName: '夜.wav' },
  });
  t.notOk('replayed' in jsonOf(issued) || issued!.headers.has('idempotency-replayed'));
  t.match(operations.issued[0], {
    songTitle: TITLE,
    fileName: '夜.wav',
    partnerId: 'ptr_1',
    idempotencyKey: '0b6f6c9e-9d0a-4b53-8f0e-0c5f0f3f1d2a',
  });
  t.notOk('declaredSong' in operations.issued[0]!);
  const replay = await ask(
    port,
    request(
      'POST',
      `${ISSUE}&carrier=sidecar&artist=${encodeURIComponent('ä'.repeat(255))}&isrc=DEA122600001`,
      idempotent,
      audio,
    ),
  );
  t.strictSame(operations.issued[1]?.declaredSong, { artist: 'ä'.repeat(255), isrc: 'DEA122600001' });
  t.equal(replay!.status, 201);
  t.equal(replay!.headers.get('idempotency-replayed'), 'true');

  const asset = await ask(port, request('GET', '/operator/v1/proofs/prf_1/asset', AUTH));
  t.equal(asset!.body.toString(), 'RIFFdata');
  t.equal(
    asset!.headers.get('content-disposition'),
    `attachment; filename="Morgenrote _1_.wav"; filename*=UTF-8''Morgenr%C3%B6te%20_1_.wav`,
  );
  t.equal(
    (await ask(port, request('GET', '/operator/v1/proofs/prf_1/asset?part=sidecar', AUTH)))!.body.toString(),
    'abc',
  );
  const head = await ask(port, request('HEAD', '/operator/v1/proofs/prf_1/asset', AUTH), { head: true });
  t.equal(head!.headers.get('content-length'), '8');
  operations.asset.stream = () =>
    new Readable({
      read() {
        this.destroy(new Error('EIO /data/x'));
      },
    });
  matchError(
    t,
    await ask(port, request('GET', '/operator/v1/proofs/prf_1/asset', AUTH)),
    'internal',
    undefined,
    'a file that cannot be read',
  );
  operations.asset.stream = () =>
    Readable.from(
      (async function* () {
        yield Buffer.from('RIFF');
        await sleep(20);
        throw new Error('EIO');
      })(),
    );
  const cut = new RawClient(port);
  await cut.send(request('GET', '/operator/v1/proofs/prf_1/asset', AUTH));
  t.equal(await cut.read(), undefined, 'a file that fails half way never looks complete');
  // The caller may see the end of the connection before the report is made.
  t.ok(await until(() => reports.faults.length === 2), 'both are faults');
  cut.destroy();

  const letters = jsonOf(
    await ask(port, request('GET', '/operator/v1/dead-letters?topic=usage&limit=5', AUTH)),
  ) as { deadLetters: object[] };
  t.match(letters.deadLetters, [{ topic: 'usage', position: '0/17', reason: 'the span is empty' }]);
  t.strictSame(operations.contract.asked.at(-1), { topic: 'usage', limit: 5 });
  t.strictSame(
    jsonOf(
      await ask(port, request('POST', '/operator/v1/dead-letters/replay', JSON_AUTH, '{"topic":"usage"}')),
    ),
    { replayed: 1 },
  );
  t.strictSame(operations.contract.asked.at(-1), { topic: 'usage', limit: 1000 });
  t.match(
    jsonOf(
      await ask(port, request('POST', '/operator/v1/dead-letters/discard', JSON_AUTH, '{"topic":"usage"}')),
    ),
    { deadLetters: [{ topic: 'usage', position: '0/17' }] },
  );
  t.strictSame(operations.contract.asked.at(-1), { topic: 'usage', limit: 1 });

  t.match(
    (await ask(port, request('GET', '/operator/v1/authority', AUTH)))!.body.toString(),
    /^-----BEGIN CERTIFICATE/,
  );
  const LOCAL = { Host: `localhost:${port}` };
  for (const path of ['/metrics', '/livez', '/readyz', `/operator/v1/challenge?nonce=${challengeNonce()}`]) {
    const isProbe = !path.includes('challenge');
    for (const host of [
      'rebound.example:8081',
      'localhost.example',
      '127.0.0.1.example',
      'mesh.internal',
      ...(isProbe ? [] : ['probes.internal:8081', 'a.mesh.internal']),
    ])
      matchError(
        t,
        await ask(port, request('GET', path, { Host: host })),
        'forbidden',
        undefined,
        `${path} under ${host}`,
      );
    for (const host of [
      '127.0.0.1:8081',
      '[::1]:8081',
      'LOCALHOST',
      '10.0.0.7',
      ...(isProbe ? ['probes.internal:8081', 'a.mesh.internal'] : []),
    ])
      t.equal((await ask(port, request('GET', path, { Host: host })))!.status, 200, `${path} under ${host}`);
    t.equal((await ask(port, `GET ${path} HTTP/1.0\r\n\r\n`))!.status, 200, `${path} without a host`);
  }
  t.equal((await ask(port, request('GET', '/metrics', LOCAL)))!.body.toString(), 'takemark_up 1\n');
  t.strictSame(jsonOf(await ask(port, request('GET', '/livez', LOCAL))), { ok: true });
  t.strictSame(jsonOf(await ask(port, request('GET', '/readyz', LOCAL))), {
    ok: true,
    issuing: { ok: true },
  });
  state.missing = ['bucket'];
  t.strictSame(
    jsonOf(await ask(port, request('GET', '/readyz', LOCAL))),
    { ok: true, issuing: { ok: true }, missing: ['bucket'] },
    'what is missing does not end readiness',
  );
  state.ready = false;
  matchError(
    t,
    await ask(port, request('GET', '/readyz', LOCAL)),
    'unavailable',
    'store_unavailable',
    'not ready',
  );

  const post = (path: string, headers: Record<string, string>, body: string | Uint8Array = '{}') =>
    request('POST', path, headers, body);
  const cases: [string, Uint8Array, Parameters<typeof matchError>[2], string | undefined][] = [
    ['partner route', request('GET', '/v1/health'), 'not_found', 'unknown_route'],
    [
      'no token',
      post('/operator/v1/partners', { 'Content-Type': 'application/json' }),
      'forbidden',
      undefined,
    ],
    [
      'wrong token',
      post('/operator/v1/partners', { ...JSON_AUTH, Authorization: `Bearer ${TOKEN}x` }),
      'forbidden',
      undefined,
    ],
    [
      'other scheme',
      post('/operator/v1/partners', { ...JSON_AUTH, Authorization: `Basic ${TOKEN}` }),
      'forbidden',
      undefined,
    ],
    [
      'token twice',
      post('/operator/v1/partners', { ...JSON_AUTH, authorization: `Bearer ${TOKEN}` }),
      'forbidden',
      undefined,
    ],
    [
      'name with a line end',
      post('/operator/v1/partners', JSON_AUTH, '{"name":"a\\nb"}'),
      'invalid_request',
      'invalid_member',
    ],
    [
      'half a surrogate pair',
      post('/operator/v1/partners', JSON_AUTH, '{"name":"\\ud800"}'),
      'invalid_request',
      'invalid_member',
    ],
    ...['%20', '%E2%80%8B', '%20%E3%85%A4%C2%A0', '%EE%80%80', '%EF%BF%BF', '%E2%A0%80'].map(
      (song): [string, Buffer, 'invalid_request', 'invalid_member'] => [
        `blank title ${song}`,
        post(`/operator/v1/proofs?partnerId=ptr_1&fileName=a&song=${song}`, AUDIO),
        'invalid_request',
        'invalid_member',
      ],
    ),
    ...[
      `artist=${'a'.repeat(256)}`,
      `release=${'a'.repeat(256)}`,
      'artist=%20',
      'artist=',
      'isrc=DE-A12-26-00001',
      'isrc=dea122600001',
      'isrc=DEA1226000011',
    ].map((member): [string, Buffer, 'invalid_request', 'invalid_member'] => [
      member.slice(0, 24),
      post(`${ISSUE}&${member}`, AUDIO),
      'invalid_request',
      'invalid_member',
    ]),
    [
      'unknown scope',
      post('/operator/v1/partners/ptr_1/keys', JSON_AUTH, '{"name":"a","scopes":["all"]}'),
      'invalid_request',
      'invalid_member',
    ],
    ['issue as JSON', post(ISSUE, JSON_AUTH), 'unsupported_media_type', undefined],
    [
      'issue without a song',
      post('/operator/v1/proofs?partnerId=ptr_1&fileName=a', AUDIO),
      'invalid_request',
      'invalid_member',
    ],
    [
      'song not UTF-8',
      post('/operator/v1/proofs?partnerId=ptr_1&fileName=a&song=%ff', AUDIO),
      'invalid_request',
      'invalid_member',
    ],
    [
      'Idempotency-Key too short',
      post(ISSUE, { ...AUDIO, 'Idempotency-Key': 'short' }),
      'invalid_request',
      'invalid_member',
    ],
    [
      'Idempotency-Key too long',
      post(ISSUE, { ...AUDIO, 'Idempotency-Key': 'k'.repeat(129) }),
      'invalid_request',
      'invalid_member',
    ],
    [
      'Idempotency-Key twice',
      post(ISSUE, { ...AUDIO, 'Idempotency-Key': 'k'.repeat(16), 'idempotency-key': 'k'.repeat(16) }),
      'invalid_request',
      'malformed_http',
    ],
    [
      'unknown partner',
      post(ISSUE.replace('ptr_1', 'ptr_none'), AUDIO, noise(100_000)),
      'not_found',
      undefined,
    ],
    [
      'too large by its length',
      post(ISSUE, { ...AUDIO, 'Content-Length': String(MAX_UPLOAD_BYTES + 1) }, 'x'),
      'payload_too_large',
      'body_too_large',
    ],
    ['no length', request('POST', ISSUE, AUDIO), 'length_required', undefined],
    [
      'unknown topic',
      request('GET', '/operator/v1/dead-letters?topic=errors', AUTH),
      'invalid_request',
      'invalid_member',
    ],
    [
      'replay of no topic',
      post('/operator/v1/dead-letters/replay', JSON_AUTH),
      'invalid_request',
      'invalid_member',
    ],
    [
      'unknown part',
      request('GET', '/operator/v1/proofs/prf_1/asset?part=all', AUTH),
      'invalid_request',
      'invalid_member',
    ],
    ['unknown proof', request('GET', '/operator/v1/proofs/prf_2/asset', AUTH), 'not_found', undefined],
  ];
  for (const [name, bytes, code, reason] of cases) matchError(t, await ask(port, bytes), code, reason, name);
});

t.test('issuing streams, and ends with a caller that stalls or leaves', async (t) => {
  const { port, listener, operations, reports } = await startOperator({ drainMs: 200 });
  t.teardown(() => listener.close(100));
  const exact = Buffer.alloc(MAX_UPLOAD_BYTES, 3);
  t.equal((await ask(port, request('POST', ISSUE, AUDIO, exact)))!.status, 201, '65 MiB');
  const count = operations.issued.length;
  const over = Buffer.concat([
    Buffer.from(`${(MAX_UPLOAD_BYTES + 1).toString(16)}\r\n`),
    exact,
    Buffer.from('x\r\n0\r\n\r\n'),
  ]);
  matchError(
    t,
    await ask(
      port,
      Buffer.concat([request('POST', ISSUE, { ...AUDIO, 'Transfer-Encoding': 'chunked' }), over]),
    ),
    'payload_too_large',
    'body_too_large',
    'one more, chunked',
  );
  const impatient = await startOperator({ idleMs: 300, drainMs: 200 });
  t.teardown(() => impatient.listener.close(100));
  const stalled = new RawClient(impatient.port);
  await stalled.send(request('POST', ISSUE, { ...AUDIO, 'Content-Length': '100000' }, noise(5000)));
  matchError(t, await stalled.read(), 'timeout', 'client_too_slow', 'a caller that stalls');
  stalled.destroy();
  const gone = new RawClient(port);
  await gone.send(request('POST', ISSUE, { ...AUDIO, 'Content-Length': '100000' }, noise(5000)));
  await gone.arrived();
  const before = reports.records.length;
  gone.socket.resetAndDestroy();
  t.ok(await until(() => reports.records.length > before), 'a caller that leaves');
  t.equal(operations.issued.length + impatient.operations.issued.length, count, 'nothing was issued');
  t.equal(reports.faults.length + impatient.reports.faults.length, 0);
  const expecting = new RawClient(port);
  await expecting.send(request('POST', ISSUE, { ...AUDIO, Expect: '100-continue', 'Content-Length': '4' }));
  t.equal((await expecting.read())!.status, 100);
  await expecting.send('RIFF');
  t.equal((await expecting.read())!.status, 201);
  expecting.destroy();
});
