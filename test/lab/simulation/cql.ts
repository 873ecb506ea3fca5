/** A parser for the part of CQL that the store uses. It does not interpret the names of tables. */

export type Term =
  | { readonly kind: 'parameter'; readonly index: number }
  | { readonly kind: 'value'; readonly value: Value };

export type Value = string | number | boolean | null;

export type Operator = '=' | '<' | '>' | '<=' | '>=' | '!=' | 'IN';

/** A relation on one column, on a tuple of clustering columns, or on the partition's token. */
export interface Relation {
  readonly columns: readonly string[];
  readonly isTuple: boolean;
  readonly isToken: boolean;
  readonly operator: Operator;
  /** The terms of the right side: one for a column, one for each column of a tuple, or all of a list. */
  readonly terms: readonly Term[];
  /** Whether the right side is one parameter that holds a list. */
  readonly isListParameter: boolean;
}

export interface Assignment {
  readonly column: string;
  /** The kind of the assignment: `set` replaces the value, `add` adds entries to a map or a set. */
  readonly kind: 'set' | 'add';
  readonly term: Term;
}

export type Selector =
  | {
      readonly kind: 'column' | 'ttl' | 'writetime' | 'min' | 'max';
      readonly column: string;
      readonly name: string;
    }
  | { readonly kind: 'token'; readonly columns: readonly string[]; readonly name: string }
  | { readonly kind: 'count' | 'now'; readonly name: string };

export interface ColumnDefinition {
  readonly name: string;
  readonly type: string;
  readonly isStatic: boolean;
}

interface Changing {
  readonly table: string;
  readonly ttl?: Term;
  readonly timestamp?: Term;
}

export type Condition = {
  readonly column: string;
  readonly operator: Operator;
  readonly terms: readonly Term[];
  readonly isListParameter: boolean;
};
export type Conditions = 'exists' | readonly Condition[];

export interface Insert extends Changing {
  readonly kind: 'insert';
  readonly columns: readonly string[];
  readonly terms: readonly Term[];
  readonly ifNotExists: boolean;
}
export interface Update extends Changing {
  readonly kind: 'update';
  readonly assignments: readonly Assignment[];
  readonly where: readonly Relation[];
  readonly conditions?: Conditions;
}
export interface Delete extends Changing {
  readonly kind: 'delete';
  /** The deleted columns. An empty list deletes whole rows. */
  readonly columns: readonly string[];
  readonly where: readonly Relation[];
  readonly conditions?: Conditions;
}
export interface Select {
  readonly kind: 'select';
  readonly table: string;
  /** Undefined selects all columns. */
  readonly selectors?: readonly Selector[];
  readonly distinct: boolean;
  readonly where: readonly Relation[];
  readonly orderBy?: { readonly column: string; readonly descending: boolean };
  readonly limit?: Term;
  readonly limitOfPartition?: Term;
}
export type Definition =
  | {
      readonly kind: 'create_table';
      readonly table: string;
      readonly columns: readonly ColumnDefinition[];
      readonly partitionKey: readonly string[];
      readonly clustering: readonly string[];
      readonly descending: ReadonlySet<string>;
    }
  | { readonly kind: 'add_column'; readonly table: string; readonly columns: readonly ColumnDefinition[] }
  | { readonly kind: 'drop_column'; readonly table: string; readonly columns: readonly string[] }
  | { readonly kind: 'drop_table'; readonly table: string }
  /** A statement on keyspaces or options, which has no effect here. */
  | { readonly kind: 'ignored' };

export type Mutation = Insert | Update | Delete;
export type Statement = Mutation | Select | Definition;

/**
 * Reports a statement that this parser does not know. Then the parser must be extended. It must never guess.
 */
export class CqlError extends Error {
  override readonly name = 'CqlError';
}

const TOKEN =
  /\s+|--[^\n]*|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|'((?:[^']|'')*)'|"([^"]+)"|([A-Za-z_][A-Za-z0-9_]*)|(-?\d+(?:\.\d+)?)|(<=|>=|!=|[?=<>(),.*+;{}:[\]])/y;

interface Token {
  readonly kind: 'word' | 'text' | 'number' | 'sign';
  readonly text: string;
}

function tokensOf(query: string): readonly Token[] {
  const tokens: Token[] = [];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < query.length) {
    const at = TOKEN.lastIndex;
    const match = TOKEN.exec(query);
    if (match === null) throw new CqlError(`cannot read ${JSON.stringify(query.slice(at, at + 30))}`);
    const [, text, quoted, word, number, sign] = match;
    if (text !== undefined) tokens.push({ kind: 'text', text: text.replaceAll("''", "'") });
    else if (quoted !== undefined) tokens.push({ kind: 'word', text: quoted });
    else if (word !== undefined) tokens.push({ kind: 'word', text: word });
    else if (number !== undefined) tokens.push({ kind: 'number', text: number });
    else if (sign !== undefined) tokens.push({ kind: 'sign', text: sign });
  }
  return tokens;
}

export function parse(query: string): Statement {
  return new Parser(query).statement();
}

class Parser {
  readonly #query: string;
  readonly #tokens: readonly Token[];
  #next = 0;
  #parameters = 0;

  constructor(query: string) {
    this.#query = query;
    this.#tokens = tokensOf(query);
  }

  statement(): Statement {
    const statement = this.#statement();
    this.#accept(';');
    if (statement.kind !== 'ignored' && this.#next < this.#tokens.length) throw this.#unknown();
    return statement;
  }

  #statement(): Statement {
    const word = this.#peek()?.text.toUpperCase();
    this.#next += 1;
    switch (word) {
      case 'SELECT':
        return this.#select();
      case 'INSERT':
        return this.#insert();
      case 'UPDATE':
        return this.#update();
      case 'DELETE':
        return this.#delete();
      case 'CREATE':
        return this.#accept('TABLE') ? this.#createTable() : { kind: 'ignored' };
      case 'ALTER':
        return this.#accept('TABLE') ? this.#alterTable() : { kind: 'ignored' };
      case 'DROP':
        if (!this.#accept('TABLE')) return { kind: 'ignored' };
        this.#acceptAll('IF', 'EXISTS');
        return { kind: 'drop_table', table: this.#table() };
      default:
        throw this.#unknown();
    }
  }

  #select(): Select {
    const distinct = this.#accept('DISTINCT');
    const selectors = this.#accept('*') ? undefined : this.#list(() => this.#selector());
    this.#expect('FROM');
    const table = this.#table();
    const where = this.#accept('WHERE') ? this.#where() : [];
    let orderBy: Select['orderBy'];
    if (this.#acceptAll('ORDER', 'BY')) {
      const column = this.#word();
      const descending = this.#accept('DESC');
      if (!descending) this.#accept('ASC');
      orderBy = { column, descending };
    }
    const limitOfPartition = this.#acceptAll('PER', 'PARTITION', 'LIMIT') ? this.#term() : undefined;
    const limit = this.#accept('LIMIT') ? this.#term() : undefined;
    this.#acceptAll('ALLOW', 'FILTERING');
    return {
      kind: 'select',
      table,
      distinct,
      where,
      ...(selectors && { selectors }),
      ...(orderBy && { orderBy }),
      ...(limit && { limit }),
      ...(limitOfPartition && { limitOfPartition }),
    };
  }

  #selector(): Selector {
    const word = this.#word();
    const named = (name: string): string => (this.#accept('AS') ? this.#word() : name);
    if (!this.#accept('(')) return { kind: 'column', column: word, name: named(word) };
    const call = word.toLowerCase();
    if (call === 'count') {
      if (!this.#accept('*')) this.#next += 1;
      this.#expect(')');
      return { kind: 'count', name: named('count') };
    }
    if (call === 'tounixtimestamp') {
      this.#expect('now');
      this.#expect('(');
      this.#expect(')');
      this.#expect(')');
      return { kind: 'now', name: named('system.tounixtimestamp(system.now())') };
    }
    const columns = this.#list(() => this.#word());
    this.#expect(')');
    const written = `${call}(${columns.join(', ')})`;
    if (call === 'token') return { kind: 'token', columns, name: named(`system.${written}`) };
    if (call === 'ttl' || call === 'writetime')
      return { kind: call, column: columns[0]!, name: named(written) };
    if (call === 'min' || call === 'max')
      return { kind: call, column: columns[0]!, name: named(`system.${written}`) };
    throw this.#unknown();
  }

  #insert(): Insert {
    this.#expect('INTO');
    const table = this.#table();
    const columns = this.#parenthesised(() => this.#word());
    this.#expect('VALUES');
    const terms = this.#parenthesised(() => this.#term());
    const ifNotExists = this.#acceptAll('IF', 'NOT', 'EXISTS');
    return { kind: 'insert', table, columns, terms, ifNotExists, ...this.#using() };
  }

  #update(): Update {
    const table = this.#table();
    const using = this.#using();
    this.#expect('SET');
    const assignments = this.#list((): Assignment => {
      const column = this.#word();
      this.#expect('=');
      if (this.#peek()?.kind === 'word' && this.#peek()?.text === column) {
        this.#next += 1;
        this.#expect('+');
        return { column, kind: 'add', term: this.#term() };
      }
      return { column, kind: 'set', term: this.#term() };
    });
    this.#expect('WHERE');
    return { kind: 'update', table, assignments, where: this.#where(), ...using, ...this.#conditions() };
  }

  #delete(): Delete {
    const columns = this.#is('FROM') ? [] : this.#list(() => this.#word());
    this.#expect('FROM');
    const table = this.#table();
    const using = this.#using();
    this.#expect('WHERE');
    return { kind: 'delete', table, columns, where: this.#where(), ...using, ...this.#conditions() };
  }

  #using(): { readonly ttl?: Term; readonly timestamp?: Term } {
    if (!this.#accept('USING')) return {};
    let using: { readonly ttl?: Term; readonly timestamp?: Term } = {};
    do {
      if (this.#accept('TTL')) using = { ...using, ttl: this.#term() };
      else {
        this.#expect('TIMESTAMP');
        using = { ...using, timestamp: this.#term() };
      }
    } while (this.#accept('AND'));
    return using;
  }

  #conditions(): { readonly conditions?: Conditions } {
    if (!this.#accept('IF')) return {};
    if (this.#accept('EXISTS')) return { conditions: 'exists' };
    const conditions: Condition[] = [];
    do {
      const column = this.#word();
      conditions.push({ column, ...this.#comparison() });
    } while (this.#accept('AND'));
    return { conditions };
  }

  #where(): readonly Relation[] {
    const relations: Relation[] = [];
    do {
      const isTuple = this.#is('(');
      let isToken = false;
      let columns: readonly string[];
      if (isTuple) columns = this.#parenthesised(() => this.#word());
      else {
        const word = this.#word();
        isToken = word.toLowerCase() === 'token' && this.#is('(');
        columns = isToken ? this.#parenthesised(() => this.#word()) : [word];
      }
      relations.push({ columns, isTuple, isToken, ...this.#comparison() });
    } while (this.#accept('AND'));
    return relations;
  }

  #comparison(): Pick<Relation, 'operator' | 'terms' | 'isListParameter'> {
    if (this.#accept('IN')) {
      if (this.#is('('))
        return { operator: 'IN', terms: this.#parenthesised(() => this.#term()), isListParameter: false };
      return { operator: 'IN', terms: [this.#term()], isListParameter: true };
    }
    const operator = this.#peek()?.text as Operator;
    if (!['=', '<', '>', '<=', '>=', '!='].includes(operator)) throw this.#unknown();
    this.#next += 1;
    const terms = this.#is('(') ? this.#parenthesised(() => this.#term()) : [this.#term()];
    return { operator, terms, isListParameter: false };
  }

  #createTable(): Definition {
    this.#acceptAll('IF', 'NOT', 'EXISTS');
    const table = this.#table();
    const columns: ColumnDefinition[] = [];
    let partitionKey: readonly string[] = [];
    let clustering: readonly string[] = [];
    this.#expect('(');
    do {
      if (this.#acceptAll('PRIMARY', 'KEY')) {
        this.#expect('(');
        partitionKey = this.#is('(') ? this.#parenthesised(() => this.#word()) : [this.#word()];
        if (this.#accept(',')) clustering = this.#list(() => this.#word());
        this.#expect(')');
      } else {
        columns.push(this.#column());
        if (this.#acceptAll('PRIMARY', 'KEY')) partitionKey = [columns.at(-1)!.name];
      }
    } while (this.#accept(','));
    this.#expect(')');
    const descending = new Set<string>();
    const rest = this.#tokens.slice(this.#next).map(({ text }) => text);
    const order = rest.findIndex((word, i) => word === 'ORDER' && rest[i + 1] === 'BY');
    if (order >= 0)
      for (let i = order + 3; rest[i] !== ')' && i < rest.length; i += 1)
        if (rest[i + 1]?.toUpperCase() === 'DESC') descending.add(rest[i]!);
    this.#next = this.#tokens.length;
    return { kind: 'create_table', table, columns, partitionKey, clustering, descending };
  }

  #alterTable(): Definition {
    this.#acceptAll('IF', 'EXISTS');
    const table = this.#table();
    if (this.#accept('ADD')) {
      this.#acceptAll('IF', 'NOT', 'EXISTS');
      return { kind: 'add_column', table, columns: this.#list(() => this.#column()) };
    }
    if (this.#accept('DROP')) {
      this.#acceptAll('IF', 'EXISTS');
      return { kind: 'drop_column', table, columns: this.#list(() => this.#word()) };
    }
    this.#next = this.#tokens.length;
    return { kind: 'ignored' };
  }

  #column(): ColumnDefinition {
    const name = this.#word();
    const type = this.#type();
    return { name, type, isStatic: this.#accept('static') };
  }

  #type(): string {
    const word = this.#word().toLowerCase();
    if (!this.#accept('<')) return word;
    const inner = this.#list(() => this.#type());
    this.#expect('>');
    return `${word}<${inner.join(',')}>`;
  }

  #term(): Term {
    const token = this.#peek();
    this.#next += 1;
    if (token?.kind === 'text') return { kind: 'value', value: token.text };
    if (token?.kind === 'number') return { kind: 'value', value: Number(token.text) };
    if (token?.text === '?') return { kind: 'parameter', index: this.#parameters++ };
    switch (token?.text.toLowerCase()) {
      case 'null':
        return { kind: 'value', value: null };
      case 'true':
        return { kind: 'value', value: true };
      case 'false':
        return { kind: 'value', value: false };
      default:
        throw this.#unknown();
    }
  }

  #table(): string {
    const word = this.#word();
    return this.#accept('.') ? `${word}.${this.#word()}` : word;
  }

  #word(): string {
    const token = this.#peek();
    if (token?.kind !== 'word') throw this.#unknown();
    this.#next += 1;
    return token.text;
  }

  #list<Item>(read: () => Item): readonly Item[] {
    const items = [read()];
    while (this.#accept(',')) items.push(read());
    return items;
  }

  #parenthesised<Item>(read: () => Item): readonly Item[] {
    this.#expect('(');
    const items = this.#list(read);
    this.#expect(')');
    return items;
  }

  #peek(): Token | undefined {
    return this.#tokens[this.#next];
  }

  #is(text: string): boolean {
    const token = this.#peek();
    return token !== undefined && token.kind !== 'text' && token.text.toUpperCase() === text.toUpperCase();
  }

  #accept(text: string): boolean {
    if (!this.#is(text)) return false;
    this.#next += 1;
    return true;
  }

  #acceptAll(...texts: readonly string[]): boolean {
    const before = this.#next;
    if (texts.every((text) => this.#accept(text))) return true;
    this.#next = before;
    return false;
  }

  #expect(text: string): void {
    if (!this.#accept(text)) throw this.#unknown();
  }

  #unknown(): CqlError {
    return new CqlError(
      `statement of an unknown form, at ${this.#peek()?.text ?? 'its end'}: ${this.#query}`,
    );
  }
}
