/**
 * A set of real servers for one run, from the launcher of `deploy/services/`. The run stops, kills and
 * deletes them.
 */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, open, readdir, rm, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { isCassandra } from './composition.js';
import { FAKETIME, setFakeClock } from './members.js';
import type { Network } from './network.js';

/** The values of Cassandra's `paxos_variant`. */
export type PaxosVariant = 'v1' | 'v2';

const BUCKET_SERVER = 's3-1';
const LAUNCHER = new URL('../../../../deploy/services/services.mjs', import.meta.url).pathname;
/** The servers of the other suites use 127.0.0. */
const NETWORK = '127.0.1';
/** The size of a disk that can be filled, in bytes. It is several times what a run writes in an hour. */
const DISK_BYTES = 1 << 30;
/**
 * The time in which a node of Cassandra is started again and again, in milliseconds. The node ends if it
 * finds no other node, and faults may keep the others away for minutes. A supervisor in production restarts
 * it too.
 */
const ALONE_MS = 7 * 60_000;
/**
 * The time limit of a repair, in milliseconds. A repair takes half a minute. If its Paxos cleanup waits for a
 * lost answer, it never ends by itself.
 */
const REPAIR_MS = 5 * 60_000;
const REPAIRS = 3;
/** The blocks left free, because the server writes meanwhile. */
const SPARE_BLOCKS = 4096;

/** Returns the names of the servers for this number of nodes of Cassandra and Kafka. */
export function namesOf(nodes: 1 | 3): readonly string[] {
  const several = (kind: string) => Array.from({ length: nodes }, (_, index) => `${kind}-${index + 1}`);
  return [...several('cassandra'), ...several('kafka'), BUCKET_SERVER];
}

export interface Servers {
  readonly names: readonly string[];
  /** The settings that name these servers to the service. */
  readonly settings: Readonly<Record<string, string>>;
  up(...names: readonly string[]): Promise<void>;
  /** Stops servers orderly and keeps their data. */
  down(...names: readonly string[]): Promise<void>;
  kill(...names: readonly string[]): Promise<void>;
  /** Pauses servers until `thaw`. They keep their connections and answer nothing. */
  freeze(...names: readonly string[]): Promise<void>;
  thaw(...names: readonly string[]): Promise<void>;
  /** Sets the clock of a node or broker ahead of the machine's. Resolves when the server has read it. */
  setClock(name: string, seconds: number): Promise<void>;
  /**
   * Fills a server's disk.
   * @returns a function that frees the disk and restarts the server
   */
  fillDisk(name: string): Promise<() => Promise<void>>;
  /** Repairs a keyspace between these nodes of Cassandra, without the other nodes. */
  repair(keyspace: string, names: readonly string[]): Promise<void>;
  /** Replaces a node of Cassandra by an empty one, which copies the data of the others. */
  replace(name: string): Promise<void>;
  /** Runs a command of Cassandra's nodetool. */
  nodetool(name: string, ...args: readonly string[]): Promise<string>;
  /** The directory with the files of each server, in a folder with the server's name. */
  readonly directory: string;
  /** Ends all servers and deletes their data. */
  remove(): Promise<void>;
}

export interface ServersOptions {
  /** The number of Cassandra's nodes, and of Kafka's brokers. */
  readonly nodes: 1 | 3;
  /** The only servers to start. Without it all start. */
  readonly names?: readonly string[];
  /** Whether to use the optimizing compiler, which makes the start slower. */
  readonly measured?: boolean;
  readonly paxos?: PaxosVariant;
  /** Whether the clocks of nodes and brokers can be set. */
  readonly clocks?: boolean;
  /** The network in which each server has its own namespace. */
  readonly network?: Network | undefined;
  /** Servers whose disk can be filled. Each has a small disk in memory. Needs Linux and root. */
  readonly disks?: readonly string[];
  readonly say: (line: string) => void;
}

export async function startServers({
  nodes,
  names = namesOf(nodes),
  measured = false,
  paxos = 'v2',
  clocks = false,
  network,
  disks = [],
  say,
}: ServersOptions): Promise<Servers> {
  const shared = process.env['TAKEMARK_SERVICES_DIR'] ?? join(tmpdir(), 'takemark-services');
  const jars = join(shared, 'jars');
  await mkdir(jars, { recursive: true, mode: 0o700 });
  const directory = await mkdtemp(join(tmpdir(), 'takemark-servers-'));
  const prefix = network?.prefix ?? process.env['TAKEMARK_CLUSTER_NETWORK'] ?? NETWORK;
  const environment = {
    PATH: process.env['PATH'],
    HOME: process.env['HOME'],
    TAKEMARK_SERVICES_DIR: directory,
    TAKEMARK_SERVICES_NETWORK: prefix,
    ...(network !== undefined && { TAKEMARK_SERVICES_NAMESPACES: network.namespaces }),
    TAKEMARK_SERVICES_PAXOS: paxos,
    TAKEMARK_SERVICES_BROKERS: String(nodes),
    ...(clocks && { TAKEMARK_SERVICES_FAKETIME: FAKETIME }),
    TAKEMARK_SERVICES_JARS: jars,
    ...(measured && { _JAVA_OPTIONS: '-XX:TieredStopAtLevel=4' }),
  };
  const launched = async (args: readonly string[], timeout = 0): Promise<string> => {
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [LAUNCHER, ...args], {
      env: environment,
      maxBuffer: 1 << 24,
      timeout,
    });
    for (const line of stderr.split('\n')) if (line !== '' && !line.startsWith('variables')) say(line);
    return stdout;
  };
  const launcher = (...args: readonly string[]): Promise<string> => launched(args);
  const named = (names: readonly string[]) => names.flatMap((name) => ['--name', name]);
  const up = async (...names: readonly string[]): Promise<void> => {
    if (names.includes(BUCKET_SERVER)) await removeUnfinished(join(directory, BUCKET_SERVER, 'data'));
    for (const deadline = performance.now() + ALONE_MS; ; ) {
      try {
        await launcher('up', ...named(names));
        return;
      } catch (error) {
        const mayBeAlone = nodes > 1 && names.some(isCassandra);
        if (!mayBeAlone || performance.now() > deadline) throw error;
        say(`${names.join(', ')}: not up yet, starting again`);
      }
    }
  };
  const disturb = async (command: 'kill' | 'freeze', names: readonly string[]): Promise<void> => {
    for (const name of names) {
      try {
        await launcher(command, ...named([name]));
      } catch (error) {
        if (!String(error).includes(' is not running')) throw error;
        // An earlier fault may end a server later. The run restarts it, as a supervisor would, and prints a
        // line.
        say(`${name} had ended by itself: ${String(error)}`);
        await up(name);
        await launcher(command, ...named([name]));
      }
    }
  };
  const mounted: string[] = [];
  const remove = async (): Promise<void> => {
    await launcher('down');
    // A lazy unmount, because namespaces of the network hold copies of the mount.
    for (const path of mounted.splice(0)) await promisify(execFile)('umount', ['-l', path]);
    await launcher('down', '--erase');
    await rm(directory, { recursive: true, force: true });
  };
  try {
    for (const name of disks) {
      const path = join(directory, name);
      await mkdir(path, { mode: 0o700 });
      await promisify(execFile)('mount', [
        '-t',
        'tmpfs',
        '-o',
        `size=${DISK_BYTES},mode=0700`,
        'tmpfs',
        path,
      ]);
      mounted.push(path);
    }
    const lines = (await launcher('up', ...named(names), '--print-env'))
      .split('\n')
      .filter((line) => line.includes('='));
    // Production refuses these settings, so the run accepts them explicitly.
    const accepted = [
      ...(nodes === 1 ? ['cassandra.replication', 'kafka.replication', 'kafka.min_insync_replicas'] : []),
      ...(paxos === 'v1' ? ['cassandra.paxos_variant'] : []),
    ];
    return {
      names,
      settings: {
        ...Object.fromEntries(
          lines
            .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)])
            .filter(([name]) => name !== 'TAKEMARK_ACCEPT_SERVERS'),
        ),
        TAKEMARK_CASSANDRA_REPLICATION: String(nodes),
        TAKEMARK_KAFKA_REPLICATION: String(nodes),
        ...(accepted.length > 0 && { TAKEMARK_ACCEPT_SERVERS: accepted.join(',') }),
      },
      up,
      down: async (...names) => void (await launcher('down', ...named(names))),
      kill: (...names) => disturb('kill', names),
      freeze: (...names) => disturb('freeze', names),
      thaw: async (...names) => void (await launcher('thaw', ...named(names))),
      setClock: (name, seconds) => setFakeClock(join(directory, name, 'clock'), seconds),
      fillDisk: async (name) => {
        const path = join(directory, name, 'filler');
        say(`${name}: ${Math.round((await fill(path)) / 2 ** 20)} MiB of its disk were in use`);
        return async () => {
          await rm(path);
          // A server that met a full disk has ended or refuses calls, so it is restarted.
          await launcher('kill', '--name', name).catch(() => undefined);
          await up(name);
        };
      },
      repair: async (keyspace, names) => {
        const hosts = names.flatMap((name) => ['-hosts', `${prefix}.${name.slice('cassandra-'.length)}`]);
        const command = ['nodetool', '--', names[0]!, 'repair', '--full', ...hosts, keyspace];
        for (let left = REPAIRS; ; ) {
          try {
            await launched(command, REPAIR_MS);
            return;
          } catch (error) {
            left -= 1;
            if (left === 0) throw error;
            say(`repair of ${names.join(', ')} did not end, starting again`);
          }
        }
      },
      replace: async (name) => void (await launcher('replace', '--name', name)),
      nodetool: (name, ...args) => launcher('nodetool', '--', name, ...args),
      directory,
      remove,
    };
  } catch (error) {
    await remove();
    throw error;
  }
}

/** The temporary name of an object in s3proxy: the object's name and a UUID. */
const UNFINISHED = /-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/**
 * Deletes files that the bucket's server had not finished when its disk was full or it was killed. The server
 * lists such a file as an object. The file has no attributes, so every later listing of its folder fails with
 * 500. An operator has to delete such files too.
 */
async function removeUnfinished(data: string): Promise<void> {
  for (const name of await readdir(data, { recursive: true }))
    if (UNFINISHED.test(name)) await rm(join(data, name), { force: true });
}

/** Fills the disk. Returns the number of bytes that were in use before. */
async function fill(path: string): Promise<number> {
  const { bavail, bfree, blocks, bsize } = await statfs(dirname(path));
  // To write these bytes takes a busy machine a minute. If another process took some of the space, the loop
  // below fills the rest.
  await promisify(execFile)('fallocate', ['-l', String(Math.max(1, bavail - SPARE_BLOCKS) * bsize), path]);
  const file = await open(path, 'a');
  try {
    // The last bytes may stay free, because no log segment fits into them.
    for (const piece = Buffer.alloc(1 << 16, 1); ; ) await file.writeFile(piece);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
  } finally {
    await file.close();
  }
  return (blocks - bfree) * bsize;
}
