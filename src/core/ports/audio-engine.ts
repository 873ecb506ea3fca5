import type { Measurement } from '../domain/audio.js';

/**
 * Measures audio as it streams in, in one pass with bounded memory. Keeps no bytes except the credential
 * chunk.
 */
export interface AudioEngine {
  /**
   * Admits one upload. When all slots are taken, evicts the slowest upload of an owner above its fair share,
   * or a stalled upload.
   * @param owner the partner or tool that sends the upload. Slots are shared fairly between owners.
   * @throws DomainError `unavailable` / `engine_full` with `retryAfterSeconds` when no upload can be evicted
   */
  open(owner: string, options?: IngestOptions): AudioIngest;
  /**
   * Starts the workers. Call it once, before `open`. Resolves when the workers run. Rejects when the audio
   * core cannot be loaded or no worker can run it.
   */
  start(): Promise<void>;
  /**
   * Lets admitted uploads finish, then stops the workers. The caller must abort uploads that it will not wait
   * for. `open` refuses new uploads from the first call on (`unavailable` / `shutting_down`).
   */
  stop(): Promise<void>;
  stats(): EngineStats;
}

export interface IngestOptions {
  /** Hashes the samples too, which costs about as much CPU as the file. The measurement then has `samples`. */
  readonly samples?: boolean;
  /**
   * The size: `large` for a file whose upload may take long. All such files together take at most half of the slots,
   * or one if half is less. Owners share these slots in the same way.
   */
  readonly size?: 'large' | undefined;
}

/** Limits the memory that a process holds for each partner. */
export interface HeldMemory {
  /**
   * Counts the bytes as held.
   * @returns false, without counting, when the holder may not have so many
   */
  take(holder: string, bytes: number): boolean;
  giveBack(holder: string, bytes: number): void;
}

export interface AudioIngest {
  /**
   * Aborts when the engine itself aborts this upload. The signal's reason is the DomainError of `write`. The
   * caller must then cut the client, or a caller that waits for the next byte never learns of the abort. The
   * caller's own `abort()` does not trigger this signal.
   */
  readonly signal: AbortSignal;
  /**
   * Copies `chunk`. Only one write may run at a time.
   * @returns undefined when all of the chunk was copied and the next write may follow at once. A promise
   * means backpressure, and the engine owns `chunk` until the promise settles.
   * @throws DomainError, thrown or as the promise's rejection. `unavailable` / `engine_failed` when the
   * worker of this upload died, `unavailable` / `engine_full` when the upload was evicted, `unavailable` /
   * `ingress_full` when its owner holds too many credentials, `invalid_request` / `upload_aborted` after
   * `abort`. After an error the upload holds nothing.
   */
  write(chunk: Uint8Array): Promise<void> | undefined;
  /**
   * Ends the file. Call it after the last write has settled, with no write after it. Rejects as `write` does.
   */
  end(): Promise<Measurement>;
  /**
   * Releases all resources of the upload. May be called at any time and repeatedly, also after `end`. Pending
   * promises reject.
   */
  abort(): void;
}

export interface EngineStats {
  readonly kind: 'wasm' | 'native';
  /** The number of uploads that the kernel hashes side by side: 4 or 8, or 1 without a kernel of lanes. */
  readonly kernelLanes: 1 | 4 | 8;
  /** The number of uploads whose digests differed between eight lanes and Node's SHA-256. */
  readonly hashDifferences: number;
  readonly uploadsInFlight: number;
  readonly slabsInUse: number;
  readonly slabs: number;
  readonly tasks: number;
  /** The number of uploads processed by those tasks. `lanes / tasks` shows how well uploads are batched. */
  readonly lanes: number;
  /** The number of bytes of audio that the engine received. */
  readonly bytes: number;
  readonly workerRestarts: number;
}

/** The reasons why a form or an upload was displaced by another. */
export const DISPLACEMENTS = [
  /** The oldest unauthenticated form, when all form permits were taken. */
  'form_oldest',
  /** The oldest unauthenticated form of an address that had too many. */
  'form_of_address',
  /** The slowest upload of a partner above its fair share of the engine. */
  'upload_over_share',
  /** A stalled upload, when the engine had no free slot. */
  'upload_stalled',
  /** The upload that had stalled for longest, of an address with too many stalled uploads. */
  'upload_of_address',
] as const;
export type Displacement = (typeof DISPLACEMENTS)[number];

/** What an engine reports about itself. */
export interface EngineObserver {
  fault(place: 'engine', error: unknown): void;
  displaced(reason: Displacement): void;
}
