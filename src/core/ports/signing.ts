import type { SignatureAlgorithm } from '../domain/parsed-credential.js';
import type { Validity } from '../domain/validity.js';

/** The end-entity certificate of the service. */
export interface SigningIdentity {
  /** The SHA-256 of the certificate (DER), in lower-case hex. */
  readonly kid: string;
  readonly algorithm: SignatureAlgorithm;
  /** The certificate in DER. */
  readonly certificate: Uint8Array;
  /** The organisation name in the certificate. */
  readonly issuer: string;
}

/**
 * Signs with the environment's current identity. Ed25519 signatures have 64 bytes. ES256 signatures are r ||
 * s, 64 bytes, with low S.
 */
export interface Signer {
  readonly identity: SigningIdentity;
  /**
   * Signs a message.
   * @throws DomainError `unavailable` / `signer_unavailable` when the key is held elsewhere and cannot be
   * reached
   */
  sign(message: Uint8Array): Uint8Array | Promise<Uint8Array>;
}

/** The certificates that must be valid while the service issues. Verifying does not depend on them. */
export interface IssuingCertificates {
  /** The signing certificate, and then the certificate of its authority. */
  readonly chain: readonly {
    readonly certificate: 'signing' | 'authority';
    /** The SHA-256 of the certificate (DER), in lower-case hex. */
    readonly kid: string;
    readonly validity: Validity;
  }[];
  /** A sentence for the operator that names the commands which replace the signing certificate. */
  readonly renewal: string;
}

/** A signer whose key is in the memory of this process. */
export interface LocalSigner extends Signer {
  sign(message: Uint8Array): Uint8Array;
}

/** Knows the pinned identities of this environment, current and former, and the authorities above them. */
export interface TrustList {
  /** Returns the identity of exactly this leaf certificate (DER). */
  find(certificate: Uint8Array): SigningIdentity | undefined;
  /** Returns true when one of our authorities signed a certificate, pinned or not. */
  issuedByOurAuthority(certificate: Uint8Array): boolean;
  /**
   * Returns true when a certificate claims one of our authorities as its issuer, by name or key id. Any
   * certificate can claim this.
   */
  namesOurAuthority(certificate: Uint8Array): boolean;
  /** Returns every leaf that `find` knows, the signing one first. */
  identities(): readonly SigningIdentity[];
  /** Returns the PEM of the authority certificates, the current one first. */
  authorities(): readonly string[];
}
