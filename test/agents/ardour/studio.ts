/** Runs the real Ardour for tests: its programs have a home of their own, and an agent follows a session. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createReadStream } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type FollowOptions, followArdour } from '../../../src/agents/ardour/follow.js';
import {
  DeviceKey,
  openTrace,
  type TraceEvent,
  type TraceHeader,
} from '../../../src/witness/capture/index.js';
import { readTrace } from '../../../src/witness/trace/read-trace.js';

/** The directory of the Lua scripts, which are not part of the build. */
export const SCRIPTS = new URL('../../../../test/agents/ardour/', import.meta.url).pathname;

export function homeEnvironment(home: string): NodeJS.ProcessEnv {
  return {
    ...process.env,
    HOME: home,
    XDG_CONFIG_HOME: join(home, 'config'),
    XDG_CACHE_HOME: join(home, 'cache'),
    XDG_RUNTIME_DIR: join(home, 'run'),
    LC_ALL: 'C.UTF-8',
  };
}

export async function makeHome(home: string): Promise<void> {
  for (const name of ['config/ardour7', 'cache/ardour7', 'run'])
    await mkdir(join(home, name), { recursive: true, mode: 0o700 });
}

export interface Ended {
  /** The exit code, or null if a signal ended the process. */
  readonly code: number | null;
  /** The last 20,000 characters of both streams. */
  readonly output: string;
}

/** Runs a Lua script in Ardour without a window. @returns its exit code and what it wrote */
export function runLua(home: string, script: string, args: readonly string[]): Promise<Ended> {
  // Ardour hangs now and then at the end of an export.
  const options = { env: homeEnvironment(home), timeout: 300_000 };
  return ended(spawn('ardour7-lua', [join(SCRIPTS, script), ...args], options));
}

export function ended(child: ChildProcess): Promise<Ended> {
  return new Promise((resolve, reject) => {
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream?.on('data', (text: Buffer) => {
        output = `${output}${text}`.slice(-20_000);
      });
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, output }));
  });
}

export interface Followed {
  readonly header: TraceHeader;
  readonly events: readonly TraceEvent[];
  readonly findings: readonly unknown[];
}

/** Follows a session with the agent while it is worked on. */
export async function follow(
  trace: string,
  options: Pick<FollowOptions, 'directory' | 'countsDummy' | 'originals' | 'rerender' | 'hook'>,
  work: () => Promise<void>,
  key: DeviceKey = DeviceKey.generate(),
): Promise<Followed> {
  const over = new AbortController();
  const following = followArdour({
    ...options,
    signal: over.signal,
    open: ({ startedAt, dawVersion, channels }) =>
      openTrace({
        to: trace,
        key,
        header: {
          adapter: 'ardour',
          adapterVersion: '1.0.0',
          dawVersion,
          startedAt,
          simulated: options.countsDummy === true,
          channels,
        },
      }),
  });
  try {
    await work();
  } finally {
    over.abort();
    await following;
  }
  return readBack(trace);
}

export async function readBack(trace: string): Promise<Followed> {
  const read = await readTrace(() => createReadStream(trace));
  const events: TraceEvent[] = [];
  for await (const batch of read.events()) events.push(...batch);
  return { header: read.header, events, findings: read.findings };
}
