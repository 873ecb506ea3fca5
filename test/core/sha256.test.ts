import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { CONTEXT_BYTES, type Lanes, type Slice } from '../../src/core/engine/core.js';
import { BYTES, HASH_LENGTH, WHOLE } from '../../src/core/engine/core-layout.js';
import { sized } from '../fixtures/sampling.js';
import { noise } from '../fixtures/wav.js';
import { CoreUnderTest, randomCuts, randomNumbers } from './core-under-test.js';

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');
const vectors = process.env.TAKEMARK_VECTORS;
const withoutVectors =
  vectors === undefined && 'TAKEMARK_VECTORS does not name the directory of the NIST vectors';
const under = await CoreUnderTest.load();

function single(message: Uint8Array): string {
  const context = under.context(0);
  under.core.init(context);
  under.core.update([{ context, address: under.place(message), length: message.length }]);
  under.core.finish(context);
  return under.digest(context);
}

/** Returns the places of a kernel for many streams. */
const placesOf = (lanes: Lanes): number[] => Array.from({ length: lanes }, (_, i) => i);

/** Hashes the message in one place of a kernel, and other bytes of the same length in its other places. */
function inLanes(lanes: Lanes, message: Uint8Array, place: number): string {
  const address = under.place(message);
  const slices = placesOf(lanes).map((i) => ({
    context: under.context(i),
    address: i === place ? address : address + message.length + 64 * i,
    length: message.length,
  }));
  for (const { context } of slices) under.core.init(context);
  under.core.update(slices, lanes);
  for (const { context } of slices) under.core.finish(context);
  return under.digest(under.context(place));
}

function readVectors(name: string): { message: Buffer; digest: string }[] {
  const text = readFileSync(join(vectors!, 'nist-sha256', name), 'latin1');
  return [...text.matchAll(/Len = (\d+)\s+Msg = ([0-9a-f]+)\s+MD = ([0-9a-f]+)/g)].map(
    ([, bits, message, digest]) => ({
      message: Buffer.from(message!, 'hex').subarray(0, Number(bits) / 8),
      digest: digest!,
    }),
  );
}

t.test(
  'NIST CAVP short and long messages hash right in one stream and in each lane',
  { skip: withoutVectors },
  async (t) => {
    const all = [...readVectors('SHA256ShortMsg.rsp'), ...readVectors('SHA256LongMsg.rsp')];
    t.equal(all.length, 129);
    for (const { message, digest } of all) {
      const found = [
        single(message),
        ...placesOf(4).map((place) => inLanes(4, message, place)),
        ...placesOf(8).map((place) => inLanes(8, message, place)),
      ];
      if (found.some((each) => each !== digest)) t.fail(`${message.length} bytes`, { found, digest });
    }
  },
);

t.test('NIST CAVP Monte Carlo chains hash right', { skip: withoutVectors }, async (t) => {
  const text = readFileSync(join(vectors!, 'nist-sha256', 'SHA256Monte.rsp'), 'latin1');
  const expected = [...text.matchAll(/MD = ([0-9a-f]+)/g)].map(([, digest]) => digest);
  t.equal(expected.length, 100);
  const paths = {
    single,
    four: (message: Uint8Array) => inLanes(4, message, 2),
    eight: (message: Uint8Array) => inLanes(8, message, 5),
  };
  for (const [name, hash] of Object.entries(paths)) {
    let seed = Buffer.from(/Seed = ([0-9a-f]+)/.exec(text)![1]!, 'hex');
    const found = expected.map(() => {
      let last = [seed, seed, seed];
      for (let i = 0; i < 1000; i += 1)
        last = [last[1]!, last[2]!, Buffer.from(hash(Buffer.concat(last)), 'hex')];
      seed = last[2]!;
      return seed.toString('hex');
    });
    t.strictSame(found, expected, name);
  }
});

t.test('every length around the block size hashes right', async (t) => {
  const wrong: number[] = [];
  for (let length = 0; length <= 200; length += 1) {
    const message = noise(length, length + 1);
    const expected = sha256(message);
    const found = [single(message), inLanes(4, message, length % 4), inLanes(8, message, length % 8)];
    if (found.some((each) => each !== expected)) wrong.push(length);
  }
  t.strictSame(wrong, []);
});

t.test('one to eight uploads of different lengths hash right at random splits', async (t) => {
  const random = randomNumbers(20);
  const pool = noise(1 << 20, 3);
  const wrong: string[] = [];
  for (let round = 0; round < 600; round += 1) {
    const uploads = Array.from({ length: random(8) + 1 }, (_, i) => {
      const length = random(round % 10 === 0 ? 100_000 : 2000);
      const file = pool.subarray(random(pool.length - length)).subarray(0, length);
      return { file, context: under.context(i), cuts: [...randomCuts(random, length, 8), length], from: 0 };
    });
    for (const { context } of uploads) under.core.init(context);
    for (let step = 0; uploads.some(({ cuts }) => step < cuts.length); step += 1) {
      let at = 0;
      const slices = uploads
        .filter(({ cuts }) => step < cuts.length)
        .map((upload) => {
          const part = upload.file.subarray(upload.from, upload.cuts[step]);
          upload.from += part.length;
          const address = under.place(part, at);
          at += part.length;
          return { context: upload.context, address, length: part.length };
        });
      under.cores[random(under.cores.length)]!.update(slices, round % 2 === 0 ? 4 : 8);
    }
    for (const { context, file } of uploads) {
      under.core.finish(context);
      if (under.digest(context) !== sha256(file)) wrong.push(`round ${round}, ${file.length} bytes`);
    }
  }
  t.strictSame(wrong, []);
});

/** The number of bytes at the end of a long file that every stream hashes for itself. */
const OWN_BYTES = 8 << 20;

/** The number of streams of a test that uses every kernel at once. */
const STREAMS = 13;

/** Hashes a slice of each stream: the first alone, the next four in four lanes, the last eight in eight. */
function updateAll(slices: readonly Slice[]): void {
  under.core.update(slices.slice(0, 1));
  under.core.update(slices.slice(1, 5), 4);
  under.core.update(slices.slice(5), 8);
}

/**
 * Repeats one slab until every stream has `bytes`: eight streams in eight lanes, four in four, one alone, and
 * node:crypto. The streams begin as copies of one, a little before the end.
 */
function longStreams(bytes: number): { found: string[]; expected: string } {
  const slab = noise(8 << 20, 7);
  const address = under.place(slab);
  const oracle = createHash('sha256');
  const contexts = Array.from({ length: STREAMS }, (_, i) => under.context(i));
  const [first, ...others] = contexts as [number, ...number[]];
  under.core.init(first);
  let areApart = false;
  for (let done = 0; done < bytes; ) {
    const length = Math.min(slab.length, bytes - done);
    if (!areApart && bytes - done <= OWN_BYTES) {
      for (const context of others) under.bytes.copyWithin(context, first, first + CONTEXT_BYTES);
      areApart = true;
    }
    const slices = (areApart ? contexts : [first]).map((context) => ({ context, address, length }));
    if (areApart) updateAll(slices);
    else under.core.update(slices);
    oracle.update(slab.subarray(0, length));
    done += length;
  }
  for (const context of contexts) under.core.finish(context);
  return { found: contexts.map((context) => under.digest(context)), expected: oracle.digest('hex') };
}

const LONG: readonly (readonly [name: string, bytes: number])[] = [
  ['2^32 bits', 2 ** 29],
  ['2^32 bytes', 2 ** 32],
];
// Hashing 4 GiB takes half a minute: the gate begins a little before its end, in the next test.
for (const [name, bytes] of LONG)
  if (bytes < 2 ** 32 || sized(true, false))
    t.test(`a file of more than ${name} hashes right`, async (t) => {
      const { found, expected } = longStreams(bytes + 77);
      t.strictSame(
        found,
        found.map(() => expected),
      );
    });

/** The number of zero bytes before the state below. */
const NEARLY_2_32 = 2 ** 32 - 64;
/** The chaining value after those bytes: eight little-endian words, as a context holds them. */
const NEARLY_2_32_STATE = '755c5d8ea0b10c1648ab0d49f4b63c6ba327573ed5351b5d6409631e851d9c23';
/** The SHA-256 digest of 2^32 + 77 zero bytes by node:crypto. */
const BEYOND_2_32_DIGEST = '0d6f9075eac4ce4f67177dd825ea22144ec98f20902c6a04809f2b28909b8cd4';

t.test('the length of a hash passes 2^32 bytes in one stream and in lanes', async (t) => {
  const length = 64 + 77;
  const address = under.place(Buffer.alloc(length));
  const contexts = Array.from({ length: STREAMS }, (_, i) => under.context(i));
  for (const context of contexts) {
    under.core.init(context);
    const view = new DataView(under.memory.buffer, context);
    under.bytes.set(Buffer.from(NEARLY_2_32_STATE, 'hex'), context + WHOLE);
    for (const at of [BYTES, WHOLE + HASH_LENGTH]) view.setBigUint64(at, BigInt(NEARLY_2_32), true);
  }
  updateAll(contexts.map((context) => ({ context, address, length })));
  for (const context of contexts) under.core.finish(context);
  t.strictSame(
    contexts.map((context) => under.digest(context)),
    contexts.map(() => BEYOND_2_32_DIGEST),
  );
});
