import t from 'tap';
import { SAMPLES_REASONS } from '../../src/core/domain/audio.js';
import { SAMPLES_REASON_MEANINGS } from '../../src/core/domain/reference/reasons.js';
import { readMeasurement } from '../../src/core/engine/core.js';
import { encode, extensibleFmt, extensibleWave, samplesDigest, someSamples } from '../fixtures/samples.js';
import { chunk, fmtChunk, id3Tag, noise, riff } from '../fixtures/wav.js';
import { CoreUnderTest, everyByte } from './core-under-test.js';

const under = await CoreUnderTest.load(1 << 20);
const sampled = (file: Uint8Array, cuts: Iterable<number> = []): unknown =>
  under.measure(file, cuts, { samples: true }).samples;
const data = (bytes: Uint8Array): Buffer => chunk({ id: 'data', data: bytes });

t.test('each reason has a meaning', async (t) => {
  t.strictSame(Object.keys(SAMPLES_REASON_MEANINGS), [...SAMPLES_REASONS]);
});

t.test('a file has no samples digest when it was not requested', async (t) => {
  t.equal(under.measure(riff([fmtChunk(), data(noise(64))])).samples, undefined);
});

t.test('a wave file has the digest of its samples in every width and however it is cut', async (t) => {
  for (const channels of [1, 3]) {
    for (let bits = 1; bits <= 64; bits += 1) {
      const width = Math.ceil(bits / 8);
      const format = { bits, channels, rate: 48_000 };
      const samples = someSamples(channels * 7, bits, bits);
      const expected = { sha256: samplesDigest(format, samples) };
      const bytes = encode(samples, { bits, width, unsigned: width === 1 });
      const plain = riff([fmtChunk({ channels, sampleRate: 48_000, bits }), data(bytes)]);
      t.strictSame(sampled(plain), expected, `${bits} bits`);
      t.strictSame(sampled(plain, everyByte(1, plain.length)), expected, `${bits} bits, byte by byte`);
      for (const wider of [width, Math.min(8, width + 1), 8]) {
        const file = extensibleWave(format, wider, samples);
        // A sample of one byte is unsigned, and a wider container of 8 bits is signed.
        t.strictSame(sampled(file), expected, `${bits} bits in ${wider} bytes`);
        t.strictSame(
          sampled(file, everyByte(1, file.length)),
          expected,
          `${bits} bits in ${wider} bytes, cut`,
        );
      }
    }
  }
});

t.test('floats keep their bits, and are never equal to integers', async (t) => {
  for (const bits of [32, 64]) {
    const format = { bits, channels: 2, rate: 96_000, float: true };
    const samples = someSamples(12, bits);
    const bytes = encode(samples, { bits, width: bits / 8 });
    const file = riff([fmtChunk({ tag: 3, channels: 2, sampleRate: 96_000, bits }), data(bytes)]);
    t.strictSame(sampled(file), { sha256: samplesDigest(format, samples) });
    t.strictSame(sampled(extensibleWave(format, bits / 8, samples)), {
      sha256: samplesDigest(format, samples),
    });
    t.not(samplesDigest(format, samples), samplesDigest({ ...format, float: false }, samples));
  }
});

t.test('what surrounds the samples does not change their digest', async (t) => {
  const format = { bits: 16, channels: 2, rate: 44_100 };
  const samples = someSamples(600, 16);
  const fmt = fmtChunk({ channels: 2 });
  const audio = data(encode(samples, { bits: 16, width: 2 }));
  const sha256 = samplesDigest(format, samples);
  const ds64 = Buffer.alloc(28);
  ds64.writeBigUInt64LE(BigInt(4 + 36 + fmt.length + audio.length), 0);
  ds64.writeBigUInt64LE(BigInt(audio.length - 8), 8);
  const open = Buffer.from(audio);
  open.writeUInt32LE(0xffff_ffff, 4);
  const size64 = [chunk({ id: 'ds64', data: ds64 }), fmt, open];
  const files = {
    plain: riff([fmt, audio]),
    tagged: riff([
      fmt,
      chunk({ id: 'LIST', data: Buffer.from('INFO') }),
      audio,
      chunk({ id: 'id3 ', data: noise(5) }),
    ]),
    credentialed: riff([fmt, audio, chunk({ id: 'C2PA', data: noise(333) })]),
    'credential first': riff([chunk({ id: 'C2PA', data: noise(333) }), fmt, audio]),
    'bytes after the end': Buffer.concat([riff([fmt, audio]), noise(9)]),
    'RIFF size too small': riff([fmt, audio], { riffSize: 100 }),
    RF64: riff(size64, { magic: 'RF64', riffSize: 0xffff_ffff }),
    BW64: riff(size64, { magic: 'BW64', riffSize: 0xffff_ffff }),
    'all bits valid by a zero': riff([extensibleFmt({ ...format, validBits: 0 }), audio]),
  };
  for (const [name, file] of Object.entries(files)) {
    t.strictSame(sampled(file), { sha256 }, name);
    t.strictSame(sampled(file, everyByte(1, file.length)), { sha256 }, `${name}, byte by byte`);
  }
});

t.test('one sample, the order of channels and the rate change the digest', async (t) => {
  const format = { bits: 16, channels: 2, rate: 44_100 };
  const samples = [...someSamples(8, 16)];
  const swapped = samples.flatMap((_, i) => (i % 2 === 0 ? [samples[i + 1]!, samples[i]!] : []));
  const changed = samples.map((sample, i) => (i === 5 ? sample ^ 1n : sample));
  const digests = [
    samplesDigest(format, samples),
    samplesDigest(format, swapped),
    samplesDigest(format, changed),
    samplesDigest({ ...format, rate: 48_000 }, samples),
    samplesDigest({ ...format, channels: 1 }, samples),
    samplesDigest(
      { ...format, bits: 24 },
      samples.map((sample) => sample << 8n),
    ),
  ];
  t.equal(new Set(digests).size, digests.length);
});

t.test('a file whose samples are not certain has a reason and no digest', async (t) => {
  const fmt = fmtChunk();
  const audio = data(noise(40));
  const extensible = (bits: number, validBits: number, bytes: Uint8Array): Buffer =>
    riff([extensibleFmt({ bits, validBits, channels: 1, rate: 8000 }), data(bytes)]);
  const sized = (size: number): Buffer => riff([fmt, chunk({ id: 'data', data: noise(40), size })]);
  const wide = fmtChunk({ bits: 24 });
  wide.writeUInt16LE(4, 20);
  const cases: readonly (readonly [string, string, Buffer])[] = [
    ['nothing', 'container_unsupported', Buffer.alloc(0)],
    ['noise', 'container_unsupported', noise(100)],
    ['another container', 'container_unsupported', Buffer.concat([Buffer.from('OggS'), noise(60)])],
    ['another form', 'container_unsupported', riff([fmt, audio], { form: 'AVI ' })],
    ['a tag before it', 'container_unsupported', Buffer.concat([id3Tag(), riff([fmt, audio])])],
    ['A-law', 'encoding_unsupported', riff([fmtChunk({ tag: 6, bits: 8 }), audio])],
    ['no fmt', 'structure_malformed', riff([audio])],
    ['fmt after the data', 'structure_malformed', riff([audio, fmt])],
    ['no channel', 'format_unsupported', riff([fmtChunk({ channels: 0 }), audio])],
    ['no rate', 'format_unsupported', riff([fmtChunk({ sampleRate: 0 }), audio])],
    ['no bits', 'format_unsupported', riff([fmtChunk({ bits: 0 }), audio])],
    ['24 bits in blocks of 4', 'format_unsupported', riff([wide, audio])],
    ['float of 16 bits', 'format_unsupported', riff([fmtChunk({ tag: 3, bits: 16 }), audio])],
    ['more valid bits than bits', 'format_unsupported', extensible(16, 17, noise(40))],
    ['a bit below the valid ones', 'padding_not_zero', extensible(16, 12, Buffer.from([0x10, 0, 0x08, 0]))],
    ['no data', 'samples_absent', riff([fmt])],
    ['empty data', 'samples_absent', riff([fmt, data(Buffer.alloc(0))])],
    ['two data chunks', 'samples_ambiguous', riff([fmt, audio, audio])],
    ['two fmt chunks', 'samples_ambiguous', riff([fmt, fmt, audio])],
    ['an open size', 'samples_unsized', sized(0xffff_ffff)],
    ['a placeholder', 'samples_unsized', sized(0xffff_1000)],
    ['a size never written', 'samples_unsized', sized(0)],
    ['a file that is cut off', 'samples_incomplete', sized(42)],
    ['half a frame', 'frames_incomplete', riff([fmtChunk({ channels: 2 }), data(noise(42))])],
    ['half a sample', 'frames_incomplete', extensible(32, 24, Buffer.alloc(42))],
  ];
  for (const [name, reason, file] of cases) {
    t.strictSame(sampled(file), { reason }, name);
    t.strictSame(sampled(file, everyByte(1, file.length)), { reason }, `${name}, byte by byte`);
  }
});

t.test('lanes of samples and of files keep their digests apart', async (t) => {
  const files = [16, 24, 12, 20].map((bits, i) => {
    const format = { bits, channels: 1 + i, rate: 44_100 };
    const samples = someSamples((1 + i) * 700, bits, 9 + i);
    const file = extensibleWave(format, i < 2 ? bits / 8 : 4, samples);
    return { file, sha256: samplesDigest(format, samples), context: under.context(i) };
  });
  const plain = files.map(({ file }) => under.measure(file).sha256);
  for (const { context } of files) under.core.init(context, true);
  const longest = Math.max(...files.map(({ file }) => file.length));
  for (let from = 0; from < longest; from += 601) {
    let at = 0;
    under.core.update(
      files.map(({ file, context }) => {
        const part = file.subarray(from, from + 601);
        const address = under.place(part, at);
        at += part.length;
        return { context, address, length: part.length };
      }),
    );
  }
  for (const [i, { context, sha256 }] of files.entries()) {
    under.core.finish(context);
    const measured = readMeasurement(under.memory, context);
    t.strictSame([measured.sha256, measured.samples], [plain[i], { sha256 }]);
  }
});
