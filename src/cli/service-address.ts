import type { Config } from '../service/config/config.js';
import { type ClientConfig, type Service, UsageError } from './command.js';
import { readEndpoints } from './endpoints.js';
import { findProfile, readProfiles } from './profiles.js';

/** The settings of the command line from the environment. */
export type ClientSettings = Config['client'] &
  Pick<Config, 'dataDirectory'> &
  Pick<ClientConfig, 'profilesFile'>;

/**
 * The option and the variable for the address of a listener, the default address, and the help lines about the
 * environment of its commands.
 */
export const ADDRESSES = {
  partner: {
    option: 'url',
    variable: 'TAKEMARK_URL',
    standard: 'http://127.0.0.1:8080',
    environment: [
      'Environment: TAKEMARK_API_KEY is the API key. TAKEMARK_URL (or --url) is the address of the service',
      '(http://127.0.0.1:8080); another machine needs https. TAKEMARK_CA is a PEM file of its certificate',
      'authority, if Node does not trust it already. TAKEMARK_API_SIGNING_KEY is a PEM file of the private',
      'key, if the API key requires signed calls.',
    ],
  },
  operator: {
    option: 'operator-url',
    variable: 'TAKEMARK_OPERATOR_URL',
    standard: 'http://127.0.0.1:8081',
    environment: [
      'Environment: TAKEMARK_OPERATOR_TOKEN is the operator token. Without it, the token is read from the',
      'file operator-token in the data directory of a service on this machine (TAKEMARK_DATA_DIR,',
      'takemark-data). TAKEMARK_OPERATOR_URL (or --operator-url) is the address. Without it, the port is read',
      'from endpoints.json in that directory; the fallback is http://127.0.0.1:8081.',
    ],
  },
} as const satisfies Readonly<Record<Service, object>>;

/**
 * Replaces the environment's address, key, authority and signing key by those of a profile. All of them are
 * replaced together, so that a key never goes to another service.
 * @param named the value of the option, which overrides the variable
 * @throws UsageError if the profile does not exist, or its file cannot be trusted
 */
export async function withProfile(
  settings: ClientSettings,
  service: Service | undefined,
  named: string | undefined,
  given: string | undefined,
): Promise<ClientSettings> {
  const name = named ?? settings.profile;
  if (service !== 'partner' || name === undefined) return settings;
  if (given !== undefined)
    throw new UsageError(
      'give either --url or a profile, not both: a profile already holds the address for its key',
    );
  const { apiKey: _apiKey, ca: _ca, signingKey: _signingKey, ...rest } = settings;
  return { ...rest, ...findProfile(await readProfiles(settings.profilesFile), name, settings.profilesFile) };
}

/**
 * Adds the address of the command's listener to the settings. The order is: option, variable, the service
 * whose data directory is on this machine, default.
 * @param given the value of the option
 * @throws UsageError for an invalid address
 */
export async function withAddress(
  settings: ClientSettings,
  service: Service | undefined,
  given: string | undefined,
): Promise<ClientConfig> {
  const url = settings.url ?? ADDRESSES.partner.standard;
  const operatorUrl = settings.operatorUrl ?? ADDRESSES.operator.standard;
  if (service === undefined) return { ...settings, url, operatorUrl };
  if (service === 'partner') {
    const address = givenAddress(service, given) ?? settings.url ?? (await announced(settings, service));
    return { ...settings, operatorUrl, url: address ?? url };
  }
  const address =
    givenAddress(service, given) ?? settings.operatorUrl ?? (await announced(settings, service));
  return { ...settings, url, operatorUrl: address ?? operatorUrl };
}

/**
 * Returns the address from the data directory. The default data directory is below the current directory,
 * which another user may control. A secret from the environment is therefore not sent to an address from the
 * default directory. The token stored in the same directory may be.
 */
async function announced(
  { dataDirectory, dataDirectoryNamed, operatorToken }: ClientSettings,
  service: Service,
): Promise<string | undefined> {
  if (!dataDirectoryNamed && (service === 'partner' || operatorToken !== undefined)) return undefined;
  return (await readEndpoints(dataDirectory))?.[service];
}

function givenAddress(service: Service, given: string | undefined): string | undefined {
  return given === undefined ? undefined : parseAddress(ADDRESSES[service].option, given);
}

/** @throws UsageError for an invalid address in the option */
export function parseAddress(option: string, given: string): string {
  const { protocol = '', username, password }: Partial<URL> = URL.canParse(given) ? new URL(given) : {};
  if (!/^https?:$/.test(protocol) || /[?#]/.test(given) || username !== '' || password !== '')
    throw new UsageError(
      `--${option} must be an http or https address without a user name, password, query or fragment`,
    );
  return given.replace(/\/+$/, '');
}
