import { readdirSync, readFileSync } from 'node:fs';
import t from 'tap';
import ts from 'typescript';

/** Nouns and auxiliaries that end like a verb in the third person. */
const NOUNS = new Set(
  `
    Address Addresses Assets Assignments Buffers Bytes Certificates Claims Clips Clocks Codes Commands
    Conditions Credentials Days Entries Erasures Events Facts Faults Files Findings Folders Has Headers Ids
    Intervals Is Keys Lines Markers Members Messages Microseconds Milliseconds Numbers Outages Partners Parts
    Paths Points Positions Proofs Quarters Replicas Results Reviews Rows Samples Seconds Senders Settings
    Sightings Signatures Sources This Times Topics Tracks Units Values Watermarks
  `.match(/\S+/g),
);
const VERB = /^[A-Z][a-z]*(?:-[a-z]+)?s$/;

/** Returns the docstrings of functions that do not start with a verb, as `file:line: word`. */
function withoutVerb(file: string, text: string): string[] {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    const word = isFunction(node) ? firstWord(node) : undefined;
    if (word !== undefined && (!VERB.test(word) || NOUNS.has(word))) {
      const { line } = source.getLineAndCharacterOfPosition(node.getStart());
      found.push(`${file}:${line + 1}: ${word}`);
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

function isFunction(node: ts.Node): boolean {
  if (ts.isFunctionDeclaration(node) || ts.isMethodDeclaration(node) || ts.isMethodSignature(node))
    return true;
  const value = ts.isVariableStatement(node) ? node.declarationList.declarations[0]?.initializer : undefined;
  return value !== undefined && ts.isArrowFunction(value);
}

/** Returns the first word of a node's docstring. A docstring of tags alone has none. */
function firstWord(node: ts.Node): string | undefined {
  const docstring = ts.getJSDocCommentsAndTags(node).filter(ts.isJSDoc).at(-1);
  return /^[^\s,:;.]+/.exec(ts.getTextOfJSDocComment(docstring?.comment)?.trim() ?? '')?.[0];
}

t.test('the docstring of a function starts with a verb', async (t) => {
  const files = ['assembly', 'bench', 'deploy', 'src', 'test'].flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts') && !name.includes('node_modules'))
      .map((name) => `${folder}/${name}`),
  );
  t.ok(files.length > 0);
  t.strictSame(
    files.flatMap((file) => withoutVerb(file, readFileSync(file, 'utf8'))),
    [],
  );
});

t.test('a docstring without a verb is found in each kind of function', async (t) => {
  const code = [
    '/** The row of a key. */ function row(): void {}',
    '/** Returns a row. */ function rows(): void {}',
    'class Store {\n/** Rows in order. */ list(): void {} }',
    'interface Port {\n/** Called at the end. */ end(): void; }',
    '/** A row or none. */ const find = (): void => undefined;',
    '/** A constant needs no verb. */ const LIMIT = 1;',
    '/** @throws Error always */ function fail(): never { throw new Error(); }',
  ];
  t.strictSame(withoutVerb('a.ts', code.join('\n')), [
    'a.ts:1: The',
    'a.ts:4: Rows',
    'a.ts:6: Called',
    'a.ts:7: A',
  ]);
});
