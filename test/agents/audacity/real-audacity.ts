import { type ChildProcess, spawn } from 'node:child_process';
import { constants, statSync } from 'node:fs';
import { type FileHandle, mkdir, open, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

const MODULE = '/usr/lib/audacity/modules/mod-script-pipe.so';
const START_MS = 60_000;
const COMMAND_MS = 30_000;
const SETTLED_MS = 3000;

/**
 * The real Audacity in a virtual display, driven by commands of its scripting pipe. The names of the two FIFOs are
 * fixed for a user, so there is one at a time.
 */
export class RealAudacity {
  readonly #display: ChildProcess;
  readonly #audacity: ChildProcess;
  readonly #to: FileHandle;
  readonly #from: FileHandle;

  private constructor(display: ChildProcess, audacity: ChildProcess, to: FileHandle, from: FileHandle) {
    this.#display = display;
    this.#audacity = audacity;
    this.#to = to;
    this.#from = from;
  }

  /** @param home directory of its own for settings and temporary files */
  static async start(home: string): Promise<RealAudacity> {
    const pipes = ['to', 'from'].map((end) => `/tmp/audacity_script_pipe.${end}.${process.getuid?.()}`);
    await Promise.all(pipes.map((pipe) => rm(pipe, { force: true })));
    await writeSettings(home);
    const display = spawn('Xvfb', ['-displayfd', '3', '-screen', '0', '1280x800x24', '-nolisten', 'tcp'], {
      stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
    });
    const number = await firstLine(display);
    const audacity = spawn('audacity', [], {
      stdio: 'ignore',
      // A project that is saved by its name alone comes to lie where the program was started.
      cwd: home,
      env: {
        PATH: process.env['PATH'],
        HOME: home,
        DISPLAY: `:${number}`,
        LC_ALL: 'C.UTF-8',
        NO_AT_BRIDGE: '1',
      },
    });
    try {
      // The module makes its FIFOs anew while Audacity starts: those that have stood for a while are the last ones.
      await until(() => pipes.every((pipe) => ageMs(pipe) > SETTLED_MS), START_MS);
      // Both ends stay open for the whole run: Audacity serves one client after the other only as it likes.
      const [to = '', from = ''] = pipes;
      const writing = await open(to, constants.O_RDWR);
      const reading = await open(from, constants.O_RDONLY | constants.O_NONBLOCK);
      const started = new RealAudacity(display, audacity, writing, reading);
      await started.#wake();
      return started;
    } catch (error) {
      audacity.kill('SIGKILL');
      display.kill('SIGKILL');
      throw error;
    }
  }

  /** Sends a command and waits for its end. @returns what Audacity answers before the last line */
  async send(command: string): Promise<string> {
    const answer = await this.#exchange(command, COMMAND_MS);
    if (answer === undefined) throw new Error(`no answer to ${command}`);
    if (!answer.includes('BatchCommand finished: OK')) throw new Error(`${command}: ${answer}`);
    return answer;
  }

  async stop(): Promise<void> {
    this.#audacity.kill('SIGKILL');
    this.#display.kill('SIGKILL');
    await Promise.all([this.#to.close(), this.#from.close()]);
  }

  /** Wakes the main loop. Without a window manager a stop and a continuation do it if the first command does not. */
  async #wake(): Promise<void> {
    const deadline = performance.now() + START_MS;
    let answer: string | undefined;
    for (;;) {
      answer = await this.#exchange(answer === undefined ? 'Help: Command=Help' : undefined, 3000);
      if (answer?.includes('BatchCommand finished')) return;
      if (performance.now() > deadline) throw new Error('Audacity answers nothing');
      answer = '';
      this.#audacity.kill('SIGSTOP');
      await pause(200);
      this.#audacity.kill('SIGCONT');
    }
  }

  async #exchange(command: string | undefined, ms: number): Promise<string | undefined> {
    if (command !== undefined) await this.#to.write(`${command}\n`);
    const deadline = performance.now() + ms;
    const buffer = Buffer.alloc(65_536);
    let text = '';
    while (performance.now() < deadline) {
      const bytes = await this.#from.read(buffer, 0, buffer.length, null).then(
        ({ bytesRead }) => bytesRead,
        (error: NodeJS.ErrnoException) => {
          if (error.code === 'EAGAIN') return 0;
          throw error;
        },
      );
      text += buffer.toString('utf8', 0, bytes);
      if (/BatchCommand finished: [^\n]*\n\n?$/.test(text)) return text;
      if (bytes === 0) await pause(20);
    }
    return text === '' ? undefined : text;
  }
}

async function writeSettings(home: string): Promise<void> {
  const { mtime } = await stat(MODULE);
  await mkdir(join(home, '.audacity-data'), { recursive: true });
  await mkdir(join(home, 'temporary'));
  await writeFile(
    join(home, '.audacity-data', 'audacity.cfg'),
    [
      'PrefsVersion=1.1.1r1',
      '[Directories]',
      `TempDir=${join(home, 'temporary')}`,
      // Without a version the settings count as old and are thrown away.
      '[Version]',
      'Major=3',
      'Minor=2',
      'Micro=4',
      '[GUI]',
      'ShowSplashScreen=0',
      '[Update]',
      'DefaultUpdatesChecking=0',
      '[Module]',
      'mod-script-pipe=1',
      '[ModulePath]',
      `mod-script-pipe=${MODULE}`,
      // The module stays off unless its time is the file's.
      '[ModuleDateTime]',
      `mod-script-pipe=${mtime.toISOString().slice(0, 19)}`,
      '',
    ].join('\n'),
  );
}

function firstLine(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    const stream = child.stdio[3];
    if (stream === null || stream === undefined || !('on' in stream)) throw new Error('no descriptor');
    stream.on('data', (chunk: Buffer) => {
      text += chunk.toString();
      if (text.includes('\n')) resolve(text.trim());
    });
    child.once('error', reject);
    child.once('exit', () => reject(new Error('the display did not start')));
  });
}

/** Returns the milliseconds since the file was made, or 0 without the file. */
function ageMs(file: string): number {
  const found = statSync(file, { throwIfNoEntry: false });
  return found === undefined ? 0 : Date.now() - found.birthtimeMs;
}

async function until(condition: () => boolean, ms: number): Promise<void> {
  const deadline = performance.now() + ms;
  while (!condition()) {
    if (performance.now() > deadline) throw new Error('Audacity did not start');
    await pause(100);
  }
}
