import { type ChildProcess, spawn } from 'node:child_process';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { takemark } from '../../test/lab/cluster/members.js';
import { type Servers, startServers } from '../../test/lab/cluster/servers.js';
import { ServiceProcess, START_FLAGS } from '../service/service-process.js';
import { BucketCounter, type BucketUse } from './bucket-counter.js';

const CLI = new URL('../../src/cli/main.js', import.meta.url).pathname;
const KEYSPACE = 'takemark_capacity';
const PREFIX = 'capacity';
const OPERATOR_TOKEN = 'operator-token-of-the-measurement';
const TICKS_PER_SECOND = 100;
/** The wait in milliseconds for batches of events between a consumer's poll and its write. */
const SETTLED_MS = 3000;

export const PARTS = ['service', 'consumers', 'cassandra', 'kafka'] as const;
export type Part = (typeof PARTS)[number];
/** The CPU seconds of each part since its start, user and system. `service` and `consumers` include children. */
export type CpuSeconds = Readonly<Record<Part, number>>;

type Settings = Readonly<Record<string, string>>;

/**
 * A service and one consumer process over one Cassandra node, one Kafka broker and one S3 server, whose requests
 * are counted. The auditor makes no pass of its own. It needs Linux, because it reads `/proc`.
 */
export class Deployment {
  readonly service: ServiceProcess;
  readonly #servers: Servers;
  readonly #consumers: ChildProcess;
  readonly #bucket: BucketCounter;
  readonly #settings: Settings;
  readonly #dataDir: string;
  readonly #others: ServiceProcess[] = [];

  private constructor(
    service: ServiceProcess,
    servers: Servers,
    consumers: ChildProcess,
    bucket: BucketCounter,
    settings: Settings,
    dataDir: string,
  ) {
    this.service = service;
    this.#servers = servers;
    this.#consumers = consumers;
    this.#bucket = bucket;
    this.#settings = settings;
    this.#dataDir = dataDir;
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
    let bucket: BucketCounter | undefined;
    try {
      bucket = await BucketCounter.start(new URL(servers.settings['TAKEMARK_S3_ENDPOINT']!));
      const settings = {
        ...servers.settings,
        TAKEMARK_S3_ENDPOINT: bucket.endpoint,
        TAKEMARK_STORE: 'cassandra',
        TAKEMARK_BUS: 'kafka',
        TAKEMARK_ASSETS: 's3',
        TAKEMARK_CASSANDRA_KEYSPACE: KEYSPACE,
        TAKEMARK_KAFKA_PREFIX: PREFIX,
        TAKEMARK_SECRETS_FILE: join(dataDir, 'bundle.json'),
        TAKEMARK_OPERATOR_TOKEN: OPERATOR_TOKEN,
        TAKEMARK_LOG_LEVEL: 'warn',
        TAKEMARK_AUDIT_RATE: '0',
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
      return new Deployment(service, servers, consumers, bucket, settings, dataDir);
    } catch (error) {
      bucket?.stop();
      await servers.remove();
      throw error;
    }
  }

  /** Returns the connection options for a separate store beside the service. */
  get cassandra() {
    const { TAKEMARK_CASSANDRA: addresses = '', TAKEMARK_CASSANDRA_DC: localDataCenter = '' } =
      this.#servers.settings;
    return { contactPoints: addresses.split(','), localDataCenter, keyspace: KEYSPACE };
  }

  /** Runs work in another service over the same servers, so that the measured one has nothing of it in memory. */
  async elsewhere<Result>(work: (service: ServiceProcess) => Promise<Result>): Promise<Result> {
    const other = await this.startAnother('elsewhere');
    try {
      return await work(other);
    } finally {
      await other.stop();
    }
  }

  /** Starts another service over the same servers, which ends with the deployment at the latest. */
  async startAnother(name: string): Promise<ServiceProcess> {
    const other = await ServiceProcess.start({
      dataDir: join(this.#dataDir, name),
      settings: this.#settings,
      operatorToken: OPERATOR_TOKEN,
    });
    this.#others.push(other);
    return other;
  }

  /** The requests to the bucket since the start. */
  get bucket(): BucketUse {
    return this.#bucket.use;
  }

  /** Returns the CPU seconds of a service and of its children, which are the processes that read credentials. */
  cpuOf(service: ServiceProcess): number {
    return cpuOfTree(service.probe.process.pid!);
  }

  async cpu(): Promise<CpuSeconds> {
    return {
      service: this.cpuOf(this.service),
      consumers: cpuOfTree(this.#consumers.pid!),
      cassandra: cpuOf(await this.#pidOf('cassandra-1')),
      kafka: cpuOf(await this.#pidOf('kafka-1')),
    };
  }

  /** Resolves when every event was published, and what was published has been taken. */
  async idle(): Promise<void> {
    while ((await this.service.metric('takemark_outbox_waiting')) > 0) await sleep(200);
    await sleep(SETTLED_MS);
  }

  /** Returns the bytes on the node's disk by table, compacted, and those in the broker's log by topic. */
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
    await Promise.all([this.service, ...this.#others].map((service) => service.stop()));
    this.#bucket.stop();
    await this.#servers.remove();
  }

  async #pidOf(name: string): Promise<number> {
    return Number(await readFile(join(this.#servers.directory, name, 'pid'), 'utf8'));
  }
}

/** Returns the CPU seconds of a process and its descendants, including those that have ended. */
function cpuOfTree(root: number): number {
  const stats = new Map(
    readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .flatMap((pid) => {
        try {
          return [[Number(pid), statOf(Number(pid))] as const];
        } catch {
          // The process has ended meanwhile.
          return [];
        }
      }),
  );
  const ofTree = (pid: number): number =>
    [...stats]
      .filter(([, [, parent]]) => Number(parent) === pid)
      .reduce((sum, [child]) => sum + ofTree(child), secondsOf(stats.get(pid)!.slice(11, 15)));
  return ofTree(root);
}

function cpuOf(pid: number): number {
  return secondsOf(statOf(pid).slice(11, 13));
}

function secondsOf(ticks: readonly string[]): number {
  return ticks.reduce((sum, each) => sum + Number(each), 0) / TICKS_PER_SECOND;
}

/** Returns the fields after the program's name, which is in brackets and may have blanks in it. */
function statOf(pid: number): readonly string[] {
  return readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ').at(-1)!.split(' ');
}

function bytesIn(directory: string, names: RegExp): number {
  return readdirSync(directory, { withFileTypes: true })
    .filter((entry) => entry.isFile() && names.test(entry.name))
    .reduce((sum, { name }) => sum + statSync(join(directory, name)).size, 0);
}
