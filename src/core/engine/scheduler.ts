import type { Measurement } from '../domain/audio.js';
import type { AudioIngest, Displacement, HeldMemory, IngestOptions } from '../ports/audio-engine.js';
import type { BlockAllocator } from './blocks.js';
import type { Lanes, Slice } from './core.js';
import { type DecoderPlaces, mayBeFlac } from './decoder-places.js';
import { engineFailed, gaveWay, memoryFull, uploadAborted } from './errors.js';
import { Ingest, NO_SLAB, SLABS_PER_UPLOAD, type Slab } from './ingest.js';
import { Places } from './places.js';
import type { HashTask, TaskOutcome, TaskSlice } from './worker.js';

/** The largest number of uploads in a task with the kernel of four lanes, which is always there. */
export const LANES = 4;
/** The largest number of uploads that a task ever carries. */
export const MOST_LANES = 8;

export interface SchedulerOptions {
  /**
   * The number of groups of workers: one for each worker if a thread holds the state of an upload, else one. An
   * upload stays with its first group, which is the one with the fewest uploads.
   */
  readonly groups: number;
  /** The number of workers in a group. */
  readonly workers: number;
  /** The number of tasks of a group that may wait for a worker. */
  readonly maxQueue: number;
  /** True if the end of a file goes to a task, which returns its digests. */
  readonly endsInTask: boolean;
  /** The number of uploads that a task beside a running one needs: LANES, or 1 without a kernel of lanes. */
  readonly worthwhile: number;
  /** Returns the largest number of uploads in a task at this moment. */
  readonly lanes: () => Lanes;
  readonly maxUploads: number;
  /** The shared memory with the slabs. */
  readonly memory: Buffer;
  /**
   * The contexts, more than `maxUploads`: an upload that was given up keeps its context while a task works on it, but
   * not its place. Tasks carry at most `groups * (workers + maxQueue) * MOST_LANES` uploads.
   */
  readonly contexts: BlockAllocator;
  readonly slabs: BlockAllocator;
  /** A block for each task that may be in flight, `groups * (workers + maxQueue)`. */
  readonly scratches: BlockAllocator;
  /** Runs a task. The promise settles when no thread touches the task's memory any more, and not earlier. */
  readonly run: (task: HashTask, group: number) => Promise<TaskOutcome>;
  readonly decoders: DecoderPlaces;
  /** Makes a context ready for a new file. */
  readonly begin: (context: number, options: IngestOptions) => void;
  /** Gives a context its decoder, before its first task. */
  readonly lendDecoder: (context: number, decoder: number) => void;
  /** Returns true if a context whose first slices are hashed still needs its decoder. */
  readonly needsDecoder: (context: number) => boolean;
  /** Returns true if the slab that a context was last given has bytes that are not decoded yet. */
  readonly isPaused: (context: number) => boolean;
  /** Returns a copy of the credential bytes in a slice, the last one that its context was hashed with. */
  readonly credentialBytes: (slice: Slice) => Uint8Array | undefined;
  /** Returns the measurement of an upload that is hashed to its end. */
  readonly finish: (ingest: Ingest) => Measurement;
  /** The limit of the memory for credentials, by owner. */
  readonly memoryOfOwners: HeldMemory;
  readonly displaced: (reason: Displacement) => void;
  /**
   * Receives `true` when the first upload opens, and `false` when the last one has released everything.
   */
  readonly occupied: (any: boolean) => void;
}

/**
 * Moves uploads through the slabs and their slabs through the workers.
 *
 * Uploads are records. Each event (open, write, end, abort, tick, a task that is done) changes records and
 * ends in `#schedule`, which does everything that has become possible. Nothing inside of `#schedule` calls
 * out: promises settle later, and signals are fired when all is done. So no event comes in the middle of
 * another, and a listener of a signal finds the scheduler at rest.
 */
export class Scheduler {
  readonly #options: SchedulerOptions;
  readonly #places: Places<Ingest>;
  /** The places that large uploads may have: half of all, and at least one. They count in `#places` as well. */
  readonly #largePlaces: Places<Ingest>;
  /** The uploads whose context is in use, also those that only wait for their slab in flight. */
  readonly #ingests = new Set<Ingest>();
  /** The uploads whose write waits for a slab, in the order in which they came. */
  readonly #waiting = new Set<Ingest>();
  readonly #groups: readonly Group[];
  /** The uploads that have ended and wait for their last slab. */
  readonly #ending = new Set<Ingest>();
  /** The uploads that the engine gave up and whose signal has not been fired yet. */
  readonly #givenUp: Ingest[] = [];
  #tasks = 0;
  #lanes = 0;
  #bytes = 0;

  constructor(options: SchedulerOptions) {
    this.#options = options;
    this.#places = new Places(options.maxUploads);
    this.#largePlaces = new Places(Math.max(1, Math.floor(options.maxUploads / 2)));
    this.#groups = Array.from({ length: options.groups }, () => ({
      ready: new Set<Ingest>(),
      running: 0,
      carried: 0,
      uploads: 0,
    }));
  }

  get uploads(): number {
    return this.#ingests.size;
  }

  get tasks(): number {
    return this.#tasks;
  }

  /** The number of uploads that all tasks have carried so far. */
  get lanes(): number {
    return this.#lanes;
  }

  /** The number of bytes that were taken in. */
  get bytes(): number {
    return this.#bytes;
  }

  /** @throws DomainError `unavailable` / `engine_full` */
  open(owner: string, options: IngestOptions = {}): AudioIngest {
    const { contexts, begin, displaced, occupied } = this.#options;
    // A large upload that goes frees a place of both kinds.
    const displacement =
      (options.size === 'large' ? this.#largePlaces.toDisplace(owner) : undefined) ??
      this.#places.toDisplace(owner);
    if (displacement !== undefined) this.#giveUp(displacement.holder, gaveWay());
    const context = contexts.take();
    if (context === undefined) throw new Error('more uploads than contexts');
    begin(context, options);
    const group = this.#groups.reduce(
      (best, each, i) => (each.uploads < this.#groups[best]!.uploads ? i : best),
      0,
    );
    const ingest = new Ingest(owner, context, group, options.samples === true);
    this.#ingests.add(ingest);
    this.#groups[group]!.uploads += 1;
    this.#places.add(ingest);
    if (options.size === 'large') this.#largePlaces.add(ingest);
    if (this.#ingests.size === 1) occupied(true);
    if (displacement !== undefined) {
      // Only now, when the place is taken: a caller that learns of the displacement may open an upload at once.
      displaced(displacement.reason);
      this.#schedule();
    }
    return {
      signal: ingest.givenUp.signal,
      write: (chunk) => this.#write(ingest, chunk),
      end: async () => this.#end(ingest),
      abort: () => this.#abort(ingest),
    };
  }

  /**
   * Flushes the slabs of slow clients: of a client that sent nothing since the last tick, and, when others
   * wait for slabs, even of one that trickles on, once it held its slab from one tick to the next.
   */
  tick(elapsedMs: number): void {
    const scarce = this.#waiting.size > 0 && this.#options.slabs.free === 0;
    for (const ingest of this.#ingests) {
      if (ingest.over !== undefined) continue;
      if (!ingest.touched || (scarce && ingest.aged)) this.#flush(ingest);
      else ingest.aged = true;
      ingest.touched = false;
      // In backpressure and after `end` the client waits for the engine.
      if (ingest.pendingWrite === undefined && !ingest.ended) ingest.pace.charge(elapsedMs, ingest.received);
    }
    this.#schedule();
  }

  #write(ingest: Ingest, chunk: Uint8Array): Promise<void> | undefined {
    assertWritable(ingest);
    const ready = ingest.ready.length;
    let copied = 0;
    // While a slab is free, no upload that could take it waits.
    while (copied < chunk.length && this.#hasSlab(ingest)) copied = this.#copy(ingest, chunk, copied);
    ingest.touched = true;
    if (copied === chunk.length) {
      if (ingest.ready.length > ready) this.#schedule();
      return undefined;
    }
    return new Promise((resolve, reject) => {
      ingest.pendingWrite = { chunk, copied, resolve, reject };
      this.#waiting.add(ingest);
      this.#schedule();
    });
  }

  #end(ingest: Ingest): Promise<Measurement> {
    assertWritable(ingest);
    return new Promise((resolve, reject) => {
      ingest.ended = true;
      ingest.pendingEnd = { resolve, reject };
      this.#ending.add(ingest);
      this.#flush(ingest);
      this.#schedule();
    });
  }

  #abort(ingest: Ingest): void {
    if (ingest.over !== undefined) return;
    this.#close(ingest, uploadAborted());
    this.#schedule();
  }

  /** @param failure why it is unknown how far the slices were processed; undefined when all were */
  #taskDone(
    group: Group,
    scratch: number,
    ingests: readonly Ingest[],
    digests: TaskOutcome['digests'],
    failure: unknown,
  ): void {
    const { scratches, credentialBytes, needsDecoder, isPaused } = this.#options;
    scratches.give(scratch);
    group.running -= 1;
    group.carried -= ingests.length;
    for (const [i, ingest] of ingests.entries()) {
      const slab = ingest.inFlight!;
      const ended = digests?.[i];
      ingest.inFlight = undefined;
      if (ingest.over !== undefined) {
        this.#release(ingest);
      } else if (failure !== undefined || ended === 'gone') {
        this.#giveUp(ingest, engineFailed(failure ?? new Error('the state of the upload is gone')));
      } else {
        if (ingest.decoder !== undefined && !needsDecoder(ingest.context)) this.#returnDecoder(ingest);
        const bytes = credentialBytes(sliceOf(ingest, slab));
        ingest.digests = ended;
        if (bytes !== undefined && !this.#keep(ingest, bytes)) {
          this.#giveUp(ingest, memoryFull());
        } else if (isPaused(ingest.context)) {
          // Others have their turn first. The slab is empty for the hash, and keeps its place for the decoder.
          ingest.ready.unshift({ address: slab.address, filled: 0 });
          group.ready.add(ingest);
          continue;
        } else if (ingest.ready.length > 0) {
          group.ready.add(ingest);
        }
      }
      // Last, and before `#schedule`: the slab's next upload overwrites what is read above.
      this.#giveBack(slab);
    }
    this.#schedule();
  }

  /**
   * Does everything that has become possible. Each step makes work for those after it and never for those
   * before, so one pass leads to the fixpoint:
   * - no upload that has ended and is hashed still waits for its measurement,
   * - no slab is free while a write waits that may take one,
   * - no write waits while nothing is ready and no task runs,
   * - no task may start that has not.
   */
  #schedule(): void {
    this.#finishEnded();
    this.#giveSlabs();
    this.#relieve();
    this.#startTasks();
    for (const ingest of this.#givenUp.splice(0)) ingest.givenUp.abort(ingest.over);
  }

  #finishEnded(): void {
    for (const ingest of this.#ending) {
      if (ingest.inFlight !== undefined || ingest.ready.length > 0) continue;
      if (this.#options.endsInTask && ingest.started && ingest.digests === undefined) {
        ingest.ready.push(NO_SLAB);
        this.#groupOf(ingest).ready.add(ingest);
        continue;
      }
      const { resolve } = ingest.pendingEnd!;
      let measurement: Measurement;
      try {
        measurement = this.#options.finish(ingest);
      } catch (error) {
        this.#giveUp(ingest, engineFailed(error));
        continue;
      }
      ingest.pendingEnd = undefined;
      this.#close(ingest, new Error('the upload has ended'));
      resolve(measurement);
    }
  }

  /** Lets writes that wait go on, slab by slab: those who hold the fewest first, then the longest waiting. */
  #giveSlabs(): void {
    while (this.#options.slabs.free > 0) {
      const ingest = this.#neediest();
      if (ingest === undefined) return;
      const write = ingest.pendingWrite!;
      write.copied = this.#copy(ingest, write.chunk, write.copied);
      ingest.touched = true;
      this.#waiting.delete(ingest);
      if (write.copied < write.chunk.length) {
        this.#waiting.add(ingest);
      } else {
        ingest.pendingWrite = undefined;
        write.resolve();
      }
    }
  }

  #neediest(): Ingest | undefined {
    let neediest: Ingest | undefined;
    let least = SLABS_PER_UPLOAD;
    for (const ingest of this.#waiting) {
      const { held } = ingest;
      if (held >= least) continue;
      neediest = ingest;
      least = held;
    }
    return neediest;
  }

  /**
   * Gives the workers the fullest slab as it is when all slabs are being filled, none is ready, and a write waits.
   * Without this a pool smaller than the number of uploads would wait until a slab happens to fill.
   */
  #relieve(): void {
    if (this.#waiting.size === 0 || this.#options.slabs.free > 0) return;
    if (this.#groups.some(({ running, ready }) => running > 0 || ready.size > 0)) return;
    let fullest: Ingest | undefined;
    let most = 0;
    for (const ingest of this.#ingests) {
      const filled = ingest.filling?.filled ?? 0;
      if (filled <= most) continue;
      fullest = ingest;
      most = filled;
    }
    if (fullest !== undefined) this.#flush(fullest);
  }

  #startTasks(): void {
    for (const [number, group] of this.#groups.entries())
      while (this.#mayStart(group)) this.#start(group, number);
  }

  /**
   * Returns true if a group may start a task. Four lanes cost little more CPU than one, so a task that carries one
   * upload wastes most of a core. Hence an idle pool takes all that is ready. While a task runs, the next one waits
   * for four. No slab waits without end, because the pool is idle when the running tasks are done. With fewer than
   * four uploads open four can never come together, and workers without a task are used at once. Where a task gains
   * nothing from company one upload is worth it.
   *
   * With eight lanes, a task that would have to wait for a worker anyway is not full at four: it waits for eight, or
   * for all uploads that no task carries.
   */
  #mayStart({ ready, running, carried, uploads }: Group): boolean {
    const { workers, maxQueue, worthwhile, lanes } = this.#options;
    if (ready.size === 0 || running >= workers + maxQueue) return false;
    if (running === 0) return true;
    if (running < workers) return ready.size >= worthwhile || uploads < worthwhile;
    const company = lanes() === LANES ? worthwhile : Math.min(lanes(), uploads - carried);
    return ready.size >= Math.max(worthwhile, company);
  }

  #start(group: Group, number: number): void {
    const { scratches, run } = this.#options;
    const most = this.#options.lanes();
    // Scratch memory belongs to the task and not to a thread: so a dead worker's replacement cannot meet it.
    const scratch = scratches.take();
    if (scratch === undefined) throw new Error('more tasks than scratch areas');
    const ingests: Ingest[] = [];
    const slices: TaskSlice[] = [];
    for (const ingest of group.ready) {
      group.ready.delete(ingest);
      ingest.inFlight = ingest.ready.shift()!;
      if (!ingest.started && ingest.wantsSamples) this.#lendDecoder(ingest, ingest.inFlight);
      slices.push({
        ...sliceOf(ingest, ingest.inFlight),
        first: !ingest.started,
        last: ingest.ended && ingest.ready.length === 0,
      });
      ingest.started = true;
      if (ingests.push(ingest) === most) break;
    }
    group.running += 1;
    group.carried += ingests.length;
    this.#tasks += 1;
    this.#lanes += ingests.length;
    run({ scratch, slices, lanes: slices.length > LANES ? 8 : 4 }, number).then(
      ({ digests }) => this.#taskDone(group, scratch, ingests, digests, undefined),
      (failure: unknown) =>
        this.#taskDone(group, scratch, ingests, undefined, failure ?? new Error('task failed')),
    );
  }

  /** Gives an upload that may be FLAC a decoder, if it may have one. Without it the samples are `decoder_busy`. */
  #lendDecoder(ingest: Ingest, { address, filled }: Slab): void {
    const { memory, decoders, lendDecoder } = this.#options;
    if (!mayBeFlac(memory.subarray(address, address + filled))) return;
    ingest.decoder = decoders.take(ingest.owner);
    if (ingest.decoder !== undefined) lendDecoder(ingest.context, ingest.decoder);
  }

  #returnDecoder(ingest: Ingest): void {
    if (ingest.decoder !== undefined) this.#options.decoders.give(ingest.owner, ingest.decoder);
    ingest.decoder = undefined;
  }

  /** Returns true if the upload already fills a slab, or if it may take one and one is free. */
  #hasSlab(ingest: Ingest): boolean {
    return ingest.filling !== undefined || (ingest.held < SLABS_PER_UPLOAD && this.#options.slabs.free > 0);
  }

  /**
   * Copies as much of the chunk as one slab takes, the one being filled or else a new one.
   * @returns the offset in `chunk` up to which it is copied
   */
  #copy(ingest: Ingest, chunk: Uint8Array, from: number): number {
    const { memory, slabs } = this.#options;
    const slab = ingest.filling ?? this.#takeSlab(ingest);
    const length = Math.min(chunk.length - from, slabs.size - slab.filled);
    const start = slab.address + slab.filled;
    // Copied as a fill: `set` goes byte by byte into shared memory where the two are not aligned alike, a
    // tenth of the speed.
    memory.fill(length === chunk.length ? chunk : chunk.subarray(from, from + length), start, start + length);
    slab.filled += length;
    ingest.received += length;
    this.#bytes += length;
    if (slab.filled === slabs.size) this.#flush(ingest);
    return from + length;
  }

  #takeSlab(ingest: Ingest): Slab {
    const address = this.#options.slabs.take();
    if (address === undefined) throw new Error('no slab is free');
    ingest.aged = false;
    ingest.filling = { address, filled: 0 };
    return ingest.filling;
  }

  #giveBack(slab: Slab): void {
    if (slab !== NO_SLAB) this.#options.slabs.give(slab.address);
  }

  /** Makes the slab that is being filled ready as it is. */
  #flush(ingest: Ingest): void {
    if (ingest.filling === undefined) return;
    ingest.ready.push(ingest.filling);
    ingest.filling = undefined;
    if (ingest.inFlight === undefined) this.#groupOf(ingest).ready.add(ingest);
  }

  /**
   * Keeps bytes of the credential. A client may send them at once and then send slowly, so they count for the
   * owner.
   */
  #keep(ingest: Ingest, bytes: Uint8Array): boolean {
    if (!this.#options.memoryOfOwners.take(ingest.owner, bytes.length)) return false;
    ingest.credential.push(bytes);
    ingest.credentialBytes += bytes.length;
    return true;
  }

  #giveUp(ingest: Ingest, reason: unknown): void {
    this.#close(ingest, reason);
    this.#givenUp.push(ingest);
  }

  /** Gives back what no thread works on; a slab in flight and the context follow when its task is done. */
  #close(ingest: Ingest, reason: unknown): void {
    ingest.over = reason;
    this.#places.remove(ingest);
    this.#largePlaces.remove(ingest);
    this.#waiting.delete(ingest);
    this.#groupOf(ingest).ready.delete(ingest);
    this.#ending.delete(ingest);
    ingest.pendingWrite?.reject(reason);
    ingest.pendingEnd?.reject(reason);
    ingest.pendingWrite = undefined;
    ingest.pendingEnd = undefined;
    for (const slab of ingest.ready.splice(0)) this.#giveBack(slab);
    if (ingest.filling !== undefined) this.#giveBack(ingest.filling);
    ingest.filling = undefined;
    if (ingest.credentialBytes > 0)
      this.#options.memoryOfOwners.giveBack(ingest.owner, ingest.credentialBytes);
    ingest.credentialBytes = 0;
    ingest.credential.length = 0;
    if (ingest.inFlight === undefined) this.#release(ingest);
  }

  #groupOf({ group }: Ingest): Group {
    return this.#groups[group]!;
  }

  /** Frees the context and the decoder of an upload that is over, once no thread works on its context. */
  #release(ingest: Ingest): void {
    this.#options.contexts.give(ingest.context);
    this.#returnDecoder(ingest);
    this.#ingests.delete(ingest);
    this.#groupOf(ingest).uploads -= 1;
    if (this.#ingests.size === 0) this.#options.occupied(false);
  }
}

/** The state of a group of workers. */
interface Group {
  /** The uploads with a ready slab and none in flight, in the order in which they became ready. */
  readonly ready: Set<Ingest>;
  running: number;
  /** The number of uploads that the running tasks carry. */
  carried: number;
  uploads: number;
}

function assertWritable({ over, ended, pendingWrite }: Ingest): void {
  if (over !== undefined) throw over;
  if (ended) throw new Error('the upload has ended');
  if (pendingWrite !== undefined) throw new Error('one write at a time');
}

function sliceOf({ context }: Ingest, { address, filled }: Slab): Slice {
  return { context, address, length: filled };
}
