import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { errorText } from '../../src/cli/file-errors.js';
import { setUp } from './bench.js';
import { REVIEW } from './review-case.js';

const PROOF = {
  proofId: 'prf_1',
  issuedAt: 1_767_225_600,
  createdAt: 1_767_225_600,
  song: { title: 'Take\u0007 one', declared: { artist: 'Ada\u0007', isrc: 'DEA122600001' } },
  issuer: 'Takemark',
  carrier: 'sidecar',
  boundAudioSha256: 'aa',
  originalSha256: 'bb',
};

t.test('a partner reads proofs and records, and takes a file', async (t) => {
  const { service, takemark, directory } = await setUp(t);
  service.on('/v1/proofs/prf_1', ({ method }) =>
    method === 'DELETE'
      ? { status: 200, body: { proofId: 'prf_1', outcome: 'erased', erasedAt: 1_767_225_600 } }
      : { status: 200, body: PROOF },
  );
  const shown = await takemark('proofs', 'get', 'prf_1');
  t.match(shown, {
    code: 0,
    err: '',
    out: /^proof +prf_1\nsong +Take\\u\{7\} one\nartist +Ada\\u\{7\} \(declared by the issuer, not checked\)\nisrc +DEA122600001 \(declared by the issuer, not checked\)\nissuer +Takemark\nissued +2026-01-01T00:00:00Z\n/,
  });
  t.match(JSON.parse((await takemark('proofs', 'get', 'prf_1', '--json')).out), PROOF);

  const delivery = {
    carrier: 'embedded',
    bytes: 1500,
    sha256: 'cc',
    mediaType: 'audio/wav',
    fileName: 'one.wav',
  };
  service.on('/v1/records/prf_1', () => ({ status: 200, body: { ...PROOF, delivery } }));
  t.match(await takemark('records', 'get', 'prf_1'), {
    code: 0,
    out: /^file +one\.wav, audio\/wav, 1\.5 kB$/m,
  });
  t.match(JSON.parse((await takemark('records', 'get', 'prf_1', '--json')).out), { delivery });

  const audio = Buffer.from('the audio');
  service.on('/v1/proofs/prf_1/asset', ({ query }) => ({
    status: 200,
    body: query['part'] === 'sidecar' ? Buffer.from('the sidecar') : audio,
    headers: { 'content-type': 'audio/wav' },
  }));
  const out = join(directory, 'out.wav');
  t.match(await takemark('proofs', 'asset', 'prf_1', '--out', out), {
    code: 0,
    out: '',
    err: /^wrote .*out\.wav: 9 B/,
  });
  t.strictSame(await readFile(out), audio);
  t.match(await takemark('proofs', 'asset', 'prf_1', '--out', out), { code: 2, err: /exists; give --force/ });
  const sidecar = await takemark(
    'proofs',
    'asset',
    'prf_1',
    '--out',
    out,
    '--force',
    '--part',
    'sidecar',
    '--json',
  );
  t.match(JSON.parse(sidecar.out), { proofId: 'prf_1', out, bytes: 11, mediaType: 'audio/wav' });
  t.equal(await readFile(out, 'utf8'), 'the sidecar');
  service.queue('/v1/proofs/prf_1/asset', {
    status: 200,
    body: Buffer.from('other'),
    headers: { 'repr-digest': `sha-256=:${'A'.repeat(43)}=:` },
  });
  const damaged = await takemark('proofs', 'asset', 'prf_1', '--out', join(directory, 'damaged.wav'));
  t.match(damaged, { code: 3, err: /digest of the downloaded file does not match/ });
  await t.rejects(readFile(join(directory, 'damaged.wav')), { code: 'ENOENT' }, 'nothing is left of it');

  t.match(await takemark('proofs', 'erase', 'prf_1'), { code: 2, err: /--confirm/ });
  t.match(await takemark('proofs', 'erase', 'prf_1', '--confirm', 'prf_2'), {
    code: 2,
    err: /different proofs/,
  });
  t.equal(
    service.requests('/v1/proofs/prf_1').filter(({ method }) => method === 'DELETE').length,
    0,
    'nothing was erased',
  );
  t.match(await takemark('proofs', 'erase', 'prf_1', '--confirm', 'prf_1'), {
    code: 0,
    out: 'prf_1  erased  first erased 2026-01-01T00:00:00Z\n',
  });
});

t.test('times are dates or unix seconds', async (t) => {
  const { service, takemark } = await setUp(t);
  service.on('/v1/proofs', () => ({ status: 200, body: { proofs: [] } }));
  for (const [text, seconds] of [
    ['2026-01-01', '1767225600'],
    ['2026-01-01T01:00:00+01:00', '1767225600'],
    ['2026-01-01T00:00:00Z', '1767225600'],
    ['1767225600', '1767225600'],
  ] as const) {
    t.match(
      await takemark('proofs', 'list', '--issued-after', text, '--issued-before', text),
      { code: 0 },
      text,
    );
    t.match(
      service.requests('/v1/proofs').at(-1)!.query,
      { issuedAfter: seconds, issuedBefore: seconds },
      text,
    );
  }
  for (const text of ['yesterday', '2026-13-01', '2026-02-30', '2026-01-01T00:00:00', '-1', '1234567890123'])
    t.match(
      await takemark('proofs', 'list', `--issued-after=${text}`),
      { code: 2, err: /--issued-after must be a time/ },
      text,
    );
});

t.test('a partner identifies a file, and asks whether the service is up', async (t) => {
  const { service, takemark, file } = await setUp(t);
  const path = await file('song.wav');
  const matches = [{ proofId: 'prf_1', type: 'exact_file', confidence: 1 }];
  service.queue(
    '/v1/recordings/identify',
    { status: 200, body: { matches } },
    {
      status: 200,
      body: {
        matches: [
          { ...matches[0], type: 'same_samples', unreadableBecause: ['credential_not_last', 'later_reason'] },
        ],
      },
    },
    { status: 200, body: { matches: [] } },
  );
  t.match(await takemark('identify', path), { code: 0, out: 'prf_1  exact_file  1\n', err: '' });
  t.match(await takemark('identify', path), {
    code: 0,
    out: 'prf_1  same_samples  1  unreadable: credential_not_last, later_reason\n',
  });
  t.match(await takemark('identify', path), { code: 1, out: '', err: 'no match\n' });
  t.match(service.requests('/v1/uploads')[0]!.text, /"purpose":"identify"/);
  t.match(await takemark('identify'), { code: 2, err: /name a file or a directory, or use --digests/ });
  t.match(await takemark('identify', path, '--digests', path), { code: 2 });

  const health = {
    ok: true,
    version: '2',
    environment: 'beta',
    contract: '2.8.0',
    commit: 'c',
    deployedAt: 1_767_225_600,
  };
  service.queue('/v1/health', { status: 200, body: health }, { status: 200, body: { ...health, ok: false } });
  t.match(await takemark('health'), {
    code: 0,
    out: 'up: takemark 2, beta, contract 2.8.0, deployed 2026-01-01T00:00:00Z\n',
  });
  t.match(await takemark('health', '--json'), { code: 1, out: /"ok":false/ });
  t.equal(service.requests('/v1/health')[0]!.headers['x-api-key'], undefined, 'no key is sent');
});

t.test('a partner leads a review case', async (t) => {
  const { service, takemark } = await setUp(t);
  const sent = (path: string) => JSON.parse(service.requests(path).at(-1)!.text) as unknown;
  service.on('/v1/partner/reviews', () => ({ status: 201, body: REVIEW }));
  const words = ['--creator', 'c', '--account', 'a', '--submission', 's', '--track', 't'];
  const created = await takemark('reviews', 'create', 'prf_1', ...words);
  t.match(created, { code: 0, out: /^review +rev_1\nproof +prf_1\nstatus +open\ncreator +c\n/ });
  t.match(created.out, /^req_1 {2}source_licence {2}supplied {2}2026-01-01T00:00:00Z$/m);
  t.strictSame(sent('/v1/partner/reviews'), { proofId: 'prf_1', bindings: REVIEW.bindings });
  service.queue('/v1/partner/reviews', {
    status: 409,
    body: { error: 'There is one.', code: 'conflict', reason: 'review_exists', reviewId: 'rev_1' },
  });
  t.match(await takemark('reviews', 'create', 'prf_1', ...words), {
    code: 3,
    err: /^takemark: There is one\. \(review_exists, rev_1, request rq_\d+\)\n$/,
  });

  await takemark('reviews', 'create', 'prf_1', ...words, '--idempotency-key', 'a-key-of-one-case');
  t.equal(service.requests('/v1/partner/reviews').at(-1)!.headers['idempotency-key'], 'a-key-of-one-case');
  const page = { status: 200, body: { reviews: [REVIEW] } };
  service.queue('/v1/partner/reviews', page, page);
  t.match(await takemark('reviews', 'list', '--proof', 'prf_1', '--status', 'open'), {
    code: 0,
    out: 'rev_1  2026-01-01T00:00:00Z  open                prf_1\n',
  });
  t.match(service.requests('/v1/partner/reviews').at(-1)!.query, { proofId: 'prf_1', status: 'open' });
  t.match(JSON.parse((await takemark('reviews', 'list', '--json')).out), REVIEW);

  const at = '/v1/partner/reviews/rev_1';
  for (const path of [at, `${at}/evidence-requests`, `${at}/evidence-requests/req_1`, `${at}/resolve`])
    service.on(path, () => ({ status: 200, body: REVIEW }));
  t.match(JSON.parse((await takemark('reviews', 'get', 'rev_1', '--json')).out), REVIEW);
  t.match(await takemark('reviews', 'ask', 'rev_1', '--kind', 'source_licence'), { code: 0 });
  t.strictSame(sent(`${at}/evidence-requests`), { kind: 'source_licence' });
  t.match(
    await takemark('reviews', 'answer', 'rev_1', 'req_1', '--status', 'accepted', '--reference', 'x-1'),
    { code: 0 },
  );
  t.strictSame(sent(`${at}/evidence-requests/req_1`), { status: 'accepted', responseReference: 'x-1' });
  service.queue(`${at}/resolve`, {
    status: 200,
    body: { ...REVIEW, status: 'resolved', outcome: 'held', resolvedAt: 1_767_225_601 },
  });
  t.match(await takemark('reviews', 'resolve', 'rev_1', '--outcome', 'held'), {
    code: 0,
    out: /^status +resolved, held$/m,
  });
  t.strictSame(sent(`${at}/resolve`), { outcome: 'held' });
  t.match(await takemark('reviews', 'resolve', 'rev_1', '--outcome', 'maybe'), {
    code: 2,
    err: /one of accepted, held, rejected/,
  });
});

t.test('what needs review is never shown as plainly good', async (t) => {
  const { service, takemark, file, directory } = await setUp(t);
  const path = await file('in/song.wav');
  const decision = {
    status: 'needs_review',
    reasons: ['credential_verified', 'source_evidence_needs_review'],
    recommendedAction: 'review',
  };
  const valid = { verdict: 'valid', good: true, proofId: 'prf_1', decision };
  service.verdict = valid;
  const one = await takemark('verify', path);
  t.match(one, { code: 4, out: /^\? VALID, NEEDS REVIEW {2}song\.wav\n/ });
  t.notMatch(one.out, /Accept/);
  t.match(one.out, /needs a review by a person/);
  t.match(await takemark('verify', path, '--json'), { code: 4 });
  t.match(await takemark('verify', join(directory, 'in')), {
    code: 4,
    out: /^\? NEEDS REVIEW +prf_1 /m,
    err: /^1 file: 1 good \(1 need review\), 0 not good, 0 failed$/m,
  });
  t.match(await takemark('verify', path, '--format', 'csv'), {
    code: 4,
    out: /"good","valid","needs_review","prf_1"/,
  });
  await file('in/empty.wav', Buffer.alloc(0));
  t.match(await takemark('verify', join(directory, 'in')), { code: 3 }, 'a failure weighs more');
  service.verdict = { ...valid, verdict: 'tampered', good: false };
  t.match(
    await takemark('verify', path),
    { code: 1, out: /^✘ TAMPERED/ },
    'no credential is good by its evidence',
  );
});

t.test('a first reason makes the sentence', async (t) => {
  const { service, takemark, file } = await setUp(t);
  const path = await file('song.mp3');
  for (const [reason, sentence] of [
    ['container_unsupported', /needs its sidecar/],
    ['credential_missing', /no credential in it/],
    ['binding_mismatch', /differs from the file/],
    ['something_new', /No readable proof was found/],
  ] as const) {
    service.verdict = {
      verdict: 'unreadable',
      good: false,
      decision: { status: 'invalid_proof', reasons: [reason], recommendedAction: 'confirm_file' },
    };
    t.match(await takemark('verify', path), { code: 1, out: sentence }, reason);
  }
});

t.test('a file is described in words before anything is sent', async (t) => {
  const { service, takemark, file, directory } = await setUp(t);
  const empty = await file('empty.wav', Buffer.alloc(0));
  t.match(await takemark('verify', empty), { code: 3, out: '', err: /empty\.wav: the file is empty\n$/ });
  t.match(await takemark('verify', join(directory, 'absent.wav')), {
    code: 3,
    err: /absent\.wav: no such file or directory\n$/,
  });
  t.match(await takemark('verify', join(empty, 'x.wav')), {
    code: 3,
    err: /x\.wav: a part of the path is not a directory\n$/,
  });
  t.match(await takemark('identify', join(directory, 'absent.wav')), {
    code: 3,
    err: /absent\.wav: no such file or directory/,
  });
  t.equal(service.seen.length, 0);
});

t.test('a sidecar that is named brings its audio', async (t) => {
  const { service, takemark, file, directory } = await setUp(t);
  const sidecar = await file('a/song.sidecar', Buffer.from('abc'));
  t.match(await takemark('verify', sidecar), { code: 3, err: /no audio beside this sidecar/ });
  await file('a/song.mp3');
  t.match(await takemark('verify', sidecar), { code: 0, out: /^✔ VALID {2}song\.mp3\n/ });
  t.match(service.requests('/v1/verifications').at(-1)!.text, /name="sidecar"[\s\S]{1,90}\r\n\r\nabc\r\n--/);
  await file('a/song.wav');
  t.match(
    await takemark('verify', sidecar),
    { code: 0, out: /song\.mp3/ },
    'a WAV beside it speaks for itself',
  );
  await writeFile(join(directory, 'a/song.flac'), 'x');
  t.match(await takemark('verify', sidecar), { code: 5, err: /song\.sidecar may be the sidecar of/ });
});

t.test(
  'a remembered verdict is asked for anew where its evidence has come to ask for a decision',
  async (t) => {
    const { service, takemark, file, directory } = await setUp(t);
    const path = await file('song.wav');
    const audio = { container: 'riff', bytes: 1044, sha256: '' };
    const verified = {
      status: 'verified_binding',
      reasons: ['credential_verified'],
      recommendedAction: 'accept_credential',
    };
    let decision = verified;
    service.on('/v1/verifications', () => ({
      status: 200,
      body: {
        verdict: 'valid',
        good: true,
        proofId: 'prf_1',
        decision,
        audio: { ...audio, sha256: service.requests('/v1/verifications').at(-1)?.fileSha256 },
      },
    }));
    const report = {
      conflicts: [],
      unverifiable: [],
      facts: [{ code: 'creator_declaration', status: 'declared' }],
    };
    let evidenceReport = report;
    service.on('/v1/records/prf_1', () => ({ status: 200, body: { proofId: 'prf_1', evidenceReport } }));
    const verify = () => takemark('verify', path, '--resume', join(directory, 'state'));
    t.match(await verify(), { code: 0 });
    t.match(await verify(), { code: 0, err: /1 from the state file/ });
    evidenceReport = { ...report, facts: [{ code: 'creator_declaration', status: 'needs_review' }] };
    decision = { ...verified, status: 'needs_review', recommendedAction: 'review' };
    t.match(await verify(), { code: 4, err: /1 need review/ });
    t.match(await verify(), { code: 4, err: /1 from the state file/ });
    evidenceReport = report;
    decision = verified;
    t.match(await verify(), { code: 0 });
    t.equal(service.requests('/v1/verifications').length, 3);
  },
);

t.test('what says what to do is kept, and health sends its question over plain http', async (t) => {
  t.equal(
    errorText(
      new Error('make one first', {
        cause: Object.assign(new Error('ENOENT'), { code: 'ENOENT', path: '/x' }),
      }),
    ),
    'make one first',
  );
  t.equal(
    errorText(Object.assign(new Error('ENOENT'), { code: 'ENOENT', path: '/x' })),
    '/x: no such file or directory',
  );
  const { takemark } = await setUp(t, { url: 'http://0.0.0.0:1' });
  t.match(await takemark('health'), {
    code: 3,
    err: /no answer from the service at http:\/\/0\.0\.0\.0:1/,
  });
  t.match(await takemark('usage'), { code: 2, err: /would expose the secret/ });
});

t.test('a long table names once more what is not good, and --quiet nothing else', async (t) => {
  const { service, takemark, file, directory } = await setUp(t);
  for (let at = 0; at < 24; at += 1) await file(`in/${String(at).padStart(2, '0')}.wav`);
  await file('in/empty.wav', Buffer.alloc(0));
  service.queue('/v1/verifications', { status: 200, body: { verdict: 'tampered', good: false } });
  const folder = join(directory, 'in');
  const words = ['verify', folder, '--concurrency', '1', '--ordered'];
  const long = await takemark(...words);
  t.equal(long.out.trim().split('\n').length, 2 + 25);
  t.match(
    long.err,
    `25 files: 23 good, 1 not good, 1 failed\n  ${folder}/00.wav: TAMPERED\n  ${folder}/empty.wav: the file is empty\n`,
  );
  service.queue('/v1/verifications', { status: 200, body: { verdict: 'tampered', good: false } });
  const quiet = await takemark(...words, '--quiet');
  t.equal(quiet.code, 3);
  t.match(quiet.out.trim().split('\n').slice(2), [/TAMPERED .*00\.wav/, /FAILED .*empty\.wav/]);
  t.equal(quiet.out.trim().split('\n').length, 4);
  t.equal(quiet.err, '25 files: 23 good, 1 not good, 1 failed\n');
});
