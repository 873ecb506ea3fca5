import { createHash } from 'node:crypto';
import { readSidecar } from '../../../src/core/credential/sidecar.js';
import type { AudioEngine } from '../../../src/core/ports/audio-engine.js';
import type { Signer, TrustList } from '../../../src/core/ports/signing.js';
import { openCassandraStore } from '../../../src/service/adapters/cassandra/store.js';
import {
  encryptedAssets,
  unissuedAssets,
} from '../../../src/service/adapters/encryption/encrypted-assets.js';
import { encryptedStores } from '../../../src/service/adapters/encryption/encrypted-stores.js';
import { keptKeys } from '../../../src/service/adapters/encryption/kept-keys.js';
import { openKafkaBus } from '../../../src/service/adapters/kafka/bus.js';
import { createIds, systemClock } from '../../../src/service/adapters/system/system.js';
import { collectionJobs, gatedJobs, reminderJob } from '../../../src/service/background/jobs.js';
import { createEventRelay } from '../../../src/service/background/relay.js';
import { RestoreGate } from '../../../src/service/background/restore-gate.js';
import { startJobs } from '../../../src/service/background/scheduler.js';
import { listen } from '../../../src/service/consumers/listen.js';
import { DEFAULT_LARGE_BYTES } from '../../../src/service/domain/upload.js';
import { createOperations, type Operations } from '../../../src/service/operations/operations.js';
import { Devices } from '../../../src/service/operations/system/devices.js';
import { SignerRevocations } from '../../../src/service/operations/system/signer-revocations.js';
import type { AssetStore } from '../../../src/service/ports/assets.js';
import type { Observer } from '../../../src/service/ports/observer.js';
import type { Secrets } from '../../../src/service/ports/secrets.js';
import type { Stores } from '../../../src/service/ports/stores.js';
import type { Clock } from '../../../src/service/ports/system.js';
import { composeStored } from '../../../src/witness/report/compose-stored.js';
import { authenticator } from '../../fixtures/authentication.js';
import type { Broker } from './broker.js';
import type { Bucket } from './bucket.js';
import { type Link, simulatedClient } from './client.js';
import type { Process } from './world.js';

export const KEYSPACE = 'takemark';
export const PREFIX = 'takemark';

/** The secrets of the audit logs and of all else. Every process has the same. */
const SECRET = { id: '0a1b2c3d', key: Buffer.alloc(32, 9) };
export const secrets: Secrets = {
  current: () => SECRET,
  find: (_purpose, id) => (id === SECRET.id ? SECRET : undefined),
  all: () => [SECRET],
};

/**
 * Jobs run this many times less often. Their subjects are minutes away, and each run costs many steps.
 */
const JOBS_STRETCHED = 4;

/** The interval of the clock check in milliseconds, stretched like the others. */
const CLOCKS_MS = 30_000;

/** What all processes share, and the world around them. */
export interface Surroundings extends Link {
  readonly broker: Broker;
  readonly bucket: Bucket;
  readonly signing: { readonly signer: Signer; readonly trust: TrustList };
  /** The number of events of each topic that may wait in a process. */
  readonly outboxLimit: number;
  readonly parts: Parts;
  /** The parsed sidecars, by their bytes. */
  readonly readings: Map<string, ReturnType<typeof readSidecar>>;
}

/** Parts of the product that a test may replace by defective ones. */
export interface Parts {
  readonly createRelay: typeof createEventRelay;
  /** The clock that the watch of each process compares with the nodes' clocks. */
  readonly watchedClock: Clock;
  readonly wrapStores: (stores: Stores, process: Process) => Stores;
}

export const PARTS: Parts = {
  createRelay: createEventRelay,
  watchedClock: systemClock,
  wrapStores: (stores) => stores,
};

/** A running process of the service, with its consumers. */
export interface Member {
  readonly process: Process;
  readonly stores: Stores;
  readonly assets: AssetStore;
  readonly operations: Operations;
  /** Returns true if the load balancer sends calls to the process. A process with a wrong clock gets none. */
  isReady(): boolean;
  readonly gate: RestoreGate;
}

/** Starts the real service, except its listeners, engine and readers, within the current process. */
export async function startMember(process: Process, around: Surroundings): Promise<Member> {
  const { signing, world, parts } = around;
  const opened = await openStores(around);
  const encrypted = { ...opened, ...parts.wrapStores(opened, process) };
  const keys = keptKeys(around.bucket.openKeys());
  const stores = encryptedStores(encrypted, keys);
  const { journal, marks } = around.bucket.openNotes();
  const gate = new RestoreGate({ row: encrypted.installation, marks });
  const files = around.bucket.open();
  const assets = encryptedAssets(files, keys);
  const observer = observerOf((where, error) =>
    world.note(process.name, `fault of ${where}: ${error instanceof Error ? error.message : String(error)}`),
  );
  const bus = await openKafkaBus({
    brokers: ['kafka:9092'],
    prefix: PREFIX,
    group: PREFIX,
    authenticator,
    acceptWithoutMac: false,
    onFault: observer.fault,
    library: around.broker.library(),
  });
  listen(bus, {
    stores: encrypted,
    assets,
    journal,
    clock: systemClock,
    observer,
  });
  await bus.start();
  parts.createRelay({ stores, bus, observer }).start();
  const { clocks } = encrypted;
  const maySweep = (): boolean => clocks.maySweep();
  const jobs = [
    { where: 'clocks' as const, everyMs: CLOCKS_MS, run: () => clocks.look() },
    ...gatedJobs(gate, [
      ...collectionJobs({
        stores,
        unissued: unissuedAssets(files, keys),
        clock: systemClock,
        maySweep,
      }),
      reminderJob({ stores, clock: systemClock, maySweep }),
    ]),
  ];
  startJobs(
    jobs.map((job) => ({ ...job, everyMs: job.everyMs * JOBS_STRETCHED })),
    observer,
    () => 1000,
  );
  const ids = createIds(systemClock);
  const { operations } = createOperations({
    environment: 'production',
    downloads: new Map(),
    publicUrl: () => 'https://simulated.invalid',
    secrets,
    stores,
    encrypted,
    assets,
    keys,
    journal,
    heads: encrypted.heads,
    audited: encrypted.audited,
    bus,
    certificates: { chain: [], renewal: '' },
    engine: digestingEngine,
    issuingEngine: digestingEngine,
    reader: {
      readEmbedded: () => Promise.reject(new Error('nothing here is embedded')),
      // The result depends on the bytes alone, so it is cached.
      async readSidecar(_owner, sidecar) {
        const bytes = Buffer.from(sidecar).toString('latin1');
        const reading = around.readings.get(bytes) ?? readSidecar(sidecar, signing.trust);
        around.readings.set(bytes, reading);
        return reading;
      },
    },
    signer: signing.signer,
    trust: signing.trust,
    newDevice: () => {
      throw new Error('nothing here is made for the sandbox');
    },
    revocations: new SignerRevocations({ stores, secrets }),
    devices: new Devices({ stores, secrets }),
    replay: () => {
      throw new Error('nothing here has a trace');
    },
    compose: async (stored) => composeStored(stored),
    clock: systemClock,
    wallClock: systemClock,
    ids,
    observer,
    processes: () => 1,
    samplesRate: 1e9,
    largeBytes: DEFAULT_LARGE_BYTES,
  });
  return { process, stores, assets, operations, isReady: () => clocks.isRight && !gate.isClosed, gate };
}

/** Opens the store alone, for judges. */
export function openStores(around: Link & Pick<Surroundings, 'outboxLimit' | 'parts'>) {
  return openCassandraStore({
    contactPoints: ['cassandra:9042'],
    localDataCenter: 'datacenter1',
    keyspace: KEYSPACE,
    audit: { key: SECRET.key },
    authenticator,
    outboxLimit: around.outboxLimit,
    clock: around.parts.watchedClock,
    openClient: (options) => simulatedClient(around, options),
  });
}

function observerOf(fault: Observer['fault']): Observer {
  const nothing = (): void => undefined;
  return {
    verdict: nothing,
    upload: nothing,
    displaced: nothing,
    refused: nothing,
    issued: nothing,
    productEvent: nothing,
    events: nothing,
    fault,
  };
}

/** An engine that measures only the digest of a file, and takes every file for FLAC. */
const digestingEngine: AudioEngine = {
  open() {
    const digest = createHash('sha256');
    let bytes = 0;
    return {
      signal: new AbortController().signal,
      write(chunk) {
        digest.update(chunk);
        bytes += chunk.length;
        return undefined;
      },
      end: async () => ({
        bytes,
        sha256: digest.digest('hex'),
        container: 'flac',
        chunks: [],
        chunkCount: 0,
        findings: [],
      }),
      abort: () => undefined,
    };
  },
  start: async () => undefined,
  stop: async () => undefined,
  stats: () => ({
    kind: 'wasm',
    kernelLanes: 4,
    hashDifferences: 0,
    uploadsInFlight: 0,
    slabsInUse: 0,
    slabs: 0,
    tasks: 0,
    lanes: 0,
    bytes: 0,
    workerRestarts: 0,
  }),
};
