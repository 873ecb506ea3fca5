import { createHash } from 'node:crypto';
import https from 'node:https';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { inspect } from 'node:util';
import t, { type Test } from 'tap';
import { parseReprDigest } from '../../src/client/asset.js';
import {
  type Client,
  type ClientOptions,
  createClient,
  type RotationState,
  type RotationStore,
  TakemarkError,
} from '../../src/client/index.js';
import { makeCertificate } from '../../src/service/adapters/signing/certificate-profile.js';
import { generateKey } from '../../src/service/adapters/signing/identity.js';
import { until } from '../fixtures/until.js';
import { noise } from '../fixtures/wav.js';
import { type Reply, ServiceDouble } from './service-double.js';

const KEY = 'tmk_beta_key_secret';
const LIMITS = {
  'x-ratelimit-limit': '1000',
  'x-ratelimit-remaining': '12',
  'x-ratelimit-reset': '1769904000',
};
const REVIEW = { reviewId: 'rev_1', proofId: 'prf_1', status: 'open', evidenceRequests: [] };

async function setUp(
  test: Test,
  options: Partial<ClientOptions> = {},
): Promise<{ service: ServiceDouble; client: Client }> {
  const service = await new ServiceDouble().start();
  const client = createClient({
    baseUrl: service.url,
    apiKey: KEY,
    ...options,
    retry: { baseDelayMs: 5, ...options.retry },
  });
  test.teardown(async () => {
    client.close();
    await service.stop();
  });
  return { service, client };
}

async function failure(promise: Promise<unknown>): Promise<TakemarkError> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof TakemarkError)) throw new Error(`expected a TakemarkError, got ${inspect(error)}`);
  return error;
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

t.test('every method of the client calls its endpoint and returns its response', async (t) => {
  const { service, client } = await setUp(t);
  const bindings = { creatorId: 'c', accountId: 'a', submissionId: 's', trackId: 't' };
  const rows: [string, string, Reply, () => Promise<unknown>, { query?: object; body?: unknown }][] = [
    [
      'GET',
      '/v1/proofs',
      { status: 200, body: { proofs: [] } },
      () => client.listProofsPage({ limit: 5, issuedAfter: 7, issuedBefore: 9, cursor: 'c+/=' }),
      { query: { limit: '5', issuedAfter: '7', issuedBefore: '9', cursor: 'c+/=' } },
    ],
    [
      'GET',
      '/v1/proofs/prf_1',
      { status: 200, body: { proofId: 'prf_1' } },
      () => client.readProof('prf_1'),
      {},
    ],
    [
      'DELETE',
      '/v1/proofs/prf_1',
      { status: 200, body: { proofId: 'prf_1', outcome: 'erased', erasedAt: 1 } },
      () => client.eraseProof('prf_1'),
      {},
    ],
    [
      'GET',
      '/v1/records/prf_1',
      { status: 200, body: { proofId: 'prf_1' } },
      () => client.readRecord('prf_1'),
      {},
    ],
    [
      'GET',
      '/v1/partner/keys',
      { status: 200, body: { keys: [] } },
      () => client.listKeysPage(),
      { query: {} },
    ],
    [
      'DELETE',
      '/v1/partner/keys/key_1',
      { status: 200, body: { keyId: 'key_1', status: 'revoked' } },
      () => client.revokeKey('key_1'),
      {},
    ],
    [
      'GET',
      '/v1/partner/usage',
      { status: 200, body: { days: [] } },
      () => client.readUsage({ days: 1 }),
      { query: { days: '1' } },
    ],
    [
      'POST',
      '/v1/partner/reviews',
      { status: 201, body: REVIEW },
      () => client.createReview({ proofId: 'prf_1', bindings }),
      { body: { proofId: 'prf_1', bindings } },
    ],
    [
      'GET',
      '/v1/partner/reviews',
      { status: 200, body: { reviews: [] } },
      () => client.listReviewsPage({ limit: 5, proofId: 'prf_1', status: 'open', cursor: 'c' }),
      { query: { limit: '5', proofId: 'prf_1', status: 'open', cursor: 'c' } },
    ],
    ['GET', '/v1/partner/reviews/rev_1', { status: 200, body: REVIEW }, () => client.readReview('rev_1'), {}],
    [
      'POST',
      '/v1/partner/reviews/rev_1/evidence-requests',
      { status: 201, body: REVIEW },
      () => client.openEvidence('rev_1', { kind: 'source_licence' }),
      { body: { kind: 'source_licence' } },
    ],
    [
      'PATCH',
      '/v1/partner/reviews/rev_1/evidence-requests/req_1',
      { status: 200, body: REVIEW },
      () => client.closeEvidence('rev_1', 'req_1', { status: 'accepted', responseReference: 'dam/7' }),
      { body: { status: 'accepted', responseReference: 'dam/7' } },
    ],
    [
      'POST',
      '/v1/partner/reviews/rev_1/resolve',
      { status: 200, body: REVIEW },
      () => client.resolveReview('rev_1', { outcome: 'held' }),
      { body: { outcome: 'held' } },
    ],
    [
      'POST',
      '/v1/recordings/identify',
      { status: 200, body: { matches: [{ proofId: 'prf_1', type: 'later_kind', confidence: 1 }] } },
      () => client.identify({ uploadId: 'upl_1' }),
      { body: { uploadId: 'upl_1' } },
    ],
    [
      'POST',
      '/v1/recordings/identify',
      { status: 200, body: { results: [{ sha256: 'ab', matches: [] }] } },
      () => client.identify({ digests: [{ sha256: 'ab', of: undefined }] }),
      { body: { digests: [{ sha256: 'ab' }] } },
    ],
    [
      'POST',
      '/v1/telemetry',
      { status: 202, body: { accepted: 1 } },
      () => client.sendTelemetry([{ name: 'verify_shown', count: 1, at: 2 }]),
      { body: { events: [{ name: 'verify_shown', count: 1, at: 2 }] } },
    ],
  ];
  for (const [method, path, reply, call, { query = {}, body }] of rows) {
    service.queue(path, { ...reply, headers: LIMITS, body: { ...(reply.body as object), later: 1 } });
    const result = (await call()) as { requestId?: string; rateLimit?: object };
    const seen = service.seen.at(-1)!;
    t.match({ method: seen.method, path: seen.path }, { method, path });
    t.strictSame(seen.query, query, `${method} ${path} query`);
    t.equal(seen.headers['x-api-key'], KEY);
    if (body === undefined) t.equal(seen.text, '');
    else t.strictSame(JSON.parse(seen.text), body);
    t.match(result, { ...(reply.body as object), later: 1, requestId: /^rq_/ });
    t.strictSame(result.rateLimit, { limit: 1000, remaining: 12, reset: 1_769_904_000 });
    t.notMatch(JSON.stringify(result), /rateLimit/, 'and it does not get into what is stored');
    // A body of another shape is not a response.
    service.queue(path, { status: 200, body: { proofId: 'another', unlike: true } });
    t.equal((await failure(call())).code, 'bad_response', `${method} ${path}`);
  }

  service.queue('/v1/download', {
    status: 302,
    headers: { location: 'https://cdn.example/app.dmg' },
    body: '',
  });
  t.match(await client.download({ product: 'studio', platform: 'macos arm' }), {
    location: 'https://cdn.example/app.dmg',
  });
  t.strictSame(service.seen.at(-1)!.query, { product: 'studio', platform: 'macos arm' });
  for (const location of ['javascript:alert(1)', '/relative', undefined]) {
    service.queue('/v1/download', { status: 302, headers: location === undefined ? {} : { location } });
    t.equal(
      (await failure(client.download({ product: 'p', platform: 'p' }))).code,
      'bad_response',
      String(location),
    );
  }
  await client.identifyFile(noise(2000)).catch(() => undefined);
  t.strictSame(JSON.parse(service.requests('/v1/uploads').at(-1)!.text), { purpose: 'identify' });

  const before = service.seen.length;
  for (const id of ['', '.', '..', 'a/b', 'a?b', '%2e', 'é', `a${'b'.repeat(128)}`]) {
    await t.rejects(client.eraseProof(id), TypeError, `'${id}' is not sent`);
    await t.rejects(client.closeEvidence('rev_1', id, { status: 'declined' }), TypeError);
  }
  t.equal(service.seen.length, before);
  const keyless = createClient({ baseUrl: service.url });
  await t.rejects(keyless.listProofsPage(), /needs the option apiKey/);
  t.equal(service.seen.length, before);
});

t.test('a call is repeated only where that is safe', async (t) => {
  const { service, client } = await setUp(t);
  const count = (path: string): number => service.requests(path).length;
  service
    .on('/v1/partner/reviews', () => ({ status: 201, body: REVIEW }))
    .on('/v1/recordings/identify', () => ({ status: 200, body: { matches: [] } }));
  for (const [path, call] of [
    [
      '/v1/partner/reviews',
      () =>
        client.createReview({
          proofId: 'p',
          bindings: { creatorId: 'c', accountId: 'a', submissionId: 's', trackId: 't' },
        }),
    ],
    ['/v1/recordings/identify', () => client.identify({ uploadId: 'u' })],
  ] as const) {
    for (const reply of [{ status: 503 }, { status: 500 }, { status: 200, drop: true }]) {
      const before = count(path);
      service.queue(path, reply);
      await failure(call());
      t.equal(count(path) - before, 1, `${path} is not repeated after ${inspect(reply)}`);
    }
    service.queue(path, { status: 429, headers: { 'retry-after': '0' } });
    await call();
    t.equal(count(path), 5, 'a 429 did nothing, so it is');
  }
  service.queue('/v1/partner/reviews', { status: 200, drop: true }, { status: 201, body: REVIEW });
  const idempotencyKey = 'one-case-and-no-more';
  await client.createReview(
    { proofId: 'p', bindings: { creatorId: 'c', accountId: 'a', submissionId: 's', trackId: 't' } },
    { idempotencyKey },
  );
  t.strictSame(
    service
      .requests('/v1/partner/reviews')
      .slice(5)
      .map(({ headers }) => headers['idempotency-key']),
    [idempotencyKey, idempotencyKey],
    'under an Idempotency-Key it is',
  );
  // The first erasure is done, but its answer is lost.
  service.queue(
    '/v1/proofs/prf_1',
    { status: 200, drop: true },
    { status: 200, body: { proofId: 'prf_1', outcome: 'already_erased', erasedAt: 1 } },
  );
  t.match(await client.eraseProof('prf_1'), { outcome: 'already_erased' });
  service.queue('/v1/records/prf_1', { status: 502 }, { status: 200, body: { proofId: 'prf_1' } });
  t.match(await client.readRecord('prf_1'), { proofId: 'prf_1' });
});

t.test('an identifier is sent as it is, with every character that it may have', async (t) => {
  const { service, client } = await setUp(t);
  const proofId = 'TPF:2019.000-1_a';
  service.on(`/v1/records/${proofId}`, () => ({ status: 200, body: { proofId } }));
  t.match(await client.readRecord(proofId), { proofId });
});

t.test('pages are read one at a time, to the end and no further', async (t) => {
  const { service, client } = await setUp(t);
  service.on('/v1/proofs', ({ query }) => {
    const from = Number(query.cursor ?? 0);
    const proofs = Array.from({ length: 3 }, (_, at) => ({ proofId: `prf_${from + at}` }));
    return { status: 200, body: { proofs, ...(from < 6 ? { nextCursor: String(from + 3) } : {}) } };
  });
  const ids: string[] = [];
  for await (const { proofId } of client.listProofs({ limit: 3, issuedAfter: 5 })) ids.push(proofId);
  t.strictSame(
    ids,
    Array.from({ length: 9 }, (_, at) => `prf_${at}`),
  );
  t.strictSame(
    service.seen.map(({ query }) => query),
    [
      { limit: '3', issuedAfter: '5' },
      { limit: '3', cursor: '3', issuedAfter: '5' },
      { limit: '3', cursor: '6', issuedAfter: '5' },
    ],
  );
  for await (const { proofId } of client.listProofs()) if (proofId === 'prf_1') break;
  t.equal(service.seen.length, 4, 'a page that is not needed is not read');
  t.equal(service.seen.at(-1)!.query.limit, '100');

  service.on('/v1/partner/keys', () => ({
    status: 200,
    body: { keys: [{ keyId: 'key_1' }], nextCursor: 'same' },
  }));
  const keys: string[] = [];
  await t.rejects(
    async () => {
      for await (const { keyId } of client.listKeys()) keys.push(keyId);
    },
    { code: 'bad_response' },
    'a circle ends',
  );
  t.equal(keys.length, 2);
  const controller = new AbortController();
  await t.rejects(async () => {
    for await (const _ of client.listProofs({ signal: controller.signal }))
      controller.abort(new Error('enough'));
  }, /enough/);
});

t.test(
  'an asset streams, whole or in ranges, is compared with its digest and gives its connection back',
  async (t) => {
    const { service, client } = await setUp(t);
    const file = noise(700_000);
    const headers = {
      'content-type': 'audio/wav',
      etag: '"v1"',
      'repr-digest': `sha-512=:AAAA:, sha-256=:${createHash('sha256').update(file).digest('base64')}:`,
      'content-disposition': `attachment; filename="Stra_e.wav"; filename*=UTF-8''Stra%C3%9Fe.wav`,
    };
    service.on('/v1/proofs/prf_1/asset', ({ query }) => ({
      status: 200,
      headers,
      body: query.part === 'sidecar' ? Buffer.from('sidecar') : file,
    }));
    const asset = await client.readAsset('prf_1');
    t.match(asset, {
      totalBytes: 700_000,
      mediaType: 'audio/wav',
      fileName: 'Straße.wav',
      etag: '"v1"',
      sha256: sha256(file),
      range: undefined,
      requestId: 'rq_1',
    });
    t.equal(sha256(await buffer(Readable.from(asset.body))), sha256(file));

    service.queue('/v1/proofs/prf_1/asset', {
      status: 206,
      headers: { ...headers, 'content-range': 'bytes 10-19/700000' },
      body: file.subarray(10, 20),
    });
    const part = await client.readAsset('prf_1', { range: { start: 10, end: 19 }, ifRange: '"v1"' });
    t.match(service.seen.at(-1)!.headers, { range: 'bytes=10-19', 'if-range': '"v1"' });
    t.match(part, { totalBytes: 700_000, range: { start: 10, end: 19 } });
    t.strictSame(
      await buffer(Readable.from(part.body)),
      file.subarray(10, 20),
      'a part is not held against the digest of the whole',
    );
    t.equal(
      new Set(service.seen.map(({ connection }) => connection)).size,
      1,
      'a connection that was read to its end is used again',
    );

    t.equal(
      (
        await buffer(
          Readable.from((await client.readAsset('prf_1', { part: 'sidecar', checkDigest: false })).body),
        )
      ).toString(),
      'sidecar',
    );
    t.match(
      await failure(buffer(Readable.from((await client.readAsset('prf_1', { part: 'sidecar' })).body))),
      { code: 'bad_response', requestId: /^rq_/ },
      'another file than announced',
    );
    service.queue('/v1/proofs/prf_1/asset', { status: 206, body: 'x' });
    t.match(await failure(client.readAsset('prf_1')), { code: 'bad_response' });
    for (const [asked, message] of [
      [undefined, 'a part does not pass for the file'],
      [{ start: 20 }, 'a part does not follow what it does not belong to'],
    ] as const) {
      service.queue('/v1/proofs/prf_1/asset', {
        status: 206,
        headers: { ...headers, 'content-range': 'bytes 10-19/700000' },
        body: file.subarray(10, 20),
      });
      t.match(await failure(client.readAsset('prf_1', { range: asked })), { code: 'bad_response' }, message);
    }
    service.queue(
      '/v1/proofs/prf_1/asset',
      { status: 503, headers: { 'retry-after': '0' } },
      { status: 200, headers, body: file, cutAt: 300_000 },
    );
    t.match(
      await failure(buffer(Readable.from((await client.readAsset('prf_1')).body))),
      { code: 'connection_failed' },
      'repeated before it begins; cut off after',
    );
    service.queue('/v1/proofs/prf_1/asset', {
      status: 404,
      body: { error: 'Not there.', code: 'not_found' },
    });
    t.match(await failure(client.readAsset('prf_1')), {
      status: 404,
      code: 'not_found',
      message: 'Not there.',
    });

    (await client.readAsset('prf_1')).close();
    const controller = new AbortController();
    const aborted = await client.readAsset('prf_1', { signal: controller.signal });
    controller.abort(new Error('enough'));
    await t.rejects(buffer(Readable.from(aborted.body)), /enough/);
    const impatient = createClient({ baseUrl: service.url, apiKey: KEY, idleTimeoutMs: 1000 });
    t.teardown(() => impatient.close());
    const left = await impatient.readAsset('prf_1', { checkDigest: false });
    await until(() => service.ended.has(service.seen.at(-1)!.connection));
    t.match(
      await failure(buffer(Readable.from(left.body))),
      { code: 'timed_out' },
      'an unread one ends by itself',
    );
    t.equal(parseReprDigest('sha-256=:short:'), undefined);
  },
);

/** A store that can fail at each of its steps, with its content at that time. */
class CrashingStore implements RotationStore {
  saved: RotationState | undefined;
  readonly log: string[] = [];
  dieAt: 'before_first' | 'after_first' | 'before_second' | 'after_second' | undefined;
  async load(): Promise<RotationState | undefined> {
    this.log.push('load');
    return this.saved;
  }
  async save(state: RotationState): Promise<void> {
    const turn = state.rotated === undefined ? 'first' : 'second';
    if (this.dieAt === `before_${turn}`) throw new Error('killed');
    // The copy is what a file would hold.
    this.saved = JSON.parse(JSON.stringify(state)) as RotationState;
    this.log.push(turn);
    if (this.dieAt === `after_${turn}`) throw new Error('killed');
  }
}

/**
 * Adds a route that rotates as the contract says: a new key for each Idempotency-Key, replayed for the same
 * one, refused for another.
 */
function rotating(service: ServiceDouble): { readonly made: string[] } {
  const answers = new Map<string, object>();
  const made: string[] = [];
  service.on('/v1/partner/keys/rotate', ({ headers }) => {
    const key = String(headers['idempotency-key']);
    const known = answers.get(key);
    if (known !== undefined) return { status: 201, body: known, headers: { 'idempotency-replayed': 'true' } };
    if (made.length > 0)
      return {
        status: 409,
        body: { error: 'Rotated already.', code: 'conflict', reason: 'already_rotated' },
      };
    made.push(`tmk_new_${made.length}`);
    const body = { apiKey: made[0], keyId: 'key_2', name: 'ingest', previousKeyExpiresAt: 9 };
    answers.set(key, body);
    return { status: 201, body };
  });
  return { made };
}

t.test('a rotation that is killed anywhere ends in the same one key', async (t) => {
  for (const dieAt of ['before_first', 'after_first', 'before_second', 'after_second'] as const) {
    const { service, client } = await setUp(t);
    const { made } = rotating(service);
    const store = new CrashingStore();
    store.dieAt = dieAt;
    await t.rejects(client.rotateKey({ store }), /killed/);
    t.equal(
      service.seen.length,
      dieAt.endsWith('first') ? 0 : 1,
      `${dieAt}: nothing is called before the key is saved`,
    );
    store.dieAt = undefined;
    // Another process, with the same key and store.
    const again = createClient({ baseUrl: service.url, apiKey: KEY });
    const rotated = await again.rotateKey({ store });
    again.close();
    t.match(
      rotated,
      {
        apiKey: 'tmk_new_0',
        keyId: 'key_2',
        name: 'ingest',
        previousKeyExpiresAt: 9,
        replayed: dieAt.endsWith('second'),
      },
      dieAt,
    );
    t.match(store.saved?.rotated, { apiKey: 'tmk_new_0' }, 'the secret is saved before it is returned');
    t.equal(made.length, 1);
    const keys = new Set(service.seen.map(({ headers }) => headers['idempotency-key']));
    t.equal(keys.size, 1);
    t.match([...keys][0], /^[0-9a-f-]{36}$/);
  }
});

t.test('a rotation whose response is lost is replayed', async (t) => {
  const { service, client } = await setUp(t, { retry: { maxAttempts: 3 } });
  const { made } = rotating(service);
  const store = new CrashingStore();
  service.queue(
    '/v1/partner/keys/rotate',
    { status: 201, drop: true },
    { status: 409, body: { error: 'Wait.', code: 'conflict', reason: 'rotation_in_progress' } },
  );
  t.match(await client.rotateKey({ store }), { apiKey: 'tmk_new_0' });
  t.equal(service.seen.length, 3);
  t.equal(new Set(service.seen.map(({ headers }) => headers['idempotency-key'])).size, 1);
  t.match(await client.rotateKey({ store }), { apiKey: 'tmk_new_0', replayed: true });
  t.equal(service.seen.length, 3, 'a secret that is in the store is not asked for');

  const lost = new CrashingStore();
  service.queue('/v1/partner/keys/rotate', ...Array.from({ length: 3 }, () => ({ status: 200, hang: true })));
  const impatient = createClient({
    baseUrl: service.url,
    apiKey: KEY,
    timeoutMs: 500,
    retry: { maxAttempts: 3, baseDelayMs: 5 },
  });
  t.match(await failure(impatient.rotateKey({ store: lost })), { code: 'timed_out' });
  impatient.close();
  t.match(
    await failure(client.rotateKey({ store: lost })),
    { status: 409, reason: 'already_rotated' },
    'a refusal is reported unchanged',
  );
  t.equal(made.length, 1);
  const strange = { apiKey: 'tmk_\u001b[2J', keyId: 'key_2', name: 'n', previousKeyExpiresAt: 1 };
  service.queue('/v1/partner/keys/rotate', { status: 201, body: strange });
  const kept = new CrashingStore();
  t.match(await failure(client.rotateKey({ store: kept })), { code: 'bad_response' });
  t.equal(kept.saved?.rotated, undefined, 'no secret is kept or shown that could not be sent as a key');
  service.queue('/v1/partner/keys/rotate', { status: 429, headers: { 'retry-after': '9999' } });
  t.match(await failure(client.rotateKey({ store: new CrashingStore() })), {
    status: 429,
    retryAfterSeconds: 9999,
  });
  const aborted = new CrashingStore();
  await t.rejects(
    client.rotateKey({ store: aborted, signal: AbortSignal.abort(new Error('enough')) }),
    /enough/,
  );
  t.strictSame(aborted.log, []);

  // The new key's own rotation uses the same store. An unrelated key does not.
  const other = createClient({ baseUrl: service.url, apiKey: 'tmk_other' });
  const before = service.seen.length;
  t.match(await failure(other.rotateKey({ store })), { code: 'rotation_unfinished' });
  t.match(await failure(other.rotateKey({ store: lost })), { code: 'rotation_unfinished' });
  t.equal(service.seen.length, before, 'nothing is forgotten for it');
  const worthless = new CrashingStore();
  worthless.saved = { ...lost.saved!, startedAt: Math.floor(Date.now() / 1000) - 24 * 3600 };
  t.match(
    await failure(other.rotateKey({ store: worthless })),
    { status: 409 },
    'after the replay window it is',
  );
  const next = createClient({ baseUrl: service.url, apiKey: 'tmk_new_0' });
  service.queue('/v1/partner/keys/rotate', {
    status: 201,
    body: { apiKey: 'tmk_newer', keyId: 'key_3', name: 'ingest', previousKeyExpiresAt: 9 },
  });
  t.match(await next.rotateKey({ store }), { apiKey: 'tmk_newer', replayed: false });
  t.notMatch(
    JSON.stringify({ ...store.saved, rotated: undefined }),
    /tmk_/,
    'the calling key is not in the store',
  );
  other.close();
  next.close();
});

t.test('a certificate that is not trusted is not tried again', async (t) => {
  const { publicKey, privateKey } = generateKey('ES256');
  const name = { organisation: 'Test', commonName: 'localhost' };
  const pem = makeCertificate({
    issuer: name,
    issuerKey: privateKey,
    issuerPublicKey: publicKey,
    subject: name,
    subjectKey: publicKey,
    serial: Buffer.from([1, 2, 3]),
    kind: 'authority',
    notBefore: new Date(Date.now() - 1e6),
    notAfter: new Date(Date.now() + 1e8),
  });
  let connections = 0;
  const server = https.createServer(
    {
      key: privateKey.export({ type: 'pkcs8', format: 'pem' }),
      cert: `-----BEGIN CERTIFICATE-----\n${Buffer.from(pem).toString('base64')}\n-----END CERTIFICATE-----\n`,
    },
    (_, response) => response.end('{}'),
  );
  server.on('connection', () => (connections += 1));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const client = createClient({
    baseUrl: `https://127.0.0.1:${port}`,
    apiKey: KEY,
    retry: { baseDelayMs: 5 },
  });
  t.match(await failure(client.listProofsPage()), {
    code: 'tls_failed',
    status: undefined,
    message: /the TLS connection failed/,
  });
  t.equal(connections, 1);
  client.close();
  server.close();
  const { service } = await setUp(t);
  const wrong = createClient({
    baseUrl: service.url.replace('http:', 'https:'),
    apiKey: KEY,
    retry: { maxAttempts: 2, baseDelayMs: 5 },
  });
  t.match(await failure(wrong.listProofsPage()), { code: /tls_failed|connection_failed/ });
});

t.test('what a later service adds to a report reaches the caller as it is', async (t) => {
  const { service, client } = await setUp(t);
  const fact = {
    code: 'a_code_of_tomorrow',
    contentClass: 'a_sixth_class',
    status: 'perhaps',
    dimension: 'mood',
    values: { heat: 7, kind: 'warm' },
    more: [1],
  };
  const evidenceReport = {
    version: 9,
    facts: [fact],
    conflicts: [fact],
    unverifiable: [],
    declarations: [{ answers: { mood: 'blue' }, bindingStatus: 'another' }],
    session: {
      evidence: {
        counters: { whistles: { status: 'guessed' } },
        coverage: { smell: { support: 'faint' } },
      },
    },
    chapter: {},
  };
  const decision = {
    status: 'deferred',
    reasons: ['a_reason_of_tomorrow'],
    recommendedAction: 'wait',
    credentialCarrier: 'watermark',
    sourceDetailCoverage: 'most',
    counts: { declarations: 0, conflicts: 1, unverifiable: 0, omens: 2 },
  };
  const verdict = { verdict: 'valid', good: true, decision, evidenceReport };
  service.queue('/v1/verify', { status: 200, body: verdict });
  const result = await client.verify({ uploadId: 'upl_1' });
  t.strictSame(result.evidenceReport, evidenceReport);
  t.strictSame(result.decision, decision);
  t.ok(result.accepted, 'the report changes nothing of it');

  const entry = {
    proofId: 'prf_1',
    evidenceSummary: { status: 'hazy', counts: {}, codes: ['x'] },
    evidenceReport,
  };
  service.queue('/v1/proofs', { status: 200, body: { proofs: [entry] } });
  const page = await client.listProofsPage({ include: 'evidenceReport' });
  t.strictSame(page.proofs, [entry]);
  t.match(service.seen.at(-1)!.query, { include: 'evidenceReport' });
});

t.test('digests are identified in pages of 1,000, in their order', async (t) => {
  const { service, client } = await setUp(t);
  const path = '/v1/recordings/identify';
  const asked = Array.from({ length: 2001 }, (_, i) => ({ sha256: String(i), of: 'file' as const }));
  const page = (from: number, to: number) => ({
    status: 200,
    body: { results: asked.slice(from, to).map(({ sha256 }) => ({ sha256, matches: [] })) },
  });
  service.queue(path, page(0, 1000), page(1000, 2000), page(2000, 2001));
  const found: string[] = [];
  for await (const { sha256 } of client.identifyDigests(asked)) found.push(sha256);
  t.strictSame(
    found,
    asked.map(({ sha256 }) => sha256),
  );
  t.strictSame(
    service.requests(path).map(({ text }) => (JSON.parse(text) as { digests: unknown[] }).digests.length),
    [1000, 1000, 1],
  );
  service.queue(path, page(0, 2));
  await t.rejects(client.identify({ digests: asked.slice(0, 3) }), { code: 'bad_response' });
});
