/** `takemark inspect` and `takemark strip`. */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { link, mkdir, readdir, readFile, stat, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { extentOf, issued } from '../fixtures/credentialed-file.js';
import { foreignFile } from '../fixtures/foreign-file.js';
import { testSigning } from '../fixtures/signing.js';
import { chunk, fmtChunk, noise, riff, wav } from '../fixtures/wav.js';
import { setUp } from './bench.js';

const PLAIN = wav(1001, { bits: 8 });
const FILE = issued(PLAIN, testSigning().signer);
const PROOF = 'prf_01J00000000000000000000000';
const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

t.test('inspect shows a file as text, and everything as JSON', async (t) => {
  const { takemark, file } = await setUp(t);
  const path = await file('take.wav', FILE);
  const extent = extentOf(FILE)!;
  const { code, out, err } = await takemark('inspect', path);
  t.strictSame({ code, err }, { code: 0, err: '' });
  t.strictSame(
    out.split('\n').filter((line) => !/^(?:issued|digest|certificate|bound audio|samples) /.test(line)),
    [
      `file         ${path}`,
      'container    riff, pcm, 1 ch, 44100 Hz, 8 bit, 1001 frames',
      `bytes        ${FILE.length}`,
      `sha256       ${sha256(FILE)}`,
      '',
      'offset  size  chunk',
      '──────  ────  ─────',
      '12      16    fmt',
      '36      1001  data',
      `${extent.offset}    ${extent.length - 8}  C2PA`,
      '',
      `credential   production record, ${extent.length} bytes at byte ${extent.offset}`,
      `proof        ${PROOF}`,
      'signer       Takemark, Ed25519',
      `original     ${sha256(PLAIN)}`,
      '',
      'verify       nothing in the file is refused; the service decides by its registry',
      '',
    ],
  );
  const json = await takemark('inspect', '--json', path);
  const { samples } = JSON.parse(json.out) as { samples: { sha256: string } };
  t.match(out, `samples      ${samples.sha256}\n`);
  t.match(JSON.parse(json.out), {
    file: path,
    samples: { sha256: /^[0-9a-f]{64}$/ },
    sha256: sha256(FILE),
    container: 'riff',
    chunks: [{ id: 'fmt ' }, { id: 'data' }, { id: 'C2PA', offset: extent.offset, size: extent.length - 8 }],
    credential: { kind: 'production_record', statement: { proofId: PROOF }, originalSha256: sha256(PLAIN) },
  });
});

t.test('inspect shows findings in words, and escapes what a stranger wrote', async (t) => {
  const { takemark, file } = await setUp(t);
  const hostile = riff([
    fmtChunk(),
    chunk({ id: '\u001b[2J', data: noise(2) }),
    chunk({ id: 'data', data: noise(4) }),
  ]);
  const { code, out, err } = await takemark('inspect', await file('hostile.wav', hostile));
  t.strictSame({ code, err }, { code: 0, err: '' });
  t.notOk(out.includes('\u001b'), 'no control character reaches the terminal');
  t.match(
    out,
    'finding      chunk_id_invalid (byte 36: found chunk id 0x1b5b324a, expected four printable characters, with spaces only at the end): breaks the file\n',
  );
  const other = await takemark('inspect', await file('other.ogg', Buffer.from('OggS, and no more')));
  t.match(other.out, /^samples {6}no digest: container_unsupported: The container has no samples/m);
  t.match(out, /^verify {7}unreadable: chunk_id_invalid: A chunk id is not printable ASCII/m);
});

t.test('inspect follows a link to a file, and refuses what is not a regular file', async (t) => {
  const { takemark, file, directory } = await setUp(t);
  await symlink(await file('take.wav', FILE), join(directory, 'link.wav'));
  t.match(await takemark('inspect', '--json', join(directory, 'link.wav')), { code: 0 });
  const missing = join(directory, 'missing.wav');
  t.strictSame(await takemark('inspect', missing), {
    code: 3,
    out: '',
    err: `takemark: ${missing}: no such file or directory\n`,
  });
  const others = [directory];
  if (process.platform !== 'win32') {
    const pipe = join(directory, 'pipe.wav');
    t.equal(spawnSync('mkfifo', [pipe]).status, 0);
    others.push(pipe);
  }
  for (const command of [['inspect'], ['strip', '--out', join(directory, 'out.wav')]])
    for (const path of others)
      t.strictSame(await takemark(...command, path), {
        code: 3,
        out: '',
        err: `takemark: ${path} is not a regular file\n`,
      });
});

t.test('strip writes the original, and leaves the input as it is', async (t) => {
  const { takemark, file, directory } = await setUp(t);
  const path = await file('take.wav', FILE);
  const out = join(directory, 'original.wav');
  t.strictSame(await takemark('strip', path, '--out', out), {
    code: 0,
    out: `${out}  ${PLAIN.length} bytes  sha256 ${sha256(PLAIN)}  production record ${PROOF} removed\n`,
    err: '',
  });
  t.strictSame(await readFile(out), PLAIN);
  t.strictSame(await readFile(path), FILE);
  const second = join(directory, 'second.wav');
  const json = await takemark('strip', path, '--out', second, '--json');
  t.match(JSON.parse(json.out), {
    written: true,
    out: second,
    bytes: PLAIN.length,
    sha256: sha256(PLAIN),
    credential: { kind: 'production_record', statement: { proofId: PROOF } },
  });
});

t.test('strip refuses an output that exists, is a link or is the input', async (t) => {
  const { takemark, file, directory } = await setUp(t);
  const path = await file('take.wav', FILE);
  const at = (name: string): string => join(directory, name);
  await file('other.wav', PLAIN);
  await mkdir(at('folder'));
  await link(path, at('hard.wav'));
  await symlink(at('other.wav'), at('link.wav'));
  await symlink(at('nowhere.wav'), at('dangling.wav'));
  const before = await readdir(directory);
  for (const [name, problem] of [
    ['take.wav', 'is the input file'],
    ['hard.wav', 'is the input file'],
    ['other.wav', 'exists and is never replaced; name another file'],
    ['link.wav', 'is a symbolic link, and is not replaced'],
    ['dangling.wav', 'is a symbolic link, and is not replaced'],
    ['folder', 'exists and is not a regular file'],
  ] as const)
    t.strictSame(await takemark('strip', path, '--out', at(name)), {
      code: 2,
      out: '',
      err: `takemark: ${at(name)} ${problem} (see takemark strip --help)\n`,
    });
  t.match(await takemark('strip', path, '--out', at('missing/out.wav')), { code: 2, err: /does not exist/ });
  t.strictSame(await readdir(directory), before, 'nothing was written');
  t.strictSame(await readFile(path), FILE);
  t.strictSame(await readFile(at('other.wav')), PLAIN);
  t.equal((await stat(path)).nlink, 2);
});

t.test('strip writes nothing for a file that does not have its credential as issued', async (t) => {
  const { takemark, file, directory } = await setUp(t);
  const changed = Buffer.from(FILE);
  changed[100]! ^= 1;
  const tagged = Buffer.concat([FILE, chunk({ id: 'id3 ', data: noise(10) })]);
  tagged.writeUInt32LE(tagged.length - 8, 4);
  const out = join(directory, 'out.wav');
  for (const [name, bytes, reason, text] of [
    ['plain.wav', PLAIN, 'credential_missing', /it has no credential in it/],
    [
      'half.mp3',
      Buffer.from([0xff, 0xfb, 0x90, 0, ...noise(60)]),
      'credential_missing',
      /no credential in it/,
    ],
    ['foreign.wav', foreignFile(), 'credential_foreign', /credential of .+ is not of Takemark and stays/],
    ['changed.wav', changed, 'file_not_as_issued', /binding_mismatch: The file differs/],
    [
      'cut.wav',
      FILE.subarray(0, -100),
      'file_not_as_issued',
      /missing or not as it was issued: riff_size_past_eof/,
    ],
    ['tagged.wav', tagged, 'file_not_as_issued', /credential_not_last \(byte \d+: found chunk "id3 "/],
  ] as const) {
    const path = await file(name, bytes);
    const ran = await takemark('strip', path, '--out', out, '--json');
    t.equal(ran.code, 1, name);
    t.match(ran.err, text, name);
    t.match(JSON.parse(ran.out), { written: false, reason }, name);
  }
  t.notOk((await readdir(directory)).includes('out.wav'));
});
