/** Test keys force answers by their name, in beta alone: chapter 19 of the contract. */
import { once } from 'node:events';
import { Agent, get, type IncomingMessage } from 'node:http';
import t, { type Test } from 'tap';
import { createClient, TakemarkError } from '../../src/client/index.js';
import { TestService } from '../fixtures/service.js';
import { wav } from '../fixtures/wav.js';
import { call, closeWire } from '../fixtures/wire.js';

const beta = await TestService.start({ TAKEMARK_ENVIRONMENT: 'beta' });
const production = await TestService.start();
t.teardown(async () => {
  closeWire();
  await Promise.all([beta.stop(), production.stop()]);
});
const { partnerId, apiKey, caller } = await beta.partner();

const testKey = async (name: string, scopes?: readonly ['verify']): Promise<string> => {
  const request = { partnerId, name: `test:${name}`, ...(scopes === undefined ? {} : { scopes }) };
  return (await beta.service.operations.operator.createKey(request)).apiKey;
};
const used = async (): Promise<number> =>
  (await beta.service.operations.partner.readUsage(caller, { days: 1 })).used;

/** Resolves with the error that the client throws, the pauses of its retries left out. */
async function errorOf(work: Promise<unknown>): Promise<TakemarkError> {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof TakemarkError)) throw new Error('the call did not fail as it should');
  return error;
}

for (const [name, status, code, reason] of [
  ['rate_limited', 429, 'rate_limited', 'rate_exceeded'],
  ['unavailable', 503, 'unavailable', 'store_unavailable'],
] as const)
  t.test(`test:${name} is ${status} on each call, and costs nothing`, async (t) => {
    const key = await testKey(name);
    const answer = await call(beta.partnerUrl, 'GET', '/v1/proofs', { key });
    t.equal(answer.status, status);
    t.match(answer.json, { code, reason, error: String });
    t.equal(answer.headers.get('retry-after'), '2');
    t.equal(answer.headers.get('x-ratelimit-limit'), '10000000', 'the headers of the quota are there');
    t.equal(
      (await call(beta.partnerUrl, 'POST', '/v1/uploads', { key, body: {} })).status,
      status,
      'on every route',
    );
    t.equal(await used(), 0);
    await clientObeys(t, key, { status, code, reason });
    const scoped = await testKey(name, ['verify']);
    t.match(
      (await call(beta.partnerUrl, 'GET', '/v1/proofs', { key: scoped })).json,
      { code: 'forbidden', reason: 'scope_missing' },
      'a missing scope is reported first',
    );
  });

async function clientObeys(t: Test, key: string, expected: object): Promise<void> {
  const times: number[] = [];
  const client = createClient({
    baseUrl: beta.partnerUrl,
    apiKey: key,
    retry: { maxAttempts: 2, baseDelayMs: 1 },
    onExchange: () => times.push(performance.now()),
  });
  t.match(await errorOf(client.readUsage()), { ...expected, retryAfterSeconds: 2 });
  t.equal(times.length, 2, 'the client tries again');
  t.ok(times[1]! - times[0]! >= 1900, `after the seconds of Retry-After (${times[1]! - times[0]!} ms)`);
  const impatient = createClient({ baseUrl: beta.partnerUrl, apiKey: key, retry: { maxDelayMs: 1000 } });
  const began = times.length;
  t.match(
    await errorOf(impatient.readUsage()),
    expected,
    'and gives the error at once where it may not wait',
  );
  t.equal(times.length, began);
}

t.test('test:slow answers late, and costs nothing', async (t) => {
  const key = await testKey('slow');
  const slow = await beta.service.operations.partner.authenticate(key);
  t.equal(slow.testAnswer, 'slow');
  const { file } = await beta.issue(partnerId, wav(20_000));
  const { uploadId } = await beta.upload(caller, file);
  const began = performance.now();
  const answer = await call(beta.partnerUrl, 'POST', '/v1/verify', { key, body: { uploadId } });
  const took = performance.now() - began;
  t.match(answer.json, { verdict: 'valid', good: true }, 'the call itself is done');
  t.ok(took >= 7900, `after ${took} ms`);
  t.equal(await used(), 0, 'unbilled');
  const error = await errorOf(
    createClient({
      baseUrl: beta.partnerUrl,
      apiKey: key,
      timeoutMs: 300,
      retry: { maxAttempts: 1 },
    }).readUsage(),
  );
  t.equal(error.code, 'timed_out', 'a client with a shorter limit gives up');
});

t.test('64 slow calls of a partner wait, and a caller that leaves frees its place at once', async (t) => {
  const key = await testKey('slow');
  const other = await beta.partner();
  const { apiKey: otherKey } = await beta.service.operations.operator.createKey({
    partnerId: other.partnerId,
    name: 'test:slow',
  });
  const agent = new Agent({ maxSockets: Infinity });
  t.teardown(() => agent.destroy());
  const statuses: number[] = [];
  const ask = (apiKey = key) => {
    const request = get(
      `${beta.partnerUrl}/v1/partner/usage`,
      { agent, headers: { 'x-api-key': apiKey } },
      (response) => {
        statuses.push(response.statusCode!);
        response.resume();
      },
    );
    request.on('error', () => undefined);
    return request;
  };
  const began = performance.now();
  const requests = Array.from({ length: 70 }, () => ask());
  while (statuses.length < 6) await new Promise((resolve) => setTimeout(resolve, 10));
  t.strictSame(statuses, Array(6).fill(503), 'beyond 64 they are refused, while the others wait');
  const otherResponse = once(ask(otherKey), 'response');
  for (const request of requests) request.destroy();
  // Newcomers find places long before the first callers would have been answered.
  const inTime = () => performance.now() - began < 7900;
  for (let refused = true; refused && inTime(); ) {
    statuses.length = 0;
    const newcomer = ask();
    await new Promise((resolve) => setTimeout(resolve, 200));
    refused = statuses.length > 0;
    newcomer.destroy();
  }
  t.strictSame(statuses, [], 'a newcomer waits in a place');
  t.ok(inTime(), 'that was free before its time had passed');
  const [{ statusCode }] = (await otherResponse) as [IncomingMessage];
  t.equal(statusCode, 200, 'a slow call of another partner was not refused');
});

t.test('in production the names force nothing and are not given', async (t) => {
  const partner = await production.partner();
  for (const name of [
    'test:slow',
    'test:rate_limited',
    'test:anything',
    ' test:slow',
    'Test:slow',
    'test :slow',
    'TEST:SLOW\u00a0',
  ])
    await t.rejects(
      production.service.operations.operator.createKey({ partnerId: partner.partnerId, name }),
      { code: 'invalid_request', reason: 'invalid_member' },
      name,
    );
  await t.rejects(testKey('rate_limitted'), { code: 'invalid_request' }, 'nor is a misspelt one in beta');
  t.equal((await call(beta.partnerUrl, 'GET', '/v1/partner/usage', { key: apiKey })).status, 200);
});
