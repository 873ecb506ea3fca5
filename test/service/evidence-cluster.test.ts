import { spawn } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import tap, { type Test, test } from 'tap';
import { MemorySink } from '../../src/cli/specimens/memory-sink.js';
import { seededDeviceKey, simulateTrace } from '../../src/cli/specimens/simulate-trace.js';
import { openAssetBucket } from '../../src/service/adapters/assets/s3.js';
import { EVIDENCE_PARTS } from '../../src/witness/domain/evidence.js';
import { ADDRESSES, connection, dropKeyspace } from '../adapters/cassandra-under-test.js';
import { withPlainReport } from '../fixtures/plain-report.js';
import { readReports, sharedDetail } from '../fixtures/report-reads.js';
import { collect, TestService } from '../fixtures/service.js';
import { wav } from '../fixtures/wav.js';
import { closeWire, upload } from '../fixtures/wire.js';
import { takemark } from '../lab/cluster/members.js';
import { serverSettings } from './server-settings.js';

const MAIN = new URL('../../src/service/main.js', import.meta.url).pathname;
tap.teardown(closeWire);

const { TAKEMARK_KAFKA, TAKEMARK_S3_ENDPOINT, TAKEMARK_S3_REGION, TAKEMARK_S3_BUCKET } = process.env;
const { TAKEMARK_S3_ACCESS_KEY = '', TAKEMARK_S3_SECRET_KEY = '' } = process.env;
const servers =
  (ADDRESSES ?? '') !== '' && (TAKEMARK_KAFKA ?? '') !== '' && (TAKEMARK_S3_BUCKET ?? '') !== ''
    ? {}
    : { skip: 'needs TAKEMARK_CASSANDRA, TAKEMARK_KAFKA and TAKEMARK_S3_BUCKET' };

test('on Cassandra and a bucket evidence is issued, read and erased whole', servers, async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'takemark-evidence-'));
  t.teardown(() => rm(directory, { recursive: true, force: true }));
  // A keyspace of its own: its content keys are not those of another cluster.
  const keyspace = `${connection.keyspace}_evidence`;
  const settings = serverSettings({ name: 'evidence', keyspace, directory });
  const prefix = settings.TAKEMARK_S3_PREFIX;
  await takemark(settings, 'operator', 'secrets', 'init', '--out', settings['TAKEMARK_SECRETS_FILE'] ?? '');
  await takemark(settings, 'operator', 'migrate');
  t.teardown(() => dropKeyspace(keyspace));
  const service = await TestService.start(settings);
  t.teardown(() => service.stop());
  const bucket = await openAssetBucket({
    ...(TAKEMARK_S3_ENDPOINT === undefined ? {} : { endpoint: TAKEMARK_S3_ENDPOINT }),
    region: TAKEMARK_S3_REGION ?? 'us-east-1',
    bucket: TAKEMARK_S3_BUCKET ?? '',
    prefix,
    credentials: { accessKey: TAKEMARK_S3_ACCESS_KEY, secretKey: TAKEMARK_S3_SECRET_KEY },
    spoolDirectory: join(directory, 'spool'),
  });
  t.teardown(() => bucket.close());

  const { operator, partner } = service.service.operations;
  const key = seededDeviceKey(1);
  await operator.enrolDevice({ deviceId: key.deviceId });
  const { partnerId, apiKey, caller } = await service.partner();
  const other = await startProcess(t, { ...settings, TAKEMARK_DATA_DIR: join(directory, 'other') });
  const audio = wav(96_000);
  const exportSha256 = createHash('sha256').update(audio).digest('hex');
  const places = new Set<string>();
  // A short session has small bodies, a long one greater ones: both places of a body are passed.
  for (const minutes of [20, 900]) {
    const to = new MemorySink();
    await simulateTrace({ minutes, seed: 5, exportSha256, to, key });
    const trace = to.bytes();
    async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
      yield bytes;
    }
    const { proofId } = await operator.issueProof({
      partnerId,
      songTitle: 'Take one',
      fileName: 'take.wav',
      carrier: 'embedded',
      audio: once(audio),
      evidence: { trace: once(trace) },
    });
    t.ok((await bucket.size(proofId, 'trace'))! > trace.length, 'the trace is in the bucket, encrypted');
    for (const part of ['facts', 'detail'] as const)
      places.add((await bucket.size(proofId, part)) === undefined ? 'registry' : 'objects');
    const file = await collect(await (await operator.readAsset(proofId, 'audio')).read());
    const { verdict, evidenceReport } = await service.verify(caller, file);
    t.equal(verdict, 'valid');
    t.equal(evidenceReport?.session?.evidence.traceSha256, createHash('sha256').update(trace).digest('hex'));
    t.equal(evidenceReport?.session?.evidence.device.standing, 'enrolled');
    await operator.recordDeclaration(proofId, {
      surveyVersion: '2026-01',
      submissionId: 'sub_1',
      subject: 'creator_1',
      submittedAt: 1_767_229_200,
      answers: { declaredOrigin: 'from_scratch', aiRoles: ['none'] },
    });
    const declared = withPlainReport(await partner.readProof(caller, { proofId })).evidenceReport;
    t.ok(declared?.conflicts.some(({ code }) => code === 'observed_import_vs_creator_origin_declaration'));
    t.strictSame(declared?.session, evidenceReport?.session, 'what was settled stays');

    const subject = { apiKey, proofId, uploadId: await upload(service.partnerUrl, apiKey, file) };
    const detailAt = async (base: string) => sharedDetail(await readReports(base, subject));
    await operator.approveSourceDetail({ partnerId, consentVersion: '2026-01' });
    for (const grantedAt of [1_767_229_200, 1_767_229_201]) {
      await operator.grantConsent({ proofId, consentVersion: '2026-01', grantedAt });
      for (const base of [service.partnerUrl, other]) {
        const ids = (await detailAt(base)) ?? [];
        t.ok(ids.includes('trk1') && ids.includes('plc1'), 'delivered by either process');
        t.strictSame(
          ids.filter((id) => file.includes(id)),
          [],
          'and by no carrier',
        );
      }
      await operator.revokeConsent({ proofId });
      for (const base of [other, service.partnerUrl])
        t.equal(await detailAt(base), undefined, 'revoked at one process, gone at both');
    }

    t.equal((await partner.eraseProof(caller, { proofId })).outcome, 'erased');
    t.equal(await bucket.size(proofId), undefined);
    for (const part of EVIDENCE_PARTS)
      t.equal(await bucket.size(proofId, part), undefined, `${part} is gone`);
    await t.rejects(partner.readRecord(caller, { proofId }), { code: 'not_found' });
    t.equal((await service.verify(caller, file)).verdict, 'unregistered');
  }
  t.strictSame([...places].sort(), ['objects', 'registry']);

  const old = {
    proofId: `tpf_${randomUUID()}`,
    partnerId,
    createdAt: 1_600_000_000,
    kid: 'ab'.repeat(32),
    carrier: 'sidecar',
    song: { title: 'An old song' },
    originalSha256: exportSha256,
    boundAudioSha256: exportSha256,
    credentialSha256: 'cd'.repeat(32),
    asset: { bytes: audio.length, sha256: exportSha256, fileName: 'old.wav', mediaType: 'audio/wav' },
    classification: 'studio',
    grade: 'B',
    interpretation: 'Played and sung in one room.',
  } as const;
  const { proofId } = old;
  t.strictSame(await operator.importLegacy(old), { proofId, outcome: 'imported' });
  t.strictSame(await operator.importLegacy(old), { proofId, outcome: 'already_imported' });
  await t.rejects(operator.importLegacy({ ...old, grade: 'C' }), {
    code: 'conflict',
    reason: 'legacy_differs',
  });
  t.match(await partner.readProof(caller, { proofId }), { grade: 'B', classification: 'studio' });
  t.equal(
    withPlainReport(await partner.readProof(caller, { proofId })).evidenceReport,
    undefined,
    'and no report',
  );
  t.equal((await partner.eraseProof(caller, { proofId })).outcome, 'erased');
  await t.rejects(operator.importLegacy(old), { code: 'conflict' }, 'what was erased stays erased');
});

/** Starts a second process of the cluster. @returns the address of its partner listener */
async function startProcess(t: Test, settings: Readonly<Record<string, string>>): Promise<string> {
  const child = spawn(process.execPath, [MAIN], {
    stdio: 'ignore',
    env: {
      PATH: process.env['PATH'],
      TAKEMARK_PORT: '0',
      TAKEMARK_OPERATOR_PORT: '0',
      TAKEMARK_HOST: '127.0.0.1',
      TAKEMARK_STOP_GRACE_SECONDS: '1',
      ...settings,
    },
  });
  t.teardown(async () => {
    if (child.exitCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  });
  const endpoints = join(settings['TAKEMARK_DATA_DIR'] ?? '', 'endpoints.json');
  for (;;) {
    const text = await readFile(endpoints, 'utf8').catch(() => undefined);
    if (text !== undefined) return `http://127.0.0.1:${(JSON.parse(text) as { partner: number }).partner}`;
    if (child.exitCode !== null) throw new Error(`the process ended with ${child.exitCode}`);
    await delay(20);
  }
}
