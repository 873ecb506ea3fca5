import type { SignatureAlgorithm } from '../../core/domain/parsed-credential.js';
import type { AudioEngine } from '../../core/ports/audio-engine.js';
import type { IssuingCertificates, Signer, TrustList } from '../../core/ports/signing.js';
import type { StoredEvidence } from '../../witness/report/compose-stored.js';
import type { OpenTrace } from '../../witness/trace/read-trace.js';
import type { AssetStore } from '../ports/assets.js';
import type { AuditedStore } from '../ports/audited-store.js';
import type { EventBus } from '../ports/bus.js';
import type { ContentKeys } from '../ports/content-keys.js';
import type { CredentialReader } from '../ports/credential-reader.js';
import type { AuditHeads, ErasureJournal } from '../ports/journals.js';
import type { Observer } from '../ports/observer.js';
import type { Secrets } from '../ports/secrets.js';
import type { SnapshotSource } from '../ports/store-snapshot.js';
import type { Stores } from '../ports/stores.js';
import type { Clock, Ids } from '../ports/system.js';
import { attributed } from './attributed.js';
import { issueProof } from './issuing/issue-proof.js';
import type { SettleEvidenceDeps } from './issuing/settle-evidence.js';
import { authenticate, createKeyUses } from './keys/authenticate.js';
import { checkSignature, SeenNonces, SignatureKeys } from './keys/check-signature.js';
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
import type { ComposeDeps } from './proofs/evidence.js';
import { fillSamples } from './proofs/fill-samples.js';
import { importLegacy } from './proofs/import-legacy.js';
import { readAsset, readOwnAsset } from './proofs/read-asset.js';
import { listProofs, readProof, readRecord } from './proofs/read-proofs.js';
import {
  approveSourceDetail,
  grantConsent,
  revokeConsent,
  withdrawSourceDetail,
} from './proofs/source-detail.js';
import { Fills } from './proofs/summaries.js';
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
import { stoppable } from './stoppable.js';
import { auditStores } from './system/audit-stores.js';
import { discardDeadLetters, listDeadLetters, replayDeadLetters } from './system/dead-letters.js';
import { type Devices, enrolDevice, listDevices, revokeDevice } from './system/devices.js';
import { findDownload, takeTelemetry } from './system/product.js';
import { readSnapshot } from './system/read-snapshot.js';
import type { SignerRevocations } from './system/signer-revocations.js';
import { listSigners, readAuthority, reinstateSigner, revokeSigner } from './system/signers.js';
import { createUpload } from './uploads/create-upload.js';
import { createUploadLocks, receiveUpload } from './uploads/receive-upload.js';
import { createUploadPolicySigner } from './uploads/upload-policy.js';
import { HeavyReads } from './usage/heavy-reads.js';
import { readQuota } from './usage/quota.js';
import { admit, createRateLimits, readRate } from './usage/rate-limits.js';
import { readUsage } from './usage/read-usage.js';
import { createUsageMeter, meterCall } from './usage/usage-meter.js';
import { identify } from './verification/identify.js';
import { verifyFile } from './verification/verify-file.js';
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
  /** The source of snapshots. Absent if the store is shared with other processes. */
  readonly snapshots?: SnapshotSource | undefined;
  readonly bus: Pick<EventBus, 'deadLetters' | 'replayDeadLetters' | 'discardDeadLetters'>;
  readonly engine: AudioEngine;
  /** The engine that measures what is issued. */
  readonly issuingEngine: AudioEngine;
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
  /** Composes a report, a large one outside the thread that serves callers. */
  readonly compose: ComposeDeps['compose'];
  readonly clock: Clock;
  /**
   * The machine's clock, which may be set back. Rates use it, because `clock` stops until the machine's clock
   * reaches the last time seen again.
   */
  readonly wallClock: Clock;
  readonly ids: Ids;
  readonly observer: Observer;
  /** Returns the number of processes that share the limits of a plan. It changes while a cluster grows. */
  readonly processes: () => number;
  /** The bytes of files per second that are read to fill samples digests. */
  readonly samplesRate: number;
  /** The largest file of a large purpose, in bytes. */
  readonly largeBytes: number;
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
    signatureKeys: new SignatureKeys(),
    meter: createUsageMeter(stores, clock),
    uses: createKeyUses(stores),
    sandbox: new Sandbox(),
    reads: new HeavyReads(),
    fills: new Fills(new HeavyReads({ atOnce: 1 })),
  };
  /**
   * Returns the dependencies of one call, which stop the call at its next step once its signal aborts. They inherit
   * the others: a copy of all dependencies would cost 10 to 30 microseconds in each call.
   */
  const depsUntil = (signal: AbortSignal) =>
    Object.assign(Object.create(deps) as typeof deps, {
      signal,
      // Files were published, and the registration completes their issuing.
      stores: stoppable(attributed(stores, signal), signal, ['issueProof']),
      encrypted: stoppable(encrypted, signal),
      // An erasure or a refused issuing deletes files after the registry decided it.
      assets: stoppable(given.assets, signal, ['delete']),
      keys: stoppable(given.keys, signal),
      heads: stoppable(given.heads, signal),
      audited: stoppable(given.audited, signal),
      bus: stoppable(given.bus, signal),
      reader: stoppable(given.reader, signal),
      replay: (partnerId: string, open: OpenTrace, own: AbortSignal = signal) =>
        given.replay(partnerId, open, own),
      compose: (stored: StoredEvidence) =>
        signal.aborted ? Promise.reject(signal.reason) : given.compose(stored),
    });
  // These operations use the stores below the encryption, so they work even after the content key was
  // destroyed.
  const withoutContent = {
    deps: { ...deps, stores: encrypted },
    depsUntil: (signal: AbortSignal) =>
      Object.assign(depsUntil(signal), { stores: stoppable(attributed(encrypted, signal), signal) }),
  };
  const ordinary = { deps, depsUntil };
  // Callers share the lookup of the sandbox, so no caller ends it for the others.
  const shared = { deps, depsUntil: () => deps };
  const operations = {
    partner: abandonable({
      ...bind(withoutContent, { eraseProof }),
      ...bind(shared, { sandboxFixtures, sandboxFile }),
      ...bind(ordinary, {
        authenticate,
        checkSignature,
        admit,
        quota: readQuota,
        rate: readRate,
        meter: meterCall,
        createUpload,
        receiveUpload,
        verifyUpload,
        verifyFile,
        identify,
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
      }),
    }),
    operator: abandonable({
      ...bind(withoutContent, { erasureStatus }),
      ...bind(ordinary, {
        auditStores,
        fillSamples,
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
        discardDeadLetters,
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
        readSnapshot,
      }),
    }),
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

/** Operations, and the same operations for one call that may be given up. */
export type Abandonable<Operations> = Operations & {
  /**
   * Returns the operations of one call. Once the signal aborts, an operation fails at its next step with the
   * signal's reason.
   */
  until(signal: AbortSignal): Operations;
};

/** The dependencies of use cases: for calls that are not given up, and for a call with a signal. */
interface DepsOf<Deps> {
  readonly deps: Deps;
  readonly depsUntil: (signal: AbortSignal) => Deps;
}

interface OfCall {
  readonly signal?: AbortSignal;
}

/**
 * Binds the dependencies to each use case. The compiler rejects a use case whose dependencies are not all in
 * `Deps`. The signal of the call is a member of the object on which a method is called.
 */
function bind<Deps, UseCases extends Readonly<Record<string, (deps: Deps, ...args: never[]) => unknown>>>(
  { deps, depsUntil }: DepsOf<Deps>,
  useCases: UseCases,
): Bound<UseCases> {
  return Object.fromEntries(
    Object.entries(useCases).map(([name, useCase]) => [
      name,
      function (this: OfCall, ...args: never[]) {
        return useCase(this.signal === undefined ? deps : depsUntil(this.signal), ...args);
      },
    ]),
  ) as unknown as Bound<UseCases>;
}

/** Adds `until` to bound use cases. Each method of the result also works apart from its object. */
function abandonable<Operations extends object>(methods: Operations): Abandonable<Operations> {
  const bound = Object.fromEntries(
    Object.entries(methods).map(([name, method]) => [name, (method as () => unknown).bind({})]),
  ) as unknown as Operations;
  return {
    ...bound,
    until: (signal) => Object.assign(Object.create(methods) as Operations, { signal }),
  };
}
