/** The public names of requests and responses, and the members that the client adds. */
import type {
  DecisionEnvelope,
  Fixtures,
  Growing,
  IdentifyDigests,
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
  DigestsIdentification,
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

/** A digest of a file that is not sent. Without `of`, it may be a digest of any kind. */
export interface AskedDigest {
  /** The digest in lower-case hex. */
  readonly sha256: string;
  readonly of?: IdentifyDigests['digests'][number]['of'] | undefined;
}

/** The part of a fixture. */
export type FixturePart = Fixtures['fixtures'][number]['files'][number]['part'];

export type Carrier = ProofEntry['carrier'];

/** A report whose layout may grow. */
export type Report = ProcessNote;

type CountedEvent = Telemetry['events'][number];

/** A counter with a name from a closed list, so that it cannot carry content. */
export interface TelemetryEvent extends Omit<CountedEvent, 'name'> {
  readonly name: Growing<CountedEvent['name']>;
}

/** The response to a verification, as sent by the service. */
export interface VerificationResult extends Omit<VerificationResponse, 'decision'> {
  /** Absent in responses stored before contract 2.7.0. */
  readonly decision?: DecisionEnvelope;
}

/** The partner's monthly quota, on every partner-scoped response (rule 6.9). */
export interface RateLimit {
  readonly limit: number;
  readonly remaining: number;
  /** The reset of the window in unix seconds. */
  readonly reset: number;
}

/** The facts from the headers of a response. */
export interface ResponseFacts {
  /** The request id. Quote it in problem reports. */
  readonly requestId?: string;
  /** The quota at this moment. Not enumerable, so that it is not stored with a result. */
  readonly rateLimit?: RateLimit;
}

export type Responded<Body> = Body & ResponseFacts;

/** A verification result, and the only conclusion that a partner may draw from it. */
export interface Verification extends VerificationResult, ResponseFacts {
  /** True only if `good` is true and `verdict` is `valid`. An unknown verdict is a failed verification. */
  readonly accepted: boolean;
}
