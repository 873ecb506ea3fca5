import { spawnSync } from 'node:child_process';
import {
  closeSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import t from 'tap';
import type { z } from 'zod';
import { DomainError, ERROR_CODES, ServerError } from '../../src/core/domain/errors.js';
import { readConfig } from '../../src/service/config/config.js';
import { FILE_SETTINGS, variables } from '../../src/service/config/settings.js';
import { noticeProblem } from '../../src/service/contract/deprecation.js';
import { errorSchema, STATUS_OF_CODE } from '../../src/service/contract/errors.js';
import type { Route } from '../../src/service/contract/route.js';
import { noticesOf } from '../../src/service/contract/route-headers.js';
import { ROUTES } from '../../src/service/contract/routes/routes.js';
import { parseJson } from '../../src/service/http/body/json-text.js';
import { contentDisposition } from '../../src/service/http/response/asset-response.js';
import { json, type ResponseOf } from '../../src/service/http/response/response.js';
import { CallerAddresses } from '../../src/service/http/server/caller-address.js';
import { safeFileName } from '../../src/service/operations/file-name.js';
import { LogOutput } from '../../src/service/telemetry/log-output.js';
import { createProbes } from '../../src/service/telemetry/probes.js';
import { createTelemetry } from '../../src/service/telemetry/telemetry.js';

t.test('the path table has each route once, and one code for each status', async (t) => {
  const schemas = new Map<string, z.ZodType>([['Error', errorSchema]]);
  for (const [id, row] of Object.entries(ROUTES)) {
    const route: Route = row;
    const names = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!);
    t.strictSame(Object.keys(route.params?.shape ?? {}), names, `${id}: the path and its parameters agree`);
    if (route.auth !== 'public') t.ok(route.errors[403], `${id}: may refuse`);
    t.ok(route.errors[500], `${id}: may fail`);
    for (const notice of noticesOf(route))
      t.equal(noticeProblem(notice), undefined, `${id}: its notice is long enough`);
    for (const [name, schema] of Object.entries({
      params: route.params,
      query: route.query,
      headers: route.headers,
      body: route.body?.kind === 'json' ? route.body.schema : undefined,
    })) {
      if (schema !== undefined) schemas.set(`${id} ${name}`, schema);
    }
    for (const [status, { schema }] of Object.entries(route.responses))
      if (schema !== undefined) schemas.set(`${id} ${status}`, schema);
  }
  for (const [name, schema] of schemas) {
    const { examples } = schema.meta() as { examples?: unknown[] };
    t.ok(examples !== undefined && examples.length > 0, `${name}: has examples`);
    for (const example of examples ?? [])
      t.ok(schema.safeParse(example).success, `${name}: its example is valid`);
  }
  const paths = Object.values(ROUTES).map(({ method, path }) => `${method} ${path}`);
  t.equal(new Set(paths).size, paths.length, 'no row twice');
  t.strictSame(new Set(Object.keys(STATUS_OF_CODE)), new Set(ERROR_CODES));
  t.equal(new Set(Object.values(STATUS_OF_CODE)).size, ERROR_CODES.length, 'one code per status');
});

t.test('the compiler refuses a response that the path table does not have', async (t) => {
  const { days, ...month } = {
    plan: 'trial',
    period: { start: 1, end: 2 },
    limit: 1,
    limits: { requestsPerSecond: 1, burst: 1, concurrentUploads: 1, rotationsPerDay: 1 },
    used: 1,
    remaining: 0,
    days: [{ day: '2026-01-01', units: 1, operations: { verify: 1 } }],
  };
  const usage: ResponseOf<(typeof ROUTES)['readUsage']>[] = [
    json(200, { ...month, days }),
    // @ts-expect-error another status
    json(201, { ...month, days }),
    // @ts-expect-error a member lacks
    json(200, month),
    // @ts-expect-error a member of another type
    json(200, { ...month, days: [{ day: 1, units: 1, operations: {} }] }),
    // @ts-expect-error a response without its body
    { kind: 'empty', status: 200, headers: {} },
  ];
  t.equal(usage.length, 5);
});

t.test('JSON text is refused where readers could differ on it', async (t) => {
  for (const text of [
    '{"a":{"b":[1,{"b":2,"a":"x,\\"a\\":{"}]},"b":1}',
    '"\\\\"',
    '[]',
    ' {"a":"}","b":"{"} ',
    '[{"a":1},{"a":2}]',
    '{"a":["a","a"],"\\u0062":1}',
  ]) {
    t.strictSame(parseJson(Buffer.from(text)), JSON.parse(text), text);
  }
  const costly: [string, string][] = [
    ['a hundred thousand arrays', `[${'[],'.repeat(100_000)}[]]`],
    ['as many members', `{${Array.from({ length: 100_000 }, (_, i) => `"${i}":1`).join(',')}}`],
    ['a megabyte of white space', `{${' '.repeat(1_000_000)}"a":1}`],
    ['a number of a megabyte', `[${'1'.repeat(1_000_000)}]`],
    ['a name of a megabyte', `{"${'a'.repeat(1_000_000)}":1}`],
  ];
  for (const [name, text] of costly)
    t.throws(() => parseJson(Buffer.from(text)), { code: 'invalid_request' }, name);
  const sidecar = 'A/+9'.repeat(340_000);
  t.strictSame(
    parseJson(Buffer.from(`{"uploadId":"upl_1","sidecar":"${sidecar.replaceAll('/', '\\/')}"}`)),
    { uploadId: 'upl_1', sidecar },
    'a long string is none of these',
  );
  for (const text of [
    '{"a":1,"a":1}',
    '{"a":{},"b":[],"a":1}',
    '{"\\u0061":1,"a":2}',
    '[{"x":{"a":1,"a":2}}]',
    '{"a',
    '{"a":"\\',
    ']',
    '{]}',
    '',
    '01',
    '{"a":1,}',
    "{'a':1}",
  ]) {
    t.throws(() => parseJson(Buffer.from(text)), { code: 'invalid_request' }, text);
  }
});

t.test('a file name is encoded for every client', async (t) => {
  t.equal(contentDisposition('../../etc/passwd'), `attachment; filename="passwd"; filename*=UTF-8''passwd`);
  t.equal(
    contentDisposition('a\r\nX: y\u0000.wav'),
    `attachment; filename="a__X_ y_.wav"; filename*=UTF-8''a__X_%20y_.wav`,
  );
  t.match(contentDisposition('\ud800.wav'), /filename="_\.wav"/);
  for (const [name, ascii, whole] of [
    ['..', '_', '_'],
    ['.bashrc', '_bashrc', '_bashrc'],
    ['a*?<>|":.wav', 'a_______.wav', 'a_______.wav'],
    ['CON', '_CON', '_CON'],
    ['aux.wav', '_aux.wav', '_aux.wav'],
    ['ＣＯＮ.wav', '_CON.wav', '%EF%BC%A3%EF%BC%AF%EF%BC%AE.wav'],
    ['console.wav', 'console.wav', 'console.wav'],
    ['a. .', 'a_', 'a_'],
    ['\u202evaw.exe', '_vaw.exe', '_vaw.exe'],
    ['', 'audio', 'audio'],
  ])
    t.equal(contentDisposition(name!), `attachment; filename="${ascii}"; filename*=UTF-8''${whole}`);
  t.equal(safeFileName(`${'a'.repeat(198)}\u{1f3b5}.wav`), `${'a'.repeat(198)}\u{1f3b5}`);
  t.equal(safeFileName(`${'a'.repeat(199)}\u{1f3b5}.wav`), 'a'.repeat(199), 'no half of a pair is left');
});

t.test('a caller is one address in every spelling, and one /64 of IPv6', async (t) => {
  const direct = new CallerAddresses();
  t.equal(direct.of('203.0.113.9'), '203.0.113.9');
  t.equal(direct.of('::ffff:203.0.113.9'), '203.0.113.9', 'an IPv4-mapped address is IPv4');
  t.equal(direct.of('0:0:0:0:0:FFFF:cb00:7109'), '203.0.113.9', 'in any spelling');
  t.equal(direct.of('2001:db8:1:2:3:4:5:6'), '2001:db8:1:2::/64');
  t.equal(direct.of('2001:DB8:1:2::'), direct.of('2001:db8:1:2:ffff::1'), 'a /64 is one caller');
  t.not(direct.of('2001:db8:1:3::1'), direct.of('2001:db8:1:2::1'));
  t.equal(direct.of('::1'), '::/64');
  t.equal(direct.of('fe80::1%eth0'), 'fe80::/64');
  t.equal(direct.of(undefined), 'unknown');
  t.equal(direct.of('203.0.113.9', '198.51.100.1'), '203.0.113.9', 'no address is trusted by default');

  const behind = new CallerAddresses(['10.0.0.0/8', '192.0.2.7', '2001:db8:ffff::/48']);
  t.equal(behind.of('10.1.2.3', '198.51.100.1'), '198.51.100.1');
  t.equal(behind.of('::ffff:10.1.2.3', '198.51.100.1'), '198.51.100.1');
  t.equal(behind.of('2001:db8:ffff::1', '2001:db8:1:2::9'), '2001:db8:1:2::/64');
  t.equal(behind.of('203.0.113.9', '198.51.100.1'), '203.0.113.9', 'an unlisted address is not trusted');
  t.equal(
    behind.of('10.1.2.3', '1.1.1.1, 198.51.100.1 ,192.0.2.7,10.9.9.9'),
    '198.51.100.1',
    'the rightmost that is not trusted',
  );
  t.equal(
    behind.of('10.1.2.3', 'nonsense, , 198.51.100.1'),
    '198.51.100.1',
    'what the caller itself wrote moves nothing',
  );
  t.equal(behind.of('10.1.2.3', '10.1.1.1'), '10.1.2.3', 'only proxies in the header');
  for (const header of [
    '',
    'unknown',
    '198.51.100.1:port',
    '198.51.100.1:',
    '[198.51.100.1',
    '2001:db8::1]:443',
    '198.51.100.1, nonsense',
    '198.51.100.1,',
    '999.1.1.1',
  ]) {
    t.equal(behind.of('10.1.2.3', header), '10.1.2.3', `malformed: ${header}`);
  }
  for (const [header, expected] of [
    ['198.51.100.1:80', '198.51.100.1'],
    ['[2001:db8:1:2::9]:443', '2001:db8:1:2::/64'],
    ['[2001:db8:1:2::9]', '2001:db8:1:2::/64'],
    ['198.51.100.1:80, 10.9.9.9:65535', '198.51.100.1'],
  ] as const)
    t.equal(behind.of('10.1.2.3', header), expected, `a port is not part of the address: ${header}`);
  t.ok(behind.trusts('192.0.2.7'));
  t.notOk(behind.trusts('192.0.2.8'));
  t.notOk(behind.trusts(undefined));
});

t.test('every secret may be in a file', async (t) => {
  const directory = t.testdir({
    secret: 'a secret of 16 characters\n',
    token: 'operator-token-in-a-file',
    tokens: 'night-shift another-token-in-a-file\n',
    empty: '\n',
  });
  const path = (name: string) => join(directory, name);
  t.equal(
    readConfig({ TAKEMARK_OPERATOR_TOKEN_FILE: path('token') }).operator.token,
    'operator-token-in-a-file',
  );
  const cluster = {
    TAKEMARK_CASSANDRA: '127.0.0.1:9042',
    TAKEMARK_CASSANDRA_DC: 'dc1',
    TAKEMARK_CASSANDRA_USERNAME: 'takemark',
    TAKEMARK_KAFKA: '127.0.0.1:9092',
    TAKEMARK_KAFKA_USERNAME: 'takemark',
    TAKEMARK_ASSETS: 's3',
    TAKEMARK_S3_BUCKET: 'deliverables',
  };
  const config = readConfig({
    ...cluster,
    ...Object.fromEntries(
      Object.keys(FILE_SETTINGS)
        .filter((name) => name !== 'TAKEMARK_OPERATOR_TOKEN_FILE')
        .map((name) => [name, path(name === 'TAKEMARK_OPERATOR_TOKENS_FILE' ? 'tokens' : 'secret')]),
    ),
  });
  const password = 'a secret of 16 characters';
  t.match(config, {
    cassandra: { credentials: { password } },
    kafka: { credentials: { password } },
    assetBucket: { credentials: { accessKey: password, secretKey: password } },
    client: { apiKey: password },
    operator: { namedTokens: [{ name: 'night-shift', token: 'another-token-in-a-file' }] },
  });
  // Each setting whose name marks a secret in the configuration.
  const secrets = Object.keys(variables).filter((name) =>
    /_(?:TOKEN|PASSWORD|SECRET_KEY|API_KEY|PIN|SECRETS)$/.test(name),
  );
  for (const name of secrets.filter((each) => each !== 'TAKEMARK_SIGNING_PKCS11_TOKEN'))
    t.ok(Object.hasOwn(variables, `${name}_FILE`), name);
  for (const [wrong, message] of [
    [{ TAKEMARK_API_KEY_FILE: path('none') }, /^TAKEMARK_API_KEY_FILE: the file cannot be read \(ENOENT\)$/],
    [{ TAKEMARK_API_KEY_FILE: path('empty') }, /^TAKEMARK_API_KEY_FILE: the file is empty$/],
    [
      { TAKEMARK_API_KEY_FILE: path('secret'), TAKEMARK_API_KEY: 'a' },
      /^TAKEMARK_API_KEY_FILE: excludes TAKEMARK_API_KEY/,
    ],
    [{ TAKEMARK_OPERATOR_TOKEN_FILE: path('secret') }, /^TAKEMARK_OPERATOR_TOKEN: must be/],
  ] as const)
    t.throws(() => readConfig(wrong), { message });
});

t.test('metrics name the build, and only counters end with _total', async (t) => {
  const { metrics } = createTelemetry({
    level: 'silent',
    eventsWaiting: () => 0,
    lag: () => new Map(),
    build: { version: '1.2.3', commit: 'abc' },
  });
  const { text } = await metrics();
  t.match(text, 'takemark_build_info{version="1.2.3",commit="abc"} 1\n');
  const types = new Map([...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => [name!, type!]));
  t.ok(types.size > 20);
  t.strictSame(
    [...types].filter(([name, type]) => name.endsWith('_total') !== (type === 'counter')),
    [],
  );
});

t.test('configuration is read whole, and every fault in it is named', async (t) => {
  t.match(readConfig({}), {
    partner: { port: 8080 },
    operator: { port: 8081, host: '127.0.0.1', token: undefined },
    dataDirectory: './takemark-data',
    environment: 'production',
    publicUrl: 'http://127.0.0.1:8080',
    store: 'embedded',
    bus: 'embedded',
    engine: { kind: 'wasm' },
  });
  t.equal(readConfig({ TAKEMARK_PORT: '0', PATH: '/bin' }).publicUrl, undefined);
  t.equal(
    readConfig({ TAKEMARK_PUBLIC_URL: 'https://api.example.com/base/' }).publicUrl,
    'https://api.example.com/base',
  );
  for (const name of ['TAKEMARK_URL', 'TAKEMARK_OPERATOR_URL', 'TAKEMARK_PUBLIC_URL'])
    for (const user of ['label:s3cret', 'label', ':s3cret'])
      t.throws(() => readConfig({ [name]: `https://${user}@api.example.com/v1` }), {
        message: `${name}: must have no user name or password`,
      });
  t.strictSame(
    readConfig({ TAKEMARK_OPERATOR_TOKEN: '', TAKEMARK_PORT: '9000' }).partner.port,
    9000,
    'empty is not set',
  );
  const files = { TAKEMARK_SIGNING_CERT: 'a', TAKEMARK_SIGNING_KEY: 'b', TAKEMARK_SIGNING_AUTHORITY: 'c' };
  t.strictSame(readConfig(files).signing.files, { certificate: 'a', key: 'b', authority: 'c' });
  t.throws(() => readConfig({ ...files, TAKEMARK_SIGNING_KEY: '' }), { message: /all three or none/ });
  t.equal(
    readConfig({ TAKEMARK_S3_ENDPOINT: 'http://127.0.0.1:1' }).assetBucket,
    undefined,
    'an endpoint alone changes nothing',
  );
  t.equal(readConfig({ TAKEMARK_INGRESS_MIB: '64' }).ingressBytes, 67_108_864);
  t.equal(readConfig({}).ingressBytes, undefined);
  t.strictSame(readConfig({}).trustedProxies, []);
  t.strictSame(
    readConfig({ TAKEMARK_TRUSTED_PROXIES: '10.0.0.0/8, 192.0.2.7,2001:db8::/32' }).trustedProxies,
    ['10.0.0.0/8', '192.0.2.7', '2001:db8::/32'],
  );
  for (const wrong of [
    'proxy.example',
    '10.0.0.0/33',
    '10.0.0.0/8,',
    '2001:db8::/129',
    '10.0.0/8',
    '10.0.0.0/8/8',
  ]) {
    t.throws(
      () => readConfig({ TAKEMARK_TRUSTED_PROXIES: wrong }),
      { message: /TAKEMARK_TRUSTED_PROXIES: must be a comma-separated list of addresses/ },
      wrong,
    );
  }
  t.strictSame(readConfig({}).operator.names, []);
  t.strictSame(readConfig({ TAKEMARK_OPERATOR_NAMES: 'Takemark-0.svc,.mesh.internal' }).operator.names, [
    'takemark-0.svc',
    '.mesh.internal',
  ]);
  for (const wrong of ['a b', 'a,,b', '.', 'a:8081', '*.example'])
    t.throws(() => readConfig({ TAKEMARK_OPERATOR_NAMES: wrong }), { message: /list of host names/ }, wrong);
  const bucket = { TAKEMARK_ASSETS: 's3', TAKEMARK_S3_BUCKET: 'deliverables', TAKEMARK_ENVIRONMENT: 'beta' };
  t.strictSame(
    readConfig(bucket).assetBucket,
    {
      region: 'us-east-1',
      bucket: 'deliverables',
      prefix: 'beta/assets/',
    },
    'environments do not meet in one bucket',
  );
  t.throws(() => readConfig({ TAKEMARK_ASSETS: 's3' }), { message: /^TAKEMARK_S3_BUCKET/ });
  t.throws(() => readConfig({ ...bucket, TAKEMARK_S3_ACCESS_KEY: 'a' }), { message: /set both or neither/ });
  t.throws(() => readConfig({ ...bucket, TAKEMARK_S3_PREFIX: '/a' }), { message: /^TAKEMARK_S3_PREFIX/ });
  t.strictSame(
    readConfig({ TAKEMARK_PROT: '1' }).unknown.misspelt,
    [{ name: 'TAKEMARK_PROT', nearest: 'TAKEMARK_PORT' }],
    'a spelling mistake is named at start',
  );
  t.throws(() => readConfig({ TAKEMARK_PORT: '8081' }), { message: /must differ/ });
  const cluster = {
    TAKEMARK_STORE: 'cassandra',
    TAKEMARK_CASSANDRA: 'a:9042,b:9042',
    TAKEMARK_CASSANDRA_DC: 'dc1',
    TAKEMARK_SECRETS_FILE: 'bundle.json',
  };
  t.match(readConfig(cluster).cassandra, {
    contactPoints: ['a:9042', 'b:9042'],
    localDataCenter: 'dc1',
    keyspace: 'takemark',
    replication: 3,
    topology: 'one_data_centre',
  });
  t.throws(
    () => readConfig({ ...cluster, TAKEMARK_SECRETS_FILE: '' }),
    { message: /TAKEMARK_SECRETS_FILE: is required/ },
    'no process of a cluster makes its own identity',
  );
  const { TAKEMARK_SECRETS_FILE: _, ...without } = cluster;
  t.strictSame(
    [readConfig(cluster).secrets, readConfig({ ...without, TAKEMARK_SECRETS: '{}' }).secrets],
    [{ file: 'bundle.json' }, { text: '{}' }],
    'of a file, or as a variable',
  );
  t.throws(() => readConfig({ ...cluster, TAKEMARK_SECRETS: '{}' }), {
    message: /^TAKEMARK_SECRETS: excludes TAKEMARK_SECRETS_FILE/,
  });
  t.throws(() => readConfig({ ...cluster, TAKEMARK_CASSANDRA_USERNAME: 'u' }), {
    message: /set both or neither/,
  });
  t.match(readConfig({}), { kafka: undefined, consumers: true, outboxLimit: 100_000 });
  const kafka = { TAKEMARK_BUS: 'kafka', TAKEMARK_KAFKA: 'a:9092,b:9092' };
  t.match(readConfig(kafka), {
    bus: 'kafka',
    consumers: true,
    kafka: { brokers: ['a:9092', 'b:9092'], prefix: 'takemark', partitions: 12, replication: 3 },
  });
  t.throws(
    () => readConfig({ ...kafka, TAKEMARK_CONSUMERS: 'off' }),
    { message: /must be on with TAKEMARK_STORE=embedded/ },
    'no other process has the store',
  );
  t.throws(
    () => readConfig({ ...cluster, ...kafka }),
    { message: /^TAKEMARK_ASSETS: must be s3/ },
    'no other process has the directory',
  );
  const many = { ...cluster, ...kafka, TAKEMARK_ASSETS: 's3', TAKEMARK_S3_BUCKET: 'deliverables' };
  t.equal(readConfig(many).consumers, false);
  t.equal(readConfig({ ...many, TAKEMARK_CONSUMERS: 'on' }).consumers, true);
  const beta = readConfig({ ...many, TAKEMARK_ENVIRONMENT: 'beta' });
  t.strictSame(
    [beta.cassandra?.keyspace, beta.kafka?.prefix],
    ['takemark_beta', 'takemark-beta'],
    'environments do not meet in one cluster',
  );
  t.match(
    readConfig({
      ...kafka,
      TAKEMARK_KAFKA_USERNAME: 'u',
      TAKEMARK_KAFKA_PASSWORD: 'p',
      TAKEMARK_KAFKA_TLS_CA: 'ca.pem',
    }).kafka,
    { credentials: { username: 'u', password: 'p' }, tls: { authority: 'ca.pem' } },
  );
  t.strictSame(
    readConfig(kafka).plainServers,
    ['kafka'],
    'what is spoken to in plain text, and is not on this machine',
  );
  for (const addresses of ['127.0.0.1:9092', 'localhost:9092,127.9.9.9:1', '[::1]:9092'])
    t.strictSame(readConfig({ ...kafka, TAKEMARK_KAFKA: addresses }).plainServers, []);
  t.strictSame(
    readConfig({ ...kafka, TAKEMARK_KAFKA: '127.0.0.1:9092,127.0.0.1.example:9092' }).plainServers,
    ['kafka'],
  );
  t.strictSame(readConfig({ ...kafka, TAKEMARK_KAFKA_TLS_CA: 'ca.pem' }).plainServers, []);
  t.throws(() => readConfig({ TAKEMARK_BUS: 'kafka' }), { message: /TAKEMARK_KAFKA: is required/ });
  t.throws(() => readConfig({ ...kafka, TAKEMARK_KAFKA_PASSWORD: 'p' }), { message: /set both or neither/ });
  t.throws(() => readConfig({ TAKEMARK_CONSUMERS: 'off' }), {
    message: /must be on with TAKEMARK_STORE=embedded/,
  });
  t.throws(
    () => readConfig({ ...cluster, TAKEMARK_CONSUMERS: 'off' }),
    { message: /must be on with TAKEMARK_BUS=embedded/ },
    'no other process could take the events',
  );
  t.match(
    readConfig({ ...cluster, TAKEMARK_OUTBOX_LIMIT: '5' }),
    { consumers: true, outboxLimit: 5 },
    'a cluster store with the embedded bus is one process',
  );
  const wrong = {
    TAKEMARK_PORT: '65536',
    TAKEMARK_ENVIRONMENT: 'prod',
    TAKEMARK_ENGINE: 'rust',
    TAKEMARK_PUBLIC_URL: 'ftp://x',
    TAKEMARK_OPERATOR_TOKEN: 'short secret',
    TAKEMARK_LOG_LEVEL: 'loud',
    TAKEMARK_MAX_UPLOADS: '0',
  };
  try {
    readConfig(wrong);
    t.fail('wrong values pass');
  } catch (error) {
    const { message } = error as Error;
    t.strictSame(
      message
        .split('\n')
        .map((line) => line.split(':')[0])
        .sort(),
      Object.keys(wrong).sort(),
      'every problem is named',
    );
    t.notMatch(message, /short secret/, 'without its value');
  }
});

t.test('a process that exits has written its lines, also into a pipe without a reader', async (t) => {
  const program = `
    import { createTelemetry } from ${JSON.stringify(new URL('../../src/service/telemetry/telemetry.js', import.meta.url).href)};
    const { note } = createTelemetry({ level: 'info', eventsWaiting: () => 0, lag: () => new Map() });
    note('first');
    setTimeout(() => {
      note('second');
      note('third');
      process.exit(3);
    }, 200);`;
  const node = [process.execPath, '--input-type=module', '--eval', program];
  const { status, stdout, stderr } = spawnSync(node[0]!, node.slice(1), { encoding: 'utf8' });
  t.strictSame(
    stdout
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as { event: string }).event),
    ['first', 'second', 'third'],
  );
  t.strictSame([status, stderr], [3, '']);
  const closed = spawnSync('bash', ['-c', '"$@" | true; exit $PIPESTATUS', 'bash', ...node], {
    encoding: 'utf8',
  });
  t.strictSame([closed.status, closed.stderr], [3, '']);
});

t.test(
  'a process whose log finds no room goes on, and ends when it is to',
  { skip: !existsSync('/dev/full') && 'there is no /dev/full' },
  async (t) => {
    const program = `
      import { exitOnCrash } from ${JSON.stringify(new URL('../../src/service/compose/process.js', import.meta.url).href)};
      import { createTelemetry } from ${JSON.stringify(new URL('../../src/service/telemetry/telemetry.js', import.meta.url).href)};
      exitOnCrash({ version: '1.0.0' });
      const { note, flush } = createTelemetry({ level: 'info', eventsWaiting: () => 0, lag: () => new Map() });
      for (const seconds of [0, 0.1, 0.2]) setTimeout(() => note('line'), seconds * 1000);
      setTimeout(() => {
        note('last');
        flush();
        process.exit(3);
      }, 400);`;
    const node = [process.execPath, '--input-type=module', '--eval', program];
    const full = spawnSync('bash', ['-c', 'exec "$@" > /dev/full', 'bash', ...node], {
      encoding: 'utf8',
      timeout: 120_000,
      killSignal: 'SIGKILL',
    });
    t.strictSame([full.status, full.stderr], [3, '']);
  },
);

t.test('lines that found no room are written when there is some, in their order', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'takemark-log-'));
  t.teardown(() => rmSync(directory, { recursive: true, force: true }));
  const path = join(directory, 'log');
  writeFileSync(path, '');
  // A file that is open for reading accepts no lines, until another file has its number.
  const fd = openSync(path, 'r');
  const output = new LogOutput(fd);
  output.write('first\n');
  await delay(50);
  output.write('second\n');
  t.equal(readFileSync(path, 'utf8'), '');
  closeSync(fd);
  t.equal(openSync(path, 'a'), fd);
  while (!readFileSync(path, 'utf8').includes('second')) await delay(20);
  output.write('third\n');
  output.flushSync();
  t.equal(readFileSync(path, 'utf8'), 'first\nsecond\nthird\n');
  closeSync(fd);
});

t.test('telemetry counts and logs every report', async (t) => {
  const lines: string[] = [];
  const telemetry = createTelemetry({
    level: 'trace',
    destination: { write: (line) => void lines.push(line) },
    engineStats: () => ({
      kind: 'wasm',
      kernelLanes: 8,
      hashDifferences: 2,
      uploadsInFlight: 3,
      slabsInUse: 1,
      slabs: 8,
      tasks: 10,
      lanes: 39,
      bytes: 5,
      workerRestarts: 0,
    }),
    eventsWaiting: () => 12,
    lag: () => new Map([['usage', 7]]),
  });
  const canary = 'CANARY-4711';
  telemetry.requestLog.request({
    listener: 'partner',
    method: 'POST',
    route: '/v1/verify',
    status: 200,
    requestId: 'rq_1',
    keyId: 'key_1',
    durationMs: 1.234_56,
    bytesIn: 1,
    bytesOut: 2,
    body: canary,
  } as never);
  telemetry.observer.verdict('valid', 'embedded');
  telemetry.observer.upload('stored', 100);
  telemetry.observer.issued('sidecar');
  telemetry.observer.events('usage', 'published', 3);
  telemetry.observer.events('usage', 'handled', 2);
  telemetry.observer.fault(
    'store',
    Object.assign(new Error(canary, { cause: new Error(canary) }), { code: 'ENOSPC', detail: canary }),
  );
  telemetry.observer.fault(
    'engine',
    new DomainError('unavailable', 'The engine stopped.', {
      reason: 'engine_failed',
      cause: new TypeError(canary),
    }),
  );
  telemetry.observer.fault('retention', canary);
  telemetry.observer.fault(
    'producer',
    new DomainError('unavailable', 'Events cannot be passed on.', {
      cause: Object.assign(new ServerError('Kafka refuses the password'), { code: -169 }),
    }),
  );
  telemetry.observer.events('erasure', 'dead', 1);
  const output = lines.join('');
  t.notMatch(output, canary, 'no message, cause or extra member of an error or a record is written');
  t.match(JSON.parse(lines[0]!), {
    event: 'request',
    route: '/v1/verify',
    keyId: 'key_1',
    requestId: 'rq_1',
    status: 200,
    durationMs: 1.235,
    bytesIn: 1,
    bytesOut: 2,
  });
  t.match(JSON.parse(lines[1]!), {
    event: 'fault',
    where: 'store',
    error: { code: 'ENOSPC', at: [/^at /], cause: { name: 'Error' } },
  });
  t.match(JSON.parse(lines[2]!), {
    error: { message: 'The engine stopped.', reason: 'engine_failed', cause: { name: 'TypeError' } },
  });
  t.match(
    JSON.parse(lines.find((line) => line.includes('"producer"'))!),
    { error: { cause: { name: 'ServerError', code: -169, message: 'Kafka refuses the password' } } },
    'what the operator has to know of a server',
  );
  const { text, mediaType } = await telemetry.metrics();
  t.match(mediaType, /^text\/plain/);
  for (const line of [
    'takemark_requests_total{listener="partner",method="POST",route="/v1/verify",status="200"} 1',
    'takemark_verdicts_total{verdict="valid",carrier="embedded"} 1',
    'takemark_uploads_total{outcome="stored"} 1',
    'takemark_upload_bytes_total{outcome="stored"} 100',
    'takemark_proofs_issued_total{carrier="sidecar"} 1',
    'takemark_outbox_waiting 12',
    'takemark_events_behind{topic="usage"} 7',
    'takemark_events_published_total{topic="usage"} 3',
    'takemark_events_handled_total{topic="usage"} 2',
    'takemark_dead_letters_total{topic="erasure"} 1',
    // The metrics exist before the first event, because no alert sees an increase from an absent metric.
    'takemark_dead_letters_total{topic="usage"} 0',
    'takemark_events_published_total{topic="erasure"} 0',
    'takemark_faults_total{where="store"} 1',
    'takemark_engine_uploads_in_flight 3',
    'takemark_engine_lanes 39',
    'takemark_engine_kernel_lanes 8',
    'takemark_engine_hash_differences 2',
  ]) {
    t.ok(text.includes(line), line);
  }

  const outbox = { waiting: () => 4, limit: 5 };
  const store = async () => {};
  const failing = async () => {
    throw new Error('x');
  };
  const hanging = () => new Promise<void>(() => {});
  await createProbes({ store, outbox }).ready();
  await createProbes({ store, bus: store, outbox }).ready();
  const unready = { code: 'unavailable', reason: 'store_unavailable' };
  await t.rejects(createProbes({ store: failing, outbox }).ready(), unready);
  await t.rejects(createProbes({ store: hanging, outbox, timeoutMs: 20 }).ready(), unready);
  const busless = { code: 'unavailable', reason: 'bus_unavailable' };
  await t.rejects(createProbes({ store, bus: failing, outbox }).ready(), busless);
  await t.rejects(createProbes({ store, bus: hanging, outbox, timeoutMs: 20 }).ready(), busless);
  await t.rejects(createProbes({ store, outbox: { ...outbox, waiting: () => 5 } }).ready(), {
    code: 'unavailable',
    reason: 'outbox_full',
  });
  let asked = 0;
  const probes = createProbes({
    store: async () => {
      asked += 1;
    },
    outbox,
  });
  await Promise.all(Array.from({ length: 20 }, () => probes.ready()));
  t.equal(asked, 1, 'frequent callers cost no further checks of the store');
  probes.stopping();
  await t.rejects(probes.ready(), { message: 'The service is stopping.' });
});

t.test('an import against the rules is found', async (t) => {
  const script = resolve('test/check-imports.mjs');
  const check = (cwd: string) => spawnSync(process.execPath, [script], { cwd, encoding: 'utf8' });
  // A copy, so that concurrent tests do not see the planted files.
  const copy = mkdtempSync('dist/planted-');
  t.teardown(() => rmSync(copy, { recursive: true }));
  const nothing = check(copy);
  t.not(nothing.status, 0, 'seeing no modules is a failure');
  t.match(nothing.stderr, /no modules/);
  cpSync('src', join(copy, 'src'), { recursive: true });
  const planted: [string, string, string][] = [
    ['core/domain/planted-a.ts', "import '../ports/signing.js';", 'core/domain'],
    [
      'service/domain/planted-b.ts',
      "import { readFileSync } from 'node:fs';\nexport const x = readFileSync;",
      'domain-without-io',
    ],
    [
      'service/ports/planted-c.ts',
      "import type { Exchange } from '../http/exchange.js';\nexport type X = Exchange;",
      'service/ports',
    ],
    [
      'service/operations/planted-d.ts',
      "import express from 'express';\nexport const x = express;",
      'library-express',
    ],
    ['service/contract/planted-e.ts', "import { pino } from 'pino';\nexport const x = pino;", 'library-pino'],
    ['service/http/planted-f.ts', "import '../telemetry/log.js';", 'service/http'],
    ['service/http/planted-g.ts', "export const x = import('zod');", 'library-zod'],
    ['service/telemetry/planted-h.ts', "import '../config/config.js';", 'service/telemetry'],
    [
      'core/engine/planted-i.ts',
      "import { request } from 'undici';\nexport const x = request;",
      'library-unlisted',
    ],
    [
      'client/planted-j.ts',
      "import { ROUTES } from '../service/contract/routes/routes.js';\nexport const x = ROUTES;",
      'client',
    ],
    ['service/adapters/kafka/planted-k.ts', "import '../cassandra/planted-l.js';", 'adapters-apart'],
    ['service/adapters/cassandra/planted-l.ts', 'export const x = 1;', ''],
    ['service/adapters/cassandra/commit/planted-o.ts', "import '../store.js';", 'cassandra-commit'],
    ['service/http/planted-m.ts', "import './no-such-file.js';", 'resolved'],
    ['stray/planted-n.ts', "import '../service/http/exchange.js';", 'folders'],
    ['service/stray/planted-r.ts', "import '../http/exchange.js';", 'folders'],
    ['witness/domain/planted-s.ts', "import '../../service/domain/proof.js';", 'building-witness'],
    [
      'service/http/response/planted-o.ts',
      "import type { Call } from '../server/endpoint.js';\nexport type X = Call<never>;",
      'http-layers-3',
    ],
    [
      'core/domain/planted-p.ts',
      "import type { X } from './planted-q.js';\nexport type Y = X;",
      'no-circles',
    ],
    [
      'core/domain/planted-q.ts',
      "import type { Y } from './planted-p.js';\nexport type X = Y | 1;",
      'no-circles',
    ],
  ];
  for (const [name, source] of planted) {
    mkdirSync(dirname(join(copy, 'src', name)), { recursive: true });
    writeFileSync(join(copy, 'src', name), `${source}\n`);
  }
  const found = check(copy);
  t.not(found.status, 0);
  t.strictSame(
    found.stdout.split('\n').filter((line) => line.startsWith('error ') && !line.includes('planted-')),
    [],
    'and nothing else is',
  );
  for (const [name, , rule] of planted) {
    if (rule !== '')
      t.ok(
        found.stdout.split('\n').some((line) => line.includes(`error ${rule}:`) && line.includes(name)),
        `${rule}: ${name} is found`,
      );
  }
});

t.test('the second name of the request id is none that a response has for something else', async (t) => {
  for (const name of ['X-Trace-Id', 'traceparent', 'X-Request-Id'])
    t.equal(readConfig({ TAKEMARK_REQUEST_ID_HEADER: name }).requestIdHeader, name);
  for (const name of [
    'Content-Length',
    'transfer-encoding',
    'Content-Type',
    'Set-Cookie',
    'X-RateLimit-Reset',
    'RateLimit',
  ])
    t.throws(() => readConfig({ TAKEMARK_REQUEST_ID_HEADER: name }), {
      name: 'ConfigError',
      message: /^TAKEMARK_REQUEST_ID_HEADER: must not be a response header/,
    });
});
