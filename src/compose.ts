/** Puts the service together: the only file that names concrete adapters. */
import { randomBytes } from 'node:crypto';
import { mkdir, rm, writeFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { openAssetDirectory } from './adapters/assets/directory.js';
import { openAssetBucket } from './adapters/assets/s3.js';
import { migrate } from './adapters/cassandra/migrations.js';
import { openCassandraStore } from './adapters/cassandra/store.js';
import { openEmbeddedStore } from './adapters/embedded/store.js';
import { createAuditHeads } from './adapters/journals/audit-heads.js';
import { openErasureJournal } from './adapters/journals/erasure-journal.js';
import { makeClusterBundle, readClusterBundle } from './adapters/signing/cluster-bundle.js';
import { createDevice } from './adapters/signing/device.js';
import { loadSigning } from './adapters/signing/load-signing.js';
import { loadOperatorToken } from './adapters/signing/operator-token.js';
import { loadSecrets } from './adapters/signing/secrets.js';
import { createIds, systemClock } from './adapters/system/system.js';
import type { Config } from './config.js';
import { readEmbedded } from './credential/read-embedded.js';
import { readSidecar } from './credential/sidecar.js';
import { SHIPPED_PLANS } from './domain/partner.js';
import { createAudioEngine } from './engine/create-engine.js';
import { createOperatorListener } from './http/operator-listener.js';
import { createPartnerListener } from './http/partner-listener.js';
import { authenticate } from './operations/authenticate.js';
import { closeEvidence } from './operations/close-evidence.js';
import { createKey } from './operations/create-key.js';
import { createPartner } from './operations/create-partner.js';
import { createReview } from './operations/create-review.js';
import { createUpload } from './operations/create-upload.js';
import { createCursors } from './operations/cursors.js';
import { eraseProof } from './operations/erase-proof.js';
import { findDownload } from './operations/find-download.js';
import { identifyUpload } from './operations/identify-upload.js';
import { issueProof } from './operations/issue-proof.js';
import { createKeyUses } from './operations/key-uses.js';
import { listDeclarations } from './operations/list-declarations.js';
import { listKeys } from './operations/list-keys.js';
import { listPartnerKeys } from './operations/list-partner-keys.js';
import { listProofs } from './operations/list-proofs.js';
import { openEvidence } from './operations/open-evidence.js';
import type { Operations } from './operations/operations.js';
import { createRateLimits } from './operations/rate-limits.js';
import { readAsset } from './operations/read-asset.js';
import { readAudit } from './operations/read-audit.js';
import { readDeliverable } from './operations/read-deliverable.js';
import { readErasureStatus } from './operations/read-erasure-status.js';
import { readProof } from './operations/read-proof.js';
import { readQuota } from './operations/read-quota.js';
import { readRecord } from './operations/read-record.js';
import { readReview } from './operations/read-review.js';
import { readUsage } from './operations/read-usage.js';
import { receiveUpload } from './operations/receive-upload.js';
import { recordDeclaration } from './operations/record-declaration.js';
import { replayErasures } from './operations/replay-erasures.js';
import { resolveReview } from './operations/resolve-review.js';
import { revokeKey } from './operations/revoke-key.js';
import { rotateKey } from './operations/rotate-key.js';
import { createRotationClaims } from './operations/rotation-claims.js';
import { sealBesideFile, sealInFile, type PlainAudio } from './operations/seal-audio.js';
import { supplyEvidence } from './operations/supply-evidence.js';
import { sweepExpired, sweepOrphans, sweepUnfinished } from './operations/sweep.js';
import { takeTelemetry } from './operations/take-telemetry.js';
import { createUploadClaims } from './operations/upload-claims.js';
import { createUploadPolicySigner } from './operations/upload-policy.js';
import { createUsageMeter } from './operations/usage-meter.js';
import { verifyAudit } from './operations/verify-audit.js';
import { verifyUpload } from './operations/verify-upload.js';
import type { AssetStore } from './ports/assets.js';
import type { Clock } from './ports/clock.js';
import type { Ids } from './ports/ids.js';
import type { AuditHeads } from './ports/journals.js';
import type { Stores } from './ports/stores.js';
import { createProbes } from './telemetry/probes.js';
import { createTelemetry, type TelemetryParts } from './telemetry/telemetry.js';

/** For the process, which names nothing but this file. */
export { crashLine } from './telemetry/log.js';

export interface ServiceOptions {
  readonly version: string;
  /** The system's by default; tests move it. */
  readonly clock?: Clock;
  /** The system's by default; tests watch it. */
  readonly ids?: Ids;
  readonly logDestination?: TelemetryParts['destination'];
}

/** A running service. */
export interface Service {
  readonly partner: { readonly port: number; readonly host: string };
  readonly operator: { readonly port: number; readonly host: string };
  readonly operatorToken: string;
  /** Where the token is kept, and whether this start made it; undefined where it was given. */
  readonly operatorTokenFile: { readonly path: string; readonly made: boolean } | undefined;
  readonly publicUrl: string;
  readonly dataDirectory: string;
  readonly operations: Operations;
  /** Stops taking work, finishes what is in flight within the configured grace, and closes the store. Safe to call twice. */
  stop(): Promise<void>;
}

/** Where a started service says which ports it bound, for tools on the same machine. */
export const ENDPOINTS_FILE = 'endpoints.json';
const SWEEP_MS = 30_000;
const METER_MS = 1_000;
/** Half of the minute to which `lastUsedAt` is exact. */
const KEY_USES_MS = 30_000;
/** Of a reserved id, or a deliverable in a bucket that no record names: another process may be issuing it. */
const ORPHAN_GRACE_SECONDS = 3_600;
const ORPHAN_SWEEP_MS = 6 * 3_600_000;

/**
 * Starts a service from its configuration. Everything that was opened is closed again when a later step fails.
 * @throws Error with a message for the operator
 */
export async function startService(config: Config, options: ServiceOptions): Promise<Service> {
  if (config.bus !== 'embedded') throw new Error('this version has the embedded bus only');
  const clock = options.clock ?? systemClock;
  const ids = options.ids ?? createIds(clock);
  const directory = config.dataDirectory;
  const opened: (() => Promise<unknown>)[] = [];
  const closeAll = async (): Promise<void> => {
    for (const close of opened.splice(0).reverse()) await close();
  };
  try {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    // First of all, so that a directory of another environment is refused before anything is made in it.
    const shared = config.secretsFile === undefined ? undefined : await readClusterBundle(config.secretsFile, config.environment);
    const secrets = shared?.secrets ?? (await loadSecrets({ directory, environment: config.environment, random: randomBytes }));
    const given = config.operator.token ?? shared?.operatorToken;
    const kept = given === undefined ? await loadOperatorToken({ directory, random: randomBytes }) : undefined;
    const token = given ?? kept!.token;
    const { signer, trust } = await loadSigning({
      directory: join(directory, 'signing'),
      environment: config.environment,
      algorithm: config.signing.algorithm,
      ...(config.signing.files === undefined ? {} : { files: config.signing.files }),
      ...(shared === undefined ? {} : { pems: shared.signing }),
      clock,
      random: randomBytes,
    });

    const engine = createAudioEngine({
      kind: config.engine.kind,
      ...(config.engine.maxUploads === undefined ? {} : { maxUploads: config.engine.maxUploads }),
      ...(config.engine.workers === undefined ? {} : { workers: config.engine.workers }),
    });
    const telemetry = createTelemetry({ level: config.logLevel, engineStats: () => engine.stats(), ...(options.logDestination === undefined ? {} : { destination: options.logDestination }) });
    const { observer, requestLog } = telemetry;
    opened.push(async () => telemetry.flush());
    const heads = createAuditHeads({ directory: config.journalDirectory, secrets });
    opened.push(() => heads.close());
    const stores = await openStores(config, { key: secrets.current('audit').key, heads });
    opened.push(() => stores.close());
    const journal = await openErasureJournal({ directory: config.journalDirectory, secrets });
    opened.push(() => journal.close());
    const assets = await openAssets(config, opened);
    const erasedAgain = await replayErasures({ stores, assets, journal });
    await sweepUnfinished({ stores, clock, graceSeconds: config.store === 'cassandra' ? ORPHAN_GRACE_SECONDS : 0 });
    // A bucket is swept while it is in use, because it may hold any number of files.
    if (config.assetBucket === undefined) await sweepOrphans({ stores, assets });
    await engine.start();
    opened.push(() => engine.stop());

    const plans = new Map(SHIPPED_PLANS.map((plan) => [plan.name, plan]));
    const readChunk = (data: Uint8Array, extent: { readonly offset: number; readonly length: number }) => readEmbedded(data, extent, trust);
    const readPair = (sidecar: Uint8Array) => readSidecar(sidecar, trust);
    const policies = createUploadPolicySigner(secrets, config.environment);
    const claims = createUploadClaims();
    const cursors = createCursors(secrets, config.environment);
    const limits = createRateLimits(clock);
    const rotations = createRotationClaims();
    const meter = createUsageMeter(stores, clock);
    const uses = createKeyUses(stores);
    // After the listeners are closed and before the store is.
    opened.push(async () => void (await Promise.allSettled([meter.flush(), uses.flush()])));
    const concurrentUploads = async (partnerId: string) => plans.get((await stores.getPartner(partnerId))?.plan ?? '')?.concurrentUploads;
    // Known once the partner listener is bound: with port 0 the address of the slots follows it.
    let publicUrl = config.publicUrl ?? '';

    const operations: Operations = {
      partner: {
        authenticate: (apiKey) => authenticate({ environment: config.environment, plans, secrets, stores, clock, uses }, apiKey),
        admit: (caller, lane) => limits.spend(caller.partnerId, caller.plan, lane),
        quota: (caller) => readQuota({ stores, clock }, caller),
        meter: (caller, operation) => meter.count(caller.partnerId, operation),
        createUpload: (caller, request) => createUpload({ stores, clock, ids, policies, publicUrl }, caller, request),
        receiveUpload: (uploadId, fields) => receiveUpload({ stores, engine, clock, policies, claims, readEmbedded: readChunk, concurrentUploads }, uploadId, fields),
        verifyUpload: (caller, request) => verifyUpload({ stores, secrets, clock, observer, readSidecar: readPair }, caller, request),
        identify: (caller, request) => identifyUpload({ stores, clock }, caller, request),
        listProofs: (caller, query) => listProofs({ stores, cursors }, caller, query),
        readProof: (caller, proofId) => readProof({ stores, secrets }, caller, proofId),
        readRecord: (caller, proofId) => readRecord({ stores, secrets }, caller, proofId),
        readAsset: (caller, proofId, part) => readAsset({ stores, assets }, caller, proofId, part),
        eraseProof: (caller, proofId) => eraseProof({ stores, assets, journal, clock }, caller, proofId),
        listKeys: (caller, query) => listKeys({ stores, cursors, clock }, caller, query),
        rotateKey: (caller, apiKey, idempotencyKey) => rotateKey({ stores, environment: config.environment, secrets, clock, ids, limits, claims: rotations }, caller, apiKey, idempotencyKey),
        readUsage: (caller, query) => readUsage({ stores, clock }, caller, query),
        createReview: (caller, request) => createReview({ stores, clock, ids }, caller, request),
        readReview: (caller, reviewId) => readReview({ stores, clock }, caller, reviewId),
        openEvidence: (caller, reviewId, request) => openEvidence({ stores, clock, ids }, caller, reviewId, request),
        closeEvidence: (caller, reviewId, requestId, request) => closeEvidence({ stores, clock }, caller, reviewId, requestId, request),
        resolveReview: (caller, reviewId, request) => resolveReview({ stores, clock }, caller, reviewId, request),
        download: (_caller, query) => findDownload(config.downloads, query),
        telemetry: (_caller, events) => takeTelemetry(observer, events),
      },
      operator: {
        listPartners: () => stores.listPartners(),
        listPlans: () => [...plans.values()],
        createPartner: (request) => createPartner({ stores, plans, clock, ids }, request),
        createKey: (request) => createKey({ stores, environment: config.environment, secrets, clock, ids }, request),
        listPartnerKeys: (partnerId) => listPartnerKeys({ stores, clock }, partnerId),
        revokeKey: (request) => revokeKey({ stores, clock }, request),
        supplyEvidence: (request) => supplyEvidence({ stores, clock }, request),
        issueProof: (request) => issueProof({ stores, assets, engine, signer, clock, ids, observer, readEmbedded: readChunk, readSidecar: readPair }, request),
        recordDeclaration: (proofId, declaration) => recordDeclaration({ stores, secrets, clock }, proofId, declaration),
        listDeclarations: (proofId) => listDeclarations({ stores, secrets }, proofId),
        readDeliverable: (proofId, part) => readDeliverable({ stores, assets }, proofId, part),
        erasureStatus: (proofId) => readErasureStatus({ stores, assets }, proofId),
        readAudit: (request) => readAudit(stores, request),
        verifyAudit: (partnerId) => verifyAudit({ stores, heads, secrets }, partnerId),
        authority: () => trust.authorities().join(''),
      },
    };

    const probes = createProbes(() => stores.ping());
    const common = { ids, requestLog, observer, limits: { connections: config.maxConnections }, ...(config.requestIdHeader === undefined ? {} : { requestIdHeader: config.requestIdHeader }) };
    const build = { version: options.version, commit: config.build.commit, deployedAt: config.build.deployedAt ?? Math.floor(clock.now() / 1000), environment: config.environment };
    const partnerListener = createPartnerListener({ ...common, operations: operations.partner, build });
    const operatorListener = createOperatorListener({ ...common, operations: operations.operator, token, metrics: telemetry.metrics, ready: probes.ready });
    const operator = await operatorListener.listen(config.operator.port, config.operator.host);
    opened.push(() => operatorListener.close(config.stopGraceMs));
    const partner = await partnerListener.listen(config.partner.port, config.partner.host);
    opened.push(() => partnerListener.close(config.stopGraceMs));
    publicUrl = config.publicUrl ?? `http://127.0.0.1:${partner.port}`;

    const sweeping = setInterval(() => {
      sweepExpired({ stores, clock }).catch((error: unknown) => observer.fault('sweep', error));
    }, SWEEP_MS);
    opened.push(async () => clearInterval(sweeping));
    if (config.assetBucket !== undefined) {
      let sweepingOrphans: Promise<void> | undefined;
      const sweepBucket = () => {
        sweepingOrphans ??= sweepOrphans({ stores, assets })
          .catch((error: unknown) => observer.fault('sweep', error))
          .finally(() => (sweepingOrphans = undefined));
      };
      const orphaning = setInterval(sweepBucket, ORPHAN_SWEEP_MS);
      opened.push(async () => clearInterval(orphaning));
      sweepBucket();
    }
    const flushing = setInterval(() => {
      meter.flush().catch((error: unknown) => observer.fault('meter', error));
    }, METER_MS);
    opened.push(async () => clearInterval(flushing));
    const noting = setInterval(() => {
      uses.flush().catch((error: unknown) => observer.fault('key_uses', error));
    }, KEY_USES_MS);
    opened.push(async () => clearInterval(noting));
    await writeEndpoints(directory, { partner: partner.port, operator: operator.port });
    opened.push(() => rm(join(directory, ENDPOINTS_FILE), { force: true }));

    for (const name of config.unknown) telemetry.note('setting_unknown', { name });
    if (erasedAgain > 0) telemetry.note('erasures_replayed', { count: erasedAgain });
    telemetry.note('started', {
      version: options.version,
      environment: config.environment,
      engine: config.engine.kind,
      publicUrl,
      partner: `${partner.host}:${partner.port}`,
      operator: `${operator.host}:${operator.port}`,
      dataDirectory: directory,
      kid: signer.identity.kid,
      ...(kept === undefined ? {} : { operatorTokenFile: kept.path, operatorTokenMade: kept.made }),
    });
    let stopping: Promise<void> | undefined;
    const stop = async (): Promise<void> => {
      probes.stopping();
      telemetry.note('stopping');
      await closeAll();
    };
    return { partner, operator, operatorToken: token, operatorTokenFile: kept, publicUrl, dataDirectory: directory, operations, stop: () => (stopping ??= stop()) };
  } catch (error) {
    await closeAll();
    throw error;
  }
}

async function openAssets({ dataDirectory, assetBucket }: Config, opened: (() => Promise<unknown>)[]): Promise<AssetStore> {
  if (assetBucket === undefined) return openAssetDirectory({ directory: join(dataDirectory, 'assets') });
  const assets = await openAssetBucket({ ...assetBucket, spoolDirectory: join(dataDirectory, 'spool'), sweepGraceSeconds: ORPHAN_GRACE_SECONDS });
  opened.push(async () => assets.close());
  return assets;
}

async function openStores({ store, cassandra, dataDirectory }: Config, audit: { readonly key: Uint8Array; readonly heads: AuditHeads }): Promise<Stores> {
  if (store === 'embedded') return openEmbeddedStore({ directory: join(dataDirectory, 'store'), audit });
  if (cassandra === undefined) throw new Error('no Cassandra nodes are configured');
  return openCassandraStore({ ...cassandra, audit });
}

/**
 * Behind `takemark operator migrate`: makes the keyspace and brings its schema up to date.
 * @returns names of the migrations that were applied
 * @throws Error with a message for the operator
 */
export async function migrateStore({ cassandra }: Config): Promise<readonly string[]> {
  if (cassandra === undefined) throw new Error('TAKEMARK_CASSANDRA and TAKEMARK_CASSANDRA_DC say where the cluster is');
  return migrate(cassandra);
}

/** Behind `takemark operator secrets init`: the text of a new bundle for a cluster. */
export function makeSecrets({ environment, signing }: Config): string {
  return makeClusterBundle({ environment, algorithm: signing.algorithm, clock: systemClock, random: randomBytes });
}

async function writeEndpoints(directory: string, endpoints: { readonly partner: number; readonly operator: number }): Promise<void> {
  const path = join(directory, ENDPOINTS_FILE);
  await writeFile(`${path}.new`, `${JSON.stringify(endpoints)}\n`, { mode: 0o600 });
  await rename(`${path}.new`, path);
}

/**
 * The device behind `takemark seal`: an engine and a key of its own, without a service, a store or a network.
 * @param directory where the device's key is kept; it is made on first use
 */
export async function openSealer(directory: string) {
  const signer = await createDevice({ directory, name: 'Local device', clock: systemClock, random: randomBytes });
  const engine = createAudioEngine({ kind: 'native', workers: 1 });
  await engine.start();
  const deps = { engine, signer, clock: systemClock, random: randomBytes };
  return {
    embed: (audio: PlainAudio) => sealInFile(deps, audio),
    sidecar: (audio: PlainAudio) => sealBesideFile(deps, audio),
    close: () => engine.stop(),
  };
}
