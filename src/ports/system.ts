import type { IdKind } from '../domain/identifiers.js';

export interface Ids {
  next(kind: IdKind): string;
  /** Cryptographically random bytes. */
  random(length: number): Uint8Array;
}

export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
}
