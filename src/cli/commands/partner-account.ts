import { createPrivateKey } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { type Client, type ClientOptions, createClient } from '../../client/index.js';
import { type ClientConfig, type Context, UsageError } from '../command.js';
import { type ServiceAccess, serviceAccess } from '../service-access.js';
import { formatTime, printable } from '../terminal.js';

/** @throws UsageError */
export function findApiKey(config: ClientConfig): string {
  if (config.apiKey === undefined) throw new UsageError('set TAKEMARK_API_KEY to a partner key');
  if (!/^[\x21-\x7e]+$/.test(config.apiKey))
    throw new UsageError('TAKEMARK_API_KEY must be printable ASCII without spaces');
  return config.apiKey;
}

/** Returns the credentials and the trust for a partner's calls. @throws UsageError */
export async function partnerAccess(
  config: ClientConfig,
): Promise<ServiceAccess & { readonly apiKey: string; readonly signingKey?: string }> {
  const access = { apiKey: findApiKey(config), ...(await serviceAccess(config, config.url)) };
  const { signingKey: path } = config;
  if (path === undefined) return access;
  const signingKey = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(`TAKEMARK_API_SIGNING_KEY cannot be read (${path}: ${error.code ?? 'unreadable'})`);
  });
  if (!signsCalls(signingKey))
    throw new UsageError(
      `TAKEMARK_API_SIGNING_KEY must name a PEM file of an Ed25519 or P-256 private key (${path})`,
    );
  return { ...access, signingKey };
}

function signsCalls(pem: string): boolean {
  try {
    const { asymmetricKeyType: type, asymmetricKeyDetails: details } = createPrivateKey(pem);
    return type === 'ed25519' || details?.namedCurve === 'prime256v1';
  } catch {
    return false;
  }
}

/**
 * Returns the client options of every partner command: its `User-Agent`, and a note on stderr per
 * deprecation.
 */
export function commonClientOptions({
  terminal,
  version,
}: Context): Pick<ClientOptions, 'userAgent' | 'onDeprecation'> {
  const reported = new Set<string>();
  return {
    userAgent: `takemark-cli/${version}`,
    onDeprecation: ({ method, path, sunset, guide }) => {
      // Print each deprecation once: a batch meets it with every file.
      const end = `${sunset} ${guide}`;
      if (reported.has(end)) return;
      reported.add(end);
      const more = guide === undefined ? '' : `, see ${guide}`;
      const until = sunset === undefined ? '' : `; it may be removed after ${formatTime(sunset)}`;
      terminal.note(
        printable(
          `takemark: ${method} ${path}, or a part of it, is deprecated by the service${until}. Update takemark${more}`,
        ),
      );
    },
  };
}

/** Runs `work` with a client and closes the client afterwards. */
export async function withPartner<T>(context: Context, work: (client: Client) => Promise<T>): Promise<T> {
  const { config } = context;
  const client = createClient({
    baseUrl: config.url,
    ...commonClientOptions(context),
    ...(await partnerAccess(config)),
  });
  try {
    return await work(client);
  } finally {
    client.close();
  }
}
