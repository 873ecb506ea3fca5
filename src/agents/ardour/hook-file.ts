import { closeSync, openSync, readSync } from 'node:fs';
import { statIfThere } from './takes.js';

/** The most bytes that one look reads. The next look reads the rest. */
const STEP = 65_536;
const LONGEST_LINE = 128;
const LINE = /^(\d{1,9}) (\d{1,16}) (beat|roll|stop|locate) (-?\d{1,15}) (\d{4,6})$/;
/** The difference between a line's own clock and its arrival above which it counts as another machine's. */
const PLAUSIBLE_MS = 5000;

export type HookWord = 'beat' | 'roll' | 'stop' | 'locate';

/** A line of the hook. */
export interface HookLine {
  readonly word: HookWord;
  /** The age of the line when it was read, in milliseconds. Absent if its clock cannot be this machine's. */
  readonly ageMs?: number;
  /** The place of the playhead in seconds of the timeline. */
  readonly seconds: number;
}

/** The lines that a look at the file found. */
export interface HookLook {
  readonly lines: readonly HookLine[];
  /** True if a line could not be read, or the file was replaced: lines may be lost. */
  readonly isBroken: boolean;
}

/**
 * The file that the hook in Ardour's window appends to, followed from its end. Anybody may write into it: a line says
 * that the playhead moved, and nothing that a recording could be made of.
 */
export class HookFile {
  readonly #path: string;
  #offset = 0;
  #inode: number | undefined;
  #rest = '';

  /** Begins after the present lines, which belong to an earlier session of work. */
  constructor(path: string) {
    this.#path = path;
    const stats = statIfThere(path);
    this.#offset = stats?.size ?? 0;
    this.#inode = stats?.ino;
  }

  look(): HookLook {
    const stats = statIfThere(this.#path);
    if (stats === undefined) return { lines: [], isBroken: false };
    let isBroken = false;
    if (this.#inode !== stats.ino || stats.size < this.#offset) {
      // Begun anew, by the hook itself when it has become long, or by somebody else.
      isBroken = this.#inode !== undefined && this.#inode !== stats.ino;
      this.#inode = stats.ino;
      this.#offset = 0;
      this.#rest = '';
    }
    if (stats.size === this.#offset) return { lines: [], isBroken };
    const [first, ...others] = `${this.#rest}${this.#read(stats.size)}`.split('\n').reverse();
    this.#rest = first!;
    if (this.#rest.length > LONGEST_LINE) {
      this.#rest = '';
      isBroken = true;
    }
    const lines: HookLine[] = [];
    for (const text of others.reverse()) {
      const line = lineOf(text);
      if (line === undefined) isBroken = true;
      else lines.push(line);
    }
    return { lines, isBroken };
  }

  #read(size: number): string {
    const bytes = Buffer.alloc(Math.min(STEP, size - this.#offset));
    let file: number;
    try {
      file = openSync(this.#path, 'r');
    } catch {
      // Gone since, or closed to this user: a later look reads it.
      return '';
    }
    try {
      const read = readSync(file, bytes, 0, bytes.length, this.#offset);
      this.#offset += read;
      return bytes.toString('latin1', 0, read);
    } finally {
      closeSync(file);
    }
  }
}

function lineOf(text: string): HookLine | undefined {
  const [, , microseconds, word, sample, rate] = text.match(LINE) ?? [];
  if (word === undefined) return undefined;
  const ageMs = Number(process.hrtime.bigint() / 1000n - BigInt(microseconds!)) / 1000;
  const seconds = Math.max(0, Number(sample) / Number(rate));
  return ageMs < -1 || ageMs > PLAUSIBLE_MS
    ? { word: word as HookWord, seconds }
    : { word: word as HookWord, seconds, ageMs: Math.max(0, ageMs) };
}
