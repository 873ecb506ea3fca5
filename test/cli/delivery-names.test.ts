/** Names in a delivery: Unicode forms, bytes that are not UTF-8, case, and sidecars of several files. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import t from 'tap';
import { fileName, isCalled, placeIn, shown } from '../../src/cli/batch/file-name.js';
import { findAudio } from '../../src/cli/batch/find-audio.js';
import { needs } from '../fixtures/tools.js';
import { MAIN, setUp } from './bench.js';

const COMPOSED = 'caf\u00e9';
const DECOMPOSED = 'cafe\u0301';

interface Line {
  readonly file: string;
  readonly sidecar?: string;
  readonly outcome: string;
  readonly error?: { readonly code?: string; readonly message: string };
}

function lines(out: string): Line[] {
  return out.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as Line]));
}

async function collect(operands: readonly string[]) {
  const found = [];
  for await (const each of findAudio(operands, { pairs: true, followLinks: false })) found.push(each);
  return found;
}

t.test('audio and sidecar are a pair when their names differ only in the Unicode form', async (t) => {
  const { file, directory } = await setUp(t);
  const audio = await file(`in/${DECOMPOSED}.mp3`);
  const sidecar = await file(`in/${COMPOSED}.sidecar`);
  const pair = [{ path: audio, bytes: 1044, sidecar }];
  t.strictSame(await collect([join(directory, 'in')]), pair);
  t.strictSame(await collect([audio]), pair);
  t.strictSame(await collect([sidecar]), pair);
  t.strictSame(
    await collect([join(directory, `in/${COMPOSED}.mp3`)]),
    pair,
    'a name in the other form names the file',
  );
});

t.test('each of two files takes the sidecar in its own Unicode form', async (t) => {
  const { file, directory } = await setUp(t);
  for (const name of [COMPOSED, DECOMPOSED]) {
    await file(`in/${name}.mp3`);
    await file(`in/${name}.sidecar`);
  }
  t.strictSame(
    (await collect([join(directory, 'in')])).map((each) => 'sidecar' in each && [each.path, each.sidecar]),
    [DECOMPOSED, COMPOSED].map((name) => [
      join(directory, `in/${name}.mp3`),
      join(directory, `in/${name}.sidecar`),
    ]),
  );
});

t.test('a file is verified when its name is not UTF-8', { skip: process.platform !== 'linux' }, async (t) => {
  const { service, takemark, directory, file } = await setUp(t);
  const folder = Buffer.from(`${directory}/d\xe9livr\xe9`, 'latin1');
  await mkdir(folder);
  const at = (name: string): Buffer => Buffer.concat([folder, Buffer.from(`/${name}`, 'latin1')]);
  await writeFile(at('caf\xe9.mp3'), 'audio');
  await writeFile(at('caf\xe9.sidecar'), 'abc');
  await writeFile(at('plain.wav'), 'audio');
  const batch = await takemark('verify', directory, '--format', 'jsonl', '--ordered');
  t.equal(batch.code, 0);
  t.strictSame(
    lines(batch.out).map(({ file: path, sidecar, outcome }) => [
      path.replace(`${directory}/`, ''),
      sidecar?.replace(`${directory}/`, ''),
      outcome,
    ]),
    [
      ['d\\xe9livr\\xe9/caf\\xe9.mp3', 'd\\xe9livr\\xe9/caf\\xe9.sidecar', 'good'],
      ['d\\xe9livr\\xe9/plain.wav', undefined, 'good'],
    ],
  );
  t.ok(service.requests('/v1/verifications').some(({ text: body }) => body.includes('\r\n\r\nabc\r\n--')));
  // The command line passes on such a name with replacement characters.
  const lossy = join(directory, 'd\ufffdlivr\ufffd');
  t.match(await takemark('verify', lossy), { code: 0, err: /^2 files: 2 good/ });
  const resumed = join(directory, 'state');
  t.match(await takemark('verify', lossy, '--resume', resumed), { code: 0 });

  const alone = Buffer.from(`${directory}/single \xff.wav`, 'latin1');
  await writeFile(alone, 'audio');
  t.match(await takemark('verify', join(directory, 'single \ufffd.wav')), {
    code: 0,
    out: /^✔ VALID {2}single \\xff\.wav\n/,
  });
  service.on('/v1/recordings/identify', () => ({
    status: 200,
    body: { matches: [{ proofId: 'prf_1', type: 'exact_file', confidence: 1 }] },
  }));
  t.match(await takemark('identify', join(directory, 'single \ufffd.wav')), { code: 0 });
  await writeFile(Buffer.from(`${directory}/single \xfe.wav`, 'latin1'), 'audio');
  t.match(await takemark('verify', join(directory, 'single \ufffd.wav')), {
    code: 3,
    err: /the names of several files are equal to this name/,
  });
  await file('single \ufffd.wav');
  t.match(
    await takemark('verify', join(directory, 'single \ufffd.wav')),
    { code: 0, out: /single \ufffd\.wav/ },
    'a file of exactly this name goes first',
  );
});

t.test('names that differ only in case are reported and not taken as a pair', async (t) => {
  const { takemark, file, directory } = await setUp(t);
  await file('in/mixed.mp3');
  await file('in/Mixed.sidecar');
  await file('in/Both.wav');
  await file('in/both.sidecar');
  const batch = await takemark('verify', join(directory, 'in'), '--format', 'jsonl', '--ordered');
  t.equal(batch.code, 3);
  t.match(
    lines(batch.out).map(({ file: path, outcome, error }) => [
      path.replace(`${directory}/in/`, ''),
      outcome,
      error?.message,
    ]),
    [
      ['Both.wav', 'good', undefined],
      ['Mixed.sidecar', 'failed', 'no audio beside this sidecar: the name of mixed.mp3 differs only in case'],
      ['both.sidecar', 'failed', 'no audio beside this sidecar: the name of Both.wav differs only in case'],
      ['mixed.mp3', 'failed', /^its sidecar may be Mixed\.sidecar, whose name differs only in case/],
    ],
  );
  t.match(await takemark('verify', join(directory, 'in/mixed.mp3')), {
    code: 5,
    out: '',
    err: /differs only in case/,
  });
  t.match(
    await takemark(
      'verify',
      join(directory, 'in/mixed.mp3'),
      '--sidecar',
      join(directory, 'in/Mixed.sidecar'),
    ),
    { code: 0 },
  );
});

t.test('files are ambiguous and not sent when one sidecar may belong to several', async (t) => {
  const { service, takemark, file, directory } = await setUp(t);
  for (const name of ['song.mp3', 'song.flac', 'song.wav', 'song.sidecar', 'other.wav'])
    await file(`in/${name}`);
  const folder = join(directory, 'in');
  const table = await takemark('verify', folder);
  t.match(table, { code: 5, err: '4 files: 2 good, 0 not good, 2 failed (2 ambiguous)\n' });
  t.match(table.out, /! AMBIGUOUS .* \S+song\.flac {2}song\.sidecar may be the sidecar of song\.mp3 as well/);
  t.notMatch(table.out, /AUDIO CHANGED/);
  const batch = await takemark('verify', folder, '--format', 'jsonl', '--ordered');
  t.strictSame(
    lines(batch.out).map(({ file: path, outcome, error }) => [
      path.replace(`${folder}/`, ''),
      outcome,
      error?.code,
    ]),
    [
      ['other.wav', 'good', undefined],
      ['song.flac', 'failed', 'sidecar_ambiguous'],
      ['song.mp3', 'failed', 'sidecar_ambiguous'],
      ['song.wav', 'good', undefined],
    ],
  );
  const before = service.requests('/v1/verifications').length;
  for (const name of ['song.flac', 'song.sidecar'])
    t.match(await takemark('verify', join(folder, name)), {
      code: 5,
      out: '',
      err: /song\.flac: song\.sidecar may be the sidecar of song\.mp3 as well/,
    });
  t.equal(service.requests('/v1/verifications').length, before, 'nothing was sent');
  t.match(
    await takemark('verify', join(folder, 'song.mp3'), '--sidecar', join(folder, 'song.sidecar')),
    { code: 0 },
    'a sidecar that is named is not ambiguous',
  );
  service.verdict = { verdict: 'unreadable', good: false };
  t.equal((await takemark('verify', folder)).code, 1, 'a verdict that is not good goes before');
  await file('in/empty.wav', new Uint8Array(0));
  t.equal((await takemark('verify', folder)).code, 3, 'a failure goes before both');
});

t.test('two WAV files beside one sidecar are ambiguous', async (t) => {
  const { file, directory } = await setUp(t);
  for (const name of ['song.wav', 'song.bwf', 'song.sidecar']) await file(`in/${name}`);
  t.strictSame(
    (await collect([join(directory, 'in')])).map((each) => 'ambiguous' in each),
    [true, true],
  );
});

t.test('a state file is refused when it is not a regular file', { skip: needs('mkfifo') }, async (t) => {
  const { takemark, file, directory } = await setUp(t);
  await file('in/take.wav');
  const pipe = join(directory, 'pipe');
  execFileSync('mkfifo', [pipe]);
  for (const path of [pipe, directory, '/dev/null'])
    t.match(await takemark('verify', join(directory, 'in'), '--resume', path), {
      code: 2,
      out: '',
      err: /is not a regular file: --resume needs a file that can be read again/,
    });
});

t.test('the exit code is 141 when the reader of the output ends early', async (t) => {
  const { service, file, directory } = await setUp(t);
  for (let at = 0; at < 20; at += 1) await file(`in/${at}.wav`);
  const command = spawn(process.execPath, [MAIN, 'verify', 'in', '--concurrency', '1'], {
    cwd: directory,
    env: { TAKEMARK_URL: service.url, TAKEMARK_API_KEY: 'k' },
  });
  command.stdout.once('data', () => command.stdout.destroy());
  const [err, [code]] = await Promise.all([text(command.stderr), once(command, 'exit')]);
  t.equal(code, 141);
  t.notMatch(err, /takemark:/, 'nothing is said about it');
});

t.test('a name keeps what is UTF-8 and shows every other byte', async (t) => {
  const stored = Buffer.concat([
    Buffer.from(`${COMPOSED} `),
    Buffer.from([0xc3, 0x28, 0xff]),
    Buffer.from('😀'),
  ]);
  const name = fileName(stored);
  t.equal(name.text, `${COMPOSED} \\xc3(\\xff😀`);
  const place = placeIn('/in', name);
  t.ok(Buffer.isBuffer(place) && place.equals(Buffer.concat([Buffer.from('/in/'), stored])));
  t.equal(shown(place), `/in/${name.text}`);
  t.ok(isCalled(name, stored.toString('utf8')));
  t.notOk(isCalled(name, name.text));
  t.strictSame(fileName(Buffer.from(COMPOSED)), { text: COMPOSED });
  t.ok(isCalled({ text: COMPOSED }, DECOMPOSED));
});
