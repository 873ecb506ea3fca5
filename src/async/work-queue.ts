/** Works of which at most so many are at work at once; the others wait in their order. */
export class WorkQueue {
  readonly #max: number;
  #atWork = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(max: number) {
    this.#max = max;
  }

  /** Runs `work`, at once where there is a place. */
  run<Value>(work: () => Promise<Value>): Promise<Value> {
    if (this.#atWork < this.#max) {
      this.#atWork += 1;
      return this.#begin(work);
    }
    return new Promise<void>((go) => void this.#waiting.push(go)).then(() => this.#begin(work));
  }

  #begin<Value>(work: () => Promise<Value>): Promise<Value> {
    const ended = work();
    // The place goes to who waits: nobody comes between.
    const next = (): void => {
      const go = this.#waiting.shift();
      if (go === undefined) this.#atWork -= 1;
      else go();
    };
    ended.then(next, next);
    return ended;
  }
}
