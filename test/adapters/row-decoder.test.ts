/** Compares the decoder of stored rows with the library's. */
import { Decoder, Encoder } from '@msgpack/msgpack';
import t from 'tap';
import { RowDecoder } from '../../src/core/codec/row-decoder.js';
import { randomNumbers } from '../core/core-under-test.js';
import { sized } from '../fixtures/sampling.js';

const encoder = new Encoder({ ignoreUndefined: true });
const library = new Decoder();
const rows = new RowDecoder();
const own = (bytes: Uint8Array): unknown => rows.decode(bytes);

type Outcome = { readonly value: unknown } | { readonly fault: string };

function outcomeOf(decode: (bytes: Uint8Array) => unknown, bytes: Uint8Array): Outcome {
  try {
    return { value: decode(bytes) };
  } catch (error) {
    return { fault: (error as Error).message };
  }
}

const TEXTS = ['', 'a', 'prf_01', 'takemark', 'Morgenröte', '音', '🎧 take', '\ud800', 'x'.repeat(31)];
const NUMBERS = [
  0,
  1,
  127,
  128,
  255,
  256,
  65_535,
  65_536,
  0x7fff_ffff,
  0x8000_0000,
  0xffff_ffff,
  2 ** 32,
  2 ** 53 - 1,
  -1,
  -32,
  -33,
  -128,
  -129,
  -32_768,
  -32_769,
  -0x8000_0000,
  -0x8000_0001,
  -(2 ** 53) + 1,
  0.5,
  -0,
  1e300,
  NaN,
  Infinity,
];
const NAMES = ['state', 'proofId', 'a', 'bytes', 'n'.repeat(24), 'n'.repeat(25), 'n'.repeat(40), 'größe', ''];

/** Returns a random value of a row, of every type and size class. */
function rowValue(random: (bound: number) => number, depth = 0): unknown {
  const count = (): number => [0, 1, 3, 15, 16, 17][random(6)]!;
  switch (random(depth < 4 ? 9 : 7)) {
    case 0:
      return TEXTS[random(TEXTS.length)];
    case 1:
      return NUMBERS[random(NUMBERS.length)];
    case 2:
      return random(2 ** 31) - 2 ** 30;
    case 3:
      return [null, true, false][random(3)];
    case 4:
      return Uint8Array.from({ length: [0, 3, 255, 256, 65_536][random(random(20) === 0 ? 5 : 3)]! }, () =>
        random(256),
      );
    case 5:
      return 'row '.repeat([1, 8, 64, 16_384][random(random(20) === 0 ? 4 : 3)]!);
    case 6:
      return String.fromCharCode(...Array.from({ length: random(40) }, () => random(0xffff)));
    case 7:
      return Array.from({ length: count() }, () => rowValue(random, depth + 1));
    default:
      return Object.fromEntries(
        Array.from({ length: count() }, (_, i) => [
          `${NAMES[random(NAMES.length)]}${i}`,
          rowValue(random, depth + 1),
        ]),
      );
  }
}

t.test('every value that the encoder writes decodes as by the library', async (t) => {
  const random = randomNumbers(11);
  const wrong: unknown[] = [];
  for (let i = 0; i < sized(200_000, 3000); i += 1) {
    const bytes = encoder.encode(rowValue(random));
    if (!isSame(own(bytes), library.decode(bytes))) wrong.push(Buffer.from(bytes).toString('hex'));
  }
  t.strictSame(wrong, []);
});

t.test('a changed document decodes as by the library, or not at all', async (t) => {
  const random = randomNumbers(12);
  let accepted = 0;
  let refusedAlone = 0;
  const wrong: unknown[] = [];
  const rounds = sized(2_000_000, 5000);
  for (let i = 0; i < rounds && wrong.length === 0; i += 1) {
    const bytes = Uint8Array.from(encoder.encode(rowValue(random, 2)));
    const at = random(bytes.length);
    if (random(4) === 0) bytes[at] = random(256);
    else if (random(3) === 0) bytes.fill(random(256), at, at + random(4));
    const cut = random(3) === 0 ? bytes.subarray(0, random(bytes.length + 1)) : bytes;
    const found = outcomeOf(own, cut);
    const expected = outcomeOf((each) => library.decode(each), cut);
    if ('fault' in found) {
      if ('value' in expected) refusedAlone += 1;
      continue;
    }
    accepted += 1;
    if (!('value' in expected) || !isSame(found.value, expected.value))
      wrong.push(Buffer.from(cut).toString('hex'));
  }
  t.strictSame(wrong, []);
  t.ok(accepted > rounds / 4, `${accepted} accepted`);
  t.ok(refusedAlone < rounds / 8, `${refusedAlone} refused that the library takes`);
});

/** Returns whether two values are the same, faster than the comparison of a test. */
function isSame(a: unknown, b: unknown): boolean {
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return Object.is(a, b);
  if (a instanceof Uint8Array || b instanceof Uint8Array)
    return a instanceof Uint8Array && b instanceof Uint8Array && Buffer.compare(a, b) === 0;
  const names = Object.keys(a);
  return (
    Array.isArray(a) === Array.isArray(b) &&
    names.length === Object.keys(b).length &&
    names.every((name) => isSame((a as Record<string, unknown>)[name], (b as Record<string, unknown>)[name]))
  );
}

for (const [name, hex] of [
  ['an extension', 'd40101'],
  ['a float of 32 bits', 'ca3f800000'],
  ['the unused type', 'c1'],
  ['a character that ends too early', 'a2ea30'],
  ['a name that is not text', '810102'],
  ['the name __proto__', '81a95f5f70726f746f5f5f80'],
  ['bytes after its end', 'c0c0'],
  ['nothing', ''],
  ['a text longer than itself', 'a261'],
  ['a name longer than itself', '81a361'],
  ['an array of 4 GiB', 'ddffffffff'],
  ['a text of 4 GiB', 'dbffffffff61'],
  ['arrays in arrays without end', '91'.repeat(1000)],
] as const)
  t.test(`a document with ${name} is refused`, async (t) => {
    t.throws(() => own(Buffer.from(hex, 'hex')));
  });

t.test('names that share a place in the table of names stay apart', async (t) => {
  const random = randomNumbers(13);
  const seen: string[] = [];
  for (let i = 0; i < 5000; i += 1) {
    const name = Array.from({ length: 1 + random(24) }, () => 'abc'[random(3)]).join('');
    const [found] = Object.keys(own(encoder.encode({ [name]: i })) as object);
    if (found !== name) seen.push(`${name} was read as ${found}`);
  }
  t.strictSame(seen, []);
});
