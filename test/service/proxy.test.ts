/** The server block of docs/proxies.md, run by nginx in front of a service. */
import { type ChildProcess, spawn } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import http from 'node:http';
import http2 from 'node:http2';
import { type AddressInfo, connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { createClient } from '../../src/client/index.js';
import { TestService } from '../fixtures/service.js';
import { makeTlsIdentity } from '../fixtures/tls.js';
import { needs } from '../fixtures/tools.js';
import { wav } from '../fixtures/wav.js';

const PAGE = new URL('../../../docs/proxies.md', import.meta.url);
const PATIENCE_MS = 60_000;

const skip = needs('nginx');

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

async function isOpen(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  return new Promise((resolve) => {
    socket.on('connect', () => resolve(true)).on('error', () => resolve(false));
  }).then((open) => {
    socket.destroy();
    return open as boolean;
  });
}

/** Returns the page's own block, with the ports and files of this run in place of those that it names. */
async function serverBlock(values: Readonly<Record<string, string>>): Promise<string> {
  const block = /```nginx\n([\s\S]*?)```/.exec(await readFile(PAGE, 'utf8'))?.[1];
  if (block === undefined) throw new Error('the page has no server block');
  return Object.entries(values).reduce((text, [from, to]) => {
    if (!text.includes(from)) throw new Error(`the block does not name ${from}`);
    return text.replaceAll(from, to);
  }, block);
}

async function setUp(t: Test, behind?: string) {
  const directory = await mkdtemp(join(tmpdir(), 'takemark-proxy-'));
  const port = await freePort();
  const url = `https://localhost:${port}`;
  const service = await TestService.start({
    TAKEMARK_PUBLIC_URL: url,
    TAKEMARK_TRUSTED_PROXIES: '127.0.0.1',
  });
  const identity = makeTlsIdentity();
  const [certificate, key] = [join(directory, 'a.pem'), join(directory, 'a.key')];
  await Promise.all([writeFile(certificate, identity.cert), writeFile(key, identity.key)]);
  const block = await serverBlock({
    'listen 443': `listen 127.0.0.1:${port}`,
    'partners.example;': 'localhost;',
    '/etc/nginx/partners.example.pem': certificate,
    '/etc/nginx/partners.example.key': key,
    'http://127.0.0.1:8080': behind ?? service.partnerUrl,
  });
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${directory}/${name};`,
  );
  const file = join(directory, 'nginx.conf');
  await writeFile(
    file,
    `daemon off; master_process off; pid ${directory}/pid; error_log stderr;
events {}
http { access_log off; ${paths.join(' ')}
${block}}
`,
  );
  let said = '';
  const nginx: ChildProcess = spawn('nginx', ['-c', file, '-p', directory, '-e', 'stderr'], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  nginx.stderr?.on('data', (chunk: Buffer) => (said += chunk.toString()));
  const exited = once(nginx, 'exit');
  t.teardown(async () => {
    nginx.kill('SIGKILL');
    await exited;
    await service.stop();
    await rm(directory, { recursive: true });
  });
  for (const deadline = Date.now() + PATIENCE_MS; !(await isOpen(port)); await sleep(50))
    if (nginx.exitCode !== null || Date.now() > deadline) throw new Error(`nginx does not serve: ${said}`);
  return { service, url, port, identity };
}

t.test('a partner is served through the proxy of the page', { skip }, async (t) => {
  const { service, url, identity } = await setUp(t);
  const { partnerId, apiKey } = await service.partner();
  const issued = await service.issue(partnerId, wav(3 * 1_048_576));
  const client = createClient({ baseUrl: url, apiKey, ca: identity.cert });
  t.teardown(() => client.close());
  const slot = await client.createUpload();
  t.ok(slot.url.startsWith(`${url}/uploads/`), 'slots are named under the public address');
  await client.upload(slot, issued.file);
  t.match(await client.verify({ uploadId: slot.uploadId }), { verdict: 'valid', accepted: true });

  const asset = await client.readAsset(issued.proofId, { range: { start: 100, end: 199 } });
  const parts: Uint8Array[] = [];
  for await (const part of asset.body) parts.push(part);
  t.strictSame(Buffer.concat(parts), issued.file.subarray(100, 200), 'ranges go through');
  await t.rejects(client.readProof('prf_absent'), { code: 'not_found' }, 'so do refusals');

  // As long as a slot takes: nothing on the way has a smaller bound.
  const longest = await client.createUpload();
  const audio = Buffer.alloc(longest.maxBytes);
  t.match(await client.upload(longest, audio), { bytes: longest.maxBytes });

  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const signed = await service.service.operations.operator.createKey({
    partnerId,
    name: 'signed',
    publicKey: publicKey.export({ type: 'spki', format: 'pem' }) as string,
  });
  const signing = createClient({
    baseUrl: url,
    apiKey: signed.apiKey,
    signingKey: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
    ca: identity.cert,
  });
  t.teardown(() => signing.close());
  t.match(await signing.verifyFile(issued.file), { accepted: true }, 'signatures survive the way');
});

t.test('HTTP/2 ends at the proxy, and slots are named by the public address alone', { skip }, async (t) => {
  const { service, url, identity } = await setUp(t);
  const { apiKey } = await service.partner();
  const session = http2.connect(url, { ca: identity.cert });
  t.teardown(() => session.close());
  const ask = async (headers: http2.OutgoingHttpHeaders, body?: string) => {
    const stream = session.request(headers);
    stream.end(body);
    let text = '';
    stream.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
    const [answer] = (await once(stream, 'response')) as [http2.IncomingHttpHeaders];
    await once(stream, 'end');
    return { status: answer[':status'], requestId: answer['x-request-id'], body: JSON.parse(text) as object };
  };
  t.match(await ask({ ':path': '/v1/health' }), { status: 200, body: { ok: true } });
  t.equal(session.alpnProtocol, 'h2');
  const slot = await ask(
    {
      ':method': 'POST',
      ':path': '/v1/uploads',
      'content-type': 'application/json',
      'x-api-key': apiKey,
      'x-forwarded-for': '203.0.113.9',
      'x-forwarded-host': 'elsewhere.example',
      'x-request-id': 'mine',
    },
    '{"purpose":"verify"}',
  );
  t.match(slot, { status: 201, body: { url: new RegExp(`^${url}/uploads/`) } });
  t.not(slot.requestId, 'mine');
});

t.test('no claim of a caller about its address gets past the proxy', { skip }, async (t) => {
  const seen: http.IncomingHttpHeaders[] = [];
  const server = http.createServer((request, response) => {
    seen.push(request.headers);
    response.end('{"ok":true}');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const { url, identity } = await setUp(t, `http://127.0.0.1:${port}`);
  const session = http2.connect(url, { ca: identity.cert });
  t.teardown(() => session.close());
  const stream = session.request({ ':path': '/v1/health', 'x-forwarded-for': '203.0.113.9, 127.0.0.1' });
  stream.end();
  await once(stream.resume(), 'end');
  t.equal(seen.length, 1);
  t.equal(seen[0]?.['x-forwarded-for'], '127.0.0.1');
});
