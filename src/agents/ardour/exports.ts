/** Export folders: a new or rewritten file is done when no program has written to it for a while. */
import { join } from 'node:path';
import { type AudioDigest, digestAudio } from './audio-file.js';
import { namesIn, statIfThere } from './takes.js';

/** Milliseconds without a change after which an exported file is whole. */
const QUIET_MS = 1000;
const AUDIO = /\.(wave?|w64|rf64|aiff?|caf|flac|ogg|opus|mp3|m4a)$/i;

interface SeenExport {
  readonly stamp: string;
  readonly quietSince: number;
  readonly done: boolean;
}

export interface FinishedExport {
  readonly path: string;
  readonly digest: AudioDigest;
  /** Milliseconds of the wall clock at which the file was written last. */
  readonly wall: number;
}

/** Watches folders for exports. */
export class Exports {
  readonly #directories: readonly string[];
  readonly #seen = new Map<string, SeenExport>();

  constructor(directories: readonly string[]) {
    this.#directories = directories;
    for (const [path, stamp] of this.#list()) this.#seen.set(path, { stamp, quietSince: 0, done: true });
  }

  /** Returns the exports that became whole since the last call. @param quiet milliseconds that count as a while */
  async poll(quiet = QUIET_MS): Promise<readonly FinishedExport[]> {
    const finished: FinishedExport[] = [];
    for (const [path, stamp, wall] of this.#list()) {
      const seen = this.#seen.get(path);
      if (seen?.stamp !== stamp) this.#seen.set(path, { stamp, quietSince: performance.now(), done: false });
      else if (!seen.done && performance.now() - seen.quietSince >= quiet) {
        this.#seen.set(path, { ...seen, done: true });
        const digest = await digestAudio(path).catch(() => undefined);
        if (digest !== undefined) finished.push({ path, digest, wall });
      }
    }
    return finished;
  }

  *#list(): Generator<readonly [path: string, stamp: string, wall: number]> {
    for (const directory of this.#directories)
      for (const name of namesIn(directory)) {
        const path = join(directory, name);
        const stats = AUDIO.test(name) ? statIfThere(path) : undefined;
        if (stats !== undefined && stats.size > 0)
          yield [path, `${stats.size} ${stats.mtimeMs}`, stats.mtimeMs];
      }
  }
}
