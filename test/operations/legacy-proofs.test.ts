/** Proofs of an earlier registry and of the former name, on a whole service. */
import { createHash, randomUUID, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { createClient } from '../../src/client/index.js';
import { RecordCodec } from '../../src/core/codec/record.js';
import { openBucketKeys } from '../../src/service/adapters/assets/bucket-keys.js';
import { pendingKey, proofKey } from '../../src/service/adapters/embedded/keys.js';
import { readConfig } from '../../src/service/config/config.js';
import type { LegacyProof } from '../../src/service/operations/proofs/import-legacy.js';
import { withLevel } from '../adapters/embedded-process.js';
import { setUp } from '../cli/bench.js';
import { authenticatorOf } from '../fixtures/authentication.js';
import { ContractCheck } from '../fixtures/contract-check.js';
import { wav } from '../fixtures/wav.js';
import { bindings, notFound, RestartedService } from './restarted-service.js';

const GOLDEN = new URL('../../../test/fixtures/golden/', import.meta.url);
const expected = JSON.parse(readFileSync(new URL('expected.json', GOLDEN), 'utf8')) as {
  readonly leaves: readonly string[];
  readonly authorities: readonly string[];
  readonly readings: Readonly<
    Record<
      string,
      {
        readonly statement: {
          readonly proofId: string;
          readonly createdAt: number;
          readonly kid: string;
          readonly issuer: string;
        };
        readonly binding: { readonly sha256: string };
        readonly chunkSha256?: string;
        readonly sidecarSha256?: string;
      }
    >
  >;
};
const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

/** A file of the former name with its credential, and the audio and sidecar of a pair. */
const FILE = readFileSync(new URL('embedded-v1-former-name.wav', GOLDEN));
const SIDECAR = readFileSync(new URL('sidecar-v1-former-name.sidecar', GOLDEN));
const AUDIO = Buffer.from(FILE.subarray(0, 108));
AUDIO.writeUInt32LE(100, 4);

const VALUES = { classification: 'studio', grade: 'B', interpretation: 'Played and sung in one room.' };

function legacyOf(name: string, file: Uint8Array, partnerId: string): LegacyProof {
  const { statement, binding, chunkSha256, sidecarSha256 } = expected.readings[name]!;
  return {
    proofId: statement.proofId,
    partnerId,
    createdAt: statement.createdAt,
    kid: statement.kid,
    carrier: sidecarSha256 === undefined ? 'embedded' : 'sidecar',
    song: { title: 'An old song' },
    originalSha256: sha256(AUDIO),
    boundAudioSha256: binding.sha256,
    credentialSha256: chunkSha256 ?? sidecarSha256!,
    asset: { bytes: file.length, sha256: sha256(file), fileName: 'old.wav', mediaType: 'audio/wav' },
    ...VALUES,
  };
}

const house = await RestartedService.start({ TAKEMARK_ENVIRONMENT: 'beta' });
t.teardown(() => house.stop());
// The certificates of the former authority, as an operator puts them there.
const former = expected.readings['embedded-v1-former-name.wav']!.statement.kid;
await house.restart(async () => {
  const known = join(house.directory, 'signing', 'beta', 'known');
  await mkdir(known, { recursive: true });
  const leaf = expected.leaves.find(
    (pem) => new X509Certificate(pem).fingerprint256.replaceAll(':', '').toLowerCase() === former,
  )!;
  const authority = expected.authorities.find((pem) =>
    new X509Certificate(leaf).checkIssued(new X509Certificate(pem)),
  )!;
  await writeFile(join(known, 'former.pem'), `${leaf}\n${authority}\n`);
});

t.test('a file and a pair of the former name verify as valid once they are imported', async (t) => {
  const { caller, partnerId } = await house.service.partner();
  const stranger = (await house.service.partner()).caller;
  const embedded = legacyOf('embedded-v1-former-name.wav', FILE, partnerId);
  const pair = legacyOf('sidecar-v1-former-name.sidecar', AUDIO, partnerId);
  t.equal(expected.readings['embedded-v1-former-name.wav']!.statement.issuer, 'Takeproof');
  t.match(
    await house.service.verify(caller, FILE),
    { verdict: 'unregistered', decision: { reasons: ['proof_not_registered'] } },
    'before: intact, and of a known signer',
  );

  for (const legacy of [embedded, pair]) {
    const { proofId } = legacy;
    t.strictSame(await house.operator.importLegacy(legacy), { proofId, outcome: 'imported' });
    house.clock.advance(5);
    t.strictSame(await house.operator.importLegacy(legacy), { proofId, outcome: 'already_imported' });
  }
  for (const [result, { proofId, createdAt }] of [
    [await house.service.verify(stranger, FILE), embedded],
    [await house.service.verify(stranger, AUDIO, SIDECAR), pair],
  ] as const) {
    t.match(result, {
      verdict: 'valid',
      good: true,
      proofId,
      issuedAt: createdAt,
      ...VALUES,
      decision: {
        status: 'verified_binding',
        recommendedAction: 'accept_credential',
        counts: { declarations: 0, conflicts: 0, unverifiable: 0 },
      },
    });
    t.notOk('evidenceReport' in result, 'unavailable, which is not "none recorded"');
  }
  const { proofId } = embedded;
  t.match(await house.partner.readProof(caller, { proofId }), {
    proofId,
    createdAt: 1_772_323_200,
    ...VALUES,
  });
  const record = await house.partner.readRecord(stranger, { proofId });
  t.strictSame(
    Object.keys(record).toSorted(),
    ['boundAudioSha256', 'delivery', 'issuedAt', 'proofId', 'song'],
    'neither the old values nor a report',
  );
  for (const result of [
    await house.service.verify(caller, Buffer.from(FILE).fill(1, 60, 61)),
    (await house.partner.listProofs(caller, {})).proofs[0]!,
  ])
    t.notOk(
      Object.keys(VALUES).some((name) => name in result),
      'with `valid` alone, and in no list',
    );
});

t.test('an imported proof is like any other', async (t) => {
  const { caller, partnerId } = await house.service.partner();
  const { proofId: newer } = await house.service.issue(partnerId, wav(2000, {}, 1));
  const legacy = (name: string, over: Partial<LegacyProof> = {}): LegacyProof => ({
    ...legacyOf('embedded-v1-former-name.wav', FILE, partnerId),
    proofId: name,
    boundAudioSha256: sha256(Buffer.from(name)),
    ...over,
  });
  const ids = ['TPF:2019.000-1', 'tpf_2', 'prf_elsewhere'];
  for (const [i, id] of ids.entries())
    await house.operator.importLegacy(legacy(id, { createdAt: 1_500_000_000 + i }));
  t.strictSame(
    (await house.partner.listProofs(caller, {})).proofs.map(({ proofId }) => proofId),
    [newer, ...ids.toReversed()],
    'in the order of their own times',
  );
  t.strictSame(
    (await house.partner.listProofs(caller, { issuedBefore: 1_500_000_001 })).proofs.map(
      ({ issuedAt }) => issuedAt,
    ),
    [1_500_000_001, 1_500_000_000],
  );
  const [proofId] = ids as [string];
  t.match(await house.partner.createReview(caller, { proofId, bindings: bindings('s-1') }), { proofId });

  for (const change of [
    { song: { title: 'Another song' } },
    { createdAt: 1 },
    { kid: '0'.repeat(64) },
    { grade: 'A' },
    { credentialSha256: '0'.repeat(64) },
    { asset: { ...legacy(proofId).asset, bytes: 1 } },
  ])
    await t.rejects(
      house.operator.importLegacy({ ...legacy(proofId, { createdAt: 1_500_000_000 }), ...change }),
      { code: 'conflict', reason: 'legacy_differs' },
      Object.keys(change)[0]!,
    );
  const { grade: _grade, ...without } = legacy(proofId, { createdAt: 1_500_000_000 });
  await t.rejects(house.operator.importLegacy(without), { code: 'conflict', reason: 'legacy_differs' });
  await t.rejects(
    house.operator.importLegacy(legacy(newer)),
    { code: 'conflict', reason: 'legacy_differs' },
    'nothing takes the place of what was issued here',
  );
  await t.rejects(house.operator.importLegacy(legacy('tpf_3', { partnerId: 'ptr_none' })), notFound);
  await t.rejects(house.operator.importLegacy(legacy('tpf_3', { createdAt: house.seconds() + 1 })), {
    code: 'invalid_request',
  });
  await t.rejects(house.partner.readProof(caller, { proofId: 'tpf_3' }), notFound, 'nothing was written');

  const outcomes = await Promise.all(
    ['A', 'B', 'A', 'B'].map((grade) =>
      house.operator.importLegacy(legacy('tpf_race', { grade })).then(
        () => grade,
        ({ reason }: { readonly reason: string }) => reason,
      ),
    ),
  );
  const { grade } = await house.partner.readProof(caller, { proofId: 'tpf_race' });
  t.strictSame(
    outcomes.toSorted(),
    [grade!, grade!, 'legacy_differs', 'legacy_differs'].toSorted(),
    'of two contents at once one wins, and both callers learn which',
  );

  for (const part of ['audio', 'sidecar'] as const)
    await t.rejects(house.partner.readAsset(caller, proofId, part), {
      code: 'not_found',
      reason: 'asset_not_kept',
    });

  // A declaration brings a report, which still knows no session.
  await house.operator.recordDeclaration(proofId, {
    surveyVersion: '1',
    submissionId: 'sub_1',
    subject: 'creator_1',
    submittedAt: house.seconds(),
    answers: { declaredOrigin: 'from_scratch' },
  });
  const { evidenceReport } = await house.partner.readProof(caller, { proofId });
  t.match(evidenceReport, {
    facts: [{ dimension: 'declaredOrigin', status: 'declared' }],
    unverifiable: [{ code: 'session_evidence_unavailable' }, {}],
  });
  t.strictSame(await house.operator.importLegacy(legacy(proofId, { createdAt: 1_500_000_000 })), {
    proofId,
    outcome: 'already_imported',
  });

  await house.partner.eraseProof(caller, { proofId });
  await t.rejects(house.partner.readRecord(caller, { proofId }), notFound);
  await t.rejects(
    house.operator.importLegacy(legacy(proofId, { createdAt: 1_500_000_000 })),
    { code: 'conflict', reason: 'legacy_differs' },
    'an import brings back nothing that was erased',
  );
  const audit = await house.operator.readAudit({ partnerId, fromSequence: 1, limit: 100 });
  t.strictSame(
    audit.filter(({ action }) => action === 'proof_imported').map(({ subjects }) => subjects[0]),
    [...ids, 'tpf_race'],
    'each once',
  );
  t.match(await house.operator.verifyAudit({ partnerId }), { ok: true });
});

t.test('responses about imported proofs are those of the contract', async (t) => {
  const { apiKey, partnerId } = await house.service.partner();
  const legacy = { ...legacyOf('embedded-v1-former-name.wav', FILE, partnerId), proofId: 'tpf:wire' };
  const contract = new ContractCheck();
  const call = async (
    base: string,
    method: string,
    target: string,
    own: Record<string, string>,
    body?: object,
  ) => {
    const sent = body === undefined ? {} : { body: Buffer.from(JSON.stringify(body)) };
    const headers = { ...own, ...(body === undefined ? {} : { 'content-type': 'application/json' }) };
    const answer = await fetch(`${base}${target}`, { method, headers, ...sent });
    const bytes = Buffer.from(await answer.arrayBuffer());
    t.strictSame(
      contract.problems(
        { method, target, headers, ...sent },
        { status: answer.status, headers: new Map(answer.headers), body: bytes },
      ),
      [],
      `${method} ${target}`,
    );
    return { status: answer.status, value: JSON.parse(bytes.toString()) as Record<string, unknown> };
  };
  const operator = (body: object) =>
    call(
      house.service.operatorUrl,
      'POST',
      '/operator/v1/legacy-proofs',
      { authorization: `Bearer ${house.service.service.operatorToken}` },
      body,
    );
  t.match(await operator(legacy), { status: 201, value: { outcome: 'imported' } });
  t.match(await operator(legacy), { status: 200, value: { outcome: 'already_imported' } });
  t.match(await operator({ ...legacy, grade: 'A' }), { status: 409, value: { reason: 'legacy_differs' } });
  for (const change of [
    { proofId: 'a b' },
    { proofId: 'x'.repeat(129) },
    { createdAt: '1' },
    { kid: 'AB' },
    { carrier: 'paper' },
    { evidenceReport: {} },
    { declarations: [] },
    { song: { title: '\u0000' } },
    { interpretation: 'x'.repeat(2001) },
    { asset: { ...legacy.asset, mediaType: 'audio/wav\r\nx: y' } },
    { asset: { ...legacy.asset, bytes: -1 } },
  ])
    t.match(await operator({ ...legacy, ...change }), { status: 400 }, JSON.stringify(change).slice(0, 60));
  const partner = (method: string, path: string) =>
    call(house.service.partnerUrl, method, `/v1/${path}`, { 'x-api-key': apiKey });
  t.match(await partner('GET', 'proofs/tpf:wire'), { status: 200, value: VALUES });
  t.match(await partner('GET', 'records/tpf:wire'), { status: 200 });
  t.match(await partner('GET', 'proofs/tpf:wire/asset'), {
    status: 404,
    value: { reason: 'asset_not_kept' },
  });
  const client = createClient({ baseUrl: house.service.partnerUrl, apiKey });
  t.teardown(() => client.close());
  t.match(await client.readRecord('tpf:wire'), { proofId: 'tpf:wire' });
});

t.test('the command imports the lines of a file, and may be run again', async (t) => {
  const { partnerId, caller } = await house.service.partner();
  const cli = await setUp(t, {
    operatorUrl: house.service.operatorUrl,
    operatorToken: house.service.service.operatorToken,
  });
  const line = (proofId: string, over: object = {}) =>
    JSON.stringify({ ...legacyOf('embedded-v1-former-name.wav', FILE, partnerId), proofId, ...over });
  const lines = [
    line('cli_1'),
    '',
    line('cli_2'),
    '{',
    line('cli_3', { kid: 'x' }),
    line('cli_1', { grade: 'A' }),
  ];
  const path = await cli.file('proofs.jsonl', Buffer.from(lines.join('\n')));
  const first = await cli.takemark('operator', 'legacy', 'import', path);
  t.match(first, { code: 1, out: '2 imported, 0 already imported, 3 refused\n' });
  t.strictSame(
    first.err.split('\n').map((text) => /line \d/.exec(text)?.[0]),
    ['line 4', 'line 5', 'line 6', undefined],
    'the lines that were refused, by their numbers',
  );
  t.match(first.err, /legacy_differs/);
  const good = await cli.file('good.jsonl', Buffer.from(`${line('cli_1')}\n${line('cli_2')}\n`));
  t.match(await cli.takemark('operator', 'legacy', 'import', good), {
    code: 0,
    out: '0 imported, 2 already imported, 0 refused\n',
  });
  const latin1 = await cli.file(
    'latin1.jsonl',
    Buffer.from(line('cli_4', { song: { title: 'Müller' } }), 'latin1'),
  );
  t.match(
    await cli.takemark('operator', 'legacy', 'import', latin1),
    { code: 1, err: 'line 1: is not UTF-8\n' },
    'no title is registered whose letters were lost',
  );
  t.strictSame((await house.partner.listProofs(caller, {})).proofs.map(({ proofId }) => proofId).toSorted(), [
    'cli_1',
    'cli_2',
  ]);
});

t.test(
  'an import that a kill cut short is finished by its repetition, after the start collected what it left',
  { skip: process.env['TAKEMARK_S3_ENDPOINT'] === undefined && 'needs TAKEMARK_S3_ENDPOINT' },
  async (t) => {
    const given = Object.entries(process.env).filter(([name]) => name.startsWith('TAKEMARK_S3_'));
    const settings = {
      ...(Object.fromEntries(given) as Record<string, string>),
      TAKEMARK_ASSETS: 's3',
      TAKEMARK_S3_PREFIX: `legacy-${randomUUID()}/`,
    };
    const cut = await RestartedService.start(settings);
    t.teardown(() => cut.stop());
    const { partnerId } = await cut.service.partner();
    const { assetBucket } = readConfig(settings);
    const keys = openBucketKeys(assetBucket!);
    t.teardown(() => keys.close());
    const legacy = legacyOf('embedded-v1-former-name.wav', FILE, partnerId);
    const { proofId } = legacy;
    const reservedAt = cut.seconds();
    await cut.restart(() =>
      withLevel(join(cut.directory, 'store'), async (level) => {
        const codec = new RecordCodec(await authenticatorOf(cut.directory, 'row'));
        for (const [key, row] of [
          [proofKey(proofId), { state: 'pending', proofId, partnerId, reservedAt }],
          [pendingKey(reservedAt, proofId), null],
        ] as const)
          await level.put(key, codec.encode(key, row));
        await keys.obtain(proofId);
      }),
    );
    t.equal(await keys.read(proofId), undefined, 'its key was collected');
    t.strictSame(await cut.operator.importLegacy(legacy), { proofId, outcome: 'imported' });
    t.ok(await keys.read(proofId));
  },
);
