import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { open, readdir, readFile, readlink, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Worker } from 'node:worker_threads';
import tap, { test } from 'tap';
import { MemorySink } from '../../src/cli/specimens/memory-sink.js';
import { seededDeviceKey, simulateTrace } from '../../src/cli/specimens/simulate-trace.js';
import type { AdverseScenario } from '../../src/cli/specimens/simulated-session.js';
import type { DeviceKey } from '../../src/witness/capture/index.js';
import type { EvidenceReport } from '../../src/witness/domain/evidence-report.js';
import { type Channel, type ChannelSupport, TRACE_LIMITS } from '../../src/witness/domain/trace.js';
import { writeClips, writeTrace } from '../capture/write-trace.js';
import { body as eventBody, forged, lazily } from '../evidence/forge-trace.js';
import { withPlainReport } from '../fixtures/plain-report.js';
import { readReports, sharedDetail } from '../fixtures/report-reads.js';
import { collect, TestService } from '../fixtures/service.js';
import { keyNamesBelow, namesBelow, shardedPath } from '../fixtures/sharded-path.js';
import { wav } from '../fixtures/wav.js';
import { call, closeWire, upload } from '../fixtures/wire.js';

tap.teardown(closeWire);
const KEY = seededDeviceKey(7);
const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

async function traceOf(
  audio: Uint8Array,
  options: {
    readonly minutes?: number;
    readonly adverse?: readonly AdverseScenario[];
    readonly key?: DeviceKey;
    readonly channels?: Partial<Record<Channel, ChannelSupport>>;
  } = {},
): Promise<Buffer> {
  const to = new MemorySink();
  const { minutes = 40, adverse = [], key = KEY, channels = {} } = options;
  await simulateTrace({ minutes, seed: 3, adverse, exportSha256: sha256(audio), to, key, channels });
  return to.bytes();
}

interface Form {
  readonly audio: Uint8Array;
  readonly trace?: Uint8Array;
  readonly summary?: object | string;
  readonly detections?: object;
}

interface IssueResponse {
  readonly status: number;
  readonly body: { readonly proofId: string; readonly reason?: string; readonly error?: string };
}

/** Issues over HTTP in one call. */
async function issue(
  service: TestService,
  partnerId: string,
  { audio, trace, summary, detections }: Form,
  {
    carrier = 'embedded',
    idempotencyKey,
  }: { carrier?: 'embedded' | 'sidecar'; idempotencyKey?: string } = {},
): Promise<IssueResponse> {
  const form = new FormData();
  const json = (value: object | string): string =>
    typeof value === 'string' ? value : JSON.stringify(value);
  if (summary !== undefined) form.set('summary', json(summary));
  if (detections !== undefined) form.set('detections', json(detections));
  if (trace !== undefined) form.set('trace', new Blob([Uint8Array.from(trace)]), 'take.trace');
  form.set('file', new Blob([Uint8Array.from(audio)]), 'take.wav');
  const query = new URLSearchParams({ partnerId, song: 'Take one', fileName: 'take.wav', carrier });
  const response = await fetch(`${service.operatorUrl}/operator/v1/proofs?${query}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${service.service.operatorToken}`,
      ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
    },
    body: form,
  });
  return { status: response.status, body: (await response.json()) as IssueResponse['body'] };
}

function codesOf(report: EvidenceReport | undefined): readonly string[] {
  if (report === undefined) return [];
  return [...report.facts, ...report.conflicts, ...report.unverifiable].map(({ code }) => code);
}

/** Returns the names of the files below a service's assets or keys, with unfinished ones. */
function filesOf(directory: string, below: 'assets' | 'content-keys' = 'assets'): readonly string[] {
  return below === 'assets' ? namesBelow(join(directory, below)) : keyNamesBelow(join(directory, below));
}

test('a proof is issued with its trace, and every reader gets the same report', async (t) => {
  const service = await TestService.start({ TAKEMARK_ENVIRONMENT: 'beta' });
  t.teardown(() => service.stop());
  const { operator } = service.service.operations;
  await operator.enrolDevice({ deviceId: KEY.deviceId });
  for (const carrier of ['embedded', 'sidecar'] as const) {
    const { partnerId, apiKey, caller } = await service.partner();
    const audio = wav(96_000);
    const trace = await traceOf(audio);
    const { status, body } = await issue(service, partnerId, { audio, trace }, { carrier });
    t.equal(status, 201, JSON.stringify(body));
    const { proofId } = body;

    const get = async (path: string): Promise<Record<string, unknown>> => {
      const response = await fetch(`${service.partnerUrl}/v1/${path}`, { headers: { 'x-api-key': apiKey } });
      t.equal(response.status, 200, path);
      return (await response.json()) as Record<string, unknown>;
    };
    const proof = await get(`proofs/${proofId}`);
    const report = proof['evidenceReport'] as EvidenceReport;
    const evidence = report.session?.evidence;
    t.equal(evidence?.traceSha256, sha256(trace));
    t.equal(evidence?.device.standing, 'enrolled');
    t.equal(evidence?.export?.issuedAudio, 'matches');
    t.equal(evidence?.simulated, true);
    t.ok(codesOf(report).includes('trace_simulated'));
    t.notOk(codesOf(report).includes('session_evidence_used_before'));
    t.ok(codesOf(report).includes('session_before_enrolment'));
    t.equal(evidence?.counters.takesRecorded.status, 'observed');
    t.ok(
      report.facts.some(
        ({ code, status: said }) => code === 'creator_declaration' && said === 'none_recorded',
      ),
    );
    t.ok(proof['processNote']);
    t.strictSame((await get(`records/${proofId}`))['evidenceReport'], report);
    const listed = (await get('proofs?include=evidenceReport'))['proofs'] as readonly Record<
      string,
      unknown
    >[];
    t.strictSame(listed[0]?.['evidenceReport'], report);
    t.ok(JSON.stringify(listed[0]?.['evidenceSummary']).includes('trace_simulated'));

    const read = async (part: 'audio' | 'sidecar'): Promise<Buffer> => {
      const chunks: Uint8Array[] = [];
      for await (const chunk of await (await operator.readAsset(proofId, part)).read())
        chunks.push(chunk as Buffer);
      return Buffer.concat(chunks);
    };
    const sidecar = carrier === 'sidecar' ? await read('sidecar') : undefined;
    const verified = await service.verify(caller, await read('audio'), sidecar);
    t.equal(verified.verdict, 'valid');
    t.strictSame(JSON.parse(JSON.stringify(verified.evidenceReport)), report);
    t.equal(
      verified.decision.status,
      'verified_binding',
      'the report says that it is simulated, and needs no review',
    );

    const files = filesOf(service.directory);
    t.ok(files.includes(`${proofId}.trace`), 'the trace is kept');
    await operator.recordDeclaration(proofId, {
      surveyVersion: '2026-01',
      submissionId: 'sub_1',
      subject: 'creator_1',
      submittedAt: 1_767_229_200,
      answers: { declaredOrigin: 'from_scratch' },
    });
    const declared = (await get(`proofs/${proofId}`))['evidenceReport'] as EvidenceReport;
    t.ok(
      codesOf(declared).includes('observed_import_vs_creator_origin_declaration'),
      'the session has imports',
    );
    t.strictSame(declared.session, report.session, 'what was settled stays');

    const erased = await fetch(`${service.partnerUrl}/v1/proofs/${proofId}`, {
      method: 'DELETE',
      headers: { 'x-api-key': apiKey },
    });
    t.equal(erased.status, 200);
    t.strictSame(
      filesOf(service.directory).filter((name) => name.startsWith(proofId)),
      [],
      'erasing takes trace and bodies along',
    );
    const again = await fetch(`${service.partnerUrl}/v1/records/${proofId}`, {
      headers: { 'x-api-key': apiKey },
    });
    t.equal(again.status, 404);
  }
});

test('source detail is in all four reads or in none, and never in a carrier', async (t) => {
  const service = await TestService.start({ TAKEMARK_ENVIRONMENT: 'beta' });
  t.teardown(() => service.stop());
  const { operator } = service.service.operations;
  await operator.enrolDevice({ deviceId: KEY.deviceId });
  const administer = async (method: string, path: string, body?: object): Promise<void> => {
    const headers = { authorization: `Bearer ${service.service.operatorToken}` };
    const target = `/operator/v1/${path}`;
    const { status } = await call(service.operatorUrl, method, target, {
      headers,
      checked: false,
      ...(body === undefined ? {} : { body }),
    });
    t.equal(status, 200, `${method} ${path}`);
  };
  for (const [carrier, form, coverage] of [
    ['embedded', {}, 'full'],
    ['sidecar', { channels: { mixer: 'unsupported' } }, 'partial'],
    ['embedded', { adverse: ['unwatched'] }, 'partial'],
  ] as const) {
    const { partnerId, apiKey } = await service.partner();
    const audio = wav(96_000);
    const trace = await traceOf(audio, { minutes: 20, ...form });
    const { body } = await issue(service, partnerId, { audio, trace }, { carrier });
    const { proofId } = body;
    const part = async (name: 'audio' | 'sidecar'): Promise<Buffer> =>
      collect(await (await operator.readAsset(proofId, name)).read());
    const file = await part('audio');
    const credential = carrier === 'sidecar' ? await part('sidecar') : file;
    const subject = { apiKey, proofId, uploadId: await upload(service.partnerUrl, apiKey, file) };
    const reads = () =>
      readReports(
        service.partnerUrl,
        carrier === 'sidecar' ? { ...subject, sidecar: credential.toString('base64') } : subject,
      );
    const nowhere = async (why: string): Promise<void> => {
      const before = await reads();
      t.equal(sharedDetail(before), undefined, why);
      t.equal(before.coverage, 'none', why);
    };

    const approval = `partners/${partnerId}/source-detail`;
    const consent = `proofs/${proofId}/source-detail-consent`;
    await nowhere('neither approval nor consent');
    await administer('PUT', approval, { consentVersion: '2026-02' });
    await nowhere('approved without consent');
    await administer('PUT', consent, { consentVersion: '2026-01', grantedAt: 1_767_229_200 });
    await nowhere('consent to another version');
    await administer('PUT', consent, { consentVersion: '2026-02', grantedAt: 1_767_229_200 });
    const delivered = await reads();
    const ids = sharedDetail(delivered) ?? [];
    t.ok(ids.includes('trk1') && ids.includes('plc1'), 'tracks and placements are delivered');
    t.match(delivered.record.sourceDetail, { version: 2, consentVersion: '2026-02' });
    t.equal(delivered.coverage, coverage);
    const digest = sha256(trace);
    t.ok(
      [digest, Buffer.from(digest, 'hex')].some((spelling) => credential.includes(spelling)),
      'the carrier names the trace',
    );
    t.strictSame(
      ids.filter((id) => file.includes(id) || credential.includes(id)),
      [],
      'and nothing that consent is needed for',
    );
    await administer('DELETE', consent);
    await nowhere('consent is taken back');
    await administer('PUT', consent, { consentVersion: '2026-02', grantedAt: 1_767_229_201 });
    t.strictSame(sharedDetail(await reads()), ids, 'given again');
    await administer('DELETE', approval);
    await nowhere('the approval is taken back');
  }
});

test('what a trace does not prove is said, and nothing of it changes the verdict', async (t) => {
  const service = await TestService.start({ TAKEMARK_ENVIRONMENT: 'beta' });
  t.teardown(() => service.stop());
  const { operator } = service.service.operations;
  const { partnerId, caller } = await service.partner();
  const audio = wav(96_000);
  const reportOf = async (form: Form): Promise<EvidenceReport | undefined> => {
    const { status, body } = await issue(service, partnerId, form);
    t.equal(status, 201, JSON.stringify(body));
    const chunks: Uint8Array[] = [];
    for await (const chunk of await (await operator.readAsset(body.proofId, 'audio')).read())
      chunks.push(chunk as Buffer);
    const { verdict, evidenceReport } = await service.verify(caller, Buffer.concat(chunks));
    t.equal(verdict, 'valid');
    return evidenceReport;
  };

  const trace = await traceOf(audio);
  t.ok(codesOf(await reportOf({ audio, trace })).includes('trace_device_unknown'));
  t.ok(
    codesOf(await reportOf({ audio, trace })).includes('session_evidence_used_before'),
    'the same trace again',
  );
  const revoked = seededDeviceKey(8);
  await operator.enrolDevice({ deviceId: revoked.deviceId });
  await operator.revokeDevice({ deviceId: revoked.deviceId });
  t.ok(
    codesOf(await reportOf({ audio, trace: await traceOf(audio, { key: revoked }) })).includes(
      'trace_device_revoked',
    ),
  );
  t.ok(
    codesOf(await reportOf({ audio, trace: await traceOf(wav(48_000)) })).includes('trace_export_differs'),
  );
  const leaving = seededDeviceKey(9);
  await operator.enrolDevice({ deviceId: leaving.deviceId });
  const leavingTrace = await traceOf(audio, { key: leaving });
  const { proofId } = await operator.issueProof({
    partnerId,
    songTitle: 'Take one',
    fileName: 'take.wav',
    carrier: 'embedded',
    audio: (async function* () {
      yield audio.subarray(0, 1000);
      await operator.revokeDevice({ deviceId: leaving.deviceId });
      yield audio.subarray(1000);
    })(),
    evidence: {
      trace: (async function* () {
        yield leavingTrace;
      })(),
    },
  });
  t.ok(
    codesOf(
      withPlainReport(await service.service.operations.partner.readProof(caller, { proofId })).evidenceReport,
    ).includes('trace_device_revoked'),
    'a device that was revoked while the audio came in',
  );
  for (const [scenario, code] of [
    ['truncated', 'trace_truncated'],
    ['broken_chain', 'trace_chain_broken'],
    ['unsigned_tail', 'trace_unsigned_tail'],
  ] as const)
    t.ok(
      codesOf(await reportOf({ audio, trace: await traceOf(audio, { adverse: [scenario] }) })).includes(code),
      code,
    );

  const forgedTrace = Buffer.from(trace);
  forgedTrace[forgedTrace.length - 1]! ^= 1;
  t.ok(codesOf(await reportOf({ audio, trace: forgedTrace })).includes('trace_signature_invalid'));

  const summarised = await reportOf({ audio, trace, summary: { counters: { takesRecorded: 99_999 } } });
  const reconciled = summarised?.facts.find(({ code }) => code === 'session_summary_reconciled');
  t.match(reconciled, { status: 'needs_review' });
  t.ok(Object.values(reconciled?.values ?? {}).includes(99_999), 'both values are shown');

  const imports = (await reportOf({ audio, trace }))?.importedSources ?? [];
  const digest = imports.find(({ samplesSha256 }) => samplesSha256 !== undefined)?.samplesSha256;
  const detected = await reportOf({
    audio,
    trace,
    detections: {
      detections: [
        { sha256: digest, detector: 'ear', detectorVersion: '1', likelihood: 0.75, generator: 'gen-1' },
      ],
    },
  });
  t.ok(codesOf(detected).includes('imported_audio_ai_likelihood'));
  t.ok(codesOf(detected).includes('AiLikelySource'));
});

test('a proof has what its issuer declared about the song, marked as declared', async (t) => {
  const service = await TestService.start();
  t.teardown(() => service.stop());
  const { partner } = service.service.operations;
  const { partnerId, caller } = await service.partner();
  const declared = { artist: 'Ada', release: 'Early Trains', isrc: 'DEA122600001' };
  const audio = wav(4800);
  const idempotencyKey = 'a-key-of-issuing';
  const { proofId, asset } = await service.issue(partnerId, audio, {
    declaredSong: declared,
    idempotencyKey,
  });
  const delivery = { carrier: 'embedded', ...asset };
  for (const read of [
    await partner.readProof(caller, { proofId }),
    await partner.readRecord(caller, { proofId }),
  ]) {
    t.strictSame(read.song, { title: 'Take one', declared });
    t.strictSame([read.issuer, read.delivery], ['Takemark', delivery]);
  }
  const { proofs } = await partner.listProofs(caller, {});
  t.strictSame(
    proofs.map(({ song }) => song),
    [{ title: 'Take one' }],
  );
  const repeat = { idempotencyKey, declaredSong: { ...declared, artist: 'Bo' } };
  await t.rejects(service.issue(partnerId, audio, repeat), { code: 'conflict' });
  t.equal((await service.issue(partnerId, audio, { ...repeat, declaredSong: declared })).proofId, proofId);
  const plain = await service.issue(partnerId, audio);
  t.strictSame((await partner.readProof(caller, { proofId: plain.proofId })).song, { title: 'Take one' });
});

/** Issues a proof whose detail is too large for the registry, and is delivered to its partner. */
async function issueWithDetail(service: TestService) {
  const { operator } = service.service.operations;
  const { partnerId, apiKey } = await service.partner();
  const audio = wav(96_000);
  const { bytes: trace } = await writeClips(1000);
  const { proofId } = (await issue(service, partnerId, { audio, trace })).body;
  await operator.approveSourceDetail({ partnerId, consentVersion: '2026-01' });
  await operator.grantConsent({ proofId, consentVersion: '2026-01', grantedAt: 1_767_229_200 });
  const file = await collect(await (await operator.readAsset(proofId, 'audio')).read());
  const uploadId = await upload(service.partnerUrl, apiKey, file);
  return {
    apiKey,
    proofId,
    uploadId,
    body: shardedPath(join(service.directory, 'assets'), `${proofId}.detail`),
  };
}

test('evidence that was altered in the object store fails no read', async (t) => {
  const service = await TestService.start();
  t.teardown(() => service.stop());
  const subject = await issueWithDetail(service);
  const stored = await readFile(subject.body);
  t.equal(sharedDetail(await readReports(service.partnerUrl, subject))?.length, 1001);
  const flipped = Buffer.from(stored);
  flipped[100]! ^= 1;
  for (const bytes of [flipped, stored.subarray(0, -1), Buffer.alloc(0), undefined]) {
    await rm(subject.body, { force: true });
    if (bytes !== undefined) await writeFile(subject.body, bytes);
    const reports = await readReports(service.partnerUrl, subject);
    t.equal(sharedDetail(reports), undefined);
    t.match(reports.verify.unverifiable.at(-1), { code: 'evidence_facts_altered', status: 'needs_review' });
    t.strictSame(reports.list, reports.verify);
    t.equal(reports.coverage, 'none');
  }
});

test('a read that an erasure overtakes answers as of an erased proof', async (t) => {
  const service = await TestService.start();
  t.teardown(() => service.stop());
  const read = async (method: string, target: string, key: string, body?: object) => {
    const options = body === undefined ? { key } : { key, body };
    const { status, json } = await call(service.partnerUrl, method, target, options);
    const { verdict, proofs } = { ...json } as { verdict?: string; proofs?: readonly unknown[] };
    return { status, ...(verdict && { verdict }), ...(proofs && { proofs }) };
  };
  for (const [name, answer, ask] of [
    [
      'verify',
      { status: 200, verdict: 'unregistered' },
      ({ apiKey, uploadId }) => read('POST', '/v1/verify', apiKey, { uploadId }),
    ],
    ['proof', { status: 404 }, ({ apiKey, proofId }) => read('GET', `/v1/proofs/${proofId}`, apiKey)],
    [
      'list',
      { status: 200, proofs: [] },
      ({ apiKey }) => read('GET', '/v1/proofs?include=evidenceReport', apiKey),
    ],
    ['record', { status: 404 }, ({ apiKey, proofId }) => read('GET', `/v1/records/${proofId}`, apiKey)],
  ] as const satisfies readonly (readonly [
    string,
    object,
    (subject: { readonly apiKey: string; readonly proofId: string; readonly uploadId: string }) => unknown,
  ])[]) {
    const subject = await issueWithDetail(service);
    // A body that arrives when the test writes it, because the reader of a pipe waits for its end.
    await rm(subject.body);
    execFileSync('mkfifo', [subject.body]);
    const pipe = await open(subject.body, constants.O_RDWR);
    const reading = ask(subject);
    while ((await openedTimes(subject.body)) < 2) await delay(5);
    const { partner } = service.service.operations;
    const caller = await partner.authenticate(subject.apiKey);
    t.equal((await partner.eraseProof(caller, subject)).outcome, 'erased');
    await pipe.close();
    t.strictSame(await reading, answer, name);
  }
});

/** Returns the file descriptors of this process that are open on a path. */
async function openedTimes(path: string): Promise<number> {
  const descriptors = await readdir('/proc/self/fd');
  const targets = await Promise.all(
    descriptors.map((name) => readlink(`/proc/self/fd/${name}`).catch(() => '')),
  );
  return targets.filter((target) => target === path).length;
}

test('a hostile trace, summary or form is refused before anything is registered', async (t) => {
  const service = await TestService.start({ TAKEMARK_ENVIRONMENT: 'beta' });
  t.teardown(() => service.stop());
  const { partnerId } = await service.partner();
  const audio = wav(96_000);
  const trace = await traceOf(audio, { minutes: 3 });
  const versioned = Buffer.from(trace);
  const crowded = await collect(
    lazily(TRACE_LIMITS.live.clips + 1, (index) => eventBody([40, 1, null, index, 1, null, 0, 0, 1]), [
      [30, 0, null, 1, 0],
    ])(),
  );
  const refusals: readonly (readonly [string, Form, number, string | undefined])[] = [
    ['no trace at all', { audio, trace: Buffer.from('hello') }, 422, 'trace_malformed'],
    ['an empty one', { audio, trace: Buffer.alloc(0) }, 422, 'trace_malformed'],
    [
      'a head that promises gigabytes',
      { audio, trace: Buffer.from('dd7fffffff', 'hex') },
      422,
      'trace_malformed',
    ],
    ['a tempo of 0', { audio, trace: forged([21, 0, null, 0, 0, null]) }, 422, 'trace_malformed'],
    [
      'a time beyond 2^53',
      { audio, trace: forged([2, Number.MAX_SAFE_INTEGER + 1, null]) },
      422,
      'trace_malformed',
    ],
    ['more placements than may live', { audio, trace: crowded }, 422, 'trace_malformed'],
    ['a summary without a trace', { audio, summary: {} }, 400, 'trace_missing'],
    ['a summary that is not JSON', { audio, trace: versioned, summary: '{' }, 400, 'malformed_json'],
    ['a summary with a stranger', { audio, trace, summary: { name: 'x' } }, 400, 'invalid_member'],
    ['detections of another form', { audio, trace, detections: { detections: [{}] } }, 400, 'invalid_member'],
  ];
  for (const [name, form, status, reason] of refusals) {
    const refused = await issue(service, partnerId, form);
    t.strictSame([refused.status, refused.body.reason], [status, reason], name);
  }
  const production = await TestService.start({ TAKEMARK_ENVIRONMENT: 'production' });
  t.teardown(() => production.stop());
  const partner = await production.partner();
  const simulated = await issue(production, partner.partnerId, { audio, trace });
  t.strictSame([simulated.status, simulated.body.reason], [422, 'trace_simulated']);
  for (const each of [service, production]) {
    t.strictSame(filesOf(each.directory), [], 'nothing is left in the object store');
    t.strictSame(await each.service.operations.partner.listProofs((await each.partner()).caller, {}), {
      proofs: [],
    });
  }
  await service.stop({ keep: true });
  const again = await TestService.start({
    TAKEMARK_ENVIRONMENT: 'beta',
    TAKEMARK_DATA_DIR: service.directory,
  });
  t.teardown(() => again.stop());
  // After a start, a background job collects the reservations without a proof.
  while (filesOf(again.directory, 'content-keys').length > 0) await delay(20);
  t.strictSame((await again.service.operations.operator.listPartners()).length, 2);
});

test('a form is whole, in order, or refused', async (t) => {
  const service = await TestService.start({ TAKEMARK_ENVIRONMENT: 'beta' });
  t.teardown(() => service.stop());
  const { partnerId } = await service.partner();
  const audio = wav(9600);
  const post = async (form: FormData): Promise<readonly [number, string | undefined]> => {
    const query = new URLSearchParams({ partnerId, song: 'x', fileName: 'x.wav', carrier: 'embedded' });
    const response = await fetch(`${service.operatorUrl}/operator/v1/proofs?${query}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${service.service.operatorToken}` },
      body: form,
    });
    return [response.status, ((await response.json()) as { reason?: string }).reason];
  };
  const form = (...parts: readonly (readonly [string, string | Uint8Array])[]): FormData => {
    const made = new FormData();
    for (const [name, value] of parts)
      if (typeof value === 'string') made.append(name, value);
      else made.append(name, new Blob([Uint8Array.from(value)]), 'x');
    return made;
  };
  const trace = await traceOf(audio, { minutes: 3 });
  t.strictSame(await post(form(['file', audio])), [201, undefined], 'audio alone');
  t.strictSame(await post(form(['file', audio], ['trace', trace])), [400, 'form_field_unknown']);
  t.strictSame(await post(form(['trace', trace])), [400, 'file_missing']);
  t.strictSame(await post(form(['summary', '{}'])), [400, 'file_missing']);
  t.strictSame(await post(form(['trace', trace], ['file', audio], ['file', audio])), [400, 'form_malformed']);
  t.strictSame(await post(form(['name', 'x'], ['file', audio])), [400, 'form_field_unknown']);
  t.strictSame(await post(form(['summary', '{}'], ['summary', '{}'], ['file', audio])), [
    400,
    'form_field_duplicated',
  ]);
  t.strictSame(await post(form(['summary', 'x'.repeat(300_000)], ['file', audio])), [
    400,
    'form_field_too_large',
  ]);
  t.strictSame(await post(form(['trace', 'text'], ['file', audio])), [400, 'file_name_missing']);
  t.strictSame(await post(form(['file', audio], ['summary', '{}'])), [400, 'field_after_file']);
  t.strictSame(await post(form(['trace', trace], ['summary', '{}'], ['file', audio])), [
    400,
    'field_after_file',
  ]);
});

test('an Idempotency-Key binds the trace and what belongs to it', async (t) => {
  const service = await TestService.start({ TAKEMARK_ENVIRONMENT: 'beta' });
  t.teardown(() => service.stop());
  const { partnerId } = await service.partner();
  const audio = wav(96_000);
  const [trace, other] = [await traceOf(audio), await traceOf(audio, { minutes: 5 })];
  const idempotencyKey = 'a-key-of-sixteen-characters';
  const first = await issue(service, partnerId, { audio, trace }, { idempotencyKey });
  const again = await issue(service, partnerId, { audio, trace }, { idempotencyKey });
  t.strictSame([again.status, again.body.proofId], [201, first.body.proofId]);
  for (const form of [{ audio }, { audio, trace: other }, { audio, trace, summary: {} }]) {
    const { status, body } = await issue(service, partnerId, form, { idempotencyKey });
    t.strictSame([status, body.reason], [409, 'idempotency_key_reused']);
  }
  t.equal(filesOf(service.directory).length, 2, 'one asset, one trace');
});

test('what a real trace proves is in the credential itself', async (t) => {
  const service = await TestService.start();
  t.teardown(() => service.stop());
  const { operator } = service.service.operations;
  const { partnerId, caller } = await service.partner();
  const audio = wav(96_000);
  const imported = 'ab'.repeat(32);
  const { bytes: trace, key } = await writeTrace(async (writer) => {
    const second = 1_000_000;
    writer.append({ kind: 'session.opened', at: 0, sampleRate: 48_000 });
    writer.append({ kind: 'track.added', at: 1, track: 1, type: 'audio' });
    writer.append({ kind: 'recording.started', at: second, take: 1, track: 1, input: 'hardware' });
    for (let step = 1; step <= 5; step += 1)
      writer.append({ kind: 'recording.grew', at: second * (1 + step), take: 1, frames: 48_000 * step });
    writer.append({
      kind: 'recording.finished',
      at: second * 6,
      take: 1,
      source: 1,
      frames: 240_000,
      rate: 48_000,
    });
    const clip = { kind: 'clip.created', base: 'seconds', track: 1 } as const;
    writer.append({ ...clip, at: second * 7, clip: 1, source: 1, start: 0, length: 5 });
    writer.append({
      kind: 'import.added',
      at: second * 8,
      source: 2,
      manner: 'copied',
      originalSha256: imported,
      frames: 48_000,
      rate: 48_000,
    });
    writer.append({ ...clip, at: second * 9, clip: 2, source: 2, start: 5, length: 1 });
    writer.append({ kind: 'sourceMap.completed', at: second * 10, sources: 2, clips: 2 });
    writer.append({
      kind: 'export.finished',
      at: second * 11,
      fileSha256: sha256(audio),
      rerender: 'matched',
    });
    await writer.seal();
  });
  await operator.enrolDevice({ deviceId: key.deviceId });
  const { status, body } = await issue(service, partnerId, { audio, trace });
  t.equal(status, 201, JSON.stringify(body));
  const chunks: Uint8Array[] = [];
  for await (const chunk of await (await operator.readAsset(body.proofId, 'audio')).read())
    chunks.push(chunk as Buffer);
  const file = Buffer.concat(chunks);
  for (const text of [sha256(trace), `nih:sha-256;${imported}`, 'c2pa.placed', 'c2pa.ingredient.v3'])
    t.ok(file.includes(text), text);
  const { verdict, evidenceReport, decision } = await service.verify(caller, file);
  t.equal(verdict, 'valid');
  t.equal(decision.status, 'verified_binding', codesOf(evidenceReport).join());
  t.match(evidenceReport?.session?.evidence.counters, {
    takesRecorded: { status: 'observed', value: 1 },
    takesRecordedInRealTime: { status: 'observed', value: 1 },
    importsAdded: { status: 'observed', value: 1 },
    midiNotesEntered: { status: 'not_observed', value: 0 },
  });
  t.match(evidenceReport?.importedSources, [{ originalSha256: imported, placements: { count: 1 } }]);
  t.equal(evidenceReport?.session?.evidence.simulated, false);
  t.not(file.includes('digitalCapture'), true, 'there is an import beside the take');
});

test('a caller who hangs up while a trace is replayed frees its place and leaves no file', async (t) => {
  const service = await TestService.start({ TAKEMARK_ENVIRONMENT: 'beta' });
  t.teardown(() => service.stop());
  const { partnerId } = await service.partner();
  // Clips that appear and disappear: seconds of replaying. The caller waits only for the first chunk.
  const long = await collect(
    lazily(
      1_900_000,
      (index) => {
        const clip = 1 + (index >> 1);
        return eventBody(index % 2 === 0 ? [40, 1, null, clip, 1, null, 0, 0, 1] : [45, 1, null, clip]);
      },
      [[30, 0, null, 1, 0]],
    )(),
  );
  const query = new URLSearchParams({ partnerId, song: 'x', fileName: 'x.wav', carrier: 'embedded' });
  const heads = [
    `POST /operator/v1/proofs?${query} HTTP/1.1`,
    'Host: localhost',
    `Authorization: Bearer ${service.service.operatorToken}`,
    'Content-Type: multipart/form-data; boundary=B',
    `Content-Length: ${long.length + 10_000}`,
  ];
  const partHead = '--B\r\nContent-Disposition: form-data; name="trace"; filename="x"\r\n\r\n';
  const replayed: string[] = [];
  const ends: Promise<void>[] = [];
  for (let caller = 0; caller < 2; caller += 1) {
    const socket = connect(service.service.operator.port, '127.0.0.1').on('error', () => undefined);
    const started = new Promise<void>((resolve) => {
      process.once('worker', (worker: Worker) => {
        ends.push(new Promise((ended) => worker.once('exit', () => ended())));
        worker.on('message', ({ kind }: { readonly kind: string }) => {
          if (kind === 'read') resolve();
          else replayed.push(kind);
        });
      });
    });
    socket.write(`${heads.join('\r\n')}\r\n\r\n${partHead}`);
    socket.write(long);
    // The boundary completes the trace, and no part follows.
    socket.write('\r\n--B\r\n');
    await started;
    socket.destroy();
    await ends[caller];
  }
  t.strictSame(replayed, [], 'both replays ended before they came to a result');
  while (filesOf(service.directory).length > 0) await delay(20);
  const audio = wav(9600);
  const { status } = await issue(service, partnerId, { audio, trace: await traceOf(audio, { minutes: 3 }) });
  t.equal(status, 201, 'the next trace finds a thread');
});
