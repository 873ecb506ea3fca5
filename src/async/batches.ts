interface Waiting<Item> {
  readonly item: Item;
  readonly done: () => void;
  readonly failed: (error: unknown) => void;
}

/**
 * Items that come while others are being written share the next write: one batch at a time, in the order in
 * which the items were added.
 */
export class Batches<Item> {
  readonly #write: (items: readonly Item[]) => Promise<void>;
  #waiting: Waiting<Item>[] = [];
  #writing: Promise<void> | undefined;

  constructor(write: (items: readonly Item[]) => Promise<void>) {
    this.#write = write;
  }

  /** Resolves when the item's batch is written. @throws what the write of that batch threw */
  add(item: Item): Promise<void> {
    return new Promise((done, failed) => {
      this.#waiting.push({ item, done, failed });
      this.#writing ??= this.#run();
    });
  }

  /** Resolves when everything that was added so far has been tried. */
  async settled(): Promise<void> {
    await this.#writing;
  }

  async #run(): Promise<void> {
    // The rest of the current turn joins this batch.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const batch = this.#waiting;
      this.#waiting = [];
      try {
        await this.#write(batch.map(({ item }) => item));
        for (const { done } of batch) done();
      } catch (error) {
        for (const { failed } of batch) failed(error);
      }
    }
    this.#writing = undefined;
  }
}
