import type { UploadMeasurement } from '../../core/domain/audio.js';
import type { EmbeddedParseResult } from '../../core/domain/parsed-credential.js';

export type UploadPurpose = 'verify' | 'identify';

/** The largest file in bytes: exactly 65 MiB (rule 7.8). */
export const MAX_UPLOAD_BYTES = 68_157_440;
/** The largest sidecar in bytes: 32 KiB (rule 2.10). No intact sidecar is larger than 20 KiB. */
export const MAX_SIDECAR_BYTES = 32_768;
/** The lifetime of a slot in seconds: it accepts a post for 15 minutes (rule 7.3). */
export const SLOT_LIFE_SECONDS = 15 * 60;
/** The lifetime of the measured facts after the upload, in seconds (rule 7.9). */
export const FACTS_LIFE_SECONDS = 60 * 60;

export interface UploadSlot {
  readonly uploadId: string;
  readonly partnerId: string;
  readonly purpose: UploadPurpose;
  readonly contentLength?: number;
  /** Unix seconds. */
  readonly createdAt: number;
  /** The end of the slot in unix seconds. From this second on, the slot accepts no post. */
  readonly expiresAt: number;
}

/**
 * The facts of an upload. They are all that is kept, never the audio (rule 7.9). The bytes of the credential
 * chunk are dropped after they were read.
 */
export interface UploadFacts {
  readonly uploadId: string;
  readonly partnerId: string;
  readonly purpose: UploadPurpose;
  /** Unix seconds. */
  readonly uploadedAt: number;
  readonly expiresAt: number;
  readonly measurement: UploadMeasurement;
  /** Present if there was exactly one credential chunk. */
  readonly embedded?: EmbeddedParseResult;
}
