import { readFile } from 'node:fs/promises';
import { isPlain, parseBase } from '../client/connection.js';
import { type ClientConfig, UsageError } from './command.js';

/** The TLS trust and the plain-http setting for a service. */
export interface ServiceAccess {
  readonly ca?: Buffer;
  readonly allowPlainHttp: boolean;
}

/**
 * @param url the address that a secret is sent to
 * @throws UsageError if plain http would expose the secret, or the authority file cannot be read
 */
export async function serviceAccess(
  { ca, allowPlainHttp }: ClientConfig,
  url: string,
): Promise<ServiceAccess> {
  if (!allowPlainHttp && isPlain(parseBase(url))) {
    throw new UsageError(
      `plain http to ${url} would expose the secret: use an https address (TAKEMARK_URL, TAKEMARK_OPERATOR_URL), or --allow-plain-http (TAKEMARK_ALLOW_PLAIN_HTTP=1) on a trusted network`,
    );
  }
  if (ca === undefined) return { allowPlainHttp };
  const authority = await readFile(ca).catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(`TAKEMARK_CA cannot be read (${ca}: ${error.code ?? 'unreadable'})`);
  });
  return { ca: authority, allowPlainHttp };
}
