import { createPublicKey, type KeyObject, verify } from 'node:crypto';
import { DISPLAY_NAME_PATTERN } from '../../../core/domain/display-name.js';
import type { SignatureAlgorithm } from '../../../core/domain/parsed-credential.js';
import {
  type CertificateName,
  distinguishedName,
  SIGNATURE_ECDSA_SHA256,
  SIGNATURE_ED25519,
  tlv,
} from './certificate-profile.js';
import { algorithmOf } from './identity.js';

/**
 * The content of a request for a leaf: a name, and a key whose possession the request proves (PKCS#10, RFC 2986).
 */
export interface LeafRequest {
  readonly subject: CertificateName;
  readonly publicKey: KeyObject;
  readonly algorithm: SignatureAlgorithm;
}

const MAX_PEM_CHARACTERS = 4096;
const OID_ORGANISATION = '060355040a';
const OID_COMMON_NAME = '0603550403';

/**
 * Makes a signed request in PEM.
 * @param sign Ed25519: 64 bytes; ES256: r || s
 */
export async function makeCertificateRequest(
  subject: CertificateName,
  publicKey: KeyObject,
  sign: (message: Uint8Array) => Uint8Array | Promise<Uint8Array>,
): Promise<string> {
  const algorithm = algorithmOf(publicKey);
  const info = requestInfo(subject, publicKey);
  const raw = await sign(info);
  const der = tlv(
    0x30,
    info,
    algorithmIdentifier(algorithm),
    tlv(0x03, Buffer.from([0]), algorithm === 'ES256' ? ecdsaValue(raw) : raw),
  );
  return `-----BEGIN CERTIFICATE REQUEST-----\n${der.toString('base64').replace(/.{64}(?=.)/g, '$&\n')}\n-----END CERTIFICATE REQUEST-----\n`;
}

/**
 * Reads a request in the form that `makeCertificateRequest` writes. A request with any other content is refused.
 * @throws Error if it has another form, or if its maker does not hold the key
 */
export function readCertificateRequest(pem: string): LeafRequest {
  const refused = () => new Error('the file was not written by takemark operator signing request');
  const [, text] =
    pem.length > MAX_PEM_CHARACTERS
      ? []
      : (/^-----BEGIN CERTIFICATE REQUEST-----\n([A-Za-z0-9+/=\n]+)-----END CERTIFICATE REQUEST-----\n?$/.exec(
          pem.replaceAll('\r', ''),
        ) ?? []);
  if (text === undefined) throw refused();
  const der = Buffer.from(text, 'base64');
  const [request, afterRequest] = element(der, 0x30) ?? [];
  const [info, afterInfo] = element(request, 0x30) ?? [];
  const [, afterIdentifier] = element(afterInfo, 0x30) ?? [];
  const [bits, afterBits] = element(afterIdentifier, 0x03) ?? [];
  const [, afterVersion] = element(info, 0x02) ?? [];
  const [name, afterName] = element(afterVersion, 0x30) ?? [];
  const [spki] = element(afterName, 0x30) ?? [];
  if (afterRequest?.length !== 0 || afterBits?.length !== 0 || bits?.[0] !== 0 || spki === undefined)
    throw refused();
  const [organisation, afterOrganisation] = attribute(name, OID_ORGANISATION) ?? [];
  const [commonName, afterCommonName] = attribute(afterOrganisation, OID_COMMON_NAME) ?? [];
  if (organisation === undefined || commonName === undefined || afterCommonName?.length !== 0)
    throw refused();

  let publicKey: KeyObject;
  let algorithm: SignatureAlgorithm;
  try {
    publicKey = createPublicKey({ key: tlv(0x30, spki), format: 'der', type: 'spki' });
    algorithm = algorithmOf(publicKey);
  } catch (cause) {
    throw new Error('the key of the request is neither Ed25519 nor P-256', { cause });
  }
  const subject = { organisation, commonName };
  const signed = requestInfo(subject, publicKey);
  // Written again, it must be the same: no attribute, no other form of a name or number gets past this.
  const same = tlv(0x30, signed, algorithmIdentifier(algorithm), tlv(0x03, bits));
  if (!same.equals(der) || ![organisation, commonName].every((part) => DISPLAY_NAME_PATTERN.test(part)))
    throw refused();
  if (!verify(algorithm === 'ES256' ? 'sha256' : null, signed, publicKey, bits.subarray(1)))
    throw new Error('the request is not signed with the key in the request');
  return { subject, publicKey, algorithm };
}

/** Returns a CertificationRequestInfo of version 0 without attributes (RFC 2986 section 4.1). */
function requestInfo(subject: CertificateName, publicKey: KeyObject): Buffer {
  return tlv(
    0x30,
    Buffer.from('020100', 'hex'),
    distinguishedName(subject),
    publicKey.export({ type: 'spki', format: 'der' }),
    tlv(0xa0),
  );
}

function algorithmIdentifier(algorithm: SignatureAlgorithm): Buffer {
  return Buffer.from(algorithm === 'Ed25519' ? SIGNATURE_ED25519 : SIGNATURE_ECDSA_SHA256, 'hex');
}

/** Encodes r || s as ECDSA-Sig-Value (RFC 3279 section 2.2.3). */
function ecdsaValue(raw: Uint8Array): Buffer {
  const integer = (bytes: Uint8Array): Buffer => {
    const digits = Buffer.from(bytes)
      .toString('hex')
      .replace(/^(?:00)+(?=..)/, '');
    return tlv(
      0x02,
      Buffer.from(Number.parseInt(digits.slice(0, 2), 16) > 0x7f ? `00${digits}` : digits, 'hex'),
    );
  };
  return tlv(0x30, integer(raw.subarray(0, 32)), integer(raw.subarray(32)));
}

/**
 * Returns the content of the element at the start, and what follows it. Undefined if the element has another tag.
 */
function element(
  bytes: Buffer | undefined,
  tag: number,
): readonly [content: Buffer, rest: Buffer] | undefined {
  const first = bytes?.[1];
  if (bytes === undefined || first === undefined || bytes[0] !== tag) return undefined;
  const lengthBytes = first < 0x80 ? 0 : first - 0x80;
  if (lengthBytes > 2 || bytes.length < 2 + lengthBytes) return undefined;
  const start = 2 + lengthBytes;
  const end = start + (lengthBytes === 0 ? first : bytes.readUIntBE(2, lengthBytes));
  return end > bytes.length ? undefined : [bytes.subarray(start, end), bytes.subarray(end)];
}

/** Returns the value of a name's next attribute, a UTF8String alone in its set, and what follows the set. */
function attribute(
  bytes: Buffer | undefined,
  oid: string,
): readonly [value: string, rest: Buffer] | undefined {
  const [set, rest] = element(bytes, 0x31) ?? [];
  const [pair] = element(set, 0x30) ?? [];
  if (rest === undefined || pair?.subarray(0, 5).toString('hex') !== oid) return undefined;
  const [value] = element(pair.subarray(5), 0x0c) ?? [];
  return value === undefined ? undefined : [value.toString('utf8'), rest];
}
