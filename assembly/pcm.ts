import {
  FORM_BIG,
  FORM_UNSIGNED,
  RUN_LENGTH,
  RUN_OFFSET,
  SAMPLE_BITS,
  SAMPLE_FORM,
  SAMPLE_IS_JOINED,
  SAMPLE_JOINED,
  SAMPLE_PART,
  SAMPLE_PART_FILL,
  SAMPLE_TAKEN,
  SAMPLE_WIDTH,
} from '../src/engine/core-layout';
import { giveUp } from './samples';
import { Reason } from './samples-reason';

/** Returns true if the digest takes the bytes of the samples as they are. */
export function isDirect(context: usize): bool {
  const width = load<u32>(context, SAMPLE_WIDTH);
  const form = load<u32>(context, SAMPLE_FORM);
  return load<u32>(context, SAMPLE_BITS) == width << 3 && (form & (FORM_BIG | FORM_UNSIGNED)) == 0;
}

/**
 * Replaces the samples of the slice at `address` by what the digest takes of them: little-endian, signed, without the
 * bytes below the valid bits. That is never longer than in the file. A sample that began in the slice before goes to
 * SAMPLE_JOINED, and a sample that continues in the next slice is kept.
 */
export function convert(context: usize, address: usize): void {
  let from = address + load<u32>(context, RUN_OFFSET);
  const to = from + load<u32>(context, RUN_LENGTH);
  const width = load<u32>(context, SAMPLE_WIDTH);
  const part = context + SAMPLE_PART;
  let fill = load<u32>(context, SAMPLE_PART_FILL);
  let dirt: u64 = 0;
  if (fill > 0) {
    while (fill < width && from < to) {
      store<u8>(part + fill, load<u8>(from));
      fill += 1;
      from += 1;
    }
    if (fill == width) {
      dirt = rewrite(context, part, part + width, context + SAMPLE_JOINED);
      store<u32>(context, 1, SAMPLE_IS_JOINED);
      fill = 0;
    }
  }
  const rest = <u32>(to - from) % width;
  if (rest > 0) {
    memory.copy(part, to - rest, rest);
    fill = rest;
  }
  store<u32>(context, fill, SAMPLE_PART_FILL);
  dirt |= rewrite(context, from, to - rest, from);
  store<u32>(context, <u32>(from - address), RUN_OFFSET);
  store<u32>(context, (<u32>(to - rest - from) / width) * load<u32>(context, SAMPLE_TAKEN), RUN_LENGTH);
  if (dirt != 0) giveUp(context, Reason.padding_not_zero);
}

/**
 * Writes the samples of [from, to) at `out`, as the digest takes them. Returns the bits below the valid ones of all
 * samples.
 */
function rewrite(context: usize, from: usize, to: usize, out: usize): u64 {
  const width = load<u32>(context, SAMPLE_WIDTH);
  const taken = load<u32>(context, SAMPLE_TAKEN);
  const form = load<u32>(context, SAMPLE_FORM);
  const isBig = (form & FORM_BIG) != 0;
  const flip: u64 = (form & FORM_UNSIGNED) != 0 ? 0x80 : 0;
  const below = ((<u64>width) << 3) - load<u32>(context, SAMPLE_BITS);
  const mask = ((<u64>1) << below) - 1;
  const shift = (<u64>(width - taken)) << 3;
  let dirt: u64 = 0;
  while (from < to) {
    let value: u64 = 0;
    if (width == 2) value = load<u16>(from);
    else if (width == 3) value = <u64>load<u16>(from) | ((<u64>load<u8>(from, 2)) << 16);
    else if (width == 4) value = load<u32>(from);
    else for (let i: u32 = 0; i < width; i += 1) value |= (<u64>load<u8>(from + i)) << ((<u64>i) << 3);
    if (isBig) value = bswap<u64>(value) >> (64 - ((<u64>width) << 3));
    value ^= flip;
    dirt |= value & mask;
    value >>= shift;
    if (taken == 2) store<u16>(out, <u16>value);
    else if (taken == 3) {
      store<u16>(out, <u16>value);
      store<u8>(out, <u8>(value >> 16), 2);
    } else if (taken == 4) store<u32>(out, <u32>value);
    else for (let i: u32 = 0; i < taken; i += 1) store<u8>(out + i, <u8>(value >> ((<u64>i) << 3)));
    from += width;
    out += taken;
  }
  return dirt;
}
