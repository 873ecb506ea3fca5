import type { UploadMeasurement } from '../../core/domain/audio.js';
import type { EmbeddedParseResult } from '../../core/domain/parsed-credential.js';

export const UPLOAD_PURPOSES = ['verify', 'identify', 'verify_large', 'identify_large'] as const;
export type UploadPurpose = (typeof UPLOAD_PURPOSES)[number];

/** The largest file in bytes: exactly 65 MiB (rule 7.8). */
export const MAX_UPLOAD_BYTES = 68_157_440;
/** The default of the largest file of a large purpose, in bytes: 2 GiB (rule 7.12). */
export const DEFAULT_LARGE_BYTES = 2_147_483_648;
/** The largest limit that an operator can set for large files, in bytes: 1 TiB. */
export const MAX_LARGE_BYTES = 1_099_511_627_776;
/** The least mean rate of a large file, in bytes per second. It bounds how long a post may last (rule 7.13). */
export const LEAST_LARGE_RATE = 65_536;
/** The largest sidecar in bytes: 32 KiB (rule 2.10). No intact sidecar is larger than 20 KiB. */
export const MAX_SIDECAR_BYTES = 32_768;
/** The lifetime of a slot in seconds: a post begins within 15 minutes (rule 7.3). */
export const SLOT_LIFE_SECONDS = 15 * 60;
/** The lifetime of the measured facts after the upload, in seconds (rule 7.9). */
export const FACTS_LIFE_SECONDS = 60 * 60;

/** Returns whether a purpose allows files above 65 MiB. */
export function isLarge(purpose: UploadPurpose): boolean {
  return purpose === 'verify_large' || purpose === 'identify_large';
}

/** Returns the purpose that a verify of the file needs, if it is not `verify` (rule 10.21). */
export function neededPurpose(bytes: number): 'verify_large' | undefined {
  return bytes > MAX_UPLOAD_BYTES ? 'verify_large' : undefined;
}

/** Returns the units that a file costs: one for each 65 MiB begun (rule 6.20). */
export function unitsOf(bytes: number): number {
  return Math.max(1, Math.ceil(bytes / MAX_UPLOAD_BYTES));
}

/** Returns how many seconds longer than its slot lives the post of a file may last. */
export function extraSecondsOf(purpose: UploadPurpose, bytes: number): number {
  return isLarge(purpose) ? Math.ceil(bytes / LEAST_LARGE_RATE) : 0;
}

export interface UploadSlot {
  readonly uploadId: string;
  readonly partnerId: string;
  readonly purpose: UploadPurpose;
  /** Always present with a large purpose. */
  readonly contentLength?: number;
  /** The time of creation in unix seconds. */
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
  /** The time of the upload in unix seconds. */
  readonly uploadedAt: number;
  readonly expiresAt: number;
  readonly measurement: UploadMeasurement;
  /** Present if there was exactly one credential chunk. */
  readonly embedded?: EmbeddedParseResult;
}
