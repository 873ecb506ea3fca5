/** Samples of a FLAC frame: residuals, prediction, stereo. T is i32, or i64 if a difference has 33 bits. */
import {
  ASSIGNMENT,
  BITS,
  CHANNEL,
  CHANNEL_SAMPLES,
  CHANNELS,
  COEFFICIENTS,
  COUNT,
  DATA,
  DEPTH,
  END,
  FRAME_SIZE,
  INDEX,
  IS_ESCAPED,
  IS_QUOTIENT,
  KIND,
  Kind,
  LEFT_SIDE,
  ORDER,
  PARAMETER,
  PARTITION_END,
  QUOTIENT,
  SHIFT,
  SIDE_RIGHT,
  STAGING,
  SUB_DEPTH,
  WASTED,
} from './flac-state';

/** Returns the address of a sample of the frame. */
function sampleAt<T>(decoder: usize, channel: u32, index: u32): usize {
  return decoder + CHANNEL_SAMPLES + <usize>(channel * load<u32>(decoder, FRAME_SIZE) + index) * sizeof<T>();
}

export function storeSample<T>(decoder: usize, index: u32, sample: i64): void {
  store<T>(sampleAt<T>(decoder, load<u32>(decoder, CHANNEL), index), <T>sample);
}

/** Repeats the first sample of the channel. */
export function fillConstant<T>(decoder: usize): void {
  const first = sampleAt<T>(decoder, load<u32>(decoder, CHANNEL), 0);
  const sample = load<T>(first);
  const size = load<u32>(decoder, FRAME_SIZE);
  for (let i: u32 = 1; i < size; i += 1) store<T>(first + i * sizeof<T>(), sample);
}

/**
 * Reads residuals of the partition up to its end or the end of the slice. Returns false for a residual that does not
 * fit into 32 bits.
 */
export function readResiduals<T>(decoder: usize): bool {
  const k = <u64>load<u32>(decoder, PARAMETER);
  const isEscaped = load<u32>(decoder, IS_ESCAPED) != 0;
  const channel = load<u32>(decoder, CHANNEL);
  let out = sampleAt<T>(decoder, channel, load<u32>(decoder, INDEX));
  const stop = sampleAt<T>(decoder, channel, load<u32>(decoder, PARTITION_END));
  const end = <usize>load<u32>(decoder, END);
  let data = <usize>load<u32>(decoder, DATA);
  let count = <u64>load<u32>(decoder, COUNT);
  let acc = load<u64>(decoder, BITS);
  let quotient = load<u64>(decoder, QUOTIENT);
  let isQuotient = isEscaped || load<u32>(decoder, IS_QUOTIENT) != 0;
  let over: u64 = 0;
  while (out < stop) {
    if (count < 32) {
      if (data + 8 <= end) {
        const taken = (64 - count) >> 3;
        // Only whole bytes, so that the bits after the last are zero.
        acc |= (bswap<u64>(load<u64>(data)) & (u64.MAX_VALUE << (64 - (taken << 3)))) >> count;
        count += taken << 3;
        data += <usize>taken;
      } else {
        while (count <= 56 && data < end) {
          acc |= (<u64>load<u8>(data)) << (56 - count);
          count += 8;
          data += 1;
        }
      }
    }
    if (!isQuotient) {
      if (acc == 0) {
        if (count == 0) break;
        quotient += count;
        count = 0;
        continue;
      }
      const zeros = clz(acc);
      quotient += zeros;
      acc = (acc << zeros) << 1;
      count -= zeros + 1;
      isQuotient = true;
    }
    if (count < k) {
      // A refill has at least 57 bits, unless the slice has ended.
      if (data < end) continue;
      break;
    }
    const low = (acc >> 1) >> (63 - k);
    acc <<= k;
    count -= k;
    if (isEscaped) {
      const shift = 64 - k;
      store<T>(out, <T>(k == 0 ? 0 : <i64>(low << shift) >> shift));
    } else {
      const folded = (quotient << k) | low;
      over |= (quotient >> 32) | ((folded + 1) >> 32);
      store<T>(out, <T>(<i64>(folded >> 1) ^ -(<i64>(folded & 1))));
      quotient = 0;
      isQuotient = false;
    }
    out += sizeof<T>();
  }
  store<u32>(decoder, <u32>data, DATA);
  store<u32>(decoder, <u32>count, COUNT);
  store<u64>(decoder, acc, BITS);
  store<u64>(decoder, quotient, QUOTIENT);
  store<u32>(decoder, isQuotient ? 1 : 0, IS_QUOTIENT);
  const first = sampleAt<T>(decoder, channel, 0);
  store<u32>(decoder, <u32>(out - first) / sizeof<T>(), INDEX);
  return over == 0;
}

/** Replaces the residuals of the channel by its samples. Returns false for a sample that has too many bits. */
export function restore<T>(decoder: usize): bool {
  const first = sampleAt<T>(decoder, load<u32>(decoder, CHANNEL), 0);
  const stop = first + load<u32>(decoder, FRAME_SIZE) * sizeof<T>();
  const from = first + load<u32>(decoder, ORDER) * sizeof<T>();
  const kind = load<u32>(decoder, KIND);
  let over: u64 = 0;
  if (kind == Kind.Fixed) over = restoreFixed<T>(load<u32>(decoder, ORDER), from, stop);
  else if (kind == Kind.Linear) over = restoreLinear<T>(decoder, from, stop);
  if (over >> (load<u32>(decoder, SUB_DEPTH) - 1) != 0) return false;
  const wasted = load<u32>(decoder, WASTED);
  if (wasted > 0)
    for (let at = first; at < stop; at += sizeof<T>()) store<T>(at, <T>((<i64>load<T>(at)) << wasted));
  return true;
}

/** Returns a number that has at least as many bits as the sample, without its sign. */
function magnitude(sample: i64): u64 {
  return <u64>(sample ^ (sample >> 63));
}

/** Adds the fixed prediction of this order. Returns the bits of all samples. */
function restoreFixed<T>(order: u32, from: usize, stop: usize): u64 {
  let over: u64 = 0;
  let a: i64 = order > 0 ? <i64>load<T>(from - sizeof<T>()) : 0;
  let b: i64 = order > 1 ? <i64>load<T>(from - 2 * sizeof<T>()) : 0;
  let c: i64 = order > 2 ? <i64>load<T>(from - 3 * sizeof<T>()) : 0;
  let d: i64 = order > 3 ? <i64>load<T>(from - 4 * sizeof<T>()) : 0;
  for (let at = from; at < stop; at += sizeof<T>()) {
    let sample = <i64>load<T>(at);
    if (order == 1) sample += a;
    else if (order == 2) sample += 2 * a - b;
    else if (order == 3) sample += 3 * (a - b) + c;
    else if (order == 4) sample += 4 * (a + c) - 6 * b - d;
    over |= magnitude(sample);
    store<T>(at, <T>sample);
    d = c;
    c = b;
    b = a;
    a = sample;
  }
  return over;
}

/** Adds the linear prediction. Returns the bits of all samples. */
function restoreLinear<T>(decoder: usize, from: usize, stop: usize): u64 {
  const taps = (load<u32>(decoder, ORDER) + 3) & ~3;
  const shift = <i64>load<u32>(decoder, SHIFT);
  const coefficients = decoder + COEFFICIENTS;
  let over: u64 = 0;
  for (let at = from; at < stop; at += sizeof<T>()) {
    // The taps before the first sample of the channel have the coefficient 0.
    const oldest = at - taps * sizeof<T>();
    let sum: i64 = 0;
    for (let i: u32 = 0; i < taps; i += 1)
      sum += <i64>load<i32>(coefficients + (i << 2)) * <i64>load<T>(oldest + i * sizeof<T>());
    const sample = <i64>load<T>(at) + (sum >> shift);
    over |= magnitude(sample);
    store<T>(at, <T>sample);
  }
  return over;
}

/** Turns a stored difference into two channels. Returns false for a sample that has too many bits. */
export function decorrelate<T>(decoder: usize): bool {
  const assignment = load<u32>(decoder, ASSIGNMENT);
  let left = sampleAt<T>(decoder, 0, 0);
  let right = sampleAt<T>(decoder, 1, 0);
  const stop = right;
  let over: u64 = 0;
  for (; left < stop; left += sizeof<T>()) {
    let a = <i64>load<T>(left);
    let b = <i64>load<T>(right);
    if (assignment == LEFT_SIDE) b = a - b;
    else if (assignment == SIDE_RIGHT) a += b;
    else {
      const sum = (a << 1) | (b & 1);
      a = (sum + b) >> 1;
      b = (sum - b) >> 1;
    }
    over |= magnitude(a) | magnitude(b);
    store<T>(left, <T>a);
    store<T>(right, <T>b);
    right += sizeof<T>();
  }
  return over >> (load<u32>(decoder, DEPTH) - 1) == 0;
}

/** Writes `count` frames from the index `from` on to the staging area, little-endian, shifted to the left. */
export function interleave<T>(decoder: usize, from: u32, count: u32, shift: u32): void {
  const channels = load<u32>(decoder, CHANNELS);
  const bytes = (load<u32>(decoder, DEPTH) + 7) >> 3;
  const frame = channels * bytes;
  for (let channel: u32 = 0; channel < channels; channel += 1) {
    let at = sampleAt<T>(decoder, channel, from);
    const stop = at + count * sizeof<T>();
    let out = decoder + STAGING + channel * bytes;
    if (bytes == 2) {
      for (; at < stop; at += sizeof<T>()) {
        store<u16>(out, <u16>((<u32>load<T>(at)) << shift));
        out += frame;
      }
    } else {
      for (; at < stop; at += sizeof<T>()) {
        const value = (<u32>load<T>(at)) << shift;
        store<u8>(out, <u8>value);
        if (bytes > 1) store<u16>(out, <u16>(value >> 8), 1);
        if (bytes > 3) store<u8>(out, <u8>(value >> 24), 3);
        out += frame;
      }
    }
  }
}
