/** Tests the doctor on planted facts, and on real servers with planted settings. */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import t from 'tap';
import { examineBucket, lockOf, versioningOf } from '../../src/service/adapters/assets/s3-doctor.js';
import {
  type CassandraFacts,
  examineCassandra,
  judgeCassandra,
} from '../../src/service/adapters/cassandra/doctor.js';
import { migrate } from '../../src/service/adapters/cassandra/driver/migrations.js';
import type { ClusterAnswers } from '../../src/service/adapters/kafka/broker-questions.js';
import { loadLibrary, makeTopics } from '../../src/service/adapters/kafka/client.js';
import { examineKafka, judgeKafka } from '../../src/service/adapters/kafka/doctor.js';
import { allNames } from '../../src/service/adapters/kafka/topic-names.js';
import { createTopics, DEAD_LETTERS, KEEPING } from '../../src/service/adapters/kafka/topics.js';
import { TOPICS } from '../../src/service/domain/events.js';
import { countedChecks, type ServerCheck } from '../../src/service/domain/server-check.js';
import { ADDRESSES, connection, dropKeyspace, migrated, withClient } from './cassandra-under-test.js';

const DAY = 86_400;
const NOW = 1_790_000_000;

function verdicts(checks: readonly ServerCheck[]): Readonly<Record<string, string>> {
  return Object.fromEntries(checks.map(({ name, verdict }) => [name, verdict]));
}

const SETTINGS = new Map([
  ['paxos_variant', 'v2'],
  ['paxos_state_purging', 'legacy'],
  ['commitlog_sync', 'batch'],
  ['internode_timeout', 'false'],
  ['tombstone_failure_threshold', '100000'],
]);
const NODES = ['a', 'b', 'c'].map((address) => ({
  address,
  dataCenter: 'dc1',
  release: '5.0.6',
  isUp: true,
}));
const ONE = { kind: 'one_data_centre', active: undefined } as const;
const SOUND: CassandraFacts = {
  nodes: NODES,
  settings: new Map(NODES.map(({ address }) => [address, SETTINGS])),
  replicas: new Map([['dc1', 3]]),
  stated: ONE,
  clocks: { processSeconds: 0.01, nodesSeconds: -0.02 },
  gcGraceSeconds: 10 * DAY,
  repairedAt: NOW - 3 * DAY,
};

function judged(
  over: Partial<CassandraFacts>,
  topology: typeof ONE | { kind: 'all_active'; active: undefined } = ONE,
) {
  return judgeCassandra({ ...SOUND, ...over }, { localDataCenter: 'dc1', topology, now: NOW });
}

/** Returns the settings of three nodes. One node has another value. */
function oneWith(name: string, value: string) {
  return new Map([...SOUND.settings, ['b', new Map([...SETTINGS, [name, value]])] as const]);
}

void t.test('Cassandra as production should have it passes every check', async (t) => {
  t.strictSame([...new Set(judged({}).map(({ verdict }) => verdict))], ['ok']);
});

void t.test('each wrong setting of Cassandra is found, and nothing else', async (t) => {
  const planted: readonly [Partial<CassandraFacts>, string, ServerCheck['verdict']][] = [
    [{ settings: oneWith('paxos_variant', 'v1') }, 'cassandra.paxos_variant', 'refuse'],
    [{ settings: oneWith('paxos_state_purging', 'repaired') }, 'cassandra.paxos_state_purging', 'warn'],
    [{ settings: oneWith('commitlog_sync', 'periodic') }, 'cassandra.commitlog_sync', 'refuse'],
    [{ settings: oneWith('commitlog_sync', 'group') }, 'cassandra.commitlog_sync', 'refuse'],
    [{ settings: oneWith('internode_timeout', 'true') }, 'cassandra.internode_timeout', 'warn'],
    [
      { settings: oneWith('tombstone_failure_threshold', '5000') },
      'cassandra.tombstone_failure_threshold',
      'warn',
    ],
    [{ replicas: new Map([['dc1', 2]]) }, 'cassandra.replication', 'refuse'],
    [{ replicas: new Map([['dc2', 3]]) }, 'cassandra.replication', 'refuse'],
    [{ nodes: NODES.slice(1) }, 'cassandra.replication', 'refuse'],
    [{ replicas: new Map([['*', 3]]) }, 'cassandra.replication', 'refuse'],
    [
      {
        replicas: new Map([
          ['dc1', 3],
          ['dc2', 3],
        ]),
      },
      'cassandra.topology',
      'refuse',
    ],
    [{ stated: { kind: 'all_active', active: undefined } }, 'cassandra.topology', 'refuse'],
    [{ clocks: { processSeconds: 7, nodesSeconds: 0 } }, 'cassandra.clocks', 'warn'],
    [{ clocks: { processSeconds: 0, nodesSeconds: -25 } }, 'cassandra.clocks', 'refuse'],
    [{ clocks: undefined }, 'cassandra.clocks', 'not_checked'],
    [{ repairedAt: NOW - 11 * DAY }, 'cassandra.repair', 'warn'],
    [{ repairedAt: undefined }, 'cassandra.repair', 'warn'],
    [{ repairedAt: 'unknown' }, 'cassandra.repair', 'not_checked'],
    [{ nodes: [{ ...NODES[0]!, release: '4.1.9' }, ...NODES.slice(1)] }, 'cassandra.version', 'refuse'],
    [{ nodes: [{ ...NODES[0]!, release: '5.0.7' }, ...NODES.slice(1)] }, 'cassandra.version', 'warn'],
    [{ nodes: NODES.map((node) => ({ ...node, release: '6.0.0' })) }, 'cassandra.version', 'warn'],
    [{ nodes: [...NODES.slice(1), { ...NODES[0]!, isUp: false }] }, 'cassandra.nodes', 'warn'],
  ];
  for (const [over, name, verdict] of planted) {
    const found = judged(over).filter((check) => check.verdict !== 'ok');
    t.match(found, [{ name, verdict, reason: String }], `${name} ${verdict}`);
    t.equal(found.length, 1, `${name}: nothing else`);
  }
});

void t.test('group sync on every node is as good as batch', async (t) => {
  const group = new Map(
    NODES.map(({ address }) => [address, new Map([...SETTINGS, ['commitlog_sync', 'group']])]),
  );
  t.equal(verdicts(judged({ settings: group }))['cassandra.commitlog_sync'], 'ok');
});

void t.test(
  'two data centres pass with the topology that was stated, and fail with few replicas in one',
  async (t) => {
    const all = { kind: 'all_active', active: undefined } as const;
    const both = new Map([
      ['dc1', 3],
      ['dc2', 3],
    ]);
    t.equal(verdicts(judged({ replicas: both, stated: all }, all))['cassandra.topology'], 'ok');
    const few = new Map([
      ['dc1', 3],
      ['dc2', 1],
    ]);
    t.equal(verdicts(judged({ replicas: few, stated: all }, all))['cassandra.replication'], 'refuse');
  },
);

void t.test('settings that a user may not read are not checked, which gives no verdict', async (t) => {
  const checks = judged({ settings: new Map() }).filter(({ verdict }) => verdict !== 'ok');
  t.strictSame([...new Set(checks.map(({ verdict }) => verdict))], ['not_checked']);
  t.equal(checks.length, SETTINGS.size);
});

void t.test('a refusal counts in production alone, and not where it was accepted by name', async (t) => {
  const checks = judged({
    settings: oneWith('paxos_variant', 'v1'),
    replicas: new Map([
      ['dc1', 3],
      ['dc2', 3],
    ]),
  });
  const counted = (isProduction: boolean, accepted: readonly string[]) =>
    verdicts(countedChecks(checks, { isProduction, accepted }));
  const names = ['cassandra.paxos_variant', 'cassandra.topology'] as const;
  t.strictSame(
    names.map((name) => counted(true, [])[name]),
    ['refuse', 'refuse'],
  );
  t.strictSame(
    names.map((name) => counted(false, [])[name]),
    ['warn', 'refuse'],
    'decisions fall apart anywhere',
  );
  t.strictSame(
    names.map((name) => counted(true, [...names])[name]),
    ['warn', 'refuse'],
  );
});

const PREFIX = 'p';
function answers(over: Readonly<Record<string, string>> = {}, replicas = 3, partitions = 12): ClusterAnswers {
  const settingsOf = (name: string) => {
    const topic = TOPICS.find((one) => name === `${PREFIX}.${one}`);
    return new Map(
      Object.entries({
        'min.insync.replicas': '2',
        'unclean.leader.election.enable': 'false',
        'retention.bytes': '-1',
        ...(topic === undefined ? DEAD_LETTERS : KEEPING[topic]),
        ...over,
      }),
    );
  };
  const names = allNames(PREFIX);
  return {
    brokers: 3,
    topics: names.map((name) => ({ name, partitions: name.endsWith('.dlq') ? 1 : partitions, replicas })),
    settings: names.map((name) => ({ name, settings: settingsOf(name) })),
  };
}
const judgedKafka = (given: ClusterAnswers) => judgeKafka(given, { prefix: PREFIX, partitions: 12 });

void t.test('topics as production should have them pass every check', async (t) => {
  t.strictSame([...new Set(judgedKafka(answers()).map(({ verdict }) => verdict))], ['ok']);
});

void t.test('each wrong setting of the topics is found, and nothing else', async (t) => {
  const planted: readonly [ClusterAnswers, string, ServerCheck['verdict']][] = [
    [answers({ 'min.insync.replicas': '1' }), 'kafka.min_insync_replicas', 'refuse'],
    [answers({ 'unclean.leader.election.enable': 'true' }), 'kafka.unclean_leader_election', 'refuse'],
    [answers({ 'cleanup.policy': 'delete' }), 'kafka.cleanup_policy', 'refuse'],
    [answers({ 'retention.ms': '86400000' }), 'kafka.retention', 'warn'],
    [answers({ 'retention.bytes': '1000000' }), 'kafka.retention', 'warn'],
    [answers({}, 2), 'kafka.replication', 'refuse'],
    [answers({}, 3, 6), 'kafka.partitions', 'warn'],
    [{ ...answers(), topics: answers().topics.slice(1) }, 'kafka.topics', 'refuse'],
  ];
  for (const [given, name, verdict] of planted) {
    const found = judgedKafka(given).filter((check) => check.verdict !== 'ok');
    t.match(found, [{ name, verdict, reason: String }], `${name} ${verdict}`);
    t.equal(found.length, 1, `${name}: nothing else`);
  }
  const refused = { ...answers(), settings: answers().topics.map(({ name }) => ({ name })) };
  t.equal(verdicts(judgedKafka(refused))['kafka.min_insync_replicas'], 'not_checked');
});

void t.test('a bucket that keeps versions, kept some, or locks objects is refused', async (t) => {
  t.strictSame(
    [versioningOf(undefined), versioningOf('Enabled'), versioningOf('Suspended')].map(
      ({ verdict }) => verdict,
    ),
    ['ok', 'refuse', 'refuse'],
  );
  t.equal(lockOf('Enabled').verdict, 'refuse');
});

const {
  TAKEMARK_KAFKA: BROKERS = '',
  TAKEMARK_SECURE_KAFKA: SECURE = '',
  TAKEMARK_SECURE_USER: username = '',
  TAKEMARK_SECURE_PASSWORD: password = '',
  TAKEMARK_SECURE_CA: authority = '',
} = process.env;

void t.test(
  'a real Cassandra: what is true of a single node for tests is said of it',
  ADDRESSES === undefined ? { skip: 'TAKEMARK_CASSANDRA is not set' } : {},
  async (t) => {
    const missing = await examineCassandra({ ...connection, keyspace: `${connection.keyspace}_none` });
    t.match(
      missing.find(({ name }) => name === 'cassandra.replication'),
      {
        verdict: 'refuse',
        reason: /migrate/,
      },
    );
    const single = { ...connection, replication: 1 };
    await migrated();
    const found = await examineCassandra(single);
    t.match(verdicts(found), {
      'cassandra.reachable': 'ok',
      'cassandra.version': 'ok',
      'cassandra.paxos_variant': 'ok',
      'cassandra.commitlog_sync': 'ok',
      'cassandra.topology': 'ok',
      'cassandra.clocks': 'ok',
      'cassandra.replication': 'refuse',
      'cassandra.tombstone_failure_threshold': 'warn',
    });
    const wide = `${connection.keyspace}_wide`;
    t.teardown(() => dropKeyspace(wide));
    await t.rejects(migrate({ ...connection, keyspace: wide, replication: 3 }), {
      name: 'CassandraOpenError',
      message: /was not created: TAKEMARK_CASSANDRA_REPLICATION requests 3 replicas in .*, which has 1 node$/,
    });
    const replication = `{'class': 'NetworkTopologyStrategy', '${connection.localDataCenter}': 3}`;
    await withClient((client) => client.execute(`CREATE KEYSPACE ${wide} WITH replication = ${replication}`));
    await t.rejects(migrate({ ...connection, keyspace: wide, replication: 1 }), {
      name: 'CassandraOpenError',
      message: /has 3 replicas in .*, which has 1 node: start nodes, or ALTER KEYSPACE/,
    });
    t.match(
      (await examineCassandra({ ...connection, keyspace: wide })).find(
        ({ name }) => name === 'cassandra.replication',
      ),
      { verdict: 'refuse', reason: /which has 1 node/ },
    );
    await withClient((client) =>
      client.execute(`CREATE TABLE ${wide}.topology (name text PRIMARY KEY, kind text, active text)`),
    );
    t.match(await examineCassandra({ ...connection, keyspace: wide }), [
      { name: 'cassandra.reachable', verdict: 'refuse', reason: /has 3 replicas in .*, which has 1 node$/ },
    ]);
    // A keyspace of another strategy has enough nodes for its own replicas, so the setting does not matter.
    const simple = `${connection.keyspace}_simple`;
    t.teardown(() => dropKeyspace(simple));
    await withClient((client) =>
      client.execute(
        `CREATE KEYSPACE ${simple} WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}`,
      ),
    );
    t.ok((await migrate({ ...connection, keyspace: simple, replication: 3 })).length > 0);
    t.match(await examineCassandra({ ...connection, contactPoints: ['127.0.0.1:1'] }), [
      { name: 'cassandra.reachable', verdict: 'refuse', found: 'no answer' },
    ]);
  },
);

void t.test(
  'a real Kafka: a topic with a wrong setting is found',
  BROKERS === '' ? { skip: 'TAKEMARK_KAFKA is not set' } : {},
  async (t) => {
    const options = {
      brokers: BROKERS.split(','),
      prefix: `doctor-${randomUUID().slice(0, 8)}`,
      partitions: 2,
      replication: 1,
    };
    t.match(verdicts(await examineKafka(options)), { 'kafka.topics': 'refuse' });
    t.match(verdicts(await examineKafka(options)), { 'kafka.topics': 'refuse' }, 'and the look made none');
    await makeTopics(await loadLibrary(), options, [
      {
        topic: `${options.prefix}.erasure`,
        num_partitions: 3,
        replication_factor: 1,
        config: {
          'cleanup.policy': 'delete',
          'min.insync.replicas': '1',
          'unclean.leader.election.enable': 'true',
        },
      },
    ]);
    await createTopics(options);
    const found = await examineKafka(options);
    t.match(verdicts(found), {
      'kafka.topics': 'ok',
      'kafka.version': 'not_checked',
      'kafka.replication': 'refuse',
      'kafka.min_insync_replicas': 'refuse',
      'kafka.unclean_leader_election': 'refuse',
      'kafka.cleanup_policy': 'refuse',
      'kafka.partitions': 'warn',
      'kafka.retention': 'ok',
    });
    t.equal(
      found.find(({ name }) => name === 'kafka.cleanup_policy')?.found,
      `${options.prefix}.erasure: delete`,
      'the others are as they should be',
    );
    t.match(await examineKafka({ ...options, brokers: ['127.0.0.1:1'] }), [
      { name: 'kafka.reachable', verdict: 'refuse', found: 'no answer' },
    ]);
  },
);

void t.test(
  'a real Kafka that demands a password and TLS answers with both, and not without',
  SECURE === '' ? { skip: 'TAKEMARK_SECURE_KAFKA is not set' } : {},
  async (t) => {
    const options = {
      brokers: SECURE.split(','),
      prefix: `doctor-${randomUUID().slice(0, 8)}`,
      partitions: 1,
      replication: 1,
      credentials: { username, password },
      tls: { authority },
    };
    await createTopics(options);
    t.match(verdicts(await examineKafka(options)), {
      'kafka.reachable': 'ok',
      'kafka.topics': 'ok',
      'kafka.min_insync_replicas': 'refuse',
    });
    t.match(await examineKafka({ ...options, credentials: { username, password: `${password}x` } }), [
      { name: 'kafka.reachable', verdict: 'refuse', found: 'credentials refused' },
    ]);
    const { tls: _, ...plain } = options;
    t.match(await examineKafka(plain), [{ name: 'kafka.reachable', verdict: 'refuse' }]);
  },
);

const { TAKEMARK_S3_ENDPOINT: endpoint, TAKEMARK_S3_BUCKET: bucket = '' } = process.env;

void t.test('a list of the bucket is not taken for an answer about its lock', async (t) => {
  const object = '<Contents><Key>a</Key><Size>1</Size></Contents>';
  for (const contents of ['', object, object.repeat(2)]) {
    const server = createServer((request, response) => {
      const isLock = request.url?.includes('object-lock') === true;
      response.writeHead(request.method === 'GET' && !isLock ? 501 : 200, {
        'content-type': 'application/xml',
      });
      response.end(
        isLock
          ? `<?xml version="1.0"?><ListBucketResult><Name>b</Name>${contents}</ListBucketResult>`
          : undefined,
      );
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    t.match(
      verdicts(
        await examineBucket({
          endpoint: `http://127.0.0.1:${String(port)}`,
          region: 'us-east-1',
          bucket: 'b',
          credentials: { accessKey: 'a', secretKey: 'b' },
        }),
      ),
      { 's3.reachable': 'ok', 's3.versioning': 'ok', 's3.object_lock': 'not_checked' },
    );
    server.close();
  }
});

void t.test(
  'a real bucket is looked at, and another key or name is refused',
  endpoint === undefined ? { skip: 'TAKEMARK_S3_ENDPOINT is not set' } : {},
  async (t) => {
    const access = {
      endpoint: endpoint ?? '',
      region: process.env['TAKEMARK_S3_REGION'] ?? 'us-east-1',
      bucket,
      credentials: {
        accessKey: process.env['TAKEMARK_S3_ACCESS_KEY'] ?? '',
        secretKey: process.env['TAKEMARK_S3_SECRET_KEY'] ?? '',
      },
    };
    t.match(verdicts(await examineBucket(access)), {
      's3.reachable': 'ok',
      's3.versioning': 'ok',
      's3.object_lock': 'not_checked',
    });
    const { credentials } = access;
    t.match(await examineBucket({ ...access, credentials: { ...credentials, secretKey: 'x' } }), [
      { name: 's3.reachable', verdict: 'refuse', found: /credentials/ },
    ]);
    t.match(await examineBucket({ ...access, bucket: 'no-such-bucket-here' }), [
      { name: 's3.reachable', verdict: 'refuse', found: 'no such bucket' },
    ]);
  },
);
