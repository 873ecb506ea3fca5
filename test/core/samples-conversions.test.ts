/** Conversions of real audio without loss, by another program: the samples digest stays the same. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { corpusFiles, NO_CORPUS } from '../fixtures/corpus.js';
import { needs } from '../fixtures/tools.js';
import { CoreUnderTest } from './core-under-test.js';

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

const files = corpusFiles();

t.test(
  'a conversion without loss keeps the samples digest, and another rate does not',
  { skip: needs('ffprobe') || (files === undefined && NO_CORPUS) },
  async (t) => {
    const under = await CoreUnderTest.load(32 << 20);
    const directory = mkdtempSync(join(tmpdir(), 'takemark-conversions-'));
    t.teardown(() => rmSync(directory, { recursive: true }));
    const convert = (path: string, name: string, options: readonly string[]): unknown => {
      const out = join(directory, name);
      const args = ['-v', 'error', '-y', '-i', path, '-map', '0:a:0', ...options, out];
      const { status } = spawnSync('ffmpeg', args);
      if (status !== 0) return undefined;
      return under.measure(readFileSync(out), [], { samples: true }).samples;
    };
    const counts = { same: 0, changed: 0, notWritten: 0 };
    for (const { name, path } of files ?? []) {
      const { format, samples, findings } = under.measure(readFileSync(path), [], { samples: true });
      const bits = format?.validBitsPerSample || format?.bitsPerSample;
      if (samples === undefined || 'reason' in samples || format?.encoding !== 'pcm') continue;
      if ((bits !== 16 && bits !== 24) || findings.length > 0) continue;
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
      const resampled = convert(path, 'resampled.wav', ['-ar', '11111', '-c:a', codec]);
      if (resampled !== undefined) {
        t.strictNotSame(resampled, samples, `${name}: another rate`);
        counts.changed += 1;
      }
    }
    t.comment(JSON.stringify(counts));
    t.ok(counts.same > 200 && counts.changed > 40, JSON.stringify(counts));
  },
);
