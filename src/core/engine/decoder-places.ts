import type { BlockAllocator } from './blocks.js';

/** The first bytes of files that may be FLAC: its marker, or those of an ID3v2 tag, which may precede the marker. */
const BEGINNINGS = [Buffer.from('fLaC'), Buffer.from('ID3')];

/** Returns true if a file that begins like this may be FLAC. `head` may be shorter than the marker. */
export function mayBeFlac(head: Buffer): boolean {
  return BEGINNINGS.some((beginning) => {
    const length = Math.min(head.length, beginning.length);
    return length > 0 && head.compare(beginning, 0, length, 0, length) === 0;
  });
}

/**
 * The memory of decoders, shared between owners. An owner gets a decoder while the owner has fewer than are free. So
 * one owner alone has at most half of them, rounded up, and a newcomer finds one if there are two or more.
 */
export class DecoderPlaces {
  readonly #blocks: BlockAllocator;
  readonly #counts = new Map<string, number>();

  constructor(blocks: BlockAllocator) {
    this.#blocks = blocks;
  }

  get inUse(): number {
    return this.#blocks.inUse;
  }

  /** Returns the address of a decoder, or `undefined` if the owner may not have another one. */
  take(owner: string): number | undefined {
    const count = this.#counts.get(owner) ?? 0;
    if (count >= this.#blocks.free) return undefined;
    this.#counts.set(owner, count + 1);
    return this.#blocks.take();
  }

  give(owner: string, address: number): void {
    this.#blocks.give(address);
    const left = this.#counts.get(owner)! - 1;
    if (left === 0) this.#counts.delete(owner);
    else this.#counts.set(owner, left);
  }
}
