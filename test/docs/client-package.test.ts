/** The client as a package of its own: what a partner gets who installs it. */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import { CLIENT_VERSION } from '../../src/client/index.js';
import { ServiceDouble } from '../client/service-double.js';
import { wav } from '../fixtures/wav.js';
import { compile } from './compile.js';
import { ROOT } from './pages.js';

const run = promisify(execFile);
const MAX_BYTES = 200_000;

t.test('the client packs alone, installs, verifies, and has its types', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'takemark-client-'));
  const service = await new ServiceDouble().start();
  t.teardown(async () => {
    await service.stop();
    await rm(directory, { recursive: true });
  });
  const packed = await run(process.execPath, [join(ROOT, 'deploy/libraries/pack.mjs'), 'client', directory]);
  const archive = packed.stdout.trim();
  t.ok((await stat(archive)).size < MAX_BYTES, 'small');
  const { stdout: list } = await run('tar', ['-tzf', archive]);
  const files = list.trim().split('\n');
  t.strictSame(
    files.filter(
      (file) =>
        !/^package\/(client\/[a-z-]+\.(js|d\.ts)|package\.json|README\.md|CHANGELOG\.md|LICENSE)$/.test(file),
    ),
    [],
    'the client and nothing else',
  );

  const partner = join(directory, 'partner');
  const installed = join(partner, 'node_modules/takemark-client');
  await mkdir(installed, { recursive: true });
  await run('tar', ['-xzf', archive, '-C', installed, '--strip-components=1']);
  const description = JSON.parse(await readFile(join(installed, 'package.json'), 'utf8')) as Record<
    string,
    unknown
  >;
  t.match(description, {
    name: 'takemark-client',
    version: CLIENT_VERSION,
    type: 'module',
    engines: { node: '>=20.11' },
  });
  t.equal(description['dependencies'], undefined);
  t.match(
    await readFile(join(installed, 'CHANGELOG.md'), 'utf8'),
    `## [${CLIENT_VERSION}]`,
    'its changelog has its version',
  );

  await writeFile(join(partner, 'song.wav'), wav(1000));
  await writeFile(
    join(partner, 'verify.mjs'),
    `import { createClient } from 'takemark-client';
const takemark = createClient({ baseUrl: process.env.URL, apiKey: 'tmk_key' });
const { accepted } = await takemark.verifyFile('song.wav');
takemark.close();
console.log(accepted);`,
  );
  const { stdout } = await run(process.execPath, ['verify.mjs'], { cwd: partner, env: { URL: service.url } });
  t.equal(stdout, 'true\n');

  await writeFile(
    join(partner, 'types.ts'),
    `import { createClient, TakemarkError, type Verification } from 'takemark-client';
const takemark = createClient({
  baseUrl: 'https://partners.example',
  apiKey: 'tmk_key',
  userAgent: 'ingest/2.1',
  onDeprecation: ({ sunset }) => console.log(sunset?.toFixed()),
});
export async function accepts(path: string): Promise<boolean> {
  try {
    const result: Verification = await takemark.verifyFile(path);
    return result.accepted && result.decision?.status !== 'needs_review';
  } catch (error) {
    if (error instanceof TakemarkError) console.log(error.reason?.length);
    throw error;
  }
}`,
  );
  await writeFile(join(partner, 'package.json'), '{"type":"module"}');
  const found = compile(join(partner, 'types.ts'), {
    directory: partner,
    lib: ['lib.es2023.d.ts'],
    noEmit: true,
  });
  t.equal(found, '', 'a strict project takes its types');
});
