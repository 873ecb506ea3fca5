import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';

/** The file in a data directory with the ports that a running service has bound. */
const FILE = 'endpoints.json';
const MAX_BYTES = 1024;

/** The addresses of the listeners of a service on this machine. */
export interface Endpoints {
  /** The address of the partner listener. Absent if the process has none. */
  readonly partner?: string;
  readonly operator: string;
}

/**
 * Returns the addresses that the service of a data directory left there, or undefined if no service runs or the file
 * is malformed. The addresses are always of this machine: the file has ports, and hosts in it would not be believed.
 */
export async function readEndpoints(dataDirectory: string): Promise<Endpoints | undefined> {
  const path = join(dataDirectory, FILE);
  try {
    const info = await stat(path);
    // Opening a pipe would wait for its writer.
    if (!info.isFile() || info.size > MAX_BYTES) return undefined;
    const { partner, operator, tls } = JSON.parse(await readFile(path, 'utf8')) as Record<string, unknown>;
    if (!isPort(operator)) return undefined;
    return {
      ...(isPort(partner)
        ? { partner: tls === true ? `https://localhost:${partner}` : `http://127.0.0.1:${partner}` }
        : {}),
      operator: `http://127.0.0.1:${operator}`,
    };
  } catch {
    return undefined;
  }
}

function isPort(value: unknown): value is number {
  return Number.isInteger(value) && Number(value) > 0 && Number(value) < 65_536;
}
