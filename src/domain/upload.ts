import type { Measurement } from './audio.js';
import type { EmbeddedParseResult } from './parsed-credential.js';

export type UploadPurpose = 'verify' | 'identify';

/** Most bytes of a file: 65 MiB, exactly (rule 7.8). */
export const MAX_UPLOAD_BYTES = 68_157_440;
/** Life of a slot: it takes a post for 15 minutes (rule 7.3). */
export const SLOT_LIFE_SECONDS = 15 * 60;
/** Life of measured facts after the upload (rule 7.9). */
export const FACTS_LIFE_SECONDS = 60 * 60;

export interface UploadSlot {
  readonly uploadId: string;
  readonly partnerId: string;
  readonly purpose: UploadPurpose;
  readonly contentLength?: number;
  /** Unix seconds. */
  readonly createdAt: number;
  /** End of the slot in unix seconds; from this second on the slot takes no post. */
  readonly expiresAt: number;
}

/**
 * Facts of an upload: all that remains of it, never the audio (rule 7.9). The credential chunk's own bytes
 * are dropped once they have been read.
 */
export interface UploadFacts {
  readonly uploadId: string;
  readonly partnerId: string;
  readonly purpose: UploadPurpose;
  /** Unix seconds. */
  readonly uploadedAt: number;
  readonly expiresAt: number;
  readonly measurement: Omit<Measurement, 'credential' | 'bext' | 'ds64' | 'chunks'> & {
    readonly broadcastWave: boolean;
    readonly credential?: { readonly offset: number; readonly length: number };
  };
  /** Present when there was exactly one credential chunk. */
  readonly embedded?: EmbeddedParseResult;
}
