import t from 'tap';
import { Database } from '../../src/service/adapters/embedded/database.js';
import type { Caller } from '../../src/service/operations/caller.js';
import { wav } from '../fixtures/wav.js';
import { bindings, notFound, RestartedService } from './restarted-service.js';

const house = await RestartedService.start();
t.teardown(() => house.stop());

/** Rows that jobs write beside the calls: the readiness check, times of use and counts of calls. */
const OF_JOBS = /^(?:meta|key-use|usage-source|usage-day|outbox)\//;

/** Returns the keys of the rows that the store writes while `act` runs. */
async function rowsWritten(act: () => Promise<unknown>): Promise<readonly string[]> {
  const { write } = Database.prototype;
  const keys: string[] = [];
  Database.prototype.write = function (rows) {
    const written = [...rows];
    keys.push(...written.map(([key]) => key));
    return write.call(this, written);
  };
  try {
    await act();
  } finally {
    Database.prototype.write = write;
  }
  return keys.filter((key) => !OF_JOBS.test(key));
}

t.test('a refused call writes no row', async (t) => {
  const { partner, operator } = house;
  const { partnerId, caller, apiKey, keyId } = await house.service.partner();
  const { proofId } = await house.service.issue(partnerId, wav(2000, {}, 1));
  const other = await house.service.issue(partnerId, wav(2000, {}, 2));
  const poor: Caller = { ...caller, plan: { ...caller.plan, monthlyQuota: 0 } };
  const uploadId = await house.upload(caller, 'verify', wav(2000, {}, 3));
  const identified = await house.upload(caller, 'identify', wav(2000, {}, 3));
  const slot = await partner.createUpload(caller, { purpose: 'verify' });
  const fields = new Map(Object.entries(slot.fields));
  const used = await partner.createUpload(caller, { purpose: 'verify' });
  const receiver = await partner.receiveUpload(used.uploadId, new Map(Object.entries(used.fields)));
  await receiver.write(wav(2000, {}, 3));
  await receiver.finish();
  const idempotencyKey = 'a-key-of-a-review';
  const review = await partner.createReview(caller, { proofId, bindings: bindings('s'), idempotencyKey });
  const { reviewId } = review;
  const { evidenceRequests } = await partner.openEvidence(caller, { reviewId, kind: 'source_licence' });
  const { requestId } = evidenceRequests[0]!;
  await partner.openEvidence(caller, { reviewId, kind: 'source_evidence' });
  await partner.closeEvidence(caller, { reviewId, requestId, status: 'accepted' });
  const lone = await house.service.partner();
  await partner.rotateKey(caller, apiKey, 'rotation-of-the-key');

  const create = (submissionId: string, key?: string, of = proofId) =>
    partner.createReview(caller, {
      proofId: of,
      bindings: bindings(submissionId),
      ...(key !== undefined && { idempotencyKey: key }),
    });
  const conflict = (reason: string) => ({ code: 'conflict', reason });
  const limited = (reason: string) => ({ code: 'rate_limited', reason });
  const refused: Record<string, readonly [() => Promise<unknown>, object]> = {
    'a review of bindings that have one': [() => create('s'), conflict('review_exists')],
    'the same under a new Idempotency-Key': [
      () => create('s', 'another-key-of-a-review'),
      conflict('review_exists'),
    ],
    'a review under a key of other data': [
      () => create('t', idempotencyKey),
      conflict('idempotency_key_reused'),
    ],
    'a review under a key of another proof': [
      () => create('s', idempotencyKey, other.proofId),
      conflict('idempotency_key_reused'),
    ],
    'a review of no proof': [() => create('s', 'a-key-of-no-review', 'prf_never'), notFound],
    'a second request of a kind': [
      () => partner.openEvidence(caller, { reviewId, kind: 'source_evidence' }),
      conflict('evidence_kind_already_open'),
    ],
    'a change of a final request': [
      () => partner.closeEvidence(caller, { reviewId, requestId, status: 'declined' }),
      conflict('evidence_request_final'),
    ],
    'an outcome before its evidence': [
      () => partner.resolveReview(caller, { reviewId, outcome: 'accepted' }),
      conflict('evidence_requests_open'),
    ],
    'a slot beyond the quota': [
      () => partner.createUpload(poor, { purpose: 'verify' }),
      limited('quota_exceeded'),
    ],
    'a verify beyond the quota': [() => partner.verifyUpload(poor, { uploadId }), limited('quota_exceeded')],
    'an identify beyond the quota': [
      () => partner.identify(poor, { uploadId: identified }),
      limited('quota_exceeded'),
    ],
    'a verify of an open slot': [
      () => partner.verifyUpload(caller, { uploadId: slot.uploadId }),
      conflict('upload_incomplete'),
    ],
    'a post with altered fields': [
      () => partner.receiveUpload(slot.uploadId, new Map([...fields, ['signature', 'x']])),
      { code: 'forbidden' },
    ],
    'a post to a used slot': [
      () => partner.receiveUpload(used.uploadId, new Map(Object.entries(used.fields))),
      conflict('upload_already_used'),
    ],
    'the revocation of the last active key': [
      () => partner.revokeOwnKey(lone.caller, { keyId: lone.keyId }),
      conflict('last_active_key'),
    ],
    'a revocation by a rotated key': [
      () => partner.revokeOwnKey(caller, { keyId: lone.keyId }),
      { code: 'forbidden', reason: 'key_expiring' },
    ],
    'a second rotation': [
      () => partner.rotateKey(caller, apiKey, 'rotation-of-another'),
      conflict('already_rotated'),
    ],
    "the erasure of another partner's proof": [() => partner.eraseProof(lone.caller, { proofId }), notFound],
    'a revocation of no key': [() => operator.revokeKey({ partnerId: lone.partnerId, keyId }), notFound],
  };
  for (const [what, [call, error]] of Object.entries(refused))
    t.strictSame(await rowsWritten(async () => t.rejects(call(), error as Error, what)), [], what);
});
