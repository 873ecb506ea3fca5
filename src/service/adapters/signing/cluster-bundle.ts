import { readFile } from 'node:fs/promises';
import type { SignatureAlgorithm } from '../../../core/domain/parsed-credential.js';
import type { Secrets } from '../../ports/secrets.js';
import type { Clock } from '../../ports/system.js';
import { makeSigningPems, type SigningOptions, type SigningPems, signingPemsOf } from './load-signing.js';
import { newOperatorToken } from './operator-token.js';
import { newSecrets, parseBundle, readSecrets, type SecretsBundle } from './secrets.js';

/**
 * The content of the bundle's file: the secrets as one machine keeps them, and everything else that the processes
 * of a cluster must have in common.
 */
export interface ClusterBundle extends SecretsBundle {
  readonly signing: SigningPems;
  /** The leaf that will sign. Its certificate verifies already. */
  readonly nextSigning?: SigningPems;
  /** The leaves that signed before, without their keys. The last one is first. */
  readonly formerSigning?: readonly Pick<SigningPems, 'certificate' | 'authority'>[];
  readonly operatorToken: string;
  readonly nextOperatorToken?: string;
  readonly formerOperatorToken?: { readonly token: string /** Unix seconds. */; readonly since: number };
}

/** The identity for all processes of a cluster. */
export interface ClusterIdentity {
  readonly secrets: Secrets;
  readonly signing: SigningPems;
  /** The further leaves that verify. */
  readonly knownSigning: readonly Pick<SigningPems, 'certificate' | 'authority'>[];
  /** The operator's tokens, the current one first. */
  readonly operatorTokens: readonly [string, ...string[]];
}

/** Makes the text of a new bundle: every secret, a signing identity and the operator's token. */
export function makeClusterBundle(options: {
  readonly environment: string;
  readonly algorithm: SignatureAlgorithm;
  readonly clock: Clock;
  readonly random: (length: number) => Uint8Array;
}): string {
  const bundle: ClusterBundle = {
    ...newSecrets(options.environment, options.random),
    signing: makeSigningPems(options),
    operatorToken: newOperatorToken(options.random),
  };
  return `${JSON.stringify(bundle, null, 2)}\n`;
}

/**
 * Returns the text of the bundle with the secrets, the signing identity and the operator token of one machine.
 * @param secrets the text of the machine's file of secrets
 * @throws Error
 */
export async function bundleOfMachine({
  secrets,
  operatorToken,
  signing,
}: {
  readonly secrets: string;
  readonly operatorToken: string;
  readonly signing: SigningOptions;
}): Promise<string> {
  const { current, former } = await signingPemsOf(signing);
  const bundle: ClusterBundle = {
    ...parseBundle(secrets, 'the file of secrets'),
    signing: current,
    formerSigning: former,
    operatorToken,
  };
  return `${JSON.stringify(bundle, null, 2)}\n`;
}

/** @throws Error for a file that is not there, is damaged, or belongs to another environment */
export async function readClusterBundle(path: string, environment: string): Promise<ClusterIdentity> {
  const text = await readFile(path, 'utf8').catch((cause: unknown) => {
    throw new Error(
      `the bundle of secrets ${path} could not be read; create a bundle with takemark operator secrets init`,
      { cause },
    );
  });
  return clusterIdentity(text, path, environment);
}

/**
 * @param name of where the text is from, for the message. @throws Error for one that is damaged, or belongs
 * to another environment
 */
export function clusterIdentity(text: string, name: string, environment: string): ClusterIdentity {
  const secrets = readSecrets(text, name, environment);
  const {
    signing,
    nextSigning,
    formerSigning = [],
    operatorToken,
    nextOperatorToken,
    formerOperatorToken,
  } = parseClusterBundle(text, name);
  const others = [nextOperatorToken, formerOperatorToken?.token].filter((token) => token !== undefined);
  return {
    secrets,
    signing,
    knownSigning: [...(nextSigning === undefined ? [] : [nextSigning]), ...formerSigning],
    operatorTokens: [operatorToken, ...others],
  };
}

/** @param name of the file, for the message. @throws Error */
export function parseClusterBundle(text: string, name: string): ClusterBundle {
  const bundle = parseBundle(text, name) as Partial<ClusterBundle> & SecretsBundle;
  const {
    signing,
    nextSigning,
    formerSigning = [],
    operatorToken,
    nextOperatorToken = operatorToken,
    formerOperatorToken,
  } = bundle;
  const pems = [signing?.certificate, signing?.key, signing?.authority];
  if (nextSigning !== undefined) pems.push(nextSigning.certificate, nextSigning.key, nextSigning.authority);
  if (!Array.isArray(formerSigning)) throw new Error(`${name} is damaged`);
  for (const { certificate, authority } of formerSigning) pems.push(certificate, authority);
  const tokens = [
    operatorToken,
    nextOperatorToken,
    formerOperatorToken === undefined ? operatorToken : formerOperatorToken.token,
  ];
  if (
    pems.some((pem) => typeof pem !== 'string') ||
    tokens.some((token) => typeof token !== 'string' || token.length < 16)
  )
    throw new Error(`${name} is damaged`);
  return bundle as ClusterBundle;
}
