import { access } from 'node:fs/promises';
import { join } from 'node:path';
import { replaceFile } from '../../core/files/durable.js';
import { SECRETS_FILE } from '../adapters/signing/secrets.js';
import type { Config } from '../config/config.js';
import { openWritableDirectory } from './writable-directory.js';

/** The file in the data directory that says that the operator knows the default address of the listener. */
export const NOTED_FILE = 'listens-on-loopback';

/**
 * Returns true once for each data directory of an earlier version, whose partner listener accepted connections
 * from other machines by default and now accepts only those of this machine.
 */
export async function becomesLocal({ partner, dataDirectory }: Config): Promise<boolean> {
  if (!partner.isHostDefault || partner.tls !== undefined) return false;
  const noted = join(dataDirectory, NOTED_FILE);
  if (await exists(noted)) return false;
  const isFormer = await exists(join(dataDirectory, SECRETS_FILE));
  await openWritableDirectory('TAKEMARK_DATA_DIR', dataDirectory);
  await replaceFile(noted, '');
  return isFormer;
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
