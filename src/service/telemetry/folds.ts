/** The time in milliseconds during which further lines of a kind are counted. */
const FOLD_MS = 1000;
/** The most kinds that are folded apart. Further kinds are folded together. */
const KINDS = 500;
const OTHERS = 'others';

/** Writes a line. `count` is the number of events that the line represents. */
type WriteLine = (count: number) => void;

interface Fold {
  /** The number of events since the last line, and the line of the latest of them. */
  count: number;
  write: WriteLine;
}

/**
 * Writes at most one line of a kind per second, so that an outage does not fill the disk of the log. The first
 * event of a kind is written immediately. The events of the next second are written as one line, which has
 * their count and the details of the latest.
 */
export class Folds {
  readonly #folds = new Map<string, Fold>();
  readonly #later: (work: () => void) => void;

  /** @param later calls `work` after one second. Tests call it themselves. */
  constructor(later: (work: () => void) => void = (work) => void setTimeout(work, FOLD_MS).unref()) {
    this.#later = later;
  }

  add(kind: string, write: WriteLine, count = 1): void {
    const name = this.#folds.has(kind) || this.#folds.size < KINDS ? kind : OTHERS;
    const fold = this.#folds.get(name);
    if (fold === undefined) {
      this.#folds.set(name, { count: 0, write });
      this.#later(() => this.#end(name));
      write(count);
    } else {
      fold.count += count;
      fold.write = write;
    }
  }

  /** Writes the counted events now. */
  flush(): void {
    for (const fold of this.#folds.values()) writeCounted(fold);
  }

  #end(name: string): void {
    const fold = this.#folds.get(name)!;
    if (fold.count === 0) this.#folds.delete(name);
    else {
      this.#later(() => this.#end(name));
      writeCounted(fold);
    }
  }
}

function writeCounted(fold: Fold): void {
  const { count, write } = fold;
  fold.count = 0;
  if (count > 0) write(count);
}
