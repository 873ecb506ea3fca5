interface Waiting<Item> {
  readonly item: Item;
  readonly done: () => void;
  readonly failed: (error: unknown) => void;
}

/**
 * Writes items in batches. Items that arrive during a write share the next write. One batch is written at a
 * time, in the order in which the items were added.
 */
export class Batches<Item> {
  readonly #write: (items: readonly Item[]) => Promise<void>;
  #waiting: Waiting<Item>[] = [];
  #writing: Promise<void> | undefined;

  constructor(write: (items: readonly Item[]) => Promise<void>) {
    this.#write = write;
  }

  /**
   * Adds an item, and resolves when its batch is written.
   * @throws the error of the batch's write
   */
  add(item: Item): Promise<void> {
    return new Promise((done, failed) => {
      this.#waiting.push({ item, done, failed });
      this.#writing ??= this.#run();
    });
  }

  /** Resolves when all items that were added so far have been tried. */
  async settled(): Promise<void> {
    await this.#writing;
  }

  async #run(): Promise<void> {
    // Items that are added in the same turn of the event loop join this batch.
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
