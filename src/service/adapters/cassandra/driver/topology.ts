import { CassandraOpenError } from './open-error.js';
import {
  type ClusterNode,
  type ConnectionOptions,
  type Session,
  type TopologyKind,
  textIn,
} from './session.js';

const REPLICATION = 'SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = ?';
const TABLE =
  "SELECT table_name FROM system_schema.tables WHERE keyspace_name = ? AND table_name = 'topology'";
const SET = "INSERT INTO topology (name, kind, active) VALUES ('cluster', ?, ?)";

/** The data centres that all processes of a cluster agree on. */
export interface Topology {
  readonly kind: TopologyKind;
  /** The data centre whose processes serve, where one alone does. */
  readonly active: string | undefined;
}

/** Columns of the table in which the first `migrate` states the topology. */
export const TOPOLOGY_COLUMNS = 'name text PRIMARY KEY, kind text, active text';

export function topologyOf({
  topology: kind = 'one_data_centre',
  localDataCenter,
}: Pick<ConnectionOptions, 'topology' | 'localDataCenter'>): Topology {
  return { kind, active: kind === 'one_active' ? localDataCenter : undefined };
}

/**
 * Returns a keyspace's replicas by data centre, or under `*` if its strategy has no data centres. Returns an empty
 * map without the keyspace.
 */
export async function replicasOf(session: Session, keyspace: string): Promise<ReadonlyMap<string, number>> {
  const row = await session.first(REPLICATION, [keyspace]);
  const { class: strategy = '', ...factors } = (row?.['replication'] ?? {}) as Record<string, string>;
  if (!strategy.endsWith('NetworkTopologyStrategy'))
    return new Map(row === undefined ? [] : [['*', Number(factors['replication_factor'] ?? 1)]]);
  return new Map(
    Object.entries(factors)
      .map(([name, factor]) => [name, Number.parseInt(factor, 10)] as const)
      .filter(([, factor]) => factor > 0),
  );
}

/**
 * Returns why replicas have no nodes, or undefined if they have.
 * @param needed how many of the replicas must have a node
 */
export function nodesFault(
  nodes: readonly ClusterNode[],
  dataCenter: string,
  replicas: number,
  needed: number = replicas,
): string | undefined {
  const count = nodes.filter((node) => node.dataCenter === dataCenter).length;
  if (count >= needed) return undefined;
  return `${replicas} replicas in the data centre ${dataCenter}, which has ${count} ${count === 1 ? 'node' : 'nodes'}`;
}

export async function hasTopology(session: Session, keyspace: string): Promise<boolean> {
  return (await session.first(TABLE, [keyspace])) !== undefined;
}

/** Returns the topology stated for a keyspace, the session's or another; undefined before `migrate` states it. */
export async function statedTopology(session: Session, keyspace: string): Promise<Topology | undefined> {
  if (!(await hasTopology(session, keyspace))) return undefined;
  const row = await session.first(`SELECT kind, active FROM ${keyspace}.topology WHERE name = 'cluster'`);
  if (row === undefined) return undefined;
  return { kind: textIn(row, 'kind') as TopologyKind, active: textIn(row, 'active') };
}

/**
 * States the topology for all processes that start from now on.
 * @param change whether another one may take the place of what was stated
 * @throws CassandraOpenError where another one was stated
 */
export async function stateTopology(session: Session, keyspace: string, wanted: Topology, change: boolean) {
  const stated = await statedTopology(session, keyspace);
  if (stated !== undefined && isSame(stated, wanted)) return;
  if (stated !== undefined && !change)
    throw new CassandraOpenError(
      `the topology of the keyspace ${keyspace} is ${words(stated)}, but this configuration has ${words(wanted)}; to change the topology, stop every process and run takemark operator migrate --change-topology`,
    );
  // Not a condition: when the active data centre is lost, its replicas cannot be asked.
  // Null, not undefined, which would leave the former active data centre there.
  await session.write(SET, [wanted.kind, wanted.active ?? null]);
}

/**
 * Returns why a process must not work with a keyspace, or undefined if it may.
 * @param replicas of the keyspace, by data centre
 */
export function topologyFault(
  replicas: ReadonlyMap<string, number>,
  stated: Topology | undefined,
  wanted: Topology,
): string | undefined {
  const names = [...replicas.keys()].toSorted().join(', ');
  if (replicas.size > 1 && wanted.kind === 'one_data_centre')
    return `the keyspace is in several data centres (${names}), but TAKEMARK_CASSANDRA_TOPOLOGY does not state which of them serve: each would decide independently`;
  if (stated === undefined)
    return wanted.kind === 'one_data_centre'
      ? undefined
      : 'the keyspace has no recorded topology: run takemark operator migrate';
  return isSame(stated, wanted)
    ? undefined
    : `the recorded topology of the keyspace is ${words(stated)}, but this process is configured with ${words(wanted)}`;
}

/** Checks rule 16.6. @throws CassandraOpenError if processes of this configuration and others would decide apart */
export async function checkTopology(session: Session, keyspace: string, wanted: Topology): Promise<void> {
  const fault = topologyFault(
    await replicasOf(session, keyspace),
    await statedTopology(session, keyspace),
    wanted,
  );
  if (fault !== undefined)
    throw new CassandraOpenError(`The data centres are not configured correctly: ${fault}.`);
}

function isSame(one: Topology, other: Topology): boolean {
  return one.kind === other.kind && one.active === other.active;
}

function words({ kind, active }: Topology): string {
  return active === undefined ? kind : `${kind} with ${active}`;
}
