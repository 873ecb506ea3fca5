/** Puts the service together: the only file that names concrete adapters. */
import { randomBytes } from 'node:crypto';
import { mkdir, rm, writeFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { openAssetDirectory } from './adapters/assets/directory.js';
import { openEmbeddedStore } from './adapters/embedded/store.js';
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
import { createKey } from './operations/create-key.js';
import { createPartner } from './operations/create-partner.js';
import { createUpload } from './operations/create-upload.js';
import { issueProof } from './operations/issue-proof.js';
import type { Operations } from './operations/operations.js';
import { readDeliverable } from './operations/read-deliverable.js';
import { receiveUpload } from './operations/receive-upload.js';
import { sealBesideFile, sealInFile, type PlainAudio } from './operations/seal-audio.js';
import { sweepExpired, sweepUnfinished } from './operations/sweep.js';
import { createUploadClaims } from './operations/upload-claims.js';
import { createUploadPolicySigner } from './operations/upload-policy.js';
import { verifyUpload } from './operations/verify-upload.js';
import type { Clock } from './ports/clock.js';
import { createProbes } from './telemetry/probes.js';
import { createTelemetry, type TelemetryParts } from './telemetry/telemetry.js';

export interface ServiceOptions {
  readonly version: string;
  /** The system's by default; tests move it. */
  readonly clock?: Clock;
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

/**
 * Starts a service from its configuration. Everything that was opened is closed again when a later step fails.
 * @throws Error with a message for the operator
 */
export async function startService(config: Config, options: ServiceOptions): Promise<Service> {
  if (config.store !== 'embedded' || config.bus !== 'embedded') throw new Error('this version has the embedded store and the embedded bus only');
  const clock = options.clock ?? systemClock;
  const ids = createIds(clock);
  const directory = config.dataDirectory;
  const opened: (() => Promise<unknown>)[] = [];
  const closeAll = async (): Promise<void> => {
    for (const close of opened.splice(0).reverse()) await close();
  };
  try {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    // First of all, so that a directory of another environment is refused before anything is made in it.
    const secrets = await loadSecrets({ directory, environment: config.environment, random: randomBytes });
    const kept = config.operator.token === undefined ? await loadOperatorToken({ directory, random: randomBytes }) : undefined;
    const token = config.operator.token ?? kept!.token;
    const { signer, trust } = await loadSigning({
      directory: join(directory, 'signing'),
      environment: config.environment,
      algorithm: config.signing.algorithm,
      ...(config.signing.files === undefined ? {} : { files: config.signing.files }),
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
    const stores = await openEmbeddedStore({ directory: join(directory, 'store') });
    opened.push(() => stores.close());
    const assets = await openAssetDirectory({ directory: join(directory, 'assets') });
    await sweepUnfinished({ stores, assets, clock });
    await engine.start();
    opened.push(() => engine.stop());

    const plans = new Map(SHIPPED_PLANS.map((plan) => [plan.name, plan]));
    const readChunk = (data: Uint8Array, extent: { readonly offset: number; readonly length: number }) => readEmbedded(data, extent, trust);
    const readPair = (sidecar: Uint8Array) => readSidecar(sidecar, trust);
    const policies = createUploadPolicySigner(secrets, config.environment);
    const claims = createUploadClaims();
    const concurrentUploads = async (partnerId: string) => plans.get((await stores.getPartner(partnerId))?.plan ?? '')?.concurrentUploads;
    // Known once the partner listener is bound: with port 0 the address of the slots follows it.
    let publicUrl = config.publicUrl ?? '';

    const operations: Operations = {
      partner: {
        authenticate: (apiKey) => authenticate({ environment: config.environment, plans, secrets, stores, clock }, apiKey),
        createUpload: (caller, request) => createUpload({ stores, clock, ids, policies, publicUrl }, caller, request),
        receiveUpload: (uploadId, fields) => receiveUpload({ stores, engine, clock, policies, claims, readEmbedded: readChunk, concurrentUploads }, uploadId, fields),
        verifyUpload: (caller, request) => verifyUpload({ stores, clock, observer, readSidecar: readPair }, caller, request),
      },
      operator: {
        createPartner: (request) => createPartner({ stores, plans, clock, ids }, request),
        createKey: (request) => createKey({ stores, environment: config.environment, secrets, clock, ids }, request),
        issueProof: (request) => issueProof({ stores, assets, engine, signer, clock, ids, observer, readEmbedded: readChunk, readSidecar: readPair }, request),
        readDeliverable: (proofId, part) => readDeliverable({ stores, assets }, proofId, part),
        authority: () => trust.authorities().join(''),
      },
    };

    const probes = createProbes(() => stores.ping());
    const shared = { ids, requestLog, observer, limits: { connections: config.maxConnections }, ...(config.requestIdHeader === undefined ? {} : { requestIdHeader: config.requestIdHeader }) };
    const build = { version: options.version, commit: config.build.commit, deployedAt: config.build.deployedAt ?? Math.floor(clock.now() / 1000), environment: config.environment };
    const partnerListener = createPartnerListener({ ...shared, operations: operations.partner, build });
    const operatorListener = createOperatorListener({ ...shared, operations: operations.operator, token, metrics: telemetry.metrics, ready: probes.ready });
    const operator = await operatorListener.listen(config.operator.port, config.operator.host);
    opened.push(() => operatorListener.close(config.stopGraceMs));
    const partner = await partnerListener.listen(config.partner.port, config.partner.host);
    opened.push(() => partnerListener.close(config.stopGraceMs));
    publicUrl = config.publicUrl ?? `http://127.0.0.1:${partner.port}`;

    const sweeping = setInterval(() => {
      sweepExpired({ stores, clock }).catch((error: unknown) => observer.fault('sweep', error));
    }, SWEEP_MS);
    opened.push(async () => clearInterval(sweeping));
    await writeEndpoints(directory, { partner: partner.port, operator: operator.port });
    opened.push(() => rm(join(directory, ENDPOINTS_FILE), { force: true }));

    for (const name of config.unknown) telemetry.note('setting_unknown', { name });
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
