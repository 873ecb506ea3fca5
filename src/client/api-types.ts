/**
 * Shapes of requests and responses. Derived from deploy/openapi/takemark.json by
 * `npm run build:openapi`: not to be edited. Members this version does not know are tolerated and kept.
 */

/** A string of a known set that may grow: completion for the known ones, room for the rest. */
export type Growing<Known extends string> = Known | (string & Record<never, never>);

export type KnownVerdict =
  | 'valid'
  | 'audioChanged'
  | 'tampered'
  | 'unregistered'
  | 'unreadable'
  | 'local_seal';

export type EvidenceKind = 'source_evidence' | 'source_licence' | 'creator_clarification';

export type ReviewOutcome = 'accepted' | 'held' | 'rejected';

export interface AudioSummary {
  readonly container: Growing<
    'unknown' | 'riff' | 'rf64' | 'bw64' | 'rifx' | 'w64' | 'aiff' | 'aifc' | 'caf' | 'mp3' | 'mp4'
  >;
  readonly sampleRate?: number;
  readonly channels?: number;
  readonly bitsPerSample?: number;
  readonly frames?: number;
  readonly durationSeconds?: number;
  readonly bytes: number;
  readonly sha256: Sha256;
}

export interface CloseEvidence {
  readonly status: 'accepted' | 'declined';
  /** A bounded opaque reference into the partner's own evidence system. */
  readonly responseReference?: string;
}

export interface CreateReview {
  readonly proofId: Identifier;
  readonly bindings: ReviewBindings;
}

export interface CreateUpload {
  readonly purpose?: UploadPurpose;
  readonly contentLength?: number;
}

/** Opaque; bound to the partner, the list and its filter. */
export type Cursor = string;

/** Policy-neutral: it never labels a track human or AI. */
export interface DecisionEnvelope {
  readonly status: Growing<'verified_binding' | 'needs_review' | 'invalid_proof'>;
  /**
   * Stable slugs; the first one decided. Of `unregistered`: `proof_not_registered`,
   * `credential_not_as_issued`, `signer_unknown` (followed by `names_this_service` where a stranger
   * calls itself by our name), and `signer_revoked`: the proof was registered at or after the time from
   * which the certificate that signed it is revoked.
   */
  readonly reasons: readonly string[];
  readonly recommendedAction: Growing<
    'accept_credential' | 'review' | 'reject' | 'request_matching_pair' | 'confirm_file'
  >;
  readonly credentialCarrier: Growing<'embedded' | 'sidecar' | 'none'>;
  readonly sourceDetailCoverage: Growing<'full' | 'partial' | 'none'>;
  readonly counts: {
    readonly declarations: number;
    readonly conflicts: number;
    readonly unverifiable: number;
  };
}

export interface CreatorDeclaration {
  readonly surveyVersion: Identifier;
  readonly submissionId: Identifier;
  readonly subject: Identifier;
  readonly submittedAt: Timestamp;
  readonly answers: {
    readonly declaredOrigin?: Growing<
      'from_scratch' | 'own_material' | 'third_party_material' | 'generated_material' | 'undisclosed'
    >;
    readonly aiShareBand?: Growing<
      | 'none'
      | 'under_quarter'
      | 'quarter_to_half'
      | 'half_to_three_quarters'
      | 'over_three_quarters'
      | 'undisclosed'
    >;
    readonly manualWork?: Growing<'none' | 'some' | 'substantial' | 'entire' | 'undisclosed'>;
    readonly contributionBand?: Growing<
      'all_self_made' | 'majority_self_made' | 'shared' | 'minority_self_made' | 'undisclosed'
    >;
    readonly disputedAssessment?: Growing<'not_disputed' | 'disputed'>;
  };
  readonly recordedAt: Timestamp;
  /** Recorded after issuance, not part of the original proof signature. */
  readonly bindingStatus: Growing<'authenticated_post_issuance_record'>;
}

/** Report of an embedded Content Credential: integrity and trust apart. */
export interface CredentialReport {
  readonly format: Growing<'c2pa'>;
  readonly issuer?: string;
  /** Name that the device of a local seal gives itself; nobody vouches for it. */
  readonly device?: string;
  readonly generator?: string;
  readonly algorithm?: string;
  readonly claimVersion?: number;
  readonly manifestLabel?: string;
  readonly integrity: Growing<'verified' | 'failed' | 'not_checked'>;
  readonly trust: Growing<'service' | 'device' | 'unknown'>;
  readonly reasons: readonly string[];
}

export interface ErasedProof {
  readonly proofId: Identifier;
  readonly outcome: Growing<'erased' | 'already_erased'>;
  readonly erasedAt: Timestamp;
}

export interface EvidenceFact {
  /** Stable slug. One that you do not know is rendered as it is. */
  readonly code: string;
  readonly contentClass: Growing<
    | 'direct_observation'
    | 'rule_inference'
    | 'creator_declaration'
    | 'explicit_conflict'
    | 'unverifiable_coverage_gap'
  >;
  /** `needs_review` asks for a human decision. */
  readonly status: Growing<'declared' | 'none_recorded' | 'unverifiable' | 'needs_review'>;
  readonly dimension?: Growing<
    'declaredOrigin' | 'aiShareBand' | 'manualWork' | 'contributionBand' | 'disputedAssessment'
  >;
  /** Declarations of the creator; favourable and adverse answers alike. */
  readonly answer?: string;
  readonly submissionId?: Identifier;
}

/** Report-only; absent where nothing was declared, which is to be read as unavailable source evidence. */
export interface EvidenceReport {
  readonly version: number;
  /** A `creator_declaration` for each answered dimension of each submission. */
  readonly facts: readonly EvidenceFact[];
  readonly conflicts: readonly EvidenceFact[];
  /** Coverage gaps: what nobody witnessed. */
  readonly unverifiable: readonly EvidenceFact[];
  readonly declarations: readonly CreatorDeclaration[];
  readonly [member: string]: unknown;
}

export interface EvidenceRequest {
  readonly requestId: Identifier;
  readonly kind: Growing<EvidenceKind>;
  /** `accepted` and `declined` are terminal and immutable. */
  readonly status: Growing<'requested' | 'supplied' | 'accepted' | 'declined'>;
  /** A bounded opaque reference into the partner's own evidence system. */
  readonly responseReference?: string;
  readonly createdAt: Timestamp;
  readonly updatedAt: Timestamp;
}

export interface Health {
  readonly ok: boolean;
  readonly version: string;
  readonly commit: string;
  readonly deployedAt: Timestamp;
  readonly environment: string;
  readonly contract: string;
}

export interface Identification {
  readonly matches: readonly {
    readonly proofId: Identifier;
    /**
     * Bytes that are the same: the file that was delivered, the audio that is bound, or the file as it
     * came to be issued. Others may be added.
     */
    readonly type: Growing<'exact_file' | 'bound_audio' | 'original_file'>;
    readonly confidence: number;
  }[];
}

/** Opaque. Malformed ones are 400; every other one that is not there is 404. */
export type Identifier = string;

export interface Identify {
  readonly uploadId: Identifier;
}

export interface KeyEntry {
  readonly keyId: Identifier;
  readonly name: string;
  /** `expiring`: rotated, in its 72 hours. */
  readonly status: Growing<'active' | 'expiring' | 'expired' | 'revoked'>;
  readonly plan: string;
  readonly createdAt: Timestamp;
  readonly expiresAt?: Timestamp;
  readonly lastUsedAt?: Timestamp;
  /** Calls with the key must be signed. */
  readonly signed?: true;
}

export interface KeyPage {
  readonly keys: readonly KeyEntry[];
  readonly nextCursor?: Cursor;
}

export interface OpenEvidence {
  readonly kind: EvidenceKind;
}

export interface PartnerReviewCase {
  readonly reviewId: Identifier;
  readonly proofId: Identifier;
  readonly bindings: ReviewBindings;
  readonly status: Growing<'open' | 'resolved'>;
  /**
   * The partner's own; not a claim of authorship or rights. `held` may later become `accepted` or
   * `rejected`.
   */
  readonly outcome?: Growing<ReviewOutcome>;
  readonly createdAt: Timestamp;
  readonly updatedAt: Timestamp;
  readonly resolvedAt?: Timestamp;
  /** Creation and 180 days; it never moves, and from then on the case is not there. */
  readonly expiresAt: Timestamp;
  readonly evidenceRequests: readonly EvidenceRequest[];
}

export interface ProcessNote {
  readonly policyVersion?: string;
  readonly [member: string]: unknown;
}

export interface ProofDetail {
  readonly proofId: Identifier;
  readonly issuedAt: Timestamp;
  readonly song: {
    readonly title: string;
  };
  readonly carrier: Growing<'embedded' | 'sidecar'>;
  /** Hard-binding digest of an embedded credential; digest of the whole file of a pair. */
  readonly boundAudioSha256: Sha256;
  readonly createdAt: Timestamp;
  readonly originalSha256: Sha256;
  readonly evidenceReport?: EvidenceReport;
  readonly processNote?: ProcessNote;
}

export interface ProofEntry {
  readonly proofId: Identifier;
  readonly issuedAt: Timestamp;
  readonly song: {
    readonly title: string;
  };
  readonly carrier: Growing<'embedded' | 'sidecar'>;
  /** Hard-binding digest of an embedded credential; digest of the whole file of a pair. */
  readonly boundAudioSha256: Sha256;
  readonly evidenceReport?: EvidenceReport;
}

export interface ProofPage {
  readonly proofs: readonly ProofEntry[];
  readonly nextCursor?: Cursor;
}

/** Registered record behind a proof. It does not say that any file matches. */
export interface ProofRecord {
  readonly proofId: Identifier;
  readonly song: {
    readonly title: string;
  };
  readonly issuedAt: Timestamp;
  readonly boundAudioSha256: Sha256;
  readonly evidenceReport?: EvidenceReport;
  readonly processNote?: ProcessNote;
  readonly delivery: {
    readonly carrier: Growing<'embedded' | 'sidecar'>;
    readonly bytes: number;
    readonly sha256: Sha256;
    readonly mediaType: string;
    readonly fileName: string;
  };
}

export interface ResolveReview {
  readonly outcome: ReviewOutcome;
}

/** The partner's own opaque identifiers: never names or e-mail addresses. */
export interface ReviewBindings {
  readonly creatorId: Identifier;
  readonly accountId: Identifier;
  readonly submissionId: Identifier;
  readonly trackId: Identifier;
}

export interface RotatedKey {
  /** The new secret, visible only in this response and its idempotent replay. */
  readonly apiKey: string;
  readonly keyId: Identifier;
  readonly name: string;
  /** When the calling key stops working: 72 hours after rotation. */
  readonly previousKeyExpiresAt: Timestamp;
}

/** Lower-case hex. */
export type Sha256 = string;

export interface StoredUpload {
  readonly uploadId: Identifier;
  readonly bytes: number;
  readonly sha256: Sha256;
}

export interface Telemetry {
  readonly events: readonly {
    readonly name:
      | 'app_started'
      | 'download_started'
      | 'verify_started'
      | 'verify_completed'
      | 'verify_failed'
      | 'verify_retried'
      | 'upload_failed'
      | 'pair_verified'
      | 'report_opened'
      | 'review_opened'
      | 'key_rotated';
    readonly count: number;
    readonly at: Timestamp;
  }[];
}

export interface TelemetryAccepted {
  readonly accepted: number;
}

/** Unix epoch seconds. */
export type Timestamp = number;

export type UploadPurpose = 'verify' | 'identify';

/** A short-lived place to post one audio file to. */
export interface UploadSlot {
  readonly uploadId: Identifier;
  /** Presigned: it needs no key, and is a secret while it lives. */
  readonly url: string;
  /** Each entry is sent as a form field, before the file. */
  readonly fields: Readonly<Record<string, string>>;
  readonly maxBytes: number;
  readonly expiresAt: Timestamp;
}

export interface UsageReport {
  readonly plan: string;
  /** The UTC calendar month that the quota holds for. */
  readonly period: {
    readonly start: Timestamp;
    readonly end: Timestamp;
  };
  readonly limit: number;
  readonly used: number;
  readonly remaining: number;
  readonly days: readonly {
    readonly day: string;
    /** Units that counted against the quota. */
    readonly units: number;
    /** Calls by operation, free ones included. */
    readonly operations: Readonly<Record<string, number>>;
  }[];
}

export interface VerificationResponse {
  /**
   * Accept only when this is `valid` and `good` is true. A value you do not know is a failed
   * verification.
   */
  readonly verdict: Growing<KnownVerdict>;
  readonly good: boolean;
  readonly decision: DecisionEnvelope;
  /** Present with `valid` alone. */
  readonly issuedAt?: Timestamp;
  /** Present whenever a signature of the service was verified. */
  readonly proofId?: Identifier;
  readonly verifiedAt: Timestamp;
  readonly audio: AudioSummary;
  readonly evidenceReport?: EvidenceReport;
  readonly embeddedCredential?: CredentialReport;
}

export interface Verify {
  readonly uploadId: Identifier;
  /** Legacy sidecar file in padded base64 (RFC 4648, section 4); omit for a one-file credentialed WAV. */
  readonly sidecar?: string;
}
