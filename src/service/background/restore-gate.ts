import { DomainError } from '../../core/domain/errors.js';
import type { InstallationMarks, InstallationRow } from '../ports/journals.js';

export interface RestoreGateParts {
  readonly row: InstallationRow;
  readonly marks: InstallationMarks;
}

const EXPORTED = 'The registry is being moved to other servers, and this one answers no more calls.';

/**
 * A gate that is closed while the store is older than its marks, which are recorded apart from it. The store
 * was then restored from a backup, and the restore is not finished. A backup that is younger than the last
 * beat cannot be distinguished from the current store.
 */
export class RestoreGate {
  readonly #parts: RestoreGateParts | undefined;
  /** True when a cluster has the rows of this store, so that both must not answer calls. */
  readonly isExported: boolean;
  #isClosed: boolean;

  /**
   * @param parts undefined when no marks are recorded apart from the store. The gate then stays open.
   * @param isExported true when the store was exported to a cluster. The gate then stays closed.
   */
  constructor(parts: RestoreGateParts | undefined, isExported = false) {
    this.#parts = parts;
    this.isExported = isExported;
    this.#isClosed = isExported;
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

  /** @throws DomainError `unavailable` / `restoring` or `registry_moved` */
  assertOpen(): void {
    if (this.#isClosed)
      throw new DomainError('unavailable', this.isExported ? EXPORTED : 'The registry is being restored.', {
        reason: this.isExported ? 'registry_moved' : 'restoring',
        retryAfterSeconds: 30,
      });
  }
}
