/** Inspection and stripping of files without a service. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { buffer } from 'node:stream/consumers';
import t from 'tap';
import type { Inspection } from '../../src/core/domain/inspection.js';
import { openFileKit } from '../../src/service/compose/tools.js';
import { flipped } from '../../src/service/operations/sandbox/store-edits.js';
import { bindingOf, extentOf, issued, sealed, storeIn, withStore } from '../fixtures/credentialed-file.js';
import { foreignFile, PLAIN } from '../fixtures/foreign-file.js';
import { samplesDigest } from '../fixtures/samples.js';
import { testDevice, testSigning } from '../fixtures/signing.js';
import { chunk, fmtChunk, id3Tag, noise, riff, wav } from '../fixtures/wav.js';

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');
const { signer } = testSigning();
const PROOF = 'prf_01J00000000000000000000000';

const kit = await openFileKit();
t.teardown(() => kit.close());

function opener(file: Uint8Array, size = 65_536): () => AsyncGenerator<Uint8Array> {
  return async function* () {
    for (let at = 0; at < file.length; at += size) yield file.subarray(at, at + size);
  };
}

/** Appends a chunk after the last chunk of a file, as a program that writes tags does. */
function tagged(file: Buffer): Buffer {
  const result = Buffer.concat([file, chunk({ id: 'id3 ', data: id3Tag(10) })]);
  result.writeUInt32LE(result.length - 8, 4);
  return result;
}

t.test('an inspection shows the chunks, the statement and the digests of an issued file', async (t) => {
  const plain = wav(1001, { bits: 8, channels: 1 });
  const file = issued(plain, signer);
  const extent = extentOf(file)!;
  const { credential, ...inspection } = await kit.inspect(opener(file, 1000));
  const values = [...noise(1001)].map((value) => BigInt(value - 128));
  const samplesOfPlain = samplesDigest({ bits: 8, channels: 1, rate: 44_100 }, values);
  t.strictSame(inspection, {
    bytes: file.length,
    sha256: sha256(file),
    samples: { sha256: samplesOfPlain },
    container: 'riff',
    chunks: [
      { id: 'fmt ', offset: 12, size: 16 },
      { id: 'data', offset: 36, size: 1001 },
      { id: 'C2PA', offset: plain.length, size: extent.length - 8 },
    ],
    chunkCount: 3,
    findings: [],
    format: {
      encoding: 'pcm',
      formatTag: 1,
      extensible: false,
      channels: 1,
      sampleRate: 44_100,
      byteRate: 44_100,
      blockAlign: 1,
      bitsPerSample: 8,
    },
    frames: 1001,
  });
  const { createdAt, ...statement } = credential!.statement as { createdAt: number };
  t.strictSame(
    { ...credential, statement },
    {
      kind: 'production_record',
      offset: extent.offset,
      length: extent.length,
      credentialSha256: sha256(file.subarray(extent.offset, extent.offset + extent.length)),
      boundAudioSha256: bindingOf(file, extent),
      originalSha256: sha256(plain),
      statement: {
        version: 1,
        proofId: PROOF,
        kid: signer.identity.kid,
        issuer: 'Takemark',
        evidenceSha256: null,
      },
      signer: 'Takemark',
      algorithm: 'Ed25519',
    },
  );
  t.ok(Math.abs(Date.now() / 1000 - createdAt) < 3600, 'seconds');
});

t.test('the original of a file comes back for every signer and every size of pieces', async (t) => {
  const device = testDevice('Studio laptop', 'ES256');
  const expired = testSigning({ organisation: 'Another service', algorithm: 'ES256' });
  for (const [name, plain, file, kind] of [
    ['a service', wav(1000), issued(wav(1000), signer), 'production_record'],
    ['another service', wav(1000), issued(wav(1000), expired.signer), 'production_record'],
    ['a device', wav(1001, { bits: 8 }), sealed(wav(1001, { bits: 8 }), device), 'local_seal'],
  ] as const)
    for (const size of [1, 5, 7, 65_536]) {
      const { credential } = await kit.inspect(opener(file));
      t.equal(credential!.kind, kind, name);
      t.equal(credential!.originalSha256, sha256(plain), name);
      const original = await buffer(kit.readOriginal(credential!, opener(file, size)));
      t.ok(original.equals(plain), `${name}: in pieces of ${size} bytes`);
    }
});

t.test('the original of a file of an earlier version comes back', async (t) => {
  for (const name of [
    'embedded-v1-es256',
    'embedded-v1-former-name',
    'embedded-v2-traced',
    'local-seal-v1',
  ]) {
    const file = readFileSync(new URL(`../../../test/fixtures/golden/${name}.wav`, import.meta.url));
    const { credential, objection } = await kit.inspect(opener(file));
    t.equal(objection, undefined, name);
    const plain = Buffer.from(file.subarray(0, credential!.offset));
    plain.writeUInt32LE(plain.length - 8, 4);
    t.equal(credential!.originalSha256, sha256(plain), name);
    const { findings } = await kit.inspect(opener(plain));
    t.strictSame(findings, [], `${name}: the original is well-formed`);
  }
});

t.test('a file that changes after its inspection is refused', async (t) => {
  const file = issued(wav(1000), signer);
  const { credential } = await kit.inspect(opener(file));
  const changed = Buffer.from(file);
  changed[100]! ^= 1;
  for (const other of [changed, file.subarray(0, 500), Buffer.alloc(0)])
    await t.rejects(buffer(kit.readOriginal(credential!, opener(other))), { code: 'conflict' });
});

const good = issued(wav(1000), signer);
const extent = extentOf(good)!;

const HOSTILE: Readonly<
  Record<string, { file: Buffer; kind?: string; objection?: object; findings?: readonly string[] }>
> = {
  'a WAV file without a credential': {
    file: wav(1000),
    objection: { verdict: 'unreadable', reasons: ['credential_missing'] },
  },
  'a FLAC file': {
    file: Buffer.concat([Buffer.from('fLaC'), noise(100)]),
    objection: { verdict: 'unreadable', reasons: ['container_unsupported'] },
  },
  'an empty file': {
    file: Buffer.alloc(0),
    objection: { verdict: 'unreadable', reasons: ['container_unsupported'] },
    findings: [
      'header_truncated (byte 0: found a file of 0 bytes, expected a header of 12 bytes): unreadable',
    ],
  },
  'an issued file that was tagged': {
    file: tagged(good),
    kind: 'production_record',
    objection: { verdict: 'unreadable', reasons: ['credential_not_last'] },
    findings: [
      `credential_not_last (byte ${good.length}: found chunk "id3 " of 20 bytes, expected the end of the file after the C2PA chunk): unreadable`,
    ],
  },
  'an issued file with one changed sample': {
    file: flipped(good, 100),
    kind: 'production_record',
    objection: { verdict: 'unreadable', reasons: ['binding_mismatch'] },
  },
  'an issued file with a changed signature': {
    file: flipped(good, extent.offset + extent.length - 3),
    kind: 'altered',
    objection: { verdict: 'tampered', reasons: ['signature_mismatch'] },
  },
  'a truncated issued file': {
    file: good.subarray(0, good.length - 100),
    objection: {
      verdict: 'unreadable',
      reasons: ['riff_size_past_eof', 'chunk_past_end'],
    },
  },
  'a chunk that does not begin like a credential': {
    file: withStore(wav(1000), noise(40)),
    kind: 'not_a_store',
    objection: { verdict: 'unreadable', reasons: ['store_start_missing'] },
  },
  'a credential of another program': { file: foreignFile(), kind: 'foreign' },
  'two credentials': {
    file: withStore(good, storeIn(good, extent)),
    kind: 'not_read',
    objection: { verdict: 'unreadable', reasons: ['credential_duplicate', 'credential_not_last'] },
  },
  'an RF64 file without a ds64 chunk': {
    file: riff([fmtChunk(), chunk({ id: 'data', data: noise(100) })], { magic: 'RF64' }),
    objection: { verdict: 'unreadable', reasons: ['ds64_missing'] },
    findings: ['ds64_missing (byte 12): unreadable'],
  },
  'a LIST chunk with an id that issuing refuses': {
    file: riff([
      fmtChunk(),
      chunk({
        id: 'LIST',
        data: Buffer.concat([Buffer.from('INFO'), chunk({ id: 'data', data: noise(4) })]),
      }),
      chunk({ id: 'data', data: noise(100) }),
    ]),
    objection: { verdict: 'unreadable', reasons: ['credential_missing'] },
  },
};

function findingTexts({ findings }: Inspection): readonly string[] {
  return findings.map(({ code, offset, found, expected, effect }) =>
    found === undefined
      ? `${code} (byte ${offset}): ${effect}`
      : `${code} (byte ${offset}: found ${found}, expected ${expected}): ${effect}`,
  );
}

t.test('an inspection says what a verify would refuse, and gives no original then', async (t) => {
  for (const [name, { file, kind, objection, findings }] of Object.entries(HOSTILE)) {
    const inspection = await kit.inspect(opener(file));
    t.equal(inspection.credential?.kind, kind, name);
    t.strictSame(inspection.objection, objection, name);
    t.equal(inspection.credential?.originalSha256, undefined, name);
    if (findings !== undefined) t.strictSame(findingTexts(inspection), findings, name);
  }
  const listed = await kit.inspect(opener(HOSTILE['a LIST chunk with an id that issuing refuses']!.file));
  t.match(listed.findings, [{ code: 'data_in_list', effect: 'not_issued', found: /inside a LIST chunk/ }]);
});

t.test('an inspection names the signer of a foreign credential, and reports what it checked', async (t) => {
  const { credential } = await kit.inspect(opener(foreignFile()));
  t.match(credential, {
    kind: 'foreign',
    offset: PLAIN.length,
    signer: String,
    algorithm: 'ES256',
    report: { format: 'c2pa', trust: 'unknown' },
  });
});

t.test('an inspection says whether issuing can repair a file', async (t) => {
  const unpadded = riff([fmtChunk({ bits: 8 }), chunk({ id: 'data', data: noise(301), pad: null })]);
  t.match(await kit.inspect(opener(unpadded)), { mendable: true, findings: [{ code: 'pad_missing' }] });
  const several = riff([
    fmtChunk(),
    chunk({ id: 'data', data: noise(4) }),
    chunk({ id: 'data', data: noise(4) }),
  ]);
  t.equal((await kit.inspect(opener(several))).mendable, undefined);
});

t.test('an inspection lists the first 256 of many chunks, and stops after 4,096', async (t) => {
  const junk = Array.from({ length: 5000 }, () => chunk({ id: 'JUNK', data: Buffer.alloc(0) }));
  for (const [count, chunkCount] of [
    [300, 302],
    [5000, 4097],
  ] as const) {
    const file = riff([fmtChunk(), ...junk.slice(0, count), chunk({ id: 'data', data: noise(4) })]);
    const inspection = await kit.inspect(opener(file));
    t.strictSame([inspection.chunks.length, inspection.chunkCount], [256, chunkCount]);
    t.equal(
      inspection.findings.some(({ code }) => code === 'too_many_chunks'),
      count === 5000,
    );
  }
});
