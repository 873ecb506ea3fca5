/**
 * The examples of each language, against the service and against scripted answers. An example whose language is
 * not installed is skipped; in CI each of them runs.
 */
import { createHash } from 'node:crypto';
import { copyFile, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { ServiceDouble } from '../client/service-double.js';
import { collect, TestService } from '../fixtures/service.js';
import { issueWithSession } from '../fixtures/simulated-session.js';
import { needs } from '../fixtures/tools.js';
import { wav } from '../fixtures/wav.js';
import { compile } from './compile.js';
import { ROOT } from './pages.js';
import { built, runProgram, startProxy } from './run-program.js';

const EXAMPLES = join(ROOT, 'docs/examples');
const [ACCEPTED, NOT_ACCEPTED, WRONG_USE, NO_ANSWER, REVIEW] = [0, 1, 2, 3, 4];

interface Language {
  readonly name: string;
  /** Programs that it needs. */
  readonly programs: readonly string[];
  /** The command that runs the example; `directory` is for what is compiled. */
  readonly prepare: (directory: string) => Promise<readonly [string, ...string[]]>;
}

const LANGUAGES: readonly Language[] = [
  {
    name: 'TypeScript',
    programs: [process.execPath],
    prepare: async (directory) => {
      const found = compile(join(EXAMPLES, 'verify.ts'), { directory: EXAMPLES, outDir: directory });
      if (found !== '') throw new Error(found);
      return [process.execPath, join(directory, 'verify.js')];
    },
  },
  { name: 'Python', programs: ['python3'], prepare: async () => ['python3', join(EXAMPLES, 'verify.py')] },
  {
    name: 'Go',
    programs: ['go'],
    prepare: async (directory) => {
      await built('go', 'build', '-o', join(directory, 'verify'), join(EXAMPLES, 'verify.go'));
      return [join(directory, 'verify')];
    },
  },
  {
    name: 'Java',
    programs: ['javac', 'java'],
    prepare: async (directory) => {
      await built('javac', '-Xlint:all', '-Werror', '-d', directory, join(EXAMPLES, 'Verify.java'));
      return ['java', '-cp', directory, 'Verify'];
    },
  },
  { name: 'shell', programs: ['curl', 'jq'], prepare: async () => ['sh', join(EXAMPLES, 'verify.sh')] },
];

/** Starts a service with a partner, and makes a file for each outcome. */
async function realFiles(test: Test) {
  const service = await TestService.start({ TAKEMARK_ENVIRONMENT: 'beta' });
  test.teardown(() => service.stop());
  const { operator } = service.service.operations;
  const { partnerId, apiKey } = await service.partner();
  const { file: valid } = await service.issue(partnerId, wav(96_000));
  const altered = Buffer.from(valid);
  altered[altered.length - 1000]! ^= 1;

  const proofId = await issueWithSession(service, {
    partnerId,
    audio: wav(48_000),
    adverse: ['import_only', 'imports_cover_export', 'activity_after_export'],
  });
  const doubtful = await collect(await (await operator.readAsset(proofId, 'audio')).read());
  return { url: service.partnerUrl, apiKey, valid, altered, doubtful };
}

t.test('each example shows what may be accepted', async (t) => {
  const real = await realFiles(t);
  const directory = t.testdir();
  // The name of a file is a creator's: none that a shell or a form would read otherwise.
  const paths = Object.fromEntries(
    ['valid', 'altered', 'doubtful'].map((name) => [name, join(directory, `${name}; "ä", $x.wav`)]),
  ) as Record<'valid' | 'altered' | 'doubtful', string>;
  await Promise.all(
    (['valid', 'altered', 'doubtful'] as const).map((name) => writeFile(paths[name], real[name])),
  );

  for (const { name, programs, prepare } of LANGUAGES)
    await t.test(name, { skip: needs(...programs) }, async (t) => {
      const command = await prepare(t.testdir());
      const run = (url: string, file = paths.valid, key = real.apiKey) =>
        runProgram(command[0], [...command.slice(1), file], { TAKEMARK_URL: url, TAKEMARK_API_KEY: key });

      for (const [file, code, answer] of [
        ['valid', ACCEPTED, { verdict: 'valid', good: true, decision: { status: 'verified_binding' } }],
        ['altered', NOT_ACCEPTED, { verdict: 'tampered', good: false }],
        ['doubtful', REVIEW, { verdict: 'valid', good: true, decision: { status: 'needs_review' } }],
      ] as const) {
        const result = await run(real.url, paths[file]);
        t.equal(result.code, code, `${file}: ${result.err}`);
        t.match(result.out, /^\{.*\}\n$/, 'one line');
        t.match(JSON.parse(result.out), answer, file);
      }
      const proxy = await startProxy(t);
      const past = await runProgram(command[0], [...command.slice(1), paths.valid], {
        ...proxy.environment,
        TAKEMARK_URL: real.url,
        TAKEMARK_API_KEY: real.apiKey,
      });
      t.strictSame([past.code, proxy.connections()], [ACCEPTED, 0], `no proxy sees the key: ${past.err}`);

      await copyFile(paths.valid, join(directory, '-x.wav'));
      const dashed = await runProgram('sh', ['-c', 'cd "$0" && "$@" -x.wav', directory, ...command], {
        TAKEMARK_URL: real.url,
        TAKEMARK_API_KEY: real.apiKey,
      });
      t.equal(dashed.code, ACCEPTED, `a name like an option is a name: ${dashed.err}`);

      const stranger = await run(real.url, paths.valid, `${real.apiKey.slice(0, -1)}!`);
      t.match([stranger.code, stranger.out], [NO_ANSWER, '']);
      t.match(stranger.err, '403');

      const double = await new ServiceDouble().start();
      t.teardown(() => double.stop());
      const decision = { status: 'verified_binding' };
      for (const verdict of [
        { verdict: 'later', good: true, decision },
        { verdict: 'valid', good: false, decision },
        { verdict: 'valid', good: true, decision: { status: 'later' } },
        { verdict: 'valid', good: true, decision: null },
        { verdict: 'valid', good: true },
        { good: true, decision },
        { verdict: 'local_seal', good: true, decision: { status: 'needs_review' } },
        { 'song "verdict":"valid"': '"good":true', decision },
      ]) {
        double.verdict = verdict;
        const result = await run(double.url);
        t.strictSame([result.code, JSON.parse(result.out)], [NOT_ACCEPTED, verdict], result.err);
      }

      double.verdict = { verdict: 'valid', good: true, decision };
      double.seen.length = 0;
      const busy = (status: number, seconds: number) => ({
        status,
        headers: { 'Retry-After': `${seconds}` },
        body: { error: 'Later.', code: status === 429 ? 'rate_limited' : 'unavailable' },
      });
      double.queue('/v1/verifications', busy(429, 1), busy(503, 0));
      const patient = await run(double.url);
      t.equal(patient.code, ACCEPTED, patient.err);
      t.equal(double.seen.length, 3);
      t.ok(double.seen[1]!.at - double.seen[0]!.at >= 990, 'Retry-After is kept');
      const digest = createHash('sha256').update(real.valid).digest('hex');
      for (const { path, fileSha256, headers } of double.seen) {
        t.strictSame([path, fileSha256], ['/v1/verifications', digest]);
        t.equal(headers['idempotency-key'], double.seen[0]!.headers['idempotency-key']);
      }
      const [firstKey] = double.seen.map(({ headers }) => headers['idempotency-key']);
      t.match(firstKey, /^[0-9a-f-]{32,36}$/);

      double.seen.length = 0;
      double.queue('/v1/verifications', ...Array.from({ length: 5 }, () => busy(503, 0)));
      t.equal((await run(double.url)).code, NO_ANSWER);
      t.equal(double.seen.length, 5, 'it ends');
      t.not(double.seen[0]!.headers['idempotency-key'], firstKey, 'another run has another key');
      double.queue('/v1/verifications', busy(429, 86_400));
      t.equal((await run(double.url)).code, NO_ANSWER, 'no program waits for a day');
      double.seen.length = 0;
      double.queue('/v1/verifications', { status: 307, headers: { Location: `${double.url}/v1/health` } });
      t.equal((await run(double.url)).code, NO_ANSWER);
      t.equal(double.seen.length, 1, 'a redirect does not carry the key along');

      for (const url of [
        'http://partners.example',
        'http://127.0.0.1@partners.example',
        'ftp://localhost',
        double.url.replace('127.0.0.1', 'localhost'),
        '',
      ]) {
        const result = await run(url);
        t.match([result.code, result.out], [WRONG_USE, ''], url);
      }
      t.equal((await run(double.url, join(directory, 'none.wav'))).code, WRONG_USE, 'no such file');
      double.seen.length = 0;
      for (const key of [`${real.apiKey}\r`, `${real.apiKey}\n`, `x\n${real.apiKey}`, `${real.apiKey} é`]) {
        const result = await run(double.url, paths.valid, key);
        t.match([result.code, result.out], [WRONG_USE, ''], JSON.stringify(key));
        t.notMatch(result.err, real.apiKey, 'an error does not show the key');
      }
      t.equal(double.seen.length, 0, 'nothing is sent with such a key');
    });
});

t.test('the page names each example', async (t) => {
  const page = await readFile(join(ROOT, 'docs/partners/clients.md'), 'utf8');
  for (const name of ['verify.ts', 'verify.py', 'verify.go', 'Verify.java', 'verify.sh'])
    t.match(page, `examples/${name}`);
});
