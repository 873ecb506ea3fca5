import { createHash } from 'node:crypto';
import { decide, summariseAudio } from '../domain/decision.js';
import { DomainError } from '../domain/errors.js';
import type { SidecarReading } from '../domain/credential-reading.js';
import type { VerificationResult } from '../domain/verification.js';
import { judge, namedProof } from '../domain/verdict.js';
import type { Clock } from '../ports/clock.js';
import type { Observer } from '../ports/observer.js';
import type { ProofStore, UploadStore, UsageStore } from '../ports/stores.js';
import { secondsToNextMonth } from '../domain/usage-window.js';
import type { Caller } from './operations.js';
import { requireScope } from './require-scope.js';

export interface VerifyUploadDeps {
  readonly stores: UploadStore & ProofStore & UsageStore;
  readonly clock: Clock;
  readonly observer: Observer;
  readonly readSidecar: (sidecar: Uint8Array) => SidecarReading;
}

/** Facts, sidecar, registry, verdict; billed once for an upload and a sidecar, however often it is asked. */
export async function verifyUpload(deps: VerifyUploadDeps, caller: Caller, request: { readonly uploadId: string; readonly sidecar?: Uint8Array }): Promise<VerificationResult> {
  requireScope(caller, 'verify');
  const now = Math.floor(deps.clock.now() / 1000);
  const upload = await deps.stores.getUpload(request.uploadId, now);
  // A foreign slot is answered like one that never was.
  if (upload === undefined || upload.slot.partnerId !== caller.partnerId) throw new DomainError('not_found', 'There is no such upload.');
  const { facts } = upload;
  if (facts === undefined) throw new DomainError('conflict', 'The audio has not been uploaded.', { reason: 'upload_incomplete' });
  if (facts.purpose !== 'verify') throw new DomainError('conflict', 'The slot was made for another purpose.', { reason: 'purpose_mismatch' });

  const sidecar = request.sidecar === undefined ? undefined : deps.readSidecar(request.sidecar);
  const proofId = namedProof(facts.embedded, sidecar);
  const proof = proofId === undefined ? undefined : await deps.stores.getProof(proofId);
  const judgement = judge({
    measurement: facts.measurement,
    ...(facts.embedded === undefined ? {} : { embedded: facts.embedded }),
    ...(sidecar === undefined ? {} : { sidecar }),
    ...(proof === undefined ? {} : { proof }),
  });

  const { outcome } = await deps.stores.charge({
    partnerId: caller.partnerId,
    operation: 'verify',
    dedupeKey: billedOnce(request),
    at: now,
    monthlyQuota: caller.plan.monthlyQuota,
    dedupeUntil: facts.expiresAt,
  });
  if (outcome === 'quota_exceeded') {
    throw new DomainError('rate_limited', 'The monthly quota is used up.', { reason: 'quota_exceeded', retryAfterSeconds: secondsToNextMonth(now) });
  }
  deps.observer.verdict(judgement.verdict, judgement.carrier);

  return {
    verdict: judgement.verdict,
    good: judgement.verdict === 'valid',
    decision: decide(judgement),
    ...(judgement.issuedAt === undefined ? {} : { issuedAt: judgement.issuedAt }),
    ...(judgement.proofId === undefined ? {} : { proofId: judgement.proofId }),
    verifiedAt: now,
    audio: summariseAudio(facts.measurement),
    ...(judgement.report === undefined ? {} : { embeddedCredential: judgement.report }),
  };
}

/** "The same upload with the same sidecar is billed once." */
function billedOnce({ uploadId, sidecar }: { readonly uploadId: string; readonly sidecar?: Uint8Array }): string {
  return sidecar === undefined ? uploadId : `${uploadId} ${createHash('sha256').update(sidecar).digest('base64url')}`;
}
