import {
  BYTES,
  CHUNK_AT,
  CHUNK_END,
  CONTAINER,
  DATA_OFFSET,
  DATA_SIZE,
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
  STATE,
} from '../src/engine/core-layout';
import { Container } from './container';
import { addFinding, hasFlag, setFlag } from './context';
import { Finding } from './findings';
import { State } from './state';

const OTHER: u32 = 2;

/** Adds the findings and facts that only the end of the file tells. */
export function finalize(context: usize): void {
  const bytes = load<u64>(context, BYTES);
  if (bytes < 12) addFinding(context, Finding.header_truncated, bytes);
  if (!hasFlag(context, FLAG_WALKED)) return;

  const riffEnd = load<u64>(context, RIFF_END);
  if (riffEnd != u64.MAX_VALUE) {
    if (riffEnd > bytes) addFinding(context, Finding.riff_size_past_eof, 4);
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

function unfinishedChunk(context: usize, bytes: u64): void {
  const state = load<u32>(context, STATE);
  const fill = load<u32>(context, FILL);
  if (state == State.Opaque || state == State.FileHeader) return;
  if (state == State.ChunkHeader) {
    if (fill > 0) addFinding(context, Finding.chunk_header_truncated, bytes - fill);
  } else if (state == State.Pad) {
    addFinding(context, Finding.pad_missing, bytes);
  } else if (load<u64>(context, CHUNK_END) > bytes && load<u64>(context, CHUNK_END) != u64.MAX_VALUE) {
    addFinding(context, Finding.chunk_past_end, load<u64>(context, CHUNK_AT));
  }
}

function finalizeData(context: usize, bytes: u64): void {
  const offset = load<u64>(context, DATA_OFFSET);
  const declared = load<u64>(context, DATA_SIZE);
  const open = hasFlag(context, FLAG_DATA_OPEN);
  const held = bytes - offset;
  const size = open ? held : min(declared, held);
  store<u64>(context, size, DATA_SIZE);
  if (declared == 0 && held > 0) addFinding(context, Finding.data_empty, offset - 8);
  if (!hasFlag(context, FLAG_FMT_WHOLE)) return;
  const blockAlign = <u64>load<u16>(context + FMT, 12);
  if (blockAlign == 0) return;
  if (!open && declared % blockAlign != 0) addFinding(context, Finding.data_not_aligned, offset - 8);
  // In a compressed stream a block is not a frame.
  if (load<u32>(context, ENCODING) == OTHER) return;
  setFlag(context, FLAG_FRAMES);
  store<u64>(context, size / blockAlign, FRAMES);
}
