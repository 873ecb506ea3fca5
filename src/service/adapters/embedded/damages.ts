import { isRecordDamaged } from '../../../core/domain/errors.js';

/** Rows that are remembered as reported. */
const MOST_REPORTED = 1000;

/**
 * Reports of damaged rows that are passed over, one for each row: work on the rows of everybody goes on
 * without a damaged row, and meets it again and again.
 */
export class Damages {
  readonly #report: (error: unknown) => void;
  readonly #reported = new Set<string>();

  constructor(report: (error: unknown) => void) {
    this.#report = report;
  }

  /** Returns the row that `read` returns, or undefined if it is damaged. */
  sound<Row>(key: string, read: () => Row): Row | undefined {
    try {
      return read();
    } catch (error) {
      if (!isRecordDamaged(error)) throw error;
      if (this.#reported.size >= MOST_REPORTED) this.#reported.clear();
      if (!this.#reported.has(key)) this.#report(error);
      this.#reported.add(key);
      return undefined;
    }
  }
}
