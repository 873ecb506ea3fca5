/**
 * What travels between a partner and the service. These types are the client's own, so that it ships without
 * a dependency; their members are those of the service's contract. Members this version does not know are
 * tolerated and kept.
 */

/** Verdicts this version knows. The service may add others: read `accepted`, never a list of your own. */
export type KnownVerdict =
  | 'valid'
  | 'audioChanged'
  | 'tampered'
  | 'unregistered'
  | 'unreadable'
  | 'local_seal';

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
  readonly sha256: string;
}

/** What an embedded Content Credential says of itself: integrity and trust apart. */
export interface CredentialReport {
  readonly format: Growing<'c2pa'>;
  readonly issuer?: string;
  /** Of a local seal: what the device calls itself; nobody vouches for it. */
  readonly device?: string;
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
  /** On every answer of the service; absent on cached ones from before 2.7.0. */
  readonly decision?: DecisionEnvelope;
  /** Unix seconds; with `valid` alone. */
  readonly issuedAt?: number;
  /** Whenever a signature of the service was verified. */
  readonly proofId?: string;
  /** Unix seconds. */
  readonly verifiedAt: number;
  readonly audio: AudioSummary;
  readonly embeddedCredential?: CredentialReport;
  /** Absent is to be read as unavailable source evidence. */
  readonly evidenceReport?: EvidenceReport;
}

/**
 * Report-only: it never changes whether a credential is valid. Its layout grows; read what you know and keep
 * the rest.
 */
export interface EvidenceReport {
  readonly version: number;
  readonly facts: readonly EvidenceFact[];
  readonly conflicts: readonly EvidenceFact[];
  /** Coverage gaps: what nobody witnessed. */
  readonly unverifiable: readonly EvidenceFact[];
  /** Creators' own answers, recorded after issuance. */
  readonly declarations: readonly CreatorDeclaration[];
}

export interface EvidenceFact {
  /** Stable slug; show one that you do not know as it is. */
  readonly code: Growing<
    | 'creator_declaration'
    | 'session_evidence_unavailable'
    | 'rule_inference_unavailable'
    | 'creator_declaration_altered'
  >;
  readonly contentClass: Growing<
    | 'direct_observation'
    | 'rule_inference'
    | 'creator_declaration'
    | 'explicit_conflict'
    | 'unverifiable_coverage_gap'
  >;
  /** `needs_review` asks for a human decision. */
  readonly status: Growing<'declared' | 'none_recorded' | 'unverifiable' | 'needs_review'>;
  /** Of a declaration: a member of `answers`, what it was answered with, and in which submission. */
  readonly dimension?: string;
  readonly answer?: string;
  readonly submissionId?: string;
}

export interface CreatorDeclaration {
  readonly surveyVersion: string;
  readonly submissionId: string;
  readonly subject: string;
  /** Unix seconds, by the survey's clock; `recordedAt` by the service's. */
  readonly submittedAt: number;
  readonly recordedAt: number;
  readonly bindingStatus: Growing<'authenticated_post_issuance_record'>;
  /** Answered dimensions alone. */
  readonly answers: Readonly<
    Partial<
      Record<
        Growing<'declaredOrigin' | 'aiShareBand' | 'manualWork' | 'contributionBand' | 'disputedAssessment'>,
        string
      >
    >
  >;
}

/** A report whose layout grows. */
export type Report = Readonly<Record<string, unknown>>;

/** Of the partner's month: "all three `X-RateLimit-*` headers are on every partner-scoped response". */
export interface RateLimit {
  readonly limit: number;
  readonly remaining: number;
  /** Unix seconds at which the window resets. */
  readonly reset: number;
}

/** What an answer says beside its body. */
export interface AnswerFacts {
  /** To be quoted in problem reports. */
  readonly requestId?: string;
  /** Not enumerable: it says something about the moment, and would not belong into a stored result. */
  readonly rateLimit?: RateLimit;
}

export type Answered<Body> = Body & AnswerFacts;

/** A verification result and the one conclusion a partner may draw from it. */
export interface Verification extends VerificationResult, AnswerFacts {
  /** True only when `good` is true and `verdict` is `valid`; an unknown verdict is a failed verification. */
  readonly accepted: boolean;
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

export type Carrier = Growing<'embedded' | 'sidecar'>;

export interface ProofEntry {
  readonly proofId: string;
  /** Unix seconds. */
  readonly issuedAt: number;
  readonly song: { readonly title: string };
  readonly carrier: Carrier;
  /** Hard-binding digest of an embedded credential, the whole file's of a pair; lower-case hex. */
  readonly boundAudioSha256: string;
}

export interface ProofPage {
  readonly proofs: readonly ProofEntry[];
  /** Opaque; absent on the last page. */
  readonly nextCursor?: string;
}

export interface ProofDetail extends ProofEntry {
  readonly createdAt: number;
  readonly originalSha256: string;
  readonly evidenceReport?: EvidenceReport;
  readonly processNote?: Report;
}

/**
 * The registered record behind a proof. It is no verification result: nothing says that any file matches it.
 */
export interface ProofRecord {
  readonly proofId: string;
  readonly song: { readonly title: string };
  readonly issuedAt: number;
  readonly boundAudioSha256: string;
  readonly evidenceReport?: EvidenceReport;
  readonly processNote?: Report;
  readonly delivery: {
    readonly carrier: Carrier;
    readonly bytes: number;
    readonly sha256: string;
    readonly mediaType: string;
    readonly fileName: string;
  };
}

export interface ErasedProof {
  readonly proofId: string;
  readonly outcome: Growing<'erased' | 'already_erased'>;
  readonly erasedAt: number;
}

export interface KeyEntry {
  readonly keyId: string;
  readonly name: string;
  readonly status: Growing<'active' | 'expiring' | 'expired' | 'revoked'>;
  readonly plan: string;
  readonly createdAt: number;
  readonly expiresAt?: number;
  readonly lastUsedAt?: number;
  /** Calls with it must be signed. */
  readonly signed?: true;
}

export interface KeyPage {
  readonly keys: readonly KeyEntry[];
  readonly nextCursor?: string;
}

export interface RotatedKey {
  /** The new secret. */
  readonly apiKey: string;
  readonly keyId: string;
  readonly name: string;
  /** Unix seconds at which the calling key stops working. */
  readonly previousKeyExpiresAt: number;
}

export interface UsageReport {
  readonly plan: string;
  readonly period: { readonly start: number; readonly end: number };
  readonly limit: number;
  readonly used: number;
  readonly remaining: number;
  /** Ascending; `day` is `2026-01-31`, in UTC. */
  readonly days: readonly {
    readonly day: string;
    readonly units: number;
    readonly operations: Readonly<Record<string, number>>;
  }[];
}

/** The partner's own opaque identifiers: never names or e-mail addresses. */
export interface ReviewBindings {
  readonly creatorId: string;
  readonly accountId: string;
  readonly submissionId: string;
  readonly trackId: string;
}

export type EvidenceKind = 'source_evidence' | 'source_licence' | 'creator_clarification';
export type ReviewOutcome = 'accepted' | 'held' | 'rejected';

export interface EvidenceRequest {
  readonly requestId: string;
  readonly kind: Growing<EvidenceKind>;
  readonly status: Growing<'requested' | 'supplied' | 'accepted' | 'declined'>;
  readonly responseReference?: string;
  readonly createdAt: number;
  readonly updatedAt: number;
}

export interface PartnerReviewCase {
  readonly reviewId: string;
  readonly proofId: string;
  readonly bindings: ReviewBindings;
  readonly status: Growing<'open' | 'resolved'>;
  readonly outcome?: Growing<ReviewOutcome>;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly resolvedAt?: number;
  /** From this second on the case is not there. */
  readonly expiresAt: number;
  readonly evidenceRequests: readonly EvidenceRequest[];
}

/** Recordings that an upload was recognised as. */
export interface Identification {
  readonly matches: readonly {
    readonly proofId: string;
    readonly type: Growing<'exact_file' | 'bound_audio' | 'original_file'> /** 0 to 1. */;
    readonly confidence: number;
  }[];
}

/** A counter of a closed list of names: no content can travel in it. */
export interface TelemetryEvent {
  readonly name: string;
  readonly count: number;
  /** Unix seconds. */
  readonly at: number;
}
