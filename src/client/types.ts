/** Names under which partners know what travels, and what the client adds to it. */
import type {
  DecisionEnvelope,
  Fixtures,
  Growing,
  ProcessNote,
  ProofEntry,
  Telemetry,
  VerificationResponse,
} from './api-types.js';

export type {
  AudioSummary,
  CreatorDeclaration,
  CredentialReason,
  CredentialReport,
  DecisionEnvelope,
  DecisionReason,
  ErasedProof,
  EvidenceFact,
  EvidenceKind,
  EvidenceReport,
  EvidenceRequest,
  Fixtures,
  Growing,
  Health,
  Identification,
  KeyEntry,
  KeyPage,
  KnownVerdict,
  PartnerReviewCase,
  ProofDetail,
  ProofEntry,
  ProofPage,
  ProofRecord,
  ReviewBindings,
  ReviewOutcome,
  ReviewPage,
  RotatedKey,
  StoredUpload,
  UploadPurpose,
  UploadSlot,
  UsageReport,
} from './api-types.js';

/** Part of a fixture. */
export type FixturePart = Fixtures['fixtures'][number]['files'][number]['part'];

export type Carrier = ProofEntry['carrier'];

/** A report whose layout grows. */
export type Report = ProcessNote;

type CountedEvent = Telemetry['events'][number];

/** A counter of a closed list of names: no content can travel in it. */
export interface TelemetryEvent extends Omit<CountedEvent, 'name'> {
  readonly name: Growing<CountedEvent['name']>;
}

/** Response to a verification, as it was sent. */
export interface VerificationResult extends Omit<VerificationResponse, 'decision'> {
  /** Absent from responses that were stored before contract 2.7.0. */
  readonly decision?: DecisionEnvelope;
}

/** Quota of the partner's month, on every partner-scoped response (rule 6.9). */
export interface RateLimit {
  readonly limit: number;
  readonly remaining: number;
  /** Unix seconds at which the window resets. */
  readonly reset: number;
}

/** Facts that a response tells beside its body. */
export interface ResponseFacts {
  /** To be quoted in problem reports. */
  readonly requestId?: string;
  /** Not enumerable: it says something about the moment, and would not belong into a stored result. */
  readonly rateLimit?: RateLimit;
}

export type Responded<Body> = Body & ResponseFacts;

/** A verification result and the one conclusion a partner may draw from it. */
export interface Verification extends VerificationResult, ResponseFacts {
  /** True only when `good` is true and `verdict` is `valid`; an unknown verdict is a failed verification. */
  readonly accepted: boolean;
}
