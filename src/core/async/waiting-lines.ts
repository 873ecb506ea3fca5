export interface Waiting {
  /** The partner, or any other cause of the load. */
  readonly owner: string;
  /** The room that the item takes while it waits, in the unit of the lines' bound. */
  readonly weight: number;
}

interface Line<Item> {
  readonly items: Item[];
  held: number;
}

/**
 * Lines of waiting items, one for each owner. The owners take turns, so that no owner waits for the line of
 * another. All lines together hold at most `max` units of weight. An item is admitted as long as there is room. If
 * there is none, the fair share of an owner is an even split among all owners that wait, including the new one.
 * Within its share an owner always gets room, from the owner that holds most. Beyond its share it gets none.
 */
export class WaitingLines<Item extends Waiting> {
  readonly #max: number;
  /** The lines by owner. The first line has the next turn. */
  readonly #lines = new Map<string, Line<Item>>();
  /** The owner of the item that was taken out last. */
  #latest: string | undefined;
  #held = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get empty(): boolean {
    return this.#lines.size === 0;
  }

  /**
   * Adds an item at the end of its owner's line.
   * @returns the items that gave way to it and do not wait any longer. Undefined when there was no room: nothing
   * has changed then
   */
  admit(item: Item): readonly Item[] | undefined {
    const own = this.#lines.get(item.owner)?.held ?? 0;
    const owners = this.#lines.size + (own === 0 ? 1 : 0);
    const fits = this.#held + item.weight <= this.#max;
    if (!fits && own + item.weight > this.#max / owners) return undefined;
    const gone: Item[] = [];
    // An owner within its share leaves another owner above it, so the longest line is never its own.
    while (this.#held + item.weight > this.#max) {
      const last = this.#longest().items.at(-1)!;
      this.remove(last);
      gone.push(last);
    }
    this.putBack(item);
    return gone;
  }

  /** Adds an item that was admitted before, even if the lines are full. */
  putBack(item: Item): void {
    const line = this.#lines.get(item.owner) ?? { items: [], held: 0 };
    this.#lines.set(item.owner, line);
    line.items.push(item);
    this.#change(line, item.weight);
  }

  /** Takes out the oldest item of the owner that has the next turn. The line of this owner is the last from then on. */
  shift(): Item | undefined {
    // The owner that had the latest turn waits for an owner that came meanwhile.
    const [first, second] = this.#lines.keys();
    const owner = first === this.#latest ? (second ?? first) : first;
    if (owner === undefined) return undefined;
    const item = this.#lines.get(owner)!.items[0]!;
    this.remove(item);
    const rest = this.#lines.get(owner);
    if (rest !== undefined) {
      this.#lines.delete(owner);
      this.#lines.set(owner, rest);
    }
    this.#latest = owner;
    return item;
  }

  /** Takes an item out of its line. @returns false when it does not wait */
  remove(item: Item): boolean {
    const line = this.#lines.get(item.owner);
    const at = line?.items.indexOf(item) ?? -1;
    if (line === undefined || at < 0) return false;
    line.items.splice(at, 1);
    this.#change(line, -item.weight);
    if (line.items.length === 0) this.#lines.delete(item.owner);
    return true;
  }

  #change(line: Line<Item>, by: number): void {
    line.held += by;
    this.#held += by;
  }

  #longest(): Line<Item> {
    return [...this.#lines.values()].reduce((longest, line) => (line.held > longest.held ? line : longest));
  }
}
