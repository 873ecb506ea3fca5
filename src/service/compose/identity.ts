import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Authenticator } from '../../core/codec/authenticator.js';
import { defined } from '../../core/domain/defined.js';
import {
  type ClusterIdentity,
  clusterIdentity,
  readClusterBundle,
} from '../adapters/signing/cluster-bundle.js';
import { keyFiles } from '../adapters/signing/key-directory.js';
import { loadSigning } from '../adapters/signing/load-signing.js';
import { loadOperatorToken, OPERATOR_TOKEN_FILE } from '../adapters/signing/operator-token.js';
import { openToken, type TokenKey } from '../adapters/signing/pkcs11-token.js';
import { secureFile } from '../adapters/signing/secret-file.js';
import { type KeptSecrets, loadSecrets, SECRETS_FILE } from '../adapters/signing/secrets.js';
import type { Config } from '../config/config.js';
import type { Secrets } from '../ports/secrets.js';
import type { Clock } from '../ports/system.js';
import { openWritableDirectory } from './writable-directory.js';

export interface OpenedSecrets extends KeptSecrets {
  /** The identity that all processes of a cluster share. Undefined if this process has its own identity. */
  readonly shared: ClusterIdentity | undefined;
  /** The secret files that other users could read. */
  readonly exposed: readonly { readonly path: string; readonly found: 'tightened' | 'group' }[];
}

/** @throws Error for a data directory or a bundle of another environment */
export async function openSecrets({
  dataDirectory,
  secrets: given,
  environment,
  signing,
}: Config): Promise<OpenedSecrets> {
  await openWritableDirectory('TAKEMARK_DATA_DIR', dataDirectory);
  const files = [SECRETS_FILE, OPERATOR_TOKEN_FILE].map((name) => join(dataDirectory, name));
  if (given !== undefined && 'file' in given) files.push(given.file);
  if (signing.files?.key !== undefined) files.push(signing.files.key);
  if (signing.pkcs11 !== undefined && 'file' in signing.pkcs11.pin) files.push(signing.pkcs11.pin.file);
  const exposed: OpenedSecrets['exposed'][number][] = [];
  for (const path of [...files, ...(await keyFiles(join(dataDirectory, 'signing')))]) {
    const found = await secureFile(path);
    if (found !== 'sound') exposed.push({ path, found });
  }
  if (given !== undefined) {
    const shared =
      'file' in given
        ? await readClusterBundle(given.file, environment)
        : clusterIdentity(given.text, 'TAKEMARK_SECRETS', environment);
    return { secrets: shared.secrets, complete: undefined, shared, exposed };
  }
  const kept = await loadSecrets({ directory: dataDirectory, environment, random: randomBytes });
  return { ...kept, shared: undefined, exposed };
}

/** The file of the operator token, and whether this start created it. */
export interface TokenFile {
  readonly path: string;
  readonly made: boolean;
}

/**
 * Returns the accepted operator tokens: the configured one, else the cluster's, else the one in the data
 * directory.
 */
export async function openOperatorTokens(
  { operator, dataDirectory }: Config,
  shared: ClusterIdentity | undefined,
): Promise<{ readonly tokens: readonly [string, ...string[]]; readonly file: TokenFile | undefined }> {
  if (operator.token !== undefined) return { tokens: [operator.token], file: undefined };
  if (shared !== undefined) return { tokens: shared.operatorTokens, file: undefined };
  const { token, ...file } = await loadOperatorToken({ directory: dataDirectory, random: randomBytes });
  return { tokens: [token], file };
}

export async function openSigning(
  config: Config,
  shared: ClusterIdentity | undefined,
  clock: Clock,
): ReturnType<typeof loadSigning> {
  const { dataDirectory, environment, signing } = config;
  return loadSigning({
    directory: join(dataDirectory, 'signing'),
    environment,
    algorithm: signing.algorithm,
    ...defined({ files: signing.files, token: await openSigningToken(config) }),
    ...(shared && { pems: shared.signing, known: [shared.signing, ...shared.knownSigning] }),
    clock,
    random: randomBytes,
  });
}

/** Opens the key in a PKCS#11 token. Returns undefined if the keys are in files. */
export async function openSigningToken({ signing: { pkcs11 } }: Config): Promise<TokenKey | undefined> {
  if (pkcs11 === undefined) return undefined;
  const { pin, ...token } = pkcs11;
  return openToken({
    ...token,
    pin: 'text' in pin ? pin.text : (await readFile(pin.file, 'utf8')).split(/\r?\n/)[0]!,
  });
}

/** Returns an authenticator with the secret of a purpose, bound to this environment. */
export function authenticatorOf(
  secrets: Secrets,
  purpose: 'event' | 'row' | 'audit',
  { environment }: Config,
): Authenticator {
  return new Authenticator(
    { current: () => secrets.current(purpose), find: (id) => secrets.find(purpose, id) },
    environment,
  );
}
