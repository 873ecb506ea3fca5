import { DomainError } from '../../domain/errors.js';

/** A caller that types, or sends a small body byte by byte. */
const FREE_CHUNKS = 1000;
/**
 * Beyond them, bytes a piece on average: chunks of 64 bytes pass, of which the slices of a connection cut one
 * in 57 in two.
 */
const MIN_MEAN_BYTES = 60;

/**
 * Counts the pieces in which a message arrives, whether chunks of its transfer coding or segments of the
 * network: each costs the same work, however small.
 */
export class ChunkSizes {
  readonly #free: number;
  #chunks = 0;
  #bytes = 0;

  /** @param free so many pieces may be of any size */
  constructor(free = FREE_CHUNKS) {
    this.#free = free;
  }

  /** @returns false where so many pieces were so small that no honest caller sends them */
  count(bytes: number): boolean {
    this.#chunks += 1;
    this.#bytes += bytes;
    return this.#chunks <= this.#free || this.#bytes >= this.#chunks * MIN_MEAN_BYTES;
  }
}

export function chunksTooSmall(): DomainError {
  return new DomainError('invalid_request', 'The body comes in too many pieces that are too small.', {
    reason: 'chunks_too_small',
  });
}
