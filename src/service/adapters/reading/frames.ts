/**
 * Frames, in which service and reading process talk over two pipes: four bytes of length (big-endian) and a
 * payload.
 */

const LENGTH_BYTES = 4;

export function frame(...parts: readonly Uint8Array[]): Buffer {
  const head = Buffer.alloc(LENGTH_BYTES);
  head.writeUInt32BE(
    parts.reduce((sum, part) => sum + part.length, 0),
    0,
  );
  return Buffer.concat([head, ...parts]);
}

/** Puts the payloads of frames together again out of the pieces of a stream. */
export class FrameCutter {
  readonly #maxBytes: number;
  #pieces: Buffer[] = [];
  #bytes = 0;

  /** @param maxBytes of a payload */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** @throws RangeError for a payload that is announced as larger than allowed */
  *cut(piece: Buffer): Generator<Buffer> {
    this.#pieces.push(piece);
    this.#bytes += piece.length;
    while (this.#bytes >= LENGTH_BYTES) {
      const length = this.#lengthAhead();
      if (length > this.#maxBytes) throw new RangeError(`a frame has ${length} bytes, which is not allowed`);
      if (this.#bytes < LENGTH_BYTES + length) return;
      const all = Buffer.concat(this.#pieces);
      const rest = all.subarray(LENGTH_BYTES + length);
      this.#pieces = rest.length === 0 ? [] : [rest];
      this.#bytes = rest.length;
      yield all.subarray(LENGTH_BYTES, LENGTH_BYTES + length);
    }
  }

  #lengthAhead(): number {
    if (this.#pieces[0]!.length < LENGTH_BYTES) this.#pieces = [Buffer.concat(this.#pieces)];
    return this.#pieces[0]!.readUInt32BE(0);
  }
}
