/**
 * Writes the test vectors of the samples digest: `node samples-vectors.mjs DIRECTORY` writes twelve files, and prints the
 * table of docs/samples-digest.md. Needs Node alone. docs/samples-digest.md defines the digest.
 */
import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const FRAMES = 100;

/** Returns samples in file order, as whole numbers with `bits` bits. */
function makeSamples({ bits, channels }) {
  return Array.from({ length: FRAMES * channels }, (_, i) => {
    const mixed = Math.imul(i + 1, 2_654_435_761) >>> 0;
    return (mixed >> (32 - bits)) | 0;
  });
}

/** Returns the samples left-justified in `width` bytes. */
function encode(samples, { bits, width, big = false, unsigned = false, float = false }) {
  const bytes = Buffer.alloc(samples.length * width);
  for (const [i, sample] of samples.entries()) {
    const at = i * width;
    if (float) {
      const value = sample / 2 ** (bits - 1);
      if (big) bytes.writeFloatBE(value, at);
      else bytes.writeFloatLE(value, at);
      continue;
    }
    const value = sample * 2 ** (8 * width - bits);
    if (unsigned) bytes.writeUInt8(value + 128, at);
    else if (big) bytes.writeIntBE(value, at, width);
    else bytes.writeIntLE(value, at, width);
  }
  return bytes;
}

/** Returns the samples digest by its definition. */
function samplesDigest({ bits, channels, rate, float = false }, samples) {
  const width = float ? 4 : Math.ceil(bits / 8);
  const header = Buffer.alloc(16);
  header.write('TMSAMP1\0', 'latin1');
  header.writeUInt8(float ? 1 : 0, 8);
  header.writeUInt8(width, 9);
  header.writeUInt16LE(channels, 10);
  header.writeUInt32LE(rate, 12);
  const frames = Buffer.alloc(8);
  frames.writeBigUInt64LE(BigInt(samples.length / channels));
  const hash = createHash('sha256').update(header);
  return hash.update(encode(samples, { bits, width, float })).update(frames).digest('hex');
}

const u16 = (value) => Buffer.from([value & 255, value >> 8]);
const u32 = (value) => Buffer.from([value & 255, (value >> 8) & 255, (value >> 16) & 255, value >>> 24]);
const u16b = (value) => u16(value).reverse();
const u32b = (value) => u32(value).reverse();
const text = (value) => Buffer.from(value, 'latin1');

const chunk = (id, data) => Buffer.concat([text(id), u32(data.length), data, Buffer.alloc(data.length % 2)]);

/** Returns a fmt chunk. It is in the extensible form if `container` has more bits than are valid. */
function fmt({ bits, channels, rate, float = false }, container = bits) {
  const stored = float ? 32 : container;
  const block = channels * Math.ceil(stored / 8);
  const isExtensible = stored !== bits && !float;
  const tag = float ? 3 : 1;
  const plain = [
    u16(isExtensible ? 0xfffe : tag),
    u16(channels),
    u32(rate),
    u32(rate * block),
    u16(block),
    u16(stored),
  ];
  const guid = Buffer.from('000000001000800000aa00389b71', 'hex');
  const extension = [u16(22), u16(bits), u32(0), u16(tag), guid];
  return chunk('fmt ', Buffer.concat(isExtensible ? [...plain, ...extension] : plain));
}

function wave(format, samples, container = format.bits) {
  const width = format.float ? 4 : Math.ceil(container / 8);
  const data = encode(samples, { ...format, width, unsigned: width === 1 });
  return chunk('RIFF', Buffer.concat([text('WAVE'), fmt(format, container), chunk('data', data)]));
}

function rf64(format, samples) {
  const data = encode(samples, { ...format, width: format.bits / 8 });
  const u64 = (value) => Buffer.concat([u32(value), u32(0)]);
  const size = 4 + 36 + 24 + 8 + data.length;
  const ds64 = Buffer.concat([u64(size), u64(data.length), u64(FRAMES), u32(0)]);
  const open = u32(0xffff_ffff);
  return Buffer.concat([
    text('RF64'),
    open,
    text('WAVE'),
    chunk('ds64', ds64),
    fmt(format),
    text('data'),
    open,
    data,
  ]);
}

const aiffChunk = (id, data) =>
  Buffer.concat([text(id), u32b(data.length), data, Buffer.alloc(data.length % 2)]);

/** Returns an AIFF file, or an AIFC file of type `sowt`. */
function aiff({ bits, channels, rate }, samples, isLittle = false) {
  // The rate as an 80-bit float.
  const exponent = 31 - Math.clz32(rate);
  const extended = Buffer.concat([u16b(16_383 + exponent), u32b(rate << (31 - exponent)), u32b(0)]);
  const type = isLittle ? text('sowt\0\0') : Buffer.alloc(0);
  const common = Buffer.concat([u16b(channels), u32b(FRAMES), u16b(bits), extended, type]);
  const data = encode(samples, { bits, width: Math.ceil(bits / 8), big: !isLittle });
  const sound = Buffer.concat([u32b(0), u32b(0), data]);
  const form = Buffer.concat([
    text(isLittle ? 'AIFC' : 'AIFF'),
    aiffChunk('COMM', common),
    aiffChunk('SSND', sound),
  ]);
  return aiffChunk('FORM', form);
}

/** Returns a CAF file with floats of 32 bits, big-endian. */
function caf({ bits, channels, rate }, samples) {
  const cafChunk = (id, data) => Buffer.concat([text(id), u32b(0), u32b(data.length), data]);
  const description = Buffer.alloc(32);
  description.writeDoubleBE(rate, 0);
  description.write('lpcm', 8);
  for (const [i, value] of [1, channels * 4, 1, channels, 32].entries())
    description.writeUInt32BE(value, 12 + 4 * i);
  const data = encode(samples, { bits, width: 4, big: true, float: true });
  return Buffer.concat([
    text('caff'),
    u16b(1),
    u16b(0),
    cafChunk('desc', description),
    cafChunk('data', Buffer.concat([u32b(0), data])),
  ]);
}

function crc(bytes, bits, polynomial) {
  let value = 0;
  for (const byte of bytes) {
    value ^= byte << (bits - 8);
    for (let i = 0; i < 8; i += 1)
      value = ((value << 1) ^ (value >> (bits - 1) === 1 ? polynomial : 0)) & (2 ** bits - 1);
  }
  return value;
}

/** Returns the bytes of fields, each a number and its length in bits. */
function pack(fields) {
  const bits = fields.map(([value, length]) => (value & (2 ** length - 1)).toString(2).padStart(length, '0'));
  const all = bits.join('');
  const padded = all.padEnd(Math.ceil(all.length / 8) * 8, '0');
  return Buffer.from(padded.match(/.{8}/g).map((byte) => Number.parseInt(byte, 2)));
}

/** Returns a FLAC file with one frame, whose samples are stored as they are. */
function flac({ bits, channels, rate }, samples) {
  const width = Math.ceil(bits / 8);
  const numbers = Buffer.alloc(samples.length * width);
  for (const [i, sample] of samples.entries()) numbers.writeIntLE(sample, i * width, width);
  const info = pack([
    [FRAMES, 16],
    [FRAMES, 16],
    [0, 24],
    [0, 24],
    [rate, 20],
    [channels - 1, 3],
    [bits - 1, 5],
    [0, 20],
    [FRAMES, 16],
  ]);
  const head = Buffer.from([0xff, 0xf8, 0x60, (channels - 1) << 4, 0, FRAMES - 1]);
  const subframes = pack(
    Array.from({ length: channels }, (_, channel) => [
      [2, 8],
      ...samples.filter((_, i) => i % channels === channel).map((sample) => [sample, bits]),
    ]).flat(),
  );
  const frame = Buffer.concat([head, Buffer.from([crc(head, 8, 0x107)]), subframes]);
  return Buffer.concat([
    text('fLaC'),
    u32b(0x8000_0022),
    info,
    createHash('md5').update(numbers).digest(),
    frame,
    u16b(crc(frame, 16, 0x1_8005)),
  ]);
}

const STEREO_16 = { bits: 16, channels: 2, rate: 44_100 };
const STEREO_24 = { bits: 24, channels: 2, rate: 96_000 };
const FLOAT = { bits: 24, channels: 1, rate: 48_000, float: true };

/** Each vector: its file, and the digest of its samples by definition. */
export const VECTORS = [
  ['wave-16.wav', STEREO_16, wave],
  ['rf64-16.wav', STEREO_16, rf64],
  ['aiff-16.aiff', STEREO_16, aiff],
  ['flac-16.flac', STEREO_16, flac],
  ['wave-24.wav', STEREO_24, wave],
  ['wave-24-in-32.wav', STEREO_24, (format, samples) => wave(format, samples, 32)],
  ['aifc-sowt-24.aifc', STEREO_24, (format, samples) => aiff(format, samples, true)],
  ['wave-8.wav', { bits: 8, channels: 1, rate: 8000 }, wave],
  [
    'wave-20-in-24.wav',
    { bits: 20, channels: 3, rate: 48_000 },
    (format, samples) => wave(format, samples, 24),
  ],
  ['flac-12.flac', { bits: 12, channels: 1, rate: 32_000 }, flac],
  ['wave-float.wav', FLOAT, wave],
  ['caf-float.caf', FLOAT, caf],
].map(([name, format, write]) => {
  const samples = makeSamples(format);
  return { name, file: write(format, samples), samples: samplesDigest(format, samples) };
});

/** Returns the table of the vectors in Markdown. */
export function table() {
  const rows = VECTORS.map(({ name, file, samples }) => {
    const sha256 = createHash('sha256').update(file).digest('hex');
    return `| \`${name}\` | \`${sha256.slice(0, 16)}\` | \`${samples}\` |`;
  });
  return ['| file | SHA-256 of the file begins | samples digest |', '|---|---|---|', ...rows].join('\n');
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const directory = process.argv[2];
  if (directory !== undefined) {
    mkdirSync(directory, { recursive: true });
    for (const { name, file } of VECTORS) writeFileSync(join(directory, name), file);
  }
  console.log(table());
}
