import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import t from 'tap';
import { isHarmless } from '../../src/core/domain/findings.js';
import { needs } from '../fixtures/tools.js';
import { WRITERS } from '../fixtures/writers.js';
import { CoreUnderTest, everyByte, randomCuts, randomNumbers } from './core-under-test.js';

const corpus = process.env.TAKEMARK_CORPUS;
const skip = corpus === undefined && 'TAKEMARK_CORPUS does not name the directory of audio files';
/** The number of bytes read one by one at each end of a file. Files up to twice that length are read so entirely. */
const BYTE_BY_BYTE = 20_000;

function audioFiles(): string[] {
  return readdirSync(corpus!, { recursive: true, encoding: 'utf8' })
    .filter((name) => !name.endsWith('.txt') && statSync(join(corpus!, name)).isFile())
    .sort();
}

t.test('a file measures the same however it is cut', { skip }, async (t) => {
  const under = await CoreUnderTest.load();
  const random = randomNumbers(4711);
  for (const name of audioFiles()) {
    const file = readFileSync(join(corpus!, name));
    const whole = under.measure(file);
    t.equal(whole.sha256, createHash('sha256').update(file).digest('hex'), name);
    const { length } = file;
    const splits = length < 100_000 ? 40 : 5;
    let wrong = 0;
    for (let i = 0; i < splits; i += 1)
      if (!isDeepStrictEqual(under.measure(file, randomCuts(random, length, 30)), whole)) wrong += 1;
    const bytes =
      length <= 2 * BYTE_BY_BYTE
        ? everyByte(1, length)
        : [...everyByte(1, BYTE_BY_BYTE), ...everyByte(length - BYTE_BY_BYTE, length)];
    if (!isDeepStrictEqual(under.measure(file, bytes), whole)) wrong += 1;
    if (wrong > 0) t.fail(`${name}: ${wrong} cuts`);
  }
});

interface DataExtent {
  readonly offset: number;
  readonly size: number;
}

/** Returns the audio as ffmpeg reads it, or undefined if ffmpeg does not read the file. */
function readByFfmpeg(path: string): DataExtent | undefined {
  const { status, stdout } = spawnSync(
    'ffprobe',
    ['-v', 'error', '-show_entries', 'packet=pos,size', '-of', 'json', path],
    { encoding: 'utf8', maxBuffer: 64 << 20 },
  );
  if (status !== 0) return undefined;
  const { packets = [] } = JSON.parse(stdout) as { packets?: { pos?: string; size: string }[] };
  const offset = packets[0]?.pos;
  if (offset === undefined) return undefined;
  return { offset: Number(offset), size: packets.reduce((sum, { size }) => sum + Number(size), 0) };
}

interface SoundFileInfo {
  readonly frames: number;
  readonly channels: number;
  readonly sampleRate: number;
}

/** Returns what libsndfile reads, or undefined if it does not read the file. */
function readByLibsndfile(path: string): SoundFileInfo | undefined {
  const { status, stdout } = spawnSync('sndfile-info', [path], { encoding: 'latin1' });
  const read = (label: string): number => Number(new RegExp(`^${label}\\s*: (\\d+)`, 'm').exec(stdout)?.[1]);
  const info = { frames: read('Frames'), channels: read('Channels'), sampleRate: read('Sample Rate') };
  return status !== 0 || Number.isNaN(info.frames) ? undefined : info;
}

t.test(
  'ffmpeg and libsndfile find the audio of every accepted file where the core finds it',
  { skip: skip || needs('sndfile-info', 'ffprobe') },
  async (t) => {
    const under = await CoreUnderTest.load();
    const directory = mkdtempSync(join(tmpdir(), 'takemark-agreement-'));
    t.teardown(() => rmSync(directory, { recursive: true }));
    const written = WRITERS.map(({ file }, i) => {
      const path = join(directory, `${i}.wav`);
      writeFileSync(path, file);
      return path;
    });
    const compared = { ffmpeg: 0, libsndfile: 0 };
    for (const path of [...written, ...audioFiles().map((name) => join(corpus!, name))]) {
      const { format, frames, data, findings, container } = under.measure(readFileSync(path));
      if (format === undefined || data === undefined || !findings.every(isHarmless)) continue;
      const sound = readByLibsndfile(path);
      if (sound !== undefined && format.encoding !== 'other') {
        const { channels, sampleRate } = format;
        t.strictSame(sound, { frames, channels, sampleRate }, `libsndfile: ${path}`);
        compared.libsndfile += 1;
      }
      const read = container === 'riff' ? readByFfmpeg(path) : undefined;
      if (read !== undefined) {
        // A decoder takes whole blocks only.
        const whole = data.size - (data.size % format.blockAlign);
        const size = format.encoding === 'other' ? read.size : whole;
        t.strictSame(read, { offset: data.offset, size }, `ffmpeg: ${path}`);
        compared.ffmpeg += 1;
      }
    }
    t.ok(compared.ffmpeg > 40 && compared.libsndfile > 40, JSON.stringify(compared));
  },
);
