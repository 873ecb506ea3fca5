/**
 * Runs real servers on loopback for tests and trials, without containers: `up`, `down`, `status`. Needs Java 17
 * and Maven. All files are in one scratch directory, `TAKEMARK_SERVICES_DIR`, by default in the system's
 * temporary directory. A second set of servers needs a directory and a network of its own
 * (`TAKEMARK_SERVICES_NETWORK=127.0.1`) and may use the jars of the first (`TAKEMARK_SERVICES_JARS`). With
 * `TAKEMARK_SERVICES_BROKERS=3` Kafka has three brokers, and topics have three copies unless they are made with
 * fewer. With `TAKEMARK_SERVICES_FAKETIME`, the path of libfaketime, the file `clock` in the directory of a node
 * or broker sets its clock.
 */
import { execFileSync } from 'node:child_process';
import {
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { allInstances, BROKERS, classPath, DATACENTER, pomOf, S3 } from './instances.mjs';
import { excerpt, freeze, kill, ready, runningPid, start, stop } from './processes.mjs';
import { makeSecurity, password, securityFiles, USER } from './security.mjs';

const USAGE = `usage: services.mjs up [--nodes 1..3] [--only cassandra|kafka|s3]... [--name <instance>]... [--secure] [--print-env]
       services.mjs down [--only cassandra|kafka|s3]... [--name <instance>]... [--erase]
       services.mjs kill|freeze|thaw --name <instance>...
       services.mjs replace --name cassandra-<number>...
       services.mjs status [--print-env]
       services.mjs nodetool <instance> <argument>...
--name <instance> selects single servers instead of --only. \`status\` lists their names.
A stopped or killed server keeps its data, except with --erase.
replace erases a node of a ring and starts it as a new node, which copies the data from the other nodes.
cassandra-dc1 and cassandra-dc2, two data centres of one cluster, start only if --name selects them.
--secure starts a separate Cassandra and a separate Kafka that require a user name, a password and TLS.`;
const KINDS = ['cassandra', 'kafka', 's3'];
const LOCK_MS = 600_000;
const STARTS = 3;
/**
 * The time in milliseconds after which the other nodes have forgotten a node that failed to join: a few times
 * the ring delay of `jvm.options`.
 */
const FORGOTTEN_MS = 10_000;

const scratch = resolve(process.env.TAKEMARK_SERVICES_DIR || join(tmpdir(), 'takemark-services'));

function isUp({ directory }) {
  return runningPid(directory) !== undefined;
}

/** Returns the variables of the running servers, for tests and the service. */
function environment() {
  const running = allInstances(scratch).filter(isUp);
  const addresses = (kind, secure) =>
    running
      .filter((instance) => !instance.named && instance.kind === kind && instance.secure === secure)
      .map(({ address }) => address)
      .join(',');
  const settings = {
    TAKEMARK_CASSANDRA: addresses('cassandra', false),
    TAKEMARK_CASSANDRA_DC: running.some(({ kind, named }) => kind === 'cassandra' && !named)
      ? DATACENTER
      : '',
    TAKEMARK_KAFKA: addresses('kafka', false),
    // With a single broker or node a process with production's settings would not start.
    TAKEMARK_ACCEPT_SERVERS: [
      'cassandra.replication',
      ...(BROKERS === 1 ? ['kafka.replication', 'kafka.min_insync_replicas'] : []),
    ].join(','),
    ...(addresses('s3', false) !== '' && {
      TAKEMARK_S3_ENDPOINT: S3.endpoint,
      TAKEMARK_S3_REGION: S3.region,
      TAKEMARK_S3_BUCKET: S3.bucket,
      TAKEMARK_S3_ACCESS_KEY: S3.accessKey,
      TAKEMARK_S3_SECRET_KEY: S3.secretKey,
    }),
    TAKEMARK_CENTRES_CASSANDRA: running
      .filter(({ named }) => named)
      .map(({ address }) => address)
      .join(','),
    TAKEMARK_SECURE_CASSANDRA: addresses('cassandra', true),
    TAKEMARK_SECURE_KAFKA: addresses('kafka', true),
    ...(running.some(({ secure }) => secure) && {
      TAKEMARK_SECURE_USER: USER,
      TAKEMARK_SECURE_PASSWORD: password(scratch),
      TAKEMARK_SECURE_CA: securityFiles(scratch).caFile,
    }),
  };
  return Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== ''));
}

function environmentText() {
  return Object.entries(environment())
    .map(([name, value]) => `${name}=${value}\n`)
    .join('');
}

/** Writes the variables, also after a failure, so that the servers that did start can be found. */
function writeEnvironment() {
  return locked('env', () => writeFileSync(join(scratch, 'env'), environmentText(), { mode: 0o600 }));
}

/**
 * Runs one command at a time for each server. Otherwise two commands that find a server stopped would both start
 * it. Commands for different servers run at once, because a broker that starts waits for the other brokers.
 */
async function locked(what, work) {
  mkdirSync(scratch, { recursive: true, mode: 0o700 });
  const path = join(scratch, `${what}.lock`);
  // The lock is linked when its content is complete, so its holder can always be read.
  const mine = `${path}.${process.pid}`;
  writeFileSync(mine, String(process.pid));
  try {
    for (const deadline = Date.now() + LOCK_MS; !isLinked(mine, path); await sleep(200)) {
      const holder = holderOf(path);
      if (holder !== undefined && !isAlive(holder)) rmSync(path, { force: true });
      else if (Date.now() > deadline) throw new Error(`another command holds ${path}`);
    }
  } finally {
    rmSync(mine, { force: true });
  }
  try {
    return await work();
  } finally {
    rmSync(path, { force: true });
  }
}

function isLinked(from, to) {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
    return false;
  }
}

/** Returns the pid of a lock's holder, or undefined if the lock was deleted meanwhile. */
function holderOf(lock) {
  try {
    return Number(readFileSync(lock, 'utf8'));
  } catch (error) {
    if (error.code !== 'ENOENT') throw error;
    return undefined;
  }
}

function isAlive(pid) {
  try {
    return pid > 0 && process.kill(pid, 0);
  } catch (error) {
    return error.code === 'EPERM';
  }
}

/** Downloads the jars from Maven Central, once for each version of pom.xml. */
function fetchJars(kind) {
  const target = classPath(scratch, kind);
  if (existsSync(target)) return;
  console.error(`${kind}: fetching jars`);
  const partial = `${target}.partial`;
  rmSync(partial, { recursive: true, force: true });
  mkdirSync(dirname(target), { recursive: true });
  try {
    execFileSync(
      'mvn',
      [
        '-q',
        '-B',
        '-f',
        pomOf(kind),
        'dependency:copy-dependencies',
        '-DincludeScope=runtime',
        `-DoutputDirectory=${partial}`,
      ],
      { stdio: ['ignore', 2, 2] },
    );
  } catch (error) {
    throw new Error(
      error.code === 'ENOENT'
        ? 'mvn is not installed (Debian: apt-get install default-jdk-headless maven)'
        : `Maven could not fetch the jars of ${kind}`,
    );
  }
  renameSync(partial, target);
}

/** Returns whether an earlier start on this data became ready. */
function hasJoined({ directory }) {
  return existsSync(join(directory, 'joined'));
}

function bring(instance, started) {
  return locked(instance.name, () => bringAlone(instance, started));
}

async function bringAlone(instance, started) {
  const { name, directory, after } = instance;
  // A server that was not selected must have been started before.
  if (after !== undefined) await started.get(hasJoined(instance) ? after.again : after.first);
  const began = Date.now();
  if (!isUp(instance)) {
    // Otherwise the answers of another server would count as those of this one, which cannot bind its port.
    if (
      await instance.probe().then(
        () => true,
        () => false,
      )
    )
      throw new Error(`${name}: another server answers on ${instance.address}; stop it first`);
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    for (const [file, text] of Object.entries(instance.files()))
      writeFileSync(join(directory, file), text, { mode: 0o600 });
    instance.prepare?.();
    start(instance);
  }
  for (let starts = 1; ; starts += 1) {
    try {
      await ready(instance, instance.probe);
      break;
    } catch (error) {
      // A node or broker gives up joining when another one answers slowly. On a busy machine all of them do.
      if (isUp(instance) || starts === STARTS) throw error;
      console.error(`${error.message}\n${name}: starting it again`);
      await sleep(FORGOTTEN_MS);
      start(instance);
    }
  }
  writeFileSync(join(directory, 'joined'), '');
  console.error(`${name}: ready on ${instance.address} after ${((Date.now() - began) / 1000).toFixed(1)} s`);
}

async function up(chosen) {
  await locked('jars', () => new Set(chosen.map(({ kind }) => kind)).forEach(fetchJars));
  if (chosen.some(({ secure }) => secure)) await locked('security', () => makeSecurity(scratch));
  const started = new Map();
  for (const instance of chosen) started.set(instance.name, bring(instance, started));
  const results = await Promise.allSettled(started.values());
  await writeEnvironment();
  const failures = results.filter(({ status }) => status === 'rejected').map(({ reason }) => reason.message);
  if (failures.length > 0) throw new Error([...new Set(failures)].join('\n'));
}

/** Stops the servers. `erase` also deletes their data, so that the next start is a first one. */
async function down(chosen, erase) {
  await Promise.all(
    chosen.map(({ name, directory }) =>
      locked(name, async () => {
        if (await stop(directory)) console.error(`${name}: stopped`);
        if (erase) rmSync(directory, { recursive: true, force: true });
      }),
    ),
  );
  await writeEnvironment();
}

/** Kills, suspends or resumes single servers, for tests of such faults. */
async function disturb(command, chosen) {
  for (const { name, directory } of chosen) {
    const done = await locked(name, () =>
      command === 'kill' ? kill(directory) : freeze(directory, command === 'freeze'),
    );
    if (!done) throw new Error(`${name} is not running; ${excerpt(directory)}`);
  }
}

/** Replaces nodes by nodes without data, one at a time. */
async function replace(chosen) {
  for (const { name, directory, replacement } of chosen) {
    if (replacement === undefined) throw new Error(`${name} is not a node of a ring`);
    await locked(name, async () => {
      await kill(directory);
      // The directory itself is kept: it may be a mount point.
      for (const entry of readdirSync(directory)) rmSync(join(directory, entry), { recursive: true });
      await bringAlone(replacement, new Map());
    });
  }
  await writeEnvironment();
}

/** Runs Cassandra's nodetool on a node without a password. */
function nodetool(name, args) {
  const instance = allInstances(scratch).find((one) => one.name === name);
  if (instance?.nodetool === undefined) throw new Error(USAGE);
  execFileSync(instance.nodetool[0], [...instance.nodetool.slice(1), ...args], {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
}

function status() {
  for (const instance of allInstances(scratch)) {
    const pid = runningPid(instance.directory);
    if (pid !== undefined || existsSync(instance.directory))
      console.error(
        `${instance.name}: ${pid === undefined ? 'stopped' : `running on ${instance.address}, pid ${pid}, ${residentMegabytes(pid)} MB`}`,
      );
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
    options: {
      nodes: { type: 'string', default: '1' },
      only: { type: 'string', multiple: true },
      name: { type: 'string', multiple: true },
      secure: { type: 'boolean', default: false },
      erase: { type: 'boolean', default: false },
      'print-env': { type: 'boolean', default: false },
    },
  });
  const [command] = positionals;
  if (command === 'nodetool') return nodetool(positionals[1], positionals.slice(2));
  const only = values.only ?? KINDS;
  const names = allInstances(scratch).map(({ name }) => name);
  const named = values.name ?? [];
  const needsName = ['kill', 'freeze', 'thaw', 'replace'].includes(command);
  const isKnown = ['up', 'down', 'status'].includes(command) || (needsName && named.length > 0);
  if (
    positionals.length !== 1 ||
    !isKnown ||
    !/^[123]$/.test(values.nodes) ||
    !only.every((kind) => KINDS.includes(kind)) ||
    !named.every((name) => names.includes(name))
  )
    throw new Error(USAGE);
  const ofKind = allInstances(scratch).filter(({ kind, name }) =>
    named.length > 0 ? named.includes(name) : only.includes(kind),
  );
  if (command === 'up') {
    const counts = { cassandra: Number(values.nodes), kafka: BROKERS };
    const beyond = (name) =>
      /-\d$/.test(name) && Number(name.at(-1)) > (counts[name.slice(0, -2)] ?? Infinity);
    const chosen =
      named.length > 0
        ? ofKind
        : ofKind.filter(({ named, secure, name }) => !named && secure === values.secure && !beyond(name));
    await up(chosen);
  }
  if (command === 'down') await down(ofKind, values.erase);
  if (command === 'replace') await replace(ofKind);
  else if (needsName) await disturb(command, ofKind);
  if (command === 'status') status();
  // Standard output has only these lines, so that a shell can evaluate them.
  if (values['print-env']) process.stdout.write(environmentText());
  else if (command === 'up') console.error(`variables: ${join(scratch, 'env')}`);
}

try {
  await main();
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
