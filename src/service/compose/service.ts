import { join } from 'node:path';
import { defined } from '../../core/domain/defined.js';
import { createAudioEngine } from '../../core/engine/create-engine.js';
import { isOneDevice } from '../../core/files/device.js';
import { ReportComposer } from '../adapters/composing/report-composer.js';
import { createCredentialReader } from '../adapters/reading/credential-reader.js';
import { Replays } from '../adapters/replaying/replays.js';
import { temporaryDevice } from '../adapters/signing/device.js';
import { keepClockMark, openClock } from '../adapters/system/clock-mark.js';
import type { SteadyClock } from '../adapters/system/steady-clock.js';
import { createIds, systemClock } from '../adapters/system/system.js';
import { TlsFiles } from '../adapters/system/tls-files.js';
import { collectReservations } from '../background/collect.js';
import {
  auditJob,
  collectionJobs,
  fileDigestsJob,
  gatedJobs,
  RESERVATION_SECONDS,
  reminderJob,
} from '../background/jobs.js';
import { ProcessCount } from '../background/process-count.js';
import { replayErasures } from '../background/replay-erasures.js';
import { type PeriodicJob, startJobs } from '../background/scheduler.js';
import { assertKnownSettings, type Config } from '../config/config.js';
import { listen } from '../consumers/listen.js';
import { type RuntimeWarning, runtimeWords } from '../domain/runtime-support.js';
import { ByteBudget, defaultBudgetBytes } from '../http/byte-budget.js';
import { findSignerFault, readIssuingState } from '../operations/issuing/signer-state.js';
import { createOperations, type Operations } from '../operations/operations.js';
import { Devices } from '../operations/system/devices.js';
import { SignerRevocations } from '../operations/system/signer-revocations.js';
import type { Clock, Ids } from '../ports/system.js';
import type { Telemetry, TelemetryParts } from '../telemetry/telemetry.js';
import { assertRestored } from './backup.js';
import { type Build, buildText, commitOf } from './build.js';
import { createCertificateWatch } from './certificate-watch.js';
import { type Disposer, disposedOnFailure, sharedGrace } from './disposer.js';
import { announceEndpoints } from './endpoints-file.js';
import { openOperatorTokens, openSecrets, openSigning, type TokenFile } from './identity.js';
import {
  assetsWithKeys,
  clockJobs,
  contentKeyJob,
  type Infrastructure,
  isStoreShared,
  lookForKeys,
  mirrorJobs,
  openInfrastructure,
  openProbes,
  servedRoutes,
  startEvents,
  stopOnce,
  watchDependencies,
} from './infrastructure.js';
import { hostPort, openListeners } from './listeners.js';
import { becomesLocal } from './local-listener.js';
import { noteRuntime, noteUnknownSettings } from './process.js';
import { openWritableDirectory } from './writable-directory.js';

export interface ServiceOptions extends Build {
  /** The clock. By default the system clock. */
  readonly clock?: Clock;
  /** The source of ids. By default random ids. */
  readonly ids?: Ids;
  readonly logDestination?: TelemetryParts['destination'];
  /** Waits while the listeners drain, in milliseconds. By default a timer. */
  readonly wait?: (ms: number) => Promise<unknown>;
  /** Returns true while the main thread is busy. By default its load is measured. */
  readonly isBusy?: () => boolean;
}

/** A running service. */
export interface Service {
  readonly partner: { readonly port: number; readonly host: string };
  readonly operator: { readonly port: number; readonly host: string };
  readonly operatorToken: string;
  /** The file of the token, and whether this start created it. Undefined if the token is configured. */
  readonly operatorTokenFile: TokenFile | undefined;
  /** Why the service issues nothing, in a sentence for the operator. The service verifies all the same. */
  readonly issuingFault: string | undefined;
  readonly publicUrl: string;
  readonly dataDirectory: string;
  readonly operations: Operations;
  /** The warning about the Node version that runs the service. */
  readonly runtimeWarning: RuntimeWarning | undefined;
  /** True on the first start with a data directory of a version whose default was every address. */
  readonly isNewlyLocal: boolean;
  /**
   * Stops accepting calls, finishes requests in flight within the configured grace time, and closes the
   * store. Safe to call twice.
   */
  stop(): Promise<void>;
  /** Changes the level of the log to the next one. */
  changeLogLevel(): void;
}

const METER_MS = 1000;
/** The interval of storing uses of keys in milliseconds: half of the minute to which `lastUsedAt` is exact. */
const KEY_USES_MS = 30_000;
/** The interval of the checks for a new certificate, in milliseconds. */
const TLS_MS = 10_000;
/** The interval of the looks at the processes of a cluster, a sixth of the life of an entry. */
const PROCESSES_MS = 5000;
const CLOCK_MS = 30_000;
const LAST_JOBS_MS = 1000;
/** The interval of the checks of the certificates' validity, in milliseconds. */
const CERTIFICATES_MS = 600_000;
/** The size of a normal clock correction in milliseconds. Only larger ones are logged. */
const CLOCK_SLACK_MS = 2000;

/**
 * Starts a service from its configuration. If a step fails, everything opened before is closed again.
 * @throws Error with a message for the operator
 */
export async function startService(config: Config, options: ServiceOptions): Promise<Service> {
  assertKnownSettings(config);
  await assertRestored(config);
  return disposedOnFailure(async (disposer) => {
    const isNewlyLocal = await becomesLocal(config);
    const identity = await openIdentity(config, options);
    const { secrets, clock, ids, operatorTokens, signing, tls, watch } = identity;
    const infrastructure = await openInfrastructure(
      {
        config,
        clock,
        secrets,
        build: { version: options.version, commit: commitOf(config, options) },
        ...defined({ logDestination: options.logDestination }),
        routes: servedRoutes(config.environment, 'service'),
      },
      disposer,
    );
    const { telemetry, stores, encrypted, journal, bus, clocks, gate, keyWatch } = infrastructure;
    const { observer } = telemetry;
    const processes = await openProcesses(config, infrastructure, disposer);
    const engines = openEngines(config, identity, telemetry, disposer);
    telemetry.measure({
      engineStats: () => engines.engine.stats(),
      certificates: watch.list,
      processes: () => processes.value,
    });
    await gate.look();
    if (!gate.isClosed) await lookForKeys(infrastructure, config);
    const erasedAgain = await recover(config, clock, infrastructure);
    await engines.start();
    if (config.consumers)
      listen(bus, { stores: encrypted, assets: assetsWithKeys(infrastructure), journal, clock, observer });
    await startEvents(infrastructure, disposer);

    // Set when the partner listener is bound: with port 0, the address of upload slots depends on the bound
    // port.
    let publicUrl = config.publicUrl ?? '';
    const { signer, certificates } = signing;
    const revocations = new SignerRevocations({ stores, secrets: secrets.secrets });
    const { operations, meter, uses } = createOperations({
      ...infrastructure,
      ...engines,
      ...signing,
      environment: config.environment,
      downloads: config.downloads,
      processes: () => processes.value,
      publicUrl: () => publicUrl,
      secrets: secrets.secrets,
      newDevice: (algorithm) =>
        temporaryDevice({ name: 'Sandbox device', clock, random: ids.random, ...defined({ algorithm }) }),
      revocations,
      devices: new Devices({ stores, secrets: secrets.secrets }),
      clock,
      wallClock: identity.wallClock,
      ids,
      observer,
      samplesRate: config.samplesRate,
      largeBytes: config.largeBytes,
    });
    // Runs after the listeners are closed and before the store is closed.
    disposer.add(() => Promise.allSettled([meter.flush(), uses.flush()]));

    const graceMs = sharedGrace(config.stopGraceMs);
    let stopJobs = async (): Promise<void> => undefined;
    // Also runs after the listeners are closed, so that a slow job does not keep them open.
    disposer.add(() => stopJobs());

    const probes = openProbes({ stores, clocks, gate, keyWatch }, config);
    const { pingBucket } = infrastructure;
    const dependencies = watchDependencies(
      { telemetry, pingBucket, ...(config.bus === 'kafka' ? { bus } : {}) },
      probes,
      config,
      config.consumers,
    );
    const { partner, operator, all, renewTls } = await openListeners(
      {
        config,
        graceMs,
        ids,
        telemetry,
        budget: engines.budget,
        operations,
        tokens: operatorTokens.tokens,
        probes,
        missing: () => dependencies.watch.missing,
        issuing: () => readIssuingState({ signer, certificates, revocations, clock }),
        assertOpen: () => {
          gate.assertOpen();
          keyWatch.assertPresent();
        },
        tls,
        build: buildOf(config, options, clock),
        isBusy: options.isBusy,
      },
      disposer,
    );
    publicUrl = config.publicUrl ?? `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${partner.port}`;

    const jobs: PeriodicJob[] = [
      ...identityJobs(config, identity, telemetry),
      ...clockJobs(infrastructure),
      dependencies.job,
      { where: 'processes', everyMs: PROCESSES_MS, run: () => processes.look() },
      ...storeJobs(config, infrastructure, clock),
      { where: 'meter', everyMs: METER_MS, run: () => meter.flush() },
      { where: 'key_uses', everyMs: KEY_USES_MS, run: () => uses.flush() },
    ];
    if (renewTls !== undefined) jobs.push({ where: 'tls', everyMs: TLS_MS, run: () => renewTls(false) });
    // Running jobs get at least one second, even if calls used up the grace time.
    const stopSchedule = startJobs(jobs, observer, () => Math.max(LAST_JOBS_MS, graceMs()));
    stopJobs = async () => {
      await stopSchedule();
      // A failure here loses at most half a minute of the clock mark, so it must not fail the stop.
      await keepClockMark(config.dataDirectory, clock).catch((error: unknown) =>
        observer.fault('clock', error),
      );
    };
    await announceEndpoints(
      config.dataDirectory,
      { partner: partner.port, operator: operator.port, tls: tls !== undefined },
      disposer,
    );

    await noteState(config, identity, infrastructure, revocations);
    if (isNewlyLocal) telemetry.warn('partner_listener_is_local', { setting: 'TAKEMARK_HOST' });
    if (erasedAgain > 0) telemetry.note('erasures_replayed', { count: erasedAgain });
    const fault = await findSignerFault(
      { signer, certificates, revocations },
      Math.floor(clock.now() / 1000),
    );
    const runtimeWarning = noteRuntime(telemetry, clock);
    telemetry.note('started', {
      version: options.version,
      commit: commitOf(config, options),
      environment: config.environment,
      engine: config.engine.kind,
      store: config.store,
      bus: config.bus,
      consumers: config.consumers,
      processes: processes.value,
      publicUrl,
      partner: hostPort(partner),
      operator: hostPort(operator),
      dataDirectory: config.dataDirectory,
      kid: signer.identity.kid,
      ...defined({
        tlsExpiresAt: tls?.identity.expiresAt,
        operatorTokenFile: operatorTokens.file?.path,
        operatorTokenMade: operatorTokens.file?.made,
      }),
    });
    return {
      partner,
      operator,
      issuingFault: fault?.message,
      runtimeWarning,
      isNewlyLocal,
      operatorToken: operatorTokens.tokens[0],
      operatorTokenFile: operatorTokens.file,
      publicUrl,
      dataDirectory: config.dataDirectory,
      operations,
      changeLogLevel: telemetry.changeLogLevel,
      stop: stopOnce({ ...config, ...options }, telemetry, probes, all, disposer),
    };
  });
}

type Identity = Awaited<ReturnType<typeof openIdentity>>;

/** Opens what distinguishes this service from others: its secrets, keys and certificates, and its clock. */
async function openIdentity(config: Config, options: ServiceOptions) {
  // First, so that a directory of another environment is refused before anything is created in it.
  const secrets = await openSecrets(config);
  if (!isStoreShared(config)) await openWritableDirectory('TAKEMARK_JOURNAL_DIR', config.journalDirectory);
  if (config.assetBucket === undefined)
    await openWritableDirectory('TAKEMARK_CONTENT_KEYS_DIR', config.contentKeysDirectory);
  const wallClock = options.clock ?? systemClock;
  const clock = await openClock(config.dataDirectory, wallClock);
  const ids = options.ids ?? createIds(clock);
  const operatorTokens = await openOperatorTokens(config, secrets.shared);
  const signing = await openSigning(config, secrets.shared, clock);
  const tls = config.partner.tls === undefined ? undefined : await TlsFiles.open(config.partner.tls, clock);
  const watch = createCertificateWatch({
    certificates: signing.certificates,
    tls: () => tls?.identity,
    clock,
  });
  return { secrets, wallClock, clock, ids, operatorTokens, signing, tls, watch };
}

/**
 * Registers this process among those that serve, long before it listens, and reads how many there are. A stop removes
 * its entry after the listeners are closed.
 */
async function openProcesses(
  { processes: fixed }: Config,
  { serving, telemetry }: Infrastructure,
  disposer: Disposer,
): Promise<ProcessCount> {
  const processes = new ProcessCount({
    ...defined({ fixed, serving }),
    onChange: (count, former) => telemetry.note('processes_counted', { processes: count, former }),
  });
  // An entry that stays expires by itself.
  disposer.add(() => processes.leave().catch(() => undefined));
  await processes.look();
  return processes;
}

/** Opens what works on the bytes of callers. The reader of credentials starts at once, the engine with `start`. */
function openEngines(
  { engine: { kind, eightLanes, maxUploads, workers }, ingressBytes }: Config,
  { signing: { trust } }: Identity,
  { observer, note }: Telemetry,
  disposer: Disposer,
) {
  const budget = new ByteBudget(ingressBytes ?? defaultBudgetBytes());
  const engine = createAudioEngine({
    kind,
    observer,
    memoryOfOwners: budget,
    eightLanes,
    lanesChosen: ({ lanes, outcome, gain }) =>
      note('engine_lanes', { lanes, outcome, gain: Math.round(gain * 100) / 100 }),
    ...defined({ maxUploads, workers }),
  });
  // Issued files are few, and Node hashes a single file faster than the core. In an engine of its own, the issuing
  // side and partners do not displace each other.
  const issuingEngine = createAudioEngine({
    kind: 'native',
    workers: 1,
    maxUploads: 512,
    slabs: 16,
    // An issued file is often alone, so each of its slabs is a task. Longer slabs make fewer tasks.
    slabBytes: 2 << 20,
    observer,
  });
  const reader = createCredentialReader({ trust, observer, maxWaitingBytes: defaultBudgetBytes() });
  disposer.add(() => reader.stop());
  const replays = new Replays();
  disposer.add(() => replays.stop());
  const composer = new ReportComposer();
  disposer.add(() => composer.stop());
  const readerStarted = reader.start();
  // `start` awaits it, in parallel to other slow steps. Until then a failure must not count as unhandled.
  readerStarted.catch(() => undefined);
  const start = async (): Promise<void> => {
    await readerStarted;
    await Promise.all([engine.start(), issuingEngine.start()]);
    disposer.add(() => Promise.all([engine.stop(), issuingEngine.stop()]));
  };
  return {
    budget,
    engine,
    issuingEngine,
    reader,
    start,
    replay: replays.replay.bind(replays),
    compose: composer.compose.bind(composer),
  };
}

/** Returns the jobs that watch the clock and the certificates. */
function identityJobs(
  { dataDirectory }: Config,
  { clock, watch }: Identity,
  telemetry: Telemetry,
): readonly PeriodicJob[] {
  return [
    {
      where: 'clock',
      everyMs: CLOCK_MS,
      atStart: true,
      run: () => watchClock(dataDirectory, clock, telemetry),
    },
    {
      where: 'certificates',
      everyMs: CERTIFICATES_MS,
      atStart: true,
      run: async () => watch.report(telemetry),
    },
  ];
}

/** Returns the jobs that work on the stores. They wait while the store is being restored. */
function storeJobs(
  config: Config,
  infrastructure: Infrastructure,
  clock: SteadyClock,
): readonly PeriodicJob[] {
  const { stores, unissued, auditor, clocks, fileDigests, gate } = infrastructure;
  const maySweep = (): boolean => clocks?.maySweep() ?? true;
  return gatedJobs(gate, [
    contentKeyJob(infrastructure, config),
    ...mirrorJobs(infrastructure),
    ...collectionJobs({ stores, unissued, clock, maySweep }),
    ...(config.consumers ? [reminderJob({ stores, clock, maySweep })] : []),
    auditJob(auditor, { maySweep }),
    fileDigestsJob(fileDigests),
  ]);
}

/** Logs what the operator should know about the state in which the service starts. */
async function noteState(
  config: Config,
  { secrets, signing: { signer } }: Identity,
  { telemetry, gate }: Infrastructure,
  revocations: SignerRevocations,
): Promise<void> {
  noteUnknownSettings(config, telemetry);
  for (const { path, found } of secrets.exposed)
    telemetry.note(found === 'tightened' ? 'secret_file_tightened' : 'secret_file_readable_by_group', {
      path,
    });
  const { kid } = signer.identity;
  const revocation = await revocations.find(kid);
  if (revocation !== undefined) {
    const { from, reason } = revocation;
    telemetry.note('signer_revoked', { kid, from, reason });
  }
  if (gate.isExported)
    telemetry.warn('store_exported', {
      advice:
        'The store was exported to a cluster, and this service answers no call. To answer calls here again, ' +
        'stop the service and run takemark operator export --resume.',
    });
  else if (gate.isClosed) telemetry.warn('store_put_back');
  if (await keysShareDevice(config))
    telemetry.warn('content_keys_beside_store', {
      directory: config.mirror?.directory ?? config.contentKeysDirectory,
      advice:
        'Every copy of the keys is on the device of the store, so its loss concerns both. Set TAKEMARK_MIRROR_DIR to a directory on another disk.',
    });
}

/** Returns the banner for the person who starts the service. */
export function serviceBanner(
  {
    publicUrl,
    partner,
    operator,
    isNewlyLocal,
    issuingFault,
    runtimeWarning: outdated,
    operatorTokenFile: tokenFile,
    dataDirectory,
  }: Service,
  config: Config,
  build: Build,
): string {
  const { environment, store, partner: settings } = config;
  const made = tokenFile?.made === true ? ' (created now, mode 0600)' : '';
  const token = tokenFile === undefined ? '' : `, token in ${tokenFile.path}${made}`;
  const data =
    store === 'embedded' ? `${dataDirectory} (store, deliverables, signing keys, secrets)` : 'in the cluster';
  const lines = [
    `${buildText(config, build)}, ${environment}`,
    `  partners   ${publicUrl}/v1, listens on ${hostPort(partner)}${settings.isHostDefault && settings.tls === undefined ? ' (only this machine: set TAKEMARK_HOST to change it)' : ''}`,
    `  operators  http://${hostPort(operator)}${token}`,
    `  data       ${data}`,
  ];
  if (issuingFault !== undefined) lines.push(`  signing    ${issuingFault}`);
  if (isNewlyLocal)
    lines.push(
      '  warning    earlier versions accepted connections from other machines here. Without TLS this version',
      '             does so only with TAKEMARK_HOST=0.0.0.0',
    );
  if (outdated !== undefined) lines.push(`  warning    ${runtimeWords(outdated)}`);
  return lines.join('\n');
}

/**
 * Finishes the work that a crash or a restored backup left, before any call is served.
 * @returns the number of proofs that were erased again
 */
async function recover(
  config: Config,
  clock: Clock,
  { encrypted: stores, assets, unissued, journal, marks, gate, clocks, telemetry }: Infrastructure,
): Promise<number> {
  const { observer } = telemetry;
  // A cluster's journal is too long for a start: `takemark operator restore` replays it.
  const erasedAgain = marks === undefined ? await replayErasures({ stores, assets, journal, observer }) : 0;
  if (gate.isClosed) return erasedAgain;
  const graceSeconds = isStoreShared(config) ? RESERVATION_SECONDS : 0;
  if (clocks?.maySweep() ?? true)
    // A failed removal is retried later and must not stop the start.
    await collectReservations({ stores, unissued, clock, graceSeconds }).catch((error: unknown) =>
      observer.fault('collect', error),
    );
  return erasedAgain;
}

function buildOf(config: Config, options: ServiceOptions, clock: Clock) {
  const { environment, build } = config;
  const { deployedAt = Math.floor(clock.now() / 1000) } = build;
  return { version: options.version, commit: commitOf(config, options), deployedAt, environment };
}

/** Reports whether content keys in files are on the device of the store alone. */
async function keysShareDevice(config: Config): Promise<boolean> {
  if (config.assetBucket !== undefined || isStoreShared(config)) return false;
  const store = join(config.dataDirectory, 'store');
  const { contentKeysDirectory, mirror } = config;
  if (!(await isOneDevice(contentKeysDirectory, store))) return false;
  return mirror === undefined || isOneDevice(mirror.directory, store);
}

async function watchClock(directory: string, clock: SteadyClock, telemetry: Telemetry): Promise<void> {
  const behind = clock.behind();
  if (behind > CLOCK_SLACK_MS) telemetry.note('clock_set_back', { seconds: Math.round(behind / 1000) });
  await keepClockMark(directory, clock);
}
