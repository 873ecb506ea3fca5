/**
 * Parse results of credentials, before audio and registry are looked at. Plain data: the result is stored
 * with the upload, so that a signature is checked once, when the audio is measured.
 */

import type { ReasonOf, ReportReason, StoreFault } from './reference/reasons.js';

export type Integrity = 'verified' | 'failed' | 'not_checked';
export type SignatureAlgorithm = 'Ed25519' | 'ES256';

/** Statement that the service signs, version 1. */
export interface ProductionStatement {
  readonly version: 1;
  readonly proofId: string;
  /** Unix seconds. */
  readonly createdAt: number;
  /** Lower-case hex SHA-256 of the signer's certificate (DER). */
  readonly kid: string;
  /** Name of the service when it signed; a former name stays as history. */
  readonly issuer: string;
  /** Null until a production record exists. */
  readonly evidenceSha256: string | null;
}

/** Statement of a local seal about itself; the service vouches for nothing in it. */
export interface SealStatement {
  readonly version: 1;
  /** Unix seconds by the device's clock. */
  readonly sealedAt: number;
  /** Lower-case hex SHA-256 of the device's certificate (DER). */
  readonly kid: string;
  readonly device: string;
}

/** Report of a credential, sent as `embeddedCredential`: integrity and trust apart. */
export interface CredentialReport {
  readonly format: 'c2pa';
  /** Organisation or common name in the certificate; absent for a device, which gave itself its name. */
  readonly issuer?: string;
  /** Name that a device gave itself, in a local seal. */
  readonly device?: string;
  readonly generator?: string;
  /** COSE algorithm name as in the registry: Ed25519, ES256, ES384, PS256, ... */
  readonly algorithm?: string;
  readonly claimVersion?: number;
  readonly manifestLabel?: string;
  readonly integrity: Integrity;
  /** `service`: signed under the service's own authority; `device`: a local seal; `unknown`: anyone else. */
  readonly trust: 'service' | 'device' | 'unknown';
  /**
   * Stable slugs of what failed, what could not be checked, and `names_this_service` where a stranger calls
   * itself by our name.
   */
  readonly reasons: readonly ReportReason[];
}

/** Byte range that a hard binding leaves out, and the digest that it states over the rest. */
export interface HardBinding {
  readonly exclusion: { readonly start: number; readonly length: number };
  /** Lower-case hex SHA-256. */
  readonly sha256: string;
}

export type EmbeddedParseResult =
  /** The chunk does not begin as a C2PA manifest store. */
  | { readonly kind: 'not_a_store'; readonly reason: ReasonOf<'unreadable'> }
  /**
   * A store that does not decode, fails its hashes or signature, or names us and is not exactly what our
   * writer makes.
   */
  | { readonly kind: 'altered'; readonly reason: StoreFault; readonly report: CredentialReport }
  | {
      readonly kind: 'service';
      readonly statement: ProductionStatement;
      readonly binding: HardBinding;
      readonly chunkSha256: string;
      readonly report: CredentialReport;
    }
  | {
      readonly kind: 'local_seal';
      readonly statement: SealStatement;
      readonly binding: HardBinding;
      readonly chunkSha256: string;
      readonly report: CredentialReport;
    }
  /** Signed by anyone else. `binding` is absent where it cannot be checked here. */
  | { readonly kind: 'foreign'; readonly binding?: HardBinding; readonly report: CredentialReport };

/**
 * Reason in reports and decisions: a credential that is not of this installation calls itself, its issuer or
 * its form ours.
 */
export const NAMES_THIS_SERVICE = 'names_this_service' as const;

/** Binding of a sidecar: the whole file. */
export interface WholeFileBinding {
  readonly bytes: number;
  readonly sha256: string;
}

export type SidecarParseResult =
  /** The bytes do not begin as a sidecar. */
  | { readonly kind: 'not_a_sidecar'; readonly reason: ReasonOf<'unreadable'> }
  | { readonly kind: 'altered'; readonly reason: ReasonOf<'tampered'> }
  | {
      readonly kind: 'service';
      readonly statement: ProductionStatement;
      readonly binding: WholeFileBinding;
      readonly sidecarSha256: string;
    }
  | {
      readonly kind: 'local_seal';
      readonly statement: SealStatement;
      readonly binding: WholeFileBinding;
      readonly sidecarSha256: string;
    }
  /** Intact, but signed by neither the service nor as a device seal. */
  | {
      readonly kind: 'foreign';
      readonly reason: ReasonOf<'unregistered'>;
      readonly namesService: boolean;
      readonly binding: WholeFileBinding;
      readonly sidecarSha256: string;
    };
