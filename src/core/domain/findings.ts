/** The most top-level chunks of a file. The reader stops after them. */
export const MAX_CHUNKS = 4096;

/**
 * The structural findings of the RIFF / RF64 / BW64 reader. A finding that makes two readers disagree about
 * which bytes are audio is a break, and makes a file unreadable for an embedded credential. Every other finding
 * is harmless (HARMLESS_FINDINGS). No finding matters to a legacy pair, whose audio is opaque bytes. The index
 * of an entry is the bit that the WASM core sets, so entries are only ever appended.
 */
export const STRUCTURE_FINDINGS = [
  /** The file ends before its first 12 bytes are complete. */
  'header_truncated',
  /** The form type of the `RIFF` file is not `WAVE`. */
  'form_not_wave',
  /** The RIFF size field is 0 or 0xFFFFFFFF without a ds64: a stream that was never closed. */
  'riff_size_streaming',
  /** The RIFF size points past the end of the file. */
  'riff_size_past_eof',
  /** Bytes follow the end of the RIFF chunk. */
  'bytes_after_riff_end',
  /** A chunk crosses the RIFF end or the end of the file. */
  'chunk_past_end',
  /** The last 1 to 7 bytes are too short for a chunk header. */
  'chunk_header_truncated',
  /** A chunk with an odd size has no pad byte. */
  'pad_missing',
  /** The pad byte of a chunk is not zero. */
  'pad_nonzero',
  /** A chunk id has a byte outside printable ASCII, starts with a space, or contains an inner space. */
  'chunk_id_invalid',
  /** The file has more than 4,096 chunks. */
  'too_many_chunks',
  'duplicate_fmt',
  'duplicate_data',
  'duplicate_ds64',
  'duplicate_bext',
  'duplicate_fact',
  'fmt_missing',
  /**
   * The fmt chunk is shorter than 16 bytes, longer than 64 KiB, or odd, or it lacks the extension that its tag
   * promises. A length that cbSize states is accepted although it is odd or longer.
   */
  'fmt_malformed',
  /**
   * Channels, rate or block size are zero or impossible, or block alignment and byte rate contradict them.
   */
  'fmt_inconsistent',
  /** The audio is neither PCM nor IEEE float. */
  'codec_unsupported',
  'data_missing',
  'data_before_fmt',
  /**
   * The data size is a placeholder of a stream: 0xFFFFFFFF without a ds64, 0xFFFF1000 or 0x7FFFF000 beyond the
   * end of the file, or 0 before bytes that are no chunks.
   */
  'data_size_streaming',
  /** The data size is 0, and other chunks follow. Some readers take them for audio. */
  'data_empty',
  /** The data size is not a multiple of the block alignment. */
  'data_not_aligned',
  'ds64_missing',
  'ds64_not_first',
  /** The ds64 chunk is too short, its table does not fit, or a size is beyond 2^53. */
  'ds64_malformed',
  /** A 32-bit size that is not the sentinel contradicts the ds64. */
  'ds64_mismatch',
  /** The bext chunk is shorter than 602 bytes. */
  'bext_malformed',
  /** The bext version is not 0, 1 or 2. */
  'bext_version_unknown',
  /** The members of a LIST chunk do not fill it exactly. */
  'list_malformed',
  /** LIST chunks are nested more than 8 levels deep. */
  'list_too_deep',
  /** The file has more than one credential chunk. */
  'credential_duplicate',
  /** A chunk id differs from the id of the credential chunk only in case or spaces. */
  'credential_id_variant',
  /** A credential chunk is inside a LIST chunk. */
  'credential_in_list',
  /** Another chunk follows the credential chunk. */
  'credential_not_last',
  /** The credential chunk is larger than 1 MiB. */
  'credential_too_large',
  /** The size and the cbSize of the fmt chunk disagree. Readers go by the size. */
  'fmt_size_mismatch',
  /** The pad byte of a member of a LIST chunk is not zero. */
  'list_pad_nonzero',
  /**
   * A LIST chunk contains the id `data`. libsndfile takes the bytes after it for the audio. Earlier versions
   * issued such files, so the finding changes no verdict, but no further file is issued.
   */
  'data_in_list',
  /** An ID3v2 tag precedes the RIFF header, so the file is not parsed. */
  'tag_before_riff',
] as const;
export type StructureFinding = (typeof STRUCTURE_FINDINGS)[number];

/**
 * The findings that change no verdict: the bytes concerned are hashed like all others, and every reader finds
 * the same audio.
 */
export const HARMLESS_FINDINGS = [
  'duplicate_bext',
  'duplicate_fact',
  'codec_unsupported',
  'bext_malformed',
  'bext_version_unknown',
  'list_malformed',
  'list_too_deep',
  'fmt_size_mismatch',
  'list_pad_nonzero',
  'data_in_list',
] as const satisfies readonly StructureFinding[];
export type HarmlessFinding = (typeof HARMLESS_FINDINGS)[number];
/** A finding that makes a file unreadable for an embedded credential. */
export type StructureBreak = Exclude<StructureFinding, HarmlessFinding>;

export interface FoundAt<Slug extends StructureFinding = StructureFinding> {
  readonly slug: Slug;
  /** The offset of the first occurrence in the file, in bytes. */
  readonly offset: number;
}

export function isHarmless(found: FoundAt): found is FoundAt<HarmlessFinding> {
  return (HARMLESS_FINDINGS as readonly StructureFinding[]).includes(found.slug);
}

export function isBreak(found: FoundAt): found is FoundAt<StructureBreak> {
  return !isHarmless(found);
}

/** A finding with the bytes that are in the file, and what a sound file has there. */
export interface ExplainedFinding<Slug extends StructureFinding = StructureFinding> extends FoundAt<Slug> {
  readonly found: string;
  readonly expected: string;
}

/** Returns a finding with its offset and both descriptions, as messages show it. */
export function describeFinding({ slug, offset, found, expected }: ExplainedFinding): string {
  return `${slug} (byte ${offset}: found ${found}, expected ${expected})`;
}
