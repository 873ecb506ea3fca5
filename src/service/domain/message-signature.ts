import { createHash, createPublicKey, type Hash, type KeyObject, timingSafeEqual, verify } from 'node:crypto';

/**
 * HTTP message signatures (RFC 9421) and content digests (RFC 9530), as far as a partner's calls need them:
 * one signature per request, over components of a closed list. The headers must be a strict subset of
 * structured fields (RFC 9651), in canonical serialization.
 */

/**
 * The largest header in bytes. A signature over all components needs about 400 bytes. A longer header is
 * invalid.
 */
const MAX_HEADER = 1024;
/** The pattern of a signature's input: `label`, then the components and parameters as signed. */
const INPUT =
  /^([a-z][a-z0-9_-]{0,31})=(\(((?:"[@a-z0-9-]{1,32}" ?){1,8})\)((?:;[a-z]{1,8}=(?:\d{1,12}|"[\x20\x21\x23-\x5b\x5d-\x7e]{1,128}")){1,6}))$/;
const PARAMETER = /;([a-z]+)=(?:(\d+)|"([^"]+)")/g;
const PARAMETERS = ['created', 'expires', 'keyid', 'nonce', 'alg'];
/** The pattern of a signature: 64 bytes with both algorithms. */
const SIGNATURE = /^([a-z][a-z0-9_-]{0,31})=:([A-Za-z0-9+/]{86}==):$/;
const CONTENT_DIGEST = /^(sha-256|sha-512)=:([A-Za-z0-9+/]{43}=|[A-Za-z0-9+/]{86}==):$/;

/**
 * The components that may be signed (RFC 9421, 2.1 and 2.2). Proxies may change the other parts of a message,
 * above all `@scheme` and `@target-uri`.
 */
const COMPONENTS = [
  '@method',
  '@authority',
  '@path',
  '@query',
  'x-api-key',
  'content-digest',
  'content-type',
  'idempotency-key',
];

/** A public key that verifies calls: Ed25519 (RFC 9421, 3.3.6) or ECDSA on P-256 with SHA-256 (3.3.4). */
export interface SignatureKey {
  readonly algorithm: 'ed25519' | 'ecdsa-p256-sha256';
  readonly key: KeyObject;
}

export interface SignatureParameters {
  /** The time of signing in unix seconds. */
  readonly created?: number;
  readonly expires?: number;
  readonly keyid?: string;
  readonly nonce?: string;
  readonly alg?: string;
}

export interface MessageSignature extends SignatureParameters {
  readonly components: readonly string[];
  /** The value of `@signature-params`, as sent. */
  readonly signed: string;
  readonly signature: Uint8Array;
}

export interface ContentDigest {
  readonly algorithm: 'sha-256' | 'sha-512';
  readonly digest: Uint8Array;
}

/** Returns the key that verifies signatures. @param spki DER in base64 */
export function signatureKey(spki: string): SignatureKey | undefined {
  return keyOf(() => createPublicKey({ key: Buffer.from(spki, 'base64'), format: 'der', type: 'spki' }));
}

/**
 * Returns the public key of a PEM text, as base64 of its SPKI. Returns undefined unless the text is exactly
 * one key of a supported type.
 */
export function readPublicKey(pem: string): string | undefined {
  // Node would accept a private key and derive its public key. A private key must not be sent here.
  if (!/^\s*-----BEGIN PUBLIC KEY-----[\sA-Za-z0-9+/=]+-----END PUBLIC KEY-----\s*$/.test(pem))
    return undefined;
  return keyOf(() => createPublicKey(pem))
    ?.key.export({ format: 'der', type: 'spki' })
    .toString('base64');
}

function keyOf(read: () => KeyObject): SignatureKey | undefined {
  let key: KeyObject;
  try {
    key = read();
  } catch {
    return undefined;
  }
  if (key.asymmetricKeyType === 'ed25519') return { algorithm: 'ed25519', key };
  return key.asymmetricKeyType === 'ec' && key.asymmetricKeyDetails?.namedCurve === 'prime256v1'
    ? { algorithm: 'ecdsa-p256-sha256', key }
    : undefined;
}

/** Parses the two headers of a signature. @returns undefined unless there is exactly one valid signature */
export function parseSignature(
  input: string | undefined,
  signature: string | undefined,
): MessageSignature | undefined {
  if (
    input === undefined ||
    signature === undefined ||
    input.length > MAX_HEADER ||
    signature.length > MAX_HEADER
  )
    return undefined;
  const [, label, signed, list, parameters] = INPUT.exec(input) ?? [];
  const [, signatureLabel, base64] = SIGNATURE.exec(signature) ?? [];
  if (label === undefined || base64 === undefined || label !== signatureLabel) return undefined;
  const components = list!.split(' ').map((item) => item.slice(1, -1));
  if (
    components.some((component) => !COMPONENTS.includes(component)) ||
    new Set(components).size < components.length
  )
    return undefined;
  const values: Record<string, string | number> = {};
  for (const [, name, number, text] of parameters!.matchAll(PARAMETER)) {
    if (!PARAMETERS.includes(name!) || Object.hasOwn(values, name!)) return undefined;
    // RFC 9421, 2.3: the times are integers, all other parameters are text.
    if ((number !== undefined) !== (name === 'created' || name === 'expires')) return undefined;
    values[name!] = number === undefined ? text! : Number(number);
  }
  return { ...values, components, signed: signed!, signature: Buffer.from(base64, 'base64') };
}

/**
 * Returns the signature base (RFC 9421, 2.5).
 * @param componentValue returns a component's value, or undefined if the message has none
 * @returns undefined if a component has no value
 */
export function signatureBase(
  { components, signed }: Pick<MessageSignature, 'components' | 'signed'>,
  componentValue: (component: string) => string | undefined,
): string | undefined {
  let base = '';
  for (const component of components) {
    const value = componentValue(component);
    if (value === undefined) return undefined;
    base += `"${component}": ${value}\n`;
  }
  return `${base}"@signature-params": ${signed}`;
}

export function signatureHolds(
  { algorithm, key }: SignatureKey,
  base: string,
  signature: Uint8Array,
): boolean {
  if (algorithm === 'ed25519') return verify(null, Buffer.from(base), key, signature);
  return verify('sha256', Buffer.from(base), { key, dsaEncoding: 'ieee-p1363' }, signature);
}

/** Parses a `Content-Digest`. @returns undefined unless there is exactly one valid digest */
export function parseContentDigest(header: string | undefined): ContentDigest | undefined {
  const [, algorithm, base64] = CONTENT_DIGEST.exec(header?.slice(0, MAX_HEADER) ?? '') ?? [];
  if (algorithm === undefined) return undefined;
  const digest = Buffer.from(base64!, 'base64');
  return digest.length === (algorithm === 'sha-256' ? 32 : 64)
    ? { algorithm: algorithm as ContentDigest['algorithm'], digest }
    : undefined;
}

/** Returns a hash of the digest's algorithm, for a body that arrives in pieces. */
export function digestHash({ algorithm }: ContentDigest): Hash {
  return createHash(algorithm === 'sha-256' ? 'sha256' : 'sha512');
}

export function digestHolds(expected: ContentDigest, body: Uint8Array): boolean {
  return timingSafeEqual(digestHash(expected).update(body).digest(), expected.digest);
}
