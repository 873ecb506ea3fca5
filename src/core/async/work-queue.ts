/** Limits how many tasks run at once. Other tasks wait in their order. */
export class WorkQueue {
  readonly #max: number;
  #atWork = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(max: number) {
    this.#max = max;
  }

  /** Runs `work`, immediately if a slot is free. */
  run<Value>(work: () => Promise<Value>): Promise<Value> {
    if (this.#atWork < this.#max) {
      this.#atWork += 1;
      return this.#begin(work);
    }
    return new Promise<void>((go) => void this.#waiting.push(go)).then(() => this.#begin(work));
  }

  #begin<Value>(work: () => Promise<Value>): Promise<Value> {
    const ended = work();
    // A waiting task gets the slot directly, so that no new task overtakes it.
    const next = (): void => {
      const go = this.#waiting.shift();
      if (go === undefined) this.#atWork -= 1;
      else go();
    };
    ended.then(next, next);
    return ended;
  }
}
