/**
 * Tests that erased content cannot be decrypted any more, by searching the files of Cassandra, Kafka and the
 * bucket.
 */
import { execFile } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { test } from 'tap';
import { MemorySink } from '../../src/cli/specimens/memory-sink.js';
import { seededDeviceKey, simulateTrace } from '../../src/cli/specimens/simulate-trace.js';
import { defined } from '../../src/core/domain/defined.js';
import { openBucketKeys } from '../../src/service/adapters/assets/bucket-keys.js';
import { openCassandraStore } from '../../src/service/adapters/cassandra/store.js';
import { encryptedStores } from '../../src/service/adapters/encryption/encrypted-stores.js';
import { authenticatorOf, openSecrets } from '../../src/service/compose/identity.js';
import { readConfig } from '../../src/service/config/config.js';
import type { ContentKeys } from '../../src/service/ports/content-keys.js';
import { decodeEvidence } from '../../src/witness/report/evidence-body.js';
import { ADDRESSES, connection, dropKeyspace, withClient } from '../adapters/cassandra-under-test.js';
import { Canaries, filesBelow } from '../fixtures/canaries.js';
import { sized } from '../fixtures/sampling.js';
import { collect, inPieces, TestService } from '../fixtures/service.js';
import { wav } from '../fixtures/wav.js';
import { takemark } from '../lab/cluster/members.js';
import { serverSettings } from './server-settings.js';

const { TAKEMARK_KAFKA, TAKEMARK_S3_ENDPOINT: endpoint, TAKEMARK_S3_REGION: region } = process.env;
const { TAKEMARK_S3_BUCKET: bucket = '' } = process.env;
const { TAKEMARK_S3_ACCESS_KEY: accessKey = '', TAKEMARK_S3_SECRET_KEY: secretKey = '' } = process.env;
/** The directory in which `npm run services:up` stores the files of its servers. */
const SERVERS = process.env['TAKEMARK_SERVICES_DIR'] ?? join(tmpdir(), 'takemark-services');
const given =
  (ADDRESSES ?? '') !== '' &&
  (TAKEMARK_KAFKA ?? '') !== '' &&
  bucket !== '' &&
  existsSync(join(SERVERS, 'cassandra-1', 'data'))
    ? {}
    : { skip: 'needs the servers of npm run services:up, and their files' };
const LAUNCHER = new URL('../../../deploy/services/services.mjs', import.meta.url).pathname;
const BACKUP = 'backup';

/** Runs a command of Cassandra's nodetool. */
async function nodetool(...args: readonly string[]): Promise<void> {
  await promisify(execFile)(process.execPath, [LAUNCHER, 'nodetool', '--', 'cassandra-1', ...args], {
    env: { PATH: process.env['PATH'], HOME: process.env['HOME'], TAKEMARK_SERVICES_DIR: SERVERS },
  });
}

test('the files of the servers are encrypted, and noise without the key', given, async (t) => {
  // A file that was not changed after this time has no content of this test. A file system may round a time
  // to seconds.
  const began = Date.now() - 2000;
  const directory = await mkdtemp(join(tmpdir(), 'takemark-shredding-'));
  t.teardown(() => rm(directory, { recursive: true, force: true }));
  const keyspace = `${connection.keyspace}_shred`;
  const settings = {
    ...serverSettings({ name: 'shredding', keyspace, directory }),
    TAKEMARK_CONSUMERS: 'on',
  };
  const prefix = settings.TAKEMARK_S3_PREFIX;
  await takemark(settings, 'operator', 'secrets', 'init', '--out', settings['TAKEMARK_SECRETS_FILE'] ?? '');
  await takemark(settings, 'operator', 'migrate');
  t.teardown(() => dropKeyspace(keyspace));
  // Tables are stored without compression.
  await withClient(async (client) => {
    for (const table of ['record', 'proof_by_partner', 'proof_by_bound', 'issuing_replay', 'pointer'])
      await client.execute(`ALTER TABLE ${table} WITH compression = {'enabled': false}`);
  }, keyspace);
  let service = await TestService.start(settings);
  t.teardown(() => service.stop());

  const canaries = new Canaries();
  const { partnerId, caller } = await service.partner();
  const { operator, partner } = service.service.operations;
  const device = seededDeviceKey(1);
  await operator.enrolDevice({ deviceId: device.deviceId });
  const audio = wav(150_000);
  canaries.pieces('audio', audio.subarray(60_000, sized(61_000, 60_100)));
  const sink = new MemorySink();
  await simulateTrace({
    minutes: 20,
    seed: 1,
    exportSha256: createHash('sha256').update(audio).digest('hex'),
    to: sink,
    key: device,
  });
  const trace = sink.bytes();
  canaries.pieces('trace', trace.subarray(1000, sized(1600, 1100)));
  const issued = await operator.issueProof({
    partnerId,
    songTitle: canaries.text('title'),
    fileName: `${canaries.text('file-name')}.wav`,
    carrier: 'embedded',
    audio: inPieces(audio),
    idempotencyKey: randomUUID(),
    evidence: { trace: inPieces(trace) },
  });
  const { proofId } = issued;
  await operator.recordDeclaration(proofId, {
    surveyVersion: '2026-01',
    submissionId: 'sub_1',
    subject: canaries.text('subject'),
    submittedAt: 1_767_229_200,
    answers: { declaredOrigin: 'from_scratch', aiRoles: ['none'] },
  });
  const file = await collect(await (await operator.readAsset(proofId, 'audio')).read());
  t.equal((await service.verify(caller, file)).verdict, 'valid');
  t.ok(canaries.find(file).length > 0, 'the search finds the audio in a file that is not encrypted');

  const keys = openBucketKeys({
    ...defined({ endpoint }),
    region: region ?? 'us-east-1',
    bucket,
    prefix,
    credentials: { accessKey, secretKey },
  });
  t.teardown(() => keys.close());
  const config = readConfig({ ...settings, TAKEMARK_DATA_DIR: directory });
  const { secrets } = await openSecrets(config);
  const rows = await openCassandraStore({
    ...config.cassandra!,
    audit: { key: secrets.current('audit').key },
    authenticator: authenticatorOf(secrets, 'row', config),
    outboxLimit: config.outboxLimit,
  });
  t.teardown(() => rows.close());
  const key = canaries.plant('key', (await keys.read(proofId))!);
  /** Opens the keyspace's rows with the old key, like an attacker who kept it. */
  const kept = encryptedStores(rows, { read: async () => key } as unknown as ContentKeys);
  const facts = Buffer.from((await kept.readEvidence(proofId, 'facts'))!);
  // Bytes of this session alone, with the name before them. The digest by itself is also in the facts of the
  // posted file.
  const digest = createHash('sha256').update(trace).digest('hex');
  canaries.plant('report', `"traceSha256":"${digest}"`);
  const at = facts.indexOf(digest);
  t.ok(at > 0, 'the facts name their trace');
  canaries.plant('facts', facts.subarray(at - 'traceSha256'.length - 2, at + digest.length));

  /** Returns the names of content that is found in all files, and the other results of the search. */
  const search = async () => {
    const found: string[] = [];
    let seesRecord = false;
    let seesEvidence = false;
    let seesSegments = false;
    const places = ['cassandra-1/data', 'cassandra-1/commitlog', 'kafka-1/data', 's3-1/data'];
    for (const place of [...places.map((name) => join(SERVERS, name)), service.directory])
      for (const [path, bytes] of await filesBelow(place, began)) {
        found.push(...canaries.find(bytes).map((name) => `${name.replace(/ #.*/, '')} in ${path}`));
        const isTable = path.includes(`${keyspace}/record-`) && path.endsWith('Data.db');
        const hasId = bytes.includes(proofId);
        seesRecord ||= isTable && hasId;
        seesEvidence ||= isTable && hasId && bytes.includes('evidence/facts');
        seesSegments ||= hasId && place.endsWith('commitlog');
      }
    return { found, seesRecord, seesEvidence, seesSegments };
  };
  const seesAll = { seesRecord: true, seesEvidence: true, seesSegments: true };
  await nodetool('snapshot', '-t', BACKUP, keyspace);
  t.teardown(() => nodetool('clearsnapshot', '-t', BACKUP, '--', keyspace));
  t.strictSame(
    await search(),
    { found: [`key in ${bucket}/${prefix}keys/${proofId}`], ...seesAll },
    'while the proof exists its key is found only in its place',
  );

  t.equal((await partner.eraseProof(caller, { proofId })).outcome, 'erased');
  t.equal(await keys.read(proofId), undefined, 'its key is gone at once');
  await nodetool('flush', keyspace);
  t.strictSame(await search(), { found: [], ...seesAll }, 'no file has content or key, nor has the backup');

  // The files of the backup replace those of the table.
  await service.stop();
  await withClient((client) => client.execute('TRUNCATE record'), keyspace);
  const tables = join(SERVERS, 'cassandra-1', 'data', keyspace);
  const table = (await readdir(tables)).find((name) => name.startsWith('record-'))!;
  await nodetool('import', '-p', '--', keyspace, 'record', join(tables, table, 'snapshots', BACKUP));
  service = await TestService.start(settings);
  const { partner: restored } = service.service.operations;
  await t.rejects(
    restored.readProof(caller, { proofId }),
    { code: 'internal', reason: 'record_damaged' },
    'the backup cannot be opened',
  );
  await t.rejects(
    service.verify(caller, file),
    { code: 'internal', reason: 'record_damaged' },
    'nor is it verified',
  );
  t.match(
    await kept.getProof(proofId),
    { state: 'issued', song: { title: /^Cnry-title-/ } },
    'except with an earlier copy of the key',
  );
  t.strictSame(
    decodeEvidence('facts', (await kept.readEvidence(proofId, 'facts'))!),
    decodeEvidence('facts', facts),
    'its evidence as well',
  );
  t.equal((await restored.eraseProof(caller, { proofId })).outcome, 'erased');
  await nodetool('flush', keyspace);
  t.strictSame((await search()).found, []);
});
