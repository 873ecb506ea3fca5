import type { Config } from '../config/config.js';
import { type ClientConfig, type Service, UsageError } from './command.js';
import { readEndpoints } from './endpoints.js';
import { findProfile, readProfiles } from './profiles.js';

/** Settings of the command line as the environment gives them. */
export type ClientSettings = Config['client'] &
  Pick<Config, 'dataDirectory'> &
  Pick<ClientConfig, 'profilesFile'>;

/** Option and variable that name the address of a listener, and the address without either. */
export const ADDRESSES: Readonly<
  Record<Service, { readonly option: string; readonly variable: string; readonly standard: string }>
> = {
  partner: { option: 'url', variable: 'TAKEMARK_URL', standard: 'http://127.0.0.1:8080' },
  operator: {
    option: 'operator-url',
    variable: 'TAKEMARK_OPERATOR_URL',
    standard: 'http://127.0.0.1:8081',
  },
};

/**
 * The settings of a profile in the place of the environment's: address, key, and what belongs to them, all together, so
 * that no key goes to a service that it is not for.
 * @param named value of the option, before the variable's
 * @throws UsageError where there is no such profile, or its file cannot be trusted
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
      '--url and a profile exclude each other: a profile has the address that its key is for',
    );
  const { apiKey: _apiKey, ca: _ca, signingKey: _signingKey, ...rest } = settings;
  return { ...rest, ...findProfile(await readProfiles(settings.profilesFile), name, settings.profilesFile) };
}

/**
 * The settings with the address of the listener that a command speaks to: the option's, else the variable's, else that
 * of the service whose data directory is on this machine, else the default.
 * @param given value of the option
 * @throws UsageError for a value that is no address
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
 * The address in the data directory. Where nobody named the directory it is one below the current folder, which may be
 * anybody's: a secret of the environment does not go where that says, and a token that lies beside it may.
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

/** @throws UsageError for a value of the option that is no address */
export function parseAddress(option: string, given: string): string {
  const url = URL.canParse(given) ? new URL(given) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol) || /[?#]/.test(given) || url.username !== '')
    throw new UsageError(`--${option} must be an http or https address without a name, query or fragment`);
  return given.replace(/\/+$/, '');
}
