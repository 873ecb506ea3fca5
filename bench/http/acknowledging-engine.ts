import { Piscina } from 'piscina';
import type { Measurement } from '../../src/core/domain/audio.js';
import { BlockAllocator } from '../../src/core/engine/blocks.js';
import { DecoderPlaces } from '../../src/core/engine/decoder-places.js';
import { SLAB_BYTES } from '../../src/core/engine/ingest.js';
import { LANES, Scheduler } from '../../src/core/engine/scheduler.js';
import type { HashTask, TaskOutcome } from '../../src/core/engine/worker.js';
import type { AudioIngest } from '../../src/core/ports/audio-engine.js';

const UPLOADS = 64;
const QUEUE = 1;
const CONTEXTS = UPLOADS + (1 + QUEUE) * LANES;

/**
 * An engine that does not hash. The real scheduler copies into real slabs and batches them into tasks for a real
 * worker thread, but that worker only acknowledges. The remaining cost is that of receiving bytes.
 */
export class AcknowledgingEngine {
  readonly #pool = new Piscina<HashTask, TaskOutcome>({
    filename: new URL('./acknowledge.js', import.meta.url).href,
    name: 'acknowledge',
    minThreads: 1,
    maxThreads: 1,
    concurrentTasksPerWorker: 1,
    recordTiming: false,
  });
  readonly #hashed = new Map<number, number>();
  readonly #scheduler = new Scheduler({
    groups: 1,
    workers: 1,
    maxQueue: QUEUE,
    worthwhile: LANES,
    lanes: () => LANES,
    endsInTask: false,
    memoryOfOwners: { take: () => true, giveBack: () => undefined },
    maxUploads: UPLOADS,
    memory: Buffer.from(new SharedArrayBuffer(2 * UPLOADS * SLAB_BYTES)),
    contexts: new BlockAllocator(0, 1, CONTEXTS),
    slabs: new BlockAllocator(0, SLAB_BYTES, 2 * UPLOADS),
    scratches: new BlockAllocator(0, 1, 1 + QUEUE),
    run: (task) => this.#pool.run(task),
    decoders: new DecoderPlaces(new BlockAllocator(0, 1, 1)),
    lendDecoder: () => undefined,
    needsDecoder: () => false,
    isPaused: () => false,
    begin: (context) => void this.#hashed.set(context, 0),
    credentialBytes: ({ context, length }) => {
      this.#hashed.set(context, this.#hashed.get(context)! + length);
      return undefined;
    },
    finish: ({ context }) => emptyMeasurement(this.#hashed.get(context)!),
    displaced: () => undefined,
    occupied: () => undefined,
  });

  open(): AudioIngest {
    return this.#scheduler.open('bench');
  }
}

function emptyMeasurement(bytes: number): Measurement {
  return { bytes, sha256: '', container: 'unknown', chunks: [], chunkCount: 0, findings: [] };
}
