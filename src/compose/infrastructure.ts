import { join } from 'node:path';
import { openAssetDirectory } from '../adapters/assets/directory.js';
import { openAssetBucket } from '../adapters/assets/s3.js';
import { openCassandraStore } from '../adapters/cassandra/store.js';
import { openEmbeddedStore } from '../adapters/embedded/store.js';
import { createAuditHeads } from '../adapters/journals/audit-heads.js';
import { openErasureJournal } from '../adapters/journals/erasure-journal.js';
import { openKafkaBus } from '../adapters/kafka/bus.js';
import { openLocalBus } from '../adapters/local-bus/bus.js';
import { acceptRestoredStore, findRestoredStore } from '../background/find-restored-store.js';
import { ORPHAN_GRACE_SECONDS } from '../background/jobs.js';
import { createEventRelay } from '../background/relay.js';
import type { Config } from '../config/config.js';
import { defined } from '../domain/defined.js';
import type { AssetStore } from '../ports/assets.js';
import type { DeadLetterReport, EventBus } from '../ports/bus.js';
import type { AuditHeads, ErasureJournal } from '../ports/journals.js';
import type { Observer } from '../ports/observer.js';
import type { Secrets } from '../ports/secrets.js';
import type { Stores } from '../ports/stores.js';
import type { Clock } from '../ports/system.js';
import { createProbes, type Probes } from '../telemetry/probes.js';
import { createTelemetry, type Telemetry, type TelemetryParts } from '../telemetry/telemetry.js';
import type { Disposer } from './disposer.js';
import { authenticatorOf, type OpenedSecrets } from './identity.js';

/** Longer than any outage after which a cluster comes back with its data. */
const ORPHAN_WINDOW_SECONDS = 32 * 24 * 3600;

/** Adapters and reports that every kind of process needs. */
export interface Infrastructure {
  readonly telemetry: Telemetry;
  readonly stores: Stores;
  readonly assets: AssetStore;
  readonly journal: ErasureJournal;
  readonly heads: AuditHeads;
  readonly bus: EventBus;
}

export interface InfrastructureParts {
  readonly config: Config;
  readonly clock: Clock;
  readonly secrets: Pick<OpenedSecrets, 'secrets' | 'complete'>;
  readonly logDestination?: TelemetryParts['destination'];
  readonly engineStats?: TelemetryParts['engineStats'];
  readonly tlsExpiresAt?: TelemetryParts['tlsExpiresAt'];
  readonly signerNotAfter?: number;
}

/** True where other processes use the same store. */
export function isStoreShared({ store }: Config): boolean {
  return store === 'cassandra';
}

/** @throws Error with a message for the operator */
export async function openInfrastructure(
  {
    config,
    clock,
    secrets: { secrets, complete },
    logDestination,
    engineStats,
    tlsExpiresAt,
    signerNotAfter,
  }: InfrastructureParts,
  disposer: Disposer,
): Promise<Infrastructure> {
  // Gauges of what is opened below: the store reports its damages to telemetry, so telemetry comes first.
  let stores: Stores | undefined;
  let bus: EventBus | undefined;
  const telemetry = createTelemetry({
    level: config.logLevel,
    eventsWaiting: () => stores?.countWaiting(),
    lag: () => bus?.lag() ?? new Map(),
    ...defined({ engineStats, tlsExpiresAt, signerNotAfter, destination: logDestination }),
  });
  disposer.add(async () => telemetry.flush());
  if (config.acceptUnauthenticated) telemetry.warn('unauthenticated_accepted');
  for (const server of config.plainServers) telemetry.warn('server_without_tls', { server });
  const opened = await openStores(
    config,
    { secrets, adoptFormerRows: complete !== undefined, telemetry },
    disposer,
  );
  stores = opened.stores;
  // The store is this process's own from here on, and has no rows without codes.
  await complete?.();
  const journal = await openJournal(config, secrets);
  disposer.add(() => journal.close());
  const assets = await openAssets(config, disposer);
  const openedBus = await openBus(config, secrets, clock, telemetry.observer);
  bus = openedBus;
  disposer.add(() => openedBus.close());
  return { telemetry, ...opened, assets, journal, bus: openedBus };
}

/** The bus delivers from now on, and what waits in the outbox goes out. */
export async function startEvents(
  { stores, bus, telemetry }: Pick<Infrastructure, 'stores' | 'bus' | 'telemetry'>,
  disposer: Disposer,
): Promise<void> {
  await bus.start();
  const relay = createEventRelay({ stores, bus, observer: telemetry.observer });
  relay.start();
  disposer.add(() => relay.stop());
}

export function openProbes({ stores }: Pick<Infrastructure, 'stores'>, { outboxLimit }: Config): Probes {
  return createProbes(() => stores.ping(), { waiting: () => stores.countWaiting(), limit: outboxLimit });
}

/** Stops a process once, however often it is called: not ready first, then everything is closed. */
export function stopOnce(telemetry: Telemetry, probes: Probes, disposer: Disposer): () => Promise<void> {
  let stopping: Promise<void> | undefined;
  const stop = async (): Promise<void> => {
    probes.stopping();
    telemetry.note('stopping');
    await disposer.dispose();
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
 * The journal of erasures. Where many processes erase, the topic of erasures takes its place: the topic is
 * kept for ever, and apart from the store.
 */
async function openJournal(config: Config, secrets: Secrets): Promise<ErasureJournal> {
  if (!isStoreShared(config) || config.bus !== 'kafka')
    return openErasureJournal({ directory: config.journalDirectory, secrets });
  return { record: async () => undefined, read: async function* () {}, close: async () => undefined };
}

async function openAssets({ dataDirectory, assetBucket }: Config, disposer: Disposer): Promise<AssetStore> {
  if (assetBucket === undefined) return openAssetDirectory({ directory: join(dataDirectory, 'assets') });
  const assets = await openAssetBucket({
    ...assetBucket,
    spoolDirectory: join(dataDirectory, 'spool'),
    orphanGraceSeconds: ORPHAN_GRACE_SECONDS,
    orphanWindowSeconds: ORPHAN_WINDOW_SECONDS,
  });
  disposer.add(async () => assets.close());
  return assets;
}

interface StoreParts {
  readonly secrets: Secrets;
  /** True where rows without codes are of a version of this service that made none. */
  readonly adoptFormerRows: boolean;
  readonly telemetry: Pick<Telemetry, 'note' | 'observer'>;
}

type OpenedStores = Pick<Infrastructure, 'stores' | 'heads'>;

async function openStores(config: Config, parts: StoreParts, disposer: Disposer): Promise<OpenedStores> {
  if (config.store === 'embedded') return openEmbedded(config, parts, disposer);
  const { cassandra, outboxLimit, acceptUnauthenticated } = config;
  if (cassandra === undefined) throw new Error('no Cassandra nodes are configured');
  // The heads of a cluster's audit logs are the cluster's, too: no file of one process could hold them.
  const stores = await openCassandraStore({
    ...cassandra,
    audit: { key: parts.secrets.current('audit').key },
    authenticator: authenticatorOf(parts.secrets, 'row', config),
    acceptUnauthenticated,
    outboxLimit,
  });
  disposer.add(() => stores.close());
  return { stores, heads: stores.heads };
}

async function openEmbedded(
  config: Config,
  { secrets, adoptFormerRows, telemetry }: StoreParts,
  disposer: Disposer,
): Promise<OpenedStores> {
  const heads = createAuditHeads({ directory: config.journalDirectory, secrets });
  disposer.add(() => heads.close());
  const stores = await openEmbeddedStore({
    directory: join(config.dataDirectory, 'store'),
    audit: { key: secrets.current('audit').key, heads },
    authenticator: authenticatorOf(secrets, 'row', config),
    adoptFormerRows: adoptFormerRows || config.acceptUnauthenticated,
    onDamage: (error) => telemetry.observer.fault('store', error),
    outboxLimit: config.outboxLimit,
  });
  disposer.add(() => stores.close());
  const restored = await findRestoredStore({ stores, heads });
  if (restored !== undefined) {
    const partners = restored.short.length;
    if (config.acceptPutBack !== restored.code)
      throw new Error(
        `The store is older than the heads of its audit logs: the logs of ${partners} partner${partners === 1 ? '' : 's'} lack entries that were there. It was put back from a backup, or changed by somebody. It knows no key that was revoked and no proof that was issued since; erasures are repeated from their journal. If you put it back, start once with TAKEMARK_ACCEPT_PUT_BACK=${restored.code}; the code is for this state alone.`,
      );
    await acceptRestoredStore(heads, restored);
    telemetry.note('store_put_back', { partners });
  }
  return { stores, heads };
}
