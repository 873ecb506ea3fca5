import { createPrivateKey, X509Certificate, type KeyObject } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createTrustList } from '../../credential/trust-list.js';
import type { SignatureAlgorithm } from '../../domain/credential-reading.js';
import type { Clock } from '../../ports/clock.js';
import type { Signer, SigningIdentity, TrustList } from '../../ports/signing.js';
import { makeCertificate, type CertificateName } from './certificate-profile.js';
import { createSigner, generateKey, identityOf, privatePem, publicOf } from './identity.js';
import { entriesOf, keepKeyPair, readKeyPair, removeUnfinished, type KeyPair } from './key-directory.js';

/** Paths of PEM files made elsewhere. */
export interface SigningFiles {
  /** The leaf. */
  readonly certificate: string;
  /** Its private key, PKCS#8. */
  readonly key: string;
  /** The authority that issued it. */
  readonly authority: string;
}

/** The same, as PEM texts. */
export interface SigningPems {
  readonly certificate: string;
  readonly key: string;
  readonly authority: string;
}

export interface SigningOptions {
  /** Kept below it, by environment: `authority/`, `leaf-ed25519/`, `leaf-es256/`, and `known/*.pem` that the operator puts there. */
  readonly directory: string;
  readonly environment: string;
  /** Of the leaf that signs when no files are given; Ed25519 by default. */
  readonly algorithm?: SignatureAlgorithm;
  readonly files?: SigningFiles;
  /** An identity that several processes share; `files` come first. */
  readonly pems?: SigningPems;
  /** Leaves beside it that verify: its predecessors, and the one that comes next. */
  readonly known?: readonly Pick<SigningPems, 'certificate' | 'authority'>[];
  readonly clock: Clock;
  /** Cryptographically random bytes. */
  readonly random: (length: number) => Uint8Array;
}

export interface Signing {
  readonly signer: Signer;
  readonly trust: TrustList;
}

const ORGANISATION = 'Takemark';
const DAY_MS = 86_400_000;
/** Without a time-stamp a file turns invalid for others on the day its leaf expires (C2PA 2.2 section 10.3.2.5.1), so both live long. */
const LIFE_MS = 7_305 * DAY_MS;
const LEAF_DIRECTORIES: Readonly<Record<SignatureAlgorithm, string>> = { Ed25519: 'leaf-ed25519', ES256: 'leaf-es256' };

/**
 * The signing identity of an environment, made on the first start. What signs: the given files, else the leaf of the wanted
 * algorithm. What verifies: that one, every leaf kept here, and each leaf in `known/` (a PEM file: the leaf, then its authorities).
 * @throws Error when files are missing, do not belong together, or the leaf's time has passed
 */
export async function loadSigning(options: SigningOptions): Promise<Signing> {
  const home = join(options.directory, options.environment);
  await removeUnfinished(home, options.clock.now());
  const given = options.files === undefined ? options.pems : await readPems(options.files);
  const current = given === undefined ? await ownPair(home, options) : givenPair(given);
  const signer = createSigner(current.leaf, current.key);
  assertUsable(current, options.clock.now());

  const identities: SigningIdentity[] = [signer.identity];
  const authorities = [current.authority];
  const known = (options.known ?? []).map(({ certificate, authority }) => ({ leaf: new X509Certificate(certificate), above: [new X509Certificate(authority)] }));
  for (const { leaf, above } of [...known, ...(await formerLeaves(home))]) {
    identities.push(identityOf(leaf));
    authorities.push(...above);
  }
  return { signer, trust: createTrustList(identities, authorities) };
}

interface Current {
  readonly leaf: X509Certificate;
  readonly key: KeyObject;
  readonly authority: X509Certificate;
}

async function readPems(files: SigningFiles): Promise<SigningPems> {
  const [certificate, key, authority] = await Promise.all([files.certificate, files.key, files.authority].map((path) => readFile(path, 'utf8')));
  return { certificate: certificate!, key: key!, authority: authority! };
}

function givenPair({ certificate, key, authority }: SigningPems): Current {
  return { leaf: new X509Certificate(certificate), key: createPrivateKey(key), authority: new X509Certificate(authority) };
}

/** A new authority and a leaf of it, for a bundle. The authority's key is not kept: it signs this one leaf. */
export function makeSigningPems(options: Pick<SigningOptions, 'environment' | 'algorithm' | 'clock' | 'random'>): SigningPems {
  const name = authorityNameOf(options);
  const authority = newAuthority(name, options);
  return { ...newLeaf(options.algorithm ?? 'Ed25519', name, authority, options), authority: authority.certificate };
}

async function ownPair(home: string, options: SigningOptions): Promise<Current> {
  const algorithm = options.algorithm ?? 'Ed25519';
  const authorityName = authorityNameOf(options);
  const authorityPair = (await readKeyPair(join(home, 'authority'))) ?? (await keepKeyPair(home, 'authority', newAuthority(authorityName, options)));
  const authority = new X509Certificate(authorityPair.certificate);
  const name = LEAF_DIRECTORIES[algorithm];
  const leafPair = (await readKeyPair(join(home, name))) ?? (await keepKeyPair(home, name, newLeaf(algorithm, authorityName, authorityPair, options)));
  return { leaf: new X509Certificate(leafPair.certificate), key: createPrivateKey(leafPair.key), authority };
}

function authorityNameOf({ environment }: Pick<SigningOptions, 'environment'>): CertificateName {
  return { organisation: ORGANISATION, commonName: `${ORGANISATION} ${environment} authority` };
}

type Making = Pick<SigningOptions, 'environment' | 'clock' | 'random'>;

function newAuthority(name: CertificateName, options: Making): KeyPair {
  // P-256: the one kind of key every validator of certificates knows.
  const { publicKey, privateKey } = generateKey('ES256');
  const der = makeCertificate({ subject: name, issuer: name, subjectKey: publicKey, issuerKey: privateKey, issuerPublicKey: publicKey, ...life(options), kind: 'authority' });
  return { certificate: new X509Certificate(der).toString(), key: privatePem(privateKey) };
}

function newLeaf(algorithm: SignatureAlgorithm, issuer: CertificateName, authority: KeyPair, options: Making): KeyPair {
  const { publicKey, privateKey } = generateKey(algorithm);
  const issuerKey = createPrivateKey(authority.key);
  const subject = { organisation: ORGANISATION, commonName: `${ORGANISATION} ${options.environment} ${algorithm}` };
  const der = makeCertificate({ subject, issuer, subjectKey: publicKey, issuerKey, issuerPublicKey: publicOf(issuerKey), ...life(options), kind: 'leaf' });
  return { certificate: new X509Certificate(der).toString(), key: privatePem(privateKey) };
}

function life({ clock, random }: Making): { notBefore: Date; notAfter: Date; serial: Uint8Array } {
  // A day earlier than now, for validators whose clock is behind.
  return { notBefore: new Date(clock.now() - DAY_MS), notAfter: new Date(clock.now() + LIFE_MS), serial: random(16) };
}

async function formerLeaves(home: string): Promise<{ leaf: X509Certificate; above: X509Certificate[] }[]> {
  const former: { leaf: X509Certificate; above: X509Certificate[] }[] = [];
  const authority = await readKeyPair(join(home, 'authority'));
  for (const name of Object.values(LEAF_DIRECTORIES)) {
    const pair = await readKeyPair(join(home, name));
    if (pair !== undefined) former.push({ leaf: new X509Certificate(pair.certificate), above: authority === undefined ? [] : [new X509Certificate(authority.certificate)] });
  }
  for (const entry of await entriesOf(join(home, 'known'))) {
    if (!entry.endsWith('.pem')) continue;
    const [leaf, ...above] = certificatesIn(await readFile(join(home, 'known', entry), 'utf8'));
    if (leaf === undefined) throw new Error(`no certificate in known/${entry}`);
    former.push({ leaf, above });
  }
  return former;
}

function certificatesIn(pem: string): X509Certificate[] {
  return (pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []).map((text) => new X509Certificate(text));
}

/** What a wrong file would otherwise show only on some partner's screen. */
function assertUsable({ leaf, key, authority }: Current, now: number): void {
  if (!leaf.checkPrivateKey(key)) throw new Error('the signing key is not the certificate\'s');
  if (leaf.ca || !leaf.checkIssued(authority) || !leaf.verify(authority.publicKey)) throw new Error('the signing certificate is not a leaf that the authority issued');
  // Validators demand an authority key identifier and one of these two usages (C2PA 2.2 section 14.5.1).
  const usages: readonly string[] = leaf.keyUsage ?? [];
  if (!usages.includes('1.3.6.1.5.5.7.3.4') && !usages.includes('1.3.6.1.4.1.62558.2.1')) throw new Error('the signing certificate lacks the extended key usage emailProtection or c2pa-kp-claimSigning');
  if (!leaf.raw.includes(Buffer.from('0603551d23', 'hex'))) throw new Error('the signing certificate lacks an authority key identifier');
  if (now < Date.parse(leaf.validFrom) || now > Date.parse(leaf.validTo)) throw new Error('the signing certificate is not valid at this time');
}
