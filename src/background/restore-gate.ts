import { DomainError } from '../domain/errors.js';
import type { InstallationMarks, InstallationRow } from '../ports/journals.js';

export interface RestoreGateParts {
  readonly row: InstallationRow;
  readonly marks: InstallationMarks;
}

/**
 * Closed while the store lags behind what is noted apart from it: a backup was put back, and nobody has made
 * good yet what it forgot. A backup that is younger than the last beat cannot be told from the store that it
 * came of.
 */
export class RestoreGate {
  readonly #parts: RestoreGateParts | undefined;
  #isClosed = false;

  /** @param parts undefined where nothing is noted apart from the store: the gate stays open */
  constructor(parts: RestoreGateParts | undefined) {
    this.#parts = parts;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Compares. After a failure what was found before holds. */
  async look(): Promise<void> {
    if (this.#parts === undefined) return;
    const { row, marks } = this.#parts;
    // In this order: the row is ahead of the marks at every moment, unless it was put back.
    const noted = await marks.read();
    const stored = await row.read();
    this.#isClosed = noted.epoch > stored.epoch || noted.beat > stored.beat;
  }

  /** Looks, and then moves on, so that every backup from before is known for one. */
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
