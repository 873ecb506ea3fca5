// Written by generate-sha256.mjs; change it there.
// SHA-256 of eight independent streams at once, in two groups of four lanes.
import { EIGHT_BLOCKS, EIGHT_LANES, EIGHT_STATES, EIGHT_WORDS } from '../src/engine/core-layout';
import { choose, expand, high, highHalves, low, lowHalves, sigma0, sigma1 } from './sha256-lanes';
import { turn } from './vectors';

/** Lays `length` bytes of eight streams out as words: word i of a block is 32 bytes, four for each stream. */
function spread(
  words: usize,
  p0: usize,
  p1: usize,
  p2: usize,
  p3: usize,
  p4: usize,
  p5: usize,
  p6: usize,
  p7: usize,
  length: usize,
): void {
  let r0: v128, r1: v128, r2: v128, r3: v128, u: v128, v: v128;
  for (let done: usize = 0; done < length; done += 64) {
    r0 = turn(v128.load(p0 + done, 0));
    r1 = turn(v128.load(p1 + done, 0));
    r2 = turn(v128.load(p2 + done, 0));
    r3 = turn(v128.load(p3 + done, 0));
    u = low(r0, r1);
    v = low(r2, r3);
    v128.store(words, lowHalves(u, v), 0);
    v128.store(words, highHalves(u, v), 32);
    u = high(r0, r1);
    v = high(r2, r3);
    v128.store(words, lowHalves(u, v), 64);
    v128.store(words, highHalves(u, v), 96);
    r0 = turn(v128.load(p4 + done, 0));
    r1 = turn(v128.load(p5 + done, 0));
    r2 = turn(v128.load(p6 + done, 0));
    r3 = turn(v128.load(p7 + done, 0));
    u = low(r0, r1);
    v = low(r2, r3);
    v128.store(words, lowHalves(u, v), 16);
    v128.store(words, highHalves(u, v), 48);
    u = high(r0, r1);
    v = high(r2, r3);
    v128.store(words, lowHalves(u, v), 80);
    v128.store(words, highHalves(u, v), 112);
    r0 = turn(v128.load(p0 + done, 16));
    r1 = turn(v128.load(p1 + done, 16));
    r2 = turn(v128.load(p2 + done, 16));
    r3 = turn(v128.load(p3 + done, 16));
    u = low(r0, r1);
    v = low(r2, r3);
    v128.store(words, lowHalves(u, v), 128);
    v128.store(words, highHalves(u, v), 160);
    u = high(r0, r1);
    v = high(r2, r3);
    v128.store(words, lowHalves(u, v), 192);
    v128.store(words, highHalves(u, v), 224);
    r0 = turn(v128.load(p4 + done, 16));
    r1 = turn(v128.load(p5 + done, 16));
    r2 = turn(v128.load(p6 + done, 16));
    r3 = turn(v128.load(p7 + done, 16));
    u = low(r0, r1);
    v = low(r2, r3);
    v128.store(words, lowHalves(u, v), 144);
    v128.store(words, highHalves(u, v), 176);
    u = high(r0, r1);
    v = high(r2, r3);
    v128.store(words, lowHalves(u, v), 208);
    v128.store(words, highHalves(u, v), 240);
    r0 = turn(v128.load(p0 + done, 32));
    r1 = turn(v128.load(p1 + done, 32));
    r2 = turn(v128.load(p2 + done, 32));
    r3 = turn(v128.load(p3 + done, 32));
    u = low(r0, r1);
    v = low(r2, r3);
    v128.store(words, lowHalves(u, v), 256);
    v128.store(words, highHalves(u, v), 288);
    u = high(r0, r1);
    v = high(r2, r3);
    v128.store(words, lowHalves(u, v), 320);
    v128.store(words, highHalves(u, v), 352);
    r0 = turn(v128.load(p4 + done, 32));
    r1 = turn(v128.load(p5 + done, 32));
    r2 = turn(v128.load(p6 + done, 32));
    r3 = turn(v128.load(p7 + done, 32));
    u = low(r0, r1);
    v = low(r2, r3);
    v128.store(words, lowHalves(u, v), 272);
    v128.store(words, highHalves(u, v), 304);
    u = high(r0, r1);
    v = high(r2, r3);
    v128.store(words, lowHalves(u, v), 336);
    v128.store(words, highHalves(u, v), 368);
    r0 = turn(v128.load(p0 + done, 48));
    r1 = turn(v128.load(p1 + done, 48));
    r2 = turn(v128.load(p2 + done, 48));
    r3 = turn(v128.load(p3 + done, 48));
    u = low(r0, r1);
    v = low(r2, r3);
    v128.store(words, lowHalves(u, v), 384);
    v128.store(words, highHalves(u, v), 416);
    u = high(r0, r1);
    v = high(r2, r3);
    v128.store(words, lowHalves(u, v), 448);
    v128.store(words, highHalves(u, v), 480);
    r0 = turn(v128.load(p4 + done, 48));
    r1 = turn(v128.load(p5 + done, 48));
    r2 = turn(v128.load(p6 + done, 48));
    r3 = turn(v128.load(p7 + done, 48));
    u = low(r0, r1);
    v = low(r2, r3);
    v128.store(words, lowHalves(u, v), 400);
    v128.store(words, highHalves(u, v), 432);
    u = high(r0, r1);
    v = high(r2, r3);
    v128.store(words, lowHalves(u, v), 464);
    v128.store(words, highHalves(u, v), 496);
    words += 512;
  }
}

/** Runs the blocks whose words are from `words` to `end`, at least one. */
function rounds(states: usize, words: usize, end: usize): void {
  let tl: v128, tr: v128, xl: v128, xr: v128, yl: v128, yr: v128;
  let w0l: v128,
    w0r: v128,
    w1l: v128,
    w1r: v128,
    w2l: v128,
    w2r: v128,
    w3l: v128,
    w3r: v128,
    w4l: v128,
    w4r: v128,
    w5l: v128,
    w5r: v128,
    w6l: v128,
    w6r: v128,
    w7l: v128,
    w7r: v128,
    w8l: v128,
    w8r: v128,
    w9l: v128,
    w9r: v128,
    w10l: v128,
    w10r: v128,
    w11l: v128,
    w11r: v128,
    w12l: v128,
    w12r: v128,
    w13l: v128,
    w13r: v128,
    w14l: v128,
    w14r: v128,
    w15l: v128,
    w15r: v128;
  let al = v128.load(states, 0);
  let ar = v128.load(states, 16);
  let bl = v128.load(states, 32);
  let br = v128.load(states, 48);
  let cl = v128.load(states, 64);
  let cr = v128.load(states, 80);
  let dl = v128.load(states, 96);
  let dr = v128.load(states, 112);
  let el = v128.load(states, 128);
  let er = v128.load(states, 144);
  let fl = v128.load(states, 160);
  let fr = v128.load(states, 176);
  let gl = v128.load(states, 192);
  let gr = v128.load(states, 208);
  let hl = v128.load(states, 224);
  let hr = v128.load(states, 240);
  do {
    const al0 = al,
      ar0 = ar,
      bl0 = bl,
      br0 = br,
      cl0 = cl,
      cr0 = cr,
      dl0 = dl,
      dr0 = dr,
      el0 = el,
      er0 = er,
      fl0 = fl,
      fr0 = fr,
      gl0 = gl,
      gr0 = gr,
      hl0 = hl,
      hr0 = hr;
    w0l = v128.load(words, 0);
    w0r = v128.load(words, 16);
    w1l = v128.load(words, 32);
    w1r = v128.load(words, 48);
    w2l = v128.load(words, 64);
    w2r = v128.load(words, 80);
    w3l = v128.load(words, 96);
    w3r = v128.load(words, 112);
    w4l = v128.load(words, 128);
    w4r = v128.load(words, 144);
    w5l = v128.load(words, 160);
    w5r = v128.load(words, 176);
    w6l = v128.load(words, 192);
    w6r = v128.load(words, 208);
    w7l = v128.load(words, 224);
    w7r = v128.load(words, 240);
    w8l = v128.load(words, 256);
    w8r = v128.load(words, 272);
    w9l = v128.load(words, 288);
    w9r = v128.load(words, 304);
    w10l = v128.load(words, 320);
    w10r = v128.load(words, 336);
    w11l = v128.load(words, 352);
    w11r = v128.load(words, 368);
    w12l = v128.load(words, 384);
    w12r = v128.load(words, 400);
    w13l = v128.load(words, 416);
    w13r = v128.load(words, 432);
    w14l = v128.load(words, 448);
    w14r = v128.load(words, 464);
    w15l = v128.load(words, 480);
    w15r = v128.load(words, 496);
    yl = v128.xor(bl, cl);
    yr = v128.xor(br, cr);
    tl = i32x4.add(
      i32x4.add(
        choose(el, fl, gl, hl),
        i32x4.add(w0l, i32x4(<i32>0x428a2f98, <i32>0x428a2f98, <i32>0x428a2f98, <i32>0x428a2f98)),
      ),
      sigma1(el),
    );
    tr = i32x4.add(
      i32x4.add(
        choose(er, fr, gr, hr),
        i32x4.add(w0r, i32x4(<i32>0x428a2f98, <i32>0x428a2f98, <i32>0x428a2f98, <i32>0x428a2f98)),
      ),
      sigma1(er),
    );
    dl = i32x4.add(dl, tl);
    dr = i32x4.add(dr, tr);
    xl = v128.xor(al, bl);
    xr = v128.xor(ar, br);
    hl = i32x4.add(i32x4.add(tl, sigma0(al)), v128.xor(bl, v128.and(xl, yl)));
    hr = i32x4.add(i32x4.add(tr, sigma0(ar)), v128.xor(br, v128.and(xr, yr)));
    tl = i32x4.add(
      i32x4.add(
        choose(dl, el, fl, gl),
        i32x4.add(w1l, i32x4(<i32>0x71374491, <i32>0x71374491, <i32>0x71374491, <i32>0x71374491)),
      ),
      sigma1(dl),
    );
    tr = i32x4.add(
      i32x4.add(
        choose(dr, er, fr, gr),
        i32x4.add(w1r, i32x4(<i32>0x71374491, <i32>0x71374491, <i32>0x71374491, <i32>0x71374491)),
      ),
      sigma1(dr),
    );
    cl = i32x4.add(cl, tl);
    cr = i32x4.add(cr, tr);
    yl = v128.xor(hl, al);
    yr = v128.xor(hr, ar);
    gl = i32x4.add(i32x4.add(tl, sigma0(hl)), v128.xor(al, v128.and(yl, xl)));
    gr = i32x4.add(i32x4.add(tr, sigma0(hr)), v128.xor(ar, v128.and(yr, xr)));
    tl = i32x4.add(
      i32x4.add(
        choose(cl, dl, el, fl),
        i32x4.add(w2l, i32x4(<i32>0xb5c0fbcf, <i32>0xb5c0fbcf, <i32>0xb5c0fbcf, <i32>0xb5c0fbcf)),
      ),
      sigma1(cl),
    );
    tr = i32x4.add(
      i32x4.add(
        choose(cr, dr, er, fr),
        i32x4.add(w2r, i32x4(<i32>0xb5c0fbcf, <i32>0xb5c0fbcf, <i32>0xb5c0fbcf, <i32>0xb5c0fbcf)),
      ),
      sigma1(cr),
    );
    bl = i32x4.add(bl, tl);
    br = i32x4.add(br, tr);
    xl = v128.xor(gl, hl);
    xr = v128.xor(gr, hr);
    fl = i32x4.add(i32x4.add(tl, sigma0(gl)), v128.xor(hl, v128.and(xl, yl)));
    fr = i32x4.add(i32x4.add(tr, sigma0(gr)), v128.xor(hr, v128.and(xr, yr)));
    tl = i32x4.add(
      i32x4.add(
        choose(bl, cl, dl, el),
        i32x4.add(w3l, i32x4(<i32>0xe9b5dba5, <i32>0xe9b5dba5, <i32>0xe9b5dba5, <i32>0xe9b5dba5)),
      ),
      sigma1(bl),
    );
    tr = i32x4.add(
      i32x4.add(
        choose(br, cr, dr, er),
        i32x4.add(w3r, i32x4(<i32>0xe9b5dba5, <i32>0xe9b5dba5, <i32>0xe9b5dba5, <i32>0xe9b5dba5)),
      ),
      sigma1(br),
    );
    al = i32x4.add(al, tl);
    ar = i32x4.add(ar, tr);
    yl = v128.xor(fl, gl);
    yr = v128.xor(fr, gr);
    el = i32x4.add(i32x4.add(tl, sigma0(fl)), v128.xor(gl, v128.and(yl, xl)));
    er = i32x4.add(i32x4.add(tr, sigma0(fr)), v128.xor(gr, v128.and(yr, xr)));
    tl = i32x4.add(
      i32x4.add(
        choose(al, bl, cl, dl),
        i32x4.add(w4l, i32x4(<i32>0x3956c25b, <i32>0x3956c25b, <i32>0x3956c25b, <i32>0x3956c25b)),
      ),
      sigma1(al),
    );
    tr = i32x4.add(
      i32x4.add(
        choose(ar, br, cr, dr),
        i32x4.add(w4r, i32x4(<i32>0x3956c25b, <i32>0x3956c25b, <i32>0x3956c25b, <i32>0x3956c25b)),
      ),
      sigma1(ar),
    );
    hl = i32x4.add(hl, tl);
    hr = i32x4.add(hr, tr);
    xl = v128.xor(el, fl);
    xr = v128.xor(er, fr);
    dl = i32x4.add(i32x4.add(tl, sigma0(el)), v128.xor(fl, v128.and(xl, yl)));
    dr = i32x4.add(i32x4.add(tr, sigma0(er)), v128.xor(fr, v128.and(xr, yr)));
    tl = i32x4.add(
      i32x4.add(
        choose(hl, al, bl, cl),
        i32x4.add(w5l, i32x4(<i32>0x59f111f1, <i32>0x59f111f1, <i32>0x59f111f1, <i32>0x59f111f1)),
      ),
      sigma1(hl),
    );
    tr = i32x4.add(
      i32x4.add(
        choose(hr, ar, br, cr),
        i32x4.add(w5r, i32x4(<i32>0x59f111f1, <i32>0x59f111f1, <i32>0x59f111f1, <i32>0x59f111f1)),
      ),
      sigma1(hr),
    );
    gl = i32x4.add(gl, tl);
    gr = i32x4.add(gr, tr);
    yl = v128.xor(dl, el);
    yr = v128.xor(dr, er);
    cl = i32x4.add(i32x4.add(tl, sigma0(dl)), v128.xor(el, v128.and(yl, xl)));
    cr = i32x4.add(i32x4.add(tr, sigma0(dr)), v128.xor(er, v128.and(yr, xr)));
    tl = i32x4.add(
      i32x4.add(
        choose(gl, hl, al, bl),
        i32x4.add(w6l, i32x4(<i32>0x923f82a4, <i32>0x923f82a4, <i32>0x923f82a4, <i32>0x923f82a4)),
      ),
      sigma1(gl),
    );
    tr = i32x4.add(
      i32x4.add(
        choose(gr, hr, ar, br),
        i32x4.add(w6r, i32x4(<i32>0x923f82a4, <i32>0x923f82a4, <i32>0x923f82a4, <i32>0x923f82a4)),
      ),
      sigma1(gr),
    );
    fl = i32x4.add(fl, tl);
    fr = i32x4.add(fr, tr);
    xl = v128.xor(cl, dl);
    xr = v128.xor(cr, dr);
    bl = i32x4.add(i32x4.add(tl, sigma0(cl)), v128.xor(dl, v128.and(xl, yl)));
    br = i32x4.add(i32x4.add(tr, sigma0(cr)), v128.xor(dr, v128.and(xr, yr)));
    tl = i32x4.add(
      i32x4.add(
        choose(fl, gl, hl, al),
        i32x4.add(w7l, i32x4(<i32>0xab1c5ed5, <i32>0xab1c5ed5, <i32>0xab1c5ed5, <i32>0xab1c5ed5)),
      ),
      sigma1(fl),
    );
    tr = i32x4.add(
      i32x4.add(
        choose(fr, gr, hr, ar),
        i32x4.add(w7r, i32x4(<i32>0xab1c5ed5, <i32>0xab1c5ed5, <i32>0xab1c5ed5, <i32>0xab1c5ed5)),
      ),
      sigma1(fr),
    );
    el = i32x4.add(el, tl);
    er = i32x4.add(er, tr);
    yl = v128.xor(bl, cl);
    yr = v128.xor(br, cr);
    al = i32x4.add(i32x4.add(tl, sigma0(bl)), v128.xor(cl, v128.and(yl, xl)));
    ar = i32x4.add(i32x4.add(tr, sigma0(br)), v128.xor(cr, v128.and(yr, xr)));
    tl = i32x4.add(
      i32x4.add(
        choose(el, fl, gl, hl),
        i32x4.add(w8l, i32x4(<i32>0xd807aa98, <i32>0xd807aa98, <i32>0xd807aa98, <i32>0xd807aa98)),
      ),
      sigma1(el),
    );
    tr = i32x4.add(
      i32x4.add(
        choose(er, fr, gr, hr),
        i32x4.add(w8r, i32x4(<i32>0xd807aa98, <i32>0xd807aa98, <i32>0xd807aa98, <i32>0xd807aa98)),
      ),
      sigma1(er),
    );
    dl = i32x4.add(dl, tl);
    dr = i32x4.add(dr, tr);
    xl = v128.xor(al, bl);
    xr = v128.xor(ar, br);
    hl = i32x4.add(i32x4.add(tl, sigma0(al)), v128.xor(bl, v128.and(xl, yl)));
    hr = i32x4.add(i32x4.add(tr, sigma0(ar)), v128.xor(br, v128.and(xr, yr)));
    tl = i32x4.add(
      i32x4.add(
        choose(dl, el, fl, gl),
        i32x4.add(w9l, i32x4(<i32>0x12835b01, <i32>0x12835b01, <i32>0x12835b01, <i32>0x12835b01)),
      ),
      sigma1(dl),
    );
    tr = i32x4.add(
      i32x4.add(
        choose(dr, er, fr, gr),
        i32x4.add(w9r, i32x4(<i32>0x12835b01, <i32>0x12835b01, <i32>0x12835b01, <i32>0x12835b01)),
      ),
      sigma1(dr),
    );
    cl = i32x4.add(cl, tl);
    cr = i32x4.add(cr, tr);
    yl = v128.xor(hl, al);
    yr = v128.xor(hr, ar);
    gl = i32x4.add(i32x4.add(tl, sigma0(hl)), v128.xor(al, v128.and(yl, xl)));
    gr = i32x4.add(i32x4.add(tr, sigma0(hr)), v128.xor(ar, v128.and(yr, xr)));
    tl = i32x4.add(
      i32x4.add(
        choose(cl, dl, el, fl),
        i32x4.add(w10l, i32x4(<i32>0x243185be, <i32>0x243185be, <i32>0x243185be, <i32>0x243185be)),
      ),
      sigma1(cl),
    );
    tr = i32x4.add(
      i32x4.add(
        choose(cr, dr, er, fr),
        i32x4.add(w10r, i32x4(<i32>0x243185be, <i32>0x243185be, <i32>0x243185be, <i32>0x243185be)),
      ),
      sigma1(cr),
    );
    bl = i32x4.add(bl, tl);
    br = i32x4.add(br, tr);
    xl = v128.xor(gl, hl);
    xr = v128.xor(gr, hr);
    fl = i32x4.add(i32x4.add(tl, sigma0(gl)), v128.xor(hl, v128.and(xl, yl)));
    fr = i32x4.add(i32x4.add(tr, sigma0(gr)), v128.xor(hr, v128.and(xr, yr)));
    tl = i32x4.add(
      i32x4.add(
        choose(bl, cl, dl, el),
        i32x4.add(w11l, i32x4(<i32>0x550c7dc3, <i32>0x550c7dc3, <i32>0x550c7dc3, <i32>0x550c7dc3)),
      ),
      sigma1(bl),
    );
    tr = i32x4.add(
      i32x4.add(
        choose(br, cr, dr, er),
        i32x4.add(w11r, i32x4(<i32>0x550c7dc3, <i32>0x550c7dc3, <i32>0x550c7dc3, <i32>0x550c7dc3)),
      ),
      sigma1(br),
    );
    al = i32x4.add(al, tl);
    ar = i32x4.add(ar, tr);
    yl = v128.xor(fl, gl);
    yr = v128.xor(fr, gr);
    el = i32x4.add(i32x4.add(tl, sigma0(fl)), v128.xor(gl, v128.and(yl, xl)));
    er = i32x4.add(i32x4.add(tr, sigma0(fr)), v128.xor(gr, v128.and(yr, xr)));
    tl = i32x4.add(
      i32x4.add(
        choose(al, bl, cl, dl),
        i32x4.add(w12l, i32x4(<i32>0x72be5d74, <i32>0x72be5d74, <i32>0x72be5d74, <i32>0x72be5d74)),
      ),
      sigma1(al),
    );
    tr = i32x4.add(
      i32x4.add(
        choose(ar, br, cr, dr),
        i32x4.add(w12r, i32x4(<i32>0x72be5d74, <i32>0x72be5d74, <i32>0x72be5d74, <i32>0x72be5d74)),
      ),
      sigma1(ar),
    );
    hl = i32x4.add(hl, tl);
    hr = i32x4.add(hr, tr);
    xl = v128.xor(el, fl);
    xr = v128.xor(er, fr);
    dl = i32x4.add(i32x4.add(tl, sigma0(el)), v128.xor(fl, v128.and(xl, yl)));
    dr = i32x4.add(i32x4.add(tr, sigma0(er)), v128.xor(fr, v128.and(xr, yr)));
    tl = i32x4.add(
      i32x4.add(
        choose(hl, al, bl, cl),
        i32x4.add(w13l, i32x4(<i32>0x80deb1fe, <i32>0x80deb1fe, <i32>0x80deb1fe, <i32>0x80deb1fe)),
      ),
      sigma1(hl),
    );
    tr = i32x4.add(
      i32x4.add(
        choose(hr, ar, br, cr),
        i32x4.add(w13r, i32x4(<i32>0x80deb1fe, <i32>0x80deb1fe, <i32>0x80deb1fe, <i32>0x80deb1fe)),
      ),
      sigma1(hr),
    );
    gl = i32x4.add(gl, tl);
    gr = i32x4.add(gr, tr);
    yl = v128.xor(dl, el);
    yr = v128.xor(dr, er);
    cl = i32x4.add(i32x4.add(tl, sigma0(dl)), v128.xor(el, v128.and(yl, xl)));
    cr = i32x4.add(i32x4.add(tr, sigma0(dr)), v128.xor(er, v128.and(yr, xr)));
    tl = i32x4.add(
      i32x4.add(
        choose(gl, hl, al, bl),
        i32x4.add(w14l, i32x4(<i32>0x9bdc06a7, <i32>0x9bdc06a7, <i32>0x9bdc06a7, <i32>0x9bdc06a7)),
      ),
      sigma1(gl),
    );
    tr = i32x4.add(
      i32x4.add(
        choose(gr, hr, ar, br),
        i32x4.add(w14r, i32x4(<i32>0x9bdc06a7, <i32>0x9bdc06a7, <i32>0x9bdc06a7, <i32>0x9bdc06a7)),
      ),
      sigma1(gr),
    );
    fl = i32x4.add(fl, tl);
    fr = i32x4.add(fr, tr);
    xl = v128.xor(cl, dl);
    xr = v128.xor(cr, dr);
    bl = i32x4.add(i32x4.add(tl, sigma0(cl)), v128.xor(dl, v128.and(xl, yl)));
    br = i32x4.add(i32x4.add(tr, sigma0(cr)), v128.xor(dr, v128.and(xr, yr)));
    tl = i32x4.add(
      i32x4.add(
        choose(fl, gl, hl, al),
        i32x4.add(w15l, i32x4(<i32>0xc19bf174, <i32>0xc19bf174, <i32>0xc19bf174, <i32>0xc19bf174)),
      ),
      sigma1(fl),
    );
    tr = i32x4.add(
      i32x4.add(
        choose(fr, gr, hr, ar),
        i32x4.add(w15r, i32x4(<i32>0xc19bf174, <i32>0xc19bf174, <i32>0xc19bf174, <i32>0xc19bf174)),
      ),
      sigma1(fr),
    );
    el = i32x4.add(el, tl);
    er = i32x4.add(er, tr);
    yl = v128.xor(bl, cl);
    yr = v128.xor(br, cr);
    al = i32x4.add(i32x4.add(tl, sigma0(bl)), v128.xor(cl, v128.and(yl, xl)));
    ar = i32x4.add(i32x4.add(tr, sigma0(br)), v128.xor(cr, v128.and(yr, xr)));
    w0l = expand(w0l, w1l, w9l, w14l);
    w0r = expand(w0r, w1r, w9r, w14r);
    tl = i32x4.add(
      i32x4.add(
        choose(el, fl, gl, hl),
        i32x4.add(w0l, i32x4(<i32>0xe49b69c1, <i32>0xe49b69c1, <i32>0xe49b69c1, <i32>0xe49b69c1)),
      ),
      sigma1(el),
    );
    tr = i32x4.add(
      i32x4.add(
        choose(er, fr, gr, hr),
        i32x4.add(w0r, i32x4(<i32>0xe49b69c1, <i32>0xe49b69c1, <i32>0xe49b69c1, <i32>0xe49b69c1)),
      ),
      sigma1(er),
    );
    dl = i32x4.add(dl, tl);
    dr = i32x4.add(dr, tr);
    xl = v128.xor(al, bl);
    xr = v128.xor(ar, br);
    hl = i32x4.add(i32x4.add(tl, sigma0(al)), v128.xor(bl, v128.and(xl, yl)));
    hr = i32x4.add(i32x4.add(tr, sigma0(ar)), v128.xor(br, v128.and(xr, yr)));
    w1l = expand(w1l, w2l, w10l, w15l);
    w1r = expand(w1r, w2r, w10r, w15r);
    tl = i32x4.add(
      i32x4.add(
        choose(dl, el, fl, gl),
        i32x4.add(w1l, i32x4(<i32>0xefbe4786, <i32>0xefbe4786, <i32>0xefbe4786, <i32>0xefbe4786)),
      ),
      sigma1(dl),
    );
    tr = i32x4.add(
      i32x4.add(
        choose(dr, er, fr, gr),
        i32x4.add(w1r, i32x4(<i32>0xefbe4786, <i32>0xefbe4786, <i32>0xefbe4786, <i32>0xefbe4786)),
      ),
      sigma1(dr),
    );
    cl = i32x4.add(cl, tl);
    cr = i32x4.add(cr, tr);
    yl = v128.xor(hl, al);
    yr = v128.xor(hr, ar);
    gl = i32x4.add(i32x4.add(tl, sigma0(hl)), v128.xor(al, v128.and(yl, xl)));
    gr = i32x4.add(i32x4.add(tr, sigma0(hr)), v128.xor(ar, v128.and(yr, xr)));
    w2l = expand(w2l, w3l, w11l, w0l);
    w2r = expand(w2r, w3r, w11r, w0r);
    tl = i32x4.add(
      i32x4.add(
        choose(cl, dl, el, fl),
        i32x4.add(w2l, i32x4(<i32>0x0fc19dc6, <i32>0x0fc19dc6, <i32>0x0fc19dc6, <i32>0x0fc19dc6)),
      ),
      sigma1(cl),
    );
    tr = i32x4.add(
      i32x4.add(
        choose(cr, dr, er, fr),
        i32x4.add(w2r, i32x4(<i32>0x0fc19dc6, <i32>0x0fc19dc6, <i32>0x0fc19dc6, <i32>0x0fc19dc6)),
      ),
      sigma1(cr),
    );
    bl = i32x4.add(bl, tl);
    br = i32x4.add(br, tr);
    xl = v128.xor(gl, hl);
    xr = v128.xor(gr, hr);
    fl = i32x4.add(i32x4.add(tl, sigma0(gl)), v128.xor(hl, v128.and(xl, yl)));
    fr = i32x4.add(i32x4.add(tr, sigma0(gr)), v128.xor(hr, v128.and(xr, yr)));
    w3l = expand(w3l, w4l, w12l, w1l);
    w3r = expand(w3r, w4r, w12r, w1r);
    tl = i32x4.add(
      i32x4.add(
        choose(bl, cl, dl, el),
        i32x4.add(w3l, i32x4(<i32>0x240ca1cc, <i32>0x240ca1cc, <i32>0x240ca1cc, <i32>0x240ca1cc)),
      ),
      sigma1(bl),
    );
    tr = i32x4.add(
      i32x4.add(
        choose(br, cr, dr, er),
        i32x4.add(w3r, i32x4(<i32>0x240ca1cc, <i32>0x240ca1cc, <i32>0x240ca1cc, <i32>0x240ca1cc)),
      ),
      sigma1(br),
    );
    al = i32x4.add(al, tl);
    ar = i32x4.add(ar, tr);
    yl = v128.xor(fl, gl);
    yr = v128.xor(fr, gr);
    el = i32x4.add(i32x4.add(tl, sigma0(fl)), v128.xor(gl, v128.and(yl, xl)));
    er = i32x4.add(i32x4.add(tr, sigma0(fr)), v128.xor(gr, v128.and(yr, xr)));
    w4l = expand(w4l, w5l, w13l, w2l);
    w4r = expand(w4r, w5r, w13r, w2r);
    tl = i32x4.add(
      i32x4.add(
        choose(al, bl, cl, dl),
        i32x4.add(w4l, i32x4(<i32>0x2de92c6f, <i32>0x2de92c6f, <i32>0x2de92c6f, <i32>0x2de92c6f)),
      ),
      sigma1(al),
    );
    tr = i32x4.add(
      i32x4.add(
        choose(ar, br, cr, dr),
        i32x4.add(w4r, i32x4(<i32>0x2de92c6f, <i32>0x2de92c6f, <i32>0x2de92c6f, <i32>0x2de92c6f)),
      ),
      sigma1(ar),
    );
    hl = i32x4.add(hl, tl);
    hr = i32x4.add(hr, tr);
    xl = v128.xor(el, fl);
    xr = v128.xor(er, fr);
    dl = i32x4.add(i32x4.add(tl, sigma0(el)), v128.xor(fl, v128.and(xl, yl)));
    dr = i32x4.add(i32x4.add(tr, sigma0(er)), v128.xor(fr, v128.and(xr, yr)));
    w5l = expand(w5l, w6l, w14l, w3l);
    w5r = expand(w5r, w6r, w14r, w3r);
    tl = i32x4.add(
      i32x4.add(
        choose(hl, al, bl, cl),
        i32x4.add(w5l, i32x4(<i32>0x4a7484aa, <i32>0x4a7484aa, <i32>0x4a7484aa, <i32>0x4a7484aa)),
      ),
      sigma1(hl),
    );
    tr = i32x4.add(
      i32x4.add(
        choose(hr, ar, br, cr),
        i32x4.add(w5r, i32x4(<i32>0x4a7484aa, <i32>0x4a7484aa, <i32>0x4a7484aa, <i32>0x4a7484aa)),
      ),
      sigma1(hr),
    );
    gl = i32x4.add(gl, tl);
    gr = i32x4.add(gr, tr);
    yl = v128.xor(dl, el);
    yr = v128.xor(dr, er);
    cl = i32x4.add(i32x4.add(tl, sigma0(dl)), v128.xor(el, v128.and(yl, xl)));
    cr = i32x4.add(i32x4.add(tr, sigma0(dr)), v128.xor(er, v128.and(yr, xr)));
    w6l = expand(w6l, w7l, w15l, w4l);
    w6r = expand(w6r, w7r, w15r, w4r);
    tl = i32x4.add(
      i32x4.add(
        choose(gl, hl, al, bl),
        i32x4.add(w6l, i32x4(<i32>0x5cb0a9dc, <i32>0x5cb0a9dc, <i32>0x5cb0a9dc, <i32>0x5cb0a9dc)),
      ),
      sigma1(gl),
    );
    tr = i32x4.add(
      i32x4.add(
        choose(gr, hr, ar, br),
        i32x4.add(w6r, i32x4(<i32>0x5cb0a9dc, <i32>0x5cb0a9dc, <i32>0x5cb0a9dc, <i32>0x5cb0a9dc)),
      ),
      sigma1(gr),
    );
    fl = i32x4.add(fl, tl);
    fr = i32x4.add(fr, tr);
    xl = v128.xor(cl, dl);
    xr = v128.xor(cr, dr);
    bl = i32x4.add(i32x4.add(tl, sigma0(cl)), v128.xor(dl, v128.and(xl, yl)));
    br = i32x4.add(i32x4.add(tr, sigma0(cr)), v128.xor(dr, v128.and(xr, yr)));
    w7l = expand(w7l, w8l, w0l, w5l);
    w7r = expand(w7r, w8r, w0r, w5r);
    tl = i32x4.add(
      i32x4.add(
        choose(fl, gl, hl, al),
        i32x4.add(w7l, i32x4(<i32>0x76f988da, <i32>0x76f988da, <i32>0x76f988da, <i32>0x76f988da)),
      ),
      sigma1(fl),
    );
    tr = i32x4.add(
      i32x4.add(
        choose(fr, gr, hr, ar),
        i32x4.add(w7r, i32x4(<i32>0x76f988da, <i32>0x76f988da, <i32>0x76f988da, <i32>0x76f988da)),
      ),
      sigma1(fr),
    );
    el = i32x4.add(el, tl);
    er = i32x4.add(er, tr);
    yl = v128.xor(bl, cl);
    yr = v128.xor(br, cr);
    al = i32x4.add(i32x4.add(tl, sigma0(bl)), v128.xor(cl, v128.and(yl, xl)));
    ar = i32x4.add(i32x4.add(tr, sigma0(br)), v128.xor(cr, v128.and(yr, xr)));
    w8l = expand(w8l, w9l, w1l, w6l);
    w8r = expand(w8r, w9r, w1r, w6r);
    tl = i32x4.add(
      i32x4.add(
        choose(el, fl, gl, hl),
        i32x4.add(w8l, i32x4(<i32>0x983e5152, <i32>0x983e5152, <i32>0x983e5152, <i32>0x983e5152)),
      ),
      sigma1(el),
    );
    tr = i32x4.add(
      i32x4.add(
        choose(er, fr, gr, hr),
        i32x4.add(w8r, i32x4(<i32>0x983e5152, <i32>0x983e5152, <i32>0x983e5152, <i32>0x983e5152)),
      ),
      sigma1(er),
    );
    dl = i32x4.add(dl, tl);
    dr = i32x4.add(dr, tr);
    xl = v128.xor(al, bl);
    xr = v128.xor(ar, br);
    hl = i32x4.add(i32x4.add(tl, sigma0(al)), v128.xor(bl, v128.and(xl, yl)));
    hr = i32x4.add(i32x4.add(tr, sigma0(ar)), v128.xor(br, v128.and(xr, yr)));
    w9l = expand(w9l, w10l, w2l, w7l);
    w9r = expand(w9r, w10r, w2r, w7r);
    tl = i32x4.add(
      i32x4.add(
        choose(dl, el, fl, gl),
        i32x4.add(w9l, i32x4(<i32>0xa831c66d, <i32>0xa831c66d, <i32>0xa831c66d, <i32>0xa831c66d)),
      ),
      sigma1(dl),
    );
    tr = i32x4.add(
      i32x4.add(
        choose(dr, er, fr, gr),
        i32x4.add(w9r, i32x4(<i32>0xa831c66d, <i32>0xa831c66d, <i32>0xa831c66d, <i32>0xa831c66d)),
      ),
      sigma1(dr),
    );
    cl = i32x4.add(cl, tl);
    cr = i32x4.add(cr, tr);
    yl = v128.xor(hl, al);
    yr = v128.xor(hr, ar);
    gl = i32x4.add(i32x4.add(tl, sigma0(hl)), v128.xor(al, v128.and(yl, xl)));
    gr = i32x4.add(i32x4.add(tr, sigma0(hr)), v128.xor(ar, v128.and(yr, xr)));
    w10l = expand(w10l, w11l, w3l, w8l);
    w10r = expand(w10r, w11r, w3r, w8r);
    tl = i32x4.add(
      i32x4.add(
        choose(cl, dl, el, fl),
        i32x4.add(w10l, i32x4(<i32>0xb00327c8, <i32>0xb00327c8, <i32>0xb00327c8, <i32>0xb00327c8)),
      ),
      sigma1(cl),
    );
    tr = i32x4.add(
      i32x4.add(
        choose(cr, dr, er, fr),
        i32x4.add(w10r, i32x4(<i32>0xb00327c8, <i32>0xb00327c8, <i32>0xb00327c8, <i32>0xb00327c8)),
      ),
      sigma1(cr),
    );
    bl = i32x4.add(bl, tl);
    br = i32x4.add(br, tr);
    xl = v128.xor(gl, hl);
    xr = v128.xor(gr, hr);
    fl = i32x4.add(i32x4.add(tl, sigma0(gl)), v128.xor(hl, v128.and(xl, yl)));
    fr = i32x4.add(i32x4.add(tr, sigma0(gr)), v128.xor(hr, v128.and(xr, yr)));
    w11l = expand(w11l, w12l, w4l, w9l);
    w11r = expand(w11r, w12r, w4r, w9r);
    tl = i32x4.add(
      i32x4.add(
        choose(bl, cl, dl, el),
        i32x4.add(w11l, i32x4(<i32>0xbf597fc7, <i32>0xbf597fc7, <i32>0xbf597fc7, <i32>0xbf597fc7)),
      ),
      sigma1(bl),
    );
    tr = i32x4.add(
      i32x4.add(
        choose(br, cr, dr, er),
        i32x4.add(w11r, i32x4(<i32>0xbf597fc7, <i32>0xbf597fc7, <i32>0xbf597fc7, <i32>0xbf597fc7)),
      ),
      sigma1(br),
    );
    al = i32x4.add(al, tl);
    ar = i32x4.add(ar, tr);
    yl = v128.xor(fl, gl);
    yr = v128.xor(fr, gr);
    el = i32x4.add(i32x4.add(tl, sigma0(fl)), v128.xor(gl, v128.and(yl, xl)));
    er = i32x4.add(i32x4.add(tr, sigma0(fr)), v128.xor(gr, v128.and(yr, xr)));
    w12l = expand(w12l, w13l, w5l, w10l);
    w12r = expand(w12r, w13r, w5r, w10r);
    tl = i32x4.add(
      i32x4.add(
        choose(al, bl, cl, dl),
        i32x4.add(w12l, i32x4(<i32>0xc6e00bf3, <i32>0xc6e00bf3, <i32>0xc6e00bf3, <i32>0xc6e00bf3)),
      ),
      sigma1(al),
    );
    tr = i32x4.add(
      i32x4.add(
        choose(ar, br, cr, dr),
        i32x4.add(w12r, i32x4(<i32>0xc6e00bf3, <i32>0xc6e00bf3, <i32>0xc6e00bf3, <i32>0xc6e00bf3)),
      ),
      sigma1(ar),
    );
    hl = i32x4.add(hl, tl);
    hr = i32x4.add(hr, tr);
    xl = v128.xor(el, fl);
    xr = v128.xor(er, fr);
    dl = i32x4.add(i32x4.add(tl, sigma0(el)), v128.xor(fl, v128.and(xl, yl)));
    dr = i32x4.add(i32x4.add(tr, sigma0(er)), v128.xor(fr, v128.and(xr, yr)));
    w13l = expand(w13l, w14l, w6l, w11l);
    w13r = expand(w13r, w14r, w6r, w11r);
    tl = i32x4.add(
      i32x4.add(
        choose(hl, al, bl, cl),
        i32x4.add(w13l, i32x4(<i32>0xd5a79147, <i32>0xd5a79147, <i32>0xd5a79147, <i32>0xd5a79147)),
      ),
      sigma1(hl),
    );
    tr = i32x4.add(
      i32x4.add(
        choose(hr, ar, br, cr),
        i32x4.add(w13r, i32x4(<i32>0xd5a79147, <i32>0xd5a79147, <i32>0xd5a79147, <i32>0xd5a79147)),
      ),
      sigma1(hr),
    );
    gl = i32x4.add(gl, tl);
    gr = i32x4.add(gr, tr);
    yl = v128.xor(dl, el);
    yr = v128.xor(dr, er);
    cl = i32x4.add(i32x4.add(tl, sigma0(dl)), v128.xor(el, v128.and(yl, xl)));
    cr = i32x4.add(i32x4.add(tr, sigma0(dr)), v128.xor(er, v128.and(yr, xr)));
    w14l = expand(w14l, w15l, w7l, w12l);
    w14r = expand(w14r, w15r, w7r, w12r);
    tl = i32x4.add(
      i32x4.add(
        choose(gl, hl, al, bl),
        i32x4.add(w14l, i32x4(<i32>0x06ca6351, <i32>0x06ca6351, <i32>0x06ca6351, <i32>0x06ca6351)),
      ),
      sigma1(gl),
    );
    tr = i32x4.add(
      i32x4.add(
        choose(gr, hr, ar, br),
        i32x4.add(w14r, i32x4(<i32>0x06ca6351, <i32>0x06ca6351, <i32>0x06ca6351, <i32>0x06ca6351)),
      ),
      sigma1(gr),
    );
    fl = i32x4.add(fl, tl);
    fr = i32x4.add(fr, tr);
    xl = v128.xor(cl, dl);
    xr = v128.xor(cr, dr);
    bl = i32x4.add(i32x4.add(tl, sigma0(cl)), v128.xor(dl, v128.and(xl, yl)));
    br = i32x4.add(i32x4.add(tr, sigma0(cr)), v128.xor(dr, v128.and(xr, yr)));
    w15l = expand(w15l, w0l, w8l, w13l);
    w15r = expand(w15r, w0r, w8r, w13r);
    tl = i32x4.add(
      i32x4.add(
        choose(fl, gl, hl, al),
        i32x4.add(w15l, i32x4(<i32>0x14292967, <i32>0x14292967, <i32>0x14292967, <i32>0x14292967)),
      ),
      sigma1(fl),
    );
    tr = i32x4.add(
      i32x4.add(
        choose(fr, gr, hr, ar),
        i32x4.add(w15r, i32x4(<i32>0x14292967, <i32>0x14292967, <i32>0x14292967, <i32>0x14292967)),
      ),
      sigma1(fr),
    );
    el = i32x4.add(el, tl);
    er = i32x4.add(er, tr);
    yl = v128.xor(bl, cl);
    yr = v128.xor(br, cr);
    al = i32x4.add(i32x4.add(tl, sigma0(bl)), v128.xor(cl, v128.and(yl, xl)));
    ar = i32x4.add(i32x4.add(tr, sigma0(br)), v128.xor(cr, v128.and(yr, xr)));
    w0l = expand(w0l, w1l, w9l, w14l);
    w0r = expand(w0r, w1r, w9r, w14r);
    tl = i32x4.add(
      i32x4.add(
        choose(el, fl, gl, hl),
        i32x4.add(w0l, i32x4(<i32>0x27b70a85, <i32>0x27b70a85, <i32>0x27b70a85, <i32>0x27b70a85)),
      ),
      sigma1(el),
    );
    tr = i32x4.add(
      i32x4.add(
        choose(er, fr, gr, hr),
        i32x4.add(w0r, i32x4(<i32>0x27b70a85, <i32>0x27b70a85, <i32>0x27b70a85, <i32>0x27b70a85)),
      ),
      sigma1(er),
    );
    dl = i32x4.add(dl, tl);
    dr = i32x4.add(dr, tr);
    xl = v128.xor(al, bl);
    xr = v128.xor(ar, br);
    hl = i32x4.add(i32x4.add(tl, sigma0(al)), v128.xor(bl, v128.and(xl, yl)));
    hr = i32x4.add(i32x4.add(tr, sigma0(ar)), v128.xor(br, v128.and(xr, yr)));
    w1l = expand(w1l, w2l, w10l, w15l);
    w1r = expand(w1r, w2r, w10r, w15r);
    tl = i32x4.add(
      i32x4.add(
        choose(dl, el, fl, gl),
        i32x4.add(w1l, i32x4(<i32>0x2e1b2138, <i32>0x2e1b2138, <i32>0x2e1b2138, <i32>0x2e1b2138)),
      ),
      sigma1(dl),
    );
    tr = i32x4.add(
      i32x4.add(
        choose(dr, er, fr, gr),
        i32x4.add(w1r, i32x4(<i32>0x2e1b2138, <i32>0x2e1b2138, <i32>0x2e1b2138, <i32>0x2e1b2138)),
      ),
      sigma1(dr),
    );
    cl = i32x4.add(cl, tl);
    cr = i32x4.add(cr, tr);
    yl = v128.xor(hl, al);
    yr = v128.xor(hr, ar);
    gl = i32x4.add(i32x4.add(tl, sigma0(hl)), v128.xor(al, v128.and(yl, xl)));
    gr = i32x4.add(i32x4.add(tr, sigma0(hr)), v128.xor(ar, v128.and(yr, xr)));
    w2l = expand(w2l, w3l, w11l, w0l);
    w2r = expand(w2r, w3r, w11r, w0r);
    tl = i32x4.add(
      i32x4.add(
        choose(cl, dl, el, fl),
        i32x4.add(w2l, i32x4(<i32>0x4d2c6dfc, <i32>0x4d2c6dfc, <i32>0x4d2c6dfc, <i32>0x4d2c6dfc)),
      ),
      sigma1(cl),
    );
    tr = i32x4.add(
      i32x4.add(
        choose(cr, dr, er, fr),
        i32x4.add(w2r, i32x4(<i32>0x4d2c6dfc, <i32>0x4d2c6dfc, <i32>0x4d2c6dfc, <i32>0x4d2c6dfc)),
      ),
      sigma1(cr),
    );
    bl = i32x4.add(bl, tl);
    br = i32x4.add(br, tr);
    xl = v128.xor(gl, hl);
    xr = v128.xor(gr, hr);
    fl = i32x4.add(i32x4.add(tl, sigma0(gl)), v128.xor(hl, v128.and(xl, yl)));
    fr = i32x4.add(i32x4.add(tr, sigma0(gr)), v128.xor(hr, v128.and(xr, yr)));
    w3l = expand(w3l, w4l, w12l, w1l);
    w3r = expand(w3r, w4r, w12r, w1r);
    tl = i32x4.add(
      i32x4.add(
        choose(bl, cl, dl, el),
        i32x4.add(w3l, i32x4(<i32>0x53380d13, <i32>0x53380d13, <i32>0x53380d13, <i32>0x53380d13)),
      ),
      sigma1(bl),
    );
    tr = i32x4.add(
      i32x4.add(
        choose(br, cr, dr, er),
        i32x4.add(w3r, i32x4(<i32>0x53380d13, <i32>0x53380d13, <i32>0x53380d13, <i32>0x53380d13)),
      ),
      sigma1(br),
    );
    al = i32x4.add(al, tl);
    ar = i32x4.add(ar, tr);
    yl = v128.xor(fl, gl);
    yr = v128.xor(fr, gr);
    el = i32x4.add(i32x4.add(tl, sigma0(fl)), v128.xor(gl, v128.and(yl, xl)));
    er = i32x4.add(i32x4.add(tr, sigma0(fr)), v128.xor(gr, v128.and(yr, xr)));
    w4l = expand(w4l, w5l, w13l, w2l);
    w4r = expand(w4r, w5r, w13r, w2r);
    tl = i32x4.add(
      i32x4.add(
        choose(al, bl, cl, dl),
        i32x4.add(w4l, i32x4(<i32>0x650a7354, <i32>0x650a7354, <i32>0x650a7354, <i32>0x650a7354)),
      ),
      sigma1(al),
    );
    tr = i32x4.add(
      i32x4.add(
        choose(ar, br, cr, dr),
        i32x4.add(w4r, i32x4(<i32>0x650a7354, <i32>0x650a7354, <i32>0x650a7354, <i32>0x650a7354)),
      ),
      sigma1(ar),
    );
    hl = i32x4.add(hl, tl);
    hr = i32x4.add(hr, tr);
    xl = v128.xor(el, fl);
    xr = v128.xor(er, fr);
    dl = i32x4.add(i32x4.add(tl, sigma0(el)), v128.xor(fl, v128.and(xl, yl)));
    dr = i32x4.add(i32x4.add(tr, sigma0(er)), v128.xor(fr, v128.and(xr, yr)));
    w5l = expand(w5l, w6l, w14l, w3l);
    w5r = expand(w5r, w6r, w14r, w3r);
    tl = i32x4.add(
      i32x4.add(
        choose(hl, al, bl, cl),
        i32x4.add(w5l, i32x4(<i32>0x766a0abb, <i32>0x766a0abb, <i32>0x766a0abb, <i32>0x766a0abb)),
      ),
      sigma1(hl),
    );
    tr = i32x4.add(
      i32x4.add(
        choose(hr, ar, br, cr),
        i32x4.add(w5r, i32x4(<i32>0x766a0abb, <i32>0x766a0abb, <i32>0x766a0abb, <i32>0x766a0abb)),
      ),
      sigma1(hr),
    );
    gl = i32x4.add(gl, tl);
    gr = i32x4.add(gr, tr);
    yl = v128.xor(dl, el);
    yr = v128.xor(dr, er);
    cl = i32x4.add(i32x4.add(tl, sigma0(dl)), v128.xor(el, v128.and(yl, xl)));
    cr = i32x4.add(i32x4.add(tr, sigma0(dr)), v128.xor(er, v128.and(yr, xr)));
    w6l = expand(w6l, w7l, w15l, w4l);
    w6r = expand(w6r, w7r, w15r, w4r);
    tl = i32x4.add(
      i32x4.add(
        choose(gl, hl, al, bl),
        i32x4.add(w6l, i32x4(<i32>0x81c2c92e, <i32>0x81c2c92e, <i32>0x81c2c92e, <i32>0x81c2c92e)),
      ),
      sigma1(gl),
    );
    tr = i32x4.add(
      i32x4.add(
        choose(gr, hr, ar, br),
        i32x4.add(w6r, i32x4(<i32>0x81c2c92e, <i32>0x81c2c92e, <i32>0x81c2c92e, <i32>0x81c2c92e)),
      ),
      sigma1(gr),
    );
    fl = i32x4.add(fl, tl);
    fr = i32x4.add(fr, tr);
    xl = v128.xor(cl, dl);
    xr = v128.xor(cr, dr);
    bl = i32x4.add(i32x4.add(tl, sigma0(cl)), v128.xor(dl, v128.and(xl, yl)));
    br = i32x4.add(i32x4.add(tr, sigma0(cr)), v128.xor(dr, v128.and(xr, yr)));
    w7l = expand(w7l, w8l, w0l, w5l);
    w7r = expand(w7r, w8r, w0r, w5r);
    tl = i32x4.add(
      i32x4.add(
        choose(fl, gl, hl, al),
        i32x4.add(w7l, i32x4(<i32>0x92722c85, <i32>0x92722c85, <i32>0x92722c85, <i32>0x92722c85)),
      ),
      sigma1(fl),
    );
    tr = i32x4.add(
      i32x4.add(
        choose(fr, gr, hr, ar),
        i32x4.add(w7r, i32x4(<i32>0x92722c85, <i32>0x92722c85, <i32>0x92722c85, <i32>0x92722c85)),
      ),
      sigma1(fr),
    );
    el = i32x4.add(el, tl);
    er = i32x4.add(er, tr);
    yl = v128.xor(bl, cl);
    yr = v128.xor(br, cr);
    al = i32x4.add(i32x4.add(tl, sigma0(bl)), v128.xor(cl, v128.and(yl, xl)));
    ar = i32x4.add(i32x4.add(tr, sigma0(br)), v128.xor(cr, v128.and(yr, xr)));
    w8l = expand(w8l, w9l, w1l, w6l);
    w8r = expand(w8r, w9r, w1r, w6r);
    tl = i32x4.add(
      i32x4.add(
        choose(el, fl, gl, hl),
        i32x4.add(w8l, i32x4(<i32>0xa2bfe8a1, <i32>0xa2bfe8a1, <i32>0xa2bfe8a1, <i32>0xa2bfe8a1)),
      ),
      sigma1(el),
    );
    tr = i32x4.add(
      i32x4.add(
        choose(er, fr, gr, hr),
        i32x4.add(w8r, i32x4(<i32>0xa2bfe8a1, <i32>0xa2bfe8a1, <i32>0xa2bfe8a1, <i32>0xa2bfe8a1)),
      ),
      sigma1(er),
    );
    dl = i32x4.add(dl, tl);
    dr = i32x4.add(dr, tr);
    xl = v128.xor(al, bl);
    xr = v128.xor(ar, br);
    hl = i32x4.add(i32x4.add(tl, sigma0(al)), v128.xor(bl, v128.and(xl, yl)));
    hr = i32x4.add(i32x4.add(tr, sigma0(ar)), v128.xor(br, v128.and(xr, yr)));
    w9l = expand(w9l, w10l, w2l, w7l);
    w9r = expand(w9r, w10r, w2r, w7r);
    tl = i32x4.add(
      i32x4.add(
        choose(dl, el, fl, gl),
        i32x4.add(w9l, i32x4(<i32>0xa81a664b, <i32>0xa81a664b, <i32>0xa81a664b, <i32>0xa81a664b)),
      ),
      sigma1(dl),
    );
    tr = i32x4.add(
      i32x4.add(
        choose(dr, er, fr, gr),
        i32x4.add(w9r, i32x4(<i32>0xa81a664b, <i32>0xa81a664b, <i32>0xa81a664b, <i32>0xa81a664b)),
      ),
      sigma1(dr),
    );
    cl = i32x4.add(cl, tl);
    cr = i32x4.add(cr, tr);
    yl = v128.xor(hl, al);
    yr = v128.xor(hr, ar);
    gl = i32x4.add(i32x4.add(tl, sigma0(hl)), v128.xor(al, v128.and(yl, xl)));
    gr = i32x4.add(i32x4.add(tr, sigma0(hr)), v128.xor(ar, v128.and(yr, xr)));
    w10l = expand(w10l, w11l, w3l, w8l);
    w10r = expand(w10r, w11r, w3r, w8r);
    tl = i32x4.add(
      i32x4.add(
        choose(cl, dl, el, fl),
        i32x4.add(w10l, i32x4(<i32>0xc24b8b70, <i32>0xc24b8b70, <i32>0xc24b8b70, <i32>0xc24b8b70)),
      ),
      sigma1(cl),
    );
    tr = i32x4.add(
      i32x4.add(
        choose(cr, dr, er, fr),
        i32x4.add(w10r, i32x4(<i32>0xc24b8b70, <i32>0xc24b8b70, <i32>0xc24b8b70, <i32>0xc24b8b70)),
      ),
      sigma1(cr),
    );
    bl = i32x4.add(bl, tl);
    br = i32x4.add(br, tr);
    xl = v128.xor(gl, hl);
    xr = v128.xor(gr, hr);
    fl = i32x4.add(i32x4.add(tl, sigma0(gl)), v128.xor(hl, v128.and(xl, yl)));
    fr = i32x4.add(i32x4.add(tr, sigma0(gr)), v128.xor(hr, v128.and(xr, yr)));
    w11l = expand(w11l, w12l, w4l, w9l);
    w11r = expand(w11r, w12r, w4r, w9r);
    tl = i32x4.add(
      i32x4.add(
        choose(bl, cl, dl, el),
        i32x4.add(w11l, i32x4(<i32>0xc76c51a3, <i32>0xc76c51a3, <i32>0xc76c51a3, <i32>0xc76c51a3)),
      ),
      sigma1(bl),
    );
    tr = i32x4.add(
      i32x4.add(
        choose(br, cr, dr, er),
        i32x4.add(w11r, i32x4(<i32>0xc76c51a3, <i32>0xc76c51a3, <i32>0xc76c51a3, <i32>0xc76c51a3)),
      ),
      sigma1(br),
    );
    al = i32x4.add(al, tl);
    ar = i32x4.add(ar, tr);
    yl = v128.xor(fl, gl);
    yr = v128.xor(fr, gr);
    el = i32x4.add(i32x4.add(tl, sigma0(fl)), v128.xor(gl, v128.and(yl, xl)));
    er = i32x4.add(i32x4.add(tr, sigma0(fr)), v128.xor(gr, v128.and(yr, xr)));
    w12l = expand(w12l, w13l, w5l, w10l);
    w12r = expand(w12r, w13r, w5r, w10r);
    tl = i32x4.add(
      i32x4.add(
        choose(al, bl, cl, dl),
        i32x4.add(w12l, i32x4(<i32>0xd192e819, <i32>0xd192e819, <i32>0xd192e819, <i32>0xd192e819)),
      ),
      sigma1(al),
    );
    tr = i32x4.add(
      i32x4.add(
        choose(ar, br, cr, dr),
        i32x4.add(w12r, i32x4(<i32>0xd192e819, <i32>0xd192e819, <i32>0xd192e819, <i32>0xd192e819)),
      ),
      sigma1(ar),
    );
    hl = i32x4.add(hl, tl);
    hr = i32x4.add(hr, tr);
    xl = v128.xor(el, fl);
    xr = v128.xor(er, fr);
    dl = i32x4.add(i32x4.add(tl, sigma0(el)), v128.xor(fl, v128.and(xl, yl)));
    dr = i32x4.add(i32x4.add(tr, sigma0(er)), v128.xor(fr, v128.and(xr, yr)));
    w13l = expand(w13l, w14l, w6l, w11l);
    w13r = expand(w13r, w14r, w6r, w11r);
    tl = i32x4.add(
      i32x4.add(
        choose(hl, al, bl, cl),
        i32x4.add(w13l, i32x4(<i32>0xd6990624, <i32>0xd6990624, <i32>0xd6990624, <i32>0xd6990624)),
      ),
      sigma1(hl),
    );
    tr = i32x4.add(
      i32x4.add(
        choose(hr, ar, br, cr),
        i32x4.add(w13r, i32x4(<i32>0xd6990624, <i32>0xd6990624, <i32>0xd6990624, <i32>0xd6990624)),
      ),
      sigma1(hr),
    );
    gl = i32x4.add(gl, tl);
    gr = i32x4.add(gr, tr);
    yl = v128.xor(dl, el);
    yr = v128.xor(dr, er);
    cl = i32x4.add(i32x4.add(tl, sigma0(dl)), v128.xor(el, v128.and(yl, xl)));
    cr = i32x4.add(i32x4.add(tr, sigma0(dr)), v128.xor(er, v128.and(yr, xr)));
    w14l = expand(w14l, w15l, w7l, w12l);
    w14r = expand(w14r, w15r, w7r, w12r);
    tl = i32x4.add(
      i32x4.add(
        choose(gl, hl, al, bl),
        i32x4.add(w14l, i32x4(<i32>0xf40e3585, <i32>0xf40e3585, <i32>0xf40e3585, <i32>0xf40e3585)),
      ),
      sigma1(gl),
    );
    tr = i32x4.add(
      i32x4.add(
        choose(gr, hr, ar, br),
        i32x4.add(w14r, i32x4(<i32>0xf40e3585, <i32>0xf40e3585, <i32>0xf40e3585, <i32>0xf40e3585)),
      ),
      sigma1(gr),
    );
    fl = i32x4.add(fl, tl);
    fr = i32x4.add(fr, tr);
    xl = v128.xor(cl, dl);
    xr = v128.xor(cr, dr);
    bl = i32x4.add(i32x4.add(tl, sigma0(cl)), v128.xor(dl, v128.and(xl, yl)));
    br = i32x4.add(i32x4.add(tr, sigma0(cr)), v128.xor(dr, v128.and(xr, yr)));
    w15l = expand(w15l, w0l, w8l, w13l);
    w15r = expand(w15r, w0r, w8r, w13r);
    tl = i32x4.add(
      i32x4.add(
        choose(fl, gl, hl, al),
        i32x4.add(w15l, i32x4(<i32>0x106aa070, <i32>0x106aa070, <i32>0x106aa070, <i32>0x106aa070)),
      ),
      sigma1(fl),
    );
    tr = i32x4.add(
      i32x4.add(
        choose(fr, gr, hr, ar),
        i32x4.add(w15r, i32x4(<i32>0x106aa070, <i32>0x106aa070, <i32>0x106aa070, <i32>0x106aa070)),
      ),
      sigma1(fr),
    );
    el = i32x4.add(el, tl);
    er = i32x4.add(er, tr);
    yl = v128.xor(bl, cl);
    yr = v128.xor(br, cr);
    al = i32x4.add(i32x4.add(tl, sigma0(bl)), v128.xor(cl, v128.and(yl, xl)));
    ar = i32x4.add(i32x4.add(tr, sigma0(br)), v128.xor(cr, v128.and(yr, xr)));
    w0l = expand(w0l, w1l, w9l, w14l);
    w0r = expand(w0r, w1r, w9r, w14r);
    tl = i32x4.add(
      i32x4.add(
        choose(el, fl, gl, hl),
        i32x4.add(w0l, i32x4(<i32>0x19a4c116, <i32>0x19a4c116, <i32>0x19a4c116, <i32>0x19a4c116)),
      ),
      sigma1(el),
    );
    tr = i32x4.add(
      i32x4.add(
        choose(er, fr, gr, hr),
        i32x4.add(w0r, i32x4(<i32>0x19a4c116, <i32>0x19a4c116, <i32>0x19a4c116, <i32>0x19a4c116)),
      ),
      sigma1(er),
    );
    dl = i32x4.add(dl, tl);
    dr = i32x4.add(dr, tr);
    xl = v128.xor(al, bl);
    xr = v128.xor(ar, br);
    hl = i32x4.add(i32x4.add(tl, sigma0(al)), v128.xor(bl, v128.and(xl, yl)));
    hr = i32x4.add(i32x4.add(tr, sigma0(ar)), v128.xor(br, v128.and(xr, yr)));
    w1l = expand(w1l, w2l, w10l, w15l);
    w1r = expand(w1r, w2r, w10r, w15r);
    tl = i32x4.add(
      i32x4.add(
        choose(dl, el, fl, gl),
        i32x4.add(w1l, i32x4(<i32>0x1e376c08, <i32>0x1e376c08, <i32>0x1e376c08, <i32>0x1e376c08)),
      ),
      sigma1(dl),
    );
    tr = i32x4.add(
      i32x4.add(
        choose(dr, er, fr, gr),
        i32x4.add(w1r, i32x4(<i32>0x1e376c08, <i32>0x1e376c08, <i32>0x1e376c08, <i32>0x1e376c08)),
      ),
      sigma1(dr),
    );
    cl = i32x4.add(cl, tl);
    cr = i32x4.add(cr, tr);
    yl = v128.xor(hl, al);
    yr = v128.xor(hr, ar);
    gl = i32x4.add(i32x4.add(tl, sigma0(hl)), v128.xor(al, v128.and(yl, xl)));
    gr = i32x4.add(i32x4.add(tr, sigma0(hr)), v128.xor(ar, v128.and(yr, xr)));
    w2l = expand(w2l, w3l, w11l, w0l);
    w2r = expand(w2r, w3r, w11r, w0r);
    tl = i32x4.add(
      i32x4.add(
        choose(cl, dl, el, fl),
        i32x4.add(w2l, i32x4(<i32>0x2748774c, <i32>0x2748774c, <i32>0x2748774c, <i32>0x2748774c)),
      ),
      sigma1(cl),
    );
    tr = i32x4.add(
      i32x4.add(
        choose(cr, dr, er, fr),
        i32x4.add(w2r, i32x4(<i32>0x2748774c, <i32>0x2748774c, <i32>0x2748774c, <i32>0x2748774c)),
      ),
      sigma1(cr),
    );
    bl = i32x4.add(bl, tl);
    br = i32x4.add(br, tr);
    xl = v128.xor(gl, hl);
    xr = v128.xor(gr, hr);
    fl = i32x4.add(i32x4.add(tl, sigma0(gl)), v128.xor(hl, v128.and(xl, yl)));
    fr = i32x4.add(i32x4.add(tr, sigma0(gr)), v128.xor(hr, v128.and(xr, yr)));
    w3l = expand(w3l, w4l, w12l, w1l);
    w3r = expand(w3r, w4r, w12r, w1r);
    tl = i32x4.add(
      i32x4.add(
        choose(bl, cl, dl, el),
        i32x4.add(w3l, i32x4(<i32>0x34b0bcb5, <i32>0x34b0bcb5, <i32>0x34b0bcb5, <i32>0x34b0bcb5)),
      ),
      sigma1(bl),
    );
    tr = i32x4.add(
      i32x4.add(
        choose(br, cr, dr, er),
        i32x4.add(w3r, i32x4(<i32>0x34b0bcb5, <i32>0x34b0bcb5, <i32>0x34b0bcb5, <i32>0x34b0bcb5)),
      ),
      sigma1(br),
    );
    al = i32x4.add(al, tl);
    ar = i32x4.add(ar, tr);
    yl = v128.xor(fl, gl);
    yr = v128.xor(fr, gr);
    el = i32x4.add(i32x4.add(tl, sigma0(fl)), v128.xor(gl, v128.and(yl, xl)));
    er = i32x4.add(i32x4.add(tr, sigma0(fr)), v128.xor(gr, v128.and(yr, xr)));
    w4l = expand(w4l, w5l, w13l, w2l);
    w4r = expand(w4r, w5r, w13r, w2r);
    tl = i32x4.add(
      i32x4.add(
        choose(al, bl, cl, dl),
        i32x4.add(w4l, i32x4(<i32>0x391c0cb3, <i32>0x391c0cb3, <i32>0x391c0cb3, <i32>0x391c0cb3)),
      ),
      sigma1(al),
    );
    tr = i32x4.add(
      i32x4.add(
        choose(ar, br, cr, dr),
        i32x4.add(w4r, i32x4(<i32>0x391c0cb3, <i32>0x391c0cb3, <i32>0x391c0cb3, <i32>0x391c0cb3)),
      ),
      sigma1(ar),
    );
    hl = i32x4.add(hl, tl);
    hr = i32x4.add(hr, tr);
    xl = v128.xor(el, fl);
    xr = v128.xor(er, fr);
    dl = i32x4.add(i32x4.add(tl, sigma0(el)), v128.xor(fl, v128.and(xl, yl)));
    dr = i32x4.add(i32x4.add(tr, sigma0(er)), v128.xor(fr, v128.and(xr, yr)));
    w5l = expand(w5l, w6l, w14l, w3l);
    w5r = expand(w5r, w6r, w14r, w3r);
    tl = i32x4.add(
      i32x4.add(
        choose(hl, al, bl, cl),
        i32x4.add(w5l, i32x4(<i32>0x4ed8aa4a, <i32>0x4ed8aa4a, <i32>0x4ed8aa4a, <i32>0x4ed8aa4a)),
      ),
      sigma1(hl),
    );
    tr = i32x4.add(
      i32x4.add(
        choose(hr, ar, br, cr),
        i32x4.add(w5r, i32x4(<i32>0x4ed8aa4a, <i32>0x4ed8aa4a, <i32>0x4ed8aa4a, <i32>0x4ed8aa4a)),
      ),
      sigma1(hr),
    );
    gl = i32x4.add(gl, tl);
    gr = i32x4.add(gr, tr);
    yl = v128.xor(dl, el);
    yr = v128.xor(dr, er);
    cl = i32x4.add(i32x4.add(tl, sigma0(dl)), v128.xor(el, v128.and(yl, xl)));
    cr = i32x4.add(i32x4.add(tr, sigma0(dr)), v128.xor(er, v128.and(yr, xr)));
    w6l = expand(w6l, w7l, w15l, w4l);
    w6r = expand(w6r, w7r, w15r, w4r);
    tl = i32x4.add(
      i32x4.add(
        choose(gl, hl, al, bl),
        i32x4.add(w6l, i32x4(<i32>0x5b9cca4f, <i32>0x5b9cca4f, <i32>0x5b9cca4f, <i32>0x5b9cca4f)),
      ),
      sigma1(gl),
    );
    tr = i32x4.add(
      i32x4.add(
        choose(gr, hr, ar, br),
        i32x4.add(w6r, i32x4(<i32>0x5b9cca4f, <i32>0x5b9cca4f, <i32>0x5b9cca4f, <i32>0x5b9cca4f)),
      ),
      sigma1(gr),
    );
    fl = i32x4.add(fl, tl);
    fr = i32x4.add(fr, tr);
    xl = v128.xor(cl, dl);
    xr = v128.xor(cr, dr);
    bl = i32x4.add(i32x4.add(tl, sigma0(cl)), v128.xor(dl, v128.and(xl, yl)));
    br = i32x4.add(i32x4.add(tr, sigma0(cr)), v128.xor(dr, v128.and(xr, yr)));
    w7l = expand(w7l, w8l, w0l, w5l);
    w7r = expand(w7r, w8r, w0r, w5r);
    tl = i32x4.add(
      i32x4.add(
        choose(fl, gl, hl, al),
        i32x4.add(w7l, i32x4(<i32>0x682e6ff3, <i32>0x682e6ff3, <i32>0x682e6ff3, <i32>0x682e6ff3)),
      ),
      sigma1(fl),
    );
    tr = i32x4.add(
      i32x4.add(
        choose(fr, gr, hr, ar),
        i32x4.add(w7r, i32x4(<i32>0x682e6ff3, <i32>0x682e6ff3, <i32>0x682e6ff3, <i32>0x682e6ff3)),
      ),
      sigma1(fr),
    );
    el = i32x4.add(el, tl);
    er = i32x4.add(er, tr);
    yl = v128.xor(bl, cl);
    yr = v128.xor(br, cr);
    al = i32x4.add(i32x4.add(tl, sigma0(bl)), v128.xor(cl, v128.and(yl, xl)));
    ar = i32x4.add(i32x4.add(tr, sigma0(br)), v128.xor(cr, v128.and(yr, xr)));
    w8l = expand(w8l, w9l, w1l, w6l);
    w8r = expand(w8r, w9r, w1r, w6r);
    tl = i32x4.add(
      i32x4.add(
        choose(el, fl, gl, hl),
        i32x4.add(w8l, i32x4(<i32>0x748f82ee, <i32>0x748f82ee, <i32>0x748f82ee, <i32>0x748f82ee)),
      ),
      sigma1(el),
    );
    tr = i32x4.add(
      i32x4.add(
        choose(er, fr, gr, hr),
        i32x4.add(w8r, i32x4(<i32>0x748f82ee, <i32>0x748f82ee, <i32>0x748f82ee, <i32>0x748f82ee)),
      ),
      sigma1(er),
    );
    dl = i32x4.add(dl, tl);
    dr = i32x4.add(dr, tr);
    xl = v128.xor(al, bl);
    xr = v128.xor(ar, br);
    hl = i32x4.add(i32x4.add(tl, sigma0(al)), v128.xor(bl, v128.and(xl, yl)));
    hr = i32x4.add(i32x4.add(tr, sigma0(ar)), v128.xor(br, v128.and(xr, yr)));
    w9l = expand(w9l, w10l, w2l, w7l);
    w9r = expand(w9r, w10r, w2r, w7r);
    tl = i32x4.add(
      i32x4.add(
        choose(dl, el, fl, gl),
        i32x4.add(w9l, i32x4(<i32>0x78a5636f, <i32>0x78a5636f, <i32>0x78a5636f, <i32>0x78a5636f)),
      ),
      sigma1(dl),
    );
    tr = i32x4.add(
      i32x4.add(
        choose(dr, er, fr, gr),
        i32x4.add(w9r, i32x4(<i32>0x78a5636f, <i32>0x78a5636f, <i32>0x78a5636f, <i32>0x78a5636f)),
      ),
      sigma1(dr),
    );
    cl = i32x4.add(cl, tl);
    cr = i32x4.add(cr, tr);
    yl = v128.xor(hl, al);
    yr = v128.xor(hr, ar);
    gl = i32x4.add(i32x4.add(tl, sigma0(hl)), v128.xor(al, v128.and(yl, xl)));
    gr = i32x4.add(i32x4.add(tr, sigma0(hr)), v128.xor(ar, v128.and(yr, xr)));
    w10l = expand(w10l, w11l, w3l, w8l);
    w10r = expand(w10r, w11r, w3r, w8r);
    tl = i32x4.add(
      i32x4.add(
        choose(cl, dl, el, fl),
        i32x4.add(w10l, i32x4(<i32>0x84c87814, <i32>0x84c87814, <i32>0x84c87814, <i32>0x84c87814)),
      ),
      sigma1(cl),
    );
    tr = i32x4.add(
      i32x4.add(
        choose(cr, dr, er, fr),
        i32x4.add(w10r, i32x4(<i32>0x84c87814, <i32>0x84c87814, <i32>0x84c87814, <i32>0x84c87814)),
      ),
      sigma1(cr),
    );
    bl = i32x4.add(bl, tl);
    br = i32x4.add(br, tr);
    xl = v128.xor(gl, hl);
    xr = v128.xor(gr, hr);
    fl = i32x4.add(i32x4.add(tl, sigma0(gl)), v128.xor(hl, v128.and(xl, yl)));
    fr = i32x4.add(i32x4.add(tr, sigma0(gr)), v128.xor(hr, v128.and(xr, yr)));
    w11l = expand(w11l, w12l, w4l, w9l);
    w11r = expand(w11r, w12r, w4r, w9r);
    tl = i32x4.add(
      i32x4.add(
        choose(bl, cl, dl, el),
        i32x4.add(w11l, i32x4(<i32>0x8cc70208, <i32>0x8cc70208, <i32>0x8cc70208, <i32>0x8cc70208)),
      ),
      sigma1(bl),
    );
    tr = i32x4.add(
      i32x4.add(
        choose(br, cr, dr, er),
        i32x4.add(w11r, i32x4(<i32>0x8cc70208, <i32>0x8cc70208, <i32>0x8cc70208, <i32>0x8cc70208)),
      ),
      sigma1(br),
    );
    al = i32x4.add(al, tl);
    ar = i32x4.add(ar, tr);
    yl = v128.xor(fl, gl);
    yr = v128.xor(fr, gr);
    el = i32x4.add(i32x4.add(tl, sigma0(fl)), v128.xor(gl, v128.and(yl, xl)));
    er = i32x4.add(i32x4.add(tr, sigma0(fr)), v128.xor(gr, v128.and(yr, xr)));
    w12l = expand(w12l, w13l, w5l, w10l);
    w12r = expand(w12r, w13r, w5r, w10r);
    tl = i32x4.add(
      i32x4.add(
        choose(al, bl, cl, dl),
        i32x4.add(w12l, i32x4(<i32>0x90befffa, <i32>0x90befffa, <i32>0x90befffa, <i32>0x90befffa)),
      ),
      sigma1(al),
    );
    tr = i32x4.add(
      i32x4.add(
        choose(ar, br, cr, dr),
        i32x4.add(w12r, i32x4(<i32>0x90befffa, <i32>0x90befffa, <i32>0x90befffa, <i32>0x90befffa)),
      ),
      sigma1(ar),
    );
    hl = i32x4.add(hl, tl);
    hr = i32x4.add(hr, tr);
    xl = v128.xor(el, fl);
    xr = v128.xor(er, fr);
    dl = i32x4.add(i32x4.add(tl, sigma0(el)), v128.xor(fl, v128.and(xl, yl)));
    dr = i32x4.add(i32x4.add(tr, sigma0(er)), v128.xor(fr, v128.and(xr, yr)));
    w13l = expand(w13l, w14l, w6l, w11l);
    w13r = expand(w13r, w14r, w6r, w11r);
    tl = i32x4.add(
      i32x4.add(
        choose(hl, al, bl, cl),
        i32x4.add(w13l, i32x4(<i32>0xa4506ceb, <i32>0xa4506ceb, <i32>0xa4506ceb, <i32>0xa4506ceb)),
      ),
      sigma1(hl),
    );
    tr = i32x4.add(
      i32x4.add(
        choose(hr, ar, br, cr),
        i32x4.add(w13r, i32x4(<i32>0xa4506ceb, <i32>0xa4506ceb, <i32>0xa4506ceb, <i32>0xa4506ceb)),
      ),
      sigma1(hr),
    );
    gl = i32x4.add(gl, tl);
    gr = i32x4.add(gr, tr);
    yl = v128.xor(dl, el);
    yr = v128.xor(dr, er);
    cl = i32x4.add(i32x4.add(tl, sigma0(dl)), v128.xor(el, v128.and(yl, xl)));
    cr = i32x4.add(i32x4.add(tr, sigma0(dr)), v128.xor(er, v128.and(yr, xr)));
    w14l = expand(w14l, w15l, w7l, w12l);
    w14r = expand(w14r, w15r, w7r, w12r);
    tl = i32x4.add(
      i32x4.add(
        choose(gl, hl, al, bl),
        i32x4.add(w14l, i32x4(<i32>0xbef9a3f7, <i32>0xbef9a3f7, <i32>0xbef9a3f7, <i32>0xbef9a3f7)),
      ),
      sigma1(gl),
    );
    tr = i32x4.add(
      i32x4.add(
        choose(gr, hr, ar, br),
        i32x4.add(w14r, i32x4(<i32>0xbef9a3f7, <i32>0xbef9a3f7, <i32>0xbef9a3f7, <i32>0xbef9a3f7)),
      ),
      sigma1(gr),
    );
    fl = i32x4.add(fl, tl);
    fr = i32x4.add(fr, tr);
    xl = v128.xor(cl, dl);
    xr = v128.xor(cr, dr);
    bl = i32x4.add(i32x4.add(tl, sigma0(cl)), v128.xor(dl, v128.and(xl, yl)));
    br = i32x4.add(i32x4.add(tr, sigma0(cr)), v128.xor(dr, v128.and(xr, yr)));
    w15l = expand(w15l, w0l, w8l, w13l);
    w15r = expand(w15r, w0r, w8r, w13r);
    tl = i32x4.add(
      i32x4.add(
        choose(fl, gl, hl, al),
        i32x4.add(w15l, i32x4(<i32>0xc67178f2, <i32>0xc67178f2, <i32>0xc67178f2, <i32>0xc67178f2)),
      ),
      sigma1(fl),
    );
    tr = i32x4.add(
      i32x4.add(
        choose(fr, gr, hr, ar),
        i32x4.add(w15r, i32x4(<i32>0xc67178f2, <i32>0xc67178f2, <i32>0xc67178f2, <i32>0xc67178f2)),
      ),
      sigma1(fr),
    );
    el = i32x4.add(el, tl);
    er = i32x4.add(er, tr);
    yl = v128.xor(bl, cl);
    yr = v128.xor(br, cr);
    al = i32x4.add(i32x4.add(tl, sigma0(bl)), v128.xor(cl, v128.and(yl, xl)));
    ar = i32x4.add(i32x4.add(tr, sigma0(br)), v128.xor(cr, v128.and(yr, xr)));
    al = i32x4.add(al, al0);
    ar = i32x4.add(ar, ar0);
    bl = i32x4.add(bl, bl0);
    br = i32x4.add(br, br0);
    cl = i32x4.add(cl, cl0);
    cr = i32x4.add(cr, cr0);
    dl = i32x4.add(dl, dl0);
    dr = i32x4.add(dr, dr0);
    el = i32x4.add(el, el0);
    er = i32x4.add(er, er0);
    fl = i32x4.add(fl, fl0);
    fr = i32x4.add(fr, fr0);
    gl = i32x4.add(gl, gl0);
    gr = i32x4.add(gr, gr0);
    hl = i32x4.add(hl, hl0);
    hr = i32x4.add(hr, hr0);
    words += 512;
  } while (words < end);
  v128.store(states, al, 0);
  v128.store(states, ar, 16);
  v128.store(states, bl, 32);
  v128.store(states, br, 48);
  v128.store(states, cl, 64);
  v128.store(states, cr, 80);
  v128.store(states, dl, 96);
  v128.store(states, dr, 112);
  v128.store(states, el, 128);
  v128.store(states, er, 144);
  v128.store(states, fl, 160);
  v128.store(states, fr, 176);
  v128.store(states, gl, 192);
  v128.store(states, gr, 208);
  v128.store(states, hl, 224);
  v128.store(states, hr, 240);
}

/**
 * Runs `blocks` whole blocks, at least one, of the eight streams in the scratch's list of lanes. Lanes without a
 * stream may share one state and any data.
 */
export function compressEight(scratch: usize, blocks: u32): void {
  let r0: v128, r1: v128, r2: v128, r3: v128, u: v128, v: v128;
  const lanes = scratch + EIGHT_LANES;
  const states = scratch + EIGHT_STATES;
  const words = scratch + EIGHT_WORDS;
  r0 = v128.load(load<u32>(lanes, 0), 0);
  r1 = v128.load(load<u32>(lanes, 12), 0);
  r2 = v128.load(load<u32>(lanes, 24), 0);
  r3 = v128.load(load<u32>(lanes, 36), 0);
  u = low(r0, r1);
  v = low(r2, r3);
  v128.store(states, lowHalves(u, v), 0);
  v128.store(states, highHalves(u, v), 32);
  u = high(r0, r1);
  v = high(r2, r3);
  v128.store(states, lowHalves(u, v), 64);
  v128.store(states, highHalves(u, v), 96);
  r0 = v128.load(load<u32>(lanes, 48), 0);
  r1 = v128.load(load<u32>(lanes, 60), 0);
  r2 = v128.load(load<u32>(lanes, 72), 0);
  r3 = v128.load(load<u32>(lanes, 84), 0);
  u = low(r0, r1);
  v = low(r2, r3);
  v128.store(states, lowHalves(u, v), 16);
  v128.store(states, highHalves(u, v), 48);
  u = high(r0, r1);
  v = high(r2, r3);
  v128.store(states, lowHalves(u, v), 80);
  v128.store(states, highHalves(u, v), 112);
  r0 = v128.load(load<u32>(lanes, 0), 16);
  r1 = v128.load(load<u32>(lanes, 12), 16);
  r2 = v128.load(load<u32>(lanes, 24), 16);
  r3 = v128.load(load<u32>(lanes, 36), 16);
  u = low(r0, r1);
  v = low(r2, r3);
  v128.store(states, lowHalves(u, v), 128);
  v128.store(states, highHalves(u, v), 160);
  u = high(r0, r1);
  v = high(r2, r3);
  v128.store(states, lowHalves(u, v), 192);
  v128.store(states, highHalves(u, v), 224);
  r0 = v128.load(load<u32>(lanes, 48), 16);
  r1 = v128.load(load<u32>(lanes, 60), 16);
  r2 = v128.load(load<u32>(lanes, 72), 16);
  r3 = v128.load(load<u32>(lanes, 84), 16);
  u = low(r0, r1);
  v = low(r2, r3);
  v128.store(states, lowHalves(u, v), 144);
  v128.store(states, highHalves(u, v), 176);
  u = high(r0, r1);
  v = high(r2, r3);
  v128.store(states, lowHalves(u, v), 208);
  v128.store(states, highHalves(u, v), 240);
  let p0 = <usize>load<u32>(lanes, 4);
  let p1 = <usize>load<u32>(lanes, 16);
  let p2 = <usize>load<u32>(lanes, 28);
  let p3 = <usize>load<u32>(lanes, 40);
  let p4 = <usize>load<u32>(lanes, 52);
  let p5 = <usize>load<u32>(lanes, 64);
  let p6 = <usize>load<u32>(lanes, 76);
  let p7 = <usize>load<u32>(lanes, 88);
  while (blocks > 0) {
    const part = min<u32>(blocks, EIGHT_BLOCKS);
    const length = (<usize>part) << 6;
    spread(words, p0, p1, p2, p3, p4, p5, p6, p7, length);
    rounds(states, words, words + ((<usize>part) << 9));
    p0 += length;
    p1 += length;
    p2 += length;
    p3 += length;
    p4 += length;
    p5 += length;
    p6 += length;
    p7 += length;
    blocks -= part;
  }
  r0 = v128.load(states, 0);
  r1 = v128.load(states, 32);
  r2 = v128.load(states, 64);
  r3 = v128.load(states, 96);
  u = low(r0, r1);
  v = low(r2, r3);
  v128.store(load<u32>(lanes, 0), lowHalves(u, v), 0);
  v128.store(load<u32>(lanes, 12), highHalves(u, v), 0);
  u = high(r0, r1);
  v = high(r2, r3);
  v128.store(load<u32>(lanes, 24), lowHalves(u, v), 0);
  v128.store(load<u32>(lanes, 36), highHalves(u, v), 0);
  r0 = v128.load(states, 16);
  r1 = v128.load(states, 48);
  r2 = v128.load(states, 80);
  r3 = v128.load(states, 112);
  u = low(r0, r1);
  v = low(r2, r3);
  v128.store(load<u32>(lanes, 48), lowHalves(u, v), 0);
  v128.store(load<u32>(lanes, 60), highHalves(u, v), 0);
  u = high(r0, r1);
  v = high(r2, r3);
  v128.store(load<u32>(lanes, 72), lowHalves(u, v), 0);
  v128.store(load<u32>(lanes, 84), highHalves(u, v), 0);
  r0 = v128.load(states, 128);
  r1 = v128.load(states, 160);
  r2 = v128.load(states, 192);
  r3 = v128.load(states, 224);
  u = low(r0, r1);
  v = low(r2, r3);
  v128.store(load<u32>(lanes, 0), lowHalves(u, v), 16);
  v128.store(load<u32>(lanes, 12), highHalves(u, v), 16);
  u = high(r0, r1);
  v = high(r2, r3);
  v128.store(load<u32>(lanes, 24), lowHalves(u, v), 16);
  v128.store(load<u32>(lanes, 36), highHalves(u, v), 16);
  r0 = v128.load(states, 144);
  r1 = v128.load(states, 176);
  r2 = v128.load(states, 208);
  r3 = v128.load(states, 240);
  u = low(r0, r1);
  v = low(r2, r3);
  v128.store(load<u32>(lanes, 48), lowHalves(u, v), 16);
  v128.store(load<u32>(lanes, 60), highHalves(u, v), 16);
  u = high(r0, r1);
  v = high(r2, r3);
  v128.store(load<u32>(lanes, 72), lowHalves(u, v), 16);
  v128.store(load<u32>(lanes, 84), highHalves(u, v), 16);
}
