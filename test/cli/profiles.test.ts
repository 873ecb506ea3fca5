import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import t from 'tap';
import { readSecret } from '../../src/cli/secret-input.js';
import { formatApiKey } from '../../src/service/domain/partner-key.js';
import { MAIN, setUp } from './bench.js';

const KEY_ID = 'key_01ARZ3NDEKTSV4RRFFQ69G5FAV';
const KEY = formatApiKey('beta', KEY_ID, new Uint8Array(32).fill(9));
const OTHER_KEY = formatApiKey('production', KEY_ID, new Uint8Array(32).fill(1));
const USAGE = {
  plan: 'trial',
  period: { start: 1_767_225_600, end: 1_769_904_000 },
  limit: 1000,
  used: 0,
  remaining: 1000,
  days: [],
};

t.test('a profile has an address and the key for it', async (t) => {
  // The variables of the environment name another service, to which the profile's key must not go.
  const bench = await setUp(t, { url: 'http://127.0.0.1:1', apiKey: OTHER_KEY, secret: `${KEY}\n` });
  const { service, takemark, directory } = bench;
  service.on('/v1/partner/usage', () => ({ status: 200, body: USAGE }));
  const path = join(directory, 'profiles', 'profiles.json');
  const add = ['profile', 'add', 'staging', '--url', `${service.url}/`];

  t.match(await takemark('profile', 'list'), { code: 0, out: '' });
  t.match(await takemark('usage', '--profile', 'staging'), { code: 2, err: /no profile staging/ });
  t.match(await takemark(...add), { code: 0, out: '', err: `saved profile staging: ${KEY_ID} for ` });
  t.equal((await stat(path)).mode & 0o777, 0o600);
  t.equal((await stat(join(directory, 'profiles'))).mode & 0o777, 0o700);
  t.match(await takemark(...add), { code: 2, err: /exists; give --force/ });
  t.match(await takemark(...add, '--force', '--signing-key', 'signing.pem'), { code: 0 });
  t.match(JSON.parse(await readFile(path, 'utf8')).profiles.staging, {
    url: service.url,
    signingKey: join(process.cwd(), 'signing.pem'),
  });
  t.match(await takemark(...add, '--force'), { code: 0 });

  t.match(await takemark('usage', '--profile', 'staging'), { code: 0 });
  t.equal(service.seen.at(-1)!.headers['x-api-key'], KEY);
  t.match(await takemark('usage', '--profile', 'staging', '--url', service.url), {
    code: 2,
    err: /give either --url or a profile/,
  });
  // Every command that sends a partner's key sends it where the profile says.
  service.on('/v1/sandbox/fixtures', () => ({ status: 200, body: { fixtures: [] } }));
  service.on('/v1/partner/reviews', () => ({ status: 200, body: { reviews: [] } }));
  for (const command of [
    ['fixtures', '--out', directory],
    ['reviews', 'list'],
  ]) {
    t.match(await takemark(...command, '--profile', 'staging'), { code: 0 }, command[0]!);
    t.equal(service.seen.at(-1)!.headers['x-api-key'], KEY, command[0]!);
    t.match(
      await takemark(...command, '--profile', 'gone'),
      { code: 2, err: /no profile gone/ },
      command[0]!,
    );
  }
  const byVariable = await setUp(t, { apiKey: undefined, profile: 'gone' });
  t.match(await byVariable.takemark('usage'), { code: 2, err: /no profile gone/ });
  t.match(await byVariable.takemark('operator', 'plan', 'list'), { code: 0 }, 'it is a partner’s alone');

  const listed = await takemark('profile', 'list');
  t.equal(listed.out, `staging  ${service.url}  ${KEY_ID}\n`);
  t.strictSame(JSON.parse((await takemark('profile', 'list', '--json')).out), {
    profiles: [{ name: 'staging', url: service.url, keyId: KEY_ID }],
  });
  t.match(await takemark('profile', 'remove', 'other'), { code: 2, err: /no profile other/ });
  t.match(await takemark('profile', 'remove', 'staging'), { code: 0 });
  t.match(await takemark('profile', 'list'), { code: 0, out: '' });
  t.strictSame(await readdir(join(directory, 'profiles')), ['profiles.json'], 'nothing else is left');
});

t.test('an invalid profile is not kept, and a file that others can read is refused', async (t) => {
  const { takemark, directory, service } = await setUp(t, { secret: KEY });
  const add = (name: string, url = service.url) => takemark('profile', 'add', name, '--url', url);
  for (const name of ['-x', 'a b', '../up', 'x'.repeat(65), '__proto__'])
    t.match(await add(name), { code: 2 }, name);
  t.match(await add('one', 'example.com'), { code: 2, err: /--url must be an http or https address/ });
  const wrong = await setUp(t, { secret: `${KEY.slice(0, -1)}!` });
  t.match(await wrong.takemark('profile', 'add', 'one', '--url', service.url), {
    code: 2,
    err: /API key is incomplete/,
  });
  t.match(await takemark('usage', '--profile', 'constructor'), { code: 2, err: /no profile/ });

  t.match(await add('one'), { code: 0 });
  const path = join(directory, 'profiles', 'profiles.json');
  for (const mode of [0o640, 0o604, 0o620]) {
    await chmod(path, mode);
    t.match(await takemark('usage', '--profile', 'one'), {
      code: 2,
      err: /other users can read or write it/,
    });
    t.match(await add('two'), { code: 2, err: /chmod 600/ });
  }
  await chmod(path, 0o600);
  const strange = ['not JSON', '[]', 'null', '{"takemark":"profiles","profiles":{"a":{"url":1}}}'];
  for (const text of [...strange, ' '.repeat(300_000)]) {
    await writeFile(path, text);
    t.match(await takemark('usage', '--profile', 'one'), { code: 2, err: /does not hold profiles/ });
    t.match(await add('two'), { code: 2, err: /does not hold profiles/ }, 'and it is not replaced');
    t.equal(await readFile(path, 'utf8'), text);
  }
  await rm(path);
  await mkdir(path);
  t.match(await takemark('profile', 'list'), { code: 2, err: /does not hold profiles/ });
});

t.test('an interruption ends the wait for a key that is piped in', async (t) => {
  const interruption = new AbortController();
  const pipe = new PassThrough();
  pipe.write(KEY.slice(0, 20));
  const waiting = readSecret(pipe, new PassThrough(), '', interruption.signal);
  interruption.abort(new Error('SIGINT'));
  await t.rejects(waiting);
  const over = Readable.from([KEY]);
  await t.rejects(readSecret(over, new PassThrough(), '', interruption.signal));
});

t.test('the key is piped in, or typed without being shown', async (t) => {
  const home = await mkdtemp(join(tmpdir(), 'takemark-home-'));
  t.teardown(() => rm(home, { recursive: true }));
  const environment = { PATH: process.env['PATH'], HOME: home, TERM: 'xterm' };
  const run = async (command: string, words: readonly string[], typed: string, prompt?: string) => {
    const child = spawn(command, words, { env: environment, stdio: ['pipe', 'pipe', 'pipe'] });
    let shown = '';
    const type = () => child.stdin.end(typed);
    const see = (chunk: Buffer) => {
      const before = shown;
      shown += String(chunk);
      if (prompt !== undefined && shown.includes(prompt) && !before.includes(prompt))
        child.stdin.write(typed);
    };
    child.stdout.on('data', see);
    child.stderr.on('data', see);
    if (prompt === undefined) type();
    const [code] = await once(child, 'close');
    return { code, shown };
  };
  const add = (name: string) => [MAIN, 'profile', 'add', name, '--url', 'https://takemark.example'];
  const kept = async (): Promise<Record<string, unknown>> =>
    JSON.parse(await readFile(join(home, '.takemark', 'profiles.json'), 'utf8')).profiles;

  const piped = await run(process.execPath, add('piped'), `${KEY}\n`);
  t.equal(piped.code, 0, piped.shown);
  t.notOk(piped.shown.includes(KEY));
  t.match(await run(process.execPath, add('long'), 'x'.repeat(5000)), {
    code: 2,
    shown: /too long for an API key/,
  });

  const quoted = [process.execPath, ...add('typed')].map((word) => `'${word}'`).join(' ');
  const typed = await run('script', ['-qec', quoted, '/dev/null'], `${KEY}x\u007f\r`, '(hidden)');
  t.equal(typed.code, 0, typed.shown);
  t.notOk(typed.shown.includes(KEY.slice(0, 40)), 'nothing of it is shown');
  t.match(await kept(), { piped: { apiKey: KEY }, typed: { apiKey: KEY, url: 'https://takemark.example' } });
  const left = await run('script', ['-qec', quoted, '/dev/null'], '\u0003', '(hidden)');
  t.equal(left.code, 130, left.shown);
});
