/**
 * Runs the gate: every entry file of `test/gate/`, compiled, three at a time, longest first.
 *
 * `node test/run.mjs [name...] [--jobs n] [--bail] [--limit-seconds n] [--write-times]`: a name is an entry of `test/gate/` (`core`) or a test
 * file (`domain/domain`). Prints one line per file, each failure with its output, the slowest files and tests, and what
 * was skipped. `N passed, N failed` counts named tests. The exit code is 1 after a failure, and in CI
 * after a skipped test that is not one of the laboratory. `.tap/last.tap` keeps the whole output.
 */
import { spawn } from 'node:child_process';
import { createWriteStream, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';

const ROOT = dirname(import.meta.dirname);
const TIMES = join(ROOT, 'test/times.json');
const OUTPUT = join(ROOT, '.tap/last.tap');
const SLOWEST = 20;
/** A file is named as slow where it takes this many times its share of the last release's run. */
const SLOWER = 2;
/** Files below this time in seconds are not compared: their start dominates. */
const COMPARED_FROM = 5;
/** The time from the last test of a file until the file is killed if it is still open, in milliseconds. */
const END_MS = 60_000;
const PLAN = /^1\.\.[1-9]/;
const RESULT = /^(not )?ok /;
const FAILURE_LINES = 400;
const ERROR_CHARACTERS = 4000;
const LEFT_TO_LABORATORY = 'laboratory: ';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    jobs: { type: 'string', default: '3' },
    bail: { type: 'boolean', default: false },
    // A file that runs longer is killed.
    'limit-seconds': { type: 'string', default: '900' },
    'write-times': { type: 'boolean', default: false },
  },
});

const released = existsSync(TIMES) ? JSON.parse(readFileSync(TIMES, 'utf8')) : {};
const files = (positionals.length > 0 ? positionals.map(fileOf) : entries()).sort(
  // An unknown file may be the longest.
  (a, b) => (released[nameOf(b)] ?? Infinity) - (released[nameOf(a)] ?? Infinity) || (a < b ? -1 : 1),
);

const seconds = new Map();
const tests = [];
const skips = [];
let passed = 0;
let failed = 0;

await run();
const sum = [...seconds.values()].reduce((total, each) => total + each, 0);
printTimes();
if (values['write-times']) writeTimes();
const missing = skips.filter(({ reason }) => !reason.startsWith(LEFT_TO_LABORATORY));
if (process.env.CI !== undefined && missing.length > 0) {
  console.log(`${missing.length} tests were skipped that must run in CI`);
  failed += missing.length;
}
console.log(`\n${passed} passed, ${failed} failed`);
printSkips();
process.exitCode = failed > 0 ? 1 : 0;

function entries() {
  return readdirSync(join(ROOT, 'dist/test/gate'))
    .filter((name) => name.endsWith('.js'))
    .map((name) => `dist/test/gate/${name}`);
}

/** Returns the compiled file of an entry's or a test file's name. */
function fileOf(name) {
  const found = [`dist/test/gate/${name}.js`, `dist/test/${name}.test.js`, name].find((path) =>
    existsSync(join(ROOT, path)),
  );
  if (found === undefined) throw new Error(`no test file is called ${name}`);
  return found;
}

function nameOf(file) {
  return file.replace(/^dist\/test\/(gate\/)?/, '').replace(/(\.test)?\.js$/, '');
}

/** Runs every file in a process of its own, as many at a time as there are jobs. */
async function run() {
  mkdirSync(dirname(OUTPUT), { recursive: true });
  const log = createWriteStream(OUTPUT);
  const queue = files.values();
  await Promise.all(
    Array.from({ length: Number(values.jobs) }, async () => {
      for (const file of queue) {
        const lines = await runFile(file);
        log.write(`# ${file}\n${lines.join('\n')}\n`);
        if (values.bail && failed > 0) return;
      }
    }),
  );
  log.end();
}

/** Runs a file, counts its tests and prints its line. @returns what it printed */
async function runFile(file) {
  const began = performance.now();
  // A group of its own, so that what a file has started ends with the file.
  const child = spawn(process.execPath, ['--enable-source-maps', file], {
    cwd: ROOT,
    env: { ...process.env, TAP_TIMEOUT: values['limit-seconds'] },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  let alarm = setTimeout(() => kill(child.pid), Number(values['limit-seconds']) * 1000);
  const ended = new Promise((resolve) =>
    child.once('exit', (code) => {
      // What the file has left running would hold its output open.
      kill(child.pid);
      resolve(code ?? 1);
    }),
  );
  const lines = [];
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text) => (errors = (errors + text).slice(-ERROR_CHARACTERS)));
  for await (const line of createInterface({ input: child.stdout })) {
    lines.push(line);
    // No test runs after a plan at the end. A module that failed amid its start may have left a service open.
    if (!PLAN.test(line) || !lines.some((each) => RESULT.test(each))) continue;
    clearTimeout(alarm);
    alarm = setTimeout(() => kill(child.pid), END_MS);
  }
  const code = await ended;
  clearTimeout(alarm);
  const name = nameOf(file);
  seconds.set(name, (performance.now() - began) / 1000);
  const before = failed;
  readTests(name, lines);
  // Without a plan, the file ended before its tests did.
  const isSound = code === 0 && lines.some((line) => PLAN.test(line));
  if (!isSound && failed === before) failed += 1;
  console.log(`${isSound ? 'ok    ' : 'FAILED'} ${name} (${seconds.get(name).toFixed(1)} s)`);
  if (!isSound) console.log(`${failuresIn(lines).join('\n')}\nexit code ${code}; standard error: ${errors}`);
  return [...lines, ...errors.split('\n').map((line) => `# stderr: ${line}`)];
}

function kill(group) {
  try {
    process.kill(-group, 'SIGKILL');
  } catch {
    // The group has ended.
  }
}

function milliseconds(time = '0', unit = 'ms') {
  return Number(time) * { ms: 1, s: 1000, m: 60_000 }[unit];
}

/** Reads results of named tests: an assertion's line gives no time, a test's does. */
function readTests(file, lines) {
  for (const line of lines) {
    const skip = /^ *ok \d+ - (.*?) # SKIP ?(.*)$/.exec(line);
    if (skip !== null) {
      skips.push({ file, name: skip[1].replace(/ # time=.*$/, ''), reason: skip[2] });
      continue;
    }
    const result = /^ *(ok|not ok) \d+ - (.*) # time=([\d.]+)(ms|s|m)?$/.exec(line);
    if (result === null) continue;
    const [, verdict, name, time, unit] = result;
    if (verdict === 'ok') passed += 1;
    else failed += 1;
    tests.push({ file, name, seconds: milliseconds(time, unit) / 1000 });
  }
}

/** Returns the lines around each failure: its diagnostics, and what a process printed that ended otherwise. */
function failuresIn(lines) {
  const shown = new Set();
  lines.forEach((line, at) => {
    if (/^ *not ok|FATAL ERROR|^[A-Za-z]*Error: /.test(line))
      for (let i = at; i < Math.min(at + 40, lines.length); i += 1) shown.add(i);
  });
  return [...shown].slice(0, FAILURE_LINES).map((at) => lines[at]);
}

function printTimes() {
  if (seconds.size === 0) return;
  const slowest = [...seconds].sort(([, a], [, b]) => b - a).slice(0, SLOWEST);
  console.log(`\nslowest files, in seconds (${Math.round(sum)} s in ${seconds.size} files):`);
  for (const [name, time] of slowest) console.log(`${time.toFixed(1).padStart(8)}  ${name}`);
  console.log('slowest tests, in seconds:');
  for (const test of tests.sort((a, b) => b.seconds - a.seconds).slice(0, SLOWEST))
    console.log(`${test.seconds.toFixed(1).padStart(8)}  ${test.file}: ${test.name}`);
  // Another machine is slower or faster as a whole: the median ratio is taken out.
  const ratios = [...seconds].flatMap(([name, time]) =>
    released[name] >= COMPARED_FROM ? [{ name, time, ratio: time / released[name] }] : [],
  );
  const median = ratios.map(({ ratio }) => ratio).sort((a, b) => a - b)[Math.floor(ratios.length / 2)];
  for (const { name, time, ratio } of ratios)
    if (ratio > SLOWER * median)
      console.log(
        `SLOWER: ${name} took ${time.toFixed(1)} s, ${(ratio / median).toFixed(1)} times its share of the last release's run`,
      );
}

function writeTimes() {
  const times = Object.fromEntries(
    [...seconds].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, time]) => [name, Number(time.toFixed(1))]),
  );
  writeFileSync(TIMES, `${JSON.stringify(times, undefined, 2)}\n`);
}

/** Prints what was skipped and how it runs. */
function printSkips() {
  const left = skips.length - missing.length;
  for (const [reason, count] of counted(missing.map(({ reason }) => reason)))
    console.log(`skipped: ${count} of the reason "${reason || 'none given'}"`);
  const kinds = [
    ...(missing.length > 0
      ? [
          `${missing.length} tests that need servers or programs (npm run services:up -- --secure --print-env)`,
        ]
      : []),
    ...(left > 0 ? [`${left} tests of the laboratory (npm run lab)`] : []),
  ];
  if (kinds.length > 0)
    console.log(`Skipped were ${kinds.join(' and ')}: docs/testing.md shows how to run them.`);
}

/** Returns how often each value occurs. */
function counted(list) {
  const counts = new Map();
  for (const each of list) counts.set(each, (counts.get(each) ?? 0) + 1);
  return counts;
}
