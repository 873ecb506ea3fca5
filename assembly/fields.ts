import {
  BEXT,
  BEXT_FIXED_BYTES,
  BEXT_SIZE,
  CHUNK_AT,
  CHUNK_END,
  DS64,
  DS64_APPLIES,
  DS64_TABLE_LENGTH,
  DS64_TABLE_LIMIT,
  ENCODING,
  FLAG_BEXT_WHOLE,
  FLAG_DS64_WHOLE,
  FLAG_FMT_WHOLE,
  FMT,
  FMT_AT,
  FMT_BYTES,
  FMT_LIMIT,
  FMT_SIZE,
  RIFF_END,
  RIFF_FIELD,
} from '../src/core/engine/core-layout';
import { addFinding, setFlag } from './context';
import { Finding } from './findings';

const TAG_PCM: u32 = 1;
const TAG_FLOAT: u32 = 3;
const TAG_EXTENSIBLE: u32 = 0xfffe;
const ENCODING_PCM: u32 = 0;
export const ENCODING_FLOAT: u32 = 1;
export const ENCODING_OTHER: u32 = 2;
/** The largest number of channels that is read. It is the limit of libsndfile. */
const CHANNEL_LIMIT: u32 = 1024;
/** The highest sample rate in Hz that is read: eight times DXD's 768 kHz, above every format sold. */
const RATE_LIMIT: u32 = 6_144_000;

export const SENTINEL: u64 = 0xffff_ffff;

/**
 * Returns true for a size that programs write before they know the true one. A file may also have this size, so
 * the size is a placeholder only where the file is shorter.
 */
export function isPlaceholder(size: u64): bool {
  return size == 0xffff_1000 || size == 0x7fff_f000;
}

/** The limit of every size in bytes: Number.MAX_SAFE_INTEGER + 1, because the host counts in doubles. */
const SIZE_LIMIT: u64 = 1 << 53;

function encodingOf(tag: u32): u32 {
  return tag == TAG_PCM ? ENCODING_PCM : tag == TAG_FLOAT ? ENCODING_FLOAT : ENCODING_OTHER;
}

/**
 * Returns the format tag inside a SubFormat GUID xxxxxxxx-0000-0010-8000-00AA00389B71, or 0 for any other GUID.
 */
function tagOfGuid(guid: usize): u32 {
  const standard = load<u32>(guid, 4) == 0x0010_0000 && load<u64>(guid, 8) == 0x719b_3800_aa00_0080;
  return standard ? load<u32>(guid) : 0;
}

/** Reads the fmt chunk, once it is complete. */
export function readFmt(context: usize): void {
  const fmt = context + FMT;
  const at = load<u64>(context, FMT_AT);
  const size = load<u32>(context, FMT_SIZE);
  if (size < 16) {
    addFinding(context, Finding.fmt_malformed, at);
    return;
  }
  setFlag(context, FLAG_FMT_WHOLE);
  const tag = <u32>load<u16>(fmt, 0);
  const channels = <u32>load<u16>(fmt, 2);
  const rate = load<u32>(fmt, 4);
  const byteRate = load<u32>(fmt, 8);
  const blockAlign = <u32>load<u16>(fmt, 12);
  const bits = <u32>load<u16>(fmt, 14);
  const extension = size >= 18 ? <u32>load<u16>(fmt, 16) : 0;

  // A reader goes by the size of the chunk and ignores what it does not know. Only what moves a reader off the
  // chunk is malformed: some readers skip the pad byte of an odd fmt chunk only if cbSize counts to the same end.
  const stated = size == 18 + extension;
  let malformed = !stated && (size > <u32>FMT_LIMIT || (size & 1) != 0);
  let encoding = encodingOf(tag);
  if (tag == TAG_EXTENSIBLE) {
    if (size < <u32>FMT_BYTES || extension < 22) malformed = true;
    else encoding = encodingOf(tagOfGuid(fmt + 24));
  }
  store<u32>(context, encoding, ENCODING);
  if (malformed) addFinding(context, Finding.fmt_malformed, at);
  else {
    // WAVEFORMATEX: cbSize is ignored for PCM. Pro Tools writes 40 bytes with the plain PCM tag.
    const usual = size == 16 || stated || (tag == TAG_PCM && (size == 18 || size == FMT_BYTES));
    if (!usual) addFinding(context, Finding.fmt_size_mismatch, at);
    if (encoding == ENCODING_OTHER) addFinding(context, Finding.codec_unsupported, at);
  }

  let consistent =
    channels > 0 && channels <= CHANNEL_LIMIT && rate > 0 && rate <= RATE_LIMIT && blockAlign > 0;
  if (encoding != ENCODING_OTHER) {
    const packed = channels * ((bits + 7) >> 3);
    // Some writers put up to 24 bits into 4-byte containers.
    const wide = bits <= 32 && blockAlign == channels * 4;
    consistent = consistent && bits > 0 && bits <= 64 && (blockAlign == packed || wide);
    consistent = consistent && <u64>byteRate == <u64>rate * blockAlign;
    if (encoding == ENCODING_FLOAT) consistent = consistent && (bits == 32 || bits == 64);
    if (tag == TAG_EXTENSIBLE) consistent = consistent && <u32>load<u16>(fmt, 18) <= bits;
  }
  if (!consistent) addFinding(context, Finding.fmt_inconsistent, at);
}

/**
 * Takes the end of the file from the 32-bit field, where no usable ds64 gives it; 0 and the sentinel mean
 * that the writer never came back.
 */
export function takeRiffField(context: usize): void {
  const field = load<u32>(context, RIFF_FIELD);
  if (field == 0 || field == <u32>SENTINEL) addFinding(context, Finding.riff_size_streaming, 4);
  else store<u64>(context, <u64>field + 8, RIFF_END);
}

/**
 * Reads the ds64 chunk, once it is complete. @param governs the chunk is the first of an RF64 or BW64 file
 */
export function readDs64(context: usize, governs: bool): void {
  const ds64 = context + DS64;
  const at = load<u64>(context, CHUNK_AT);
  const size = load<u64>(context, CHUNK_END) - at - 8;
  // Some writers leave the table length out.
  const entries = size >= 28 ? load<u32>(ds64, 24) : 0;
  const riffSize = load<u64>(ds64, 0);
  const dataSize = load<u64>(ds64, 8);
  let sound =
    size == 24 || (size >= 28 && entries <= <u32>DS64_TABLE_LIMIT && 28 + <u64>entries * 12 <= size);
  sound = sound && riffSize < SIZE_LIMIT && dataSize < SIZE_LIMIT;
  for (let i: u32 = 0; sound && i < entries; i += 1) sound = load<u64>(ds64 + 28 + i * 12, 4) < SIZE_LIMIT;
  if (size >= 24) {
    setFlag(context, FLAG_DS64_WHOLE);
    store<u32>(context, entries, DS64_TABLE_LENGTH);
  }
  if (!sound) addFinding(context, Finding.ds64_malformed, at);
  if (!governs) return;
  if (!sound) {
    takeRiffField(context);
    return;
  }
  store<u32>(context, 1, DS64_APPLIES);
  const field = <u64>load<u32>(context, RIFF_FIELD);
  if (field != SENTINEL && field != riffSize) addFinding(context, Finding.ds64_mismatch, 4);
  store<u64>(context, riffSize + 8, RIFF_END);
  if (load<u64>(context, CHUNK_END) > riffSize + 8) addFinding(context, Finding.chunk_past_end, at);
}

/** Returns the size of a chunk in bytes. The ds64 resolves a field of `SENTINEL`, which stays without an entry. */
export function resolveSize(context: usize, id: u32, isData: bool, field: u32, at: u64): u64 {
  if (load<u32>(context, DS64_APPLIES) == 0) return field;
  const ds64 = context + DS64;
  let known = false;
  let size: u64 = 0;
  if (isData) {
    known = true;
    size = load<u64>(ds64, 8);
  } else {
    const entries = load<u32>(context, DS64_TABLE_LENGTH);
    for (let i: u32 = 0; !known && i < entries; i += 1) {
      const entry = ds64 + 28 + i * 12;
      known = load<u32>(entry) == id;
      size = load<u64>(entry, 4);
    }
  }
  if (!known || size == field) return field;
  if (field == <u32>SENTINEL) return size;
  addFinding(context, Finding.ds64_mismatch, at);
  return field;
}

/** Reads the bext chunk, once it is complete. */
export function readBext(context: usize): void {
  const at = load<u64>(context, CHUNK_AT);
  if (load<u64>(context, BEXT_SIZE) < <u64>BEXT_FIXED_BYTES) {
    addFinding(context, Finding.bext_malformed, at);
    return;
  }
  setFlag(context, FLAG_BEXT_WHOLE);
  if (load<u16>(context + BEXT, 346) > 2) addFinding(context, Finding.bext_version_unknown, at);
}
