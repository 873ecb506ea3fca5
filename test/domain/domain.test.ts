import { randomBytes } from 'node:crypto';
import t from 'tap';
import { HARMLESS_FINDINGS, isBreak, STRUCTURE_FINDINGS } from '../../src/core/domain/findings.js';
import { createdAtOf, formatIdentifier, IDENTIFIER_PATTERN } from '../../src/core/domain/identifiers.js';
import type {
  CredentialReport,
  EmbeddedParseResult,
  ProductionStatement,
  SidecarParseResult,
} from '../../src/core/domain/parsed-credential.js';
import { type Evidence, judge, namedProof } from '../../src/core/domain/verdict.js';
import { VERDICTS } from '../../src/core/domain/verdicts.js';
import { decide, summariseAudio } from '../../src/service/domain/decision.js';
import { formatApiKey, parseApiKey } from '../../src/service/domain/partner-key.js';
import type { IssuedProof, Proof } from '../../src/service/domain/proof.js';
import type { UploadFacts } from '../../src/service/domain/upload.js';
import { monthEnd, secondsToNextMonth } from '../../src/service/domain/usage-window.js';

const HASH = 'ab'.repeat(32);
const OTHER = 'cd'.repeat(32);
const extent = { offset: 1000, length: 508 };
const measurement: UploadFacts['measurement'] = {
  bytes: 1508,
  sha256: HASH,
  bindingSha256: HASH,
  container: 'riff',
  format: {
    encoding: 'pcm',
    formatTag: 1,
    extensible: false,
    channels: 2,
    sampleRate: 48_000,
    byteRate: 192_000,
    blockAlign: 4,
    bitsPerSample: 16,
  },
  frames: 24_000,
  chunkCount: 3,
  credential: extent,
  findings: [],
  broadcastWave: false,
};
const statement: ProductionStatement = {
  version: 1,
  proofId: 'prf_1',
  createdAt: 1_700_000_000,
  kid: HASH,
  issuer: 'Takemark',
  evidenceSha256: null,
};
const seal = { version: 1, sealedAt: 1_700_000_000, kid: OTHER, device: 'pencil' } as const;
const report: CredentialReport = { format: 'c2pa', integrity: 'verified', trust: 'service', reasons: [] };
const binding = { exclusion: { start: extent.offset, length: extent.length }, sha256: HASH };
const whole = { bytes: measurement.bytes, sha256: HASH };
const proof: IssuedProof = {
  state: 'issued',
  proofId: 'prf_1',
  partnerId: 'ptr_1',
  song: { title: 'Song' },
  carrier: 'embedded',
  createdAt: 1_700_000_000,
  kid: HASH,
  originalSha256: OTHER,
  boundAudioSha256: HASH,
  credentialSha256: OTHER,
  asset: { bytes: 1508, sha256: HASH, fileName: 'a.wav', mediaType: 'audio/wav' },
};

const service: EmbeddedParseResult = { kind: 'service', statement, binding, chunkSha256: OTHER, report };
const foreign: EmbeddedParseResult = { kind: 'foreign', binding, report: { ...report, trust: 'unknown' } };
const sealed: EmbeddedParseResult = {
  kind: 'local_seal',
  statement: seal,
  binding,
  chunkSha256: OTHER,
  report: { ...report, trust: 'device' },
};
const servicePair: SidecarParseResult = { kind: 'service', statement, binding: whole, sidecarSha256: OTHER };

t.test('the first step that speaks decides the verdict', async (t) => {
  const noCredential = { ...measurement };
  delete (noCredential as { credential?: unknown }).credential;
  const wrongHash = { ...binding, sha256: OTHER };
  const rows: readonly [name: string, evidence: Evidence, verdict: string, reasons: readonly string[]][] = [
    ['an issued WAV', { measurement, embedded: service, proof }, 'valid', ['credential_verified']],
    [
      'an MP3 without a sidecar',
      { measurement: { ...noCredential, container: 'mp3' } },
      'unreadable',
      ['container_unsupported'],
    ],
    ['a plain WAV', { measurement: noCredential }, 'unreadable', ['credential_missing']],
    [
      'a broken WAV, all findings named',
      {
        measurement: {
          ...measurement,
          findings: [
            { slug: 'pad_nonzero', offset: 9 },
            { slug: 'duplicate_data', offset: 5 },
          ],
        },
        embedded: service,
        proof,
      },
      'unreadable',
      ['pad_nonzero', 'duplicate_data'],
    ],
    [
      'an issued WAV with every harmless finding',
      {
        measurement: { ...measurement, findings: HARMLESS_FINDINGS.map((slug) => ({ slug, offset: 12 })) },
        embedded: service,
        proof,
      },
      'valid',
      ['credential_verified'],
    ],
    [
      'a broken WAV with a harmless finding, which is not named',
      {
        measurement: {
          ...measurement,
          findings: [
            { slug: 'duplicate_data', offset: 5 },
            { slug: 'list_malformed', offset: 9 },
          ],
        },
        embedded: service,
        proof,
      },
      'unreadable',
      ['duplicate_data'],
    ],
    [
      'a credential in RF64, which is never issued',
      { measurement: { ...measurement, container: 'rf64' }, embedded: service, proof },
      'unreadable',
      ['container_unsupported'],
    ],
    [
      'a chunk that is not a store',
      { measurement, embedded: { kind: 'not_a_store', reason: 'store_start_missing' } },
      'unreadable',
      ['store_start_missing'],
    ],
    [
      'a store that is not intact',
      { measurement, embedded: { kind: 'altered', reason: 'signature_mismatch', report } },
      'tampered',
      ['signature_mismatch'],
    ],
    [
      'changed audio',
      { measurement, embedded: { ...service, binding: wrongHash }, proof },
      'unreadable',
      ['binding_mismatch'],
    ],
    [
      'an exclusion that is not the chunk',
      {
        measurement,
        embedded: { ...service, binding: { ...binding, exclusion: { start: 999, length: 508 } } },
        proof,
      },
      'unreadable',
      ['binding_mismatch'],
    ],
    ['a foreign credential', { measurement, embedded: foreign }, 'unregistered', ['signer_unknown']],
    [
      'a foreign credential on changed audio',
      { measurement, embedded: { ...foreign, binding: wrongHash } },
      'unreadable',
      ['binding_mismatch'],
    ],
    [
      'a foreign credential that cannot be checked',
      { measurement, embedded: { kind: 'foreign', report: { ...report, integrity: 'not_checked' } } },
      'unregistered',
      ['signer_unknown'],
    ],
    ['a local seal', { measurement, embedded: sealed }, 'local_seal', ['sealed_by_device']],
    [
      'a local seal on changed audio',
      { measurement, embedded: { ...sealed, binding: wrongHash } },
      'unreadable',
      ['binding_mismatch'],
    ],
    [
      'a proof that was not issued',
      { measurement, embedded: service },
      'unregistered',
      ['proof_not_registered'],
    ],
    [
      'a pending proof',
      {
        measurement,
        embedded: service,
        proof: { state: 'pending', proofId: 'prf_1' },
      },
      'unregistered',
      ['proof_not_registered'],
    ],
    [
      'an erased proof',
      {
        measurement,
        embedded: service,
        proof: { state: 'erased', proofId: 'prf_1' },
      },
      'unregistered',
      ['proof_not_registered'],
    ],
    [
      'another proof’s row',
      { measurement, embedded: service, proof: { ...proof, proofId: 'prf_2' } },
      'unregistered',
      ['proof_not_registered'],
    ],
    [
      'another chunk than the registered one',
      { measurement, embedded: service, proof: { ...proof, credentialSha256: HASH } },
      'unregistered',
      ['credential_not_as_issued'],
    ],
    [
      'another leaf than the registered one, whose revocation would be looked up',
      { measurement, embedded: service, proof: { ...proof, kid: OTHER } },
      'unregistered',
      ['credential_not_as_issued'],
    ],

    [
      'an issued pair',
      { measurement: noCredential, sidecar: servicePair, proof },
      'valid',
      ['credential_verified'],
    ],
    [
      'the audio of a pair is opaque',
      {
        measurement: {
          ...noCredential,
          container: 'unknown',
          findings: [{ slug: 'pad_missing', offset: 1 }],
        },
        sidecar: servicePair,
        proof,
      },
      'valid',
      ['credential_verified'],
    ],
    [
      'a pair beside a broken embedded credential',
      { measurement, embedded: { kind: 'altered', reason: 'box_size', report }, sidecar: servicePair, proof },
      'valid',
      ['credential_verified'],
    ],
    [
      'an empty sidecar',
      { measurement, embedded: service, sidecar: { kind: 'not_a_sidecar', reason: 'sidecar_empty' }, proof },
      'unreadable',
      ['sidecar_empty'],
    ],
    [
      'an altered sidecar beside altered audio',
      {
        measurement: { ...measurement, sha256: OTHER },
        sidecar: { kind: 'altered', reason: 'signature_mismatch' },
      },
      'tampered',
      ['signature_mismatch'],
    ],
    [
      'altered audio of a pair',
      { measurement: { ...measurement, sha256: OTHER }, sidecar: servicePair, proof },
      'audioChanged',
      ['audio_digest_mismatch'],
    ],
    [
      'audio of another length',
      { measurement: { ...measurement, bytes: 7 }, sidecar: servicePair, proof },
      'audioChanged',
      ['audio_digest_mismatch'],
    ],
    [
      'a sealed pair',
      { measurement, sidecar: { kind: 'local_seal', statement: seal, binding: whole, sidecarSha256: OTHER } },
      'local_seal',
      ['sealed_by_device'],
    ],
    [
      'a sealed pair with changed audio',
      {
        measurement: { ...measurement, sha256: OTHER },
        sidecar: { kind: 'local_seal', statement: seal, binding: whole, sidecarSha256: OTHER },
      },
      'audioChanged',
      ['audio_digest_mismatch'],
    ],
    [
      'a pair by a stranger',
      {
        measurement,
        sidecar: {
          kind: 'foreign',
          reason: 'signer_unknown',
          namesService: true,
          binding: whole,
          sidecarSha256: OTHER,
        },
      },
      'unregistered',
      ['signer_unknown', 'names_this_service'],
    ],
    [
      'a pair that was not issued',
      { measurement, sidecar: servicePair },
      'unregistered',
      ['proof_not_registered'],
    ],
    [
      'a sidecar other than the registered one',
      { measurement, sidecar: { ...servicePair, sidecarSha256: HASH }, proof },
      'unregistered',
      ['credential_not_as_issued'],
    ],
  ];
  for (const [name, evidence, verdict, reasons] of rows) {
    const judgement = judge(evidence);
    t.match({ verdict: judgement.verdict, reasons: judgement.reasons }, { verdict, reasons }, name);
    t.equal(judgement.issuedAt !== undefined, verdict === 'valid', `${name}: issuedAt with valid alone`);
    t.equal(
      judgement.proofId,
      namedProof(evidence.embedded, evidence.sidecar),
      `${name}: proofId whenever a signature of ours was verified`,
    );
  }
  t.strictSame(new Set(rows.map(([, , verdict]) => verdict)), new Set(VERDICTS), 'every verdict is reached');
});

t.test('every break makes an embedded credential unreadable, and no finding touches a pair', async (t) => {
  for (const slug of STRUCTURE_FINDINGS) {
    const broken = { ...measurement, findings: [{ slug, offset: 0 }] };
    t.match(
      judge({ measurement: broken, embedded: service, proof }),
      isBreak({ slug, offset: 0 })
        ? { verdict: 'unreadable', reasons: [slug] }
        : { verdict: 'valid', reasons: ['credential_verified'] },
      slug,
    );
    t.equal(judge({ measurement: broken, sidecar: servicePair, proof }).verdict, 'valid');
  }
});

t.test('a failed hard binding shows in the report of the embedded credential', async (t) => {
  const { report: changed } = judge({
    measurement: { ...measurement, bindingSha256: OTHER },
    embedded: foreign,
  });
  t.match(changed, { integrity: 'failed', reasons: ['binding_mismatch'] });
});

t.test('a result has the decision envelope of its verdict and a summary of the audio', async (t) => {
  t.match(decide(judge({ measurement, embedded: service, proof })), {
    status: 'verified_binding',
    recommendedAction: 'accept_credential',
    credentialCarrier: 'embedded',
    sourceDetailCoverage: 'none',
  });
  t.match(decide(judge({ measurement, embedded: foreign })), {
    status: 'invalid_proof',
    recommendedAction: 'reject',
  });
  t.match(decide(judge({ measurement: { ...measurement, sha256: OTHER }, sidecar: servicePair, proof })), {
    recommendedAction: 'request_matching_pair',
    credentialCarrier: 'sidecar',
  });
  t.match(summariseAudio(measurement), {
    container: 'riff',
    sampleRate: 48_000,
    channels: 2,
    bitsPerSample: 16,
    frames: 24_000,
    durationSeconds: 0.5,
    bytes: 1508,
  });
});

t.test('identifiers match the contract, sort by time and keep every random bit', async (t) => {
  const early = formatIdentifier('proof', 1_700_000_000_000, randomBytes(10));
  const late = formatIdentifier('proof', 1_700_000_000_001, randomBytes(10));
  t.match(early, /^prf_[0-9A-HJKMNP-TV-Z]{26}$/);
  t.match(early, IDENTIFIER_PATTERN);
  t.ok(early < late);
  // RFC 9562, appendix A.6: 017F22E2-79B0-7CC3-98C4-DC0C0C07398F
  t.equal(
    formatIdentifier('upload', 0x017f22e279b0, Buffer.from('7cc398c4dc0c0c07398f', 'hex')),
    'upl_01FWHE4YDGFK1SHH6W1G60EECF',
  );
  t.equal(createdAtOf('upload', 'upl_01FWHE4YDGFK1SHH6W1G60EECF'), 0x017f22e279b0);
  t.equal(createdAtOf('upload', 'upl_7ZZZZZZZZZZZZZZZZZZZZZZZZZ'), 2 ** 48 - 1);
  for (const other of [
    'prf_01FWHE4YDGFK1SHH6W1G60EECF',
    'upl_01FWHE4YDG',
    'upl_8'.padEnd(30, '0'),
    '',
    'upl_1',
  ])
    t.equal(createdAtOf('upload', other), undefined, other);
  t.equal(
    new Set(Array.from({ length: 10_000 }, () => formatIdentifier('key', 1, randomBytes(10)))).size,
    10_000,
  );
});

t.test('API keys: any changed character is refused before a store is read', async (t) => {
  const keyId = formatIdentifier('key', 1_700_000_000_000, randomBytes(10));
  const key = formatApiKey('production', keyId, randomBytes(32));
  t.equal(parseApiKey('production', key), keyId);
  t.equal(parseApiKey('beta', key), undefined, 'a foreign environment');
  t.equal(parseApiKey('production', formatApiKey('beta', keyId, randomBytes(32))), undefined);
  t.equal(
    formatApiKey('production', keyId, new Uint8Array(32)).length,
    formatApiKey('production', keyId, new Uint8Array(32).fill(255)).length,
  );
  for (let i = 0; i < key.length; i += 1) {
    const changed = key.slice(0, i) + (key[i] === 'x' ? 'y' : 'x') + key.slice(i + 1);
    t.equal(parseApiKey('production', changed), undefined, `character ${i}`);
  }
  for (const odd of ['', 'x', `${key} `, ` ${key}`, `${key}\n`, key.slice(0, -1), `${key}0`])
    t.equal(parseApiKey('production', odd), undefined);
});

t.test('quota windows are UTC calendar months', async (t) => {
  const lastSecond = Date.UTC(2027, 11, 31, 23, 59, 59) / 1000;
  t.equal(secondsToNextMonth(lastSecond), 1);
  t.equal(monthEnd(lastSecond + 1), Date.UTC(2028, 1, 1) / 1000);
});

t.test('a valid verdict cannot come without a registry record', async (t) => {
  const nothing: Proof | undefined = undefined;
  t.equal(
    judge({ measurement, embedded: service, ...(nothing === undefined ? {} : { proof: nothing }) }).verdict,
    'unregistered',
  );
});
