import { Piscina } from 'piscina';
import type { Measurement } from '../../src/domain/audio.js';
import { Gather } from '../../src/engine/gather.js';
import { Region } from '../../src/engine/region.js';
import { type IngestHost, SLAB_BYTES, WasmIngest } from '../../src/engine/wasm-ingest.js';
import type { HashTask } from '../../src/engine/worker.js';
import type { AudioIngest } from '../../src/ports/audio-engine.js';

const UPLOADS = 64;
const QUEUE = 1;

/**
 * The engine without its hash: the real ingest copies into real slabs, the real scheduler gathers them into
 * tasks for a real worker thread, and that worker only acknowledges. What is left is what taking bytes in
 * costs.
 */
export class AcknowledgingEngine {
  readonly #memory = Buffer.from(new SharedArrayBuffer(2 * UPLOADS * SLAB_BYTES));
  readonly #slabs = new Region(0, SLAB_BYTES, 2 * UPLOADS);
  readonly #contexts = new Region(0, 1, UPLOADS);
  readonly #received = new Map<number, number>();
  readonly #waiting = new Set<WasmIngest>();
  readonly #pool = new Piscina<HashTask, undefined>({
    filename: new URL('./acknowledge.js', import.meta.url).href,
    name: 'acknowledge',
    minThreads: 1,
    maxThreads: 1,
    concurrentTasksPerWorker: 1,
    recordTiming: false,
  });
  readonly #gather = new Gather({
    workers: 1,
    maxQueue: QUEUE,
    scratches: new Region(0, 1, 1 + QUEUE),
    run: (task) => this.#pool.run(task),
    open: () => this.#contexts.inUse,
    idle: () => undefined,
  });

  open(): AudioIngest {
    const context = this.#contexts.take();
    if (context === undefined) throw new Error('too many uploads');
    this.#received.set(context, 0);
    return new WasmIngest('bench', context, this.#host(context));
  }

  #host(context: number): IngestHost {
    return {
      memory: this.#memory,
      takeSlab: () => this.#slabs.take(),
      giveSlab: (address) => {
        this.#slabs.give(address);
        for (const ingest of [...this.#waiting]) {
          this.#waiting.delete(ingest);
          ingest.resume();
        }
      },
      wait: (ingest) => this.#waiting.add(ingest),
      offer: (ingest) => this.#gather.offer(ingest),
      withdraw: (ingest) => {
        this.#waiting.delete(ingest);
        this.#gather.withdraw(ingest);
      },
      received: (bytes) => this.#received.set(context, this.#received.get(context)! + bytes),
      credentialBytes: () => undefined,
      finish: () => emptyMeasurement(this.#received.get(context)!),
      closed: () => this.#contexts.give(context),
    };
  }
}

function emptyMeasurement(bytes: number): Measurement {
  return { bytes, sha256: '', container: 'unknown', chunks: [], chunkCount: 0, findings: [] };
}
