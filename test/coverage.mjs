/**
 * Runs tests under V8's coverage and prints, for each folder of src, the lines that ran and the functions
 * that never did. Processes and workers that a test starts count, except those that are killed or get an
 * environment of their own.
 *
 *   node test/coverage.mjs [--functions] [test files under dist/]   all tests where none are named
 *   node test/coverage.mjs --read DIRECTORY                         a run that is there already
 *
 * A failing test is reported and does not fail the measurement.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';

const ROOT = fileURLToPath(new URL('../', import.meta.url));
const CODE = join(ROOT, 'dist/src');

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { functions: { type: 'boolean', default: false }, read: { type: 'string' } },
});
const directory = values.read ?? mkdtempSync(join(tmpdir(), 'takemark-coverage-'));
try {
  if (values.read === undefined) {
    const { status } = spawnSync(process.execPath, ['test/run.mjs', ...positionals], {
      cwd: ROOT,
      env: { ...process.env, NODE_V8_COVERAGE: directory },
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    if (status !== 0) console.log(`coverage: tests ended with status ${status}`);
  }
  print(measure(directory));
} finally {
  if (values.read === undefined) rmSync(directory, { recursive: true, force: true });
}

/**
 * Returns an entry for each compiled file: the bytes that ran in any process, and the calls of its functions
 * by position.
 */
function measure(directory) {
  const files = new Map(
    readdirSync(CODE, { recursive: true, encoding: 'utf8' })
      .filter((name) => /\.c?js$/.test(name))
      .map((name) => {
        const text = readFileSync(join(CODE, name), 'utf8');
        const ran = new Uint8Array(text.length);
        return [pathToFileURL(join(CODE, name)).href, { name, text, ran, functions: new Map() }];
      }),
  );
  for (const report of readdirSync(directory)) {
    for (const { url, functions } of parse(join(directory, report))) {
      const file = files.get(url);
      if (file !== undefined) add(file, functions);
    }
  }
  return [...files.values()];
}

/** Returns the scripts of one process's report, or none if the process was killed while it wrote. */
function parse(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8')).result;
  } catch (error) {
    if (error instanceof SyntaxError) return [];
    throw error;
  }
}

function add(file, functions) {
  const ran = new Uint8Array(file.text.length);
  // An inner range follows its outer range, and overrules it.
  for (const { functionName, ranges } of functions) {
    for (const { startOffset, endOffset, count } of ranges)
      ran.fill(count > 0 ? 1 : 0, startOffset, Math.min(endOffset, ran.length));
    const [{ startOffset, count }] = ranges;
    const known = file.functions.get(startOffset);
    file.functions.set(startOffset, { functionName, count: (known?.count ?? 0) + count });
  }
  for (let at = 0; at < ran.length; at += 1) file.ran[at] |= ran[at];
}

function print(files) {
  const rooms = new Map();
  const never = [];
  for (const file of files) {
    const room = dirname(file.name);
    const sum = rooms.get(room) ?? { lines: 0, ran: 0, functions: 0, never: 0 };
    rooms.set(room, sum);
    for (const ran of linesOf(file)) {
      sum.lines += 1;
      if (ran) sum.ran += 1;
    }
    const { findEntry } = positionsOf(file);
    for (const [start, { functionName, count }] of file.functions) {
      sum.functions += 1;
      if (count > 0) continue;
      sum.never += 1;
      never.push(`${findEntry(start)} ${functionName || '(anonymous)'}`);
    }
  }
  console.log(
    `${'folder of src'.padEnd(34)} ${'lines'.padStart(7)} ${'run'.padStart(6)}  functions  never run`,
  );
  for (const [room, sum] of [...rooms].sort(([a], [b]) => (a < b ? -1 : 1))) console.log(row(room, sum));
  const all = { lines: 0, ran: 0, functions: 0, never: 0 };
  for (const sum of rooms.values()) for (const key of Object.keys(all)) all[key] += sum[key];
  console.log(row('all', all));
  if (values.functions) console.log(never.sort().join('\n'));
}

function row(name, { lines, ran, functions, never }) {
  const share = lines === 0 ? '' : `${((100 * ran) / lines).toFixed(1)}%`;
  return `${name.padEnd(34)} ${String(lines).padStart(7)} ${share.padStart(6)}  ${String(functions).padStart(9)}  ${String(never).padStart(9)}`;
}

/** Returns for each line with code whether any of its code ran. */
function linesOf({ text, ran }) {
  const lines = [];
  let start = 0;
  for (const line of text.split('\n')) {
    const code = line.trim();
    if (/[\w$]/.test(code) && !/^(?:\/\/|\/?\*)/.test(code))
      lines.push(ran.subarray(start, start + line.length).some((byte) => byte === 1));
    start += line.length + 1;
  }
  return lines;
}

/** Returns an object that finds the place in the source of an offset in the compiled text. */
function positionsOf({ name, text }) {
  const map = new SourceMap(JSON.parse(readFileSync(join(CODE, `${name}.map`), 'utf8')));
  return {
    findEntry(offset) {
      const before = text.slice(0, offset).split('\n');
      const { originalLine } = map.findEntry(before.length - 1, before.at(-1).length);
      return `src/${name.replace(/\.(c?)js$/, '.$1ts')}:${(originalLine ?? 0) + 1}`;
    },
  };
}
