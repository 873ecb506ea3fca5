import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { createTrustList } from '../../core/credential/trust-list.js';
import { defined } from '../../core/domain/defined.js';
import { CREDENTIAL_LIMIT } from '../../core/engine/core-layout.js';
import { createAudioEngine } from '../../core/engine/create-engine.js';
import { migrate as migrateCassandra } from '../adapters/cassandra/driver/migrations.js';
import { createTopics } from '../adapters/kafka/topics.js';
import { createCredentialReader } from '../adapters/reading/credential-reader.js';
import { makeClusterBundle } from '../adapters/signing/cluster-bundle.js';
import { createDevice } from '../adapters/signing/device.js';
import { type InstallationOptions, installLeaf, requestLeaf } from '../adapters/signing/leaf-installation.js';
import { initAuthority, issueLeaf } from '../adapters/signing/offline-authority.js';
import {
  type BundleRotation,
  ROTATED_PURPOSES,
  rotateClusterBundle,
} from '../adapters/signing/rotate-bundle.js';
import { systemClock } from '../adapters/system/system.js';
import { type Restored, restore } from '../background/restore.js';
import type { Config } from '../config/config.js';
import { type PlainAudio, sealBesideFile, sealInFile } from '../operations/issuing/seal-audio.js';
import { inspectFile } from '../operations/offline/inspect-file.js';
import { readDigests } from '../operations/offline/read-digests.js';
import { readOriginal } from '../operations/offline/read-original.js';
import type { Clock } from '../ports/system.js';
import { Disposer } from './disposer.js';
import { openSecrets, openSigningToken } from './identity.js';
import { isStoreShared, openInfrastructure, startEvents } from './infrastructure.js';
import type { ServiceOptions } from './service.js';

/**
 * Creates the keyspace and the topics, and updates the schema, for `takemark operator migrate`.
 * @returns the names of the new parts
 * @throws Error with a message for the operator
 */
export async function migrate(
  config: Config,
  { changeTopology = false }: { readonly changeTopology?: boolean } = {},
): Promise<{
  readonly applied?: readonly string[];
  readonly topics?: readonly string[];
}> {
  const { cassandra, kafka } = config;
  if (cassandra === undefined && kafka === undefined)
    throw new Error(
      'nothing to migrate: set TAKEMARK_CASSANDRA and TAKEMARK_CASSANDRA_DC for the store, TAKEMARK_KAFKA for the bus',
    );
  return defined({
    applied: cassandra && (await migrateCassandra({ ...cassandra, changeTopology })),
    topics: kafka && (await createTopics(kafka)),
  });
}

/**
 * Repeats the erasures and usage that a restored backup is missing, directly on the cluster's servers, for
 * `takemark operator restore`.
 */
export async function restoreCluster(
  config: Config,
  options: Pick<ServiceOptions, 'clock' | 'logDestination'> = {},
): Promise<Restored> {
  if (!isStoreShared(config) || config.bus !== 'kafka')
    throw new Error(
      'takemark operator restore needs --from with the directory of a backup. Without --from it is for a cluster, with TAKEMARK_STORE=cassandra and TAKEMARK_BUS=kafka',
    );
  const { clock = systemClock, logDestination } = options;
  const disposer = new Disposer();
  try {
    // Only a service that owns its store may adopt rows without a MAC, never a tool.
    const secrets = { ...(await openSecrets(config)), complete: undefined };
    const silent = { ...config, logLevel: 'silent' } as const;
    const infrastructure = await openInfrastructure(
      { config: silent, clock, secrets, admits: false, ...defined({ logDestination }) },
      disposer,
    );
    // Publishes the events of repeated erasures.
    await startEvents(infrastructure, disposer);
    const { installation: row, marks, encrypted: stores, ...parts } = infrastructure;
    if (row === undefined || marks === undefined)
      throw new Error('takemark operator restore needs TAKEMARK_ASSETS=s3: the processes share no bucket');
    return await restore({ ...parts, stores, row, marks, clock });
  } finally {
    await disposer.dispose();
  }
}

/**
 * Makes the next bundle for `takemark operator secrets rotate`.
 * @param bundle the text and the name of the current bundle
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
      throw new Error(`unknown purpose ${name}; the purposes are ${ROTATED_PURPOSES.join(', ')}`);
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

/** Returns the text of a new bundle for a cluster, for `takemark operator secrets init`. */
export function makeSecrets({ environment, signing }: Config): string {
  return makeClusterBundle({
    environment,
    algorithm: signing.algorithm,
    clock: systemClock,
    random: randomBytes,
  });
}

/** Returns the PEM of a certificate request, for `takemark operator signing request`. */
export async function requestSigningLeaf(config: Config): Promise<string> {
  return requestLeaf(await installationOf(config));
}

/** Installs a certificate for `takemark operator signing install`. Times are in unix seconds. */
export async function installSigningLeaf(
  config: Config,
  pem: string,
): Promise<{ readonly kid: string; readonly notAfter: number; readonly former?: string }> {
  const { notAfter, ...installed } = await installLeaf(await installationOf(config), pem);
  return { ...installed, notAfter: secondsOf(notAfter) };
}

/** Creates an authority and returns its PEM, for `takemark authority init`. */
export function initSigningAuthority({ environment }: Config, directory: string): Promise<string> {
  return initAuthority({ directory, environment, clock: systemClock, random: randomBytes });
}

/** Issues a certificate for `takemark authority issue`. Times are in unix seconds. */
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
  return {
    directory: join(config.dataDirectory, 'signing'),
    environment: config.environment,
    algorithm: config.signing.algorithm,
    ...defined({ token: await openSigningToken(config) }),
    clock: systemClock,
  };
}

function secondsOf(date: Date): number {
  return Math.floor(date.getTime() / 1000);
}

/**
 * Opens the device of `takemark seal`: an engine and a key without a service, a store or a network.
 * @param directory the directory of the device key, which is created on first use
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

/**
 * Opens what `takemark inspect`, `takemark strip` and `takemark identify` need to read files: the engine and the reader
 * of a verify, and no service.
 */
export async function openFileKit() {
  const engine = createAudioEngine({ kind: 'wasm', workers: 1, maxUploads: 1 });
  await engine.start();
  const reader = createCredentialReader({
    trust: createTrustList([], []),
    observer: { fault: () => undefined },
    maxWaitingBytes: CREDENTIAL_LIMIT,
  });
  return {
    inspect: (read: () => AsyncIterable<Uint8Array>) => inspectFile({ engine, reader }, read),
    digests: (audio: AsyncIterable<Uint8Array>) => readDigests(engine, audio),
    readOriginal,
    async close() {
      await Promise.all([engine.stop(), reader.stop()]);
    },
  };
}
