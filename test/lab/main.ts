/**
 * Runs parts of the laboratory: `npm run lab [-- <part>...] [--seed <n>] [--resume] [--list]`.
 *
 * Without names all parts run, in the order of `parts.ts`. `--resume` leaves out the parts that are green on this commit
 * already. Each part appends one line to `test/lab/results.jsonl`: time, commit, part, seed, seconds, verdict, and the
 * retries and warnings that the part accepted. `.lab/<part>.log` keeps what the part printed.
 */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { appendFile, mkdir, open, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { Seeded } from '../fixtures/seeds.js';
import { type Command, PARTS, type Part } from './parts.js';

const ROOT = new URL('../../../', import.meta.url).pathname;
const RESULTS = join(ROOT, 'test/lab/results.jsonl');
const SEEDS = join(ROOT, 'test/regressions/seeds.json');
const LOGS = join(ROOT, '.lab');
/** Lines of a log that report what a part accepted, retried or could not play. A row of times has the name of a test. */
const NOTICED =
  /^(?! *\d+\.\d {2}).*(?:noticed|given up|gave up|excused|asked again|NOT CHECKED|beyond the noise|# SKIP)/;
const FEWEST_LIMIT_MINUTES = 15;
const NOTES = 10;
const NOTE_LENGTH = 200;
const SHOWN_LINES = 40;

interface Result {
  readonly at: string;
  readonly commit: string;
  readonly part: string;
  readonly seed: number;
  readonly seconds: number;
  readonly verdict: 'green' | 'red';
  readonly node: string;
  /**
   * The retries and warnings that the part accepted. At most ten of them are listed, with the number of all.
   */
  readonly accepted: readonly string[];
  readonly acceptedInAll: number;
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seed: { type: 'string' },
    resume: { type: 'boolean', default: false },
    list: { type: 'boolean', default: false },
  },
});
if (values.list) {
  for (const { name, minutes, shows } of PARTS)
    console.log(`${name.padEnd(14)}${String(minutes).padStart(3)} min  ${shows}`);
  process.exit(0);
}
for (const name of positionals)
  if (!PARTS.some((part) => part.name === name))
    throw new Error(`no part is called ${name}; the parts are ${PARTS.map((part) => part.name).join(', ')}`);

const commit = commitOf();
const done = values.resume ? await greenOn(commit) : new Set<string>();
const chosen = PARTS.filter(
  ({ name }) => (positionals.length === 0 || positionals.includes(name)) && !done.has(name),
);
await mkdir(LOGS, { recursive: true });
let red = 0;
let servers: Servers | undefined;
try {
  for (const part of chosen) {
    const result = await runPart(part);
    if (result.verdict === 'red') red += 1;
    await appendFile(RESULTS, `${JSON.stringify(result)}\n`);
    console.log(
      `${result.verdict}: ${part.name} (${result.seconds} s, seed ${result.seed}, ${result.acceptedInAll} accepted)`,
    );
  }
} finally {
  servers?.stop();
}
console.log(`${chosen.length - red} parts green, ${red} red; results are in test/lab/results.jsonl`);
process.exit(red === 0 ? 0 : 1);

/** Returns the commit that runs, with a mark where the tree differs from it. */
function commitOf(): string {
  const git = (...args: readonly string[]): string =>
    execFileSync('git', ['-C', ROOT, ...args], { encoding: 'utf8' }).trim();
  const isChanged = git('status', '--porcelain', '--', ':!test/lab/results.jsonl') !== '';
  return `${git('rev-parse', '--short=12', 'HEAD')}${isChanged ? '+changes' : ''}`;
}

async function greenOn(wanted: string): Promise<ReadonlySet<string>> {
  const text = await readFile(RESULTS, 'utf8').catch(() => '');
  return new Set(
    text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Result)
      .filter((result) => result.commit === wanted && result.verdict === 'green')
      .map(({ part }) => part),
  );
}

async function runPart(part: Part): Promise<Result> {
  const seed = values.seed === undefined ? randomInt(1, 1 << 30) : Number(values.seed);
  const path = join(LOGS, `${part.name}.log`);
  console.log(`${part.name}: about ${part.minutes} minutes, seed ${seed}, log ${path}`);
  const began = performance.now();
  const failure = await carryOut(part, seed, path).catch((error: unknown) => String(error));
  const text = await readFile(path, 'utf8').catch(() => '');
  const noticed = text.split('\n').filter((line) => NOTICED.test(line));
  if (failure !== undefined) {
    console.log(`${part.name}: ${failure}\n${text.split('\n').slice(-SHOWN_LINES).join('\n')}`);
    if (part.regressions !== undefined) await remember(part.regressions, seedsIn(text, seed));
  }
  return {
    at: new Date().toISOString(),
    commit,
    part: part.name,
    seed,
    seconds: Math.round((performance.now() - began) / 1000),
    verdict: failure === undefined ? 'green' : 'red',
    node: process.version,
    accepted: noticed.slice(0, NOTES).map((line) => line.trim().slice(0, NOTE_LENGTH)),
    acceptedInAll: noticed.length,
  };
}

/** Runs the commands of a part. @returns what failed */
async function carryOut(part: Part, seed: number, path: string): Promise<string | undefined> {
  const log = await open(path, 'w');
  try {
    install(part);
    const env = {
      ...process.env,
      ...(part.readers ? { TAKEMARK_C2PA_PYTHON: readersPython() } : {}),
      ...(part.servers ? await serverEnvironment() : withoutServers()),
    };
    const limit = part.limitMinutes ?? Math.max(FEWEST_LIMIT_MINUTES, 2 * part.minutes);
    const deadline = performance.now() + limit * 60_000;
    for (const command of part.commands(seed)) {
      const left = Math.max(1, deadline - performance.now());
      const code = await execute(command, env, log.fd, left);
      const name = command.run.join(' ');
      if (code === 'late') return `${name} was killed: the part may take ${limit} minutes`;
      if ((code === 0) === (command.mustFail === true))
        return command.mustFail ? `${name} did not find its planted defect` : `${name} ended with ${code}`;
    }
    return undefined;
  } finally {
    await log.close();
  }
}

async function execute(
  { run, env }: Command,
  environment: NodeJS.ProcessEnv,
  output: number,
  limitMs: number,
): Promise<number | 'late'> {
  const [program, ...args] = run as [string, ...string[]];
  // A process group for the command, so that the command's children end with it.
  const child = spawn(program === 'node' ? process.execPath : program, args, {
    cwd: ROOT,
    env: { ...environment, ...env },
    stdio: ['ignore', output, output],
    detached: true,
  });
  let isLate = false;
  const alarm = setTimeout(() => {
    isLate = true;
    kill(child.pid!);
  }, limitMs);
  const [code] = (await once(child, 'exit')) as [number | null];
  clearTimeout(alarm);
  kill(child.pid!);
  return isLate ? 'late' : (code ?? 1);
}

function kill(group: number): void {
  try {
    process.kill(-group, 'SIGKILL');
  } catch {
    // The group has ended.
  }
}

/** Installs the Debian packages of a part whose programs are missing. */
function install({ debian = {} }: Part): void {
  const missing = Object.entries(debian).flatMap(([program, name]) =>
    spawnSync('sh', ['-c', `command -v ${program}`]).status === 0 ? [] : [name],
  );
  if (missing.length === 0) return;
  execFileSync('apt-get', ['update', '-qq'], { stdio: 'ignore' });
  execFileSync('apt-get', ['install', '-y', '-qq', '--no-install-recommends', ...new Set(missing)], {
    stdio: 'ignore',
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
  });
}

/** Returns the Python of an environment with the independent readers, which is made once for a machine. */
function readersPython(): string {
  if (process.env['TAKEMARK_C2PA_PYTHON']) return process.env['TAKEMARK_C2PA_PYTHON'];
  const directory = join(tmpdir(), 'takemark-readers');
  execFileSync('python3', ['-m', 'venv', directory]);
  const requirements = join(ROOT, 'test/fixtures/c2pa-readers.txt');
  execFileSync(
    join(directory, 'bin/pip'),
    ['install', '--quiet', '--only-binary', ':all:', '--requirement', requirements],
    { stdio: 'ignore' },
  );
  return join(directory, 'bin/python');
}

interface Servers {
  readonly env: Readonly<Record<string, string>>;
  stop(): void;
}

/** Returns the variables of running servers: those that the environment names, or the laboratory's own. */
async function serverEnvironment(): Promise<Readonly<Record<string, string>>> {
  if (process.env['TAKEMARK_CASSANDRA']) return {};
  if (servers === undefined) {
    const launcher = join(ROOT, 'deploy/services/services.mjs');
    const launch = (...args: readonly string[]): string =>
      execFileSync(process.execPath, [launcher, ...args], {
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'ignore'],
      });
    launch('up');
    const printed = launch('up', '--secure', '--print-env');
    servers = {
      env: Object.fromEntries(
        printed
          .split('\n')
          .filter((line) => line.includes('='))
          .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
      ),
      stop: () => void launch('down'),
    };
  }
  return servers.env;
}

/** Stops the laboratory's servers, so that a part that starts its own has the memory. */
function withoutServers(): Readonly<Record<string, string>> {
  servers?.stop();
  servers = undefined;
  return {};
}

/** Returns the seeds that a log names as failing, or the seed of the part. */
function seedsIn(text: string, seed: number): readonly number[] {
  const named = /violations, seeds ([\d ]+)/.exec(text)?.[1]?.trim().split(' ').map(Number);
  return named ?? [seed];
}

/** Adds seeds to those that the gate replays. */
async function remember(test: Seeded, found: readonly number[]): Promise<void> {
  const seeds = JSON.parse(await readFile(SEEDS, 'utf8')) as Record<Seeded, number[]>;
  seeds[test] = [...new Set([...seeds[test], ...found])];
  await writeFile(SEEDS, `${JSON.stringify(seeds, undefined, 2)}\n`);
  console.log(`the gate replays ${test} of the seeds ${found.join(', ')} from now on`);
}
