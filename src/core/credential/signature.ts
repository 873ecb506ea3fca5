import { constants, type KeyObject, type VerifyKeyObjectInput, verify } from 'node:crypto';

/**
 * The algorithms, with their names in the COSE registry. The service signs with the first two. The others
 * occur in foreign credentials.
 */
export const SIGNATURE_ALGORITHMS = [
  'Ed25519',
  'ES256',
  'ES384',
  'ES512',
  'PS256',
  'PS384',
  'PS512',
] as const;
export type AlgorithmName = (typeof SIGNATURE_ALGORITHMS)[number];

/** The order of P-256 (FIPS 186-5, and SEC 2 section 2.4.2). */
const P256_ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;

const ECDSA = {
  ES256: { curve: 'prime256v1', hash: 'sha256', bytes: 64 },
  ES384: { curve: 'secp384r1', hash: 'sha384', bytes: 96 },
  ES512: { curve: 'secp521r1', hash: 'sha512', bytes: 132 },
} as const;
const PSS = { PS256: 'sha256', PS384: 'sha384', PS512: 'sha512' } as const;

/**
 * Reports whether the algorithm may be used with this key. The key decides, and the algorithm that a document
 * states must agree (C2PA 2.2 section 13.2).
 */
export function algorithmFitsKey(algorithm: AlgorithmName, key: KeyObject): boolean {
  if (algorithm === 'Ed25519') return key.asymmetricKeyType === 'ed25519';
  const details = key.asymmetricKeyDetails;
  if (algorithm === 'ES256' || algorithm === 'ES384' || algorithm === 'ES512') {
    return key.asymmetricKeyType === 'ec' && details?.namedCurve === ECDSA[algorithm].curve;
  }
  // At least 2048 bits (C2PA 2.2 section 13.2.1). The upper limits keep a verification cheap.
  return (
    (key.asymmetricKeyType === 'rsa' || key.asymmetricKeyType === 'rsa-pss') &&
    (details?.modulusLength ?? 0) >= 2048 &&
    (details?.modulusLength ?? 0) <= 8192 &&
    (details?.publicExponent ?? 0n) <= 0xffff_ffffn
  );
}

/**
 * Checks a signature in the form of COSE. Ed25519 has 64 bytes (RFC 8032). ECDSA is r || s with the width of
 * the curve (RFC 9053 section 2.1). RSASSA-PSS has a salt with the length of the hash (RFC 8230 section 2).
 * Returns false for anything else, including a key of another kind. The function never throws.
 * @param requireLowS refuses ES256 with s above half the order. (r, n - s) is the same signature in other
 * bytes, and our own signatures have only one form
 */
export function checkSignature(
  algorithm: AlgorithmName,
  publicKey: KeyObject,
  message: Uint8Array,
  signature: Uint8Array,
  { requireLowS }: { readonly requireLowS: boolean },
): boolean {
  const by = verificationOf(algorithm, publicKey, signature, requireLowS);
  if (by === undefined) return false;
  try {
    return verify(by.hash, message, by.key, signature);
  } catch {
    // OpenSSL throws for some keys and values, for example a point off the curve, or a PSS key bound to
    // another hash.
    return false;
  }
}

/** Checks a signature as `checkSignature` does, on a thread of libuv's pool. The promise never rejects. */
export function checkSignatureInPool(...check: Parameters<typeof checkSignature>): Promise<boolean> {
  const [algorithm, publicKey, message, signature, { requireLowS }] = check;
  const by = verificationOf(algorithm, publicKey, signature, requireLowS);
  if (by === undefined) return Promise.resolve(false);
  return new Promise((resolve) => {
    try {
      verify(by.hash, message, by.key, signature, (error, isValid) => resolve(error === null && isValid));
    } catch {
      resolve(false);
    }
  });
}

interface Verification {
  readonly hash: string | null;
  readonly key: VerifyKeyObjectInput;
}

/** Returns the hash and the key as Node expects them, or undefined for a signature that cannot be valid. */
function verificationOf(
  algorithm: AlgorithmName,
  publicKey: KeyObject,
  signature: Uint8Array,
  requireLowS: boolean,
): Verification | undefined {
  if (!algorithmFitsKey(algorithm, publicKey)) return undefined;
  switch (algorithm) {
    case 'Ed25519':
      return signature.length === 64 ? { hash: null, key: { key: publicKey } } : undefined;
    case 'ES256':
    case 'ES384':
    case 'ES512': {
      const { hash, bytes } = ECDSA[algorithm];
      if (signature.length !== bytes) return undefined;
      if (requireLowS && (algorithm !== 'ES256' || !isLowS(signature))) return undefined;
      return { hash, key: { key: publicKey, dsaEncoding: 'ieee-p1363' } };
    }
    default:
      return {
        hash: PSS[algorithm],
        key: {
          key: publicKey,
          padding: constants.RSA_PKCS1_PSS_PADDING,
          saltLength: constants.RSA_PSS_SALTLEN_DIGEST,
        },
      };
  }
}

/** Reports whether a 64-byte P-256 signature r || s has a low s. */
export function isLowS(signature: Uint8Array): boolean {
  return sOf(signature) <= P256_ORDER >> 1n;
}

/** Returns the other form of a 64-byte P-256 signature, (r, n - s), which is as valid as (r, s). */
export function withOtherS(signature: Uint8Array): Buffer {
  const other = (P256_ORDER - sOf(signature)).toString(16).padStart(64, '0');
  return Buffer.concat([signature.subarray(0, 32), Buffer.from(other, 'hex')]);
}

function sOf(signature: Uint8Array): bigint {
  return BigInt(`0x${Buffer.from(signature.subarray(32)).toString('hex')}`);
}
