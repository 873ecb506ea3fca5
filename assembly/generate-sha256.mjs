/**
 * Writes sha256-single.ts, sha256-lanes.ts and sha256-eight.ts. The 64 rounds are unrolled so that the round constants are
 * immediates in code (a table would need a data segment, and instances on one shared memory would race to
 * initialise it) and the schedule lives in locals (in memory the speed swings with the address of the
 * scratch). Run `npm run generate:core`; a test runs it again and compares.
 */
import { writeFileSync } from 'node:fs';

const STATE = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];

/** FIPS 180-4, 4.2.2: the first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
function roundConstants() {
  const primes = [];
  for (let n = 2; primes.length < 64; n += 1) {
    if (primes.every((prime) => n % prime !== 0)) primes.push(n);
  }
  return primes.map((prime) => Number(cubeRoot(BigInt(prime) << 96n) & 0xffff_ffffn));
}

/** Floor of the cube root, by bisection: exact where a double is not. */
function cubeRoot(value) {
  let low = 0n;
  let high = 1n << 40n;
  while (high - low > 1n) {
    const middle = (low + high) >> 1n;
    if (middle * middle * middle <= value) low = middle;
    else high = middle;
  }
  return low;
}

const K = roundConstants();
const hex = (word) => `0x${word.toString(16).padStart(8, '0')}`;
/** The names of the eight working variables in round `t`: instead of moving the values, the names rotate. */
const names = (t) => STATE.map((_, i) => STATE[(i - t + 64) % 8]);

function header(purpose) {
  return `// Written by generate-sha256.mjs; change it there.\n// ${purpose}\nimport { rotate, turn } from './vectors';\n`;
}

/** Code of shifts of `x` that are joined by xor from left to right: `>n` to the right, `<n` to the left. */
function chain(x, shifts) {
  const [first, ...others] = shifts
    .split(' ')
    .map((shift) => `i32x4.${shift[0] === '>' ? 'shr_u' : 'shl'}(${x}, ${shift.slice(1)})`);
  return `${'v128.xor('.repeat(others.length)}${first}${others.map((other) => `,\n    ${other})`).join('')}`;
}

function lanes() {
  const lines = [];
  for (let t = 0; t < 64; t += 1) {
    const [a, b, , d, e, f, g, h] = names(t);
    const w = (i) => `w${(t + i) % 16}`;
    // Maj(a, b, c) = b ^ ((a ^ b) & (b ^ c)), and b ^ c is the a ^ b of the round before.
    const [now, before] = t % 2 === 0 ? ['x', 'y'] : ['y', 'x'];
    if (t >= 16) lines.push(`    ${w(0)} = expand(${w(0)}, ${w(1)}, ${w(9)}, ${w(14)});`);
    lines.push(
      `    t = i32x4.add(i32x4.add(choose(${e}, ${f}, ${g}, ${h}), i32x4.add(${w(0)}, i32x4.splat(<i32>${hex(K[t])}))), sigma1(${e}));`,
      `    ${d} = i32x4.add(${d}, t);`,
      `    ${now} = v128.xor(${a}, ${b});`,
      `    ${h} = i32x4.add(i32x4.add(t, sigma0(${a})), v128.xor(${b}, v128.and(${now}, ${before})));`,
    );
  }
  const words = Array.from({ length: 16 }, (_, i) => `w${i}`);
  const load = (lane, i) => `turn(v128.load(p${lane} + done, ${i * 16}))`;
  const quads = [0, 1, 2, 3].map((i) =>
    [
      `    r0 = ${load(0, i)};`,
      `    r1 = ${load(1, i)};`,
      `    r2 = ${load(2, i)};`,
      `    r3 = ${load(3, i)};`,
      '    u = low(r0, r1);',
      '    v = low(r2, r3);',
      `    w${i * 4} = lowHalves(u, v);`,
      `    w${i * 4 + 1} = highHalves(u, v);`,
      '    u = high(r0, r1);',
      '    v = high(r2, r3);',
      `    w${i * 4 + 2} = lowHalves(u, v);`,
      `    w${i * 4 + 3} = highHalves(u, v);`,
    ].join('\n'),
  );
  const gather = (names4, at) =>
    [
      `  r0 = v128.load(s0, ${at});`,
      `  r1 = v128.load(s1, ${at});`,
      `  r2 = v128.load(s2, ${at});`,
      `  r3 = v128.load(s3, ${at});`,
      '  u = low(r0, r1);',
      '  v = low(r2, r3);',
      `  let ${names4[0]} = lowHalves(u, v);`,
      `  let ${names4[1]} = highHalves(u, v);`,
      '  u = high(r0, r1);',
      '  v = high(r2, r3);',
      `  let ${names4[2]} = lowHalves(u, v);`,
      `  let ${names4[3]} = highHalves(u, v);`,
    ].join('\n');
  const scatter = (names4, at) =>
    [
      `  u = low(${names4[0]}, ${names4[1]});`,
      `  v = low(${names4[2]}, ${names4[3]});`,
      `  v128.store(s0, lowHalves(u, v), ${at});`,
      `  v128.store(s1, highHalves(u, v), ${at});`,
      `  u = high(${names4[0]}, ${names4[1]});`,
      `  v = high(${names4[2]}, ${names4[3]});`,
      `  v128.store(s2, lowHalves(u, v), ${at});`,
      `  v128.store(s3, highHalves(u, v), ${at});`,
    ].join('\n');
  return `${header('SHA-256 of four independent streams at once: lane i of every vector belongs to stream i.')}
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
  return ${chain('x', '>6 <26 >11 <21 >25 <7')};
}
@inline
export function choose(e: v128, f: v128, g: v128, h: v128): v128 {
  return i32x4.add(h, v128.xor(g, v128.and(e, v128.xor(f, g))));
}
@inline
export function expand(w16: v128, w15: v128, w7: v128, w2: v128): v128 {
  const s0 = ${chain('w15', '>7 <25 >18 <14 >3')};
  const s1 = ${chain('w2', '>17 <15 >19 <13 >10')};
  return i32x4.add(i32x4.add(w16, s0), i32x4.add(w7, s1));
}

/**
 * Runs \`blocks\` whole blocks of four streams. \`s\` are the streams' eight state words (native order), \`p\`
 * their data, anywhere in memory. Two lanes may name the same data but never the same state.
 */
export function compressLanes(s0: usize, s1: usize, s2: usize, s3: usize, p0: usize, p1: usize, p2: usize, p3: usize, blocks: u32): void {
  let r0: v128, r1: v128, r2: v128, r3: v128, u: v128, v: v128, t: v128, x: v128, y: v128;
  let ${words.map((word) => `${word}: v128`).join(', ')};
${gather(['a', 'b', 'c', 'd'], 0)}
${gather(['e', 'f', 'g', 'h'], 16)}
  const end = <usize>blocks << 6;
  for (let done: usize = 0; done < end; done += 64) {
    const ${STATE.map((name) => `${name}0 = ${name}`).join(', ')};
${quads.join('\n')}
    y = v128.xor(b, c);
${lines.join('\n')}
${STATE.map((name) => `    ${name} = i32x4.add(${name}, ${name}0);`).join('\n')}
  }
${scatter(['a', 'b', 'c', 'd'], 0)}
${scatter(['e', 'f', 'g', 'h'], 16)}
}
`;
}

/** The two groups of four lanes: a suffix of each vector's name, and the group's first lane. */
const GROUPS = [
  ['l', 0],
  ['r', 4],
];

/**
 * Eight lanes as two groups of four. Each step is written for the left group and then for the right one, so that a
 * compiler that merges neighbours makes one operation of 256 bits out of both. It begins at the stores of the states
 * and at the loads of the words, where the groups' vectors are side by side.
 */
function eight() {
  const both = (write) => GROUPS.map(([group]) => write(group));
  const lines = [];
  for (let t = 0; t < 64; t += 1) {
    const [a, b, , d, e, f, g, h] = names(t);
    const w = (i) => `w${(t + i) % 16}`;
    const [now, before] = t % 2 === 0 ? ['x', 'y'] : ['y', 'x'];
    if (t >= 16)
      lines.push(
        ...both((s) => `    ${w(0)}${s} = expand(${w(0)}${s}, ${w(1)}${s}, ${w(9)}${s}, ${w(14)}${s});`),
      );
    const k = `<i32>${hex(K[t])}`;
    lines.push(
      ...both(
        (s) =>
          `    t${s} = i32x4.add(i32x4.add(choose(${e}${s}, ${f}${s}, ${g}${s}, ${h}${s}), i32x4.add(${w(0)}${s}, i32x4(${k}, ${k}, ${k}, ${k}))), sigma1(${e}${s}));`,
      ),
      ...both((s) => `    ${d}${s} = i32x4.add(${d}${s}, t${s});`),
      ...both((s) => `    ${now}${s} = v128.xor(${a}${s}, ${b}${s});`),
      ...both(
        (s) =>
          `    ${h}${s} = i32x4.add(i32x4.add(t${s}, sigma0(${a}${s})), v128.xor(${b}${s}, v128.and(${now}${s}, ${before}${s})));`,
      ),
    );
  }
  const words = Array.from({ length: 16 }, (_, i) => `w${i}`);
  const transpose = (load, store) =>
    [
      ...[0, 1, 2, 3].map((i) => `    r${i} = ${load(i)};`),
      '    u = low(r0, r1);',
      '    v = low(r2, r3);',
      `    ${store(0, 'lowHalves(u, v)')};`,
      `    ${store(1, 'highHalves(u, v)')};`,
      '    u = high(r0, r1);',
      '    v = high(r2, r3);',
      `    ${store(2, 'lowHalves(u, v)')};`,
      `    ${store(3, 'highHalves(u, v)')};`,
    ].join('\n');
  const quads = [0, 1, 2, 3].flatMap((quad) =>
    GROUPS.map(([, first]) =>
      transpose(
        (i) => `turn(v128.load(p${first + i} + done, ${quad * 16}))`,
        (i, vector) => `v128.store(words, ${vector}, ${(quad * 4 + i) * 32 + first * 4})`,
      ),
    ),
  );
  const states = [0, 16].flatMap((half) => GROUPS.map(([, first]) => [half, first]));
  const gather = states.map(([half, first]) =>
    transpose(
      (i) => `v128.load(load<u32>(lanes, ${(first + i) * 12}), ${half})`,
      (i, vector) => `v128.store(states, ${vector}, ${half * 8 + i * 32 + first * 4})`,
    ),
  );
  const scatter = states.map(([half, first]) =>
    transpose(
      (i) => `v128.load(states, ${half * 8 + i * 32 + first * 4})`,
      (i, vector) => `v128.store(load<u32>(lanes, ${(first + i) * 12}), ${vector}, ${half})`,
    ),
  );
  const each = (count, write) => Array.from({ length: count }, (_, i) => write(i)).join(', ');
  const vectors = (list) => list.flatMap((name) => both((s) => `${name}${s}: v128`)).join(', ');
  return `// Written by generate-sha256.mjs; change it there.
// SHA-256 of eight independent streams at once, in two groups of four lanes.
import { EIGHT_BLOCKS, EIGHT_LANES, EIGHT_STATES, EIGHT_WORDS } from '../src/core/engine/core-layout';
import { choose, expand, high, highHalves, low, lowHalves, sigma0, sigma1 } from './sha256-lanes';
import { turn } from './vectors';

/** Lays \`length\` bytes of eight streams out as words: word i of a block is 32 bytes, four for each stream. */
function spread(words: usize, ${each(8, (i) => `p${i}: usize`)}, length: usize): void {
  let r0: v128, r1: v128, r2: v128, r3: v128, u: v128, v: v128;
  for (let done: usize = 0; done < length; done += 64) {
${quads.join('\n')}
    words += 512;
  }
}

/** Runs the blocks whose words are from \`words\` to \`end\`, at least one. */
function rounds(states: usize, words: usize, end: usize): void {
  let ${vectors(['t', 'x', 'y'])};
  let ${vectors(words)};
${STATE.flatMap((name, i) => GROUPS.map(([s, first]) => `  let ${name}${s} = v128.load(states, ${i * 32 + first * 4});`)).join('\n')}
  do {
    const ${STATE.flatMap((name) => both((s) => `${name}${s}0 = ${name}${s}`)).join(', ')};
${words.flatMap((name, i) => GROUPS.map(([s, first]) => `    ${name}${s} = v128.load(words, ${i * 32 + first * 4});`)).join('\n')}
${both((s) => `    y${s} = v128.xor(b${s}, c${s});`).join('\n')}
${lines.join('\n')}
${STATE.flatMap((name) => both((s) => `    ${name}${s} = i32x4.add(${name}${s}, ${name}${s}0);`)).join('\n')}
    words += 512;
  } while (words < end);
${STATE.flatMap((name, i) => GROUPS.map(([s, first]) => `  v128.store(states, ${name}${s}, ${i * 32 + first * 4});`)).join('\n')}
}

/**
 * Runs \`blocks\` whole blocks, at least one, of the eight streams in the scratch's list of lanes. Lanes without a
 * stream may share one state and any data.
 */
export function compressEight(scratch: usize, blocks: u32): void {
  let r0: v128, r1: v128, r2: v128, r3: v128, u: v128, v: v128;
  const lanes = scratch + EIGHT_LANES;
  const states = scratch + EIGHT_STATES;
  const words = scratch + EIGHT_WORDS;
${gather.join('\n')}
${Array.from({ length: 8 }, (_, i) => `  let p${i} = <usize>load<u32>(lanes, ${i * 12 + 4});`).join('\n')}
  while (blocks > 0) {
    const part = min<u32>(blocks, EIGHT_BLOCKS);
    const length = <usize>part << 6;
    spread(words, ${each(8, (i) => `p${i}`)}, length);
    rounds(states, words, words + (<usize>part << 9));
${Array.from({ length: 8 }, (_, i) => `    p${i} += length;`).join('\n')}
    blocks -= part;
  }
${scatter.join('\n')}
}
`;
}

function single() {
  const lines = [];
  for (let q = 0; q < 16; q += 1) {
    const x = (i) => `x${(q + i) % 4}`;
    const k = K.slice(q * 4, q * 4 + 4).map((word) => `<i32>${hex(word)}`);
    lines.push(`    k = i32x4.add(${x(0)}, i32x4(${k.join(', ')}));`);
    for (let i = 0; i < 4; i += 1) {
      // The next four words of the schedule have no use before the next quad but one: the SIMD units work
      // beside the rounds. Amid them, and with the sigma last in each sum, the rounds need fewer registers.
      if (i === 2 && q < 12) lines.push(`    ${x(0)} = expand(${x(0)}, ${x(1)}, ${x(2)}, ${x(3)});`);
      const t = q * 4 + i;
      const [a, b, , d, e, f, g, h] = names(t);
      const [now, before] = t % 2 === 0 ? ['m', 'n'] : ['n', 'm'];
      lines.push(
        `    ${h} = ${h} + i32x4.extract_lane(k, ${i}) + (${g} ^ (${e} & (${f} ^ ${g}))) + sigma1(${e});`,
        `    ${d} += ${h};`,
        `    ${now} = ${a} ^ ${b};`,
        `    ${h} = ${h} + (${b} ^ (${now} & ${before})) + sigma0(${a});`,
      );
    }
  }
  return `${header('SHA-256 of one stream: scalar rounds, message schedule four words at a time.')}
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

/** Runs \`blocks\` whole blocks at \`p\` into the eight state words (native order) at \`s\`. */
export function compress(s: usize, p: usize, blocks: u32): void {
  let k: v128, m: i32, n: i32;
${STATE.map((name, i) => `  let ${name} = load<i32>(s, ${i * 4});`).join('\n')}
  const end = p + (<usize>blocks << 6);
  for (; p < end; p += 64) {
    const ${STATE.map((name) => `${name}0 = ${name}`).join(', ')};
    let x0 = turn(v128.load(p));
    let x1 = turn(v128.load(p, 16));
    let x2 = turn(v128.load(p, 32));
    let x3 = turn(v128.load(p, 48));
    n = b ^ c;
${lines.join('\n')}
${STATE.map((name) => `    ${name} += ${name}0;`).join('\n')}
  }
${STATE.map((name, i) => `  store<i32>(s, ${name}, ${i * 4});`).join('\n')}
}
`;
}

export const GENERATED = {
  'sha256-single.ts': single,
  'sha256-lanes.ts': lanes,
  'sha256-eight.ts': eight,
};

if (process.argv[1] === import.meta.filename) {
  for (const [name, write] of Object.entries(GENERATED))
    writeFileSync(new URL(name, import.meta.url), write());
}
