import { createHash, randomBytes, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import https from 'node:https';
import { type AddressInfo, connect as connectPlain, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import t, { type Test } from 'tap';
import { createClient } from '../../src/client/index.js';
import { TlsFiles } from '../../src/service/adapters/system/tls-files.js';
import { readConfig } from '../../src/service/config/config.js';
import { TlsFront } from '../../src/service/http/server/tls-front.js';
import { TestService } from '../fixtures/service.js';
import { makeTlsIdentity, type TlsIdentity } from '../fixtures/tls.js';
import { until } from '../fixtures/until.js';
import { wav } from '../fixtures/wav.js';

interface SecureHouse {
  readonly service: TestService;
  readonly port: number;
  readonly url: string;
  readonly identity: TlsIdentity;
  write(identity: Partial<TlsIdentity>): Promise<void>;
}

async function setUp(t: Test): Promise<SecureHouse> {
  const directory = await mkdtemp(join(tmpdir(), 'takemark-tls-'));
  const paths = { cert: join(directory, 'certificate.pem'), key: join(directory, 'key.pem') };
  const write = async (identity: Partial<TlsIdentity>): Promise<void> => {
    for (const name of ['cert', 'key'] as const)
      if (identity[name] !== undefined) await writeFile(paths[name], identity[name]);
  };
  const identity = makeTlsIdentity();
  await write(identity);
  const service = await TestService.start({ TAKEMARK_TLS_CERT: paths.cert, TAKEMARK_TLS_KEY: paths.key });
  t.teardown(async () => {
    await service.stop();
    await rm(directory, { recursive: true });
  });
  const { port } = service.service.partner;
  return { service, port, url: `https://127.0.0.1:${port}`, identity, write };
}

/** Resolves with the connection when its handshake is complete. */
async function handshake(port: number, options: ConnectionOptions): Promise<TLSSocket> {
  const socket = connect({ port, host: '127.0.0.1', ...options });
  await once(socket, 'secureConnect');
  return socket;
}

/** Returns the SHA-256 of the certificate that a new connection gets. */
async function shown(port: number): Promise<string> {
  const socket = await handshake(port, { rejectUnauthorized: false });
  const { fingerprint256 } = socket.getPeerCertificate();
  socket.destroy();
  return fingerprint256;
}

t.test('partners are served over TLS: slot, a streamed upload, verdict', async (t) => {
  const { service, port, url, identity } = await setUp(t);
  t.equal(service.service.publicUrl, url, 'slots are for https');
  const { apiKey } = await service.partner();
  const client = createClient({ baseUrl: url, apiKey, ca: identity.cert });
  t.teardown(() => client.close());
  t.match(await client.health(), { ok: true });
  const audio = wav(20 * 1_048_576);
  randomBytes(1_000_000).copy(audio, 1000);
  const slot = await client.createUpload();
  t.ok(slot.url.startsWith(`${url}/uploads/`));
  t.match(await client.upload(slot, audio), {
    bytes: audio.length,
    sha256: createHash('sha256').update(audio).digest('hex'),
  });
  t.match(await client.verify({ uploadId: slot.uploadId }), {
    verdict: 'unreadable',
    audio: { bytes: audio.length },
  });

  // Plain HTTP gets nothing that could be taken for an answer.
  const plain = connectPlain(port, '127.0.0.1');
  let answer = Buffer.alloc(0);
  plain.on('data', (chunk: Buffer) => (answer = Buffer.concat([answer, chunk])));
  plain.on('error', () => undefined);
  plain.write('GET /v1/health HTTP/1.1\r\nHost: x\r\n\r\n');
  await once(plain, 'close');
  t.notMatch(answer.toString('latin1'), /HTTP/);

  const both = await handshake(port, { ca: identity.cert, ALPNProtocols: ['h2', 'http/1.1'] });
  t.equal(both.alpnProtocol, 'http/1.1');
  both.destroy();
  await t.rejects(
    handshake(port, { ca: identity.cert, ALPNProtocols: ['h2'] }),
    'no other protocol is spoken',
  );
  await t.rejects(
    handshake(port, {
      ca: identity.cert,
      maxVersion: 'TLSv1.1',
      minVersion: 'TLSv1.1',
      ciphers: 'DEFAULT@SECLEVEL=0',
    }),
    'nor an old version',
  );
  const old = await handshake(port, { ca: identity.cert, maxVersion: 'TLSv1.2' });
  t.equal(old.getProtocol(), 'TLSv1.2');
  old.destroy();
  t.match(await client.health(), { ok: true }, 'and it lives through all that');

  const metrics = await (await fetch(`${service.operatorUrl}/metrics`)).text();
  const expires = /^takemark_tls_certificate_expires_seconds (\S+)$/m.exec(metrics)?.[1];
  t.equal(Number(expires), Math.floor(Date.parse(new X509Certificate(identity.cert).validTo) / 1000));
});

t.test('another certificate is taken without a restart, and one that is broken is not', async (t) => {
  const { service, port, url, identity, write } = await setUp(t);
  const first = await shown(port);
  const faults = async (): Promise<number> =>
    Number(
      /^takemark_faults_total\{where="tls"\} (\d+)$/m.exec(
        await (await fetch(`${service.operatorUrl}/metrics`)).text(),
      )?.[1] ?? 0,
    );
  const agent = new https.Agent({ keepAlive: true, maxSockets: 1, ca: identity.cert });
  t.teardown(() => agent.destroy());
  const ask = () =>
    new Promise<{ readonly status: number | undefined; readonly port: number | undefined }>(
      (resolve, reject) => {
        const request = https.get(`${url}/v1/health`, { agent }, (response) => {
          const { localPort } = response.socket;
          response.resume().on('end', () => resolve({ status: response.statusCode, port: localPort }));
        });
        request.on('error', reject);
      },
    );
  const before = await ask();
  t.equal(before.status, 200);

  const second = makeTlsIdentity();
  await write(second);
  process.emit('SIGHUP');
  await until(async () => (await shown(port)) !== first);
  const renewed = await shown(port);
  t.equal(renewed, new X509Certificate(second.cert).fingerprint256);
  t.strictSame(await ask(), before, 'a connection that is open goes on');
  t.equal(await faults(), 0);

  const other = makeTlsIdentity();
  for (const [what, broken] of Object.entries({
    'a key of another certificate': { key: other.key },
    'no certificate': { cert: 'not PEM' },
    'one that has ended': makeTlsIdentity(new Date(Date.now() - 1000)),
    'one that has not begun': makeTlsIdentity(
      new Date(Date.now() + 7_200_000),
      new Date(Date.now() + 3_600_000),
    ),
  })) {
    const known = await faults();
    await write(broken);
    process.emit('SIGHUP');
    await until(async () => (await faults()) > known);
    t.equal(await shown(port), renewed, what);
  }
  t.notMatch(service.log.join(''), /PRIVATE KEY/);
  // This time no signal is sent.
  await write(other);
  await until(async () => (await shown(port)) !== renewed);
  t.equal(await shown(port), new X509Certificate(other.cert).fingerprint256);
});

t.test('an unfinished handshake blocks no other connection', async (t) => {
  const { cert, key } = makeTlsIdentity();
  const secured: Socket[] = [];
  const front = new TlsFront(
    { certificate: Buffer.from(cert), key: Buffer.from(key), beginsAt: 0, expiresAt: 0 },
    { handshakes: 8, handshakeMs: 2000 },
    (socket) => {
      secured.push(socket);
      socket.on('error', () => undefined).resume();
    },
  );
  const server = createServer((socket) => front.accept(socket)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  t.teardown(() => {
    front.close();
    for (const socket of secured) socket.destroy();
    server.close();
  });
  let open = 0;
  const silent = Array.from({ length: 40 }, () => {
    const socket = connectPlain(port, '127.0.0.1', () => (open += 1));
    socket.on('error', () => undefined).on('close', () => (open -= 1));
    return socket;
  });
  await until(() => silent.every((socket) => !socket.connecting) && open <= 8);
  const honest = await handshake(port, { ca: cert });
  await until(() => secured.length === 1);
  t.pass('a newcomer is served');
  await until(() => open === 0);
  t.notOk(honest.destroyed, 'what stalls is cut, who is through stays');
  honest.destroy();
});

t.test('settings: both files or none, and an unusable pair is reported at start', async (t) => {
  t.throws(
    () => readConfig({ TAKEMARK_TLS_CERT: 'a' }),
    /TAKEMARK_TLS_CERT: and TAKEMARK_TLS_KEY: set both or neither/,
  );
  t.throws(() => readConfig({ TAKEMARK_TLS_KEY: 'a' }), /set both or neither/);
  t.match(readConfig({ TAKEMARK_TLS_CERT: 'a', TAKEMARK_TLS_KEY: 'b' }), {
    publicUrl: 'https://127.0.0.1:8080',
    partner: { tls: { certificate: 'a', key: 'b' } },
  });
  t.equal(
    readConfig({
      TAKEMARK_TLS_CERT: 'a',
      TAKEMARK_TLS_KEY: 'b',
      TAKEMARK_PUBLIC_URL: 'https://api.example.com',
    }).publicUrl,
    'https://api.example.com',
  );
  const directory = await mkdtemp(join(tmpdir(), 'takemark-tls-'));
  t.teardown(() => rm(directory, { recursive: true }));
  const files = { TAKEMARK_TLS_CERT: join(directory, 'c'), TAKEMARK_TLS_KEY: join(directory, 'k') };
  await t.rejects(TestService.start(files), /the certificate .* cannot be used: ENOENT/);
  await writeFile(files.TAKEMARK_TLS_CERT, makeTlsIdentity().cert);
  await writeFile(files.TAKEMARK_TLS_KEY, makeTlsIdentity().key);
  await t.rejects(TestService.start(files), /the certificate .* cannot be used: .*key values mismatch/);
});

t.test('a start with a certificate that has ended says so', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'takemark-tls-'));
  t.teardown(() => rm(directory, { recursive: true }));
  const files = { TAKEMARK_TLS_CERT: join(directory, 'c'), TAKEMARK_TLS_KEY: join(directory, 'k') };
  const warnings = async (identity: TlsIdentity): Promise<number> => {
    await writeFile(files.TAKEMARK_TLS_CERT, identity.cert);
    await writeFile(files.TAKEMARK_TLS_KEY, identity.key);
    const service = await TestService.start(files);
    await service.stop();
    return service.log.filter((line) => line.includes('"tls_expired"')).length;
  };
  t.equal(await warnings(makeTlsIdentity()), 0);
  t.equal(await warnings(makeTlsIdentity(new Date(Date.now() - 1000))), 1);
});

t.test('a new certificate is taken when its validity begins', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'takemark-tls-'));
  t.teardown(() => rm(directory, { recursive: true }));
  const paths = { certificate: join(directory, 'c'), key: join(directory, 'k') };
  const write = async ({ cert, key }: TlsIdentity): Promise<void> => {
    await writeFile(paths.certificate, cert);
    await writeFile(paths.key, key);
  };
  const start = Math.floor(Date.now() / 1000);
  let now = start;
  const first = makeTlsIdentity();
  await write(first);
  const files = await TlsFiles.open(paths, { now: () => now * 1000 });
  const next = makeTlsIdentity(new Date((start + 7200) * 1000), new Date((start + 3600) * 1000));
  await write(next);
  await t.rejects(files.renew(), { code: 'CERT_NOT_YET_VALID' });
  t.equal(await files.renew(), undefined, 'the fault is reported once');
  t.equal(files.identity.certificate.toString(), first.cert);
  now = start + 3600;
  t.equal((await files.renew())?.certificate.toString(), next.cert);
  t.equal(await files.renew(), undefined);
});

t.test('a start with a certificate that has not begun serves and logs a warning', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'takemark-tls-'));
  t.teardown(() => rm(directory, { recursive: true }));
  const files = { TAKEMARK_TLS_CERT: join(directory, 'c'), TAKEMARK_TLS_KEY: join(directory, 'k') };
  const identity = makeTlsIdentity(new Date(Date.now() + 7_200_000), new Date(Date.now() + 3_600_000));
  await writeFile(files.TAKEMARK_TLS_CERT, identity.cert);
  await writeFile(files.TAKEMARK_TLS_KEY, identity.key);
  const service = await TestService.start(files);
  t.teardown(() => service.stop());
  t.match(service.log.join(''), /"tls_not_begun"/);
  const metrics = await (await fetch(`${service.operatorUrl}/metrics`)).text();
  t.match(metrics, /takemark_certificate_warning\{certificate="tls",warning="not_begun"\} 1/);
});
