import type { SignatureAlgorithm } from '../domain/parsed-credential.js';
import type { AssetStore } from '../ports/assets.js';
import type { AudioEngine } from '../ports/audio-engine.js';
import type { AuditedStore } from '../ports/audited-store.js';
import type { EventBus } from '../ports/bus.js';
import type { ContentKeys } from '../ports/content-keys.js';
import type { CredentialReader } from '../ports/credential-reader.js';
import type { AuditHeads, ErasureJournal } from '../ports/journals.js';
import type { Observer } from '../ports/observer.js';
import type { Secrets } from '../ports/secrets.js';
import type { IssuingCertificates, Signer, TrustList } from '../ports/signing.js';
import type { Stores } from '../ports/stores.js';
import type { Clock, Ids } from '../ports/system.js';
import { issueProof } from './issuing/issue-proof.js';
import type { SettleEvidenceDeps } from './issuing/settle-evidence.js';
import { authenticate, createKeyUses } from './keys/authenticate.js';
import { checkSignature, SeenNonces } from './keys/check-signature.js';
import { createKey } from './keys/create-key.js';
import { listKeys, listPartnerKeys } from './keys/list-keys.js';
import { revokeKey, revokeOwnKey } from './keys/revoke-key.js';
import { createRotationLocks, rotateKey } from './keys/rotate-key.js';
import { createCursors } from './page.js';
import { readAudit, verifyAudit } from './partners/audit.js';
import { createPartner, listPartners } from './partners/partners.js';
import { assignPlan, createPlan, listPlans, Plans, setPlan } from './partners/plans.js';
import { listDeclarations, recordDeclaration } from './proofs/declarations.js';
import { eraseProof, erasureStatus } from './proofs/erase-proof.js';
import { importLegacy } from './proofs/import-legacy.js';
import { readAsset, readOwnAsset } from './proofs/read-asset.js';
import { listProofs, readProof, readRecord } from './proofs/read-proofs.js';
import {
  approveSourceDetail,
  grantConsent,
  revokeConsent,
  withdrawSourceDetail,
} from './proofs/source-detail.js';
import { closeEvidence, openEvidence, supplyEvidence } from './reviews/evidence.js';
import {
  createReview,
  listPartnerReviews,
  listReviews,
  readPartnerReview,
  readReview,
  resolveReview,
} from './reviews/reviews.js';
import { Sandbox, sandboxFile, sandboxFixtures } from './sandbox/sandbox.js';
import { auditStores } from './system/audit-stores.js';
import { listDeadLetters, replayDeadLetters } from './system/dead-letters.js';
import { type Devices, enrolDevice, listDevices, revokeDevice } from './system/devices.js';
import { findDownload, takeTelemetry } from './system/product.js';
import type { SignerRevocations } from './system/signer-revocations.js';
import { listSigners, readAuthority, reinstateSigner, revokeSigner } from './system/signers.js';
import { createUpload } from './uploads/create-upload.js';
import { createUploadLocks, receiveUpload } from './uploads/receive-upload.js';
import { createUploadPolicySigner } from './uploads/upload-policy.js';
import { readQuota } from './usage/quota.js';
import { admit, createRateLimits, readRate } from './usage/rate-limits.js';
import { readUsage } from './usage/read-usage.js';
import { createUsageMeter, meterCall } from './usage/usage-meter.js';
import { identifyUpload } from './verification/identify-upload.js';
import { verifyUpload } from './verification/verify-upload.js';

export interface OperationsDeps {
  readonly environment: 'production' | 'beta';
  readonly downloads: ReadonlyMap<string, string>;
  /**
   * Returns the public address. It is read at each call, because port 0 is replaced when the socket is bound.
   */
  readonly publicUrl: () => string;
  readonly secrets: Secrets;
  readonly stores: Stores;
  /** The stores below the encryption: they return the content of proofs still encrypted. */
  readonly encrypted: Stores;
  readonly assets: AssetStore;
  readonly keys: Pick<ContentKeys, 'read'>;
  readonly journal: ErasureJournal;
  readonly heads: AuditHeads;
  readonly audited: AuditedStore;
  readonly bus: Pick<EventBus, 'deadLetters' | 'replayDeadLetters'>;
  readonly engine: AudioEngine;
  readonly reader: CredentialReader;
  readonly signer: Signer;
  readonly certificates: IssuingCertificates;
  readonly trust: TrustList;
  /** Creates the signer of a new artist device, for the sandbox. */
  readonly newDevice: (algorithm?: SignatureAlgorithm) => Signer;
  readonly revocations: SignerRevocations;
  readonly devices: Devices;
  /** Replays a capture trace outside the thread that serves callers. */
  readonly replay: SettleEvidenceDeps['replay'];
  readonly clock: Clock;
  /**
   * The machine's clock, which may be set back. Rates use it, because `clock` stops until the machine's clock
   * reaches the last time seen again.
   */
  readonly wallClock: Clock;
  readonly ids: Ids;
  readonly observer: Observer;
  /** The number of processes that share the rates of a plan. */
  readonly processes: number;
}

/**
 * Creates every use case of the service, grouped by listener, and binds its dependencies once. A use case
 * throws a DomainError when it refuses a call. The caller must also flush the returned `meter` and `uses`.
 */
export function createOperations(given: OperationsDeps) {
  const { environment, secrets, stores, encrypted, clock, wallClock, processes } = given;
  const deps = {
    ...given,
    plans: new Plans(given),
    policies: createUploadPolicySigner(secrets, environment),
    uploadLocks: createUploadLocks(),
    rotationLocks: createRotationLocks(),
    cursors: createCursors(secrets, environment),
    limits: createRateLimits(wallClock, processes),
    nonces: new SeenNonces(),
    meter: createUsageMeter(stores, clock),
    uses: createKeyUses(stores),
    sandbox: new Sandbox(),
  };
  // These operations use the stores below the encryption, so they work even after the content key was
  // destroyed.
  const withoutContent = { ...deps, stores: encrypted };
  const operations = {
    partner: {
      ...bind(withoutContent, { eraseProof }),
      ...bind(deps, {
        authenticate,
        checkSignature,
        admit,
        quota: readQuota,
        rate: readRate,
        meter: meterCall,
        createUpload,
        receiveUpload,
        verifyUpload,
        identify: identifyUpload,
        listProofs,
        readProof,
        readRecord,
        readAsset: readOwnAsset,
        listKeys,
        rotateKey,
        revokeOwnKey,
        readUsage,
        createReview,
        listReviews,
        readReview,
        resolveReview,
        openEvidence,
        closeEvidence,
        download: findDownload,
        telemetry: takeTelemetry,
        sandboxFixtures,
        sandboxFile,
      }),
    },
    operator: {
      ...bind(withoutContent, { erasureStatus }),
      ...bind(deps, {
        auditStores,
        listPartners,
        listPlans,
        createPlan,
        setPlan,
        assignPlan,
        createPartner,
        createKey,
        listPartnerKeys,
        revokeKey,
        listPartnerReviews,
        readPartnerReview,
        supplyEvidence,
        issueProof,
        importLegacy,
        recordDeclaration,
        listDeclarations,
        readAsset,
        listDeadLetters,
        replayDeadLetters,
        readAudit,
        verifyAudit,
        listSigners,
        revokeSigner,
        reinstateSigner,
        approveSourceDetail,
        withdrawSourceDetail,
        grantConsent,
        revokeConsent,
        listDevices,
        enrolDevice,
        revokeDevice,
        readAuthority,
      }),
    },
  };
  return { operations, meter: deps.meter, uses: deps.uses };
}

export type Operations = ReturnType<typeof createOperations>['operations'];
export type PartnerOperations = Operations['partner'];
export type OperatorOperations = Operations['operator'];

/** The use cases without their first parameter. */
type Bound<UseCases> = {
  readonly [Name in keyof UseCases]: UseCases[Name] extends (deps: never, ...args: infer Args) => infer Result
    ? (...args: Args) => Result
    : never;
};

/**
 * Binds the dependencies to each use case. The compiler rejects a use case whose dependencies are not all in
 * `Deps`.
 */
function bind<Deps, UseCases extends Readonly<Record<string, (deps: Deps, ...args: never[]) => unknown>>>(
  deps: Deps,
  useCases: UseCases,
): Bound<UseCases> {
  return Object.fromEntries(
    Object.entries(useCases).map(([name, useCase]) => [name, useCase.bind(undefined, deps)]),
  ) as Bound<UseCases>;
}
