import { createPrivateKey, type KeyObject, type X509Certificate } from 'node:crypto';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { SignatureAlgorithm } from '../../../core/domain/parsed-credential.js';
import type { Clock } from '../../ports/system.js';
import { makeCertificateRequest } from './certificate-request.js';
import { algorithmOf, generateKey, identityOf, privatePem, publicOf, signRaw } from './identity.js';
import { keepFile } from './kept-file.js';
import { keepPair, leafDirectory, leavesOf, readCertificates } from './key-directory.js';
import { assertUsable, authorityNameOf, certificatesIn, leafNameOf } from './load-signing.js';
import type { TokenKey } from './pkcs11-token.js';

export interface InstallationOptions {
  /** The directory, as for `loadSigning`. */
  readonly directory: string;
  readonly environment: string;
  readonly algorithm: SignatureAlgorithm;
  /** The token that holds the key. Absent if the key is in the directory. */
  readonly token?: TokenKey;
  readonly clock: Clock;
}

/**
 * Makes a request for a new leaf, in PEM. Its key is made here and stays here, or it is the token's. A request that
 * is made again before the leaf is installed has the same key.
 */
export async function requestLeaf({
  directory,
  environment,
  algorithm,
  token,
}: InstallationOptions): Promise<string> {
  const subject = leafNameOf(environment, algorithm);
  if (token !== undefined) {
    const publicKey = await token.publicKey();
    if (algorithmOf(publicKey) !== algorithm)
      throw new Error(`the token's key cannot be used for ${algorithm}`);
    return makeCertificateRequest(subject, publicKey, (message) => token.sign(algorithm, message));
  }
  const { text } = await keepFile(requestDirectory(directory, environment, algorithm), REQUEST_KEY, () =>
    privatePem(generateKey(algorithm).privateKey),
  );
  const key = createPrivateKey(text);
  return makeCertificateRequest(subject, publicOf(key), (message) => signRaw(key, algorithm, message));
}

export interface InstalledLeaf {
  readonly kid: string;
  readonly notAfter: Date;
  /** The leaf that signed before; it verifies on, and its key is gone. */
  readonly former?: string;
}

/**
 * Makes a leaf that was issued for the request the one that signs from the next start on. The former one goes
 * to `known/`, without its key. Killed at any moment it leaves the former one in use, or the new one.
 * @param pem the leaf, then its authority
 * @throws Error with words for the operator
 */
export async function installLeaf(options: InstallationOptions, pem: string): Promise<InstalledLeaf> {
  const { directory, environment, algorithm, token, clock } = options;
  const home = join(directory, environment);
  const [leaf, authority, ...more] = certificatesIn(pem);
  if (leaf === undefined || authority === undefined || more.length > 0)
    throw new Error('the file must hold two certificates: the leaf, then its authority');
  const key = token === undefined ? await requestedKey(options) : await token.publicKey();
  if (algorithmOf(leaf.publicKey) !== algorithm)
    throw new Error(
      `the certificate's key cannot be used for ${algorithm}, the algorithm of TAKEMARK_SIGNING_ALGORITHM`,
    );
  const held = token === undefined ? leaf.checkPrivateKey(key) : leaf.publicKey.equals(key);
  if (!held) throw new Error('the certificate is for a different key than the request');
  const expected = leafNameOf(environment, algorithm);
  if (
    !names(leaf.subject, expected.commonName) ||
    !names(authority.subject, authorityNameOf({ environment }).commonName)
  )
    throw new Error(`the certificate is not for the environment ${environment}`);
  assertUsable({ leaf, authority }, clock.now());

  const { kid } = identityOf(leaf);
  const [former] = await leavesOf(home, algorithm);
  const pair = {
    certificate: `${leaf.toString()}${authority.toString()}`,
    ...(token === undefined ? { key: privatePem(key) } : {}),
  };
  if (former === undefined) {
    await keepPair(home, leafDirectory(algorithm, 1), pair);
  } else {
    const formerPath = join(home, leafDirectory(algorithm, former));
    const [formerLeaf, formerAuthority = await authorityOf(home)] = certificatesIn(
      (await readCertificates(formerPath)) ?? '',
    );
    if (formerLeaf === undefined) throw new Error(`no certificate in ${formerPath}`);
    const formerKid = identityOf(formerLeaf).kid;
    if (formerKid === kid) throw new Error('this certificate is already installed');
    await keepFile(
      join(home, 'known'),
      `${formerKid}.pem`,
      () => `${formerLeaf.toString()}${formerAuthority?.toString() ?? ''}`,
    );
    await keepPair(home, leafDirectory(algorithm, former + 1), pair);
    await rm(formerPath, { recursive: true });
    await rm(requestDirectory(directory, environment, algorithm), { recursive: true, force: true });
    return { kid, notAfter: new Date(leaf.validTo), former: formerKid };
  }
  await rm(requestDirectory(directory, environment, algorithm), { recursive: true, force: true });
  return { kid, notAfter: new Date(leaf.validTo) };
}

const REQUEST_KEY = 'key.pem';

function requestDirectory(directory: string, environment: string, algorithm: SignatureAlgorithm): string {
  return join(directory, environment, `request-${algorithm.toLowerCase()}`);
}

async function requestedKey({ directory, environment, algorithm }: InstallationOptions): Promise<KeyObject> {
  const text = await readFile(
    join(requestDirectory(directory, environment, algorithm), REQUEST_KEY),
    'utf8',
  ).catch((cause: unknown) => {
    throw new Error('no certificate was requested here: run takemark operator signing request first', {
      cause,
    });
  });
  return createPrivateKey(text);
}

async function authorityOf(home: string): Promise<X509Certificate | undefined> {
  return certificatesIn((await readCertificates(join(home, 'authority'))) ?? '')[0];
}

function names(subject: string, commonName: string): boolean {
  return subject.split('\n').includes(`CN=${commonName}`);
}
