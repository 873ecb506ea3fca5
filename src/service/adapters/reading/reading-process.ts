import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process';
import { closeSync, openSync, readdirSync, readFileSync } from 'node:fs';
import { readdir, readlink, writeFile } from 'node:fs/promises';
import { devNull } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { FrameCutter, frame } from './frames.js';
import { type Anchors, anchorsText, type Question, questionHead } from './question.js';
import { isReady, MAX_REPLY_BYTES } from './reply.js';

const ENTRY = fileURLToPath(new URL('./reading-entry.js', import.meta.url));
/** The root directory of the compiled code. */
const CODE = fileURLToPath(new URL('../../../', import.meta.url));
const HEAP_MIB = 64;
/** The number of looks at what a new process holds, and the pause between two in milliseconds. */
const LOOKS = 10;
const LOOK_AGAIN_MS = 20;

/** A process in which credentials of strangers are read, one at a time. It replies in time or it is ended. */
export class ReadingProcess {
  readonly #child: ChildProcess;
  readonly #cutter = new FrameCutter(MAX_REPLY_BYTES);
  #asked:
    | {
        readonly resolve: (reply: Buffer) => void;
        readonly reject: (error: Error) => void;
        readonly limit: NodeJS.Timeout;
      }
    | undefined;
  readonly #onEnd: (reason: Error) => void;
  #fault: Error | undefined;
  /** Resolves when the process is gone. */
  readonly gone: Promise<void>;

  /** @param onEnd called once, as soon as it is of no more use */
  constructor(onEnd: (reason: Error) => void) {
    this.#onEnd = onEnd;
    // Nothing of the service's environment, directory, flags or descriptors, and no channel over which
    // descriptors could be passed.
    const nothing = openSync(devNull, 'r');
    this.#child = spawn(process.execPath, [...flags(), ENTRY], {
      cwd: '/',
      env: {},
      stdio: descriptors(nothing),
      windowsHide: true,
    });
    closeSync(nothing);
    // Where memory is short this process goes before the service does. Linux alone has the file.
    if (this.#child.pid !== undefined)
      writeFile(`/proc/${this.#child.pid}/oom_score_adj`, '1000').catch(() => undefined);
    this.#child.stdin!.on('error', () => undefined);
    this.#child.stdout!.on('data', (piece: Buffer) => this.#take(piece));
    this.gone = new Promise((resolve) => {
      const ended = (reason: Error): void => {
        this.end(reason);
        resolve();
      };
      this.#child.once('error', ended);
      this.#child.once('exit', (code, signal) =>
        ended(new Error(`the reading process ended with ${signal ?? code}`)),
      );
    });
  }

  get running(): boolean {
    return this.#fault === undefined;
  }

  /**
   * Gives it what it has to know; before the first question. @throws Error when it does not come to reply
   */
  async prepare(anchors: Anchors, limitMs: number): Promise<void> {
    const reply = await this.#ask(frame(Buffer.from(anchorsText(anchors))), limitMs);
    if (!isReady(reply)) throw this.end(new Error('the reading process did not become ready'));
    // A descriptor that another thread opened between the look and the start. A file that the new process
    // itself reads just now, of the system or of its code, is closed at one of the next looks.
    for (let looks = 1; ; looks += 1) {
      const held = await filesHeldBy(this.#child.pid!);
      if (held.length === 0) return;
      if (looks === LOOKS)
        throw this.end(new Error(`the reading process inherited an open file of ${dirname(held[0]!)}`));
      await sleep(LOOK_AGAIN_MS);
    }
  }

  /**
   * Returns the reply to a question. Only one is asked at a time. @throws Error when the process ends, or is ended
   * because it did not answer within `limitMs`
   */
  ask(question: Question, limitMs: number): Promise<Buffer> {
    return this.#ask(frame(questionHead(question), question.bytes), limitMs);
  }

  /** Ends it at once, and what it was asked rejects. The first reason counts. @returns that */
  end(reason: Error): Error {
    if (this.#fault !== undefined) return this.#fault;
    this.#fault = reason;
    this.#child.kill('SIGKILL');
    this.#onEnd(reason);
    this.#takeAsked()?.reject(reason);
    return reason;
  }

  #ask(message: Buffer, limitMs: number): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      if (this.#fault !== undefined) return reject(this.#fault);
      const limit = setTimeout(
        () => this.end(new Error(`the reading process did not reply within ${limitMs} ms`)),
        limitMs,
      );
      this.#asked = { resolve, reject, limit };
      this.#child.stdin!.write(message);
    });
  }

  #take(piece: Buffer): void {
    if (this.#fault !== undefined) return;
    try {
      for (const reply of this.#cutter.cut(piece)) {
        const asked = this.#takeAsked();
        if (asked === undefined) throw new RangeError('the reading process sent a reply without a question');
        asked.resolve(reply);
      }
    } catch {
      this.end(new Error('the reading process sent a malformed frame'));
    }
  }

  #takeAsked():
    | { readonly resolve: (reply: Buffer) => void; readonly reject: (error: Error) => void }
    | undefined {
    const asked = this.#asked;
    this.#asked = undefined;
    clearTimeout(asked?.limit);
    return asked;
  }
}

const CLOSES_ON_EXEC = 0o2000000;

/**
 * Returns two pipes, and the null device in place of every descriptor that the new process would inherit. LevelDB,
 * for one, opens its files without the flag that closes them. Only Linux names these descriptors.
 */
function descriptors(nothing: number): StdioOptions {
  const stdio: (number | 'pipe' | 'ignore')[] = ['pipe', 'pipe', 'ignore'];
  for (const fd of process.platform === 'linux' ? readdirSync('/proc/self/fd').map(Number) : []) {
    if (fd <= 2 || closesOnExec(fd)) continue;
    // 'ignore' leaves one as it is, and here that is closed.
    while (stdio.length <= fd) stdio.push('ignore');
    stdio[fd] = nothing;
  }
  return stdio;
}

function closesOnExec(fd: number): boolean {
  try {
    const flags = /^flags:\s*([0-7]+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'latin1'))?.[1] ?? '0';
    return (parseInt(flags, 8) & CLOSES_ON_EXEC) !== 0;
  } catch {
    // The descriptor was the one that read the directory.
    return true;
  }
}

/** Returns the paths of the open files of a process without the null device, or none if the platform names none. */
async function filesHeldBy(pid: number): Promise<readonly string[]> {
  if (process.platform !== 'linux') return [];
  const paths = await readdir(`/proc/${pid}/fd`).then((fds) =>
    Promise.all(fds.map((fd) => readlink(`/proc/${pid}/fd/${fd}`).catch(() => ''))),
  );
  return paths.filter((path) => path.startsWith('/') && path !== devNull);
}

/**
 * Returns the flags with the permission model, under the name that this Node knows it by. The process reads its own
 * code, and writes, starts, loads and (from 25 on) connects to nothing.
 */
function flags(): string[] {
  const known = process.allowedNodeEnvironmentFlags;
  const permission = ['--permission', '--experimental-permission'].find((flag) => known.has(flag));
  return [
    `--max-old-space-size=${HEAP_MIB}`,
    '--disallow-code-generation-from-strings',
    '--disable-proto=throw',
    '--no-warnings',
    ...(permission === undefined ? [] : [permission, ...readable().map((path) => `--allow-fs-read=${path}`)]),
  ];
}

/** Returns the paths of the compiled code and of every folder in which Node looks for its libraries. */
function readable(): string[] {
  const folders = [join(CODE, '*')];
  for (let at = dirname(CODE); ; at = dirname(at)) {
    folders.push(join(at, 'node_modules', '*'), join(at, 'package.json'));
    if (at === dirname(at)) return folders;
  }
}
