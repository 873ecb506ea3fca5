import { digestAudio } from './audio-file.js';
import type { Ledger } from './ledger.js';
import { statIfThere } from './takes.js';

interface SourceFile {
  readonly path: string;
  samplesSha256: string;
  stamp: string;
}

/** Watches the files of sources, which another program may write to after the trace named their samples. */
export class SourceFiles {
  readonly #ledger: Ledger;
  /** The files by the ids that Ardour gives to sources. */
  readonly #files = new Map<string, SourceFile>();

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
  }

  add(id: string, path: string, samplesSha256: string): void {
    this.#files.set(id, { path, samplesSha256, stamp: stampOf(path) });
  }

  /**
   * Reports each source whose samples are others than before. Ardour itself writes only the header again.
   * @param when interval since the last check
   */
  async check(when: { readonly at: number; readonly since: number }): Promise<void> {
    for (const [id, file] of this.#files) {
      const source = this.#ledger.sources.get(id)?.source;
      const stamp = stampOf(file.path);
      if (source === undefined || stamp === file.stamp || stamp === '') continue;
      const samplesSha256 = (await digestAudio(file.path).catch(() => undefined))?.samplesSha256;
      file.stamp = stamp;
      if (samplesSha256 === file.samplesSha256) continue;
      file.samplesSha256 = samplesSha256 ?? '';
      this.#ledger.tell(
        {
          kind: 'source.derived',
          source,
          manner: 'unknown',
          ...(samplesSha256 === undefined ? {} : { samplesSha256 }),
        },
        when,
      );
    }
  }
}

/** A text that changes with each write. The time of change cannot be set, unlike the time of modification. */
function stampOf(path: string): string {
  const stats = statIfThere(path);
  return stats === undefined ? '' : `${stats.size} ${stats.mtimeMs} ${stats.ctimeMs}`;
}
