/** Layout of a decoder: byte offsets from its address. The decoder of one upload holds nothing of another. */

/** u32: the state between two units of bits, see Phase in flac.ts. */
export const PHASE: usize = 0;
/** u32: the number of bits in BITS that are not taken yet; u64: these bits, from the highest on, then zeros. */
export const COUNT: usize = 4;
export const BITS: usize = 8;
/** u32, u32: addresses of the next byte of the slice, and of its end. */
export const DATA: usize = 16;
export const END: usize = 20;
/** u64: file offset of the byte at address 0, which wraps. */
export const ORIGIN: usize = 24;
/** u32: CRC-16 of the frame up to CRC_FROM; u32: address of the first byte that is not in it. */
export const CRC: usize = 32;
export const CRC_FROM: usize = 36;
/** u32, u32: the number of bytes that are collected in HEAD, and that are wanted there. */
export const FILL: usize = 40;
export const WANT: usize = 44;
export const HEAD: usize = 48;
/** u32: the bytes of a metadata block to skip; u32: 1 if the block is the last one. */
export const SKIP: usize = 88;
export const IS_LAST: usize = 92;
/** u64: samples of a channel that the file states, 0 = not stated. */
export const TOTAL: usize = 96;
/** The MD5 that the file states; u32: 1 if the file states one. */
export const MD5_STATED: usize = 104;
export const HAS_MD5: usize = 120;
/** u64: file offset of an ID3v1 tag. */
export const TAIL_AT: usize = 128;
/** u32 each: the sample rate in Hz, the channels and the bits of a sample of the file. */
export const RATE: usize = 136;
export const CHANNELS: usize = 140;
export const DEPTH: usize = 144;
/** u32, u32: samples of a channel in the frame, and how its channels are stored. */
export const FRAME_SIZE: usize = 148;
export const ASSIGNMENT: usize = 152;
/** u32 each: the values of the subframe. */
export const CHANNEL: usize = 156;
export const SUB_DEPTH: usize = 160;
export const WASTED: usize = 164;
export const KIND: usize = 168;
export const ORDER: usize = 172;
export const PRECISION: usize = 176;
export const SHIFT: usize = 180;
/** u32: the next sample or coefficient; u32: the number of samples that are stored as they are. */
export const INDEX: usize = 184;
export const RAW_END: usize = 188;
/** u32 each: the values of the partition of the residual. */
export const PARTITION_SIZE: usize = 192;
export const PARTITION_END: usize = 196;
export const PARAMETER_BITS: usize = 200;
export const PARAMETER: usize = 204;
export const IS_ESCAPED: usize = 208;
/** u32: 1 if the quotient of the next residual is complete; u64: its value so far. */
export const IS_QUOTIENT: usize = 212;
export const QUOTIENT: usize = 216;
/** The coefficients, i32 each, from the oldest sample's on, after zeros up to a multiple of four. */
export const COEFFICIENTS: usize = 224;
export const MD5: usize = 384;
/** u16 each: the CRC-16 of each byte. */
export const CRC_TABLE: usize = 512;
/** The samples as the digest takes them, before they are hashed. */
export const STAGING: usize = 1024;
export const STAGING_BYTES: u32 = 16_384;
/** Samples of the frame, channel by channel: i32 each, or i64 if a difference of two channels has 33 bits. */
export const CHANNEL_SAMPLES: usize = 20_992;

/** The kinds of subframes, as KIND has them. */
export const enum Kind {
  Constant,
  Verbatim,
  Fixed,
  Linear,
}

/** The values of ASSIGNMENT for two channels if one of them is stored as a difference. */
export const LEFT_SIDE: u32 = 8;
export const SIDE_RIGHT: u32 = 9;
export const MID_SIDE: u32 = 10;
