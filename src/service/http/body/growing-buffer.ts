import type { Lease } from '../byte-budget.js';

const FIRST_BYTES = 1024;

/**
 * A buffer for bytes that arrive in pieces of any size. Keeping the pieces would cost one object each, and
 * would keep the larger memory around each piece alive. The capacity doubles, so that each byte is copied
 * only a few times.
 */
export class GrowingBuffer {
  readonly #lease: Lease | undefined;
  #room: Buffer = Buffer.alloc(0);
  #length = 0;

  /** @param lease pays for the memory. The caller must end the lease. */
  constructor(lease?: Lease) {
    this.#lease = lease;
  }

  get length(): number {
    return this.#length;
  }

  /**
   * Appends a piece.
   * @throws DomainError `unavailable` / `ingress_full`
   */
  append(piece: Uint8Array): void {
    const length = this.#length + piece.length;
    if (length > this.#room.length) {
      const bytes = Math.max(FIRST_BYTES, length, this.#room.length * 2);
      this.#lease?.growTo(bytes);
      // Not from Node's pool, because a part of the pool that is kept keeps a whole slab alive.
      const room = Buffer.allocUnsafeSlow(bytes);
      this.#room.copy(room, 0, 0, this.#length);
      this.#room = room;
    }
    this.#room.set(piece, this.#length);
    this.#length = length;
  }

  /** Returns the bytes so far without a copy. The result is valid until the next `append`. */
  bytes(): Buffer {
    return this.#room.subarray(0, this.#length);
  }
}
