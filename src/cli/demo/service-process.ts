import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { RuntimeError } from '../command.js';
import { operatorTokenPath } from '../operator-client.js';

const SERVICE = fileURLToPath(new URL('../../main.js', import.meta.url));
const START_MS = 60_000;
const STOP_MS = 5000;

/** The service as `npm start` runs it, in a process and a data directory of its own. */
export class ServiceProcess {
  readonly url: string;
  readonly operatorUrl: string;
  readonly operatorToken: string;
  readonly #child: ChildProcess;

  private constructor(
    child: ChildProcess,
    endpoints: { readonly partner: string; readonly operator: string },
    operatorToken: string,
  ) {
    this.#child = child;
    this.url = endpoints.partner;
    this.operatorUrl = endpoints.operator;
    this.operatorToken = operatorToken;
  }

  /** Resolves when it answers. @throws RuntimeError with its last words when it does not start */
  static async start(
    dataDir: string,
    environment: 'production' | 'beta',
    signal: AbortSignal,
  ): Promise<ServiceProcess> {
    const child = spawn(process.execPath, [SERVICE], {
      // Nothing of the caller's configuration: the demo must not touch a service or data that is already
      // there.
      env: {
        TAKEMARK_DATA_DIR: dataDir,
        TAKEMARK_ENVIRONMENT: environment,
        TAKEMARK_PORT: '0',
        TAKEMARK_OPERATOR_PORT: '0',
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let words = '';
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => (words = (words + chunk.toString('utf8')).slice(-2000)));
    let failed: Error | undefined;
    child.on('error', (error) => (failed = error));
    try {
      for (
        const deadline = Date.now() + START_MS;
        Date.now() < deadline;
        await sleep(40, undefined, { signal })
      ) {
        if (failed !== undefined || child.exitCode !== null || child.signalCode !== null) break;
        const endpoints = await readEndpoints(dataDir);
        if (endpoints !== undefined && (await answers(endpoints.partner))) {
          return new ServiceProcess(
            child,
            endpoints,
            (await readFile(operatorTokenPath(dataDir), 'utf8')).trim(),
          );
        }
      }
    } catch (error) {
      await stop(child);
      throw error;
    }
    await stop(child);
    throw new RuntimeError(
      `the service did not start: ${failed?.message ?? (words.trim().split('\n').slice(-5).join(' | ') || 'it said nothing')}`,
    );
  }

  stop(): Promise<void> {
    return stop(this.#child);
  }
}

/** The service writes the ports it has bound, as it is asked for any free ones. */
async function readEndpoints(
  dataDir: string,
): Promise<{ readonly partner: string; readonly operator: string } | undefined> {
  try {
    const { partner, operator } = JSON.parse(
      await readFile(join(dataDir, 'endpoints.json'), 'utf8'),
    ) as Record<string, unknown>;
    if (typeof partner !== 'number' || typeof operator !== 'number') return undefined;
    return { partner: `http://127.0.0.1:${partner}`, operator: `http://127.0.0.1:${operator}` };
  } catch {
    // Not there yet.
    return undefined;
  }
}

async function answers(url: string): Promise<boolean> {
  try {
    return (await fetch(new URL('/v1/health', url), { signal: AbortSignal.timeout(2000) })).ok;
  } catch {
    return false;
  }
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGTERM');
  const patience = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
  await exited;
  clearTimeout(patience);
}
