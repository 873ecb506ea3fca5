import type { Lease } from '../byte-budget.js';

const FIRST_BYTES = 1024;

/**
 * Bytes that arrive in pieces of any size, copied into one buffer: a kept piece would cost an object of its
 * own, and keep alive whatever larger memory it is a part of. Its room doubles, so that each byte is copied a
 * few times at most.
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
      // Not of the pool: what is kept of that keeps a whole slab of it.
      const room = Buffer.allocUnsafeSlow(bytes);
      this.#room.copy(room, 0, 0, this.#length);
      this.#room = room;
    }
    this.#room.set(piece, this.#length);
    this.#length = length;
  }

  /** What has arrived, without a copy: good until the next piece. */
  bytes(): Buffer {
    return this.#room.subarray(0, this.#length);
  }
}
