import type { StructureFinding } from './findings.js';

/**
 * Container that a file's first bytes announce. The core walks RIFF, RF64 and BW64; the others are only
 * named.
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
] as const;
export type Container = (typeof CONTAINERS)[number];

export const ENCODINGS = ['pcm', 'float', 'other'] as const;
export type Encoding = (typeof ENCODINGS)[number];

/** Fields of the fmt chunk (WAVEFORMATEX / WAVEFORMATEXTENSIBLE). */
export interface AudioFormat {
  readonly encoding: Encoding;
  /** wFormatTag as written: 1, 3, 0xFFFE, ... */
  readonly formatTag: number;
  readonly extensible: boolean;
  readonly channels: number;
  readonly sampleRate: number;
  readonly byteRate: number;
  readonly blockAlign: number;
  readonly bitsPerSample: number;
  /** Member of the extensible form only. */
  readonly validBitsPerSample?: number;
  readonly channelMask?: number;
}

/**
 * Fields of the bext chunk, EBU Tech 3285 (v0, v1, v2). Text is as written, up to its first NUL, as Latin-1.
 */
export interface BroadcastExtension {
  readonly version: number;
  readonly description: string;
  readonly originator: string;
  readonly originatorReference: string;
  readonly originationDate: string;
  readonly originationTime: string;
  /** Samples since midnight; a 64-bit count, so a bigint. */
  readonly timeReference: bigint;
  /** SMPTE UMID, 64 bytes as hex; version 1 and 2. */
  readonly umid?: string;
  /** Loudness of version 2, in LUFS, LU and dBTP; absent where the writer left 0x7FFF. */
  readonly loudnessValue?: number;
  readonly loudnessRange?: number;
  readonly maxTruePeakLevel?: number;
  readonly maxMomentaryLoudness?: number;
  readonly maxShortTermLoudness?: number;
  /** First 4,096 bytes of the history. */
  readonly codingHistory: string;
  /** Length in the file, in bytes. */
  readonly codingHistoryBytes: number;
}

/** Fields of the ds64 chunk, EBU Tech 3306 and ITU-R BS.2088. */
export interface DataSize64 {
  readonly riffSize: bigint;
  readonly dataSize: bigint;
  readonly sampleCount: bigint;
  readonly tableLength: number;
}

export interface ChunkEntry {
  /** Chunk id: four characters, Latin-1. */
  readonly id: string;
  /** Offset of the chunk header in the file. */
  readonly offset: number;
  /** Size field, resolved through the ds64 where that applies. */
  readonly size: number;
}

/** Place and data of the one `C2PA` chunk. */
export interface CredentialChunk {
  /** Offset of the chunk header. */
  readonly offset: number;
  /** Length of header and data, 8 + size, without the pad byte. */
  readonly length: number;
  /** Data of the chunk (the manifest store), without its header. */
  readonly data: Uint8Array;
}

/** Measurement of a file in one pass. Digests are lower-case hex of SHA-256. */
export interface Measurement {
  readonly bytes: number;
  /** Digest of every byte of the file. */
  readonly sha256: string;
  /**
   * Digest of every byte but the credential chunk (header and data); present when there is exactly one such
   * chunk of at most 1 MiB.
   */
  readonly bindingSha256?: string;
  readonly container: Container;
  readonly format?: AudioFormat;
  /** Sample frames of the data chunk. */
  readonly frames?: number;
  /** Extent of the first data chunk's payload. */
  readonly data?: { readonly offset: number; readonly size: number };
  readonly bext?: BroadcastExtension;
  readonly ds64?: DataSize64;
  /** First 256 top-level chunks in file order. */
  readonly chunks: readonly ChunkEntry[];
  /** Number of all top-level chunks, also of those beyond the table. */
  readonly chunkCount: number;
  readonly credential?: CredentialChunk;
  /** Findings in the order of STRUCTURE_FINDINGS, each with the offset of its first occurrence. */
  readonly findings: readonly { readonly slug: StructureFinding; readonly offset: number }[];
}
