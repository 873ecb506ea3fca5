/** The artifact: it is made, runs as its Dockerfile says, and is measured. */
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { cp, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import t, { type Test } from 'tap';
import { ROOT } from '../docs/pages.js';
import { Image, readDockerfile } from '../fixtures/image.js';
import { needs } from '../fixtures/tools.js';
import { wav } from '../fixtures/wav.js';

const run = promisify(execFile);
const MAX_BYTES = 90_000_000;
const MAX_START_MS = 1500;
/** The laboratory also runs the steps of the Dockerfile in a fresh clone, and limits the time of a start. */
const IN_LABORATORY = process.env['TAKEMARK_LAB'] === 'artifact';
const STARTS = IN_LABORATORY ? 5 : 1;
/** The Debian package of each library that is not of the C library or the compiler. */
const PACKAGES: Readonly<Record<string, string>> = {
  'libcrypto.so.3': 'libssl3',
  'libssl.so.3': 'libssl3',
  'libstdc++.so.6': 'libstdc++6',
  'libz.so.1': 'zlib1g',
};
const OF_EVERY_IMAGE = /^(?:ld-linux.*|lib(?:c|m|dl|rt|pthread|gcc_s|atomic))\.so/;
/** Loads every module that is not the entry of a process or a thread. */
const LOAD_ALL = `
import { readdirSync } from 'node:fs';
const entry = /(?:^|\\/)main\\.js$|-entry\\.js$|-thread\\.c?js$/;
const modules = readdirSync('/app/dist/src', { recursive: true }).filter((name) => /\\.js$/.test(name) && !entry.test(name));
for (const name of modules) await import('/app/dist/src/' + name);
await import('node-rdkafka');
console.log(modules.length);
process.exit(0);`;
const WRITE = `
for (const place of ['/app', '/tmp', '/data'])
  try { fs.writeFileSync(place + '/written', ''); console.log(place, 'written'); } catch (error) { console.log(place, error.code); }
console.log(process.getuid(), /CapEff:\\s*(\\S+)/.exec(fs.readFileSync('/proc/self/status', 'utf8'))[1]);`;

t.test(
  'the artifact serves without rights on a read-only root when the Dockerfile starts it',
  { skip: needs('unshare', 'setpriv', 'ldd') },
  async (t) => {
    const dockerfile = await readDockerfile();
    const image = await Image.create({
      ...dockerfile.environment,
      TAKEMARK_PORT: '0',
      TAKEMARK_OPERATOR_PORT: '0',
    });
    t.teardown(() => image.remove());
    await make(dockerfile.build, image.app);
    const bytes = await checkFiles(t, image.app);

    const libraries = (await image.addLibraries()).filter((name) => !OF_EVERY_IMAGE.test(name));
    t.strictSame(
      libraries.filter((name) => !dockerfile.packages.includes(PACKAGES[name] ?? name)),
      [],
      'the image installs every library',
    );
    const written = await image.run(['node', '-e', WRITE]);
    t.strictSame(
      written.out.trim().split('\n'),
      ['/app EROFS', '/tmp EROFS', '/data written', `${dockerfile.user.split(':')[0]} 0000000000000000`],
      written.err,
    );
    const refused = await image.run([...dockerfile.entrypoint, 'serve'], { TAKEMARK_DATA_DIR: '/tmp' });
    t.match(refused.err, 'TAKEMARK_DATA_DIR: /tmp is on a read-only file system');
    const loaded = await image.run(['node', '--input-type=module', '-e', LOAD_ALL]);
    t.strictSame([loaded.code, Number(loaded.out) > 300], [0, true], loaded.err);

    const takemark = async (words: readonly string[], environment?: Readonly<Record<string, string>>) => {
      const { code, out, err } = await image.run([...dockerfile.entrypoint, ...words], environment);
      t.equal(code, 0, `${words.join(' ')}: ${err}`);
      return JSON.parse(out) as Record<string, string>;
    };
    const times: number[] = [];
    for (let i = 0; i < STARTS; i += 1) {
      const service = await start(image, [...dockerfile.entrypoint, ...dockerfile.command]);
      times.push(service.startMs);
      const port = { TAKEMARK_OPERATOR_PORT: service.operatorPort };
      t.equal((await image.run(dockerfile.healthcheck, port)).code, 0, 'it is healthy');
      if (i === 0) {
        t.comment(`${(bytes / 1e6).toFixed(1)} MB, ${service.residentMiB} MiB resident when it is ready`);
        await writeFile(join(image.data, 'take.wav'), wav(48_000));
        const { partnerId } = await takemark(['operator', 'partner', 'create', 'Example', '--json']);
        const { apiKey } = await takemark([
          'operator',
          'key',
          'create',
          '--partner',
          partnerId!,
          '--name',
          'key',
          '--json',
        ]);
        const song = ['--partner', partnerId!, '--song', 'Take', '--out', '/data/credentialed.wav', '--json'];
        await takemark(['operator', 'issue', '/data/take.wav', ...song]);
        const verified = await takemark(['verify', '/data/credentialed.wav', '--json'], {
          TAKEMARK_API_KEY: apiKey!,
        });
        t.match(verified, { verdict: 'valid' });
      }
      await service.stop();
      t.equal((await image.run(dockerfile.healthcheck, port)).code, 1, 'it is not healthy any more');
    }
    times.sort((a, b) => a - b);
    t.comment(`started in ${times.map((each) => Math.round(each)).join(', ')} ms`);
    if (IN_LABORATORY) t.ok(times[times.length >> 1]! <= MAX_START_MS, `the median of ${STARTS} starts`);
  },
);

/** Makes the artifact: of this build, or in the laboratory as the Dockerfile does, from a fresh clone. */
async function make(steps: readonly string[], target: string): Promise<void> {
  if (!IN_LABORATORY) {
    await run(process.execPath, [join(ROOT, 'deploy/artifact/make.mjs'), '--out', target]);
    return;
  }
  const clone = join(t.testdir(), 'clone');
  await run('git', ['clone', '--quiet', ROOT, clone]);
  for (const step of steps) await run('sh', ['-c', step], { cwd: clone, maxBuffer: 1 << 26 });
  await cp(join(clone, 'artifact'), target, { recursive: true });
}

/** Checks that only what Node loads is there, and what an operator installs. @returns the size in bytes */
async function checkFiles(t: Test, app: string): Promise<number> {
  const names = await readdir(app, { recursive: true });
  t.strictSame(
    names.filter((name) => /\.(?:map|ts|mts|cts|cc|cpp|c|h|o|a)$/.test(name)),
    [],
    'no sources, declarations, maps or objects',
  );
  const { packages } = JSON.parse(await readFile(join(ROOT, 'package-lock.json'), 'utf8')) as {
    readonly packages: Readonly<Record<string, { readonly dev?: true }>>;
  };
  t.strictSame(
    names.filter((name) => packages[name]?.dev),
    [],
    'no package for development',
  );
  const description = JSON.parse(await readFile(join(app, 'package.json'), 'utf8')) as object;
  t.strictSame('scripts' in description, false, 'nothing to build');
  for (const name of ['systemd/takemark.service', 'prometheus/alerts.yml', 'grafana/dashboards'])
    t.ok(names.includes(`deploy/${name}`), `it has ${name}, which an operator installs`);
  const sizes = await Promise.all(names.map(async (name) => stat(join(app, name))));
  const bytes = sizes.reduce((sum, found) => sum + (found.isFile() ? found.size : 0), 0);
  t.ok(bytes <= MAX_BYTES, `${bytes} bytes`);
  return bytes;
}

/** Starts the service, and resolves when its log says so. */
async function start(image: Image, command: readonly string[]) {
  const began = performance.now();
  const child = await image.start(command);
  const exited = once(child, 'exit');
  let errors = '';
  child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString('utf8')));
  for await (const line of createInterface({ input: child.stdout })) {
    const { event, operator } = JSON.parse(line) as { readonly event: string; readonly operator: string };
    if (event !== 'started') continue;
    const startMs = performance.now() - began;
    child.stdout.resume();
    const status = await readFile(`/proc/${child.pid}/status`, 'utf8');
    return {
      startMs,
      operatorPort: operator.slice(operator.lastIndexOf(':') + 1),
      residentMiB: Math.round(Number(/VmRSS:\s*(\d+)/.exec(status)![1]) / 1024),
      stop: async () => {
        child.kill('SIGTERM');
        const [code] = await exited;
        if (code !== 0) throw new Error(`the service ended with ${code}: ${errors}`);
      },
    };
  }
  throw new Error(`the service did not start: ${errors}`);
}
