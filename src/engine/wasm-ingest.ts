import type { Measurement } from '../domain/audio.js';
import type { AudioIngest } from '../ports/audio-engine.js';
import type { Slice } from './core.js';
import type { Lane } from './gather.js';
import type { PlaceHolder } from './places.js';
import { engineFailed, uploadAborted } from './refusals.js';
import { SendingPace } from './sending-pace.js';

export const SLAB_BYTES = 1024 * 1024;

/** More than three buys nothing but memory: one is filled, one is ready, one is hashed. */
export const SLABS_PER_UPLOAD = 3;

/** What an upload needs of its engine. */
export interface IngestHost {
  readonly memory: Buffer;
  takeSlab(): number | undefined;
  giveSlab(address: number): void;
  /** The upload writes on when the host calls `resume`. */
  wait(ingest: WasmIngest): void;
  offer(ingest: WasmIngest): void;
  /** The upload takes nothing more: its `wait` and `offer` are taken back, and its place is free. */
  withdraw(ingest: WasmIngest): void;
  received(bytes: number): void;
  /** Copy of the credential bytes in the slice that was hashed last. */
  credentialBytes(slice: Slice): Uint8Array | undefined;
  finish(context: number, credential: readonly Uint8Array[]): Measurement;
  /** The upload is over and no thread works on its context. */
  closed(ingest: WasmIngest): void;
}

interface Slab {
  readonly address: number;
  filled: number;
}

interface PendingWrite {
  readonly chunk: Uint8Array;
  copied: number;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

interface PendingEnd {
  readonly resolve: (measurement: Measurement) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * One upload on its way through the slabs: filled by `write`, then ready, then in flight (one at a time),
 * then given back.
 */
export class WasmIngest implements AudioIngest, Lane, PlaceHolder {
  readonly owner: string;
  readonly pace = new SendingPace();
  readonly context: number;
  readonly #host: IngestHost;
  readonly #gaveUp = new AbortController();
  #filling: Slab | undefined;
  readonly #ready: Slab[] = [];
  #inFlight: Slab | undefined;
  #pendingWrite: PendingWrite | undefined;
  #pendingEnd: PendingEnd | undefined;
  readonly #credential: Uint8Array[] = [];
  #received = 0;
  /** Written to since the last sweep. */
  #touched = false;
  /** The slab being filled has seen a sweep. */
  #aged = false;
  #ended = false;
  /** Why nothing more is taken; from then on the upload only waits for its slice in flight. */
  #over: unknown;

  constructor(owner: string, context: number, host: IngestHost) {
    this.owner = owner;
    this.context = context;
    this.#host = host;
  }

  get signal(): AbortSignal {
    return this.#gaveUp.signal;
  }

  /** Slabs this upload holds. */
  get held(): number {
    return (
      this.#ready.length + (this.#filling === undefined ? 0 : 1) + (this.#inFlight === undefined ? 0 : 1)
    );
  }

  /** Bytes in the slab that is being filled. */
  get filled(): number {
    return this.#filling?.filled ?? 0;
  }

  write(chunk: Uint8Array): Promise<void> | undefined {
    this.#assertWritable();
    const copied = this.#copy(chunk, 0);
    if (copied === chunk.length) return undefined;
    return new Promise((resolve, reject) => {
      this.#pendingWrite = { chunk, copied, resolve, reject };
      this.#host.wait(this);
    });
  }

  /** A slab may be free for the write that waits. */
  resume(): void {
    const pending = this.#pendingWrite;
    if (pending === undefined) return;
    pending.copied = this.#copy(pending.chunk, pending.copied);
    if (pending.copied < pending.chunk.length) return this.#host.wait(this);
    this.#pendingWrite = undefined;
    pending.resolve();
  }

  async end(): Promise<Measurement> {
    this.#assertWritable();
    this.#ended = true;
    return new Promise((resolve, reject) => {
      this.#pendingEnd = { resolve, reject };
      this.flush();
      this.#finishWhenHashed();
    });
  }

  abort(): void {
    if (this.#over === undefined) this.#close(uploadAborted());
  }

  giveUp(reason: unknown): void {
    this.#close(reason);
    this.#gaveUp.abort(reason);
  }

  /** Makes the slab that is being filled ready as it is. */
  flush(): void {
    if (this.#filling === undefined) return;
    this.#ready.push(this.#filling);
    this.#filling = undefined;
    if (this.#ready.length === 1 && this.#inFlight === undefined) this.#host.offer(this);
  }

  /**
   * Looks after the slab of a slow client. @param scarce others wait for slabs: even a client that trickles
   * on gives its slab to the workers then, once it held it from one sweep to the next.
   */
  sweep(elapsedMs: number, scarce: boolean): void {
    if (this.#over !== undefined) return;
    if (!this.#touched || (scarce && this.#aged)) this.flush();
    else this.#aged = true;
    this.#touched = false;
    // In backpressure and after `end` the client waits for the engine.
    if (this.#pendingWrite === undefined && !this.#ended) this.pace.charge(elapsedMs, this.#received);
  }

  take(): Slice {
    const slab = this.#ready.shift();
    if (slab === undefined) throw new Error('no slice is ready');
    this.#inFlight = slab;
    return { context: this.context, address: slab.address, length: slab.filled };
  }

  settled(failure: unknown): void {
    const slab = this.#inFlight;
    if (slab === undefined) throw new Error('no slice is in flight');
    if (failure === undefined && this.#over === undefined) {
      // Before the slab is given back: the next upload overwrites it.
      const bytes = this.#host.credentialBytes({
        context: this.context,
        address: slab.address,
        length: slab.filled,
      });
      if (bytes !== undefined) this.#credential.push(bytes);
    }
    this.#inFlight = undefined;
    this.#host.giveSlab(slab.address);
    if (this.#over !== undefined) return this.#host.closed(this);
    if (failure !== undefined) return this.giveUp(engineFailed(failure));
    // `giveSlab` may have let this very upload write on and offer itself again.
    if (this.#ready.length > 0) this.#host.offer(this);
    this.#finishWhenHashed();
  }

  #assertWritable(): void {
    if (this.#over !== undefined) throw this.#over;
    if (this.#ended) throw new Error('the upload has ended');
    if (this.#pendingWrite !== undefined) throw new Error('one write at a time');
  }

  /** @returns the offset in `chunk` up to which it is copied; short of its end where no slab was to be had */
  #copy(chunk: Uint8Array, from: number): number {
    let at = from;
    while (at < chunk.length) {
      const slab = this.#slab();
      if (slab === undefined) break;
      const length = Math.min(chunk.length - at, SLAB_BYTES - slab.filled);
      const start = slab.address + slab.filled;
      // Copied as a fill: `set` goes byte by byte into shared memory where the two are not aligned alike, a
      // tenth of the speed.
      this.#host.memory.fill(
        length === chunk.length ? chunk : chunk.subarray(at, at + length),
        start,
        start + length,
      );
      slab.filled += length;
      at += length;
      if (slab.filled === SLAB_BYTES) this.flush();
    }
    this.#touched = true;
    this.#received += at - from;
    this.#host.received(at - from);
    return at;
  }

  #slab(): Slab | undefined {
    if (this.#filling !== undefined) return this.#filling;
    const address = this.held < SLABS_PER_UPLOAD ? this.#host.takeSlab() : undefined;
    if (address === undefined) return undefined;
    this.#aged = false;
    this.#filling = { address, filled: 0 };
    return this.#filling;
  }

  #finishWhenHashed(): void {
    const pending = this.#pendingEnd;
    if (pending === undefined || this.#inFlight !== undefined || this.#ready.length > 0) return;
    let measurement: Measurement;
    try {
      measurement = this.#host.finish(this.context, this.#credential);
    } catch (error) {
      return this.giveUp(engineFailed(error));
    }
    this.#pendingEnd = undefined;
    this.#close(new Error('the upload has ended'));
    pending.resolve(measurement);
  }

  /** Gives back what no thread works on; a slice in flight and its context follow in `settled`. */
  #close(reason: unknown): void {
    this.#over = reason;
    this.#host.withdraw(this);
    this.#pendingWrite?.reject(reason);
    this.#pendingEnd?.reject(reason);
    this.#pendingWrite = undefined;
    this.#pendingEnd = undefined;
    const slabs = this.#ready.splice(0);
    if (this.#filling !== undefined) slabs.push(this.#filling);
    this.#filling = undefined;
    for (const slab of slabs) this.#host.giveSlab(slab.address);
    if (this.#inFlight === undefined) this.#host.closed(this);
  }
}
