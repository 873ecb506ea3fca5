/**
 * Processes items, at most `width` at once. After a failure no further item is started, and running ones are
 * awaited.
 * @throws the first failure
 */
export async function eachOf<Item>(
  items: Iterable<Item> | AsyncIterable<Item>,
  width: number,
  work: (item: Item) => Promise<void>,
): Promise<void> {
  const failures: unknown[] = [];
  const queue = (async function* () {
    for await (const item of items) {
      if (failures.length > 0) return;
      yield item;
    }
  })();
  const worker = async (): Promise<void> => {
    try {
      for await (const item of queue) await work(item);
    } catch (error) {
      failures.push(error);
    }
  };
  await Promise.all(Array.from({ length: width }, worker));
  if (failures.length > 0) throw failures[0];
}
