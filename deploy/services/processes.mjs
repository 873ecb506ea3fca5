/** Processes that outlive the command that starts them. Each has a directory with its pid and its log. */
import { execFileSync, spawn } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const PID = 'pid';
const LOG = 'server.log';
/** A whole start on a machine that is busy with something else, beside others. */
const START_MS = 600_000;
/** Time that a server may take to close its files before it is killed. */
const STOP_MS = 20_000;
/** Looks at a command line that is empty, and the pause between two. */
const MOST_LOOKS = 10;
const LOOK_MS = 10;

/**
 * The pid of the process of a directory, undefined where there is none. A pid that the system gave to another
 * program is none.
 */
export function runningPid(directory) {
  const path = join(directory, PID);
  if (!existsSync(path)) return undefined;
  const pid = Number(readFileSync(path, 'utf8'));
  return pid > 0 && commandOf(pid).includes(directory) ? pid : undefined;
}

/** Every process started here names its own directory in its arguments. */
function commandOf(pid) {
  try {
    if (!existsSync('/proc/self/cmdline'))
      return execFileSync('ps', ['-o', 'command=', '-p', String(pid)], { encoding: 'utf8' });
    for (let looks = 1; ; looks += 1) {
      const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
      // It is empty for a moment while a process replaces its program, as `ip netns exec` does, and for good behind its end.
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
 * Waits until `probe` succeeds. A process that ends meanwhile, or never answers, is an error with what its
 * log says of it.
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
 * What a server's log says last, for an error: the last error and the end. One that gives up writes its reason and
 * then many lines on how it closes.
 */
export function excerpt(directory) {
  const log = join(directory, LOG);
  if (!existsSync(log)) return `there is no ${log}`;
  const lines = readFileSync(log, 'utf8').split('\n');
  const end = Math.max(0, lines.length - 15);
  const error = lines.slice(0, end).findLastIndex((line) => /\b(ERROR|FATAL)\b/.test(line));
  return [
    `from ${log}:`,
    ...(error < 0 ? [] : [...lines.slice(error, Math.min(error + 10, end)), '...']),
    ...lines.slice(end),
  ].join('\n');
}

/** True when there was something to stop. */
export async function stop(directory) {
  const pid = runningPid(directory);
  if (pid !== undefined) {
    signal(pid, 'SIGTERM');
    // A frozen one would not hear of it.
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

/** Ends it without notice, as a power cut would. True when there was something to end. */
export async function kill(directory) {
  const pid = runningPid(directory);
  if (pid !== undefined) signal(pid, 'SIGKILL');
  while (runningPid(directory) !== undefined) await sleep(20);
  rmSync(join(directory, PID), { force: true });
  return pid !== undefined;
}

/** Stops it amid whatever it does, sockets open, or lets it go on. True when it runs. */
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
