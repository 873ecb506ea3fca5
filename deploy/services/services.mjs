/**
 * Real servers on loopback for tests and trials, without containers: `up`, `down`, `status`. Needs Java 17 and Maven.
 * Everything they make is in one scratch directory: `TAKEMARK_SERVICES_DIR`, by default below the system's temporary one.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { cassandraNode, classPath, DATACENTER, pomOf } from './instances.mjs';
import { ready, runningPid, start, stop } from './processes.mjs';

const USAGE = `usage: services.mjs up [--nodes 1..3] [--only cassandra]... [--print-env]
       services.mjs down [--only cassandra]... [--erase]
       services.mjs status [--print-env]`;
const KINDS = ['cassandra'];
const MOST_NODES = 3;
const LOCK_MS = 600_000;

const scratch = resolve(process.env.TAKEMARK_SERVICES_DIR || join(tmpdir(), 'takemark-services'));

/** Every instance that could be running, in the order in which they are started. */
function allInstances() {
  return Array.from({ length: MOST_NODES }, (_, index) => cassandraNode({ scratch, number: index + 1 }));
}

function isUp({ directory }) {
  return runningPid(directory) !== undefined;
}

/** Variables that tests and the service read, for what is running. */
function environment() {
  const running = allInstances().filter(isUp);
  const addresses = (kind) => running.filter((instance) => instance.kind === kind).map(({ address }) => address);
  const cassandra = addresses('cassandra');
  return {
    ...(cassandra.length > 0 && { TAKEMARK_CASSANDRA: cassandra.join(','), TAKEMARK_CASSANDRA_DC: DATACENTER }),
  };
}

function environmentText() {
  return Object.entries(environment()).map(([name, value]) => `${name}=${value}\n`).join('');
}

/** Also when the command fails: what did start is to be found. */
function writeEnvironment() {
  writeFileSync(join(scratch, 'env'), environmentText(), { mode: 0o600 });
}

/** One command at a time: two that both see a server missing would both start it. */
async function locked(work) {
  mkdirSync(scratch, { recursive: true, mode: 0o700 });
  const path = join(scratch, 'lock');
  for (const deadline = Date.now() + LOCK_MS; ; await sleep(200)) {
    try {
      writeFileSync(path, String(process.pid), { flag: 'wx' });
      break;
    } catch (error) {
      if (error.code !== 'EEXIST') throw error;
      if (!isAlive(Number(readFileSync(path, 'utf8')))) rmSync(path, { force: true });
      else if (Date.now() > deadline) throw new Error(`another command holds ${path}`);
    }
  }
  try {
    return await work();
  } finally {
    rmSync(path, { force: true });
  }
}

function isAlive(pid) {
  try {
    return pid > 0 && process.kill(pid, 0);
  } catch (error) {
    return error.code === 'EPERM';
  }
}

/** Jars from Maven Central, once for each pom.xml. */
function fetchJars(kind) {
  const target = classPath(scratch, kind);
  if (existsSync(target)) return;
  console.error(`${kind}: fetching jars`);
  const partial = `${target}.partial`;
  rmSync(partial, { recursive: true, force: true });
  mkdirSync(dirname(target), { recursive: true });
  try {
    execFileSync('mvn', ['-q', '-B', '-f', pomOf(kind), 'dependency:copy-dependencies', '-DincludeScope=runtime', `-DoutputDirectory=${partial}`], { stdio: ['ignore', 2, 2] });
  } catch (error) {
    throw new Error(error.code === 'ENOENT' ? 'mvn is not installed (Debian: apt-get install default-jdk-headless maven)' : `Maven could not fetch the jars of ${kind}`);
  }
  renameSync(partial, target);
}

/** Whether an earlier start of this data was ready: it need not wait for the others again. */
function hasJoined({ directory }) {
  return existsSync(join(directory, 'joined'));
}

async function bring(instance, started) {
  const { name, directory, after } = instance;
  if (!hasJoined(instance) && after !== undefined) await started.get(after);
  const began = Date.now();
  if (!isUp(instance)) {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    for (const [file, text] of Object.entries(instance.files)) writeFileSync(join(directory, file), text, { mode: 0o600 });
    await instance.prepare?.();
    start(instance);
  }
  await ready(instance, instance.probe);
  writeFileSync(join(directory, 'joined'), '');
  console.error(`${name}: ready on ${instance.address} after ${((Date.now() - began) / 1000).toFixed(1)} s`);
}

async function up(chosen) {
  for (const kind of new Set(chosen.map(({ kind }) => kind))) fetchJars(kind);
  const started = new Map();
  for (const instance of chosen) started.set(instance.name, bring(instance, started));
  const results = await Promise.allSettled(started.values());
  writeEnvironment();
  const failures = results.filter(({ status }) => status === 'rejected').map(({ reason }) => reason.message);
  if (failures.length > 0) throw new Error([...new Set(failures)].join('\n'));
}

/** Ends what runs; `erase` also removes its data, so that the next start is a first one. */
async function down(chosen, erase) {
  const stopped = await Promise.all(chosen.map((instance) => stop(instance.directory)));
  chosen.forEach(({ name }, index) => stopped[index] && console.error(`${name}: stopped`));
  if (erase) for (const { directory } of chosen) rmSync(directory, { recursive: true, force: true });
  writeEnvironment();
}

function status() {
  for (const instance of allInstances()) {
    const pid = runningPid(instance.directory);
    if (pid !== undefined || existsSync(instance.directory)) console.error(`${instance.name}: ${pid === undefined ? 'stopped' : `running on ${instance.address}, pid ${pid}, ${residentMegabytes(pid)} MB`}`);
  }
  console.error(`directory: ${scratch}`);
}

function residentMegabytes(pid) {
  const kilobytes = Number(execFileSync('ps', ['-o', 'rss=', '-p', String(pid)], { encoding: 'utf8' }));
  return Math.round(kilobytes / 1024);
}

async function main() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { nodes: { type: 'string', default: '1' }, only: { type: 'string', multiple: true }, erase: { type: 'boolean' }, 'print-env': { type: 'boolean' } },
  });
  const [command] = positionals;
  const nodes = Number(values.nodes);
  const only = values.only ?? KINDS;
  if (positionals.length !== 1 || !['up', 'down', 'status'].includes(command) || !(nodes >= 1 && nodes <= MOST_NODES) || !only.every((kind) => KINDS.includes(kind))) throw new Error(USAGE);
  const ofKind = allInstances().filter(({ kind }) => only.includes(kind));
  if (command === 'up') {
    const chosen = ofKind.filter(({ kind, name }) => kind !== 'cassandra' || Number(name.slice('cassandra-'.length)) <= nodes);
    await locked(() => up(chosen));
  }
  if (command === 'down') await locked(() => down(ofKind, values.erase));
  if (command === 'status') status();
  // Standard output is these lines and nothing else, so that a shell can take them over.
  if (values['print-env']) process.stdout.write(environmentText());
  else if (command === 'up') console.error(`variables: ${join(scratch, 'env')}`);
}

try {
  await main();
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
