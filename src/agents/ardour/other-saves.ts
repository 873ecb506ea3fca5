import { join } from 'node:path';
import type { Ledger } from './ledger.js';
import { namesIn, statIfThere } from './takes.js';

/** The endings of files that Ardour writes for a session: at a save, and when recording starts. */
const WRITTEN = ['.ardour', '.pending'] as const;

/**
 * Watches for work under another name in the directory of a session. After *Snapshot (& switch to new version)* Ardour
 * writes other files, which the agent does not read.
 */
export class OtherSaves {
  readonly #directory: string;
  readonly #name: string;
  readonly #ledger: Ledger;
  /** The times at which other files were written, as they were last seen. */
  #seen = '';
  /** The session clock from which on the work is unseen. */
  #since: number | undefined;

  constructor(directory: string, name: string, ledger: Ledger) {
    this.#directory = directory;
    this.#name = name;
    this.#ledger = ledger;
  }

  /**
   * Reports a gap each time that another file is written after the followed one, and when the followed one is written
   * again.
   * @param readAt session clock of the last save that was read
   * @param now session clock
   */
  look(readAt: number, now: number): void {
    const others: string[] = [];
    const own = statIfThere(join(this.#directory, `${this.#name}.ardour`))?.mtimeMs ?? 0;
    for (const file of namesIn(this.#directory)) {
      const ending = WRITTEN.find((each) => file.endsWith(each));
      if (ending === undefined || file === `${this.#name}${ending}`) continue;
      const written = statIfThere(join(this.#directory, file))?.mtimeMs;
      if (written === undefined || written <= own) continue;
      others.push(`${file} ${written}`);
    }
    const seen = others.sort().join('\n');
    if (seen === this.#seen) return;
    this.#seen = seen;
    if (others.length > 0) this.#since ??= readAt;
    this.#addGap(now);
    if (others.length === 0) this.#since = undefined;
  }

  /** Reports the rest of a gap that lasts to the end. */
  end(now: number): void {
    this.#addGap(now);
  }

  #addGap(now: number): void {
    if (this.#since === undefined) return;
    this.#ledger.add({ kind: 'capture.gap', reason: 'other' }, { at: now, since: this.#since });
    this.#since = now;
  }
}
