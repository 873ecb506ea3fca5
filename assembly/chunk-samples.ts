/** Finds the samples of AIFF, AIFC and CAF files, whose chunks the walk of wave files does not read. */
import {
  CHUNK_FIELDS,
  CHUNK_FIELDS_FILL,
  CHUNK_FIELDS_WANT,
  CHUNK_NEXT,
  CHUNK_PHASE,
  CHUNKS_END,
  CONTAINER,
  CONTAINER_AT,
  FORM_BIG,
  FORM_FLOAT,
  FORM_UNSIGNED,
  HEADER,
  READER,
  READER_NONE,
  READER_PCM,
  SAMPLES_FRAMES,
  SAMPLES_FROM,
  SAMPLES_HEAD,
  SAMPLES_TO,
} from '../src/core/engine/core-layout';
import { Id } from './chunk-id';
import { Container } from './container';
import { position } from './context';
import { frameBytes, giveUp, openSamples } from './samples-digest';
import { Reason } from './samples-reason';

const enum Phase {
  /** The file has no such chunks. */
  None,
  Header,
  /** The first fields of a format or of the samples. */
  Format,
  Samples,
  /** Up to CHUNK_NEXT. */
  Skip,
}

const IFF_HEADER_BYTES: u32 = 8;
const CAF_HEADER_BYTES: u32 = 12;
const DESC_BYTES: u32 = 32;
const SSND_BYTES: u32 = 8;
const EDIT_COUNT_BYTES: u32 = 4;

const CAF_FLOAT: u32 = 1;
const CAF_LITTLE: u32 = 2;

/** Begins at the first chunk of a file whose twelve bytes of HEADER are read. */
export function openChunks(context: usize): void {
  const header = context + HEADER;
  const at = load<u64>(context, CONTAINER_AT);
  store<u64>(context, at + 12, CHUNK_NEXT);
  store<u64>(context, u64.MAX_VALUE, CHUNKS_END);
  expect(context, Phase.Header, headerBytes(context));
  if (load<u32>(context, CONTAINER) == Container.Caf) {
    // The header of the file has eight bytes, the version and the flags among them.
    if (load<u32>(header, 4) != 0x0100) giveUp(context, Reason.structure_malformed);
    store<u32>(context, load<u32>(header, 8), CHUNK_FIELDS);
    store<u32>(context, 4, CHUNK_FIELDS_FILL);
  } else {
    const size = bswap<u32>(load<u32>(header, 4));
    // A program that did not write the size has left 0.
    if (size != 0) store<u64>(context, at + 8 + size, CHUNKS_END);
  }
}

/** Reads the chunks of the slice at `data`, which has `length` bytes and was walked last. */
export function walkChunks(context: usize, data: usize, length: u32): void {
  if (load<u32>(context, CHUNK_PHASE) == Phase.None) return;
  const end = position(context);
  // Address of the byte at the file offset 0, which may be negative.
  const origin = data - <usize>(end - length);
  let at = end - length;
  const phase = load<u32>(context, CHUNK_PHASE);
  if (phase == Phase.Header || phase == Phase.Skip) at = max(at, load<u64>(context, CHUNK_NEXT));
  while (at < end && load<u32>(context, READER) != READER_NONE) {
    if (load<u32>(context, CHUNK_PHASE) == Phase.Skip) expect(context, Phase.Header, headerBytes(context));
    if (load<u32>(context, CHUNK_FIELDS_FILL) == 0 && at >= load<u64>(context, CHUNKS_END)) {
      store<u32>(context, Phase.None, CHUNK_PHASE);
      return;
    }
    const fill = load<u32>(context, CHUNK_FIELDS_FILL);
    const taken = <u32>min<u64>(load<u32>(context, CHUNK_FIELDS_WANT) - fill, end - at);
    memory.copy(context + CHUNK_FIELDS + fill, origin + <usize>at, taken);
    store<u32>(context, fill + taken, CHUNK_FIELDS_FILL);
    at += taken;
    if (fill + taken < load<u32>(context, CHUNK_FIELDS_WANT)) break;
    if (load<u32>(context, CHUNK_PHASE) == Phase.Header) readHeader(context, at);
    else {
      if (load<u32>(context, CHUNK_PHASE) == Phase.Format) readFormat(context);
      else readSamples(context, at);
      store<u32>(context, Phase.Skip, CHUNK_PHASE);
    }
    if (load<u32>(context, CHUNK_PHASE) == Phase.Skip) at = max(at, load<u64>(context, CHUNK_NEXT));
  }
}

function headerBytes(context: usize): u32 {
  return load<u32>(context, CONTAINER) == Container.Caf ? CAF_HEADER_BYTES : IFF_HEADER_BYTES;
}

function expect(context: usize, phase: Phase, bytes: u32): void {
  store<u32>(context, phase, CHUNK_PHASE);
  store<u32>(context, 0, CHUNK_FIELDS_FILL);
  store<u32>(context, bytes, CHUNK_FIELDS_WANT);
}

/** Reads the header of a chunk whose body begins at the file offset `at`. */
function readHeader(context: usize, at: u64): void {
  const fields = context + CHUNK_FIELDS;
  const id = load<u32>(fields);
  if (load<u32>(context, CONTAINER) == Container.Caf) {
    const size = bswap<u64>(load<u64>(fields, 4));
    const isOpen = id == <u32>Id.DATA && size == u64.MAX_VALUE;
    if (<i64>size < 0 && !isOpen) {
      giveUp(context, Reason.structure_malformed);
      return;
    }
    store<u64>(context, isOpen ? u64.MAX_VALUE : at + size, CHUNK_NEXT);
    if (id == <u32>Id.DESC) expectFields(context, Phase.Format, DESC_BYTES, size);
    else if (id == <u32>Id.DATA) expectFields(context, Phase.Samples, EDIT_COUNT_BYTES, size);
    else store<u32>(context, Phase.Skip, CHUNK_PHASE);
    return;
  }
  const size = bswap<u32>(load<u32>(fields, 4));
  store<u64>(context, at + size + (size & 1), CHUNK_NEXT);
  const isAifc = load<u32>(context, CONTAINER) == Container.Aifc;
  if (id == <u32>Id.COMM) expectFields(context, Phase.Format, isAifc ? 22 : 18, size);
  else if (id == <u32>Id.SSND) {
    expectFields(context, Phase.Samples, SSND_BYTES, size);
    store<u64>(context, at + size, SAMPLES_TO);
  } else store<u32>(context, Phase.Skip, CHUNK_PHASE);
}

/** Waits for the first `bytes` of a chunk that has `size`. A second chunk of its kind makes the samples ambiguous. */
function expectFields(context: usize, phase: Phase, bytes: u32, size: u64): void {
  const isKnown = phase == Phase.Format ? isFormatKnown(context) : load<u32>(context, READER) == READER_PCM;
  if (isKnown) giveUp(context, Reason.samples_ambiguous);
  else if (size < bytes || (phase == Phase.Samples && !isFormatKnown(context)))
    giveUp(context, Reason.structure_malformed);
  else expect(context, phase, bytes);
}

function isFormatKnown(context: usize): bool {
  return load<u64>(context, SAMPLES_HEAD) != 0;
}

function readFormat(context: usize): void {
  if (load<u32>(context, CONTAINER) == Container.Caf) readDescription(context);
  else readCommon(context);
}

/** Reads the COMM chunk of an AIFF or AIFC file. */
function readCommon(context: usize): void {
  const fields = context + CHUNK_FIELDS;
  const channels = <u32>bswap<u16>(load<u16>(fields, 0));
  let bits = <u32>bswap<u16>(load<u16>(fields, 6));
  let form = FORM_BIG;
  if (load<u32>(context, CONTAINER) == Container.Aifc) {
    const type = load<u32>(fields, 18);
    // The types of one width have all of its bits, and the field is ignored.
    switch (type) {
      case Id.NONE:
      case Id.TWOS:
        break;
      case Id.SOWT: {
        form = 0;
        break;
      }
      case Id.IN24: {
        bits = 24;
        break;
      }
      case Id.IN32: {
        bits = 32;
        break;
      }
      case Id.RAW: {
        bits = 8;
        form = FORM_UNSIGNED;
        break;
      }
      case Id.FL32:
      case Id.FL32_CAPITAL: {
        bits = 32;
        form = FORM_BIG | FORM_FLOAT;
        break;
      }
      case Id.FL64:
      case Id.FL64_CAPITAL: {
        bits = 64;
        form = FORM_BIG | FORM_FLOAT;
        break;
      }
      default: {
        giveUp(context, Reason.encoding_unsupported);
        return;
      }
    }
  }
  if ((form & FORM_FLOAT) == 0 && bits > 32) {
    giveUp(context, Reason.format_unsupported);
    return;
  }
  store<u64>(context, bswap<u32>(load<u32>(fields, 2)), SAMPLES_FRAMES);
  openSamples(context, form, bits, (bits + 7) >> 3, channels, extendedRate(fields + 8));
}

/** Returns the rate that an 80-bit float states, or 0 if it is not a whole number below 2^32. */
function extendedRate(at: usize): u32 {
  // A sign, and an exponent with the bias 16383.
  const exponent = <u32>bswap<u16>(load<u16>(at)) - 16_383;
  const mantissa = bswap<u64>(load<u64>(at, 2));
  if (exponent > 31) return 0;
  const shift = <u64>(63 - exponent);
  return mantissa << (64 - shift) == 0 && mantissa >> 63 == 1 ? <u32>(mantissa >> shift) : 0;
}

/** Reads the desc chunk of a CAF file. */
function readDescription(context: usize): void {
  const fields = context + CHUNK_FIELDS;
  const flags = bswap<u32>(load<u32>(fields, 12));
  if (load<u32>(fields, 8) != <u32>Id.LPCM || (flags & ~(CAF_FLOAT | CAF_LITTLE)) != 0) {
    giveUp(context, Reason.encoding_unsupported);
    return;
  }
  const packet = bswap<u32>(load<u32>(fields, 16));
  const frames = bswap<u32>(load<u32>(fields, 20));
  const channels = bswap<u32>(load<u32>(fields, 24));
  const bits = bswap<u32>(load<u32>(fields, 28));
  const isFloat = (flags & CAF_FLOAT) != 0;
  const whole = bits == 8 || bits == 16 || bits == 24 || bits == 32;
  if ((!isFloat && !whole) || frames != 1 || <u64>packet != <u64>channels * (bits >> 3)) {
    giveUp(context, Reason.format_unsupported);
    return;
  }
  const rate = reinterpret<f64>(bswap<u64>(load<u64>(fields, 0)));
  const isWhole = rate >= 1 && rate <= <f64>u32.MAX_VALUE && floor(rate) == rate;
  const form = (isFloat ? FORM_FLOAT : 0) | ((flags & CAF_LITTLE) == 0 ? FORM_BIG : 0);
  openSamples(context, form, bits, bits >> 3, channels, isWhole ? <u32>rate : 0);
}

/** Begins the samples of the chunk whose fields end at the file offset `at`. */
function readSamples(context: usize, at: u64): void {
  if (load<u32>(context, CONTAINER) == Container.Caf) {
    store<u64>(context, at, SAMPLES_FROM);
    store<u64>(context, load<u64>(context, CHUNK_NEXT), SAMPLES_TO);
  } else {
    const fields = context + CHUNK_FIELDS;
    const from = at + bswap<u32>(load<u32>(fields, 0));
    const to = load<u64>(context, SAMPLES_TO);
    if (bswap<u32>(load<u32>(fields, 4)) != 0) {
      giveUp(context, Reason.format_unsupported);
      return;
    }
    if (from > to) {
      giveUp(context, Reason.structure_malformed);
      return;
    }
    store<u64>(context, from, SAMPLES_FROM);
    const frames = load<u64>(context, SAMPLES_FRAMES);
    // The digest takes all bytes of these samples.
    const frameInFile = frameBytes(context);
    if (frames == 0 || to - from != frames * frameInFile) {
      giveUp(context, frames == 0 ? Reason.samples_absent : Reason.frames_disagree);
      return;
    }
  }
  store<u32>(context, READER_PCM, READER);
}
