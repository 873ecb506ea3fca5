import {
  type AudioFormat,
  type BroadcastExtension,
  type ChunkEntry,
  CONTAINERS,
  type DataSize64,
  ENCODINGS,
  type MeasuredSamples,
  type Measurement,
  SAMPLES_REASONS,
} from '../domain/audio.js';
import { STRUCTURE_FINDINGS } from '../domain/findings.js';
import * as layout from './core-layout.js';

/** The value of a loudness field that a version 2 writer leaves unset. */
const LOUDNESS_UNSET = 0x7fff;

/** A measurement as the core holds it, with the extent of the credential but not its bytes. */
export type CoreMeasurement = Omit<Measurement, 'credential'> & {
  /** The file offset of the chunk header, and the length of header (8) and data in bytes. */
  readonly credential?: { readonly offset: number; readonly length: number };
};

/**
 * Returns the extent in bytes of the first credential chunk's data in the slice just processed, relative to the
 * slice. Returns undefined if the slice holds none, or if the chunk is too large.
 */
export function credentialSpan(
  memory: WebAssembly.Memory,
  context: number,
): { offset: number; length: number } | undefined {
  const view = new DataView(memory.buffer, context, layout.CONTEXT_BYTES);
  const length = view.getUint32(layout.SPAN_LENGTH, true);
  return length === 0 ? undefined : { offset: view.getUint32(layout.SPAN_OFFSET, true), length };
}

/** The facts with which a hash outside the core computes the binding digest, with file offsets. */
export interface ForkReport {
  /** The file offset of the credential's header. */
  readonly forkAt?: number;
  /** The file offset of the first byte after its data, which may not have been read yet. */
  readonly resumeAt?: number;
  /**
   * The number of trailing bytes (0 to 7) of the file so far that may turn out to be the start of the
   * credential's header.
   */
  readonly heldBack: number;
}

/** Returns the state of the binding digest after `parse` or `update`. */
export function forkReport(memory: WebAssembly.Memory, context: number): ForkReport {
  const view = new DataView(memory.buffer, context, layout.CONTEXT_BYTES);
  const heldBack = view.getUint32(layout.HELD, true);
  const forkAt = number64(view, layout.FORK_AT);
  return forkAt === 0 ? { heldBack } : { forkAt, resumeAt: number64(view, layout.RESUME_AT), heldBack };
}

/** Gives a fresh context a decoder: DECODER_BYTES at a multiple of 8, which are the context's until its end. */
export function lendDecoder(memory: WebAssembly.Memory, context: number, decoder: number): void {
  new DataView(memory.buffer, context).setUint32(layout.DECODER, decoder, true);
}

/** Returns true if the file of the context is FLAC, or may still be. */
export function needsDecoder(memory: WebAssembly.Memory, context: number): boolean {
  const reader = new DataView(memory.buffer, context).getUint32(layout.READER, true);
  return reader === layout.READER_FLAC || reader === layout.READER_PAUSED || reader === layout.READER_WAITING;
}

/**
 * Returns true if the slice that was processed last has bytes that are not decoded yet. They must stay where they are,
 * and the next slice of the context must be empty and have the same address.
 */
export function isPaused(memory: WebAssembly.Memory, context: number): boolean {
  return new DataView(memory.buffer, context).getUint32(layout.READER, true) === layout.READER_PAUSED;
}

/** The facts that a hash outside the core needs for the samples digest. */
export interface SamplesReport {
  /** The header of the digest, which has the bytes of a frame. */
  readonly head: Uint8Array;
  /** A sample that began in an earlier slice. */
  readonly joined: Uint8Array;
  /** The samples in the slice, as bytes from its beginning. */
  readonly offset: number;
  readonly length: number;
}

/** Returns the report after `samples`, or undefined if the digest has not begun, is given up, or is of FLAC. */
export function samplesReport(memory: WebAssembly.Memory, context: number): SamplesReport | undefined {
  const view = new DataView(memory.buffer, context, layout.CONTEXT_BYTES);
  const u32 = (at: number): number => view.getUint32(at, true);
  if (u32(layout.READER) !== layout.READER_PCM) return undefined;
  const joined = u32(layout.SAMPLE_IS_JOINED) === 0 ? 0 : u32(layout.SAMPLE_TAKEN);
  return {
    head: new Uint8Array(memory.buffer, context + layout.SAMPLES_HEAD, layout.SAMPLES_HEAD_BYTES),
    joined: new Uint8Array(memory.buffer, context + layout.SAMPLE_JOINED, joined),
    offset: u32(layout.RUN_OFFSET),
    length: u32(layout.RUN_LENGTH),
  };
}

/** The digests (SHA-256, lower-case hex) of a file that the host hashed. */
export interface HostDigests {
  readonly sha256: string;
  readonly bindingSha256?: string;
  /** Present if the samples are runs of the file. */
  readonly samplesSha256?: string;
}

/**
 * Returns the measurement of a finished context.
 * @param parts data of the credential chunk, which only the host has kept
 * @param digests for an engine that hashed elsewhere; without them the core's own
 */
export function completeMeasurement(
  memory: WebAssembly.Memory,
  context: number,
  parts: readonly Uint8Array[],
  digests?: HostDigests,
): Measurement {
  const { credential, ...measured } = readMeasurement(memory, context, digests);
  if (credential === undefined) return measured;
  const data = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    data.set(part, at);
    at += part.length;
  }
  // Header and data. Anything else means that the host lost bytes the core has seen.
  if (data.length + 8 !== credential.length)
    throw new Error(
      `the credential chunk has ${credential.length} bytes with its header of 8, but the host kept ${data.length} bytes of its data`,
    );
  return { ...measured, credential: { ...credential, data } };
}

/** Returns the measurement as the finished context holds it. @param digests as `completeMeasurement` takes them */
export function readMeasurement(
  memory: WebAssembly.Memory,
  context: number,
  digests?: HostDigests,
): CoreMeasurement {
  // A copy, because text is not decoded from shared memory.
  const bytes = Buffer.from(new Uint8Array(memory.buffer, context, layout.CONTEXT_BYTES).slice().buffer);
  const view = new DataView(bytes.buffer);
  const seen = view.getUint32(layout.FLAGS, true);
  const has = (flag: number): boolean => (seen & flag) !== 0;
  const u64 = (at: number): number => number64(view, at);

  const chunkCount = view.getUint32(layout.CHUNK_COUNT, true);
  const whole = has(layout.FLAG_CREDENTIAL);
  const only = whole && view.getUint32(layout.CREDENTIALS, true) === 1;
  const own = { sha256: hex(bytes, layout.WHOLE, 32), bindingSha256: hex(bytes, layout.BINDING, 32) };
  const { sha256, bindingSha256, samplesSha256 }: HostDigests = digests ?? own;
  const forkAt = u64(layout.FORK_AT);

  return {
    bytes: u64(layout.BYTES),
    sha256,
    ...(only && bindingSha256 !== undefined && { bindingSha256 }),
    container: CONTAINERS[view.getUint32(layout.CONTAINER, true)] ?? 'unknown',
    ...(has(layout.FLAG_FMT_WHOLE) && { format: readFormat(view) }),
    ...(has(layout.FLAG_FRAMES) && { frames: u64(layout.FRAMES) }),
    ...(has(layout.FLAG_DATA) && { data: { offset: u64(layout.DATA_OFFSET), size: u64(layout.DATA_SIZE) } }),
    ...(has(layout.FLAG_BEXT_WHOLE) && { bext: readBext(bytes, view) }),
    ...(has(layout.FLAG_DS64_WHOLE) && { ds64: readDs64(view) }),
    chunks: readChunks(bytes, view, Math.min(chunkCount, layout.CHUNK_TABLE_LIMIT)),
    chunkCount,
    ...(whole && { credential: { offset: forkAt, length: u64(layout.RESUME_AT) - forkAt } }),
    ...readSamples(bytes, view, samplesSha256),
    findings: readFindings(view),
  };
}

/** Reads a count of 64 bits as a number. The core keeps every reported count below 2^53. */
function number64(view: DataView, at: number): number {
  return Number(view.getBigUint64(at, true));
}

function hex(bytes: Buffer, at: number, length: number): string {
  return bytes.toString('hex', at, at + length);
}

function readFormat(view: DataView): AudioFormat {
  const formatTag = view.getUint16(layout.FMT, true);
  const extensible = formatTag === 0xfffe;
  return {
    encoding: ENCODINGS[view.getUint32(layout.ENCODING, true)] ?? 'other',
    formatTag,
    extensible,
    channels: view.getUint16(layout.FMT + 2, true),
    sampleRate: view.getUint32(layout.FMT + 4, true),
    byteRate: view.getUint32(layout.FMT + 8, true),
    blockAlign: view.getUint16(layout.FMT + 12, true),
    bitsPerSample: view.getUint16(layout.FMT + 14, true),
    ...(extensible &&
      view.getUint32(layout.FMT_SIZE, true) >= layout.FMT_BYTES && {
        validBitsPerSample: view.getUint16(layout.FMT + 18, true),
        channelMask: view.getUint32(layout.FMT + 20, true),
      }),
  };
}

function readBext(bytes: Buffer, view: DataView): BroadcastExtension {
  const bext = layout.BEXT;
  const text = (at: number, length: number): string => {
    const field = bytes.subarray(bext + at, bext + at + length);
    const end = field.indexOf(0);
    return field.toString('latin1', 0, end === -1 ? length : end);
  };
  const version = view.getUint16(bext + 346, true);
  const codingHistoryBytes = number64(view, layout.BEXT_SIZE) - layout.BEXT_FIXED_BYTES;
  return {
    version,
    description: text(0, 256),
    originator: text(256, 32),
    originatorReference: text(288, 32),
    originationDate: text(320, 10),
    originationTime: text(330, 8),
    timeReference: view.getBigUint64(bext + 338, true),
    ...((version === 1 || version === 2) && { umid: hex(bytes, bext + 348, 64) }),
    ...(version === 2 && readLoudness(view)),
    codingHistory: text(layout.BEXT_FIXED_BYTES, Math.min(codingHistoryBytes, layout.CODING_HISTORY_LIMIT)),
    codingHistoryBytes,
  };
}

function readLoudness(view: DataView): Partial<BroadcastExtension> {
  const names = [
    'loudnessValue',
    'loudnessRange',
    'maxTruePeakLevel',
    'maxMomentaryLoudness',
    'maxShortTermLoudness',
  ] as const;
  const written = names.map((name, i) => [name, view.getInt16(layout.BEXT + 412 + i * 2, true)] as const);
  return Object.fromEntries(
    written.filter(([, value]) => value !== LOUDNESS_UNSET).map(([name, value]) => [name, value / 100]),
  );
}

function readDs64(view: DataView): DataSize64 {
  return {
    riffSize: view.getBigUint64(layout.DS64, true),
    dataSize: view.getBigUint64(layout.DS64 + 8, true),
    sampleCount: view.getBigUint64(layout.DS64 + 16, true),
    tableLength: view.getUint32(layout.DS64_TABLE_LENGTH, true),
  };
}

function readSamples(
  bytes: Buffer,
  view: DataView,
  hashedByHost: string | undefined,
): { readonly samples?: MeasuredSamples } {
  const reason = SAMPLES_REASONS[view.getUint32(layout.SAMPLES_REASON, true) - 1];
  if (reason !== undefined) return { samples: { reason } };
  if (view.getUint32(layout.READER, true) === layout.READER_NONE) return {};
  return { samples: { sha256: hashedByHost ?? hex(bytes, layout.SAMPLES, 32) } };
}

function readChunks(bytes: Buffer, view: DataView, count: number): ChunkEntry[] {
  return Array.from({ length: count }, (_, i) => {
    const at = layout.CHUNKS + i * layout.CHUNK_ENTRY_BYTES;
    return {
      id: bytes.toString('latin1', at, at + 4),
      offset: number64(view, at + 8),
      size: number64(view, at + 16),
    };
  });
}

function readFindings(view: DataView): Measurement['findings'] {
  const bits = view.getBigUint64(layout.FINDINGS, true);
  return STRUCTURE_FINDINGS.flatMap((slug, i) =>
    ((bits >> BigInt(i)) & 1n) === 0n
      ? []
      : [{ slug, offset: number64(view, layout.FINDING_OFFSETS + i * 8) }],
  );
}
