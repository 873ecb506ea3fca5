import type { FoundAt } from './findings.js';

/**
 * The container format, by a file's first bytes after ID3v2 tags. The core parses RIFF, RF64 and BW64
 * without such a tag, and only names the others.
 */
export const CONTAINERS = [
  'unknown',
  'riff',
  'rf64',
  'bw64',
  'rifx',
  'w64',
  'aiff',
  'aifc',
  'caf',
  'mp3',
  'mp4',
  'flac',
  'ogg',
  'aac',
  'wavpack',
] as const;
export type Container = (typeof CONTAINERS)[number];

export const ENCODINGS = ['pcm', 'float', 'other'] as const;
export type Encoding = (typeof ENCODINGS)[number];

/** The fields of the fmt chunk (WAVEFORMATEX / WAVEFORMATEXTENSIBLE). */
export interface AudioFormat {
  readonly encoding: Encoding;
  /** The `wFormatTag` as written: 1, 3, 0xFFFE, ... */
  readonly formatTag: number;
  readonly extensible: boolean;
  readonly channels: number;
  readonly sampleRate: number;
  readonly byteRate: number;
  readonly blockAlign: number;
  readonly bitsPerSample: number;
  /** Present only in the extensible form. Likewise `channelMask`. */
  readonly validBitsPerSample?: number;
  readonly channelMask?: number;
}

/**
 * The fields of the bext chunk, EBU Tech 3285 (v0, v1, v2). Text is Latin-1 as written, up to its first NUL.
 */
export interface BroadcastExtension {
  readonly version: number;
  readonly description: string;
  readonly originator: string;
  readonly originatorReference: string;
  readonly originationDate: string;
  readonly originationTime: string;
  /** The samples since midnight. The count has 64 bits, so it is a bigint. */
  readonly timeReference: bigint;
  /** The SMPTE UMID, 64 bytes as hex. Versions 1 and 2 have it. */
  readonly umid?: string;
  /** The loudness members of version 2, in LUFS, LU and dBTP. A member is absent if the file has 0x7FFF. */
  readonly loudnessValue?: number;
  readonly loudnessRange?: number;
  readonly maxTruePeakLevel?: number;
  readonly maxMomentaryLoudness?: number;
  readonly maxShortTermLoudness?: number;
  /** The first 4,096 bytes of the history. */
  readonly codingHistory: string;
  /** The length of the history in the file, in bytes. */
  readonly codingHistoryBytes: number;
}

/** The fields of the ds64 chunk, EBU Tech 3306 and ITU-R BS.2088. */
export interface DataSize64 {
  readonly riffSize: bigint;
  readonly dataSize: bigint;
  readonly sampleCount: bigint;
  readonly tableLength: number;
}

export interface ChunkEntry {
  /** The chunk id: four Latin-1 characters. */
  readonly id: string;
  /** The offset of the chunk header in the file, in bytes. */
  readonly offset: number;
  /** The size field in bytes, resolved through the ds64 chunk if it applies. */
  readonly size: number;
}

/** The position and data of the only `C2PA` chunk. */
export interface CredentialChunk {
  /** The offset of the chunk header, in bytes. */
  readonly offset: number;
  /** The length of header and data in bytes: 8 + size, without the pad byte. */
  readonly length: number;
  /** The data of the chunk (the manifest store), without its header. */
  readonly data: Uint8Array;
}

/**
 * The reasons why a file has no samples digest. The index of an entry is the number that the WASM core reports, so
 * entries are only ever appended.
 */
export const SAMPLES_REASONS = [
  'container_unsupported',
  'encoding_unsupported',
  'format_unsupported',
  'padding_not_zero',
  'samples_absent',
  'samples_ambiguous',
  'samples_unsized',
  'samples_incomplete',
  'frames_incomplete',
  'frames_disagree',
  'structure_malformed',
  'stream_changes',
  'checksum_mismatch',
  'samples_too_large',
  'decoder_busy',
] as const;
export type SamplesReason = (typeof SAMPLES_REASONS)[number];

/** The samples digest of a file, or the reason why the file has none. */
export type MeasuredSamples = { readonly sha256: string } | { readonly reason: SamplesReason };

/** The measurement of a file in one pass. Digests are SHA-256 in lower-case hex. */
export interface Measurement {
  readonly bytes: number;
  /** The digest of all bytes of the file. */
  readonly sha256: string;
  /**
   * The digest of all bytes except the credential chunk (header and data). Present if there is exactly one
   * such chunk of at most 1 MiB.
   */
  readonly bindingSha256?: string;
  readonly container: Container;
  readonly format?: AudioFormat;
  /** The number of sample frames in the data chunk. */
  readonly frames?: number;
  /** The position of the first data chunk's payload, in bytes. */
  readonly data?: { readonly offset: number; readonly size: number };
  readonly bext?: BroadcastExtension;
  readonly ds64?: DataSize64;
  /** The first 256 top-level chunks in file order. */
  readonly chunks: readonly ChunkEntry[];
  /** The number of all top-level chunks, including chunks beyond the first 256. */
  readonly chunkCount: number;
  readonly credential?: CredentialChunk;
  /** Present if the opener of the upload asked for the samples. */
  readonly samples?: MeasuredSamples;
  /** The findings in the order of STRUCTURE_FINDINGS, each with the offset of its first occurrence. */
  readonly findings: readonly FoundAt[];
}

/** The part of a measurement that is kept after an upload. The bytes of the credential chunk are not kept. */
export type UploadMeasurement = Omit<Measurement, 'credential' | 'bext' | 'ds64' | 'chunks'> & {
  readonly broadcastWave: boolean;
  readonly credential?: { readonly offset: number; readonly length: number };
};
