import { readFile } from 'node:fs/promises';
import { isPlain, parseBase } from '../client/connection.js';
import { type ClientConfig, UsageError } from './command.js';

/** Trust in a service, beside its address. */
export interface ServiceAccess {
  readonly ca?: Buffer;
  readonly allowPlainHttp: boolean;
}

/**
 * @param url where a secret is to be sent. @throws UsageError where it could be read on its way, or the
 * authority cannot be read
 */
export async function serviceAccess(
  { ca, allowPlainHttp }: ClientConfig,
  url: string,
): Promise<ServiceAccess> {
  if (!allowPlainHttp && isPlain(parseBase(url))) {
    throw new UsageError(
      `over http the secret could be read on its way to ${url}: use an https address (TAKEMARK_URL, TAKEMARK_OPERATOR_URL), or --allow-plain-http (TAKEMARK_ALLOW_PLAIN_HTTP=1) where the network is trusted`,
    );
  }
  if (ca === undefined) return { allowPlainHttp };
  const authority = await readFile(ca).catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(`TAKEMARK_CA cannot be read (${ca}: ${error.code ?? 'unreadable'})`);
  });
  return { ca: authority, allowPlainHttp };
}
