import type { SignatureAlgorithm } from '../domain/parsed-credential.js';

/** End-entity certificate of the service and, where it is held here, its private key. */
export interface SigningIdentity {
  /** Lower-case hex SHA-256 of the certificate (DER). */
  readonly kid: string;
  readonly algorithm: SignatureAlgorithm;
  /** DER. */
  readonly certificate: Uint8Array;
  /** Name that the certificate's organisation carries. */
  readonly issuer: string;
}

/** Signer with the environment's current identity. Ed25519: 64 bytes; ES256: r || s, 64 bytes, low S. */
export interface Signer {
  readonly identity: SigningIdentity;
  /**
   * @throws DomainError `unavailable` / `signer_unavailable` where the key is kept elsewhere and cannot be
   * reached
   */
  sign(message: Uint8Array): Uint8Array | Promise<Uint8Array>;
}

/** Signer whose key is in this process's memory. */
export interface LocalSigner extends Signer {
  sign(message: Uint8Array): Uint8Array;
}

/**
 * Identities that this environment recognises as itself, current and former, pinned; and the authorities
 * above them.
 */
export interface TrustList {
  /** Identity of the exact leaf certificate (DER). */
  find(certificate: Uint8Array): SigningIdentity | undefined;
  /** Tells whether one of our authorities signed a certificate, pinned or not. */
  issuedByOurAuthority(certificate: Uint8Array): boolean;
  /**
   * Tells whether a certificate claims one of our authorities as its issuer, by name or key id: anybody can.
   */
  namesOurAuthority(certificate: Uint8Array): boolean;
  /** Every leaf that `find` knows, the one that signs first. */
  identities(): readonly SigningIdentity[];
  /** PEM of the authority certificates, the current one first. */
  authorities(): readonly string[];
}
