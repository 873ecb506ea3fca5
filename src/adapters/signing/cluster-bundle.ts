import { readFile } from 'node:fs/promises';
import type { SignatureAlgorithm } from '../../domain/credential-reading.js';
import type { Clock } from '../../ports/clock.js';
import type { Secrets } from '../../ports/secrets.js';
import { makeSigningPems, type SigningPems } from './load-signing.js';
import { newSecrets, readSecrets, type SecretsBundle } from './secrets.js';

/** In the file: the secrets as one machine keeps them, and beside them what else a cluster must have in common. */
interface ClusterBundle extends SecretsBundle {
  readonly signing: SigningPems;
  readonly operatorToken: string;
}

/** One identity for all processes of a cluster. */
export interface ClusterIdentity {
  readonly secrets: Secrets;
  readonly signing: SigningPems;
  readonly operatorToken: string;
}

/** The text of a new bundle: every secret, a signing identity and the operator's token. */
export function makeClusterBundle(options: { readonly environment: string; readonly algorithm: SignatureAlgorithm; readonly clock: Clock; readonly random: (length: number) => Uint8Array }): string {
  const bundle: ClusterBundle = {
    ...newSecrets(options.environment, options.random),
    signing: makeSigningPems(options),
    operatorToken: Buffer.from(options.random(32)).toString('base64url'),
  };
  return `${JSON.stringify(bundle, null, 2)}\n`;
}

/** @throws Error for a file that is not there, is damaged, or belongs to another environment */
export async function readClusterBundle(path: string, environment: string): Promise<ClusterIdentity> {
  const text = await readFile(path, 'utf8').catch((cause: unknown) => {
    throw new Error(`the bundle of secrets ${path} could not be read; takemark operator secrets init writes one`, { cause });
  });
  const secrets = readSecrets(text, path, environment);
  const { signing, operatorToken } = JSON.parse(text) as Partial<ClusterBundle>;
  const pems = [signing?.certificate, signing?.key, signing?.authority];
  if (signing === undefined || pems.some((pem) => typeof pem !== 'string') || typeof operatorToken !== 'string' || operatorToken.length < 16) throw new Error(`${path} is damaged`);
  return { secrets, signing, operatorToken };
}
