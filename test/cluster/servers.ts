/**
 * A set of real servers for this run alone, with the launcher of `deploy/services/`: the run stops, kills and
 * erases them.
 */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const LAUNCHER = new URL('../../../deploy/services/services.mjs', import.meta.url).pathname;
/** Beside 127.0.0, which the servers of the other suites have. */
const NETWORK = '127.0.1';

export interface Servers {
  /** Settings of the service that name these servers. */
  readonly settings: Readonly<Record<string, string>>;
  up(...names: readonly string[]): Promise<void>;
  /** Orderly, data kept. */
  down(...names: readonly string[]): Promise<void>;
  kill(...names: readonly string[]): Promise<void>;
  /** Lets the servers keep their connections and answer nothing, until `thaw`. */
  freeze(...names: readonly string[]): Promise<void>;
  thaw(...names: readonly string[]): Promise<void>;
  /** A command of Cassandra's nodetool. */
  nodetool(name: string, ...args: readonly string[]): Promise<string>;
  /** Each server's files are below it, under its name. */
  readonly directory: string;
  /** Ends all of them; their data goes too. */
  remove(): Promise<void>;
}

/**
 * @param nodes of Cassandra
 * @param measured with the compiler that makes fast code, which takes longer to start
 */
export async function startServers({
  nodes,
  measured = false,
  say,
}: {
  readonly nodes: 1 | 3;
  readonly measured?: boolean;
  readonly say: (line: string) => void;
}): Promise<Servers> {
  const shared = process.env['TAKEMARK_SERVICES_DIR'] ?? join(tmpdir(), 'takemark-services');
  const jars = join(shared, 'jars');
  await mkdir(jars, { recursive: true, mode: 0o700 });
  const directory = await mkdtemp(join(tmpdir(), 'takemark-servers-'));
  const environment = {
    PATH: process.env['PATH'],
    HOME: process.env['HOME'],
    TAKEMARK_SERVICES_DIR: directory,
    TAKEMARK_SERVICES_NETWORK: process.env['TAKEMARK_CLUSTER_NETWORK'] ?? NETWORK,
    TAKEMARK_SERVICES_JARS: jars,
    ...(measured && { _JAVA_OPTIONS: '-XX:TieredStopAtLevel=4' }),
  };
  const launcher = async (...args: readonly string[]): Promise<string> => {
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [LAUNCHER, ...args], {
      env: environment,
      maxBuffer: 1 << 24,
    });
    for (const line of stderr.split('\n')) if (line !== '' && !line.startsWith('variables')) say(line);
    return stdout;
  };
  const named = (names: readonly string[]) => names.flatMap((name) => ['--name', name]);
  const remove = async (): Promise<void> => {
    await launcher('down', '--erase');
    await rm(directory, { recursive: true, force: true });
  };
  try {
    const lines = (await launcher('up', '--nodes', String(nodes), '--print-env'))
      .split('\n')
      .filter((line) => line.includes('='));
    return {
      settings: {
        ...Object.fromEntries(
          lines.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
        ),
        TAKEMARK_CASSANDRA_REPLICATION: String(nodes),
      },
      up: async (...names) => void (await launcher('up', '--nodes', String(nodes), ...named(names))),
      down: async (...names) => void (await launcher('down', ...named(names))),
      kill: async (...names) => void (await launcher('kill', ...named(names))),
      freeze: async (...names) => void (await launcher('freeze', ...named(names))),
      thaw: async (...names) => void (await launcher('thaw', ...named(names))),
      nodetool: (name, ...args) => launcher('nodetool', name, ...args),
      directory,
      remove,
    };
  } catch (error) {
    await remove();
    throw error;
  }
}
