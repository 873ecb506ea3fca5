import t, { type Test } from 'tap';
import { readMeasurement } from '../../src/core/engine/core.js';
import { BINDING, WHOLE } from '../../src/core/engine/core-layout.js';
import { SecondHashes } from '../../src/core/engine/second-hashes.js';
import { CoreUnderTest } from '../core/core-under-test.js';
import { chunk, fmtChunk, noise, riff } from '../fixtures/wav.js';

const under = await CoreUnderTest.load(4 << 20);
const WRONG = { message: 'the digests of the core and of Node differ' };
const DISTRUSTED = { message: /^eight lanes hashed bytes of this upload/ };

/** Returns second hashes of one upload of `every`, with the errors that they report. */
function secondHashes({ every = 1 }: { readonly every?: number } = {}) {
  const errors: Error[] = [];
  const second = new SecondHashes({ memory: under.memory, every, differs: (error) => errors.push(error) });
  return { second, errors };
}

/** Begins an upload in a context and hashes the file in two slices. */
function hash(second: SecondHashes, context: number, file: Uint8Array, lanes: 4 | 8 = 8): void {
  under.core.init(context);
  second.begin(context, lanes);
  const address = under.place(file);
  const cut = file.length >> 1;
  for (const slice of [
    { context, address, length: cut },
    { context, address: address + cut, length: file.length - cut },
  ]) {
    under.core.update([slice]);
    second.update(slice);
  }
}

function end(second: SecondHashes, context: number): void {
  under.core.finish(context);
  second.check(context, readMeasurement(under.memory, context));
}

const credentialed = riff([
  fmtChunk(),
  chunk({ id: 'data', data: noise(2000) }),
  chunk({ id: 'C2PA', data: noise(300, 2) }),
  chunk({ id: 'LIST', data: Buffer.from('INFO') }),
]);

/** Flips a bit of a digest of a context while the file is hashed, as a wrong kernel would. */
function flip(context: number, at: number): void {
  under.bytes[context + at]! ^= 1;
}

t.test('a file whose digests are right passes its second hash', async (t) => {
  const { second, errors } = secondHashes();
  const context = under.context(0);
  for (const file of [noise(100_000), credentialed, Buffer.alloc(0)]) {
    hash(second, context, file);
    end(second, context);
  }
  t.strictSame([second.differences, errors], [0, []]);
});

for (const [name, at] of [
  ['of the whole file', WHOLE],
  ['without the credential', BINDING],
] as const)
  t.test(`a wrong digest ${name} fails the upload and is reported`, async (t) => {
    const { second, errors } = secondHashes();
    const context = under.context(0);
    hash(second, context, credentialed);
    flip(context, at);
    t.throws(() => end(second, context), WRONG);
    t.match(errors, [WRONG]);
    t.equal(second.differences, 1);
  });

/** Hashes three uploads. The first is sampled, and eight lanes hash the first two. */
function threeUploads(t: Test) {
  const { second } = secondHashes({ every: 1000 });
  const contexts = [0, 1, 2].map((i) => under.context(i)) as [number, number, number];
  for (const context of contexts) hash(second, context, noise(5000));
  second.hashesInEight(contexts.slice(0, 2).map((context) => ({ context, address: 0, length: 1 })));
  flip(contexts[0], WHOLE);
  t.throws(() => end(second, contexts[0]), WRONG);
  return { second, contexts };
}

t.test('a difference fails the other uploads that eight lanes have hashed', async (t) => {
  const { second, contexts } = threeUploads(t);
  t.throws(() => end(second, contexts[1]), DISTRUSTED);
  end(second, contexts[2]);
});

t.test('a difference leaves uploads alone that begin after it', async (t) => {
  const { second, contexts } = threeUploads(t);
  hash(second, contexts[1], noise(7000), 4);
  end(second, contexts[1]);
  t.equal(second.differences, 1);
});

t.test('the first upload and each thousandth after it are sampled, and none with four lanes', async (t) => {
  const { second } = secondHashes({ every: 1000 });
  const context = under.context(0);
  const sampled: number[] = [];
  for (let i = 0; i <= 2000; i += 1) {
    under.core.init(context);
    second.begin(context, 8);
    under.core.finish(context);
    try {
      second.check(context, { sha256: 'wrong' });
    } catch {
      sampled.push(i);
    }
  }
  t.strictSame(sampled, [0, 1000, 2000]);
  second.begin(context, 4);
  second.check(context, { sha256: 'wrong' });
});
