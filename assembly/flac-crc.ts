import { CRC_TABLE } from './flac-state';

/** Writes the CRC-16 of each byte (RFC 9639, 9.3: the polynomial x^16 + x^15 + x^2 + 1). */
export function fillCrcTable(decoder: usize): void {
  for (let byte: u32 = 0; byte < 256; byte += 1) {
    let crc = byte << 8;
    for (let bit = 0; bit < 8; bit += 1) crc = (crc & 0x8000) != 0 ? (crc << 1) ^ 0x8005 : crc << 1;
    store<u16>(decoder + CRC_TABLE + (byte << 1), <u16>crc);
  }
}

/** Returns the CRC-16 that goes on from `crc` over [from, to). */
export function crc16(decoder: usize, crc: u32, from: usize, to: usize): u32 {
  const table = decoder + CRC_TABLE;
  for (; from < to; from += 1)
    crc = ((crc << 8) & 0xffff) ^ <u32>load<u16>(table + (((crc >> 8) ^ load<u8>(from)) << 1));
  return crc;
}

/** Returns the CRC-8 of a frame header (RFC 9639, 9.1.8: the polynomial x^8 + x^2 + x + 1). */
export function crc8(from: usize, length: u32): u32 {
  let crc: u32 = 0;
  for (let i: u32 = 0; i < length; i += 1) {
    crc ^= load<u8>(from + i);
    for (let bit = 0; bit < 8; bit += 1) crc = (crc & 0x80) != 0 ? ((crc << 1) ^ 0x107) & 0xff : crc << 1;
  }
  return crc;
}
