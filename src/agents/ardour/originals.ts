/** Files that imports may have come from, by the samples that a session would hold of them. */
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { digestAudio, digestChannels } from './audio-file.js';

const LIMITS = { files: 10_000, fileBytes: 4_294_967_296, depth: 8 };

/** Finds the original file of imported samples. */
export class Originals {
  readonly #directory: string | undefined;
  /** The SHA-256 of each file by the SHA-256 of the samples of each of its channels. */
  readonly #known = new Map<string, string>();
  readonly #read = new Set<string>();

  constructor(directory: string | undefined) {
    this.#directory = directory;
  }

  /** Returns the SHA-256 of the first file with a channel of these samples, or undefined if none is found. */
  async find(samplesSha256: string): Promise<string | undefined> {
    if (this.#directory === undefined) return undefined;
    if (!this.#known.has(samplesSha256)) await this.#readNew(this.#directory, 0);
    return this.#known.get(samplesSha256);
  }

  async #readNew(directory: string, depth: number): Promise<void> {
    const entries = await readdir(directory, { withFileTypes: true }).catch(() => []);
    for (const entry of entries.toSorted((one, other) => (one.name < other.name ? -1 : 1))) {
      const path = join(directory, entry.name);
      if (entry.isDirectory() && depth < LIMITS.depth) await this.#readNew(path, depth + 1);
      if (!entry.isFile() || !/\.wave?$/i.test(entry.name)) continue;
      const found = await stat(path).catch(() => undefined);
      if (found === undefined) continue;
      const { size, mtimeMs } = found;
      const key = `${path}\n${size}\n${mtimeMs}`;
      if (this.#read.has(key) || this.#read.size >= LIMITS.files || size > LIMITS.fileBytes) continue;
      this.#read.add(key);
      const channels = (await digestChannels(path).catch(() => undefined)) ?? [];
      if (channels.length === 0) continue;
      const whole = await digestAudio(path).catch(() => undefined);
      if (whole === undefined) continue;
      for (const channel of channels)
        if (!this.#known.has(channel)) this.#known.set(channel, whole.fileSha256);
    }
  }
}
