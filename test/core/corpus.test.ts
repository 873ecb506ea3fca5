import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import t from 'tap';
import { needs } from '../fixtures/tools.js';
import { CoreUnderTest, everyByte, randomCuts, randomNumbers } from './core-under-test.js';

const corpus = process.env.TAKEMARK_CORPUS;
const skip = corpus === undefined && 'TAKEMARK_CORPUS does not name the directory of audio files';
/** Above this, only the ends of a file go through byte by byte. */
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

t.test('format and frames agree with libsndfile', { skip: skip || needs('sndfile-info') }, async (t) => {
  const under = await CoreUnderTest.load();
  let compared = 0;
  for (const name of audioFiles()) {
    const { format, frames, findings } = under.measure(readFileSync(join(corpus!, name)));
    if (format === undefined || findings.length > 0) continue;
    const { status, stdout } = spawnSync('sndfile-info', [join(corpus!, name)], { encoding: 'latin1' });
    const read = (label: string): number =>
      Number(new RegExp(`^${label}\\s*: (\\d+)`, 'm').exec(stdout)?.[1]);
    if (status !== 0 || Number.isNaN(read('Frames'))) continue;
    t.strictSame(
      [frames, format.channels, format.sampleRate],
      [read('Frames'), read('Channels'), read('Sample Rate')],
      name,
    );
    compared += 1;
  }
  t.ok(compared > 0, `${compared} files`);
});
