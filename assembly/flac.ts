/**
 * Decodes FLAC (RFC 9639). Each step takes one unit of bits, or waits for the next slice if the slice ends before the
 * unit does. So a frame may be cut anywhere, and only its samples are kept.
 */
import {
  CONTAINER_AT,
  DECODER,
  HEADER,
  READER,
  READER_FLAC,
  READER_PAUSED,
  SAMPLES,
  SAMPLES_BYTES,
  SAMPLES_FROM,
} from '../src/core/engine/core-layout';
import { position } from './context';
import { absorb } from './digest';
import { crc8, crc16, fillCrcTable } from './flac-crc';
import { decorrelate, fillConstant, interleave, readResiduals, restore, storeSample } from './flac-samples';
import {
  ASSIGNMENT,
  BITS,
  CHANNEL,
  CHANNELS,
  COEFFICIENTS,
  COUNT,
  CRC,
  CRC_FROM,
  DATA,
  DEPTH,
  END,
  FILL,
  FRAME_SIZE,
  HAS_MD5,
  HEAD,
  INDEX,
  IS_ESCAPED,
  IS_LAST,
  IS_QUOTIENT,
  KIND,
  Kind,
  LEFT_SIDE,
  MD5,
  MD5_STATED,
  MID_SIDE,
  ORDER,
  ORIGIN,
  PARAMETER,
  PARAMETER_BITS,
  PARTITION_END,
  PARTITION_SIZE,
  PHASE,
  PRECISION,
  QUOTIENT,
  RATE,
  RAW_END,
  SHIFT,
  SIDE_RIGHT,
  SKIP,
  STAGING,
  STAGING_BYTES,
  SUB_DEPTH,
  TAIL_AT,
  TOTAL,
  WANT,
  WASTED,
} from './flac-state';
import { absorbMd5, closeMd5, startMd5 } from './md5';
import { frameBytes, giveUp, openSamples } from './samples-digest';
import { Reason } from './samples-reason';

const enum Phase {
  MetadataHeader,
  StreamInfo,
  Metadata,
  FrameHeader,
  SubframeHeader,
  WastedBits,
  RawSamples,
  PredictorHeader,
  Coefficients,
  ResidualHeader,
  Partition,
  Residuals,
  Footer,
  /** The decoder is in an ID3v1 tag after the last frame. */
  Tail,
}

const STREAM_INFO_BYTES: u32 = 34;
const FRAME_SIZE_LIMIT: u32 = 65_535;
/** The three letters of an ID3v1 tag, "TAG", and the length of the tag. */
const ID3V1: u32 = 0x47_4154;
const TAIL_BYTES: u64 = 128;
/**
 * The largest number of decoded bytes for each byte of the file, and the number that is allowed besides. A sample
 * counts as at least two bytes, because the time that it takes does not depend on its bits.
 */
const EXPANSION: u64 = 32;
const EXPANSION_FREE: u64 = 64 << 20;

/** Begins at the marker of the stream, which HEADER has with eight bytes more. */
export function openFlac(context: usize): void {
  const decoder = <usize>load<u32>(context, DECODER);
  memory.fill(decoder, 0, COEFFICIENTS);
  fillCrcTable(decoder);
  store<u64>(decoder, bswap<u64>(load<u64>(context + HEADER, 4)), BITS);
  store<u32>(decoder, 64, COUNT);
  store<u64>(context, load<u64>(context, CONTAINER_AT) + 12, SAMPLES_FROM);
  store<u32>(context, READER_FLAC, READER);
}

/**
 * Decodes and hashes the slice of `length` bytes that was walked last. Pauses after a frame with which `most` bytes of
 * samples are reached. A paused slice goes on with the next call, whose own slice is empty.
 */
export function decode(context: usize, address: usize, length: u32, most: u32): void {
  const decoder = <usize>load<u32>(context, DECODER);
  if (load<u32>(context, READER) == READER_PAUSED) store<u32>(context, READER_FLAC, READER);
  else openSlice(context, decoder, address, length);
  const enough = load<u64>(context, SAMPLES_BYTES) + most;
  while (load<u32>(context, READER) == READER_FLAC && step(context, decoder)) {
    if (load<u64>(context, SAMPLES_BYTES) >= enough) store<u32>(context, READER_PAUSED, READER);
  }
  if (load<u32>(context, READER) == READER_FLAC && isInFrame(decoder))
    addCrc(decoder, load<u32>(decoder, END));
}

function openSlice(context: usize, decoder: usize, address: usize, length: u32): void {
  const begin = position(context) - length;
  const start = load<u64>(context, SAMPLES_FROM);
  // The first slice has bytes before the stream.
  const from = address + <usize>(start > begin ? start - begin : 0);
  store<u32>(decoder, <u32>from, DATA);
  store<u32>(decoder, <u32>from, CRC_FROM);
  store<u32>(decoder, <u32>address + length, END);
  store<u64>(decoder, begin - address, ORIGIN);
}

/** Finds what is wrong with the stream as a whole. The file has ended. */
export function closeFlac(context: usize): void {
  const decoder = <usize>load<u32>(context, DECODER);
  const phase = load<u32>(decoder, PHASE);
  if (phase == Phase.Tail) {
    if (position(context) - load<u64>(decoder, TAIL_AT) != TAIL_BYTES)
      giveUp(context, Reason.structure_malformed);
  } else if (phase != Phase.FrameHeader || load<u32>(decoder, FILL) > 0) {
    giveUp(context, Reason.samples_incomplete);
  }
  const total = load<u64>(decoder, TOTAL);
  const size = frameBytes(context);
  if (total != 0 && load<u64>(context, SAMPLES_BYTES) != total * size)
    giveUp(context, Reason.frames_disagree);
  if (load<u32>(decoder, HAS_MD5) == 0) return;
  closeMd5(decoder + MD5);
  if (memory.compare(decoder + MD5, decoder + MD5_STATED, 16) != 0) giveUp(context, Reason.checksum_mismatch);
}

/** Takes the next unit. Returns false if the slice ends before the unit does. */
function step(context: usize, decoder: usize): bool {
  switch (load<u32>(decoder, PHASE)) {
    case Phase.MetadataHeader:
      return readMetadataHeader(context, decoder);
    case Phase.StreamInfo:
      return readStreamInfo(context, decoder);
    case Phase.Metadata:
      return skipMetadata(decoder);
    case Phase.FrameHeader:
      return readFrameHeader(context, decoder);
    case Phase.SubframeHeader:
      return readSubframeHeader(context, decoder);
    case Phase.WastedBits:
      return readWastedBits(context, decoder);
    case Phase.RawSamples:
      return readRawSamples(context, decoder);
    case Phase.PredictorHeader:
      return readPredictorHeader(context, decoder);
    case Phase.Coefficients:
      return readCoefficients(decoder);
    case Phase.ResidualHeader:
      return readResidualHeader(context, decoder);
    case Phase.Partition:
      return readPartition(context, decoder);
    case Phase.Residuals: {
      const isSound = isWide(decoder) ? readResiduals<i64>(decoder) : readResiduals<i32>(decoder);
      if (!isSound) return malformed(context);
      if (load<u32>(decoder, INDEX) < load<u32>(decoder, PARTITION_END)) return false;
      store<u32>(decoder, Phase.Partition, PHASE);
      return true;
    }
    case Phase.Footer:
      return readFooter(context, decoder);
    default:
      return false;
  }
}

function malformed(context: usize): bool {
  giveUp(context, Reason.structure_malformed);
  return false;
}

/** Makes at least `bits` bits ready, at most 56. Returns false if the slice does not have them. */
function ready(decoder: usize, bits: u32): bool {
  let count = load<u32>(decoder, COUNT);
  if (count >= bits) return true;
  let data = <usize>load<u32>(decoder, DATA);
  const end = <usize>load<u32>(decoder, END);
  let acc = load<u64>(decoder, BITS);
  while (count <= 56 && data < end) {
    acc |= (<u64>load<u8>(data)) << (<u64>(56 - count));
    count += 8;
    data += 1;
  }
  store<u64>(decoder, acc, BITS);
  store<u32>(decoder, count, COUNT);
  store<u32>(decoder, <u32>data, DATA);
  return count >= bits;
}

/** Takes from 1 to 56 bits that are ready. */
function take(decoder: usize, bits: u32): u64 {
  const acc = load<u64>(decoder, BITS);
  store<u64>(decoder, acc << bits, BITS);
  store<u32>(decoder, load<u32>(decoder, COUNT) - bits, COUNT);
  return acc >> (64 - bits);
}

/** Takes a signed number of 1 to 56 bits that are ready. */
function takeSigned(decoder: usize, bits: u32): i64 {
  return <i64>(take(decoder, bits) << (64 - bits)) >> (64 - bits);
}

/** Collects bytes in HEAD. Returns false if the slice ends before all that are wanted. */
function collect(decoder: usize): bool {
  while (load<u32>(decoder, FILL) < load<u32>(decoder, WANT)) {
    if (!ready(decoder, 8)) return false;
    const fill = load<u32>(decoder, FILL);
    store<u8>(decoder + HEAD + fill, <u8>take(decoder, 8));
    store<u32>(decoder, fill + 1, FILL);
  }
  return true;
}

function expectBytes(decoder: usize, phase: Phase, bytes: u32): void {
  store<u32>(decoder, phase, PHASE);
  store<u32>(decoder, 0, FILL);
  store<u32>(decoder, bytes, WANT);
}

/** Returns the address of the next byte that is not taken. The stream is at the beginning of a byte. */
function nextByte(decoder: usize): usize {
  return load<u32>(decoder, DATA) - (load<u32>(decoder, COUNT) >> 3);
}

function isInFrame(decoder: usize): bool {
  const phase = load<u32>(decoder, PHASE);
  if (phase == Phase.FrameHeader) return load<u32>(decoder, FILL) > 0;
  return phase > <u32>Phase.FrameHeader && phase < <u32>Phase.Tail;
}

function addCrc(decoder: usize, to: usize): void {
  const from = <usize>load<u32>(decoder, CRC_FROM);
  store<u32>(decoder, crc16(decoder, load<u32>(decoder, CRC), from, to), CRC);
  store<u32>(decoder, <u32>to, CRC_FROM);
}

function readMetadataHeader(context: usize, decoder: usize): bool {
  if (!ready(decoder, 32)) return false;
  const head = <u32>take(decoder, 32);
  const type = (head >> 24) & 0x7f;
  const length = head & 0xff_ffff;
  store<u32>(decoder, head >> 31, IS_LAST);
  // The first block is the only one of its type.
  const isFirst = load<u32>(decoder, DEPTH) == 0;
  if (isFirst != (type == 0) || (isFirst && length != STREAM_INFO_BYTES) || type == 127)
    return malformed(context);
  store<u32>(decoder, length, SKIP);
  if (isFirst) expectBytes(decoder, Phase.StreamInfo, STREAM_INFO_BYTES);
  else store<u32>(decoder, Phase.Metadata, PHASE);
  return true;
}

function readStreamInfo(context: usize, decoder: usize): bool {
  if (!collect(decoder)) return false;
  const fields = bswap<u64>(load<u64>(decoder, HEAD + 10));
  const rate = <u32>(fields >> 44);
  const channels = (<u32>(fields >> 41) & 7) + 1;
  const depth = (<u32>(fields >> 36) & 31) + 1;
  if (depth < 4) {
    giveUp(context, Reason.format_unsupported);
    return false;
  }
  store<u32>(decoder, rate, RATE);
  store<u32>(decoder, channels, CHANNELS);
  store<u32>(decoder, depth, DEPTH);
  store<u64>(decoder, fields & 0xf_ffff_ffff, TOTAL);
  memory.copy(decoder + MD5_STATED, decoder + HEAD + 18, 16);
  const hasMd5 = (load<u64>(decoder, MD5_STATED) | load<u64>(decoder, MD5_STATED + 8)) != 0;
  store<u32>(decoder, hasMd5 ? 1 : 0, HAS_MD5);
  startMd5(decoder + MD5);
  if (!openSamples(context, 0, depth, 0, channels, rate)) return false;
  endMetadata(decoder);
  return true;
}

function endMetadata(decoder: usize): void {
  if (load<u32>(decoder, IS_LAST) == 0) store<u32>(decoder, Phase.MetadataHeader, PHASE);
  else expectBytes(decoder, Phase.FrameHeader, 4);
}

function skipMetadata(decoder: usize): bool {
  let skip = load<u32>(decoder, SKIP);
  while (skip > 0 && load<u32>(decoder, COUNT) > 0) {
    take(decoder, 8);
    skip -= 1;
  }
  const data = load<u32>(decoder, DATA);
  const skipped = min(skip, load<u32>(decoder, END) - data);
  store<u32>(decoder, data + skipped, DATA);
  skip -= skipped;
  store<u32>(decoder, skip, SKIP);
  if (skip > 0) return false;
  endMetadata(decoder);
  return true;
}

function readFrameHeader(context: usize, decoder: usize): bool {
  const head = decoder + HEAD;
  if (load<u32>(decoder, FILL) == 0) {
    if (!ready(decoder, 8)) return false;
    store<u32>(decoder, 0, CRC);
    store<u32>(decoder, <u32>nextByte(decoder), CRC_FROM);
  }
  if (!collect(decoder)) return false;
  const fill = load<u32>(decoder, FILL);
  if (fill == 4) {
    if ((load<u32>(head) & 0xff_ffff) == ID3V1) {
      store<u32>(decoder, Phase.Tail, PHASE);
      store<u64>(decoder, load<u64>(decoder, ORIGIN) + nextByte(decoder) - 4, TAIL_AT);
      return false;
    }
    // Fourteen bits of the sync code, and a bit that is zero, are before the bit of the blocking strategy.
    if (load<u8>(head) != 0xff || (load<u8>(head, 1) & 0xfe) != 0xf8 || (load<u8>(head, 3) & 1) != 0)
      return malformed(context);
    store<u32>(decoder, 5, WANT);
    return true;
  }
  if (fill == 5) {
    const lead = load<u8>(head, 4);
    // The coded number has as many bytes as ones lead its first byte, and one if there is none.
    const ones = clz<u32>(~((<u32>lead) << 24));
    if (ones == 1 || ones == 8) return malformed(context);
    const size = load<u8>(head, 2) >> 4;
    const rate = load<u8>(head, 2) & 15;
    const sizeBytes: u32 = size == 6 ? 1 : size == 7 ? 2 : 0;
    const rateBytes: u32 = rate == 12 ? 1 : rate == 13 || rate == 14 ? 2 : 0;
    store<u32>(decoder, 4 + max<u32>(ones, 1) + sizeBytes + rateBytes + 1, WANT);
    // A header of five bytes is not complete yet: the CRC follows.
    return true;
  }
  return openFrame(context, decoder);
}

/** Reads a frame header that is complete. */
function openFrame(context: usize, decoder: usize): bool {
  const head = decoder + HEAD;
  const length = load<u32>(decoder, FILL);
  if (crc8(head, length - 1) != load<u8>(head + length - 1)) {
    giveUp(context, Reason.checksum_mismatch);
    return false;
  }
  const sizeCode = <u32>load<u8>(head, 2) >> 4;
  const rateCode = <u32>load<u8>(head, 2) & 15;
  const assignment = <u32>load<u8>(head, 3) >> 4;
  const depthCode = (<u32>load<u8>(head, 3) >> 1) & 7;
  let field = head + 4 + max<u32>(clz<u32>(~((<u32>load<u8>(head, 4)) << 24)), 1);
  for (let byte = head + 5; byte < field; byte += 1)
    if ((load<u8>(byte) & 0xc0) != 0x80) return malformed(context);

  let size: u32 = 0;
  if (sizeCode == 1) size = 192;
  else if (sizeCode == 6) {
    size = <u32>load<u8>(field) + 1;
    field += 1;
  } else if (sizeCode == 7) {
    size = <u32>bswap<u16>(load<u16>(field)) + 1;
    field += 2;
  } else if (sizeCode > 7) size = 1 << sizeCode;
  else if (sizeCode > 1) size = 144 << sizeCode;
  if (size == 0 || size > FRAME_SIZE_LIMIT) return malformed(context);

  const stated = load<u32>(decoder, RATE);
  const rate = rateOf(rateCode, field, stated);
  const depth = depthOf(depthCode, load<u32>(decoder, DEPTH));
  if (rate == 0 || depth == 0 || assignment > MID_SIDE) return malformed(context);
  const channels = assignment < LEFT_SIDE ? assignment + 1 : 2;
  if (rate != stated || depth != load<u32>(decoder, DEPTH) || channels != load<u32>(decoder, CHANNELS)) {
    giveUp(context, Reason.stream_changes);
    return false;
  }
  const received = load<u64>(decoder, ORIGIN) + nextByte(decoder);
  const frame = max<u64>(frameBytes(context), 2 * channels);
  const decoded = (load<u64>(context, SAMPLES_BYTES) / frameBytes(context) + size) * frame;
  if (decoded > received * EXPANSION + EXPANSION_FREE) {
    giveUp(context, Reason.samples_too_large);
    return false;
  }
  store<u32>(decoder, size, FRAME_SIZE);
  store<u32>(decoder, assignment, ASSIGNMENT);
  store<u32>(decoder, 0, CHANNEL);
  store<u32>(decoder, Phase.SubframeHeader, PHASE);
  return true;
}

/** Returns the rate of a frame, or 0 for the code that is invalid. */
function rateOf(code: u32, field: usize, stated: u32): u32 {
  switch (code) {
    case 0:
      return stated;
    case 1:
      return 88_200;
    case 2:
      return 176_400;
    case 3:
      return 192_000;
    case 4:
      return 8000;
    case 5:
      return 16_000;
    case 6:
      return 22_050;
    case 7:
      return 24_000;
    case 8:
      return 32_000;
    case 9:
      return 44_100;
    case 10:
      return 48_000;
    case 11:
      return 96_000;
    case 12:
      return <u32>load<u8>(field) * 1000;
    case 13:
      return bswap<u16>(load<u16>(field));
    case 14:
      return <u32>bswap<u16>(load<u16>(field)) * 10;
    default:
      return 0;
  }
}

/** Returns the bits of a sample, or 0 for the code that is reserved. */
function depthOf(code: u32, stated: u32): u32 {
  switch (code) {
    case 0:
      return stated;
    case 1:
      return 8;
    case 2:
      return 12;
    case 4:
      return 16;
    case 5:
      return 20;
    case 6:
      return 24;
    case 7:
      return 32;
    default:
      return 0;
  }
}

/** Returns true if the samples of the frame are i64, because the difference of two channels has 33 bits. */
function isWide(decoder: usize): bool {
  return load<u32>(decoder, ASSIGNMENT) >= LEFT_SIDE && load<u32>(decoder, DEPTH) == 32;
}

function readSubframeHeader(context: usize, decoder: usize): bool {
  if (!ready(decoder, 8)) return false;
  const head = <u32>take(decoder, 8);
  const type = head >> 1;
  const channel = load<u32>(decoder, CHANNEL);
  const assignment = load<u32>(decoder, ASSIGNMENT);
  const isSide = assignment == SIDE_RIGHT ? channel == 0 : assignment >= LEFT_SIDE && channel == 1;
  store<u32>(decoder, load<u32>(decoder, DEPTH) + (isSide ? 1 : 0), SUB_DEPTH);
  store<u32>(decoder, 0, WASTED);
  let kind = Kind.Verbatim;
  let order: u32 = 0;
  const size = load<u32>(decoder, FRAME_SIZE);
  let raw = size;
  if (type == 0) {
    kind = Kind.Constant;
    raw = 1;
  } else if (type >= 8 && type <= 12) {
    kind = Kind.Fixed;
    order = type - 8;
    raw = order;
  } else if (type >= 32 && type < 64) {
    kind = Kind.Linear;
    order = type - 31;
    raw = order;
  } else if (type != 1) return malformed(context);
  if (order > size) return malformed(context);
  store<u32>(decoder, kind, KIND);
  store<u32>(decoder, order, ORDER);
  store<u32>(decoder, 0, INDEX);
  store<u32>(decoder, raw, RAW_END);
  store<u32>(decoder, (head & 1) != 0 ? Phase.WastedBits : Phase.RawSamples, PHASE);
  return true;
}

function readWastedBits(context: usize, decoder: usize): bool {
  while (true) {
    if (!ready(decoder, 1)) return false;
    const isLast = take(decoder, 1) != 0;
    const wasted = load<u32>(decoder, WASTED) + 1;
    if (wasted >= load<u32>(decoder, SUB_DEPTH)) return malformed(context);
    store<u32>(decoder, wasted, WASTED);
    if (isLast) break;
  }
  store<u32>(decoder, load<u32>(decoder, SUB_DEPTH) - load<u32>(decoder, WASTED), SUB_DEPTH);
  store<u32>(decoder, Phase.RawSamples, PHASE);
  return true;
}

function readRawSamples(context: usize, decoder: usize): bool {
  const depth = load<u32>(decoder, SUB_DEPTH);
  const end = load<u32>(decoder, RAW_END);
  let index = load<u32>(decoder, INDEX);
  while (index < end && ready(decoder, depth)) {
    const sample = takeSigned(decoder, depth);
    if (isWide(decoder)) storeSample<i64>(decoder, index, sample);
    else storeSample<i32>(decoder, index, sample);
    index += 1;
  }
  store<u32>(decoder, index, INDEX);
  if (index < end) return false;
  const kind = load<u32>(decoder, KIND);
  if (kind == Kind.Fixed || kind == Kind.Linear) {
    store<u32>(decoder, kind == Kind.Fixed ? Phase.ResidualHeader : Phase.PredictorHeader, PHASE);
    return true;
  }
  if (kind == Kind.Constant) {
    if (isWide(decoder)) fillConstant<i64>(decoder);
    else fillConstant<i32>(decoder);
  }
  return closeSubframe(context, decoder);
}

function readPredictorHeader(context: usize, decoder: usize): bool {
  if (!ready(decoder, 9)) return false;
  const precision = <u32>take(decoder, 4) + 1;
  const shift = takeSigned(decoder, 5);
  if (precision == 16 || shift < 0) return malformed(context);
  store<u32>(decoder, precision, PRECISION);
  store<u32>(decoder, <u32>shift, SHIFT);
  store<u32>(decoder, 0, INDEX);
  memory.fill(decoder + COEFFICIENTS, 0, 32 * 4);
  store<u32>(decoder, Phase.Coefficients, PHASE);
  return true;
}

function readCoefficients(decoder: usize): bool {
  const precision = load<u32>(decoder, PRECISION);
  const order = load<u32>(decoder, ORDER);
  const last = ((order + 3) & ~3) - 1;
  let index = load<u32>(decoder, INDEX);
  while (index < order && ready(decoder, precision)) {
    store<i32>(decoder + COEFFICIENTS + ((last - index) << 2), <i32>takeSigned(decoder, precision));
    index += 1;
  }
  store<u32>(decoder, index, INDEX);
  if (index < order) return false;
  store<u32>(decoder, Phase.ResidualHeader, PHASE);
  return true;
}

function readResidualHeader(context: usize, decoder: usize): bool {
  if (!ready(decoder, 6)) return false;
  const method = <u32>take(decoder, 2);
  const partitionOrder = <u32>take(decoder, 4);
  const size = load<u32>(decoder, FRAME_SIZE);
  const order = load<u32>(decoder, ORDER);
  const partition = size >> partitionOrder;
  if (method > 1 || partition << partitionOrder != size || partition < order) return malformed(context);
  store<u32>(decoder, method == 0 ? 4 : 5, PARAMETER_BITS);
  store<u32>(decoder, partition, PARTITION_SIZE);
  store<u32>(decoder, 0, PARTITION_END);
  store<u32>(decoder, order, INDEX);
  store<u32>(decoder, Phase.Partition, PHASE);
  return true;
}

function readPartition(context: usize, decoder: usize): bool {
  const end = load<u32>(decoder, PARTITION_END);
  if (end == load<u32>(decoder, FRAME_SIZE)) return closeSubframe(context, decoder);
  const bits = load<u32>(decoder, PARAMETER_BITS);
  if (!ready(decoder, bits)) return false;
  const most: u64 = (1 << bits) - 1;
  const isEscaped = load<u64>(decoder, BITS) >> (64 - bits) == most;
  if (isEscaped && !ready(decoder, bits + 5)) return false;
  let parameter = <u32>take(decoder, bits);
  if (isEscaped) parameter = <u32>take(decoder, 5);
  store<u32>(decoder, isEscaped ? 1 : 0, IS_ESCAPED);
  store<u32>(decoder, parameter, PARAMETER);
  store<u32>(decoder, end + load<u32>(decoder, PARTITION_SIZE), PARTITION_END);
  store<u32>(decoder, 0, IS_QUOTIENT);
  store<u64>(decoder, 0, QUOTIENT);
  store<u32>(decoder, Phase.Residuals, PHASE);
  return true;
}

/** Turns what was read of a channel into its samples. */
function closeSubframe(context: usize, decoder: usize): bool {
  const isSound = isWide(decoder) ? restore<i64>(decoder) : restore<i32>(decoder);
  if (!isSound) return malformed(context);
  const channel = load<u32>(decoder, CHANNEL) + 1;
  store<u32>(decoder, channel, CHANNEL);
  const isLast = channel == load<u32>(decoder, CHANNELS);
  store<u32>(decoder, isLast ? Phase.Footer : Phase.SubframeHeader, PHASE);
  return true;
}

function readFooter(context: usize, decoder: usize): bool {
  const padding = load<u32>(decoder, COUNT) & 7;
  if (!ready(decoder, padding + 16)) return false;
  if (padding > 0 && take(decoder, padding) != 0) return malformed(context);
  take(decoder, 16);
  addCrc(decoder, nextByte(decoder));
  // The CRC of bytes that end with their own CRC is zero.
  if (load<u32>(decoder, CRC) != 0) {
    giveUp(context, Reason.checksum_mismatch);
    return false;
  }
  const isSound =
    load<u32>(decoder, ASSIGNMENT) < LEFT_SIDE ||
    (isWide(decoder) ? decorrelate<i64>(decoder) : decorrelate<i32>(decoder));
  if (!isSound) return malformed(context);
  hashFrame(context, decoder);
  expectBytes(decoder, Phase.FrameHeader, 4);
  return true;
}

/** Hashes the samples of the frame, a piece at a time. */
function hashFrame(context: usize, decoder: usize): void {
  const depth = load<u32>(decoder, DEPTH);
  const bytes = (depth + 7) >> 3;
  const shift = (bytes << 3) - depth;
  const hasMd5 = load<u32>(decoder, HAS_MD5) != 0;
  const frame = <u32>frameBytes(context);
  const size = load<u32>(decoder, FRAME_SIZE);
  const piece = STAGING_BYTES / frame;
  const staging = decoder + STAGING;
  for (let from: u32 = 0; from < size; from += piece) {
    const count = min(piece, size - from);
    const length = count * frame;
    // The MD5 takes samples as numbers, and the digest takes them left-justified.
    if (hasMd5) {
      interleavePiece(decoder, from, count, 0);
      absorbMd5(decoder + MD5, staging, length);
    }
    if (!hasMd5 || shift != 0) interleavePiece(decoder, from, count, shift);
    absorb(context + SAMPLES, staging, length);
  }
  store<u64>(context, load<u64>(context, SAMPLES_BYTES) + <u64>size * frame, SAMPLES_BYTES);
}

function interleavePiece(decoder: usize, from: u32, count: u32, shift: u32): void {
  if (isWide(decoder)) interleave<i64>(decoder, from, count, shift);
  else interleave<i32>(decoder, from, count, shift);
}
