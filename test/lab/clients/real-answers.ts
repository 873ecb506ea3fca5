/** The answers of a service with the embedded store to a partner, one for each operation. */
import { createHash } from 'node:crypto';
import { collect, TestService } from '../../fixtures/service.js';
import { issueWithSession } from '../../fixtures/simulated-session.js';
import { wav } from '../../fixtures/wav.js';
import { call, closeWire, FORM_TYPE, type Slot, slotForm, upload } from '../../fixtures/wire.js';
import { form } from '../../http/raw-client.js';

export interface Answer {
  readonly status: number;
  readonly body: unknown;
}

/**
 * The answers by operation, the errors by operation and status, and the other form of an answer by operation and form:
 * `verify`, `verify 429`, `identify digests`.
 */
export type Answers = ReadonlyMap<string, Answer>;

export async function realAnswers(): Promise<Answers> {
  const service = await TestService.start({ TAKEMARK_ENVIRONMENT: 'beta' });
  try {
    return await askAll(service);
  } finally {
    closeWire();
    await service.stop();
  }
}

async function askAll(service: TestService): Promise<Answers> {
  const { operator } = service.service.operations;
  const { partnerId, apiKey } = await service.partner();
  const proofId = await issueWithEvidence(service, partnerId);
  const file = await collect(await (await operator.readAsset(proofId, 'audio')).read());
  const uploadId = await upload(service.partnerUrl, apiKey, file);
  const toIdentify = await upload(service.partnerUrl, apiKey, file, 'identify');
  const limited = await operator.createKey({ partnerId, name: 'test:rate_limited' });
  const spare = await operator.createKey({ partnerId, name: 'spare' });

  const answers = new Map<string, Answer>();
  const ask = async (
    name: string,
    [method, target]: readonly [string, string],
    body?: object,
    { key = apiKey, headers = {} }: { key?: string; headers?: Readonly<Record<string, string>> } = {},
  ): Promise<Readonly<Record<string, unknown>>> => {
    const { status, json } = await call(service.partnerUrl, method, target, {
      key,
      headers,
      ...(body !== undefined && { body }),
    });
    const expected = Number(/ (\d+)$/.exec(name)?.[1] ?? 200);
    if (json === undefined || (expected === 200 ? status >= 300 : status !== expected))
      throw new Error(`${name} was answered with ${status}: ${JSON.stringify(json)}`);
    answers.set(name, { status, body: json });
    return json;
  };

  await ask('verify', ['POST', '/v1/verify'], { uploadId });
  await ask('verify 400', ['POST', '/v1/verify'], { uploadId, note: 1 });
  await ask('verify 429', ['POST', '/v1/verify'], { uploadId }, { key: limited.apiKey });
  // The post belongs to the slot of `createUpload`, because a client may compare the two ids.
  const slot = (await ask('createUpload', ['POST', '/v1/uploads'], { purpose: 'verify' })) as unknown as Slot;
  await ask('postUpload', ['POST', `/uploads/${slot.uploadId}`], slotForm(slot, file), {
    headers: FORM_TYPE,
  });
  const oneCall = form([{ name: 'file', filename: 'take.wav', type: 'audio/wav', body: file }]);
  await ask('verifyFile', ['POST', '/v1/verifications'], oneCall, { headers: FORM_TYPE });
  await ask('identify', ['POST', '/v1/recordings/identify'], { uploadId: toIdentify });
  const sha256 = createHash('sha256').update(file).digest('hex');
  await ask('identify digests', ['POST', '/v1/recordings/identify'], { digests: [{ sha256 }] });
  await ask('readRecord', ['GET', `/v1/records/${proofId}`]);
  await ask('listProofs', ['GET', '/v1/proofs?include=evidenceReport']);
  await ask('readProof', ['GET', `/v1/proofs/${proofId}`]);
  await ask('listKeys', ['GET', '/v1/partner/keys']);
  await ask('revokeOwnKey', ['DELETE', `/v1/partner/keys/${spare.keyId}`]);
  await ask('readUsage', ['GET', '/v1/partner/usage']);
  const { reviewId } = await ask('createReview', ['POST', '/v1/partner/reviews'], {
    proofId,
    bindings: { creatorId: 'creator', accountId: 'account', submissionId: 'submission', trackId: 'track' },
  });
  const review = `/v1/partner/reviews/${reviewId}`;
  const opened = await ask('openEvidence', ['POST', `${review}/evidence-requests`], {
    kind: 'source_licence',
  });
  const [{ requestId }] = opened['evidenceRequests'] as [{ readonly requestId: string }];
  await ask('listReviews', ['GET', '/v1/partner/reviews']);
  await ask('readReview', ['GET', review]);
  await ask('closeEvidence', ['PATCH', `${review}/evidence-requests/${requestId}`], { status: 'accepted' });
  await ask('resolveReview', ['POST', `${review}/resolve`], { outcome: 'accepted' });
  await ask('sandboxFixtures', ['GET', '/v1/sandbox/fixtures']);
  await ask('telemetry', ['POST', '/v1/telemetry'], {
    events: [{ name: 'app_started', count: 1, at: Math.floor(service.clock.now() / 1000) }],
  });
  await ask('health', ['GET', '/v1/health']);
  await ask('eraseProof', ['DELETE', `/v1/proofs/${proofId}`]);
  await ask('rotateKey', ['POST', '/v1/partner/keys/rotate'], undefined, {
    headers: { 'idempotency-key': 'rotation-of-one-key' },
  });
  return answers;
}

/**
 * Issues a proof whose report has everything that a report can have: imports with detections, declarations,
 * source detail.
 */
async function issueWithEvidence(service: TestService, partnerId: string): Promise<string> {
  const { operator } = service.service.operations;
  const proofId = await issueWithSession(service, {
    partnerId,
    audio: wav(96_000),
    adverse: ['import_only'],
  });
  await operator.approveSourceDetail({ partnerId, consentVersion: '2026-01' });
  await operator.grantConsent({ proofId, consentVersion: '2026-01', grantedAt: 1_767_229_200 });
  await operator.recordDeclaration(proofId, {
    surveyVersion: '2026-01',
    submissionId: 'sub_1',
    subject: 'creator_1',
    submittedAt: 1_767_229_200,
    answers: { declaredOrigin: 'from_scratch', aiRoles: ['none'] },
  });
  return proofId;
}
