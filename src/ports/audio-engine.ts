import type { Measurement } from '../domain/audio.js';

/**
 * Measures audio as it streams in: one pass, bounded memory, no bytes kept but the credential chunk.
 */
export interface AudioEngine {
  /**
   * Admits one upload.
   * @throws DomainError `unavailable` / `engine_full` with `retryAfterSeconds` when uploads in flight are at their bound.
   */
  open(): AudioIngest;
  /** Resolves when the workers run. */
  start(): Promise<void>;
  /** Lets admitted uploads finish, then stops the workers. `open` refuses from the first call on (`shutting_down`). */
  stop(): Promise<void>;
  stats(): EngineStats;
}

export interface AudioIngest {
  /**
   * Copies `chunk` (the caller may reuse it at once). A returned promise resolves when more may be written; `undefined` means
   * at once. One write at a time.
   * @throws DomainError `unavailable` / `engine_failed` when the worker that held this upload died.
   */
  write(chunk: Uint8Array): Promise<void> | undefined;
  /** Ends the file. No write may follow. */
  end(): Promise<Measurement>;
  /** Gives everything back; safe at any time, any number of times, also after `end`. */
  abort(): void;
}

export interface EngineStats {
  readonly kind: 'wasm' | 'native';
  readonly uploadsInFlight: number;
  readonly slabsInUse: number;
  readonly slabs: number;
  readonly tasks: number;
  /** Uploads carried by those tasks: lanes / tasks is the gather figure. */
  readonly lanes: number;
  readonly bytes: number;
  readonly workerRestarts: number;
}
