import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { chmod, copyFile, mkdir, readFile, rm, symlink, truncate, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import t from 'tap';
import { findAudio } from '../../src/cli/batch/find-audio.js';
import { csvLine } from '../../src/cli/batch/result-formats.js';
import { ResumeFile } from '../../src/cli/batch/resume-file.js';
import { runBatch } from '../../src/cli/batch/run-batch.js';
import { formatDuration, printable, Terminal } from '../../src/cli/terminal.js';
import type { ServiceDouble } from '../client/service-double.js';
import { collectGarbage } from '../fixtures/garbage.js';
import { sized } from '../fixtures/sampling.js';
import { MAIN, setUp } from './bench.js';

/** Makes the double take a file's own content as its verdict, or answer `unreadable` to any other content. */
function contentDecides(service: ServiceDouble): void {
  service.on('/v1/records/prf_1', () => ({ status: 200, body: { proofId: 'prf_1' } }));
  const verdicts = new Map(
    ['valid', 'tampered', 'unregistered'].map((verdict) => [
      createHash('sha256').update(verdict).digest('hex'),
      verdict,
    ]),
  );
  service.on('/v1/verifications', (seen) => {
    const digest = seen.fileSha256 ?? '';
    const verdict = verdicts.get(digest) ?? 'unreadable';
    return {
      status: 200,
      body: {
        verdict,
        good: verdict === 'valid',
        decision: { reasons: [`because_${verdict}`], recommendedAction: 'reject' },
        ...(verdict === 'valid' ? { proofId: 'prf_1', issuedAt: 1_767_225_600 } : {}),
        audio: { container: 'riff', bytes: 8, sha256: digest },
      },
    };
  });
}

interface Line {
  readonly file: string;
  readonly sidecar?: string;
  readonly outcome: string;
  readonly result?: { readonly verdict: string };
  readonly error?: { readonly message: string; readonly reason?: string };
}

function lines(out: string): Line[] {
  return out
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Line);
}

t.test('files, folders and pairs are found in a stable order', async (t) => {
  const { directory, file } = await setUp(t);
  for (const name of [
    'b/z.wav',
    'b/a.WAV',
    'b/notes.txt',
    'b/.hidden.wav',
    'b/.git/x.wav',
    'a.mp3',
    'a.sidecar',
    'a.wav',
    'c.wav',
    'c.sidecar',
    'lonely.sidecar',
    'album.wav/inner.aiff',
  ])
    await file(name);
  await symlink(directory, join(directory, 'loop'));
  const others: string[] = [];
  const find = async (operands: string[], pairs = true): Promise<string[]> => {
    const found: string[] = [];
    others.length = 0;
    for await (const { path, ...rest } of findAudio(operands, { pairs, followLinks: false })) {
      const shown = path.replace(`${directory}/`, '');
      if ('passedOver' in rest) others.push(`${shown} ${rest.passedOver}`);
      else
        found.push(
          [
            shown,
            ...('problem' in rest ? [rest.problem.slice(0, 30)] : rest.sidecar === undefined ? [] : ['+']),
          ].join(' '),
        );
    }
    return found;
  };
  t.strictSame(await find([directory]), [
    'a.mp3 +',
    'a.wav',
    'c.wav +',
    'lonely.sidecar no audio beside this sidecar',
    'album.wav/inner.aiff',
    'b/a.WAV',
    'b/z.wav',
  ]);
  t.strictSame(
    others,
    ['loop a link to a directory', 'b/.git hidden', 'b/.hidden.wav hidden', 'b/notes.txt no audio extension'],
    'skipped files are reported',
  );
  t.strictSame(await find([directory], false), [
    'a.mp3',
    'a.wav',
    'c.wav',
    'album.wav/inner.aiff',
    'b/a.WAV',
    'b/z.wav',
  ]);
  const named = (...names: string[]): string[] => names.map((name) => join(directory, name));
  t.strictSame(
    await find(
      named('c.sidecar', 'c.wav', 'a.sidecar', 'a.sidecar', 'b/notes.txt', 'absent.wav', 'lonely.sidecar'),
    ),
    [
      'c.wav +',
      'a.mp3 +',
      'a.wav',
      'b/notes.txt',
      'absent.wav no such file or directory',
      'lonely.sidecar no audio beside this sidecar',
    ],
    'a sidecar means its audio, and what is named is judged',
  );
  t.strictSame(
    await find(['c.wav', 'c.sidecar', 'lonely.sidecar'].map((name) => `${directory}/./${name}`)),
    ['./c.wav +', 'lonely.sidecar no audio beside this sidecar'],
    'a sidecar without audio is reported whatever form its path has',
  );
  await mkdir(join(directory, 'closed'));
  if (process.getuid?.() !== 0) {
    await chmod(join(directory, 'closed'), 0);
    t.match((await find([directory])).at(-1), /closed permission denied/);
    await chmod(join(directory, 'closed'), 0o700);
  }
});

t.test('a sidecar that is a pipe or a device fails its file, and holds up nothing', async (t) => {
  const { directory, file, takemark } = await setUp(t);
  await file('in/1.wav');
  const audio = await file('in/2.mp3');
  execFileSync('mkfifo', [join(directory, 'in', '2.sidecar')]);
  const { code, out, err } = await takemark('verify', join(directory, 'in'));
  t.match({ code, err }, { code: 3, err: '2 files: 1 good, 0 not good, 1 failed\n' });
  t.match(out, /FAILED .*2\.mp3 \+ sidecar {2}the sidecar is not a regular file/);
  t.match(await takemark('verify', audio, '--sidecar', '/dev/zero'), { code: 3, err: /not a regular file/ });
});

t.test('an answer without a verdict fails its file, and the batch continues', async (t) => {
  const { service, directory, file, takemark } = await setUp(t);
  for (const name of ['1.wav', '2.wav', '3.wav']) await file(`in/${name}`);
  for (const odd of [{ decision: { status: 'rejected' } }, { decision: 'no' }, { proofId: 7 }, { good: 1 }]) {
    let answers = 0;
    service.on('/v1/verifications', () => {
      answers += 1;
      return { status: 200, body: { verdict: 'tampered', good: false, ...(answers === 2 ? odd : {}) } };
    });
    for (const format of ['table', 'csv', 'jsonl']) {
      answers = 0;
      t.match(
        await takemark('verify', join(directory, 'in'), '--format', format, '--concurrency', '1'),
        { code: 3, out: /not a verification result/, err: '3 files: 0 good, 2 not good, 1 failed\n' },
        `${JSON.stringify(odd)} ${format}`,
      );
    }
  }
});

t.test('a batch reports every file, counts them and exits by the worst', async (t) => {
  const { service, directory, file, takemark, onTerminal } = await setUp(t);
  contentDecides(service);
  const folder = join(directory, 'in');
  for (const name of ['1.wav', '2.wav', '3.mp3', '3.sidecar']) await file(`in/${name}`, Buffer.from('valid'));
  const good = await takemark('verify', folder, '--format', 'jsonl', '--ordered');
  t.match(good, { code: 0, err: '3 files: 3 good, 0 not good, 0 failed\n' });
  t.match(lines(good.out), [
    { file: join(folder, '1.wav'), outcome: 'good', result: { accepted: true, proofId: 'prf_1' } },
    {},
    { file: join(folder, '3.mp3'), sidecar: join(folder, '3.sidecar') },
  ]);
  t.equal(
    service.requests('/v1/verifications').filter((seen) => seen.text.includes('name="sidecar"')).length,
    1,
  );

  await file('in/4.wav', Buffer.from('tampered'));
  t.match(await takemark('verify', folder), {
    code: 1,
    err: '4 files: 3 good, 1 not good, 0 failed\n',
    out: /^verdict +proof +file +reason\n─+ .*\n[\s\S]*✘ TAMPERED +- +\S+4\.wav +because_tampered\n/,
  });
  const gone = await takemark(
    'verify',
    folder,
    join(directory, 'absent.wav'),
    '--format',
    'jsonl',
    '--ordered',
  );
  t.match(
    gone,
    { code: 3, err: '5 files: 3 good, 1 not good, 1 failed\n' },
    'trouble with one file is not fatal, and not good',
  );
  t.match(lines(gone.out).at(-1), {
    file: join(directory, 'absent.wav'),
    outcome: 'failed',
    error: { message: /no such file or directory/ },
  });

  service.queue(
    '/v1/verifications',
    { status: 409, body: { error: 'Odd.', code: 'conflict', reason: 'odd' } },
    { status: 503, headers: { 'retry-after': '0' } },
    { status: 200, drop: true },
    { status: 429, headers: { 'retry-after': '0' } },
  );
  const rough = await takemark('verify', folder, '--format', 'jsonl', '--concurrency', '1');
  t.match(
    rough,
    { code: 3, err: '4 files: 2 good, 1 not good, 1 failed\n' },
    'what passes is waited for, what does not is a row',
  );
  t.match(lines(rough.out)[0], {
    outcome: 'failed',
    error: { message: 'Odd.', code: 'conflict', status: 409, reason: 'odd', requestId: /^rq_/ },
  });

  const shown = await onTerminal('verify', folder);
  t.match(shown.err, /\d(\/4)? files/);
  t.ok(shown.err.includes('\r\u001b[2K'));
  t.match(
    await takemark('verify', await file('empty/notes.txt').then(() => join(directory, 'empty'))),
    { code: 3, err: /no audio files found/ },
    'nothing is not all good',
  );
  t.match(
    await takemark('verify', join(folder, '1.wav')),
    { code: 0, out: /^✔ VALID {2}1\.wav/ },
    'one file is explained',
  );
  t.match(await takemark('verify', join(folder, '3.mp3')), { code: 0, out: /sidecar +\S+3\.sidecar/ });
});

t.test('a failure that every file would meet ends the batch', async (t) => {
  const { service, directory, file, takemark } = await setUp(t);
  for (let at = 0; at < 20; at += 1) await file(`in/${at}.wav`);
  const folder = join(directory, 'in');
  const posts = (): number => service.requests('/v1/verifications').length;
  service.on('/v1/verifications', () => ({
    status: 403,
    body: { error: 'The key is not valid.', code: 'forbidden' },
  }));
  t.match(await takemark('verify', folder, '--concurrency', '2'), {
    code: 3,
    err: /\ntakemark: stopped: The key is not valid\.\n$/,
  });
  t.ok(posts() <= 4, `${posts()} calls`);
  const before = posts();
  service.on('/v1/verifications', () => ({
    status: 429,
    headers: { 'retry-after': '86400' },
    body: { error: 'No units left.', code: 'rate_limited', reason: 'quota_exceeded' },
  }));
  t.match(await takemark('verify', folder, '--resume', join(directory, 'state'), '--concurrency', '2'), {
    code: 3,
    err: /stopped: No units left\. The service asks to wait 86400 s; after that, run again with the same state file\n$/,
  });
  t.ok(posts() - before <= 4);
  service.queue('/v1/health', ...Array.from({ length: 4 }, () => ({ status: 200, drop: true })));
  t.match(await takemark('verify', folder), {
    code: 3,
    err: /^takemark: no answer from the service at http/,
  });
  const interruption = new AbortController();
  const interrupted = await setUp(t, { signal: interruption.signal });
  interrupted.service.on('/v1/verifications', () => {
    interruption.abort();
    return new Promise(() => undefined);
  });
  t.match(await interrupted.takemark('verify', folder), { code: 130, err: /takemark: interrupted\n$/ });
});

t.test('a resumed batch does not ask again for what is finished', async (t) => {
  const { service, directory, file, takemark } = await setUp(t);
  contentDecides(service);
  const folder = join(directory, 'in');
  const state = join(directory, 'state.jsonl');
  await file('in/good.wav', Buffer.from('valid'));
  await file('in/bad.wav', Buffer.from('tampered'));
  await file('in/pair.mp3', Buffer.from('valid'));
  await file('in/pair.sidecar', Buffer.from('s1'));
  const verify = (): ReturnType<typeof takemark> =>
    takemark('verify', folder, '--resume', state, '--format', 'jsonl', '--ordered');
  service.queue('/v1/verifications', { status: 409 });
  const first = await takemark(
    'verify',
    folder,
    '--resume',
    state,
    '--format',
    'jsonl',
    '--ordered',
    '--concurrency',
    '1',
  );
  t.match(first, { code: 3, err: '3 files: 2 good, 0 not good, 1 failed\n' });
  const second = await verify();
  t.match(
    second,
    { code: 1, err: '3 files: 2 good, 1 not good, 0 failed (2 from the state file)\n' },
    'a failure is tried again',
  );
  t.equal(service.requests('/v1/verifications').length, 4);
  const third = await verify();
  t.match(third, { code: 1, err: /3 from the state file/ }, 'a bad verdict stays one');
  t.equal(third.out, second.out, 'and the report is whole');
  t.equal(service.requests('/v1/verifications').length, 4);

  await file('in/pair.sidecar', Buffer.from('s2, longer'));
  await file('in/bad.wav', Buffer.from('valid'));
  const touched = new Date(1_700_000_000_000);
  await utimes(join(folder, 'good.wav'), touched, touched);
  t.match(
    await verify(),
    { code: 0, err: /^3 files: 3 good, 0 not good, 0 failed \(2 from the state file/ },
    'contents count, and not their place and time',
  );
  t.equal(service.requests('/v1/verifications').length, 5);

  // The end of the last line is lost, as in a power cut.
  const { length } = await readFile(state);
  await truncate(state, length - 5);
  t.match(await verify(), { code: 0, err: /2 from the state file/ });
  t.match(await verify(), { code: 0, err: /3 from the state file/ }, 'nothing was glued to the torn line');
  await writeFile(state, '{"takemark":"ver');
  t.match(
    await verify(),
    { code: 0, err: /^3 files: 3 good, 0 not good, 0 failed/ },
    'a header that was cut off is made anew',
  );
  const song = await file('song.txt', Buffer.from('not a state file'));
  t.match(await takemark('verify', folder, '--resume', song), { code: 2, err: /is not a state file/ });
  t.equal(await readFile(song, 'utf8'), 'not a state file');
  await rm(state);
  service.on('/v1/verifications', async () => {
    await writeFile(join(folder, 'good.wav'), 'changed meanwhile');
    return {
      status: 200,
      body: {
        verdict: 'valid',
        good: true,
        audio: { container: 'riff', bytes: 5, sha256: createHash('sha256').update('valid').digest('hex') },
      },
    };
  });
  await takemark('verify', join(folder, 'good.wav'), '--resume', state);
  t.match(
    await takemark('verify', join(folder, 'good.wav'), '--resume', state),
    { err: /^1 file: [^(]*\n$/ },
    'a verdict is on the judged bytes, not on the current ones',
  );
});

t.test('resume never reports valid when a file was not judged', async (t) => {
  const { service, directory, file, takemark } = await setUp(t);
  contentDecides(service);
  const folder = join(directory, 'in');
  const state = join(directory, 'state');
  const path = await file('in/song.wav', Buffer.from('valid'));
  const delivered = new Date(1_767_225_600_000);
  await utimes(path, delivered, delivered);
  await file('in/copy.wav', Buffer.from('valid'));
  const verify = (...more: string[]): ReturnType<typeof takemark> =>
    takemark('verify', folder, '--resume', state, '--format', 'jsonl', '--ordered', ...more);
  t.match(await verify(), { code: 0 });
  const sound = await readFile(state, 'utf8');

  await writeFile(path, 'VALID');
  await utimes(path, delivered, delivered);
  const replaced = await verify();
  t.match(
    replaced,
    { code: 1, err: /1 good, 1 not good/ },
    'other audio of the same size and time is judged anew',
  );
  t.match(
    lines(replaced.out).find((line) => line.file === path),
    { outcome: 'not_good', result: { verdict: 'unreadable' } },
  );
  await file('in/song.wav', Buffer.from('valid'));

  const calls = (): number => service.requests('/v1/verifications').length;
  const before = calls();
  t.match(await verify(), { code: 0, err: /2 from the state file/ });
  t.equal(calls(), before);
  for (const status of [404, 403]) {
    service.queue(
      '/v1/records/prf_1',
      ...Array.from({ length: 2 }, () => ({ status, body: { error: 'Not there.', code: 'x' } })),
    );
    service.queue(
      '/v1/verifications',
      ...Array.from({ length: 2 }, () => ({ status: 200, body: { verdict: 'unregistered', good: false } })),
    );
    t.match(
      await verify(),
      { code: 1, err: '2 files: 0 good, 2 not good, 0 failed\n' },
      'a proof that was erased since is not good',
    );
  }
  t.equal(calls(), before + 4);
  service.queue(
    '/v1/records/prf_1',
    ...Array.from({ length: 2 }, () => ({ status: 409, body: { error: 'Odd.', code: 'conflict' } })),
  );
  t.match(
    await verify(),
    { code: 3, err: '2 files: 0 good, 0 not good, 2 failed\n' },
    'trouble gives no verdict',
  );

  // A line of another hand: the MAC of a real line before other words, and no MAC at all.
  const digest = createHash('sha256').update('tampered').digest('hex');
  const forged = JSON.stringify({
    audio: digest,
    sidecar: null,
    at: Math.floor(Date.now() / 1000),
    result: { verdict: 'valid', good: true, accepted: true },
  });
  await file('in/song.wav', Buffer.from('tampered'));
  const [head, first] = sound.split('\n');
  for (const line of [
    `${first!.slice(0, 43)} ${forged}`,
    forged,
    `${'A'.repeat(43)} ${forged}`,
    '',
    'garbage',
    first!.replaceAll('valid', 'VALID'),
  ]) {
    await writeFile(state, `${head}\n${line}\n`);
    t.match(
      await verify(),
      { code: 1, err: /^1 line of the state file ignored[\s\S]*1 good, 1 not good, 0 failed\n/ },
      line.slice(0, 60),
    );
  }
  // A former state, and a row of another file in it.
  const former = `{"takemark":"verify state","version":1}\n{"key":"${'k'.repeat(24)}","row":{"file":"in/other.wav","outcome":"good","result":{"verdict":"valid","good":true,"accepted":true}}}\n`;
  await writeFile(state, former);
  t.match(await verify(), { code: 2, out: '', err: /of an older version without authentication/ });
  t.equal(await readFile(state, 'utf8'), former, 'and is left as it is');

  await file('in/song.wav', Buffer.from('valid'));
  await writeFile(state, sound);
  t.match(await verify(), { code: 0, err: /2 from the state file/ });
  await writeFile(state, sound);
  const otherKey = await setUp(t, { apiKey: 'tmk_other', url: service.url });
  t.match(
    await otherKey.takemark('verify', folder, '--resume', state),
    { code: 0, err: /^2 lines of the state file ignored[\s\S]*0 failed\n$/ },
    'a line of another key is not believed',
  );
  await writeFile(state, sound);
  service.on('/v1/health', () => ({
    status: 200,
    body: { ok: true, version: '1', commit: 'c', deployedAt: 1, environment: 'beta' },
  }));
  t.match(await verify(), { code: 0, err: /^2 lines[\s\S]*0 failed\n$/ }, 'nor one of another environment');
  const otherPlace = await setUp(t);
  contentDecides(otherPlace.service);
  await copyFile(state, join(otherPlace.directory, 'state'));
  t.match(
    await otherPlace.takemark('verify', folder, '--resume', join(otherPlace.directory, 'state')),
    { code: 0, err: /^4 lines[\s\S]*0 failed\n$/ },
    'nor one of another service',
  );
  t.match(await takemark('verify', folder, '--max-age', '2'), { code: 2, err: /--max-age needs --resume/ });
  t.match(await verify('--max-age', '0'), {
    code: 2,
    err: /--max-age .* a whole number from 1 to 8760/,
  });
});

t.test(
  'a state file takes many verdicts at once, and believes none too old or of another pair',
  async (t) => {
    const { directory } = await setUp(t);
    const path = join(directory, 'state');
    let now = 1_767_225_600;
    const trust = {
      apiKey: 'k',
      service: 'http://127.0.0.1/',
      environment: 'beta',
      maxAgeSeconds: 3600,
      now: () => now,
    };
    const judged = (at: number) => ({
      audio: createHash('sha256').update(String(at)).digest('hex'),
      sidecar: at % 2 === 0 ? undefined : 'ff',
    });
    const result = (at: number) => ({ verdict: 'valid', pad: 'ü'.repeat(at * 700) }) as never;
    const written = await ResumeFile.open(path, trust);
    await Promise.all(
      Array.from({ length: 300 }, (_, at) => written.append(judged(at), now - at, result(at))),
    );
    await written.append(judged(0), now + 3600, result(0));
    await written.close();
    const read = await ResumeFile.open(path, trust);
    t.equal(read.ignored, 1, 'a verdict of the future is not believed');
    for (const at of [0, 1, 2, 7, 150, 299]) t.strictSame(await read.find(judged(at)), result(at));
    t.equal(await read.find(judged(300)), undefined);
    t.equal(
      await read.find({ ...judged(1), sidecar: undefined }),
      undefined,
      'a verdict on a pair is none on its audio alone',
    );
    now += 3450;
    t.strictSame(await read.find(judged(149)), result(149));
    t.equal(await read.find(judged(150)), undefined, 'a verdict grows too old while a run lasts');
    await read.close();
    const later = await ResumeFile.open(path, trust);
    t.equal(later.ignored, 151);
    await later.close();
  },
);

t.test('killed and run again, everything is verified and remembered once', async (t) => {
  const { service, directory, file } = await setUp(t);
  const verdict = service.on.bind(service);
  const total = 12;
  for (let at = 0; at < total; at += 1) await file(`in/${at}.wav`, Buffer.from(`song ${at}`));
  const state = join(directory, 'state');
  const start = (): ReturnType<typeof spawn> =>
    spawn(
      process.execPath,
      [MAIN, 'verify', join(directory, 'in'), '--resume', state, '--format', 'jsonl', '--concurrency', '2'],
      { env: { TAKEMARK_URL: service.url, TAKEMARK_API_KEY: 'k' } },
    );
  let answered = 0;
  const stuck = new Promise<void>((resolve) => {
    verdict('/v1/verifications', (seen) => {
      answered += 1;
      const digest = seen.fileSha256;
      if (answered <= 7)
        return {
          status: 200,
          body: { verdict: 'tampered', good: false, audio: { container: 'riff', bytes: 5, sha256: digest } },
        };
      resolve();
      return new Promise(() => undefined);
    });
  });
  const killed = start();
  const partial = text(killed.stdout!);
  await stuck;
  killed.kill('SIGKILL');
  await once(killed, 'close');
  const reported = lines((await partial).slice(0, (await partial).lastIndexOf('\n') + 1));
  const remembered = (await readFile(state, 'utf8'))
    .split('\n')
    .filter((line) => line.includes('"audio"')).length;
  t.ok(remembered >= reported.length, 'what was reported is on disk');
  t.ok(remembered >= 6 && remembered <= 7, `${remembered} remembered`);

  verdict('/v1/verifications', (seen) => ({
    status: 200,
    body: {
      verdict: 'tampered',
      good: false,
      audio: { container: 'riff', bytes: 5, sha256: seen.fileSha256 },
    },
  }));
  const before = service.requests('/v1/verifications').length;
  const again = start();
  const [out, err, [code]] = await Promise.all([
    text(again.stdout!),
    text(again.stderr!),
    once(again, 'close'),
  ]);
  t.match(
    { code, err },
    {
      code: 1,
      err: `${total} files: 0 good, ${total} not good, 0 failed (${remembered} from the state file)\n`,
    },
  );
  t.equal(new Set(lines(out).map((line) => line.file)).size, total);
  t.equal(service.requests('/v1/verifications').length - before, total - remembered);
});

t.test('CSV follows RFC 4180 and holds no formula', async (t) => {
  t.equal(
    csvLine(['a,b', 'say "hi"', 'two\r\nlines', '']),
    '"a,b","say ""hi""","two\\u{d}\\u{a}lines",""\r\n',
  );
  for (const formula of ['=1+1', '+1', '-1', '@SUM(A1)', ' =1', '\t=1', '\r=1', '\n=1', '"=1', '＝1', "'=1"])
    t.match(csvLine([formula]), /^"'/, JSON.stringify(formula));
  for (const plain of ['a=1', '/music/=x.wav', '1.wav', '\n1', '\u200b=1'])
    t.match(csvLine([plain]), /^"[^']/);
  const { service, directory, takemark, file } = await setUp(t);
  contentDecides(service);
  await file('in/=cmd|x,"y".wav', Buffer.from('valid'));
  await file('in/b.wav', Buffer.from('tampered'));
  const folder = join(directory, 'in');
  const { code, out } = await takemark(
    'verify',
    folder,
    join(folder, 'absent.wav'),
    '--format',
    'csv',
    '--ordered',
  );
  t.equal(code, 3);
  const [head, first, second, third, end] = out.split('\r\n');
  t.equal(
    head,
    '"file","sidecar","outcome","verdict","status","proof_id","issued_at","reason","recommended_action","sha256","request_id","error"',
  );
  t.match(
    first,
    new RegExp(
      `^"${folder}/=cmd\\|x,""y"".wav","","good","valid","","prf_1","2026-01-01T00:00:00Z","because_valid","reject","[0-9a-f]{64}","rq_\\d+",""$`,
    ),
  );
  t.match(second, /"not_good","tampered","","","","because_tampered"/);
  t.match(third, /"failed","","","","","","","","","no such file or directory/);
  t.equal(end, '');
});

t.test('in every format each character of a name is seen, and none is lost', async (t) => {
  const { service, directory, takemark, file } = await setUp(t);
  contentDecides(service);
  const unseen = [
    '\u001b[31m',
    '\u0007',
    '\u007f',
    '\u009b',
    '\u00ad',
    '\u061c',
    '\u200b',
    '\u200d',
    '\u200e',
    '\u2028',
    '\u2029',
    '\u202e',
    '\u2066',
    '\u2069',
    '\ufeff',
    '\u{e0041}',
    '\ufe0f',
    '\u3164',
    '\r',
    '\n',
    '\t',
  ];
  const folder = join(directory, 'in');
  const names = [
    ...unseen.map((character, at) => `${at} ${character}gpj.wav`),
    '\\u{202e}.wav',
    'C\\users\\\u202e.wav',
    '日本 Straße é.wav',
  ];
  for (const name of names) await file(`in/${name}`, Buffer.from('valid'));
  // Everything that was printed, but the line ends of the formats.
  const visible = /^(?:[^\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]|\r?\n)*$/u;
  const restored = (text: string): string =>
    text.replaceAll(/\\u\{([0-9a-f]+)\}/g, (_, hex: string) => String.fromCodePoint(parseInt(hex, 16)));
  const expected = names.map((name) => join(folder, name)).sort();

  const jsonl = await takemark('verify', folder, join(directory, 'absent\u202e.wav'), '--format', 'jsonl');
  t.match(jsonl.out, visible);
  t.strictSame(
    lines(jsonl.out)
      .map((line) => line.file)
      .sort(),
    [...expected, join(directory, 'absent\u202e.wav')].sort(),
  );
  const csv = await takemark('verify', folder, '--format', 'csv');
  t.match(csv.out, visible);
  t.strictSame(
    csv.out
      .split('\r\n')
      .slice(1, -1)
      .map((line) => restored(/^"([^"]*)"/.exec(line)![1]!))
      .sort(),
    expected,
  );
  const table = await takemark('verify', folder);
  t.match(table.out, visible);
  t.strictSame(
    table.out
      .split('\n')
      .slice(2, -1)
      .map((line) => restored(line.slice(50)))
      .sort(),
    expected,
  );
  t.match((await takemark('verify', join(folder, names[11]!))).out, visible);
  t.equal(printable('日本 Straße é \\users'), '日本 Straße é \\users', 'what is seen is left as it is');
});

t.test('skipped files are reported, and links do not lead out of a delivery', async (t) => {
  const { service, directory, takemark, file } = await setUp(t);
  contentDecides(service);
  const folder = join(directory, 'in');
  await file('in/good.wav', Buffer.from('valid'));
  t.match(await takemark('verify', folder), { code: 0, err: '1 file: 1 good, 0 not good, 0 failed\n' });
  for (let at = 0; at < 9; at += 1) await file(`in/${at}.txt`);
  await file('in/.hidden.wav');
  await file('elsewhere/secret.wav', Buffer.from('valid'));
  await symlink(join(directory, 'elsewhere'), join(folder, 'linked'));
  const lenient = await takemark('verify', folder);
  t.match(lenient, {
    code: 0,
    err: /^1 file: 1 good, 0 not good, 0 failed\n11 other files skipped, including:\n {2}\S+\.hidden\.wav \(hidden\)\n {2}\S+0\.txt \(no audio extension\)\n/,
  });
  t.equal(lenient.err.split('\n').length, 13, 'ten of them by name');
  const strict = await takemark('verify', folder, '--strict', '--format', 'jsonl');
  t.match(strict, { code: 3, err: '12 files: 1 good, 0 not good, 11 failed\n' });
  t.match(
    lines(strict.out).find((line) => line.file.endsWith('.hidden.wav')),
    { outcome: 'failed', error: { message: 'skipped: hidden' } },
  );

  const uploads = (): number => service.requests('/v1/verifications').length;
  const pair = join(directory, 'pair');
  const secret = await file('elsewhere/key', Buffer.from('valid'));
  await file('pair/song.mp3', Buffer.from('valid'));
  await file('pair/deep/inner.wav', Buffer.from('valid'));
  await symlink(secret, join(pair, 'song.sidecar'));
  await symlink(secret, join(pair, 'passwd.wav'));
  await symlink(join(pair, 'deep', 'inner.wav'), join(pair, 'inside.wav'));
  const before = uploads();
  const linked = await takemark('verify', pair, '--format', 'jsonl', '--ordered');
  t.match(linked, { code: 3, err: '4 files: 2 good, 0 not good, 2 failed\n' });
  t.match(
    lines(linked.out).map(({ file: path, outcome, error }) => [
      path.replace(`${pair}/`, ''),
      outcome,
      error?.message,
    ]),
    [
      ['inside.wav', 'good', undefined],
      ['passwd.wav', 'failed', /passwd\.wav is a link out of the directory/],
      ['song.mp3', 'failed', /song\.sidecar is a link out of the directory/],
      ['deep/inner.wav', 'good', undefined],
    ],
  );
  t.match(
    await takemark('verify', join(pair, 'passwd.wav')),
    { code: 3, out: '', err: /is a link out of the directory/ },
    'nor is one that a shell has named',
  );
  t.match(await takemark('verify', join(pair, 'song.mp3')), {
    code: 3,
    out: '',
    err: /song\.sidecar is a link/,
  });
  t.match(await takemark('verify', join(folder, 'linked'), join(folder, 'good.wav')), {
    code: 3,
    err: /1 good, 0 not good, 1 failed/,
  });
  t.equal(uploads() - before, 3, 'nothing of elsewhere was sent');
  t.match(await takemark('verify', pair, '--follow-links'), {
    code: 0,
    err: '4 files: 4 good, 0 not good, 0 failed\n',
  });
  t.match(
    await takemark('verify', `${join(folder, 'linked')}/`),
    { code: 0, err: /1 file: 1 good/ },
    'a slash names the folder itself',
  );
});

t.test('the bar shows rate and remaining time', async (t) => {
  let written = '';
  const bar = new Terminal(
    { write: () => true },
    { isTTY: true, columns: 120, write: (chunk: string) => ((written += chunk), true) },
  ).progressBar('');
  await new Promise((resolve) => setTimeout(resolve, 60));
  bar.update(60_000_000, 100_000_000, { label: '6/10 files', workedBytes: 40_000_000 });
  t.match(written, /6\/10 files {2}█+░+ {2}60% {2}60\.0 MB of 100\.0 MB {2}[\d.]+ MB\/s {2}\d+:\d\d left$/);
  t.strictSame([0.2, 59.1, 3599.5, 7325].map(formatDuration), ['0:01', '1:00', '1:00:00', '2:02:05']);
});

t.test('a batch of any length takes constant memory, in order or not', async (t) => {
  const jobs = sized(120_000, 40_000);
  for (const ordered of [false, true]) {
    let next = 0;
    let reported = 0;
    let busy = 0;
    let mostBusy = 0;
    let inOrder = true;
    let peak = 0;
    collectGarbage();
    const start = process.memoryUsage().heapUsed;
    await runBatch({
      jobs: (async function* () {
        for (let at = 0; at < jobs; at += 1) yield at;
      })(),
      concurrency: 8,
      ordered,
      work: async (job) => {
        busy += 1;
        mostBusy = Math.max(mostBusy, busy);
        // The first one is the last to finish for a while: the others must not run away from it.
        if (job === 0) await new Promise((resolve) => setTimeout(resolve, 50));
        else if (job % 1000 < 20) await new Promise((resolve) => setImmediate(resolve));
        busy -= 1;
        return { job, pad: `${job}`.repeat(100) };
      },
      report: ({ job }) => {
        inOrder &&= job === next;
        next += 1;
        reported += 1;
        if (reported % 10_000 !== 0) return;
        collectGarbage();
        peak = Math.max(peak, process.memoryUsage().heapUsed - start);
      },
      stopped: () => false,
    });
    t.match({ reported, mostBusy }, { reported: jobs, mostBusy: 8 });
    t.equal(inOrder, ordered);
    // All the rows together would be 20 MB and more.
    t.ok(peak < 12 * 1024 * 1024, `${Math.round(peak / 1024)} KiB`);
  }
  await t.rejects(
    runBatch({
      jobs: (async function* () {
        yield* [1, 2, 3];
      })(),
      concurrency: 2,
      ordered: true,
      work: async () => Promise.reject(new Error('disk full')),
      report: () => undefined,
      stopped: () => false,
    }),
    /disk full/,
  );
});
