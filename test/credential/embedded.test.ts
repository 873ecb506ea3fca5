import { createHash, createPrivateKey, type KeyObject, sign, X509Certificate } from 'node:crypto';
import { SuperBox } from '@trustnxt/c2pa-ts/jumbf';
import { ManifestStore } from '@trustnxt/c2pa-ts/manifest';
import t from 'tap';
import { embed, finishEmbedding, planEmbedding } from '../../src/core/credential/embed.js';
import { stateProduction, stateSeal } from '../../src/core/credential/statement.js';
import { createTrustList } from '../../src/core/credential/trust-list.js';
import type { SignatureAlgorithm } from '../../src/core/domain/parsed-credential.js';
import type { LocalSigner, SigningIdentity, TrustList } from '../../src/core/ports/signing.js';
import { makeCertificate } from '../../src/service/adapters/signing/certificate-profile.js';
import { newDevice } from '../../src/service/adapters/signing/device.js';
import { createSigner, generateKey } from '../../src/service/adapters/signing/identity.js';
import {
  bindingOf,
  extentOf,
  issued,
  now,
  random,
  readFile,
  readStore,
  sealed,
  storeIn,
  withStore,
} from '../fixtures/credentialed-file.js';
import { judge, startJudge } from '../fixtures/judge.js';
import { sampled } from '../fixtures/sampling.js';
import { testDevice, testSigning } from '../fixtures/signing.js';
import { chunk, fmtChunk, noise, riff, wav } from '../fixtures/wav.js';

startJudge();
const ALGORITHMS: readonly SignatureAlgorithm[] = ['Ed25519', 'ES256'];

t.test('issued files are trusted by c2pa-rs under our authority, and read as ours', async (t) => {
  for (const algorithm of ALGORITHMS) {
    const { signer, trust, authority } = testSigning({ algorithm });
    const pads = new Set<number>();
    // Even and odd stores (through a longer proof id), even and odd audio, and lengths around the size
    // classes of a CBOR number.
    for (const [dataBytes, proofId] of [
      [1000, 'a'],
      [1000, 'ab'],
      [999, 'a'],
      [2, 'a'],
      [65_490, 'ab'],
      [65_500, 'a'],
      [70_000, 'a'],
    ] as const) {
      const file = issued(wav(dataBytes), signer, proofId);
      const extent = extentOf(file)!;
      pads.add(extent.length % 2);
      t.equal(file.readUInt32LE(4), file.length - 8);
      t.equal(extent.offset + extent.length + (extent.length % 2), file.length);
      const { state, codes } = await judge(file, authority);
      t.equal(state, 'Trusted', `${algorithm} ${dataBytes}`);
      t.strictSame(
        codes.filter((code) => code.startsWith('assertion.')),
        [...Array(4).fill('assertion.hashedURI.match'), 'assertion.dataHash.match'],
      );
      t.equal((await judge(file)).state, 'Valid', 'and valid for those who do not know us');
      const { reading, bound } = readFile(file, trust);
      t.match(reading, {
        kind: 'service',
        statement: { proofId, issuer: 'Takemark', kid: signer.identity.kid },
        report: {
          integrity: 'verified',
          trust: 'service',
          algorithm,
          claimVersion: 2,
          issuer: 'Takemark',
          generator: 'Takemark 1.0.0',
        },
      });
      t.ok(bound);
      t.equal(
        reading?.kind === 'service' && reading.chunkSha256,
        createHash('sha256')
          .update(file.subarray(extent.offset, extent.offset + extent.length))
          .digest('hex'),
      );
    }
    t.strictSame([...pads].sort(), [0, 1], 'odd and even chunks');
  }
});

t.test('a device seal is valid from an unknown signer, and reads as a local seal', async (t) => {
  const { trust } = testSigning();
  for (const algorithm of ALGORITHMS) {
    const device = testDevice('Studio, "B" \\ ü', algorithm);
    const file = sealed(wav(1000), device);
    t.equal((await judge(file)).state, 'Valid');
    const { reading, bound } = readFile(file, trust);
    t.match(reading, {
      kind: 'local_seal',
      statement: { device: 'Studio, "B" \\ ü', kid: device.identity.kid },
      report: { trust: 'device', integrity: 'verified', device: 'Studio, "B" \\ ü' },
    });
    t.ok(bound);
  }
});

t.test('c2pa-ts takes what is issued', async (t) => {
  for (const algorithm of ALGORITHMS) {
    const { signer } = testSigning({ algorithm });
    for (const file of [issued(wav(1000), signer), sealed(wav(1000), testDevice('Studio', algorithm))]) {
      const extent = extentOf(file)!;
      const asset = {
        mimeType: 'audio/wav',
        dumpInfo: () => '',
        getDataLength: () => file.length,
        getDataRange: (start = 0, length?: number) =>
          Promise.resolve(
            Uint8Array.from(file.subarray(start, length === undefined ? undefined : start + length)),
          ),
        getManifestJUMBF: () => Promise.resolve(Uint8Array.from(storeIn(file, extent))),
        getHashExclusionRange: () => ({ start: extent.offset, length: extent.length }),
      };
      const store = ManifestStore.read(SuperBox.fromBuffer(Uint8Array.from(storeIn(file, extent))));
      const result = await store.validate(asset as unknown as Parameters<typeof store.validate>[0]);
      t.ok(result.isValid, JSON.stringify(result.toRepresentation()));
    }
  }
});

t.test('a plan has the place and size of the credential, up to 4 GiB', async (t) => {
  const { signer } = testSigning();
  const statement = stateProduction(signer.identity, {
    proofId: 'prf_1',
    createdAt: now(),
    evidenceSha256: 'ab'.repeat(32),
  });
  const plan = planEmbedding({ audioBytes: 3_000_000_000, statement, signer, random });
  t.equal(plan.riffSize, plan.start + plan.chunkLength + plan.pad - 8);
  t.equal((await finishEmbedding(plan, '00'.repeat(32))).bytes.length, plan.chunkLength + plan.pad);
  t.throws(
    () => planEmbedding({ audioBytes: 0xffff_fff0, statement, signer, random }),
    RangeError,
    'past 4 GiB',
  );
  t.throws(() => planEmbedding({ audioBytes: 45, statement, signer, random }), RangeError, 'odd');
  await t.rejects(finishEmbedding(plan, 'AB'.repeat(32)), RangeError);
  const refused: [string, object][] = [
    ['another key', { kid: '00'.repeat(32) }],
    ['another issuer', { issuer: 'Elsewhere' }],
    ['before the certificate', { createdAt: 1 }],
    ['no identifier', { proofId: 'prf 1' }],
    ['no digest', { evidenceSha256: 'AB'.repeat(32) }],
    ['a further member', { more: 1 }],
    ['another version', { version: 2 }],
  ];
  for (const [name, members] of refused)
    t.throws(
      () =>
        planEmbedding({ audioBytes: 44, statement: { ...statement, ...members } as never, signer, random }),
      RangeError,
      name,
    );
});

t.test('no single changed, missing or further byte is ever ours and bound', async (t) => {
  for (const algorithm of ALGORITHMS) {
    const { signer, trust } = testSigning({ algorithm });
    const file = issued(wav(300), signer);
    const extent = extentOf(file)!;
    const isTried = sampled(23);
    let flips = 0;
    const kinds = new Map<string, number>();
    for (let at = 0; at < file.length; at += 1) {
      // Every bit and the whole byte in the chunk, for one algorithm. One hash covers the rest of the file.
      const masks =
        at >= extent.offset && algorithm === 'Ed25519' ? [1, 2, 4, 8, 16, 32, 64, 128, 255] : [1, 255];
      for (const mask of masks) {
        if (!isTried()) continue;
        const bent = Buffer.from(file);
        bent[at]! ^= mask;
        const { reading, bound } = readFile(bent, trust);
        flips += 1;
        const kind = reading?.kind ?? 'no chunk';
        kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
        const inStore = at >= extent.offset + 8 && at < extent.offset + extent.length;
        if (
          (reading?.kind === 'service' && (bound || inStore)) ||
          (inStore && kind !== 'altered' && kind !== 'not_a_store')
        )
          t.fail(`${algorithm} byte ${at} mask ${mask}: ${kind}`);
      }
    }
    t.comment(`${algorithm}: ${flips} flips`, Object.fromEntries(kinds));
    let edits = 0;
    for (let at = extent.offset + 9; at <= extent.offset + extent.length; at += 1) {
      for (const edit of [Buffer.from([0]), Buffer.from([file[at - 1]!]), undefined]) {
        if (!isTried()) continue;
        const store =
          edit === undefined
            ? Buffer.concat([
                file.subarray(extent.offset + 8, at - 1),
                file.subarray(at, extent.offset + extent.length),
              ])
            : Buffer.concat([
                file.subarray(extent.offset + 8, at),
                edit,
                file.subarray(at, extent.offset + extent.length),
              ]);
        const { reading } = readFile(withStore(file.subarray(0, extent.offset), store), trust);
        edits += 1;
        if (reading?.kind !== 'altered' && reading?.kind !== 'not_a_store')
          t.fail(`edit at ${at}: ${reading?.kind}`);
      }
    }
    t.comment(`${algorithm}: ${edits} inserts and deletes`);
  }
  t.end();
});

t.test('a statement counts only under a key that may sign it', async (t) => {
  const { signer, trust, unpinned, authority, authorityKey } = testSigning();
  const device = testDevice();
  const plain = wav(300);
  const kind = (file: Buffer, list: TrustList): string => {
    const { reading } = readFile(file, list);
    return reading === undefined ? 'none' : reading.kind === 'altered' ? reading.reason : reading.kind;
  };
  /** Returns a signer that makes any statement, because the writer itself would refuse. */
  const masked = (real: LocalSigner, mask: Partial<SigningIdentity>): LocalSigner => ({
    identity: { ...real.identity, ...mask },
    sign: (message) => real.sign(message),
  });
  t.equal(
    kind(sealed(plain, masked(signer, { issuer: 'Takemark' })), trust),
    'class_confusion',
    'a seal under the service key',
  );
  t.equal(kind(issued(plain, unpinned), trust), 'signer_not_pinned', 'our authority, no pinned leaf');
  t.equal(kind(sealed(plain, unpinned), trust), 'signer_not_pinned');
  t.equal(kind(issued(plain, device), trust), 'foreign', 'a production record under a foreign key');
  t.equal(
    kind(issued(plain, masked(device, { issuer: 'Takemark' })), trust),
    'foreign',
    'also when it says it is us',
  );
  t.equal(kind(issued(plain, masked(signer, { issuer: 'Former' })), trust), 'issuer_mismatch');
  const elsewhere = testSigning({ environment: 'elsewhere' });
  t.equal(
    kind(issued(plain, elsewhere.signer), trust),
    'foreign',
    'another environment of ours is somebody else',
  );
  const namesake = testSigning();
  t.equal(kind(issued(plain, namesake.signer), trust), 'foreign', 'an authority that borrows our name');
  for (const stranger of [namesake.signer, device, masked(device, { issuer: 'Takemark' })]) {
    t.match(
      readFile(issued(plain, stranger), trust).reading,
      {
        kind: 'foreign',
        report: { integrity: 'verified', trust: 'unknown', reasons: ['names_this_service'] },
      },
      'our form under an unknown key reports that it names us',
    );
  }
  const borrowed = { organisation: 'Takemark', commonName: 'Takemark test authority' };
  const ownKey = generateKey('ES256');
  for (const [issuerKey, expected] of [
    [ownKey.privateKey, 'foreign'],
    [authorityKey, 'signer_not_pinned'],
  ] as const) {
    const leaf = generateKey('Ed25519');
    const straight = makeCertificate({
      subject: { organisation: 'Anyone', commonName: 'Anyone' },
      issuer: borrowed,
      subjectKey: leaf.publicKey,
      issuerKey,
      issuerPublicKey: ownKey.publicKey,
      notBefore: new Date(Date.now() - 86_400_000),
      notAfter: new Date(Date.now() + 86_400_000),
      serial: random(16),
      kind: 'leaf',
    });
    const reordered = issuerReordered(straight, issuerKey);
    t.equal(new X509Certificate(reordered).issuer, 'CN=Takemark test authority\nO=Takemark');
    t.ok(trust.namesOurAuthority(reordered), 'the order of the attributes does not matter');
    t.equal(
      kind(issued(plain, createSigner(new X509Certificate(reordered), leaf.privateKey)), trust),
      expected,
      'a certificate of our authority is recognised by its signature, not by its name',
    );
  }
  t.match(readFile(sealed(plain, masked(testDevice(), {})), trust).reading, {
    kind: 'local_seal',
    report: { reasons: [] },
  });
  t.match(
    readFile(sealed(plain, namesake.signer), trust).reading,
    {
      kind: 'local_seal',
      report: { trust: 'device', device: 'Takemark', issuer: undefined, reasons: ['names_this_service'] },
    },
    'a seal is shown as a device’s, with any name',
  );
  const pinnedToo = createTrustList([signer.identity, unpinned.identity], [new X509Certificate(authority)]);
  t.equal(kind(issued(plain, unpinned), pinnedToo), 'service', 'several leaves may be known');
  t.equal(readFile(issued(plain, signer), trust).bound, true);

  const day = 86_400_000;
  const expired = testSigning({ notBefore: Date.now() - 20 * day, notAfter: Date.now() - 10 * day });
  const then = Math.floor((Date.now() - 15 * day) / 1000);
  const old = embed(plain, {
    statement: stateProduction(expired.signer.identity, {
      proofId: 'prf_1',
      createdAt: then,
      evidenceSha256: null,
    }),
    signer: expired.signer,
    random,
  });
  t.equal(kind(old.file, expired.trust), 'service', 'an expired leaf is judged at the time of issue');
  t.equal((await judge(old.file, expired.authority)).state, 'Invalid', 'others judge it by today');
  t.throws(() => issued(plain, expired.signer), RangeError, 'and signs nothing new');
  const pair = newDevice({ name: 'x', clock: { now: () => Date.now() }, random });
  t.ok(createSigner(new X509Certificate(pair.certificate), createPrivateKey(pair.key)));
  t.equal(stateSeal(device.identity, 5).device, 'Studio laptop');
});

t.test('an intact credential in another place is ours and not bound', (t) => {
  const { signer, trust } = testSigning();
  const device = testDevice();
  for (const [kind, file] of [
    ['service', issued(wav(300), signer)],
    ['local_seal', sealed(wav(300), device)],
  ] as const) {
    const extent = extentOf(file)!;
    const store = storeIn(file, extent);
    for (const plain of [
      wav(298),
      wav(302),
      riff([chunk({ id: 'JUNK', data: noise(4) }), fmtChunk(), chunk({ id: 'data', data: noise(300) })]),
    ]) {
      const { reading, bound } = readFile(withStore(plain, store), trust);
      t.equal(reading?.kind, kind);
      t.notOk(bound);
    }
    // Audio moved after the chunk. The hashed bytes and their order are unchanged, and only the place of the
    // chunk differs.
    const moved = Buffer.concat([
      file.subarray(0, extent.offset - 100),
      file.subarray(extent.offset, extent.offset + extent.length),
      file.subarray(extent.offset - 100, extent.offset),
      file.subarray(extent.offset + extent.length),
    ]);
    const reading = readStore(store, { offset: extent.offset - 100, length: extent.length }, trust);
    t.equal(
      'binding' in reading && reading.binding?.sha256,
      bindingOf(moved, { offset: extent.offset - 100, length: extent.length }),
    );
    t.equal('binding' in reading && reading.binding?.exclusion.start, extent.offset);
  }
  t.end();
});

t.test('bytes that are not a store are distinguished from an altered store', (t) => {
  const { trust } = testSigning();
  const extent = { offset: 44, length: 8 };
  for (const bytes of [Buffer.alloc(0), Buffer.alloc(100), Buffer.from('hello'), riff([fmtChunk()])]) {
    t.equal(readStore(bytes, { ...extent, length: 8 + bytes.length }, trust).kind, 'not_a_store');
  }
  const file = issued(wav(10), testSigning().signer);
  const found = extentOf(file)!;
  t.match(readStore(storeIn(file, found), { ...found, length: found.length + 1 }, trust), {
    kind: 'altered',
    reason: 'extent_mismatch',
  });
  t.equal(bindingOf(file, found).length, 64);
  t.end();
});

/**
 * Returns the same certificate with the two attributes of its issuer swapped, signed again (RFC 5280 section
 * 4.1).
 */
function issuerReordered(certificate: Uint8Array, issuerKey: KeyObject): Buffer {
  const der = Buffer.from(certificate);
  const end = (at: number): number => {
    const long = der[at + 1]! & 0x80 ? der[at + 1]! & 0x7f : 0;
    return at + 2 + long + (long === 0 ? der[at + 1]! : der.readUIntBE(at + 2, long));
  };
  const tbs = 4;
  // Version, serial, algorithm, then the issuer.
  let issuer = tbs + 4;
  for (let skipped = 0; skipped < 3; skipped += 1) issuer = end(issuer);
  const first = issuer + 2;
  const second = end(first);
  const swapped = Buffer.concat([der.subarray(second, end(issuer)), der.subarray(first, second)]);
  const signed = Buffer.concat([der.subarray(tbs, first), swapped, der.subarray(end(issuer), end(tbs))]);
  const signature = sign('sha256', signed, issuerKey);
  const rest = Buffer.concat([
    signed,
    der.subarray(end(tbs), end(end(tbs))),
    Buffer.from([0x03, signature.length + 1, 0]),
    signature,
  ]);
  return Buffer.concat([Buffer.from([0x30, 0x82, rest.length >> 8, rest.length & 0xff]), rest]);
}
