/** nginx and HAProxy in front of two processes, with the configurations of `docs/proxies.md`. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { ROOT } from '../../docs/pages.js';
import type { Service } from '../cluster/members.js';

const START_MS = 60_000;

export interface RunningProxy {
  stop(): Promise<void>;
}

/** Starts nginx with the server block and the `upstream` of the page, without TLS. */
export async function startNginx(port: number, services: readonly Service[]): Promise<RunningProxy> {
  const server = (await blockOf('server_name partners.example'))
    .replace('listen 443 ssl http2;', `listen 127.0.0.1:${port};`)
    .replaceAll(/^ *ssl_.*\n/gm, '')
    .replace('http://127.0.0.1:8080', 'http://takemark');
  const upstream = withAddresses(await blockOf('upstream takemark'), services);
  return start(port, 'nginx', (directory) => ({
    text: `daemon off; pid ${directory}/pid; error_log ${directory}/error;
events {}
http { access_log off; ${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${directory}/${name};`).join(' ')}
${upstream}
${server}
}
`,
    args: (file) => ['-c', file, '-p', directory, '-e', 'stderr'],
  }));
}

/** Starts HAProxy with the backend of the page. */
export async function startHaproxy(port: number, services: readonly Service[]): Promise<RunningProxy> {
  const backend = withAddresses(await blockOf('backend takemark'), services);
  return start(port, 'haproxy', () => ({
    text: `defaults
  mode http
  timeout connect 2s
  timeout client 60s
  timeout server 60s
frontend partners
  bind 127.0.0.1:${port}
  default_backend takemark
${backend}
`,
    args: (file) => ['-db', '-f', file],
  }));
}

/** Returns the code block of the page that contains a text. */
async function blockOf(text: string): Promise<string> {
  const page = await readFile(join(ROOT, 'docs/proxies.md'), 'utf8');
  const block = [...page.matchAll(/^ *```\w*\n([\s\S]*?)^ *```/gm)]
    .map(([, content]) => content!)
    .find((content) => content.includes(text));
  if (block === undefined) throw new Error(`the page has no block with ${text}`);
  return block;
}

/** Replaces the addresses of the page by those of the services. */
function withAddresses(block: string, services: readonly Service[]): string {
  return services.reduce((text, { partner, operator }, index) => {
    const address = `10.0.0.${index + 1}:8080`;
    if (!text.includes(address)) throw new Error(`the block does not name ${address}`);
    const lines = text.split('\n');
    return lines
      .map((line) =>
        line.includes(address)
          ? line
              .replace(address, new URL(partner).host)
              .replace('check port 8081', `check port ${new URL(operator).port}`)
          : line,
      )
      .join('\n');
  }, block);
}

async function start(
  port: number,
  program: string,
  configure: (directory: string) => { readonly text: string; args(file: string): readonly string[] },
): Promise<RunningProxy> {
  const directory = await mkdtemp(join(tmpdir(), 'takemark-proxy-'));
  const file = join(directory, `${program}.cfg`);
  const { text, args } = configure(directory);
  await writeFile(file, text);
  const child = spawn(program, args(file), { stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()));
  const exited = once(child, 'exit');
  const answers = () =>
    fetch(`http://127.0.0.1:${port}/v1/health`).then(
      (answer) => answer.ok,
      () => false,
    );
  for (const deadline = Date.now() + START_MS; !(await answers()); await delay(100))
    if (child.exitCode !== null || Date.now() > deadline)
      throw new Error(`${program} does not serve: ${said}`);
  return {
    stop: async () => {
      child.kill('SIGTERM');
      await exited;
      await rm(directory, { recursive: true, force: true });
    },
  };
}
