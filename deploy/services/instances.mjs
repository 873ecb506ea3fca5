/**
 * Instances that can be started: one entry each, with its address, its files, its command and the question
 * that shows it is ready.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { countPeers, query } from './cassandra/probe.mjs';
import { produce } from './kafka/probe.mjs';
import { writeObject } from './s3/probe.mjs';
import { password, securityFiles, USER } from './security.mjs';

const HERE = fileURLToPath(new URL('.', import.meta.url));
const MOST_NODES = 3;
/** Any 16 bytes in base64url: what a cluster calls itself. */
const KAFKA_CLUSTER = 'takemark-services-0000';
/** Compiling no further than the first stage: half the processor time of a start. */
const QUICK = '-XX:TieredStopAtLevel=1';

/** Cassandra reaches into the platform, its tools too. */
const ACCESS = readFileSync(join(HERE, 'cassandra/jvm.options'), 'utf8')
  .split('\n')
  .filter((line) => line.startsWith('--add-'));

/**
 * The first three bytes of the addresses: two sets of servers run side by side on networks of their own, with
 * the same ports.
 */
const NETWORK = process.env.TAKEMARK_SERVICES_NETWORK || '127.0.0';
/** Begins the names of network namespaces that somebody has made, one for each instance; by default none. */
const NAMESPACES = process.env.TAKEMARK_SERVICES_NAMESPACES || '';
if (!(NAMESPACES === '' ? /^127\.\d{1,3}\.\d{1,3}$/ : /^10\.\d{1,3}\.\d{1,3}$/).test(NETWORK))
  throw new Error('TAKEMARK_SERVICES_NETWORK must be like 127.0.1, or with namespaces like 10.77.1');
const HOST = `${NETWORK}.1`;
/** With namespaces an address is of one server alone. */
const KAFKA_HOST = NAMESPACES === '' ? HOST : `${NETWORK}.11`;
const S3_HOST = NAMESPACES === '' ? HOST : `${NETWORK}.12`;
const within = (name, command) =>
  NAMESPACES === '' ? command : ['ip', 'netns', 'exec', `${NAMESPACES}${name}`, ...command];
const PAXOS = process.env.TAKEMARK_SERVICES_PAXOS || 'v2';
if (!/^v[12]$/.test(PAXOS)) throw new Error('TAKEMARK_SERVICES_PAXOS must be v1 or v2');
/** JMX listens on 127.0.0.1 whatever the network. */
const JMX_PORT = 17_198 + 10 * Number(NETWORK.split('.')[2]);

export const DATACENTER = 'datacenter1';
/** For clients of the S3 server, which knows one bucket and one key. */
export const S3 = {
  endpoint: `http://${S3_HOST}:18333`,
  region: 'us-east-1',
  bucket: 'takemark-assets',
  accessKey: 'takemark',
  secretKey: 'takemark-services',
};

/**
 * @typedef {object} Instance
 * @property {'cassandra' | 'kafka' | 's3'} kind
 * @property {boolean} named whether it starts only where it is named
 * @property {boolean} secure whether it demands a user name and TLS
 * @property {string} name also the name of its directory
 * @property {string} directory
 * @property {string} address what a client connects to
 * @property {{ first: string, again: string } | undefined} after which instance has to be ready before this
 * one starts: for the first time, and on its data
 * @property {() => Record<string, string>} files contents by name, written before each start
 * @property {(() => void) | undefined} prepare runs after the files are written
 * @property {string[]} command
 * @property {() => Promise<unknown>} probe rejects until the instance does its work
 */

/** Everything that could be running, in the order in which it is started. @returns {Instance[]} */
export function allInstances(scratch) {
  const nodes = Array.from({ length: MOST_NODES }, (_, index) =>
    cassandraNode({ scratch, number: index + 1 }),
  );
  return [
    ...nodes,
    ...[1, 2].map((number) => centreNode({ scratch, number })),
    kafkaBroker({ scratch, secure: false }),
    s3Server({ scratch }),
    secureCassandra({ scratch }),
    kafkaBroker({ scratch, secure: true }),
  ];
}

/**
 * Where the jars of a kind go. A changed pom.xml is another directory, so an upgrade never mixes versions.
 */
export function classPath(scratch, kind) {
  const version = createHash('sha256')
    .update(readFileSync(pomOf(kind)))
    .digest('hex')
    .slice(0, 12);
  return join(process.env.TAKEMARK_SERVICES_JARS || join(scratch, 'jars'), `${kind}-${version}`);
}

export function pomOf(kind) {
  return join(HERE, kind, 'pom.xml');
}

function template(path, values = {}) {
  return readFileSync(join(HERE, path), 'utf8').replaceAll(/\$\{(\w+)\}/g, (match, name) => {
    // A comment may speak of ${...}; a name that is forgotten may not pass.
    if (!Object.hasOwn(values, name)) throw new Error(`${path}: nothing for ${match}`);
    return String(values[name]);
  });
}

function cassandraNode({ scratch, number }) {
  const name = `cassandra-${number}`;
  const node = { address: `${NETWORK}.${number}`, seed: HOST, port: 9042 };
  return cassandra({
    scratch,
    name,
    node,
    ring: { cluster: 'takemark', storagePort: 7000, jmxPort: JMX_PORT + number },
    // Nodes join a ring one at a time; later each needs no more than the seed.
    after: number === 1 ? undefined : { first: `cassandra-${number - 1}`, again: 'cassandra-1' },
    secure: false,
    // A node that answers but has not found the others yet would fail the first statement that needs them.
    probe: async () => {
      const peers = await countPeers(node);
      if (peers < number - 1) throw new Error(`it knows ${peers} other nodes`);
    },
  });
}

/** Node of a cluster with two data centres, dc1 and dc2. */
function centreNode({ scratch, number }) {
  const name = `cassandra-dc${number}`;
  const node = {
    address: `${NETWORK}.${MOST_NODES + number}`,
    seed: `${NETWORK}.${MOST_NODES + 1}`,
    port: 9042,
  };
  return cassandra({
    scratch,
    name,
    node,
    ring: { cluster: 'takemark-centres', storagePort: 7000, jmxPort: JMX_PORT + MOST_NODES + number },
    centre: `dc${number}`,
    after: number === 1 ? undefined : { first: 'cassandra-dc1', again: 'cassandra-dc1' },
    secure: false,
    probe: async () => {
      const peers = await countPeers(node);
      if (peers < number - 1) throw new Error(`it knows ${peers} other nodes`);
    },
  });
}

function secureCassandra({ scratch }) {
  const as = (user, secret) => ({
    address: '127.0.0.1',
    port: 9142,
    security: { ca: readFileSync(securityFiles(scratch).caFile), user, password: secret },
  });
  return cassandra({
    scratch,
    name: 'cassandra-secure',
    node: { address: '127.0.0.1', seed: '127.0.0.1', port: 9142 },
    ring: { cluster: 'takemark-secure', storagePort: 7010, jmxPort: 17_198 },
    after: undefined,
    secure: true,
    probe: async () => {
      const secret = password(scratch);
      try {
        await countPeers(as(USER, secret));
      } catch (error) {
        // The first start has the built-in user only, as soon as it has that one.
        await query(
          as('cassandra', 'cassandra'),
          `CREATE ROLE IF NOT EXISTS ${USER} WITH LOGIN = true AND SUPERUSER = true AND PASSWORD = '${secret}'`,
        );
        throw error;
      }
    },
  });
}

function cassandra({ scratch, name, node, ring, centre, after, secure, probe }) {
  const directory = join(scratch, name);
  const jars = classPath(scratch, 'cassandra');
  return {
    kind: 'cassandra',
    named: centre !== undefined,
    secure,
    name,
    directory,
    address: `${node.address}:${node.port}`,
    after,
    files: () => {
      const security = secure
        ? template('cassandra/secure.yaml', {
            keystore: securityFiles(scratch).keystore,
            password: password(scratch),
          })
        : '';
      return {
        'cassandra.yaml': template('cassandra/cassandra.yaml', {
          ...ring,
          ...node,
          directory,
          security,
          paxos: PAXOS,
          snitch: centre === undefined ? 'SimpleSnitch' : 'GossipingPropertyFileSnitch',
        }),
        ...(centre !== undefined && { 'cassandra-rackdc.properties': `dc=${centre}\nrack=rack1\n` }),
        'jvm.options': template('cassandra/jvm.options'),
        'logback.xml': template('cassandra/logback.xml'),
      };
    },
    prepare: undefined,
    command: within(name, [
      'java',
      `@${join(directory, 'jvm.options')}`,
      `-javaagent:${join(jars, 'jamm-0.4.0.jar')}`,
      `-Dcassandra.config=file://${join(directory, 'cassandra.yaml')}`,
      `-Dcassandra.storagedir=${directory}`,
      `-Dlogback.configurationFile=file://${join(directory, 'logback.xml')}`,
      `-Dcassandra.jmx.local.port=${ring.jmxPort}`,
      '-cp',
      `${directory}:${join(jars, '*')}`,
      'org.apache.cassandra.service.CassandraDaemon',
    ]),
    nodetool: secure
      ? undefined
      : within(name, [
          'java',
          QUICK,
          ...ACCESS,
          `-Duser.home=${directory}`,
          '-cp',
          `${directory}:${join(jars, '*')}`,
          'org.apache.cassandra.tools.NodeTool',
          '-h',
          '127.0.0.1',
          '-p',
          String(ring.jmxPort),
        ]),
    probe,
  };
}

function kafkaBroker({ scratch, secure }) {
  const name = secure ? 'kafka-secure' : 'kafka-1';
  const directory = join(scratch, name);
  // The certificate of the secure ones is for 127.0.0.1.
  const host = secure ? '127.0.0.1' : KAFKA_HOST;
  const port = secure ? 19_192 : 19_092;
  const java = [
    'java',
    '-cp',
    join(classPath(scratch, 'kafka'), '*'),
    QUICK,
    `-Dlog4j2.configurationFile=${join(directory, 'log4j2.properties')}`,
  ];
  const properties = join(directory, 'server.properties');
  return {
    kind: 'kafka',
    named: false,
    secure,
    name,
    directory,
    address: `${host}:${port}`,
    after: undefined,
    files: () => {
      const { keystore, caFile } = securityFiles(scratch);
      const security = secure
        ? template('kafka/secure.properties', { user: USER, password: password(scratch), keystore, caFile })
        : '';
      return {
        'server.properties': template('kafka/server.properties', {
          protocol: secure ? 'SASL_SSL' : 'PLAINTEXT',
          host,
          port,
          controllerPort: port + 1,
          directory,
          security,
        }),
        'log4j2.properties': template('kafka/log4j2.properties'),
      };
    },
    prepare: () => {
      if (existsSync(join(directory, 'data', 'meta.properties'))) return;
      const users = secure
        ? ['256', '512'].flatMap((bits) => [
            '--add-scram',
            `SCRAM-SHA-${bits}=[name=${USER},password=${password(scratch)}]`,
          ])
        : [];
      execFileSync(
        java[0],
        [
          ...java.slice(1),
          'kafka.tools.StorageTool',
          'format',
          '-t',
          KAFKA_CLUSTER,
          '-c',
          properties,
          ...users,
        ],
        { stdio: ['ignore', 'ignore', 2] },
      );
    },
    command: within(name, [...java, '-Xms128M', '-Xmx256M', 'kafka.Kafka', properties]),
    probe: () =>
      produce({
        address: host,
        port,
        ...(secure && {
          security: {
            ca: readFileSync(securityFiles(scratch).caFile),
            user: USER,
            password: password(scratch),
          },
        }),
      }),
  };
}

function s3Server({ scratch }) {
  const directory = join(scratch, 's3-1');
  return {
    kind: 's3',
    named: false,
    secure: false,
    name: 's3-1',
    directory,
    address: new URL(S3.endpoint).host,
    after: undefined,
    files: () => ({
      's3proxy.conf': template('s3/s3proxy.conf', { ...S3, directory }),
      'logback.xml': template('s3/logback.xml'),
    }),
    prepare: () => mkdirSync(join(directory, 'data'), { recursive: true }),
    command: within('s3-1', [
      'java',
      '-cp',
      join(classPath(scratch, 's3'), '*'),
      QUICK,
      '-Xmx128M',
      `-Dlogback.configurationFile=${join(directory, 'logback.xml')}`,
      'org.gaul.s3proxy.Main',
      '--properties',
      join(directory, 's3proxy.conf'),
    ]),
    probe: () => writeObject(S3),
  };
}
