import { createHash } from 'node:crypto';
import { defined } from '../../../core/domain/defined.js';
import type { SidecarParseResult } from '../../../core/domain/parsed-credential.js';
import { type Judgement, judge, namedProof } from '../../../core/domain/verdict.js';
import type { SentReport } from '../../../witness/report/compose-stored.js';
import { decide, summariseAudio } from '../../domain/decision.js';
import { legacyValues } from '../../domain/legacy-proof.js';
import type { IssuedProof } from '../../domain/proof.js';
import { type UploadFacts, unitsOf } from '../../domain/upload.js';
import type { VerificationResult } from '../../domain/verification.js';
import type { CredentialReader } from '../../ports/credential-reader.js';
import type { Observer } from '../../ports/observer.js';
import type { PartnerStore, ProofStore, UploadStore, UsageStore } from '../../ports/stores.js';
import type { Clock } from '../../ports/system.js';
import type { Caller } from '../caller.js';
import { type ReadReportDeps, readReport } from '../proofs/evidence.js';
import type { SignerRevocations } from '../system/signer-revocations.js';
import { charge } from '../usage/quota.js';
import { findUpload } from './find-upload.js';

export interface JudgeFileDeps extends ReadReportDeps {
  readonly stores: PartnerStore & ProofStore & UsageStore;
  readonly clock: Clock;
  readonly observer: Observer;
  readonly revocations: Pick<SignerRevocations, 'find'>;
}

export interface VerifyUploadDeps extends JudgeFileDeps {
  readonly stores: JudgeFileDeps['stores'] & UploadStore;
  readonly reader: Pick<CredentialReader, 'readSidecar'>;
}

/**
 * Verifies an upload: reads its facts and its sidecar, looks up the proof and judges. Repeated calls with the
 * same upload and sidecar are billed once. A file of unknown container without a sidecar is not billed.
 */
export async function verifyUpload(
  deps: VerifyUploadDeps,
  caller: Caller,
  request: { readonly uploadId: string; readonly sidecar?: Uint8Array },
): Promise<VerificationResult> {
  const now = Math.floor(deps.clock.now() / 1000);
  const facts = await findUpload(deps.stores, caller, request.uploadId, 'verify', now);

  const sidecar =
    request.sidecar === undefined
      ? undefined
      : await deps.reader.readSidecar(caller.partnerId, request.sidecar);
  return judgeFile(deps, caller, { ...facts, sidecar, now }, (isBillable) =>
    isBillable
      ? charge(deps.stores, caller, {
          operation: 'verify',
          dedupeKey: billingKey(request),
          at: now,
          units: unitsOf(facts.measurement.bytes),
          dedupeUntil: facts.expiresAt,
        })
      : undefined,
  );
}

/** A measured file with its credential and its sidecar. `now` is the time of the call in unix seconds. */
export interface MeasuredFile extends Pick<UploadFacts, 'measurement' | 'embedded'> {
  readonly sidecar: SidecarParseResult | undefined;
  readonly now: number;
}

/**
 * Judges a file: looks up its proof, decides and charges.
 * @param settle charges the call once the verdict is known. Its parameter is false for a file in which the service
 * can judge nothing (rule 6.15)
 */
export async function judgeFile(
  deps: JudgeFileDeps,
  caller: Caller,
  file: MeasuredFile,
  settle: (isBillable: boolean) => Promise<unknown> | undefined,
): Promise<VerificationResult> {
  const { measurement, sidecar, now } = file;
  const { judgement, registered, composed } = await assess(deps, caller, file);

  await settle(sidecar !== undefined || measurement.container !== 'unknown');
  deps.observer.verdict(judgement.verdict, judgement.carrier);

  return defined({
    verdict: judgement.verdict,
    good: judgement.verdict === 'valid',
    decision: decide(judgement, composed?.outline),
    issuedAt: judgement.issuedAt,
    proofId: judgement.proofId,
    verifiedAt: now,
    audio: summariseAudio(measurement),
    evidenceReport: composed?.report,
    ...legacyValues(registered?.legacy),
    embeddedCredential: judgement.report,
  });
}

interface Assessment {
  readonly judgement: Judgement;
  /** The proof of a `valid` file. */
  readonly registered?: IssuedProof;
  readonly composed?: SentReport;
}

async function assess(deps: JudgeFileDeps, caller: Caller, file: MeasuredFile): Promise<Assessment> {
  const { measurement, embedded, sidecar } = file;
  const proofId = namedProof(embedded, sidecar);
  const proof = proofId === undefined ? undefined : await deps.stores.getProof(proofId);
  const revocation = proof?.state === 'issued' ? await deps.revocations.find(proof.kid) : undefined;
  const judgement = judge(defined({ measurement, embedded, sidecar, proof, revocation }));

  // Only a `valid` result has a report (rule 8.16).
  const registered = judgement.verdict === 'valid' && proof?.state === 'issued' ? proof : undefined;
  const composed = registered && (await readReport(deps, caller, registered));
  // The proof was erased meanwhile. The second judgement reads no report, so it cannot repeat.
  if (composed === 'erased') return assess(deps, caller, file);
  return defined({ judgement, registered, composed });
}

/** Returns the billing key. The same upload with the same sidecar is billed once. */
function billingKey({
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
