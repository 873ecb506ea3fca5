import { createClient, type Client } from '../../client/index.js';
import { UsageError, type ClientConfig, type Surroundings } from '../command.js';
import { serviceAccess } from '../service-access.js';

/** What every command of a partner says of its environment. */
export const PARTNER_DETAILS = [
  'TAKEMARK_API_KEY holds the key; TAKEMARK_URL the address (http://127.0.0.1:8080),',
  'https on another machine; TAKEMARK_CA a file with its authority, if Node does not know it.',
];

/** @throws UsageError */
export function findApiKey(config: ClientConfig): string {
  if (config.apiKey === undefined) throw new UsageError('set TAKEMARK_API_KEY to a partner key');
  return config.apiKey;
}

/** Runs `work` with a client that is closed at the end. */
export async function withPartner<T>({ config }: Surroundings, work: (client: Client) => Promise<T>): Promise<T> {
  const client = createClient({ baseUrl: config.url, apiKey: findApiKey(config), ...(await serviceAccess(config, config.url)) });
  try {
    return await work(client);
  } finally {
    client.close();
  }
}
