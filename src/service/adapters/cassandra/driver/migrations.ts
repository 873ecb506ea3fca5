import { createHash, randomUUID } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { CassandraOpenError } from './open-error.js';
import {
  type ConnectionOptions,
  connect,
  numberIn,
  type Row,
  type Session,
  type Statement,
  textIn,
} from './session.js';
import {
  hasTopology,
  nodesFault,
  replicasOf,
  stateTopology,
  TOPOLOGY_COLUMNS,
  topologyOf,
} from './topology.js';

/** The number of the last migration that this version knows. */
export const SCHEMA_VERSION = 6;

const DIRECTORY = new URL('../../../../../../deploy/cassandra/', import.meta.url);

const LEDGER_COLUMNS =
  'version int PRIMARY KEY, name text, sha256 text, state text, owner text, claimed_at bigint, min_compatible int';
const LEDGER_TABLE =
  "SELECT column_name FROM system_schema.columns WHERE keyspace_name = ? AND table_name = 'schema_migration'";
// A ledger that an earlier version made lacks the column.
const WIDEN_LEDGER = 'ALTER TABLE schema_migration ADD IF NOT EXISTS min_compatible int';
const GET =
  'SELECT version, name, sha256, state, owner, claimed_at, min_compatible FROM schema_migration WHERE version = ?';
const BEGIN =
  "INSERT INTO schema_migration (version, name, sha256, state, owner, claimed_at, min_compatible) VALUES (?, ?, ?, 'running', ?, ?, ?) IF NOT EXISTS";
// Refused where the owner has renewed its time since the row was read.
const TAKE_OVER =
  "UPDATE schema_migration SET owner = ?, claimed_at = ? WHERE version = ? IF owner = ? AND claimed_at = ? AND state = 'running'";
const RENEW = 'UPDATE schema_migration SET claimed_at = ? WHERE version = ? IF owner = ?';
const DONE = "UPDATE schema_migration SET state = 'applied' WHERE version = ? IF owner = ?";

/**
 * The silence in milliseconds after which a run counts as dead. Its statements can be run again. A run that lives
 * renews its time before each statement.
 */
const ABANDONED_MS = 120_000;
const POLL_MS = 250;
const AGREEMENT_MS = 30_000;
/** The time in milliseconds after which nodes that the driver has not seen count as absent. */
const NODES_MS = 10_000;
const ATTEMPTS = 20;

export interface MigrationOptions extends ConnectionOptions {
  readonly keyspace: string;
  /** The number of replicas in the local data centre. The operator sets those in other data centres. */
  readonly replication: number;
  /** The directory of the migrations. The default is that of this version. */
  readonly directory?: URL;
  /** True where the topology may take the place of another that was stated. */
  readonly changeTopology?: boolean;
}

interface Migration {
  readonly version: number;
  readonly name: string;
  readonly sha256: string;
  /** The first version of this service that works with the schema that the migration leaves. */
  readonly minCompatible: number;
  readonly statements: readonly string[];
}

/**
 * Makes the keyspace and brings its schema up to this version. Safe to run again, and by several processes at
 * once: one process owns a migration by a conditional insert, the others wait for it.
 * @returns names of the migrations that this call applied
 * @throws CassandraOpenError where the cluster cannot be reached or has fewer nodes than the keyspace needs, or
 * an applied migration differs from the file, or another process took a migration over from this one
 */
export async function migrate(options: MigrationOptions): Promise<readonly string[]> {
  const { keyspace, localDataCenter, replication } = options;
  if (!/^[a-z][a-z0-9_]{0,47}$/.test(keyspace))
    throw new CassandraOpenError(
      'the name of a keyspace must be a lower-case letter, followed by up to 47 lower-case letters, digits and underscores',
    );
  const first = await connect(options).catch((cause: unknown) => {
    throw new CassandraOpenError(
      `Cassandra could not be reached: ${cause instanceof Error ? cause.message : String(cause)}`,
      { cause },
    );
  });
  try {
    await awaitNodes(first, options);
    await persist(() =>
      first.define(
        `CREATE KEYSPACE IF NOT EXISTS ${keyspace} WITH replication = {'class': 'NetworkTopologyStrategy', '${localDataCenter.replaceAll("'", "''")}': ${replication}}`,
      ),
    );
    await awaitAgreement(first);
  } finally {
    await first.close();
  }
  const session = await persist(() => connect(options, keyspace));
  try {
    const columns = (await session.rows(LEDGER_TABLE, [keyspace])).map((row) => textIn(row, 'column_name'));
    if (columns.length === 0)
      await persist(() => session.define(fixedTable(keyspace, 'schema_migration', LEDGER_COLUMNS)));
    else if (!columns.includes('min_compatible')) await persist(() => session.define(WIDEN_LEDGER));
    if (!(await hasTopology(session, keyspace)))
      await persist(() => session.define(fixedTable(keyspace, 'topology', TOPOLOGY_COLUMNS)));
    await persist(() =>
      stateTopology(session, keyspace, topologyOf(options), options.changeTopology ?? false),
    );
    const applied: string[] = [];
    for (const migration of await migrations(options.directory ?? DIRECTORY))
      if (await apply(session, migration)) applied.push(migration.name);
    await awaitAgreement(session);
    return applied;
  } finally {
    await session.close();
  }
}

/** The schema of a keyspace according to its ledger. */
export interface SchemaState {
  /** The last migration that was applied with all before it; 0 without a schema. */
  readonly version: number;
  /** The first version that works with it, migrations that are under way included. */
  readonly minCompatible: number;
}

export async function schemaState(session: Session, keyspace: string): Promise<SchemaState> {
  const columns = (await session.rows(LEDGER_TABLE, [keyspace])).map((row) => textIn(row, 'column_name'));
  let minCompatible = 0;
  // A ledger without the column is of a version that is too old for this one.
  if (!columns.includes('min_compatible')) return { version: 0, minCompatible };
  for (let version = 0; ; version += 1) {
    const row = await session.first(GET, [version + 1]);
    if (row === undefined) return { version, minCompatible };
    minCompatible = Math.max(minCompatible, numberIn(row, 'min_compatible') ?? version + 1);
    if (textIn(row, 'state') !== 'applied') return { version, minCompatible };
  }
}

/**
 * Returns the definition of a table whose id follows from its keyspace and name. Two machines that create the table
 * at once over different nodes would otherwise give it two ids. One id wins, and rows under the other id are lost.
 */
function fixedTable(keyspace: string, name: string, columns: string): string {
  const digest = createHash('sha256').update(`takemark ${keyspace}.${name}`).digest();
  // Version 8 of RFC 9562: bits of one's own.
  digest[6] = (digest[6]! & 0x0f) | 0x80;
  digest[8] = (digest[8]! & 0x3f) | 0x80;
  const id = digest
    .toString('hex')
    .slice(0, 32)
    .replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
  return `CREATE TABLE IF NOT EXISTS ${name} (${columns}) WITH ID = ${id}`;
}

async function migrations(directory: URL): Promise<readonly Migration[]> {
  const names = (await readdir(directory)).filter((name) => /^\d{3}-.+\.cql$/.test(name)).sort();
  return Promise.all(
    names.map(async (name) => {
      const text = await readFile(new URL(name, directory), 'utf8');
      const statements = text
        .replaceAll(/^\s*--.*$/gm, '')
        .split(';')
        .map((statement) => statement.trim())
        .filter((statement) => statement !== '');
      const version = Number(name.slice(0, 3));
      return {
        version,
        name,
        sha256: createHash('sha256').update(text).digest('hex'),
        // A migration that says nothing suits no version before it.
        minCompatible: Number(/^-- min_compatible: (\d{1,6})$/m.exec(text)?.[1] ?? version),
        statements,
      };
    }),
  );
}

/** @returns whether this call applied the migration */
async function apply(
  session: Session,
  { version, name, sha256, minCompatible, statements }: Migration,
): Promise<boolean> {
  const owner = randomUUID();
  // A ledger that another process has just made is not known to all nodes at once.
  const begun = await persist(() =>
    session.lightweightTransaction({
      query: BEGIN,
      params: [version, name, sha256, owner, Date.now(), minCompatible],
    }),
  );
  let row: Row | undefined = begun.current;
  while (!begun.applied && row !== undefined && textIn(row, 'owner') !== owner) {
    if (textIn(row, 'state') === 'applied') {
      if (textIn(row, 'sha256') !== sha256)
        throw new CassandraOpenError(
          `the migration ${name} was applied with other content than this version has`,
        );
      return false;
    }
    if (Date.now() - numberIn(row, 'claimed_at')! > ABANDONED_MS) {
      const taken = await session.lightweightTransaction({
        query: TAKE_OVER,
        params: [owner, Date.now(), version, textIn(row, 'owner'), numberIn(row, 'claimed_at')],
      });
      if (taken.applied) break;
    }
    await delay(POLL_MS);
    row = await session.first(GET, [version]);
  }
  const asOwner = async (statement: Statement): Promise<void> => {
    const { applied } = await session.lightweightTransaction(statement);
    if (!applied)
      throw new CassandraOpenError(
        `the migration ${name} was taken over by another process, because this process paused for too long; run takemark operator migrate again`,
      );
  };
  for (const statement of statements) {
    await persist(async () => {
      await asOwner({ query: RENEW, params: [Date.now(), version, owner] });
      await session.define(statement);
    });
  }
  await asOwner({ query: DONE, params: [version, owner] });
  return true;
}

/**
 * Waits until the local data centre has a node for each replica of a new keyspace, or for a quorum of an existing one.
 * With fewer, every statement of the migrations would fail, and an empty keyspace would remain.
 * @throws CassandraOpenError
 */
async function awaitNodes(
  session: Session,
  { keyspace, localDataCenter, replication }: MigrationOptions,
): Promise<void> {
  const replicas = await replicasOf(session, keyspace);
  const existing = replicas.get(localDataCenter);
  // A keyspace that was made otherwise is left to what looks at topologies.
  if (replicas.size > 0 && existing === undefined) return;
  for (const begun = performance.now(); ; await delay(POLL_MS)) {
    const fault =
      existing === undefined
        ? nodesFault(session.nodes(), localDataCenter, replication)
        : nodesFault(session.nodes(), localDataCenter, existing, Math.floor(existing / 2) + 1);
    if (fault === undefined) return;
    if (performance.now() - begun < NODES_MS) continue;
    throw new CassandraOpenError(
      existing === undefined
        ? `the keyspace ${keyspace} was not created: TAKEMARK_CASSANDRA_REPLICATION requests ${fault}`
        : `the keyspace ${keyspace} has ${fault}: start nodes, or ALTER KEYSPACE to fewer replicas`,
    );
  }
}

/**
 * Waits until all nodes that are up have the schema, so that the next process finds it. The wait has a bound: a node
 * that does not follow delays no one for longer.
 */
async function awaitAgreement(session: Session): Promise<void> {
  for (const begun = performance.now(); performance.now() - begun < AGREEMENT_MS; await delay(POLL_MS)) {
    if (await session.isSchemaAgreed().catch(() => false)) return;
  }
}

/**
 * Runs a definition of the schema, again after a failure: definitions collide when two processes make them at
 * once, and a repeated one finds what the other has made.
 */
async function persist<Value>(define: () => Promise<Value>): Promise<Value> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await define();
    } catch (error) {
      if (attempt === ATTEMPTS || error instanceof CassandraOpenError) throw error;
      await delay(POLL_MS);
    }
  }
}
