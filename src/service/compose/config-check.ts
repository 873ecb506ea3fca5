import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { createServer } from 'node:net';
import { dirname, resolve } from 'node:path';
import { type ValidityWarning, validityWarning } from '../../core/domain/validity.js';
import { systemClock } from '../adapters/system/system.js';
import { TlsFiles } from '../adapters/system/tls-files.js';
import type { Config } from '../config/config.js';
import { checked, passed, type ServerCheck } from '../domain/server-check.js';

/**
 * Tries what a start needs from this machine, for `takemark config --check`, and creates nothing: names of
 * settings, files, the data directory and the ports. `takemark operator doctor` checks the servers.
 */
export async function checkConfig(config: Config): Promise<readonly ServerCheck[]> {
  const { unknown, partner, operator, dataDirectory, mirror } = config;
  const names = unknown.misspelt.map(({ name, nearest }) =>
    checked(
      'config.name',
      { found: name, wanted: nearest },
      config.unknownSettings === 'warn' ? 'warn' : 'refuse',
      'this variable is not a setting',
    ),
  );
  return [
    ...(names.length === 0 ? [passed('config.name', 'every name is a setting', 'settings')] : names),
    ...(await Promise.all(namedFiles(config).map(([setting, path]) => checkFile(setting, path)))),
    ...(partner.tls === undefined ? [] : [await checkTls(partner.tls)]),
    await checkDirectory('TAKEMARK_DATA_DIR', dataDirectory),
    ...(mirror === undefined ? [] : [await checkDirectory('TAKEMARK_MIRROR_DIR', mirror.directory)]),
    await checkPort('TAKEMARK_PORT', partner),
    await checkPort('TAKEMARK_OPERATOR_PORT', operator),
  ];
}

/** Returns the settings that name files that exist before the start, each with its path. */
function namedFiles({ signing, secrets, cassandra, kafka }: Config): [setting: string, path: string][] {
  const files: readonly [string, string | undefined][] = [
    ['TAKEMARK_SIGNING_CERT', signing.files?.certificate],
    ['TAKEMARK_SIGNING_KEY', signing.files?.key],
    ['TAKEMARK_SIGNING_AUTHORITY', signing.files?.authority],
    ['TAKEMARK_SIGNING_PKCS11', signing.pkcs11?.module],
    [
      'TAKEMARK_SIGNING_PKCS11_PIN_FILE',
      signing.pkcs11 !== undefined && 'file' in signing.pkcs11.pin ? signing.pkcs11.pin.file : undefined,
    ],
    ['TAKEMARK_SECRETS_FILE', secrets !== undefined && 'file' in secrets ? secrets.file : undefined],
    ['TAKEMARK_CASSANDRA_TLS_CA', cassandra?.tls?.authority],
    ['TAKEMARK_KAFKA_TLS_CA', kafka?.tls?.authority],
  ];
  return files.filter((file): file is [string, string] => file[1] !== undefined);
}

async function checkFile(setting: string, path: string): Promise<ServerCheck> {
  const fault = await faultOf(access(path, constants.R_OK));
  return checked(setting, { found: path, wanted: 'a readable file' }, 'refuse', fault);
}

const VALIDITY_TEXTS: Readonly<Record<ValidityWarning, string>> = {
  not_begun: 'the certificate is not valid yet',
  '90_days': 'the certificate expires within 90 days',
  '30_days': 'the certificate expires within 30 days',
  '7_days': 'the certificate expires within 7 days',
  expired: 'the certificate has expired',
};

async function checkTls(paths: NonNullable<Config['partner']['tls']>): Promise<ServerCheck> {
  const facts = { found: paths.certificate, wanted: 'a certificate and its key' };
  const opened = TlsFiles.open(paths, systemClock);
  const fault = await faultOf(opened);
  if (fault !== undefined) return checked('TAKEMARK_TLS_CERT', facts, 'refuse', fault);
  const { beginsAt, expiresAt } = (await opened).identity;
  const now = Math.floor(systemClock.now() / 1000);
  const warning = validityWarning({ notBefore: beginsAt, notAfter: expiresAt }, now);
  // A start serves with such a certificate and warns too.
  return checked('TAKEMARK_TLS_CERT', facts, 'warn', warning && VALIDITY_TEXTS[warning]);
}

/** Checks that a directory, or the nearest existing directory above it, can be written. */
async function checkDirectory(setting: string, path: string): Promise<ServerCheck> {
  let existing = resolve(path);
  while (dirname(existing) !== existing && (await faultOf(access(existing))) !== undefined)
    existing = dirname(existing);
  return checked(
    setting,
    { found: path, wanted: 'a directory that this user can write' },
    'refuse',
    await faultOf(access(existing, constants.W_OK | constants.X_OK)),
  );
}

/** Checks that a port is free. A running service holds its own ports, so an occupied port is only a warning. */
async function checkPort(
  setting: string,
  { host, port }: { readonly host: string; readonly port: number },
): Promise<ServerCheck> {
  const server = createServer();
  const bound = new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  const fault = await faultOf(bound);
  if (fault === undefined) await new Promise((resolve) => server.close(resolve));
  const isTaken = fault === 'EADDRINUSE';
  return checked(
    setting,
    { found: `${host}:${port}`, wanted: 'a free port of this machine' },
    isTaken ? 'warn' : 'refuse',
    isTaken ? 'a program listens on it, which may be the service itself' : fault,
  );
}

/** Returns the code or message of the failure of a promise, or undefined if it succeeds. */
async function faultOf(work: Promise<unknown>): Promise<string | undefined> {
  return work.then(
    () => undefined,
    (error: NodeJS.ErrnoException) => error.code ?? error.message,
  );
}
