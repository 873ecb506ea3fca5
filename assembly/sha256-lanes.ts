// Written by generate-sha256.mjs; change it there.
// SHA-256 of four independent streams at once: lane i of every vector belongs to stream i.
import { rotate, turn } from './vectors';

@inline
export function low(x: v128, y: v128): v128 {
  return v128.shuffle<i32>(x, y, 0, 4, 1, 5);
}
@inline
export function high(x: v128, y: v128): v128 {
  return v128.shuffle<i32>(x, y, 2, 6, 3, 7);
}
@inline
export function lowHalves(x: v128, y: v128): v128 {
  return v128.shuffle<i64>(x, y, 0, 2);
}
@inline
export function highHalves(x: v128, y: v128): v128 {
  return v128.shuffle<i64>(x, y, 1, 3);
}
@inline
export function sigma0(x: v128): v128 {
  return v128.xor(v128.xor(rotate(x, 2), rotate(x, 13)), rotate(x, 22));
}
// A rotation is two shifts. Joined one by one, not pair by pair, they need fewer registers at once.
@inline
export function sigma1(x: v128): v128 {
  return v128.xor(v128.xor(v128.xor(v128.xor(v128.xor(i32x4.shr_u(x, 6),
    i32x4.shl(x, 26)),
    i32x4.shr_u(x, 11)),
    i32x4.shl(x, 21)),
    i32x4.shr_u(x, 25)),
    i32x4.shl(x, 7));
}
@inline
export function choose(e: v128, f: v128, g: v128, h: v128): v128 {
  return i32x4.add(h, v128.xor(g, v128.and(e, v128.xor(f, g))));
}
@inline
export function expand(w16: v128, w15: v128, w7: v128, w2: v128): v128 {
  const s0 = v128.xor(v128.xor(v128.xor(v128.xor(i32x4.shr_u(w15, 7),
    i32x4.shl(w15, 25)),
    i32x4.shr_u(w15, 18)),
    i32x4.shl(w15, 14)),
    i32x4.shr_u(w15, 3));
  const s1 = v128.xor(v128.xor(v128.xor(v128.xor(i32x4.shr_u(w2, 17),
    i32x4.shl(w2, 15)),
    i32x4.shr_u(w2, 19)),
    i32x4.shl(w2, 13)),
    i32x4.shr_u(w2, 10));
  return i32x4.add(i32x4.add(w16, s0), i32x4.add(w7, s1));
}

/**
 * Runs `blocks` whole blocks of four streams. `s` are the streams' eight state words (native order), `p`
 * their data, anywhere in memory. Two lanes may name the same data but never the same state.
 */
export function compressLanes(s0: usize, s1: usize, s2: usize, s3: usize, p0: usize, p1: usize, p2: usize, p3: usize, blocks: u32): void {
  let r0: v128, r1: v128, r2: v128, r3: v128, u: v128, v: v128, t: v128, x: v128, y: v128;
  let w0: v128, w1: v128, w2: v128, w3: v128, w4: v128, w5: v128, w6: v128, w7: v128, w8: v128, w9: v128, w10: v128, w11: v128, w12: v128, w13: v128, w14: v128, w15: v128;
  r0 = v128.load(s0, 0);
  r1 = v128.load(s1, 0);
  r2 = v128.load(s2, 0);
  r3 = v128.load(s3, 0);
  u = low(r0, r1);
  v = low(r2, r3);
  let a = lowHalves(u, v);
  let b = highHalves(u, v);
  u = high(r0, r1);
  v = high(r2, r3);
  let c = lowHalves(u, v);
  let d = highHalves(u, v);
  r0 = v128.load(s0, 16);
  r1 = v128.load(s1, 16);
  r2 = v128.load(s2, 16);
  r3 = v128.load(s3, 16);
  u = low(r0, r1);
  v = low(r2, r3);
  let e = lowHalves(u, v);
  let f = highHalves(u, v);
  u = high(r0, r1);
  v = high(r2, r3);
  let g = lowHalves(u, v);
  let h = highHalves(u, v);
  const end = <usize>blocks << 6;
  for (let done: usize = 0; done < end; done += 64) {
    const a0 = a, b0 = b, c0 = c, d0 = d, e0 = e, f0 = f, g0 = g, h0 = h;
    r0 = turn(v128.load(p0 + done, 0));
    r1 = turn(v128.load(p1 + done, 0));
    r2 = turn(v128.load(p2 + done, 0));
    r3 = turn(v128.load(p3 + done, 0));
    u = low(r0, r1);
    v = low(r2, r3);
    w0 = lowHalves(u, v);
    w1 = highHalves(u, v);
    u = high(r0, r1);
    v = high(r2, r3);
    w2 = lowHalves(u, v);
    w3 = highHalves(u, v);
    r0 = turn(v128.load(p0 + done, 16));
    r1 = turn(v128.load(p1 + done, 16));
    r2 = turn(v128.load(p2 + done, 16));
    r3 = turn(v128.load(p3 + done, 16));
    u = low(r0, r1);
    v = low(r2, r3);
    w4 = lowHalves(u, v);
    w5 = highHalves(u, v);
    u = high(r0, r1);
    v = high(r2, r3);
    w6 = lowHalves(u, v);
    w7 = highHalves(u, v);
    r0 = turn(v128.load(p0 + done, 32));
    r1 = turn(v128.load(p1 + done, 32));
    r2 = turn(v128.load(p2 + done, 32));
    r3 = turn(v128.load(p3 + done, 32));
    u = low(r0, r1);
    v = low(r2, r3);
    w8 = lowHalves(u, v);
    w9 = highHalves(u, v);
    u = high(r0, r1);
    v = high(r2, r3);
    w10 = lowHalves(u, v);
    w11 = highHalves(u, v);
    r0 = turn(v128.load(p0 + done, 48));
    r1 = turn(v128.load(p1 + done, 48));
    r2 = turn(v128.load(p2 + done, 48));
    r3 = turn(v128.load(p3 + done, 48));
    u = low(r0, r1);
    v = low(r2, r3);
    w12 = lowHalves(u, v);
    w13 = highHalves(u, v);
    u = high(r0, r1);
    v = high(r2, r3);
    w14 = lowHalves(u, v);
    w15 = highHalves(u, v);
    y = v128.xor(b, c);
    t = i32x4.add(i32x4.add(choose(e, f, g, h), i32x4.add(w0, i32x4.splat(<i32>0x428a2f98))), sigma1(e));
    d = i32x4.add(d, t);
    x = v128.xor(a, b);
    h = i32x4.add(i32x4.add(t, sigma0(a)), v128.xor(b, v128.and(x, y)));
    t = i32x4.add(i32x4.add(choose(d, e, f, g), i32x4.add(w1, i32x4.splat(<i32>0x71374491))), sigma1(d));
    c = i32x4.add(c, t);
    y = v128.xor(h, a);
    g = i32x4.add(i32x4.add(t, sigma0(h)), v128.xor(a, v128.and(y, x)));
    t = i32x4.add(i32x4.add(choose(c, d, e, f), i32x4.add(w2, i32x4.splat(<i32>0xb5c0fbcf))), sigma1(c));
    b = i32x4.add(b, t);
    x = v128.xor(g, h);
    f = i32x4.add(i32x4.add(t, sigma0(g)), v128.xor(h, v128.and(x, y)));
    t = i32x4.add(i32x4.add(choose(b, c, d, e), i32x4.add(w3, i32x4.splat(<i32>0xe9b5dba5))), sigma1(b));
    a = i32x4.add(a, t);
    y = v128.xor(f, g);
    e = i32x4.add(i32x4.add(t, sigma0(f)), v128.xor(g, v128.and(y, x)));
    t = i32x4.add(i32x4.add(choose(a, b, c, d), i32x4.add(w4, i32x4.splat(<i32>0x3956c25b))), sigma1(a));
    h = i32x4.add(h, t);
    x = v128.xor(e, f);
    d = i32x4.add(i32x4.add(t, sigma0(e)), v128.xor(f, v128.and(x, y)));
    t = i32x4.add(i32x4.add(choose(h, a, b, c), i32x4.add(w5, i32x4.splat(<i32>0x59f111f1))), sigma1(h));
    g = i32x4.add(g, t);
    y = v128.xor(d, e);
    c = i32x4.add(i32x4.add(t, sigma0(d)), v128.xor(e, v128.and(y, x)));
    t = i32x4.add(i32x4.add(choose(g, h, a, b), i32x4.add(w6, i32x4.splat(<i32>0x923f82a4))), sigma1(g));
    f = i32x4.add(f, t);
    x = v128.xor(c, d);
    b = i32x4.add(i32x4.add(t, sigma0(c)), v128.xor(d, v128.and(x, y)));
    t = i32x4.add(i32x4.add(choose(f, g, h, a), i32x4.add(w7, i32x4.splat(<i32>0xab1c5ed5))), sigma1(f));
    e = i32x4.add(e, t);
    y = v128.xor(b, c);
    a = i32x4.add(i32x4.add(t, sigma0(b)), v128.xor(c, v128.and(y, x)));
    t = i32x4.add(i32x4.add(choose(e, f, g, h), i32x4.add(w8, i32x4.splat(<i32>0xd807aa98))), sigma1(e));
    d = i32x4.add(d, t);
    x = v128.xor(a, b);
    h = i32x4.add(i32x4.add(t, sigma0(a)), v128.xor(b, v128.and(x, y)));
    t = i32x4.add(i32x4.add(choose(d, e, f, g), i32x4.add(w9, i32x4.splat(<i32>0x12835b01))), sigma1(d));
    c = i32x4.add(c, t);
    y = v128.xor(h, a);
    g = i32x4.add(i32x4.add(t, sigma0(h)), v128.xor(a, v128.and(y, x)));
    t = i32x4.add(i32x4.add(choose(c, d, e, f), i32x4.add(w10, i32x4.splat(<i32>0x243185be))), sigma1(c));
    b = i32x4.add(b, t);
    x = v128.xor(g, h);
    f = i32x4.add(i32x4.add(t, sigma0(g)), v128.xor(h, v128.and(x, y)));
    t = i32x4.add(i32x4.add(choose(b, c, d, e), i32x4.add(w11, i32x4.splat(<i32>0x550c7dc3))), sigma1(b));
    a = i32x4.add(a, t);
    y = v128.xor(f, g);
    e = i32x4.add(i32x4.add(t, sigma0(f)), v128.xor(g, v128.and(y, x)));
    t = i32x4.add(i32x4.add(choose(a, b, c, d), i32x4.add(w12, i32x4.splat(<i32>0x72be5d74))), sigma1(a));
    h = i32x4.add(h, t);
    x = v128.xor(e, f);
    d = i32x4.add(i32x4.add(t, sigma0(e)), v128.xor(f, v128.and(x, y)));
    t = i32x4.add(i32x4.add(choose(h, a, b, c), i32x4.add(w13, i32x4.splat(<i32>0x80deb1fe))), sigma1(h));
    g = i32x4.add(g, t);
    y = v128.xor(d, e);
    c = i32x4.add(i32x4.add(t, sigma0(d)), v128.xor(e, v128.and(y, x)));
    t = i32x4.add(i32x4.add(choose(g, h, a, b), i32x4.add(w14, i32x4.splat(<i32>0x9bdc06a7))), sigma1(g));
    f = i32x4.add(f, t);
    x = v128.xor(c, d);
    b = i32x4.add(i32x4.add(t, sigma0(c)), v128.xor(d, v128.and(x, y)));
    t = i32x4.add(i32x4.add(choose(f, g, h, a), i32x4.add(w15, i32x4.splat(<i32>0xc19bf174))), sigma1(f));
    e = i32x4.add(e, t);
    y = v128.xor(b, c);
    a = i32x4.add(i32x4.add(t, sigma0(b)), v128.xor(c, v128.and(y, x)));
    w0 = expand(w0, w1, w9, w14);
    t = i32x4.add(i32x4.add(choose(e, f, g, h), i32x4.add(w0, i32x4.splat(<i32>0xe49b69c1))), sigma1(e));
    d = i32x4.add(d, t);
    x = v128.xor(a, b);
    h = i32x4.add(i32x4.add(t, sigma0(a)), v128.xor(b, v128.and(x, y)));
    w1 = expand(w1, w2, w10, w15);
    t = i32x4.add(i32x4.add(choose(d, e, f, g), i32x4.add(w1, i32x4.splat(<i32>0xefbe4786))), sigma1(d));
    c = i32x4.add(c, t);
    y = v128.xor(h, a);
    g = i32x4.add(i32x4.add(t, sigma0(h)), v128.xor(a, v128.and(y, x)));
    w2 = expand(w2, w3, w11, w0);
    t = i32x4.add(i32x4.add(choose(c, d, e, f), i32x4.add(w2, i32x4.splat(<i32>0x0fc19dc6))), sigma1(c));
    b = i32x4.add(b, t);
    x = v128.xor(g, h);
    f = i32x4.add(i32x4.add(t, sigma0(g)), v128.xor(h, v128.and(x, y)));
    w3 = expand(w3, w4, w12, w1);
    t = i32x4.add(i32x4.add(choose(b, c, d, e), i32x4.add(w3, i32x4.splat(<i32>0x240ca1cc))), sigma1(b));
    a = i32x4.add(a, t);
    y = v128.xor(f, g);
    e = i32x4.add(i32x4.add(t, sigma0(f)), v128.xor(g, v128.and(y, x)));
    w4 = expand(w4, w5, w13, w2);
    t = i32x4.add(i32x4.add(choose(a, b, c, d), i32x4.add(w4, i32x4.splat(<i32>0x2de92c6f))), sigma1(a));
    h = i32x4.add(h, t);
    x = v128.xor(e, f);
    d = i32x4.add(i32x4.add(t, sigma0(e)), v128.xor(f, v128.and(x, y)));
    w5 = expand(w5, w6, w14, w3);
    t = i32x4.add(i32x4.add(choose(h, a, b, c), i32x4.add(w5, i32x4.splat(<i32>0x4a7484aa))), sigma1(h));
    g = i32x4.add(g, t);
    y = v128.xor(d, e);
    c = i32x4.add(i32x4.add(t, sigma0(d)), v128.xor(e, v128.and(y, x)));
    w6 = expand(w6, w7, w15, w4);
    t = i32x4.add(i32x4.add(choose(g, h, a, b), i32x4.add(w6, i32x4.splat(<i32>0x5cb0a9dc))), sigma1(g));
    f = i32x4.add(f, t);
    x = v128.xor(c, d);
    b = i32x4.add(i32x4.add(t, sigma0(c)), v128.xor(d, v128.and(x, y)));
    w7 = expand(w7, w8, w0, w5);
    t = i32x4.add(i32x4.add(choose(f, g, h, a), i32x4.add(w7, i32x4.splat(<i32>0x76f988da))), sigma1(f));
    e = i32x4.add(e, t);
    y = v128.xor(b, c);
    a = i32x4.add(i32x4.add(t, sigma0(b)), v128.xor(c, v128.and(y, x)));
    w8 = expand(w8, w9, w1, w6);
    t = i32x4.add(i32x4.add(choose(e, f, g, h), i32x4.add(w8, i32x4.splat(<i32>0x983e5152))), sigma1(e));
    d = i32x4.add(d, t);
    x = v128.xor(a, b);
    h = i32x4.add(i32x4.add(t, sigma0(a)), v128.xor(b, v128.and(x, y)));
    w9 = expand(w9, w10, w2, w7);
    t = i32x4.add(i32x4.add(choose(d, e, f, g), i32x4.add(w9, i32x4.splat(<i32>0xa831c66d))), sigma1(d));
    c = i32x4.add(c, t);
    y = v128.xor(h, a);
    g = i32x4.add(i32x4.add(t, sigma0(h)), v128.xor(a, v128.and(y, x)));
    w10 = expand(w10, w11, w3, w8);
    t = i32x4.add(i32x4.add(choose(c, d, e, f), i32x4.add(w10, i32x4.splat(<i32>0xb00327c8))), sigma1(c));
    b = i32x4.add(b, t);
    x = v128.xor(g, h);
    f = i32x4.add(i32x4.add(t, sigma0(g)), v128.xor(h, v128.and(x, y)));
    w11 = expand(w11, w12, w4, w9);
    t = i32x4.add(i32x4.add(choose(b, c, d, e), i32x4.add(w11, i32x4.splat(<i32>0xbf597fc7))), sigma1(b));
    a = i32x4.add(a, t);
    y = v128.xor(f, g);
    e = i32x4.add(i32x4.add(t, sigma0(f)), v128.xor(g, v128.and(y, x)));
    w12 = expand(w12, w13, w5, w10);
    t = i32x4.add(i32x4.add(choose(a, b, c, d), i32x4.add(w12, i32x4.splat(<i32>0xc6e00bf3))), sigma1(a));
    h = i32x4.add(h, t);
    x = v128.xor(e, f);
    d = i32x4.add(i32x4.add(t, sigma0(e)), v128.xor(f, v128.and(x, y)));
    w13 = expand(w13, w14, w6, w11);
    t = i32x4.add(i32x4.add(choose(h, a, b, c), i32x4.add(w13, i32x4.splat(<i32>0xd5a79147))), sigma1(h));
    g = i32x4.add(g, t);
    y = v128.xor(d, e);
    c = i32x4.add(i32x4.add(t, sigma0(d)), v128.xor(e, v128.and(y, x)));
    w14 = expand(w14, w15, w7, w12);
    t = i32x4.add(i32x4.add(choose(g, h, a, b), i32x4.add(w14, i32x4.splat(<i32>0x06ca6351))), sigma1(g));
    f = i32x4.add(f, t);
    x = v128.xor(c, d);
    b = i32x4.add(i32x4.add(t, sigma0(c)), v128.xor(d, v128.and(x, y)));
    w15 = expand(w15, w0, w8, w13);
    t = i32x4.add(i32x4.add(choose(f, g, h, a), i32x4.add(w15, i32x4.splat(<i32>0x14292967))), sigma1(f));
    e = i32x4.add(e, t);
    y = v128.xor(b, c);
    a = i32x4.add(i32x4.add(t, sigma0(b)), v128.xor(c, v128.and(y, x)));
    w0 = expand(w0, w1, w9, w14);
    t = i32x4.add(i32x4.add(choose(e, f, g, h), i32x4.add(w0, i32x4.splat(<i32>0x27b70a85))), sigma1(e));
    d = i32x4.add(d, t);
    x = v128.xor(a, b);
    h = i32x4.add(i32x4.add(t, sigma0(a)), v128.xor(b, v128.and(x, y)));
    w1 = expand(w1, w2, w10, w15);
    t = i32x4.add(i32x4.add(choose(d, e, f, g), i32x4.add(w1, i32x4.splat(<i32>0x2e1b2138))), sigma1(d));
    c = i32x4.add(c, t);
    y = v128.xor(h, a);
    g = i32x4.add(i32x4.add(t, sigma0(h)), v128.xor(a, v128.and(y, x)));
    w2 = expand(w2, w3, w11, w0);
    t = i32x4.add(i32x4.add(choose(c, d, e, f), i32x4.add(w2, i32x4.splat(<i32>0x4d2c6dfc))), sigma1(c));
    b = i32x4.add(b, t);
    x = v128.xor(g, h);
    f = i32x4.add(i32x4.add(t, sigma0(g)), v128.xor(h, v128.and(x, y)));
    w3 = expand(w3, w4, w12, w1);
    t = i32x4.add(i32x4.add(choose(b, c, d, e), i32x4.add(w3, i32x4.splat(<i32>0x53380d13))), sigma1(b));
    a = i32x4.add(a, t);
    y = v128.xor(f, g);
    e = i32x4.add(i32x4.add(t, sigma0(f)), v128.xor(g, v128.and(y, x)));
    w4 = expand(w4, w5, w13, w2);
    t = i32x4.add(i32x4.add(choose(a, b, c, d), i32x4.add(w4, i32x4.splat(<i32>0x650a7354))), sigma1(a));
    h = i32x4.add(h, t);
    x = v128.xor(e, f);
    d = i32x4.add(i32x4.add(t, sigma0(e)), v128.xor(f, v128.and(x, y)));
    w5 = expand(w5, w6, w14, w3);
    t = i32x4.add(i32x4.add(choose(h, a, b, c), i32x4.add(w5, i32x4.splat(<i32>0x766a0abb))), sigma1(h));
    g = i32x4.add(g, t);
    y = v128.xor(d, e);
    c = i32x4.add(i32x4.add(t, sigma0(d)), v128.xor(e, v128.and(y, x)));
    w6 = expand(w6, w7, w15, w4);
    t = i32x4.add(i32x4.add(choose(g, h, a, b), i32x4.add(w6, i32x4.splat(<i32>0x81c2c92e))), sigma1(g));
    f = i32x4.add(f, t);
    x = v128.xor(c, d);
    b = i32x4.add(i32x4.add(t, sigma0(c)), v128.xor(d, v128.and(x, y)));
    w7 = expand(w7, w8, w0, w5);
    t = i32x4.add(i32x4.add(choose(f, g, h, a), i32x4.add(w7, i32x4.splat(<i32>0x92722c85))), sigma1(f));
    e = i32x4.add(e, t);
    y = v128.xor(b, c);
    a = i32x4.add(i32x4.add(t, sigma0(b)), v128.xor(c, v128.and(y, x)));
    w8 = expand(w8, w9, w1, w6);
    t = i32x4.add(i32x4.add(choose(e, f, g, h), i32x4.add(w8, i32x4.splat(<i32>0xa2bfe8a1))), sigma1(e));
    d = i32x4.add(d, t);
    x = v128.xor(a, b);
    h = i32x4.add(i32x4.add(t, sigma0(a)), v128.xor(b, v128.and(x, y)));
    w9 = expand(w9, w10, w2, w7);
    t = i32x4.add(i32x4.add(choose(d, e, f, g), i32x4.add(w9, i32x4.splat(<i32>0xa81a664b))), sigma1(d));
    c = i32x4.add(c, t);
    y = v128.xor(h, a);
    g = i32x4.add(i32x4.add(t, sigma0(h)), v128.xor(a, v128.and(y, x)));
    w10 = expand(w10, w11, w3, w8);
    t = i32x4.add(i32x4.add(choose(c, d, e, f), i32x4.add(w10, i32x4.splat(<i32>0xc24b8b70))), sigma1(c));
    b = i32x4.add(b, t);
    x = v128.xor(g, h);
    f = i32x4.add(i32x4.add(t, sigma0(g)), v128.xor(h, v128.and(x, y)));
    w11 = expand(w11, w12, w4, w9);
    t = i32x4.add(i32x4.add(choose(b, c, d, e), i32x4.add(w11, i32x4.splat(<i32>0xc76c51a3))), sigma1(b));
    a = i32x4.add(a, t);
    y = v128.xor(f, g);
    e = i32x4.add(i32x4.add(t, sigma0(f)), v128.xor(g, v128.and(y, x)));
    w12 = expand(w12, w13, w5, w10);
    t = i32x4.add(i32x4.add(choose(a, b, c, d), i32x4.add(w12, i32x4.splat(<i32>0xd192e819))), sigma1(a));
    h = i32x4.add(h, t);
    x = v128.xor(e, f);
    d = i32x4.add(i32x4.add(t, sigma0(e)), v128.xor(f, v128.and(x, y)));
    w13 = expand(w13, w14, w6, w11);
    t = i32x4.add(i32x4.add(choose(h, a, b, c), i32x4.add(w13, i32x4.splat(<i32>0xd6990624))), sigma1(h));
    g = i32x4.add(g, t);
    y = v128.xor(d, e);
    c = i32x4.add(i32x4.add(t, sigma0(d)), v128.xor(e, v128.and(y, x)));
    w14 = expand(w14, w15, w7, w12);
    t = i32x4.add(i32x4.add(choose(g, h, a, b), i32x4.add(w14, i32x4.splat(<i32>0xf40e3585))), sigma1(g));
    f = i32x4.add(f, t);
    x = v128.xor(c, d);
    b = i32x4.add(i32x4.add(t, sigma0(c)), v128.xor(d, v128.and(x, y)));
    w15 = expand(w15, w0, w8, w13);
    t = i32x4.add(i32x4.add(choose(f, g, h, a), i32x4.add(w15, i32x4.splat(<i32>0x106aa070))), sigma1(f));
    e = i32x4.add(e, t);
    y = v128.xor(b, c);
    a = i32x4.add(i32x4.add(t, sigma0(b)), v128.xor(c, v128.and(y, x)));
    w0 = expand(w0, w1, w9, w14);
    t = i32x4.add(i32x4.add(choose(e, f, g, h), i32x4.add(w0, i32x4.splat(<i32>0x19a4c116))), sigma1(e));
    d = i32x4.add(d, t);
    x = v128.xor(a, b);
    h = i32x4.add(i32x4.add(t, sigma0(a)), v128.xor(b, v128.and(x, y)));
    w1 = expand(w1, w2, w10, w15);
    t = i32x4.add(i32x4.add(choose(d, e, f, g), i32x4.add(w1, i32x4.splat(<i32>0x1e376c08))), sigma1(d));
    c = i32x4.add(c, t);
    y = v128.xor(h, a);
    g = i32x4.add(i32x4.add(t, sigma0(h)), v128.xor(a, v128.and(y, x)));
    w2 = expand(w2, w3, w11, w0);
    t = i32x4.add(i32x4.add(choose(c, d, e, f), i32x4.add(w2, i32x4.splat(<i32>0x2748774c))), sigma1(c));
    b = i32x4.add(b, t);
    x = v128.xor(g, h);
    f = i32x4.add(i32x4.add(t, sigma0(g)), v128.xor(h, v128.and(x, y)));
    w3 = expand(w3, w4, w12, w1);
    t = i32x4.add(i32x4.add(choose(b, c, d, e), i32x4.add(w3, i32x4.splat(<i32>0x34b0bcb5))), sigma1(b));
    a = i32x4.add(a, t);
    y = v128.xor(f, g);
    e = i32x4.add(i32x4.add(t, sigma0(f)), v128.xor(g, v128.and(y, x)));
    w4 = expand(w4, w5, w13, w2);
    t = i32x4.add(i32x4.add(choose(a, b, c, d), i32x4.add(w4, i32x4.splat(<i32>0x391c0cb3))), sigma1(a));
    h = i32x4.add(h, t);
    x = v128.xor(e, f);
    d = i32x4.add(i32x4.add(t, sigma0(e)), v128.xor(f, v128.and(x, y)));
    w5 = expand(w5, w6, w14, w3);
    t = i32x4.add(i32x4.add(choose(h, a, b, c), i32x4.add(w5, i32x4.splat(<i32>0x4ed8aa4a))), sigma1(h));
    g = i32x4.add(g, t);
    y = v128.xor(d, e);
    c = i32x4.add(i32x4.add(t, sigma0(d)), v128.xor(e, v128.and(y, x)));
    w6 = expand(w6, w7, w15, w4);
    t = i32x4.add(i32x4.add(choose(g, h, a, b), i32x4.add(w6, i32x4.splat(<i32>0x5b9cca4f))), sigma1(g));
    f = i32x4.add(f, t);
    x = v128.xor(c, d);
    b = i32x4.add(i32x4.add(t, sigma0(c)), v128.xor(d, v128.and(x, y)));
    w7 = expand(w7, w8, w0, w5);
    t = i32x4.add(i32x4.add(choose(f, g, h, a), i32x4.add(w7, i32x4.splat(<i32>0x682e6ff3))), sigma1(f));
    e = i32x4.add(e, t);
    y = v128.xor(b, c);
    a = i32x4.add(i32x4.add(t, sigma0(b)), v128.xor(c, v128.and(y, x)));
    w8 = expand(w8, w9, w1, w6);
    t = i32x4.add(i32x4.add(choose(e, f, g, h), i32x4.add(w8, i32x4.splat(<i32>0x748f82ee))), sigma1(e));
    d = i32x4.add(d, t);
    x = v128.xor(a, b);
    h = i32x4.add(i32x4.add(t, sigma0(a)), v128.xor(b, v128.and(x, y)));
    w9 = expand(w9, w10, w2, w7);
    t = i32x4.add(i32x4.add(choose(d, e, f, g), i32x4.add(w9, i32x4.splat(<i32>0x78a5636f))), sigma1(d));
    c = i32x4.add(c, t);
    y = v128.xor(h, a);
    g = i32x4.add(i32x4.add(t, sigma0(h)), v128.xor(a, v128.and(y, x)));
    w10 = expand(w10, w11, w3, w8);
    t = i32x4.add(i32x4.add(choose(c, d, e, f), i32x4.add(w10, i32x4.splat(<i32>0x84c87814))), sigma1(c));
    b = i32x4.add(b, t);
    x = v128.xor(g, h);
    f = i32x4.add(i32x4.add(t, sigma0(g)), v128.xor(h, v128.and(x, y)));
    w11 = expand(w11, w12, w4, w9);
    t = i32x4.add(i32x4.add(choose(b, c, d, e), i32x4.add(w11, i32x4.splat(<i32>0x8cc70208))), sigma1(b));
    a = i32x4.add(a, t);
    y = v128.xor(f, g);
    e = i32x4.add(i32x4.add(t, sigma0(f)), v128.xor(g, v128.and(y, x)));
    w12 = expand(w12, w13, w5, w10);
    t = i32x4.add(i32x4.add(choose(a, b, c, d), i32x4.add(w12, i32x4.splat(<i32>0x90befffa))), sigma1(a));
    h = i32x4.add(h, t);
    x = v128.xor(e, f);
    d = i32x4.add(i32x4.add(t, sigma0(e)), v128.xor(f, v128.and(x, y)));
    w13 = expand(w13, w14, w6, w11);
    t = i32x4.add(i32x4.add(choose(h, a, b, c), i32x4.add(w13, i32x4.splat(<i32>0xa4506ceb))), sigma1(h));
    g = i32x4.add(g, t);
    y = v128.xor(d, e);
    c = i32x4.add(i32x4.add(t, sigma0(d)), v128.xor(e, v128.and(y, x)));
    w14 = expand(w14, w15, w7, w12);
    t = i32x4.add(i32x4.add(choose(g, h, a, b), i32x4.add(w14, i32x4.splat(<i32>0xbef9a3f7))), sigma1(g));
    f = i32x4.add(f, t);
    x = v128.xor(c, d);
    b = i32x4.add(i32x4.add(t, sigma0(c)), v128.xor(d, v128.and(x, y)));
    w15 = expand(w15, w0, w8, w13);
    t = i32x4.add(i32x4.add(choose(f, g, h, a), i32x4.add(w15, i32x4.splat(<i32>0xc67178f2))), sigma1(f));
    e = i32x4.add(e, t);
    y = v128.xor(b, c);
    a = i32x4.add(i32x4.add(t, sigma0(b)), v128.xor(c, v128.and(y, x)));
    a = i32x4.add(a, a0);
    b = i32x4.add(b, b0);
    c = i32x4.add(c, c0);
    d = i32x4.add(d, d0);
    e = i32x4.add(e, e0);
    f = i32x4.add(f, f0);
    g = i32x4.add(g, g0);
    h = i32x4.add(h, h0);
  }
  u = low(a, b);
  v = low(c, d);
  v128.store(s0, lowHalves(u, v), 0);
  v128.store(s1, highHalves(u, v), 0);
  u = high(a, b);
  v = high(c, d);
  v128.store(s2, lowHalves(u, v), 0);
  v128.store(s3, highHalves(u, v), 0);
  u = low(e, f);
  v = low(g, h);
  v128.store(s0, lowHalves(u, v), 16);
  v128.store(s1, highHalves(u, v), 16);
  u = high(e, f);
  v = high(g, h);
  v128.store(s2, lowHalves(u, v), 16);
  v128.store(s3, highHalves(u, v), 16);
}
