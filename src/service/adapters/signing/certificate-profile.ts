import { createHash, type KeyObject, sign } from 'node:crypto';

/**
 * Makes the two kinds of X.509 certificate the service needs (RFC 5280), as other validators of Content
 * Credentials demand them (C2PA 2.2 section 14.5.1). DER is written here because both are constant but for
 * names, keys and dates.
 */
export interface CertificateName {
  readonly organisation: string;
  readonly commonName: string;
}

export interface CertificateRequest {
  readonly subject: CertificateName;
  readonly issuer: CertificateName;
  readonly subjectKey: KeyObject;
  /** The private key of the issuer, Ed25519 or P-256. */
  readonly issuerKey: KeyObject;
  /** The public part of `issuerKey`. */
  readonly issuerPublicKey: KeyObject;
  readonly notBefore: Date;
  readonly notAfter: Date;
  /** The serial number of 16 cryptographically random bytes. */
  readonly serial: Uint8Array;
  readonly kind: 'authority' | 'leaf';
}

// basicConstraints CA:TRUE, path length 0; keyUsage keyCertSign. Both critical.
const AUTHORITY_EXTENSIONS = ['30120603551d130101ff040830060101ff020100', '300e0603551d0f0101ff040403020204'];
// basicConstraints CA:FALSE; keyUsage digitalSignature; extended key usage c2pa-kp-claimSigning and
// emailProtection, both, since old validators know only the second (C2PA 2.2 section 14.4.1). All critical.
const LEAF_EXTENSIONS = [
  '300c0603551d130101ff04023000',
  '300e0603551d0f0101ff040403020780',
  '30220603551d250101ff04183016060a2b0601040183e85e020106082b06010505070304',
];
/** The AlgorithmIdentifiers, as DER in hexadecimal (RFC 8410 section 3, RFC 5758 section 3.2). */
export const SIGNATURE_ED25519 = '300506032b6570';
export const SIGNATURE_ECDSA_SHA256 = '300a06082a8648ce3d040302';

/** Makes a certificate in DER. */
export function makeCertificate(request: CertificateRequest): Buffer {
  const ed25519 = request.issuerKey.asymmetricKeyType === 'ed25519';
  const algorithm = Buffer.from(ed25519 ? SIGNATURE_ED25519 : SIGNATURE_ECDSA_SHA256, 'hex');
  const spki = request.subjectKey.export({ type: 'spki', format: 'der' });
  // A positive number of constant length (RFC 5280 section 4.1.2.2).
  const serial = Buffer.from(request.serial.subarray(0, 16));
  serial[0] = (serial[0]! & 0x3f) | 0x40;
  const authorityKeyId = tlv(
    0x30,
    Buffer.from('0603551d23', 'hex'),
    tlv(0x04, tlv(0x30, tlv(0x80, keyIdentifier(request.issuerPublicKey)))),
  );
  const subjectKeyId = tlv(
    0x30,
    Buffer.from('0603551d0e', 'hex'),
    tlv(0x04, tlv(0x04, keyIdentifier(request.subjectKey))),
  );
  const extensions =
    request.kind === 'authority'
      ? [...AUTHORITY_EXTENSIONS.map(fromHex), subjectKeyId]
      : [...LEAF_EXTENSIONS.map(fromHex), authorityKeyId, subjectKeyId];
  const toBeSigned = tlv(
    0x30,
    fromHex('a003020102'), // version 3
    tlv(0x02, serial),
    algorithm,
    distinguishedName(request.issuer),
    tlv(0x30, time(request.notBefore), time(request.notAfter)),
    distinguishedName(request.subject),
    spki,
    tlv(0xa3, tlv(0x30, ...extensions)),
  );
  const signature = sign(ed25519 ? null : 'sha256', toBeSigned, request.issuerKey);
  return tlv(0x30, toBeSigned, algorithm, tlv(0x03, Buffer.from([0]), signature));
}

/**
 * Returns the SHA-1 of the public key's bits (RFC 5280 section 4.2.1.2, method 1). It is a name for the key, and
 * proves nothing.
 */
export function keyIdentifier(publicKey: KeyObject): Buffer {
  const spki = publicKey.export({ type: 'spki', format: 'der' });
  // The bit string ends the structure: 32 bytes of Ed25519, or an uncompressed point of P-256.
  return createHash('sha1')
    .update(spki.subarray(spki.length - (publicKey.asymmetricKeyType === 'ed25519' ? 32 : 65)))
    .digest();
}

/** Returns a Name of two attributes in DER. */
export function distinguishedName({ organisation, commonName }: CertificateName): Buffer {
  const attribute = (oid: string, value: string): Buffer =>
    tlv(0x31, tlv(0x30, fromHex(oid), tlv(0x0c, Buffer.from(value, 'utf8'))));
  return tlv(0x30, attribute('060355040a', organisation), attribute('0603550403', commonName));
}

/** Encodes a time as UTCTime until 2049, and as GeneralizedTime after (RFC 5280 section 4.1.2.5). */
function time(date: Date): Buffer {
  const digits = date
    .toISOString()
    .replace(/\.[0-9]{3}Z$/, 'Z')
    .replace(/[-:T]/g, '');
  return date.getUTCFullYear() < 2050
    ? tlv(0x17, Buffer.from(digits.slice(2), 'latin1'))
    : tlv(0x18, Buffer.from(digits, 'latin1'));
}

/** Encodes an element of DER, with at most 65,535 bytes of content. */
export function tlv(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  const head =
    length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...head]), content]);
}

function fromHex(digits: string): Buffer {
  return Buffer.from(digits, 'hex');
}
