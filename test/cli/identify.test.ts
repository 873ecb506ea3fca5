/** `takemark identify` of a directory and of a list of digests. */
import { createHash } from 'node:crypto';
import { mkdir, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { issued } from '../fixtures/credentialed-file.js';
import { testSigning } from '../fixtures/signing.js';
import { wav } from '../fixtures/wav.js';
import { setUp } from './bench.js';

const PATH = '/v1/recordings/identify';
const PLAIN = wav(1001, { bits: 8 });
const FILE = issued(PLAIN, testSigning().signer);
const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');
const match = (proofId: string, type: string) => ({ proofId, type, confidence: 1 });

/** Returns an answer with these matches of each digest. */
const answer = (...matches: readonly (readonly ReturnType<typeof match>[])[]) => ({
  status: 200,
  body: { results: matches.map((each) => ({ sha256: 'ab', matches: each })) },
});

t.test('the files of a directory are identified by digests, and no audio is sent', async (t) => {
  const { service, takemark, directory, file } = await setUp(t);
  const folder = join(directory, 'delivery');
  await mkdir(join(folder, 'more'), { recursive: true });
  const take = await file(join('delivery', 'take.wav'), FILE);
  const other = await file(join('delivery', 'more', 'other.wav'), PLAIN);
  service.queue(
    PATH,
    answer(
      [match('prf_1', 'exact_file'), match('prf_2', 'bound_audio')],
      [match('prf_1', 'bound_audio'), match('prf_2', 'bound_audio'), match('prf_3', 'later_kind')],
      [match('prf_1', 'same_samples')],
      [],
      [],
    ),
  );
  t.strictSame(await takemark('identify', folder), {
    code: 1,
    out: [
      `${take}  prf_1  exact_file  1`,
      `${take}  prf_2  bound_audio  1`,
      `${take}  prf_3  later_kind  1`,
      `${other}  no match`,
      '',
    ].join('\n'),
    err: '',
  });
  t.strictSame(service.requests('/v1/uploads'), []);
  const { digests } = JSON.parse(service.requests(PATH)[0]!.text) as {
    readonly digests: readonly { readonly sha256: string; readonly of: string }[];
  };
  t.match(digests, [
    { sha256: sha256(FILE), of: 'file' },
    { sha256: /^[0-9a-f]{64}$/, of: 'bound' },
    { sha256: digests[4]!.sha256, of: 'samples' },
    { sha256: sha256(PLAIN), of: 'file' },
    { sha256: /^[0-9a-f]{64}$/, of: 'samples' },
  ]);
  t.equal(digests.length, 5);

  service.queue(PATH, answer([match('prf_1', 'exact_file')], [], [], [match('prf_1', 'original_file')], []));
  const { code, out } = await takemark('identify', folder, '--json');
  t.equal(code, 0);
  t.strictSame(
    out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as unknown),
    [
      { file: take, digests: digests.slice(0, 3), matches: [match('prf_1', 'exact_file')] },
      { file: other, digests: digests.slice(3), matches: [match('prf_1', 'original_file')] },
    ],
  );

  for (const name of ['.hidden.wav', 'notes.txt', 'take.sidecar']) await file(join('delivery', name));
  await symlink(await file('elsewhere.wav', PLAIN), join(folder, 'link.wav'));
  service.queue(PATH, answer([match('prf_1', 'exact_file')], [], [], [match('prf_1', 'original_file')], []));
  t.match(await takemark('identify', folder), {
    code: 3,
    err: /link\.wav is a link out of the directory \(takemark verify reads it with --follow-links\)\n3 other files skipped\n$/,
  });
  await rm(join(folder, 'link.wav'));

  await file(join('delivery', 'empty.wav'), Buffer.alloc(0));
  service.queue(PATH, answer([match('prf_1', 'exact_file')], [], [], [match('prf_1', 'original_file')], []));
  t.match(await takemark('identify', folder), { code: 3, err: /empty\.wav: the file is empty/ });
  await mkdir(join(directory, 'none'));
  t.match(await takemark('identify', join(directory, 'none')), { code: 3, err: /no audio files found/ });
});

t.test('a list of digests is the output of sha256sum, or CSV', async (t) => {
  const { service, takemark, file } = await setUp(t);
  const [a, b] = ['a'.repeat(64), 'b'.repeat(64)];
  const asked = async (text: string) => {
    const list = await file('list', Buffer.from(text));
    service.queue(PATH, answer([match('prf_1', 'exact_file')], []));
    const { code, out, err } = await takemark('identify', '--digests', list);
    t.match({ code, err }, { code: 1, err: '' }, text);
    const { digests } = JSON.parse(service.requests(PATH).at(-1)!.text) as { readonly digests: unknown };
    return [out.split('\n').map((line) => line.split('  ')[0]), digests];
  };
  const plain = [{ sha256: a }, { sha256: b }];
  t.strictSame(await asked(`${a}  take one.wav\n${b} *b.wav\n`), [['take one.wav', 'b.wav', ''], plain]);
  t.strictSame(await asked(`\\${a}  a\\\\b\n${b.toUpperCase()}  b.wav`), [['a\\b', 'b.wav', ''], plain]);
  t.strictSame(await asked(`${a}\r\n\r\n${b},"b, ""two"".wav"\r\n`), [[a, 'b, "two".wav', ''], plain]);
  t.strictSame(await asked(`\ufeffName,SHA256,of\na.wav,${a},bound\n,${b},\n`), [
    ['a.wav', b, ''],
    [{ sha256: a, of: 'bound' }, { sha256: b }],
  ]);
  const before = service.requests(PATH).length;
  for (const [text, problem] of [
    ['', /contains no digest/],
    ['sha256,name\n', /contains no digest/],
    [`${a}  a.wav\nabc  b.wav\n`, /line 2 has no SHA-256 digest/],
    [`sha256,of\n${a},acoustic\n`, /line 2 has no SHA-256 digest/],
    [`${a}  a.wav\n"${b}\n`, /line 2 has no SHA-256 digest/],
  ] as const)
    t.match(
      await takemark('identify', '--digests', await file('list', Buffer.from(text))),
      { code: 2, err: problem },
      text,
    );
  t.equal(service.requests(PATH).length, before, 'nothing of a broken list is sent');
});

t.test('the operator fills samples digests in steps', async (t) => {
  const { takemark } = await setUp(t);
  t.strictSame(await takemark('operator', 'samples', 'fill'), {
    code: 1,
    out: 'prf_1  the file is missing or damaged\n4 proofs: 2 filled, 1 without a samples digest, 1 failed\n',
    err: '',
  });
  t.strictSame(await takemark('operator', 'samples', 'fill', '--from', '2:'), {
    code: 0,
    out: '1 proofs: 1 filled, 0 without a samples digest, 0 failed\n',
    err: '',
  });
});
