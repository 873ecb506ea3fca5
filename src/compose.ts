/** Puts the service together: the only file that names concrete adapters. */
import { randomBytes } from 'node:crypto';
import { mkdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { openAssetDirectory } from './adapters/assets/directory.js';
import { openAssetBucket } from './adapters/assets/s3.js';
import { type AuthenticatedRows, authenticateRows } from './adapters/cassandra/authenticate-rows.js';
import { migrate as migrateCassandra } from './adapters/cassandra/driver/migrations.js';
import { openCassandraStore } from './adapters/cassandra/store.js';
import { openEmbeddedStore } from './adapters/embedded/store.js';
import { createAuditHeads } from './adapters/journals/audit-heads.js';
import { openErasureJournal } from './adapters/journals/erasure-journal.js';
import { openKafkaBus } from './adapters/kafka/bus.js';
import { createTopics } from './adapters/kafka/topics.js';
import { openLocalBus } from './adapters/local-bus/bus.js';
import { createCredentialReader } from './adapters/reading/credential-reader.js';
import {
  type ClusterIdentity,
  clusterIdentity,
  makeClusterBundle,
  readClusterBundle,
} from './adapters/signing/cluster-bundle.js';
import { createDevice } from './adapters/signing/device.js';
import { keyFiles } from './adapters/signing/key-directory.js';
import { type InstallationOptions, installLeaf, requestLeaf } from './adapters/signing/leaf-installation.js';
import { loadSigning } from './adapters/signing/load-signing.js';
import { initAuthority, issueLeaf } from './adapters/signing/offline-authority.js';
import { loadOperatorToken, OPERATOR_TOKEN_FILE } from './adapters/signing/operator-token.js';
import { openToken, type TokenKey } from './adapters/signing/pkcs11-token.js';
import {
  type BundleRotation,
  ROTATED_PURPOSES,
  rotateClusterBundle,
} from './adapters/signing/rotate-bundle.js';
import { secureFile } from './adapters/signing/secret-file.js';
import { type KeptSecrets, loadSecrets, SECRETS_FILE } from './adapters/signing/secrets.js';
import { keepClockMark, openClock } from './adapters/system/clock-mark.js';
import type { SteadyClock } from './adapters/system/steady-clock.js';
import { createIds, systemClock } from './adapters/system/system.js';
import { TlsFiles } from './adapters/system/tls-files.js';
import { announceDue } from './background/announce-due.js';
import { collectExpired, collectOrphans, collectReservations } from './background/collect.js';
import { acceptRestoredStore, findRestoredStore } from './background/find-restored-store.js';
import { createEventRelay } from './background/relay.js';
import { replayErasures } from './background/replay-erasures.js';
import { type Chore, startChores } from './background/scheduler.js';
import { Authenticator } from './codec/authenticator.js';
import type { Config } from './config.js';
import { erasureConsumer } from './consumers/erasure.js';
import { listen, undamaged } from './consumers/listen.js';
import { type RuntimeWarning, runtimeWarning, runtimeWords } from './domain/runtime-support.js';
import { isRevokedAt } from './domain/signer-revocation.js';
import { createAudioEngine } from './engine/create-engine.js';
import { replaceFile } from './files/durable.js';
import { createOperatorListener, createProbeListener } from './http/operator-listener.js';
import { createPartnerListener } from './http/partner-listener.js';
import { ByteBudget, defaultBudgetBytes } from './http/server/byte-budget.js';
import { type PlainAudio, sealBesideFile, sealInFile } from './operations/issuing/seal-audio.js';
import type { Operations } from './operations/operations.js';
import { createOperations } from './operations/operations.js';
import { SignerRevocations } from './operations/system/signer-revocations.js';
import type { AssetStore } from './ports/assets.js';
import type { AudioEngine } from './ports/audio-engine.js';
import type { DeadLetterReport, EventBus, Replayed } from './ports/bus.js';
import type { Clock } from './ports/clock.js';
import type { Ids } from './ports/ids.js';
import type { AuditHeads, ErasureJournal } from './ports/journals.js';
import type { Observer } from './ports/observer.js';
import type { Secrets } from './ports/secrets.js';
import type { Stores } from './ports/stores.js';
import { createProbes, type Probes } from './telemetry/probes.js';
import { createTelemetry, type Telemetry, type TelemetryParts } from './telemetry/telemetry.js';

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
  /**
   * The certificate that signs is revoked, and not from a later time on: everything is verified, nothing
   * issued.
   */
  readonly signerRevoked: boolean;
  readonly publicUrl: string;
  readonly dataDirectory: string;
  readonly operations: Operations;
  /** What is to be said against the Node that it runs on. */
  readonly runtimeWarning: RuntimeWarning | undefined;
  /**
   * Stops taking work, finishes what is in flight within the configured grace, and closes the store. Safe to
   * call twice.
   */
  stop(): Promise<void>;
}

/** A running process of consumers. */
export interface Consumers {
  readonly operator: { readonly port: number; readonly host: string };
  /** Finishes the batch that is being handled. Safe to call twice. */
  stop(): Promise<void>;
}

/** Where a started service says which ports it bound, for tools on the same machine. */
export const ENDPOINTS_FILE = 'endpoints.json';
const SWEEP_MS = 30_000;
const METER_MS = 1000;
/** Half of the minute to which `lastUsedAt` is exact. */
const KEY_USES_MS = 30_000;
/** How often another certificate is looked for. */
const TLS_MS = 10_000;
const ANNOUNCE_MS = 30_000;
const CLOCK_MS = 30_000;
const SIGNER_MS = 24 * 3_600_000;
/**
 * Before the end of the certificate that signs: time to fetch another one from an authority that is in a
 * safe.
 */
const SIGNER_ENDING_SECONDS = 90 * 86_400;
/** By which a clock is corrected now and then. */
const CLOCK_SLACK_MS = 2000;
/** Of a reserved id, or a deliverable in a bucket that no record names: another process may be issuing it. */
const ORPHAN_GRACE_SECONDS = 3600;
/** Longer than any outage after which a cluster comes back with its data. */
const ORPHAN_WINDOW_SECONDS = 32 * 24 * 3600;
const UNFINISHED_SWEEP_MS = 600_000;
const ORPHAN_SWEEP_MS = 6 * 3_600_000;

/**
 * Starts a service from its configuration. Everything that was opened is closed again when a later step
 * fails.
 * @throws Error with a message for the operator
 */
export async function startService(config: Config, options: ServiceOptions): Promise<Service> {
  const directory = config.dataDirectory;
  const opened = new Opened();
  try {
    // First of all, so that a directory of another environment is refused before anything is made in it.
    const { secrets, shared, complete, exposed } = await openSecrets(config);
    const wallClock = options.clock ?? systemClock;
    const clock = await openClock(directory, wallClock);
    const ids = options.ids ?? createIds(clock);
    const kept =
      config.operator.token === undefined && shared === undefined
        ? await loadOperatorToken({ directory, random: randomBytes })
        : undefined;
    const tokens: readonly [string, ...string[]] =
      config.operator.token !== undefined
        ? [config.operator.token]
        : (shared?.operatorTokens ?? [kept!.token]);
    const token = await tokenOf(config);
    const { signer, trust, notAfter } = await loadSigning({
      directory: join(directory, 'signing'),
      environment: config.environment,
      algorithm: config.signing.algorithm,
      ...(config.signing.files === undefined ? {} : { files: config.signing.files }),
      ...(token === undefined ? {} : { token }),
      ...(shared === undefined
        ? {}
        : { pems: shared.signing, known: [shared.signing, ...shared.knownSigning] }),
      clock,
      random: randomBytes,
    });
    const tls = config.partner.tls === undefined ? undefined : await TlsFiles.open(config.partner.tls);
    let running: AudioEngine | undefined;
    const ground = await openGround({
      config,
      clock,
      secrets,
      complete,
      opened,
      logDestination: options.logDestination,
      engineStats: () => running?.stats(),
      tlsExpiresAt: () => tls?.identity.expiresAt,
      signerNotAfter: notAfter,
    });
    const { telemetry, stores, assets, journal, heads, bus } = ground;
    const { observer, requestLog } = telemetry;
    const engine = createAudioEngine({
      kind: config.engine.kind,
      observer,
      ...(config.engine.maxUploads === undefined ? {} : { maxUploads: config.engine.maxUploads }),
      ...(config.engine.workers === undefined ? {} : { workers: config.engine.workers }),
    });
    running = engine;
    const reader = createCredentialReader({ trust, observer });
    opened.add(() => reader.stop());
    const readerStarted = reader.start();
    // Awaited below, beside everything else that takes time; a failure in between is not unhandled.
    readerStarted.catch(() => undefined);
    const revocations = new SignerRevocations({ stores, secrets });
    const erasedAgain = await replayErasures({ stores, assets, journal, observer });
    await collectReservations({ stores, clock, graceSeconds: isShared(config) ? ORPHAN_GRACE_SECONDS : 0 });
    // A bucket is swept while it is in use, because it may hold any number of files.
    if (config.assetBucket === undefined) await collectOrphans({ stores, assets, shared: false });
    await readerStarted;
    await engine.start();
    opened.add(() => engine.stop());
    if (config.consumers) listen(bus, { stores, assets, clock, observer });
    await startEvents(ground, opened);

    // Known once the partner listener is bound: with port 0 the address of the slots follows it.
    let publicUrl = config.publicUrl ?? '';
    const { environment, downloads } = config;
    const { operations, meter, uses } = createOperations({
      environment,
      downloads,
      publicUrl: () => publicUrl,
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
      processes: config.processes,
    });
    // After the listeners are closed and before the store is.
    opened.add(() => Promise.allSettled([meter.flush(), uses.flush()]));

    const probes = createProbes(() => stores.ping(), {
      waiting: () => stores.countWaiting(),
      limit: config.outboxLimit,
    });
    const common = {
      ids,
      requestLog,
      observer,
      limits: { connections: config.maxConnections },
      trustedProxies: config.trustedProxies,
      budget: new ByteBudget(config.ingressBytes ?? defaultBudgetBytes()),
      ...(config.requestIdHeader === undefined ? {} : { requestIdHeader: config.requestIdHeader }),
    };
    const build = {
      version: options.version,
      commit: config.build.commit,
      deployedAt: config.build.deployedAt ?? Math.floor(clock.now() / 1000),
      environment,
    };
    const partnerListener = createPartnerListener({
      ...common,
      operations: operations.partner,
      build,
      ...(tls === undefined ? {} : { tls: tls.identity }),
    });
    const operatorListener = createOperatorListener({
      ...common,
      operations: operations.operator,
      tokens,
      metrics: telemetry.metrics,
      ready: probes.ready,
      host: config.operator.host,
    });
    const operator = await operatorListener.listen(config.operator.port, config.operator.host);
    opened.add(() => operatorListener.close(config.stopGraceMs));
    const partner = await partnerListener.listen(config.partner.port, config.partner.host);
    opened.add(() => partnerListener.close(config.stopGraceMs));
    publicUrl = config.publicUrl ?? `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${partner.port}`;

    const renewTls = async (always: boolean): Promise<void> => {
      const identity = await tls?.renew({ always });
      if (identity === undefined) return;
      partnerListener.renewTls(identity);
      telemetry.note('tls_renewed', { expiresAt: identity.expiresAt });
    };
    if (tls !== undefined) {
      const onHangup = (): void =>
        void renewTls(true).catch((error: unknown) => observer.fault('tls', error));
      process.on('SIGHUP', onHangup);
      opened.add(async () => process.off('SIGHUP', onHangup));
    }

    const chores: Chore[] = [
      {
        where: 'clock',
        everyMs: CLOCK_MS,
        atStart: true,
        run: () => watchClock(directory, clock, telemetry),
      },
      {
        where: 'signer',
        everyMs: SIGNER_MS,
        atStart: true,
        run: async () => watchSigner(notAfter, clock, telemetry),
      },
      ...sharedChores(config, clock, ground),
      { where: 'meter', everyMs: METER_MS, run: () => meter.flush() },
      { where: 'key_uses', everyMs: KEY_USES_MS, run: () => uses.flush() },
      ...(tls === undefined ? [] : [{ where: 'tls', everyMs: TLS_MS, run: () => renewTls(false) }]),
      ...(config.consumers ? [announcing(clock, ground)] : []),
    ];
    // What the last half minute's mark lacks is not worth a stop that fails.
    opened.add(() =>
      keepClockMark(directory, clock).catch((error: unknown) => observer.fault('clock', error)),
    );
    opened.add(startChores(chores, observer, config.stopGraceMs));
    await writeEndpoints(directory, { partner: partner.port, operator: operator.port });
    opened.add(() => rm(join(directory, ENDPOINTS_FILE), { force: true }));

    for (const name of config.unknown) telemetry.note('setting_unknown', { name });
    for (const { path, found } of exposed)
      telemetry.note(found === 'tightened' ? 'secret_file_tightened' : 'secret_file_readable_by_group', {
        path,
      });
    const revocation = await revocations.find(signer.identity.kid);
    if (revocation !== undefined)
      telemetry.note('signer_revoked', {
        kid: signer.identity.kid,
        from: revocation.from,
        reason: revocation.reason,
      });
    if (erasedAgain > 0) telemetry.note('erasures_replayed', { count: erasedAgain });
    const outdated = noteRuntime(telemetry, clock);
    telemetry.note('started', {
      version: options.version,
      environment,
      engine: config.engine.kind,
      store: config.store,
      bus: config.bus,
      consumers: config.consumers,
      publicUrl,
      partner: `${partner.host}:${partner.port}`,
      operator: `${operator.host}:${operator.port}`,
      dataDirectory: directory,
      kid: signer.identity.kid,
      ...(tls === undefined ? {} : { tlsExpiresAt: tls.identity.expiresAt }),
      ...(kept === undefined ? {} : { operatorTokenFile: kept.path, operatorTokenMade: kept.made }),
    });
    const stop = stopOnce(telemetry, probes, opened);
    return {
      partner,
      operator,
      signerRevoked: isRevokedAt(revocation, Math.floor(clock.now() / 1000)),
      runtimeWarning: outdated,
      operatorToken: tokens[0],
      operatorTokenFile: kept,
      publicUrl,
      dataDirectory: directory,
      operations,
      stop,
    };
  } catch (error) {
    await opened.closeAll().catch(() => undefined);
    throw error;
  }
}

/** What a person who starts it is told. */
export function serviceWords(
  {
    publicUrl,
    operator,
    signerRevoked,
    runtimeWarning: outdated,
    operatorTokenFile: tokenFile,
    dataDirectory,
  }: Service,
  { environment, store }: Config,
  version: string,
): string {
  return `Takemark ${version}, ${environment}
  partners   ${publicUrl}/v1
  operators  http://${operator.host}:${operator.port}${tokenFile === undefined ? '' : `, token in ${tokenFile.path}${tokenFile.made ? ' (made now, mode 0600)' : ''}`}
  data       ${store === 'embedded' ? `${dataDirectory}: store, deliverables, signing keys, secrets` : 'in the cluster'}${signerRevoked ? '\n  signing    the certificate that signs is revoked: nothing is issued (takemark operator signing list)' : ''}${outdated === undefined ? '' : `\n  warning    ${runtimeWords(outdated)}`}`;
}

function noteRuntime(telemetry: Telemetry, clock: Clock): RuntimeWarning | undefined {
  const warning = runtimeWarning(process.version, clock.now());
  if (warning !== undefined) telemetry.note('runtime_outdated', { ...warning });
  return warning;
}

/**
 * Behind `takemark consumers`: the consumers of a cluster in a process of their own, any number of them. It
 * serves metrics and probes alone.
 * @throws Error with a message for the operator
 */
export async function startConsumers(config: Config, options: ServiceOptions): Promise<Consumers> {
  if (!isShared(config) || config.bus !== 'kafka')
    throw new Error(
      'consumers of their own need TAKEMARK_STORE=cassandra and TAKEMARK_BUS=kafka; without them the service runs its own',
    );
  const clock = options.clock ?? systemClock;
  const ids = options.ids ?? createIds(clock);
  const opened = new Opened();
  try {
    const { secrets } = await openSecrets(config);
    const ground = await openGround({
      config,
      clock,
      secrets,
      opened,
      logDestination: options.logDestination,
    });
    const { telemetry, stores, assets, bus } = ground;
    const { observer, requestLog } = telemetry;
    listen(bus, { stores, assets, clock, observer });
    await startEvents(ground, opened);
    const probes = createProbes(() => stores.ping(), {
      waiting: () => stores.countWaiting(),
      limit: config.outboxLimit,
    });
    const listener = createProbeListener({
      ids,
      requestLog,
      observer,
      metrics: telemetry.metrics,
      ready: probes.ready,
      host: config.operator.host,
    });
    const operator = await listener.listen(config.operator.port, config.operator.host);
    opened.add(() => listener.close(config.stopGraceMs));
    opened.add(
      startChores(
        [...sharedChores(config, clock, ground), announcing(clock, ground)],
        observer,
        config.stopGraceMs,
      ),
    );
    await writeEndpoints(config.dataDirectory, { operator: operator.port });
    opened.add(() => rm(join(config.dataDirectory, ENDPOINTS_FILE), { force: true }));
    for (const name of config.unknown) telemetry.note('setting_unknown', { name });
    noteRuntime(telemetry, clock);
    telemetry.note('consumers_started', {
      version: options.version,
      environment: config.environment,
      operator: `${operator.host}:${operator.port}`,
    });
    return { operator, stop: stopOnce(telemetry, probes, opened) };
  } catch (error) {
    await opened.closeAll().catch(() => undefined);
    throw error;
  }
}

/** What has to be closed, the last one first. */
class Opened {
  readonly #closings: (() => Promise<unknown>)[] = [];

  add(close: () => Promise<unknown>): void {
    this.#closings.push(close);
  }

  /** All of it, whatever fails. @throws what the first of those that failed threw, at the end */
  async closeAll(): Promise<void> {
    const failures: unknown[] = [];
    for (const close of this.#closings.splice(0).reverse())
      await close().catch((error: unknown) => failures.push(error));
    if (failures.length > 0) throw failures[0];
  }
}

function stopOnce(telemetry: Telemetry, probes: Probes, opened: Opened): () => Promise<void> {
  let stopping: Promise<void> | undefined;
  const stop = async (): Promise<void> => {
    probes.stopping();
    telemetry.note('stopping');
    await opened.closeAll();
  };
  return () => (stopping ??= stop());
}

/** Whether other processes are at work on the same store. */
function isShared({ store }: Config): boolean {
  return store === 'cassandra';
}

interface OpenedSecrets extends KeptSecrets {
  readonly shared: ClusterIdentity | undefined;
  /** Secret files that others than their owner could read. */
  readonly exposed: readonly { readonly path: string; readonly found: 'tightened' | 'group' }[];
}

async function openSecrets({
  dataDirectory,
  secrets: given,
  environment,
  signing,
}: Config): Promise<OpenedSecrets> {
  await mkdir(dataDirectory, { recursive: true, mode: 0o700 });
  const files = [SECRETS_FILE, OPERATOR_TOKEN_FILE].map((name) => join(dataDirectory, name));
  if (given !== undefined && 'file' in given) files.push(given.file);
  if (signing.files?.key !== undefined) files.push(signing.files.key);
  if (signing.pkcs11 !== undefined && 'file' in signing.pkcs11.pin) files.push(signing.pkcs11.pin.file);
  const exposed: OpenedSecrets['exposed'][number][] = [];
  for (const path of [...files, ...(await keyFiles(join(dataDirectory, 'signing')))]) {
    const found = await secureFile(path);
    if (found !== 'sound') exposed.push({ path, found });
  }
  const shared =
    given === undefined
      ? undefined
      : 'file' in given
        ? await readClusterBundle(given.file, environment)
        : clusterIdentity(given.text, 'TAKEMARK_SECRETS', environment);
  if (shared !== undefined) return { secrets: shared.secrets, complete: undefined, shared, exposed };
  return {
    ...(await loadSecrets({ directory: dataDirectory, environment, random: randomBytes })),
    shared,
    exposed,
  };
}

/** @param notAfter unix seconds at which the certificate that signs ends */
function watchSigner(notAfter: number, clock: Clock, telemetry: Telemetry): void {
  const left = notAfter - Math.floor(clock.now() / 1000);
  if (left < SIGNER_ENDING_SECONDS)
    telemetry.note('signer_ending', { notAfter, days: Math.max(0, Math.floor(left / 86_400)) });
}

/** Undefined where keys are in files. */
async function tokenOf({ signing: { pkcs11 } }: Config): Promise<TokenKey | undefined> {
  if (pkcs11 === undefined) return undefined;
  const { pin, ...token } = pkcs11;
  return openToken({
    ...token,
    pin: 'text' in pin ? pin.text : (await readFile(pin.file, 'utf8')).split(/\r?\n/)[0]!,
  });
}

async function watchClock(directory: string, clock: SteadyClock, telemetry: Telemetry): Promise<void> {
  const behind = clock.behind();
  if (behind > CLOCK_SLACK_MS) telemetry.note('clock_set_back', { seconds: Math.round(behind / 1000) });
  await keepClockMark(directory, clock);
}

/** Codes of a purpose of their own, of this environment alone. */
function authenticatorOf(secrets: Secrets, purpose: 'event' | 'row', { environment }: Config): Authenticator {
  return new Authenticator(
    { current: () => secrets.current(purpose), find: (id) => secrets.find(purpose, id) },
    environment,
  );
}

/** What every kind of process stands on. */
interface Ground {
  readonly telemetry: Telemetry;
  readonly stores: Stores;
  readonly assets: AssetStore;
  readonly journal: ErasureJournal;
  readonly heads: AuditHeads;
  readonly bus: EventBus;
}

interface GroundParts {
  readonly config: Config;
  readonly clock: Clock;
  readonly secrets: Secrets;
  readonly complete?: KeptSecrets['complete'];
  readonly opened: Opened;
  readonly logDestination: TelemetryParts['destination'] | undefined;
  readonly engineStats?: NonNullable<TelemetryParts['engineStats']>;
  readonly tlsExpiresAt?: NonNullable<TelemetryParts['tlsExpiresAt']>;
  readonly signerNotAfter?: number;
}

async function openGround({
  config,
  clock,
  secrets,
  complete,
  opened,
  logDestination,
  engineStats,
  tlsExpiresAt,
  signerNotAfter,
}: GroundParts): Promise<Ground> {
  let stores: Stores | undefined;
  let bus: EventBus | undefined;
  const telemetry = createTelemetry({
    level: config.logLevel,
    eventsWaiting: () => stores?.countWaiting(),
    eventsBehind: () => bus?.lag() ?? new Map(),
    ...(engineStats === undefined ? {} : { engineStats }),
    ...(tlsExpiresAt === undefined ? {} : { tlsExpiresAt }),
    ...(signerNotAfter === undefined ? {} : { signerNotAfter }),
    ...(logDestination === undefined ? {} : { destination: logDestination }),
  });
  opened.add(async () => telemetry.flush());
  if (config.acceptUnauthenticated) telemetry.warn('unauthenticated_accepted');
  for (const server of config.plainServers) telemetry.warn('server_without_tls', { server });
  const kept = await openStores(
    config,
    { secrets, adoptFormerRows: complete !== undefined, telemetry },
    opened,
  );
  stores = kept.stores;
  // The store is this process's own from here on, and has no rows without codes.
  await complete?.();
  const journal = await openJournal(config, secrets);
  opened.add(() => journal.close());
  const assets = await openAssets(config, opened);
  const carrier = await openBus(config, secrets, clock, telemetry.observer);
  bus = carrier;
  opened.add(() => carrier.close());
  return { telemetry, ...kept, assets, journal, bus: carrier };
}

/** The bus delivers, and what waits in the outbox goes out. */
async function startEvents({ stores, bus, telemetry }: Ground, opened: Opened): Promise<void> {
  await bus.start();
  const relay = createEventRelay({ stores, bus, observer: telemetry.observer });
  relay.start();
  opened.add(() => relay.stop());
}

function sharedChores(config: Config, clock: Clock, { stores, assets }: Ground): readonly Chore[] {
  return [
    { where: 'sweep', everyMs: SWEEP_MS, run: () => collectExpired({ stores, clock }) },
    // A process that owns its store has swept at its start.
    ...(isShared(config)
      ? [
          {
            where: 'sweep',
            everyMs: UNFINISHED_SWEEP_MS,
            run: () => collectReservations({ stores, clock, graceSeconds: ORPHAN_GRACE_SECONDS }),
          },
        ]
      : []),
    ...(config.assetBucket === undefined
      ? []
      : [
          {
            where: 'sweep',
            everyMs: ORPHAN_SWEEP_MS,
            atStart: true,
            run: () => collectOrphans({ stores, assets, shared: true }),
          },
        ]),
  ];
}

function announcing(clock: Clock, { stores }: Ground): Chore {
  return {
    where: 'retention',
    everyMs: ANNOUNCE_MS,
    atStart: true,
    run: () => announceDue({ stores, clock }),
  };
}

async function openBus(
  config: Config,
  secrets: Secrets,
  clock: Clock,
  observer: Observer,
): Promise<EventBus> {
  const { bus, kafka, dataDirectory, acceptUnauthenticated } = config;
  const authenticator = authenticatorOf(secrets, 'event', config);
  const onDeadLetter: DeadLetterReport = (topic) => observer.events(topic, 'dead', 1);
  if (bus === 'embedded')
    return openLocalBus({
      directory: join(dataDirectory, 'dead-letters'),
      authenticator,
      acceptWithoutMac: acceptUnauthenticated,
      clock,
      onDeadLetter,
    });
  if (kafka === undefined) throw new Error('no Kafka brokers are configured');
  return openKafkaBus({
    ...kafka,
    authenticator,
    acceptWithoutMac: acceptUnauthenticated,
    group: kafka.prefix,
    onFault: (where, error) => observer.fault(where, error),
    onDeadLetter,
  });
}

/**
 * Where many processes erase, the topic of erasures is the journal: it is kept for ever, and apart from the
 * store.
 */
async function openJournal(config: Config, secrets: Secrets): Promise<ErasureJournal> {
  if (!isShared(config) || config.bus !== 'kafka')
    return openErasureJournal({ directory: config.journalDirectory, secrets });
  return { record: async () => undefined, read: async function* () {}, close: async () => undefined };
}

async function openAssets({ dataDirectory, assetBucket }: Config, opened: Opened): Promise<AssetStore> {
  if (assetBucket === undefined) return openAssetDirectory({ directory: join(dataDirectory, 'assets') });
  const assets = await openAssetBucket({
    ...assetBucket,
    spoolDirectory: join(dataDirectory, 'spool'),
    sweepGraceSeconds: ORPHAN_GRACE_SECONDS,
    sweepWindowSeconds: ORPHAN_WINDOW_SECONDS,
  });
  opened.add(async () => assets.close());
  return assets;
}

interface StoreParts {
  readonly secrets: Secrets;
  readonly adoptFormerRows: boolean;
  readonly telemetry: Pick<Telemetry, 'note' | 'observer'>;
}

async function openStores(
  config: Config,
  { secrets, adoptFormerRows, telemetry }: StoreParts,
  opened: Opened,
): Promise<{ readonly stores: Stores; readonly heads: AuditHeads }> {
  const {
    store,
    cassandra,
    dataDirectory,
    journalDirectory,
    outboxLimit,
    acceptUnauthenticated,
    acceptPutBack: accepted,
  } = config;
  const authenticator = authenticatorOf(secrets, 'row', config);
  const { key } = secrets.current('audit');
  if (store === 'embedded') {
    const heads = createAuditHeads({ directory: journalDirectory, secrets });
    opened.add(() => heads.close());
    const stores = await openEmbeddedStore({
      directory: join(dataDirectory, 'store'),
      audit: { key, heads },
      authenticator,
      adoptFormerRows: adoptFormerRows || acceptUnauthenticated,
      onDamage: (error) => telemetry.observer.fault('store', error),
      outboxLimit,
    });
    opened.add(() => stores.close());
    const found = await findRestoredStore({ stores, heads });
    if (found !== undefined) {
      const partners = found.behind.length;
      if (accepted !== found.code) {
        throw new Error(
          `The store is older than the heads of its audit logs: the logs of ${partners} partner${partners === 1 ? '' : 's'} lack entries that were there. It was put back from a backup, or changed by somebody. It knows no key that was revoked and no proof that was issued since; erasures are repeated from their journal. If you put it back, start once with TAKEMARK_ACCEPT_PUT_BACK=${found.code}; the code is for this state alone.`,
        );
      }
      await acceptRestoredStore(heads, found);
      telemetry.note('store_put_back', { partners });
    }
    return { stores, heads };
  }
  if (cassandra === undefined) throw new Error('no Cassandra nodes are configured');
  // The heads of a cluster's audit logs are the cluster's, too: no file of one process could hold them.
  const stores = await openCassandraStore({
    ...cassandra,
    audit: { key },
    authenticator,
    acceptUnauthenticated,
    outboxLimit,
  });
  opened.add(() => stores.close());
  return { stores, heads: stores.heads };
}

/**
 * Behind `takemark operator migrate`: makes the keyspace and brings its schema up to date, and makes the
 * topics. Where unauthenticated rows are accepted, those of a version that made no codes are given theirs.
 * @returns names of what was new
 * @throws Error with a message for the operator
 */
export async function migrate(config: Config): Promise<{
  readonly applied?: readonly string[];
  readonly topics?: readonly string[];
  readonly rows?: AuthenticatedRows;
}> {
  const { cassandra, kafka, acceptUnauthenticated, secrets: given } = config;
  if (cassandra === undefined && kafka === undefined)
    throw new Error(
      'TAKEMARK_CASSANDRA and TAKEMARK_CASSANDRA_DC say where the store is, TAKEMARK_KAFKA where the bus is',
    );
  return {
    ...(cassandra === undefined ? {} : { applied: await migrateCassandra(cassandra) }),
    ...(kafka === undefined ? {} : { topics: await createTopics(kafka) }),
    ...(cassandra === undefined || !acceptUnauthenticated || given === undefined
      ? {}
      : {
          rows: await authenticateRows(
            cassandra,
            authenticatorOf((await openSecrets(config)).secrets, 'row', config),
          ),
        }),
  };
}

/**
 * Behind `takemark operator erasures replay`: every erasure that the bus keeps, to the consumer of erasures,
 * directly over the cluster's servers.
 */
export async function replayErasureTopic(
  config: Config,
  options: Pick<ServiceOptions, 'clock' | 'logDestination'> = {},
): Promise<Replayed> {
  if (config.bus !== 'kafka')
    throw new Error(
      'erasures are replayed from Kafka: TAKEMARK_BUS=kafka; a single service replays its journal at every start',
    );
  const clock = options.clock ?? systemClock;
  const opened = new Opened();
  try {
    const { secrets } = await openSecrets(config);
    const { stores, assets, bus } = await openGround({
      config: { ...config, logLevel: 'silent' },
      clock,
      secrets,
      opened,
      logDestination: options.logDestination,
    });
    return await bus.replay('erasure', undamaged(erasureConsumer({ stores, assets, clock })));
  } finally {
    await opened.closeAll();
  }
}

/**
 * Behind `takemark operator secrets rotate`.
 * @param bundle text and name of the bundle that is in use
 * @returns the text of the next bundle
 * @throws Error with a message for the operator
 */
export function rotateSecrets(
  { environment, signing }: Config,
  bundle: { readonly text: string; readonly name: string },
  rotation: Pick<BundleRotation, 'step' | 'early'> & { readonly purposes?: readonly string[] | undefined },
  clock: Clock = systemClock,
): string {
  const purposes = rotation.purposes?.map((name) => {
    const purpose = ROTATED_PURPOSES.find((known) => known === name);
    if (purpose === undefined)
      throw new Error(`there is no secret for ${name}; there are ${ROTATED_PURPOSES.join(', ')}`);
    return purpose;
  });
  return rotateClusterBundle(bundle.text, bundle.name, {
    ...rotation,
    purposes,
    environment,
    algorithm: signing.algorithm,
    clock,
    random: randomBytes,
  });
}

/** Behind `takemark operator secrets init`: the text of a new bundle for a cluster. */
export function makeSecrets({ environment, signing }: Config): string {
  return makeClusterBundle({
    environment,
    algorithm: signing.algorithm,
    clock: systemClock,
    random: randomBytes,
  });
}

/** Behind `takemark operator signing request`: PEM. */
export async function requestSigningLeaf(config: Config): Promise<string> {
  return requestLeaf(await installationOf(config));
}

/** Behind `takemark operator signing install`. Times in unix seconds. */
export async function installSigningLeaf(
  config: Config,
  pem: string,
): Promise<{ readonly kid: string; readonly notAfter: number; readonly former?: string }> {
  const { notAfter, ...installed } = await installLeaf(await installationOf(config), pem);
  return { ...installed, notAfter: secondsOf(notAfter) };
}

/** Behind `takemark authority init`: PEM of the new authority. */
export function initSigningAuthority({ environment }: Config, directory: string): Promise<string> {
  return initAuthority({ directory, environment, clock: systemClock, random: randomBytes });
}

/** Behind `takemark authority issue`. Times in unix seconds. */
export async function issueSigningLeaf(
  { environment }: Config,
  directory: string,
  request: string,
  days: number,
) {
  const leaf = await issueLeaf(
    { directory, environment, clock: systemClock, random: randomBytes },
    request,
    days,
  );
  return { ...leaf, notBefore: secondsOf(leaf.notBefore), notAfter: secondsOf(leaf.notAfter) };
}

async function installationOf(config: Config): Promise<InstallationOptions> {
  const token = await tokenOf(config);
  return {
    directory: join(config.dataDirectory, 'signing'),
    environment: config.environment,
    algorithm: config.signing.algorithm,
    ...(token === undefined ? {} : { token }),
    clock: systemClock,
  };
}

function secondsOf(date: Date): number {
  return Math.floor(date.getTime() / 1000);
}

async function writeEndpoints(
  directory: string,
  endpoints: { readonly partner?: number; readonly operator: number },
): Promise<void> {
  await replaceFile(join(directory, ENDPOINTS_FILE), `${JSON.stringify(endpoints)}\n`);
}

/**
 * The device behind `takemark seal`: an engine and a key of its own, without a service, a store or a network.
 * @param directory where the device's key is kept; it is made on first use
 */
export async function openSealer(directory: string) {
  const signer = await createDevice({
    directory,
    name: 'Local device',
    clock: systemClock,
    random: randomBytes,
  });
  const engine = createAudioEngine({ kind: 'native', workers: 1 });
  await engine.start();
  const deps = { engine, signer, clock: systemClock, random: randomBytes };
  return {
    embed: (audio: PlainAudio) => sealInFile(deps, audio),
    sidecar: (audio: PlainAudio) => sealBesideFile(deps, audio),
    close: () => engine.stop(),
  };
}
