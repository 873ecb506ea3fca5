import {
  BEXT,
  BEXT_FIXED_BYTES,
  BEXT_SIZE,
  BYTES,
  CAPTURE,
  CHUNK_AT,
  CHUNK_COUNT,
  CHUNK_COUNT_LIMIT,
  CHUNK_END,
  CHUNK_ENTRY_BYTES,
  CHUNK_ODD,
  CHUNK_TABLE_LIMIT,
  CHUNKS,
  CODING_HISTORY_LIMIT,
  CONTAINER,
  CONTAINER_AT,
  CREDENTIAL_LIMIT,
  CREDENTIALS,
  DATA_OFFSET,
  DATA_SIZE,
  DS64,
  DS64_APPLIES,
  DS64_BYTES,
  FILL,
  FLAG_BEXT,
  FLAG_DATA,
  FLAG_DATA_OPEN,
  FLAG_DS64,
  FLAG_FACT,
  FLAG_FMT,
  FLAG_WALKED,
  FMT,
  FMT_AT,
  FMT_BYTES,
  FMT_SIZE,
  FORK_AT,
  HEADER,
  HELD,
  MEMBER_END,
  RESUME_AT,
  RIFF_END,
  RIFF_FIELD,
  SPAN_LENGTH,
  SPAN_OFFSET,
  STATE,
} from '../src/core/engine/core-layout';
import { Id, validId, variantOfCredential } from './chunk-id';
import { Container, sniff, TAG_HEADER_BYTES, tagLength } from './container';
import { addFinding, hasFlag, position, setFlag } from './context';
import { isPlaceholder, readBext, readDs64, readFmt, resolveSize, SENTINEL, takeRiffField } from './fields';
import { Finding } from './findings';
import { closeMember, nextMember, openList, openMember, readListType, searchMember } from './list';
import { State } from './state';

const enum Capture {
  None,
  Fmt,
  Ds64,
  Bext,
}

/**
 * Reads the next `length` bytes of the file at `data`. Every step consumes bytes or leaves the state, so the
 * walk ends.
 */
export function walk(context: usize, data: usize, length: u32): void {
  const begin = position(context);
  const end = data + length;
  while (data < end || memberEnded(context)) data += step(context, data, <u32>(end - data));

  // Only a header that may become the credential's is of interest, and only the first credential counts.
  const held =
    load<u32>(context, STATE) == State.ChunkHeader && load<u32>(context, CREDENTIALS) == 0
      ? load<u32>(context, FILL)
      : 0;
  store<u32>(context, held, HELD);
  span(context, begin, begin + length);
}

/**
 * Returns true if a member has no data, or if a list has just been closed. The step that follows needs no byte, and
 * is therefore not left to the next slice.
 */
function memberEnded(context: usize): bool {
  return load<u32>(context, STATE) == State.ListBody && load<u64>(context, MEMBER_END) == position(context);
}

/** Stores the extent of the credential's data in a slice that covers [begin, end) of the file. */
function span(context: usize, begin: u64, end: u64): void {
  const forkAt = load<u64>(context, FORK_AT);
  const from = max(forkAt + 8, begin);
  const to = min(load<u64>(context, RESUME_AT), end);
  const some = forkAt != 0 && from < to;
  store<u32>(context, some ? <u32>(from - begin) : 0, SPAN_OFFSET);
  store<u32>(context, some ? <u32>(to - from) : 0, SPAN_LENGTH);
}

/** Consumes some of the `left` bytes at `data`, and returns their number. */
function step(context: usize, data: usize, left: u32): u32 {
  switch (load<u32>(context, STATE)) {
    case State.FileHeader: {
      const want: u32 = load<u32>(context, FILL) < TAG_HEADER_BYTES ? TAG_HEADER_BYTES : 12;
      const taken = gather(context, data, left, want);
      const fill = load<u32>(context, FILL);
      if (fill == TAG_HEADER_BYTES && want == TAG_HEADER_BYTES) skipTag(context);
      else if (fill == 12) openFile(context);
      return taken;
    }
    case State.Tag: {
      const taken = upTo(context, load<u64>(context, CHUNK_END), left);
      advance(context, taken);
      if (position(context) == load<u64>(context, CHUNK_END)) expectHeader(context, 0);
      return taken;
    }
    case State.TagPadding: {
      let zeros: u32 = 0;
      while (zeros < left && load<u8>(data + zeros) == 0) zeros += 1;
      advance(context, zeros);
      if (zeros < left) expectHeader(context, 0);
      return zeros;
    }
    case State.ChunkHeader: {
      const at = position(context);
      if (load<u32>(context, FILL) == 0 && load<u64>(context, RIFF_END) - at < 8) {
        addFinding(context, Finding.chunk_header_truncated, at);
        store<u32>(context, State.Opaque, STATE);
        return 0;
      }
      const taken = gather(context, data, left, 8);
      if (load<u32>(context, FILL) == 8) openChunk(context);
      return taken;
    }
    case State.Body: {
      const taken = upTo(context, load<u64>(context, CHUNK_END), left);
      capture(context, data, taken);
      advance(context, taken);
      if (position(context) == load<u64>(context, CHUNK_END)) closeChunk(context);
      return taken;
    }
    case State.Pad: {
      if (load<u8>(data) != 0) addFinding(context, Finding.pad_nonzero, position(context));
      advance(context, 1);
      nextChunk(context);
      return 1;
    }
    case State.ListType: {
      const taken = gather(context, data, left, 4);
      if (load<u32>(context, FILL) == 4) {
        readListType(context);
        if (nextMember(context)) closeChunk(context);
      }
      return taken;
    }
    case State.MemberHeader: {
      const taken = gather(context, data, left, 8);
      if (load<u32>(context, FILL) == 8) openMember(context);
      return taken;
    }
    case State.ListBody: {
      const taken = upTo(context, load<u64>(context, MEMBER_END), left);
      searchMember(context, data, taken);
      advance(context, taken);
      if (position(context) == load<u64>(context, MEMBER_END) && closeMember(context)) closeChunk(context);
      return taken;
    }
    case State.MemberPad: {
      if (load<u8>(data) != 0) addFinding(context, Finding.list_pad_nonzero, position(context));
      advance(context, 1);
      if (nextMember(context)) closeChunk(context);
      return 1;
    }
    default: {
      advance(context, left);
      return left;
    }
  }
}

function advance(context: usize, by: u32): void {
  store<u64>(context, position(context) + by, BYTES);
}

function upTo(context: usize, end: u64, left: u32): u32 {
  return <u32>min<u64>(end - position(context), left);
}

/** Collects a header of `want` bytes that may straddle slices. */
function gather(context: usize, data: usize, left: u32, want: u32): u32 {
  const fill = load<u32>(context, FILL);
  const taken = min<u32>(want - fill, left);
  for (let i: u32 = 0; i < taken; i += 1) store<u8>(context + HEADER + fill + i, load<u8>(data + i));
  store<u32>(context, fill + taken, FILL);
  advance(context, taken);
  return taken;
}

/** Skips an ID3v2 tag if the ten bytes of HEADER start one. The container is then looked for after the tag. */
function skipTag(context: usize): void {
  const length = tagLength(context + HEADER);
  if (length == 0) return;
  store<u64>(context, position(context) - TAG_HEADER_BYTES + length, CHUNK_END);
  store<u32>(context, State.Tag, STATE);
}

/** Collects a header of the file whose first `fill` bytes are in HEADER already. */
function expectHeader(context: usize, fill: u32): void {
  store<u32>(context, fill, FILL);
  store<u32>(context, State.FileHeader, STATE);
}

/** Drops the leading zeros of HEADER, and skips the zeros that follow if it has nothing else. */
function skipZeros(context: usize): void {
  const header = context + HEADER;
  let zeros: u32 = 0;
  while (zeros < 12 && load<u8>(header + zeros) == 0) zeros += 1;
  memory.copy(header, header + zeros, 12 - zeros);
  if (zeros < 12) expectHeader(context, 12 - zeros);
  else store<u32>(context, State.TagPadding, STATE);
}

function openFile(context: usize): void {
  const header = context + HEADER;
  const container = sniff(header);
  const isTagged = position(context) != 12;
  if (container == Container.Unknown && isTagged && load<u8>(header) == 0) {
    skipZeros(context);
    return;
  }
  store<u32>(context, container, CONTAINER);
  store<u64>(context, position(context) - 12, CONTAINER_AT);
  store<u32>(context, State.Opaque, STATE);
  if (container != Container.Riff && container != Container.Rf64 && container != Container.Bw64) return;
  // Sizes and offsets in a RIFF count from its header, and readers of C2PA expect the header at offset 0.
  if (isTagged) {
    addFinding(context, Finding.tag_before_riff, 0);
    return;
  }
  if (load<u32>(header, 8) != <u32>Id.WAVE) {
    addFinding(context, Finding.form_not_wave, 8);
    return;
  }
  setFlag(context, FLAG_WALKED);
  store<u64>(context, u64.MAX_VALUE, RIFF_END);
  store<u32>(context, load<u32>(header, 4), RIFF_FIELD);
  // RF64: the end is known with the ds64, which is the first chunk.
  if (container == Container.Riff) takeRiffField(context);
  nextChunk(context);
}

/** Goes on between two chunks. */
function nextChunk(context: usize): void {
  store<u32>(context, 0, FILL);
  store<u32>(
    context,
    position(context) < load<u64>(context, RIFF_END) ? State.ChunkHeader : State.Opaque,
    STATE,
  );
}

/** Reads a chunk's header, once its eight bytes are collected. */
function openChunk(context: usize): void {
  const id = load<u32>(context, HEADER);
  const field = load<u32>(context, HEADER + 4);
  const bodyAt = position(context);
  const at = bodyAt - 8;
  const count = load<u32>(context, CHUNK_COUNT) + 1;
  store<u32>(context, count, CHUNK_COUNT);
  if (count > <u32>CHUNK_COUNT_LIMIT) {
    addFinding(context, Finding.too_many_chunks, at);
    store<u32>(context, State.Opaque, STATE);
    return;
  }
  if (!validId(id)) addFinding(context, Finding.chunk_id_invalid, at);
  if (variantOfCredential(id)) addFinding(context, Finding.credential_id_variant, at);
  if (count == 1 && load<u32>(context, CONTAINER) != Container.Riff && id != <u32>Id.DS64)
    takeRiffField(context);

  const size = resolveSize(context, id, id == <u32>Id.DATA, field, at);
  const end = bodyAt + size;
  store<u64>(context, at, CHUNK_AT);
  store<u64>(context, end, CHUNK_END);
  store<u32>(context, <u32>size & 1, CHUNK_ODD);
  store<u32>(context, Capture.None, CAPTURE);
  store<u32>(context, State.Body, STATE);
  if (count <= <u32>CHUNK_TABLE_LIMIT) {
    const entry = context + CHUNKS + (count - 1) * CHUNK_ENTRY_BYTES;
    store<u32>(entry, id, 0);
    store<u64>(entry, at, 8);
    store<u64>(entry, size, 16);
  }
  if (load<u32>(context, CREDENTIALS) > 0) addFinding(context, Finding.credential_not_last, at);

  const streaming = id == <u32>Id.DATA && size == SENTINEL && load<u32>(context, DS64_APPLIES) == 0;
  if (streaming) {
    addFinding(context, Finding.data_size_streaming, at);
    store<u64>(context, u64.MAX_VALUE, CHUNK_END);
  } else if (end > load<u64>(context, RIFF_END)) {
    // Whether the size was never written is known at the end of the file.
    const waits = id == <u32>Id.DATA && !hasFlag(context, FLAG_DATA) && isPlaceholder(size);
    if (!waits) addFinding(context, Finding.chunk_past_end, at);
  }

  switch (id) {
    case Id.FMT: {
      if (setFlag(context, FLAG_FMT)) {
        addFinding(context, Finding.duplicate_fmt, at);
        break;
      }
      store<u64>(context, at, FMT_AT);
      store<u32>(context, <u32>min<u64>(size, SENTINEL), FMT_SIZE);
      store<u32>(context, Capture.Fmt, CAPTURE);
      break;
    }
    case Id.DATA: {
      if (setFlag(context, FLAG_DATA)) {
        addFinding(context, Finding.duplicate_data, at);
        break;
      }
      if (!hasFlag(context, FLAG_FMT)) addFinding(context, Finding.data_before_fmt, at);
      if (streaming) setFlag(context, FLAG_DATA_OPEN);
      store<u64>(context, bodyAt, DATA_OFFSET);
      store<u64>(context, size, DATA_SIZE);
      break;
    }
    case Id.DS64: {
      if (setFlag(context, FLAG_DS64)) {
        addFinding(context, Finding.duplicate_ds64, at);
        break;
      }
      if (count != 1) addFinding(context, Finding.ds64_not_first, at);
      store<u32>(context, Capture.Ds64, CAPTURE);
      break;
    }
    case Id.BEXT: {
      if (setFlag(context, FLAG_BEXT)) {
        addFinding(context, Finding.duplicate_bext, at);
        break;
      }
      store<u64>(context, size, BEXT_SIZE);
      store<u32>(context, Capture.Bext, CAPTURE);
      break;
    }
    case Id.FACT: {
      if (setFlag(context, FLAG_FACT)) addFinding(context, Finding.duplicate_fact, at);
      break;
    }
    case Id.C2PA: {
      const credentials = load<u32>(context, CREDENTIALS) + 1;
      store<u32>(context, credentials, CREDENTIALS);
      if (credentials > 1) addFinding(context, Finding.credential_duplicate, at);
      if (size > <u64>CREDENTIAL_LIMIT) addFinding(context, Finding.credential_too_large, at);
      else if (credentials == 1) {
        store<u64>(context, at, FORK_AT);
        store<u64>(context, end, RESUME_AT);
      }
      break;
    }
    case Id.LIST: {
      openList(context, end, (size & 1) != 0);
      break;
    }
    default:
  }
  if (size == 0 && id != <u32>Id.LIST) closeChunk(context);
}

/** Keeps the leading bytes of the chunks whose fields are read. */
function capture(context: usize, data: usize, length: u32): void {
  const kind = load<u32>(context, CAPTURE);
  if (kind == Capture.None) return;
  const done = position(context) - load<u64>(context, CHUNK_AT) - 8;
  let to = context + FMT;
  let room: u64 = FMT_BYTES;
  if (kind == Capture.Ds64) {
    to = context + DS64;
    room = DS64_BYTES;
  } else if (kind == Capture.Bext) {
    to = context + BEXT;
    room = BEXT_FIXED_BYTES + CODING_HISTORY_LIMIT;
  }
  if (done < room) memory.copy(to + <usize>done, data, <usize>min<u64>(room - done, length));
}

/** Goes on where a chunk's data has ended: to its pad byte, when it has one. */
function closeChunk(context: usize): void {
  const kind = load<u32>(context, CAPTURE);
  if (kind == Capture.Fmt) readFmt(context);
  else if (kind == Capture.Ds64)
    readDs64(
      context,
      load<u32>(context, CHUNK_COUNT) == 1 && load<u32>(context, CONTAINER) != Container.Riff,
    );
  else if (kind == Capture.Bext) readBext(context);

  const at = position(context);
  if (load<u32>(context, CHUNK_ODD) == 0) nextChunk(context);
  else if (at < load<u64>(context, RIFF_END)) store<u32>(context, State.Pad, STATE);
  else {
    addFinding(context, Finding.pad_missing, at);
    nextChunk(context);
  }
}
