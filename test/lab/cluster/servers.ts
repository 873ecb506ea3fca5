/**
 * A set of real servers for this run alone, with the launcher of `deploy/services/`: the run stops, kills and
 * erases them.
 */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, open, readdir, rm, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { isCassandra } from './composition.js';
import { FAKETIME, setFakeClock } from './members.js';
import type { Network } from './network.js';

/** Values of Cassandra's `paxos_variant`. */
export type PaxosVariant = 'v1' | 'v2';

const BUCKET_SERVER = 's3-1';
const LAUNCHER = new URL('../../../../deploy/services/services.mjs', import.meta.url).pathname;
/** Beside 127.0.0, which the servers of the other suites have. */
const NETWORK = '127.0.1';
/** Bytes of a disk that can be filled: several times what an hour's run leaves on it. */
const DISK_BYTES = 1 << 30;
/**
 * Time for which a node of Cassandra is started again and again. It ends where it finds no other one, and faults may keep
 * the others away for some minutes; whoever supervises it in production starts it again, too.
 */
const ALONE_MS = 7 * 60_000;
/** A repair takes half a minute. One whose Paxos cleanup waits for an answer that was lost never ends by itself. */
const REPAIR_MS = 5 * 60_000;
const REPAIRS = 3;
/** Left to be written, since the server writes meanwhile. */
const SPARE_BLOCKS = 4096;

/** Names of the servers where Cassandra and Kafka have so many. */
export function namesOf(nodes: 1 | 3): readonly string[] {
  const several = (kind: string) => Array.from({ length: nodes }, (_, index) => `${kind}-${index + 1}`);
  return [...several('cassandra'), ...several('kafka'), BUCKET_SERVER];
}

export interface Servers {
  readonly names: readonly string[];
  /** Settings of the service that name these servers. */
  readonly settings: Readonly<Record<string, string>>;
  up(...names: readonly string[]): Promise<void>;
  /** Orderly, data kept. */
  down(...names: readonly string[]): Promise<void>;
  kill(...names: readonly string[]): Promise<void>;
  /** Lets the servers keep their connections and answer nothing, until `thaw`. */
  freeze(...names: readonly string[]): Promise<void>;
  thaw(...names: readonly string[]): Promise<void>;
  /** Sets the clock of a node or broker ahead of the machine's; resolves when it has read it. */
  setClock(name: string, seconds: number): Promise<void>;
  /** Leaves no room on a server's disk. @returns what makes room again and starts the server anew */
  fillDisk(name: string): Promise<() => Promise<void>>;
  /** Makes what these nodes of Cassandra have of a keyspace the same, whatever another one has. */
  repair(keyspace: string, names: readonly string[]): Promise<void>;
  /** Puts a node of Cassandra without data in the place of one; it copies what the others have. */
  replace(name: string): Promise<void>;
  /** A command of Cassandra's nodetool. */
  nodetool(name: string, ...args: readonly string[]): Promise<string>;
  /** Each server's files are below it, under its name. */
  readonly directory: string;
  /** Ends all of them; their data goes too. */
  remove(): Promise<void>;
}

export interface ServersOptions {
  /** Nodes of Cassandra, and brokers of Kafka. */
  readonly nodes: 1 | 3;
  /** These alone, in place of all. */
  readonly names?: readonly string[];
  /** With the compiler that makes fast code, which takes longer to start. */
  readonly measured?: boolean;
  readonly paxos?: PaxosVariant;
  /** Tells whether clocks of nodes and brokers can be set. */
  readonly clocks?: boolean;
  /** In which each server has a namespace of its own. */
  readonly network?: Network | undefined;
  /** Servers whose disk can be filled: each has a small one of its own, in memory. Linux, as root. */
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
        // An earlier fault may end a server later. It is started again, as a supervisor would have, and told of.
        say(`${name} had ended by itself: ${String(error)}`);
        await up(name);
        await launcher(command, ...named([name]));
      }
    }
  };
  const mounted: string[] = [];
  const remove = async (): Promise<void> => {
    await launcher('down');
    // Lazily: namespaces of the network have copies of the mount for as long as they are there.
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
    // Production refuses these, and the run has them by its options.
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
        await fill(path);
        return async () => {
          await rm(path);
          // A server that met a full disk has given up, or stands there and refuses: it is started anew.
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

/** Name that s3proxy writes an object under before it has its own: the object's, and a UUID. */
const UNFINISHED = /-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/**
 * Removes what the bucket's server was writing when its disk was full or it was killed. It shows such a file as an object, and
 * answers each list of the folder 500 from then on, as the file has no attributes: whoever runs it has to clean up.
 */
async function removeUnfinished(data: string): Promise<void> {
  for (const name of await readdir(data, { recursive: true }))
    if (UNFINISHED.test(name)) await rm(join(data, name), { force: true });
}

/** Leaves no room. */
async function fill(path: string): Promise<void> {
  const { bavail, bsize } = await statfs(dirname(path));
  // Written byte by byte it takes a busy machine a minute. Somebody may have been quicker: the rest is written.
  await promisify(execFile)('fallocate', ['-l', String(Math.max(1, bavail - SPARE_BLOCKS) * bsize), path]);
  const file = await open(path, 'a');
  try {
    // The last bytes one by one are not worth it: no log segment fits into a few of them.
    for (const piece = Buffer.alloc(1 << 16, 1); ; ) await file.writeFile(piece);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
  } finally {
    await file.close();
  }
}
