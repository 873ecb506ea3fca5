import { createHash } from 'node:crypto';
import { open, type FileHandle } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { UsageError } from '../command.js';
import { syncDirectory } from '../output-file.js';
import type { FoundAudio } from './find-audio.js';
import type { JudgedRow } from './row.js';

const HEADER = `${JSON.stringify({ takemark: 'verify state', version: 1 })}\n`;
const LINE_START = '{"key":"';
const KEY_CHARACTERS = 24;
const CHUNK_BYTES = 262_144;

/**
 * What a batch has finished, so that another run after it need not do it again: JSON lines, each durable before its row is
 * reported. Memory holds a short key and a place for each line; rows are read when they are asked for.
 */
export class ResumeFile {
  readonly #handle: FileHandle;
  /** Key to the place of its line. */
  readonly #lines: Map<string, number>;
  #waiting = '';
  /** The write that will take what is waiting. */
  #next: Promise<void> | undefined;
  #last: Promise<void> = Promise.resolve();

  private constructor(handle: FileHandle, lines: Map<string, number>) {
    this.#handle = handle;
    this.#lines = lines;
  }

  /** @throws UsageError for a file that is another thing: it would be written to */
  static async open(path: string): Promise<ResumeFile> {
    // Readable by its owner alone: paths and proofs are a partner's business.
    const handle = await open(path, 'a+', 0o600);
    try {
      const { lines, soundBytes } = await scan(handle, path);
      // The end of a line that a kill cut off: what follows must not be glued to it.
      await handle.truncate(soundBytes);
      if (soundBytes === 0) {
        await handle.appendFile(HEADER);
        await handle.sync();
        await syncDirectory(dirname(resolve(path)));
      }
      return new ResumeFile(handle, lines);
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  /** @returns undefined where there is none, or none that can be read any more */
  async find(key: string): Promise<JudgedRow | undefined> {
    const at = this.#lines.get(key);
    if (at === undefined) return undefined;
    try {
      return (JSON.parse(await lineAt(this.#handle, at)) as { readonly row: JudgedRow }).row;
    } catch {
      return undefined;
    }
  }

  /** Resolves when the row is on disk. Rows that come while another write runs share the one after it. */
  append(key: string, row: JudgedRow): Promise<void> {
    this.#waiting += `${JSON.stringify({ key, row })}\n`;
    this.#next ??= this.#last = this.#last.then(async () => {
      const text = this.#waiting;
      this.#waiting = '';
      this.#next = undefined;
      await this.#handle.appendFile(text);
      await this.#handle.datasync();
    });
    return this.#next;
  }

  async close(): Promise<void> {
    await this.#last.catch(() => undefined);
    await this.#handle.close();
  }
}

/** One for each content at each place: a file that has changed since, or another service, has another key. */
export function resumeKey(service: string, { path, sidecar, stamp }: FoundAudio): string {
  const identity = JSON.stringify([service, resolve(path), sidecar === undefined ? null : resolve(sidecar), stamp]);
  return createHash('sha256').update(identity).digest('base64url').slice(0, KEY_CHARACTERS);
}

/** Finds the lines without holding them. */
async function scan(handle: FileHandle, path: string): Promise<{ lines: Map<string, number>; soundBytes: number }> {
  const lines = new Map<string, number>();
  const head = await read(handle, 0, HEADER.length);
  if (head.length < HEADER.length && HEADER.startsWith(head.toString())) return { lines, soundBytes: 0 };
  if (head.toString() !== HEADER) throw new UsageError(`${path} is not a state file of takemark verify`);
  let soundBytes = HEADER.length;
  let lineStart = '';
  for (let at = soundBytes; ; ) {
    const chunk = await read(handle, at, CHUNK_BYTES);
    if (chunk.length === 0) return { lines, soundBytes };
    for (let from = 0; from < chunk.length; ) {
      const end = chunk.indexOf(0x0a, from);
      const wanted = LINE_START.length + KEY_CHARACTERS - lineStart.length;
      if (wanted > 0) lineStart += chunk.toString('latin1', from, Math.min(from + wanted, end < 0 ? chunk.length : end));
      if (end < 0) break;
      if (lineStart.length === LINE_START.length + KEY_CHARACTERS && lineStart.startsWith(LINE_START)) lines.set(lineStart.slice(LINE_START.length), soundBytes);
      lineStart = '';
      soundBytes = at + end + 1;
      from = end + 1;
    }
    at += chunk.length;
  }
}

async function lineAt(handle: FileHandle, at: number): Promise<string> {
  for (let bytes = 4_096; ; bytes *= 4) {
    const chunk = await read(handle, at, bytes);
    const end = chunk.indexOf(0x0a);
    if (end >= 0 || chunk.length < bytes) return chunk.toString('utf8', 0, end < 0 ? chunk.length : end);
  }
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
