import { type ChildProcess, spawn } from 'node:child_process';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { takemark } from '../../test/cluster/members.js';
import { type Servers, startServers } from '../../test/cluster/servers.js';
import { ServiceProcess, START_FLAGS } from '../service/service-process.js';

const CLI = new URL('../../src/cli/main.js', import.meta.url).pathname;
const KEYSPACE = 'takemark_capacity';
const PREFIX = 'capacity';
const OPERATOR_TOKEN = 'operator-token-of-the-measurement';
const TICKS_PER_SECOND = 100;
/** Batches of events that are on their way between a consumer's poll and its write. */
const SETTLED_MS = 3000;

export const PARTS = ['service', 'consumers', 'cassandra', 'kafka'] as const;
export type Part = (typeof PARTS)[number];
/** CPU seconds since each process began, user and system, of all its threads. */
export type CpuSeconds = Readonly<Record<Part, number>>;

/**
 * A service and one consumer process over one Cassandra node, one Kafka broker and one S3 server. Linux: it
 * reads `/proc`.
 */
export class Deployment {
  readonly service: ServiceProcess;
  readonly #servers: Servers;
  readonly #consumers: ChildProcess;

  private constructor(service: ServiceProcess, servers: Servers, consumers: ChildProcess) {
    this.service = service;
    this.#servers = servers;
    this.#consumers = consumers;
  }

  static async start({
    dataDir,
    profileDir,
    say,
  }: {
    readonly dataDir: string;
    readonly profileDir: string | undefined;
    readonly say: (line: string) => void;
  }): Promise<Deployment> {
    const servers = await startServers({ nodes: 1, measured: true, say });
    try {
      const settings = {
        ...servers.settings,
        TAKEMARK_STORE: 'cassandra',
        TAKEMARK_BUS: 'kafka',
        TAKEMARK_ASSETS: 's3',
        TAKEMARK_CASSANDRA_KEYSPACE: KEYSPACE,
        TAKEMARK_KAFKA_PREFIX: PREFIX,
        TAKEMARK_KAFKA_REPLICATION: '1',
        TAKEMARK_SECRETS_FILE: join(dataDir, 'bundle.json'),
        TAKEMARK_OPERATOR_TOKEN: OPERATOR_TOKEN,
        TAKEMARK_LOG_LEVEL: 'warn',
      };
      await takemark(settings, 'operator', 'secrets', 'init', '--out', settings.TAKEMARK_SECRETS_FILE);
      await takemark(settings, 'operator', 'migrate');
      const consumers = spawn(process.execPath, [...START_FLAGS, CLI, 'consumers'], {
        stdio: 'ignore',
        env: {
          PATH: process.env['PATH'],
          ...settings,
          TAKEMARK_DATA_DIR: join(dataDir, 'consumers'),
          TAKEMARK_OPERATOR_PORT: '0',
        },
      });
      const service = await ServiceProcess.start({
        dataDir: join(dataDir, 'service'),
        settings,
        operatorToken: OPERATOR_TOKEN,
        profileDir,
      });
      return new Deployment(service, servers, consumers);
    } catch (error) {
      await servers.remove();
      throw error;
    }
  }

  /** For a store of one's own beside the service. */
  get cassandra() {
    const { TAKEMARK_CASSANDRA: addresses = '', TAKEMARK_CASSANDRA_DC: localDataCenter = '' } =
      this.#servers.settings;
    return { contactPoints: addresses.split(','), localDataCenter, keyspace: KEYSPACE };
  }

  async cpu(): Promise<CpuSeconds> {
    return {
      service: (await this.service.probe.call('use')).cpuSeconds,
      consumers: cpuOf(this.#consumers.pid!),
      cassandra: cpuOf(await this.#pidOf('cassandra-1')),
      kafka: cpuOf(await this.#pidOf('kafka-1')),
    };
  }

  /** Resolves when every event was published, and what was published has been taken. */
  async idle(): Promise<void> {
    while ((await this.service.metric('takemark_outbox_waiting')) > 0) await sleep(200);
    await sleep(SETTLED_MS);
  }

  /** Bytes on the node's disk by table, compacted, and in the broker's log by topic. */
  async storage(): Promise<Readonly<Record<string, number>>> {
    for (const command of ['flush', 'compact']) {
      await this.#servers.nodetool('cassandra-1', command, KEYSPACE);
      await this.#servers.nodetool('cassandra-1', command, 'system', 'paxos');
    }
    const sizes: Record<string, number> = {};
    const system = join(this.#servers.directory, 'cassandra-1', 'data', 'system');
    for (const name of readdirSync(system).filter((one) => one.startsWith('paxos-')))
      sizes['system.paxos'] = bytesIn(join(system, name), /^(?!backups|snapshots)/);
    const tables = join(this.#servers.directory, 'cassandra-1', 'data', KEYSPACE);
    for (const name of readdirSync(tables))
      sizes[name.slice(0, name.lastIndexOf('-'))] = bytesIn(join(tables, name), /^(?!backups|snapshots)/);
    const topics = join(this.#servers.directory, 'kafka-1', 'data');
    for (const name of readdirSync(topics).filter((one) => one.startsWith(`${PREFIX}.`))) {
      const topic = `topic ${name.slice(PREFIX.length + 1, name.lastIndexOf('-'))}`;
      // Indexes are made in full length in advance.
      sizes[topic] = (sizes[topic] ?? 0) + bytesIn(join(topics, name), /\.log$/);
    }
    return sizes;
  }

  async stop(): Promise<void> {
    this.#consumers.kill('SIGTERM');
    await this.service.stop();
    await this.#servers.remove();
  }

  async #pidOf(name: string): Promise<number> {
    return Number(await readFile(join(this.#servers.directory, name, 'pid'), 'utf8'));
  }
}

function cpuOf(pid: number): number {
  // The program's name is in brackets and may have blanks in it.
  const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ').at(-1)!.split(' ');
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

function bytesIn(directory: string, names: RegExp): number {
  return readdirSync(directory, { withFileTypes: true })
    .filter((entry) => entry.isFile() && names.test(entry.name))
    .reduce((sum, { name }) => sum + statSync(join(directory, name)).size, 0);
}
