import t, { type Test } from 'tap';
import {
  aiffChunk,
  aiffForm,
  cafChunk,
  cafData,
  cafFile,
  commChunk,
  descChunk,
  encode,
  extended,
  samplesDigest,
  someSamples,
  ssndChunk,
} from '../fixtures/samples.js';
import { id3Tag, noise } from '../fixtures/wav.js';
import { CoreUnderTest, everyByte } from './core-under-test.js';

const under = await CoreUnderTest.load(1 << 20);

function check(test: Test, file: Buffer, expected: object, name: string): void {
  test.strictSame(under.measure(file, [], { samples: true }).samples, expected, name);
  const cut = under.measure(file, everyByte(1, file.length), { samples: true });
  test.strictSame(cut.samples, expected, `${name}, byte by byte`);
}

const CHANNELS = 2;
const RATE = 44_100;
const FRAMES = 9;
const COUNT = CHANNELS * FRAMES;

t.test('an AIFF file has the digest of its samples in every width', async (t) => {
  for (let bits = 1; bits <= 32; bits += 1) {
    const format = { bits, channels: CHANNELS, rate: RATE };
    const samples = someSamples(COUNT, bits, bits);
    const sha256 = samplesDigest(format, samples);
    const big = encode(samples, { bits, width: Math.ceil(bits / 8), big: true });
    const little = encode(samples, { bits, width: Math.ceil(bits / 8) });
    check(t, aiffForm([commChunk(format, FRAMES), ssndChunk(big)]), { sha256 }, `${bits} bits`);
    for (const [type, bytes] of [
      ['NONE', big],
      ['twos', big],
      ['sowt', little],
    ] as const)
      check(
        t,
        aiffForm([commChunk(format, FRAMES, { type }), ssndChunk(bytes)], 'AIFC'),
        { sha256 },
        `${type}, ${bits} bits`,
      );
  }
});

t.test('the type of an AIFC file of one width gives its bits', async (t) => {
  for (const [type, bits, form] of [
    ['in24', 24, {}],
    ['in32', 32, {}],
    ['raw ', 8, { unsigned: true }],
    ['fl32', 32, { float: true }],
    ['FL32', 32, { float: true }],
    ['fl64', 64, { float: true }],
    ['FL64', 64, { float: true }],
  ] as const) {
    const format = { bits, channels: CHANNELS, rate: RATE, ...form };
    const samples = someSamples(COUNT, bits);
    const bytes = encode(samples, { bits, width: bits / 8, big: true, ...form });
    const comm = commChunk({ ...format, bits: 16 }, FRAMES, { type });
    check(t, aiffForm([comm, ssndChunk(bytes)], 'AIFC'), { sha256: samplesDigest(format, samples) }, type);
  }
});

t.test('a CAF file has the digest of its samples', async (t) => {
  for (const [bits, flags] of [
    [8, 0],
    [8, 2],
    [16, 0],
    [16, 2],
    [24, 0],
    [24, 2],
    [32, 0],
    [32, 2],
    [32, 1],
    [32, 3],
    [64, 1],
    [64, 3],
  ] as const) {
    const format = { bits, channels: CHANNELS, rate: RATE, float: (flags & 1) !== 0 };
    const samples = someSamples(COUNT, bits, bits);
    const bytes = encode(samples, { bits, width: bits / 8, big: (flags & 2) === 0 });
    const desc = descChunk({ ...format, flags });
    const free = cafChunk('free', noise(33));
    const sha256 = samplesDigest(format, samples);
    check(t, cafFile([desc, cafData(bytes)]), { sha256 }, `${bits} bits, flags ${flags}`);
    check(t, cafFile([desc, free, cafData(bytes), free]), { sha256 }, 'other chunks around it');
    check(t, cafFile([desc, cafData(bytes, -1n)]), { sha256 }, 'data to the end');
  }
});

t.test('what surrounds the samples of an AIFF file does not change their digest', async (t) => {
  const format = { bits: 16, channels: CHANNELS, rate: 4_294_967_295 };
  const samples = someSamples(COUNT, 16);
  const bytes = encode(samples, { bits: 16, width: 2, big: true });
  const sha256 = samplesDigest(format, samples);
  const comm = commChunk(format, FRAMES);
  const name = aiffChunk('NAME', Buffer.from('odd'));
  const unsized = aiffForm([comm, ssndChunk(bytes)]);
  unsized.writeUInt32BE(0, 4);
  check(t, aiffForm([name, comm, name, ssndChunk(bytes), name]), { sha256 }, 'other chunks');
  check(t, aiffForm([comm, ssndChunk(bytes, { offset: 5 })]), { sha256 }, 'an offset');
  check(t, Buffer.concat([aiffForm([comm, ssndChunk(bytes)]), noise(20)]), { sha256 }, 'bytes after the end');
  check(t, unsized, { sha256 }, 'no size of the file');
  check(
    t,
    aiffForm([commChunk({ ...format, rate: 1 }, FRAMES), ssndChunk(bytes)]),
    { sha256: samplesDigest({ ...format, rate: 1 }, samples) },
    'the lowest rate',
  );
});

t.test('an AIFF or CAF file whose samples are not certain has a reason and no digest', async (t) => {
  const format = { bits: 16, channels: CHANNELS, rate: RATE };
  const bytes = encode(someSamples(COUNT, 16), { bits: 16, width: 2, big: true });
  const comm = commChunk(format, FRAMES);
  const ssnd = ssndChunk(bytes);
  const halfRate = extended(22_051);
  halfRate.writeUInt16BE(halfRate.readUInt16BE(0) - 1, 0);
  const rated = (extendedRate: Buffer): Buffer =>
    aiffForm([commChunk(format, FRAMES, { extendedRate }), ssnd]);
  const aifc = (type: string): Buffer => aiffForm([commChunk(format, FRAMES, { type }), ssnd], 'AIFC');
  const desc = descChunk({ ...format, flags: 0 });
  const caf = (change: object): Buffer =>
    cafFile([descChunk({ ...format, flags: 0, ...change }), cafData(bytes)]);
  const version = cafFile([desc, cafData(bytes)]);
  version[5] = 2;
  const cases: readonly (readonly [string, string, Buffer])[] = [
    ['a tag before AIFF', 'container_unsupported', Buffer.concat([id3Tag(), aiffForm([comm, ssnd])])],
    ['ADPCM', 'encoding_unsupported', aifc('ima4')],
    ['no COMM', 'structure_malformed', aiffForm([ssnd])],
    ['COMM after SSND', 'structure_malformed', aiffForm([ssnd, comm])],
    ['a short COMM', 'structure_malformed', aiffForm([aiffChunk('COMM', noise(17)), ssnd])],
    ['an AIFC without a type', 'structure_malformed', aiffForm([comm, ssnd], 'AIFC')],
    ['two COMM', 'samples_ambiguous', aiffForm([comm, comm, ssnd])],
    ['two SSND', 'samples_ambiguous', aiffForm([comm, ssnd, ssnd])],
    ['no SSND', 'samples_absent', aiffForm([comm])],
    ['no frames', 'samples_absent', aiffForm([commChunk(format, 0), ssndChunk(Buffer.alloc(0))])],
    ['33 bits', 'format_unsupported', aiffForm([commChunk({ ...format, bits: 33 }, FRAMES), ssnd])],
    ['no channel', 'format_unsupported', aiffForm([commChunk({ ...format, channels: 0 }, FRAMES), ssnd])],
    ['a block size', 'format_unsupported', aiffForm([comm, ssndChunk(bytes, { blockSize: 4 })])],
    ['an offset beyond the samples', 'structure_malformed', aiffForm([comm, ssndChunk(bytes)])],
    ['a rate with a half', 'format_unsupported', rated(halfRate)],
    ['a rate of 0', 'format_unsupported', rated(Buffer.alloc(10))],
    ['a rate of 2^32', 'format_unsupported', rated(extended(2 ** 32))],
    ['fewer frames', 'frames_disagree', aiffForm([commChunk(format, FRAMES - 1), ssnd])],
    ['more frames', 'frames_disagree', aiffForm([commChunk(format, FRAMES + 1), ssnd])],
    ['cut off AIFF', 'samples_incomplete', aiffForm([comm, ssnd]).subarray(0, -1)],
    [
      'a bit below the valid ones',
      'padding_not_zero',
      aiffForm([commChunk({ ...format, bits: 15 }, FRAMES), ssndChunk(Buffer.alloc(COUNT * 2, 1))]),
    ],
    ['another version of CAF', 'structure_malformed', version],
    ['no desc', 'structure_malformed', cafFile([cafData(bytes)])],
    ['a negative size', 'structure_malformed', cafFile([desc, cafData(bytes, -2n)])],
    ['ALAC', 'encoding_unsupported', caf({ codec: 'alac' })],
    ['an unknown flag', 'encoding_unsupported', caf({ flags: 4 })],
    ['12 bits', 'format_unsupported', caf({ bits: 12, bytesPerPacket: 3 })],
    ['float of 16 bits', 'format_unsupported', caf({ flags: 1 })],
    ['a wide packet', 'format_unsupported', caf({ bytesPerPacket: 8 })],
    ['two frames in a packet', 'format_unsupported', caf({ framesPerPacket: 2 })],
    ['a rate of CAF with a half', 'format_unsupported', caf({ rate: 0.5 })],
    ['no number as rate', 'format_unsupported', caf({ rate: Number.NaN })],
    ['two desc', 'samples_ambiguous', cafFile([desc, desc, cafData(bytes)])],
    ['two data', 'samples_ambiguous', cafFile([desc, cafData(bytes), cafData(bytes)])],
    ['empty data', 'samples_absent', cafFile([desc, cafData(Buffer.alloc(0))])],
    ['cut off CAF', 'samples_incomplete', cafFile([desc, cafData(bytes)]).subarray(0, -4)],
    ['half a frame', 'frames_incomplete', cafFile([desc, cafData(bytes, -1n)]).subarray(0, -2)],
  ];
  for (const [name, reason, file] of cases) {
    if (name === 'an offset beyond the samples')
      file.writeUInt32BE(bytes.length + 1, file.length - bytes.length - 8);
    check(t, file, { reason }, name);
  }
});
