import { createHash } from 'node:crypto';
import { types } from 'cassandra-driver';
import {
  type ColumnDefinition,
  type Condition,
  CqlError,
  type Delete,
  type Insert,
  type Mutation,
  type Operator,
  parse,
  type Relation,
  type Select,
  type Selector,
  type Statement,
  type Term,
  type Update,
} from './cql.js';

export interface Request {
  readonly query: string;
  readonly params: readonly unknown[];
}

/** A row of a result, as the driver returns it. */
export class ResultRow {
  [column: string]: unknown;

  constructor(values: Iterable<readonly [string, unknown]>) {
    for (const [name, value] of values) this[name] = value;
  }

  keys(): string[] {
    return Object.keys(this);
  }
}

interface Stamp {
  /** The timestamp of the write in microseconds. */
  readonly at: number;
  /** The time from which the value has expired, in seconds since the epoch. */
  readonly endsAt?: number;
}
interface Cell extends Stamp {
  /** The value, or null if it was deleted. */
  readonly value: unknown;
}
/** A map or a set whose entries are written one by one. */
interface MapCell {
  removedAt: number;
  readonly entries: Map<string, Cell>;
}

class Row {
  readonly key: readonly unknown[];
  marker: Stamp | undefined;
  removedAt = Number.NEGATIVE_INFINITY;
  readonly cells = new Map<string, Cell>();
  readonly maps = new Map<string, MapCell>();

  constructor(key: readonly unknown[]) {
    this.key = key;
  }

  /** Deletes entries that are not newer than the time. */
  remove(at: number): void {
    this.removedAt = Math.max(this.removedAt, at);
    if (this.marker !== undefined && this.marker.at <= at) this.marker = undefined;
    for (const [name, cell] of this.cells) if (cell.at <= at) this.cells.delete(name);
    for (const map of this.maps.values()) {
      map.removedAt = Math.max(map.removedAt, at);
      for (const [name, cell] of map.entries) if (cell.at <= at) map.entries.delete(name);
    }
  }

  get isBare(): boolean {
    return (
      this.marker === undefined &&
      this.cells.size === 0 &&
      [...this.maps.values()].every(({ entries }) => entries.size === 0)
    );
  }

  clone(): Row {
    const row = new Row(this.key);
    row.marker = this.marker;
    row.removedAt = this.removedAt;
    for (const [name, cell] of this.cells) row.cells.set(name, cell);
    for (const [name, { removedAt, entries }] of this.maps)
      row.maps.set(name, { removedAt, entries: new Map(entries) });
    return row;
  }
}

interface Removal {
  readonly holds: (key: readonly unknown[]) => boolean;
  readonly name: string;
  readonly at: number;
}

class Partition {
  readonly key: readonly unknown[];
  /** The rows in clustering order. */
  rows: Row[] = [];
  readonly statics = new Row([]);
  removedAt = Number.NEGATIVE_INFINITY;
  removals: Removal[] = [];
  ballot = 0;
  /** The token of the partition. It is cached after the first use. */
  token: number | undefined;

  constructor(key: readonly unknown[]) {
    this.key = key;
  }

  clone(): Partition {
    const partition = new Partition(this.key);
    partition.rows = this.rows.map((row) => row.clone());
    Object.assign(partition, { statics: this.statics.clone() });
    partition.removedAt = this.removedAt;
    partition.removals = [...this.removals];
    partition.ballot = this.ballot;
    return partition;
  }
}

interface Schema {
  readonly name: string;
  readonly columns: Map<string, ColumnDefinition>;
  readonly partitionKey: readonly string[];
  readonly clustering: readonly string[];
  /** The order of each clustering column: 1 or -1. */
  readonly directions: readonly (1 | -1)[];
  /** The columns in the order of a whole row. */
  order: readonly string[];
}

class Table {
  readonly schema: Schema;
  readonly partitions = new Map<string, Partition>();

  constructor(schema: Schema) {
    this.schema = schema;
  }
}

export interface Moment {
  /** The clock of the node that gets the request, in milliseconds since the epoch. */
  readonly nodeMs: number;
  /** The client's timestamp of plain writes, in microseconds. Undefined if the server assigns it. */
  readonly clientMicroseconds?: number;
}

/**
 * A node of a database that speaks CQL. Each request takes effect at one moment, because Paxos is assumed to
 * be correct. Faults of the network are simulated elsewhere. For each cell the write with the latest
 * timestamp wins, from any source.
 */
export class Database {
  readonly #tables: Map<string, Table>;
  readonly #statements: Map<string, Statement>;
  readonly #keys: WeakMap<Select, readonly Term[]>;
  #servedMicroseconds = 0;

  constructor(from?: Database) {
    this.#tables = new Map();
    this.#statements = from === undefined ? new Map() : from.#statements;
    this.#keys = from === undefined ? new WeakMap() : from.#keys;
    for (const [name, { schema, partitions }] of from === undefined ? [] : from.#tables) {
      const table = new Table(schema);
      for (const [key, partition] of partitions) table.partitions.set(key, partition.clone());
      this.#tables.set(name, table);
    }
  }

  /** @returns rows of the result */
  execute(request: Request, moment: Moment): readonly ResultRow[] {
    const statement = this.#statementOf(request.query);
    switch (statement.kind) {
      case 'select':
        return this.#select(statement, request.params, moment);
      case 'insert':
      case 'update':
      case 'delete':
        return this.#mutate([{ statement, params: request.params }], moment);
      default:
        this.#define(statement);
        return [];
    }
  }

  /** Executes several changes as one. */
  batch(requests: readonly Request[], moment: Moment): readonly ResultRow[] {
    return this.#mutate(
      requests.map(({ query, params }) => {
        const statement = this.#statementOf(query);
        if (statement.kind !== 'insert' && statement.kind !== 'update' && statement.kind !== 'delete')
          throw new CqlError(`not in a batch: ${query}`);
        return { statement, params };
      }),
      moment,
    );
  }

  isConditional(query: string): boolean {
    const statement = this.#statementOf(query);
    return isChange(statement) && isConditional(statement);
  }

  /** Returns a short description of a request: the verb, the table and the condition. */
  describe(query: string): string {
    const statement = this.#statementOf(query);
    if (statement.kind === 'ignored') return 'define';
    return `${statement.kind} ${statement.table}${isChange(statement) && isConditional(statement) ? ' if' : ''}`;
  }

  /** Returns every live row of a table, for the judges. */
  all(table: string, nodeMs: number): readonly ResultRow[] {
    return this.execute({ query: `SELECT * FROM ${table}`, params: [] }, { nodeMs });
  }

  /** Returns whether a partition has any live row. */
  has(table: string, key: readonly unknown[]): boolean {
    const partition = this.#table(table).partitions.get(keyText(key));
    return partition?.rows.some((row) => !row.isBare) === true;
  }

  #statementOf(query: string): Statement {
    let statement = this.#statements.get(query);
    if (statement === undefined) {
      statement = parse(query);
      this.#statements.set(query, statement);
    }
    return statement;
  }

  #define(statement: Exclude<Statement, Mutation | Select>): void {
    switch (statement.kind) {
      case 'create_table': {
        if (this.#tables.has(statement.table)) return;
        const columns = new Map(statement.columns.map((column) => [column.name, column]));
        const { table: name, partitionKey, clustering, descending } = statement;
        const directions = clustering.map((column) => (descending.has(column) ? -1 : 1));
        const schema: Schema = { name, columns, partitionKey, clustering, directions, order: [] };
        schema.order = orderOf(schema);
        this.#tables.set(name, new Table(schema));
        return;
      }
      case 'add_column': {
        const { schema } = this.#table(statement.table);
        for (const column of statement.columns) schema.columns.set(column.name, column);
        schema.order = orderOf(schema);
        return;
      }
      case 'drop_column': {
        const { schema, partitions } = this.#table(statement.table);
        for (const column of statement.columns) {
          schema.columns.delete(column);
          for (const { rows, statics } of partitions.values())
            for (const row of [...rows, statics]) {
              row.cells.delete(column);
              row.maps.delete(column);
            }
        }
        schema.order = orderOf(schema);
        return;
      }
      case 'drop_table':
        this.#tables.delete(statement.table);
        return;
      case 'ignored':
    }
  }

  #table(name: string): Table {
    // The database has one keyspace, which answers to every name.
    const table =
      this.#tables.get(name) ?? this.#systemTable(name) ?? this.#tables.get(name.split('.').at(-1)!);
    if (table === undefined) throw new CqlError(`there is no table ${name}`);
    return table;
  }

  /** Returns a table of the database's own metadata. */
  #systemTable(name: string): Table | undefined {
    switch (name) {
      case 'system.local':
        return systemTable(name, ['key'], [{ data_center: 'datacenter1', release_version: '5.0.6' }]);
      case 'system_schema.keyspaces':
        return systemTable(
          name,
          ['keyspace_name'],
          [
            {
              replication: {
                class: 'org.apache.cassandra.locator.NetworkTopologyStrategy',
                datacenter1: '1',
              },
            },
          ],
        );
      case 'system_schema.tables':
        return systemTable(
          name,
          ['keyspace_name', 'table_name'],
          [...this.#tables.keys()].map((table_name) => ({ table_name })),
        );
      case 'system_schema.columns':
        return systemTable(
          name,
          ['keyspace_name', 'table_name', 'column_name'],
          [...this.#tables].flatMap(([table_name, { schema }]) =>
            [...schema.columns.keys()].map((column_name) => ({ table_name, column_name })),
          ),
        );
      default:
        return undefined;
    }
  }

  // ------------------------------------------------------------------------------------------------- reading

  #select(select: Select, params: readonly unknown[], { nodeMs }: Moment): readonly ResultRow[] {
    const table = this.#table(select.table);
    const { schema } = table;
    const now = Math.floor(nodeMs / 1000);
    for (const relation of select.where)
      for (const column of relation.columns)
        if (!schema.columns.has(column)) throw unknownColumn(schema, column);
    const key = this.#keyOf(select, schema)?.map((term) => plain(termValue(term, params)));
    const named = key && table.partitions.get(keyText(key));
    const hasCount = select.selectors?.some(({ kind }) => kind === 'count') === true;
    // Most reads name one partition, and most of these find nothing.
    if (key !== undefined && named === undefined && !hasCount) return [];
    const relations = select.where.map((relation) => ({ relation, values: valuesOf(relation, params) }));
    const partitions =
      key === undefined ? partitionsOf(table, relations) : named === undefined ? [] : [named];
    if (partitions.length === 0 && !hasCount) return [];
    const inRows = relations.filter(
      ({ relation }) => !relation.isToken && !schema.partitionKey.includes(relation.columns[0]!),
    );
    const hasKeyRelation = inRows.some(({ relation }) => schema.clustering.includes(relation.columns[0]!));
    const limitOfPartition = limitOf(select.limitOfPartition, params);
    const found: { readonly partition: Partition; readonly row: Row | undefined }[] = [];
    for (const partition of partitions) {
      let rows = partition.rows.filter(
        (row) =>
          isLive(row, now) && inRows.every((restricted) => holds(schema, partition, row, restricted, now)),
      );
      if (select.orderBy !== undefined) {
        const at = schema.clustering.indexOf(select.orderBy.column);
        if (select.orderBy.descending !== (schema.directions[at] === -1)) rows = rows.reverse();
      }
      if (select.distinct) rows = rows.slice(0, 1);
      if (rows.length > 0) found.push(...rows.slice(0, limitOfPartition).map((row) => ({ partition, row })));
      else if (
        !hasKeyRelation &&
        isLive(partition.statics, now) &&
        inRows.every((restricted) => holds(schema, partition, undefined, restricted, now))
      )
        found.push({ partition, row: undefined });
    }
    // Rows of several partitions are sorted by partition.
    const selectors: readonly Selector[] =
      select.selectors ?? schema.order.map((column) => ({ kind: 'column', column, name: column }) as const);
    for (const selector of selectors)
      if ('column' in selector && !schema.columns.has(selector.column))
        throw unknownColumn(schema, selector.column);
    if (selectors.some(({ kind }) => kind === 'count' || kind === 'min' || kind === 'max'))
      return [aggregate(schema, selectors, found, now)];
    return found
      .slice(0, limitOf(select.limit, params))
      .map(
        ({ partition, row }) =>
          new ResultRow(
            selectors.map((selector) => [
              selector.name,
              selected(schema, partition, row, selector, now, nodeMs),
            ]),
          ),
      );
  }

  /** Returns the terms of the partition key if a read names one partition. */
  #keyOf(select: Select, { name, partitionKey }: Schema): readonly Term[] | undefined {
    if (name.startsWith('system_schema.')) return undefined;
    let terms = this.#keys.get(select);
    if (terms === undefined) {
      terms = partitionKey.flatMap(
        (column) =>
          select.where.find(
            ({ operator, columns, isToken }) => operator === '=' && columns[0] === column && !isToken,
          )?.terms[0] ?? [],
      );
      this.#keys.set(select, terms);
    }
    return terms.length === partitionKey.length ? terms : undefined;
  }

  // ------------------------------------------------------------------------------------------------- writing

  #mutate(
    changes: readonly { readonly statement: Mutation; readonly params: readonly unknown[] }[],
    moment: Moment,
  ): readonly ResultRow[] {
    const now = Math.floor(moment.nodeMs / 1000);
    if (!changes.some(({ statement }) => isConditional(statement))) {
      for (const { statement, params } of changes) {
        const at = this.#timestampOf(statement, params, moment);
        this.#apply(statement, params, { at, removalAt: at, now });
      }
      return [];
    }
    const table = this.#table(changes[0]!.statement.table);
    const places = changes.map(({ statement, params }) => {
      if (this.#table(statement.table) !== table) throw new CqlError('a conditional batch is of one table');
      return placeOf(table.schema, statement, params);
    });
    const key = keyText(places[0]!.partitionKey);
    if (places.some(({ partitionKey }) => keyText(partitionKey) !== key))
      throw new CqlError('a conditional batch is of one partition');
    const partition = partitionAt(table, places[0]!.partitionKey);
    const conditioned = changes.flatMap((change, i) =>
      isConditional(change.statement) ? [{ ...change, place: places[i]! }] : [],
    );
    const refused = conditioned.some(
      ({ statement, params, place }) => !isMet(table.schema, partition, statement, params, place, now),
    );
    if (refused) return refusal(table.schema, partition, conditioned, changes.length > 1, now);
    const at = Math.max(Math.floor(moment.nodeMs * 1000), partition.ballot + 1);
    partition.ballot = at;
    // Deletions of a conditional statement are one step older than its writes.
    for (const { statement, params } of changes)
      this.#apply(statement, params, { at, removalAt: at - 1, now });
    return [new ResultRow([['[applied]', true]])];
  }

  #timestampOf(
    statement: Mutation,
    params: readonly unknown[],
    { nodeMs, clientMicroseconds }: Moment,
  ): number {
    if (statement.timestamp !== undefined) return numberOf(termValue(statement.timestamp, params));
    if (clientMicroseconds !== undefined) return clientMicroseconds;
    this.#servedMicroseconds = Math.max(Math.floor(nodeMs * 1000), this.#servedMicroseconds + 1);
    return this.#servedMicroseconds;
  }

  #apply(
    statement: Mutation,
    params: readonly unknown[],
    { at, removalAt, now }: { readonly at: number; readonly removalAt: number; readonly now: number },
  ): void {
    const table = this.#table(statement.table);
    const { schema } = table;
    const place = placeOf(schema, statement, params);
    const partition = partitionAt(table, place.partitionKey);
    const ttl = statement.ttl === undefined ? undefined : termValue(statement.ttl, params);
    const stamp: Stamp =
      ttl === undefined || ttl === null || ttl === 0 ? { at } : { at, endsAt: now + numberOf(ttl) };
    const write = (row: Row, column: string, value: unknown, add: boolean): void => {
      const type = schema.columns.get(column)?.type;
      if (type === undefined) throw unknownColumn(schema, column);
      // A value that was not given leaves the column unchanged.
      if (value === undefined) return;
      if (isCollection(type)) writeMap(row, column, value, add, stamp, at, removalAt, partition);
      else put(partition, row, row.cells, column, { ...stamp, value: value === null ? null : plain(value) });
    };
    switch (statement.kind) {
      case 'insert': {
        const hasKey = place.key.length === schema.clustering.length;
        const row = hasKey ? rowAt(schema, partition, place.key) : partition.statics;
        if (hasKey && at > coveredAt(partition, row)) {
          if (row.marker === undefined || row.marker.at <= at) row.marker = stamp;
        }
        for (const [i, column] of statement.columns.entries()) {
          if (isKey(schema, column)) continue;
          write(
            this.#rowOf(schema, partition, row, column),
            column,
            termValue(statement.terms[i]!, params),
            false,
          );
        }
        return;
      }
      case 'update': {
        const row =
          place.key.length === schema.clustering.length ? rowAt(schema, partition, place.key) : undefined;
        for (const { column, kind, term } of statement.assignments)
          write(this.#rowOf(schema, partition, row, column), column, termValue(term, params), kind === 'add');
        return;
      }
      case 'delete': {
        if (statement.columns.length > 0) {
          const row =
            place.key.length === schema.clustering.length ? rowAt(schema, partition, place.key) : undefined;
          for (const column of statement.columns)
            write(this.#rowOf(schema, partition, row, column), column, null, false);
          return;
        }
        removeRows(schema, partition, place, removalAt);
      }
    }
  }

  #rowOf(schema: Schema, partition: Partition, row: Row | undefined, column: string): Row {
    if (schema.columns.get(column)?.isStatic === true) return partition.statics;
    if (row === undefined) throw new CqlError(`${column} of ${schema.name} needs the whole key of its row`);
    return row;
  }
}

/** The target of a change. */
interface Place {
  readonly partitionKey: readonly unknown[];
  /** The leading clustering columns that are given. */
  readonly key: readonly unknown[];
  readonly restrictions: readonly { readonly relation: Relation; readonly values: readonly unknown[] }[];
}

function placeOf(schema: Schema, statement: Mutation, params: readonly unknown[]): Place {
  if (statement.kind === 'insert') {
    const given = new Map(
      statement.columns.map((column, i) => [column, termValue(statement.terms[i]!, params)] as const),
    );
    for (const column of statement.columns)
      if (!schema.columns.has(column)) throw unknownColumn(schema, column);
    return {
      partitionKey: schema.partitionKey.map((column) => keyValue(schema, column, given.get(column))),
      key: schema.clustering
        .filter((column) => given.has(column))
        .map((column) => keyValue(schema, column, given.get(column))),
      restrictions: [],
    };
  }
  const restrictions = statement.where.map((relation) => ({ relation, values: valuesOf(relation, params) }));
  const equal = (column: string): unknown =>
    restrictions.find(
      ({ relation }) => relation.operator === '=' && !relation.isTuple && relation.columns[0] === column,
    )?.values[0];
  const key: unknown[] = [];
  for (const column of schema.clustering) {
    const value = equal(column);
    if (value === undefined) break;
    key.push(plain(value));
  }
  return {
    partitionKey: schema.partitionKey.map((column) => keyValue(schema, column, equal(column))),
    key,
    restrictions: restrictions.filter(({ relation }) => !schema.partitionKey.includes(relation.columns[0]!)),
  };
}

function keyValue(schema: Schema, column: string, value: unknown): unknown {
  if (value === undefined || value === null) throw new CqlError(`${schema.name} needs its key ${column}`);
  return plain(value);
}

function removeRows(schema: Schema, partition: Partition, place: Place, at: number): void {
  if (place.restrictions.length === 0) {
    partition.removedAt = Math.max(partition.removedAt, at);
    partition.statics.remove(at);
    for (const row of partition.rows) row.remove(at);
  } else if (place.key.length === schema.clustering.length) {
    rowAt(schema, partition, place.key).remove(at);
  } else {
    const name = JSON.stringify(
      place.restrictions.map(({ relation, values }) => [relation.columns, relation.operator, values]),
    );
    const holdsKey = (key: readonly unknown[]): boolean =>
      place.restrictions.every(({ relation, values }) => compares(schema, relation, values, key));
    partition.removals = partition.removals.filter((removal) => removal.name !== name || removal.at > at);
    partition.removals.push({ name, at, holds: holdsKey });
    for (const row of partition.rows) if (holdsKey(row.key)) row.remove(at);
  }
  partition.rows = partition.rows.filter(
    (row) => !row.isBare || row.removedAt > coveredByOthers(partition, row),
  );
}

/** Returns the latest deletion of a range that includes the row. */
function coveredByOthers(partition: Partition, row: Row): number {
  let at = partition.removedAt;
  for (const removal of partition.removals) if (removal.at > at && removal.holds(row.key)) at = removal.at;
  return at;
}

function coveredAt(partition: Partition, row: Row): number {
  return row === partition.statics
    ? Math.max(partition.removedAt, row.removedAt)
    : Math.max(coveredByOthers(partition, row), row.removedAt);
}

function put(partition: Partition, row: Row, cells: Map<string, Cell>, name: string, cell: Cell): void {
  if (cell.at <= coveredAt(partition, row)) return;
  const before = cells.get(name);
  if (before === undefined || wins(cell, before)) cells.set(name, cell);
}

/** Compares two cells with the same timestamp. A deletion wins, otherwise the greater value. */
function wins(cell: Cell, before: Cell): boolean {
  if (cell.at !== before.at) return cell.at > before.at;
  if (cell.value === null || before.value === null) return cell.value === null;
  if ((cell.endsAt === undefined) !== (before.endsAt === undefined)) return cell.endsAt !== undefined;
  return compare(cell.value, before.value) >= 0;
}

function writeMap(
  row: Row,
  column: string,
  value: unknown,
  add: boolean,
  stamp: Stamp,
  at: number,
  removalAt: number,
  partition: Partition,
): void {
  let map = row.maps.get(column);
  if (map === undefined) {
    map = { removedAt: Number.NEGATIVE_INFINITY, entries: new Map() };
    row.maps.set(column, map);
  }
  if (!add) {
    const removedAt = value === null ? removalAt : at - 1;
    map.removedAt = Math.max(map.removedAt, removedAt);
    for (const [name, cell] of map.entries) if (cell.at <= removedAt) map.entries.delete(name);
  }
  if (at <= map.removedAt) return;
  for (const [name, entry] of entriesOf(value))
    put(partition, row, map.entries, name, { ...stamp, value: entry });
}

/** Returns whether the entries of a collection are written one by one. */
function isCollection(type: string): boolean {
  return type.startsWith('map<') || type.startsWith('set<');
}

/** Returns the entries of a map. The entries of a set are their own keys. */
function entriesOf(value: unknown): readonly (readonly [string, unknown])[] {
  if (value === null || value === undefined) return [];
  if (Array.isArray(value) || value instanceof Set) return [...value].map((one) => [String(one), one]);
  return value instanceof Map ? [...value] : Object.entries(value as object);
}

function isMet(
  schema: Schema,
  partition: Partition,
  statement: Mutation,
  params: readonly unknown[],
  place: Place,
  now: number,
): boolean {
  const row = findRow(schema, partition, place.key);
  const exists = row !== undefined && isLive(row, now);
  if (statement.kind === 'insert') return !exists;
  const { conditions } = statement;
  if (conditions === undefined) return true;
  if (conditions === 'exists')
    return place.key.length === schema.clustering.length ? exists : isLive(partition.statics, now);
  return conditions.every((condition) => {
    const values = condition.terms.map((term) => {
      const value = termValue(term, params);
      if (value === undefined) throw new CqlError(`a condition on ${condition.column} without its value`);
      return value;
    });
    return conditionHolds(condition, columnOf(schema, partition, row, condition.column, now), values);
  });
}

function conditionHolds(
  { operator, isListParameter }: Condition,
  current: unknown,
  values: readonly unknown[],
): boolean {
  if (operator === 'IN') {
    const list = isListParameter ? (values[0] as readonly unknown[]) : values;
    return list.some((value) => isSame(current, value));
  }
  const [value] = values;
  if (operator === '=') return isSame(current, value);
  if (operator === '!=') return !isSame(current, value);
  if (current === null || value === null) return false;
  return satisfies(compare(current, plain(value)), operator);
}

/** The name of the row with the static columns of a partition. */
const OF_STATICS = 'statics';

/** Returns the rows of a refused condition, as Cassandra 5.0.6 returns them. */
function refusal(
  schema: Schema,
  partition: Partition,
  conditioned: readonly { readonly statement: Mutation; readonly place: Place }[],
  isBatch: boolean,
  now: number,
): readonly ResultRow[] {
  const whole = conditioned.some(
    ({ statement }) => statement.kind === 'insert' || statement.conditions === 'exists',
  );
  const named = new Set(
    conditioned.flatMap(({ statement }) =>
      statement.kind === 'insert' || statement.conditions === undefined || statement.conditions === 'exists'
        ? []
        : statement.conditions.map(({ column }) => column),
    ),
  );
  const keys = [...schema.partitionKey, ...schema.clustering];
  const columns = schema.order.filter(
    (column) => whole || named.has(column) || (isBatch && keys.includes(column)),
  );
  const wanted = new Map<string, Row | undefined>();
  for (const { place } of conditioned) {
    const isWhole = place.key.length === schema.clustering.length;
    const row = isWhole
      ? findRow(schema, partition, place.key)
      : partition.rows.find((candidate) => isLive(candidate, now));
    if (row !== undefined && isLive(row, now)) wanted.set(keyText(row.key), row);
    else if (!isWhole && isLive(partition.statics, now)) wanted.set(OF_STATICS, undefined);
  }
  if ([...wanted.values()].some((row) => row !== undefined)) wanted.delete(OF_STATICS);
  const rows = [...wanted.values()].sort((a, b) =>
    a === undefined || b === undefined ? 0 : compareKeys(schema, a.key, b.key),
  );
  if (rows.length === 0) return [new ResultRow([['[applied]', false]])];
  // Static columns are read only if a condition uses one.
  const readsStatics = [...named].some((column) => schema.columns.get(column)?.isStatic === true);
  const isRead = (column: string): boolean => readsStatics || schema.columns.get(column)?.isStatic !== true;
  return rows.map(
    (row) =>
      new ResultRow([
        ['[applied]', false],
        ...columns.map(
          (column) =>
            [
              column,
              given(schema, column, isRead(column) ? columnOf(schema, partition, row, column, now) : null),
            ] as const,
        ),
      ]),
  );
}

interface Restricted {
  readonly relation: Relation;
  readonly values: readonly unknown[];
}

function partitionsOf(table: Table, relations: readonly Restricted[]): readonly Partition[] {
  const { schema, partitions } = table;
  if (schema.name.startsWith('system_schema.')) return [...partitions.values()];
  const choices = schema.partitionKey.map((column) => {
    const found = relations.find(
      ({ relation }) =>
        !relation.isToken &&
        relation.columns[0] === column &&
        (relation.operator === '=' || relation.operator === 'IN'),
    );
    if (found === undefined) return undefined;
    return found.relation.operator === 'IN' ? listOf(found) : [found.values[0]];
  });
  if (choices.every((choice) => choice !== undefined)) {
    let keys: readonly unknown[][] = [[]];
    for (const choice of choices)
      keys = keys.flatMap((key) => choice!.map((value) => [...key, plain(value)]));
    const found = [...new Set(keys.map(keyText))].flatMap((key) => partitions.get(key) ?? []);
    return found.length > 1 ? found.sort((a, b) => tokenOf(a) - tokenOf(b)) : found;
  }
  const bounds = relations.filter(({ relation }) => relation.isToken);
  const others = relations.filter(
    ({ relation }) => !relation.isToken && schema.partitionKey.includes(relation.columns[0]!),
  );
  return [...partitions.values()]
    .filter(
      (partition) =>
        bounds.every(({ relation, values }) =>
          satisfies(tokenOf(partition) - numberOf(values[0]), relation.operator),
        ) &&
        others.every(({ relation, values }) =>
          satisfies(
            compare(partition.key[schema.partitionKey.indexOf(relation.columns[0]!)], plain(values[0])),
            relation.operator,
          ),
        ),
    )
    .sort((a, b) => tokenOf(a) - tokenOf(b));
}

/** Returns a token that differs from Cassandra's, because no caller depends on the order of tokens. */
function tokenOf(partition: Partition): number {
  partition.token ??= createHash('md5').update(keyText(partition.key)).digest().readIntBE(0, 6);
  return partition.token;
}

function holds(
  schema: Schema,
  partition: Partition,
  row: Row | undefined,
  restricted: Restricted,
  now: number,
): boolean {
  const { relation, values } = restricted;
  if (schema.clustering.includes(relation.columns[0]!)) {
    if (row === undefined) return false;
    return compares(schema, relation, relation.operator === 'IN' ? listOf(restricted) : values, row.key);
  }
  const value = columnOf(schema, partition, row, relation.columns[0]!, now);
  if (value === null) return false;
  if (relation.operator === 'IN') return listOf(restricted).some((one) => isSame(value, one));
  return satisfies(compare(value, plain(values[0])), relation.operator);
}

/** Compares clustering columns in their own order, without the table's direction. */
function compares(
  schema: Schema,
  relation: Relation,
  values: readonly unknown[],
  key: readonly unknown[],
): boolean {
  if (relation.operator === 'IN') {
    const value = key[schema.clustering.indexOf(relation.columns[0]!)];
    return values.some((one) => isSame(value, one));
  }
  let difference = 0;
  for (const [i, column] of relation.columns.entries()) {
    difference = compare(key[schema.clustering.indexOf(column)], plain(values[i]));
    if (difference !== 0) break;
  }
  return satisfies(difference, relation.operator);
}

function satisfies(difference: number, operator: Operator): boolean {
  switch (operator) {
    case '=':
      return difference === 0;
    case '!=':
      return difference !== 0;
    case '<':
      return difference < 0;
    case '>':
      return difference > 0;
    case '<=':
      return difference <= 0;
    case '>=':
      return difference >= 0;
    case 'IN':
      throw new CqlError('IN does not order values');
  }
}

function listOf({ relation, values }: Restricted): readonly unknown[] {
  return relation.isListParameter ? [...(values[0] as readonly unknown[])] : values;
}

function isLive(row: Row, now: number): boolean {
  if (row.marker !== undefined && isThere(row.marker, now)) return true;
  for (const cell of row.cells.values()) if (cell.value !== null && isThere(cell, now)) return true;
  for (const { entries } of row.maps.values())
    for (const cell of entries.values()) if (cell.value !== null && isThere(cell, now)) return true;
  return false;
}

function isThere({ endsAt }: Stamp, now: number): boolean {
  return endsAt === undefined || now < endsAt;
}

/** Returns the value of a column, or null if it has none. */
function columnOf(
  schema: Schema,
  partition: Partition,
  row: Row | undefined,
  column: string,
  now: number,
): unknown {
  const inPartition = schema.partitionKey.indexOf(column);
  if (inPartition >= 0) return partition.key[inPartition] ?? null;
  const inKey = schema.clustering.indexOf(column);
  if (inKey >= 0) return row?.key[inKey] ?? null;
  const definition = schema.columns.get(column);
  if (definition === undefined) throw unknownColumn(schema, column);
  const holder = definition.isStatic ? partition.statics : row;
  if (isCollection(definition.type)) {
    const entries = [...(holder?.maps.get(column)?.entries ?? [])].filter(
      ([, cell]) => cell.value !== null && isThere(cell, now),
    );
    if (entries.length === 0) return null;
    entries.sort(([a], [b]) => (a < b ? -1 : 1));
    if (definition.type.startsWith('set<')) return entries.map(([, { value }]) => value);
    return Object.fromEntries(entries.map(([name, { value }]) => [name, value]));
  }
  const cell = holder?.cells.get(column);
  return cell !== undefined && isThere(cell, now) ? cell.value : null;
}

function selected(
  schema: Schema,
  partition: Partition,
  row: Row | undefined,
  selector: Selector,
  now: number,
  nodeMs: number,
): unknown {
  switch (selector.kind) {
    case 'column':
      return given(schema, selector.column, columnOf(schema, partition, row, selector.column, now));
    case 'token':
      return types.Long.fromNumber(tokenOf(partition));
    case 'now':
      return types.Long.fromNumber(Math.floor(nodeMs));
    case 'ttl':
    case 'writetime': {
      const holder = schema.columns.get(selector.column)?.isStatic === true ? partition.statics : row;
      const cell = holder?.cells.get(selector.column);
      if (cell === undefined || cell.value === null || !isThere(cell, now)) return null;
      if (selector.kind === 'writetime') return types.Long.fromNumber(cell.at);
      return cell.endsAt === undefined ? null : cell.endsAt - now;
    }
    default:
      throw new CqlError(`not of one row: ${selector.name}`);
  }
}

function aggregate(
  schema: Schema,
  selectors: readonly Selector[],
  found: readonly { readonly partition: Partition; readonly row: Row | undefined }[],
  now: number,
): ResultRow {
  return new ResultRow(
    selectors.map((selector) => {
      if (selector.kind === 'count') return [selector.name, types.Long.fromNumber(found.length)];
      if (selector.kind !== 'min' && selector.kind !== 'max')
        throw new CqlError(`not of many rows: ${selector.name}`);
      let best: unknown = null;
      for (const { partition, row } of found) {
        const value = columnOf(schema, partition, row, selector.column, now);
        if (value === null) continue;
        if (best === null || compare(value, best) < 0 === (selector.kind === 'min')) best = value;
      }
      return [selector.name, given(schema, selector.column, best)];
    }),
  );
}

/** Returns the value as the driver does. */
function given(schema: Schema, column: string, value: unknown): unknown {
  if (value === null) return null;
  const type = schema.columns.get(column)?.type;
  if (type === 'bigint' || type === 'counter') return types.Long.fromNumber(value as number);
  // A copy, because a caller may change its bytes.
  return type === 'blob' ? Buffer.from(value as Uint8Array) : value;
}

/** Returns the value as it is stored: numbers as numbers, bytes as a copy. */
function plain(value: unknown): unknown {
  if (typeof value === 'bigint') return Number(value);
  if (value instanceof types.Long) return value.toNumber();
  if (value instanceof Uint8Array) return Buffer.from(value);
  if (Array.isArray(value)) return value.length === 0 ? null : value.map(plain);
  return value;
}

function isSame(current: unknown, value: unknown): boolean {
  const other = plain(value);
  if (current === null || other === null || other === undefined) return current === (other ?? null);
  return compare(current, other) === 0;
}

function compare(a: unknown, b: unknown): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  if (typeof a === 'string' && typeof b === 'string') return a < b ? -1 : a > b ? 1 : 0;
  if (a instanceof Uint8Array && b instanceof Uint8Array) return Buffer.compare(a, b);
  const [one, other] = [JSON.stringify(a), JSON.stringify(b)];
  return one < other ? -1 : one > other ? 1 : 0;
}

function compareKeys({ directions }: Schema, a: readonly unknown[], b: readonly unknown[]): number {
  for (let i = 0; i < a.length; i += 1) {
    const difference = compare(a[i], b[i]);
    if (difference !== 0) return difference * directions[i]!;
  }
  return 0;
}

function placeIn(schema: Schema, rows: readonly Row[], key: readonly unknown[]): number {
  let low = 0;
  let high = rows.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (compareKeys(schema, rows[middle]!.key, key) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

function findRow(schema: Schema, partition: Partition, key: readonly unknown[]): Row | undefined {
  if (key.length !== schema.clustering.length) return undefined;
  const row = partition.rows[placeIn(schema, partition.rows, key)];
  return row !== undefined && compareKeys(schema, row.key, key) === 0 ? row : undefined;
}

function rowAt(schema: Schema, partition: Partition, key: readonly unknown[]): Row {
  if (key.length !== schema.clustering.length)
    throw new CqlError(`${schema.name} needs the whole key of a row`);
  const at = placeIn(schema, partition.rows, key);
  const found = partition.rows[at];
  if (found !== undefined && compareKeys(schema, found.key, key) === 0) return found;
  const row = new Row(key);
  partition.rows.splice(at, 0, row);
  return row;
}

function partitionAt(table: Table, key: readonly unknown[]): Partition {
  const text = keyText(key);
  let partition = table.partitions.get(text);
  if (partition === undefined) {
    partition = new Partition(key);
    table.partitions.set(text, partition);
  }
  return partition;
}

function keyText(key: readonly unknown[]): string {
  let text = '';
  for (const value of key)
    text += `${typeof value === 'string' ? `'${value}` : typeof value === 'number' ? value : JSON.stringify(value)}\0`;
  return text;
}

function isKey({ partitionKey, clustering }: Schema, column: string): boolean {
  return partitionKey.includes(column) || clustering.includes(column);
}

function orderOf(schema: Schema): readonly string[] {
  const named = [...schema.columns.values()]
    .filter(({ name }) => !isKey(schema, name))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
  return [
    ...schema.partitionKey,
    ...schema.clustering,
    ...named.filter(({ isStatic }) => isStatic).map(({ name }) => name),
    ...named.filter(({ isStatic }) => !isStatic).map(({ name }) => name),
  ];
}

function schemaOf(name: string, keys: readonly string[], others: readonly string[]): Schema {
  const columns = new Map(
    [...keys, ...others].map((column) => [column, { name: column, type: 'text', isStatic: false }]),
  );
  const clustering = keys.slice(1);
  const schema: Schema = {
    name,
    columns,
    partitionKey: keys.slice(0, 1),
    clustering,
    directions: clustering.map(() => 1),
    order: [],
  };
  schema.order = orderOf(schema);
  return schema;
}

/** Returns a table of one partition that answers to every key. */
function systemTable(
  name: string,
  keys: readonly string[],
  rows: readonly Readonly<Record<string, unknown>>[],
): Table {
  const clustering = keys.slice(1);
  const others = Object.keys(rows[0] ?? {}).filter((column) => !clustering.includes(column));
  const table = new Table(schemaOf(name, keys, others));
  const partition = new Partition(['*']);
  for (const values of rows) {
    const row = new Row(clustering.map((column) => values[column]));
    row.marker = { at: 0 };
    for (const column of others) row.cells.set(column, { at: 0, value: values[column] });
    partition.rows.push(row);
  }
  table.partitions.set('*', partition);
  return table;
}

function unknownColumn({ name }: Schema, column: string): CqlError {
  return new CqlError(`${name} has no column ${column}`);
}

function isChange(statement: Statement): statement is Insert | Update | Delete {
  return statement.kind === 'insert' || statement.kind === 'update' || statement.kind === 'delete';
}

function isConditional(statement: Mutation): boolean {
  return statement.kind === 'insert' ? statement.ifNotExists : statement.conditions !== undefined;
}

function termValue(term: Term, params: readonly unknown[]): unknown {
  return term.kind === 'value' ? term.value : params[term.index];
}

function valuesOf({ terms }: Relation, params: readonly unknown[]): readonly unknown[] {
  return terms.map((term) => termValue(term, params));
}

function numberOf(value: unknown): number {
  const number = plain(value);
  if (typeof number !== 'number') throw new CqlError('a number was expected');
  return number;
}

function limitOf(term: Term | undefined, params: readonly unknown[]): number | undefined {
  return term === undefined ? undefined : numberOf(termValue(term, params));
}
