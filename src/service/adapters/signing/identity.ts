import {
  createHash,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
  type X509Certificate,
} from 'node:crypto';
import { isLowS, withOtherS } from '../../../core/credential/signature.js';
import { DISPLAY_NAME_PATTERN } from '../../../core/domain/display-name.js';
import type { SignatureAlgorithm } from '../../../core/domain/parsed-credential.js';
import type { LocalSigner, SigningIdentity } from '../../../core/ports/signing.js';

/**
 * Returns the identity of a leaf certificate.
 * @throws Error for a key that is neither Ed25519 nor P-256, or a subject without a name
 */
export function identityOf(certificate: X509Certificate): SigningIdentity {
  // The legacy form has the values as they are; `subject` escapes them.
  const { O: organisation, CN: commonName } = certificate.toLegacyObject().subject as Record<string, unknown>;
  const issuer = organisation ?? commonName;
  if (typeof issuer !== 'string' || !DISPLAY_NAME_PATTERN.test(issuer))
    throw new Error('the organisation in a signing certificate must have 1 to 64 visible characters');
  return {
    kid: createHash('sha256').update(certificate.raw).digest('hex'),
    algorithm: algorithmOf(certificate.publicKey),
    certificate: Uint8Array.from(certificate.raw),
    issuer,
  };
}

export function createSigner(certificate: X509Certificate, privateKey: KeyObject): LocalSigner {
  const identity = identityOf(certificate);
  return {
    identity,
    sign: (message) => signRaw(privateKey, identity.algorithm, message),
  };
}

/** Returns a signature: 64 bytes for Ed25519, r || s with low S for ES256. */
export function signRaw(
  privateKey: KeyObject,
  algorithm: SignatureAlgorithm,
  message: Uint8Array,
): Uint8Array {
  return algorithm === 'Ed25519'
    ? sign(null, message, privateKey)
    : lowS(sign('sha256', message, { key: privateKey, dsaEncoding: 'ieee-p1363' }));
}

export function generateKey(algorithm: SignatureAlgorithm): {
  readonly publicKey: KeyObject;
  readonly privateKey: KeyObject;
} {
  return algorithm === 'Ed25519'
    ? generateKeyPairSync('ed25519')
    : generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
}

/** Returns the key as PKCS#8 in PEM, unencrypted: the file's mode protects it. */
export function privatePem(key: KeyObject): string {
  return key.export({ type: 'pkcs8', format: 'pem' }) as string;
}

export function publicOf(privateKey: KeyObject): KeyObject {
  return createPublicKey(privateKey);
}

/** Returns the signature with the lower S, so that it has one form: (r, s) and (r, n - s) are both good. */
export function lowS(signature: Uint8Array): Uint8Array {
  return isLowS(signature) ? signature : withOtherS(signature);
}

/** @throws Error for a key that is neither Ed25519 nor P-256 */
export function algorithmOf(publicKey: KeyObject): SignatureAlgorithm {
  if (publicKey.asymmetricKeyType === 'ed25519') return 'Ed25519';
  if (publicKey.asymmetricKeyType === 'ec' && publicKey.asymmetricKeyDetails?.namedCurve === 'prime256v1')
    return 'ES256';
  throw new Error('a signing key must be Ed25519 or P-256');
}
