import type { Measurement } from '../domain/audio.js';

/**
 * Engine that measures audio as it streams in: one pass, bounded memory, no bytes kept but the credential
 * chunk.
 */
export interface AudioEngine {
  /**
   * Admits one upload. When uploads in flight are at their bound the slowest upload of an owner above its
   * fair share, or one that stands still, loses its place to it.
   * @param owner partner or tool that sends the upload; places are shared between owners
   * @throws DomainError `unavailable` / `engine_full` with `retryAfterSeconds` when no upload has to give
   * way.
   */
  open(owner: string): AudioIngest;
  /**
   * Resolves when the workers run; rejects when the audio core cannot be loaded or no worker can run it.
   * Once, before `open`.
   */
  start(): Promise<void>;
  /**
   * Lets admitted uploads finish, then stops the workers: the caller aborts those it will not wait for.
   * `open` refuses from the first call on (`unavailable` / `shutting_down`).
   */
  stop(): Promise<void>;
  stats(): EngineStats;
}

export interface AudioIngest {
  /**
   * Aborts when the engine gives this upload up by itself, with the DomainError of `write` as its reason: cut
   * the client then, or a caller that waits for its next byte never learns of the loss. The caller's own
   * `abort()` does not trigger it.
   */
  readonly signal: AbortSignal;
  /**
   * Copies `chunk`. `undefined` means that all of it is copied and more may be written at once; a returned
   * promise means backpressure, and `chunk` belongs to the engine until the promise settles. One write at a
   * time.
   * @throws DomainError, thrown or as the promise's rejection: `unavailable` / `engine_failed` when the
   * worker that held this upload died, `unavailable` / `engine_full` when the upload lost its place,
   * `invalid_request` / `upload_aborted` after `abort`. From then on the upload holds nothing.
   */
  write(chunk: Uint8Array): Promise<void> | undefined;
  /** Ends the file, after the last write has settled. No write may follow. Rejects as `write` does. */
  end(): Promise<Measurement>;
  /**
   * Gives everything back; safe at any time, any number of times, also after `end`. Promises that are pending
   * reject.
   */
  abort(): void;
}

export interface EngineStats {
  readonly kind: 'wasm' | 'native';
  readonly uploadsInFlight: number;
  readonly slabsInUse: number;
  readonly slabs: number;
  readonly tasks: number;
  /** Uploads carried by those tasks: lanes / tasks tells how well they are batched. */
  readonly lanes: number;
  /** Bytes taken in. */
  readonly bytes: number;
  readonly workerRestarts: number;
}
