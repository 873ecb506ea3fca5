import type { Measurement } from '../domain/audio.js';
import { forkReport, type Lanes, type Slice } from './core.js';
import { ForkedHash } from './forked-hash.js';

export interface SecondHashOptions {
  /** The memory of contexts and slabs. */
  readonly memory: WebAssembly.Memory;
  /** The interval in uploads while eight lanes are in use. The first upload of each interval is hashed twice. */
  readonly every: number;
  /** Receives the error of a difference. It must end the use of eight lanes. */
  readonly differs: (error: Error) => void;
}

/**
 * The second hashes, by Node, of a sample of uploads. An experiment of V8's compiler builds the code of eight lanes,
 * so a difference ends the trust in all digests that eight lanes had a part in.
 */
export class SecondHashes {
  readonly #options: SecondHashOptions;
  /** The second hashes of the sampled uploads, by context. */
  readonly #hashes = new Map<number, ForkedHash>();
  /** The contexts of uploads that eight lanes have hashed bytes of. */
  readonly #inEight = new Set<number>();
  #uploads = 0;
  #differences = 0;

  constructor(options: SecondHashOptions) {
    this.#options = options;
  }

  get differences(): number {
    return this.#differences;
  }

  /** Begins an upload. Forgets the one that had the context before. */
  begin(context: number, lanes: Lanes): void {
    this.#inEight.delete(context);
    this.#hashes.delete(context);
    if (lanes !== 8) return;
    if (this.#uploads % this.#options.every === 0) this.#hashes.set(context, new ForkedHash());
    this.#uploads += 1;
  }

  /** Notes uploads whose next bytes are hashed in eight lanes. */
  hashesInEight(slices: readonly Slice[]): void {
    for (const { context } of slices) this.#inEight.add(context);
  }

  /** Takes a slice that the core has just hashed. */
  update({ context, address, length }: Slice): void {
    const { memory } = this.#options;
    this.#hashes
      .get(context)
      ?.update(new Uint8Array(memory.buffer, address, length), forkReport(memory, context));
  }

  /**
   * Compares an upload that has ended.
   * @throws Error if the two hashes differ, or if a difference was found while eight lanes hashed this upload
   */
  check(context: number, { sha256, bindingSha256 }: Pick<Measurement, 'sha256' | 'bindingSha256'>): void {
    const second = this.#hashes.get(context)?.digests();
    this.#hashes.delete(context);
    if (
      second !== undefined &&
      (second.sha256 !== sha256 || (bindingSha256 !== undefined && second.bindingSha256 !== bindingSha256))
    ) {
      this.#differences += 1;
      const error = new Error('the digests of the core and of Node differ');
      this.#options.differs(error);
      throw error;
    }
    if (this.#differences > 0 && this.#inEight.has(context))
      throw new Error('eight lanes hashed bytes of this upload, and their digests are not trusted any more');
  }
}
