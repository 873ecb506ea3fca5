/**
 * A signing certificate from an authority whose key is on another machine, and one whose own key is in a
 * token.
 */
import { execFile } from 'node:child_process';
import { randomBytes, X509Certificate } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import type { SignatureAlgorithm } from '../../src/core/domain/parsed-credential.js';
import type { LocalSigner } from '../../src/core/ports/signing.js';
import {
  makeCertificateRequest,
  readCertificateRequest,
} from '../../src/service/adapters/signing/certificate-request.js';
import { generateKey, signRaw } from '../../src/service/adapters/signing/identity.js';
import { installLeaf, requestLeaf } from '../../src/service/adapters/signing/leaf-installation.js';
import { loadSigning, type SigningOptions } from '../../src/service/adapters/signing/load-signing.js';
import { initAuthority, issueLeaf } from '../../src/service/adapters/signing/offline-authority.js';
import { openToken, type TokenOptions } from '../../src/service/adapters/signing/pkcs11-token.js';
import { installSigningLeaf, requestSigningLeaf } from '../../src/service/compose/tools.js';
import { readConfig } from '../../src/service/config/config.js';
import { issued, readFile as readCredential } from '../fixtures/credentialed-file.js';
import { judge, startJudge } from '../fixtures/judge.js';
import { TestService } from '../fixtures/service.js';
import { needs } from '../fixtures/tools.js';
import { wav } from '../fixtures/wav.js';

startJudge();
const run = promisify(execFile);
const random = (length: number): Uint8Array => randomBytes(length);
const clock = { now: (): number => Date.now() };
const load = async (options: SigningOptions) => {
  const signing = await loadSigning(options);
  return { ...signing, signer: signing.signer as LocalSigner };
};

t.test('a request is read by openssl, and only in its one form by the authority', async (t) => {
  const directory = t.testdir();
  for (const algorithm of ['Ed25519', 'ES256'] as const) {
    const { publicKey, privateKey } = generateKey(algorithm);
    const subject = { organisation: 'Takemark', commonName: `Takemark beta ${algorithm}` };
    // Many, since an integer of the signature may begin with zero bytes, or with a set bit.
    for (let i = 0; i < (algorithm === 'ES256' ? 300 : 1); i += 1) {
      const pem = await makeCertificateRequest(subject, publicKey, (message) =>
        signRaw(privateKey, algorithm, message),
      );
      const read = readCertificateRequest(pem);
      t.strictSame(
        { subject: read.subject, algorithm: read.algorithm, same: read.publicKey.equals(publicKey) },
        { subject, algorithm, same: true },
      );
    }
    const pem = await makeCertificateRequest(subject, publicKey, (message) =>
      signRaw(privateKey, algorithm, message),
    );
    const path = join(directory, `${algorithm}.pem`);
    await writeFile(path, pem);
    const { stdout, stderr } = await run('openssl', [
      'req',
      '-in',
      path,
      '-verify',
      '-noout',
      '-subject',
      '-nameopt',
      'RFC2253',
    ]);
    t.match(`${stdout}${stderr}`, /verify OK/i);
    t.match(stdout, `CN=Takemark beta ${algorithm},O=Takemark`);

    const other = generateKey(algorithm);
    const stolen = await makeCertificateRequest(subject, publicKey, (message) =>
      signRaw(other.privateKey, algorithm, message),
    );
    t.throws(
      () => readCertificateRequest(stolen),
      /not signed with the key/,
      'the requester must hold the key',
    );
    const der = Buffer.from(pem.replace(/-----[^-]+-----|\n/g, ''), 'base64');
    const text = (bytes: Buffer) =>
      `-----BEGIN CERTIFICATE REQUEST-----\n${bytes.toString('base64')}\n-----END CERTIFICATE REQUEST-----\n`;
    t.ok(readCertificateRequest(text(der)));
    for (let i = 0; i < der.length; i += 1) {
      const flipped = Buffer.from(der);
      flipped[i]! ^= 1 << (i % 8);
      t.throws(() => readCertificateRequest(text(flipped)), Error, `byte ${i}`);
      t.throws(() => readCertificateRequest(text(der.subarray(0, i))), Error, `cut at ${i}`);
    }
    t.throws(() => readCertificateRequest(text(Buffer.concat([der, Buffer.from([0])]))), Error);
  }
  for (const strange of [
    '',
    'x',
    '-----BEGIN CERTIFICATE REQUEST-----\n-----END CERTIFICATE REQUEST-----\n',
    'A'.repeat(100_000),
  ])
    t.throws(() => readCertificateRequest(strange), Error);
  const config = join(directory, 'c.cnf');
  await writeFile(
    config,
    '[req]\ndistinguished_name=d\nreq_extensions=e\n[d]\n[e]\nbasicConstraints=CA:TRUE\n',
  );
  const { stdout } = await run('openssl', [
    'req',
    '-new',
    '-newkey',
    'ed25519',
    '-nodes',
    '-keyout',
    join(directory, 'k.pem'),
    '-subj',
    '/O=Takemark/CN=Takemark beta Ed25519',
    '-utf8',
    '-config',
    config,
  ]);
  t.throws(
    () => readCertificateRequest(stdout),
    /not written by takemark operator signing request/,
    'nothing that is asked for beyond the name and the key gets past',
  );
});

t.test(
  'a leaf of an authority elsewhere is asked for, issued and installed, and the former one verifies on',
  async (t) => {
    const directory = t.testdir({ service: {}, safe: {}, other: {} });
    const home = join(directory, 'service');
    const safe = { directory: join(directory, 'safe'), environment: 'beta', clock, random };
    const options = { directory: home, environment: 'beta', clock, random };
    for (const algorithm of ['Ed25519', 'ES256'] as const satisfies readonly SignatureAlgorithm[]) {
      const first = await load({ ...options, algorithm });
      const before = issued(wav(100), first.signer);
      const authority = await initAuthority({ ...safe, directory: join(safe.directory, algorithm) });
      await t.rejects(initAuthority({ ...safe, directory: join(safe.directory, algorithm) }), /already/);
      const place = { ...safe, directory: join(safe.directory, algorithm) };
      const asking = { ...options, algorithm };
      await t.rejects(installLeaf(asking, ''), /two certificates/);
      await t.rejects(
        installLeaf(asking, `${first.trust.authorities()[0]!}${authority}`),
        /no certificate was requested/,
      );
      const request = await requestLeaf(asking);
      t.ok(
        readCertificateRequest(await requestLeaf(asking)).publicKey.equals(
          readCertificateRequest(request).publicKey,
        ),
        'asked twice, it is the same key',
      );
      await t.rejects(
        issueLeaf({ ...place, environment: 'production' }, request, 30),
        /not for the environment/,
      );
      await t.rejects(
        issueLeaf({ ...place, directory: join(directory, 'other') }, request, 30),
        /authority init/,
      );
      const production = await initAuthority({
        ...place,
        directory: join(directory, 'other', algorithm),
        environment: 'production',
      });
      t.match(production, /BEGIN CERTIFICATE/);
      await t.rejects(
        issueLeaf(
          { ...place, directory: join(directory, 'other', algorithm), environment: 'production' },
          request,
          30,
        ),
        /signs only for 'Takemark production/,
      );
      const leaf = await issueLeaf(place, request, 30);
      t.equal(Math.round((leaf.notAfter.getTime() - Date.now()) / 86_400_000), 30);
      t.equal(
        (await issueLeaf(place, request, 100_000)).notAfter.getTime(),
        Date.parse(new X509Certificate(authority).validTo),
        'not longer than the authority',
      );
      const [chain, anchor] = [join(directory, 'leaf.pem'), join(directory, 'authority.pem')];
      await writeFile(chain, leaf.pem);
      await writeFile(anchor, authority);
      t.match((await run('openssl', ['verify', '-purpose', 'any', '-CAfile', anchor, chain])).stdout, /OK/);

      await t.rejects(
        installLeaf({ ...asking, environment: 'production' }, leaf.pem),
        /no certificate was requested/,
      );
      await t.rejects(
        installLeaf(asking, leaf.pem.replace(authority, first.trust.authorities()[0]!)),
        /authority did not issue/,
      );
      const foreign = generateKey(algorithm);
      const elsewhere = await makeCertificateRequest(
        { organisation: 'Takemark', commonName: `Takemark beta ${algorithm}` },
        foreign.publicKey,
        (message) => signRaw(foreign.privateKey, algorithm, message),
      );
      await t.rejects(installLeaf(asking, (await issueLeaf(place, elsewhere, 30)).pem), /different key/);
      await t.rejects(
        installLeaf({ ...asking, clock: { now: () => Date.now() + 31 * 86_400_000 } }, leaf.pem),
        /the signing certificate expired at /,
      );
      t.equal(
        (await load({ ...options, algorithm })).signer.identity.kid,
        first.signer.identity.kid,
        'nothing was changed by what was refused',
      );

      const formerKid = first.signer.identity.kid;
      t.match(await installLeaf(asking, leaf.pem), { kid: leaf.kid, former: formerKid });
      const second = await load({ ...options, algorithm });
      t.equal(second.signer.identity.kid, leaf.kid);
      t.equal(second.certificates.chain[0]!.validity.notAfter, Math.floor(leaf.notAfter.getTime() / 1000));
      t.equal(readCredential(before, second.trust).reading?.kind, 'service', 'the former one verifies on');
      t.ok((await readdir(join(home, 'beta', 'known'))).includes(`${formerKid}.pem`));
      const after = issued(wav(100), second.signer);
      t.equal(readCredential(after, second.trust).reading?.kind, 'service');
      t.equal((await judge(after, authority)).state, 'Trusted');

      await installLeaf(asking, (await issueLeaf(place, await requestLeaf(asking), 30)).pem);
      const third = await load({ ...options, algorithm });
      for (const file of [before, after, issued(wav(100), third.signer)])
        t.equal(readCredential(file, third.trust).reading?.kind, 'service');
      t.strictSame(
        (await readdir(join(home, 'beta'))).filter(
          (entry) => entry.startsWith(`leaf-${algorithm.toLowerCase()}`) || entry.startsWith('request'),
        ),
        [`leaf-${algorithm.toLowerCase()}.3`],
        'no key is left over',
      );
    }
  },
);

t.test('without the authority’s key all goes on but making leaves', async (t) => {
  const directory = t.testdir();
  const options = { directory, environment: 'beta', clock, random };
  const first = await load(options);
  await rm(join(directory, 'beta', 'authority', 'key.pem'));
  const again = await load(options);
  t.equal(again.signer.identity.kid, first.signer.identity.kid);
  t.equal(readCredential(issued(wav(100), first.signer), again.trust).reading?.kind, 'service');
  await t.rejects(
    load({ ...options, algorithm: 'ES256' }),
    /the authority's key is on another machine: run takemark operator signing request/,
  );
});

t.test('a service says when its certificate nears its end', async (t) => {
  const directory = t.testdir();
  const house = await TestService.start({ TAKEMARK_DATA_DIR: directory });
  const end = Math.floor(
    Date.parse(
      new X509Certificate(await readFile(join(directory, 'signing/production/leaf-ed25519/certificate.pem')))
        .validTo,
    ) / 1000,
  );
  const metrics = await (await fetch(`${house.operatorUrl}/metrics`)).text();
  t.match(metrics, `takemark_signing_certificate_expires_seconds ${end}`);
  t.notOk(house.log.some((line) => line.includes('signer_ending')));
  await house.stop({ keep: true });
  house.clock.advance(7305 * 86_400 - 10 * 86_400);
  const late = await TestService.start({ TAKEMARK_DATA_DIR: directory }, house.clock);
  t.ok(late.log.some((line) => /"signer_ending".*"days":(9|10)\b/.test(line)));
  await late.stop({ keep: true });
});

const MODULE = [
  '/usr/lib/softhsm/libsofthsm2.so',
  '/usr/lib/x86_64-linux-gnu/softhsm/libsofthsm2.so',
  '/usr/local/lib/softhsm/libsofthsm2.so',
].find((path) => existsSync(path));

t.test('a key in a token signs', { skip: needs('softhsm2-util', 'pkcs11-tool') }, async (t) => {
  const directory = t.testdir({ tokens: {}, data: {}, safe: {} });
  const conf = join(directory, 'softhsm2.conf');
  await writeFile(
    conf,
    `directories.tokendir = ${join(directory, 'tokens')}\nobjectstore.backend = file\nlog.level = ERROR\n`,
  );
  const environment = { PATH: process.env['PATH']!, SOFTHSM2_CONF: conf };
  await run(
    'softhsm2-util',
    ['--init-token', '--free', '--label', 'takemark', '--so-pin', '12345678', '--pin', '2468'],
    { env: environment },
  );
  await run(
    'pkcs11-tool',
    [
      '--module',
      MODULE!,
      '--token-label',
      'takemark',
      '--login',
      '--pin',
      '2468',
      '--keypairgen',
      '--key-type',
      'EC:prime256v1',
      '--label',
      'leaf',
      '--id',
      '01',
      '--usage-sign',
    ],
    { env: environment },
  );
  const options: TokenOptions = { module: MODULE!, token: 'takemark', key: 'leaf', pin: '2468', environment };
  const token = openToken(options);
  const publicKey = await token.publicKey();
  t.equal(publicKey.asymmetricKeyDetails?.namedCurve, 'prime256v1');
  const half = 0x7fffffff800000007fffffffffffffffde737d56d38bcf4279dce5617e3192a8n;
  for (let i = 0; i < 12; i += 1) {
    const signature = await token.sign('ES256', randomBytes(100));
    t.equal(signature.length, 64);
    t.ok(BigInt(`0x${Buffer.from(signature.subarray(32)).toString('hex')}`) <= half, 'low S');
  }

  const pinFile = join(directory, 'pin');
  await writeFile(pinFile, '2468\n', { mode: 0o600 });
  const data = join(directory, 'data');
  const settings = {
    TAKEMARK_DATA_DIR: data,
    TAKEMARK_SIGNING_ALGORITHM: 'ES256',
    TAKEMARK_SIGNING_PKCS11: MODULE!,
    TAKEMARK_SIGNING_PKCS11_TOKEN: 'takemark',
    TAKEMARK_SIGNING_PKCS11_KEY: 'leaf',
    TAKEMARK_SIGNING_PKCS11_PIN_FILE: pinFile,
    ...environment,
  };
  const config = readConfig(settings);
  t.notOk(
    Object.keys(config.signing.pkcs11!.environment).some((name) => name.startsWith('TAKEMARK_')),
    'the module is given nothing of the service',
  );
  await t.rejects(TestService.start(settings), /no certificate is installed for the token's ES256 key/);
  const request = await requestSigningLeaf(config);
  await writeFile(join(directory, 'request.pem'), request);
  const checked = await run('openssl', ['req', '-in', join(directory, 'request.pem'), '-verify', '-noout']);
  t.match(`${checked.stdout}${checked.stderr}`, /verify OK/i);
  const safe = { directory: join(directory, 'safe'), environment: 'production', clock, random };
  const authority = await initAuthority(safe);
  const leaf = await issueLeaf(safe, request, 30);
  await installSigningLeaf(config, leaf.pem);
  t.strictSame(
    await readdir(join(data, 'signing', 'production', 'leaf-es256')),
    ['certificate.pem'],
    'there is no key',
  );

  const house = await TestService.start(settings);
  const { partnerId, caller } = await house.partner();
  const file = await house.issue(partnerId, wav(2000));
  t.match(await house.verify(caller, file.file), { verdict: 'valid' });
  t.equal((await judge(file.file, authority)).state, 'Trusted', 'c2pa-rs reads it as trusted');
  const pair = await house.issue(partnerId, wav(2000), { carrier: 'sidecar' });
  t.match(await house.verify(caller, pair.file, pair.sidecar), { verdict: 'valid' });

  await rename(join(directory, 'tokens'), join(directory, 'away'));
  await mkdir(join(directory, 'tokens'));
  await t.rejects(
    house.issue(partnerId, wav(2000)),
    { code: 'unavailable', reason: 'signer_unavailable', retryAfterSeconds: 5 },
    'the token is away',
  );
  t.match(await house.verify(caller, file.file), { verdict: 'valid' }, 'verifying needs no key');
  await rm(join(directory, 'tokens'), { recursive: true });
  await rename(join(directory, 'away'), join(directory, 'tokens'));
  t.match(await house.issue(partnerId, wav(2000)), { proofId: /^prf_/ }, 'and back');
  await house.stop({ keep: true });

  const wrong = openToken({ ...options, pin: '1111' });
  await t.rejects(wrong.sign('ES256', Buffer.from('x')), {
    reason: 'signer_unavailable',
    cause: { message: /CKR_PIN_INCORRECT/ },
  });
  await t.rejects(
    wrong.sign('ES256', Buffer.from('x')),
    { cause: { message: /does not try this PIN again/ } },
    'a wrong PIN is not tried until the token locks',
  );
  await t.rejects(openToken({ ...options, key: 'another' }).publicKey(), {
    code: 'unavailable',
    reason: 'signer_unavailable',
  });
  await t.rejects(
    openToken({ ...options, environment: { ...environment, PATH: '/nowhere' } }).sign(
      'ES256',
      Buffer.from('x'),
    ),
    { cause: { message: /pkcs11-tool of OpenSC is not installed/ } },
  );
  const patient = openToken({ ...options, timeoutMs: 600_000 });
  const many = await Promise.allSettled(
    Array.from({ length: 100 }, () => patient.sign('ES256', Buffer.from('x'))),
  );
  t.equal(many.filter(({ status }) => status === 'fulfilled').length, 64, 'what waits is bounded');
});

t.test(
  'a token that does not answer is given up, and blocks no other call',
  { skip: process.platform === 'win32' && 'the stand-in is a shell script' },
  async (t) => {
    const directory = t.testdir();
    await writeFile(join(directory, 'pkcs11-tool'), '#!/bin/sh\nexec sleep 60\n', { mode: 0o755 });
    const hung = openToken({
      module: 'm',
      token: 't',
      key: 'k',
      pin: 'p',
      environment: { PATH: `${directory}:${process.env['PATH']!}` },
      timeoutMs: 300,
    });
    let turns = 0;
    const turning = setInterval(() => (turns += 1), 5);
    await t.rejects(hung.sign('Ed25519', Buffer.from('x')), {
      reason: 'signer_unavailable',
      cause: { message: /did not answer in time/ },
    });
    clearInterval(turning);
    t.ok(turns > 3, 'the event loop turned meanwhile');
    await writeFile(join(directory, 'pkcs11-tool'), '#!/bin/sh\nexec head -c 200000 /dev/zero\n', {
      mode: 0o755,
    });
    await t.rejects(
      hung.sign('Ed25519', Buffer.from('x')),
      { code: 'unavailable', reason: 'signer_unavailable' },
      'more than a signature is not kept',
    );
  },
);
