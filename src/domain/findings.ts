/** Most top-level chunks of a file that is still walked. */
export const MAX_CHUNKS = 4096;

/**
 * Structural findings of the RIFF / RF64 / BW64 reader. Each one makes a file unreadable for an embedded
 * credential; none of them matters to a legacy pair, whose audio is opaque bytes. The index of an entry is
 * the bit that the WASM core sets, so entries are only ever appended.
 */
export const STRUCTURE_FINDINGS = [
  /** The file ends before its first 12 bytes are complete. */
  'header_truncated',
  /** `RIFF` whose form type is not `WAVE`. */
  'form_not_wave',
  /** The RIFF size field is 0 or 0xFFFFFFFF without a ds64: a stream that was never closed. */
  'riff_size_streaming',
  /** The RIFF size points past the end of the file. */
  'riff_size_past_eof',
  /** Bytes follow the end of the RIFF chunk. */
  'bytes_after_riff_end',
  /** A chunk crosses the RIFF end or the end of the file. */
  'chunk_past_end',
  /** 1 to 7 bytes are left that cannot be a chunk header. */
  'chunk_header_truncated',
  /** A chunk of odd size has no pad byte. */
  'pad_missing',
  /** The pad byte is not zero. */
  'pad_nonzero',
  /** A chunk id holds a byte outside printable ASCII, or begins with or contains an inner space. */
  'chunk_id_invalid',
  /** More than 4,096 chunks. */
  'too_many_chunks',
  'duplicate_fmt',
  'duplicate_data',
  'duplicate_ds64',
  'duplicate_bext',
  'duplicate_fact',
  'fmt_missing',
  /** The fmt chunk is shorter than 16 bytes, or its size and extension disagree. */
  'fmt_malformed',
  /**
   * Zero or absurd channels, rate or block size, or block alignment and byte rate that contradict the rest.
   */
  'fmt_inconsistent',
  /** Neither PCM nor IEEE float. */
  'codec_unsupported',
  'data_missing',
  'data_before_fmt',
  /** The data size is 0xFFFFFFFF without a ds64. */
  'data_size_streaming',
  /** The data size is 0 and bytes follow it. */
  'data_empty',
  /** The data size is not a multiple of the block alignment. */
  'data_not_aligned',
  'ds64_missing',
  'ds64_not_first',
  /** The ds64 chunk is too short, its table does not fit, or a size is beyond 2^53. */
  'ds64_malformed',
  /** A 32-bit size that is not the sentinel contradicts the ds64. */
  'ds64_mismatch',
  /** A bext chunk below 602 bytes. */
  'bext_malformed',
  /** A bext version other than 0, 1 and 2. */
  'bext_version_unknown',
  /** A LIST chunk whose members do not fill it exactly. */
  'list_malformed',
  /** LIST nesting deeper than 8. */
  'list_too_deep',
  /** More than one credential chunk. */
  'credential_duplicate',
  /** A chunk id that differs from the credential's only by case or spaces. */
  'credential_id_variant',
  /** A credential chunk inside a LIST. */
  'credential_in_list',
  /** Another chunk follows the credential. */
  'credential_not_last',
  /** A credential chunk of more than 1 MiB. */
  'credential_too_large',
] as const;
export type StructureFinding = (typeof STRUCTURE_FINDINGS)[number];
