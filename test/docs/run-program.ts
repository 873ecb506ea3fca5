import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { text } from 'node:stream/consumers';
import type { Test } from 'tap';

/** Runs a program to its end, with `environment` over this process's own. */
export async function runProgram(
  command: string,
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<{ readonly code: number; readonly out: string; readonly err: string }> {
  const child = spawn(command, args, {
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [out, err, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close'),
  ]);
  return { code, out, err };
}

/**
 * Starts a proxy that answers nothing. `environment` makes programs use the proxy for every protocol, as settings of a
 * company network do, and `connections` counts what arrived.
 */
export async function startProxy(t: Test) {
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    socket.destroy();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const names = ['http_proxy', 'HTTP_PROXY', 'https_proxy', 'HTTPS_PROXY', 'all_proxy', 'ALL_PROXY'];
  return {
    environment: { ...Object.fromEntries(names.map((name) => [name, url])), no_proxy: '', NO_PROXY: '' },
    connections: () => connections,
  };
}

/** Runs a program that has to succeed. */
export async function built(command: string, ...args: readonly string[]): Promise<void> {
  const { code, out, err } = await runProgram(command, args);
  if (code !== 0) throw new Error(`${command}: ${out}${err}`);
}
