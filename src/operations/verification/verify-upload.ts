import { createHash } from 'node:crypto';
import { decide, summariseAudio } from '../../domain/decision.js';
import { judge, namedProof } from '../../domain/verdict.js';
import type { VerificationResult } from '../../domain/verification.js';
import type { Clock } from '../../ports/clock.js';
import type { CredentialReader } from '../../ports/credential-reader.js';
import type { Observer } from '../../ports/observer.js';
import type { Secrets } from '../../ports/secrets.js';
import type { ProofStore, UploadStore, UsageStore } from '../../ports/stores.js';
import type { Caller } from '../operations.js';
import { readEvidence } from '../proofs/read-evidence.js';
import { requireScope } from '../require-scope.js';
import type { SignerRevocations } from '../system/signer-revocations.js';
import { findUpload } from '../uploads/find-upload.js';
import { charge } from '../usage/charge.js';

export interface VerifyUploadDeps {
  readonly stores: UploadStore & ProofStore & UsageStore;
  readonly secrets: Secrets;
  readonly clock: Clock;
  readonly observer: Observer;
  readonly revocations: Pick<SignerRevocations, 'find'>;
  readonly reader: Pick<CredentialReader, 'readSidecar'>;
}

/** Facts, sidecar, registry, verdict; billed once for an upload and a sidecar, however often it is asked. */
export async function verifyUpload(
  deps: VerifyUploadDeps,
  caller: Caller,
  request: { readonly uploadId: string; readonly sidecar?: Uint8Array },
): Promise<VerificationResult> {
  requireScope(caller, 'verify');
  const now = Math.floor(deps.clock.now() / 1000);
  const facts = await findUpload(deps.stores, caller, request.uploadId, 'verify', now);

  const sidecar = request.sidecar === undefined ? undefined : await deps.reader.readSidecar(request.sidecar);
  const proofId = namedProof(facts.embedded, sidecar);
  const proof = proofId === undefined ? undefined : await deps.stores.getProof(proofId);
  const revocation = proof?.state === 'issued' ? await deps.revocations.find(proof.kid) : undefined;
  const judgement = judge({
    measurement: facts.measurement,
    ...(facts.embedded === undefined ? {} : { embedded: facts.embedded }),
    ...(sidecar === undefined ? {} : { sidecar }),
    ...(proof === undefined ? {} : { proof }),
    ...(revocation === undefined ? {} : { revocation }),
  });

  // "`issuedAt` and `evidenceReport` come with `valid` alone." The report is made of the row that was read
  // above.
  const evidenceReport =
    judgement.verdict === 'valid' && proof?.state === 'issued'
      ? readEvidence(deps.secrets, proof)
      : undefined;

  await charge(deps.stores, caller, {
    operation: 'verify',
    dedupeKey: billedOnce(request),
    at: now,
    dedupeUntil: facts.expiresAt,
  });
  deps.observer.verdict(judgement.verdict, judgement.carrier);

  return {
    verdict: judgement.verdict,
    good: judgement.verdict === 'valid',
    decision: decide(judgement, evidenceReport),
    ...(judgement.issuedAt === undefined ? {} : { issuedAt: judgement.issuedAt }),
    ...(judgement.proofId === undefined ? {} : { proofId: judgement.proofId }),
    verifiedAt: now,
    audio: summariseAudio(facts.measurement),
    ...(evidenceReport === undefined ? {} : { evidenceReport }),
    ...(judgement.report === undefined ? {} : { embeddedCredential: judgement.report }),
  };
}

/** "The same upload with the same sidecar is billed once." */
function billedOnce({
  uploadId,
  sidecar,
}: {
  readonly uploadId: string;
  readonly sidecar?: Uint8Array;
}): string {
  return sidecar === undefined
    ? uploadId
    : `${uploadId} ${createHash('sha256').update(sidecar).digest('base64url')}`;
}
