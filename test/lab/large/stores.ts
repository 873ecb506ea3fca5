/** Where the service of a run keeps its proofs and their files: its own directory, or servers. */
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'cassandra-driver';
import { openAssetBucket } from '../../../src/service/adapters/assets/s3.js';
import { readConfig } from '../../../src/service/config/config.js';
import { serverSettings } from '../../service/server-settings.js';
import { takemark } from '../cluster/members.js';

export interface Stores {
  /** The settings of a service on these stores. */
  readonly settings: Readonly<Record<string, string>>;
  /** Returns the names of the files of all proofs, also of unfinished ones. */
  files(dataDirectory: string): Promise<readonly string[]>;
  remove(): Promise<void>;
}

export const onEmbedded: Stores = {
  settings: {},
  async files(dataDirectory) {
    const names = await readdir(join(dataDirectory, 'assets'), { recursive: true });
    return names.filter((name) => name.endsWith('.asset') || name.startsWith('staging/'));
  },
  remove: async () => undefined,
};

/** Prepares a keyspace and a part of the bucket for all services of the run. Each service has its own consumers. */
export async function onServers(): Promise<Stores> {
  const directory = await mkdtemp(join(tmpdir(), 'takemark-large-'));
  const { TAKEMARK_PUBLIC_URL: _anyAddress, ...servers } = serverSettings({
    name: 'large',
    keyspace: `takemark_large_${process.pid}`,
    directory,
  });
  const settings: Readonly<Record<string, string>> = { ...servers, TAKEMARK_BUS: 'embedded' };
  await takemark(settings, 'operator', 'secrets', 'init', '--out', servers.TAKEMARK_SECRETS_FILE);
  await takemark(settings, 'operator', 'migrate');
  const bucket = await openAssetBucket({
    ...readConfig(settings).assetBucket!,
    spoolDirectory: join(directory, 'spool'),
  });
  return {
    settings,
    async files(dataDirectory) {
      const { items } = await bucket.list(undefined, 1000);
      return [...items.map(({ proofId }) => proofId), ...(await readdir(join(dataDirectory, 'spool')))];
    },
    async remove() {
      bucket.close();
      await dropKeyspace(settings);
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** The time limit in milliseconds of a definition, which waits for all that the server is writing. */
const DEFINITION_MS = 120_000;

async function dropKeyspace(settings: Readonly<Record<string, string>>): Promise<void> {
  const client = new Client({
    contactPoints: settings['TAKEMARK_CASSANDRA']!.split(','),
    localDataCenter: settings['TAKEMARK_CASSANDRA_DC']!,
    socketOptions: { readTimeout: DEFINITION_MS },
  });
  try {
    await client.execute(`DROP KEYSPACE ${settings['TAKEMARK_CASSANDRA_KEYSPACE']}`);
  } finally {
    await client.shutdown();
  }
}
