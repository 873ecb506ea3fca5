/** `POST /v1/verifications` of a running service: verdicts, units, Idempotency-Keys and signatures. */
import { createHash, generateKeyPairSync } from 'node:crypto';
import t from 'tap';
import { MessageSigner } from '../../src/client/message-signature.js';
import { TestClock, TestService } from '../fixtures/service.js';
import { wav } from '../fixtures/wav.js';
import { type CallOptions, call, closeWire, FORM_TYPE, upload, type WireAnswer } from '../fixtures/wire.js';
import { type FormPart, form, RawClient, request } from '../http/raw-client.js';

/** A clock that only the tests advance, so that both ways of a verification have the same time. */
const clock = new TestClock();
clock.hold();
const beta = await TestService.start({ TAKEMARK_ENVIRONMENT: 'beta' }, clock);
const base = beta.partnerUrl;
const { operator, partner } = beta.service.operations;
t.teardown(async () => {
  closeWire();
  await beta.stop();
});

const PATH = '/v1/verifications';
const KEY = { 'idempotency-key': '0123456789abcdef' };
const formOf = (audio: Uint8Array, sidecar?: Uint8Array): Buffer => {
  const file: FormPart = { name: 'file', filename: 'take.wav', type: 'audio/wav', body: audio };
  return form(
    sidecar === undefined ? [file] : [{ name: 'sidecar', filename: 'take.sidecar', body: sidecar }, file],
  );
};
const verify = (
  key: string,
  audio: Uint8Array,
  {
    sidecar,
    headers = {},
  }: { readonly sidecar?: Uint8Array; readonly headers?: CallOptions['headers'] } = {},
): Promise<WireAnswer> =>
  call(base, 'POST', PATH, { key, headers: { ...FORM_TYPE, ...headers }, body: formOf(audio, sidecar) });
/** Waits until the engine holds so many uploads. */
async function uploadsInFlight(count: number): Promise<void> {
  const expected = `\ntakemark_engine_uploads_in_flight ${count}\n`;
  let metrics = '';
  while (!metrics.includes(expected))
    metrics = (await call(beta.operatorUrl, 'GET', '/metrics', { checked: false })).body.toString();
}
const outcome = ({ status, json, headers }: WireAnswer): unknown[] => [
  status,
  status === 200 ? json!['verdict'] : json!['reason'],
  headers.get('idempotency-replayed'),
];

t.test('the result is that of slot, post and verify, for every fixture of the sandbox', async (t) => {
  const { apiKey, caller } = await beta.partner();
  const { fixtures } = await partner.sandboxFixtures(caller);
  const seen = new Set<unknown>();
  for (const { name, files } of fixtures) {
    const [audio, sidecar] = await Promise.all(
      files.map(async ({ href }) => (await call(base, 'GET', href, { key: apiKey })).body),
    );
    const uploadId = await upload(base, apiKey, audio!);
    const body = { uploadId, ...(sidecar === undefined ? {} : { sidecar: sidecar.toString('base64') }) };
    const three = await call(base, 'POST', '/v1/verify', { key: apiKey, body });
    const one = await verify(apiKey, audio!, sidecar === undefined ? {} : { sidecar });
    t.strictSame([one.status, one.json], [200, three.json], name);
    seen.add(one.json!['verdict']);
  }
  t.equal(seen.size, 6, 'every verdict was seen');
});

t.test('a call costs one unit, and a call that is refused or cut off costs nothing', async (t) => {
  const { apiKey, caller } = await beta.partner();
  const used = async () => (await partner.readUsage(caller, { days: 1 })).used;
  const audio = wav(4000);
  const answer = await verify(apiKey, audio);
  t.equal(answer.headers.get('x-ratelimit-remaining'), '9999999', 'the headers include the call');
  await verify(apiKey, audio);
  t.equal(await used(), 2, 'without an Idempotency-Key each call is another one');
  t.equal((await verify(apiKey, Buffer.from('no audio at all'))).status, 200);
  t.equal(await used(), 2, 'a file of unknown container is free');
  await verify(apiKey, Buffer.from('no audio at all'), { sidecar: Buffer.from('x') });
  t.equal(await used(), 3, 'with a sidecar it is not');

  const whole = request('POST', PATH, { ...FORM_TYPE, 'x-api-key': apiKey }, formOf(wav(300_000)));
  for (const at of [whole.length - 300_000, whole.length - 5, whole.length - 1]) {
    const client = new RawClient(Number(new URL(base).port));
    await client.send(whole.subarray(0, at));
    await uploadsInFlight(1);
    client.socket.resetAndDestroy();
    await uploadsInFlight(0);
  }
  t.equal(
    outcome(await call(base, 'POST', PATH, { key: apiKey, headers: FORM_TYPE, body: form([]) }))[1],
    'file_missing',
  );
  t.equal(await used(), 3);
  t.strictSame((await partner.readUsage(caller, { days: 1 })).days[0]!.operations, { verify: 3 });
});

t.test('an Idempotency-Key is bound to the file and its sidecar for 24 hours', async (t) => {
  const { apiKey, caller, partnerId } = await beta.partner();
  const issued = await beta.issue(partnerId, wav(3000), { carrier: 'sidecar' });
  const pair = { sidecar: issued.sidecar!, headers: KEY };
  t.strictSame(outcome(await verify(apiKey, issued.file, pair)), [200, 'valid', undefined]);
  t.strictSame(outcome(await verify(apiKey, issued.file, pair)), [200, 'valid', 'true']);
  const reused = [409, 'idempotency_key_reused', undefined];
  t.strictSame(outcome(await verify(apiKey, issued.file, { headers: KEY })), reused);
  t.strictSame(outcome(await verify(apiKey, wav(3001), pair)), reused);
  t.strictSame(
    outcome(await verify(apiKey, Buffer.from('no audio'), { headers: KEY })),
    reused,
    'a free call with the key of another one',
  );
  const other = await beta.partner();
  t.strictSame(
    outcome(await verify(other.apiKey, issued.file, { headers: KEY })),
    [200, 'unreadable', undefined],
    'the key of another partner is another one',
  );
  await partner.eraseProof(caller, { proofId: issued.proofId });
  t.strictSame(
    outcome(await verify(apiKey, issued.file, pair)),
    [200, 'unregistered', 'true'],
    'a repeated call is judged again',
  );
  t.equal((await partner.readUsage(caller, { days: 1 })).used, 1);
  clock.advance(24 * 3600);
  t.strictSame(outcome(await verify(apiKey, wav(3001), { headers: KEY })), [200, 'unreadable', undefined]);
  t.equal((await partner.readUsage(caller, { days: 2 })).days.flatMap(({ units }) => units).length, 2);
});

t.test('of simultaneous calls with one Idempotency-Key only the same bytes get a verdict', async (t) => {
  const { apiKey, caller } = await beta.partner();
  const [one, two] = [wav(90_000, {}, 1), wav(90_000, {}, 2)];
  const answers = await Promise.all(
    [one, two, one, two, one, two].map(async (audio) => ({
      sha256: createHash('sha256').update(audio).digest('hex'),
      answer: await verify(apiKey, audio, { headers: KEY }),
    })),
  );
  const first = answers.find(({ answer }) => outcome(answer)[0] === 200 && outcome(answer)[2] === undefined)!;
  for (const { sha256, answer } of answers) t.equal(answer.status, sha256 === first.sha256 ? 200 : 409);
  t.equal(answers.filter(({ answer }) => outcome(answer)[2] === 'true').length, 2);
  t.equal((await partner.readUsage(caller, { days: 1 })).used, 1);
});

t.test('a month without units admits only what it has paid for', async (t) => {
  const { apiKey, partnerId } = await beta.partner();
  await operator.createPlan({
    name: 'one',
    monthlyQuota: 1,
    requestsPerSecond: 100,
    burst: 100,
    concurrentUploads: 1,
    rotationsPerDay: 1,
  });
  await operator.assignPlan({ partnerId, plan: 'one', effect: 'at_once' });
  clock.advance(60);
  const headers = KEY;
  t.strictSame(outcome(await verify(apiKey, wav(500), { headers })), [200, 'unreadable', undefined]);
  t.strictSame(outcome(await verify(apiKey, wav(500), { headers })), [200, 'unreadable', 'true']);
  t.strictSame(outcome(await verify(apiKey, wav(600), { headers })), [
    409,
    'idempotency_key_reused',
    undefined,
  ]);
  const refused = await verify(apiKey, wav(500));
  t.strictSame(outcome(refused), [429, 'quota_exceeded', undefined]);
  t.equal(refused.json!['limit'], 'monthly_quota');

  const whole = request('POST', PATH, { ...FORM_TYPE, ...KEY, 'x-api-key': apiKey }, formOf(wav(500)));
  const client = new RawClient(Number(new URL(base).port));
  await client.send(whole.subarray(0, whole.length - 10));
  await uploadsInFlight(1);
  t.strictSame(
    outcome(await verify(apiKey, wav(500), { headers })),
    [429, 'concurrency_exceeded', undefined],
    'the plan allows one upload at a time',
  );
  await client.send(whole.subarray(whole.length - 10));
  t.equal((await client.read())!.status, 200);
  client.destroy();
});

t.test('a signed call covers the digest of the whole form', async (t) => {
  const { partnerId, caller } = await beta.partner();
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const pem = publicKey.export({ type: 'spki', format: 'pem' }).toString();
  const { apiKey } = await operator.createKey({ partnerId, name: 'signed', publicKey: pem });
  const signer = new MessageSigner(privateKey, apiKey);
  const body = formOf(wav(200_000));
  const now = Math.floor(clock.now() / 1000);
  const send = async (sent: Uint8Array, covered: Buffer | undefined) => {
    const signed = { method: 'POST', url: new URL(PATH, base), ...(covered && { body: covered }) };
    const headers = { ...FORM_TYPE, ...signer.sign(signed, now) };
    return outcome(await call(base, 'POST', PATH, { key: apiKey, headers, body: sent }));
  };
  t.strictSame(await send(body, body), [200, 'unreadable', undefined]);
  const changed = Buffer.from(body);
  changed[150_000]! ^= 1;
  t.strictSame(await send(changed, body), [403, 'signature_invalid', undefined], 'a changed byte');
  const longer = Buffer.concat([body, Buffer.from('\r\nmore')]);
  t.strictSame(await send(longer, body), [403, 'signature_invalid', undefined], 'bytes after the form');
  t.strictSame(await send(body, undefined), [403, 'signature_invalid', undefined], 'without the digest');
  t.strictSame(outcome(await verify(apiKey, wav(10))), [403, 'signature_missing', undefined]);
  t.equal((await partner.readUsage(caller, { days: 1 })).used, 1);
});

t.test('a test key forces its response before the body, and its calls are not billed', async (t) => {
  const { partnerId, caller } = await beta.partner();
  const testKey = async (name: string) =>
    (await operator.createKey({ partnerId, name: `test:${name}` })).apiKey;
  t.strictSame(outcome(await verify(await testKey('rate_limited'), wav(10))), [
    429,
    'rate_exceeded',
    undefined,
  ]);
  t.strictSame(outcome(await verify(await testKey('unavailable'), wav(10))), [
    503,
    'store_unavailable',
    undefined,
  ]);
  t.strictSame(outcome(await verify(await testKey('slow'), wav(10))), [200, 'unreadable', undefined]);
  t.equal((await partner.readUsage(caller, { days: 1 })).used, 0);
});
