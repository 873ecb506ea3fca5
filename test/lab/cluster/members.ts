/**
 * The processes of the cluster: services and consumers. The run kills them without notice and starts them
 * again. Each has its own ports.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { closeSync, existsSync, fstatSync, openSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { CLOCK_MARK_FILE } from '../../../src/service/adapters/system/clock-mark.js';
import { again } from '../../fixtures/again.js';
import type { Network } from './network.js';

/** The root of this version's compiled files, which contains `src/`. */
const ROOT = new URL('../../../', import.meta.url);
const MAIN = new URL('src/service/main.js', ROOT).pathname;
const CLI = new URL('src/cli/main.js', ROOT).pathname;
/** The path of Debian's libfaketime. It gives a process another time, which it reads from a file each second. */
export const FAKETIME = '/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1';
const FAKETIME_READ_MS = 1000;
/** The first port for processes. It is below the range that the system gives to clients. */
const FIRST_PORT = 21_000;
const RESTART_PAUSE_MS = 100;
/** The time in which all processes must be ready on a busy machine, in milliseconds. */
const READY_MS = 300_000;
const WATCH_MS = 250;
const PROBE_MS = 5000;
/**
 * The time for an orderly stop, in milliseconds. Half of it is for requests in flight, and half for closing.
 */
const ORDERLY_MS = 60_000;

export interface Service {
  readonly name: string;
  readonly partner: string;
  readonly operator: string;
}

interface Member {
  readonly name: string;
  /** The program's name without its path, which depends on the version. */
  readonly program: 'main' | 'consumers';
  readonly environment: Readonly<Record<string, string>>;
  readonly log: string;
  child: ChildProcess | undefined;
  readonly readyUrl: string;
  kills: number;
  /** The number of starts and pauses. A paused process may have dropped writes that it still owed. */
  life: number;
  /** Whether the run killed the current or last process. */
  killed: boolean;
  /** Whether the process must not start until it is released. */
  held: boolean;
  /** The root of the version that the next start uses. */
  root: URL;
  suspended: boolean;
  /** The time of its last pause or clock change, in milliseconds of `performance.now()`. */
  disturbedAt: number;
  /** Whether the process has been ready since its start. */
  served: boolean;
  givenUp: number;
}

export interface Death {
  readonly how: string;
  /** Whether the process had been ready before. */
  readonly served: boolean;
  /** Whether the process reported that it could not start, and did not crash. */
  readonly gaveUp: boolean;
  /** The number of consecutive failed starts, this one included. */
  readonly inARow: number;
}

export interface ClusterOptions {
  readonly settings: Readonly<Record<string, string>>;
  readonly services: number;
  readonly consumers: number;
  /** The address of the proxy in front of the services. Without it each service has an address of its own. */
  readonly publicUrl?: string;
  /** Whether clocks can be set. */
  readonly clocks?: boolean;
  /** A network in which each process has its own namespace. */
  readonly network?: Network;
  /** The callback for the end of a process that the run did not kill. */
  readonly onDeath: (name: string, death: Death) => void;
}

/** The times of a process's main thread in milliseconds since its start, from Linux. */
export interface ThreadTimes {
  readonly ran: number;
  /** The time in which the thread was ready to run but had no processor. */
  readonly waited: number;
}

/** Returns the times of a process's main thread, or undefined if the process has ended. */
function threadTimesOf(pid: number): ThreadTimes | undefined {
  try {
    const [ran, waited] = readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ').map(Number);
    return { ran: ran! / 1e6, waited: waited! / 1e6 };
  } catch {
    return undefined;
  }
}

export class Cluster {
  readonly services: readonly Service[];
  readonly directory: string;
  readonly settings: Readonly<Record<string, string>>;
  readonly operatorToken: string;
  readonly #members: Member[];
  readonly #onDeath: ClusterOptions['onDeath'];
  readonly #network: Network | undefined;
  #stopping = false;

  private constructor(
    directory: string,
    settings: Readonly<Record<string, string>>,
    operatorToken: string,
    services: readonly Service[],
    members: Member[],
    { onDeath, network }: ClusterOptions,
  ) {
    this.#network = network;
    this.directory = directory;
    this.settings = settings;
    this.operatorToken = operatorToken;
    this.services = services;
    this.#members = members;
    this.#onDeath = onDeath;
  }

  /**
   * Creates bundle and schema with the operator's commands, and then starts all processes. Resolves before
   * they are ready.
   */
  static async start(options: ClusterOptions): Promise<Cluster> {
    const { settings, services, consumers, clocks = false, network } = options;
    const directory = await mkdtemp(join(tmpdir(), 'takemark-cluster-'));
    const operatorToken = 'operator-token-of-the-cluster-under-test';
    const shared: Record<string, string> = {
      ...settings,
      TAKEMARK_STORE: 'cassandra',
      TAKEMARK_ASSETS: 's3',
      TAKEMARK_SECRETS_FILE: join(directory, 'bundle.json'),
      TAKEMARK_OPERATOR_TOKEN: operatorToken,
      TAKEMARK_HOST: '127.0.0.1',
      TAKEMARK_LOG_LEVEL: 'warn',
      TAKEMARK_WORKERS: '1',
      TAKEMARK_MAX_UPLOADS: '16',
    };
    await takemark(shared, 'operator', 'secrets', 'init', '--out', shared['TAKEMARK_SECRETS_FILE']!);
    // The command can be repeated if a server does not answer in time.
    await again(
      () => takemark(shared, 'operator', 'migrate'),
      (error) => (error as { readonly code?: unknown }).code === TROUBLE,
    );
    const base = await freePorts((services + consumers) * 2);
    if (clocks && !existsSync(FAKETIME))
      throw new Error('clocks need faketime (Debian: apt-get install faketime)');
    const hostOf = (name: string): string => network?.addressOf(name) ?? '127.0.0.1';
    const member = (name: string, slot: number, program: Member['program']): Member => ({
      name,
      program,
      environment: {
        ...shared,
        TAKEMARK_HOST: hostOf(name),
        TAKEMARK_OPERATOR_HOST: hostOf(name),
        ...(clocks && {
          LD_PRELOAD: FAKETIME,
          FAKETIME_TIMESTAMP_FILE: clockFileOf(directory, name),
          FAKETIME_CACHE_DURATION: String(FAKETIME_READ_MS / 1000),
          FAKETIME_DONT_RESET: '1',
          DONT_FAKE_MONOTONIC: '1',
          FAKETIME_FORCE_MONOTONIC_FIX: '0',
        }),
        TAKEMARK_DATA_DIR: join(directory, name),
        TAKEMARK_PORT: String(base + 2 * slot),
        TAKEMARK_OPERATOR_PORT: String(base + 2 * slot + 1),
        TAKEMARK_PUBLIC_URL: options.publicUrl ?? `http://${hostOf(name)}:${base + 2 * slot}`,
      },
      log: join(directory, `${name}.log`),
      child: undefined,
      readyUrl: `http://${hostOf(name)}:${base + 2 * slot + 1}/readyz`,
      kills: 0,
      life: 0,
      killed: false,
      held: false,
      root: ROOT,
      suspended: false,
      disturbedAt: -Infinity,
      served: false,
      givenUp: 0,
    });
    const serving = Array.from({ length: services }, (_, slot) =>
      member(`service-${slot + 1}`, slot, 'main'),
    );
    const consuming = Array.from({ length: consumers }, (_, index) =>
      member(`consumer-${index + 1}`, services + index, 'consumers'),
    );
    const addresses = serving.map(({ name, environment }) => ({
      name,
      partner: `http://${hostOf(name)}:${environment['TAKEMARK_PORT']}`,
      operator: `http://${hostOf(name)}:${environment['TAKEMARK_OPERATOR_PORT']}`,
    }));
    const cluster = new Cluster(
      directory,
      shared,
      operatorToken,
      addresses,
      [...serving, ...consuming],
      options,
    );
    if (clocks) for (const { name } of cluster.#members) writeFileSync(clockFileOf(directory, name), '+0\n');
    process.once('exit', () => cluster.#members.forEach(({ child }) => child?.kill('SIGKILL')));
    for (const one of cluster.#members) await cluster.#spawn(one);
    return cluster;
  }

  get names(): readonly string[] {
    return this.#members.map(({ name }) => name);
  }

  get consumers(): readonly string[] {
    return this.#members.filter(({ program }) => program === 'consumers').map(({ name }) => name);
  }

  get kills(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#members.map(({ name, kills }) => [name, kills]));
  }

  /** Sends SIGKILL. Returns false if the process is not running, because a restart is pending. */
  kill(name: string): boolean {
    const member = this.#members.find((one) => one.name === name);
    const child = member?.child;
    if (member === undefined || child === undefined || hasEnded(child)) return false;
    member.kills += 1;
    member.killed = true;
    return child.kill('SIGKILL');
  }

  /** Stops a process orderly and keeps it stopped until `release`. Resolves when it has ended. */
  async hold(name: string): Promise<void> {
    const member = this.#find(name);
    member.held = true;
    await this.#end(member);
  }

  release(name: string): void {
    const member = this.#find(name);
    member.held = false;
    if (member.child === undefined || hasEnded(member.child)) void this.#spawn(member);
  }

  /** Pauses a process until `resume`. Its sockets stay open. Returns false if the process is not running. */
  suspend(name: string): boolean {
    const member = this.#find(name);
    if (member.child === undefined || hasEnded(member.child)) return false;
    member.suspended = true;
    member.life += 1;
    return member.child.kill('SIGSTOP');
  }

  resume(name: string): void {
    const member = this.#find(name);
    member.child?.kill('SIGCONT');
    member.suspended = false;
    member.disturbedAt = performance.now();
  }

  /** Sets the process's clock ahead of the machine's. Resolves when the process has read it. */
  async setClock(name: string, seconds: number): Promise<void> {
    const member = this.#find(name);
    await setFakeClock(clockFileOf(this.directory, name), seconds);
    member.disturbedAt = performance.now();
  }

  /**
   * Sets a clock that was ahead to the right time. In a process time never runs backwards (decision 0018), so
   * its clock would pause. So the process is stopped, and the mark of its time is removed as its message
   * asks.
   */
  async setClockBack(name: string): Promise<void> {
    await this.hold(name);
    await this.setClock(name, 0);
    await rm(join(this.#find(name).environment['TAKEMARK_DATA_DIR']!, CLOCK_MARK_FILE), { force: true });
    this.release(name);
  }

  /** Stops a process orderly, and starts it with another version. */
  async roll(name: string, root = ROOT): Promise<void> {
    const member = this.#find(name);
    member.root = root;
    await this.#end(member);
  }

  /** Returns whether a process was paused or got another time since then. */
  wasDisturbed(name: string, since: number): boolean {
    const { suspended, disturbedAt } = this.#find(name);
    return suspended || disturbedAt >= since;
  }

  /**
   * Returns the reason that a process gives for not being ready. Undefined if it is ready or does not answer.
   */
  async unreadyBy(name: string): Promise<string | undefined> {
    const answer = await fetch(this.#find(name).readyUrl, { signal: AbortSignal.timeout(PROBE_MS) }).catch(
      () => undefined,
    );
    if (answer?.status !== 503) return undefined;
    return ((await answer.json()) as { readonly reason?: string }).reason;
  }

  /** Returns the name of a member's current process. The name changes with each start and pause. */
  processOf(name: string): string {
    return `${name}/${this.#find(name).life}`;
  }

  /** Returns the times of a member's main thread, or undefined if it is not running. */
  threadTimes(name: string): ThreadTimes | undefined {
    const pid = this.#find(name).child?.pid;
    return pid === undefined ? undefined : threadTimesOf(pid);
  }

  async whenReady(name: string): Promise<void> {
    while (!this.#stopping && (await statusOf(this.#find(name).readyUrl)) !== 200) await delay(100);
  }

  #find(name: string): Member {
    return this.#members.find((one) => one.name === name)!;
  }

  async #end(member: Member): Promise<void> {
    const { child } = member;
    if (child === undefined || hasEnded(child)) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    member.killed = true;
    child.kill('SIGTERM');
    const patience = setTimeout(() => child.kill('SIGKILL'), ORDERLY_MS);
    await ended;
    clearTimeout(patience);
  }

  /** Resolves when every process reports that it is ready. */
  async ready(): Promise<void> {
    const deadline = Date.now() + READY_MS;
    for (const { name, readyUrl, log } of this.#members) {
      for (;;) {
        const status = await statusOf(readyUrl);
        if (status === 200) break;
        if (Date.now() > deadline)
          throw new Error(
            `${name} is not ready (${status}): ${readFileSync(log, 'utf8').trim().slice(-SHOWN_CHARACTERS)}`,
          );
        await delay(100);
      }
    }
  }

  /**
   * Runs a command of the operator with the settings of this cluster.
   * @returns its standard output
   */
  command(...args: readonly string[]): Promise<string> {
    return takemark({ ...this.settings, TAKEMARK_OPERATOR_URL: this.services[0]!.operator }, ...args);
  }

  /** Migrates the schema to another version while this one works. */
  async migrate(root: URL): Promise<void> {
    await promisify(execFile)(
      process.execPath,
      [new URL('src/cli/main.js', root).pathname, 'operator', 'migrate'],
      { env: { PATH: process.env['PATH'], ...this.settings } },
    );
  }

  async stop({ keep = false } = {}): Promise<void> {
    this.#stopping = true;
    await Promise.all(
      this.#members.map(async ({ child }) => {
        if (child === undefined || hasEnded(child)) return;
        const ended = new Promise((resolve) => child.once('exit', resolve));
        child.kill('SIGTERM');
        child.kill('SIGCONT');
        const patience = setTimeout(() => child.kill('SIGKILL'), ORDERLY_MS);
        await ended;
        clearTimeout(patience);
      }),
    );
    if (!keep) await rm(this.directory, { recursive: true, force: true });
  }

  /** Probes the process until it was ready once. */
  async #watch(member: Member, child: ChildProcess): Promise<void> {
    while (
      member.child === child &&
      child.exitCode === null &&
      child.signalCode === null &&
      !this.#stopping
    ) {
      if ((await statusOf(member.readyUrl)) === 200 && member.child === child) {
        member.served = true;
        member.givenUp = 0;
        return;
      }
      await delay(WATCH_MS);
    }
  }

  #death(member: Member, by: number | string | null, said: string): Death {
    const gaveUp = !member.served && (by === TROUBLE || (by === 1 && COULD_NOT_START.test(said)));
    if (gaveUp) member.givenUp += 1;
    return {
      how: `${typeof by === 'number' ? `exit code ${by}` : by}: ${said.trim().slice(-SHOWN_CHARACTERS)}`,
      served: member.served,
      gaveUp,
      inARow: member.givenUp,
    };
  }

  async #spawn(member: Member): Promise<void> {
    await mkdir(member.environment['TAKEMARK_DATA_DIR']!, { recursive: true });
    if (this.#stopping || member.held) return;
    const log = openSync(member.log, 'a');
    const { size } = fstatSync(log);
    const program = new URL(
      member.program === 'main' ? 'src/service/main.js' : 'src/cli/main.js',
      member.root,
    ).pathname;
    const command = [
      ...(this.#network?.within(member.name) ?? []),
      process.execPath,
      program,
      ...(member.program === 'main' ? [] : [member.program]),
    ];
    const child = spawn(command[0]!, command.slice(1), {
      stdio: ['ignore', log, log],
      env: { PATH: process.env['PATH'], ...member.environment },
    });
    closeSync(log);
    member.child = child;
    member.life += 1;
    member.killed = false;
    member.served = false;
    void this.#watch(member, child);
    child.once('exit', (code, signal) => {
      if (this.#stopping) return;
      if (!member.killed)
        this.#onDeath(
          member.name,
          this.#death(member, code ?? signal, readFileSync(member.log).subarray(size).toString()),
        );
      // An orchestrator would restart the process too.
      setTimeout(() => {
        if (!this.#stopping && !member.held && member.child === child) void this.#spawn(member);
      }, RESTART_PAUSE_MS);
    });
  }
}

/** Resolves when the process of this file has read it. */
export async function setFakeClock(file: string, seconds: number): Promise<void> {
  // The rename is atomic, so the process never reads half a file.
  writeFileSync(`${file}.new`, `${seconds < 0 ? '' : '+'}${seconds}\n`);
  renameSync(`${file}.new`, file);
  await delay(FAKETIME_READ_MS * 1.5);
}

function clockFileOf(directory: string, name: string): string {
  return join(directory, `${name}.clock`);
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

/** The message of a service that fails to start. The command line has an exit code for this. */
const COULD_NOT_START = /^The service could not start: /m;
const TROUBLE = 3;
const SHOWN_CHARACTERS = 500;

/** @returns 0 if no answer came */
function statusOf(url: string): Promise<number> {
  return fetch(url, { signal: AbortSignal.timeout(PROBE_MS) }).then(
    (answer) => answer.status,
    () => 0,
  );
}

/**
 * Starts a process that must fail to start.
 * @returns its output
 */
export async function startAlone(
  settings: Readonly<Record<string, string>>,
  over: Readonly<Record<string, string>>,
): Promise<string> {
  const child = promisify(execFile)(process.execPath, [MAIN], {
    timeout: READY_MS,
    env: { PATH: process.env['PATH'], ...settings, TAKEMARK_PORT: '0', TAKEMARK_OPERATOR_PORT: '0', ...over },
  });
  return child.then(
    () => 'it ended well',
    (error: { readonly code?: number; readonly stderr?: string }) =>
      error.code === 1 ? (error.stderr ?? '') : 'it did not end by itself',
  );
}

/**
 * Runs a command of the operator.
 * @returns its standard output
 */
export async function takemark(
  environment: Readonly<Record<string, string>>,
  ...args: readonly string[]
): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, [CLI, ...args], {
    env: { PATH: process.env['PATH'], ...environment },
  });
  return stdout;
}

/** Returns the first of `count` consecutive free ports. */
async function freePorts(count: number): Promise<number> {
  for (let base = FIRST_PORT; ; base += count) {
    const taken = await Promise.all(Array.from({ length: count }, (_, index) => answers(base + index)));
    if (!taken.includes(true)) return base;
  }
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port });
    socket.once('connect', () => resolve((socket.destroy(), true)));
    socket.once('error', () => resolve(false));
  });
}
