/** MD5 (RFC 1321), which FLAC has over its samples. It proves nothing, and finds damage that no CRC finds. */

/** A state: four words, u64 bytes absorbed, one partial block of 64 bytes. */
const LENGTH: usize = 16;
const BUFFER: usize = 24;

export function startMd5(state: usize): void {
  store<u32>(state, 0x6745_2301, 0);
  store<u32>(state, 0xefcd_ab89, 4);
  store<u32>(state, 0x98ba_dcfe, 8);
  store<u32>(state, 0x1032_5476, 12);
  store<u64>(state, 0, LENGTH);
}

/** Hashes any bytes. */
export function absorbMd5(state: usize, data: usize, length: u32): void {
  const total = load<u64>(state, LENGTH);
  store<u64>(state, total + length, LENGTH);
  const fill = <u32>total & 63;
  if (fill > 0) {
    const taken = min<u32>(64 - fill, length);
    memory.copy(state + BUFFER + fill, data, taken);
    if (fill + taken < 64) return;
    compressMd5(state, state + BUFFER, 1);
    data += taken;
    length -= taken;
  }
  compressMd5(state, data, length >> 6);
  memory.copy(state + BUFFER, data + (length & ~63), length & 63);
}

/** Replaces the state by the digest. */
export function closeMd5(state: usize): void {
  const total = load<u64>(state, LENGTH);
  const buffer = state + BUFFER;
  let fill = <u32>total & 63;
  store<u8>(buffer + fill, 0x80);
  fill += 1;
  memory.fill(buffer + fill, 0, 64 - fill);
  if (fill > 56) {
    compressMd5(state, buffer, 1);
    memory.fill(buffer, 0, 56);
  }
  store<u64>(buffer, total << 3, 56);
  compressMd5(state, buffer, 1);
}

function f(x: u32, y: u32, z: u32): u32 {
  return z ^ (x & (y ^ z));
}

function g(x: u32, y: u32, z: u32): u32 {
  return y ^ (z & (x ^ y));
}

function h(x: u32, y: u32, z: u32): u32 {
  return x ^ y ^ z;
}

function i(x: u32, y: u32, z: u32): u32 {
  return y ^ (x | ~z);
}

function compressMd5(state: usize, data: usize, blocks: u32): void {
  let a = load<u32>(state, 0);
  let b = load<u32>(state, 4);
  let c = load<u32>(state, 8);
  let d = load<u32>(state, 12);
  for (; blocks > 0; blocks -= 1) {
    const a0 = a;
    const b0 = b;
    const c0 = c;
    const d0 = d;
    a = b + rotl<u32>(a + f(b, c, d) + 0xd76aa478 + load<u32>(data), 7);
    d = a + rotl<u32>(d + f(a, b, c) + 0xe8c7b756 + load<u32>(data, 4), 12);
    c = d + rotl<u32>(c + f(d, a, b) + 0x242070db + load<u32>(data, 8), 17);
    b = c + rotl<u32>(b + f(c, d, a) + 0xc1bdceee + load<u32>(data, 12), 22);
    a = b + rotl<u32>(a + f(b, c, d) + 0xf57c0faf + load<u32>(data, 16), 7);
    d = a + rotl<u32>(d + f(a, b, c) + 0x4787c62a + load<u32>(data, 20), 12);
    c = d + rotl<u32>(c + f(d, a, b) + 0xa8304613 + load<u32>(data, 24), 17);
    b = c + rotl<u32>(b + f(c, d, a) + 0xfd469501 + load<u32>(data, 28), 22);
    a = b + rotl<u32>(a + f(b, c, d) + 0x698098d8 + load<u32>(data, 32), 7);
    d = a + rotl<u32>(d + f(a, b, c) + 0x8b44f7af + load<u32>(data, 36), 12);
    c = d + rotl<u32>(c + f(d, a, b) + 0xffff5bb1 + load<u32>(data, 40), 17);
    b = c + rotl<u32>(b + f(c, d, a) + 0x895cd7be + load<u32>(data, 44), 22);
    a = b + rotl<u32>(a + f(b, c, d) + 0x6b901122 + load<u32>(data, 48), 7);
    d = a + rotl<u32>(d + f(a, b, c) + 0xfd987193 + load<u32>(data, 52), 12);
    c = d + rotl<u32>(c + f(d, a, b) + 0xa679438e + load<u32>(data, 56), 17);
    b = c + rotl<u32>(b + f(c, d, a) + 0x49b40821 + load<u32>(data, 60), 22);
    a = b + rotl<u32>(a + g(b, c, d) + 0xf61e2562 + load<u32>(data, 4), 5);
    d = a + rotl<u32>(d + g(a, b, c) + 0xc040b340 + load<u32>(data, 24), 9);
    c = d + rotl<u32>(c + g(d, a, b) + 0x265e5a51 + load<u32>(data, 44), 14);
    b = c + rotl<u32>(b + g(c, d, a) + 0xe9b6c7aa + load<u32>(data), 20);
    a = b + rotl<u32>(a + g(b, c, d) + 0xd62f105d + load<u32>(data, 20), 5);
    d = a + rotl<u32>(d + g(a, b, c) + 0x02441453 + load<u32>(data, 40), 9);
    c = d + rotl<u32>(c + g(d, a, b) + 0xd8a1e681 + load<u32>(data, 60), 14);
    b = c + rotl<u32>(b + g(c, d, a) + 0xe7d3fbc8 + load<u32>(data, 16), 20);
    a = b + rotl<u32>(a + g(b, c, d) + 0x21e1cde6 + load<u32>(data, 36), 5);
    d = a + rotl<u32>(d + g(a, b, c) + 0xc33707d6 + load<u32>(data, 56), 9);
    c = d + rotl<u32>(c + g(d, a, b) + 0xf4d50d87 + load<u32>(data, 12), 14);
    b = c + rotl<u32>(b + g(c, d, a) + 0x455a14ed + load<u32>(data, 32), 20);
    a = b + rotl<u32>(a + g(b, c, d) + 0xa9e3e905 + load<u32>(data, 52), 5);
    d = a + rotl<u32>(d + g(a, b, c) + 0xfcefa3f8 + load<u32>(data, 8), 9);
    c = d + rotl<u32>(c + g(d, a, b) + 0x676f02d9 + load<u32>(data, 28), 14);
    b = c + rotl<u32>(b + g(c, d, a) + 0x8d2a4c8a + load<u32>(data, 48), 20);
    a = b + rotl<u32>(a + h(b, c, d) + 0xfffa3942 + load<u32>(data, 20), 4);
    d = a + rotl<u32>(d + h(a, b, c) + 0x8771f681 + load<u32>(data, 32), 11);
    c = d + rotl<u32>(c + h(d, a, b) + 0x6d9d6122 + load<u32>(data, 44), 16);
    b = c + rotl<u32>(b + h(c, d, a) + 0xfde5380c + load<u32>(data, 56), 23);
    a = b + rotl<u32>(a + h(b, c, d) + 0xa4beea44 + load<u32>(data, 4), 4);
    d = a + rotl<u32>(d + h(a, b, c) + 0x4bdecfa9 + load<u32>(data, 16), 11);
    c = d + rotl<u32>(c + h(d, a, b) + 0xf6bb4b60 + load<u32>(data, 28), 16);
    b = c + rotl<u32>(b + h(c, d, a) + 0xbebfbc70 + load<u32>(data, 40), 23);
    a = b + rotl<u32>(a + h(b, c, d) + 0x289b7ec6 + load<u32>(data, 52), 4);
    d = a + rotl<u32>(d + h(a, b, c) + 0xeaa127fa + load<u32>(data), 11);
    c = d + rotl<u32>(c + h(d, a, b) + 0xd4ef3085 + load<u32>(data, 12), 16);
    b = c + rotl<u32>(b + h(c, d, a) + 0x04881d05 + load<u32>(data, 24), 23);
    a = b + rotl<u32>(a + h(b, c, d) + 0xd9d4d039 + load<u32>(data, 36), 4);
    d = a + rotl<u32>(d + h(a, b, c) + 0xe6db99e5 + load<u32>(data, 48), 11);
    c = d + rotl<u32>(c + h(d, a, b) + 0x1fa27cf8 + load<u32>(data, 60), 16);
    b = c + rotl<u32>(b + h(c, d, a) + 0xc4ac5665 + load<u32>(data, 8), 23);
    a = b + rotl<u32>(a + i(b, c, d) + 0xf4292244 + load<u32>(data), 6);
    d = a + rotl<u32>(d + i(a, b, c) + 0x432aff97 + load<u32>(data, 28), 10);
    c = d + rotl<u32>(c + i(d, a, b) + 0xab9423a7 + load<u32>(data, 56), 15);
    b = c + rotl<u32>(b + i(c, d, a) + 0xfc93a039 + load<u32>(data, 20), 21);
    a = b + rotl<u32>(a + i(b, c, d) + 0x655b59c3 + load<u32>(data, 48), 6);
    d = a + rotl<u32>(d + i(a, b, c) + 0x8f0ccc92 + load<u32>(data, 12), 10);
    c = d + rotl<u32>(c + i(d, a, b) + 0xffeff47d + load<u32>(data, 40), 15);
    b = c + rotl<u32>(b + i(c, d, a) + 0x85845dd1 + load<u32>(data, 4), 21);
    a = b + rotl<u32>(a + i(b, c, d) + 0x6fa87e4f + load<u32>(data, 32), 6);
    d = a + rotl<u32>(d + i(a, b, c) + 0xfe2ce6e0 + load<u32>(data, 60), 10);
    c = d + rotl<u32>(c + i(d, a, b) + 0xa3014314 + load<u32>(data, 24), 15);
    b = c + rotl<u32>(b + i(c, d, a) + 0x4e0811a1 + load<u32>(data, 52), 21);
    a = b + rotl<u32>(a + i(b, c, d) + 0xf7537e82 + load<u32>(data, 16), 6);
    d = a + rotl<u32>(d + i(a, b, c) + 0xbd3af235 + load<u32>(data, 44), 10);
    c = d + rotl<u32>(c + i(d, a, b) + 0x2ad7d2bb + load<u32>(data, 8), 15);
    b = c + rotl<u32>(b + i(c, d, a) + 0xeb86d391 + load<u32>(data, 36), 21);
    a += a0;
    b += b0;
    c += c0;
    d += d0;
    data += 64;
  }
  store<u32>(state, a, 0);
  store<u32>(state, b, 4);
  store<u32>(state, c, 8);
  store<u32>(state, d, 12);
}
