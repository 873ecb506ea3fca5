/** Tests creator declarations on a whole service: their content, and that they change nothing else. */
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { decryptValue, encryptValue } from '../../src/core/codec/encrypt.js';
import { RecordCodec } from '../../src/core/codec/record.js';
import { openKeyDirectory } from '../../src/service/adapters/encryption/key-directory.js';
import type { VerificationResult } from '../../src/service/domain/verification.js';
import type { Caller } from '../../src/service/operations/caller.js';
import {
  type Declaration,
  type DeclarationEnvelope,
  DIMENSIONS,
  isAuthentic,
  MAX_DECLARATIONS,
  type StoredDeclaration,
  SURVEY,
  type SurveyAnswers,
  sealDeclaration,
} from '../../src/witness/domain/declaration.js';
import type { EvidenceOverlay } from '../../src/witness/domain/evidence.js';
import { asksForReview, countEvidence } from '../../src/witness/domain/evidence-report.js';
import { composeReport } from '../../src/witness/report/compose-report.js';
import { withLevel } from '../adapters/embedded-process.js';
import { authenticatorOf } from '../fixtures/authentication.js';
import { ContractCheck } from '../fixtures/contract-check.js';
import { withPlainReport } from '../fixtures/plain-report.js';
import { wav } from '../fixtures/wav.js';
import { notFound, RestartedService } from './restarted-service.js';

const house = await RestartedService.start();
t.teardown(() => house.stop());

const FAVOURABLE: SurveyAnswers = {
  declaredOrigin: 'from_scratch',
  aiShareBand: 'none',
  manualWork: 'entire',
  contributionBand: 'all_self_made',
  disputedAssessment: 'not_disputed',
};
const ADVERSE: SurveyAnswers = {
  declaredOrigin: 'generated_material',
  aiShareBand: 'over_three_quarters',
  manualWork: 'none',
  contributionBand: 'minority_self_made',
};
const GAPS = [
  { code: 'session_evidence_unavailable', contentClass: 'unverifiable_coverage_gap', status: 'unverifiable' },
  { code: 'rule_inference_unavailable', contentClass: 'unverifiable_coverage_gap', status: 'unverifiable' },
];

const NONE = {
  version: 1,
  facts: [{ code: 'creator_declaration', contentClass: 'creator_declaration', status: 'none_recorded' }],
  conflicts: [],
  unverifiable: GAPS,
  declarations: [],
};

function submission(submissionId: string, over: Partial<Declaration> = {}): Declaration {
  return {
    surveyVersion: '2026-01',
    submissionId,
    subject: 'creator_1',
    submittedAt: house.seconds() - 60,
    answers: FAVOURABLE,
    ...over,
  };
}

function envelope(declaration: Declaration): DeclarationEnvelope {
  return { ...declaration, recordedAt: house.seconds(), bindingStatus: 'authenticated_post_issuance_record' };
}

async function issued(seed: number) {
  const { partnerId, caller } = await house.service.partner();
  return { partnerId, caller, ...(await house.service.issue(partnerId, wav(2000, {}, seed))) };
}

/** Returns the members of a verification that describe the credential. */
function credentialOf({
  decision: _decision,
  evidenceReport: _report,
  verifiedAt: _at,
  ...credential
}: VerificationResult): object {
  return credential;
}

t.test('a report has a fact for each answered dimension', async (t) => {
  const none = composeReport({ declarations: [], altered: 0 });
  t.strictSame(
    none,
    {
      version: 1,
      facts: [{ code: 'creator_declaration', contentClass: 'creator_declaration', status: 'none_recorded' }],
      conflicts: [],
      unverifiable: GAPS,
      declarations: [],
    },
    'a missing survey is said to be missing',
  );
  t.strictSame(countEvidence(none), { declarations: 0, conflicts: 0, unverifiable: 2 });
  t.notOk(asksForReview(none));
  for (const dimension of DIMENSIONS) {
    for (const answer of SURVEY[dimension]) {
      const answers = { [dimension]: dimension === 'aiRoles' ? [answer] : answer };
      const report = composeReport({
        declarations: [envelope(submission('sub_1', { answers }))],
        altered: 0,
      });
      const status = answer === 'disputed' ? 'needs_review' : 'declared';
      t.strictSame(
        report.facts,
        [
          {
            code: 'creator_declaration',
            contentClass: 'creator_declaration',
            status,
            dimension,
            answer,
            submissionId: 'sub_1',
          },
        ],
        `${dimension} ${answer}`,
      );
      t.equal(asksForReview(report), answer === 'disputed');
      t.strictSame([report.conflicts, report.unverifiable], [[], GAPS], 'nothing was witnessed');
    }
  }
  const both = composeReport({
    declarations: [envelope(submission('sub_1')), envelope(submission('sub_2', { answers: ADVERSE }))],
    altered: 1,
  });
  t.strictSame(countEvidence(both), { declarations: 9, conflicts: 0, unverifiable: 3 });
  t.match(both.unverifiable.at(-1), { code: 'creator_declaration_altered', status: 'needs_review' });
  t.ok(asksForReview(both), 'a record that was altered is for a person');
});

t.test('the code of a declaration covers every member, and the proof', async (t) => {
  const key = new Uint8Array(32).fill(1);
  const declaration = submission('sub_1');
  const sealed = sealDeclaration(key, 'prf_1', declaration, 7);
  const keys = [new Uint8Array(32), key];
  t.ok(isAuthentic(keys, 'prf_1', sealed), 'under any secret that is known');
  t.ok(
    isAuthentic(keys, 'prf_1', {
      ...sealed,
      answers: Object.fromEntries(Object.entries(sealed.answers).toReversed()),
    }),
    'in any order of the members',
  );
  t.notOk(isAuthentic([keys[0]!], 'prf_1', sealed));
  t.notOk(isAuthentic(keys, 'prf_2', sealed), 'not on another proof');
  const { declaredOrigin: _left, ...fewer } = FAVOURABLE;
  for (const edit of [
    { surveyVersion: '2' },
    { submissionId: 'sub_2' },
    { subject: 'x' },
    { submittedAt: 1 },
    { recordedAt: 8 },
    { answers: ADVERSE },
    { answers: fewer },
    { mac: 'ab'.repeat(32) },
    { mac: '' },
    { mac: 'zz' },
  ]) {
    t.notOk(isAuthentic(keys, 'prf_1', { ...sealed, ...edit }), JSON.stringify(edit));
  }
});

t.test('a recorded declaration is reported and leaves the credential as it was', async (t) => {
  const { partnerId, caller, proofId, file } = await issued(1);
  const stranger = (await house.service.partner()).caller;
  const before = await house.service.verify(caller, file);
  for (const answer of [
    before,
    await house.partner.readProof(caller, { proofId }),
    await house.partner.readRecord(stranger, { proofId }),
  ])
    t.strictSame(answer.evidenceReport, NONE, 'a missing survey is reported');
  t.match(before.decision, {
    status: 'verified_binding',
    counts: { declarations: 0, conflicts: 0, unverifiable: 2 },
  });
  const summaryOf = async () => (await house.partner.listProofs(caller, {})).proofs[0]!.evidenceSummary;
  t.strictSame(await summaryOf(), {
    status: 'none_recorded',
    counts: before.decision.counts,
    codes: ['rule_inference_unavailable', 'session_evidence_unavailable'],
  });
  t.strictSame(await house.operator.listDeclarations(proofId), []);

  const first = submission('sub_1');
  const stored = envelope(first);
  t.strictSame(await house.operator.recordDeclaration(proofId, first), {
    declaration: stored,
    repeated: false,
  });
  house.clock.advance(10);
  t.strictSame(
    await house.operator.recordDeclaration(proofId, first),
    { declaration: stored, repeated: true },
    'the same envelope, its time of recording included',
  );
  await t.rejects(house.operator.recordDeclaration(proofId, { ...first, answers: ADVERSE }), {
    code: 'conflict',
    reason: 'submission_id_reused',
  });

  const other = await issued(7);
  await house.operator.recordDeclaration(other.proofId, submission('sub_1', { answers: ADVERSE }));
  t.match(
    (await house.service.verify(stranger, other.file)).decision,
    { status: 'verified_binding', counts: { declarations: 4, conflicts: 0, unverifiable: 2 } },
    'adverse answers alone need no review',
  );

  const adverse = submission('sub_2', { answers: ADVERSE, subject: 'creator_2' });
  await house.operator.recordDeclaration(proofId, adverse);
  const verified = await house.service.verify(stranger, file);
  t.strictSame(credentialOf(verified), credentialOf(before), '"it never changes credential validity"');
  const report = verified.evidenceReport!;
  t.ok(report.conflicts.length > 0, 'opposite declarations are conflicts, and neither is preferred');
  for (const conflict of report.conflicts)
    t.match(conflict, {
      code: 'contradictory_declarations',
      contentClass: 'explicit_conflict',
      status: 'needs_review',
      ruleVersion: Number,
    });
  t.strictSame(verified.decision, {
    ...before.decision,
    status: 'needs_review',
    reasons: [...before.decision.reasons, 'source_evidence_needs_review'],
    recommendedAction: 'review',
    counts: { declarations: 9, conflicts: report.conflicts.length, unverifiable: 2 },
  });
  t.strictSame(report.declarations, [stored, envelope(adverse)], 'no mac in it');
  const fact = (submissionId: string, answers: SurveyAnswers) =>
    Object.entries(answers).map(([dimension, answer]) => ({
      code: 'creator_declaration',
      contentClass: 'creator_declaration',
      status: 'declared',
      dimension,
      answer,
      submissionId,
    }));
  t.strictSame(
    report.facts,
    [...fact('sub_1', FAVOURABLE), ...fact('sub_2', ADVERSE)],
    '"favourable and adverse alike"',
  );
  t.strictSame(withPlainReport(await house.partner.readProof(caller, { proofId })).evidenceReport, report);
  t.strictSame((await house.partner.readRecord(stranger, { proofId })).evidenceReport, report);
  t.strictSame(await summaryOf(), {
    status: 'needs_review',
    counts: verified.decision.counts,
    codes: [
      'contradictory_declarations',
      'creator_declaration',
      'rule_inference_unavailable',
      'session_evidence_unavailable',
    ],
  });
  t.notOk('evidenceReport' in (await house.partner.listProofs(caller, {})).proofs[0]!, 'unless asked for');
  const include = 'evidenceReport';
  t.strictSame((await house.partner.listProofs(caller, { include })).proofs[0]!.evidenceReport, report);
  t.strictSame(
    (await house.operator.listDeclarations(proofId)).map(({ authentic }) => authentic),
    [true, true],
  );

  const altered = Buffer.from(file);
  altered[60]! ^= 1;
  t.notOk('evidenceReport' in (await house.service.verify(caller, altered)), 'with `valid` alone');

  await house.operator.recordDeclaration(
    proofId,
    submission('sub_3', { answers: { disputedAssessment: 'disputed' } }),
  );
  const disputed = await house.service.verify(caller, file);
  t.match(disputed, {
    verdict: 'valid',
    good: true,
    decision: {
      status: 'needs_review',
      reasons: ['credential_verified', 'source_evidence_needs_review'],
      recommendedAction: 'review',
      sourceDetailCoverage: 'none',
    },
  });
  t.strictSame(credentialOf(disputed), credentialOf(before));
  t.match(await summaryOf(), { status: 'needs_review' });

  const entries = (await house.operator.readAudit({ partnerId, fromSequence: 1, limit: 100 })).filter(
    ({ action }) => action === 'declaration_recorded',
  );
  t.match(
    entries.map(({ subjects, actor }) => ({ subjects, actor })),
    ['sub_1', 'sub_2', 'sub_3'].map((id) => ({ subjects: [proofId, id], actor: 'operator' })),
    'each once',
  );
  t.match(await house.operator.verifyAudit({ partnerId }), { ok: true });
});

t.test('a declaration that does not fit is refused with its reason', async (t) => {
  const { caller, proofId, partnerId } = await issued(2);
  for (const id of ['prf_never', 'prf_', 'key_1']) {
    await t.rejects(house.operator.recordDeclaration(id, submission('sub_1')), notFound);
    await t.rejects(house.operator.listDeclarations(id), notFound);
  }
  await t.rejects(
    house.operator.recordDeclaration(proofId, submission('sub_1', { submittedAt: house.seconds() + 301 })),
    { code: 'invalid_request', reason: 'invalid_member' },
    'from the future',
  );
  t.strictSame(
    withPlainReport(await house.partner.readProof(caller, { proofId })).evidenceReport,
    NONE,
    'nothing was written',
  );
  await house.operator.recordDeclaration(
    proofId,
    submission('sub_1', { submittedAt: house.seconds() + 300 }),
  );

  const tries = Array.from({ length: 60 }, (_, i) =>
    house.operator
      .recordDeclaration(proofId, submission(`sub_${i % 50}`, { submittedAt: house.seconds() + 300 }))
      .then(
        () => 'recorded',
        (error: { reason: string }) => error.reason,
      ),
  );
  const outcomes = await Promise.all(tries);
  t.strictSame([...new Set(outcomes)].toSorted(), ['declarations_full', 'recorded']);
  t.equal((await house.operator.listDeclarations(proofId)).length, MAX_DECLARATIONS);
  const audited = (await house.operator.readAudit({ partnerId, fromSequence: 1, limit: 200 })).filter(
    ({ action }) => action === 'declaration_recorded',
  );
  t.equal(audited.length, MAX_DECLARATIONS, 'one entry for each that was written');
});

t.test('every response on declarations is one of the contract', async (t) => {
  const { apiKey, partnerId, caller } = await house.service.partner();
  const { proofId, file } = await house.service.issue(partnerId, wav(2000, {}, 3));
  const contract = new ContractCheck();
  const call = async (
    base: string,
    method: string,
    target: string,
    headers: Record<string, string>,
    body?: object,
  ) => {
    const sent = body === undefined ? {} : { body: Buffer.from(JSON.stringify(body)) };
    const json = body === undefined ? {} : { 'content-type': 'application/json' };
    const answer = await fetch(`${base}${target}`, { method, headers: { ...headers, ...json }, ...sent });
    const bytes = Buffer.from(await answer.arrayBuffer());
    t.strictSame(
      contract.problems(
        { method, target, headers: { ...headers, ...json }, ...sent },
        { status: answer.status, headers: new Map(answer.headers), body: bytes },
      ),
      [],
      `${method} ${target}`,
    );
    return { status: answer.status, value: JSON.parse(bytes.toString()) as Record<string, unknown> };
  };
  const operator = (method: string, body?: object) =>
    call(
      house.service.operatorUrl,
      method,
      `/operator/v1/proofs/${proofId}/declarations`,
      { authorization: `Bearer ${house.service.service.operatorToken}` },
      body,
    );
  const answers = { ...FAVOURABLE, disputedAssessment: 'disputed' } as const;
  t.equal((await operator('POST', submission('sub_1', { answers }))).status, 201);
  t.equal((await operator('POST', submission('sub_1', { answers }))).status, 200);
  t.match(await operator('POST', submission('sub_1')), {
    status: 409,
    value: { code: 'conflict', reason: 'submission_id_reused' },
  });
  t.match(await operator('GET'), {
    status: 200,
    value: { declarations: [{ submissionId: 'sub_1', authentic: true }] },
  });
  const partner = (method: string, target: string, body?: object) =>
    call(house.service.partnerUrl, method, target, { 'x-api-key': apiKey }, body);
  const evidenceReport = {
    version: 1,
    declarations: [{ bindingStatus: 'authenticated_post_issuance_record', answers }],
  };
  for (const path of ['proofs', 'records'])
    t.match(await partner('GET', `/v1/${path}/${proofId}`), { status: 200, value: { evidenceReport } });
  const { uploadId } = await house.service.upload(caller, file);
  t.match(await partner('POST', '/v1/verify', { uploadId }), {
    status: 200,
    value: {
      verdict: 'valid',
      good: true,
      evidenceReport,
      decision: { status: 'needs_review', counts: { declarations: 5, conflicts: 0, unverifiable: 2 } },
    },
  });
  t.match(
    await call(
      house.service.partnerUrl,
      'POST',
      `/operator/v1/proofs/${proofId}/declarations`,
      { 'x-api-key': apiKey },
      submission('sub_2'),
    ),
    { status: 404 },
    'nothing of it is on the partner listener',
  );
});

t.test('a record that was edited in the store is noticed, and fails no verification', async (t) => {
  const { caller, proofId, file } = await issued(4);
  const other = await issued(5);
  for (const id of ['sub_1', 'sub_2']) await house.operator.recordDeclaration(proofId, submission(id));
  await house.operator.recordDeclaration(other.proofId, submission('sub_moved'));
  const before = await house.service.verify(caller, file);
  await edit(proofId, ([first, ...rest]) => [
    { ...first!, answers: { ...first!.answers, aiShareBand: 'over_three_quarters' } },
    ...rest,
  ]);
  const verified = await house.service.verify(caller, file);
  t.strictSame(credentialOf(verified), credentialOf(before));
  t.match(verified.decision, {
    status: 'needs_review',
    recommendedAction: 'review',
    counts: { declarations: 5, conflicts: 0, unverifiable: 3 },
  });
  t.strictSame(
    verified.evidenceReport?.declarations.map(({ submissionId }) => submissionId),
    ['sub_2'],
    'what was edited is not reported as declared',
  );
  t.match(await house.operator.listDeclarations(proofId), [
    { submissionId: 'sub_1', authentic: false },
    { submissionId: 'sub_2', authentic: true },
  ]);

  // Another proof's record, with its mac.
  const moved = await overlayOf(other.proofId, await rowOf(other.proofId));
  await edit(proofId, () => moved.declarations);
  const left = withPlainReport(await house.partner.readProof(caller, { proofId })).evidenceReport;
  t.strictSame([left?.facts, left?.declarations], [[], []], 'an altered record is not "none recorded"');
  t.match(left?.unverifiable, [...GAPS, { code: 'creator_declaration_altered' }]);
  t.match(await house.service.verify(caller, file), {
    verdict: 'valid',
    decision: { status: 'needs_review', counts: { declarations: 0, unverifiable: 3 } },
  });

  await edit(proofId, () => []);
  const altered = {
    unverifiable: [...GAPS, { code: 'creator_declaration_altered', status: 'needs_review' }],
  };
  t.match(
    await house.partner.readProof(caller, { proofId }),
    { evidenceReport: altered },
    'a removed declaration is not "none recorded"',
  );
  await house.operator.recordDeclaration(proofId, submission('sub_3'));
  const { evidenceReport } = withPlainReport(await house.partner.readProof(caller, { proofId }));
  t.match(evidenceReport, altered, 'nor does a later one heal it');
  t.strictSame(
    evidenceReport?.declarations.map(({ submissionId }) => submissionId),
    ['sub_3'],
  );
});

t.test('erasing a proof takes its declarations along', async (t) => {
  const { caller, partnerId, proofId, file } = await issued(6);
  await house.operator.recordDeclaration(proofId, submission('sub_erased', { subject: 'subject_erased' }));
  await house.partner.eraseProof(caller, { proofId });
  const gone = async (t: Test, caller: Caller) => {
    t.match(await house.service.verify(caller, file), {
      verdict: 'unregistered',
      decision: { status: 'invalid_proof', counts: { declarations: 0, conflicts: 0, unverifiable: 0 } },
      evidenceReport: undefined,
    });
    for (const call of [
      house.partner.readRecord(caller, { proofId }),
      house.partner.readProof(caller, { proofId }),
      house.operator.listDeclarations(proofId),
      house.operator.recordDeclaration(proofId, submission('sub_late')),
    ])
      await t.rejects(call as Promise<unknown>, notFound);
  };
  await gone(t, caller);
  await house.restart();
  await gone(t, caller);
  // A consumer confirms the erasure, possibly after the answer.
  while ((await house.operator.erasureStatus(proofId)).confirmedAt === undefined)
    await new Promise((resolve) => setTimeout(resolve, 10));
  t.strictSame(
    Object.keys(await rowOf(proofId)).toSorted(),
    ['confirmedAt', 'erasedAt', 'partnerId', 'proofId', 'state'],
    'a tombstone with no content',
  );
  t.notOk(house.service.log.some((line) => line.includes('subject_erased')));
  t.match(await house.operator.verifyAudit({ partnerId }), { ok: true });
});

interface Row {
  /** The encrypted overlay of the evidence. */
  readonly overlay?: Uint8Array;
}

async function keyOf(proofId: string): Promise<Uint8Array> {
  const keys = await openKeyDirectory({ directory: join(house.directory, 'content-keys') });
  return (await keys.read(proofId))!;
}

async function overlayOf(proofId: string, row: Row): Promise<EvidenceOverlay> {
  return decryptValue(await keyOf(proofId), 'overlay', row.overlay!) as EvidenceOverlay;
}

async function records(): Promise<RecordCodec> {
  return new RecordCodec(await authenticatorOf(house.directory, 'row'));
}

/** Returns the proof's row on the disk. */
async function rowOf(proofId: string): Promise<Row> {
  let row: unknown;
  await withRows(async (level) => {
    row = (await records()).decode(`proof/${proofId}`, (await level.get(`proof/${proofId}`))!);
  });
  return row as Row;
}

/** Rewrites the row while the service is stopped, like an attacker with the secrets. */
async function edit(
  proofId: string,
  change: (declarations: readonly StoredDeclaration[]) => readonly StoredDeclaration[],
): Promise<void> {
  await withRows(async (level) => {
    const key = `proof/${proofId}`;
    const codec = await records();
    const row = codec.decode(key, (await level.get(key))!) as Row;
    const overlay = await overlayOf(proofId, row);
    const changed = encryptValue(await keyOf(proofId), 'overlay', {
      ...overlay,
      declarations: change(overlay.declarations),
    });
    await level.put(key, codec.encode(key, { ...row, overlay: changed }));
  });
}

async function withRows(work: Parameters<typeof withLevel>[1]): Promise<void> {
  await house.restart(() => withLevel(join(house.directory, 'store'), work));
}
