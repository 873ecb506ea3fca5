/** Three brokers of Kafka for one step alone, on a network and in a directory of their own. */
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ConsumerClient, loadLibrary } from '../../src/adapters/kafka/client.js';
import { withDeadline } from '../../src/async/deadline.js';

/** Beside those of the other servers. */
const NETWORK = '127.0.2';
const PORT = 19_392;
const COUNT = 3;
const ANSWER_MS = 10_000;
const CLUSTER_ID = 'takemark-brokers-00000';

interface Launched {
  readonly directory: string;
  readonly name: string;
  readonly command: readonly string[];
}

/** The parts of the launcher in `deploy/services/` that work for any server. */
interface Launcher {
  start(server: Launched): void;
  ready(server: Launched, probe: () => Promise<unknown>): Promise<unknown>;
  kill(directory: string): Promise<boolean>;
  freeze(directory: string, frozen: boolean): boolean;
}

export interface Brokers {
  /** `host:port` each; the first one is broker 1. */
  readonly addresses: readonly string[];
  /**
   * Makes a topic. @param replicas brokers of each partition, the leader first
   */
  makeTopic(
    name: string,
    replicas: readonly (readonly number[])[],
    config?: Readonly<Record<string, string>>,
  ): Promise<void>;
  /** A broker keeps its connections and answers nothing, until `thaw`. */
  freeze(broker: number): void;
  thaw(broker: number): void;
  /** Ends all of them; their data goes too. */
  remove(): Promise<void>;
}

/** With Kafka's jars as the launcher has fetched them. */
export async function startBrokers(): Promise<Brokers> {
  const { classPath } = (await import(
    new URL('../../../deploy/services/instances.mjs', import.meta.url).href
  )) as { classPath(scratch: string, kind: string): string };
  const launcher = (await import(
    new URL('../../../deploy/services/processes.mjs', import.meta.url).href
  )) as Launcher;
  const directory = await mkdtemp(join(tmpdir(), 'takemark-brokers-'));
  const scratch = process.env['TAKEMARK_SERVICES_DIR'] ?? join(tmpdir(), 'takemark-services');
  const jars = join(classPath(scratch, 'kafka'), '*');
  const java = ['java', '-cp', jars, '-XX:TieredStopAtLevel=1', '-Xmx320M'];
  const hosts = Array.from({ length: COUNT }, (_, i) => `${NETWORK}.${i + 1}`);
  const addresses = hosts.map((host) => `${host}:${PORT}`);
  const voters = hosts.map((host, i) => `${i + 1}@${host}:${PORT + 1}`).join(',');
  const run = (...args: readonly string[]) => promisify(execFile)(java[0]!, [...java.slice(1), ...args]);
  const servers = hosts.map((_, i) => ({
    directory: join(directory, `broker-${i + 1}`),
    name: `broker-${i + 1}`,
    command: [...java, 'kafka.Kafka', join(directory, `broker-${i + 1}`, 'server.properties')],
  }));
  const remove = async (): Promise<void> => {
    await Promise.all(servers.map((server) => launcher.kill(server.directory)));
    await rm(directory, { recursive: true, force: true });
  };
  try {
    await Promise.all(
      servers.map(async (server, i) => {
        await mkdir(server.directory, { recursive: true, mode: 0o700 });
        const properties = join(server.directory, 'server.properties');
        await writeFile(properties, propertiesOf(i + 1, hosts[i]!, voters, server.directory));
        await run('kafka.tools.StorageTool', 'format', '-t', CLUSTER_ID, '-c', properties);
        launcher.start(server);
      }),
    );
    for (const [i, server] of servers.entries()) await launcher.ready(server, () => probe(addresses[i]!));
  } catch (error) {
    await remove();
    throw error;
  }
  return {
    addresses,
    makeTopic: (name, replicas, config = {}) => createTopic(hosts[0]!, name, replicas, config),
    freeze: (broker) => void launcher.freeze(servers[broker - 1]!.directory, true),
    thaw: (broker) => void launcher.freeze(servers[broker - 1]!.directory, false),
    remove,
  };
}

/** Resolves when a broker answers. */
async function probe(address: string): Promise<void> {
  const client = await withDeadline(
    ConsumerClient.connect(
      await loadLibrary(),
      { brokers: [address] },
      { group: 'probe', fault: () => undefined },
    ),
    5000,
    () => {
      throw new Error('no answer');
    },
  );
  await client.close();
}

/** CreateTopics of Kafka's protocol, version 4: the client library places no replicas. */
async function createTopic(
  host: string,
  name: string,
  replicas: readonly (readonly number[])[],
  config: Readonly<Record<string, string>>,
): Promise<void> {
  const assignments = replicas.flatMap((brokers, partition) => [
    int32(partition),
    int32(brokers.length),
    ...brokers.map(int32),
  ]);
  const body = Buffer.concat([
    int16(19),
    int16(4),
    int32(1),
    text('step'),
    int32(1),
    text(name),
    int32(-1),
    int16(-1),
    int32(replicas.length),
    ...assignments,
    int32(Object.keys(config).length),
    ...Object.entries(config).flatMap(([key, value]) => [text(key), text(value)]),
    int32(ANSWER_MS),
    Buffer.of(0),
  ]);
  const socket = connect({ host, port: PORT, timeout: ANSWER_MS });
  try {
    await once(socket, 'connect');
    socket.write(Buffer.concat([int32(body.length), body]));
    let answer = Buffer.alloc(0);
    while (answer.length < 4 || answer.length < 4 + answer.readInt32BE(0))
      answer = Buffer.concat([answer, ((await once(socket, 'data')) as [Buffer])[0]]);
    // Length, correlation id, throttle time, one topic: its name, the error code.
    const code = answer.readInt16BE(16 + 2 + Buffer.byteLength(name));
    if (code !== 0) throw new Error(`topic ${name} is refused: error ${code}`);
  } finally {
    socket.destroy();
  }
}

function int16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeInt16BE(value);
  return bytes;
}

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}

function text(value: string): Buffer {
  return Buffer.concat([int16(Buffer.byteLength(value)), Buffer.from(value)]);
}

function propertiesOf(id: number, host: string, voters: string, directory: string): string {
  return `process.roles=broker,controller
node.id=${id}
controller.quorum.voters=${voters}
listeners=PLAINTEXT://${host}:${PORT},CONTROLLER://${host}:${PORT + 1}
advertised.listeners=PLAINTEXT://${host}:${PORT}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
log.dirs=${directory}/data
offsets.topic.replication.factor=3
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=3
transaction.state.log.num.partitions=4
share.coordinator.state.topic.replication.factor=3
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=false
broker.session.timeout.ms=9000
initial.broker.registration.timeout.ms=240000
log.cleaner.dedupe.buffer.size=8388608
`;
}
