export interface Waiting {
  /** Whose load it is. */
  readonly owner: string;
  readonly bytes: number;
}

interface Line<Item> {
  readonly items: Item[];
  held: number;
}

/** Least weight of an item, so that the bytes bound the number as well. */
export const LEAST_BYTES = 65_536;

/**
 * Lines of items that wait, one for each owner: the owners take turns, so that nobody waits behind the line of another.
 * All lines together hold at most `max` bytes. As long as there is room anybody gets it. When there is none, an
 * owner's fair share is what an even split among all who wait, the newcomer included, would give: within the
 * share an owner always gets room, from whoever holds most; beyond it none.
 */
export class WaitingLines<Item extends Waiting> {
  readonly #max: number;
  /** By owner; the first line has the next turn. */
  readonly #lines = new Map<string, Line<Item>>();
  #held = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get empty(): boolean {
    return this.#lines.size === 0;
  }

  /**
   * Adds an item at the end of its owner's line.
   * @returns the items that gave way to it and wait no longer; undefined, with nothing changed, where it found
   * no room
   */
  admit(item: Item): readonly Item[] | undefined {
    const own = this.#lines.get(item.owner)?.held ?? 0;
    const owners = this.#lines.size + (own === 0 ? 1 : 0);
    const fits = this.#held + weight(item) <= this.#max;
    if (!fits && own + weight(item) > this.#max / owners) return undefined;
    const gone: Item[] = [];
    // Who is within the share leaves another one above it, so that the longest line is never the owner's own.
    while (this.#held + weight(item) > this.#max) {
      const last = this.#longest().items.at(-1)!;
      this.remove(last);
      gone.push(last);
    }
    this.putBack(item);
    return gone;
  }

  /** Adds an item that was admitted before, whatever is held. */
  putBack(item: Item): void {
    const line = this.#lines.get(item.owner) ?? { items: [], held: 0 };
    this.#lines.set(item.owner, line);
    line.items.push(item);
    this.#change(line, weight(item));
  }

  /** Takes out the oldest item of the owner whose turn it is, who is last from then on. */
  shift(): Item | undefined {
    for (const [owner, { items }] of this.#lines) {
      const item = items[0]!;
      this.remove(item);
      const rest = this.#lines.get(owner);
      if (rest !== undefined) {
        this.#lines.delete(owner);
        this.#lines.set(owner, rest);
      }
      return item;
    }
    return undefined;
  }

  /** @returns false where it does not wait */
  remove(item: Item): boolean {
    const line = this.#lines.get(item.owner);
    const at = line?.items.indexOf(item) ?? -1;
    if (line === undefined || at < 0) return false;
    line.items.splice(at, 1);
    this.#change(line, -weight(item));
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

function weight({ bytes }: Waiting): number {
  return Math.max(bytes, LEAST_BYTES);
}
