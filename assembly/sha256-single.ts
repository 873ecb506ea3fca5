// Written by generate-sha256.mjs; change it there.
// SHA-256 of one stream: scalar rounds, message schedule four words at a time.
import { rotate, turn } from './vectors';

// rotr 2 ^ rotr 13 ^ rotr 22, and rotr 6 ^ rotr 11 ^ rotr 25. A rotation overwrites its operand, so nesting
// saves two copies a round: a quarter of the speed.
@inline
function sigma0(x: i32): i32 {
  return rotr(rotr(rotr(x, 9) ^ x, 11) ^ x, 2);
}
@inline
function sigma1(x: i32): i32 {
  return rotr(rotr(rotr(x, 14) ^ x, 5) ^ x, 6);
}
/**
 * Returns the small sigma 1 of two words. Each word fills a 64-bit lane twice, so that one shift rotates it. The
 * result is in the lanes' lower halves.
 */
@inline
function small1(pairs: v128): v128 {
  return v128.xor(v128.xor(i64x2.shr_u(pairs, 17), i64x2.shr_u(pairs, 19)), i32x4.shr_u(pairs, 10));
}
/** Moves the lower halves of the lanes to words 0 and 1, and sets the others to zero. */
@inline
function toLower(x: v128): v128 {
  return i8x16.swizzle(x, i8x16(0, 1, 2, 3, 8, 9, 10, 11, -1, -1, -1, -1, -1, -1, -1, -1));
}
/** Moves the lower halves of the lanes to words 2 and 3, and sets the others to zero. */
@inline
function toUpper(x: v128): v128 {
  return i8x16.swizzle(x, i8x16(-1, -1, -1, -1, -1, -1, -1, -1, 0, 1, 2, 3, 8, 9, 10, 11));
}
/** Returns the four words after the sixteen in x0 to x3. The upper two depend on the lower two, hence two steps. */
@inline
function expand(x0: v128, x1: v128, x2: v128, x3: v128): v128 {
  const w15 = v128.shuffle<i32>(x0, x1, 1, 2, 3, 4);
  const w7 = v128.shuffle<i32>(x2, x3, 1, 2, 3, 4);
  const s0 = v128.xor(v128.xor(rotate(w15, 7), rotate(w15, 18)), i32x4.shr_u(w15, 3));
  const sum = i32x4.add(i32x4.add(x0, w7), s0);
  const lower = i32x4.add(sum, toLower(small1(v128.shuffle<i32>(x3, x3, 2, 2, 3, 3))));
  return i32x4.add(lower, toUpper(small1(v128.shuffle<i32>(lower, lower, 0, 0, 1, 1))));
}

/** Runs `blocks` whole blocks at `p` into the eight state words (native order) at `s`. */
export function compress(s: usize, p: usize, blocks: u32): void {
  let k: v128, m: i32, n: i32;
  let a = load<i32>(s, 0);
  let b = load<i32>(s, 4);
  let c = load<i32>(s, 8);
  let d = load<i32>(s, 12);
  let e = load<i32>(s, 16);
  let f = load<i32>(s, 20);
  let g = load<i32>(s, 24);
  let h = load<i32>(s, 28);
  const end = p + (<usize>blocks << 6);
  for (; p < end; p += 64) {
    const a0 = a, b0 = b, c0 = c, d0 = d, e0 = e, f0 = f, g0 = g, h0 = h;
    let x0 = turn(v128.load(p));
    let x1 = turn(v128.load(p, 16));
    let x2 = turn(v128.load(p, 32));
    let x3 = turn(v128.load(p, 48));
    n = b ^ c;
    k = i32x4.add(x0, i32x4(<i32>0x428a2f98, <i32>0x71374491, <i32>0xb5c0fbcf, <i32>0xe9b5dba5));
    h = h + i32x4.extract_lane(k, 0) + (g ^ (e & (f ^ g))) + sigma1(e);
    d += h;
    m = a ^ b;
    h = h + (b ^ (m & n)) + sigma0(a);
    g = g + i32x4.extract_lane(k, 1) + (f ^ (d & (e ^ f))) + sigma1(d);
    c += g;
    n = h ^ a;
    g = g + (a ^ (n & m)) + sigma0(h);
    x0 = expand(x0, x1, x2, x3);
    f = f + i32x4.extract_lane(k, 2) + (e ^ (c & (d ^ e))) + sigma1(c);
    b += f;
    m = g ^ h;
    f = f + (h ^ (m & n)) + sigma0(g);
    e = e + i32x4.extract_lane(k, 3) + (d ^ (b & (c ^ d))) + sigma1(b);
    a += e;
    n = f ^ g;
    e = e + (g ^ (n & m)) + sigma0(f);
    k = i32x4.add(x1, i32x4(<i32>0x3956c25b, <i32>0x59f111f1, <i32>0x923f82a4, <i32>0xab1c5ed5));
    d = d + i32x4.extract_lane(k, 0) + (c ^ (a & (b ^ c))) + sigma1(a);
    h += d;
    m = e ^ f;
    d = d + (f ^ (m & n)) + sigma0(e);
    c = c + i32x4.extract_lane(k, 1) + (b ^ (h & (a ^ b))) + sigma1(h);
    g += c;
    n = d ^ e;
    c = c + (e ^ (n & m)) + sigma0(d);
    x1 = expand(x1, x2, x3, x0);
    b = b + i32x4.extract_lane(k, 2) + (a ^ (g & (h ^ a))) + sigma1(g);
    f += b;
    m = c ^ d;
    b = b + (d ^ (m & n)) + sigma0(c);
    a = a + i32x4.extract_lane(k, 3) + (h ^ (f & (g ^ h))) + sigma1(f);
    e += a;
    n = b ^ c;
    a = a + (c ^ (n & m)) + sigma0(b);
    k = i32x4.add(x2, i32x4(<i32>0xd807aa98, <i32>0x12835b01, <i32>0x243185be, <i32>0x550c7dc3));
    h = h + i32x4.extract_lane(k, 0) + (g ^ (e & (f ^ g))) + sigma1(e);
    d += h;
    m = a ^ b;
    h = h + (b ^ (m & n)) + sigma0(a);
    g = g + i32x4.extract_lane(k, 1) + (f ^ (d & (e ^ f))) + sigma1(d);
    c += g;
    n = h ^ a;
    g = g + (a ^ (n & m)) + sigma0(h);
    x2 = expand(x2, x3, x0, x1);
    f = f + i32x4.extract_lane(k, 2) + (e ^ (c & (d ^ e))) + sigma1(c);
    b += f;
    m = g ^ h;
    f = f + (h ^ (m & n)) + sigma0(g);
    e = e + i32x4.extract_lane(k, 3) + (d ^ (b & (c ^ d))) + sigma1(b);
    a += e;
    n = f ^ g;
    e = e + (g ^ (n & m)) + sigma0(f);
    k = i32x4.add(x3, i32x4(<i32>0x72be5d74, <i32>0x80deb1fe, <i32>0x9bdc06a7, <i32>0xc19bf174));
    d = d + i32x4.extract_lane(k, 0) + (c ^ (a & (b ^ c))) + sigma1(a);
    h += d;
    m = e ^ f;
    d = d + (f ^ (m & n)) + sigma0(e);
    c = c + i32x4.extract_lane(k, 1) + (b ^ (h & (a ^ b))) + sigma1(h);
    g += c;
    n = d ^ e;
    c = c + (e ^ (n & m)) + sigma0(d);
    x3 = expand(x3, x0, x1, x2);
    b = b + i32x4.extract_lane(k, 2) + (a ^ (g & (h ^ a))) + sigma1(g);
    f += b;
    m = c ^ d;
    b = b + (d ^ (m & n)) + sigma0(c);
    a = a + i32x4.extract_lane(k, 3) + (h ^ (f & (g ^ h))) + sigma1(f);
    e += a;
    n = b ^ c;
    a = a + (c ^ (n & m)) + sigma0(b);
    k = i32x4.add(x0, i32x4(<i32>0xe49b69c1, <i32>0xefbe4786, <i32>0x0fc19dc6, <i32>0x240ca1cc));
    h = h + i32x4.extract_lane(k, 0) + (g ^ (e & (f ^ g))) + sigma1(e);
    d += h;
    m = a ^ b;
    h = h + (b ^ (m & n)) + sigma0(a);
    g = g + i32x4.extract_lane(k, 1) + (f ^ (d & (e ^ f))) + sigma1(d);
    c += g;
    n = h ^ a;
    g = g + (a ^ (n & m)) + sigma0(h);
    x0 = expand(x0, x1, x2, x3);
    f = f + i32x4.extract_lane(k, 2) + (e ^ (c & (d ^ e))) + sigma1(c);
    b += f;
    m = g ^ h;
    f = f + (h ^ (m & n)) + sigma0(g);
    e = e + i32x4.extract_lane(k, 3) + (d ^ (b & (c ^ d))) + sigma1(b);
    a += e;
    n = f ^ g;
    e = e + (g ^ (n & m)) + sigma0(f);
    k = i32x4.add(x1, i32x4(<i32>0x2de92c6f, <i32>0x4a7484aa, <i32>0x5cb0a9dc, <i32>0x76f988da));
    d = d + i32x4.extract_lane(k, 0) + (c ^ (a & (b ^ c))) + sigma1(a);
    h += d;
    m = e ^ f;
    d = d + (f ^ (m & n)) + sigma0(e);
    c = c + i32x4.extract_lane(k, 1) + (b ^ (h & (a ^ b))) + sigma1(h);
    g += c;
    n = d ^ e;
    c = c + (e ^ (n & m)) + sigma0(d);
    x1 = expand(x1, x2, x3, x0);
    b = b + i32x4.extract_lane(k, 2) + (a ^ (g & (h ^ a))) + sigma1(g);
    f += b;
    m = c ^ d;
    b = b + (d ^ (m & n)) + sigma0(c);
    a = a + i32x4.extract_lane(k, 3) + (h ^ (f & (g ^ h))) + sigma1(f);
    e += a;
    n = b ^ c;
    a = a + (c ^ (n & m)) + sigma0(b);
    k = i32x4.add(x2, i32x4(<i32>0x983e5152, <i32>0xa831c66d, <i32>0xb00327c8, <i32>0xbf597fc7));
    h = h + i32x4.extract_lane(k, 0) + (g ^ (e & (f ^ g))) + sigma1(e);
    d += h;
    m = a ^ b;
    h = h + (b ^ (m & n)) + sigma0(a);
    g = g + i32x4.extract_lane(k, 1) + (f ^ (d & (e ^ f))) + sigma1(d);
    c += g;
    n = h ^ a;
    g = g + (a ^ (n & m)) + sigma0(h);
    x2 = expand(x2, x3, x0, x1);
    f = f + i32x4.extract_lane(k, 2) + (e ^ (c & (d ^ e))) + sigma1(c);
    b += f;
    m = g ^ h;
    f = f + (h ^ (m & n)) + sigma0(g);
    e = e + i32x4.extract_lane(k, 3) + (d ^ (b & (c ^ d))) + sigma1(b);
    a += e;
    n = f ^ g;
    e = e + (g ^ (n & m)) + sigma0(f);
    k = i32x4.add(x3, i32x4(<i32>0xc6e00bf3, <i32>0xd5a79147, <i32>0x06ca6351, <i32>0x14292967));
    d = d + i32x4.extract_lane(k, 0) + (c ^ (a & (b ^ c))) + sigma1(a);
    h += d;
    m = e ^ f;
    d = d + (f ^ (m & n)) + sigma0(e);
    c = c + i32x4.extract_lane(k, 1) + (b ^ (h & (a ^ b))) + sigma1(h);
    g += c;
    n = d ^ e;
    c = c + (e ^ (n & m)) + sigma0(d);
    x3 = expand(x3, x0, x1, x2);
    b = b + i32x4.extract_lane(k, 2) + (a ^ (g & (h ^ a))) + sigma1(g);
    f += b;
    m = c ^ d;
    b = b + (d ^ (m & n)) + sigma0(c);
    a = a + i32x4.extract_lane(k, 3) + (h ^ (f & (g ^ h))) + sigma1(f);
    e += a;
    n = b ^ c;
    a = a + (c ^ (n & m)) + sigma0(b);
    k = i32x4.add(x0, i32x4(<i32>0x27b70a85, <i32>0x2e1b2138, <i32>0x4d2c6dfc, <i32>0x53380d13));
    h = h + i32x4.extract_lane(k, 0) + (g ^ (e & (f ^ g))) + sigma1(e);
    d += h;
    m = a ^ b;
    h = h + (b ^ (m & n)) + sigma0(a);
    g = g + i32x4.extract_lane(k, 1) + (f ^ (d & (e ^ f))) + sigma1(d);
    c += g;
    n = h ^ a;
    g = g + (a ^ (n & m)) + sigma0(h);
    x0 = expand(x0, x1, x2, x3);
    f = f + i32x4.extract_lane(k, 2) + (e ^ (c & (d ^ e))) + sigma1(c);
    b += f;
    m = g ^ h;
    f = f + (h ^ (m & n)) + sigma0(g);
    e = e + i32x4.extract_lane(k, 3) + (d ^ (b & (c ^ d))) + sigma1(b);
    a += e;
    n = f ^ g;
    e = e + (g ^ (n & m)) + sigma0(f);
    k = i32x4.add(x1, i32x4(<i32>0x650a7354, <i32>0x766a0abb, <i32>0x81c2c92e, <i32>0x92722c85));
    d = d + i32x4.extract_lane(k, 0) + (c ^ (a & (b ^ c))) + sigma1(a);
    h += d;
    m = e ^ f;
    d = d + (f ^ (m & n)) + sigma0(e);
    c = c + i32x4.extract_lane(k, 1) + (b ^ (h & (a ^ b))) + sigma1(h);
    g += c;
    n = d ^ e;
    c = c + (e ^ (n & m)) + sigma0(d);
    x1 = expand(x1, x2, x3, x0);
    b = b + i32x4.extract_lane(k, 2) + (a ^ (g & (h ^ a))) + sigma1(g);
    f += b;
    m = c ^ d;
    b = b + (d ^ (m & n)) + sigma0(c);
    a = a + i32x4.extract_lane(k, 3) + (h ^ (f & (g ^ h))) + sigma1(f);
    e += a;
    n = b ^ c;
    a = a + (c ^ (n & m)) + sigma0(b);
    k = i32x4.add(x2, i32x4(<i32>0xa2bfe8a1, <i32>0xa81a664b, <i32>0xc24b8b70, <i32>0xc76c51a3));
    h = h + i32x4.extract_lane(k, 0) + (g ^ (e & (f ^ g))) + sigma1(e);
    d += h;
    m = a ^ b;
    h = h + (b ^ (m & n)) + sigma0(a);
    g = g + i32x4.extract_lane(k, 1) + (f ^ (d & (e ^ f))) + sigma1(d);
    c += g;
    n = h ^ a;
    g = g + (a ^ (n & m)) + sigma0(h);
    x2 = expand(x2, x3, x0, x1);
    f = f + i32x4.extract_lane(k, 2) + (e ^ (c & (d ^ e))) + sigma1(c);
    b += f;
    m = g ^ h;
    f = f + (h ^ (m & n)) + sigma0(g);
    e = e + i32x4.extract_lane(k, 3) + (d ^ (b & (c ^ d))) + sigma1(b);
    a += e;
    n = f ^ g;
    e = e + (g ^ (n & m)) + sigma0(f);
    k = i32x4.add(x3, i32x4(<i32>0xd192e819, <i32>0xd6990624, <i32>0xf40e3585, <i32>0x106aa070));
    d = d + i32x4.extract_lane(k, 0) + (c ^ (a & (b ^ c))) + sigma1(a);
    h += d;
    m = e ^ f;
    d = d + (f ^ (m & n)) + sigma0(e);
    c = c + i32x4.extract_lane(k, 1) + (b ^ (h & (a ^ b))) + sigma1(h);
    g += c;
    n = d ^ e;
    c = c + (e ^ (n & m)) + sigma0(d);
    x3 = expand(x3, x0, x1, x2);
    b = b + i32x4.extract_lane(k, 2) + (a ^ (g & (h ^ a))) + sigma1(g);
    f += b;
    m = c ^ d;
    b = b + (d ^ (m & n)) + sigma0(c);
    a = a + i32x4.extract_lane(k, 3) + (h ^ (f & (g ^ h))) + sigma1(f);
    e += a;
    n = b ^ c;
    a = a + (c ^ (n & m)) + sigma0(b);
    k = i32x4.add(x0, i32x4(<i32>0x19a4c116, <i32>0x1e376c08, <i32>0x2748774c, <i32>0x34b0bcb5));
    h = h + i32x4.extract_lane(k, 0) + (g ^ (e & (f ^ g))) + sigma1(e);
    d += h;
    m = a ^ b;
    h = h + (b ^ (m & n)) + sigma0(a);
    g = g + i32x4.extract_lane(k, 1) + (f ^ (d & (e ^ f))) + sigma1(d);
    c += g;
    n = h ^ a;
    g = g + (a ^ (n & m)) + sigma0(h);
    f = f + i32x4.extract_lane(k, 2) + (e ^ (c & (d ^ e))) + sigma1(c);
    b += f;
    m = g ^ h;
    f = f + (h ^ (m & n)) + sigma0(g);
    e = e + i32x4.extract_lane(k, 3) + (d ^ (b & (c ^ d))) + sigma1(b);
    a += e;
    n = f ^ g;
    e = e + (g ^ (n & m)) + sigma0(f);
    k = i32x4.add(x1, i32x4(<i32>0x391c0cb3, <i32>0x4ed8aa4a, <i32>0x5b9cca4f, <i32>0x682e6ff3));
    d = d + i32x4.extract_lane(k, 0) + (c ^ (a & (b ^ c))) + sigma1(a);
    h += d;
    m = e ^ f;
    d = d + (f ^ (m & n)) + sigma0(e);
    c = c + i32x4.extract_lane(k, 1) + (b ^ (h & (a ^ b))) + sigma1(h);
    g += c;
    n = d ^ e;
    c = c + (e ^ (n & m)) + sigma0(d);
    b = b + i32x4.extract_lane(k, 2) + (a ^ (g & (h ^ a))) + sigma1(g);
    f += b;
    m = c ^ d;
    b = b + (d ^ (m & n)) + sigma0(c);
    a = a + i32x4.extract_lane(k, 3) + (h ^ (f & (g ^ h))) + sigma1(f);
    e += a;
    n = b ^ c;
    a = a + (c ^ (n & m)) + sigma0(b);
    k = i32x4.add(x2, i32x4(<i32>0x748f82ee, <i32>0x78a5636f, <i32>0x84c87814, <i32>0x8cc70208));
    h = h + i32x4.extract_lane(k, 0) + (g ^ (e & (f ^ g))) + sigma1(e);
    d += h;
    m = a ^ b;
    h = h + (b ^ (m & n)) + sigma0(a);
    g = g + i32x4.extract_lane(k, 1) + (f ^ (d & (e ^ f))) + sigma1(d);
    c += g;
    n = h ^ a;
    g = g + (a ^ (n & m)) + sigma0(h);
    f = f + i32x4.extract_lane(k, 2) + (e ^ (c & (d ^ e))) + sigma1(c);
    b += f;
    m = g ^ h;
    f = f + (h ^ (m & n)) + sigma0(g);
    e = e + i32x4.extract_lane(k, 3) + (d ^ (b & (c ^ d))) + sigma1(b);
    a += e;
    n = f ^ g;
    e = e + (g ^ (n & m)) + sigma0(f);
    k = i32x4.add(x3, i32x4(<i32>0x90befffa, <i32>0xa4506ceb, <i32>0xbef9a3f7, <i32>0xc67178f2));
    d = d + i32x4.extract_lane(k, 0) + (c ^ (a & (b ^ c))) + sigma1(a);
    h += d;
    m = e ^ f;
    d = d + (f ^ (m & n)) + sigma0(e);
    c = c + i32x4.extract_lane(k, 1) + (b ^ (h & (a ^ b))) + sigma1(h);
    g += c;
    n = d ^ e;
    c = c + (e ^ (n & m)) + sigma0(d);
    b = b + i32x4.extract_lane(k, 2) + (a ^ (g & (h ^ a))) + sigma1(g);
    f += b;
    m = c ^ d;
    b = b + (d ^ (m & n)) + sigma0(c);
    a = a + i32x4.extract_lane(k, 3) + (h ^ (f & (g ^ h))) + sigma1(f);
    e += a;
    n = b ^ c;
    a = a + (c ^ (n & m)) + sigma0(b);
    a += a0;
    b += b0;
    c += c0;
    d += d0;
    e += e0;
    f += f0;
    g += g0;
    h += h0;
  }
  store<i32>(s, a, 0);
  store<i32>(s, b, 4);
  store<i32>(s, c, 8);
  store<i32>(s, d, 12);
  store<i32>(s, e, 16);
  store<i32>(s, f, 20);
  store<i32>(s, g, 24);
  store<i32>(s, h, 28);
}
