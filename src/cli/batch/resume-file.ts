import { createHash, createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import type { Verification } from '../../client/index.js';
import { UsageError } from '../command.js';
import { syncDirectory } from '../output-file.js';

const HEADER = headerOf(2);
/** Its verdicts were remembered by path, size and time, and anybody could have written them. */
const FORMER_HEADER = headerOf(1);
const CHUNK_BYTES = 262_144;
/** The longest answer that a verdict can come in, and what stands around it. */
const MAX_LINE_BYTES = 17 * 1_048_576;
/** Of a SHA-256 in base64url, and the space behind it. */
const MAC_CHARACTERS = 43;
const KEY_CHARACTERS = 24;
/** How far in the future a verdict may lie: clocks are set. */
const CLOCK_SLACK_SECONDS = 60;

/** What was judged: SHA-256 of the audio, and of the sidecar where there is one, in lower-case hex. */
export interface Judged {
  readonly audio: string;
  readonly sidecar: string | undefined;
}

/** Whose verdicts are believed, and for how long. */
export interface Trust {
  readonly apiKey: string;
  /** Address of the service. */
  readonly service: string;
  /** What the service calls its environment. */
  readonly environment: string;
  readonly maxAgeSeconds: number;
  /** Unix seconds. */
  readonly now: () => number;
}

/** One line, behind its MAC. */
interface Remembered {
  readonly audio: string;
  readonly sidecar: string | null;
  /** When it was asked for, in unix seconds. */
  readonly at: number;
  readonly result: Verification;
}

/**
 * Verdicts that a batch was given, so that another run after it need not ask for them again: lines of a MAC
 * and JSON, each durable before its row is reported. A verdict is one on contents, wherever they lie, and it
 * is believed where the MAC is that of the same API key at the same service, and while it is young: a proof
 * may be erased. Memory holds a short key and a place for each line that is believed; verdicts are read when
 * they are asked for.
 */
export class ResumeFile {
  readonly #handle: FileHandle;
  readonly #macKey: Buffer;
  readonly #trust: Trust;
  /** Key of the contents to the place of their line. */
  readonly #lines = new Map<string, number>();
  /** Lines that are not believed. */
  #ignored = 0;
  #waiting = '';
  /** The write that will take what is waiting. */
  #next: Promise<void> | undefined;
  #last: Promise<void> = Promise.resolve();

  private constructor(handle: FileHandle, trust: Trust) {
    this.#handle = handle;
    this.#trust = trust;
    // RFC 5869. The key that signs lines says nothing of the API key, and is another one for another service.
    this.#macKey = Buffer.from(
      hkdfSync(
        'sha256',
        trust.apiKey,
        'takemark verify state',
        JSON.stringify([trust.service, trust.environment]),
        32,
      ),
    );
  }

  /** @throws UsageError for a file that is another thing, or of the former form: it would be written to */
  static async open(path: string, trust: Trust): Promise<ResumeFile> {
    // Readable by its owner alone: proofs are a partner's business.
    const handle = await open(path, 'a+', 0o600);
    try {
      const file = new ResumeFile(handle, trust);
      const soundBytes = await file.#scan(path);
      // The end of a line that a kill cut off: what follows must not be glued to it.
      await handle.truncate(soundBytes);
      if (soundBytes === 0) {
        await handle.appendFile(HEADER);
        await handle.sync();
        await syncDirectory(dirname(resolve(path)));
      }
      return file;
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  /** Lines of another key or service, of another hand, or too old. */
  get ignored(): number {
    return this.#ignored;
  }

  /** @returns undefined where there is none that is believed */
  async find(judged: Judged): Promise<Verification | undefined> {
    const at = this.#lines.get(keyOf(judged.audio, judged.sidecar ?? null));
    if (at === undefined) return undefined;
    // Read again, and so judged again: the file may have been written to, and time has gone by.
    const remembered = this.#believed(await lineAt(this.#handle, at));
    return remembered?.audio === judged.audio && remembered.sidecar === (judged.sidecar ?? null)
      ? remembered.result
      : undefined;
  }

  /**
   * Resolves when the verdict is on disk. Those that come while another write runs share the one after it.
   * @param at when it was asked for, in unix seconds
   */
  append({ audio, sidecar }: Judged, at: number, result: Verification): Promise<void> {
    const remembered: Remembered = { audio, sidecar: sidecar ?? null, at, result };
    const text = JSON.stringify(remembered);
    this.#waiting += `${this.#mac(Buffer.from(text)).toString('base64url')} ${text}\n`;
    this.#next ??= this.#last = this.#last.then(async () => {
      const lines = this.#waiting;
      this.#waiting = '';
      this.#next = undefined;
      await this.#handle.appendFile(lines);
      await this.#handle.datasync();
    });
    return this.#next;
  }

  async close(): Promise<void> {
    await this.#last.catch(() => undefined);
    await this.#handle.close();
  }

  /** Finds the lines that are believed, one in memory at a time. @returns how many bytes are whole lines */
  async #scan(path: string): Promise<number> {
    const head = (await read(this.#handle, 0, HEADER.length)).toString('latin1');
    if (head.length < HEADER.length && HEADER.startsWith(head)) return 0;
    if (head === FORMER_HEADER)
      throw new UsageError(
        `${path} is a state file of a former version, which nothing vouches for: its verdicts are not believed. Name another file; this one is left as it is`,
      );
    if (head !== HEADER) throw new UsageError(`${path} is not a state file of takemark verify`);
    let soundBytes = HEADER.length;
    for await (const { start, end, line } of linesOf(this.#handle, HEADER.length)) {
      const remembered = this.#believed(line);
      if (remembered === undefined) this.#ignored += 1;
      // The later of two on the same contents counts.
      else this.#lines.set(keyOf(remembered.audio, remembered.sidecar), start);
      soundBytes = end;
    }
    return soundBytes;
  }

  /** What a line says, where it is ours and not too old. */
  #believed(line: Buffer | undefined): Remembered | undefined {
    if (line === undefined || line[MAC_CHARACTERS] !== 0x20) return undefined;
    const mac = Buffer.from(line.toString('latin1', 0, MAC_CHARACTERS), 'base64url');
    const text = line.subarray(MAC_CHARACTERS + 1);
    const ours = this.#mac(text);
    if (mac.length !== ours.length || !timingSafeEqual(mac, ours)) return undefined;
    // What this program wrote is of its form.
    const remembered = JSON.parse(text.toString('utf8')) as Remembered;
    const age = this.#trust.now() - remembered.at;
    return age >= -CLOCK_SLACK_SECONDS && age < this.#trust.maxAgeSeconds ? remembered : undefined;
  }

  #mac(text: Buffer): Buffer {
    return createHmac('sha256', this.#macKey).update(text).digest();
  }
}

function headerOf(version: number): string {
  return `${JSON.stringify({ takemark: 'verify state', version })}\n`;
}

/** Short, because one is held for each line. */
function keyOf(audio: string, sidecar: string | null): string {
  return createHash('sha256').update(`${audio} ${sidecar}`).digest('base64url').slice(0, KEY_CHARACTERS);
}

interface Line {
  readonly start: number;
  /** Behind its newline. */
  readonly end: number;
  /** Undefined where it is too long to be one of ours. */
  readonly line: Buffer | undefined;
}

/** Lines that end with a newline. */
async function* linesOf(handle: FileHandle, from: number): AsyncGenerator<Line, void, undefined> {
  let start = from;
  let parts: Buffer[] = [];
  let bytes = 0;
  for (let at = from; ; ) {
    const chunk = await read(handle, at, CHUNK_BYTES);
    if (chunk.length === 0) return;
    for (let offset = 0; offset < chunk.length; ) {
      const newline = chunk.indexOf(0x0a, offset);
      const part = chunk.subarray(offset, newline < 0 ? chunk.length : newline);
      bytes += part.length;
      if (bytes <= MAX_LINE_BYTES) parts.push(part);
      else parts = [];
      if (newline < 0) break;
      const end = at + newline + 1;
      yield { start, end, line: bytes <= MAX_LINE_BYTES ? Buffer.concat(parts) : undefined };
      [start, parts, bytes] = [end, [], 0];
      offset = newline + 1;
    }
    at += chunk.length;
  }
}

async function lineAt(handle: FileHandle, at: number): Promise<Buffer | undefined> {
  for await (const { line } of linesOf(handle, at)) return line;
  return undefined;
}

async function read(handle: FileHandle, at: number, bytes: number): Promise<Buffer> {
  const buffer = Buffer.alloc(bytes);
  let filled = 0;
  while (filled < bytes) {
    const { bytesRead } = await handle.read(buffer, filled, bytes - filled, at + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return buffer.subarray(0, filled);
}
