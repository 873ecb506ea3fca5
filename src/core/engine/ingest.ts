import type { Measurement } from '../domain/audio.js';
import type { HostDigests } from './core.js';
import { type PlaceHolder, SendingPace } from './places.js';

/** Size at which a task still costs little beside its hashing; twice as much gains nothing but for one upload alone. */
export const SLAB_BYTES = 512 * 1024;

/**
 * Most slabs of one upload. More than three buys nothing but memory: one is filled, one is ready, one is
 * hashed.
 */
export const SLABS_PER_UPLOAD = 3;

/** Block of the shared memory that holds bytes of one upload. */
export interface Slab {
  readonly address: number;
  filled: number;
}

/** Slab of a file that ends without bytes that are still to be hashed: none of the memory. */
export const NO_SLAB: Slab = { address: 0, filled: 0 };

/** Write that found no slab for all of its chunk. */
export interface PendingWrite {
  readonly chunk: Uint8Array;
  copied: number;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

export interface PendingEnd {
  readonly resolve: (measurement: Measurement) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Record of one upload on its way through the slabs: a slab is filled by writes, then ready, then in flight
 * (one at a time, because slices are hashed strictly in order), then given back. The record does nothing by
 * itself; the scheduler alone changes it.
 */
export class Ingest implements PlaceHolder {
  readonly owner: string;
  /** Address of the upload's context. */
  readonly context: number;
  /** Group of workers that has all tasks of the upload. */
  readonly group: number;
  readonly wantsSamples: boolean;
  /** Address of the upload's decoder. */
  decoder: number | undefined;
  readonly pace = new SendingPace();
  /** Aborts when the engine gives the upload up by itself. */
  readonly givenUp = new AbortController();
  filling: Slab | undefined;
  readonly ready: Slab[] = [];
  inFlight: Slab | undefined;
  pendingWrite: PendingWrite | undefined;
  pendingEnd: PendingEnd | undefined;
  /** Data of the credential chunk met so far. It is kept until the end of the file. */
  readonly credential: Uint8Array[] = [];
  /** The bytes of `credential`, which are counted as held for the owner. */
  credentialBytes = 0;
  received = 0;
  /** The upload was written to since the last tick. */
  touched = false;
  /** The slab being filled has seen a tick. */
  aged = false;
  ended = false;
  /** A worker has got the beginning of the file. */
  started = false;
  /** Digests of the whole file by Node, from a task that has hashed its end. */
  digests: HostDigests | undefined;
  /** Reason why nothing more is taken; from then on the upload only waits for its slab in flight. */
  over: unknown;

  constructor(owner: string, context: number, group: number, wantsSamples: boolean) {
    this.owner = owner;
    this.context = context;
    this.group = group;
    this.wantsSamples = wantsSamples;
  }

  /** Number of slabs the upload holds. */
  get held(): number {
    return this.ready.length + (this.filling === undefined ? 0 : 1) + (this.inFlight === undefined ? 0 : 1);
  }
}
