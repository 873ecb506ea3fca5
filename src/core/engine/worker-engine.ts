import type { Worker } from 'node:worker_threads';
import type {
  AudioEngine,
  AudioIngest,
  EngineObserver,
  EngineStats,
  HeldMemory,
  IngestOptions,
} from '../ports/audio-engine.js';
import { aligned, BlockAllocator, RESERVED_BYTES } from './blocks.js';
import {
  CONTEXT_BYTES,
  completeMeasurement,
  createCoreMemory,
  credentialSpan,
  DECODER_BYTES,
  instantiateCore,
  isPaused,
  type Lanes,
  lendDecoder,
  loadCore,
  needsDecoder,
  SCRATCH_BYTES,
  type Slice,
} from './core.js';
import { DecoderPlaces } from './decoder-places.js';
import { shuttingDown } from './errors.js';
import { ForkedHash } from './forked-hash.js';
import { type LaneTest, mergeVectors } from './lane-test.js';
import { LANES, MOST_LANES, Scheduler } from './scheduler.js';
import { SecondHashes } from './second-hashes.js';
import { Ticker } from './ticker.js';
import { WorkerPool } from './worker-pool.js';

/** The digests of an empty file, which never reaches a task. */
const NOTHING = new ForkedHash().digests();

export interface WorkerEngineOptions {
  readonly kind: EngineStats['kind'];
  readonly workers: number;
  readonly maxQueue: number;
  readonly maxUploads: number;
  readonly slabs: number;
  readonly slabBytes: number;
  readonly decoders: number;
  readonly tickMs: number;
  readonly now: () => number;
  readonly observer: EngineObserver;
  readonly memoryOfOwners: HeldMemory;
  readonly eightLanes: boolean;
  readonly lanesChosen: (choice: LaneTest) => void;
}

/** The interval in uploads: Node also hashes one of so many while eight lanes hash. */
const SAMPLED = 1000;

/** The parts that exist from `start` to the end of `stop`. */
interface Running {
  readonly slabs: BlockAllocator;
  readonly scheduler: Scheduler;
  /** The pool of each group of workers. */
  readonly pools: readonly WorkerPool[];
  readonly ticker: Ticker;
  readonly second: SecondHashes;
}

/**
 * An engine with one shared memory: scratch areas, contexts of uploads, slabs, decoders. The ingress thread copies
 * each byte into a slab once, and workers hash and parse the slab in place. All bookkeeping is on the ingress
 * thread. In the WASM kind the state of an upload is in its context, and any worker of the one pool goes on
 * with it. In the native kind Node's hash holds the state, which is a thread's own: each worker is a pool by
 * itself, and an upload stays with one.
 */
export class WorkerEngine implements AudioEngine {
  readonly #options: WorkerEngineOptions;
  #running: Running | undefined;
  #started: Promise<void> | undefined;
  #stopped: Promise<void> | undefined;
  #whenEmpty: (() => void) | undefined;
  #lanes: Lanes = 4;

  constructor(options: WorkerEngineOptions) {
    this.#options = options;
  }

  /** The worker threads of this moment, for tests and probes. */
  get threads(): readonly Worker[] {
    return this.#running?.pools.flatMap(({ threads }) => threads) ?? [];
  }

  start(): Promise<void> {
    if (this.#started !== undefined || this.#stopped !== undefined)
      throw new Error('the audio engine can start only once');
    this.#started = this.#boot();
    return this.#started;
  }

  open(owner: string, options?: IngestOptions): AudioIngest {
    if (this.#stopped !== undefined) throw shuttingDown();
    if (this.#running === undefined) throw new Error('the audio engine has not started');
    return this.#running.scheduler.open(owner, options);
  }

  stop(): Promise<void> {
    this.#stopped ??= this.#drain();
    return this.#stopped;
  }

  stats(): EngineStats {
    const running = this.#running;
    return {
      kind: this.#options.kind,
      kernelLanes: this.#options.kind === 'native' ? 1 : this.#lanes,
      hashDifferences: running?.second.differences ?? 0,
      uploadsInFlight: running?.scheduler.uploads ?? 0,
      slabsInUse: running?.slabs.inUse ?? 0,
      slabs: this.#options.slabs,
      tasks: running?.scheduler.tasks ?? 0,
      lanes: running?.scheduler.lanes ?? 0,
      bytes: running?.scheduler.bytes ?? 0,
      workerRestarts: running?.pools.reduce((sum, { deaths }) => sum + deaths, 0) ?? 0,
    };
  }

  async #boot(): Promise<void> {
    const { kind, workers, maxQueue, maxUploads, observer, memoryOfOwners } = this.#options;
    const { slabs: slabCount, slabBytes, decoders: decoderCount } = this.#options;
    const native = kind === 'native';
    const testsLanes = this.#options.eightLanes && !native;
    const group = native
      ? { groups: workers, workers: 1, maxQueue: 1, worthwhile: 1, endsInTask: true }
      : { groups: 1, workers, maxQueue, worthwhile: LANES, endsInTask: false };
    // Before the module is compiled.
    if (testsLanes) mergeVectors();
    const module = await loadCore();
    const tasks = group.groups * (group.workers + group.maxQueue);
    const contextCount = maxUploads + tasks * (testsLanes ? MOST_LANES : LANES);
    const ingressScratch = RESERVED_BYTES;
    const scratchBytes = aligned(SCRATCH_BYTES);
    const contextBytes = aligned(CONTEXT_BYTES);
    const taskScratch = ingressScratch + scratchBytes;
    const firstContext = taskScratch + tasks * scratchBytes;
    const firstSlab =
      Math.ceil((firstContext + contextCount * contextBytes) / RESERVED_BYTES) * RESERVED_BYTES;
    const firstDecoder = firstSlab + slabCount * slabBytes;
    const memory = createCoreMemory(firstDecoder + decoderCount * DECODER_BYTES);
    const pools = Array.from(
      { length: group.groups },
      () =>
        new WorkerPool({
          workers: group.workers,
          input: { module, memory, testsLanes },
          idleScratch: taskScratch,
          onDeath: (error) => observer.fault('engine', error),
        }),
    );
    try {
      const ready = (await Promise.all(pools.map((pool) => pool.ready()))).flat();
      if (testsLanes) this.#chooseLanes(ready.map(({ laneTest }) => laneTest!));
    } catch (error) {
      await Promise.all(pools.map((pool) => pool.close()));
      throw new Error('no worker can run the audio core', { cause: error });
    }
    // The ingress thread's own core: it begins and finishes uploads, a matter of microseconds that is worth
    // no task.
    const core = instantiateCore(module, memory, ingressScratch);
    const slabs = new BlockAllocator(firstSlab, slabBytes, slabCount);
    const second = new SecondHashes({
      memory,
      every: SAMPLED,
      differs: (error) => {
        this.#lanes = 4;
        observer.fault('engine', error);
      },
    });
    const scheduler = new Scheduler({
      ...group,
      lanes: () => this.#lanes,
      maxUploads,
      memory: Buffer.from(memory.buffer),
      contexts: new BlockAllocator(firstContext, contextBytes, contextCount),
      slabs,
      scratches: new BlockAllocator(taskScratch, scratchBytes, tasks),
      run: async (task, number) => {
        if (task.lanes === 8) second.hashesInEight(task.slices);
        const outcome = await pools[number]!.run({ ...task, native });
        if (outcome.laneTest !== undefined) this.#chooseLanes([outcome.laneTest]);
        return outcome;
      },
      decoders: new DecoderPlaces(new BlockAllocator(firstDecoder, DECODER_BYTES, decoderCount)),
      lendDecoder: (context, decoder) => lendDecoder(memory, context, decoder),
      needsDecoder: (context) => needsDecoder(memory, context),
      isPaused: (context) => isPaused(memory, context),
      begin: (context, { samples = false }) => {
        core.init(context, samples);
        // Reading samples can rewrite slices in place, so that Node would hash other bytes.
        second.begin(context, samples ? 4 : this.#lanes);
      },
      credentialBytes: (slice) => {
        second.update(slice);
        return credentialBytes(memory, slice);
      },
      finish: ({ context, credential, started, digests }) => {
        const hashed = native && !started ? NOTHING : digests;
        if (native && hashed === undefined) throw new Error('no task returned the digests');
        core.finish(context);
        const measurement = completeMeasurement(memory, context, credential, hashed);
        second.check(context, measurement);
        return measurement;
      },
      memoryOfOwners,
      displaced: (reason) => observer.displaced(reason),
      occupied: (any) => {
        // Threads do not keep the process alive, least of all one that is just being replaced; an upload
        // does.
        ticker.hold(any);
        if (!any) this.#whenEmpty?.();
      },
    });
    const ticker = new Ticker(this.#options, (elapsedMs) => scheduler.tick(elapsedMs));
    this.#running = { slabs, scheduler, pools, ticker, second };
  }

  /** Uses eight lanes from the start if every worker may, and never again once a worker may not. */
  #chooseLanes(tests: readonly LaneTest[]): void {
    const choice = tests.find(({ lanes }) => lanes === 4) ?? tests[0]!;
    if (choice.lanes === this.#lanes && this.#running !== undefined) return;
    this.#lanes = choice.lanes;
    this.#options.lanesChosen(choice);
  }

  async #drain(): Promise<void> {
    // A start that fails rejects for its own caller.
    await this.#started?.catch(() => undefined);
    const running = this.#running;
    if (running === undefined) return;
    if (running.scheduler.uploads > 0) await new Promise<void>((resolve) => (this.#whenEmpty = resolve));
    running.ticker.stop();
    await Promise.all(running.pools.map((pool) => pool.close()));
  }
}

function credentialBytes(memory: WebAssembly.Memory, { context, address }: Slice): Uint8Array | undefined {
  const span = credentialSpan(memory, context);
  if (span === undefined) return undefined;
  // A copy: the slab is another upload's next.
  return new Uint8Array(memory.buffer, address + span.offset, span.length).slice();
}
