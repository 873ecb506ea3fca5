import { DomainError } from '../../core/domain/errors.js';
import type { InstallationMarks, InstallationRow } from '../ports/journals.js';

export interface RestoreGateParts {
  readonly row: InstallationRow;
  readonly marks: InstallationMarks;
}

/**
 * A gate that is closed while the store is older than its marks, which are recorded apart from it. The store
 * was then restored from a backup, and the restore is not finished. A backup that is younger than the last
 * beat cannot be distinguished from the current store.
 */
export class RestoreGate {
  readonly #parts: RestoreGateParts | undefined;
  #isClosed = false;

  /** @param parts undefined when no marks are recorded apart from the store. The gate then stays open. */
  constructor(parts: RestoreGateParts | undefined) {
    this.#parts = parts;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Compares the store with its marks. After a failure the previous result remains. */
  async look(): Promise<void> {
    if (this.#parts === undefined) return;
    const { row, marks } = this.#parts;
    // The order matters. The row is never older than the marks, unless the store was restored.
    const noted = await marks.read();
    const stored = await row.read();
    this.#isClosed = noted.epoch > stored.epoch || noted.beat > stored.beat;
  }

  /** Compares, and then raises the beat, so that every earlier backup is recognized as one. */
  async beat(): Promise<void> {
    await this.look();
    if (this.#parts === undefined || this.#isClosed) return;
    const { row, marks } = this.#parts;
    const state = await row.beat();
    if (state !== undefined) await marks.setBeat(state.beat);
  }

  /** @throws DomainError `unavailable` / `restoring` */
  assertOpen(): void {
    if (this.#isClosed)
      throw new DomainError('unavailable', 'The registry is being restored.', {
        reason: 'restoring',
        retryAfterSeconds: 30,
      });
  }
}
