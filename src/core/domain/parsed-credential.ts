/**
 * The parse results of credentials, before audio and registry are checked. They are plain data and are stored
 * with the upload, so that a signature is checked only once, when the audio is measured.
 */

import type { ReasonOf, ReportReason, StoreFault } from './reference/reasons.js';

export type Integrity = 'verified' | 'failed' | 'not_checked';
export type SignatureAlgorithm = 'Ed25519' | 'ES256';

/** The statement that the service signs, version 1. */
export interface ProductionStatement {
  readonly version: 1;
  readonly proofId: string;
  /** The time of issue in unix seconds. */
  readonly createdAt: number;
  /** The SHA-256 of the signer's certificate (DER), in lower-case hex. */
  readonly kid: string;
  /** The name of the service at the time of signing. An old statement keeps a former name. */
  readonly issuer: string;
  /** The SHA-256 of the capture trace in lower-case hex, or null without a trace. */
  readonly evidenceSha256: string | null;
}

/** The statement of a local seal about itself. The service verifies nothing in it. */
export interface SealStatement {
  readonly version: 1;
  /** The time of the seal in unix seconds, by the device's clock. */
  readonly sealedAt: number;
  /** The SHA-256 of the device's certificate (DER), in lower-case hex. */
  readonly kid: string;
  readonly device: string;
}

/** The report of a credential, sent as `embeddedCredential`. Integrity and trust are separate results. */
export interface CredentialReport {
  readonly format: 'c2pa';
  /** The organisation or common name in the certificate. Absent for a device, whose name is self-declared. */
  readonly issuer?: string;
  /** The self-declared name of the device, in a local seal. */
  readonly device?: string;
  readonly generator?: string;
  /** The COSE algorithm name as in the IANA registry: Ed25519, ES256, ES384, PS256, ... */
  readonly algorithm?: string;
  readonly claimVersion?: number;
  readonly manifestLabel?: string;
  readonly integrity: Integrity;
  /**
   * The signer. `service`: a leaf under the service's own authority. `device`: a local seal. `unknown`: any other.
   */
  readonly trust: 'service' | 'device' | 'unknown';
  /**
   * The stable slugs of what failed and what could not be checked. `names_this_service` is present if an unknown
   * signer uses the name of this service.
   */
  readonly reasons: readonly ReportReason[];
}

/** The byte range that a hard binding excludes, and its digest of all other bytes. */
export interface HardBinding {
  readonly exclusion: { readonly start: number; readonly length: number };
  /** The SHA-256 in lower-case hex. */
  readonly sha256: string;
}

export type EmbeddedParseResult =
  /** The chunk does not start like a C2PA manifest store. */
  | { readonly kind: 'not_a_store'; readonly reason: ReasonOf<'unreadable'> }
  /**
   * The store cannot be decoded, its hashes or signature are invalid, or it names this service but is not
   * exactly what this service writes.
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
  /** Any other signer signed the store. `binding` is absent if it cannot be checked here. */
  | { readonly kind: 'foreign'; readonly binding?: HardBinding; readonly report: CredentialReport };

/**
 * The reason, in reports and decisions, for a credential of an unknown signer that uses the name or the
 * credential format of this service.
 */
export const NAMES_THIS_SERVICE = 'names_this_service' as const;

/** The binding of a sidecar: the whole file. */
export interface WholeFileBinding {
  readonly bytes: number;
  readonly sha256: string;
}

export type SidecarParseResult =
  /** The bytes do not start like a sidecar. */
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
  /** The sidecar is intact, but neither signed by the service nor a device seal. */
  | {
      readonly kind: 'foreign';
      readonly reason: ReasonOf<'unregistered'>;
      readonly namesService: boolean;
      readonly binding: WholeFileBinding;
      readonly sidecarSha256: string;
    };
