/** Tests the ledger of migrations and the declaration of data centres on a real node. */
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import t from 'tap';
import { migrate, SCHEMA_VERSION } from '../../src/service/adapters/cassandra/driver/migrations.js';
import { topologyFault } from '../../src/service/adapters/cassandra/driver/topology.js';
import {
  type CassandraStoreOptions,
  openCassandraStore,
} from '../../src/service/adapters/cassandra/store.js';
import { again } from '../fixtures/again.js';
import { authenticator } from '../fixtures/authentication.js';
import {
  ADDRESSES,
  connection,
  dropKeyspace,
  KEY,
  memoryHeads,
  openStore,
  withClient,
} from './cassandra-under-test.js';

const real =
  ADDRESSES === undefined
    ? { skip: 'TAKEMARK_CASSANDRA is not set: npm run services:up starts a server and prints it' }
    : {};

void t.test('processes of one keyspace agree on its data centres', async (t) => {
  const one = { kind: 'one_data_centre', active: undefined } as const;
  const dc1 = { kind: 'one_active', active: 'dc1' } as const;
  const dc2 = { kind: 'one_active', active: 'dc2' } as const;
  const all = { kind: 'all_active', active: undefined } as const;
  const single = new Map([['dc1', 3]]);
  const double = new Map([
    ['dc1', 3],
    ['dc2', 3],
  ]);
  t.equal(topologyFault(single, one, one), undefined);
  t.equal(topologyFault(single, undefined, one), undefined);
  t.match(
    topologyFault(double, one, one),
    /several data centres \(dc1, dc2\)/,
    'the serving ones are not declared',
  );
  t.match(topologyFault(double, undefined, all), /no recorded topology/);
  t.match(topologyFault(double, one, all), /is one_data_centre, but/);
  t.equal(topologyFault(double, all, all), undefined);
  t.equal(topologyFault(double, dc1, dc1), undefined);
  t.match(
    topologyFault(double, dc1, dc2),
    /one_active with dc1, but this process is configured with one_active with dc2/,
  );
  t.match(topologyFault(double, all, dc1), /is all_active, but/);
});

void t.test('on a real node', real, async (t) => {
  const keyspaces = ['ids', 'versions', 'centres'].map((name) => `${connection.keyspace}_${name}`);
  const [ids, versions, centres] = keyspaces as [string, string, string];
  t.teardown(async () => {
    for (const keyspace of keyspaces) await dropKeyspace(keyspace);
  });

  await t.test('the ledger has the same id, whichever machine makes it', async (t) => {
    const directory = await emptyDirectory(t);
    const idOf = async () => {
      await again(() => migrate({ ...connection, keyspace: ids, directory }));
      const { rows } = await withClient((client) =>
        client.execute(
          "SELECT id FROM system_schema.tables WHERE keyspace_name = ? AND table_name = 'schema_migration'",
          [ids],
        ),
      );
      return String(rows[0]?.['id']);
    };
    const first = await idOf();
    await withClient((client) => client.execute(`DROP KEYSPACE ${ids}`));
    t.equal(await idOf(), first);
  });

  await t.test(
    'a process starts beside a later schema that says it may, and not beside another',
    async (t) => {
      const keyspace = versions;
      await again(() => migrate({ ...connection, keyspace }));
      const directory = await emptyDirectory(t);
      await cp(new URL('../../../deploy/cassandra/', import.meta.url), directory, { recursive: true });
      const next = String(SCHEMA_VERSION + 1).padStart(3, '0');
      const expand = `-- min_compatible: ${SCHEMA_VERSION}\nALTER TABLE ping ADD more text;\n`;
      await writeFile(new URL(`${next}-expand.cql`, directory), expand);
      t.strictSame(await migrate({ ...connection, keyspace, directory }), [`${next}-expand.cql`]);
      const stores = await openStore({ keyspace });
      t.teardown(() => stores.close());
      await t.resolves(stores.ping(), 'the version before goes on, and starts anew');

      const last = String(SCHEMA_VERSION + 2).padStart(3, '0');
      await writeFile(new URL(`${last}-contract.cql`, directory), 'ALTER TABLE ping DROP more;\n');
      await migrate({ ...connection, keyspace, directory });
      await t.rejects(openOnce({ keyspace }), {
        name: 'CassandraOpenError',
        message: new RegExp(`version ${SCHEMA_VERSION + 2}, which needs .* ${SCHEMA_VERSION + 2} or later`),
      });
      await t.rejects(stores.ping(), { code: 'unavailable' }, 'and one that runs is not ready any more');
    },
  );

  await t.test('another topology needs the word of the operator', async (t) => {
    const keyspace = centres;
    await again(() => migrate({ ...connection, keyspace }));
    await t.rejects(migrate({ ...connection, keyspace, topology: 'one_active' }), {
      name: 'CassandraOpenError',
      message: /--change-topology/,
    });
    await t.rejects(openOnce({ keyspace, topology: 'all_active' }), {
      name: 'CassandraOpenError',
      message: /is one_data_centre, but/,
    });
    await migrate({ ...connection, keyspace, topology: 'one_active', changeTopology: true });
    await migrate({ ...connection, keyspace, topology: 'all_active', changeTopology: true });
    const stores = await openStore({ keyspace, topology: 'all_active' });
    await t.resolves(stores.ping());
    await stores.close();
    await t.rejects(openOnce({ keyspace }), {
      name: 'CassandraOpenError',
      message: /is all_active, but/,
    });
  });
});

/** Opens the store once, because a refusal must not be repeated. */
function openOnce(over: Partial<CassandraStoreOptions>) {
  return openCassandraStore({
    ...connection,
    authenticator,
    audit: { key: KEY, heads: memoryHeads() },
    ...over,
  });
}

async function emptyDirectory(t: { teardown(end: () => unknown): void }): Promise<URL> {
  const directory = await mkdtemp(join(tmpdir(), 'takemark-migrations-'));
  t.teardown(() => rm(directory, { recursive: true, force: true }));
  return pathToFileURL(`${directory}/`);
}
