import { DomainError } from '../../../core/domain/errors.js';
import { checked, passed, type ServerCheck, unchecked } from '../../domain/server-check.js';
import { ClockWatch, nodeClocks } from './driver/clock-watch.js';
import {
  type ClusterNode,
  type ConnectionOptions,
  connect,
  isRefusedUser,
  numberIn,
  type Session,
  textIn,
  within,
} from './driver/session.js';
import {
  nodesFault,
  replicasOf,
  statedTopology,
  type Topology,
  topologyFault,
  topologyOf,
} from './driver/topology.js';

/** The answers of a cluster's nodes about themselves, as far as this user may read them. */
export interface CassandraFacts {
  /** The nodes of every data centre. */
  readonly nodes: readonly ClusterNode[];
  /** The settings by name, for each node of the local data centre that could be read. */
  readonly settings: ReadonlyMap<string, ReadonlyMap<string, string>>;
  readonly replicas: ReadonlyMap<string, number>;
  readonly stated: Topology | undefined;
  /** The differences of clocks, in seconds. */
  readonly clocks: { readonly processSeconds: number; readonly nodesSeconds: number } | undefined;
  /** The shortest time in seconds that a table keeps removals, of the tables whose rows do not all expire. */
  readonly gcGraceSeconds: number | undefined;
  /** The end of the last successful repair in unix seconds. Undefined without one, `unknown` if it cannot be read. */
  readonly repairedAt: number | undefined | 'unknown';
}

export interface CassandraExpectations {
  readonly localDataCenter: string;
  readonly topology: Topology;
  /** The present time in unix seconds. */
  readonly now: number;
}

const WARN_SECONDS = 5;
const STOP_SECONDS = 20;
const LEAST_REPLICAS = 3;
/** The least `tombstone_failure_threshold`: Cassandra's default, which the layout of tables and reads assumes. */
const LEAST_TOMBSTONES = 100_000;
/** The longest time in milliseconds that a start waits for an answer that it does not need. */
const ANSWER_MS = 3000;
const REPAIRS_READ = 5000;
/** The least seconds that a checked table keeps removals. The rows of tables with less expire in hours. */
const LEAST_GRACE_SECONDS = 86_400;

const SETTINGS = 'SELECT name, value FROM system_views.settings';
const REPAIRS = `SELECT keyspace_name, finished_at, exception_message FROM system_distributed.parent_repair_history LIMIT ${REPAIRS_READ}`;
const GC_GRACE = 'SELECT gc_grace_seconds FROM system_schema.tables WHERE keyspace_name = ?';
/** The settings that are checked. The others, such as files of passwords, are not kept. */
const LOOKED_AT: ReadonlySet<string> = new Set([
  'paxos_variant',
  'paxos_state_purging',
  'commitlog_sync',
  'internode_timeout',
  'tombstone_failure_threshold',
]);

/** Looks at the servers of a keyspace. @returns one check that says so where no node is reached */
export async function examineCassandra(
  options: ConnectionOptions & { readonly keyspace: string },
): Promise<readonly ServerCheck[]> {
  const wanted = 'a node that responds and accepts the credentials';
  let session: Session;
  try {
    session = await connect(options);
  } catch (error) {
    const found = isRefusedUser(error) ? 'credentials refused' : 'no answer';
    return [checked('cassandra.reachable', { found, wanted }, 'refuse', 'no other check could run')];
  }
  try {
    const facts = await readFacts(session, options);
    return [
      passed('cassandra.reachable', `${facts.nodes.length} nodes`, wanted),
      ...judgeCassandra(facts, {
        localDataCenter: options.localDataCenter,
        topology: topologyOf(options),
        now: Math.floor(Date.now() / 1000),
      }),
    ];
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    const found = 'nodes that do not respond for the keyspace';
    const few = await replicasOf(session, options.keyspace).then(
      (replicas) =>
        nodesFault(session.nodes(), options.localDataCenter, replicas.get(options.localDataCenter) ?? 0),
      () => undefined,
    );
    const reason = few === undefined ? 'no other check could run' : `the keyspace has ${few}`;
    return [checked('cassandra.reachable', { found, wanted }, 'refuse', reason)];
  } finally {
    await session.close();
  }
}

async function readFacts(
  session: Session,
  { keyspace, localDataCenter }: { readonly keyspace: string; readonly localDataCenter: string },
): Promise<CassandraFacts> {
  const nodes = session.nodes();
  const settings = new Map<string, ReadonlyMap<string, string>>();
  const readSettings = async (address: string): Promise<void> => {
    const rows = await within(ANSWER_MS, session.rowsOf(address, SETTINGS));
    const known = rows
      .map((row) => [textIn(row, 'name') ?? '', textIn(row, 'value') ?? 'null'] as const)
      .filter(([name]) => LOOKED_AT.has(name));
    settings.set(address, new Map(known));
  };
  // A node that hangs, or keeps its settings to itself, is left out.
  await Promise.allSettled(
    nodes
      .filter(({ isUp, dataCenter }) => isUp && dataCenter === localDataCenter)
      .map(({ address }) => readSettings(address)),
  );
  const watch = new ClockWatch(nodeClocks(session, localDataCenter), { now: () => Date.now() });
  const hasLooked = await watch.look().then(
    () => true,
    () => false,
  );
  const replicas = await replicasOf(session, keyspace);
  return {
    nodes,
    settings,
    replicas,
    stated: await statedTopology(session, keyspace),
    clocks: hasLooked ? watch : undefined,
    gcGraceSeconds: minOf(
      (await session.rows(GC_GRACE, [keyspace]))
        .map((row) => numberIn(row, 'gc_grace_seconds')!)
        .filter((seconds) => seconds >= LEAST_GRACE_SECONDS),
    ),
    repairedAt: await within(ANSWER_MS, session.rows(REPAIRS)).then(
      (rows) => lastRepair(rows.map((row) => ({ ...row })) as unknown as readonly Repair[], keyspace),
      () => 'unknown' as const,
    ),
  };
}

interface Repair {
  readonly keyspace_name: string | null;
  readonly finished_at: Date | null;
  readonly exception_message: string | null;
}

function lastRepair(repairs: readonly Repair[], keyspace: string): number | undefined | 'unknown' {
  // More than are read: the last one may be among the rest.
  if (repairs.length === REPAIRS_READ) return 'unknown';
  const ends = repairs
    .filter((repair) => repair.keyspace_name === keyspace && repair.exception_message === null)
    .flatMap(({ finished_at: end }) => (end === null ? [] : [Math.floor(end.getTime() / 1000)]));
  return ends.length === 0 ? undefined : Math.max(...ends);
}

/** Returns the checks of the facts, with their results. */
export function judgeCassandra(
  facts: CassandraFacts,
  expected: CassandraExpectations,
): readonly ServerCheck[] {
  return [
    versionCheck(facts),
    checked(
      'cassandra.nodes',
      {
        found: words(facts.nodes.filter(({ isUp }) => !isUp).map(({ address }) => address)),
        wanted: 'none down',
      },
      'warn',
      facts.nodes.every(({ isUp }) => isUp) ? undefined : 'these nodes are down and were not checked',
    ),
    ...settingChecks(facts),
    ...replicationChecks(facts, expected),
    clockCheck(facts),
    repairCheck(facts, expected),
  ];
}

function versionCheck({ nodes }: CassandraFacts): ServerCheck {
  const releases = [...new Set(nodes.map(({ release }) => release))].toSorted();
  const wanted = '5.0.x on every node';
  const found = words(releases);
  const series = releases.map((release) => release.split('.').slice(0, 2).map(Number));
  if (series.some(([major = 0]) => !(major >= 5)))
    return checked(
      'cassandra.version',
      { found, wanted },
      'refuse',
      'the service was never tested with releases before 5.0',
    );
  const isOther = series.some(([major, minor]) => major !== 5 || minor !== 0);
  const fault = isOther
    ? 'the service was never tested with releases after 5.0'
    : releases.length > 1
      ? 'the nodes have different releases: until the upgrade is complete, run no repair and change no schema'
      : undefined;
  return checked('cassandra.version', { found, wanted }, 'warn', fault);
}

function settingChecks({ settings }: CassandraFacts): readonly ServerCheck[] {
  const check = (
    name: string,
    wanted: string,
    verdict: 'warn' | 'refuse',
    faultOf: (value: string) => string | undefined,
  ): ServerCheck => {
    const values = [...settings.values()].map((of) => of.get(name));
    const known = values.filter((value) => value !== undefined);
    if (known.length === 0 || known.length < values.length)
      return unchecked(
        `cassandra.${name}`,
        wanted,
        'system_views.settings cannot be read: GRANT SELECT ON KEYSPACE system_views',
      );
    const different = [...new Set(known)].toSorted();
    const fault =
      different.map(faultOf).find((found) => found !== undefined) ??
      (different.length > 1 ? 'the nodes differ' : undefined);
    return checked(`cassandra.${name}`, { found: words(different), wanted }, verdict, fault);
  };
  return [
    check('paxos_variant', 'v2', 'refuse', (value) =>
      value === 'v2'
        ? undefined
        : 'other variants need twice the round trips, and do not repair unfinished decisions when nodes join or leave',
    ),
    check('paxos_state_purging', 'legacy', 'warn', (value) =>
      value === 'legacy'
        ? undefined
        : 'other values need regular Paxos repairs, and the service was never tested with them',
    ),
    check('commitlog_sync', 'batch or group', 'refuse', (value) =>
      value === 'batch' || value === 'group'
        ? undefined
        : 'a node acknowledges a write before it is on disk: a power cut loses up to 10 s of erasures, charges and Paxos promises',
    ),
    check('internode_timeout', 'false', 'warn', (value) =>
      value === 'false'
        ? undefined
        : 'every statement that reaches a node whose clock is a few seconds slow times out',
    ),
    check('tombstone_failure_threshold', `${LEAST_TOMBSTONES} or more`, 'warn', (value) =>
      Number(value) >= LEAST_TOMBSTONES
        ? undefined
        : 'with a lower value, reads across many deleted rows fail earlier',
    ),
  ];
}

function replicationChecks(
  { replicas, stated, nodes }: CassandraFacts,
  { localDataCenter, topology }: CassandraExpectations,
): readonly ServerCheck[] {
  if (replicas.size === 0)
    return [
      checked(
        'cassandra.replication',
        { found: 'no keyspace', wanted: 'a keyspace' },
        'refuse',
        'run takemark operator migrate',
      ),
    ];
  const centres = [...new Set(nodes.map(({ dataCenter }) => dataCenter))].toSorted();
  const found = words([...replicas].map(([name, count]) => `${name}: ${count}`).toSorted());
  const local = replicas.get(localDataCenter) ?? 0;
  const least = Math.min(...replicas.values());
  const replication = replicas.has('*')
    ? 'its replication strategy ignores data centres: ALTER KEYSPACE to NetworkTopologyStrategy'
    : local === 0
      ? `no replicas in ${localDataCenter}, where this process is`
      : least < LEAST_REPLICAS
        ? 'after the loss or restart of one node, there is no quorum, or no copy of the data'
        : nodesFault(nodes, localDataCenter, local);
  const fault = topologyFault(replicas, stated, topology);
  return [
    checked(
      'cassandra.replication',
      { found, wanted: `NetworkTopologyStrategy with ${LEAST_REPLICAS} or more in each data centre` },
      'refuse',
      replication,
    ),
    checked(
      'cassandra.topology',
      {
        found: `${topology.kind}, replicas in ${words([...replicas.keys()].toSorted())}, nodes in ${words(centres)}`,
        wanted: 'the topology that was stated for the keyspace, in every process',
      },
      'refuse',
      fault,
    ),
  ];
}

function clockCheck({ clocks }: CassandraFacts): ServerCheck {
  const wanted = `this machine within ${WARN_SECONDS} s of the nodes, and the nodes within ${WARN_SECONDS} s of each other`;
  if (clocks === undefined) return unchecked('cassandra.clocks', wanted, 'no node reported its time');
  const { processSeconds, nodesSeconds } = clocks;
  const most = Math.max(Math.abs(processSeconds), Math.abs(nodesSeconds));
  return checked(
    'cassandra.clocks',
    {
      found: `this machine is ${processSeconds} s ahead of the nodes, and the worst node is ${nodesSeconds} s ahead of the others`,
      wanted,
    },
    most > STOP_SECONDS ? 'refuse' : 'warn',
    most > WARN_SECONDS
      ? `beyond ${STOP_SECONDS} s, a process is not ready and stops its cleanup: synchronise the clocks with NTP`
      : undefined,
  );
}

function repairCheck(
  { replicas, gcGraceSeconds, repairedAt }: CassandraFacts,
  { now }: CassandraExpectations,
): ServerCheck {
  const days = gcGraceSeconds === undefined ? undefined : Math.floor(gcGraceSeconds / 86_400);
  const wanted = `a repair within gc_grace_seconds${days === undefined ? '' : ` (${days} days)`}`;
  if ([...replicas.values()].every((count) => count <= 1))
    return passed('cassandra.repair', 'one replica: nothing to repair', wanted);
  if (repairedAt === 'unknown' || gcGraceSeconds === undefined)
    return unchecked(
      'cassandra.repair',
      wanted,
      'system_distributed.parent_repair_history cannot be read, or is too long',
    );
  const age = repairedAt === undefined ? undefined : now - repairedAt;
  return checked(
    'cassandra.repair',
    {
      found: age === undefined ? 'no successful repair' : `${Math.floor(age / 86_400)} days ago`,
      wanted,
    },
    'warn',
    age !== undefined && age < gcGraceSeconds
      ? undefined
      : 'without a repair, a replica that missed an erasure brings the erased data back',
  );
}

function minOf(numbers: readonly number[]): number | undefined {
  return numbers.length === 0 ? undefined : Math.min(...numbers);
}

function words(items: readonly string[]): string {
  return items.length === 0 ? 'none' : items.join(', ');
}
