import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { type FlacFile, type Frame, flacFile, interleaved, type Subframe } from '../fixtures/flac.js';
import { type Samples, samplesDigest, someSamples } from '../fixtures/samples.js';
import { id3Tag, noise } from '../fixtures/wav.js';
import { CoreUnderTest, everyByte, randomCuts, randomNumbers } from './core-under-test.js';

const under = await CoreUnderTest.load(4 << 20);
const sampled = (file: Uint8Array, cuts: Iterable<number> = []): unknown =>
  under.measure(file, cuts, { samples: true }).samples;

function check(test: Test, file: Buffer, expected: object, name: string): void {
  test.strictSame(sampled(file), expected, name);
  test.strictSame(sampled(file, everyByte(1, file.length)), expected, `${name}, byte by byte`);
}

/** Makes samples that a predictor follows: a slow wave with some noise. */
function smooth(count: number, bits: number, seed = 1): Samples {
  const height = 2 ** (bits - 2);
  const rough = someSamples(count, Math.max(2, bits - 6), seed);
  return rough.map((sample, i) => BigInt(Math.round(height * Math.sin((i + seed) / 9))) + (sample >> 2n));
}

const silence = (count: number): Samples => Array.from({ length: count }, () => 0n);

const STEREO = { bits: 16, channels: 2, rate: 44_100 };
const frameOf = (subframe: Subframe, more: Partial<Frame> = {}, bits = 16): Frame => ({
  channels: [smooth(48, bits, 1), smooth(48, bits, 2)],
  subframe,
  ...more,
});
const RICE: Subframe = { kind: 'fixed', order: 2, parameter: 8 };
const LINEAR: Subframe = {
  kind: 'linear',
  order: 3,
  coefficients: [1000n, -600n, 90n],
  precision: 12,
  shift: 9,
  parameter: 12,
};

const SUBFRAMES: Readonly<Record<string, Subframe>> = {
  verbatim: { kind: 'verbatim' },
  ...Object.fromEntries(
    [0, 1, 2, 3, 4].map((order) => [`fixed ${order}`, { kind: 'fixed', order, parameter: 10 } as const]),
  ),
  linear: LINEAR,
  'linear of order 32': {
    kind: 'linear',
    order: 32,
    coefficients: someSamples(32, 5),
    precision: 5,
    shift: 4,
    parameter: 13,
  },
  partitions: { ...RICE, partitionOrder: 4 },
  'a partition of the order alone': { ...LINEAR, partitionOrder: 4 },
  'long parameters': { ...RICE, parameter: 15, isLong: true },
  'unary alone': { kind: 'fixed', order: 4, parameter: 0 },
  escaped: { ...RICE, parameter: 18, isEscaped: true },
  'escaped, long': { ...RICE, parameter: 30, isEscaped: true, isLong: true },
};

t.test(
  'a FLAC file has the digest of its samples in every form of a subframe and however it is cut',
  async (t) => {
    for (const [name, subframe] of Object.entries(SUBFRAMES)) {
      for (const assignment of [1, 8, 9, 10]) {
        const frames = [frameOf(subframe, { assignment }), frameOf(subframe, { assignment })];
        const file = flacFile({ format: STEREO, frames });
        check(t, file, { sha256: samplesDigest(STEREO, interleaved(frames)) }, `${name}, ${assignment}`);
      }
    }
  },
);

t.test('a decoder that pauses goes on where it paused', async (t) => {
  const tail = Buffer.concat([Buffer.from('TAG'), Buffer.alloc(125, 'x')]);
  for (const [name, subframe] of Object.entries(SUBFRAMES)) {
    const frames = Array.from({ length: 5 }, () => frameOf(subframe, { assignment: 8 }));
    const file = Buffer.concat([flacFile({ format: STEREO, frames }), tail]);
    const measured = (decodes: number, cuts: Iterable<number> = []): unknown => {
      under.pauses = 0;
      return [under.measure(file, cuts, { samples: true, decodes }).samples, under.pauses];
    };
    const expected = { sha256: samplesDigest(STEREO, interleaved(frames)) };
    t.strictSame(measured(1), [expected, 5], `${name}: after each frame`);
    t.strictSame(measured(48 * 4 + 1), [expected, 2], `${name}: after two frames`);
    t.strictSame(measured(1 << 20), [expected, 0], `${name}: never`);
    t.strictSame(measured(1, everyByte(1, file.length)), [expected, 5], `${name}, byte by byte`);
  }
  const damaged = flacFile({ format: STEREO, frames: [frameOf(RICE), frameOf(RICE)] });
  damaged[damaged.length - 1]! ^= 1;
  t.strictSame(under.measure(damaged, [], { samples: true, decodes: 1 }).samples, {
    reason: 'checksum_mismatch',
  });
});

t.test('a FLAC file has the digest of its samples in every depth', async (t) => {
  for (let bits = 4; bits <= 32; bits += 1) {
    const format = { ...STEREO, bits };
    const samples = (seed: number): Samples => someSamples(30, bits, seed);
    for (const assignment of [1, 8, 9, 10]) {
      const frames: readonly Frame[] = [
        { channels: [samples(1), samples(2)], subframe: { kind: 'verbatim' }, assignment },
        { channels: [smooth(30, bits, 1), smooth(30, bits, 2)], subframe: LINEAR, assignment },
      ];
      const sha256 = samplesDigest(format, interleaved(frames));
      const shown = bits < 8 ? frames.slice(0, 1) : frames;
      const expected = bits < 8 ? samplesDigest(format, interleaved(shown)) : sha256;
      check(t, flacFile({ format, frames: shown }), { sha256: expected }, `${bits} bits, ${assignment}`);
    }
  }
});

t.test('constant channels, wasted bits and the number of channels are read', async (t) => {
  const constant = (value: bigint): Samples => Array.from({ length: 20 }, () => value);
  const wasted = (bits: number): Samples => smooth(20, 16 - bits).map((sample) => sample << BigInt(bits));
  const files: Readonly<Record<string, FlacFile>> = {
    constant: {
      format: STEREO,
      frames: [{ channels: [constant(-32_768n), constant(32_767n)], subframe: { kind: 'constant' } }],
    },
    'wasted bits': {
      format: STEREO,
      frames: [{ channels: [wasted(5), wasted(5)], subframe: { ...RICE, wasted: 5 } }],
    },
    'constant with wasted bits': {
      format: STEREO,
      frames: [{ channels: [constant(0n), constant(-32_768n)], subframe: { kind: 'constant', wasted: 15 } }],
    },
    ...Object.fromEntries(
      [1, 2, 3, 4, 5, 6, 7, 8].map((channels) => [
        `${channels} channels`,
        {
          format: { ...STEREO, channels },
          frames: [
            { channels: Array.from({ length: channels }, (_, i) => smooth(20, 16, i)), subframe: RICE },
          ],
        },
      ]),
    ),
  };
  for (const [name, file] of Object.entries(files))
    check(t, flacFile(file), { sha256: samplesDigest(file.format, interleaved(file.frames)) }, name);
});

t.test('every code of a frame header is read', async (t) => {
  const rates: readonly (readonly [number, number, number[]?])[] = [
    [1, 88_200],
    [2, 176_400],
    [3, 192_000],
    [4, 8000],
    [5, 16_000],
    [6, 22_050],
    [7, 24_000],
    [8, 32_000],
    [9, 44_100],
    [10, 48_000],
    [11, 96_000],
    [12, 11_000, [11]],
    [13, 11_025, [0x2b, 0x11]],
    [14, 655_340, [0xff, 0xfe]],
  ];
  for (const [rateCode, rate, field] of rates) {
    const format = { ...STEREO, rate };
    const frames = [frameOf(RICE, { header: { rateCode, rateField: Buffer.from(field ?? []) } })];
    check(t, flacFile({ format, frames }), { sha256: samplesDigest(format, interleaved(frames)) }, `${rate}`);
  }
  for (const [depthCode, bits] of [
    [1, 8],
    [2, 12],
    [4, 16],
    [5, 20],
    [6, 24],
    [7, 32],
  ] as const) {
    const format = { ...STEREO, bits };
    const frames = [frameOf({ kind: 'verbatim' }, { header: { depthCode } }, bits)];
    check(t, flacFile({ format, frames }), { sha256: samplesDigest(format, interleaved(frames)) }, `${bits}`);
  }
  for (const [sizeCode, size] of [
    [1, 192],
    [2, 576],
    [3, 1152],
    [4, 2304],
    [5, 4608],
    [6, 1],
    [6, 256],
    [7, 65_535],
    [8, 256],
    [9, 512],
    [15, 32_768],
  ] as const) {
    const subframe = { kind: 'constant' } as const;
    const frames = [{ channels: [silence(size), silence(size)], subframe, header: { sizeCode } }];
    const sha256 = samplesDigest(STEREO, interleaved(frames));
    t.strictSame(sampled(flacFile({ format: STEREO, frames })), { sha256 }, `${size} samples`);
  }
  const numbers = ['7f', 'dfbf', 'efbfbf', 'f7bfbfbf', 'fbbfbfbfbf', 'fdbfbfbfbfbf', 'febfbfbfbfbfbf'];
  const frames = numbers.map((number) => frameOf(RICE, { header: { number: Buffer.from(number, 'hex') } }));
  check(
    t,
    flacFile({ format: STEREO, frames }),
    { sha256: samplesDigest(STEREO, interleaved(frames)) },
    'numbers',
  );
});

t.test('what surrounds the frames does not change the digest', async (t) => {
  const frames = [frameOf(RICE), frameOf(LINEAR)];
  const sha256 = samplesDigest(STEREO, interleaved(frames));
  const file = flacFile({ format: STEREO, frames });
  const tag = Buffer.concat([Buffer.from('TAG'), Buffer.alloc(125, 'x')]);
  const metadata = [
    [4, noise(70)],
    [1, Buffer.alloc(0)],
    [6, noise(700)],
    [126, noise(3)],
  ] as const;
  check(t, flacFile({ format: STEREO, frames, metadata }), { sha256 }, 'metadata');
  check(t, flacFile({ format: STEREO, frames, md5: null, total: 0 }), { sha256 }, 'nothing stated');
  check(t, Buffer.concat([id3Tag(300), file]), { sha256 }, 'ID3v2');
  check(t, Buffer.concat([id3Tag(), file, tag]), { sha256 }, 'ID3v2 and ID3v1');
});

t.test('a FLAC file whose samples are not certain has a reason and no digest', async (t) => {
  const frame = frameOf(RICE);
  const good = flacFile({ format: STEREO, frames: [frame, frame] });
  const file = (more: Partial<FlacFile>): Buffer =>
    flacFile({ format: STEREO, frames: [frame, frame], ...more });
  const framed = (more: Partial<Frame>, subframe = RICE): Buffer =>
    file({ frames: [frameOf(subframe, more)] });
  const changed = (at: number, value = 1): Buffer => {
    const bytes = Buffer.from(good);
    bytes[at < 0 ? good.length + at : at]! ^= value;
    return bytes;
  };
  const tag = Buffer.concat([Buffer.from('TAG'), Buffer.alloc(125)]);
  // The header of a frame has seven bytes and a CRC, and the type of the first subframe is next.
  const subframeType =
    (type: number) =>
    (bytes: Buffer): void =>
      void (bytes[8] = type << 1);
  const cases: readonly (readonly [string, string, Buffer])[] = [
    ['the marker alone', 'container_unsupported', good.subarray(0, 4)],
    ['no whole STREAMINFO', 'samples_incomplete', good.subarray(0, 30)],
    ['no frames', 'samples_absent', file({ frames: [] })],
    ['no first STREAMINFO', 'structure_malformed', changed(4, 0x04)],
    ['a STREAMINFO of another length', 'structure_malformed', changed(7, 0x01)],
    ['two STREAMINFO', 'structure_malformed', file({ metadata: [[0, noise(34)]] })],
    ['the invalid type', 'structure_malformed', file({ metadata: [[127, noise(3)]] })],
    ['three bits', 'format_unsupported', file({ format: { ...STEREO, bits: 3 }, frames: [] })],
    ['no rate', 'format_unsupported', file({ format: { ...STEREO, rate: 0 } })],
    ['a byte in a header', 'checksum_mismatch', changed(42 + 2, 0x10)],
    ['the CRC of a header', 'checksum_mismatch', changed(42 + 7)],
    ['a byte in a frame', 'checksum_mismatch', changed(42 + 60)],
    ['the CRC of a frame', 'checksum_mismatch', changed(-1)],
    ['the MD5', 'checksum_mismatch', changed(26)],
    ['more samples stated', 'frames_disagree', file({ total: 97 })],
    ['fewer samples stated', 'frames_disagree', file({ total: 48 })],
    ['a frame cut off', 'samples_incomplete', good.subarray(0, -1)],
    ['a frame header cut off', 'samples_incomplete', Buffer.concat([good, Buffer.from([0xff, 0xf8])])],
    ['bytes after the frames', 'structure_malformed', Buffer.concat([good, Buffer.alloc(128)])],
    ['a short ID3v1', 'structure_malformed', Buffer.concat([good, tag.subarray(1)])],
    ['a long ID3v1', 'structure_malformed', Buffer.concat([good, tag, Buffer.from([0])])],
    ['two ID3v1', 'structure_malformed', Buffer.concat([good, tag, tag])],
    ['another rate', 'stream_changes', framed({ header: { rateCode: 10 } })],
    ['another depth', 'stream_changes', framed({ header: { depthCode: 6 } })],
    ['another channel count', 'stream_changes', framed({ channels: [smooth(48, 16)] })],
    ['a reserved size', 'structure_malformed', framed({ header: { sizeCode: 0 } })],
    ['the invalid rate', 'structure_malformed', framed({ header: { rateCode: 15 } })],
    ['a reserved depth', 'structure_malformed', framed({ header: { depthCode: 3 } })],
    ['a reserved assignment', 'structure_malformed', framed({ assignment: 11 })],
    ['an invalid number', 'structure_malformed', framed({ header: { number: Buffer.from([0x80]) } })],
    ['a number cut short', 'structure_malformed', framed({ header: { number: Buffer.from([0xc2, 0x20]) } })],
    [
      '65,536 samples',
      'structure_malformed',
      framed({ channels: [silence(65_536), silence(65_536)] }, { kind: 'constant' }),
    ],
    ['a reserved subframe', 'structure_malformed', framed({ spoil: subframeType(2) })],
    ['a fixed order of 5', 'structure_malformed', framed({ spoil: subframeType(13) })],
    ['a set padding bit of a subframe', 'structure_malformed', framed({ spoil: subframeType(64) })],
    [
      'an order above the size',
      'structure_malformed',
      framed({ channels: [smooth(3, 16), smooth(3, 16)], spoil: subframeType(63) }),
    ],
    ['a negative shift', 'structure_malformed', framed({}, { ...LINEAR, shift: -1, parameter: 14 })],
    ['the invalid precision', 'structure_malformed', framed({}, { ...LINEAR, precision: 16 })],
    ['partitions that do not divide', 'structure_malformed', framed({}, { ...RICE, partitionOrder: 5 })],
    [
      'a partition below the order',
      'structure_malformed',
      framed({}, { ...LINEAR, order: 32, coefficients: someSamples(32, 5), partitionOrder: 1 }),
    ],
    [
      'as many wasted bits as there are',
      'structure_malformed',
      framed(
        { channels: [someSamples(4, 16).map(() => 0n), someSamples(4, 16).map(() => 0n)] },
        { kind: 'constant', wasted: 16 },
      ),
    ],
    [
      'a sample of too many bits',
      'structure_malformed',
      framed({ channels: [smooth(48, 20), smooth(48, 20)] }, { ...RICE, parameter: 12 }),
    ],
    [
      'a difference of too many bits',
      'structure_malformed',
      framed(
        { channels: [smooth(48, 17), smooth(48, 17)], assignment: 8 },
        { kind: 'fixed', order: 0, parameter: 12 },
      ),
    ],
  ];
  for (const [name, reason, bytes] of cases) check(t, bytes, { reason }, name);
});

t.test('a file that decodes to far more than its length has a reason and no digest', async (t) => {
  const format = { bits: 32, channels: 8, rate: 192_000 };
  const channels = Array.from({ length: 8 }, () => silence(65_535));
  const one = flacFile({
    format,
    frames: [{ channels, subframe: { kind: 'constant' } }],
    md5: null,
    total: 0,
  });
  const frame = one.subarray(42);
  const repeated = (count: number): Buffer =>
    Buffer.concat([one.subarray(0, 42), ...Array.from({ length: count }, () => frame)]);
  const bytes = (count: number): number => count * 65_535 * 8 * 4;
  let most = 0;
  while (bytes(most + 1) <= 32 * (42 + most * frame.length + 9) + 64 * 1024 * 1024) most += 1;
  t.match(sampled(repeated(most)), { sha256: /^[0-9a-f]{64}$/ });
  t.strictSame(sampled(repeated(most + 1)), { reason: 'samples_too_large' });
});

t.test('samples of few bits count as two bytes', async (t) => {
  const file = (bits: number, count: number): Buffer => {
    const channels = Array.from({ length: 8 }, () => silence(65_535));
    const one = flacFile({
      format: { bits, channels: 8, rate: 48_000 },
      frames: [{ channels, subframe: { kind: 'constant' } }],
      md5: null,
      total: 0,
    });
    return Buffer.concat([one.subarray(0, 42), ...Array.from({ length: count }, () => one.subarray(42))]);
  };
  const most = Math.floor((64 * 1024 * 1024) / (65_535 * 8 * 2));
  for (const bits of [4, 8, 16]) {
    t.match(sampled(file(bits, most)), { sha256: /^[0-9a-f]{64}$/ }, `${bits} bits`);
    t.strictSame(sampled(file(bits, most + 1)), { reason: 'samples_too_large' }, `${bits} bits`);
  }
});

const corpus = process.env['TAKEMARK_CORPUS'];

t.test(
  'the test bench of FLAC decoders is decoded, or has a reason',
  { skip: corpus === undefined && 'TAKEMARK_CORPUS does not name the directory of audio files' },
  async (t) => {
    const reasons: Readonly<Record<string, string>> = {
      'faulty__03-wrong_bit_depth': 'stream_changes',
      'faulty__05-wrong_total_number_of_samples': 'frames_disagree',
      'faulty__07-other_metadata_blocks_preceding_streaminfo_metadata_block': 'structure_malformed',
      'faulty__11-incorrect_metadata_block_length': 'structure_malformed',
      'uncommon__01-changing_samplerate': 'stream_changes',
      'uncommon__03-decreasing_number_of_channels': 'stream_changes',
      'uncommon__11-file_starting_with_unparsable_data': 'container_unsupported',
    };
    const random = randomNumbers(9639);
    const names = readFileSync(join(corpus!, 'flac/MANIFEST.txt'), 'utf8').match(/\S+\.flac/g) ?? [];
    t.ok(names.length > 20, `${names.length} files`);
    for (const name of new Set(names)) {
      const file = readFileSync(join(corpus!, 'flac', name));
      const whole = sampled(file);
      const reason = reasons[name.replace('.flac', '')];
      // The MD5 of each file is compared when it is decoded.
      if (reason !== undefined) t.strictSame(whole, { reason }, name);
      else t.match(whole, { sha256: /^[0-9a-f]{64}$/ }, name);
      t.strictSame(sampled(file, randomCuts(random, file.length, 300)), whole, `${name}, cut`);
    }
  },
);
