import { createHash } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { inspect } from 'node:util';
import t, { type Test } from 'tap';
import { errorFromResponse, parseRetryAfter } from '../../src/client/errors.js';
import {
  type Client,
  type ClientOptions,
  createClient,
  type Progress,
  TakemarkError,
} from '../../src/client/index.js';
import { pauseBefore } from '../../src/client/retry.js';
import { collectGarbage } from '../fixtures/garbage.js';
import { noise } from '../fixtures/wav.js';
import { ServiceDouble } from './service-double.js';

const KEY = 'tmk_beta_key_secret';

async function setUp(
  test: Test,
  options: Partial<ClientOptions> = {},
): Promise<{ service: ServiceDouble; client: Client; directory: string }> {
  const service = await new ServiceDouble().start();
  const client = createClient({
    baseUrl: service.url,
    apiKey: KEY,
    ...options,
    retry: { baseDelayMs: 5, ...options.retry },
  });
  const directory = await mkdtemp(join(tmpdir(), 'takemark-client-'));
  test.teardown(async () => {
    client.close();
    await service.stop();
    await rm(directory, { recursive: true });
  });
  return { service, client, directory };
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

/** The response of a service that is older than the call for a file and its verdict. */
const OLDER = { status: 404, body: { error: 'None.', code: 'not_found', reason: 'unknown_route' } } as const;

t.test('a file is verified in one call', async (t) => {
  const { service, client, directory } = await setUp(t);
  const audio = noise(300_001);
  const path = join(directory, 'Ünïcode "name".wav');
  await writeFile(path, audio);
  const steps: Progress[] = [];
  const result = await client.verifyFile(path, {
    sidecar: Buffer.from([1, 0xff, 0x0d, 0x0a]),
    onProgress: (progress) => steps.push(progress),
  });

  t.match(result, { verdict: 'valid', good: true, accepted: true, requestId: 'rq_1' });
  t.equal(service.seen.length, 1);
  const { headers, bytes, text, fileSha256, path: target } = service.seen[0]!;
  t.equal(target, '/v1/verifications');
  t.equal(headers['x-api-key'], KEY);
  t.match(headers['idempotency-key'], /^[0-9a-f-]{36}$/);
  t.equal(Number(headers['content-length']), bytes, 'known length');
  t.ok(
    text.includes(
      'name="sidecar"; filename="sidecar"\r\nContent-Type: application/octet-stream\r\n\r\n\x01\xff\r\n\r\n--',
    ),
    'the bytes of the sidecar',
  );
  t.ok(text.indexOf('name="sidecar"') < text.indexOf('name="file"; filename="audio"'), 'the file comes last');
  t.equal(fileSha256, sha256(audio));
  t.equal((await client.verifyFile(path)).verdict, 'valid');
  t.not(service.seen[1]!.headers['idempotency-key'], headers['idempotency-key'], 'each file has its own');
  t.strictSame(steps.at(-1), { sentBytes: 300_001, totalBytes: 300_001 });
});

t.test('a file is verified by slot, form and verdict, where the service is older', async (t) => {
  const { service, client, directory } = await setUp(t);
  service.queue('/v1/verifications', OLDER);
  const audio = noise(300_001);
  const path = join(directory, 'Ünïcode "name".wav');
  await writeFile(path, audio);
  const steps: Progress[] = [];
  const result = await client.verifyFile(path, {
    sidecar: Buffer.from([1, 2, 3, 4]),
    onProgress: (progress) => steps.push(progress),
  });

  t.match(result, { verdict: 'valid', good: true, accepted: true, requestId: 'rq_4' });
  const [, slot, post, verify] = service.seen;
  t.strictSame(JSON.parse(slot!.text), { purpose: 'verify' });
  t.equal(slot!.headers['x-api-key'], KEY);
  t.equal(post!.headers['x-api-key'], undefined, 'the key does not travel to the presigned address');
  t.equal(Number(post!.headers['content-length']), post!.bytes, 'known length');
  t.equal(post!.fileSha256, sha256(audio));
  t.ok(post!.text.indexOf('name="policy"\r\n\r\np"1\r\n') < post!.text.indexOf('name="signature"'));
  t.match(
    post!.text.slice(0, 1000),
    /name="signature"\r\n\r\ns1\r\n--[^\r]+\r\nContent-Disposition: form-data; name="file"; filename="audio"\r\n/,
    'file comes last, under no name of the creator',
  );
  t.strictSame(JSON.parse(verify!.text), { uploadId: 'upl_1', sidecar: 'AQIDBA==' });
  t.strictSame(steps.at(-1), { sentBytes: 300_001, totalBytes: 300_001 });
  t.equal(new Set(service.seen.map((seen) => seen.connection)).size, 1, 'one connection for all');
  await client.verifyFile(path);
  t.equal(service.requests('/v1/verifications').length, 1, 'the client asks once');
});

t.test('bytes and streams are taken, of known and unknown length', async (t) => {
  const { service, client } = await setUp(t);
  const audio = noise(200_000);
  const stream = (): Readable => Readable.from([audio.subarray(0, 70_000), audio.subarray(70_000)]);
  await client.verifyFile(audio);
  await client.verifyFile(stream(), { bytes: audio.length });
  await client.verifyFile(stream());
  t.equal(service.requests('/v1/verifications')[0]!.fileSha256, sha256(audio));
  const posts = service.requests('/uploads');
  t.strictSame(
    posts.map((post) => post.fileSha256),
    [sha256(audio), sha256(audio)],
  );
  t.ok(posts[0]!.headers['content-length']);
  t.equal(posts[1]!.headers['transfer-encoding'], 'chunked');
  await client.createUpload({ purpose: 'identify', contentLength: 7 });
  t.strictSame(JSON.parse(service.requests('/v1/uploads').at(-1)!.text), {
    purpose: 'identify',
    contentLength: 7,
  });
  await client.verifyFile(Buffer.alloc(0), { sidecar: Buffer.alloc(0) });
  t.match(
    service.requests('/v1/verifications').at(-1)!.text,
    /filename="sidecar"\r\nContent-Type: application\/octet-stream\r\n\r\n\r\n--/,
    'a sidecar that holds nothing is sent as one',
  );
  await client.verifyFile(Readable.from([audio]), { sidecar: Buffer.alloc(0) });
  t.match(JSON.parse(service.requests('/v1/verify').at(-1)!.text), { sidecar: '' });
});

t.test('only good and valid together are accepted', async (t) => {
  const { service, client } = await setUp(t);
  for (const [verdict, accepted] of [
    [{ verdict: 'valid', good: true }, true],
    [{ verdict: 'valid', good: false }, false],
    [{ verdict: 'tampered', good: true }, false],
    [{ verdict: 'certified_v9', good: true, accepted: true }, false],
    [{ verdict: 'valid', good: true, accepted: false, later: { member: 1 } }, true],
  ] as const) {
    service.verdict = verdict;
    t.equal((await client.verify({ uploadId: 'upl_1' })).accepted, accepted, JSON.stringify(verdict));
  }
  t.match(await client.verify({ uploadId: 'upl_1' }), { later: { member: 1 } }, 'unknown members are kept');
  for (const verdict of [{ good: true }, { verdict: 'valid', good: 'yes' }, [], 'text']) {
    service.verdict = verdict as object;
    t.equal((await failure(client.verify({ uploadId: 'upl_1' }))).code, 'bad_response');
  }
});

t.test('errors carry status, code, reason and request id', async (t) => {
  const { service, client } = await setUp(t);
  service.queue('/v1/verify', {
    status: 409,
    body: { error: 'The audio has not arrived', code: 'conflict', reason: 'upload_incomplete' },
  });
  const error = await failure(client.verify({ uploadId: 'upl_1' }));
  t.match(error, {
    status: 409,
    code: 'conflict',
    reason: 'upload_incomplete',
    requestId: 'rq_1',
    message: 'The audio has not arrived',
  });
  service.queue(
    '/v1/verify',
    { status: 418, body: '<html>' },
    { status: 302, headers: { location: `${service.url}/v1/health` } },
  );
  t.match(await failure(client.verify({ uploadId: 'upl_1' })), {
    status: 418,
    code: 'invalid_request',
    reason: undefined,
  });
  t.match(
    await failure(client.verify({ uploadId: 'upl_1' })),
    { status: 302, code: 'bad_response' },
    'no redirect is followed',
  );
  t.equal(service.requests('/v1/health').length, 0);
  t.notMatch(inspect(client, { depth: 9, showHidden: true }) + JSON.stringify(client), /key_secret/);
  t.throws(() => createClient({ baseUrl: service.url, apiKey: 'secret\n' }), /apiKey must/);
  t.throws(() => createClient({ baseUrl: 'ftp://host' }), /http/);
  t.match(await createClient({ baseUrl: `${service.url}/v1/` }).health(), { ok: true });
});

t.test('a safe call is retried within bounds', async (t) => {
  const { service, client } = await setUp(t, { retry: { maxAttempts: 3, maxDelayMs: 2000 } });
  service.queue('/v1/uploads', { status: 503 }, { status: 200, drop: true });
  service.queue('/v1/verify', { status: 500 });
  service.queue('/v1/verifications', { status: 503 }, { status: 200, drop: true });
  service.queue('/v1/health', { status: 502, body: 'bad gateway' });
  t.match(await client.verifyFile(Readable.from([noise(1000)])), { accepted: true });
  t.match(await client.verifyFile(noise(1000)), { accepted: true });
  t.ok((await client.health()).ok);
  t.equal(service.requests('/v1/uploads').length, 3);
  const keys = service.requests('/v1/verifications').map(({ headers }) => headers['idempotency-key']);
  t.equal(keys.length, 3);
  t.equal(new Set(keys).size, 1, 'every attempt has the same key');

  service.queue('/v1/verify', { status: 503 }, { status: 503 }, { status: 503 }, { status: 503 });
  const before = service.requests('/v1/verify').length;
  t.match(await failure(client.verify({ uploadId: 'upl_1' })), { status: 503 });
  t.equal(service.requests('/v1/verify').length - before, 3, 'three attempts, no more');

  service.queue('/v1/uploads', { status: 403 });
  t.match(await failure(client.createUpload()), { status: 403 }, 'a refusal is final');
});

t.test('a retry obeys Retry-After', async (t) => {
  const { service, client } = await setUp(t);
  service.queue('/v1/uploads', {
    status: 429,
    headers: { 'retry-after': '1' },
    body: { error: 'slow', code: 'rate_limited', reason: 'rate_exceeded' },
  });
  await client.createUpload();
  const [first, second] = service.seen;
  t.ok(second!.at - first!.at >= 995, `waited ${second!.at - first!.at} ms`);

  service.queue('/v1/uploads', {
    status: 429,
    headers: { 'retry-after': '86400' },
    body: { error: 'quota', code: 'rate_limited', reason: 'quota_exceeded' },
  });
  t.match(
    await failure(client.createUpload()),
    { status: 429, reason: 'quota_exceeded', retryAfterSeconds: 86_400 },
    'does not sleep for a day',
  );
  t.equal(service.requests('/v1/uploads').length, 3);

  const policy = { maxAttempts: 4, baseDelayMs: 100, maxDelayMs: 1000 };
  const refused = new TakemarkError('unavailable', '', { status: 503, retryAfterSeconds: 1 });
  t.equal(
    pauseBefore(refused, 1, policy, () => 0),
    1000,
    'never earlier than Retry-After',
  );
  t.equal(
    pauseBefore(refused, 1, policy, () => 1),
    1100,
  );
  t.equal(pauseBefore(refused, 4, policy), undefined);
  t.equal(parseRetryAfter('Thu, 01 Jan 1970 00:00:10 GMT', 4000), 6);
  t.equal(parseRetryAfter('soon'), undefined);
  t.equal(parseRetryAfter('99999999999'), 99_999_999_999, 'a long wait is none that is not asked for');
  for (const none of ['+60', '1.5', '-5', '']) t.equal(parseRetryAfter(none), undefined, none);
  t.equal(parseRetryAfter('9'.repeat(400)), Number.MAX_SAFE_INTEGER);
  t.match(
    errorFromResponse(
      503,
      { date: 'Thu, 01 Jan 1970 00:00:04 GMT', 'retry-after': 'Thu, 01 Jan 1970 00:00:10 GMT' },
      Buffer.alloc(0),
    ),
    { retryAfterSeconds: 6 },
    "independent of this machine's clock",
  );
});

t.test('a failed post is repeated with a fresh slot, where the audio can be read again', async (t) => {
  const { service, client } = await setUp(t);
  service.on('/v1/verifications', () => OLDER);
  service.queue('/uploads', { status: 201, drop: true }, { status: 503, headers: { 'retry-after': '0' } });
  await client.verifyFile(noise(500_000));
  t.strictSame(
    service.requests('/uploads').map((post) => post.path),
    ['/uploads/upl_1', '/uploads/upl_2', '/uploads/upl_3'],
  );
  service.queue('/uploads', { status: 503, headers: { 'retry-after': '0' } });
  t.match(await failure(client.verifyFile(Readable.from([noise(10)]), { bytes: 10 })), { status: 503 });
  t.equal(service.requests('/uploads').length, 4, 'a stream is sent once');
  service.queue('/uploads', {
    status: 409,
    body: { error: 'used', code: 'conflict', reason: 'upload_already_used' },
  });
  t.match(await failure(client.verifyFile(noise(10))), { reason: 'upload_already_used' });
});

t.test('a rejection is read while the audio is still being sent', async (t) => {
  const { service, client } = await setUp(t);
  for (const [status, reason] of [
    [413, undefined],
    [403, 'form_policy_expired'],
  ] as const) {
    service.queue('/uploads', {
      status,
      early: true,
      body: {
        error: 'refused',
        code: status === 413 ? 'payload_too_large' : 'forbidden',
        ...(reason === undefined ? {} : { reason }),
      },
    });
    const error = await failure(client.verifyFile(endless(60 * 1024 * 1024), { bytes: 60 * 1024 * 1024 }));
    t.match(error, { status, requestId: /^rq_/ });
  }
  t.ok(
    service.requests('/uploads').every((post) => post.bytes === 0),
    'the body was not read',
  );
  const stuck = new Readable({ read: () => undefined });
  service.queue('/uploads', { status: 503, early: true });
  t.match(
    await failure(client.verifyFile(stuck, { bytes: 100 })),
    { status: 503 },
    'even while the source gives nothing',
  );
  t.ok(stuck.destroyed, 'and lets go of the source');
  const slot = await client.createUpload();
  t.match(
    await failure(client.upload(slot, endless(70_000_000), { bytes: 70_000_000 })),
    {
      code: 'payload_too_large',
      status: undefined,
      message: 'the file has 66.76 MiB (70000000 bytes), but the limit is 65 MiB (68157440 bytes)',
    },
    'a file that the slot does not take is not sent',
  );
});

t.test('the length of a file decides the purpose of its slot', async (t) => {
  const { service, client } = await setUp(t);
  const refusal = { status: 400, body: { error: 'refused', code: 'invalid_request' } };
  service.queue('/v1/uploads', refusal, refusal, refusal, refusal);
  const file = (bytes: number) => [endless(bytes), { bytes }] as const;
  await failure(client.verifyFile(...file(68_157_440)));
  await failure(client.verifyFile(...file(68_157_441)));
  await failure(client.identifyFile(...file(68_157_440)));
  await failure(client.identifyFile(...file(2 ** 31)));
  t.strictSame(
    service.requests('/v1/uploads').map(({ text }) => JSON.parse(text)),
    [
      { purpose: 'verify' },
      { purpose: 'verify_large', contentLength: 68_157_441 },
      { purpose: 'identify' },
      { purpose: 'identify_large', contentLength: 2 ** 31 },
    ],
  );
});

t.test('a call aborts and times out at every stage', async (t) => {
  const { service, client } = await setUp(t, {
    timeoutMs: 150,
    idleTimeoutMs: 150,
    retry: { maxAttempts: 1 },
  });
  for (const path of ['/v1/uploads', '/uploads', '/v1/verify']) {
    service.queue(path, { status: 200, hang: true }, { status: 200, hang: true });
    const reason = new Error('enough');
    const controller = new AbortController();
    setTimeout(() => controller.abort(reason), 30);
    await t.rejects(
      client.verifyFile(endless(40_000_000), { bytes: 40_000_000, signal: controller.signal }),
      reason,
      `${path} aborted`,
    );
    t.match(
      await failure(client.verifyFile(endless(40_000_000), { bytes: 40_000_000 })),
      { code: 'timed_out' },
      `${path} stalled`,
    );
  }
  await t.rejects(client.health({ signal: AbortSignal.abort(new Error('before')) }), /before/);
  const patient = createClient({ baseUrl: service.url, apiKey: KEY, retry: { maxAttempts: 2 } });
  service.queue('/v1/verify', { status: 503, headers: { 'retry-after': '20' } });
  const started = performance.now();
  await t.rejects(patient.verify({ uploadId: 'u' }, { signal: AbortSignal.timeout(50) }), {
    name: 'TimeoutError',
  });
  t.ok(performance.now() - started < 15_000, 'a pause can be aborted');
  patient.close();
});

t.test('a source that fails or has a wrong length ends the call with its own error', async (t) => {
  const { client, directory } = await setUp(t);
  t.match(await failure(client.verifyFile(join(directory, 'absent.wav'))), {
    code: 'source_failed',
    message: /ENOENT/,
  });
  t.match(await failure(client.verifyFile(directory)), { code: 'source_failed' });
  t.match(await failure(client.verifyFile(noise(10), { sidecar: join(directory, 'absent') })), {
    code: 'source_failed',
  });
  t.match(await failure(client.verifyFile(noise(10), { sidecar: Buffer.alloc(32_769) })), {
    code: 'source_failed',
  });
  t.match(await failure(client.verifyFile(Readable.from([noise(10)]), { bytes: 11 })), {
    message: /shorter/,
  });
  t.match(await failure(client.verifyFile(Readable.from([noise(12)]), { bytes: 11 })), { message: /longer/ });
  const broken = Readable.from(
    (async function* () {
      yield noise(70_000);
      throw new Error('disk on fire');
    })(),
  );
  t.match(await failure(client.verifyFile(broken, { bytes: 140_000 })), {
    code: 'source_failed',
    message: /disk on fire/,
  });
  const unread = Readable.from([noise(10)]);
  await failure(client.verifyFile(unread, { bytes: 10, sidecar: join(directory, 'absent') }));
  t.ok(unread.destroyed, 'a stream that was never sent is closed too');
  const closed = createClient({
    baseUrl: 'http://127.0.0.1:1',
    apiKey: KEY,
    retry: { maxAttempts: 2, baseDelayMs: 1 },
  });
  t.match(await failure(closed.verifyFile(noise(10))), {
    code: 'connection_failed',
    message: /ECONNREFUSED/,
  });
});

t.test('a body without a length that the client itself ends is not taken for whole', async (t) => {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => socket.write('HTTP/1.1 200 OK\r\n\r\n{"ok":true}'));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const client = createClient({
    baseUrl: `http://127.0.0.1:${port}`,
    apiKey: KEY,
    timeoutMs: 1000,
    idleTimeoutMs: 1000,
    retry: { maxAttempts: 1 },
  });
  t.teardown(() => {
    client.close();
    server.close();
  });
  t.match(await failure(client.health()), { code: 'timed_out' });
  const readAll = async (signal?: AbortSignal, onChunk?: () => void): Promise<void> => {
    for await (const _ of (await client.readAsset('prf_1', { signal })).body) onChunk?.();
  };
  t.match(await failure(readAll()), { code: 'timed_out' }, 'a stalled file is not reported as complete');
  const interruption = new AbortController();
  const interrupt = () => interruption.abort(new Error('enough'));
  await t.rejects(readAll(interruption.signal, interrupt), /enough/);
});

t.test('60 MiB are sent in constant memory', async (t) => {
  const { service, client } = await setUp(t);
  const bytes = 60 * 1024 * 1024;
  // Warms up what is allocated once.
  await client.verifyFile(endless(1_000_000), { bytes: 1_000_000 });
  collectGarbage();
  const baseline = external();
  let peak = 0;
  let reports = 0;
  const onProgress = (): void => {
    reports += 1;
    if (reports % 16 > 0) return;
    collectGarbage();
    peak = Math.max(peak, external());
  };
  await client.verifyFile(endless(bytes), { bytes, onProgress });
  t.equal(service.requests('/uploads').at(-1)!.bytes > bytes, true);
  t.ok(peak > 0, `looked at ${Math.floor(reports / 16)} times`);
  t.ok(peak - baseline < 24 * 1024 * 1024, `${Math.round((peak - baseline) / 1024)} KiB above the start`);
});

/** Returns the bytes of the heap and of buffers, which live outside it. */
function external(): number {
  const { external, arrayBuffers, heapUsed } = process.memoryUsage();
  return Math.max(external, arrayBuffers) + heapUsed;
}

async function* endless(bytes: number): AsyncGenerator<Uint8Array> {
  const chunk = Buffer.alloc(65_536, 0x5a);
  for (let at = 0; at < bytes; at += chunk.length)
    yield chunk.subarray(0, Math.min(chunk.length, bytes - at));
}
