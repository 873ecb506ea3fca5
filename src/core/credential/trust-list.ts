import { createHash, X509Certificate } from 'node:crypto';
import type { SigningIdentity, TrustList } from '../ports/signing.js';

/**
 * Creates the list of certificates that this environment trusts.
 * @param identities every leaf that verifies, current and former, pinned byte for byte
 * @param authorities certificates of the authorities, the current one first
 */
export function createTrustList(
  identities: readonly SigningIdentity[],
  authorities: readonly X509Certificate[],
): TrustList {
  const byKid = new Map(identities.map((identity) => [identity.kid, identity]));
  const subjects = new Set(authorities.map((authority) => comparable(authority.subject)));
  const keyIds = authorities.map(subjectKeyId).filter((keyId) => keyId !== undefined);
  const pems = [...new Set(authorities.map((authority) => authority.toString()))];
  return {
    find: (certificate) => byKid.get(createHash('sha256').update(certificate).digest('hex')),
    issuedByOurAuthority(certificate) {
      try {
        const leaf = new X509Certificate(certificate);
        return authorities.some((authority) => leaf.verify(authority.publicKey));
      } catch {
        return false;
      }
    },
    namesOurAuthority(certificate) {
      const bytes = Buffer.from(certificate.buffer, certificate.byteOffset, certificate.byteLength);
      // [0] of an authorityKeyIdentifier (RFC 5280 section 4.2.1.1) at any position. The value is only a
      // claim, so no parser is needed.
      if (keyIds.some((keyId) => bytes.includes(Buffer.concat([Buffer.from([0x80, keyId.length]), keyId]))))
        return true;
      try {
        return subjects.has(comparable(new X509Certificate(bytes).issuer));
      } catch {
        return false;
      }
    },
    identities: () => [...byKid.values()],
    authorities: () => pems,
  };
}

/**
 * Returns a name in a form for comparison. Case, spacing (RFC 5280 section 7.1) and the order of attributes
 * do not count, because a reader of names does not see them. Node writes one attribute per line, and a
 * backslash before an outer space.
 */
function comparable(name: string): string {
  return name
    .normalize('NFKC')
    .toLowerCase()
    .split('\n')
    .map((attribute) => attribute.replace(/\\/g, '').replace(/\s+/g, ' ').replace(/ ?= ?/, '=').trim())
    .sort()
    .join('\n');
}

/**
 * Returns the value of the subjectKeyIdentifier extension: its OID, an octet string, and an inner octet
 * string (RFC 5280 section 4.2.1.2).
 */
function subjectKeyId(certificate: X509Certificate): Buffer | undefined {
  const { raw } = certificate;
  const oid = Buffer.from('0603551d0e04', 'hex');
  const at = raw.indexOf(oid);
  const length = at < 0 ? 0 : (raw[at + oid.length + 2] ?? 0);
  const start = at + oid.length + 3;
  return at < 0 || length < 8 || raw[at + oid.length + 1] !== 0x04
    ? undefined
    : raw.subarray(start, start + length);
}
