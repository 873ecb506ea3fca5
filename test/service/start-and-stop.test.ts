import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import t, { type Test } from 'tap';
import { checkConfig } from '../../src/service/compose/config-check.js';
import { serviceBanner, startService } from '../../src/service/compose/service.js';
import { ConfigError, readConfig } from '../../src/service/config/config.js';
import { listSettings } from '../../src/service/config/listed-settings.js';
import { variables } from '../../src/service/config/settings.js';
import { unknownSettings } from '../../src/service/config/unknown-settings.js';

const PORTS = { TAKEMARK_PORT: '0', TAKEMARK_OPERATOR_PORT: '0', TAKEMARK_STOP_GRACE_SECONDS: '1' };
const MAIN = new URL('../../src/service/main.js', import.meta.url).pathname;
const ROOT = new URL('../../../', import.meta.url).pathname;

async function directoryOf(t: Test): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'takemark-start-'));
  t.teardown(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

/** Returns a promise and the function that resolves it. (Node 20 has no Promise.withResolvers.) */
function signal(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve!: () => void;
  const promise = new Promise<void>((done) => (resolve = done));
  return { promise, resolve };
}

async function start(environment: Record<string, string>, wait?: (ms: number) => Promise<void>) {
  const log: Record<string, unknown>[] = [];
  const config = readConfig({ ...PORTS, ...environment });
  const service = await startService(config, {
    version: '0.0.0-test',
    logDestination: { write: (line) => void log.push(JSON.parse(line) as Record<string, unknown>) },
    ...(wait === undefined ? {} : { wait }),
  });
  return { service, config, log };
}

t.test('a start refuses a misspelt setting and names the most similar one', async (t) => {
  const directory = await directoryOf(t);
  const misspelt = { TAKEMARK_DATA_DIR: directory, TAKEMARK_PROT: '1' };
  await t.rejects(start(misspelt), {
    name: ConfigError.name,
    message: /^TAKEMARK_PROT: is not a setting; the most similar one is TAKEMARK_PORT\./,
  });

  const { service, log } = await start({
    ...misspelt,
    TAKEMARK_UNKNOWN_SETTINGS: 'warn',
    TAKEMARK_CORPUS: '/corpus',
    TAKEMARK_SERVICE_HOST: '10.0.0.1',
    TAKEMARK_SERVICE_PORT_HTTP: '8080',
    TAKEMARK_CASSANDRA_PORT: 'tcp://10.0.0.1:9042',
    TAKEMARK_PORT_8080_TCP_ADDR: '10.0.0.1',
  });
  await service.stop();
  t.strictSame(
    log
      .filter(({ event }) => event === 'setting_unknown' || event === 'kubernetes_service_links')
      .map(({ event, name, nearest, count }) => [event, name ?? count, nearest]),
    [
      ['setting_unknown', 'TAKEMARK_PROT', 'TAKEMARK_PORT'],
      ['kubernetes_service_links', 4, undefined],
    ],
    'variables of tools and of Kubernetes are not misspelt',
  );
});

t.test('every variable of the tests and tools is a setting or a known name', async (t) => {
  // These two files misspell a setting on purpose.
  const misspelling = ['test/service/start-and-stop.test.ts', 'test/http/foundations.test.ts'];
  const files = ['test', 'bench', 'deploy', 'assembly'].flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map((name) => `${folder}/${name}`),
  );
  const names = files
    .filter((file) => /\.(?:ts|mjs|sh)$/.test(file) && !misspelling.includes(file.replaceAll('\\', '/')))
    .flatMap(
      (file) => readFileSync(join(ROOT, file), 'utf8').match(/\bTAKEMARK_[A-Z0-9_]*[A-Z0-9]\b/g) ?? [],
    );
  t.ok(names.includes('TAKEMARK_CORPUS') && names.includes('TAKEMARK_PORT'), 'the files are read');
  const given = Object.fromEntries(names.map((name) => [name, '1']));
  t.strictSame(unknownSettings(given, Object.keys(variables)), { misspelt: [], serviceLinks: [] });
});

t.test('a port that Kubernetes set is explained', async (t) => {
  t.throws(() => readConfig({ TAKEMARK_PORT: 'tcp://10.0.0.1:8080' }), {
    message:
      'TAKEMARK_PORT: was set by Kubernetes for a Service of this name: set enableServiceLinks: false in the pod',
  });
});

t.test('the partner listener accepts only this machine when neither TLS nor a host is set', async (t) => {
  const directory = await directoryOf(t);
  const environment = { TAKEMARK_DATA_DIR: directory };
  const tls = { TAKEMARK_TLS_CERT: 'cert.pem', TAKEMARK_TLS_KEY: 'key.pem' };
  t.strictSame(
    [{}, tls, { TAKEMARK_HOST: '0.0.0.0' }].map((given) => readConfig(given).partner.host),
    ['127.0.0.1', '0.0.0.0', '0.0.0.0'],
  );

  const seen: unknown[] = [];
  // The second start is the first one without a host, on data of a version that listened everywhere.
  for (const host of [{ TAKEMARK_HOST: '127.0.0.1' }, {}, {}]) {
    const { service, config, log } = await start({ ...environment, ...host });
    const banner = serviceBanner(service, config, { version: '1.0.0' });
    await service.stop();
    seen.push([
      service.partner.host,
      log.some(({ event }) => event === 'partner_listener_is_local'),
      banner.includes('earlier versions accepted connections'),
      banner.includes('only this machine: set TAKEMARK_HOST'),
      banner.includes(`listens on 127.0.0.1:${service.partner.port}`),
    ]);
  }
  t.strictSame(seen, [
    ['127.0.0.1', false, false, false, true],
    ['127.0.0.1', true, true, true, true],
    ['127.0.0.1', false, false, true, true],
  ]);

  const { service: fresh } = await start({ TAKEMARK_DATA_DIR: await directoryOf(t) });
  await fresh.stop();
  t.equal(fresh.isNewlyLocal, false, 'a new installation gets no notice');
});

t.test('a start names the setting of a port that is in use', async (t) => {
  const taken = createServer();
  taken.listen(0, '127.0.0.1');
  await once(taken, 'listening');
  t.teardown(() => taken.close());
  const { port } = taken.address() as { port: number };
  const environment = { TAKEMARK_DATA_DIR: await directoryOf(t) };
  for (const name of ['TAKEMARK_PORT', 'TAKEMARK_OPERATOR_PORT'])
    await t.rejects(start({ ...environment, [name]: String(port) }), {
      message: `${name}: another program listens on port ${port}. Stop it, or set another port`,
    });
});

t.test('a start names the setting of a directory that cannot be used', async (t) => {
  const directory = await directoryOf(t);
  const file = join(directory, 'file');
  await writeFile(file, '');
  for (const [setting, path, problem] of [
    ['TAKEMARK_DATA_DIR', file, 'is not a directory'],
    ['TAKEMARK_DATA_DIR', join(file, 'data'), 'is not a directory'],
    ['TAKEMARK_DATA_DIR', '/proc/none/data', 'cannot be created'],
    ['TAKEMARK_JOURNAL_DIR', file, 'is not a directory'],
    ['TAKEMARK_CONTENT_KEYS_DIR', file, 'is not a directory'],
  ] as const)
    await t.rejects(
      start({ TAKEMARK_DATA_DIR: directory, [setting]: path }),
      { name: 'ConfigError', message: `${setting}: ${path} ${problem}` },
      `${setting} ${path}`,
    );
});

t.test('a setting with a word that it does not know names the words that it knows', (t) => {
  t.throws(() => readConfig({ TAKEMARK_STORE: 'redis' }), {
    message: 'TAKEMARK_STORE: must be one of embedded, cassandra',
  });
  t.end();
});

t.test('a draining service answers every call, is not ready, and reports what it finished', async (t) => {
  const draining = signal();
  const over = signal();
  const waits: number[] = [];
  const { service, log } = await start(
    { TAKEMARK_DATA_DIR: await directoryOf(t), TAKEMARK_DRAIN_SECONDS: '15' },
    async (ms) => {
      waits.push(ms);
      draining.resolve();
      await over.promise;
    },
  );
  const operatorUrl = `http://127.0.0.1:${service.operator.port}`;
  const ready = await fetch(`${operatorUrl}/readyz`);
  t.equal(ready.status, 200);
  t.not(ready.headers.get('connection'), 'close');
  const stopped = service.stop();
  await draining.promise;

  const late = await fetch(`${operatorUrl}/readyz`);
  t.equal(late.status, 503);
  t.equal(((await late.json()) as { reason: string }).reason, 'shutting_down');
  const call = await fetch(`${service.publicUrl}/v1/health`);
  t.strictSame([call.status, call.headers.get('connection')], [200, 'close']);
  await call.text();
  over.resolve();
  await stopped;

  t.strictSame(waits, [15_000]);
  await t.rejects(fetch(`${service.publicUrl}/v1/health`), 'the listener is closed afterwards');
  const { event, finished, cut } = log.at(-1)!;
  t.strictSame({ event, finished, cut }, { event: 'stopped', finished: 2, cut: 0 });
});

t.test('a service whose process group gets SIGINT stops without a fault', async (t) => {
  const child = spawn(process.execPath, [MAIN], {
    env: { ...PORTS, TAKEMARK_DATA_DIR: await directoryOf(t) },
    stdio: ['ignore', 'pipe', 'ignore'],
    // A process group of its own, as a shell gives each command.
    detached: true,
  });
  const events: { event: string }[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    events.push(JSON.parse(line) as { event: string });
    if (events.at(-1)!.event === 'started') process.kill(-child.pid!, 'SIGINT');
  }
  if (child.exitCode === null) await once(child, 'exit');
  t.equal(child.exitCode, 0);
  t.strictSame(
    events.map(({ event }) => event).filter((event) => /fault|stop/.test(event)),
    ['stopping', 'stopped'],
  );
});

t.test('the service refuses arguments that it does not know', async (t) => {
  const run = async (...argv: readonly string[]) => {
    const child = spawn(process.execPath, [MAIN, ...argv], { stdio: ['ignore', 'pipe', 'ignore'] });
    let out = '';
    child.stdout.on('data', (piece: Buffer) => (out += piece.toString()));
    await once(child, 'close');
    return [child.exitCode, out.split('\n', 1)[0]];
  };
  t.strictSame(await run('--help'), [
    0,
    'Runs the Takemark service in the foreground. It takes no arguments: every setting is an environment',
  ]);
  t.strictSame(await run('--port=9000'), [2, '']);
});

t.test('settings are listed with value and source, and secrets are masked', async (t) => {
  const listed = new Map(
    listSettings({
      TAKEMARK_PORT: '9000',
      TAKEMARK_OPERATOR_TOKEN: 'a-token-of-sixteen',
      TAKEMARK_KAFKA_PASSWORD: 'letters',
      TAKEMARK_SIGNING_PKCS11_TOKEN: 'label',
    }).map(({ name, ...rest }) => [name, rest]),
  );
  t.strictSame(listed.get('TAKEMARK_PORT'), { value: '9000', source: 'environment' });
  t.strictSame(listed.get('TAKEMARK_OPERATOR_TOKEN'), { value: '(set)', source: 'environment' });
  t.strictSame(listed.get('TAKEMARK_KAFKA_PASSWORD'), { value: '(set)', source: 'environment' });
  t.strictSame(listed.get('TAKEMARK_SIGNING_PKCS11_TOKEN'), { value: 'label', source: 'environment' });
  t.strictSame(listed.get('TAKEMARK_OPERATOR_PORT'), { value: '8081', source: 'default' });
  t.strictSame(listed.get('TAKEMARK_CASSANDRA'), { source: 'default' });
});

t.test('a check of the settings finds what would end a start, and creates nothing', async (t) => {
  const directory = await directoryOf(t);
  const taken = createServer();
  taken.listen(0, '127.0.0.1');
  await once(taken, 'listening');
  t.teardown(() => taken.close());
  const { port } = taken.address() as { port: number };
  const dataDirectory = join(directory, 'new', 'data');
  const checks = await checkConfig(
    readConfig({
      TAKEMARK_DATA_DIR: dataDirectory,
      TAKEMARK_PORT: String(port),
      TAKEMARK_OPERATOR_PORT: '0',
      TAKEMARK_TLS_CERT: join(directory, 'absent.pem'),
      TAKEMARK_TLS_KEY: join(directory, 'absent.pem'),
      TAKEMARK_SECRETS_FILE: join(directory, 'absent.json'),
      TAKEMARK_HOST: '127.0.0.1',
      TAKEMARK_PROT: '1',
    }),
  );
  t.strictSame(
    checks.map(({ name, verdict }) => [name, verdict]),
    [
      ['config.name', 'refuse'],
      ['TAKEMARK_SECRETS_FILE', 'refuse'],
      ['TAKEMARK_TLS_CERT', 'refuse'],
      ['TAKEMARK_DATA_DIR', 'ok'],
      ['TAKEMARK_PORT', 'warn'],
      ['TAKEMARK_OPERATOR_PORT', 'ok'],
    ],
  );
  await t.rejects(
    import('node:fs/promises').then(({ stat }) => stat(dataDirectory)),
    { code: 'ENOENT' },
  );
});
