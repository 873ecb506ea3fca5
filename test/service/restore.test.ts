/** Tests the restore of a keyspace from a backup, on real servers. */
import { mkdtemp, rm } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { createServer, connect as dial, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Test, test } from 'tap';
import { DomainError } from '../../src/core/domain/errors.js';
import { openSecrets } from '../../src/service/compose/identity.js';
import { openNotes } from '../../src/service/compose/infrastructure.js';
import { migrate, restoreCluster } from '../../src/service/compose/tools.js';
import { readConfig } from '../../src/service/config/config.js';
import {
  ADDRESSES,
  connection,
  dropKeyspace,
  isUnanswered,
  withClient,
} from '../adapters/cassandra-under-test.js';
import { dropTopics } from '../adapters/kafka-trials.js';
import { again } from '../fixtures/again.js';
import { TestService } from '../fixtures/service.js';
import { until } from '../fixtures/until.js';
import { wav } from '../fixtures/wav.js';
import { call } from '../fixtures/wire.js';
import { takemark } from '../lab/cluster/members.js';
import { serverSettings } from './server-settings.js';

const { TAKEMARK_KAFKA, TAKEMARK_S3_ENDPOINT } = process.env;
const servers =
  (ADDRESSES ?? '') !== '' && (TAKEMARK_KAFKA ?? '') !== '' && (TAKEMARK_S3_ENDPOINT ?? '') !== ''
    ? {}
    : { skip: 'needs TAKEMARK_CASSANDRA, TAKEMARK_KAFKA and TAKEMARK_S3_ENDPOINT' };
/** An address without a listener. */
const NOWHERE = '127.0.0.1:9';

/** Returns a link to the bucket that can be cut. */
async function bucketLink(t: Test) {
  const { hostname, port } = new URL(TAKEMARK_S3_ENDPOINT!);
  const sockets = new Set<Socket>();
  let isCut = false;
  const server = createServer((near) => {
    if (isCut) return void near.destroy();
    const far = dial(Number(port), hostname);
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from);
      from.pipe(to);
      from.on('error', () => to.destroy()).on('close', () => sockets.delete(from));
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => server.close());
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cut(cut: boolean) {
      isCut = cut;
      if (cut) for (const socket of sockets) socket.destroy();
    },
  };
}

/** Returns every row of a keyspace, as JSON. */
async function backup(keyspace: string): Promise<ReadonlyMap<string, readonly string[]>> {
  return withClient(async (client) => {
    const { rows } = await client.execute(
      'SELECT table_name FROM system_schema.tables WHERE keyspace_name = ?',
      [keyspace],
      { prepare: true },
    );
    const tables = new Map<string, readonly string[]>();
    for (const { table_name: table } of rows as unknown as { table_name: string }[])
      tables.set(
        table,
        (
          await client.execute(`SELECT JSON * FROM ${keyspace}.${table}`, [], { fetchSize: 100_000 })
        ).rows.map((row) => row['[json]'] as string),
      );
    return tables;
  });
}

async function putBack(keyspace: string, tables: ReadonlyMap<string, readonly string[]>): Promise<void> {
  await withClient(async (client) => {
    for (const [table, rows] of tables)
      for (const row of rows)
        if (table !== 'schema_migration')
          // An unset column would be a tombstone otherwise.
          await client.execute(`INSERT INTO ${keyspace}.${table} JSON ? DEFAULT UNSET`, [row], {
            prepare: true,
          });
  });
}

const readiness = async (service: TestService) =>
  (await call(service.operatorUrl, 'GET', '/readyz')) as { status: number; body: Buffer };

/** Repeats an idempotent call while the servers of the test stall. */
const patiently = <Answer>(call: () => Promise<Answer>): Promise<Answer> => again(call, isUnanswered);

const settled = (done: () => Promise<boolean>): Promise<boolean> => until(() => patiently(done));

test('a backup brings back no erased proof, and counts no unit twice or not at all', servers, async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'takemark-restore-'));
  t.teardown(() => rm(directory, { recursive: true, force: true }));
  const link = await bucketLink(t);
  const settings = {
    ...serverSettings({ name: 'restore', keyspace: connection.keyspace, directory }),
    TAKEMARK_S3_ENDPOINT: link.endpoint,
    TAKEMARK_CONSUMERS: 'on',
  };
  const restored = { ...settings, TAKEMARK_CASSANDRA_KEYSPACE: `${connection.keyspace}_back` };
  await takemark(settings, 'operator', 'secrets', 'init', '--out', settings['TAKEMARK_SECRETS_FILE']!);
  for (const each of [settings, restored])
    await again(
      () => migrate(readConfig(each)),
      () => true,
    );
  const { kafka } = readConfig(settings);
  t.teardown(async () => {
    await dropTopics(kafka!, kafka!.prefix);
    for (const each of [settings, restored]) await dropKeyspace(each['TAKEMARK_CASSANDRA_KEYSPACE']!);
  });
  const running = new Set<TestService>();
  const start = async (over: Readonly<Record<string, string>>): Promise<TestService> => {
    const service = await patiently(() => TestService.start(over));
    running.add(service);
    return service;
  };
  const stop = async (service: TestService): Promise<void> => {
    running.delete(service);
    await service.stop();
  };
  t.teardown(async () => {
    for (const service of running) await service.stop();
  });
  const config = readConfig(settings);
  const { secrets } = await openSecrets(config);
  const notes = openNotes(config, secrets)!;
  t.teardown(() => notes.journal.close());
  const beat = async () => (await notes.marks.read()).beat;
  const usage = async (service: TestService, caller: Parameters<TestService['verify']>[0]) => {
    const { used, days } = await patiently(() =>
      service.service.operations.partner.readUsage(caller, { days: 2 }),
    );
    // Of two days, because the test may run over midnight.
    const verified = days.reduce((sum, { operations }) => sum + (operations['verify'] ?? 0), 0);
    return { used, verified };
  };

  const first = await start(settings);
  const { partnerId, caller, apiKey } = await first.partner();
  const kept = await first.issue(partnerId, wav(2000));
  const announced = await first.issue(partnerId, wav(2000, {}, 2));
  const silent = await first.issue(partnerId, wav(2000, {}, 3));
  for (let calls = 0; calls < 3; calls += 1) await first.verify(caller, kept.file);
  const saved = await backup(connection.keyspace);
  const [state = '{}'] = saved.get('installation')!;
  const { beat: beatOfBackup = 0 } = JSON.parse(state) as { beat?: number };

  for (let calls = 0; calls < 2; calls += 1) await first.verify(caller, kept.file);
  t.strictSame(await usage(first, caller), { used: 5, verified: 5 });
  const { partner, operator } = first.service.operations;
  await patiently(() => partner.eraseProof(caller, { proofId: announced.proofId }));
  t.ok(
    await settled(async () => (await operator.erasureStatus(announced.proofId)).confirmedAt !== undefined),
    'one erasure went all its way',
  );
  t.ok(
    await settled(async () => {
      const metrics = (await call(first.operatorUrl, 'GET', '/metrics')).body.toString();
      return /^takemark_outbox_waiting 0$/m.test(metrics);
    }),
    'what was counted has reached the topic',
  );
  await stop(first);
  // The other one is acknowledged while Kafka is away, so no topic gets it.
  const second = await start({ ...settings, TAKEMARK_KAFKA: NOWHERE });
  const late = second.service.operations.partner;
  const callerAgain = await patiently(() => late.authenticate(apiKey));
  // The service cannot detect a backup before the bucket has a later mark.
  t.ok(await settled(async () => (await beat()) > beatOfBackup), 'the bucket notes that the store went on');
  link.cut(true);
  await t.rejects(
    late.eraseProof(callerAgain, { proofId: silent.proofId }),
    { code: 'unavailable', reason: 'store_unavailable' },
    'nothing is acknowledged while the bucket is away',
  );
  const isGone = async (): Promise<boolean> => {
    const error: unknown = await late.readProof(callerAgain, { proofId: silent.proofId }).then(
      () => undefined,
      (failure) => failure,
    );
    return error instanceof DomainError && error.code === 'not_found';
  };
  t.ok(
    await settled(async () => {
      if (await isGone()) return true;
      // A stalled server of the database may have refused it, too.
      await late.eraseProof(callerAgain, { proofId: silent.proofId }).catch(() => undefined);
      return false;
    }),
    'but the tombstone holds',
  );
  link.cut(false);
  t.match(
    await patiently(() => late.eraseProof(callerAgain, { proofId: silent.proofId })),
    { outcome: 'already_erased' },
    'and a repeat completes',
  );
  await stop(second);

  await putBack(restored['TAKEMARK_CASSANDRA_KEYSPACE']!, saved);
  const gated = await start(restored);
  const answer = await readiness(gated);
  t.match(
    [answer.status, JSON.parse(answer.body.toString())],
    [503, { reason: 'restoring' }],
    `the backup has beat ${beatOfBackup}, the bucket has ${await beat()}`,
  );
  const headers = { 'x-api-key': apiKey };
  const asked = await call(gated.partnerUrl, 'GET', `/v1/proofs/${silent.proofId}`, { headers });
  t.equal(asked.status, 503, 'the proof that came back is not served');

  const report = await patiently(() =>
    restoreCluster(readConfig({ ...restored, TAKEMARK_DATA_DIR: directory })),
  );
  t.match(report, { epoch: 1, erasedAgain: 2, left: 0 });
  t.ok(report.erasures >= 3, 'the journal and the topic');
  await stop(gated);

  const last = await start(restored);
  t.equal((await readiness(last)).status, 200);
  const returned = await patiently(() => last.service.operations.partner.authenticate(apiKey));
  for (const { proofId } of [announced, silent])
    t.match(
      await patiently(() => last.service.operations.operator.erasureStatus(proofId)),
      { state: 'erased', confirmedAt: Number, assetPresent: false },
      'erased',
    );
  t.strictSame(await usage(last, returned), { used: 3, verified: 5 }, 'the quota as the backup has it');
  await last.verify(returned, kept.file);
  t.strictSame(await usage(last, returned), { used: 4, verified: 6 }, 'a number that was used before counts');
  t.ok(
    await settled(async () => {
      const tables = await backup(restored['TAKEMARK_CASSANDRA_KEYSPACE']!);
      return tables
        .get('consumption')!
        .map((row) => JSON.parse(row) as { item: string; spans: number[] | null })
        .some(({ item, spans }) => item === 'billed/1' && spans?.join() === '3,4');
    }),
    'the consumer has added it beside those of the same number',
  );
  t.strictSame(await usage(last, returned), { used: 4, verified: 6 }, 'and it counts once');
});
