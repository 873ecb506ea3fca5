/** A deterministic random generator (sfc32). */
export class Random {
  readonly #state: Uint32Array;

  constructor(seed: number) {
    this.#state = Uint32Array.of(0x9e3779b9, seed >>> 0, Math.floor(seed / 2 ** 32) >>> 0, 1);
    for (let i = 0; i < 15; i += 1) this.bits();
  }

  /** Returns 32 bits. */
  bits(): number {
    const state = this.#state;
    const sum = (state[0]! + state[1]! + state[3]!) >>> 0;
    state[3] = state[3]! + 1;
    state[0] = state[1]! ^ (state[1]! >>> 9);
    state[1] = state[2]! + (state[2]! << 3);
    state[2] = ((state[2]! << 21) | (state[2]! >>> 11)) + sum;
    return sum;
  }

  /** Returns a number from 0, below 1. */
  unit(): number {
    return this.bits() / 2 ** 32;
  }

  between(low: number, high: number): number {
    return low + this.unit() * (high - low);
  }

  /** Returns an integer from 0, below `count`. */
  below(count: number): number {
    return Math.floor(this.unit() * count);
  }

  chance(probability: number): boolean {
    return this.unit() < probability;
  }

  pick<Item>(items: readonly Item[]): Item {
    return items[this.below(items.length)]!;
  }

  bytes(length: number): Buffer {
    const bytes = Buffer.alloc(length);
    for (let i = 0; i < length; i += 1) bytes[i] = this.bits() & 0xff;
    return bytes;
  }
}
