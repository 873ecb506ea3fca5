/** `takemark doctor` on a real service, with each thing that can be wrong between a partner and a verdict. */
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import t from 'tap';
import type { Diagnosed } from '../../src/cli/service-diagnosis.js';
import { formatApiKey } from '../../src/service/domain/partner-key.js';
import { setUp } from '../cli/bench.js';
import { TestService } from '../fixtures/service.js';
import { makeTlsIdentity } from '../fixtures/tls.js';

type Findings = Readonly<Record<string, Diagnosed>>;
type Bench = Awaited<ReturnType<typeof setUp>>;

const KEY_ID = 'key_01ARZ3NDEKTSV4RRFFQ69G5FAV';
const WHOLE_KEY = formatApiKey('production', KEY_ID, new Uint8Array(32).fill(7));
const DAY_MS = 86_400_000;
const HEALTH = {
  ok: true,
  version: '1.0.0',
  commit: 'abc',
  deployedAt: 1_767_225_600,
  environment: 'production',
  contract: '3.0.0',
};

async function ask({ takemark }: Bench): Promise<{ readonly code: number; readonly findings: Findings }> {
  const { code, out } = await takemark('doctor', '--json');
  const { checks, failed } = JSON.parse(out) as { checks: readonly Diagnosed[]; failed: number };
  t.equal(checks.filter(({ verdict }) => verdict === 'fail').length, failed);
  t.equal(code, failed === 0 ? 0 : 1);
  return { code, findings: Object.fromEntries(checks.map((check) => [check.name, check])) };
}

t.test('on the real service', async (t) => {
  const service = await TestService.start();
  t.teardown(() => service.stop());
  const { operator } = service.service.operations;
  const { partnerId, keyId, apiKey } = await service.partner('trial');
  const url = service.partnerUrl;

  await t.test('nothing is wrong, and nothing is charged', async (t) => {
    const bench = await setUp(t, { url, apiKey });
    const { code, findings } = await ask(bench);
    t.equal(code, 0);
    for (const name of ['address', 'tls', 'service', 'clock', 'key form', 'key', 'scopes', 'quota'])
      t.equal(findings[name]?.verdict, 'ok', `${name}: ${JSON.stringify(findings[name])}`);
    t.match(findings['key form']!.found, keyId);
    t.match(findings['scopes']!.found, /^verify, proofs, erase, reviews, keys, usage$/);
    t.match(
      findings['quota']!.found,
      /^1000 of 1000 units left \(plan trial\) until \d{4}-\d\d-01T00:00:00Z$/,
    );
    t.match(await bench.takemark('doctor'), {
      code: 0,
      out: /^ok {9} {2}address: http:.* answers$/m,
      err: '',
    });
    t.notOk((await bench.takemark('doctor')).out.includes(apiKey), 'the key is not shown');
  });

  await t.test('a key that cannot be one is not sent', async (t) => {
    const last = apiKey.at(-1) === '0' ? '1' : '0';
    for (const [wrong, found] of [
      [undefined, /is not set/],
      ['hello', /not a complete key/],
      [`${apiKey} `, /not a complete key/],
      [`${apiKey.slice(0, -1)}${last}`, /checksum/],
      [formatApiKey('beta', KEY_ID, new Uint8Array(32)), /for beta; the service runs production/],
    ] as const) {
      const { code, findings } = await ask(await setUp(t, { url, apiKey: wrong }));
      t.equal(code, 1);
      t.match(findings['key form'], { verdict: 'fail', found, advice: /\w/ });
      t.match(findings['key'], { verdict: 'not_checked' });
    }
  });

  await t.test('a key that is refused, that expires, or that may do little', async (t) => {
    t.match((await ask(await setUp(t, { url, apiKey: WHOLE_KEY }))).findings['key'], {
      verdict: 'fail',
      advice: /revoked or expired, or belongs to another installation/,
    });
    const revoked = await operator.createKey({ partnerId, name: 'revoked' });
    await operator.revokeKey({ partnerId, keyId: revoked.keyId });
    t.match((await ask(await setUp(t, { url, apiKey: revoked.apiKey }))).findings['key'], {
      verdict: 'fail',
    });

    const usageAlone = await operator.createKey({ partnerId, name: 'usage', scopes: ['usage'] });
    const narrow = (await ask(await setUp(t, { url, apiKey: usageAlone.apiKey }))).findings;
    t.match(narrow, { key: { verdict: 'ok' }, scopes: { verdict: 'not_checked' }, quota: { verdict: 'ok' } });
    const keysAlone = await operator.createKey({ partnerId, name: 'keys', scopes: ['keys'] });
    const listing = (await ask(await setUp(t, { url, apiKey: keysAlone.apiKey }))).findings;
    t.match(listing, {
      key: { verdict: 'ok' },
      scopes: { verdict: 'warn', found: 'keys', advice: /`verify`/ },
      quota: { verdict: 'not_checked' },
    });

    const rotated = await operator.createKey({ partnerId, name: 'rotated' });
    const { partner } = service.service.operations;
    await partner.rotateKey(await partner.authenticate(rotated.apiKey), rotated.apiKey, 'a'.repeat(16));
    const expiring = await ask(await setUp(t, { url, apiKey: rotated.apiKey }));
    t.equal(expiring.code, 0);
    t.match(expiring.findings['key'], { verdict: 'warn', found: /expiring until \d{4}-/ });
  });
});

t.test('the doctor reports no answer, and an answer of another service', async (t) => {
  const gone = await ask(await setUp(t, { url: 'http://127.0.0.1:1', apiKey: WHOLE_KEY }));
  t.match(gone.findings, {
    address: { verdict: 'fail', found: /127\.0\.0\.1:1: .*ECONNREFUSED/ },
    tls: { verdict: 'not_checked' },
    'key form': { verdict: 'ok', found: KEY_ID },
    key: { verdict: 'not_checked' },
  });
  const other = await setUp(t, { apiKey: WHOLE_KEY });
  other.service.on('/v1/health', () => ({ status: 200, body: { status: 'green' } }));
  t.match((await ask(other)).findings['address'], { verdict: 'fail', found: /it is not a Takemark/ });
  const https = await setUp(t, { url: other.service.url.replace('http:', 'https:'), apiKey: WHOLE_KEY });
  t.match((await ask(https)).findings['address'], { verdict: 'fail', found: /does not speak https/ });
});

t.test('a clock that is off, another contract, a spent quota', async (t) => {
  const bench = await setUp(t, { apiKey: WHOLE_KEY });
  const { service } = bench;
  let contract = '3.9.0';
  let aheadMs = 90_000;
  service.on('/v1/health', () => ({
    status: 200,
    body: { ...HEALTH, contract },
    headers: { date: new Date(Date.now() + aheadMs).toUTCString() },
  }));
  service.on('/v1/partner/keys', () => ({
    status: 200,
    body: {
      keys: [{ keyId: KEY_ID, name: 'a', status: 'active', scopes: ['verify', 'keys'], signed: true }],
    },
  }));
  service.on('/v1/partner/usage', () => ({
    status: 200,
    body: {
      plan: 'trial',
      period: { start: 1_767_225_600, end: 1_769_904_000 },
      limit: 1000,
      used: 1000,
      remaining: 0,
      days: [],
    },
  }));
  t.match((await ask(bench)).findings, {
    clock: { verdict: 'warn', found: /is (8[89]|9[0-2]) s behind the service/, advice: /NTP/ },
    service: { verdict: 'ok', found: /contract 3\.9\.0/ },
    key: { found: /calls are signed/ },
    quota: { verdict: 'fail', found: /^0 of 1000 .* until 2026-02-01T00:00:00Z/ },
  });
  contract = '4.0.0';
  aheadMs = 0;
  t.match((await ask(bench)).findings, {
    clock: { verdict: 'ok' },
    service: { verdict: 'warn', advice: /supports contract 3/ },
  });
});

t.test('the doctor reports an untrusted certificate, and one that ends soon', async (t) => {
  for (const [days, verdict] of [
    [3, 'warn'],
    [90, 'ok'],
  ] as const) {
    const { cert, key } = makeTlsIdentity(new Date(Date.now() + days * DAY_MS + 60_000));
    const server = createServer({ cert, key }, (request, response) => {
      response.writeHead(request.url === '/v1/health' ? 200 : 403, { 'content-type': 'application/json' });
      response.end(
        JSON.stringify(request.url === '/v1/health' ? HEALTH : { error: 'No.', code: 'forbidden' }),
      );
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.teardown(() => server.close());
    const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const unknown = await ask(await setUp(t, { url, apiKey: WHOLE_KEY }));
    t.match(unknown.findings['address'], { verdict: 'fail', found: /the TLS connection failed/ });

    const { directory } = await setUp(t, { url });
    const ca = join(directory, 'ca.pem');
    await writeFile(ca, cert);
    const { findings } = await ask(await setUp(t, { url, apiKey: WHOLE_KEY, ca }));
    t.match(findings['tls'], { verdict, found: /^TLSv1\.[23], certificate valid until \d{4}-/ });
    t.match(findings['key'], { verdict: 'fail' });
  }
});
