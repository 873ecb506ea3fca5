/** Fixtures of the sandbox in a cluster: processes that are asked at the same moment make one set of them. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'tap';
import type { AnnouncedFixture } from '../../src/service/operations/sandbox/sandbox.js';
import { ADDRESSES, connection, dropKeyspace, isUnanswered } from '../adapters/cassandra-under-test.js';
import { again } from '../fixtures/again.js';
import { collect, TestService } from '../fixtures/service.js';
import { takemark } from '../lab/cluster/members.js';
import { serverSettings } from './server-settings.js';

const { TAKEMARK_KAFKA = '', TAKEMARK_S3_BUCKET = '' } = process.env;
const servers =
  ADDRESSES !== undefined && TAKEMARK_KAFKA !== '' && TAKEMARK_S3_BUCKET !== ''
    ? {}
    : { skip: 'needs TAKEMARK_CASSANDRA, TAKEMARK_KAFKA and TAKEMARK_S3_BUCKET' };

test('two processes that begin at once have the same fixtures', servers, async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'takemark-sandbox-'));
  t.teardown(() => rm(directory, { recursive: true, force: true }));
  // A keyspace of its own: its content keys are not those of another cluster.
  const keyspace = `${connection.keyspace}_sandbox`;
  const settings = serverSettings({ name: 'sandbox', keyspace, directory });
  await takemark(settings, 'operator', 'secrets', 'init', '--out', settings.TAKEMARK_SECRETS_FILE);
  await takemark(settings, 'operator', 'migrate');
  t.teardown(() => dropKeyspace(keyspace));
  const processes: TestService[] = [];
  for (const name of ['one', 'other']) {
    const service = await TestService.start({ ...settings, TAKEMARK_DATA_DIR: join(directory, name) });
    t.teardown(() => service.stop());
    processes.push(service);
  }
  const { caller } = await processes[0]!.partner();
  const listOf = async ({ service }: TestService): Promise<readonly AnnouncedFixture[]> =>
    (await again(() => service.operations.partner.sandboxFixtures(caller), isUnanswered)).fixtures;
  const [one, other] = await Promise.all(processes.map(listOf));
  t.strictSame(other, one, 'every process makes the same files');
  t.strictSame(await listOf(processes[0]!), one, 'and they stay');

  for (const name of ['valid', 'valid_pair', 'store_kid_mismatch']) {
    const { files, verdict } = one!.find((fixture) => fixture.name === name)!;
    const given = await Promise.all(
      processes.map(({ service }) =>
        Promise.all(
          files.map(async ({ part }) =>
            collect(await (await service.operations.partner.sandboxFile(caller, { name, part })).read()),
          ),
        ),
      ),
    );
    t.strictSame(given[1], given[0], `${name}: byte for byte`);
    const [audio, sidecar] = given[0]!;
    for (const service of processes)
      t.equal((await service.verify(caller, audio!, sidecar)).verdict, verdict, name);
  }
});
