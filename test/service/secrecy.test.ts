/**
 * Canaries: known secrets, audio, sidecars, form fields and proof ids go through the whole service at its
 * most talkative level, and none of them is found in log, metrics or crash output (rules 4.4 and 15.7).
 */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import t from 'tap';
import { MemorySink } from '../../src/cli/specimens/memory-sink.js';
import { seededDeviceKey, simulateTrace } from '../../src/cli/specimens/simulate-trace.js';
import { DomainError } from '../../src/core/domain/errors.js';
import { OPERATOR_ROUTES } from '../../src/service/contract/routes/operator-routes.js';
import { PARTNER_ROUTES } from '../../src/service/contract/routes/partner-routes.js';
import { Canaries, filesBelow } from '../fixtures/canaries.js';
import { collect, TestService } from '../fixtures/service.js';
import { chunk, fmtChunk, noise, riff } from '../fixtures/wav.js';
import {
  type CallOptions,
  call,
  closeWire,
  FORM_TYPE,
  postForm,
  type Slot,
  slotFor,
  slotForm,
  upload,
} from '../fixtures/wire.js';
import { type FormPart, form, RawClient, request } from '../http/raw-client.js';

const MAIN = new URL('../../src/service/main.js', import.meta.url).pathname;
const canaries = new Canaries();
t.teardown(closeWire);

/** Returns a recording that contains a mark of its own many times. */
function marked(name: string, repeats = 40): Buffer {
  const mark = canaries.plant(name, randomBytes(32));
  return riff([
    fmtChunk(),
    chunk({
      id: 'data',
      data: Buffer.concat(Array.from({ length: repeats }, (_, i) => [noise(400, i + 1), mark]).flat()),
    }),
  ]);
}

/** Plants an API key and, by itself, its random part. The key's id may be logged. */
function plantKey(apiKey: string): string {
  canaries.plant('API key', apiKey.split('_').at(-2)!);
  return canaries.plant('API key', apiKey);
}

function plantSlot(slot: Slot): Slot {
  canaries.plant('upload id', slot.uploadId);
  for (const value of Object.values(slot.fields)) canaries.plant('form field', value);
  return slot;
}

async function simulatedTrace(): Promise<Buffer> {
  const to = new MemorySink();
  await simulateTrace({ minutes: 2, seed: 4, to, key: seededDeviceKey(4) });
  return to.bytes();
}

t.test('the search finds every spelling', async (t) => {
  const own = new Canaries();
  const value = own.plant('value', 'Grüße "from" the canary\n');
  const bytes = Buffer.from(value);
  for (const leak of [
    value,
    JSON.stringify({ value }),
    encodeURIComponent(value),
    bytes.toString('hex'),
    bytes.toString('base64'),
    Buffer.from(`x${value}`).toString('base64url'),
    Buffer.from(`xy${value}zz`).toString('base64'),
    JSON.stringify({ bytes }),
  ]) {
    t.strictSame(own.find(`before ${leak} after`), ['value #0'], leak);
  }
  t.strictSame(own.find('nothing of it'), []);
});

t.test('the whole service, at its most talkative, logs no secret', async (t) => {
  const token = canaries.text('operator-token');
  const service = await TestService.start({
    TAKEMARK_OPERATOR_TOKEN: token,
    TAKEMARK_LOG_LEVEL: 'trace',
    // Production takes no simulated trace.
    TAKEMARK_ENVIRONMENT: 'beta',
  });
  t.teardown(() => service.stop());
  const { partnerUrl: base, operatorUrl } = service;
  const seen = new Map<number, number>();
  const count = async <Answer extends { status: number }>(answering: Promise<Answer>): Promise<Answer> => {
    const answer = await answering;
    seen.set(answer.status, (seen.get(answer.status) ?? 0) + 1);
    return answer;
  };
  const operator = (method: string, target: string, options: CallOptions = {}) =>
    count(
      call(operatorUrl, method, target, {
        ...options,
        headers: { authorization: `Bearer ${token}`, ...options.headers },
      }),
    );

  // Operator side, and what it issues.
  const { partnerId } = (
    await operator('POST', '/operator/v1/partners', {
      body: { name: canaries.text('partner-name'), plan: 'volume' },
    })
  ).json as { partnerId: string };
  const newKey = async (body: object) =>
    (await operator('POST', `/operator/v1/partners/${partnerId}/keys`, { body })).json as {
      apiKey: string;
      keyId: string;
    };
  const first = await newKey({ name: canaries.text('key-name') });
  let key = plantKey(first.apiKey);
  const partner = (method: string, target: string, options: CallOptions = {}) =>
    count(call(base, method, target, { key, ...options }));
  const issue = async (audio: Uint8Array, carrier: string, idempotencyKey: string) =>
    operator(
      'POST',
      `/operator/v1/proofs?${new URLSearchParams({ partnerId, song: title, fileName: `${fileName}.wav`, carrier })}`,
      {
        headers: { 'content-type': 'application/octet-stream', 'idempotency-key': idempotencyKey },
        body: audio,
      },
    );
  const title = canaries.plant('title', `Morgenröte "${randomBytes(8).toString('hex')}" \\ live`);
  const fileName = canaries.text('file-name');
  const issuedAudio = marked('issued audio');
  const idempotencyKey = canaries.text('idempotency-key');
  const { proofId } = (await issue(issuedAudio, 'embedded', idempotencyKey)).json as { proofId: string };
  await issue(issuedAudio, 'embedded', idempotencyKey);
  await issue(marked('other audio'), 'embedded', idempotencyKey);
  await issue(
    canaries.plant('malformed audio', Buffer.concat([Buffer.from('RIFF'), randomBytes(600)])),
    'embedded',
    canaries.text('idempotency-key'),
  );
  const pairAudio = marked('issued audio');
  const { proofId: pairId } = (await issue(pairAudio, 'sidecar', canaries.text('idempotency-key'))).json as {
    proofId: string;
  };
  for (const id of [proofId, pairId]) canaries.plant('proof id', id);
  const { operations } = service.service;
  const file = await collect(await (await operations.operator.readAsset(proofId, 'audio')).read());
  const sidecar = await collect(await (await operations.operator.readAsset(pairId, 'sidecar')).read());
  canaries.pieces('sidecar', sidecar);
  for (const path of [
    '/partners',
    '/plans',
    `/partners/${partnerId}/keys`,
    `/proofs/${proofId}/asset`,
    `/proofs/${proofId}/erasure`,
    `/proofs/${canaries.text('id')}/erasure`,
    '/authority',
  ])
    await operator('GET', `/operator/v1${path}`);
  // The production record.
  const device = canaries.plant('device', randomBytes(32).toString('hex'));
  for (const body of [{ deviceId: device }, { deviceId: device, [canaries.text('member')]: 1 }])
    await operator('POST', '/operator/v1/devices', { body });
  await operator('GET', '/operator/v1/devices');
  await operator('POST', `/operator/v1/devices/${device}/revoke`, { body: {} });
  await operator('POST', `/operator/v1/devices/${canaries.text('device')}/revoke`, { body: {} });
  const consentVersion = canaries.plant('consent', `consent-${randomBytes(8).toString('hex')}`);
  await operator('PUT', `/operator/v1/partners/${partnerId}/source-detail`, { body: { consentVersion } });
  await operator('PUT', `/operator/v1/proofs/${proofId}/source-detail-consent`, { body: { consentVersion } });
  await operator('DELETE', `/operator/v1/proofs/${proofId}/source-detail-consent`);
  await operator('POST', `/operator/v1/proofs/${proofId}/declarations`, {
    body: {
      surveyVersion: canaries.plant('survey', `survey-${randomBytes(8).toString('hex')}`),
      submissionId: canaries.plant('submission', `sub-${randomBytes(8).toString('hex')}`),
      subject: canaries.plant('subject', `creator-${randomBytes(8).toString('hex')}`),
      submittedAt: 1_767_229_200,
      answers: { declaredOrigin: 'from_scratch' },
    },
  });
  await operator('POST', '/operator/v1/legacy-proofs', {
    body: {
      proofId,
      partnerId,
      grade: canaries.text('grade'),
      interpretation: canaries.text('interpretation'),
    },
  });
  const issueWith = (evidence: Buffer, summary: object, detection: object) =>
    operator(
      'POST',
      `/operator/v1/proofs?${new URLSearchParams({ partnerId, song: title, fileName: `${fileName}.wav`, carrier: 'embedded' })}`,
      {
        headers: FORM_TYPE,
        body: form([
          { name: 'summary', body: JSON.stringify(summary) },
          { name: 'detections', body: JSON.stringify({ detections: [detection] }) },
          {
            name: 'trace',
            filename: canaries.text('trace-name'),
            type: 'application/octet-stream',
            body: canaries.plant('trace', evidence),
          },
          { name: 'file', filename: canaries.text('audio-name'), type: 'audio/wav', body: issuedAudio },
        ]),
      },
    );
  const sound = await simulatedTrace();
  const damaged = Buffer.concat([sound, randomBytes(64)]);
  const summary = { counters: { takesRecorded: 99_999 } };
  const detection = {
    sha256: canaries.plant('imported digest', randomBytes(32).toString('hex')),
    detector: canaries.text('detector'),
    detectorVersion: '1',
    likelihood: 0.5,
  };
  for (const evidence of [randomBytes(600), damaged, sound]) {
    const refused = { counters: { [canaries.text('summary')]: 3 } };
    await issueWith(evidence, refused, { detector: canaries.text('detector') });
  }
  t.strictSame((await issueWith(randomBytes(600), summary, detection)).status, 422, 'no trace');
  canaries.pieces('trace', sound);
  canaries.plant('device', seededDeviceKey(4).deviceId);
  const traced: string[] = [];
  for (const evidence of [damaged, sound]) {
    const { status, json } = await issueWith(evidence, summary, detection);
    t.equal(status, 201, 'replayed and issued');
    traced.push(canaries.plant('proof id', json!['proofId'] as string));
  }
  for (const id of traced) await partner('GET', `/v1/records/${id}`);
  await partner('GET', '/v1/proofs?include=evidenceReport');
  await operator('GET', '/operator/v1/partners', {
    headers: { authorization: `Bearer ${canaries.text('wrong-token')}` },
  });

  // Uploads: good, malformed, cut off, and in flight while the disk is searched.
  const slot = plantSlot(await slotFor(base, key));
  const audio = marked('uploaded audio');
  await count(postForm(base, slot, slotForm(slot, audio)));
  await count(postForm(base, slot, slotForm(slot, audio)));
  const fields: FormPart[] = Object.entries(slot.fields).map(([name, body]) => ({ name, body }));
  const part: FormPart = {
    name: 'file',
    filename: canaries.text('upload-name'),
    type: 'audio/wav',
    body: audio,
  };
  const strange = canaries.text('strange-field');
  for (const parts of [
    [...fields, { name: strange, body: strange }, part],
    [...fields, part, { name: 'late', body: strange }],
    [{ name: 'policy', body: strange }, { name: 'signature', body: strange }, part],
    [
      ...fields,
      {
        head: `Content-Disposition: form-data; name=${strange}\r\nX-${strange}: ${strange}\r\n`,
        body: strange,
      },
      part,
    ],
    [...fields, ...fields, part],
    [part],
    fields,
  ])
    await count(call(base, 'POST', `/uploads/${slot.uploadId}`, { headers: FORM_TYPE, body: form(parts) }));
  await count(
    call(base, 'POST', `/uploads/${slot.uploadId}`, { headers: FORM_TYPE, body: Buffer.from(strange) }),
  );
  await count(
    call(base, 'POST', `/uploads/${slot.uploadId}?${strange}`, {
      headers: { 'content-type': `multipart/form-data; boundary="${strange}`, [strange]: strange },
      body: audio,
    }),
  );
  const openSlot = plantSlot(await slotFor(base, key));
  const stalled = new RawClient(service.service.partner.port);
  const large = slotForm(openSlot, Buffer.concat([marked('uploaded audio', 8000)]));
  await stalled.send(
    Buffer.concat([
      request('POST', `/uploads/${openSlot.uploadId}`, {
        ...FORM_TYPE,
        'Content-Length': String(large.length),
      }),
      large.subarray(0, 3_000_000),
    ]),
  );
  await delay(150);
  const inFlight = await filesBelow(service.directory);
  stalled.socket.resetAndDestroy();

  // Verify and identify.
  const verify = (uploadId: string, more: object = {}) =>
    partner('POST', '/v1/verify', { body: { uploadId, ...more } });
  const embedded = canaries.plant('upload id', await upload(base, key, file));
  t.match((await verify(embedded)).json, { verdict: 'valid', proofId });
  const pair = canaries.plant('upload id', await upload(base, key, pairAudio));
  t.match((await verify(pair, { sidecar: sidecar.toString('base64') })).json, {
    verdict: 'valid',
    proofId: pairId,
  });
  await verify(slot.uploadId, { sidecar: sidecar.toString('base64') });
  await verify(slot.uploadId, { sidecar: canaries.plant('sidecar', randomBytes(300)).toString('base64') });
  await verify(slot.uploadId, { sidecar: canaries.text('sidecar') });
  await verify(openSlot.uploadId);
  await verify(canaries.text('id'));
  await verify(`${canaries.text('id')} @`);
  await partner('POST', '/v1/verify', {
    headers: { 'content-type': 'application/json' },
    body: Buffer.from(`{"uploadId": ${canaries.text('bad-json')}`),
  });
  await partner('POST', '/v1/verify', {
    headers: { 'content-type': canaries.text('media-type') },
    body: Buffer.from(strange),
  });
  await partner('POST', '/v1/recordings/identify', {
    body: { uploadId: canaries.plant('upload id', await upload(base, key, issuedAudio, 'identify')) },
  });
  await partner('POST', '/v1/recordings/identify', {
    body: { uploadId: slot.uploadId, [canaries.text('member')]: strange },
  });

  // Proofs, records, cursors, keys, usage, the rest.
  const id = canaries.text('id');
  for (const target of [
    '/v1/proofs?limit=1',
    `/v1/proofs?cursor=${canaries.text('cursor')}`,
    `/v1/proofs?${strange}=${strange}`,
    `/v1/proofs/${proofId}`,
    `/v1/proofs/${id}`,
    `/v1/proofs/${proofId}%20${id}`,
    `/v1/records/${pairId}`,
    `/v1/records/${id}`,
    `/v1/proofs/${proofId}/asset`,
    `/v1/proofs/${pairId}/asset?part=sidecar`,
    `/v1/proofs/${id}/asset?part=${strange}`,
    '/v1/partner/keys',
    `/v1/partner/keys?cursor=${strange}`,
    '/v1/partner/usage?days=1',
    `/v1/partner/usage?days=${strange}`,
    `/v1/download?product=${strange}&platform=macos`,
    `/v1/${strange}`,
    `/${strange}?x-api-key=${key}`,
    '/v1/health',
    '/v1/openapi.json',
  ])
    await partner('GET', target);
  await partner('TRACE', `/v1/proofs/${proofId}`);
  await partner('POST', '/v1/telemetry', {
    body: { events: [{ name: 'app_started', count: 3, at: 1_767_225_600 }] },
  });
  await partner('POST', '/v1/telemetry', {
    body: { events: [{ name: canaries.text('event'), count: 1, at: 1 }] },
  });
  for (const wrong of [
    canaries.text('wrong-key'),
    `${key.slice(0, -1)}${key.endsWith('0') ? '1' : '0'}`,
    key.replace('tmk_production', 'tmk_beta'),
  ])
    await partner('GET', '/v1/proofs', { key: wrong });

  // Reviews.
  const bindings = Object.fromEntries(
    ['creatorId', 'accountId', 'submissionId', 'trackId'].map((name) => [
      name,
      canaries.plant('binding', `b-${randomBytes(12).toString('hex')}`),
    ]),
  );
  const review = (await partner('POST', '/v1/partner/reviews', { body: { proofId, bindings } })).json as {
    reviewId: string;
  };
  const reviewPath = `/v1/partner/reviews/${canaries.plant('review id', review.reviewId)}`;
  await partner('POST', '/v1/partner/reviews', { body: { proofId, bindings } });
  await partner('POST', '/v1/partner/reviews', {
    body: { proofId, bindings: { ...bindings, creatorId: `${canaries.text('binding')}@example.com` } },
  });
  const { evidenceRequests } = (
    await partner('POST', `${reviewPath}/evidence-requests`, { body: { kind: 'source_evidence' } })
  ).json as { evidenceRequests: { requestId: string }[] };
  const requestPath = `${reviewPath}/evidence-requests/${canaries.plant('request id', evidenceRequests[0]!.requestId)}`;
  await operator(
    'POST',
    `/operator/v1/reviews/${review.reviewId}/evidence-requests/${evidenceRequests[0]!.requestId}/supply`,
  );
  await partner('POST', `${reviewPath}/resolve`, { body: { outcome: 'accepted' } });
  await partner('PATCH', requestPath, {
    body: { status: 'accepted', responseReference: `${canaries.text('reference')} ` },
  });
  const reference = canaries.text('reference');
  await partner('PATCH', requestPath, { body: { status: 'accepted', responseReference: reference } });
  await partner('PATCH', requestPath, { body: { status: 'declined', responseReference: reference } });
  await partner('POST', `${reviewPath}/resolve`, { body: { outcome: canaries.text('outcome') } });
  await partner('POST', `${reviewPath}/resolve`, { body: { outcome: 'accepted' } });

  // Rotation.
  const rotation = canaries.text('rotation-key');
  for (const name of [
    rotation,
    rotation,
    canaries.text('rotation-key'),
    'short',
    `${canaries.text('rotation-key')} x`,
  ]) {
    const answer = await partner('POST', '/v1/partner/keys/rotate', { headers: { 'idempotency-key': name } });
    if (answer.status === 201) plantKey(answer.json!['apiKey'] as string);
  }
  const revoked = await newKey({ name: 'to be revoked' });
  plantKey(revoked.apiKey);
  await operator('POST', `/operator/v1/partners/${partnerId}/keys/${revoked.keyId}/revoke`);
  await partner('GET', '/v1/proofs', { key: revoked.apiKey });

  // Bytes that are no request.
  const auth = `x-api-key: ${key}\r\n`;
  for (const [port, bytes] of [service.service.partner.port, service.service.operator.port].flatMap((port) =>
    [
      `${strange} /${proofId} ${key}\r\n\r\n`,
      `GET /v1/proofs/${proofId} HTTP/1.1\r\n${auth}\r\n`,
      `GET /v1/proofs/${proofId} HTTP/9.9\r\nHost: a\r\n${auth}\r\n`,
      `GET / HTTP/1.1\r\nHost: a\r\n${key}\r\n\r\n`,
      `POST /v1/verify HTTP/1.1\r\nHost: a\r\n${auth}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n${strange}`,
      `POST /v1/verify HTTP/1.1\r\nHost: a\r\n${auth}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${key}\r\n`,
      `GET /v1/proofs/${proofId} HTTP/1.1\r\nHost: a\r\nHost: ${strange}\r\n${auth}\r\n`,
      `GET /${proofId} HTTP/1.1\r\nHost: a\r\n${auth}Expect: ${strange}\r\n\r\n`,
      `GET /${'x'.repeat(20_000)}${key} HTTP/1.1\r\nHost: a\r\n\r\n`,
      `GET /%ff${key} HTTP/1.1\r\nHost: a\r\n\r\n`,
      `\x16\x03\x01${key}`,
    ].map((bytes) => [port, bytes] as const),
  )) {
    const client = new RawClient(port);
    await client.send(bytes);
    const answer = await client.read();
    if (answer !== undefined) seen.set(answer.status, (seen.get(answer.status) ?? 0) + 1);
    client.destroy();
  }

  // Faults: of the disk, of a store, and of our own code, quoting all they can reach.
  const everything = [
    token,
    key,
    title,
    proofId,
    reference,
    sidecar.toString('base64'),
    slot.fields['signature'],
  ].join(' ');
  const quoting = () =>
    Object.assign(
      new Error(
        `failed on ${everything}\n    at ${everything}\n    at ${key} (file:///tmp/${proofId}.js:1:1)`,
        {
          cause: Object.assign(new TypeError(everything), {
            code: 'ENOENT',
            path: `/data/${proofId}`,
            headers: { 'x-api-key': key },
          }),
        },
      ),
      { body: audio, key },
    );
  const mutable = operations.partner as {
    -readonly [Name in keyof typeof operations.partner]: (typeof operations.partner)[Name];
  };
  const { listProofs, readRecord, quota, readUsage, until } = mutable;
  Object.assign(mutable, {
    // The calls get these methods, and not those that are bound to their signal.
    until: () => mutable,
    listProofs: () => Promise.reject(quoting()),
    readRecord: () =>
      Promise.reject(
        new DomainError('unavailable', 'The store does not respond.', {
          reason: 'store_unavailable',
          retryAfterSeconds: 1,
          cause: quoting(),
        }),
      ),
    readUsage: () => {
      throw everything;
    },
  });
  t.match(await partner('GET', '/v1/proofs'), { status: 500 });
  t.match(await partner('GET', `/v1/records/${proofId}`), { status: 503 });
  t.match(await partner('GET', '/v1/partner/usage'), { status: 500 });
  Object.assign(mutable, { listProofs, readRecord, readUsage, quota: () => Promise.reject(quoting()) });
  await partner('GET', '/v1/proofs', { checked: false });
  Object.assign(mutable, { quota, until });
  const before = await filesBelow(service.directory);
  const asset = [...before.keys()].find((name) => name.endsWith(`${proofId}.asset`))!;
  await rm(join(service.directory, asset));
  await mkdir(join(service.directory, asset));
  t.match(
    await partner('GET', `/v1/proofs/${proofId}/asset`),
    { status: /^50[03]$/ },
    'a deliverable that cannot be read',
  );
  await rm(join(service.directory, asset), { recursive: true });

  await partner('DELETE', `/v1/proofs/${pairId}`);
  await partner('DELETE', `/v1/proofs/${pairId}`);
  await partner('DELETE', `/v1/proofs/${id}`);
  await verify(pair, { sidecar: sidecar.toString('base64') });
  const after = await filesBelow(service.directory);
  await delay(50);

  for (const status of [200, 201, 202, 400, 403, 404, 405, 409, 415, 422, 431, 500, 503])
    t.ok(seen.has(status), `some calls were answered with ${status}`);
  t.ok(service.log.length > 120, `${service.log.length} lines and ${canaries.size} canaries`);
  t.strictSame(canaries.find(service.log.join('')), [], 'none in the log');
  const metrics = (await call(operatorUrl, 'GET', '/metrics')).body.toString();
  t.match(metrics, /takemark_requests_total\{[^}]*route="\/v1\/proofs\/\{proofId\}"/);
  t.strictSame(canaries.find(metrics), [], 'none in the metrics');
  const lines = service.log
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter(({ event }) => event === 'request');
  const templates = new Set<unknown>([
    ...Object.values({ ...PARTNER_ROUTES, ...OPERATOR_ROUTES }).map(({ path }) => path),
    'unmatched',
    'malformed',
  ]);
  t.strictSame(
    lines.filter(({ route }) => !templates.has(route)),
    [],
    'a line names templates',
  );
  t.strictSame(
    [...new Set(lines.flatMap((line) => Object.keys(line)))].sort(),
    [
      'bytesIn',
      'bytesOut',
      'code',
      'durationMs',
      'event',
      'instance',
      'keyId',
      'level',
      'listener',
      'method',
      'msg',
      'partnerId',
      'reason',
      'requestId',
      'route',
      'service',
      'status',
      'time',
      'traceId',
      'version',
    ],
    'and holds nothing else',
  );
  t.match(
    service.log.filter((line) => line.includes('"fault"')).join(''),
    /at .*secrecy\.test/,
    'a fault still says where it was thrown',
  );

  // Everything on disk.
  const inFiles = (
    files: ReadonlyMap<string, Buffer>,
    names: readonly string[],
    where = (_path: string): boolean => true,
  ) =>
    [...files].flatMap(([path, content]) =>
      where(path) ? canaries.find(content, names).map((name) => `${name} in ${path}`) : [],
    );
  for (const [when, files] of [
    ['while one is in flight', inFlight],
    ['before the erasure', before],
    ['at the end', after],
  ] as const) {
    t.strictSame(
      inFiles(files, ['uploaded audio', 'malformed audio', 'other audio']),
      [],
      `${when}: no audio of uploads`,
    );
    t.strictSame(
      inFiles(files, [
        'API key',
        'form field',
        'operator-token',
        'wrong-token',
        'wrong-key',
        'rotation-key',
        'strange-field',
        'upload-name',
        'bad-json',
        'event',
      ]),
      [],
      `${when}: no secret of a caller`,
    );
    t.strictSame(
      inFiles(
        files,
        ['title', 'binding', 'reference', 'file-name', 'key-name', 'partner-name'],
        (path) => !path.startsWith('store'),
      ),
      [],
      `${when}: content is in rows alone, in no journal`,
    );
  }
  const rows = inFiles(before, ['binding', 'reference'], (path) => path.startsWith('store'));
  for (const name of ['binding', 'reference'])
    t.ok(
      rows.some((found) => found.startsWith(name)),
      `the search sees rows: the ${name} is in one`,
    );
  t.strictSame(
    inFiles(before, ['title', 'file-name', 'issued audio', 'trace', 'detector']),
    [],
    'the content of a proof is encrypted, its deliverable too',
  );
  const audit = (await operator('GET', `/operator/v1/partners/${partnerId}/audit?limit=100`)).body;
  t.match(audit.toString(), /"action":"proof_erased"/);
  t.strictSame(
    canaries.find(audit, [
      'title',
      'binding',
      'reference',
      'file-name',
      'key-name',
      'partner-name',
      'API key',
      'rotation-key',
      'idempotency-key',
      'sidecar',
      'issued audio',
      'form field',
      'operator-token',
    ]),
    [],
    'the audit log has ids and digests only',
  );
  key = '';
});

t.test('the output of a crash holds no secret', async (t) => {
  const secret = canaries.plant('crash', `crash-${randomBytes(16).toString('hex')}`);
  // Throws in the way of each signal, outside of every handler, as a defect would.
  const preload = `
    const secret = process.env.CANARY;
    const fault = () => Object.assign(new Error(secret + '\\n    at ' + secret, { cause: new TypeError(secret) }), { apiKey: secret, path: '/data/' + secret, body: Buffer.from(secret) });
    const kinds = { error: () => { throw fault(); }, rejection: () => { Promise.reject(fault()); }, text: () => { throw secret; }, 'text rejection': () => { Promise.reject({ secret }); } };
    process.on('SIGUSR2', kinds[process.env.KIND]);`;
  const run = async (environment: Record<string, string>, whenUp?: (directory: string) => Promise<void>) => {
    const directory = await mkdtemp(join(tmpdir(), 'takemark-crash-'));
    const child = spawn(
      process.execPath,
      ['--import', `data:text/javascript,${encodeURIComponent(preload)}`, MAIN],
      {
        env: {
          PATH: process.env['PATH'],
          CANARY: secret,
          TAKEMARK_DATA_DIR: directory,
          TAKEMARK_PORT: '0',
          TAKEMARK_OPERATOR_PORT: '0',
          TAKEMARK_HOST: '127.0.0.1',
          TAKEMARK_LOG_LEVEL: 'trace',
          ...environment,
        },
      },
    );
    const output = [collect(child.stdout), collect(child.stderr)];
    const exited = once(child, 'exit');
    try {
      while (whenUp !== undefined && child.exitCode === null) {
        if (await readFile(join(directory, 'endpoints.json')).catch(() => undefined)) {
          await whenUp(directory);
          child.kill('SIGUSR2');
          break;
        }
        await delay(20);
      }
      const [code] = (await Promise.race([exited, delay(120_000, ['late'], { ref: false })])) as [unknown];
      return { code, output: Buffer.concat(await Promise.all(output)).toString() };
    } finally {
      child.kill('SIGKILL');
      await rm(directory, { recursive: true, force: true });
    }
  };
  for (const kind of ['error', 'rejection', 'text', 'text rejection']) {
    const { code, output } = await run({ KIND: kind }, async (directory) => {
      if (kind !== 'error') return;
      const { partner, operator } = JSON.parse(await readFile(join(directory, 'endpoints.json'), 'utf8')) as {
        partner: number;
        operator: number;
      };
      const token = canaries.plant(
        'operator-token',
        (await readFile(join(directory, 'operator-token'), 'utf8')).trim(),
      );
      const post = (path: string, body: object) =>
        call(`http://127.0.0.1:${operator}/operator/v1`, 'POST', path, {
          headers: { authorization: `Bearer ${token}` },
          body,
          checked: false,
        });
      const { partnerId } = (await post('/partners', { name: canaries.text('partner-name') })).json as {
        partnerId: string;
      };
      const apiKey = plantKey(
        (await post(`/partners/${partnerId}/keys`, { name: 'crash' })).json!['apiKey'] as string,
      );
      const base = `http://127.0.0.1:${partner}`;
      const uploadId = canaries.plant('upload id', await upload(base, apiKey, marked('uploaded audio')));
      await call(base, 'POST', '/v1/verify', { key: apiKey, body: { uploadId } });
    });
    t.equal(code, 1, `${kind}: the process ends`);
    t.match(
      output,
      kind.startsWith('text') ? /"event":"crash"/ : /"event":"crash".*"name":"Error".*at process/,
      `${kind}: it says where`,
    );
    t.strictSame(canaries.find(output), [], `${kind}: and nothing of what it held`);
  }
  // Every setting at once: the message lists each, and starting a process takes a second.
  const { code, output } = await run({
    KIND: 'error',
    TAKEMARK_OPERATOR_TOKEN: `${secret} with spaces`,
    TAKEMARK_PORT: secret,
    TAKEMARK_DOWNLOADS: secret,
    TAKEMARK_ENVIRONMENT: secret,
  });
  t.equal(code, 1);
  for (const name of ['OPERATOR_TOKEN', 'PORT', 'DOWNLOADS', 'ENVIRONMENT'])
    t.match(output, new RegExp(`^TAKEMARK_${name}: `, 'm'), `a ${name} that cannot be used is named`);
  t.strictSame(canaries.find(output), [], 'but not shown');
});
