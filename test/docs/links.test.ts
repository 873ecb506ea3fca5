/** Checks that every file and section that a page names exists, and that a decision is at most a page long. */
import { access, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import t from 'tap';
import { pages, ROOT } from './pages.js';

const DECISIONS = 'docs/decisions/';
/** The most lines of a decision, and the columns of a line: a longer line counts as several. */
const PAGE_LINES = 60;
const COLUMNS = 118;
/** A source file named as code: a file name that ends as source does, with or without folders before it. */
const SOURCE_FILE = /`([\w./-]*\w\.(?:[cm]?[jt]s|cql|wasm|sh|ya?ml))`/g;
const SOURCE_FOLDERS = /^(?:\.ci|src|test|bench|deploy|assembly|docs)\//;

/** Returns the targets of relative links, and the files and folders of the project that are named as code. */
function namedFiles(page: string, text: string): readonly string[] {
  const links = [...text.matchAll(/\]\((?!https?:)([^)#\s]+)(?:#[^)]*)?\)/g)].map(([, target]) =>
    join(dirname(page), target!),
  );
  const code = [
    ...text.matchAll(/`((?:src|test|bench|deploy|assembly|docs)\/(?:[\w./-]+(?:\.\w+|\/))?)`/g),
  ].map(([, target]) => target!);
  return [...links, ...code];
}

/** Returns the links of a page to a section of a page, with the page of the section. */
function namedSections(page: string, text: string): readonly (readonly [page: string, section: string])[] {
  return [...text.matchAll(/\]\((?!https?:)([^)#\s]*)#([^)\s]+)\)/g)].map(([, target, section]) => [
    target === '' ? page : join(dirname(page), target!),
    section!,
  ]);
}

/** Returns the anchors of a page: those that GitHub derives from headings, and those of the page itself. */
function anchors(text: string): ReadonlySet<string> {
  const found = new Set([...text.matchAll(/<a id="([^"]+)">/g)].map(([, id]) => id!));
  const prose = text.replaceAll(/^ *(```+)[\s\S]*?^ *\1$/gm, '');
  for (const [, heading] of prose.matchAll(/^#{1,6} +(.*)$/gm)) {
    const slug = heading!
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{M}\p{N}\p{Pc} -]/gu, '')
      .replaceAll(' ', '-');
    let anchor = slug;
    for (let count = 1; found.has(anchor); count += 1) anchor = `${slug}-${count}`;
    found.add(anchor);
  }
  return found;
}

/** Returns the source files that a text names, with or without a folder. */
function sourceFiles(text: string): readonly string[] {
  return [...text.matchAll(SOURCE_FILE)].map(([, target]) => target!);
}

async function decisions(): Promise<readonly string[]> {
  return (await pages()).filter((page) => page.startsWith(DECISIONS));
}

t.test('every file that a page names is there', async (t) => {
  let named = 0;
  const missing: string[] = [];
  for (const page of await pages()) {
    for (const file of namedFiles(page, await readFile(join(ROOT, page), 'utf8'))) {
      named += 1;
      await access(join(ROOT, file)).catch(() => missing.push(`${page}: ${file}`));
    }
  }
  t.ok(named > 100, `${named} files are named`);
  t.strictSame(missing, []);
});

t.test('every section that a page links to is there', async (t) => {
  const texts = new Map<string, string>();
  for (const page of await pages()) texts.set(page, await readFile(join(ROOT, page), 'utf8'));
  const sections = [...texts].flatMap(([page, text]) =>
    namedSections(page, text).map(([target, section]) => ({ page, target, section })),
  );
  t.ok(sections.length > 100, `${sections.length} links to sections`);
  t.strictSame(
    sections
      .filter(({ target, section }) => !anchors(texts.get(target) ?? '').has(section))
      .map(({ page, target, section }) => `${page}: ${target}#${section}`),
    [],
  );
});

t.test('a section has the anchor that GitHub gives it', async (t) => {
  t.strictSame(namedSections('docs/page.md', '[one](#two), [three](four/five.md#six), [seven](eight.md)'), [
    ['docs/page.md', 'two'],
    ['docs/four/five.md', 'six'],
  ]);
  t.strictSame(
    [
      ...anchors(
        '# The first page\n## `restore`, and [why](x.md)?\n<a id="old"></a>\n```sh\n# no heading\n```\n## A\n## A\n',
      ),
    ],
    ['old', 'the-first-page', 'restore-and-why', 'a', 'a-1'],
  );
});

t.test('a page that names a file that is gone is found', async (t) => {
  t.strictSame(
    namedFiles(
      'docs/page.md',
      '[one](decisions/0001-x.md#part), [two](https://example.com/x), `src/gone.ts`, `src/gone/`, `npm run x`',
    ),
    ['docs/decisions/0001-x.md', 'src/gone.ts', 'src/gone/'],
  );
});

t.test('a decision names source files by their whole path, and each of them exists', async (t) => {
  let named = 0;
  const missing: string[] = [];
  for (const page of await decisions()) {
    for (const file of sourceFiles(await readFile(join(ROOT, page), 'utf8'))) {
      named += 1;
      if (!SOURCE_FOLDERS.test(file)) missing.push(`${page}: ${file} is not a path from the root`);
      else await access(join(ROOT, file)).catch(() => missing.push(`${page}: ${file} does not exist`));
    }
  }
  t.ok(named > 20, `${named} source files are named`);
  t.strictSame(missing, []);
});

t.test('a source file is found in a decision without the folder that it was moved from', async (t) => {
  t.strictSame(
    sourceFiles(
      '`http/connection.ts`, `gone.mjs`, `002-lease.cql`, `Buffer.indexOf`, `npm run x`, `node:http`',
    ),
    ['http/connection.ts', 'gone.mjs', '002-lease.cql'],
  );
});

t.test('a decision is at most a page long', async (t) => {
  const long: string[] = [];
  for (const page of await decisions()) {
    const lines = (await readFile(join(ROOT, page), 'utf8')).trimEnd().split('\n');
    const printed = lines.reduce((sum, line) => sum + Math.max(1, Math.ceil(line.length / COLUMNS)), 0);
    if (printed > PAGE_LINES) long.push(`${page}: ${printed} lines of ${COLUMNS} columns`);
  }
  t.strictSame(long, []);
});
