import { spawn } from 'node:child_process';
import { createPrivateKey, randomBytes, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, readdir, readFile, rename, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { writeSidecar } from '../../src/core/credential/sidecar.js';
import { stateProduction } from '../../src/core/credential/statement.js';
import type { LocalSigner } from '../../src/core/ports/signing.js';
import { makeCertificate } from '../../src/service/adapters/signing/certificate-profile.js';
import {
  clusterIdentity,
  makeClusterBundle,
  readClusterBundle,
} from '../../src/service/adapters/signing/cluster-bundle.js';
import { createDevice } from '../../src/service/adapters/signing/device.js';
import { generateKey } from '../../src/service/adapters/signing/identity.js';
import { loadSigning as load, type SigningOptions } from '../../src/service/adapters/signing/load-signing.js';
import { issued, readFile as readCredential, readPair, sealed } from '../fixtures/credentialed-file.js';
import { judge, startJudge } from '../fixtures/judge.js';
import { testSigning } from '../fixtures/signing.js';
import { wav } from '../fixtures/wav.js';

startJudge();
/** Loads the signing key, which is in memory if no token is named. */
const loadSigning = async (options: SigningOptions) => {
  const signing = await load(options);
  return { ...signing, signer: signing.signer as LocalSigner };
};
const random = (length: number): Uint8Array => randomBytes(length);
const clock = { now: (): number => Date.now() };
const options = (directory: string, more: Partial<SigningOptions> = {}): SigningOptions => ({
  directory,
  environment: 'beta',
  clock,
  random,
  ...more,
});

t.test('a bundle gives every process of a cluster one identity', async (t) => {
  const directory = t.testdir();
  const path = join(directory, 'bundle.json');
  await writeFile(path, makeClusterBundle({ environment: 'beta', algorithm: 'ES256', clock, random }));
  const [first, second] = await Promise.all(
    ['a', 'b'].map(async (name) => {
      const { secrets, signing, operatorTokens } = await readClusterBundle(path, 'beta');
      const { signer } = await loadSigning(options(join(directory, name), { pems: signing }));
      return {
        kid: signer.identity.kid,
        algorithm: signer.identity.algorithm,
        operatorTokens,
        audit: secrets.current('audit'),
        pepper: secrets.current('key-pepper'),
      };
    }),
  );
  t.strictSame(first, second);
  t.equal(first?.algorithm, 'ES256');
  t.strictNotSame(first?.audit, first?.pepper);
  t.strictSame(
    clusterIdentity(await readFile(path, 'utf8'), 'TAKEMARK_SECRETS', 'beta').operatorTokens,
    first?.operatorTokens,
    'given as a variable',
  );
  t.throws(() => clusterIdentity('{', 'TAKEMARK_SECRETS', 'beta'), /^(?!.*\{).*TAKEMARK_SECRETS/);
  await t.rejects(readClusterBundle(path, 'production'), /belongs to the environment beta/);
  await t.rejects(readClusterBundle(join(directory, 'none.json'), 'beta'), /secrets init/);
  await writeFile(path, '{}');
  await t.rejects(readClusterBundle(path, 'beta'), /format/);
});

t.test('an identity is made on the first start and is the same on the second', async (t) => {
  const directory = t.testdir();
  const first = await loadSigning(options(directory));
  const second = await loadSigning(options(directory));
  t.equal(first.signer.identity.kid, second.signer.identity.kid);
  t.equal(first.signer.identity.algorithm, 'Ed25519');
  t.equal(first.signer.identity.issuer, 'Takemark');
  t.strictSame(first.trust.authorities(), second.trust.authorities());
  t.strictSame((await readdir(join(directory, 'beta'))).sort(), ['authority', 'leaf-ed25519']);
  for (const file of [
    'authority/key.pem',
    'authority/certificate.pem',
    'leaf-ed25519/key.pem',
    'leaf-ed25519/certificate.pem',
  ]) {
    t.equal((await stat(join(directory, 'beta', file))).mode & 0o777, 0o600, file);
  }
  t.match(
    await readFile(join(directory, 'beta/leaf-ed25519/key.pem'), 'utf8'),
    /^-----BEGIN PRIVATE KEY-----/,
  );
  const authority = new X509Certificate(first.trust.authorities()[0]!);
  t.match(authority.subject, /O=Takemark\nCN=Takemark beta authority/);
  t.ok(authority.ca);
  t.ok(Date.parse(authority.validTo) - Date.now() > 19 * 365 * 86_400_000, 'about twenty years');

  const file = issued(wav(100), first.signer);
  t.equal((await judge(file, first.trust.authorities()[0]!)).state, 'Trusted');
  t.equal(readCredential(file, second.trust).reading?.kind, 'service');
  const production = await loadSigning(options(directory, { environment: 'production' }));
  t.equal(
    readCredential(file, production.trust).reading?.kind,
    'foreign',
    'environments do not know each other',
  );
});

t.test('another algorithm is another leaf of the same authority, and both verify', async (t) => {
  const directory = t.testdir();
  const ed25519 = await loadSigning(options(directory));
  const es256 = await loadSigning(options(directory, { algorithm: 'ES256' }));
  t.equal(es256.signer.identity.algorithm, 'ES256');
  t.strictSame(es256.trust.authorities(), ed25519.trust.authorities());
  t.equal(readCredential(issued(wav(100), ed25519.signer), es256.trust).reading?.kind, 'service');
  const file = issued(wav(100), es256.signer);
  t.equal((await judge(file, es256.trust.authorities()[0]!)).state, 'Trusted');
  t.equal(readCredential(file, (await loadSigning(options(directory))).trust).reading?.kind, 'service');
});

t.test('former identities in known/ keep verifying', async (t) => {
  const directory = t.testdir();
  await loadSigning(options(directory));
  const former = testSigning({ organisation: 'Takeproof' });
  await mkdir(join(directory, 'beta', 'known'));
  const leaf = new X509Certificate(former.signer.identity.certificate).toString();
  await writeFile(join(directory, 'beta', 'known', 'takeproof.pem'), `${leaf}${former.authority}`);
  await writeFile(join(directory, 'beta', 'known', 'README'), 'not a certificate');
  const { trust, signer } = await loadSigning(options(directory));
  t.match(readCredential(issued(wav(100), former.signer), trust).reading, {
    kind: 'service',
    statement: { issuer: 'Takeproof' },
  });
  t.match(readCredential(issued(wav(100), former.unpinned), trust).reading, {
    kind: 'altered',
    reason: 'signer_not_pinned',
  });
  const pair = (identity: LocalSigner): Uint8Array =>
    writeSidecar({
      statement: stateProduction(identity.identity, {
        proofId: 'prf_1',
        createdAt: Math.floor(Date.now() / 1000),
        evidenceSha256: null,
      }),
      binding: { bytes: 1, sha256: 'ab'.repeat(32) },
      signer: identity,
    });
  t.match(readPair(pair(former.signer), trust), { kind: 'service', statement: { issuer: 'Takeproof' } });
  const stranger = testSigning({ organisation: 'Takeproof' }).signer;
  t.match(
    readCredential(issued(wav(100), stranger), trust).reading,
    { kind: 'foreign', report: { trust: 'unknown', reasons: ['names_this_service'] } },
    'a stranger who took the former name',
  );
  t.match(readPair(pair(stranger), trust), { kind: 'foreign', namesService: true });
  t.equal(trust.authorities().length, 2);
  t.equal(trust.find(signer.identity.certificate)?.kid, signer.identity.kid);
  t.equal(trust.find(Buffer.from('x')), undefined);
  t.equal(trust.namesOurAuthority(Buffer.from('x')), false);
  const ours = testSigning().trust;
  const { publicKey, privateKey } = generateKey('Ed25519');
  for (const [organisation, names] of [
    ['Takemark', true],
    [' Takemark', true],
    ['TAKEMARK  ', true],
    ['Takemarks', false],
  ] as const) {
    const subject = { organisation: 'Anyone', commonName: 'Anyone' };
    const validity = { notBefore: new Date(0), notAfter: new Date(2 ** 41), serial: new Uint8Array(16) };
    const leaf = makeCertificate({
      ...validity,
      subject,
      issuer: { organisation, commonName: ' Takemark test authority ' },
      subjectKey: publicKey,
      issuerKey: privateKey,
      issuerPublicKey: publicKey,
      kind: 'leaf',
    });
    t.equal(ours.namesOurAuthority(leaf), names, `'${organisation}' ${names ? 'is' : 'is not'} our name`);
  }
  await writeFile(join(directory, 'beta', 'known', 'broken.pem'), 'nothing');
  await t.rejects(loadSigning(options(directory)), /broken\.pem/);
});

t.test('identities given as files are used, and their faults stop the start', async (t) => {
  const made = t.testdir();
  const source = await loadSigning(options(made, { algorithm: 'ES256' }));
  const at = (name: string): string => join(made, 'beta', name);
  const files = {
    certificate: at('leaf-es256/certificate.pem'),
    key: at('leaf-es256/key.pem'),
    authority: at('authority/certificate.pem'),
  };
  const directory = join(made, 'elsewhere');
  const given = await loadSigning(options(directory, { files }));
  t.equal(given.signer.identity.kid, source.signer.identity.kid);
  t.strictSame(await readdir(join(made)), ['beta'], 'nothing is made');
  t.equal(readCredential(issued(wav(100), given.signer), given.trust).reading?.kind, 'service');
  await loadSigning(options(made));
  await t.rejects(
    loadSigning(options(directory, { files: { ...files, key: at('leaf-ed25519/key.pem') } })),
    /does not belong to the signing certificate/,
  );
  await t.rejects(
    loadSigning(options(directory, { files: { ...files, authority: at('leaf-ed25519/certificate.pem') } })),
    /authority/,
  );
  await t.rejects(
    loadSigning(
      options(directory, {
        files: { certificate: files.authority, key: at('authority/key.pem'), authority: files.authority },
      }),
    ),
    /did not issue the signing certificate/,
  );
  await t.rejects(loadSigning(options(directory, { files: { ...files, key: at('none.pem') } })), {
    code: 'ENOENT',
  });
  const late = await loadSigning(
    options(made, { algorithm: 'ES256', clock: { now: () => Date.now() + 30 * 365 * 86_400_000 } }),
  );
  t.equal(late.signer.identity.kid, source.signer.identity.kid, 'a leaf past its end is loaded: it verifies');
});

t.test('a start that is killed leaves nothing half made', async (t) => {
  const directory = t.testdir();
  const module = new URL('../../src/service/adapters/signing/load-signing.js', import.meta.url).href;
  const script = `
    import { randomBytes } from 'node:crypto';
    import { loadSigning } from ${JSON.stringify(module)};
    for (let i = 0; ; i += 1) {
      await loadSigning({ directory: ${JSON.stringify(directory)} + '/' + (Number(process.argv[1]) * 1000 + i), environment: 'beta', clock: { now: () => Date.now() }, random: (n) => randomBytes(n) });
      if (i === 0) process.stdout.write('started');
    }`;
  for (let run = 0; run < 6; run += 1) {
    const child = spawn(process.execPath, ['--input-type=module', '-e', script, String(run)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await once(child.stdout, 'data');
    await sleep(run * 3);
    child.kill('SIGKILL');
    await once(child, 'exit');
  }
  const homes = await readdir(directory);
  let unfinished = 0;
  for (const home of homes) {
    const path = join(directory, home, 'beta');
    const entries = await readdir(path).catch(() => []);
    unfinished += entries.filter((entry) => entry.startsWith('.')).length;
    const { signer, trust } = await loadSigning(options(join(directory, home)));
    t.equal(trust.find(signer.identity.certificate)?.kid, signer.identity.kid);
  }
  t.comment(`${homes.length} homes, ${unfinished} with an unfinished directory`);
});

t.test('what a killed start left is removed when it is old', async (t) => {
  const directory = t.testdir();
  await loadSigning(options(directory));
  const stale = join(directory, 'beta', '.unfinished-abc');
  await mkdir(stale);
  await loadSigning(options(directory));
  t.ok(await stat(stale), 'it could be another process at work');
  const old = new Date(Date.now() - 3_600_000);
  await utimes(stale, old, old);
  await loadSigning(options(directory));
  await t.rejects(stat(stale));
  await rename(join(directory, 'beta', 'leaf-ed25519', 'key.pem'), join(directory, 'gone'));
  await t.rejects(
    loadSigning(options(directory)),
    { code: 'ENOENT' },
    'a missing key is never replaced silently',
  );
});

t.test('two first starts at once agree', async (t) => {
  const directory = t.testdir();
  const made = await Promise.all(Array.from({ length: 6 }, () => loadSigning(options(directory))));
  t.equal(new Set(made.map(({ signer }) => signer.identity.kid)).size, 1);
  t.equal(new Set(made.map(({ trust }) => trust.authorities()[0])).size, 1);
});

t.test('a device keeps its key and name', async (t) => {
  const directory = t.testdir();
  const device = await createDevice({ directory, name: 'Ännas Studio', clock, random });
  const again = await createDevice({ directory, name: 'another', clock, random });
  t.equal(again.identity.kid, device.identity.kid);
  t.equal(again.identity.issuer, 'Ännas Studio');
  t.equal((await stat(join(directory, 'device', 'key.pem'))).mode & 0o777, 0o600);
  t.ok(createPrivateKey(await readFile(join(directory, 'device', 'key.pem'))));
  const file = sealed(wav(100), device);
  t.equal((await judge(file)).state, 'Valid');
  const { trust } = testSigning();
  t.match(readCredential(file, trust).reading, { kind: 'local_seal', statement: { device: 'Ännas Studio' } });
  for (const name of [
    'Takemark',
    'takemark ',
    'TAKE-MARK',
    'T\u0430kem\u0430rk',
    '\u03a4akemark',
    'Take mark Studio',
    'T4kemark',
    'T\u00e4kemark',
    'Takernark',
  ]) {
    await t.rejects(
      createDevice({ directory: join(directory, 'other'), name: name.trim(), clock, random }),
      /name of the service/,
      name,
    );
  }
  for (const name of ['', ' ', 'a\nb', 'a\u202eb', '\u001b[31m', 'x'.repeat(65)])
    await t.rejects(createDevice({ directory: join(directory, 'other'), name, clock, random }), /name/);
});
