import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { replaceFile } from '../files/durable.js';
import type { Disposer } from './disposer.js';

/** In the data directory: the ports that a started process has bound, for tools on the same machine. */
export const ENDPOINTS_FILE = 'endpoints.json';

/**
 * Writes the file, which goes when the process stops.
 * @param endpoints ports, and whether the partner listener speaks TLS
 */
export async function announceEndpoints(
  directory: string,
  endpoints: { readonly partner?: number; readonly operator: number; readonly tls?: boolean },
  disposer: Disposer,
): Promise<void> {
  const path = join(directory, ENDPOINTS_FILE);
  await replaceFile(path, `${JSON.stringify(endpoints)}\n`);
  disposer.add(() => rm(path, { force: true }));
}
