import type { Worker } from 'node:worker_threads';
import type { Measurement } from '../domain/audio.js';
import type { AudioEngine, AudioIngest, EngineStats } from '../ports/audio-engine.js';
import {
  CONTEXT_BYTES,
  type Core,
  createCoreMemory,
  credentialSpan,
  instantiateCore,
  loadCore,
  SCRATCH_BYTES,
  type Slice,
} from './core.js';
import type { CompleteOptions } from './engine-options.js';
import { Gather, LANES } from './gather.js';
import { aligned, RESERVED_BYTES } from './layout.js';
import { Places } from './places.js';
import { shuttingDown } from './refusals.js';
import { Region } from './region.js';
import { readResult } from './result.js';
import { Sweep } from './sweep.js';
import { type IngestHost, SLAB_BYTES, SLABS_PER_UPLOAD, WasmIngest } from './wasm-ingest.js';
import { WorkerPool } from './worker-pool.js';

/** What exists from `start` to the end of `stop`. */
interface Running {
  readonly memory: WebAssembly.Memory;
  readonly bytes: Buffer;
  /**
   * The ingress thread's own: it begins and finishes uploads, a matter of microseconds that is worth no task.
   */
  readonly core: Core;
  readonly contexts: Region;
  readonly slabs: Region;
  readonly gather: Gather;
  readonly pool: WorkerPool;
  readonly sweep: Sweep;
}

/**
 * One shared memory: scratch areas, contexts of uploads, slabs. The ingress thread copies each byte into a
 * slab once, workers hash and parse it where it lies. All bookkeeping is on the ingress thread; a worker
 * knows nothing but its task.
 */
export class WasmEngine implements AudioEngine {
  readonly #options: CompleteOptions;
  /** Those whose context is in use, the ones that only wait for their last slice included. */
  readonly #uploads = new Set<WasmIngest>();
  readonly #places: Places<WasmIngest>;
  /** Uploads whose write waits for a slab, in the order in which they came. */
  readonly #waiting = new Set<WasmIngest>();
  readonly #host: IngestHost;
  #running: Running | undefined;
  #bytes = 0;
  #started: Promise<void> | undefined;
  #stopped: Promise<void> | undefined;
  #whenEmpty: (() => void) | undefined;

  constructor(options: CompleteOptions) {
    this.#options = options;
    this.#places = new Places(options.maxUploads, (reason) => options.observer.displaced(reason));
    this.#host = this.#createHost();
  }

  /** The worker threads of this moment, for tests and probes. */
  get threads(): readonly Worker[] {
    return this.#running?.pool.threads ?? [];
  }

  start(): Promise<void> {
    if (this.#started !== undefined || this.#stopped !== undefined)
      throw new Error('the audio engine starts once');
    this.#started = this.#boot();
    return this.#started;
  }

  async #boot(): Promise<void> {
    const { workers, maxQueue, maxUploads, slabs: slabCount, observer } = this.#options;
    const module = await loadCore();
    const tasks = workers + maxQueue;
    // An upload that was given up keeps its context while a task works on it, but not its place.
    const contextCount = maxUploads + tasks * LANES;
    const ingressScratch = RESERVED_BYTES;
    const scratchBytes = aligned(SCRATCH_BYTES);
    const contextBytes = aligned(CONTEXT_BYTES);
    const taskScratch = ingressScratch + scratchBytes;
    const firstContext = taskScratch + tasks * scratchBytes;
    const firstSlab =
      Math.ceil((firstContext + contextCount * contextBytes) / RESERVED_BYTES) * RESERVED_BYTES;
    const memory = createCoreMemory(firstSlab + slabCount * SLAB_BYTES);
    const pool = new WorkerPool({
      workers,
      maxQueue,
      input: { module, memory },
      idleScratch: taskScratch,
      onDeath: (error) => observer.fault('engine', error),
    });
    try {
      await pool.ready();
    } catch (error) {
      await pool.close();
      throw new Error('no worker can run the audio core', { cause: error });
    }
    const gather = new Gather({
      workers,
      maxQueue,
      scratches: new Region(taskScratch, scratchBytes, tasks),
      run: (task) => pool.run(task),
      open: () => this.#uploads.size,
      idle: () => this.#relieve(),
    });
    this.#running = {
      memory,
      bytes: Buffer.from(memory.buffer),
      core: instantiateCore(module, memory, ingressScratch),
      contexts: new Region(firstContext, contextBytes, contextCount),
      slabs: new Region(firstSlab, SLAB_BYTES, slabCount),
      gather,
      pool,
      sweep: new Sweep(this.#options, (elapsedMs) => this.#sweep(elapsedMs)),
    };
  }

  open(owner: string): AudioIngest {
    if (this.#stopped !== undefined) throw shuttingDown();
    const { contexts, core, sweep } = this.#run();
    this.#places.makeRoom(owner);
    const context = contexts.take();
    if (context === undefined) throw new Error('more uploads than contexts');
    core.init(context);
    const ingest = new WasmIngest(owner, context, this.#host);
    this.#places.add(ingest);
    this.#uploads.add(ingest);
    // Threads do not keep the process alive, least of all one that is just being replaced; an upload does.
    sweep.hold(true);
    return ingest;
  }

  stop(): Promise<void> {
    this.#stopped ??= this.#drain();
    return this.#stopped;
  }

  stats(): EngineStats {
    const running = this.#running;
    return {
      kind: 'wasm',
      uploadsInFlight: this.#uploads.size,
      slabsInUse: running?.slabs.inUse ?? 0,
      slabs: this.#options.slabs,
      tasks: running?.gather.tasks ?? 0,
      lanes: running?.gather.lanes ?? 0,
      bytes: this.#bytes,
      workerRestarts: running?.pool.deaths ?? 0,
    };
  }

  async #drain(): Promise<void> {
    // A start that fails has its own caller to tell.
    await this.#started?.catch(() => undefined);
    const running = this.#running;
    if (running === undefined) return;
    if (this.#uploads.size > 0) await new Promise<void>((resolve) => (this.#whenEmpty = resolve));
    running.sweep.stop();
    await running.pool.close();
  }

  #run(): Running {
    if (this.#running === undefined) throw new Error('the audio engine has not started');
    return this.#running;
  }

  #createHost(): IngestHost {
    const run = (): Running => this.#run();
    return {
      get memory() {
        return run().bytes;
      },
      takeSlab: () => run().slabs.take(),
      giveSlab: (address) => {
        run().slabs.give(address);
        this.#grant();
      },
      wait: (ingest) => {
        this.#waiting.add(ingest);
        this.#relieve();
      },
      offer: (ingest) => run().gather.offer(ingest),
      withdraw: (ingest) => {
        this.#places.remove(ingest);
        this.#waiting.delete(ingest);
        run().gather.withdraw(ingest);
      },
      received: (bytes) => {
        this.#bytes += bytes;
      },
      credentialBytes: (slice) => this.#credentialBytes(slice),
      finish: (context, credential) => this.#finish(context, credential),
      closed: (ingest) => {
        run().contexts.give(ingest.context);
        this.#uploads.delete(ingest);
        if (this.#uploads.size > 0) return;
        run().sweep.hold(false);
        this.#whenEmpty?.();
      },
    };
  }

  /**
   * Lets writes that wait go on, as far as there are slabs: those who hold the fewest first, then the longest
   * waiting.
   */
  #grant(): void {
    const { slabs } = this.#run();
    while (slabs.free > 0) {
      const next = this.#neediest();
      if (next === undefined) return;
      this.#waiting.delete(next);
      next.resume();
    }
  }

  #neediest(): WasmIngest | undefined {
    let neediest: WasmIngest | undefined;
    let least = SLABS_PER_UPLOAD;
    for (const ingest of this.#waiting) {
      if (ingest.held >= least) continue;
      neediest = ingest;
      least = ingest.held;
    }
    return neediest;
  }

  /**
   * All slabs are being filled, none is ready, and someone waits: the fullest goes to the workers as it is.
   * Without this a pool smaller than the number of uploads would stand still until a slab happens to fill.
   */
  #relieve(): void {
    const { slabs, gather } = this.#run();
    if (this.#waiting.size === 0 || slabs.free > 0 || !gather.isIdle) return;
    let fullest: WasmIngest | undefined;
    for (const ingest of this.#uploads) {
      if (ingest.filled > (fullest?.filled ?? 0)) fullest = ingest;
    }
    fullest?.flush();
  }

  #sweep(elapsedMs: number): void {
    const scarce = this.#waiting.size > 0 && this.#run().slabs.free === 0;
    for (const ingest of this.#uploads) ingest.sweep(elapsedMs, scarce);
  }

  #credentialBytes(slice: Slice): Uint8Array | undefined {
    const { memory, bytes } = this.#run();
    const span = credentialSpan(memory, slice.context);
    if (span === undefined) return undefined;
    // A copy, which `slice` of a Buffer is not: the slab is another upload's next.
    return Uint8Array.from(
      bytes.subarray(slice.address + span.offset, slice.address + span.offset + span.length),
    );
  }

  #finish(context: number, credential: readonly Uint8Array[]): Measurement {
    const { memory, core } = this.#run();
    core.finish(context);
    return readResult(memory, context, credential);
  }
}
