/**
 * `npm run chaos [-- --kills n] [--minutes n] [--faults all|name,...] [--paxos v1|v2] [--nodes 1|3] [--seed
 * n] [--restore yes|no] [--out file] [--keep]`: runs a cluster under load. First its processes are killed and
 * its servers stopped. Then it meets faults that the seed selects. At the end an older backup may be
 * restored.
 */
import { existsSync } from 'node:fs';
import { defined } from '../../../src/core/domain/defined.js';
import { seeded } from '../../fixtures/service.js';
import { BucketProxy } from './bucket-way.js';
import { type Prepared, runCommand, type Values } from './command.js';
import { compose, type Fault, faultsNamed, isCassandra } from './composition.js';
import { disturb, faultsOf, type Means } from './disturb.js';
import { cassandraOutage, kafkaOutage, killProcesses } from './faults.js';
import { FAKETIME } from './members.js';
import { type Network, openNetwork } from './network.js';
import { buildNextVersion } from './next-version.js';
import { restoreBackup } from './restored.js';
import { atWork, check, type Run, recovered, withRun } from './run.js';
import { namesOf, type PaxosVariant } from './servers.js';

const CASSANDRA_SECONDS = 6;
const KAFKA_SECONDS = 8;
const SERVICES = ['service-1', 'service-2', 'service-3'];
const MEMBERS = [...SERVICES, 'consumer-1', 'consumer-2'];
const OF_ROOT: ReadonlySet<Fault> = new Set(['links', 'delay', 'disk']);
/** The device that delays packets. */
const TUN = '/dev/net/tun';
/** The duration of a run, in minutes, from which it gets three nodes and the restore of a backup. */
const LONG_RUN = 3;
/** The time that a kill takes, in milliseconds. */
const KILL_MS = 1500;
const MOST_MINUTES = 24 * 60;
/** The number of networks to select from. With so many, concurrent runs on one machine rarely select the same one. */
const NETWORKS = 200;
/** The last numbers of the addresses. The launcher assigns the numbers of the servers. */
const HOSTS = {
  'cassandra-1': 1,
  'cassandra-2': 2,
  'cassandra-3': 3,
  'kafka-1': 11,
  'kafka-2': 12,
  'kafka-3': 13,
  's3-1': 14,
  ...Object.fromEntries(MEMBERS.map((name, index) => [name, 21 + index])),
};

interface Ready extends Prepared {
  readonly faults: readonly Fault[];
  readonly minutes: number;
  readonly nodes: 1 | 3;
  readonly paxos: PaxosVariant;
  readonly network?: Network | undefined;
  /** Whether the run restores an older backup at the end. */
  readonly restores: boolean;
}

/** Returns what the machine or the run lacks for a fault, or undefined if it lacks nothing. */
function lackFor(fault: Fault, nodes: 1 | 3): string | undefined {
  if (fault === 'replace' && nodes === 1) return 'a lone node cannot be replaced';
  if (fault === 'clock' && !existsSync(FAKETIME)) return 'faketime is not installed';
  if (fault === 'delay' && !existsSync(TUN)) return `there is no ${TUN}`;
  if (OF_ROOT.has(fault) && (process.platform !== 'linux' || process.getuid?.() !== 0))
    return `${fault === 'disk' ? 'small disks' : 'network namespaces'} are made by root, on Linux`;
  return undefined;
}

await runCommand(
  {
    name: 'chaos',
    options: { minutes: '0', faults: '', paxos: '', nodes: '', restore: '' },
    kills: ({ minutes: text }) => (Number(text) > 0 ? 0 : 200),
    prepare,
  },
  async ({ kills, seed, servers, ledger, say, keep }, ready) => {
    const { faults, minutes, nodes, paxos, network } = ready;
    say(`Paxos ${paxos}, ${nodes} of Cassandra's nodes and brokers, faults: ${faults.join(', ') || 'kills'}`);
    const random = seeded(seed);
    const bucket = await BucketProxy.open(
      servers.settings['TAKEMARK_S3_ENDPOINT']!,
      network?.own ?? '127.0.0.1',
    );
    const next = faults.includes('version') ? await buildNextVersion() : undefined;
    try {
      return await withRun(
        {
          servers,
          seed,
          ledger,
          say,
          width: 3,
          lasts: kills * KILL_MS + minutes * 60_000,
          keep,
          clocks: faults.includes('clock'),
          network,
          over: { TAKEMARK_S3_ENDPOINT: bucket.endpoint },
        },
        async (run) => {
          if (kills > 0) await killsAndOutages(run, ready, kills, random);
          const recoveredMs =
            minutes === 0
              ? undefined
              : await composed(run, ready, seed, { bucket, network, next: next?.root });
          await check(run);
          if (ready.restores) await restoreBackup(run, namesOf(nodes).filter(isCassandra), seed);
          return defined({ paxos, kills: run.cluster.kills, recoveredMs });
        },
      );
    } finally {
      await bucket.close();
      await next?.remove();
    }
  },
);

async function prepare(seed: number, values: Values): Promise<Ready> {
  const minutes = Number(values['minutes']);
  if (!(minutes >= 0 && minutes <= MOST_MINUTES)) throw new Error(`--minutes are 0 to ${MOST_MINUTES}`);
  const nodes = Number(values['nodes'] || (minutes >= LONG_RUN ? 3 : 1));
  if (nodes !== 1 && nodes !== 3) throw new Error('--nodes are 1 or 3');
  const isAll = (values['faults'] || 'all') === 'all';
  const wanted = minutes > 0 || values['faults'] !== '' ? faultsNamed(values['faults'] || 'all') : [];
  const lacks = wanted.flatMap((fault) => lackFor(fault, nodes) ?? []);
  // A named fault must be playable. `all` means every fault that this machine can play.
  if (lacks.length > 0 && !isAll) throw new Error(lacks.join('; '));
  for (const lack of lacks) console.log(`NOT CHECKED: ${lack}`);
  const faults = wanted.filter((fault) => lackFor(fault, nodes) === undefined);
  const restore = values['restore'] || (wanted.length > 0 && isAll && minutes >= LONG_RUN ? 'yes' : 'no');
  if (restore !== 'yes' && restore !== 'no') throw new Error('--restore is yes or no');
  const paxos = values['paxos'] || (seed % 2 === 0 ? 'v2' : 'v1');
  if (paxos !== 'v1' && paxos !== 'v2') throw new Error('--paxos is v1 or v2');
  const network = faults.some((fault) => fault === 'links' || fault === 'delay')
    ? await openNetwork(seed % NETWORKS, HOSTS)
    : undefined;
  return {
    faults,
    minutes,
    nodes,
    paxos,
    network,
    restores: restore === 'yes',
    servers: {
      nodes,
      paxos,
      network,
      clocks: faults.includes('clock'),
      disks: faults.includes('disk') ? namesOf(nodes) : [],
    },
    close: async () => network?.remove(),
  };
}

async function killsAndOutages(
  run: Run,
  { nodes, minutes }: Ready,
  kills: number,
  random: () => number,
): Promise<void> {
  const kill = (share: number) => killProcesses(run, Math.round(kills * share), random);
  // One node of three has no quorum.
  const away = nodes === 1 ? ['cassandra-1'] : ['cassandra-2', 'cassandra-3'];
  await atWork(
    run,
    async () => {
      await kill(0.3);
      await kafkaOutage(run, KAFKA_SECONDS);
      await kill(0.3);
      await cassandraOutage(run, away, CASSANDRA_SECONDS);
      await kill(0.4);
    },
    // One month is kept for the composed faults.
    minutes > 0 ? 1 : 0,
  );
}

async function composed(
  run: Run,
  { nodes, minutes, faults }: Ready,
  seed: number,
  means: Omit<Means, 'parties'>,
): Promise<number> {
  const parties = { members: MEMBERS, servers: namesOf(nodes) };
  const plan = compose({ seed, seconds: minutes * 60, faults, parties });
  for (const planned of plan) run.demanded.add(faultsOf(planned));
  return recovered(run, minutes * 60_000, async () => {
    if (means.next !== undefined) await run.cluster.migrate(means.next);
    await disturb(run, { ...means, parties }, plan);
  });
}
