import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { withDeadline } from '../../core/async/deadline.js';
import { defined } from '../../core/domain/defined.js';
import type { Dependency } from '../../core/domain/errors.js';
import { openBucketKeys } from '../adapters/assets/bucket-keys.js';
import { type BucketNotes, openBucketNotes } from '../adapters/assets/bucket-notes.js';
import { openAssetDirectory } from '../adapters/assets/directory.js';
import { openAssetBucket } from '../adapters/assets/s3.js';
import type { ClockWatch } from '../adapters/cassandra/driver/clock-watch.js';
import { openCassandraStore } from '../adapters/cassandra/store.js';
import { openEmbeddedStore } from '../adapters/embedded/store.js';
import { encryptedAssets, unissuedAssets } from '../adapters/encryption/encrypted-assets.js';
import { encryptedStores } from '../adapters/encryption/encrypted-stores.js';
import { keptKeys } from '../adapters/encryption/kept-keys.js';
import { openKeyDirectory } from '../adapters/encryption/key-directory.js';
import { type MirroredKeys, mirroredKeys } from '../adapters/encryption/mirrored-keys.js';
import { createAuditHeads } from '../adapters/journals/audit-heads.js';
import { openErasureJournal } from '../adapters/journals/erasure-journal.js';
import { mirroredErasures, mirroredHeads } from '../adapters/journals/mirrored-journals.js';
import { openKafkaBus } from '../adapters/kafka/bus.js';
import { openLocalBus } from '../adapters/local-bus/bus.js';
import { type FreeSpace, readFreeSpace } from '../adapters/system/free-space.js';
import { Auditor } from '../background/auditor.js';
import { ContentKeyWatch } from '../background/content-key-watch.js';
import { DependencyWatch } from '../background/dependency-watch.js';
import { FileDigests } from '../background/file-digests.js';
import { acceptRestoredStore, findRestoredStore } from '../background/find-restored-store.js';
import { createEventRelay } from '../background/relay.js';
import { RestoreGate } from '../background/restore-gate.js';
import type { PeriodicJob } from '../background/scheduler.js';
import type { Config } from '../config/config.js';
import { isRouteOf, type Route } from '../contract/route.js';
import { ROUTES } from '../contract/routes/routes.js';
import type { Listener } from '../http/server/listener.js';
import type { AssetStore } from '../ports/assets.js';
import type { AuditedStore } from '../ports/audited-store.js';
import type { DeadLetterReport, EventBus } from '../ports/bus.js';
import type { ContentKeys } from '../ports/content-keys.js';
import type {
  AuditHeads,
  ErasureJournal,
  InstallationMarks,
  InstallationRow,
  OwnAuditHeads,
} from '../ports/journals.js';
import type { MoveSource, MoveTarget } from '../ports/moved-rows.js';
import type { Observer } from '../ports/observer.js';
import type { Secrets } from '../ports/secrets.js';
import type { ServingProcesses } from '../ports/serving-processes.js';
import type { SnapshotSource } from '../ports/store-snapshot.js';
import type { Stores } from '../ports/stores.js';
import type { Clock } from '../ports/system.js';
import type { DirectorySpace } from '../telemetry/gauges.js';
import { createProbes, type Probes } from '../telemetry/probes.js';
import { createTelemetry, type Telemetry, type TelemetryParts } from '../telemetry/telemetry.js';
import type { Disposer } from './disposer.js';
import { admitServers } from './doctor.js';
import { isExported } from './export-mark.js';
import { authenticatorOf, type OpenedSecrets } from './identity.js';

const CLOCKS_MS = 30_000;
/** The interval in milliseconds of the checks of dependencies that do not end readiness. */
const DEPENDENCIES_MS = 10_000;
/** The interval in milliseconds of the comparisons of content keys and store. */
const KEYS_MS = 10_000;
/** The time in milliseconds in which a file system must report its free space. */
const SPACE_MS = 1000;

/** How an operator gets back to a version that refuses the new format of the store. */
const WAY_BACK =
  'Earlier versions refuse this store. To go back, stop the service, replace the data directory with a copy from before this start, and start the earlier version.';

/** Adapters and reports that every kind of process needs. */
/** The records per second to which the digests of their files are added. It is the default rate of the auditor. */
const FILE_DIGESTS_PER_SECOND = 100;

export interface Infrastructure {
  readonly telemetry: Telemetry;
  readonly stores: Stores;
  /**
   * The same stores without decryption of proof contents. They serve work that needs no content, so that an
   * erasure works even if the key is gone.
   */
  readonly encrypted: Stores;
  readonly assets: AssetStore;
  /** The files of ids without an issued proof. */
  readonly unissued: Pick<AssetStore, 'delete'>;
  readonly keys: ContentKeys;
  /** The content keys in two directories. Undefined if there is one directory, or a bucket. */
  readonly mirrored: MirroredKeys | undefined;
  readonly journal: ErasureJournal;
  readonly heads: AuditHeads;
  readonly bus: EventBus;
  readonly audited: AuditedStore;
  /** The source of snapshots. Undefined if the store is shared. */
  readonly snapshots: SnapshotSource | undefined;
  /** The store as the source of a move. Undefined if the store is shared. */
  readonly moveSource: MoveSource | undefined;
  /** The store as the target of a move. Undefined for an embedded store. */
  readonly moveTarget: MoveTarget | undefined;
  readonly auditor: Auditor;
  readonly fileDigests: FileDigests;
  /** The clock watch. Undefined if the store has no servers. */
  readonly clocks: ClockWatch | undefined;
  /** The progress that the store records. Undefined for an embedded store. */
  readonly installation: InstallationRow | undefined;
  /** The processes that serve partners. Undefined for a single process. */
  readonly serving: ServingProcesses | undefined;
  /** The progress that the bucket records. Undefined for a single process. */
  readonly marks: InstallationMarks | undefined;
  readonly gate: RestoreGate;
  readonly keyWatch: ContentKeyWatch;
  /** Resolves when the bucket answers. Undefined if assets are in a directory. */
  readonly pingBucket: (() => Promise<void>) | undefined;
}

export interface InfrastructureParts {
  readonly config: Config;
  readonly clock: Clock;
  readonly secrets: Pick<OpenedSecrets, 'secrets' | 'complete'>;
  readonly build?: TelemetryParts['build'];
  readonly logDestination?: TelemetryParts['destination'];
  /** The routes that the process serves. None by default. */
  readonly routes?: TelemetryParts['routes'];
  /** False for a tool that must work with any server settings. True by default. */
  readonly admits?: boolean;
}

/** Returns true if other processes use the same store. */
export function isStoreShared({ store }: Config): boolean {
  return store === 'cassandra';
}

/** @throws Error with a message for the operator */
export async function openInfrastructure(
  {
    config,
    clock,
    secrets: { secrets, complete },
    build,
    logDestination,
    routes,
    admits = true,
  }: InfrastructureParts,
  disposer: Disposer,
): Promise<Infrastructure> {
  // Telemetry is created first, because the store reports damaged records to it.
  const telemetry = createTelemetry({
    level: config.logLevel,
    logFormat: config.logFormat,
    logsAddresses: config.logsAddresses,
    ...defined({ build, routes, destination: logDestination }),
  });
  disposer.add(async () => telemetry.flush());
  if (config.acceptUnauthenticated) telemetry.warn('unauthenticated_accepted');
  for (const server of config.plainServers) telemetry.warn('server_without_tls', { server });
  if (admits && isStoreShared(config)) await admitServers(config, telemetry);
  const { stores: encrypted, ...opened } = await openStores(
    config,
    { secrets, adoptFormerRows: complete !== undefined, telemetry, clock },
    disposer,
  );
  const { audited, clocks, installation: row } = opened;
  // From here on, this process owns the store, and the store has no rows without a MAC.
  await complete?.();
  const notes = openNotes(config, secrets);
  const journal = notes?.journal ?? (await openOwnJournal(config, secrets));
  disposer.add(() => journal.close());
  const { keys: uncachedKeys, mirrored } = await openContentKeys(config, disposer);
  const keys = keptKeys(uncachedKeys);
  const { files, ping } = await openAssets(config, disposer);
  const assets = encryptedAssets(files, keys);
  const bus = await openBus(config, secrets, clock, telemetry.observer);
  disposer.add(() => bus.close());
  const marks = notes?.marks;
  const gate = new RestoreGate(row && marks && { row, marks }, await isExported(config));
  const readable = encryptedStores(encrypted, keys);
  const auditor = new Auditor({
    stores: readable,
    assets,
    keys,
    audited,
    clock,
    rate: config.auditRate,
    onFindings: (kind, count) => telemetry.warn('audit_finding', { kind, count }),
  });
  telemetry.measure({
    eventsWaiting: () => encrypted.countWaiting(),
    lag: () => bus.lag(),
    audit: () => auditor.report,
    ...defined({ clocks: clocks && (() => clocks) }),
  });
  return {
    telemetry,
    ...opened,
    stores: readable,
    encrypted,
    assets,
    unissued: unissuedAssets(files, keys),
    keys,
    mirrored,
    journal,
    marks,
    gate,
    keyWatch: new ContentKeyWatch({ stores: readable, audited, keys: uncachedKeys, clock }),
    bus,
    auditor,
    fileDigests: new FileDigests({ stores: readable, encrypted, audited, rate: FILE_DIGESTS_PER_SECOND }),
    pingBucket: ping,
  };
}

/** Starts the delivery of events and the publishing of waiting outbox events. */
export async function startEvents(
  { stores, bus, telemetry }: Pick<Infrastructure, 'stores' | 'bus' | 'telemetry'>,
  disposer: Disposer,
): Promise<void> {
  await bus.start();
  const relay = createEventRelay({ stores, bus, observer: telemetry.observer });
  relay.start();
  telemetry.measure({
    oldestEventAge: () => {
      const at = relay.oldestAt();
      return at === undefined ? undefined : Math.max(0, Date.now() / 1000 - at);
    },
  });
  disposer.add(() => relay.stop());
}

/**
 * Creates the probes of a process. Only waiting erasure events count against the outbox limit: a process that
 * must refuse charges still accepts erasures.
 * @param bus given if the process is useless without its bus
 */
export function openProbes(
  {
    stores,
    clocks,
    gate,
    keyWatch,
    bus,
  }: Pick<Infrastructure, 'stores' | 'clocks' | 'gate' | 'keyWatch'> & Partial<Pick<Infrastructure, 'bus'>>,
  { outboxLimit }: Config,
): Probes {
  const probes = createProbes({
    store: () => stores.ping(),
    outbox: { waiting: () => stores.countWaiting('erasure'), limit: outboxLimit },
    isClockRight: () => clocks?.isRight ?? true,
    ...defined({ bus: bus && (() => bus.ping()) }),
  });
  return {
    ...probes,
    ready: async () => {
      gate.assertOpen();
      keyWatch.assertPresent();
      await probes.ready();
    },
  };
}

/** Returns the routes of a process in the given environment, or only the probes and metrics of consumers. */
export function servedRoutes(environment: string, kind: 'service' | 'consumers'): readonly Route[] {
  const { metrics, livez, readyz } = ROUTES;
  if (kind === 'consumers') return [metrics, livez, readyz];
  return Object.values<Route>(ROUTES).filter((route) => isRouteOf(environment, route));
}

/** Compares the content keys with the store until they match, and logs what has changed. */
export async function lookForKeys(
  { keyWatch, telemetry }: Pick<Infrastructure, 'keyWatch' | 'telemetry'>,
  { acceptLostKeys }: Config,
): Promise<void> {
  if (keyWatch.isSettled) return;
  const { lost: former } = keyWatch;
  await keyWatch.look(acceptLostKeys);
  const { lost } = keyWatch;
  if (lost === undefined && former !== undefined) telemetry.note('content_keys_found');
  if (lost !== undefined && former === undefined)
    telemetry.warn('content_keys_lost', {
      advice: `The content keys are not those of this store. Mount their volume, or correct TAKEMARK_CONTENT_KEYS_DIR or the bucket. If the keys are lost for good, the content of all proofs is lost. To go on with new keys, start once with TAKEMARK_ACCEPT_LOST_KEYS=${lost.code}.`,
    });
}

/**
 * Returns the assets for consumers of erasures. They delete nothing while the content keys are not in their place: no key
 * would be found and destroyed, the erasure would be confirmed, and the key would come back with its volume.
 */
export function assetsWithKeys({
  assets,
  keyWatch,
}: Pick<Infrastructure, 'assets' | 'keyWatch'>): Infrastructure['assets'] {
  return {
    ...assets,
    async delete(proofId) {
      if (keyWatch.lost !== undefined) keyWatch.assertPresent();
      return assets.delete(proofId);
    },
  };
}

/** Returns the job that compares the content keys until they match. */
export function contentKeyJob(
  infrastructure: Pick<Infrastructure, 'keyWatch' | 'telemetry'>,
  config: Config,
): PeriodicJob {
  return { where: 'content_keys', everyMs: KEYS_MS, run: () => lookForKeys(infrastructure, config) };
}

/**
 * Returns the job that aligns both copies of the content keys, once. It waits until the keys are those of the store:
 * keys in a wrong directory must not be copied.
 */
export function mirrorJobs({
  mirrored,
  journal,
  keyWatch,
  telemetry,
}: Pick<Infrastructure, 'mirrored' | 'journal' | 'keyWatch' | 'telemetry'>): readonly PeriodicJob[] {
  if (mirrored === undefined) return [];
  let isAligned = false;
  const align = async (ending: AbortSignal): Promise<void> => {
    if (isAligned || !keyWatch.isSettled) return;
    const { copied, destroyed, different } = await mirrored.align(journal.read(), ending);
    if (ending.aborted) return;
    isAligned = true;
    telemetry.note('content_keys_mirrored', { copied, destroyed });
    if (different > 0) telemetry.warn('content_keys_differ', { count: different });
  };
  return [{ where: 'content_keys', everyMs: KEYS_MS, atStart: true, run: align }];
}

/**
 * Watches the dependencies without which the process stays ready, and adds the gauges of its state.
 * @param bus absent if the process is not ready without its bus, or the bus has no servers
 */
export function watchDependencies(
  {
    telemetry,
    pingBucket,
    bus,
  }: Pick<Infrastructure, 'telemetry' | 'pingBucket'> & { readonly bus?: EventBus },
  probes: Probes,
  config: Config,
  runsConsumers: boolean,
): { readonly watch: DependencyWatch; readonly job: PeriodicJob } {
  const asks = new Map<Dependency, () => Promise<void>>();
  if (pingBucket !== undefined) asks.set('bucket', pingBucket);
  if (bus !== undefined) asks.set('kafka', () => bus.ping());
  const watch = new DependencyWatch(asks, {
    missing: (dependency, error) => {
      telemetry.warn('dependency_missing', { dependency });
      telemetry.observer.fault('dependencies', error);
    },
    back: (dependency) => telemetry.note('dependency_back', { dependency }),
  });
  telemetry.measure({
    ready: probes.ready,
    dependencies: () => watch.states,
    space: () => readSpaces(config),
    runsConsumers,
  });
  return {
    watch,
    job: { where: 'dependencies', everyMs: DEPENDENCIES_MS, run: () => watch.look() },
  };
}

/** Returns the free space of the directories of the process. A directory that does not answer is left out. */
async function readSpaces(config: Config): Promise<readonly DirectorySpace[]> {
  const directories = {
    data: config.dataDirectory,
    ...(isStoreShared(config) ? {} : { journals: config.journalDirectory }),
    ...(config.mirror === undefined ? {} : { mirror: config.mirror.directory }),
    ...(config.assetBucket === undefined ? { content_keys: config.contentKeysDirectory } : {}),
  };
  const spaces = await Promise.all(
    Object.entries(directories).map(async ([directory, path]): Promise<readonly DirectorySpace[]> => {
      const free = await withDeadline<FreeSpace | undefined>(
        readFreeSpace(path),
        SPACE_MS,
        () => undefined,
      ).catch(() => undefined);
      if (free === undefined) return [];
      const inodes =
        free.inodes === undefined ? [] : [{ directory, resource: 'inodes' as const, free: free.inodes }];
      return [{ directory, resource: 'bytes', free: free.bytes }, ...inodes];
    }),
  );
  return spaces.flat();
}

/** Returns the job that compares the clocks. It logs each wrong clock at every run. */
export function clockJobs({
  clocks,
  telemetry,
}: Pick<Infrastructure, 'clocks' | 'telemetry'>): readonly PeriodicJob[] {
  if (clocks === undefined) return [];
  const look = async (): Promise<void> => {
    for (const difference of await clocks.look()) telemetry.warn('clock_wrong', { ...difference });
  };
  return [{ where: 'clocks', everyMs: CLOCKS_MS, atStart: true, run: look }];
}

/** Returns a function that stops the process once: it ends readiness first and then closes everything. */
export function stopOnce(
  { drainMs, wait = sleep }: Pick<Config, 'drainMs'> & { readonly wait?: (ms: number) => Promise<unknown> },
  telemetry: Telemetry,
  probes: Probes,
  listeners: readonly Pick<Listener, 'drain' | 'endedCalls'>[],
  disposer: Disposer,
): () => Promise<void> {
  let stopping: Promise<void> | undefined;
  const stop = async (): Promise<void> => {
    probes.stopping();
    telemetry.note('stopping', { drainSeconds: drainMs / 1000 });
    for (const listener of listeners) listener.drain();
    // A load balancer that asks /readyz needs this time to notice.
    if (drainMs > 0) await wait(drainMs);
    try {
      await disposer.dispose();
    } finally {
      const calls = listeners.map((listener) => listener.endedCalls());
      telemetry.note('stopped', {
        finished: calls.reduce((sum, { finished }) => sum + finished, 0),
        cut: calls.reduce((sum, { cut }) => sum + cut, 0),
      });
      telemetry.flush();
    }
  };
  return () => (stopping ??= stop());
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
  if (kafka === undefined) throw new Error('TAKEMARK_BUS=kafka needs TAKEMARK_KAFKA');
  return openKafkaBus({
    ...kafka,
    authenticator,
    acceptWithoutMac: acceptUnauthenticated,
    group: kafka.prefix,
    onFault: (where, error) => observer.fault(where, error),
    onDeadLetter,
  });
}

/** Opens the installation's notes in its bucket. Returns undefined for a single process. */
export function openNotes(config: Config, secrets: Secrets): BucketNotes | undefined {
  const { assetBucket, bus } = config;
  if (!isStoreShared(config) || bus !== 'kafka' || assetBucket === undefined) return undefined;
  return openBucketNotes({ ...assetBucket, authenticator: authenticatorOf(secrets, 'audit', config) });
}

async function openAssets(
  { dataDirectory, assetBucket }: Config,
  disposer: Disposer,
): Promise<{ readonly files: AssetStore; readonly ping: Infrastructure['pingBucket'] }> {
  if (assetBucket === undefined)
    return { files: await openAssetDirectory({ directory: join(dataDirectory, 'assets') }), ping: undefined };
  const assets = await openAssetBucket({
    ...assetBucket,
    spoolDirectory: join(dataDirectory, 'spool'),
  });
  disposer.add(async () => assets.close());
  return { files: assets, ping: assets.ping };
}

/** Opens the content keys beside the assets, so that no backup of the store contains either. */
async function openContentKeys(
  { contentKeysDirectory: directory, assetBucket, mirror }: Config,
  disposer: Disposer,
): Promise<Pick<Infrastructure, 'keys' | 'mirrored'>> {
  if (assetBucket !== undefined) {
    const keys = openBucketKeys(assetBucket);
    disposer.add(async () => keys.close());
    return { keys, mirrored: undefined };
  }
  const keys = await openKeyDirectory({ directory });
  if (mirror === undefined) return { keys, mirrored: undefined };
  const mirrored = mirroredKeys(keys, await openKeyDirectory({ directory: mirror.contentKeys }));
  return { keys: mirrored, mirrored };
}

/** Opens the journal of erasures of one machine, with its second copy. */
async function openOwnJournal(
  { journalDirectory, mirror }: Config,
  secrets: Secrets,
): Promise<ErasureJournal> {
  const journal = await openErasureJournal({ directory: journalDirectory, secrets });
  if (mirror === undefined) return journal;
  return mirroredErasures(journal, await openErasureJournal({ directory: mirror.journals, secrets }));
}

/** Creates the heads of the audit logs of one machine, with their second copy. */
function createOwnHeads({ journalDirectory, mirror }: Config, secrets: Secrets): OwnAuditHeads {
  const heads = createAuditHeads({ directory: journalDirectory, secrets });
  if (mirror === undefined) return heads;
  return mirroredHeads(heads, createAuditHeads({ directory: mirror.journals, secrets }));
}

interface StoreParts {
  readonly secrets: Secrets;
  /** True if rows without a MAC come from a version of this service that wrote none. */
  readonly adoptFormerRows: boolean;
  readonly telemetry: Pick<Telemetry, 'note' | 'observer'>;
  readonly clock: Clock;
}

type OpenedStores = Pick<
  Infrastructure,
  | 'stores'
  | 'heads'
  | 'audited'
  | 'snapshots'
  | 'moveSource'
  | 'moveTarget'
  | 'clocks'
  | 'installation'
  | 'serving'
>;

async function openStores(config: Config, parts: StoreParts, disposer: Disposer): Promise<OpenedStores> {
  if (config.store === 'embedded') return openEmbedded(config, parts, disposer);
  const { cassandra, outboxLimit } = config;
  if (cassandra === undefined) throw new Error('TAKEMARK_STORE=cassandra needs TAKEMARK_CASSANDRA');
  // The audit log heads of a cluster are in the cluster too, because processes share no files.
  const stores = await openCassandraStore({
    ...cassandra,
    audit: { key: parts.secrets.current('audit').key },
    authenticator: authenticatorOf(parts.secrets, 'row', config),
    outboxLimit,
    clock: parts.clock,
  });
  disposer.add(() => stores.close());
  const { heads, audited, moveTarget, clocks, installation, serving } = stores;
  return {
    stores,
    heads,
    audited,
    snapshots: undefined,
    moveSource: undefined,
    moveTarget,
    clocks,
    installation,
    serving,
  };
}

async function openEmbedded(
  config: Config,
  { secrets, adoptFormerRows, telemetry }: StoreParts,
  disposer: Disposer,
): Promise<OpenedStores> {
  const heads = createOwnHeads(config, secrets);
  disposer.add(() => heads.close());
  const stores = await openEmbeddedStore({
    directory: join(config.dataDirectory, 'store'),
    audit: { key: secrets.current('audit').key, heads },
    authenticator: authenticatorOf(secrets, 'row', config),
    adoptFormerRows: adoptFormerRows || config.acceptUnauthenticated,
    onDamage: (error) => telemetry.observer.fault('store', error),
    outboxLimit: config.outboxLimit,
    onFormatRaised: (from, to) => telemetry.note('store_format_raised', { from, to, wayBack: WAY_BACK }),
  });
  disposer.add(() => stores.close());
  const restored = await findRestoredStore({ stores, heads });
  if (restored !== undefined) {
    const partners = restored.short.length;
    if (config.acceptPutBack !== restored.code)
      throw new Error(
        `The store is older than the heads of its audit logs: the audit logs of ${partners} partner${partners === 1 ? '' : 's'} lack entries that existed before. Either the store was restored from a backup, or it was changed. Key revocations and proofs that were made after the backup are missing. Erasures are repeated from their journal. If you restored the store, start once with TAKEMARK_ACCEPT_PUT_BACK=${restored.code}. The code accepts only this state of the store.`,
      );
    await acceptRestoredStore(heads, restored);
    telemetry.note('store_put_back', { partners });
  }
  return {
    stores,
    heads,
    audited: stores.audited,
    snapshots: stores,
    moveSource: stores.moveSource,
    moveTarget: undefined,
    clocks: undefined,
    installation: undefined,
    serving: undefined,
  };
}
