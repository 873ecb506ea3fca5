import { createPrivateKey } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { type Client, type ClientOptions, createClient } from '../../client/index.js';
import { type ClientConfig, type Context, UsageError } from '../command.js';
import { type ServiceAccess, serviceAccess } from '../service-access.js';
import { formatTime, printable } from '../terminal.js';

/** Lines of every partner command's help on its environment. */
export const PARTNER_DETAILS = [
  'TAKEMARK_API_KEY holds the key; TAKEMARK_URL or --url the address (http://127.0.0.1:8080),',
  'https on another machine; TAKEMARK_CA a file with its authority, if Node does not know it;',
  'TAKEMARK_API_SIGNING_KEY a file with the private key, if the key needs signed calls.',
];

/** @throws UsageError */
export function findApiKey(config: ClientConfig): string {
  if (config.apiKey === undefined) throw new UsageError('set TAKEMARK_API_KEY to a partner key');
  if (!/^[\x21-\x7e]+$/.test(config.apiKey))
    throw new UsageError('TAKEMARK_API_KEY must be printable ASCII without spaces');
  return config.apiKey;
}

/** Credentials and trust for a partner's calls. @throws UsageError */
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
    throw new UsageError(`TAKEMARK_API_SIGNING_KEY names no Ed25519 or P-256 private key in PEM (${path})`);
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

/** Client options of every partner command: its name in `User-Agent`, and a line on stderr for each deprecation. */
export function commonClientOptions({
  terminal,
  version,
}: Context): Pick<ClientOptions, 'userAgent' | 'onDeprecation'> {
  const told = new Set<string>();
  return {
    userAgent: `takemark-cli/${version}`,
    onDeprecation: ({ method, path, sunset, guide }) => {
      // Once for each end: a batch meets it with every file.
      const end = `${sunset} ${guide}`;
      if (told.has(end)) return;
      told.add(end);
      const more = guide === undefined ? '' : `, see ${guide}`;
      const until = sunset === undefined ? '' : `; it may be gone after ${formatTime(sunset)}`;
      terminal.note(
        printable(
          `takemark: the service calls ${method} ${path}, or a part of it, deprecated${until}. Update takemark${more}`,
        ),
      );
    },
  };
}

/** Runs `work` with a client that is closed at the end. */
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
