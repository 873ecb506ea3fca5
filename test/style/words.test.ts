import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import t, { type Test } from 'tap';

const SCRIPT = resolve('test/check-words.mjs');
const COUNTS = 'test/style/word-counts.json';
const FENCE = '```';

interface Checked {
  readonly status: number | null;
  readonly said: string;
}

function run(directory: string, ...options: readonly string[]): Checked {
  const { status, stdout, stderr } = spawnSync(process.execPath, [SCRIPT, ...options], {
    cwd: directory,
    encoding: 'utf8',
  });
  return { status, said: stdout + stderr };
}

/** Lays out a project of the given files. Its counts and exceptions are JSON values. */
function project(t: Test, files: Readonly<Record<string, string | object>>): string {
  const tree: Record<string, unknown> = {};
  for (const [path, content] of Object.entries(files)) {
    const folders = path.split('/');
    let at = tree;
    for (const folder of folders.slice(0, -1)) at = (at[folder] ??= {}) as Record<string, unknown>;
    at[folders.at(-1)!] = typeof content === 'string' ? content : JSON.stringify(content);
  }
  return t.testdir(tree as Parameters<typeof t.testdir>[0]);
}

/** Checks files in a project of their own. Returns the hits of each, as line and word. */
function hits(t: Test, files: Readonly<Record<string, string>>): Readonly<Record<string, readonly string[]>> {
  const found: Record<string, string[]> = Object.fromEntries(Object.keys(files).map((path) => [path, []]));
  for (const [, path, line, word] of run(project(t, files)).said.matchAll(/^(\S+):(\d+): "([^"]+)" in: /gm))
    found[path!]!.push(`${line} ${word}`);
  return found;
}

/** Gives each key the same value. */
function all<Value>(keys: readonly string[], value: Value): Readonly<Record<string, Value>> {
  return Object.fromEntries(keys.map((key) => [key, value]));
}

t.test('a banned word in a comment fails the check, wherever the comment is', async (t) => {
  const source = [
    '/** Returns what the relay',
    ' *  tells. The second line ends with of',
    ' *  which. */',
    `const a = \`\${ /* Nobody calls it. */ b } // whatever\`; // It lies here.`,
    '// A sentence that ends by',
    '// which the second line begins.',
    'const url = "http://whoever.example"; const pattern = /["\'`]\\/*/; // told',
  ].join('\n');
  const code = ['test/http/a.ts', 'bench/a.mts', 'assembly/a.cts', 'deploy/a.mjs', 'test/a.cjs'];
  const shell = ['.ci/run', 'deploy/a.sh'];
  const settings = ['deploy/a.yml', 'deploy/a.yaml', 'deploy/a.properties'];
  t.strictSame(
    hits(t, {
      ...all(code, source),
      ...all(shell, '#!/bin/sh\necho "# nobody" # told\n# it gives\n# way\n'),
      ...all(settings, 'told: 1 # told\n'),
    }),
    {
      ...all(code, ['2 tells', '2 of which', '4 nobody', '4 lies', '5 by which', '7 told']),
      ...all(shell, ['2 told', '3 gives way']),
      ...all(settings, ['1 told']),
    },
  );
});

t.test('a banned word in a sentence of src fails the check, also across parts of the sentence', async (t) => {
  const source = [
    "export const schema = z.string().meta({ description: 'The address that nobody reads.' });",
    "throw new Error('the value is ' +",
    `  \`no \${kind} and \${stands} behind\`);`,
    "const tells = { told: 'nobody', lies: 'told' };",
    "import { tells as told } from './whoever.js';",
    `const text = \`a line\\ntold of \${b ? 'what nobody knows' : c}\`;`,
  ].join('\n');
  t.strictSame(hits(t, { 'src/http/a.ts': source, 'test/http/a.ts': source }), {
    'src/http/a.ts': ['1 nobody', '2 is no', '3 behind', '6 told', '6 nobody'],
    // Strings of tests are not read.
    'test/http/a.ts': [],
  });
});

t.test('a banned word in a page fails the check, and code of a page does not', async (t) => {
  const page = [
    '# A page',
    '',
    'The page [tells](decisions/what-nobody-tells.md) a',
    'reader about `tells` and `whatever that is`.',
    '',
    `${FENCE}ts`,
    'const told = tells(); // nobody',
    FENCE,
    '',
    '- an item of',
    '- which nobody knows',
    '',
    `    ${FENCE}`,
    '    told',
    `    ${FENCE}`,
    '| a cell that stands | told-apart |',
  ].join('\n');
  const pages = ['docs/a.md', 'deploy/kafka/README.md', 'CHANGELOG.md'];
  t.strictSame(hits(t, all(pages, page)), all(pages, ['3 tells', '11 nobody', '16 stands']));
});

t.test('a banned word in an alert fails the check, and a metric of that name does not', async (t) => {
  const alerts = [
    'groups:',
    '  - name: takemark',
    '    rules:',
    '      - alert: Behind',
    '        expr: takemark_events_behind > nobody_told',
    '        annotations:',
    '          summary: "{{ $value }} events, of',
    '            which none was published"',
    "          action: Nobody's call fails.",
  ].join('\n');
  t.strictSame(hits(t, { 'deploy/prometheus/alerts.yml': alerts }), {
    'deploy/prometheus/alerts.yml': ['4 behind', '7 of which', '9 nobody'],
  });
});

t.test('plain uses of a banned word pass', async (t) => {
  t.strictSame(
    hits(t, {
      'docs/plain.md': [
        'The sidecar is no longer valid, and is no more than a file. The limit is no larger than that.',
        'There is no default.',
        'The service runs behind a proxy, behind the load balancer, behind TLS, behind an nginx proxy.',
        'A copy falls behind. The node lags behind the others, whose clock is seconds behind it.',
        'The store is behind the clock, and a stop leaves nothing behind.',
      ].join('\n\n'),
      'docs/banned.md': [
        'The sidecar is no padded base64.',
        'The bytes behind the file.',
        'The event that comes behind it.',
        'What follows is behind.',
        'The value is no number.',
      ].join('\n\n'),
    }),
    { 'docs/plain.md': [], 'docs/banned.md': ['1 is no', '3 behind', '5 behind', '7 behind', '9 is no'] },
  );
});

t.test('a number of hits only falls', async (t) => {
  const directory = project(t, {
    'src/http/a.ts': '// Nobody calls it.\n// The relay tells it.\n',
    'src/ports/a.ts': '// The store.\n',
    [COUNTS]: { 'src/http': 2 },
  });
  t.strictSame(run(directory), { status: 0, said: '3 files, 2 banned words left\n' });

  writeFileSync(join(directory, 'src/ports/a.ts'), '// The store that was told.\n');
  const clean = run(directory);
  t.equal(clean.status, 1, 'a word in a clean room');
  t.match(clean.said, 'src/ports/a.ts:1: "told" in: // The store that was told.');
  t.match(clean.said, 'src/ports: 1 banned words, 0 allowed');
  t.notMatch(clean.said, 'src/http', 'and nothing of the other room');

  const refused = run(directory, '--write');
  t.equal(refused.status, 1, 'no number is raised');
  t.match(refused.said, 'src/ports: 1 banned words, 0 allowed');
  t.strictSame(JSON.parse(readFileSync(join(directory, COUNTS), 'utf8')), { 'src/http': 2 });

  writeFileSync(join(directory, 'src/ports/a.ts'), '// The store.\n');
  writeFileSync(join(directory, 'src/http/a.ts'), '// Nobody calls it.\n');
  const fewer = run(directory);
  t.equal(fewer.status, 1);
  t.match(fewer.said, 'src/http: 1 banned words, 2 allowed: lower the number: npm run build:words');
  t.equal(run(directory, '--write').status, 0);
  t.strictSame(JSON.parse(readFileSync(join(directory, COUNTS), 'utf8')), { 'src/http': 1 });
  t.equal(run(directory).status, 0);

  writeFileSync(join(directory, 'src/http/a.ts'), '// The listener calls it.\n');
  t.equal(run(directory, '--write').status, 0);
  t.strictSame(JSON.parse(readFileSync(join(directory, COUNTS), 'utf8')), {}, 'a clean room has no number');
});

t.test('an exception allows its phrase in its file, and fails once it allows nothing', async (t) => {
  const files = {
    'docs/a.md': 'As the standard says: "whoever\nsigns the file", and nobody else.\n',
    'docs/b.md': 'As the standard says: "whoever signs the file".\n',
    [COUNTS]: { docs: 2 },
  };
  const exception = { file: 'docs/a.md', phrase: '"whoever signs the file"', reason: 'a quote' };
  const exceptions = (...list: readonly object[]) =>
    run(project(t, { ...files, 'test/style/word-exceptions.json': list }));
  t.strictSame(exceptions(exception), { status: 0, said: '4 files, 2 banned words left\n' });

  const stale = exceptions(exception, { ...exception, phrase: 'nothing of the kind' });
  t.equal(stale.status, 1);
  t.match(stale.said, 'no banned word of docs/a.md is in "nothing of the kind": delete the exception');
  t.match(exceptions({ ...exception, reason: '' }).said, 'has no reason');
});

t.test('a check that sees no files fails', async (t) => {
  t.strictSame(run(t.testdir()), { status: 1, said: 'no files to read\n' });
});
