import {
  FORM_FLOAT,
  READER,
  READER_NONE,
  RUN_LENGTH,
  SAMPLE_BITS,
  SAMPLE_FORM,
  SAMPLE_IS_JOINED,
  SAMPLE_TAKEN,
  SAMPLE_WIDTH,
  SAMPLES,
  SAMPLES_HEAD,
  SAMPLES_HEAD_BYTES,
  SAMPLES_REASON,
} from '../src/core/engine/core-layout';
import { absorb, start } from './digest';
import { Reason } from './samples-reason';

/** Gives the samples up. The first reason is kept. */
export function giveUp(context: usize, reason: Reason): void {
  if (load<u32>(context, SAMPLES_REASON) == 0) store<u32>(context, <u32>reason + 1, SAMPLES_REASON);
  store<u32>(context, READER_NONE, READER);
  store<u32>(context, 0, RUN_LENGTH);
  store<u32>(context, 0, SAMPLE_IS_JOINED);
}

/**
 * Begins the digest of samples in this format, with its header. Returns false, and gives the samples up, if the
 * format is not supported.
 * @param width bytes of a sample in the file, or 0 if the samples are decoded
 */
export function openSamples(
  context: usize,
  form: u32,
  bits: u32,
  width: u32,
  channels: u32,
  rate: u32,
): bool {
  const isFloat = (form & FORM_FLOAT) != 0;
  const taken = (bits + 7) >> 3;
  const sound = isFloat ? bits == 32 || bits == 64 : bits > 0 && bits <= 64;
  if (!sound || channels == 0 || channels > 0xffff || rate == 0) {
    giveUp(context, Reason.format_unsupported);
    return false;
  }
  const head = context + SAMPLES_HEAD;
  // The text "TMSAMP1" and a zero, in the order of its bytes.
  store<u64>(head, 0x0031_504d_4153_4d54);
  store<u8>(head, isFloat ? 1 : 0, 8);
  store<u8>(head, taken, 9);
  store<u16>(head, channels, 10);
  store<u32>(head, rate, 12);
  store<u32>(context, width, SAMPLE_WIDTH);
  store<u32>(context, taken, SAMPLE_TAKEN);
  store<u32>(context, bits, SAMPLE_BITS);
  store<u32>(context, form, SAMPLE_FORM);
  start(context + SAMPLES);
  absorb(context + SAMPLES, head, SAMPLES_HEAD_BYTES);
  return true;
}

/** Returns the bytes of a frame in the digest. */
export function frameBytes(context: usize): u64 {
  return <u64>load<u32>(context, SAMPLE_TAKEN) * load<u16>(context, SAMPLES_HEAD + 10);
}
