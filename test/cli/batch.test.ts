import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { appendFile, chmod, mkdir, readFile, rm, symlink, truncate, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import t from 'tap';
import { findAudio } from '../../src/cli/batch/find-audio.js';
import { ResumeFile } from '../../src/cli/batch/resume-file.js';
import { csvLine } from '../../src/cli/batch/row-formats.js';
import { runBatch } from '../../src/cli/batch/run-batch.js';
import { formatDuration, Terminal } from '../../src/cli/terminal.js';
import type { ServiceDouble } from '../client/service-double.js';
import { collectGarbage } from '../fixtures/garbage.js';
import { MAIN, setUp } from './bench.js';

/** The double's verdict on a file is the file's own content. */
function contentDecides(service: ServiceDouble): void {
  const verdicts = new Map(['valid', 'tampered', 'unregistered'].map((verdict) => [createHash('sha256').update(verdict).digest('hex'), verdict]));
  service.on('/v1/verify', (seen) => {
    const { uploadId } = JSON.parse(seen.text) as { uploadId: string };
    const digest = service.requests('/uploads').findLast(({ path }) => path.endsWith(`/${uploadId}`))?.fileSha256 ?? '';
    const verdict = verdicts.get(digest) ?? 'unreadable';
    return { status: 200, body: { verdict, good: verdict === 'valid', decision: { reasons: [`because_${verdict}`], recommendedAction: 'reject' }, ...(verdict === 'valid' ? { proofId: 'prf_1', issuedAt: 1_767_225_600 } : {}), audio: { container: 'riff', bytes: 8, sha256: digest } } };
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
  return out.split('\n').filter((line) => line !== '').map((line) => JSON.parse(line) as Line);
}

t.test('finds files, folders and pairs, in a stable order', async (t) => {
  const { directory, file } = await setUp(t);
  for (const name of ['b/z.wav', 'b/a.WAV', 'b/notes.txt', 'b/.hidden.wav', 'b/.git/x.wav', 'a.mp3', 'a.sidecar', 'a.wav', 'c.wav', 'c.sidecar', 'lonely.sidecar', 'album.wav/inner.aiff']) await file(name);
  await symlink(directory, join(directory, 'loop'));
  const find = async (operands: string[], pairs = true): Promise<string[]> => {
    const found: string[] = [];
    for await (const { path, ...rest } of findAudio(operands, { pairs })) {
      const shown = [path.replace(`${directory}/`, ''), ...('problem' in rest ? [rest.problem.slice(0, 30)] : rest.sidecar === undefined ? [] : ['+'])];
      found.push(shown.join(' '));
    }
    return found;
  };
  t.same(await find([directory]), ['a.mp3 +', 'a.wav', 'c.wav +', 'lonely.sidecar no audio beside this sidecar', 'album.wav/inner.aiff', 'b/a.WAV', 'b/z.wav']);
  t.same(await find([directory], false), ['a.mp3', 'a.wav', 'c.wav', 'album.wav/inner.aiff', 'b/a.WAV', 'b/z.wav']);
  const named = (...names: string[]): string[] => names.map((name) => join(directory, name));
  t.same(await find(named('c.sidecar', 'c.wav', 'a.sidecar', 'a.sidecar', 'b/notes.txt', 'absent.wav', 'lonely.sidecar')), [
    'c.wav +',
    'a.mp3 +',
    'a.wav',
    'b/notes.txt',
    'absent.wav ENOENT: no such file or direct',
    'lonely.sidecar no audio beside this sidecar',
  ], 'a sidecar means its audio, and what is named is judged');
  await mkdir(join(directory, 'closed'));
  if (process.getuid?.() !== 0) {
    await chmod(join(directory, 'closed'), 0);
    t.match((await find([directory])).at(-1), /closed EACCES/);
    await chmod(join(directory, 'closed'), 0o700);
  }
});

t.test('a batch: rows, counts and exit codes', async (t) => {
  const { service, directory, file, takemark, onTerminal } = await setUp(t);
  contentDecides(service);
  const folder = join(directory, 'in');
  for (const name of ['1.wav', '2.wav', '3.mp3', '3.sidecar']) await file(`in/${name}`, Buffer.from('valid'));
  const good = await takemark('verify', folder, '--format', 'jsonl', '--ordered');
  t.match(good, { code: 0, err: '3 files: 3 good, 0 not good, 0 failed\n' });
  t.match(lines(good.out), [{ file: join(folder, '1.wav'), outcome: 'good', result: { accepted: true, proofId: 'prf_1' } }, {}, { file: join(folder, '3.mp3'), sidecar: join(folder, '3.sidecar') }]);
  t.equal(service.requests('/v1/verify').filter((seen) => seen.text.includes('sidecar')).length, 1);

  await file('in/4.wav', Buffer.from('tampered'));
  t.match(await takemark('verify', folder), { code: 1, err: '4 files: 3 good, 1 not good, 0 failed\n', out: /^verdict +proof +file\n─+ .*\n[^]*✘ TAMPERED +- +\S+4\.wav {2}because_tampered\n/ });
  const gone = await takemark('verify', folder, join(directory, 'absent.wav'), '--format', 'jsonl', '--ordered');
  t.match(gone, { code: 3, err: '5 files: 3 good, 1 not good, 1 failed\n' }, 'trouble with one file is not fatal, and not good');
  t.match(lines(gone.out).at(-1), { file: join(directory, 'absent.wav'), outcome: 'failed', error: { message: /ENOENT/ } });

  service.queue('/uploads', { status: 503, headers: { 'retry-after': '0' } }, { status: 200, drop: true });
  service.queue('/v1/verify', { status: 429, headers: { 'retry-after': '0' } });
  service.queue('/v1/uploads', { status: 409, body: { error: 'Odd.', code: 'conflict', reason: 'odd' } });
  const rough = await takemark('verify', folder, '--format', 'jsonl', '--concurrency', '1');
  t.match(rough, { code: 3, err: '4 files: 2 good, 1 not good, 1 failed\n' }, 'what passes is waited for, what does not is a row');
  t.match(lines(rough.out)[0], { outcome: 'failed', error: { message: 'Odd.', code: 'conflict', status: 409, reason: 'odd', requestId: /^rq_/ } });

  const shown = await onTerminal('verify', folder);
  t.match(shown.err, /\d(\/4)? files/);
  t.ok(shown.err.includes('\r\u001b[2K'));
  t.match(await takemark('verify', await file('empty/notes.txt').then(() => join(directory, 'empty'))), { code: 3, err: /there is no audio to verify/ }, 'nothing is not all good');
  t.match(await takemark('verify', join(folder, '1.wav')), { code: 0, out: /^✔ VALID {2}1\.wav/ }, 'one file is explained');
  t.match(await takemark('verify', join(folder, '3.mp3')), { code: 0, out: /sidecar +\S+3\.sidecar/ });
});

t.test('trouble that every file would meet ends the batch', async (t) => {
  const { service, directory, file, takemark } = await setUp(t);
  for (let at = 0; at < 20; at += 1) await file(`in/${at}.wav`);
  const folder = join(directory, 'in');
  const posts = (): number => service.requests('/v1/uploads').length;
  service.on('/v1/uploads', () => ({ status: 403, body: { error: 'The key is not valid.', code: 'forbidden' } }));
  t.match(await takemark('verify', folder, '--concurrency', '2'), { code: 3, err: /\ntakemark: stopped: The key is not valid\.\n$/ });
  t.ok(posts() <= 4, `${posts()} calls`);
  const before = posts();
  service.on('/v1/uploads', () => ({ status: 429, headers: { 'retry-after': '86400' }, body: { error: 'No units left.', code: 'rate_limited', reason: 'quota_exceeded' } }));
  t.match(await takemark('verify', folder, '--resume', join(directory, 'state'), '--concurrency', '2'), { code: 3, err: /stopped: No units left\. The service asks to wait 86400 s; run again with the same state file then\n$/ });
  t.ok(posts() - before <= 4);
  service.queue('/v1/health', ...Array.from({ length: 4 }, () => ({ status: 200, drop: true })));
  t.match(await takemark('verify', folder), { code: 3, err: /^takemark: no answer from the service at http/ });
  const interrupted = await setUp(t, { signal: AbortSignal.timeout(300) });
  interrupted.service.on('/v1/verify', () => new Promise(() => undefined));
  t.match(await interrupted.takemark('verify', folder), { code: 130, err: /takemark: interrupted\n$/ });
});

t.test('resume: what is finished is not done again', async (t) => {
  const { service, directory, file, takemark } = await setUp(t);
  contentDecides(service);
  const folder = join(directory, 'in');
  const state = join(directory, 'state.jsonl');
  await file('in/good.wav', Buffer.from('valid'));
  await file('in/bad.wav', Buffer.from('tampered'));
  await file('in/pair.mp3', Buffer.from('valid'));
  await file('in/pair.sidecar', Buffer.from('s1'));
  const verify = (): ReturnType<typeof takemark> => takemark('verify', folder, '--resume', state, '--format', 'jsonl', '--ordered');
  service.queue('/v1/uploads', { status: 409 });
  const first = await takemark('verify', folder, '--resume', state, '--format', 'jsonl', '--ordered', '--concurrency', '1');
  t.match(first, { code: 3, err: '3 files: 2 good, 0 not good, 1 failed\n' });
  const second = await verify();
  t.match(second, { code: 1, err: '3 files: 2 good, 1 not good, 0 failed (2 known from the state file)\n' }, 'a failure is tried again');
  t.equal(service.requests('/uploads').length, 3);
  const third = await verify();
  t.match(third, { code: 1, err: /3 known from the state file/ }, 'a bad verdict stays one');
  t.equal(third.out, second.out, 'and the report is whole');
  t.equal(service.requests('/uploads').length, 3);

  await file('in/pair.sidecar', Buffer.from('s2, longer'));
  await file('in/bad.wav', Buffer.from('valid'));
  const touched = new Date(1_700_000_000_000);
  await utimes(join(folder, 'good.wav'), touched, touched);
  t.match(await verify(), { code: 0, err: '3 files: 3 good, 0 not good, 0 failed\n' }, 'size, time and sidecar count');
  t.equal(service.requests('/uploads').length, 6);

  // The end of the last line is lost, as in a power cut.
  const { length } = await readFile(state);
  await truncate(state, length - 5);
  t.match(await verify(), { code: 0, err: /2 known/ });
  t.match(await verify(), { code: 0, err: /3 known/ }, 'nothing was glued to the torn line');
  await appendFile(state, 'garbage\n{"key":"short"}\n');
  t.match(await verify(), { code: 0, err: /3 known/ });
  await writeFile(state, '{"takemark":"ver');
  t.match(await verify(), { code: 0, err: '3 files: 3 good, 0 not good, 0 failed\n' }, 'a header that was cut off is made anew');
  const song = await file('song.txt', Buffer.from('not a state file'));
  t.match(await takemark('verify', folder, '--resume', song), { code: 2, err: /is not a state file/ });
  t.equal(await readFile(song, 'utf8'), 'not a state file');
  await rm(state);
  service.on('/v1/verify', async () => {
    await writeFile(join(folder, 'good.wav'), 'changed meanwhile');
    return { status: 200, body: { verdict: 'valid', good: true } };
  });
  await verify();
  t.match(await verify(), { err: /2 known/ }, 'a file that changed on its way is not remembered');
});

t.test('the state file: many at once, long rows, and places', async (t) => {
  const { directory } = await setUp(t);
  const path = join(directory, 'state');
  const key = (at: number): string => String(at).padStart(24, '0');
  const row = (at: number) => ({ file: `ü${at}`, outcome: 'good', result: { verdict: 'valid', pad: 'ü'.repeat(at * 700) } }) as never;
  const written = await ResumeFile.open(path);
  await Promise.all(Array.from({ length: 300 }, (_, at) => written.append(key(at), row(at))));
  await written.close();
  const read = await ResumeFile.open(path);
  for (const at of [0, 1, 2, 7, 150, 299]) t.same(await read.find(key(at)), row(at));
  t.equal(await read.find(key(300)), undefined);
  await read.close();
});

t.test('killed and run again, everything is verified and remembered once', async (t) => {
  const { service, directory, file } = await setUp(t);
  contentDecides(service);
  const verdict = service.on.bind(service);
  const total = 12;
  for (let at = 0; at < total; at += 1) await file(`in/${at}.wav`, Buffer.from('valid'));
  const state = join(directory, 'state');
  const start = (): ReturnType<typeof spawn> => spawn(process.execPath, [MAIN, 'verify', join(directory, 'in'), '--resume', state, '--format', 'jsonl', '--concurrency', '2'], { env: { TAKEMARK_URL: service.url, TAKEMARK_API_KEY: 'k' } });
  let answered = 0;
  const stuck = new Promise<void>((resolve) => {
    verdict('/v1/verify', () => {
      answered += 1;
      if (answered <= 7) return { status: 200, body: { verdict: 'valid', good: true } };
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
  const remembered = (await readFile(state, 'utf8')).split('\n').filter((line) => line.startsWith('{"key"')).length;
  t.ok(remembered >= reported.length, 'what was reported is on disk');
  t.ok(remembered >= 6 && remembered <= 7, `${remembered} remembered`);

  contentDecides(service);
  const before = service.requests('/v1/verify').length;
  const again = start();
  const [out, err, [code]] = await Promise.all([text(again.stdout!), text(again.stderr!), once(again, 'close')]);
  t.match({ code, err }, { code: 0, err: `${total} files: ${total} good, 0 not good, 0 failed (${remembered} known from the state file)\n` });
  t.equal(new Set(lines(out).map((line) => line.file)).size, total);
  t.equal(service.requests('/v1/verify').length - before, total - remembered);
});

t.test('CSV: RFC 4180, and no formulas', async (t) => {
  t.equal(csvLine(['a,b', 'say "hi"', 'two\r\nlines', '']), '"a,b","say ""hi""","two\r\nlines",""\r\n');
  for (const formula of ['=1+1', '+1', '-1', '@SUM(A1)', ' =1', '\t=1', '\r=1', '\n1', '"=1', '＝1', "'=1"]) t.match(csvLine([formula]), /^"'/, JSON.stringify(formula));
  for (const plain of ['a=1', '/music/=x.wav', '1.wav']) t.match(csvLine([plain]), /^"[^']/);
  const { service, directory, takemark, file } = await setUp(t);
  contentDecides(service);
  await file('in/=cmd|x,"y".wav', Buffer.from('valid'));
  await file('in/b.wav', Buffer.from('tampered'));
  const folder = join(directory, 'in');
  const { code, out } = await takemark('verify', folder, join(folder, 'absent.wav'), '--format', 'csv', '--ordered');
  t.equal(code, 3);
  const [head, first, second, third, end] = out.split('\r\n');
  t.equal(head, '"file","sidecar","outcome","verdict","proof_id","issued_at","reason","recommended_action","sha256","request_id","error"');
  t.match(first, new RegExp(`^"${folder}/=cmd\\|x,""y"".wav","","good","valid","prf_1","1767225600","because_valid","reject","[0-9a-f]{64}","rq_\\d+",""$`));
  t.match(second, /"not_good","tampered","","","because_tampered"/);
  t.match(third, /"failed","","","","","","","","ENOENT/);
  t.equal(end, '');
});

t.test('the bar tells rate and remaining time', async (t) => {
  let written = '';
  const bar = new Terminal({ write: () => true }, { isTTY: true, columns: 120, write: (chunk: string) => ((written += chunk), true) }).progressBar('');
  await new Promise((resolve) => setTimeout(resolve, 60));
  bar.update(60_000_000, 100_000_000, { label: '6/10 files', workedBytes: 40_000_000 });
  t.match(written, /6\/10 files {2}█+░+ {2}60% {2}60\.0 MB of 100\.0 MB {2}[\d.]+ MB\/s {2}\d+:\d\d left$/);
  t.same([0.2, 59.1, 3_599.5, 7_325].map(formatDuration), ['0:01', '1:00', '1:00:00', '2:02:05']);
});

t.test('a batch of any length takes constant memory, in order or not', async (t) => {
  const jobs = 120_000;
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
        else if (job % 1_000 < 20) await new Promise((resolve) => setImmediate(resolve));
        busy -= 1;
        return { job, pad: `${job}`.repeat(100) };
      },
      report: ({ job }) => {
        inOrder &&= job === next;
        next += 1;
        reported += 1;
        if (reported % 30_000 !== 0) return;
        collectGarbage();
        peak = Math.max(peak, process.memoryUsage().heapUsed - start);
      },
      stopped: () => false,
    });
    t.match({ reported, mostBusy }, { reported: jobs, mostBusy: 8 });
    t.equal(inOrder, ordered);
    // All the rows together would be 60 MB and more.
    t.ok(peak < 4 * 1024 * 1024, `${Math.round(peak / 1024)} KiB`);
  }
  await t.rejects(runBatch({ jobs: (async function* () { yield* [1, 2, 3]; })(), concurrency: 2, ordered: true, work: async () => Promise.reject(new Error('disk full')), report: () => undefined, stopped: () => false }), /disk full/);
});
