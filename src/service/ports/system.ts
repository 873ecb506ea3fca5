import type { IdKind } from '../../core/domain/identifiers.js';

export interface Ids {
  next(kind: IdKind): string;
  /** Returns cryptographically random bytes. */
  random(length: number): Uint8Array;
}

export interface Clock {
  /** Returns the time in milliseconds since the unix epoch. */
  now(): number;
}
