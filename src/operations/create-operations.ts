import { SHIPPED_PLANS } from '../domain/partner.js';
import type { AssetStore } from '../ports/assets.js';
import type { AudioEngine } from '../ports/audio-engine.js';
import type { EventBus } from '../ports/bus.js';
import type { Clock } from '../ports/clock.js';
import type { CredentialReader } from '../ports/credential-reader.js';
import type { Ids } from '../ports/ids.js';
import type { AuditHeads, ErasureJournal } from '../ports/journals.js';
import type { Observer } from '../ports/observer.js';
import type { Secrets } from '../ports/secrets.js';
import type { Signer, TrustList } from '../ports/signing.js';
import type { Stores } from '../ports/stores.js';
import { createCursors } from './cursors.js';
import { issueProof } from './issuing/issue-proof.js';
import { authenticate } from './keys/authenticate.js';
import { checkSignature, SeenNonces } from './keys/check-signature.js';
import { createKey } from './keys/create-key.js';
import { createKeyUses, type KeyUses } from './keys/key-uses.js';
import { listKeys } from './keys/list-keys.js';
import { listPartnerKeys } from './keys/list-partner-keys.js';
import { revokeKey } from './keys/revoke-key.js';
import { revokeOwnKey } from './keys/revoke-own-key.js';
import { rotateKey } from './keys/rotate-key.js';
import { createRotationClaims } from './keys/rotation-locks.js';
import type { Operations } from './operations.js';
import { createPartner } from './partners/create-partner.js';
import { readAudit } from './partners/read-audit.js';
import { verifyAudit } from './partners/verify-audit.js';
import { eraseProof } from './proofs/erase-proof.js';
import { listDeclarations } from './proofs/list-declarations.js';
import { listProofs } from './proofs/list-proofs.js';
import { readAsset } from './proofs/read-asset.js';
import { readDeliverable } from './proofs/read-deliverable.js';
import { readErasureStatus } from './proofs/read-erasure-status.js';
import { readProof } from './proofs/read-proof.js';
import { readRecord } from './proofs/read-record.js';
import { recordDeclaration } from './proofs/record-declaration.js';
import { closeEvidence } from './reviews/close-evidence.js';
import { createReview } from './reviews/create-review.js';
import { openEvidence } from './reviews/open-evidence.js';
import { readReview } from './reviews/read-review.js';
import { resolveReview } from './reviews/resolve-review.js';
import { supplyEvidence } from './reviews/supply-evidence.js';
import { findDownload } from './system/find-download.js';
import { listDeadLetters } from './system/list-dead-letters.js';
import { listSigners, reinstateSigner, revokeSigner } from './system/revoke-signer.js';
import type { SignerRevocations } from './system/signer-revocations.js';
import { takeTelemetry } from './system/take-telemetry.js';
import { createUpload } from './uploads/create-upload.js';
import { receiveUpload } from './uploads/receive-upload.js';
import { createUploadClaims } from './uploads/upload-locks.js';
import { createUploadPolicySigner } from './uploads/upload-policy.js';
import { createRateLimits, shareOf } from './usage/rate-limits.js';
import { readQuota } from './usage/read-quota.js';
import { readUsage } from './usage/read-usage.js';
import { createUsageMeter, type UsageMeter } from './usage/usage-meter.js';
import { identifyUpload } from './verification/identify-upload.js';
import { verifyUpload } from './verification/verify-upload.js';

export interface OperationsDeps {
  readonly environment: 'production' | 'beta';
  readonly downloads: ReadonlyMap<string, string>;
  /** Read at each call: with any free port the address follows from the one that was bound. */
  readonly publicUrl: () => string;
  readonly secrets: Secrets;
  readonly stores: Stores;
  readonly assets: AssetStore;
  readonly journal: ErasureJournal;
  readonly heads: AuditHeads;
  readonly bus: Pick<EventBus, 'deadLetters' | 'replayDeadLetters'>;
  readonly engine: AudioEngine;
  readonly reader: CredentialReader;
  readonly signer: Signer;
  readonly trust: TrustList;
  readonly revocations: SignerRevocations;
  readonly clock: Clock;
  /**
   * The machine's, which may be set back: what comes back with time must not wait for a clock that stands
   * still.
   */
  readonly wallClock: Clock;
  readonly ids: Ids;
  readonly observer: Observer;
  /** That share the rates of a plan. */
  readonly processes: number;
}

/** Every use case with what it needs; and the two gatherers that its caller has to flush. */
export function createOperations(deps: OperationsDeps): {
  readonly operations: Operations;
  readonly meter: UsageMeter;
  readonly uses: KeyUses;
} {
  const {
    environment,
    downloads,
    publicUrl,
    secrets,
    stores,
    assets,
    journal,
    heads,
    bus,
    engine,
    reader,
    signer,
    trust,
    revocations,
    clock,
    wallClock,
    ids,
    observer,
    processes,
  } = deps;
  const plans = new Map(SHIPPED_PLANS.map((plan) => [plan.name, plan]));
  const policies = createUploadPolicySigner(secrets, environment);
  const claims = createUploadClaims();
  const signers = { stores, revocations, signer, trust, clock };
  const cursors = createCursors(secrets, environment);
  const limits = createRateLimits(wallClock, processes);
  const rotations = createRotationClaims();
  const nonces = new SeenNonces();
  const meter = createUsageMeter(stores, clock);
  const uses = createKeyUses(stores);
  const concurrentUploads = async (partnerId: string) => {
    const plan = plans.get((await stores.getPartner(partnerId))?.plan ?? '');
    return plan && shareOf(plan.concurrentUploads, processes);
  };

  const operations: Operations = {
    partner: {
      authenticate: (apiKey) => authenticate({ environment, plans, secrets, stores, clock, uses }, apiKey),
      admit: (caller, lane) => limits.spend(caller.partnerId, caller.plan, lane),
      quota: (caller) => readQuota({ stores, clock }, caller),
      meter: (caller, operation) => meter.count(caller.partnerId, operation),
      checkSignature: (caller, message) => checkSignature({ clock, nonces }, caller, message),
      createUpload: (caller, request) =>
        createUpload({ stores, clock, ids, policies, publicUrl: publicUrl() }, caller, request),
      receiveUpload: (uploadId, fields) =>
        receiveUpload(
          { stores, engine, clock, policies, claims, reader, concurrentUploads },
          uploadId,
          fields,
        ),
      verifyUpload: (caller, request) =>
        verifyUpload({ stores, secrets, clock, observer, revocations, reader }, caller, request),
      identify: (caller, request) => identifyUpload({ stores, clock }, caller, request),
      listProofs: (caller, query) => listProofs({ stores, cursors }, caller, query),
      readProof: (caller, proofId) => readProof({ stores, secrets }, caller, proofId),
      readRecord: (caller, proofId) => readRecord({ stores, secrets }, caller, proofId),
      readAsset: (caller, proofId, part) => readAsset({ stores, assets }, caller, proofId, part),
      eraseProof: (caller, proofId) => eraseProof({ stores, assets, journal, clock }, caller, proofId),
      listKeys: (caller, query) => listKeys({ stores, cursors, clock }, caller, query),
      rotateKey: (caller, apiKey, idempotencyKey) =>
        rotateKey(
          { stores, environment, secrets, clock, ids, limits, claims: rotations },
          caller,
          apiKey,
          idempotencyKey,
        ),
      revokeOwnKey: (caller, keyId) => revokeOwnKey({ stores, clock }, caller, keyId),
      readUsage: (caller, query) => readUsage({ stores, clock }, caller, query),
      createReview: (caller, request) => createReview({ stores, clock, ids }, caller, request),
      readReview: (caller, reviewId) => readReview({ stores, clock }, caller, reviewId),
      openEvidence: (caller, reviewId, request) =>
        openEvidence({ stores, clock, ids }, caller, reviewId, request),
      closeEvidence: (caller, reviewId, requestId, request) =>
        closeEvidence({ stores, clock }, caller, reviewId, requestId, request),
      resolveReview: (caller, reviewId, request) =>
        resolveReview({ stores, clock }, caller, reviewId, request),
      download: (_caller, query) => findDownload(downloads, query),
      telemetry: (_caller, events) => takeTelemetry(observer, events),
    },
    operator: {
      listPartners: () => stores.listPartners(),
      listPlans: () => [...plans.values()],
      createPartner: (request) => createPartner({ stores, plans, clock, ids }, request),
      createKey: (request) => createKey({ stores, environment, secrets, clock, ids }, request),
      listPartnerKeys: (partnerId) => listPartnerKeys({ stores, clock }, partnerId),
      revokeKey: (request) => revokeKey({ stores, clock }, request),
      supplyEvidence: (request) => supplyEvidence({ stores, clock }, request),
      issueProof: (request) =>
        issueProof({ stores, assets, engine, signer, revocations, clock, ids, observer, reader }, request),
      recordDeclaration: (proofId, declaration) =>
        recordDeclaration({ stores, secrets, clock }, proofId, declaration),
      listDeclarations: (proofId) => listDeclarations({ stores, secrets }, proofId),
      readDeliverable: (proofId, part) => readDeliverable({ stores, assets }, proofId, part),
      erasureStatus: (proofId) => readErasureStatus({ stores, assets }, proofId),
      listDeadLetters: (request) => listDeadLetters(bus, request),
      replayDeadLetters: ({ topic, limit }) => bus.replayDeadLetters(topic, limit),
      readAudit: (request) => readAudit(stores, request),
      verifyAudit: (partnerId) => verifyAudit({ stores, heads, secrets }, partnerId),
      listSigners: () => listSigners(signers),
      revokeSigner: (request) => revokeSigner(signers, request),
      reinstateSigner: (kid) => reinstateSigner(signers, kid),
      authority: () => trust.authorities().join(''),
    },
  };
  return { operations, meter, uses };
}
