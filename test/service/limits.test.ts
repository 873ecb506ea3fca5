/** Tests rate, quota, concurrency and the rotation limit over HTTP, on a clock that the test moves. */
import { setTimeout as delay } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { PARTNER_ROUTES } from '../../src/service/contract/routes/partner-routes.js';
import { type Plan, SHIPPED_PLANS } from '../../src/service/domain/partner.js';
import { monthEnd } from '../../src/service/domain/usage-window.js';
import { inParallel, TestClock, TestService } from '../fixtures/service.js';
import { until } from '../fixtures/until.js';
import { wav } from '../fixtures/wav.js';
import {
  call,
  closeWire,
  FORM_TYPE,
  postForm,
  slotFor,
  slotForm,
  upload,
  type WireAnswer,
} from '../fixtures/wire.js';
import { RawClient, request } from '../http/raw-client.js';

/** A running clock would refill a bucket while a burst is counted. */
class StillClock extends TestClock {
  /** The middle of a month, so that no window ends by itself within a test. */
  #now = Date.UTC(2027, 4, 14, 12);
  override now(): number {
    return this.#now;
  }
  override advance(seconds: number): void {
    this.#now += seconds * 1000;
  }
}

const clock = new StillClock();
const service = await TestService.start({}, clock);
const base = service.partnerUrl;
t.teardown(async () => {
  closeWire();
  await service.stop();
});

const statuses = (answers: readonly WireAnswer[]) =>
  Object.fromEntries(
    [...new Set(answers.map(({ status }) => status))]
      .sort()
      .map((status) => [status, answers.filter((answer) => answer.status === status).length]),
  );
const retryAfter = (answer: WireAnswer) => Number(answer.headers.get('retry-after'));
const planOf = (name: string) => SHIPPED_PLANS.find((plan) => plan.name === name)!;

/** Compares the three headers exactly. */
function numbers(t: Test, answer: WireAnswer, plan: Plan, used: number, name: string): void {
  t.strictSame(
    ['limit', 'remaining', 'reset'].map((what) => answer.headers.get(`x-ratelimit-${what}`)),
    [String(plan.monthlyQuota), String(plan.monthlyQuota - used), String(monthEnd(clock.now() / 1000))],
    `${name}: exact numbers`,
  );
}

t.test('each plan holds its rate and its burst', async (t) => {
  for (const name of ['trial', 'standard'] as const) {
    const plan = planOf(name);
    const { apiKey } = await service.partner(name);
    const answers = await Promise.all(
      Array.from({ length: 200 }, () => call(base, 'GET', '/v1/proofs', { key: apiKey })),
    );
    t.strictSame(
      statuses(answers),
      { 200: plan.burst, 429: 200 - plan.burst },
      `${name}: of 200 calls at once not one more than its burst`,
    );
    const refused = answers.filter(({ status }) => status === 429);
    t.strictSame(
      [...new Set(refused.map(({ json }) => `${json!['code']} ${json!['reason']} ${json!['limit']}`))],
      ['rate_limited rate_exceeded request_rate'],
    );
    for (const answer of [answers[0]!, refused[0]!]) numbers(t, answer, plan, 0, `${name} ${answer.status}`);
    const { burst, requestsPerSecond } = plan;
    t.match(refused[0]!.headers.get('ratelimit-policy'), `"request_rate";q=${burst};w=2, "monthly_quota";q=`);
    t.match(
      refused[0]!.headers.get('ratelimit'),
      `"request_rate";r=0;t=${burst / requestsPerSecond}, "monthly_quota";r=${plan.monthlyQuota};t=`,
    );
    const first = await call(base, 'GET', '/v1/proofs', { key: (await service.partner(name)).apiKey });
    t.match(first.headers.get('ratelimit'), `"request_rate";r=${burst - 1};t=1, `, 'a first call');

    clock.advance(retryAfter(refused.at(-1)!));
    const later = await Promise.all(
      Array.from({ length: plan.requestsPerSecond + 5 }, () =>
        call(base, 'GET', '/v1/proofs', { key: apiKey }),
      ),
    );
    t.strictSame(
      statuses(later),
      { 200: plan.requestsPerSecond, 429: 5 },
      `${name}: a second gives back its rate and the refused calls took nothing`,
    );
    clock.advance(3600);
    const rested = await Promise.all(
      Array.from({ length: plan.burst + 5 }, () => call(base, 'GET', '/v1/proofs', { key: apiKey })),
    );
    t.strictSame(
      statuses(rested),
      { 200: plan.burst, 429: 5 },
      `${name}: an hour gives no more than the burst`,
    );
    for (let i = 0; i < 20; i += 1) {
      const answer = await call(base, 'GET', '/v1/proofs', { key: apiKey });
      if (answer.status === 200) continue;
      clock.advance(retryAfter(answer));
      t.equal(
        (await call(base, 'GET', '/v1/proofs', { key: apiKey })).status,
        200,
        `${name}: Retry-After is kept`,
      );
      break;
    }
  }
});

t.test('one partner, two keys, one bucket; another partner is not touched', async (t) => {
  const one = await service.partner('trial');
  const { apiKey: second } = await service.service.operations.operator.createKey({
    partnerId: one.partnerId,
    name: 'second',
  });
  const other = await service.partner('trial');
  const answers = await Promise.all(
    Array.from({ length: 40 }, (_, i) =>
      call(base, 'GET', '/v1/proofs', { key: i % 2 === 0 ? one.apiKey : second }),
    ),
  );
  t.equal(statuses(answers)[200], planOf('trial').burst);
  t.equal((await call(base, 'GET', '/v1/proofs', { key: other.apiKey })).status, 200);
});

t.test("bad keys change no partner's numbers", async (t) => {
  const { apiKey, partnerId, keyId } = await service.partner('trial');
  const { apiKey: revoked, keyId: revokedId } = await service.service.operations.operator.createKey({
    partnerId,
    name: 'revoked',
  });
  await service.service.operations.operator.revokeKey({ partnerId, keyId: revokedId });
  const flipped = `${apiKey.slice(0, -1)}${apiKey.endsWith('0') ? '1' : '0'}`;
  const bad = [
    undefined,
    '',
    'x',
    flipped,
    revoked,
    apiKey.replace('_production_', '_beta_'),
    ` ${keyId}`,
    `${apiKey}, ${apiKey}`,
  ];
  const refusals = await Promise.all(
    Array.from({ length: 10 }, () => bad)
      .flat()
      .map((key) => call(base, 'GET', '/v1/partner/usage', { ...(key === undefined ? {} : { key }) })),
  );
  t.strictSame(statuses(refusals), { 403: 80 });
  t.strictSame(
    new Set(refusals.map(({ body }) => body.toString())),
    new Set([
      '{"error":"The header `x-api-key` is missing.","code":"forbidden","reason":"key_missing"}',
      '{"error":"The API key in the header `x-api-key` is not valid.","code":"forbidden"}',
    ]),
    'one refusal for every key that is not valid, to the byte',
  );
  t.notOk(
    refusals.some(({ headers }) => headers.has('x-ratelimit-limit') || headers.has('ratelimit')),
    'without any counters',
  );
  const { burst } = planOf('trial');
  const answers = await Promise.all(
    Array.from({ length: burst }, () => call(base, 'GET', '/v1/partner/usage', { key: apiKey })),
  );
  t.strictSame(statuses(answers), { 200: burst }, 'the whole burst is still there');
  t.equal(answers[0]!.json!['used'], 0);
});

t.test(
  'every row of the table answers with exact numbers, errors after authentication included',
  async (t) => {
    // Beta has every route.
    const beta = await TestService.start({ TAKEMARK_ENVIRONMENT: 'beta' }, clock);
    t.teardown(() => beta.stop());
    const plan = planOf('volume');
    const { apiKey, partnerId } = await beta.partner('volume');
    const id = (await beta.issue(partnerId, wav(4000))).proofId;
    for (const [name, route] of Object.entries(PARTNER_ROUTES)) {
      if (route.auth !== 'key') continue;
      for (const [what, value] of [
        ['an own id', id],
        ['no such id', 'prf_none'],
        ['a malformed id', '%40'],
      ] as const) {
        const target = route.path.replaceAll(/\{\w+\}/g, value);
        const answer = await call(beta.partnerUrl, route.method, target, {
          key: apiKey,
          headers: { 'content-type': 'text/plain' },
          ...(route.method === 'GET' || route.method === 'DELETE' ? {} : { body: Buffer.from('x') }),
        });
        numbers(t, answer, plan, 0, `${name}, ${what}, ${answer.status}`);
      }
    }
    const { apiKey: narrow } = await beta.service.operations.operator.createKey({
      partnerId,
      name: 'narrow',
      scopes: ['verify'],
    });
    const forbidden = await call(beta.partnerUrl, 'GET', '/v1/partner/usage', { key: narrow });
    t.equal(forbidden.status, 403);
    numbers(t, forbidden, plan, 0, 'a key without the scope');
  },
);

t.test('the quota is never exceeded, and refused calls are free', async (t) => {
  const plan = planOf('volume') as { -readonly [Key in keyof Plan]: Plan[Key] };
  const shipped = plan.monthlyQuota;
  // Plans are data. The quota is small enough to use up, on a plan whose rate allows 200 calls.
  plan.monthlyQuota = 120;
  t.teardown(() => void (plan.monthlyQuota = shipped));
  const { apiKey } = await service.partner('volume');
  const uploadId = await upload(base, apiKey, wav(2000));
  const verify = (i: number) =>
    call(base, 'POST', '/v1/verify', {
      key: apiKey,
      body: { uploadId, sidecar: Buffer.from(`sidecar ${i}`).toString('base64') },
    });
  const first = await verify(0);
  numbers(t, first, plan, 1, 'the first unit');
  numbers(t, await verify(0), plan, 1, 'the same again is billed once');
  const answers = await Promise.all(Array.from({ length: 200 }, (_, i) => verify(i + 1)));
  t.strictSame(statuses(answers), { 200: 119, 429: 81 });
  const refused = answers.filter(({ status }) => status === 429);
  t.strictSame(
    [...new Set(refused.map(({ json }) => `${json!['reason']} ${json!['limit']}`))],
    ['quota_exceeded monthly_quota'],
  );
  for (const answer of refused) t.equal(answer.headers.get('x-ratelimit-remaining'), '0');
  t.equal((await verify(0)).status, 200, 'what was paid for stays answered');
  const usage = (await call(base, 'GET', '/v1/partner/usage', { key: apiKey })).json!;
  t.match(usage, { used: 120, remaining: 0, limit: 120 });
  const { requestsPerSecond, burst, concurrentUploads, rotationsPerDay } = plan;
  t.strictSame(usage['limits'], { requestsPerSecond, burst, concurrentUploads, rotationsPerDay });
  t.equal(
    (usage['days'] as { units: number }[]).reduce((sum, { units }) => sum + units, 0),
    120,
    'the refused ones are on no day',
  );

  const wait = retryAfter(refused[0]!);
  t.equal(wait, monthEnd(clock.now() / 1000) - clock.now() / 1000);
  t.match(
    refused[0]!.json!['error'],
    `Try again after ${new Date(monthEnd(clock.now() / 1000) * 1000).toISOString().slice(0, 19)}Z.`,
  );
  const slot = await call(base, 'POST', '/v1/uploads', { key: apiKey });
  t.equal(slot.status, 429, 'no file is sent for nothing');
  t.match(slot.json, { code: 'rate_limited', reason: 'quota_exceeded' });
  t.equal(retryAfter(slot), wait);
  // Facts live one hour. So the next month's call needs its own upload, made in the last second.
  clock.advance(wait - 1);
  plan.monthlyQuota += 1;
  const late = await upload(base, apiKey, wav(2000));
  plan.monthlyQuota -= 1;
  const lateVerify = () => call(base, 'POST', '/v1/verify', { key: apiKey, body: { uploadId: late } });
  t.equal((await lateVerify()).status, 429, 'one second before the month ends');
  clock.advance(1);
  const next = await lateVerify();
  t.equal(next.status, 200, 'and after Retry-After');
  numbers(t, next, plan, 1, 'the new month');
});

t.test('a call that ends in another month than it began in has the numbers of one month', async (t) => {
  const { partner } = service.service.operations;
  const { apiKey, caller } = await service.partner('volume');
  const limit = caller.plan.monthlyQuota;
  const end = monthEnd(clock.now() / 1000);
  clock.advance(end - 1 - clock.now() / 1000);
  const uploadId = await upload(base, apiKey, wav(2000));
  await partner.verifyUpload(caller, { uploadId });
  const opening = await partner.authenticate(apiKey);
  await partner.createUpload(opening, { purpose: 'verify' });
  clock.advance(1);
  const old = { limit, remaining: limit - 1, reset: end, resetSeconds: 1 };
  t.strictSame(await partner.quota(caller), old, 'of the month in which it was charged');
  t.strictSame(await partner.quota(opening), old, 'of the month whose units it looked at');
  const next = await partner.authenticate(apiKey);
  const reset = monthEnd(end);
  t.strictSame(await partner.quota(next), { limit, remaining: limit, reset, resetSeconds: reset - end });
});

t.test('a plan bounds its concurrent uploads', async (t) => {
  const { apiKey } = await service.partner('trial');
  const { concurrentUploads } = planOf('trial');
  const audio = wav(200_000);
  const open: RawClient[] = [];
  for (let i = 0; i < concurrentUploads; i += 1) {
    const slot = await slotFor(base, apiKey);
    const body = slotForm(slot, audio);
    const client = new RawClient(service.service.partner.port);
    open.push(client);
    await client.send(
      Buffer.concat([
        request('POST', new URL(slot.url).pathname, { ...FORM_TYPE, 'Content-Length': String(body.length) }),
        body.subarray(0, 100_000),
      ]),
    );
  }
  t.teardown(() => open.forEach((client) => client.destroy()));
  const slot = await slotFor(base, apiKey);
  const one = () => postForm(base, slot, slotForm(slot, audio));
  // A post claims its place shortly before the engine has its upload.
  const inFlight = `takemark_engine_uploads_in_flight ${concurrentUploads}\n`;
  await until(async () =>
    (await call(service.operatorUrl, 'GET', '/metrics')).body.toString().includes(inFlight),
  );
  let answer = await one();
  t.match(answer, {
    status: 429,
    json: { code: 'rate_limited', reason: 'concurrency_exceeded', limit: 'concurrent_uploads' },
  });
  t.equal(retryAfter(answer), 1);
  open.pop()!.destroy();
  await until(async () => (answer = await one()).status !== 429);
  t.equal(answer.status, 201, 'the slot stayed open, and a place came back with the caller that left');
});

t.test('100 rotations at once under one Idempotency-Key', async (t) => {
  const { apiKey, partnerId } = await service.partner('volume');
  const rotateOnce = (idempotencyKey: string) =>
    call(base, 'POST', '/v1/partner/keys/rotate', {
      key: apiKey,
      headers: { 'idempotency-key': idempotencyKey },
    });
  // A slow disk keeps the first call busy for seconds. The others then get a refusal, and are repeated.
  const rotate = async (idempotencyKey: string) => {
    for (let attempt = 1; ; attempt += 1) {
      const answer = await rotateOnce(idempotencyKey);
      if (attempt === 120 || answer.json?.['reason'] !== 'rotation_in_progress') return answer;
      await delay(500);
    }
  };
  t.equal((await rotate('too-short')).status, 400);
  const name = 'one-key-for-all-100';
  const answers = await Promise.all(Array.from({ length: 100 }, () => rotate(name)));
  t.strictSame(statuses(answers), { 201: 100 });
  t.equal(new Set(answers.map(({ body }) => body.toString('hex'))).size, 1, 'the same bytes');
  t.strictSame(
    answers
      .filter(({ headers }) => headers.has('idempotency-replayed'))
      .map(({ headers }) => headers.get('idempotency-replayed')),
    Array.from({ length: 99 }, () => 'true'),
    'all but one are replays',
  );
  t.equal(
    new Set(answers.map(({ headers }) => headers.get('x-request-id'))).size,
    100,
    'under request ids of their own',
  );
  t.equal(
    (await call(base, 'GET', '/v1/partner/keys', { key: answers[0]!.json!['apiKey'] as string })).status,
    200,
    'the secret works',
  );
  const keys = (await call(base, 'GET', '/v1/partner/keys', { key: apiKey })).json!['keys'] as {
    status: string;
  }[];
  t.strictSame(keys.map(({ status }) => status).sort(), ['active', 'expiring'], 'one successor');
  t.match(await rotate('another-key-16-characters'), { status: 409, json: { reason: 'already_rotated' } });
  const audit = await service.service.operations.operator.readAudit({
    partnerId,
    fromSequence: 1,
    limit: 100,
  });
  t.equal(audit.filter(({ action }) => action === 'key_rotated').length, 1, 'one line in the audit log');
});

t.test('rotations have a rate class of their own', async (t) => {
  const partner = await service.partner('trial');
  const { rotationsPerDay, burst } = planOf('trial');
  const rotate = (key: string, idempotencyKey: string) =>
    call(base, 'POST', '/v1/partner/keys/rotate', { key, headers: { 'idempotency-key': idempotencyKey } });
  await Promise.all(
    Array.from({ length: burst }, () => call(base, 'GET', '/v1/proofs', { key: partner.apiKey })),
  );
  t.equal(
    (await call(base, 'GET', '/v1/proofs', { key: partner.apiKey })).status,
    429,
    'the standard lane is used up',
  );
  let key = partner.apiKey;
  for (let i = 0; i < rotationsPerDay; i += 1) {
    const answer = await rotate(key, `rotation-number-${i}`);
    t.equal(answer.status, 201, `rotation ${i + 1}`);
    for (let again = 0; again < 3; again += 1)
      t.equal(
        (await rotate(key, `rotation-number-${i}`)).headers.get('idempotency-replayed'),
        'true',
        'a replay spends nothing',
      );
    t.match(await rotate(key, `another-number-${i}`), { status: 409 }, 'nor does a conflict');
    key = answer.json!['apiKey'] as string;
  }
  const last = 'the-one-that-is-refused';
  // The wait is then a fraction of a second more, and must be rounded up.
  clock.advance(0.4);
  const refused = await rotate(key, last);
  t.match(refused, { status: 429, json: { code: 'rate_limited', reason: 'rate_exceeded' } });
  numbers(t, refused, planOf('trial'), 0, 'refused by the rotation lane');
  t.match(await rotate(key, 'short'), { status: 400 }, 'a malformed request is named as such even then');
  const wait = retryAfter(refused);
  clock.advance(wait - 1);
  t.equal((await rotate(key, last)).status, 429, 'one second early');
  clock.advance(1);
  const answer = await rotate(key, last);
  t.equal(answer.status, 201, 'after Retry-After');
  t.notOk(
    answer.headers.has('idempotency-replayed'),
    'a refusal is not remembered under its Idempotency-Key',
  );
});

t.test('keys of a hundred callers at once are charged one by one', async (t) => {
  const { apiKey } = await service.partner('volume');
  const uploads: string[] = [];
  await inParallel(
    Array.from({ length: 40 }),
    8,
    async () => void uploads.push(await upload(base, apiKey, wav(1000))),
  );
  const answers = await Promise.all(
    [...uploads, ...uploads, ...uploads].map((uploadId) =>
      call(base, 'POST', '/v1/verify', { key: apiKey, body: { uploadId } }),
    ),
  );
  t.strictSame(statuses(answers), { 200: 120 });
  numbers(
    t,
    await call(base, 'GET', '/v1/partner/usage', { key: apiKey }),
    planOf('volume'),
    40,
    '40 uploads, each verified three times at once',
  );
});
