import type { Lease } from '../byte-budget.js';

const FIRST_BYTES = 1024;

/**
 * A buffer for bytes that arrive in pieces of any size: a kept piece would cost an object of its own, and
 * keep alive the larger memory around it. The capacity doubles, so that each byte is copied a few times at
 * most.
 */
export class GrowingBuffer {
  readonly #lease: Lease | undefined;
  #room: Buffer = Buffer.alloc(0);
  #length = 0;

  /** @param lease pays for the room; its end is the caller's to call */
  constructor(lease?: Lease) {
    this.#lease = lease;
  }

  get length(): number {
    return this.#length;
  }

  /** @throws DomainError `unavailable` / `ingress_full` */
  append(piece: Uint8Array): void {
    const length = this.#length + piece.length;
    if (length > this.#room.length) {
      const bytes = Math.max(FIRST_BYTES, length, this.#room.length * 2);
      this.#lease?.growTo(bytes);
      // Outside the pool: a kept part of the pool keeps a whole slab of it.
      const room = Buffer.allocUnsafeSlow(bytes);
      this.#room.copy(room, 0, 0, this.#length);
      this.#room = room;
    }
    this.#room.set(piece, this.#length);
    this.#length = length;
  }

  /** The bytes so far, without a copy: good until the next piece. */
  bytes(): Buffer {
    return this.#room.subarray(0, this.#length);
  }
}
