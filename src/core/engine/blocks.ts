/** The length in bytes of the first page of a core's memory, which the core needs for its constants. */
export const RESERVED_BYTES = 64 * 1024;

/** Rounds a length in bytes up so that the areas of two threads never share a cache line. */
export function aligned(bytes: number): number {
  return Math.ceil(bytes / 128) * 128;
}

/** An allocator of equal blocks of the shared memory. */
export class BlockAllocator {
  readonly #start: number;
  /** The size of a block in bytes. */
  readonly size: number;
  readonly #taken: Uint8Array;
  readonly #free: number[];

  /** Creates an allocator of `count` blocks of `size` bytes from the address `start` on. */
  constructor(start: number, size: number, count: number) {
    this.#start = start;
    this.size = size;
    this.#taken = new Uint8Array(count);
    // A stack with the lowest address on top: pages that were touched once are used again before new ones
    // cost memory.
    this.#free = Array.from({ length: count }, (_, i) => start + (count - 1 - i) * size);
  }

  get count(): number {
    return this.#taken.length;
  }

  get free(): number {
    return this.#free.length;
  }

  get inUse(): number {
    return this.count - this.free;
  }

  /** Takes a block and returns its address, or `undefined` when all are taken. */
  take(): number | undefined {
    const address = this.#free.pop();
    if (address !== undefined) this.#taken[(address - this.#start) / this.size] = 1;
    return address;
  }

  /**
   * @throws Error for a block that is not taken: given back twice it would belong to two uploads, and their
   * bytes would mix.
   */
  give(address: number): void {
    const index = (address - this.#start) / this.size;
    if (this.#taken[index] !== 1) throw new Error(`block ${address} is not in use`);
    this.#taken[index] = 0;
    this.#free.push(address);
  }
}
