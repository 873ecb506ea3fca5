/** Rules of the contract have numbers, and code names rules by number: every number that is named exists. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';

const ROOT = new URL('../../../', import.meta.url).pathname;
const CONTRACT = 'docs/contract.md';
const FOLDERS = ['src', 'assembly', 'test', 'bench', 'deploy', 'docs'];
const TEXT = /\.(?:[cm]?[jt]s|md|cql|sh|ya?ml|grit)$/;

interface Citation {
  readonly file: string;
  readonly rule: string;
}

/** Returns the rule numbers of the contract, in the order of the page. */
function rulesOf(page: string): readonly string[] {
  return [...page.matchAll(/^\*\*(\d+\.\d+)\*\* /gm)].map(([, rule]) => rule!);
}

/** Returns the rule numbers in a text, as in "rule 4.7" or "rules 4.7 and 4.8", also across lines of a comment. */
function citationsOf(text: string): readonly string[] {
  const joined = text.replaceAll(/\s*\n\s*(?:\*+|\/\/|--|#)?\s*/g, ' ');
  return [...joined.matchAll(/\brules? (?!0)(\d+\.\d+(?:(?:,? (?:and|or|to) |, )\d+\.\d+)*)/gi)].flatMap(
    ([, numbers]) => numbers!.match(/\d+\.\d+/g)!,
  );
}

async function citations(): Promise<readonly Citation[]> {
  const names = await Promise.all(
    FOLDERS.map(async (folder) =>
      (await readdir(join(ROOT, folder), { recursive: true }))
        .filter((name) => TEXT.test(name))
        .map((name) => join(folder, name)),
    ),
  );
  const found: Citation[] = [];
  // This file names numbers of its own invention.
  for (const file of [...names.flat(), 'README.md'].filter((name) => name !== 'test/docs/rules.test.ts'))
    for (const rule of citationsOf(await readFile(join(ROOT, file), 'utf8'))) found.push({ file, rule });
  return found;
}

t.test('every rule that is named is a rule of the contract', async (t) => {
  const rules = new Set(rulesOf(await readFile(join(ROOT, CONTRACT), 'utf8')));
  const named = await citations();
  const bySource = named.filter(({ file }) => file.startsWith('src/'));
  t.ok(bySource.length > 30, `the source names ${bySource.length} rules`);
  t.strictSame(
    named.filter(({ rule }) => !rules.has(rule)),
    [],
  );
});

t.test('rules are numbered by chapter, each number once and none left out', async (t) => {
  const page = await readFile(join(ROOT, CONTRACT), 'utf8');
  const chapters = [...page.matchAll(/^## (\d+)\. /gm)].map(([, chapter]) => Number(chapter));
  t.ok(chapters.length > 10, `${chapters.length} chapters`);
  t.strictSame(
    chapters,
    chapters.map((_, index) => index + 1),
  );
  const rules = rulesOf(page);
  t.ok(rules.length > 100, `${rules.length} rules`);
  const expected = chapters.flatMap((chapter) => {
    const own = rules.filter((rule) => rule.startsWith(`${chapter}.`));
    return own.map((_, index) => `${chapter}.${index + 1}`);
  });
  t.strictSame(rules, expected);
});

t.test('a number is found in a list, and over the line break of a comment', async (t) => {
  t.strictSame(
    citationsOf('/** Rules 4.7, 4.8 and 12.10 hold; see rule\n * 5.3. The version 1.2 is no rule. */'),
    ['4.7', '4.8', '12.10', '5.3'],
  );
});
