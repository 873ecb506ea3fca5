import { randomBytes, randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type ArchiveBlock, openArchive, sealArchive } from '../../core/codec/sealed-archive.js';
import { SECRET_PURPOSES } from '../../core/domain/secret-purposes.js';
import { createFile } from '../../core/files/durable.js';
import { openBucketKeys } from '../adapters/assets/bucket-keys.js';
import { openAssetDirectory } from '../adapters/assets/directory.js';
import { openAssetBucket } from '../adapters/assets/s3.js';
import { bundleOfMachine, parseClusterBundle } from '../adapters/signing/cluster-bundle.js';
import { SECRETS_FILE } from '../adapters/signing/secrets.js';
import { systemClock } from '../adapters/system/system.js';
import { type Imported, importArchive, isApart, readForExport } from '../background/move.js';
import type { Config } from '../config/config.js';
import { listen } from '../consumers/listen.js';
import type { ArchiveRow } from '../ports/moved-rows.js';
import type { Secrets } from '../ports/secrets.js';
import { assertRestored } from './backup.js';
import { Disposer } from './disposer.js';
import { markExported, unmarkExported } from './export-mark.js';
import { openOperatorTokens, openSecrets } from './identity.js';
import { type Infrastructure, isStoreShared, openInfrastructure, startEvents } from './infrastructure.js';

/** The fewest characters of a passphrase. */
const PASSPHRASE_LENGTH = 16;
/** The longest wait in milliseconds for the events that a stopped service has left. */
const DRAIN_MS = 60_000;
const DRAIN_POLL_MS = 50;

export interface Exported {
  readonly exportId: string;
  /** The rows, keys and files, with the pieces of large files. */
  readonly rows: number;
  readonly proofs: number;
  readonly erased: number;
}

/**
 * Exports the store of one machine, whose service must be stopped, for `takemark operator export`. A mark in the data
 * directory comes first. From then on the service answers no call, until `resumeService` deletes the mark.
 * @param path the file of the export, which must not exist
 * @throws Error with a message for the operator
 */
export async function exportInstallation(
  config: Config,
  path: string,
  passphrase: string,
  signal?: AbortSignal,
): Promise<Exported> {
  if (isStoreShared(config))
    throw new Error('takemark operator export is for one machine, not for a cluster');
  if (passphrase.length < PASSPHRASE_LENGTH)
    throw new Error(`the passphrase must have at least ${PASSPHRASE_LENGTH} characters`);
  await assertRestored(config);
  const disposer = new Disposer();
  try {
    const secrets = await openSecrets(config);
    const infrastructure = await openInfrastructure(
      { config: { ...config, logLevel: 'silent' }, clock: systemClock, secrets },
      disposer,
    );
    const exportId = randomUUID();
    await markExported(config, exportId);
    await drain(infrastructure, disposer);
    const { moveSource: source, encrypted: stores, keys } = infrastructure;
    const files = await openAssetDirectory({ directory: join(config.dataDirectory, 'assets') });
    const exportedAt = Math.floor(systemClock.now() / 1000);
    const counts = { rows: 0, proofs: 0, erased: 0 };
    const bundle = await bundleFor(config, secrets.shared === undefined);
    async function* rows(): AsyncGenerator<ArchiveRow> {
      const { environment } = config;
      yield { kind: 'installation', exportId, environment, exportedAt, bundle };
      for await (const row of readForExport({ source: source!, stores, keys, files }, exportedAt)) {
        signal?.throwIfAborted();
        counts.rows += 1;
        if (row.kind === 'proof') counts.proofs += 1;
        if (row.kind === 'tombstone') counts.erased += 1;
        yield row;
      }
    }
    if (!(await createFile(path, sealArchive(passphrase, rows(), isApart))))
      throw new Error(`${path} exists: an export never replaces a file`);
    return { exportId, ...counts };
  } finally {
    await disposer.dispose();
  }
}

/**
 * Lets an exported service answer calls again.
 * @throws Error with a message for the operator if the service was not exported
 */
export async function resumeService(config: Config): Promise<void> {
  if (!(await unmarkExported(config)))
    throw new Error(`the store in ${config.dataDirectory} was not exported: there is nothing to resume`);
}

/** Returns the text of the bundle of secrets in an export. @throws ArchiveError */
export async function readExportedBundle(path: string, passphrase: string): Promise<string> {
  return (await readInstallation(path, passphrase)).bundle;
}

/**
 * Imports an export into the servers of an unused cluster, for `takemark operator import`. Every process of the cluster
 * refuses all calls from the start of the import to its end.
 * @throws Error with a message for the operator
 */
export async function importInstallation(
  config: Config,
  path: string,
  passphrase: string,
  signal?: AbortSignal,
): Promise<Imported> {
  const { assetBucket, environment } = config;
  if (!isStoreShared(config) || config.bus !== 'kafka' || assetBucket === undefined)
    throw new Error(
      'takemark operator import is for a cluster, with TAKEMARK_STORE=cassandra, TAKEMARK_BUS=kafka and TAKEMARK_ASSETS=s3',
    );
  const { exportId, environment: exported, bundle } = await readInstallation(path, passphrase);
  if (exported !== environment)
    throw new Error(`${path} is an export of the environment ${exported}, not ${environment}`);
  const disposer = new Disposer();
  try {
    const secrets = await openSecrets(config);
    assertSameSecrets(bundle, path, secrets.secrets);
    const infrastructure = await openInfrastructure(
      {
        config: { ...config, logLevel: 'silent' },
        clock: systemClock,
        secrets: { ...secrets, complete: undefined },
        admits: false,
      },
      disposer,
    );
    const { moveTarget, installation, marks, journal } = infrastructure;
    if (moveTarget === undefined || installation === undefined || marks === undefined)
      throw new Error('an import needs the keyspace, and the bucket with its restore marks');
    const keys = openBucketKeys(assetBucket);
    disposer.add(async () => keys.close());
    const files = await openAssetBucket({
      ...assetBucket,
      spoolDirectory: join(config.dataDirectory, 'import-spool'),
    });
    disposer.add(async () => files.close());
    return await importArchive(
      { target: moveTarget, keys, files, journal },
      exportId,
      (from) => blocksOf(path, passphrase, from, signal),
      () => Math.floor(systemClock.now() / 1000),
      {
        close: async () => {
          const [noted, stored] = [await marks.read(), await installation.read()];
          await marks.setEpoch(Math.max(noted.epoch, stored.epoch) + 1);
        },
        open: async () => installation.accept(await marks.read()),
      },
    );
  } finally {
    await disposer.dispose();
  }
}

/** Handles the events that the stopped service has left, so that all counts are complete. */
async function drain(infrastructure: Infrastructure, disposer: Disposer): Promise<void> {
  const { bus, encrypted, assets, journal, telemetry } = infrastructure;
  listen(bus, { stores: encrypted, assets, journal, clock: systemClock, observer: telemetry.observer });
  await startEvents(infrastructure, disposer);
  const deadline = performance.now() + DRAIN_MS;
  while (encrypted.countWaiting() > 0 || [...bus.lag().values()].some((waiting) => waiting > 0)) {
    if (performance.now() > deadline)
      throw new Error('events of the service are still waiting. Look at its log, and export again');
    await delay(DRAIN_POLL_MS);
  }
}

async function bundleFor(config: Config, isOwn: boolean): Promise<string> {
  const { secrets, dataDirectory, environment, signing } = config;
  if (!isOwn && secrets !== undefined)
    return 'file' in secrets ? readFile(secrets.file, 'utf8') : secrets.text;
  if (signing.pkcs11 !== undefined)
    throw new Error('the signing key is in a token, and an export must hold the key');
  const { tokens } = await openOperatorTokens(config, undefined);
  return bundleOfMachine({
    secrets: await readFile(join(dataDirectory, SECRETS_FILE), 'utf8'),
    operatorToken: tokens[0],
    signing: {
      directory: join(dataDirectory, 'signing'),
      environment,
      algorithm: signing.algorithm,
      ...(signing.files !== undefined && { files: signing.files }),
      clock: systemClock,
      random: randomBytes,
    },
  });
}

async function readInstallation(path: string, passphrase: string) {
  for await (const { values } of blocksOf(path, passphrase, 0)) {
    const [row] = values;
    if (row?.kind === 'installation') return row;
    break;
  }
  throw new Error(`${path} is not an export of Takemark`);
}

async function* blocksOf(
  path: string,
  passphrase: string,
  from: number,
  signal?: AbortSignal,
): AsyncGenerator<ArchiveBlock<ArchiveRow>> {
  const bytes = createReadStream(path);
  try {
    for await (const block of openArchive<ArchiveRow>(passphrase, bytes, from)) {
      signal?.throwIfAborted();
      yield block;
    }
  } finally {
    bytes.destroy();
  }
}

/** @throws Error if the cluster lacks a secret under which keys, logs or cursors of the machine were made */
function assertSameSecrets(bundle: string, path: string, secrets: Secrets): void {
  const exported = parseClusterBundle(bundle, path).secrets;
  for (const purpose of SECRET_PURPOSES)
    for (const { id, key } of exported[purpose]) {
      const found = secrets.find(purpose, id);
      if (found === undefined || Buffer.compare(found.key, Buffer.from(key, 'base64')) !== 0)
        throw new Error(
          `the cluster has other secrets than the export (${purpose}): write them with takemark operator import ` +
            `--from ${path} --secrets-out FILE, and set TAKEMARK_SECRETS_FILE`,
        );
    }
}
