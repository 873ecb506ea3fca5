/**
 * A network of namespaces, one for each process and server, joined by a bridge. A blackhole route cuts one
 * direction of a link, and a delaying device slows it. Needs Linux and root.
 */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';

/** The prefix of all addresses of a network. The first address is the bridge's, from which the run calls. */
const PREFIX = '10.77';
const BRIDGE_HOST = 254;

/** The delaying device of a namespace, and the routing table for packets that leave it. */
const LATE = { device: 'late', table: '100' };
const DELAY = new URL('../../../../test/lab/cluster/delay.py', import.meta.url).pathname;

const run = (...args: readonly string[]) => promisify(execFile)('ip', args);

export interface Network {
  /** The first three numbers of all addresses. */
  readonly prefix: string;
  /** The prefix of the names of all namespaces. */
  readonly namespaces: string;
  /** Returns the address of a party. */
  addressOf(name: string): string;
  /** The address at which the run listens. Every party reaches it. */
  readonly own: string;
  /** Returns the words before a command that runs in a party's namespace. */
  within(name: string): readonly string[];
  /** Drops everything that the first party sends to the second. */
  cut(from: string, to: string): Promise<void>;
  mend(from: string, to: string): Promise<void>;
  /**
   * Delays everything that the first party sends to the second. A sender has at most one delay.
   * @returns a function that ends it
   */
  delay(from: string, to: string, milliseconds: number): Promise<() => Promise<void>>;
  remove(): Promise<void>;
}

/**
 * @param number of the network on this machine, 0 to 255
 * @param hosts the last number of each party's address
 */
export async function openNetwork(number: number, hosts: Readonly<Record<string, number>>): Promise<Network> {
  const bridge = `tmk${number}`;
  const addressOf = (name: string): string => `${PREFIX}.${number}.${hosts[name]}`;
  const spaceOf = (name: string): string => `${bridge}-${name}`;
  const remove = async (): Promise<void> => {
    for (const [name, host] of Object.entries(hosts)) {
      // A namespace frees its device some time after its own deletion.
      await run('link', 'del', `${bridge}v${host}`).catch(() => undefined);
      await run('netns', 'del', spaceOf(name)).catch(() => undefined);
    }
    await run('link', 'del', bridge).catch(() => undefined);
  };
  await remove();
  try {
    await run('link', 'add', bridge, 'type', 'bridge');
    await run('addr', 'add', `${PREFIX}.${number}.${BRIDGE_HOST}/24`, 'dev', bridge);
    await run('link', 'set', bridge, 'up');
    for (const [name, host] of Object.entries(hosts)) {
      const space = spaceOf(name);
      await run('netns', 'add', space);
      await run('link', 'add', `${bridge}v${host}`, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', space);
      await run('link', 'set', `${bridge}v${host}`, 'master', bridge, 'up');
      await run('-n', space, 'addr', 'add', `${addressOf(name)}/24`, 'dev', 'eth0');
      for (const device of ['lo', 'eth0']) await run('-n', space, 'link', 'set', device, 'up');
      // Packets that leave the delaying device are forwarded to the other one, although their sender is this
      // host.
      const forwards =
        'echo 1 >ip_forward; echo 1 >conf/default/accept_local; echo 0 >conf/default/rp_filter';
      await run('netns', 'exec', space, 'sh', '-c', `cd /proc/sys/net/ipv4 && { ${forwards}; }`);
      const { device, table } = LATE;
      await run('-n', space, 'route', 'add', `${PREFIX}.${number}.0/24`, 'dev', 'eth0', 'table', table);
      await run('-n', space, 'rule', 'add', 'iif', device, 'lookup', table);
    }
  } catch (error) {
    await remove();
    throw error;
  }
  const change = async (verb: 'add' | 'del', from: string, to: string): Promise<void> => {
    await run('-n', spaceOf(from), 'route', verb, 'blackhole', `${addressOf(to)}/32`);
  };
  const late = async (from: string, to: string, milliseconds: number): Promise<() => Promise<void>> => {
    const { device } = LATE;
    const space = spaceOf(from);
    const child = spawn('ip', ['netns', 'exec', space, 'python3', DELAY, device, String(milliseconds)], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const ended = once(child, 'exit');
    await Promise.race([
      once(child.stdout, 'data'),
      ended.then(() => Promise.reject(new Error(`${DELAY} has ended`))),
    ]);
    await run('-n', space, 'link', 'set', device, 'up');
    await run('-n', space, 'route', 'add', `${addressOf(to)}/32`, 'dev', device, 'src', addressOf(from));
    return async () => {
      await run('-n', space, 'route', 'del', `${addressOf(to)}/32`, 'dev', device);
      // The delayed packets still arrive.
      await sleep(milliseconds * 1.5);
      child.stdin.end();
      await ended;
    };
  };
  return {
    prefix: `${PREFIX}.${number}`,
    namespaces: `${bridge}-`,
    addressOf,
    own: `${PREFIX}.${number}.${BRIDGE_HOST}`,
    within: (name) => ['ip', 'netns', 'exec', spaceOf(name)],
    cut: (from, to) => change('add', from, to),
    mend: (from, to) => change('del', from, to),
    delay: late,
    remove,
  };
}
