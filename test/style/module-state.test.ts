import { readdirSync, readFileSync } from 'node:fs';
import t from 'tap';
import ts from 'typescript';

/** Variables of modules that may change, with the reason why each is allowed. */
const ALLOWED: Readonly<Record<string, string>> = {
  'src/core/engine/worker.ts: cores': 'a cache of a worker thread, whose task is a function of this module',
  'src/core/engine/worker.ts: hashes':
    'states of uploads in a worker thread, whose task is a function of this module',
  'src/core/codec/encrypt.ts: VALUES': 'a cache of what follows from its key alone',
  'src/service/contract/route-headers.ts: NOTICES_BY_ROUTE': 'a cache of what follows from its key alone',
  'src/core/credential/certificate.ts: read': 'a cache of what follows from its key alone',
  'src/service/adapters/reading/reading-entry.ts: trust': 'the main module of a process',
  'src/service/adapters/reading/reading-entry.ts: cutter': 'the main module of a process',
  'src/cli/main.ts: reachesServers': 'the main module of a process',
};

/** Classes whose instances nothing changes. */
const IMMUTABLE = new Set(['RegExp', 'URL', 'TextDecoder', 'TextEncoder', 'DomainError', 'Proxy', 'Markup']);

/** Returns the names of a module's own state that may change after the module was loaded. */
function mutableState(file: string, text: string): string[] {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  return source.statements.flatMap((statement) => {
    if (ts.isVariableStatement(statement)) {
      const { flags, declarations } = statement.declarationList;
      return declarations
        .filter((one) => (flags & ts.NodeFlags.Const) === 0 || isMutable(one))
        .map(({ name }) => `${file}: ${name.getText(source)}`);
    }
    if (ts.isClassDeclaration(statement)) {
      return statement.members
        .filter((member) => ts.isPropertyDeclaration(member) && isStaticVariable(member))
        .map((member) => `${file}: ${statement.name?.text}.${member.name?.getText(source)}`);
    }
    return patches(statement).map((left) => `${file}: ${left}`);
  });
}

function isMutable({ type, initializer }: ts.VariableDeclaration): boolean {
  if (initializer === undefined || type?.getText().startsWith('Readonly')) return false;
  if (ts.isArrayLiteralExpression(initializer)) return initializer.elements.length === 0 && !isReadonly(type);
  if (ts.isObjectLiteralExpression(initializer)) return initializer.properties.length === 0;
  return ts.isNewExpression(initializer) && !IMMUTABLE.has(initializer.expression.getText());
}

function isReadonly(type: ts.TypeNode | undefined): boolean {
  return type !== undefined && ts.isTypeOperatorNode(type) && type.operator === ts.SyntaxKind.ReadonlyKeyword;
}

function isStaticVariable({ modifiers }: ts.PropertyDeclaration): boolean {
  const kinds = modifiers?.map(({ kind }) => kind) ?? [];
  return kinds.includes(ts.SyntaxKind.StaticKeyword) && !kinds.includes(ts.SyntaxKind.ReadonlyKeyword);
}

/** Returns the assignments that loading the module makes to a prototype or to a global. */
function patches(statement: ts.Statement): string[] {
  if (!ts.isExpressionStatement(statement) || !ts.isBinaryExpression(statement.expression)) return [];
  const { left, operatorToken } = statement.expression;
  const assigns =
    operatorToken.kind >= ts.SyntaxKind.FirstAssignment && operatorToken.kind <= ts.SyntaxKind.LastAssignment;
  return assigns ? [left.getText()] : [];
}

t.test('no module has state that changes, but those that are named here', async (t) => {
  const files = readdirSync('src', { recursive: true, encoding: 'utf8' }).filter((file) =>
    /\.c?ts$/.test(file),
  );
  t.ok(files.length > 100, 'the sources are seen');
  const found = files
    .map((file) => `src/${file.replaceAll('\\', '/')}`)
    .flatMap((file) => mutableState(file, readFileSync(file, 'utf8')));
  t.strictSame(found.sort(), Object.keys(ALLOWED).sort());
});

t.test('state of a module is found in all its forms, and constants are not', async (t) => {
  const text = `
    let count = 0;
    var old = 0;
    export const cache = new Map<string, number>();
    const seen: Set<string> = new Set();
    const weak = new WeakMap();
    const list: string[] = [];
    const byName = {};
    const pool = new Pool();
    class Box { static last = 0; static readonly most = 1; size = 0; }
    Client.prototype.connect = null;
    process.exitCode = 1;
    const NAMES: ReadonlySet<string> = new Set(['a']);
    const NONE: readonly string[] = [];
    const NOTHING: ReadonlyMap<string, string> = new Map();
    const WORD = new RegExp('a');
    const TABLE = { a: 1 };
    const f = () => { let own = 0; return own; };
  `;
  t.strictSame(
    mutableState('m.ts', text).map((found) => found.slice('m.ts: '.length)),
    [
      'count',
      'old',
      'cache',
      'seen',
      'weak',
      'list',
      'byName',
      'pool',
      'Box.last',
      'Client.prototype.connect',
      'process.exitCode',
    ],
  );
});
