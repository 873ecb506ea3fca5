import {
  CHUNK_NEXT,
  CONTAINER,
  CONTAINER_AT,
  DATA_OFFSET,
  DATA_SIZE,
  DECODER,
  DS64_APPLIES,
  ENCODING,
  FLAG_DATA,
  FLAG_FMT_WHOLE,
  FLAG_WALKED,
  FMT,
  FORM_FLOAT,
  FORM_UNSIGNED,
  READER,
  READER_FLAC,
  READER_NONE,
  READER_PAUSED,
  READER_PCM,
  READER_WAITING,
  RUN_LENGTH,
  RUN_OFFSET,
  SAMPLE_IS_JOINED,
  SAMPLE_PART_FILL,
  SAMPLE_TAKEN,
  SAMPLES,
  SAMPLES_BYTES,
  SAMPLES_FROM,
  SAMPLES_REASON,
  SAMPLES_TO,
} from '../src/core/engine/core-layout';
import { openChunks, walkChunks } from './chunk-samples';
import { Container } from './container';
import { foundFrom, hasFlag, position } from './context';
import { absorb, close } from './digest';
import { ENCODING_FLOAT, ENCODING_OTHER, SENTINEL } from './fields';
import { Finding } from './findings';
import { closeFlac, openFlac } from './flac';
import { frameBytes, giveUp, openSamples } from './samples-digest';
import { Reason } from './samples-reason';

/** Finds the samples in the slice of `length` bytes at `data` that was walked last. */
export function locate(context: usize, data: usize, length: u32): void {
  store<u32>(context, 0, RUN_LENGTH);
  store<u32>(context, 0, SAMPLE_IS_JOINED);
  if (load<u32>(context, READER) == READER_WAITING) chooseReader(context);
  walkChunks(context, data, length);
  if (load<u32>(context, READER) != READER_PCM) return;
  const end = position(context);
  const begin = end - length;
  const from = max(load<u64>(context, SAMPLES_FROM), begin);
  const to = min(load<u64>(context, SAMPLES_TO), end);
  if (from >= to) return;
  store<u32>(context, <u32>(from - begin), RUN_OFFSET);
  store<u32>(context, <u32>(to - from), RUN_LENGTH);
}

function chooseReader(context: usize): void {
  switch (load<u32>(context, CONTAINER)) {
    case Container.Riff:
    case Container.Rf64:
    case Container.Bw64: {
      if (foundFrom(context, Finding.tag_before_riff, 0)) giveUp(context, Reason.container_unsupported);
      else if (hasFlag(context, FLAG_DATA)) openWave(context);
      return;
    }
    case Container.Aiff:
    case Container.Aifc:
    case Container.Caf: {
      if (load<u64>(context, CONTAINER_AT) != 0) giveUp(context, Reason.container_unsupported);
      else if (load<u64>(context, CHUNK_NEXT) == 0) openChunks(context);
      return;
    }
    case Container.Flac: {
      if (load<u32>(context, DECODER) == 0) giveUp(context, Reason.decoder_busy);
      else openFlac(context);
      return;
    }
    case Container.Unknown:
      return;
    default:
      giveUp(context, Reason.container_unsupported);
  }
}

/** Begins the samples of a wave file, whose data chunk has begun. */
function openWave(context: usize): void {
  if (foundFrom(context, Finding.data_before_fmt, 0)) {
    giveUp(context, Reason.structure_malformed);
    return;
  }
  const fmt = context + FMT;
  const encoding = load<u32>(context, ENCODING);
  if (!hasFlag(context, FLAG_FMT_WHOLE) || encoding == ENCODING_OTHER) {
    giveUp(context, Reason.encoding_unsupported);
    return;
  }
  const channels = <u32>load<u16>(fmt, 2);
  const container = <u32>load<u16>(fmt, 14);
  const width = (container + 7) >> 3;
  const isExtensible = load<u16>(fmt) == 0xfffe;
  const stated = isExtensible ? <u32>load<u16>(fmt, 18) : 0;
  const bits = stated == 0 ? container : stated;
  const isFloat = encoding == ENCODING_FLOAT;
  if (
    load<u16>(fmt, 12) != width * channels ||
    bits > container ||
    (isFloat && bits != container) ||
    foundFrom(context, Finding.fmt_malformed, 0)
  ) {
    giveUp(context, Reason.format_unsupported);
    return;
  }
  const size = load<u64>(context, DATA_SIZE);
  if (size == SENTINEL && load<u32>(context, DS64_APPLIES) == 0) {
    giveUp(context, Reason.samples_unsized);
    return;
  }
  const form = isFloat ? FORM_FLOAT : width == 1 ? FORM_UNSIGNED : 0;
  if (!openSamples(context, form, bits, width, channels, load<u32>(fmt, 4))) return;
  const from = load<u64>(context, DATA_OFFSET);
  store<u64>(context, from, SAMPLES_FROM);
  store<u64>(context, from + size, SAMPLES_TO);
  store<u32>(context, READER_PCM, READER);
}

/** Counts the samples of the slice that was processed last, as the digest takes them. */
export function countSamples(context: usize): void {
  const joined = load<u32>(context, SAMPLE_IS_JOINED) == 0 ? 0 : load<u32>(context, SAMPLE_TAKEN);
  const bytes = load<u64>(context, SAMPLES_BYTES) + joined + load<u32>(context, RUN_LENGTH);
  store<u64>(context, bytes, SAMPLES_BYTES);
}

/** Ends the digest of the samples, or finds why there is none. The file has ended. */
export function closeSamples(context: usize): void {
  const reader = load<u32>(context, READER);
  if (reader == READER_NONE) return;
  if (reader == READER_WAITING) {
    const isRead = hasFlag(context, FLAG_WALKED) || load<u64>(context, CHUNK_NEXT) != 0;
    giveUp(context, isRead ? Reason.samples_absent : Reason.container_unsupported);
    return;
  }
  if (isWave(context)) checkWave(context);
  if (reader == READER_FLAC) closeFlac(context);
  else if (reader == READER_PAUSED) giveUp(context, Reason.samples_incomplete);
  // An open CAF file has its samples to its end.
  const to = load<u64>(context, SAMPLES_TO);
  if (to > position(context) && to != u64.MAX_VALUE) giveUp(context, Reason.samples_incomplete);
  const bytes = load<u64>(context, SAMPLES_BYTES);
  const size = frameBytes(context);
  if ((size != 0 && bytes % size != 0) || load<u32>(context, SAMPLE_PART_FILL) != 0)
    giveUp(context, Reason.frames_incomplete);
  if (bytes == 0) giveUp(context, Reason.samples_absent);
  if (load<u32>(context, SAMPLES_REASON) != 0) return;
  // The number of frames ends the digest. RUN_OFFSET and RUN_LENGTH are free now, and lie side by side.
  store<u64>(context, bytes / size, RUN_OFFSET);
  absorb(context + SAMPLES, context + RUN_OFFSET, 8);
  close(context + SAMPLES);
}

function isWave(context: usize): bool {
  const container = load<u32>(context, CONTAINER);
  return container == Container.Riff || container == Container.Rf64 || container == Container.Bw64;
}

/** Finds what in a wave file makes its samples ambiguous. */
function checkWave(context: usize): void {
  if (
    foundFrom(context, Finding.duplicate_data, 0) ||
    foundFrom(context, Finding.duplicate_fmt, 0) ||
    foundFrom(context, Finding.ds64_mismatch, 0) ||
    foundFrom(context, Finding.too_many_chunks, 0)
  )
    giveUp(context, Reason.samples_ambiguous);
  if (foundFrom(context, Finding.data_size_streaming, 0)) giveUp(context, Reason.samples_unsized);
}
