import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { type AuthenticatedRows, authenticateRows } from '../adapters/cassandra/authenticate-rows.js';
import { migrate as migrateCassandra } from '../adapters/cassandra/driver/migrations.js';
import { createTopics } from '../adapters/kafka/topics.js';
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
import type { Config } from '../config/config.js';
import { erasureConsumer } from '../consumers/erasure.js';
import { undamaged } from '../consumers/listen.js';
import { defined } from '../domain/defined.js';
import { createAudioEngine } from '../engine/create-engine.js';
import { type PlainAudio, sealBesideFile, sealInFile } from '../operations/issuing/seal-audio.js';
import type { Replayed } from '../ports/bus.js';
import type { Clock } from '../ports/system.js';
import { Disposer } from './disposer.js';
import { authenticatorOf, openSecrets, openSigningToken } from './identity.js';
import { openInfrastructure } from './infrastructure.js';
import type { ServiceOptions } from './service.js';

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
  const adoptRows = async (): Promise<AuthenticatedRows | undefined> => {
    if (cassandra === undefined || !acceptUnauthenticated || given === undefined) return undefined;
    const { secrets } = await openSecrets(config);
    return authenticateRows(cassandra, authenticatorOf(secrets, 'row', config));
  };
  return defined({
    applied: cassandra && (await migrateCassandra(cassandra)),
    topics: kafka && (await createTopics(kafka)),
    rows: await adoptRows(),
  });
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
  const { clock = systemClock, logDestination } = options;
  const disposer = new Disposer();
  try {
    // Rows are taken over by a service that owns its store, never by a tool.
    const secrets = { ...(await openSecrets(config)), complete: undefined };
    const silent = { ...config, logLevel: 'silent' } as const;
    const { stores, assets, bus } = await openInfrastructure(
      { config: silent, clock, secrets, ...defined({ logDestination }) },
      disposer,
    );
    return await bus.replay('erasure', undamaged(erasureConsumer({ stores, assets, clock })));
  } finally {
    await disposer.dispose();
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
