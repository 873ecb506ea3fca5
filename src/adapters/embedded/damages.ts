import { isRecordDamaged } from '../../domain/errors.js';

/** Rows that are remembered as told. */
const MOST_TOLD = 1000;

/**
 * Tells of damaged rows that are passed over, each once: work for everybody goes on without them, and meets
 * them again and again.
 */
export class Damages {
  readonly #tell: (error: unknown) => void;
  readonly #told = new Set<string>();

  constructor(tell: (error: unknown) => void) {
    this.#tell = tell;
  }

  /** Runs `read`. Gives undefined where the row is damaged. */
  sound<Row>(key: string, read: () => Row): Row | undefined {
    try {
      return read();
    } catch (error) {
      if (!isRecordDamaged(error)) throw error;
      if (this.#told.size >= MOST_TOLD) this.#told.clear();
      if (!this.#told.has(key)) this.#tell(error);
      this.#told.add(key);
      return undefined;
    }
  }
}
