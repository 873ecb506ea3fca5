import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { RuntimeError } from '../command.js';
import { readEndpoints } from '../endpoints.js';
import { operatorTokenPath } from '../operator-client.js';

const SERVICE = fileURLToPath(new URL('../../service/main.js', import.meta.url));
const START_MS = 60_000;
const STOP_MS = 5000;

/** The service as `npm start` runs it, in its own process and data directory. */
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

  /**
   * Starts the service and waits until it answers.
   * @throws RuntimeError with its last output if it does not start
   */
  static async start(
    dataDir: string,
    environment: 'production' | 'beta',
    signal: AbortSignal,
  ): Promise<ServiceProcess> {
    const child = spawn(process.execPath, [SERVICE], {
      // Without the caller's environment: the demo must not touch an existing service or its data.
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
        if (endpoints?.partner !== undefined && (await answers(endpoints.partner))) {
          const { partner, operator } = endpoints;
          return new ServiceProcess(
            child,
            { partner, operator },
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
      `the service did not start: ${failed?.message ?? (words.trim().split('\n').slice(-5).join(' | ') || 'no output')}`,
    );
  }

  stop(): Promise<void> {
    return stop(this.#child);
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
