import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import t from 'tap';
import { setUp } from './bench.js';

const PROOF = {
  proofId: 'prf_1',
  issuedAt: 1_767_225_600,
  createdAt: 1_767_225_600,
  song: { title: 'Take one' },
  carrier: 'sidecar',
  boundAudioSha256: 'aa',
  originalSha256: 'bb',
};
const NOBODY = 'http://127.0.0.1:1';
const portOf = (url: string): number => Number(new URL(url).port);

t.test('the option names the address before the variable does', async (t) => {
  const { service, operator, takemark } = await setUp(t, { url: NOBODY, operatorUrl: NOBODY });
  t.match(await takemark('health'), {
    code: 3,
    err: /no answer from the service at http:\/\/127\.0\.0\.1:1: .*ECONNREFUSED.*; set another address with --url or TAKEMARK_URL/,
  });
  t.match(await takemark('health', '--url', `${service.url}/`), { code: 0, err: '' });
  t.match(await takemark('operator', 'partner', 'list'), {
    code: 3,
    err: /at http:\/\/127\.0\.0\.1:1: .*; set another address with --operator-url or TAKEMARK_OPERATOR_URL/,
  });
  t.match(await takemark('operator', 'partner', 'list', '--operator-url', operator.url), { code: 0 });
  for (const wrong of [
    'example.com',
    'ftp://example.com',
    `${NOBODY}/?key=1`,
    'http://name:word@127.0.0.1',
    'http://:word@127.0.0.1',
  ])
    t.match(await takemark('health', '--url', wrong), {
      code: 2,
      err: /--url must be an http or https address/,
    });
  t.match(await takemark('completion', 'bash', '--url', NOBODY), { code: 2, err: /unknown option '--url'/ });
  t.match(await takemark('usage', '--url', 'http://service.example'), {
    code: 2,
    err: /plain http to http:\/\/service\.example would expose the secret: use an https address \(TAKEMARK_URL/,
  });
});

t.test('a service of a named data directory on this machine is found', async (t) => {
  const none = { url: undefined, operatorUrl: undefined };
  const bench = await setUp(t, { ...none, dataDirectoryNamed: true });
  const { service, operator, directory } = bench;
  service.on('/v1/proofs/prf_1', () => ({ status: 200, body: PROOF }));
  const path = join(directory, 'endpoints.json');
  await writeFile(path, JSON.stringify({ partner: portOf(service.url), operator: portOf(operator.url) }));
  t.match(await bench.takemark('proofs', 'get', 'prf_1'), { code: 0 });
  t.match(await bench.takemark('operator', 'partner', 'list'), { code: 0 });

  await writeFile(path, JSON.stringify({ partner: portOf(service.url), operator: 1, tls: true }));
  t.match(await bench.takemark('health'), {
    code: 3,
    err: /at https:\/\/localhost:.* \(the server does not speak https/,
  });

  const strange = [
    '{"partner":"1@service.example","operator":81}',
    '{"partner":8080,"operator":70000}',
    'not JSON',
    `{"operator":1,"partner":1}${' '.repeat(2000)}`,
  ];
  for (const text of strange) {
    await writeFile(path, text);
    // The file is ignored. The command calls only the default port of this machine.
    const { err } = await bench.takemark('health');
    t.notMatch(err, /127\.0\.0\.1:1:|example|70000/, text);
  }
  await rm(path);
  await mkdir(path);
  t.notMatch((await bench.takemark('health')).err, /127\.0\.0\.1:1:/);
});

t.test('a default data directory gets no secret of the environment', async (t) => {
  const none = { url: undefined, operatorUrl: undefined };
  const { service, operator, directory, takemark } = await setUp(t, none);
  await writeFile(
    join(directory, 'endpoints.json'),
    JSON.stringify({ partner: portOf(service.url), operator: portOf(operator.url) }),
  );
  await takemark('usage');
  await takemark('operator', 'partner', 'list', '--allow-plain-http');
  t.strictSame(service.requests('/usage'), []);
  t.strictSame(operator.calls, []);

  // The token beside the file may be sent where the file says.
  const own = await setUp(t, { ...none, operatorToken: undefined });
  await writeFile(join(own.directory, 'operator-token'), own.operator.token);
  await writeFile(
    join(own.directory, 'endpoints.json'),
    JSON.stringify({ operator: portOf(own.operator.url) }),
  );
  t.match(await own.takemark('operator', 'partner', 'list'), { code: 0 });
});

t.test('an address that is wrong is in the error', async (t) => {
  const { service, takemark, file, directory } = await setUp(t);
  const address = service.url.replaceAll('.', '\\.');
  service.on('/v1/proofs', () => ({
    status: 404,
    body: { error: 'This path does not exist.', code: 'not_found', reason: 'unknown_route' },
  }));
  t.match(await takemark('proofs', 'list'), {
    code: 3,
    err: new RegExp(`${address} answers: This path does not exist\\.`),
  });
  const stranger = createHttpServer((_, response) => response.writeHead(404).end('<html>'));
  stranger.listen(0, '127.0.0.1');
  await once(stranger, 'listening');
  t.teardown(() => stranger.close());
  const other = `http://127.0.0.1:${(stranger.address() as AddressInfo).port}`;
  t.match(await takemark('usage', '--url', other), {
    code: 3,
    err: new RegExp(`${other} answers: the service returned 404`),
  });
  const https = service.url.replace('http:', 'https:');
  t.match(await takemark('usage', '--url', https), {
    code: 3,
    err: /at https:.*: the TLS connection failed .* \(the server does not speak https, perhaps http\); set another address with --url/,
  });

  const silent = createServer((socket) => socket.destroy());
  silent.listen(0, '127.0.0.1');
  await once(silent, 'listening');
  t.teardown(() => silent.close());
  const { port } = silent.address() as AddressInfo;
  t.match(await takemark('health', '--url', `http://127.0.0.1:${port}`), {
    code: 3,
    err: new RegExp(`at http://127\\.0\\.0\\.1:${port}: .* \\(the server may speak https\\);`),
  });

  for (const name of ['in/a.wav', 'in/b.wav']) await file(name);
  service.on('/v1/verifications', () => ({ status: 200, body: {} }));
  const batch = await takemark('verify', join(directory, 'in'), '--format', 'jsonl', '--concurrency', '1');
  t.equal(batch.code, 3);
  t.match(batch.out, new RegExp(`"message":"unexpected response from ${address}: `));
});

t.test('an error of a setting names the variable', async (t) => {
  const { takemark } = await setUp(t, { apiKey: 'tmk_a key' });
  t.match(await takemark('usage'), { code: 2, err: /TAKEMARK_API_KEY must be printable ASCII/ });
  const { publicKey } = generateKeyPairSync('ed25519');
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  for (const content of [
    'no PEM',
    publicKey.export({ type: 'spki', format: 'pem' }),
    privateKey.export({ type: 'pkcs8', format: 'pem' }),
  ]) {
    const signingKey = join(t.testdir({ key: String(content) }), 'key');
    const signing = await setUp(t, { signingKey });
    t.match(await signing.takemark('usage'), {
      code: 2,
      err: /TAKEMARK_API_SIGNING_KEY must name a PEM file of an Ed25519 or P-256 private key/,
    });
  }
});
