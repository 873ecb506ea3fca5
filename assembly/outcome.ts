import {
  BYTES,
  CHUNK_AT,
  CHUNK_END,
  CONTAINER,
  DATA_OFFSET,
  DATA_SIZE,
  DS64_APPLIES,
  ENCODING,
  FILL,
  FLAG_CREDENTIAL,
  FLAG_DATA,
  FLAG_DATA_OPEN,
  FLAG_DS64,
  FLAG_FMT,
  FLAG_FMT_WHOLE,
  FLAG_FRAMES,
  FLAG_WALKED,
  FMT,
  FMT_AT,
  FORK_AT,
  FRAMES,
  RESUME_AT,
  RIFF_END,
  RIFF_FIELD,
  STATE,
} from '../src/core/engine/core-layout';
import { Container } from './container';
import { addFinding, foundFrom, hasFlag, removeFinding, setFlag } from './context';
import { ENCODING_OTHER, isPlaceholder } from './fields';
import { Finding } from './findings';
import { State } from './state';

/** Adds the findings and facts that are known only at the end of the file. */
export function finalize(context: usize): void {
  const bytes = load<u64>(context, BYTES);
  if (bytes < 12) addFinding(context, Finding.header_truncated, bytes);
  if (!hasFlag(context, FLAG_WALKED)) return;

  const riffEnd = load<u64>(context, RIFF_END);
  const unwritten = dataNeverSized(context, bytes);
  if (unwritten) addFinding(context, Finding.data_size_streaming, load<u64>(context, DATA_OFFSET) - 8);
  if (riffEnd != u64.MAX_VALUE) {
    // The program that did not write one size did not write the other.
    const streaming = unwritten || isPlaceholder(load<u32>(context, RIFF_FIELD));
    if (riffEnd > bytes)
      addFinding(context, streaming ? Finding.riff_size_streaming : Finding.riff_size_past_eof, 4);
    if (riffEnd < bytes) addFinding(context, Finding.bytes_after_riff_end, riffEnd);
  }
  unfinishedChunk(context, bytes);
  if (load<u32>(context, CONTAINER) != Container.Riff && !hasFlag(context, FLAG_DS64))
    addFinding(context, Finding.ds64_missing, 12);
  if (!hasFlag(context, FLAG_FMT)) addFinding(context, Finding.fmt_missing, bytes);
  else if (!hasFlag(context, FLAG_FMT_WHOLE))
    addFinding(context, Finding.fmt_malformed, load<u64>(context, FMT_AT));
  if (hasFlag(context, FLAG_DATA)) finalizeData(context, bytes);
  else addFinding(context, Finding.data_missing, bytes);
  if (load<u64>(context, FORK_AT) != 0 && load<u64>(context, RESUME_AT) <= bytes)
    setFlag(context, FLAG_CREDENTIAL);
}

/** Returns true if the data chunk has a placeholder for its size, and so goes beyond the end of the file. */
function dataNeverSized(context: usize, bytes: u64): bool {
  if (!hasFlag(context, FLAG_DATA) || load<u32>(context, DS64_APPLIES) != 0) return false;
  const size = load<u64>(context, DATA_SIZE);
  return isPlaceholder(size) && load<u64>(context, DATA_OFFSET) + size > bytes;
}

function unfinishedChunk(context: usize, bytes: u64): void {
  const state = load<u32>(context, STATE);
  const fill = load<u32>(context, FILL);
  if (state == State.Opaque || state == State.FileHeader) return;
  if (state == State.ChunkHeader) {
    if (fill > 0) addFinding(context, Finding.chunk_header_truncated, bytes - fill);
  } else if (state == State.Pad) {
    addFinding(context, Finding.pad_missing, bytes);
  } else if (load<u64>(context, CHUNK_END) > bytes && load<u64>(context, CHUNK_END) != u64.MAX_VALUE) {
    const at = load<u64>(context, CHUNK_AT);
    const waits = at + 8 == load<u64>(context, DATA_OFFSET) && dataNeverSized(context, bytes);
    if (!waits) addFinding(context, Finding.chunk_past_end, at);
  }
}

/**
 * Distinguishes an empty data chunk from one whose size was never written. Samples, which make no chunks, follow
 * the second one, so the findings in them are removed.
 */
function judgeEmptyData(context: usize, offset: u64): void {
  const samples =
    foundFrom(context, Finding.chunk_past_end, offset) ||
    foundFrom(context, Finding.chunk_header_truncated, offset) ||
    foundFrom(context, Finding.chunk_id_invalid, offset);
  if (!samples) {
    addFinding(context, Finding.data_empty, offset - 8);
    return;
  }
  addFinding(context, Finding.data_size_streaming, offset - 8);
  if (foundFrom(context, Finding.chunk_past_end, offset)) removeFinding(context, Finding.chunk_past_end);
  if (foundFrom(context, Finding.chunk_header_truncated, offset))
    removeFinding(context, Finding.chunk_header_truncated);
  if (foundFrom(context, Finding.chunk_id_invalid, offset)) removeFinding(context, Finding.chunk_id_invalid);
}

function finalizeData(context: usize, bytes: u64): void {
  const offset = load<u64>(context, DATA_OFFSET);
  const declared = load<u64>(context, DATA_SIZE);
  const open = hasFlag(context, FLAG_DATA_OPEN) || dataNeverSized(context, bytes);
  const held = bytes - offset;
  const size = open ? held : min(declared, held);
  store<u64>(context, size, DATA_SIZE);
  if (declared == 0 && held > 0) judgeEmptyData(context, offset);
  if (!hasFlag(context, FLAG_FMT_WHOLE)) return;
  const blockAlign = <u64>load<u16>(context + FMT, 12);
  if (blockAlign == 0) return;
  // In a compressed stream a block is not a frame, and the last block may be short.
  if (load<u32>(context, ENCODING) == ENCODING_OTHER) return;
  if (!open && declared % blockAlign != 0) addFinding(context, Finding.data_not_aligned, offset - 8);
  setFlag(context, FLAG_FRAMES);
  store<u64>(context, size / blockAlign, FRAMES);
}
