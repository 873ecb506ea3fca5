import { createPrivateKey, X509Certificate } from 'node:crypto';
import { join } from 'node:path';
import type { SignatureAlgorithm } from '../../../core/domain/parsed-credential.js';
import type { Clock } from '../../ports/system.js';
import { makeCertificate } from './certificate-profile.js';
import { readCertificateRequest } from './certificate-request.js';
import { identityOf, publicOf } from './identity.js';
import { keepKeyPair, readKeyPair } from './key-directory.js';
import { authorityNameOf, leafNameOf, newAuthority } from './load-signing.js';

/**
 * An authority on a machine of its own: its directory holds its key and certificate, and nothing of it is
 * ever needed by a service but the certificate.
 */
export interface AuthorityOptions {
  readonly directory: string;
  readonly environment: string;
  readonly clock: Clock;
  readonly random: (length: number) => Uint8Array;
}

const NAME = 'authority';
const DAY_MS = 86_400_000;

/** @returns PEM of the new authority's certificate. @throws Error where there is one already */
export async function initAuthority(options: AuthorityOptions): Promise<string> {
  if ((await readKeyPair(join(options.directory, NAME))) !== undefined)
    throw new Error(`${join(options.directory, NAME)} already holds an authority`);
  const made = newAuthority(authorityNameOf(options), options);
  const kept = await keepKeyPair(options.directory, NAME, made);
  if (kept.key !== made.key) throw new Error(`${join(options.directory, NAME)} already holds an authority`);
  return kept.certificate;
}

export interface IssuedLeaf {
  /** The certificates in PEM: the leaf, then its authority. */
  readonly pem: string;
  readonly kid: string;
  readonly algorithm: SignatureAlgorithm;
  readonly subject: string;
  readonly notBefore: Date;
  readonly notAfter: Date;
}

/**
 * Signs a leaf for a request: of this environment's name and the closed profile, nothing else the request
 * might want.
 * @param days that it lives, at most as long as its authority
 * @throws Error with words for the operator
 */
export async function issueLeaf(
  { directory, environment, clock, random }: AuthorityOptions,
  requestPem: string,
  days: number,
): Promise<IssuedLeaf> {
  const pair = await readKeyPair(join(directory, NAME));
  if (pair === undefined)
    throw new Error(`there is no authority in ${directory}; create one with takemark authority init`);
  const authority = new X509Certificate(pair.certificate);
  const issuer = authorityNameOf({ environment });
  if (!authority.subject.split('\n').includes(`CN=${issuer.commonName}`))
    throw new Error(`this authority is not for the environment ${environment}`);
  const request = readCertificateRequest(requestPem);
  const subject = leafNameOf(environment, request.algorithm);
  if (
    request.subject.organisation !== subject.organisation ||
    request.subject.commonName !== subject.commonName
  ) {
    throw new Error(
      `the request is for '${request.subject.commonName}', but this authority signs only for '${subject.commonName}'`,
    );
  }
  const now = clock.now();
  const notAfter = new Date(Math.min(now + days * DAY_MS, Date.parse(authority.validTo)));
  if (notAfter.getTime() <= now)
    throw new Error(`the certificate of the authority expired at ${authority.validTo}`);
  if (Date.parse(authority.validFrom) > now)
    throw new Error(`the certificate of the authority is not valid before ${authority.validFrom}`);
  const notBefore = new Date(Math.max(now - DAY_MS, Date.parse(authority.validFrom)));
  const issuerKey = createPrivateKey(pair.key);
  const leaf = new X509Certificate(
    makeCertificate({
      subject,
      issuer,
      subjectKey: request.publicKey,
      issuerKey,
      issuerPublicKey: publicOf(issuerKey),
      notBefore,
      notAfter,
      serial: random(16),
      kind: 'leaf',
    }),
  );
  return {
    pem: `${leaf.toString()}${authority.toString()}`,
    kid: identityOf(leaf).kid,
    algorithm: request.algorithm,
    subject: subject.commonName,
    notBefore,
    notAfter,
  };
}
