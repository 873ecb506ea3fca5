/** The checksum CRC-32C (Castagnoli, RFC 3720 appendix B.4), reflected, as in LevelDB's log and former rows. */

const TABLE: Readonly<Uint32Array> = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit += 1) crc = crc & 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1;
  return crc;
});

/**
 * Returns the checksum of bytes.
 * @param seed the result over what comes before `bytes`; 0 at the start
 * @returns unsigned 32 bits
 */
export function crc32c(bytes: Uint8Array, seed = 0): number {
  let crc = ~seed;
  for (let i = 0; i < bytes.length; i += 1) crc = (crc >>> 8) ^ TABLE[(crc ^ bytes[i]!) & 0xff]!;
  return ~crc >>> 0;
}

/** Returns the checksum of a text of ASCII, without encoding it first. */
export function crc32cOfAscii(text: string, seed = 0): number {
  let crc = ~seed;
  for (let i = 0; i < text.length; i += 1) crc = (crc >>> 8) ^ TABLE[(crc ^ text.charCodeAt(i)) & 0xff]!;
  return ~crc >>> 0;
}
