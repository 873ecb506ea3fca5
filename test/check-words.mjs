/**
 * Fails when a folder has more banned words in its prose than `test/style/word-counts.json` allows. Prose is
 * comments, the strings of `src/`, alerts and Markdown pages. Fewer hits than the number fail too, until
 * `--write` has lowered the number. So each number can only fall, and the check needs no history of git.
 */

import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { proseOf } from './style/prose.mjs';

const COUNTS = 'test/style/word-counts.json';
const EXCEPTIONS = 'test/style/word-exceptions.json';
const FOLDERS = ['.ci', 'assembly', 'bench', 'deploy', 'docs', 'src', 'test'];
const SKIPPED = new Set(['node_modules', 'dist', 'results']);

const BANNED = [
  ...['nobody', 'whoever', 'whatever', 'tell', 'tells', 'told', 'lies', 'stands', 'give way', 'gives way'],
  ...['of which', 'by which', 'for ever', 'may lack', 'is no', 'behind'],
];

/** Uses of a banned word that are plain English, by the text before the word or the text after it. */
const PLAIN = {
  'is no': [
    { before: /\bthere\s+$/i },
    { after: /^\s+longer\b/i },
    { after: /^\s+(more|less|fewer|\w+er)\s+than\b/i },
  ],
  // Banned in the sense of "after" alone: an article or a pronoun follows, or the sentence ends.
  behind: [
    { after: /^\s+(?!(an?|the|its?|that|this|these|those|them|each|all|any|what|another)\b)[^\s.,;:!?)]/i },
    {
      after:
        /^\s+((an?|the|its|that|this|your)\s+)?([\w-]+\s+){0,2}(proxy|proxies|balancers?|TLS|tunnel|NAT)\b/i,
    },
    { after: /^\s+(the|its)\s+(firewall|gateway|clock|time)\b/i },
    { before: /\b(lag|lags|lagging|fall|falls|falling|fell|stay|stays|far|seconds?|minutes?|\d\s+s)\s+$/i },
    { before: /\bclocks?\s[^.;:]{0,30}$/i },
    { before: /\b(leave|leaves|leaving|left)\b[^.;:]{0,40}$/i },
  ],
};

const WORD = new RegExp(`(?<![\\w-])(?:${BANNED.join('|').replaceAll(' ', '\\s+')})(?![\\w-])`, 'gi');

/** Matches every source that may hold a banned word. Other files are not parsed, because that is slow. */
const CANDIDATE = new RegExp(
  `(?:(?<![\\w-])|(?<=\\\\[a-z]))(?:${BANNED.join('|').replaceAll(' ', '(?:\\W|\\\\[a-z])+')})(?![\\w-])`,
  'i',
);

function files() {
  const within = (folder) =>
    readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
      if (entry.isDirectory()) return SKIPPED.has(entry.name) ? [] : within(`${folder}/${entry.name}`);
      return [`${folder}/${entry.name}`];
    });
  return [
    ...readdirSync('.').filter((name) => name.endsWith('.md')),
    ...FOLDERS.filter((folder) => existsSync(folder)).flatMap(within),
  ].sort();
}

/** Returns a line for each banned word of a file, and marks the exceptions that allow one as used. */
function hitsOf(file, source, exceptions) {
  if (!CANDIDATE.test(source)) return [];
  const hits = [];
  for (const { start, text } of proseOf(file, source)) {
    const excepted = exceptions.flatMap((exception) =>
      [...text.matchAll(exception.pattern)].map(({ 0: { length }, index }) => ({
        exception,
        from: index,
        to: index + length,
      })),
    );
    for (const { 0: found, index } of text.matchAll(WORD)) {
      const word = found.replaceAll(/\s+/g, ' ').toLowerCase();
      if (isPlain(word, text.slice(0, index), text.slice(index + found.length))) continue;
      const named = excepted.find(({ from, to }) => from <= index && index < to);
      if (named !== undefined) {
        named.exception.used = true;
        continue;
      }
      const at = start + index;
      const line = source.slice(0, at).split('\n').length;
      const excerpt = source.slice(Math.max(0, at - 40), at + found.length + 40).replaceAll(/\s+/g, ' ');
      hits.push(`${file}:${line}: "${word}" in: ${excerpt.trim()}`);
    }
  }
  return hits;
}

function isPlain(word, before, after) {
  return (PLAIN[word] ?? []).some((use) => use.before?.test(before) || use.after?.test(after));
}

/** Returns the first two folders of the file's path, or `.` for a page of the root. */
function roomOf(file) {
  const folders = file.split('/').slice(0, -1);
  return folders.slice(0, 2).join('/') || '.';
}

function readJson(file, absent) {
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : absent;
}

// Only a project without the file gets its first numbers by `--write`. From then on, none is raised.
const counts = readJson(COUNTS, undefined);
const exceptions = readJson(EXCEPTIONS, []).map(({ file, phrase, reason }) => {
  if (!reason) throw new Error(`${EXCEPTIONS}: "${phrase}" has no reason`);
  const pattern = phrase.replaceAll(/[^\w\s]/g, '\\$&').replaceAll(/\s+/g, '\\s+');
  return { file, phrase, pattern: new RegExp(pattern, 'g'), used: false };
});
const all = files();
const hits = {};
for (const file of all) {
  const own = exceptions.filter((exception) => exception.file === file);
  const found = hitsOf(file, readFileSync(file, 'utf8'), own);
  if (found.length > 0) (hits[roomOf(file)] ??= []).push(...found);
}

const faults = [];
for (const { file, phrase, used } of exceptions)
  if (!used) faults.push(`${EXCEPTIONS}: no banned word of ${file} is in "${phrase}": delete the exception`);
for (const room of new Set([...Object.keys(counts ?? {}), ...Object.keys(hits)])) {
  const found = hits[room] ?? [];
  const allowed = counts?.[room] ?? 0;
  if (found.length > allowed && !(writes() && counts === undefined))
    faults.push(
      ...found,
      `${room}: ${found.length} banned words, ${allowed} allowed: see Style in CONTRIBUTING.md`,
    );
  if (found.length < allowed && !writes())
    faults.push(
      `${room}: ${found.length} banned words, ${allowed} allowed: lower the number: npm run build:words`,
    );
}
if (all.length === 0) faults.push('no files to read');

const left = Object.keys(hits)
  .sort()
  .map((room) => [room, hits[room].length]);
if (faults.length > 0) {
  // Not `process.exit`, which may cut off what a pipe has not taken yet.
  console.error(faults.join('\n'));
  process.exitCode = 1;
} else {
  if (writes()) writeFileSync(COUNTS, `${JSON.stringify(Object.fromEntries(left), null, 2)}\n`);
  console.log(`${all.length} files, ${left.reduce((sum, [, count]) => sum + count, 0)} banned words left`);
}

function writes() {
  return process.argv[2] === '--write';
}
