/**
 * The error of a handler for an event that it can never process, however often the event is delivered. The
 * event becomes a dead letter.
 */
export class PoisonError extends Error {
  override readonly name = 'PoisonError';
}

/**
 * Delivers a batch to its handler. If the handler throws a PoisonError, the batch is delivered again item by
 * item, and each item that throws a PoisonError is isolated. Any other error stops the delivery.
 */
export class BatchDelivery<Item> {
  readonly #handler: (items: readonly Item[]) => Promise<void>;
  readonly #isolate: (item: Item, error: PoisonError) => Promise<void> | void;
  readonly #left: (readonly Item[])[];

  /** @param isolate gets each item that can never be processed */
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
   * Resolves when every item was processed or isolated. After an error, a second run continues with the
   * remaining items, and no item is isolated twice.
   * @throws any error of the handler except PoisonError, and any error of `isolate`
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
