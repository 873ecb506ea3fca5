/**
 * What travels between a partner and the service. These types are the client's own, so that it ships without a dependency;
 * their members are those of the service's contract. Members this version does not know are tolerated and kept.
 */

/** Verdicts this version knows. The service may add others: read `accepted`, never a list of your own. */
export type KnownVerdict = 'valid' | 'audioChanged' | 'tampered' | 'unregistered' | 'unreadable' | 'local_seal';

/** A string of a known set that may grow: completion for the known ones, room for the rest. */
export type Growing<Known extends string> = Known | (string & Record<never, never>);

export type UploadPurpose = 'verify' | 'identify';

/** A short-lived place to post one audio file to. */
export interface UploadSlot {
  readonly uploadId: string;
  /** Presigned: it needs no key, and is a secret while it lives. */
  readonly url: string;
  /** Every entry is sent as a form field, before the file. */
  readonly fields: Readonly<Record<string, string>>;
  readonly maxBytes: number;
  /** Unix seconds. */
  readonly expiresAt: number;
}

/** The service's answer to a complete upload. */
export interface StoredUpload {
  readonly uploadId: string;
  readonly bytes: number;
  /** Lower-case hex. */
  readonly sha256: string;
}

/** The policy-neutral decision envelope; it never labels a track human or AI. */
export interface DecisionEnvelope {
  readonly status: Growing<'verified_binding' | 'needs_review' | 'invalid_proof'>;
  /** Stable slugs; the first one decided the verdict. */
  readonly reasons: readonly string[];
  readonly recommendedAction: Growing<'accept_credential' | 'review' | 'reject' | 'request_matching_pair' | 'confirm_file'>;
  readonly credentialCarrier: Growing<'embedded' | 'sidecar' | 'none'>;
  readonly sourceDetailCoverage: Growing<'full' | 'partial' | 'none'>;
  readonly counts: { readonly declarations: number; readonly conflicts: number; readonly unverifiable: number };
}

export interface AudioSummary {
  readonly container: Growing<'unknown' | 'riff' | 'rf64' | 'bw64' | 'rifx' | 'w64' | 'aiff' | 'aifc' | 'caf' | 'mp3' | 'mp4'>;
  readonly sampleRate?: number;
  readonly channels?: number;
  readonly bitsPerSample?: number;
  readonly frames?: number;
  readonly durationSeconds?: number;
  readonly bytes: number;
  readonly sha256: string;
}

/** What an embedded Content Credential says of itself: integrity and trust apart. */
export interface CredentialReport {
  readonly format: Growing<'c2pa'>;
  readonly issuer?: string;
  readonly generator?: string;
  readonly algorithm?: string;
  readonly claimVersion?: number;
  readonly manifestLabel?: string;
  readonly integrity: Growing<'verified' | 'failed' | 'not_checked'>;
  readonly trust: Growing<'service' | 'device' | 'unknown'>;
  readonly reasons: readonly string[];
}

/** The service's answer to a verification, as it was sent. */
export interface VerificationResult {
  readonly verdict: Growing<KnownVerdict>;
  readonly good: boolean;
  readonly decision: DecisionEnvelope;
  /** Unix seconds; with `valid` alone. */
  readonly issuedAt?: number;
  /** Whenever a signature of the service was verified. */
  readonly proofId?: string;
  /** Unix seconds. */
  readonly verifiedAt: number;
  readonly audio: AudioSummary;
  readonly embeddedCredential?: CredentialReport;
}

/** A verification result and the one conclusion a partner may draw from it. */
export interface Verification extends VerificationResult {
  /** True only when `good` is true and `verdict` is `valid`; an unknown verdict is a failed verification. */
  readonly accepted: boolean;
  /** To be quoted in problem reports. */
  readonly requestId?: string;
}

export interface Health {
  readonly ok: boolean;
  readonly version: string;
  readonly commit: string;
  /** Unix seconds. */
  readonly deployedAt: number;
  readonly environment?: string;
  readonly contract?: string;
}
