/** Calls that prove that their caller has a private key beside the API key. */
import { createHash, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import t from 'tap';
import { createClient } from '../../src/client/index.js';
import {
  digestHolds,
  parseContentDigest,
  parseSignature,
  readPublicKey,
  signatureBase,
  signatureHolds,
  signatureKey,
} from '../../src/service/domain/message-signature.js';
import { SHIPPED_PLANS } from '../../src/service/domain/partner.js';
import type { Caller } from '../../src/service/operations/caller.js';
import {
  checkSignature,
  SeenNonces,
  SignatureKeys,
} from '../../src/service/operations/keys/check-signature.js';
import { admit, createRateLimits } from '../../src/service/operations/usage/rate-limits.js';
import { TestClock, TestService } from '../fixtures/service.js';
import { wav } from '../fixtures/wav.js';

const CREATED = 1_767_225_600;
const BODY = Buffer.from('{"uploadId":"upl_1"}');

/**
 * The test vectors, made with http-message-signatures 3.0.0 for Python. Each is a POST of BODY to
 * https://api.example.com/v1/verify?a=b%20c&d.
 */
const VECTORS: readonly { readonly publicKey: string; readonly headers: Readonly<Record<string, string>> }[] =
  [
    {
      publicKey:
        '-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAUJiQ2Sh3gtvtLLUoh8e+lxuWUJYuTVjO8098W8RhbhY=\n-----END PUBLIC KEY-----\n',
      headers: {
        'x-api-key': 'tmk_key',
        'content-digest': 'sha-256=:9VhqIxtTHrGw9Ro+eVBkdHfbSWQ7mZkZ5mc2Jm2mKQI=:',
        'signature-input':
          'sig=("@method" "@authority" "@path" "@query" "x-api-key" "content-digest");created=1767225600;keyid="key_1";alg="ed25519";nonce="0123456789abcdef"',
        signature:
          'sig=:4ch61K8JyzHDrWPXeg9tr8UuWsHUpiMFVYhRk+VIfs0VATnlFYdTzjyLmpI/lj5zncKp55lfdPU1bt4ezzG/DA==:',
      },
    },
    {
      publicKey:
        '-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEOZrUShjb6HW0OKkp41wLyGUvdCi9\nKIKDjabEeTdljmAeR8qMNnXgrz6iazUEZPXTTPxnnfj1XAg0C47SJe1Q/g==\n-----END PUBLIC KEY-----\n',
      headers: {
        'x-api-key': 'tmk_key',
        'content-digest': 'sha-256=:9VhqIxtTHrGw9Ro+eVBkdHfbSWQ7mZkZ5mc2Jm2mKQI=:',
        'signature-input':
          'sig=("@method" "@authority" "@path" "@query" "x-api-key" "content-digest");created=1767225600;keyid="key_1";alg="ecdsa-p256-sha256";nonce="0123456789abcdef"',
        signature:
          'sig=:QkUrH5leI2VkuF1IDyTF3a71WlJ8D70SdGK/qAFdJKxW4bvPdMYATwGtirq3erQ9tCBkMhLTX4lfH7qSQwy8IA==:',
      },
    },
  ];

t.test('the signature of the example in RFC 9421, B.2.6, holds', async (t) => {
  const key = signatureKey(
    readPublicKey(
      '-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAJrQLj5P/89iXES9+vFgrIy29clF9CC/oPPsw3c5D0bs=\n-----END PUBLIC KEY-----\n',
    )!,
  )!;
  const values: Record<string, string> = {
    date: 'Tue, 20 Apr 2021 02:07:55 GMT',
    '@method': 'POST',
    '@path': '/foo',
    '@authority': 'example.com',
    'content-type': 'application/json',
    'content-length': '18',
  };
  const components = Object.keys(values);
  const signed =
    '("date" "@method" "@path" "@authority" "content-type" "content-length");created=1618884473;keyid="test-key-ed25519"';
  const signature = Buffer.from(
    'wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw==',
    'base64',
  );
  const base = signatureBase({ components, signed }, (name) => values[name])!;
  t.ok(signatureHolds(key, base, signature));
  t.notOk(signatureHolds(key, base.replace('/foo', '/bar'), signature));
  t.equal(
    signatureBase({ components, signed }, () => undefined),
    undefined,
  );
});

t.test('signatures of another implementation are taken', async (t) => {
  for (const { publicKey, headers } of VECTORS) {
    const caller = {
      partnerId: 'ptr_1',
      keyId: 'key_1',
      scopes: [],
      plan: SHIPPED_PLANS[0]!,
      publicKey: readPublicKey(publicKey)!,
    } as unknown as Caller;
    const at = (
      now: number,
      over: {
        readonly headers?: Record<string, string>;
        readonly target?: string;
        readonly method?: string;
        readonly keyId?: string;
      } = {},
    ) => {
      const fields: Record<string, string> = { host: 'API.example.com:443', ...headers, ...over.headers };
      const message = {
        method: over.method ?? 'POST',
        target: over.target ?? '/v1/verify?a=b%20c&d',
        hasBody: true,
        field: (name: string) => fields[name],
      };
      return checkSignature(
        {
          clock: { now: () => now * 1000 },
          nonces: new SeenNonces(),
          signatureKeys: new SignatureKeys(),
          limits: createRateLimits({ now: () => now * 1000 }),
        },
        { ...caller, keyId: over.keyId ?? 'key_1' },
        message,
      );
    };
    for (const now of [CREATED - 60, CREATED, CREATED + 60]) t.ok(digestHolds(at(now)!, BODY));
    t.notOk(digestHolds(at(CREATED)!, Buffer.from('{"uploadId":"upl_2"}')));
    const input = headers['signature-input']!;
    const refused: [string, () => unknown][] = [
      ['61 s old', () => at(CREATED + 61)],
      ['61 s ahead', () => at(CREATED - 61)],
      ['another method', () => at(CREATED, { method: 'DELETE' })],
      ['another path', () => at(CREATED, { target: '/v1/proofs?a=b%20c&d' })],
      ['another query', () => at(CREATED, { target: '/v1/verify?a=b%20c' })],
      ['the query in another spelling', () => at(CREATED, { target: '/v1/verify?a=b+c&d' })],
      ['another host', () => at(CREATED, { headers: { host: 'beta.example.com' } })],
      ['another API key', () => at(CREATED, { headers: { 'x-api-key': 'tmk_other' } })],
      ['of another key id', () => at(CREATED, { keyId: 'key_2' })],
      [
        'another digest',
        () =>
          at(CREATED, {
            headers: { 'content-digest': `sha-256=:${createHash('sha256').update('x').digest('base64')}:` },
          }),
      ],
      [
        'a later time',
        () =>
          at(CREATED, {
            headers: { 'signature-input': input.replace('created=1767225600', 'created=1767225601') },
          }),
      ],
      [
        'no time',
        () => at(CREATED, { headers: { 'signature-input': input.replace(';created=1767225600', '') } }),
      ],
      [
        'another nonce',
        () =>
          at(CREATED, {
            headers: { 'signature-input': input.replace('0123456789abcdef', '0123456789abcdeg') },
          }),
      ],
      [
        'another algorithm',
        () =>
          at(CREATED, { headers: { 'signature-input': input.replace(/alg="[^"]+"/, 'alg="hmac-sha256"') } }),
      ],
      [
        'fewer components',
        () => at(CREATED, { headers: { 'signature-input': input.replace(' "x-api-key"', '') } }),
      ],
      ['nothing that is a signature', () => at(CREATED, { headers: { signature: 'sig=:AAAA:' } })],
      [
        'zeroes',
        () => at(CREATED, { headers: { signature: `sig=:${Buffer.alloc(64).toString('base64')}:` } }),
      ],
    ];
    for (const [name, call] of refused)
      t.throws(call, { code: 'forbidden', reason: 'signature_invalid' }, name);
    for (const missing of ['signature', 'signature-input'])
      t.throws(() => at(CREATED, { headers: { [missing]: undefined as unknown as string } }), {
        code: 'forbidden',
        reason: 'signature_missing',
      });
  }
});

t.test('what is read is one spelling, and bounded', async (t) => {
  const [{ headers }] = VECTORS as [(typeof VECTORS)[number]];
  const { signature, 'signature-input': input } = headers as {
    readonly signature: string;
    readonly 'signature-input': string;
  };
  t.match(parseSignature(input, signature), { created: CREATED, keyid: 'key_1', nonce: '0123456789abcdef' });
  for (const other of [
    '',
    'sig=',
    'sig=()',
    `${input}, ${input}`,
    ` ${input}`,
    input.replace('sig=', 'other='),
    input.replace('("@method" ', '("@method"  '),
    input.replace('"@method"', '"@method";req'),
    input.replace('"@method"', '"@target-uri"'),
    input.replace('"@method"', '"@path"'),
    `${input};nonce="0123456789abcdef"`,
    input.replace('created=1767225600', 'created="1767225600"'),
    input.replace('created=1767225600', 'created=-1'),
    input.replace('keyid="key_1"', 'keyid=1'),
    `${input};tag="x"`,
    `sig=(${'"@method" '.repeat(1000)});created=1`,
    `${input}${';created=1'.repeat(10_000)}`,
    input.replace('key_1', 'x'.repeat(2000)),
  ])
    t.equal(parseSignature(other, signature), undefined, other.slice(0, 60));
  for (const other of [
    '',
    'sig=::',
    signature.toUpperCase(),
    `${signature};a`,
    `${signature}, ${signature}`,
    'sig=:AAAA:',
    `sig=:${'A'.repeat(5000)}:`,
  ])
    t.equal(parseSignature(input, other), undefined);
  const digest = headers['content-digest']!;
  t.ok(digestHolds(parseContentDigest(digest)!, BODY));
  t.ok(
    digestHolds(parseContentDigest(`sha-512=:${createHash('sha512').update(BODY).digest('base64')}:`)!, BODY),
  );
  for (const other of [
    undefined,
    '',
    'md5=:AAAA:',
    digest.replace('256', '512'),
    `${digest}, ${digest}`,
    digest.slice(0, -1),
    `sha-256=:${'A'.repeat(5000)}:`,
  ])
    t.equal(parseContentDigest(other), undefined);

  const spki = { type: 'spki', format: 'pem' } as const;
  for (const curve of ['secp384r1', 'secp256k1'])
    t.equal(
      readPublicKey(generateKeyPairSync('ec', { namedCurve: curve }).publicKey.export(spki).toString()),
      undefined,
      curve,
    );
  t.equal(
    readPublicKey(generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey.export(spki).toString()),
    undefined,
    'RSA',
  );
  t.equal(
    readPublicKey(
      generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    ),
    undefined,
    'a private key',
  );
  t.equal(readPublicKey('-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----'), undefined);

  const nonces = new SeenNonces(3);
  t.ok(nonces.take('key_1', 'a', 0, 61));
  t.notOk(nonces.take('key_1', 'a', 1, 61), 'once');
  t.ok(nonces.take('key_2', 'a', 1, 61), 'another key has its own');
  t.ok(nonces.take('key_1', 'b', 1, 61) && nonces.take('key_1', 'c', 1, 61));
  t.ok(nonces.take('key_1', 'a', 1, 61), 'the oldest went, where there are too many');
  t.ok(nonces.take('key_1', 'c', 61, 122), 'and all that are too old to be taken again');
});

t.test(
  'a wrong signature is not checked when the rate is exceeded, and costs other keys nothing',
  async (t) => {
    const { publicKey } = VECTORS[0]!;
    const deps = {
      clock: { now: () => CREATED * 1000 },
      nonces: new SeenNonces(),
      signatureKeys: new SignatureKeys(),
      limits: createRateLimits({ now: () => CREATED * 1000 }),
    };
    const plan = SHIPPED_PLANS[0]!;
    const caller = (keyId: string): Caller => ({
      partnerId: 'ptr_1',
      keyId,
      scopes: [],
      plan,
      publicKey: readPublicKey(publicKey)!,
    });
    let looked = 0;
    const unsigned = {
      method: 'GET',
      target: '/v1/partner/usage',
      hasBody: false,
      field: () => {
        looked += 1;
        return undefined;
      },
    };
    const call = (keyId: string) =>
      admit(deps, caller(keyId), 'standard', () => checkSignature(deps, caller(keyId), unsigned));
    for (let i = 0; i < plan.burst; i += 1)
      t.throws(() => call('key_1'), { code: 'forbidden', reason: 'signature_missing' });
    const before = looked;
    t.throws(() => call('key_1'), { code: 'rate_limited', reason: 'rate_exceeded', retryAfterSeconds: 1 });
    t.equal(looked, before, 'a refused call is not looked at');
    t.throws(
      () => call('key_2'),
      { code: 'forbidden', reason: 'signature_missing' },
      'another key of the partner has its own rate',
    );
    for (let i = 0; i < plan.burst; i += 1)
      t.equal(
        admit(deps, caller('key_3'), 'standard', () => undefined),
        undefined,
        'the rate is untouched',
      );
    t.throws(
      () => call('key_2'),
      { code: 'rate_limited', reason: 'rate_exceeded' },
      'a call beyond the rate is not checked',
    );
  },
);

t.test('a service: a key with a public key opens nothing without a signature', async (t) => {
  const clock = new TestClock();
  clock.hold();
  const service = await TestService.start({}, clock);
  t.teardown(() => service.stop());
  const { partnerId } = await service.partner();
  for (const [kind, pair] of [
    ['ed25519', generateKeyPairSync('ed25519')],
    ['P-256', generateKeyPairSync('ec', { namedCurve: 'prime256v1' })],
  ] as const) {
    const publicKey = pair.publicKey.export({ type: 'spki', format: 'pem' }).toString();
    const { apiKey, keyId } = await service.service.operations.operator.createKey({
      partnerId,
      name: kind,
      publicKey,
    });
    const unsigned = (path: string, method = 'GET') =>
      fetch(`${service.partnerUrl}${path}`, {
        method,
        headers: { 'x-api-key': apiKey, 'idempotency-key': 'i'.repeat(16) },
      });
    for (const [path, method] of [
      ['/v1/partner/keys', 'GET'],
      ['/v1/partner/keys/rotate', 'POST'],
      [`/v1/partner/keys/${keyId}`, 'DELETE'],
      ['/v1/uploads', 'POST'],
    ] as const) {
      const response = await unsigned(path, method);
      t.equal(response.status, 403);
      t.match(await response.json(), { code: 'forbidden', reason: 'signature_missing' });
    }

    const client = createClient({
      baseUrl: service.partnerUrl,
      apiKey,
      signingKey: pair.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
      retry: { maxAttempts: 1 },
    });
    t.teardown(() => client.close());
    t.match(
      (await client.listKeysPage({ limit: 100 })).keys.find((key) => key.keyId === keyId),
      { signed: true },
    );
    const path = join(t.testdir(), 'song.wav');
    await writeFile(path, wav(800));
    t.match(
      await client.verifyFile(path),
      { verdict: 'unreadable' },
      'slot, upload and verdict; the upload itself is not signed',
    );
    t.match(await client.sendTelemetry([{ name: 'verify_completed', count: 1, at: 2 }]), { accepted: 1 });

    let saved: { readonly rotated?: { readonly apiKey: string } } | undefined;
    const rotated = await client.rotateKey({
      store: { load: async () => undefined, save: async (state) => void (saved = state) },
    });
    t.equal(saved?.rotated?.apiKey, rotated.apiKey);
    const thief = await fetch(`${service.partnerUrl}/v1/partner/keys`, {
      headers: { 'x-api-key': rotated.apiKey },
    });
    t.match(
      await thief.json(),
      { reason: 'signature_missing' },
      'a successor needs signatures of the same key',
    );
    const next = createClient({
      baseUrl: service.partnerUrl,
      apiKey: rotated.apiKey,
      signingKey: pair.privateKey,
    });
    t.teardown(() => next.close());
    t.match(await next.revokeKey(keyId), { status: 'revoked' });

    const stranger = createClient({
      baseUrl: service.partnerUrl,
      apiKey: rotated.apiKey,
      signingKey: generateKeyPairSync('ed25519').privateKey,
      retry: { maxAttempts: 1 },
    });
    t.teardown(() => stranger.close());
    t.match(
      await stranger.listKeysPage().catch((error: unknown) => error),
      { status: 403, reason: 'signature_invalid' },
      'another private key',
    );

    const target = new URL('/v1/telemetry', service.partnerUrl);
    const absolute = signedPost(
      pair.privateKey,
      rotated.apiKey,
      rotated.keyId,
      Math.floor(clock.now() / 1000),
    );
    const sent = httpRequest({
      port: target.port,
      method: 'POST',
      path: target.href,
      headers: { ...absolute.headers, 'content-type': 'application/json' },
    });
    sent.end(absolute.body);
    const [{ statusCode }] = (await once(sent, 'response')) as [IncomingMessage];
    t.equal(statusCode, 202, 'a target in absolute form has the path that was signed');

    // By hand: the same call again, and the same signature with another body.
    const post = signedPost(pair.privateKey, rotated.apiKey, rotated.keyId, Math.floor(clock.now() / 1000));
    const send = (body: string) =>
      fetch(`${service.partnerUrl}/v1/telemetry`, {
        method: 'POST',
        headers: { ...post.headers, 'content-type': 'application/json' },
        body,
      });
    const altered = await send(post.body.replace('"count":1', '"count":2'));
    t.equal(altered.status, 403);
    t.match(
      await altered.json(),
      { reason: 'signature_invalid' },
      'the body is looked at before anything is done with it',
    );
    const fresh = signedPost(pair.privateKey, rotated.apiKey, rotated.keyId, Math.floor(clock.now() / 1000));
    const request = () =>
      fetch(`${service.partnerUrl}/v1/telemetry`, {
        method: 'POST',
        headers: { ...fresh.headers, 'content-type': 'application/json' },
        body: fresh.body,
      });
    t.equal((await request()).status, 202);
    t.match(await (await request()).json(), { reason: 'signature_invalid' }, 'once');
  }
  t.throws(
    () =>
      createClient({
        baseUrl: service.partnerUrl,
        apiKey: `tmk_production_key_${'0'.repeat(26)}_x_y`,
        signingKey: 'no key',
      }),
    TypeError,
  );
  await t.rejects(
    service.service.operations.operator.createKey({ partnerId, name: 'bad', publicKey: 'no key' }),
    { code: 'invalid_request', reason: 'invalid_member' },
  );
});

function signedPost(
  key: KeyObject,
  apiKey: string,
  keyId: string,
  created: number,
): { readonly headers: Record<string, string>; readonly body: string } {
  const body = '{"events":[{"name":"verify_completed","count":1,"at":2}]}';
  const digest = `sha-512=:${createHash('sha512').update(body).digest('base64')}:`;
  const signed = `("content-digest" "x-api-key" "@query" "@path" "@method");nonce="${Math.random().toString(16).padEnd(20, '0')}";keyid="${keyId}";created=${created}`;
  const base = `"content-digest": ${digest}\n"x-api-key": ${apiKey}\n"@query": ?\n"@path": /v1/telemetry\n"@method": POST\n"@signature-params": ${signed}`;
  const signature =
    key.asymmetricKeyType === 'ed25519'
      ? sign(null, Buffer.from(base), key)
      : sign('sha256', Buffer.from(base), { key, dsaEncoding: 'ieee-p1363' });
  return {
    body,
    headers: {
      'x-api-key': apiKey,
      'content-digest': digest,
      'signature-input': `a=${signed}`,
      signature: `a=:${signature.toString('base64')}:`,
    },
  };
}
