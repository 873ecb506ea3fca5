import { createHash, type KeyObject, X509Certificate } from 'node:crypto';
import { defined } from '../domain/defined.js';

/**
 * End-entity certificate as far as the formats need it. Validity in Unix seconds, both ends included (RFC
 * 5280, 4.1.2.5).
 */
export interface SignerCertificate {
  /** Lower-case hex SHA-256 of the DER. */
  readonly kid: string;
  readonly publicKey: KeyObject;
  /** Name of the subject: organisation, else common name. */
  readonly name?: string;
  readonly notBefore: number;
  readonly notAfter: number;
}

const MAX_CERTIFICATE_BYTES = 16 * 1024;

export function certificateKid(der: Uint8Array): string {
  return createHash('sha256').update(der).digest('hex');
}

/**
 * Cache of the certificates read last, by their digest: parsing one takes longer than checking a signature,
 * and a service sees few. Mutable state of a module, which test/style/module-state.test.ts allows here:
 * readers of credentials are pure functions, and an entry follows from its key alone, so nobody can see
 * whether it was there.
 */
const read = new Map<string, SignerCertificate>();
const MAX_READ = 64;

/** Parses a certificate; undefined where the bytes are no certificate with a key this platform knows. */
export function readCertificate(der: Uint8Array): SignerCertificate | undefined {
  const kid = certificateKid(der);
  const certificate = read.get(kid) ?? parseSigner(der, kid);
  if (certificate === undefined) return undefined;
  // The one that was not used for longest stands first, and goes first.
  read.delete(kid);
  read.set(kid, certificate);
  if (read.size > MAX_READ) read.delete(read.keys().next().value!);
  return certificate;
}

function parseSigner(der: Uint8Array, kid: string): SignerCertificate | undefined {
  const certificate = parse(der);
  if (certificate === undefined) return undefined;
  try {
    const name = nameOf(certificate);
    return {
      kid,
      publicKey: certificate.publicKey,
      ...defined({ name }),
      notBefore: Math.floor(Date.parse(certificate.validFrom) / 1000),
      notAfter: Math.floor(Date.parse(certificate.validTo) / 1000),
    };
  } catch {
    return undefined;
  }
}

/**
 * Tells whether each certificate of a chain, leaf first, is signed by the next (C2PA 2.2 section 14.5). The
 * outcome says nothing of trust; it only ties the leaf's own bytes down where they travel unsigned. A single
 * certificate has nothing to be compared with.
 */
export function chainHangsTogether(chain: readonly Uint8Array[]): boolean {
  if (chain.length < 2) return true;
  const parsed = chain.map(parse);
  try {
    return parsed.every((certificate, at) => {
      const next = parsed[at + 1];
      if (certificate === undefined) return false;
      if (next !== undefined) return certificate.checkIssued(next) && certificate.verify(next.publicKey);
      return certificate.subject !== certificate.issuer || certificate.verify(certificate.publicKey);
    });
  } catch {
    return false;
  }
}

function parse(der: Uint8Array): X509Certificate | undefined {
  if (der.length === 0 || der.length > MAX_CERTIFICATE_BYTES) return undefined;
  try {
    const certificate = new X509Certificate(der);
    // OpenSSL ignores bytes behind the certificate. They are a place to hide something, so they are refused.
    return certificate.raw.length === der.length ? certificate : undefined;
  } catch {
    return undefined;
  }
}

function nameOf(certificate: X509Certificate): string | undefined {
  // The legacy form has the values as they are; `subject` escapes them. An attribute given twice is an array
  // there.
  const { O: organisation, CN: commonName } = certificate.toLegacyObject().subject as Record<
    string,
    string | readonly string[] | undefined
  >;
  const name = organisation ?? commonName;
  return typeof name === 'string' ? name : name?.[0];
}
