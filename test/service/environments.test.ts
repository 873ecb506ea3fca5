/** Two environments have nothing in common but the contract: rule 1.6. */
import { X509Certificate } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { startService } from '../../src/service/compose/service.js';
import { readConfig } from '../../src/service/config/config.js';
import { OPERATOR_ROUTES } from '../../src/service/contract/routes/operator-routes.js';
import { PARTNER_ROUTES } from '../../src/service/contract/routes/partner-routes.js';
import { TestService } from '../fixtures/service.js';
import { wav } from '../fixtures/wav.js';
import {
  call,
  closeWire,
  FORM_TYPE,
  type Slot,
  slotFor,
  slotForm,
  upload,
  type WireAnswer,
} from '../fixtures/wire.js';

const CANONICAL = 'https://api.takemark.example/partners';
const production = await TestService.start({ TAKEMARK_PUBLIC_URL: CANONICAL });
const beta = await TestService.start({ TAKEMARK_ENVIRONMENT: 'beta' });
t.teardown(async () => {
  closeWire();
  await Promise.all([production.stop(), beta.stop()]);
});
const atProduction = await production.partner();
const atBeta = await beta.partner();

/** Returns the parts of a response that do not differ on every call: status, body and the other headers. */
const essence = ({ status, headers, body }: WireAnswer) => ({
  status,
  headers: [...headers].filter(([name]) => !['x-request-id', 'date', 'ratelimit'].includes(name)),
  body: body.toString(),
});

t.test('keys are of one environment', async (t) => {
  t.match(atBeta.apiKey, /^tmk_beta_/);
  t.match(atProduction.apiKey, /^tmk_production_/);
  const unknown = essence(await call(production.partnerUrl, 'GET', '/v1/partner/keys', { key: 'unknown' }));
  t.strictSame(
    essence(await call(production.partnerUrl, 'GET', '/v1/partner/keys', { key: atBeta.apiKey })),
    unknown,
    'a beta key is any other wrong key in production',
  );
  t.strictSame(
    essence(await call(beta.partnerUrl, 'GET', '/v1/partner/keys', { key: atProduction.apiKey })),
    unknown,
    'and the other way',
  );
  t.equal(
    (
      await call(production.partnerUrl, 'GET', '/v1/partner/keys', {
        key: atBeta.apiKey.replace('tmk_beta_', 'tmk_production_'),
      })
    ).status,
    403,
    'renamed, it is none either',
  );
  t.equal((await call(beta.partnerUrl, 'GET', '/v1/partner/keys', { key: atBeta.apiKey })).status, 200);
  for (const [service, environment] of [
    [production, 'production'],
    [beta, 'beta'],
  ] as const)
    t.equal((await call(service.partnerUrl, 'GET', '/v1/health')).json!['environment'], environment);
});

t.test('proofs, slots and operators are of one environment', async (t) => {
  const proof = await beta.issue(atBeta.partnerId, wav(20_000));
  const pair = await beta.issue(atBeta.partnerId, wav(20_000, {}, 2), { carrier: 'sidecar' });
  const verdictAt = async (service: TestService, key: string, file: Uint8Array, sidecar?: Uint8Array) =>
    (
      await call(service.partnerUrl, 'POST', '/v1/verify', {
        key,
        body: {
          uploadId: await upload(service.partnerUrl, key, file),
          ...(sidecar === undefined ? {} : { sidecar: Buffer.from(sidecar).toString('base64') }),
        },
      })
    ).json!;
  t.match(await verdictAt(beta, atBeta.apiKey, proof.file), {
    verdict: 'valid',
    good: true,
    proofId: proof.proofId,
  });
  t.match(await verdictAt(beta, atBeta.apiKey, pair.file, pair.sidecar), { verdict: 'valid', good: true });
  for (const [name, result] of [
    ['embedded', await verdictAt(production, atProduction.apiKey, proof.file)],
    ['pair', await verdictAt(production, atProduction.apiKey, pair.file, pair.sidecar)],
  ] as const) {
    t.match(result, { verdict: 'unregistered', good: false }, `${name}: unregistered in production`);
    t.notOk('proofId' in result || 'issuedAt' in result, `${name}: and nothing of it is said`);
  }
  for (const path of ['/v1/proofs/{id}', '/v1/records/{id}', '/v1/proofs/{id}/asset']) {
    const at = (id: string) =>
      call(production.partnerUrl, 'GET', path.replace('{id}', id), { key: atProduction.apiKey });
    t.strictSame(
      essence(await at(proof.proofId)),
      essence(await at('prf_00000000000000000000000000')),
      `${path}: as one that was never issued`,
    );
  }
  t.match(
    await call(production.partnerUrl, 'POST', '/v1/partner/reviews', {
      key: atProduction.apiKey,
      body: {
        proofId: proof.proofId,
        bindings: { creatorId: 'a', accountId: 'b', submissionId: 'c', trackId: 'd' },
      },
    }),
    { status: 404 },
  );

  const betaSlot = await slotFor(beta.partnerUrl, atBeta.apiKey);
  const own = await slotFor(production.partnerUrl, atProduction.apiKey);
  for (const [name, slot] of [
    ['a beta slot', betaSlot],
    ['beta fields on a slot of production', { ...own, fields: betaSlot.fields }],
  ] as const) {
    const answer = await call(production.partnerUrl, 'POST', `/uploads/${slot.uploadId}`, {
      headers: FORM_TYPE,
      body: slotForm(slot, wav(1000)),
    });
    t.match(answer, { status: 403, json: { reason: 'form_policy_invalid' } }, name);
  }
  t.equal(
    (
      await call(production.operatorUrl, 'GET', '/operator/v1/partners', {
        headers: { authorization: `Bearer ${beta.service.operatorToken}` },
      })
    ).status,
    403,
    "nor is an operator the other's",
  );
});

t.test('signing identity and data are of one environment', async (t) => {
  const [one, other] = [production, beta].map(
    ({ service }) => new X509Certificate(service.operations.operator.readAuthority()),
  );
  t.not(one!.fingerprint256, other!.fingerprint256);
  t.notOk(one!.checkIssued(other!) || other!.checkIssued(one!), 'neither vouches for the other');
  t.strictSame(await readdir(join(production.directory, 'signing')), ['production']);
  t.strictSame(await readdir(join(beta.directory, 'signing')), ['beta']);
  const bundles = await Promise.all(
    [production, beta].map(
      async ({ directory }) =>
        JSON.parse(await readFile(join(directory, 'secrets.json'), 'utf8')) as {
          secrets: Record<string, { key: string }[]>;
        },
    ),
  );
  const keys = bundles.flatMap(({ secrets }) =>
    Object.values(secrets)
      .flat()
      .map(({ key }) => key),
  );
  t.equal(new Set(keys).size, keys.length, 'no secret serves twice');
});

t.test('a data directory belongs to its environment', async (t) => {
  const service = await TestService.start({ TAKEMARK_ENVIRONMENT: 'beta' });
  const { apiKey } = await service.partner();
  await service.stop({ keep: true });
  const before = (await readdir(service.directory, { recursive: true })).sort();
  const config = readConfig({
    TAKEMARK_PORT: '0',
    TAKEMARK_OPERATOR_PORT: '0',
    TAKEMARK_HOST: '127.0.0.1',
    TAKEMARK_LOG_LEVEL: 'silent',
    TAKEMARK_DATA_DIR: service.directory,
  });
  await t.rejects(
    startService(config, { version: '0' }),
    { message: /belongs to the environment beta, not production/ },
    'it is refused in words that say why',
  );
  t.strictSame(
    (await readdir(service.directory, { recursive: true })).sort(),
    before,
    'and nothing was made in it',
  );
  const again = await TestService.start({
    TAKEMARK_ENVIRONMENT: 'beta',
    TAKEMARK_DATA_DIR: service.directory,
  });
  t.equal(
    (await call(again.partnerUrl, 'GET', '/v1/partner/keys', { key: apiKey })).status,
    200,
    'its own environment finds it as it was',
  );
  await again.stop();
});

t.test('former host names get the same responses', async (t) => {
  const base = production.partnerUrl;
  const hosts = [
    'api.takemark.example',
    'api.former-name.example',
    'API.FORMER-NAME.EXAMPLE:443',
    'beta.takemark.example',
  ];
  for (const target of [
    '/v1/openapi.json',
    '/v1/partner/keys',
    '/v1/proofs',
    '/v1/records/prf_none',
    '/v1/nowhere',
  ]) {
    const answers = await Promise.all(
      hosts.map((host) => call(base, 'GET', target, { key: atProduction.apiKey, headers: { host } })),
    );
    for (const answer of answers.slice(1)) {
      // `lastUsedAt` moves with the calls.
      const said = (one: WireAnswer) => ({
        ...essence(one),
        body: essence(one).body.replace(/,?"lastUsedAt":\d+/, ''),
        headers: essence(one).headers.filter(
          ([name]) => !['content-length', 'x-ratelimit-reset'].includes(name),
        ),
      });
      t.strictSame(said(answer), said(answers[0]!), `${target}: the identical contract`);
    }
  }
  for (const host of hosts) {
    const { status, json } = await call(base, 'POST', '/v1/uploads', {
      key: atProduction.apiKey,
      headers: { host, 'x-forwarded-host': 'evil.example', forwarded: 'host=evil.example' },
      body: {},
    });
    const slot = json as unknown as Slot;
    t.equal(status, 201);
    t.equal(slot.url, `${CANONICAL}/uploads/${slot.uploadId}`, `${host}: the slot has the canonical address`);
    t.equal(
      (
        await call(base, 'POST', `/uploads/${slot.uploadId}`, {
          headers: { ...FORM_TYPE, host },
          body: slotForm(slot, wav(1000)),
        })
      ).status,
      201,
      'and may be posted to under any name',
    );
  }
});

t.test('what is on one listener is not on the other', async (t) => {
  const operatorHeaders = { authorization: `Bearer ${production.service.operatorToken}` };
  const concrete = (path: string) => path.replaceAll(/\{\w+\}/g, 'x1');
  const missing = (answer: WireAnswer) =>
    answer.status === 404 &&
    answer.json?.['reason'] === 'unknown_route' &&
    answer.headers.has('x-request-id');
  for (const { method, path } of Object.values(OPERATOR_ROUTES)) {
    for (const host of ['api.takemark.example', '127.0.0.1:8081']) {
      t.ok(
        missing(
          await call(production.partnerUrl, method, concrete(path), {
            key: atProduction.apiKey,
            headers: { ...operatorHeaders, host },
          }),
        ),
        `${method} ${path} is not for partners`,
      );
    }
  }
  for (const { method, path } of Object.values(PARTNER_ROUTES))
    t.ok(
      missing(
        await call(production.operatorUrl, method, concrete(path), {
          key: atProduction.apiKey,
          headers: operatorHeaders,
        }),
      ),
      `${method} ${path} is not for operators`,
    );
  for (const trick of [
    '//operator/v1/partners',
    '/v1/../operator/v1/partners',
    '/v1/%2e%2e/operator/v1/partners',
    '/operator%2fv1%2fpartners',
    '/OPERATOR/v1/partners',
    '/operator/v1/partners/',
    '/metrics/',
    '/v1/metrics',
    '/./metrics',
  ]) {
    const answer = await call(production.partnerUrl, 'GET', trick, {
      key: atProduction.apiKey,
      headers: operatorHeaders,
      checked: false,
    });
    t.ok([400, 404].includes(answer.status), `${trick}: ${answer.status}`);
  }
  t.equal(
    (await call(production.operatorUrl, 'GET', '/operator/v1/partners', { key: atProduction.apiKey })).status,
    403,
    "a partner's key opens nothing there",
  );
  t.equal(
    (
      await call(production.operatorUrl, 'GET', '/operator/v1/partners', {
        headers: { authorization: `Bearer ${atProduction.apiKey}` },
      })
    ).status,
    403,
  );
});
