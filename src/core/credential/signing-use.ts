/**
 * The part of a certificate that decides whether its key may sign credentials (RFC 5280, C2PA 2.2 section 14.5.1). It is
 * read here because Node does not report key usage, critical extensions or the version.
 */

/**
 * The use of a certificate. `signing`: it meets the profile. `documents`: it meets the profile, with a purpose that
 * only some readers accept. `other`: it does not meet the profile, or cannot be read.
 */
export type SigningUse = 'signing' | 'documents' | 'other';

interface Element {
  readonly tag: number;
  readonly content: Uint8Array;
}

const TAG = { boolean: 0x01, integer: 0x02, bits: 0x03, octets: 0x04, oid: 0x06, sequence: 0x30 } as const;
/** The context tags of the version and the extensions of a certificate. */
const VERSION = 0xa0;
const EXTENSIONS = 0xa3;

/** The object identifiers of the known extensions in DER, as hex. */
const OID = {
  subjectKeyIdentifier: '551d0e',
  keyUsage: '551d0f',
  subjectAlternativeName: '551d11',
  basicConstraints: '551d13',
  certificatePolicies: '551d20',
  authorityKeyIdentifier: '551d23',
  extendedKeyUsage: '551d25',
} as const;
const PURPOSE = {
  emailProtection: '2b06010505070304',
  timeStamping: '2b06010505070308',
  ocspSigning: '2b06010505070309',
  documentSigning: '2b06010505070324',
  claimSigning: '2b0601040183e85e0201',
  any: '551d2500',
} as const;
/** The allowed algorithms: Ed25519; ECDSA with SHA-256, SHA-384 and SHA-512; RSA with the same, and RSASSA-PSS. */
const SIGNATURE_ALGORITHMS: readonly string[] = [
  '2b6570',
  '2a8648ce3d040302',
  '2a8648ce3d040303',
  '2a8648ce3d040304',
  '2a864886f70d01010b',
  '2a864886f70d01010c',
  '2a864886f70d01010d',
  '2a864886f70d01010a',
];
const DIGITAL_SIGNATURE = 0x80;
const CERTIFICATE_SIGNING = 0x04;

/** Reads the use of an end-entity certificate that was already parsed as X.509. */
export function readSigningUse(der: Uint8Array): SigningUse {
  const [toBeSigned] = elementsIn(elementsIn(der)?.[0]?.content) ?? [];
  const fields = elementsIn(toBeSigned?.content);
  if (fields === undefined) return 'other';
  const [version, _serial, algorithm, _issuer, _validity, _subject, _key, ...more] = fields;
  const isVersion3 = version?.tag === VERSION && elementsIn(version.content)?.[0]?.content[0] === 2;
  const signedWith = hex(elementsIn(algorithm?.content)?.[0]?.content);
  // Unique identifiers would come before the extensions.
  const [extensions, ...rest] = more;
  if (!isVersion3 || !SIGNATURE_ALGORITHMS.includes(signedWith)) return 'other';
  if (extensions?.tag !== EXTENSIONS || rest.length > 0) return 'other';
  const byOid = readExtensions(extensions.content);
  if (byOid === undefined || !byOid.has(OID.authorityKeyIdentifier)) return 'other';
  if (!isEndEntity(byOid.get(OID.basicConstraints)) || !maySign(byOid.get(OID.keyUsage))) return 'other';
  return purposeOf(byOid.get(OID.extendedKeyUsage));
}

/** Returns the values of the extensions by identifier. Undefined when one is unknown and critical, or repeated. */
function readExtensions(content: Uint8Array): ReadonlyMap<string, Uint8Array> | undefined {
  const known: readonly string[] = Object.values(OID);
  const found = new Map<string, Uint8Array>();
  for (const { content: extension } of elementsIn(elementsIn(content)?.[0]?.content) ?? []) {
    const parts = elementsIn(extension) ?? [];
    const oid = hex(parts[0]?.content);
    const critical = parts.length === 3 && parts[1]?.tag === TAG.boolean && parts[1].content[0] !== 0;
    const value = parts.at(-1);
    if (value?.tag !== TAG.octets || found.has(oid) || (critical && !known.includes(oid))) return undefined;
    found.set(oid, value.content);
  }
  return found;
}

function isEndEntity(constraints: Uint8Array | undefined): boolean {
  if (constraints === undefined) return true;
  const first = elementsIn(elementsIn(constraints)?.[0]?.content)?.[0];
  return first === undefined || (first.tag === TAG.boolean && first.content[0] === 0);
}

function maySign(usage: Uint8Array | undefined): boolean {
  const bits = elementsIn(usage)?.[0];
  // The first byte of a bit string counts its unused bits.
  const first = bits?.tag === TAG.bits ? (bits.content[1] ?? 0) : 0;
  return (first & DIGITAL_SIGNATURE) !== 0 && (first & CERTIFICATE_SIGNING) === 0;
}

function purposeOf(extension: Uint8Array | undefined): SigningUse {
  const purposes = (elementsIn(elementsIn(extension)?.[0]?.content) ?? []).map(({ content }) => hex(content));
  const has = (purpose: string): boolean => purposes.includes(purpose);
  if (has(PURPOSE.any) || has(PURPOSE.timeStamping) || has(PURPOSE.ocspSigning)) return 'other';
  if (has(PURPOSE.emailProtection) || has(PURPOSE.claimSigning)) return 'signing';
  return has(PURPOSE.documentSigning) ? 'documents' : 'other';
}

/** Splits DER into its elements. Returns undefined for anything else, or without bytes. */
function elementsIn(der: Uint8Array | undefined): readonly Element[] | undefined {
  if (der === undefined) return undefined;
  const elements: Element[] = [];
  for (let at = 0; at < der.length; ) {
    const [tag, first] = [der[at]!, der[at + 1] ?? 0xff];
    // Lengths of more than three bytes, and indefinite ones, exist in no certificate of at most 16 KiB.
    const width = first < 0x80 ? 0 : first & 0x7f;
    if (width > 3 || (first & 0xff) === 0x80) return undefined;
    let length = width === 0 ? first : 0;
    for (let i = 0; i < width; i += 1) length = length * 256 + (der[at + 2 + i] ?? 0);
    const start = at + 2 + width;
    if (start + length > der.length) return undefined;
    elements.push({ tag, content: der.subarray(start, start + length) });
    at = start + length;
  }
  return elements;
}

function hex(bytes: Uint8Array | undefined): string {
  return Buffer.from(bytes ?? []).toString('hex');
}
