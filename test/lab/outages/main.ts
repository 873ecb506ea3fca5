/**
 * Causes outages one after the other, and asks a real Prometheus whether the alert of each fires with the right
 * labels, and ends when the outage ends. The rules are those of `deploy/prometheus/alerts.yml` with shorter
 * times. Needs root, because two outages fill a disk in memory.
 */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, statfs, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { ENDPOINTS_FILE } from '../../../src/service/compose/endpoints-file.js';
import { produceRaw } from '../../adapters/kafka-trials.js';
import { makeTlsIdentity } from '../../fixtures/tls.js';
import { runCommand } from '../cluster/command.js';
import { Cluster } from '../cluster/members.js';
import { settingsOnServers } from '../cluster/run.js';
import type { Servers } from '../cluster/servers.js';
import { type Labels, type Prometheus, startPrometheus } from './prometheus.js';

const MAIN = new URL('../../../src/service/main.js', import.meta.url).pathname;
/** The time in which an alert must fire or end, on a busy machine, in milliseconds. */
const LIMIT_MS = 240_000;
const CALL_MS = 200;
const DISK_BYTES = 256 * 1_048_576;
const INODES = 4000;
const DAY_MS = 86_400_000;
/** A certificate warns 7 days before its end only if it is valid for at least 21 days. */
const CERTIFICATE_DAYS = { past: 60, left: 5 };

interface Outage {
  readonly name: string;
  /** Begins the outage. @returns a function that ends it, or undefined if it cannot end */
  begin(): Promise<(() => Promise<void>) | undefined>;
  /** The labels of the alerts that must fire. */
  readonly alerts: readonly Labels[];
}

await runCommand(
  { name: 'outages', kills: () => 0, prepare: async () => ({ servers: { nodes: 1 } }) },
  async ({ servers, ledger, say }) => {
    const violation = (what: string): void => ledger.violation(what);
    const cluster = await clusterOutages(servers, violation, say);
    const machine = await machineOutages(violation, say);
    return { figures: { ...cluster, ...machine } };
  },
);

/** Tries each outage. @returns for each alert, the seconds until it fired */
async function tryOutages(
  prometheus: Prometheus,
  outages: readonly Outage[],
  violation: (what: string) => void,
  say: (line: string) => void,
): Promise<Record<string, number | undefined>> {
  const figures: Record<string, number | undefined> = {};
  for (const { name, begin, alerts } of outages) {
    say(`outage: ${name}`);
    const end = await begin();
    for (const labels of alerts) {
      const seconds = await prometheus.until(labels, true, LIMIT_MS);
      const alert = `${name}: ${JSON.stringify(labels)}`;
      say(`${alert} ${seconds === undefined ? 'did not fire' : `fired after ${seconds} s`}`);
      figures[alert] = seconds;
      if (seconds === undefined) violation(`${alert} did not fire`);
    }
    if (end === undefined) continue;
    await end();
    for (const labels of alerts)
      if ((await prometheus.until(labels, false, LIMIT_MS)) === undefined)
        violation(`${name}: ${JSON.stringify(labels)} still fires after the outage`);
  }
  return figures;
}

async function clusterOutages(
  servers: Servers,
  violation: (what: string) => void,
  say: (line: string) => void,
): Promise<Record<string, number | undefined>> {
  const settings = settingsOnServers(servers);
  const cluster = await Cluster.start({
    settings,
    services: 2,
    consumers: 1,
    onDeath: (name, { how }) => violation(`${name} ended by itself: ${how}`),
  });
  await cluster.ready();
  const [first, second] = cluster.services.map(({ operator }) => new URL(operator).host) as [string, string];
  const consumer = `127.0.0.1:${Number(second.split(':')[1]) + 2}`;
  const prometheus = await startPrometheus({
    takemark: [first, second],
    'takemark-consumers': [consumer],
  });
  const calls = await startCalls(cluster);
  const held = (name: string) => async () => {
    await cluster.hold(name);
    return async () => {
      cluster.release(name);
      await cluster.whenReady(name);
    };
  };
  const killed = (name: string) => async () => {
    await servers.kill(name);
    return () => servers.up(name);
  };
  const brokers = settings['TAKEMARK_KAFKA']!.split(',');
  const topic = `${settings['TAKEMARK_KAFKA_PREFIX']}.usage`;
  try {
    return await tryOutages(
      prometheus,
      [
        {
          name: 'no consumers',
          begin: held('consumer-1'),
          alerts: [{ alertname: 'TakemarkNoConsumers' }, { alertname: 'TakemarkDown', instance: consumer }],
        },
        {
          name: 'a process is down',
          begin: held('service-2'),
          alerts: [{ alertname: 'TakemarkDown', instance: second }],
        },
        {
          name: 'the bucket is away',
          begin: killed('s3-1'),
          alerts: [{ alertname: 'TakemarkDependencyMissing', dependency: 'bucket' }],
        },
        {
          name: 'Kafka is away',
          begin: killed('kafka-1'),
          alerts: [
            { alertname: 'TakemarkDependencyMissing', dependency: 'kafka' },
            { alertname: 'TakemarkNotReady', instance: consumer, reason: 'bus_unavailable' },
            { alertname: 'TakemarkEventsWait', instance: first },
          ],
        },
        {
          name: 'Cassandra is away',
          begin: killed('cassandra-1'),
          alerts: [
            { alertname: 'TakemarkNotReady', instance: first, reason: 'store_unavailable' },
            { alertname: 'TakemarkUnavailable' },
            { alertname: 'TakemarkDependencyErrors', dependency: 'cassandra' },
          ],
        },
        {
          name: 'an event of another writer',
          begin: async () => {
            const headers = { 'schema-version': '1', 'event-id': 'none' };
            await produceRaw({ brokers }, [{ topic, key: 'none', value: Buffer.from('none'), headers }]);
            // The alert covers the last hour, here the last two minutes.
            return async () => undefined;
          },
          alerts: [{ alertname: 'TakemarkDeadLetters', topic: 'usage' }],
        },
      ],
      violation,
      say,
    );
  } finally {
    await calls.stop();
    await prometheus.stop();
    await cluster.stop();
  }
}

/** Calls the first process a few times a second, as partners do at low traffic. */
async function startCalls(cluster: Cluster): Promise<{ stop(): Promise<void> }> {
  const { partner } = cluster.services[0]!;
  const command = async (...args: readonly string[]): Promise<Readonly<Record<string, string>>> =>
    JSON.parse(await cluster.command('operator', ...args, '--json'));
  const { partnerId } = await command('partner', 'create', 'Outages', '--plan', 'volume');
  const { apiKey } = await command('key', 'create', '--partner', partnerId!, '--name', 'outages');
  let isStopped = false;
  const run = async (): Promise<void> => {
    while (!isStopped) {
      const answer = await fetch(`${partner}/v1/proofs`, {
        headers: { 'x-api-key': apiKey! },
        signal: AbortSignal.timeout(15_000),
      }).catch(() => undefined);
      await answer?.arrayBuffer().catch(() => undefined);
      await delay(CALL_MS);
    }
  };
  // Some calls wait while a server hangs, so several run at the same time.
  const running = Promise.all(Array.from({ length: 4 }, run));
  return {
    stop: async () => {
      isStopped = true;
      await running;
    },
  };
}

/** Plays the outages of one machine: a service with its embedded store on a small disk. */
async function machineOutages(
  violation: (what: string) => void,
  say: (line: string) => void,
): Promise<Record<string, number | undefined>> {
  const directory = await mkdtemp(join(tmpdir(), 'takemark-disk-'));
  const data = join(directory, 'data');
  const identity = makeTlsIdentity(
    new Date(Date.now() + CERTIFICATE_DAYS.left * DAY_MS),
    new Date(Date.now() - CERTIFICATE_DAYS.past * DAY_MS),
  );
  const [certificate, key] = [join(directory, 'tls.pem'), join(directory, 'tls.key')];
  await Promise.all([writeFile(certificate, identity.cert), writeFile(key, identity.key), mkdir(data)]);
  const options = `size=${DISK_BYTES},nr_inodes=${INODES},mode=0700`;
  await promisify(execFile)('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', data]);
  const child = spawn(process.execPath, [MAIN], {
    stdio: 'ignore',
    env: {
      PATH: process.env['PATH'],
      TAKEMARK_DATA_DIR: data,
      TAKEMARK_PORT: '0',
      TAKEMARK_OPERATOR_PORT: '0',
      TAKEMARK_TLS_CERT: certificate,
      TAKEMARK_TLS_KEY: key,
    },
  });
  const exited = once(child, 'exit');
  let prometheus: Prometheus | undefined;
  try {
    const instance = `127.0.0.1:${await operatorPort(data)}`;
    prometheus = await startPrometheus({ takemark: [instance] });
    const filled = (resource: string, file: () => Promise<void>, remove: () => Promise<void>): Outage => ({
      name: `no ${resource} are left`,
      begin: async () => {
        await file();
        return remove;
      },
      alerts: [{ alertname: 'TakemarkDiskFills', instance, directory: 'data', resource }],
    });
    const filler = join(data, 'filler');
    return await tryOutages(
      prometheus,
      [
        {
          name: 'a certificate ends in five days',
          begin: async () => undefined,
          alerts: [{ alertname: 'TakemarkCertificateEndsIn7Days', instance, certificate: 'tls' }],
        },
        filled(
          'bytes',
          async () => {
            const { bavail, bsize } = await statfs(data);
            await promisify(execFile)('fallocate', ['-l', String(bavail * bsize), filler]);
          },
          () => rm(filler),
        ),
        filled(
          'inodes',
          async () => {
            await mkdir(filler);
            const { ffree } = await statfs(data);
            for (let i = 0; i < ffree * 0.99; i += 1) await writeFile(join(filler, String(i)), '');
          },
          () => rm(filler, { recursive: true }),
        ),
      ],
      violation,
      say,
    );
  } finally {
    await prometheus?.stop();
    child.kill('SIGTERM');
    await exited;
    await promisify(execFile)('umount', [data]);
    await rm(directory, { recursive: true, force: true });
  }
}

/** Returns the port of the operator listener when the service has started. */
async function operatorPort(directory: string): Promise<number> {
  for (const deadline = Date.now() + LIMIT_MS; Date.now() < deadline; await delay(100)) {
    const text = await readFile(join(directory, ENDPOINTS_FILE), 'utf8').catch(() => undefined);
    if (text !== undefined) return (JSON.parse(text) as { readonly operator: number }).operator;
  }
  throw new Error('the service did not start');
}
