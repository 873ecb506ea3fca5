import type { Measurement } from './audio.js';
import type { EmbeddedParseResult } from './parsed-credential.js';

export type UploadPurpose = 'verify' | 'identify';

/** 65 MiB, exact: this many bytes pass, one more does not. */
export const MAX_UPLOAD_BYTES = 68_157_440;
/** A slot may be posted to for 15 minutes. */
export const SLOT_LIFE_SECONDS = 15 * 60;
/** Measured facts stay readable for one hour after the upload. */
export const FACTS_LIFE_SECONDS = 60 * 60;

export interface UploadSlot {
  readonly uploadId: string;
  readonly partnerId: string;
  readonly purpose: UploadPurpose;
  readonly contentLength?: number;
  /** Unix seconds. */
  readonly createdAt: number;
  /** Unix seconds; from this second on the slot takes no post. */
  readonly expiresAt: number;
}

/**
 * What remains of an upload: never the audio. The credential chunk's own bytes are dropped once they have
 * been read.
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
