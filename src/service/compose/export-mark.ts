import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { replaceFile, syncDirectory } from '../../core/files/durable.js';
import { ifPresent } from '../../core/files/if-present.js';
import type { Config } from '../config/config.js';

/** The file in a data directory whose store was exported to a cluster. */
const MARK = 'exported';

/** Reports whether the store of one machine was exported. Its service then answers no call. */
export async function isExported({ dataDirectory, store }: Config): Promise<boolean> {
  return store === 'embedded' && (await ifPresent(readFile(join(dataDirectory, MARK)))) !== undefined;
}

export async function markExported({ dataDirectory }: Config, exportId: string): Promise<void> {
  await replaceFile(join(dataDirectory, MARK), `${exportId}\n`);
}

/** Deletes the mark. @returns false if there was none */
export async function unmarkExported(config: Config): Promise<boolean> {
  if (!(await isExported(config))) return false;
  await rm(join(config.dataDirectory, MARK));
  await syncDirectory(config.dataDirectory);
  return true;
}
