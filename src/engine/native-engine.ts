import type { Measurement } from '../domain/audio.js';
import type { AudioEngine, AudioIngest, EngineStats } from '../ports/audio-engine.js';
import type { Observer } from '../ports/observer.js';
import { aligned, BlockAllocator, RESERVED_BYTES } from './blocks.js';
import {
  CONTEXT_BYTES,
  type Core,
  completeMeasurement,
  createCoreMemory,
  credentialSpan,
  forkReport,
  instantiateCore,
  loadCore,
  SCRATCH_BYTES,
} from './core.js';
import { engineFailed, gaveWay, shuttingDown, uploadAborted } from './errors.js';
import { ForkedHash } from './forked-hash.js';
import { type PlaceHolder, Places, SendingPace } from './places.js';
import { Ticker } from './ticker.js';

/** Length of a socket's chunk; longer writes are parsed in several steps. */
const STAGE_BYTES = 64 * 1024;

export interface NativeEngineOptions {
  readonly maxUploads: number;
  readonly tickMs: number;
  readonly now: () => number;
  readonly observer: Pick<Observer, 'displaced'>;
}

interface Running {
  readonly memory: WebAssembly.Memory;
  readonly bytes: Uint8Array;
  readonly core: Core;
  readonly contexts: BlockAllocator;
  /** Address of the one area through which the core sees each slice. */
  readonly stage: number;
  readonly ticker: Ticker;
}

/**
 * Engine that parses in the WASM core and hashes with Node's own hash, both on the calling thread: no
 * workers, no slabs, no backpressure.
 */
export class NativeEngine implements AudioEngine {
  readonly #options: NativeEngineOptions;
  readonly #uploads = new Set<NativeIngest>();
  readonly #places: Places<NativeIngest>;
  #running: Running | undefined;
  #started: Promise<void> | undefined;
  #stopped: Promise<void> | undefined;
  #whenEmpty: (() => void) | undefined;
  #bytes = 0;

  constructor(options: NativeEngineOptions) {
    this.#options = options;
    this.#places = new Places(options.maxUploads);
  }

  start(): Promise<void> {
    if (this.#started !== undefined || this.#stopped !== undefined)
      throw new Error('the audio engine starts once');
    this.#started = this.#boot();
    return this.#started;
  }

  open(owner: string): AudioIngest {
    if (this.#stopped !== undefined) throw shuttingDown();
    const running = this.#running;
    if (running === undefined) throw new Error('the audio engine has not started');
    const displacement = this.#places.toDisplace(owner);
    displacement?.holder.close(gaveWay());
    const context = running.contexts.take();
    if (context === undefined) throw new Error('more uploads than contexts');
    running.core.init(context);
    const ingest: NativeIngest = new NativeIngest(owner, context, running, {
      received: (bytes) => {
        this.#bytes += bytes;
      },
      closed: () => {
        running.contexts.give(context);
        this.#places.remove(ingest);
        this.#uploads.delete(ingest);
        if (this.#uploads.size === 0) this.#whenEmpty?.();
      },
    });
    this.#places.add(ingest);
    this.#uploads.add(ingest);
    if (displacement !== undefined) {
      // Only now, when the place is taken: whoever learns of the displacement may open an upload at once.
      this.#options.observer.displaced(displacement.reason);
      displacement.holder.signalGivenUp();
    }
    return ingest;
  }

  stop(): Promise<void> {
    this.#stopped ??= this.#drain();
    return this.#stopped;
  }

  stats(): EngineStats {
    return {
      kind: 'native',
      uploadsInFlight: this.#uploads.size,
      slabsInUse: 0,
      slabs: 0,
      tasks: 0,
      lanes: 0,
      bytes: this.#bytes,
      workerRestarts: 0,
    };
  }

  async #boot(): Promise<void> {
    const { maxUploads } = this.#options;
    const module = await loadCore();
    const scratch = RESERVED_BYTES;
    const stage = scratch + aligned(SCRATCH_BYTES);
    const firstContext = stage + STAGE_BYTES;
    const memory = createCoreMemory(firstContext + maxUploads * aligned(CONTEXT_BYTES));
    this.#running = {
      memory,
      bytes: new Uint8Array(memory.buffer),
      core: instantiateCore(module, memory, scratch),
      contexts: new BlockAllocator(firstContext, aligned(CONTEXT_BYTES), maxUploads),
      stage,
      ticker: new Ticker(this.#options, (elapsedMs) => {
        for (const ingest of this.#uploads) ingest.charge(elapsedMs);
      }),
    };
  }

  async #drain(): Promise<void> {
    // A start that fails has its own caller to tell.
    await this.#started?.catch(() => undefined);
    if (this.#uploads.size > 0) await new Promise<void>((resolve) => (this.#whenEmpty = resolve));
    this.#running?.ticker.stop();
  }
}

interface NativeHost {
  readonly received: (bytes: number) => void;
  readonly closed: () => void;
}

class NativeIngest implements AudioIngest, PlaceHolder {
  readonly owner: string;
  readonly pace = new SendingPace();
  readonly #context: number;
  readonly #running: Running;
  readonly #host: NativeHost;
  readonly #gaveUp = new AbortController();
  readonly #hash = new ForkedHash();
  readonly #credential: Uint8Array[] = [];
  #received = 0;
  /** Reason why nothing more is taken. */
  #over: unknown;

  constructor(owner: string, context: number, running: Running, host: NativeHost) {
    this.owner = owner;
    this.#context = context;
    this.#running = running;
    this.#host = host;
  }

  get signal(): AbortSignal {
    return this.#gaveUp.signal;
  }

  write(chunk: Uint8Array): undefined {
    if (this.#over !== undefined) throw this.#over;
    this.#received += chunk.length;
    this.#host.received(chunk.length);
    try {
      for (let at = 0; at < chunk.length; at += STAGE_BYTES) this.#take(chunk.subarray(at, at + STAGE_BYTES));
    } catch (error) {
      throw this.#fail(engineFailed(error));
    }
    return undefined;
  }

  async end(): Promise<Measurement> {
    if (this.#over !== undefined) throw this.#over;
    const { core, memory } = this.#running;
    try {
      core.finish(this.#context);
      const measurement = completeMeasurement(memory, this.#context, this.#credential, this.#hash.digests());
      this.close(new Error('the upload has ended'));
      return measurement;
    } catch (error) {
      throw this.#fail(engineFailed(error));
    }
  }

  abort(): void {
    if (this.#over === undefined) this.close(uploadAborted());
  }

  /** Tells the owner of the upload that the engine has closed it. */
  signalGivenUp(): void {
    this.#gaveUp.abort(this.#over);
  }

  /** Gives everything back; nothing more is taken, for the reason. */
  close(reason: unknown): void {
    this.#over = reason;
    this.#host.closed();
  }

  charge(elapsedMs: number): void {
    this.pace.charge(elapsedMs, this.#received);
  }

  #take(slice: Uint8Array): void {
    const { bytes, core, memory, stage } = this.#running;
    bytes.set(slice, stage);
    core.parse({ context: this.#context, address: stage, length: slice.length });
    const span = credentialSpan(memory, this.#context);
    // A copy: `slice` of a Buffer would be a view of bytes the caller may reuse.
    if (span !== undefined)
      this.#credential.push(new Uint8Array(slice.subarray(span.offset, span.offset + span.length)));
    this.#hash.update(slice, forkReport(memory, this.#context));
  }

  #fail(error: unknown): unknown {
    this.close(error);
    this.signalGivenUp();
    return error;
  }
}
