import { DomainError } from '../../../core/domain/errors.js';

/**
 * The count of chunks that may have any size. A caller may type by hand, or send a small body byte by byte.
 */
const FREE_CHUNKS = 1000;
/**
 * The minimum average size beyond `FREE_CHUNKS`, in bytes per chunk. Chunks of 64 bytes pass, although
 * slicing the connection's input splits one chunk of 57.
 */
const MIN_MEAN_BYTES = 60;

/**
 * Counts the pieces in which a message arrives: chunks of its transfer coding, or network segments. Each
 * piece costs the same work, even a tiny one.
 */
export class ChunkSizes {
  readonly #free: number;
  #chunks = 0;
  #bytes = 0;

  /** @param free how many pieces may have any size */
  constructor(free = FREE_CHUNKS) {
    this.#free = free;
  }

  /**
   * Counts one piece.
   * @returns false when there are more small pieces than any reasonable caller sends
   */
  count(bytes: number): boolean {
    this.#chunks += 1;
    this.#bytes += bytes;
    return this.#chunks <= this.#free || this.#bytes >= this.#chunks * MIN_MEAN_BYTES;
  }
}

export function chunksTooSmall(): DomainError {
  return new DomainError('invalid_request', 'The body arrives in too many small chunks.', {
    reason: 'chunks_too_small',
  });
}
