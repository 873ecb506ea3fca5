/**
 * Thrown by a handler for an event that it can never take, however often it comes: it goes to the dead
 * letters.
 */
export class PoisonError extends Error {
  override readonly name = 'PoisonError';
}

/**
 * A batch on its way to its handler. A PoisonError concerns one item: a batch that throws one is given again
 * item by item, and the item that throws it alone is isolated. Any other error is the world's.
 */
export class BatchDelivery<Item> {
  readonly #handler: (items: readonly Item[]) => Promise<void>;
  readonly #isolate: (item: Item, error: PoisonError) => Promise<void> | void;
  readonly #left: (readonly Item[])[];

  /** @param isolate gets each item that can never be taken */
  constructor(
    items: readonly Item[],
    handler: (items: readonly Item[]) => Promise<void>,
    isolate: (item: Item, error: PoisonError) => Promise<void> | void,
  ) {
    this.#handler = handler;
    this.#isolate = isolate;
    this.#left = items.length > 0 ? [items] : [];
  }

  /**
   * Resolves when every item was taken or isolated. After an error a second run goes on with what the first
   * one left: nothing is isolated twice.
   * @throws what the handler throws besides PoisonError, and what `isolate` throws
   */
  async run(): Promise<void> {
    for (let step = this.#left[0]; step !== undefined; step = this.#left[0]) {
      const poison = await this.#give(step);
      if (poison !== undefined && step.length > 1) this.#left.splice(0, 1, ...step.map((item) => [item]));
      else {
        if (poison !== undefined) await this.#isolate(step[0]!, poison);
        this.#left.shift();
      }
    }
  }

  async #give(items: readonly Item[]): Promise<PoisonError | undefined> {
    try {
      await this.#handler(items);
      return undefined;
    } catch (error) {
      if (error instanceof PoisonError) return error;
      throw error;
    }
  }
}
