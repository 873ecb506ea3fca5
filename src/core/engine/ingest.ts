import type { Measurement } from '../domain/audio.js';
import type { HostDigests } from './core.js';
import { type PlaceHolder, SendingPace } from './places.js';

/** The size in bytes at which a task costs little beside its hashing. Twice as much gains only for a lone upload. */
export const SLAB_BYTES = 512 * 1024;

/**
 * The largest number of slabs of one upload. More than three would only cost memory: one is filled, one is ready,
 * one is hashed.
 */
export const SLABS_PER_UPLOAD = 3;

/** A block of the shared memory that holds bytes of one upload. */
export interface Slab {
  readonly address: number;
  filled: number;
}

/** The slab of a file that ends without bytes that are still to be hashed. It takes no memory. */
export const NO_SLAB: Slab = { address: 0, filled: 0 };

/** A write that found no slab for all of its chunk. */
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
 * The record of one upload on its way through the slabs: a slab is filled by writes, then ready, then in flight
 * (one at a time, because slices are hashed strictly in order), then given back. The record does nothing by
 * itself; the scheduler alone changes it.
 */
export class Ingest implements PlaceHolder {
  readonly owner: string;
  /** The address of the upload's context. */
  readonly context: number;
  /** The index of the group of workers that has all tasks of the upload. */
  readonly group: number;
  readonly wantsSamples: boolean;
  /** The address of the upload's decoder. */
  decoder: number | undefined;
  readonly pace = new SendingPace();
  /** Aborts when the engine gives the upload up by itself. */
  readonly givenUp = new AbortController();
  filling: Slab | undefined;
  readonly ready: Slab[] = [];
  inFlight: Slab | undefined;
  pendingWrite: PendingWrite | undefined;
  pendingEnd: PendingEnd | undefined;
  /** The data of the credential chunk so far, in pieces. It is kept until the end of the file. */
  readonly credential: Uint8Array[] = [];
  /** The bytes of `credential`, which are counted as held for the owner. */
  credentialBytes = 0;
  received = 0;
  /** True if the upload was written to since the last tick. */
  touched = false;
  /** True if the slab that is being filled has seen a tick. */
  aged = false;
  ended = false;
  /** True if a worker has got the beginning of the file. */
  started = false;
  /** The digests of the whole file by Node, from a task that has hashed its end. */
  digests: HostDigests | undefined;
  /** The reason why nothing more is taken. From then on the upload only waits for its slab in flight. */
  over: unknown;

  constructor(owner: string, context: number, group: number, wantsSamples: boolean) {
    this.owner = owner;
    this.context = context;
    this.group = group;
    this.wantsSamples = wantsSamples;
  }

  /** The number of slabs that the upload holds. */
  get held(): number {
    return this.ready.length + (this.filling === undefined ? 0 : 1) + (this.inFlight === undefined ? 0 : 1);
  }
}
