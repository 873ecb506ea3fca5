import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { replaceFile } from '../../core/files/durable.js';
import type { Disposer } from './disposer.js';

/**
 * The file in the data directory with the bound ports of a running process, for tools on the same machine.
 */
export const ENDPOINTS_FILE = 'endpoints.json';

/**
 * Writes the file. It is deleted when the process stops.
 * @param endpoints the ports, and whether the partner listener uses TLS
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
