/** Conversions of real audio without loss, by other programs: the samples digest stays the same. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import type { CoreMeasurement } from '../../src/core/engine/core.js';
import { corpusFiles, NO_CORPUS } from '../fixtures/corpus.js';
import { needs } from '../fixtures/tools.js';
import { mutate } from '../lab/fuzz/mutate.js';
import { CoreUnderTest, randomNumbers } from './core-under-test.js';

/** Conversions at the number of bits of the file: the name of the output, and the arguments of ffmpeg. */
const CONVERSIONS = {
  16: [
    ['tagged.wav', '-c:a', 'pcm_s16le', '-metadata', 'title=Another'],
    ['out.aiff', '-c:a', 'pcm_s16be'],
    ['out.caf', '-c:a', 'pcm_s16be'],
    ['out.flac', '-c:a', 'flac', '-sample_fmt', 's16', '-compression_level', '8'],
    ['fast.flac', '-c:a', 'flac', '-sample_fmt', 's16', '-compression_level', '0'],
  ],
  24: [
    ['tagged.wav', '-c:a', 'pcm_s24le', '-metadata', 'title=Another'],
    ['out.aiff', '-c:a', 'pcm_s24be'],
    ['out.caf', '-c:a', 'pcm_s24le'],
    ['out.flac', '-c:a', 'flac', '-sample_fmt', 's32', '-bits_per_raw_sample', '24'],
  ],
} as const;
/** Ways through `flac` and `sox` and back. Each step converts the file that the step before it wrote. */
const WAYS = [
  ['out.flac', 'back.wav'],
  ['out.flac', 'back.aiff'],
  ['sox.aiff', 'sox.wav'],
  ['sox.wav', 'sox.aiff'],
  ['sox.wav', 'out.flac', 'back.wav', 'sox.aiff'],
] as const;
const ANOTHER_RATE = '11111';
const MUTATIONS = 300;
/** The bit of the last metadata block of a FLAC file. */
const LAST_BLOCK = 0x80;
const SEED = Number(process.env['TAKEMARK_TEST_SEED'] ?? 1);

const files = corpusFiles();
const skip = needs('ffprobe', 'flac', 'sox') || (files === undefined && NO_CORPUS);

interface Convertible {
  readonly name: string;
  readonly path: string;
  readonly bits: 16 | 24;
  readonly channels: number;
  readonly samples: { readonly sha256: string };
}

const measured = (under: CoreUnderTest, file: Uint8Array): CoreMeasurement =>
  under.measure(file, [], { samples: true });

/** Lists the files of the corpus with 16 or 24 bits that have a samples digest and nothing unusual. */
function* convertible(under: CoreUnderTest): Generator<Convertible> {
  for (const { name, path } of files ?? []) {
    const { format, samples, findings } = measured(under, readFileSync(path));
    const bits = format?.validBitsPerSample || format?.bitsPerSample;
    if (samples === undefined || 'reason' in samples || format?.encoding !== 'pcm') continue;
    if ((bits !== 16 && bits !== 24) || findings.length > 0) continue;
    yield { name, path, bits, channels: format.channels, samples };
  }
}

function temporaryDirectory(t: Test): string {
  const directory = mkdtempSync(join(tmpdir(), 'takemark-conversions-'));
  t.teardown(() => rmSync(directory, { recursive: true }));
  return directory;
}

const succeeds = (program: string, ...args: readonly string[]): boolean => {
  const { error, status } = spawnSync(program, args, { stdio: 'ignore' });
  if (error !== undefined) throw error;
  return status === 0;
};

const encodeFlac = (from: string, to: string): boolean =>
  succeeds('flac', '--silent', '--force', '--lax', '--channel-map=none', '-8', `--output-name=${to}`, from);

const decodeFlac = (from: string, to: string): boolean =>
  succeeds('flac', '--silent', '--force', '--decode', `--output-name=${to}`, from);

/** Converts without dither at the same number of bits. @param effects the arguments after the output */
const sox = (from: string, to: string, bits: number, ...effects: readonly string[]): boolean =>
  succeeds('sox', '-D', '-V1', from, '-b', String(bits), to, ...effects);

t.test(
  'a conversion without loss keeps the samples digest, and another rate does not',
  { skip },
  async (t) => {
    const under = await CoreUnderTest.load(32 << 20);
    const directory = temporaryDirectory(t);
    const convert = (path: string, name: string, options: readonly string[]): unknown => {
      const out = join(directory, name);
      if (!succeeds('ffmpeg', '-v', 'error', '-y', '-i', path, '-map', '0:a:0', ...options, out))
        return undefined;
      return measured(under, readFileSync(out)).samples;
    };
    const counts = { same: 0, changed: 0, notWritten: 0 };
    for (const { name, path, bits, samples } of convertible(under)) {
      for (const [out, ...options] of CONVERSIONS[bits]) {
        const converted = convert(path, out, options);
        if (converted === undefined) {
          counts.notWritten += 1;
          continue;
        }
        t.strictSame(converted, samples, `${name}: ${out}`);
        counts.same += 1;
      }
      const codec = bits === 16 ? 'pcm_s16le' : 'pcm_s24le';
      const resampled = convert(path, 'resampled.wav', ['-ar', ANOTHER_RATE, '-c:a', codec]);
      if (resampled !== undefined) {
        t.strictNotSame(resampled, samples, `${name}: another rate`);
        counts.changed += 1;
      }
    }
    t.comment(JSON.stringify(counts));
    t.ok(counts.same > 200 && counts.changed > 40, JSON.stringify(counts));
  },
);

t.test('the ways through flac and sox and back keep the samples digest', { skip }, async (t) => {
  const under = await CoreUnderTest.load(32 << 20);
  const directory = temporaryDirectory(t);
  const counts = { files: 0, same: 0, notWritten: 0 };
  const notWritten = new Set<string>();
  for (const { name, path, bits, samples } of convertible(under)) {
    counts.files += 1;
    for (const way of WAYS) {
      let from = path;
      for (const out of way) {
        const to = join(directory, out);
        const convert = out.endsWith('.flac') ? encodeFlac : out.startsWith('back') ? decodeFlac : sox;
        if (!convert(from, to, bits)) {
          counts.notWritten += 1;
          notWritten.add(`${name}: ${out} of ${way.join(', ')}`);
          break;
        }
        t.strictSame(
          measured(under, readFileSync(to)).samples,
          samples,
          `${name}: ${way.join(', ')}: ${out}`,
        );
        counts.same += 1;
        from = to;
      }
    }
  }
  t.comment(JSON.stringify(counts));
  for (const each of notWritten) t.comment(`not written: ${each}`);
  t.ok(counts.same > 500, JSON.stringify(counts));
});

t.test(
  'a changed sample, swapped channels and another rate change the samples digest',
  { skip },
  async (t) => {
    const under = await CoreUnderTest.load(32 << 20);
    const directory = temporaryDirectory(t);
    const plain = join(directory, 'plain.wav');
    const other = join(directory, 'other.wav');
    const packed = join(directory, 'other.flac');
    const counts = { sample: 0, channels: 0, rate: 0, equalChannels: 0, notWritten: 0 };
    for (const { name, path, bits, channels, samples } of convertible(under)) {
      if (!sox(path, plain, bits)) {
        counts.notWritten += 1;
        continue;
      }
      const file = readFileSync(plain);
      const { data, samples: same } = measured(under, file);
      t.strictSame(same, samples, `${name}: plain`);
      /** Checks the file that was changed, and the FLAC file of it. */
      const check = (kind: 'sample' | 'channels' | 'rate'): void => {
        for (const changed of encodeFlac(other, packed) ? [other, packed] : [other]) {
          const found = measured(under, readFileSync(changed)).samples;
          t.match(found, { sha256: /^[0-9a-f]{64}$/ }, `${name}: ${kind}: ${changed}`);
          t.strictNotSame(found, samples, `${name}: ${kind}: ${changed}`);
        }
        counts[kind] += 1;
      };
      const bytes = bits / 8;
      const { offset, size } = data!;
      const middle = Math.floor(size / bytes / 2) * bytes;
      file[offset + middle]! ^= 1;
      writeFileSync(other, file);
      file[offset + middle]! ^= 1;
      check('sample');

      const isSwapVisible =
        channels > 1 && !areFirstChannelsEqual(file.subarray(offset, offset + size), bytes, channels);
      if (channels > 1 && !isSwapVisible) counts.equalChannels += 1;
      const order = Array.from({ length: channels }, (_, i) => String(i < 2 ? 2 - i : i + 1));
      if (isSwapVisible && sox(path, other, bits, 'remix', ...order)) check('channels');
      if (sox(path, other, bits, 'rate', ANOTHER_RATE) && measured(under, readFileSync(other)).frames! > 0)
        check('rate');
    }
    t.comment(JSON.stringify(counts));
    t.ok(counts.sample > 40 && counts.channels > 10 && counts.rate > 40, JSON.stringify(counts));
  },
);

function areFirstChannelsEqual(data: Buffer, bytes: number, channels: number): boolean {
  for (let at = 0; at < data.length; at += bytes * channels)
    if (data.compare(data, at, at + bytes, at + bytes, at + 2 * bytes) !== 0) return false;
  return true;
}

/** Leaves of the metadata of a FLAC file only its first block, STREAMINFO. */
function withStreamInfoAlone(file: Buffer): Buffer {
  const blocks = 4;
  const first = Buffer.from(file.subarray(blocks, blocks + 4 + file.readUIntBE(blocks + 1, 3)));
  first[0]! |= LAST_BLOCK;
  let at = blocks;
  for (let isLast = false; !isLast; at += 4 + file.readUIntBE(at + 1, 3)) isLast = file[at]! >= LAST_BLOCK;
  return Buffer.concat([file.subarray(0, blocks), first, file.subarray(at)]);
}

/** Returns why `flac` may accept a FLAC file without a samples digest, or undefined if it may not. */
function whyAccepted(file: Buffer, reason: string | undefined): string | undefined {
  if (reason === 'frames_disagree') return 'flac does not compare the total with the frames';
  const isFirstStreamInfo = file.toString('latin1', 0, 4) === 'fLaC' && (file[4]! & 0x7f) === 0;
  return reason === 'structure_malformed' && !isFirstStreamInfo
    ? 'flac does not ask that STREAMINFO is the first block'
    : undefined;
}

t.test('flac and the core agree which FLAC files are whole, and what is in them', { skip }, async (t) => {
  const under = await CoreUnderTest.load(32 << 20);
  const directory = temporaryDirectory(t);
  const root = process.env['TAKEMARK_CORPUS']!;
  const originals = readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.flac'))
    .sort()
    .map((name) => ({ name, file: readFileSync(join(root, name)) }));
  const random = randomNumbers(SEED);
  const others = originals.map(({ file }) => file);
  const mutated = Array.from({ length: MUTATIONS }, (_, i) => {
    const { name, file } = originals[i % originals.length]!;
    // A change of the audio is almost always found by a CRC, and a change of what precedes it is not.
    const head = [64, 8192, file.length][random(3)]!;
    const changed = mutate(file.subarray(0, head), others, [], file.length + 8192, random);
    return {
      name: `${name}, mutation ${i} of seed ${SEED}`,
      file: Buffer.concat([changed, file.subarray(head)]),
    };
  });
  const path = join(directory, 'tried.flac');
  const back = join(directory, 'back.wav');
  const accepts = (file: Buffer): boolean => {
    writeFileSync(path, file);
    return succeeds('flac', '--test', '--totally-silent', path);
  };
  const counts: Record<string, number> = {};
  const count = (kind: string): void => {
    counts[kind] = (counts[kind] ?? 0) + 1;
  };
  for (const { name, file } of [...originals, ...mutated]) {
    const { samples } = measured(under, file);
    if (samples === undefined || 'reason' in samples) {
      if (!accepts(file)) {
        count('no digest, refused');
        continue;
      }
      const why = whyAccepted(file, samples?.reason);
      t.ok(why, `${name}: ${samples?.reason}, but flac accepts it`);
      count(`no digest, accepted: ${why}`);
      continue;
    }
    if (accepts(file)) count('digest, accepted');
    else {
      t.ok(accepts(withStreamInfoAlone(file)), `${name}: flac accepts it with STREAMINFO alone`);
      count('digest, accepted with STREAMINFO alone: another block is malformed');
    }
    t.ok(decodeFlac(path, back), `${name}: flac decodes it`);
    t.strictSame(measured(under, readFileSync(back)).samples, samples, name);
  }
  t.comment(JSON.stringify(counts));
  t.ok(counts['digest, accepted']! > 25 && counts['no digest, refused']! > 100, JSON.stringify(counts));
});
