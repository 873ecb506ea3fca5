import { createHash, type Hash } from 'node:crypto';
import type { ForkReport, HostDigests, SamplesReport } from './core-context.js';

/**
 * A hash of the whole file, of its binding and of its samples in one pass. The state of the binding is a copy of the
 * whole file's at the credential's header.
 */
export class ForkedHash {
  readonly #whole: Hash = createHash('sha256');
  #binding: Hash | undefined;
  #resumeAt = 0;
  #hashed = 0;
  /**
   * The bytes that may be the start of a credential header. They are hashed only when the core knows whether to fork
   * before them.
   */
  #held: Uint8Array = new Uint8Array(0);
  #samples: Hash | undefined;
  #frameBytes = 0;
  #sampleBytes = 0;

  /** Takes a slice right after the core has parsed it, and keeps at most a copy of the slice's last bytes. */
  update(slice: Uint8Array, fork: ForkReport): void {
    const held = this.#held;
    const due = held.length + slice.length - fork.heldBack;
    const fromSlice = Math.max(0, due - held.length);
    this.#absorb(held.subarray(0, due), fork);
    this.#absorb(slice.subarray(0, fromSlice), fork);
    this.#held = Buffer.concat([held.subarray(Math.min(due, held.length)), slice.subarray(fromSlice)]);
  }

  /** Takes the samples of the slice that was taken last. */
  addSamples(slice: Uint8Array, { head, joined, offset, length }: SamplesReport): void {
    if (this.#samples === undefined) {
      this.#samples = createHash('sha256').update(head);
      // Bytes of a sample, and channels.
      this.#frameBytes = head[9]! * (head[10]! + 256 * head[11]!);
    }
    this.#samples.update(joined).update(slice.subarray(offset, offset + length));
    this.#sampleBytes += joined.length + length;
  }

  digests(): HostDigests {
    this.#absorb(this.#held, { heldBack: 0 });
    return {
      sha256: this.#whole.digest('hex'),
      ...(this.#binding !== undefined && { bindingSha256: this.#binding.digest('hex') }),
      ...(this.#samples !== undefined && { samplesSha256: this.#endSamples(this.#samples) }),
    };
  }

  /** Ends with the number of whole frames. Whether a frame is incomplete is a finding of the core. */
  #endSamples(samples: Hash): string {
    const frames = Buffer.alloc(8);
    frames.writeBigUInt64LE(BigInt(Math.floor(this.#sampleBytes / this.#frameBytes)));
    return samples.update(frames).digest('hex');
  }

  #absorb(bytes: Uint8Array, { forkAt, resumeAt = 0 }: ForkReport): void {
    const start = this.#hashed;
    this.#hashed += bytes.length;
    if (this.#binding === undefined && forkAt !== undefined && forkAt <= this.#hashed) {
      const before = bytes.subarray(0, forkAt - start);
      this.#whole.update(before);
      this.#binding = this.#whole.copy();
      this.#resumeAt = resumeAt;
      this.#whole.update(bytes.subarray(before.length));
    } else {
      this.#whole.update(bytes);
    }
    this.#binding?.update(bytes.subarray(Math.min(bytes.length, Math.max(0, this.#resumeAt - start))));
  }
}
