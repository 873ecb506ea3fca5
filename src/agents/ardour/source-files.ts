import { digestAudio } from './audio-file.js';
import type { Ledger } from './ledger.js';
import { statIfThere } from './takes.js';

interface SourceFile {
  readonly path: string;
  readonly isMidi: boolean;
  sha256: string | undefined;
  stamp: string;
}

/** Watches the files of sources, which another program may write to after the trace named their content. */
export class SourceFiles {
  readonly #ledger: Ledger;
  /** The files by the ids that Ardour gives to sources. */
  readonly #files = new Map<string, SourceFile>();

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
  }

  /**
   * @param sha256 digest of the samples, or of the whole file of notes
   * @param stamp of the file before its digest was computed, so that a write meanwhile is noticed
   */
  add(id: string, path: string, sha256: string | undefined, stamp: string, isMidi = false): void {
    this.#files.set(id, { path, isMidi, sha256, stamp });
  }

  /**
   * Reports each source whose content is another than before. Ardour itself writes only the header of audio again.
   * @param when interval since the last check
   * @param isSaved true after a save, with which Ardour may have written notes
   */
  async check(when: { readonly at: number; readonly since: number }, isSaved: boolean): Promise<void> {
    for (const [id, file] of this.#files) {
      const source = this.#ledger.sources.get(id)?.source;
      const stamp = stampOf(file.path);
      if (source === undefined || stamp === file.stamp || stamp === '') continue;
      const sha256 = await contentOf(file.path, file.isMidi);
      const isSame = sha256 === file.sha256;
      file.stamp = stamp;
      file.sha256 = sha256;
      if (isSame || (file.isMidi && isSaved)) continue;
      this.#ledger.add(
        {
          kind: 'source.derived',
          source,
          manner: 'unknown',
          ...(sha256 === undefined || file.isMidi ? {} : { samplesSha256: sha256 }),
        },
        when,
      );
    }
  }

  /** Returns a text that changes when one of the files is written. */
  stamp(): string {
    return [...this.#files.values()].map(({ path }) => stampOf(path)).join('\n');
  }
}

/** Returns the digest of the samples, or of the whole file of notes. Undefined when it cannot be read. */
export async function contentOf(path: string, isMidi: boolean): Promise<string | undefined> {
  const digest = await digestAudio(path).catch(() => undefined);
  return isMidi ? digest?.fileSha256 : digest?.samplesSha256;
}

/** Returns a text that changes with each write. The time of change cannot be set, unlike the time of modification. */
export function stampOf(path: string): string {
  const stats = statIfThere(path);
  return stats === undefined ? '' : `${stats.size} ${stats.mtimeMs} ${stats.ctimeMs}`;
}
