import { constants, type KeyObject, verify } from 'node:crypto';

/**
 * Algorithms, with names as in the COSE registry. The service signs with the first two; the others occur in
 * foreign credentials.
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

/** Order of P-256 (FIPS 186-5; SEC 2 section 2.4.2). */
const P256_ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;

const ECDSA = {
  ES256: { curve: 'prime256v1', hash: 'sha256', bytes: 64 },
  ES384: { curve: 'secp384r1', hash: 'sha384', bytes: 96 },
  ES512: { curve: 'secp521r1', hash: 'sha512', bytes: 132 },
} as const;
const PSS = { PS256: 'sha256', PS384: 'sha384', PS512: 'sha512' } as const;

/**
 * Tells whether the algorithm is one that this key may be used with. The key decides: what a document says of
 * its algorithm only has to agree (C2PA 2.2 section 13.2).
 */
export function algorithmFitsKey(algorithm: AlgorithmName, key: KeyObject): boolean {
  if (algorithm === 'Ed25519') return key.asymmetricKeyType === 'ed25519';
  const details = key.asymmetricKeyDetails;
  if (algorithm === 'ES256' || algorithm === 'ES384' || algorithm === 'ES512') {
    return key.asymmetricKeyType === 'ec' && details?.namedCurve === ECDSA[algorithm].curve;
  }
  // At least 2048 bits (C2PA 2.2 section 13.2.1); the upper bounds keep one verification cheap.
  return (
    (key.asymmetricKeyType === 'rsa' || key.asymmetricKeyType === 'rsa-pss') &&
    (details?.modulusLength ?? 0) >= 2048 &&
    (details?.modulusLength ?? 0) <= 8192 &&
    (details?.publicExponent ?? 0n) <= 0xffff_ffffn
  );
}

/**
 * Checks a signature as COSE carries it: Ed25519 64 bytes (RFC 8032), ECDSA r || s of the curve's width (RFC
 * 9053 section 2.1), RSASSA-PSS with a salt of the hash's length (RFC 8230 section 2). False for anything
 * else, a key of another kind included; the function never throws.
 * @param requireLowS refuses ES256 with s above half the order: (r, n - s) is the same signature in other
 * bytes, and our own have one form only
 */
export function checkSignature(
  algorithm: AlgorithmName,
  publicKey: KeyObject,
  message: Uint8Array,
  signature: Uint8Array,
  { requireLowS }: { readonly requireLowS: boolean },
): boolean {
  if (!algorithmFitsKey(algorithm, publicKey)) return false;
  try {
    switch (algorithm) {
      case 'Ed25519':
        return signature.length === 64 && verify(null, message, publicKey, signature);
      case 'ES256':
      case 'ES384':
      case 'ES512': {
        const { hash, bytes } = ECDSA[algorithm];
        if (signature.length !== bytes) return false;
        if (requireLowS && (algorithm !== 'ES256' || !isLowS(signature))) return false;
        return verify(hash, message, { key: publicKey, dsaEncoding: 'ieee-p1363' }, signature);
      }
      default:
        return verify(
          PSS[algorithm],
          message,
          {
            key: publicKey,
            padding: constants.RSA_PKCS1_PSS_PADDING,
            saltLength: constants.RSA_PSS_SALTLEN_DIGEST,
          },
          signature,
        );
    }
  } catch {
    // OpenSSL refuses some keys and values (a point off the curve, a PSS key bound to another hash) by
    // throwing.
    return false;
  }
}

/** Tells whether a 64-byte P-256 signature r || s has a low s. */
export function isLowS(signature: Uint8Array): boolean {
  return sOf(signature) <= P256_ORDER >> 1n;
}

/** The other form of a 64-byte P-256 signature, (r, n - s): as good as (r, s). */
export function withOtherS(signature: Uint8Array): Buffer {
  const other = (P256_ORDER - sOf(signature)).toString(16).padStart(64, '0');
  return Buffer.concat([signature.subarray(0, 32), Buffer.from(other, 'hex')]);
}

function sOf(signature: Uint8Array): bigint {
  return BigInt(`0x${Buffer.from(signature.subarray(32)).toString('hex')}`);
}
