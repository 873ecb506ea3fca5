/** The form of `POST /v1/verifications`: its parts, its order of checks, and its bounds. */
import { Readable } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import t from 'tap';
import { DomainError, type ErrorReason } from '../../src/core/domain/errors.js';
import { MAX_SIDECAR_BYTES } from '../../src/service/domain/upload.js';
import { FormPermits } from '../../src/service/http/body/form-permits.js';
import { receiveForm } from '../../src/service/http/body/upload-form.js';
import { ByteBudget } from '../../src/service/http/byte-budget.js';
import { DEFAULT_LIMITS, type Exchange, MessageEnd } from '../../src/service/http/exchange.js';
import { seeded } from '../fixtures/service.js';
import { until } from '../fixtures/until.js';
import { noise } from '../fixtures/wav.js';
import { KEY, startPartner } from './doubles.js';
import { ask, type FormPart, form, jsonOf, matchError, RawClient, request } from './raw-client.js';

const PATH = '/v1/verifications';
const HEADERS = { 'x-api-key': KEY, 'Content-Type': 'multipart/form-data; boundary=XBOUNDARYX' };
const audio = noise(150_000, 3);
const file: FormPart = { name: 'file', filename: 'a.wav', type: 'audio/wav', body: audio };
const sidecarOf = (body: Uint8Array): FormPart => ({ name: 'sidecar', filename: 'a.sidecar', body });
const post = (parts: readonly FormPart[], headers: Record<string, string> = {}) =>
  request('POST', PATH, { ...HEADERS, ...headers }, form(parts));

t.test('a file and its sidecar reach the operation unchanged', async (t) => {
  const { port, listener, operations, reports } = await startPartner();
  t.teardown(() => listener.close(100));
  const cases: [string, readonly FormPart[], Buffer | undefined][] = [
    ['a file alone', [file], undefined],
    ['a sidecar first', [sidecarOf(noise(3000, 5)), file], noise(3000, 5)],
    ['an empty sidecar', [sidecarOf(Buffer.alloc(0)), file], Buffer.alloc(0)],
    ['the largest sidecar', [sidecarOf(noise(MAX_SIDECAR_BYTES)), file], noise(MAX_SIDECAR_BYTES)],
    ['an octet stream', [{ ...sidecarOf(noise(90)), type: 'application/octet-stream' }, file], noise(90)],
    ['an empty file', [{ ...file, body: '' }], undefined],
  ];
  for (const [name, parts, sidecar] of cases) {
    const answer = await ask(port, post(parts));
    t.equal(answer?.status, 200, name);
    t.equal((jsonOf(answer)['audio'] as { bytes: number }).bytes, parts.at(-1)!.body.length, name);
    t.strictSame(operations.verified.at(-1)!.sidecar, sidecar, name);
    t.equal(answer!.headers.get('cache-control'), 'no-store');
    t.equal(answer!.headers.get('idempotency-replayed'), undefined);
    t.equal(operations.admittedFiles, 0);
  }
  t.strictSame(
    reports.uploads,
    cases.map(() => 'stored'),
  );
  t.strictSame(operations.contract.metered, [], 'the charge counts the call');
});

t.test('an Idempotency-Key is passed on, and a repeated call is marked', async (t) => {
  const { port, listener } = await startPartner();
  t.teardown(() => listener.close(100));
  const key = { 'Idempotency-Key': '0123456789abcdef' };
  const statuses: unknown[] = [];
  for (const parts of [[file], [file], [sidecarOf(noise(10)), file], [{ ...file, body: 'x' }]]) {
    const answer = await ask(port, post(parts, key));
    statuses.push([answer!.status, answer!.headers.get('idempotency-replayed')]);
  }
  t.strictSame(statuses, [
    [200, undefined],
    [200, 'true'],
    [409, undefined],
    [409, undefined],
  ]);
  matchError(
    t,
    await ask(port, post([file], { 'Idempotency-Key': 'short' })),
    'invalid_request',
    'invalid_member',
    'a key that is too short',
  );
});

t.test('a form that is not the one of the contract is refused, and holds nothing', async (t) => {
  const { port, listener, operations } = await startPartner();
  t.teardown(() => listener.close(100));
  const sidecar = sidecarOf(noise(100));
  const many = Array.from({ length: 1000 }, (_, i): FormPart => ({ name: `f${i}`, body: 'x' }));
  const cases: [string, readonly FormPart[], ErrorReason][] = [
    ['no parts', [], 'file_missing'],
    ['a sidecar alone', [sidecar], 'file_missing'],
    ['a sidecar after the file', [file, sidecar], 'file_not_last'],
    ['two files', [file, file], 'file_not_last'],
    ['a field after the file', [file, { name: 'x', body: 'x' }], 'file_not_last'],
    ['a field', [{ name: 'x', body: 'x' }, file], 'form_field_unknown'],
    ['a field of a slot', [{ name: 'policy', body: 'x' }, file], 'form_field_unknown'],
    ['1,000 fields', [...many, file], 'form_field_unknown'],
    ['1,000 files', many.map((part) => ({ ...part, filename: 'a' })), 'form_field_unknown'],
    ['1,000 sidecars', many.map(() => sidecar), 'form_field_duplicated'],
    ['two sidecars', [sidecar, sidecar, file], 'form_field_duplicated'],
    ['a sidecar without a file name', [{ name: 'sidecar', body: 'x' }, file], 'file_name_missing'],
    ['a file without a file name', [{ name: 'file', body: 'x' }], 'file_name_missing'],
    ['a sidecar one byte too large', [sidecarOf(noise(MAX_SIDECAR_BYTES + 1)), file], 'form_field_too_large'],
    ['a huge sidecar', [sidecarOf(noise(5_000_000)), file], 'form_field_too_large'],
    [
      'a sidecar in base64',
      [
        {
          body: 'aaaa',
          head: 'Content-Disposition: form-data; name="sidecar"; filename="a"\r\nContent-Transfer-Encoding: base64\r\n',
        },
        file,
      ],
      'form_malformed',
    ],
    [
      'a part that is not form data',
      [{ body: 'x', head: 'Content-Type: text/plain\r\n' }, file],
      'form_malformed',
    ],
  ];
  for (const [name, parts, reason] of cases) {
    matchError(t, await ask(port, post(parts)), 'invalid_request', reason, name);
    t.equal(operations.admittedFiles, 0, name);
  }
  matchError(
    t,
    await ask(port, request('POST', `${PATH}?x=1`, HEADERS, form([file]))),
    'invalid_request',
    'invalid_member',
    'a query',
  );
  const declared = request('POST', PATH, { ...HEADERS, 'Content-Length': '68222977' });
  matchError(t, await ask(port, declared), 'payload_too_large', 'body_too_large', 'a form that is too long');
  operations.maxBytes = 1000;
  matchError(
    t,
    await ask(port, post([file])),
    'payload_too_large',
    'body_too_large',
    'a file that is too long',
  );
  t.equal(operations.verified.length, 0);
  t.equal(operations.aborted, operations.opened.length);
});

t.test('everything that can refuse a call is checked before its body', async (t) => {
  const { port, listener, operations } = await startPartner();
  t.teardown(() => listener.close(100));
  /** Returns the first answer to a head whose caller waits before it sends the body. */
  const first = async (headers: Record<string, string | undefined>) => {
    const given = Object.entries({
      ...HEADERS,
      Expect: '100-continue',
      'Content-Length': '1000',
      ...headers,
    });
    const sent = given.filter((header): header is [string, string] => header[1] !== undefined);
    const client = new RawClient(port);
    await client.send(request('POST', PATH, Object.fromEntries(sent)));
    const answer = await client.read();
    client.destroy();
    return answer;
  };
  t.equal((await first({}))!.status, 100, 'an admitted call may send its body');
  const keyless = { 'x-api-key': undefined, 'Content-Type': 'text/plain' };
  matchError(t, await first(keyless), 'forbidden', 'key_missing', 'without a key');
  matchError(t, await first({ 'x-api-key': 'x' }), 'forbidden', undefined, 'with an unknown key');
  matchError(t, await first({ 'Content-Type': 'text/plain' }), 'unsupported_media_type', undefined, 'a type');
  operations.scopes = ['proofs'];
  matchError(t, await first({}), 'forbidden', 'scope_missing', 'without the scope');
  operations.scopes = ['verify'];
  operations.refusal = new DomainError('rate_limited', 'The quota is used up.', {
    reason: 'quota_exceeded',
    limit: 'monthly_quota',
    retryAfterSeconds: 60,
  });
  matchError(t, await first({}), 'rate_limited', 'quota_exceeded', 'without a unit');
  operations.contract.rateRefusal = new DomainError('rate_limited', 'The rate is exceeded.', {
    reason: 'rate_exceeded',
    limit: 'request_rate',
    retryAfterSeconds: 1,
  });
  matchError(t, await first({}), 'rate_limited', 'rate_exceeded', 'beyond the rate');
  t.ok(await until(() => operations.admittedFiles === 0));
  t.equal(operations.opened.length, 0);
});

t.test('a call that stalls or is given up frees its place at every stage', async (t) => {
  const { port, listener, operations, reports } = await startPartner({ idleMs: 200, drainMs: 200 });
  t.teardown(() => listener.close(100));
  const whole = form([sidecarOf(noise(2000, 7)), file]);
  const head = request('POST', PATH, { ...HEADERS, 'Content-Length': String(whole.length) });
  const stages: [string, number][] = [
    ['before the body', 0],
    ['within the sidecar', 1000],
    ['within the head of the file', whole.indexOf('a.wav') + 3],
    ['within the audio', 100_000],
    ['one byte before the end', whole.length - 1],
  ];
  for (const [name, at] of stages) {
    const stalled = new RawClient(port);
    await stalled.send(Buffer.concat([head, whole.subarray(0, at)]));
    matchError(t, await stalled.read(), 'timeout', 'client_too_slow', `stalls ${name}`);
    stalled.destroy();
    const count = reports.uploads.length;
    const client = new RawClient(port);
    await client.send(Buffer.concat([head, whole.subarray(0, at)]));
    t.ok(await until(() => operations.admittedFiles === 1));
    client.socket.resetAndDestroy();
    t.ok(await until(() => reports.uploads.length > count), `leaves ${name}`);
    t.equal(reports.uploads.at(-1), 'aborted');
    t.ok(await until(() => operations.admittedFiles === 0));
  }
  t.equal(operations.aborted, operations.opened.length, 'every file was given back');
  t.equal(operations.verified.length, 0);
  t.strictSame(reports.faults, []);
});

t.test('the time of a call does not include its body, and includes everything else', async (t) => {
  const { port, listener, operations } = await startPartner({ callMs: 1000, drainMs: 200 });
  t.teardown(() => listener.close(100));
  const whole = post([file]);
  const slow = new RawClient(port);
  await slow.send(whole.subarray(0, 50_000));
  const startedAt = performance.now();
  t.ok(await until(() => performance.now() - startedAt > 1100));
  await slow.send(whole.subarray(50_000));
  t.equal((await slow.read())!.status, 200);
  slow.destroy();
  operations.verifyGate = new Promise(() => undefined);
  matchError(t, await ask(port, whole), 'unavailable', 'store_unavailable', 'a judgement without an end');
  t.ok(await until(() => operations.admittedFiles === 0));
  t.ok(operations.signals.at(-1)!.aborted, 'its work is given up');

  let admit = (): void => undefined;
  operations.admitGate = new Promise((resolve) => {
    admit = resolve;
  });
  const released = operations.releasedFiles;
  matchError(t, await ask(port, whole), 'unavailable', 'store_unavailable', 'a check without an end');
  admit();
  t.ok(
    await until(() => operations.releasedFiles > released),
    'a place that is taken too late is given back',
  );
  t.equal(operations.admittedFiles, 0);
});

t.test('an address has its bound of stalled calls', async (t) => {
  const { port, listener, operations, reports } = await startPartner({
    idleMs: 60_000,
    stalledMs: 40,
    stalledOfAddress: 2,
    drainMs: 200,
  });
  t.teardown(() => listener.close(100));
  const whole = post([file]);
  const calls: RawClient[] = [];
  for (const at of [100_000, 100_000, 300]) {
    calls.push(new RawClient(port));
    await calls.at(-1)!.send(whole.subarray(0, at));
  }
  const refused = await Promise.race(calls.map(async (client, i) => ({ i, answer: await client.read() })));
  matchError(t, refused.answer, 'rate_limited', 'concurrency_exceeded', 'one of three is refused');
  for (const [i, client] of calls.entries())
    if (i !== refused.i) await client.send(whole.subarray(i === 2 ? 300 : 100_000));
  t.ok(await until(() => operations.verified.length === 2), 'the others go on');
  t.strictSame(reports.displacements, ['upload_of_address']);
  for (const client of calls) client.destroy();
});

t.test('parts come whole however the form is cut', async (t) => {
  const random = seeded(42);
  const sidecar = Buffer.concat([noise(500, 2), Buffer.from('\r\n--XBOUNDARY\r\n--'), noise(300, 4)]);
  const content = Buffer.concat([noise(900, 6), Buffer.from('\r\n--XBOUNDARY-'), noise(900, 8)]);
  const whole = form([sidecarOf(sidecar), { ...file, body: content }]);
  const stalled = new FormPermits({
    max: 1,
    maxOfAddress: 1,
    state: 'wait',
    displacedByAny: 'upload_stalled',
    displacedByAddress: 'upload_of_address',
    observer: { displaced: () => t.fail('no form gives way here') },
  });
  for (let round = 0; round < 200; round += 1) {
    const stream = Object.assign(new Readable({ read: () => {} }), {
      headers: { 'content-type': HEADERS['Content-Type'] },
      complete: true,
    });
    for (let at = 0; at < whole.length; ) {
      const size = 1 + Math.floor(random() ** 3 * 900);
      stream.push(whole.subarray(at, at + size));
      at += size;
    }
    stream.push(null);
    const exchange = {
      request: stream,
      limits: DEFAULT_LIMITS,
      address: '127.0.0.1',
      gone: new AbortController().signal,
      message: new MessageEnd(undefined as never, false, false),
      log: { bytesIn: 0 },
      lease: new ByteBudget(1_000_000).lease('127.0.0.1'),
    } as unknown as Exchange;
    const taken: Buffer[] = [];
    const rules = { stalled, sidecarBytes: MAX_SIDECAR_BYTES, digest: undefined };
    const received = await receiveForm(exchange, rules, async (_fields, sent) => {
      if (random() < 0.5) await turn();
      return {
        signal: new AbortController().signal,
        write: (chunk) => {
          taken.push(Buffer.from(chunk));
          return random() < 0.6 ? undefined : turn();
        },
        finish: async () => sent,
        abort: () => undefined,
      };
    });
    t.strictSame([received, Buffer.concat(taken)], [sidecar, content]);
    stream.destroy();
  }
});
