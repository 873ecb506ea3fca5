/** Starts and ends processes that outlive the command. Each has a directory with its pid and its log. */
import { execFileSync, spawn } from 'node:child_process';
import {
  closeSync,
  existsSync,
  fstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const PID = 'pid';
const LOG = 'server.log';
/** The bytes of a log's end that a message is made from. */
const EXCERPT_BYTES = 1_048_576;
/** The limit of a start in milliseconds, long enough for a busy machine that starts several servers. */
const START_MS = 600_000;
/** The time in milliseconds in which a server must close its files before it is killed. */
const STOP_MS = 20_000;
/** The number of reads of an empty command line, and the pause between two in milliseconds. */
const MOST_LOOKS = 10;
const LOOK_MS = 10;

/**
 * Returns the pid of the process of a directory, or undefined if none runs. A pid that the system has given
 * to another program does not count.
 */
export function runningPid(directory) {
  const path = join(directory, PID);
  if (!existsSync(path)) return undefined;
  const pid = Number(readFileSync(path, 'utf8'));
  return pid > 0 && commandOf(pid).includes(directory) ? pid : undefined;
}

/** Returns the command line of a process. Every process started here has its directory in its arguments. */
function commandOf(pid) {
  try {
    if (!existsSync('/proc/self/cmdline'))
      return execFileSync('ps', ['-o', 'command=', '-p', String(pid)], { encoding: 'utf8' });
    for (let looks = 1; ; looks += 1) {
      const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
      // It is empty while a process replaces its program, as `ip netns exec` does, and after its end.
      if (command !== '' || looks === MOST_LOOKS) return command;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LOOK_MS);
    }
  } catch {
    return '';
  }
}

/** @param {{ directory: string, command: string[] }} process */
export function start({ directory, command: [program, ...args] }) {
  mkdirSync(directory, { recursive: true });
  const log = openSync(join(directory, LOG), 'a');
  const child = spawn(program, args, { cwd: directory, detached: true, stdio: ['ignore', log, log] });
  child.on('error', () => undefined);
  closeSync(log);
  if (child.pid === undefined) throw new Error(`${program} cannot be started`);
  writeFileSync(join(directory, PID), String(child.pid));
  child.unref();
}

/**
 * Waits until `probe` succeeds.
 * @throws Error with an excerpt of the log if the process ends or does not answer in time
 */
export async function ready({ directory, name }, probe) {
  const deadline = Date.now() + START_MS;
  for (;;) {
    try {
      return await probe();
    } catch (error) {
      const late = Date.now() > deadline;
      if (late || runningPid(directory) === undefined)
        throw new Error(
          `${name} ${late ? `does not answer (${error.message})` : 'ended'}; ${excerpt(directory)}`,
        );
    }
    await sleep(200);
  }
}

/**
 * Returns the last error and the end of a server's log, for a message. A server that gives up logs its
 * reason, and then many lines about its shutdown.
 */
export function excerpt(directory) {
  const log = join(directory, LOG);
  if (!existsSync(log)) return `there is no ${log}`;
  const lines = endOf(log).split('\n');
  const end = Math.max(0, lines.length - 15);
  const error = lines.slice(0, end).findLastIndex((line) => /\b(ERROR|FATAL)\b/.test(line));
  return [
    `from ${log}:`,
    ...(error < 0 ? [] : [...lines.slice(error, Math.min(error + 10, end)), '...']),
    ...lines.slice(end),
  ].join('\n');
}

/** Returns the end of a file as text. A log can be longer than the longest string. */
function endOf(path) {
  const descriptor = openSync(path, 'r');
  try {
    const { size } = fstatSync(descriptor);
    const bytes = Buffer.alloc(Math.min(size, EXCERPT_BYTES));
    return bytes.subarray(0, readSync(descriptor, bytes, 0, bytes.length, size - bytes.length)).toString();
  } finally {
    closeSync(descriptor);
  }
}

/** Stops the process of a directory. @returns whether one was running */
export async function stop(directory) {
  const pid = runningPid(directory);
  if (pid !== undefined) {
    signal(pid, 'SIGTERM');
    // A frozen process gets SIGTERM only when it continues.
    signal(pid, 'SIGCONT');
    const deadline = Date.now() + STOP_MS;
    while (runningPid(directory) !== undefined) {
      if (Date.now() > deadline) signal(pid, 'SIGKILL');
      await sleep(100);
    }
  }
  rmSync(join(directory, PID), { force: true });
  return pid !== undefined;
}

/** Kills the process of a directory without notice, like a power cut. @returns whether one was running */
export async function kill(directory) {
  const pid = runningPid(directory);
  if (pid !== undefined) signal(pid, 'SIGKILL');
  while (runningPid(directory) !== undefined) await sleep(20);
  rmSync(join(directory, PID), { force: true });
  return pid !== undefined;
}

/** Suspends the process of a directory with open sockets, or resumes it. @returns whether one is running */
export function freeze(directory, frozen) {
  const pid = runningPid(directory);
  if (pid !== undefined) signal(pid, frozen ? 'SIGSTOP' : 'SIGCONT');
  return pid !== undefined;
}

function signal(pid, name) {
  try {
    process.kill(pid, name);
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
  }
}
