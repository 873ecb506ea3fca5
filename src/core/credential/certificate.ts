import { createHash, type KeyObject, X509Certificate } from 'node:crypto';
import { defined } from '../domain/defined.js';
import { readSigningUse, type SigningUse } from './signing-use.js';

/**
 * An end-entity certificate, with the members that the formats need. Validity is in unix seconds, both ends
 * included (RFC 5280, 4.1.2.5).
 */
export interface SignerCertificate {
  /** The SHA-256 of the DER in lower-case hex. */
  readonly kid: string;
  readonly publicKey: KeyObject;
  /** The name of the subject: the organisation, or the common name without an organisation. */
  readonly name?: string;
  readonly notBefore: number;
  readonly notAfter: number;
  /** What the certificate allows, by the profile of C2PA for signers. */
  readonly use: SigningUse;
}

const MAX_CERTIFICATE_BYTES = 16 * 1024;

export function certificateKid(der: Uint8Array): string {
  return createHash('sha256').update(der).digest('hex');
}

/**
 * The certificates read last, by their digest. Parsing a certificate takes longer than checking a signature,
 * and a service sees few certificates. test/style/module-state.test.ts allows this mutable state of a module.
 * Readers of credentials stay pure functions, because an entry depends only on its key.
 */
const read = new Map<string, SignerCertificate>();
const MAX_READ = 64;

/**
 * Parses a certificate. Returns undefined when the bytes are not a certificate with a key that this platform
 * supports.
 */
export function readCertificate(der: Uint8Array): SignerCertificate | undefined {
  const kid = certificateKid(der);
  const certificate = read.get(kid) ?? parseSigner(der, kid);
  if (certificate === undefined) return undefined;
  // The map keeps the order of use, so the least recently used certificate is first and is evicted.
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
      use: readSigningUse(der),
    };
  } catch {
    return undefined;
  }
}

/**
 * Reports whether each certificate of a chain, leaf first, is signed by the next (C2PA 2.2 section 14.5). The
 * result says nothing about trust. It only authenticates the bytes of a leaf that is not covered by the
 * signature. A single certificate cannot be compared.
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
    // OpenSSL ignores bytes after the certificate. They could hide data, so they are refused.
    return certificate.raw.length === der.length ? certificate : undefined;
  } catch {
    return undefined;
  }
}

function nameOf(certificate: X509Certificate): string | undefined {
  // The legacy form has unescaped values, but `subject` escapes them. A repeated attribute is an array in the
  // legacy form.
  const { O: organisation, CN: commonName } = certificate.toLegacyObject().subject as Record<
    string,
    string | readonly string[] | undefined
  >;
  const name = organisation ?? commonName;
  return typeof name === 'string' ? name : name?.[0];
}
