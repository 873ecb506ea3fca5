/** Describes the servers: for each its address, files, command, and the probe that shows it is ready. */
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
const MOST_BROKERS = 3;
/** The cluster id of Kafka: any 16 bytes in base64url. */
const KAFKA_CLUSTER = 'takemark-services-0000';
/** Limits Java to the first compiler stage, which halves the processor time of a start. */
const QUICK = '-XX:TieredStopAtLevel=1';

/** The JVM options that give Cassandra and its tools access to Java's internal packages. */
const ACCESS = readFileSync(join(HERE, 'cassandra/jvm.options'), 'utf8')
  .split('\n')
  .filter((line) => line.startsWith('--add-'));

/**
 * The first three bytes of the addresses. With different networks two sets of servers run side by side on the
 * same ports.
 */
const NETWORK = process.env.TAKEMARK_SERVICES_NETWORK || '127.0.0';
/** The prefix of existing network namespaces, one for each server. Empty: no namespaces. */
const NAMESPACES = process.env.TAKEMARK_SERVICES_NAMESPACES || '';
if (!(NAMESPACES === '' ? /^127\.\d{1,3}\.\d{1,3}$/ : /^10\.\d{1,3}\.\d{1,3}$/).test(NETWORK))
  throw new Error('TAKEMARK_SERVICES_NETWORK must be like 127.0.1, or with namespaces like 10.77.1');
const HOST = `${NETWORK}.1`;
/** The number of Kafka brokers. */
export const BROKERS = Number(process.env.TAKEMARK_SERVICES_BROKERS || '1');
if (BROKERS !== 1 && BROKERS !== MOST_BROKERS)
  throw new Error(`TAKEMARK_SERVICES_BROKERS must be 1 or ${MOST_BROKERS}`);
/** Returns the address of a broker. With namespaces each server has an address of its own. */
const brokerHost = (number) => `${NETWORK}.${NAMESPACES === '' ? number : 10 + number}`;
const S3_HOST = NAMESPACES === '' ? HOST : `${NETWORK}.14`;
const within = (name, command) =>
  NAMESPACES === '' ? command : ['ip', 'netns', 'exec', `${NAMESPACES}${name}`, ...command];
/** The path of libfaketime, which makes the servers' clocks adjustable. Empty: they are not. */
const FAKETIME = process.env.TAKEMARK_SERVICES_FAKETIME || '';
/** The name of the file with the seconds that a server's clock is ahead of the machine's, such as `+0`. */
const CLOCK = 'clock';
/** Returns a command with a clock of its own. Monotonic clocks and file times stay the machine's. */
const clocked = (directory, command) =>
  FAKETIME === ''
    ? command
    : [
        'env',
        `LD_PRELOAD=${FAKETIME}`,
        `FAKETIME_TIMESTAMP_FILE=${join(directory, CLOCK)}`,
        'FAKETIME_CACHE_DURATION=1',
        'FAKETIME_DONT_RESET=1',
        'DONT_FAKE_MONOTONIC=1',
        'NO_FAKE_STAT=1',
        // If this is on, waiting threads of a Java program wake up continuously.
        'FAKETIME_FORCE_MONOTONIC_FIX=0',
        ...command,
      ];
/** Returns the clock file of a server that starts: the machine's time. */
const clockFile = () => (FAKETIME === '' ? {} : { [CLOCK]: '+0\n' });
const PAXOS = process.env.TAKEMARK_SERVICES_PAXOS || 'v2';
if (!/^v[12]$/.test(PAXOS)) throw new Error('TAKEMARK_SERVICES_PAXOS must be v1 or v2');
/** JMX listens on 127.0.0.1 in every network, so the port depends on the network. */
const JMX_PORT = 17_198 + 10 * Number(NETWORK.split('.')[2]);

export const DATACENTER = 'datacenter1';
/** The settings of clients of the S3 server, which has one bucket and one key. */
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
 * @property {boolean} named whether it starts only if `--name` names it
 * @property {boolean} secure whether it requires a user name and TLS
 * @property {string} name also the name of its directory
 * @property {string} directory
 * @property {string} address host and port for clients
 * @property {{ first: string, again: string } | undefined} after the instance that must be ready before this
 * one starts for the first time (`first`), or on existing data (`again`)
 * @property {() => Record<string, string>} files contents by name, written before each start
 * @property {(() => void) | undefined} prepare runs after the files are written
 * @property {string[]} command
 * @property {() => Promise<unknown>} probe rejects until the instance is ready
 * @property {Instance | undefined} replacement the same node without its data, which copies the data from the
 * other nodes of the ring
 */

/** Returns every server that can run, in the order of their start. @returns {Instance[]} */
export function allInstances(scratch) {
  const nodes = Array.from({ length: MOST_NODES }, (_, index) =>
    cassandraNode({ scratch, number: index + 1 }),
  );
  return [
    ...nodes,
    ...[1, 2].map((number) => centreNode({ scratch, number })),
    ...Array.from({ length: MOST_BROKERS }, (_, index) => plainBroker({ scratch, number: index + 1 })),
    s3Server({ scratch }),
    secureCassandra({ scratch }),
    secureBroker({ scratch }),
  ];
}

/**
 * Returns the directory for the jars of a kind. Each version of pom.xml has a directory of its own, so an
 * upgrade never mixes versions.
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
    // `${...}` in a comment is left alone. A missing name is an error.
    if (!Object.hasOwn(values, name)) throw new Error(`${path}: nothing for ${match}`);
    return String(values[name]);
  });
}

function cassandraNode({ scratch, number }) {
  const name = `cassandra-${number}`;
  const address = `${NETWORK}.${number}`;
  const others = [1, 2, 3].filter((other) => other !== number).map((other) => `${NETWORK}.${other}`);
  // A node that is its own seed copies no data, so only the first node, which makes the ring, is one. A node
  // that replaces another at its address learns of the ring only from nodes with that address among their seeds.
  const node = { address, seeds: number === 1 ? [HOST] : others, port: 9042 };
  const shared = {
    scratch,
    name,
    node,
    ring: { cluster: 'takemark', storagePort: 7000, jmxPort: JMX_PORT + number },
    secure: false,
    // A node that answers but has not found the others would fail the first statement that needs them.
    probe: async () => {
      const peers = await countPeers(node);
      if (peers < number - 1) throw new Error(`it knows ${peers} other nodes`);
    },
  };
  return {
    ...cassandra({
      ...shared,
      // Nodes join a ring one at a time. On later starts each waits only for the first.
      after: number === 1 ? undefined : { first: `cassandra-${number - 1}`, again: 'cassandra-1' },
    }),
    replacement: cassandra({
      ...shared,
      node: { ...node, seeds: others },
      after: undefined,
      replaces: address,
    }),
  };
}

/** Returns a node of a cluster with two data centres, dc1 and dc2. */
function centreNode({ scratch, number }) {
  const name = `cassandra-dc${number}`;
  const node = {
    address: `${NETWORK}.${MOST_NODES + number}`,
    seeds: [`${NETWORK}.${MOST_NODES + 1}`],
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
    node: { address: '127.0.0.1', seeds: ['127.0.0.1'], port: 9142 },
    ring: { cluster: 'takemark-secure', storagePort: 7010, jmxPort: 17_198 },
    after: undefined,
    secure: true,
    probe: async () => {
      const secret = password(scratch);
      try {
        await countPeers(as(USER, secret));
      } catch (error) {
        // At the first start only the built-in user exists, and not from the beginning.
        await query(
          as('cassandra', 'cassandra'),
          `CREATE ROLE IF NOT EXISTS ${USER} WITH LOGIN = true AND SUPERUSER = true AND PASSWORD = '${secret}'`,
        );
        throw error;
      }
    },
  });
}

function cassandra({ scratch, name, node, ring, centre, after, secure, probe, replaces }) {
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
          seeds: node.seeds.map((seed) => `${seed}:${ring.storagePort}`).join(','),
          directory,
          security,
          paxos: PAXOS,
          snitch: centre === undefined ? 'SimpleSnitch' : 'GossipingPropertyFileSnitch',
        }),
        ...(centre !== undefined && { 'cassandra-rackdc.properties': `dc=${centre}\nrack=rack1\n` }),
        'jvm.options': template('cassandra/jvm.options'),
        'logback.xml': template('cassandra/logback.xml'),
        ...clockFile(),
      };
    },
    prepare: undefined,
    command: within(
      name,
      clocked(directory, [
        'java',
        `@${join(directory, 'jvm.options')}`,
        `-javaagent:${join(jars, 'jamm-0.4.0.jar')}`,
        `-Dcassandra.config=file://${join(directory, 'cassandra.yaml')}`,
        `-Dcassandra.storagedir=${directory}`,
        `-Dlogback.configurationFile=file://${join(directory, 'logback.xml')}`,
        `-Dcassandra.jmx.local.port=${ring.jmxPort}`,
        // Time to find the others, also on a busy machine. A node that has not found them copies no data.
        ...(replaces === undefined
          ? []
          : [`-Dcassandra.replace_address_first_boot=${replaces}`, '-Dcassandra.ring_delay_ms=15000']),
        '-cp',
        `${directory}:${join(jars, '*')}`,
        'org.apache.cassandra.service.CassandraDaemon',
      ]),
    ),
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

/** Returns a broker of the cluster. Each broker is a controller, too. */
function plainBroker({ scratch, number }) {
  const port = 19_092;
  return kafkaBroker({
    scratch,
    name: `kafka-${number}`,
    number,
    // Kafka's default of 9 s if a broker can be lost. A single broker may hang for longer and is not lost.
    cluster: { count: BROKERS, hostOf: brokerHost, sessionMs: BROKERS === 1 ? 60_000 : 9000 },
    port,
  });
}

function secureBroker({ scratch }) {
  return kafkaBroker({
    scratch,
    name: 'kafka-secure',
    number: 1,
    // The certificate is valid only for this address.
    cluster: { count: 1, hostOf: () => '127.0.0.1', sessionMs: 60_000 },
    port: 19_192,
    secure: true,
  });
}

function kafkaBroker({ scratch, name, number, cluster: { count, hostOf, sessionMs }, port, secure = false }) {
  const directory = join(scratch, name);
  const host = hostOf(number);
  const controllerPort = port + 1;
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
          number,
          voters: Array.from(
            { length: count },
            (_, index) => `${index + 1}@${hostOf(index + 1)}:${controllerPort}`,
          ).join(','),
          host,
          port,
          controllerPort,
          replicas: count,
          inSync: Math.max(1, count - 1),
          sessionMs,
          directory,
          security,
        }),
        'log4j2.properties': template('kafka/log4j2.properties'),
        ...clockFile(),
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
    command: within(name, clocked(directory, [...java, '-Xms128M', '-Xmx256M', 'kafka.Kafka', properties])),
    probe: () =>
      produce({
        number,
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
