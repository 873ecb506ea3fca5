import {
  BYTES,
  CHUNK_AT,
  CHUNK_END,
  CONTAINER,
  DATA_OFFSET,
  DATA_SIZE,
  ENCODING,
  FILL,
  FMT,
  FMT_AT,
  FORK_AT,
  FRAMES,
  RESUME_AT,
  RIFF_END,
  SEEN_CREDENTIAL,
  SEEN_DATA,
  SEEN_DATA_OPEN,
  SEEN_DS64,
  SEEN_FMT,
  SEEN_FMT_WHOLE,
  SEEN_FRAMES,
  SEEN_WALKED,
  STATE,
} from '../src/engine/core-layout';
import { Container } from './container';
import { Finding } from './findings';
import { note, see, seen } from './notes';
import { State } from './state';

const OTHER: u32 = 2;

/** What only the end of the file tells. */
export function settle(context: usize): void {
  const bytes = load<u64>(context, BYTES);
  if (bytes < 12) note(context, Finding.header_truncated, bytes);
  if (!seen(context, SEEN_WALKED)) return;

  const riffEnd = load<u64>(context, RIFF_END);
  if (riffEnd != u64.MAX_VALUE) {
    if (riffEnd > bytes) note(context, Finding.riff_size_past_eof, 4);
    if (riffEnd < bytes) note(context, Finding.bytes_after_riff_end, riffEnd);
  }
  unfinishedChunk(context, bytes);
  if (load<u32>(context, CONTAINER) != Container.Riff && !seen(context, SEEN_DS64))
    note(context, Finding.ds64_missing, 12);
  if (!seen(context, SEEN_FMT)) note(context, Finding.fmt_missing, bytes);
  else if (!seen(context, SEEN_FMT_WHOLE)) note(context, Finding.fmt_malformed, load<u64>(context, FMT_AT));
  if (seen(context, SEEN_DATA)) settleData(context, bytes);
  else note(context, Finding.data_missing, bytes);
  if (load<u64>(context, FORK_AT) != 0 && load<u64>(context, RESUME_AT) <= bytes)
    see(context, SEEN_CREDENTIAL);
}

function unfinishedChunk(context: usize, bytes: u64): void {
  const state = load<u32>(context, STATE);
  const fill = load<u32>(context, FILL);
  if (state == State.Opaque || state == State.FileHeader) return;
  if (state == State.ChunkHeader) {
    if (fill > 0) note(context, Finding.chunk_header_truncated, bytes - fill);
  } else if (state == State.Pad) {
    note(context, Finding.pad_missing, bytes);
  } else if (load<u64>(context, CHUNK_END) > bytes && load<u64>(context, CHUNK_END) != u64.MAX_VALUE) {
    note(context, Finding.chunk_past_end, load<u64>(context, CHUNK_AT));
  }
}

function settleData(context: usize, bytes: u64): void {
  const offset = load<u64>(context, DATA_OFFSET);
  const declared = load<u64>(context, DATA_SIZE);
  const open = seen(context, SEEN_DATA_OPEN);
  const held = bytes - offset;
  const size = open ? held : min(declared, held);
  store<u64>(context, size, DATA_SIZE);
  if (declared == 0 && held > 0) note(context, Finding.data_empty, offset - 8);
  if (!seen(context, SEEN_FMT_WHOLE)) return;
  const blockAlign = <u64>load<u16>(context + FMT, 12);
  if (blockAlign == 0) return;
  if (!open && declared % blockAlign != 0) note(context, Finding.data_not_aligned, offset - 8);
  // In a compressed stream a block is not a frame.
  if (load<u32>(context, ENCODING) == OTHER) return;
  see(context, SEEN_FRAMES);
  store<u64>(context, size / blockAlign, FRAMES);
}
