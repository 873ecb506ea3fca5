/**
 * Reasons why a file has no samples digest: the same names in the same order as SAMPLES_REASONS in
 * src/core/domain/audio.ts (a test compares).
 */
export const enum Reason {
  container_unsupported,
  encoding_unsupported,
  format_unsupported,
  padding_not_zero,
  samples_absent,
  samples_ambiguous,
  samples_unsized,
  samples_incomplete,
  frames_incomplete,
  frames_disagree,
  structure_malformed,
  stream_changes,
  checksum_mismatch,
  samples_too_large,
  decoder_busy,
}
