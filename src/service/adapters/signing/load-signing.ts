import { createHash, createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createTrustList } from '../../../core/credential/trust-list.js';
import type { SignatureAlgorithm } from '../../../core/domain/parsed-credential.js';
import type { Validity } from '../../../core/domain/validity.js';
import type { IssuingCertificates, Signer, SigningIdentity, TrustList } from '../../../core/ports/signing.js';
import type { Clock } from '../../ports/system.js';
import { type CertificateName, makeCertificate } from './certificate-profile.js';
import { createSigner, generateKey, identityOf, privatePem, publicOf } from './identity.js';
import {
  entriesOf,
  type KeyPair,
  keepKeyPair,
  leafDirectory,
  leavesOf,
  readCertificates,
  readKeyPair,
  removeUnfinished,
} from './key-directory.js';
import { createTokenSigner, type TokenKey } from './pkcs11-token.js';

/** The paths of PEM files that were made elsewhere. */
export interface SigningFiles {
  /** The leaf. */
  readonly certificate: string;
  /** The private key of the leaf in PKCS#8. Absent if a token has it. */
  readonly key?: string;
  /** The authority that issued it. */
  readonly authority: string;
}

/** The signing files as PEM texts. */
export interface SigningPems {
  readonly certificate: string;
  readonly key: string;
  readonly authority: string;
}

export interface SigningOptions {
  /**
   * The directory of the identities. It has, by environment, `authority/`, `leaf-ed25519/`, `leaf-es256/`, their
   * successors such as `leaf-ed25519.2/`, and `known/*.pem`, which the operator puts there.
   */
  readonly directory: string;
  readonly environment: string;
  /** The algorithm of the leaf that signs if no files are given. The default is Ed25519. */
  readonly algorithm?: SignatureAlgorithm;
  readonly files?: SigningFiles;
  /** An identity that several processes share. `files` come first. */
  readonly pems?: SigningPems;
  /** The token with the key of the leaf, which is then that of `files`, else the one that was installed. */
  readonly token?: TokenKey;
  /** The further leaves that verify: predecessors of the signing leaf, and the one that comes next. */
  readonly known?: readonly Pick<SigningPems, 'certificate' | 'authority'>[];
  readonly clock: Clock;
  /** The source of cryptographically random bytes. */
  readonly random: (length: number) => Uint8Array;
}

export interface Signing {
  readonly signer: Signer;
  readonly certificates: IssuingCertificates;
  readonly trust: TrustList;
}

const ORGANISATION = 'Takemark';
const DAY_MS = 86_400_000;
/**
 * The life of a leaf and of an authority in milliseconds. It is long, because without a time-stamp a file becomes
 * invalid for others on the day its leaf expires (C2PA 2.2 section 10.3.2.5.1).
 */
const LIFE_MS = 7305 * DAY_MS;
const ALGORITHMS: readonly SignatureAlgorithm[] = ['Ed25519', 'ES256'];

/**
 * Loads the signing identity of an environment, and makes it on the first start. The given files sign, else the given
 * texts, else the leaf of the wanted algorithm. The signing leaf verifies, and so do every leaf kept here, each leaf
 * given as known, and each leaf in `known/` (a PEM file: the leaf, then its authorities).
 * A leaf or an authority outside its validity is loaded: it signs nothing, and everything issued earlier verifies.
 * @throws Error when files are missing or do not belong together
 */
export async function loadSigning(options: SigningOptions): Promise<Signing> {
  const home = join(options.directory, options.environment);
  await removeUnfinished(home, options.clock.now());
  const local = options.token === undefined ? await localPair(home, options) : undefined;
  const current = local ?? (await tokenLeaf(home, options));
  assertProfile(current);
  const signer =
    local === undefined
      ? createTokenSigner(current.leaf, options.token!)
      : createSigner(local.leaf, local.key);

  const identities: SigningIdentity[] = [signer.identity];
  const authorities = [current.authority];
  const known = (options.known ?? []).map(({ certificate, authority }) => ({
    leaf: new X509Certificate(certificate),
    above: [new X509Certificate(authority)],
  }));
  for (const { leaf, above } of [...known, ...(await formerLeaves(home))]) {
    identities.push(identityOf(leaf));
    authorities.push(...above);
  }
  return {
    signer,
    certificates: {
      chain: [
        { certificate: 'signing', ...datesOf(current.leaf) },
        { certificate: 'authority', ...datesOf(current.authority) },
      ],
      renewal: renewalOf(options),
    },
    trust: createTrustList(identities, authorities),
  };
}

/** Returns the signing identity of one machine as texts, and the other leaves that verify there. @throws Error */
export async function signingPemsOf(options: SigningOptions): Promise<{
  readonly current: SigningPems;
  readonly former: readonly Pick<SigningPems, 'certificate' | 'authority'>[];
}> {
  const home = join(options.directory, options.environment);
  const { leaf, key, authority } = await localPair(home, options);
  const former = (await formerLeaves(home)).flatMap(({ leaf: other, above: [issuer] }) =>
    issuer === undefined || other.raw.equals(leaf.raw)
      ? []
      : [{ certificate: other.toString(), authority: issuer.toString() }],
  );
  return {
    current: { certificate: leaf.toString(), key: privatePem(key), authority: authority.toString() },
    former,
  };
}

function datesOf(certificate: X509Certificate): { readonly kid: string; readonly validity: Validity } {
  return {
    kid: createHash('sha256').update(certificate.raw).digest('hex'),
    validity: {
      notBefore: Math.floor(Date.parse(certificate.validFrom) / 1000),
      notAfter: Math.floor(Date.parse(certificate.validTo) / 1000),
    },
  };
}

/** Returns a sentence with the two steps that replace the certificate, which depend on where it comes from. */
function renewalOf({ files, pems }: Pick<SigningOptions, 'files' | 'pems'>): string {
  if (files !== undefined)
    return 'Replace the files of TAKEMARK_SIGNING_CERT and TAKEMARK_SIGNING_AUTHORITY, and restart the service.';
  if (pems !== undefined)
    return 'Run takemark operator secrets rotate --step add --purpose signing, and then the same with --step use.';
  return 'Run takemark operator signing request and takemark operator signing install, and restart the service.';
}

interface Certified {
  readonly leaf: X509Certificate;
  readonly authority: X509Certificate;
}

interface Current extends Certified {
  readonly key: KeyObject;
}

async function localPair(home: string, options: SigningOptions): Promise<Current> {
  const given = options.files === undefined ? options.pems : await readPems(options.files);
  const current = given === undefined ? await ownPair(home, options) : givenPair(given);
  if (!current.leaf.checkPrivateKey(current.key))
    throw new Error('the signing key does not belong to the signing certificate');
  return current;
}

/** Returns the leaf of a token's key. Each signature checks the key: a token that is away now may be back by then. */
async function tokenLeaf(home: string, { files, algorithm = 'Ed25519' }: SigningOptions): Promise<Certified> {
  if (files !== undefined) {
    const [certificate, authority] = await Promise.all(
      [files.certificate, files.authority].map((path) => readFile(path, 'utf8')),
    );
    return { leaf: new X509Certificate(certificate!), authority: new X509Certificate(authority!) };
  }
  const [number] = await leavesOf(home, algorithm);
  const [leaf, authority] =
    number === undefined
      ? []
      : certificatesIn((await readCertificates(join(home, leafDirectory(algorithm, number)))) ?? '');
  if (leaf === undefined || authority === undefined)
    throw new Error(
      `no certificate is installed for the token's ${algorithm} key: run takemark operator signing request, then install`,
    );
  return { leaf, authority };
}

async function readPems({ certificate, key, authority }: SigningFiles): Promise<SigningPems> {
  if (key === undefined) throw new Error('the signing certificate is configured without its key');
  const [leafPem, keyPem, authorityPem] = await Promise.all(
    [certificate, key, authority].map((path) => readFile(path, 'utf8')),
  );
  return { certificate: leafPem!, key: keyPem!, authority: authorityPem! };
}

function givenPair({ certificate, key, authority }: SigningPems): Current {
  return {
    leaf: readable('the signing certificate', () => new X509Certificate(certificate)),
    key: readable('the signing key', () => createPrivateKey(key)),
    authority: readable("the signing certificate's authority", () => new X509Certificate(authority)),
  };
}

/** Returns the content of a PEM text. @throws Error that names the text, which the platform's own error does not */
function readable<Value>(name: string, read: () => Value): Value {
  try {
    return read();
  } catch (cause) {
    throw new Error(`${name} cannot be read: the file is damaged, or is not PEM`, { cause });
  }
}

/** Makes a new authority and a leaf of it, for a bundle. The authority's key is not kept: it signs this one leaf. */
export function makeSigningPems(
  options: Pick<SigningOptions, 'environment' | 'algorithm' | 'clock' | 'random'>,
): SigningPems {
  const name = authorityNameOf(options);
  const authority = newAuthority(name, options);
  return {
    ...newLeaf(options.algorithm ?? 'Ed25519', name, authority, options),
    authority: authority.certificate,
  };
}

async function ownPair(home: string, options: SigningOptions): Promise<Current> {
  const algorithm = options.algorithm ?? 'Ed25519';
  const [number] = await leavesOf(home, algorithm);
  const pair =
    number === undefined
      ? await makeLeaf(home, algorithm, options)
      : await readKeyPair(join(home, leafDirectory(algorithm, number)));
  // An installed leaf brings its authority along.
  const [leaf, authority = await ownAuthority(home)] = certificatesIn(pair?.certificate ?? '');
  if (pair === undefined || leaf === undefined || authority === undefined)
    throw new Error(`the certificate or its authority is missing in ${home}`);
  const key = readable(`the signing key in ${home}`, () => createPrivateKey(pair.key));
  return { leaf, key, authority };
}

async function ownAuthority(home: string): Promise<X509Certificate | undefined> {
  return certificatesIn((await readCertificates(join(home, 'authority'))) ?? '')[0];
}

async function makeLeaf(
  home: string,
  algorithm: SignatureAlgorithm,
  options: SigningOptions,
): Promise<KeyPair> {
  const name = authorityNameOf(options);
  const authority = await readKeyPair(join(home, 'authority')).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
    throw new Error(
      `there is no ${algorithm} signing certificate here, and the authority's key is on another machine: run takemark operator signing request, then install`,
      { cause: error },
    );
  });
  return keepKeyPair(
    home,
    leafDirectory(algorithm, 1),
    newLeaf(
      algorithm,
      name,
      authority ?? (await keepKeyPair(home, 'authority', newAuthority(name, options))),
      options,
    ),
  );
}

/** Returns the subject of an environment's leaf. It does not depend on the place of the key. */
export function leafNameOf(environment: string, algorithm: SignatureAlgorithm): CertificateName {
  return { organisation: ORGANISATION, commonName: `${ORGANISATION} ${environment} ${algorithm}` };
}

export function authorityNameOf({ environment }: Pick<SigningOptions, 'environment'>): CertificateName {
  return { organisation: ORGANISATION, commonName: `${ORGANISATION} ${environment} authority` };
}

type Making = Pick<SigningOptions, 'environment' | 'clock' | 'random'>;

export function newAuthority(name: CertificateName, options: Making): KeyPair {
  // P-256: the one kind of key every validator of certificates knows.
  const { publicKey, privateKey } = generateKey('ES256');
  const der = makeCertificate({
    subject: name,
    issuer: name,
    subjectKey: publicKey,
    issuerKey: privateKey,
    issuerPublicKey: publicKey,
    ...life(options),
    kind: 'authority',
  });
  return { certificate: new X509Certificate(der).toString(), key: privatePem(privateKey) };
}

function newLeaf(
  algorithm: SignatureAlgorithm,
  issuer: CertificateName,
  authority: KeyPair,
  options: Making,
): KeyPair {
  const { publicKey, privateKey } = generateKey(algorithm);
  const issuerKey = createPrivateKey(authority.key);
  const subject = leafNameOf(options.environment, algorithm);
  const der = makeCertificate({
    subject,
    issuer,
    subjectKey: publicKey,
    issuerKey,
    issuerPublicKey: publicOf(issuerKey),
    ...life(options),
    kind: 'leaf',
  });
  return { certificate: new X509Certificate(der).toString(), key: privatePem(privateKey) };
}

function life({ clock, random }: Making): { notBefore: Date; notAfter: Date; serial: Uint8Array } {
  // A day earlier than now, for validators with a late clock.
  return {
    notBefore: new Date(clock.now() - DAY_MS),
    notAfter: new Date(clock.now() + LIFE_MS),
    serial: random(16),
  };
}

async function formerLeaves(home: string): Promise<{ leaf: X509Certificate; above: X509Certificate[] }[]> {
  const former: { leaf: X509Certificate; above: X509Certificate[] }[] = [];
  const authority = await ownAuthority(home);
  for (const algorithm of ALGORITHMS) {
    for (const number of await leavesOf(home, algorithm)) {
      const [leaf, ...above] = certificatesIn(
        (await readCertificates(join(home, leafDirectory(algorithm, number)))) ?? '',
      );
      if (leaf !== undefined)
        former.push({ leaf, above: above.length > 0 || authority === undefined ? above : [authority] });
    }
  }
  for (const entry of await entriesOf(join(home, 'known'))) {
    if (!entry.endsWith('.pem')) continue;
    const [leaf, ...above] = certificatesIn(await readFile(join(home, 'known', entry), 'utf8'));
    if (leaf === undefined) throw new Error(`no certificate in known/${entry}`);
    former.push({ leaf, above });
  }
  return former;
}

/** Returns the certificates of a PEM text, in their order. */
export function certificatesIn(pem: string): X509Certificate[] {
  return (pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []).map(
    (text) => new X509Certificate(text),
  );
}

/** Checks what a wrong file would otherwise show only on some partner's screen. */
function assertProfile({ leaf, authority }: Certified): void {
  if (leaf.ca || !leaf.checkIssued(authority) || !leaf.verify(authority.publicKey))
    throw new Error(
      'the authority did not issue the signing certificate, or the certificate is itself an authority',
    );
  // Validators demand an authority key identifier and one of these two usages (C2PA 2.2 section 14.5.1).
  const usages: readonly string[] = leaf.keyUsage ?? [];
  if (!usages.includes('1.3.6.1.5.5.7.3.4') && !usages.includes('1.3.6.1.4.1.62558.2.1'))
    throw new Error(
      'the signing certificate lacks the extended key usage emailProtection or c2pa-kp-claimSigning',
    );
  if (!leaf.raw.includes(Buffer.from('0603551d23', 'hex')))
    throw new Error('the signing certificate lacks an authority key identifier');
}

/**
 * Checks a certificate that is going to sign.
 * @param now milliseconds since the epoch
 * @throws Error for the operator, also outside the validity of the leaf or its authority
 */
export function assertUsable({ leaf, authority }: Certified, now: number): void {
  assertProfile({ leaf, authority });
  for (const [name, { validFrom, validTo }] of [
    ['signing certificate', leaf],
    ["authority's certificate", authority],
  ] as const) {
    if (now < Date.parse(validFrom)) throw new Error(`the ${name} is not valid before ${validFrom}`);
    if (now > Date.parse(validTo)) throw new Error(`the ${name} expired at ${validTo}`);
  }
}
