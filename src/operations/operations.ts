import type { Readable } from 'node:stream';
import type { AuditEntry, AuditVerification } from '../domain/audit.js';
import type { Declaration, DeclarationEnvelope } from '../domain/declaration.js';
import type { Topic } from '../domain/events.js';
import type { EvidenceReport } from '../domain/evidence-report.js';
import type { ContentDigest } from '../domain/message-signature.js';
import type { SignatureAlgorithm } from '../domain/parsed-credential.js';
import type { KeyStatus, Partner, Plan, Scope } from '../domain/partner.js';
import type { Carrier } from '../domain/proof.js';
import type { EvidenceKind, ReviewBindings, ReviewCase, ReviewOutcome } from '../domain/review.js';
import type { RevocationReason, SignerRevocation } from '../domain/signer-revocation.js';
import type { UploadPurpose } from '../domain/upload.js';
import type { VerificationResult } from '../domain/verification.js';
import type { CheckedDeclaration } from './proofs/read-evidence.js';

/** Every use case of the service, as the listeners call it. All of them throw DomainError for a refusal. */
export interface Operations {
  readonly partner: PartnerOperations;
  readonly operator: OperatorOperations;
}

/** Who calls, after the key was checked. */
export interface Caller {
  readonly partnerId: string;
  readonly keyId: string;
  readonly scopes: readonly Scope[];
  readonly plan: Plan;
  /** SPKI in base64, where the key's calls must be signed. */
  readonly publicKey?: string;
  /**
   * The partner's units of the month after this call's charge, once it had one: its headers need no second
   * read then.
   */
  used?: number;
}

/** A call as it came, for what its signature covers. */
export interface SignedMessage {
  readonly method: string;
  /** Path and query, as sent. */
  readonly target: string;
  readonly hasBody: boolean;
  /** A header by its lower-case name. */
  field(name: string): string | undefined;
}

export interface CreatedUpload {
  readonly uploadId: string;
  readonly url: string;
  readonly fields: Readonly<Record<string, string>>;
  readonly maxBytes: number;
  readonly expiresAt: number;
}

export interface StoredUpload {
  readonly uploadId: string;
  readonly bytes: number;
  readonly sha256: string;
}

/** One upload on its way into the engine. */
export interface UploadReceiver {
  readonly maxBytes: number;
  /**
   * Aborts, with the DomainError as its reason, when the engine gives the upload up while its client is
   * waited for.
   */
  readonly signal: AbortSignal;
  /** As AudioIngest.write; throws `payload_too_large` on the first byte too many. */
  write(chunk: Uint8Array): Promise<void> | undefined;
  /** Measures, reads the credential, stores the facts. */
  finish(): Promise<StoredUpload>;
  /**
   * Gives the slot and its memory back; the slot stays open until it expires. Safe at any time, any number of
   * times.
   */
  abort(): void;
}

/** What the three `X-RateLimit-*` headers of a partner-scoped response say. */
export interface QuotaFacts {
  readonly limit: number;
  readonly remaining: number;
  /** Unix seconds at which the window resets. */
  readonly reset: number;
}

/** Lanes of the request rate. Rotation has its own, deliberately low one. */
export type RateLane = 'standard' | 'rotation' | 'rotation_calls';

export interface ProofEntry {
  readonly proofId: string;
  readonly issuedAt: number;
  readonly song: { readonly title: string };
  readonly carrier: Carrier;
  readonly boundAudioSha256: string;
}

export interface ProofDetail extends ProofEntry {
  readonly createdAt: number;
  readonly originalSha256: string;
  readonly evidenceReport?: EvidenceReport;
}

export interface ProofRecord {
  readonly proofId: string;
  readonly song: { readonly title: string };
  readonly issuedAt: number;
  readonly boundAudioSha256: string;
  readonly evidenceReport?: EvidenceReport;
  readonly delivery: {
    readonly carrier: Carrier;
    readonly bytes: number;
    readonly sha256: string;
    readonly mediaType: string;
    readonly fileName: string;
  };
}

/** A deliverable as a response needs it; `range` is what `stream` holds. */
export interface Deliverable {
  /** Of the whole representation. */
  readonly bytes: number;
  readonly sha256: string;
  readonly fileName: string;
  readonly mediaType: string;
  read(range?: { readonly start: number; readonly end: number }): Promise<Readable>;
}

export interface KeyEntry {
  readonly keyId: string;
  readonly name: string;
  readonly status: KeyStatus;
  readonly plan: string;
  readonly createdAt: number;
  readonly expiresAt?: number;
  /** To within a minute. */
  readonly lastUsedAt?: number;
  /** Calls with it must be signed. */
  readonly signed?: true;
}

export interface RotatedKey {
  readonly apiKey: string;
  readonly keyId: string;
  readonly name: string;
  readonly previousKeyExpiresAt: number;
}

export interface UsageReport {
  readonly plan: string;
  /** Unix seconds. */
  readonly period: { readonly start: number; readonly end: number };
  readonly limit: number;
  readonly used: number;
  readonly remaining: number;
  /** Ascending; days without use are zero. */
  readonly days: readonly {
    readonly day: string;
    readonly units: number;
    readonly operations: Readonly<Record<string, number>>;
  }[];
}

/** Acoustic matches come later; `confidence` of a digest match is 1. */
export interface IdentifyMatch {
  readonly proofId: string;
  readonly type: 'exact_file' | 'bound_audio' | 'original_file';
  readonly confidence: number;
}

/** A case as the partner sees it. */
export type ReviewView = Omit<ReviewCase, 'partnerId'>;

export interface PartnerOperations {
  /**
   * @param apiKey the header as sent. Throws `forbidden` for a missing, malformed, foreign, unknown, expired
   * or revoked key alike.
   */
  authenticate(apiKey: string | undefined): Promise<Caller>;
  /**
   * Checks the signature of a call, where its key needs one.
   * @returns what the body must have as its digest, before anything is done with it
   * @throws DomainError `forbidden` / `signature_missing`, `signature_invalid`
   */
  checkSignature(caller: Caller, message: SignedMessage): ContentDigest | undefined;
  createUpload(
    caller: Caller,
    request: { readonly purpose: UploadPurpose; readonly contentLength?: number },
  ): Promise<CreatedUpload>;
  /**
   * Checks the signed form fields (every one of them, nothing missing, altered or extra) and claims the slot
   * in this process. Called as soon as they are whole, before the file has begun.
   */
  receiveUpload(uploadId: string, fields: ReadonlyMap<string, string>): Promise<UploadReceiver>;
  /**
   * Spends one call of the partner's request rate. `rotateKey` spends the rotation lane itself, because its
   * replays do not.
   * @throws DomainError `rate_limited` / `rate_exceeded` with a `retryAfterSeconds` after which a lone
   * caller's next call succeeds
   */
  admit(caller: Caller, lane: RateLane): void;
  /** Read when the answer is ready, so that it counts the call itself. */
  quota(caller: Caller): Promise<QuotaFacts>;
  /** Counts a call that is metered but free; never fails and never waits. */
  meter(caller: Caller, operation: string): void;

  identify(
    caller: Caller,
    request: { readonly uploadId: string },
  ): Promise<{ readonly matches: readonly IdentifyMatch[] }>;
  listProofs(
    caller: Caller,
    query: {
      readonly limit?: number;
      readonly cursor?: string;
      readonly issuedAfter?: number;
      readonly issuedBefore?: number;
    },
  ): Promise<{ readonly proofs: readonly ProofEntry[]; readonly nextCursor?: string }>;
  readProof(caller: Caller, proofId: string): Promise<ProofDetail>;
  readRecord(caller: Caller, proofId: string): Promise<ProofRecord>;
  readAsset(caller: Caller, proofId: string, part: 'audio' | 'sidecar'): Promise<Deliverable>;
  eraseProof(
    caller: Caller,
    proofId: string,
  ): Promise<{
    readonly proofId: string;
    readonly outcome: 'erased' | 'already_erased';
    readonly erasedAt: number;
  }>;

  listKeys(
    caller: Caller,
    query: { readonly limit?: number; readonly cursor?: string },
  ): Promise<{ readonly keys: readonly KeyEntry[]; readonly nextCursor?: string }>;
  /**
   * @param apiKey the calling key itself: what the new secret is derived from. A new rotation spends the
   * rotation lane, a replay does not.
   */
  rotateKey(
    caller: Caller,
    apiKey: string,
    idempotencyKey: string,
  ): Promise<RotatedKey & { readonly replayed: boolean }>;
  /**
   * At once on every process. Throws `forbidden` / `key_expiring`, `conflict` / `last_active_key`,
   * `not_found`.
   */
  revokeOwnKey(caller: Caller, keyId: string): Promise<KeyEntry>;
  readUsage(caller: Caller, query: { readonly days: number }): Promise<UsageReport>;

  createReview(
    caller: Caller,
    request: { readonly proofId: string; readonly bindings: ReviewBindings },
  ): Promise<ReviewView>;
  readReview(caller: Caller, reviewId: string): Promise<ReviewView>;
  openEvidence(
    caller: Caller,
    reviewId: string,
    request: { readonly kind: EvidenceKind },
  ): Promise<ReviewView>;
  closeEvidence(
    caller: Caller,
    reviewId: string,
    requestId: string,
    request: { readonly status: 'accepted' | 'declined'; readonly responseReference?: string },
  ): Promise<ReviewView>;
  resolveReview(
    caller: Caller,
    reviewId: string,
    request: { readonly outcome: ReviewOutcome },
  ): Promise<ReviewView>;

  /** The configured address of a product's download; `not_found` otherwise. */
  download(caller: Caller, query: { readonly product: string; readonly platform: string }): string;
  telemetry(
    caller: Caller,
    events: readonly { readonly name: string; readonly count: number; readonly at: number }[],
  ): { readonly accepted: number };

  verifyUpload(
    caller: Caller,
    request: { readonly uploadId: string; readonly sidecar?: Uint8Array },
  ): Promise<VerificationResult>;
}

export interface IssueRequest {
  readonly partnerId: string;
  readonly songTitle: string;
  readonly fileName: string;
  readonly carrier: Carrier;
  readonly idempotencyKey?: string;
  readonly audio: AsyncIterable<Uint8Array>;
}

export interface IssueResult {
  readonly proofId: string;
  readonly issuedAt: number;
  readonly carrier: Carrier;
  readonly originalSha256: string;
  readonly boundAudioSha256: string;
  readonly asset: {
    readonly bytes: number;
    readonly sha256: string;
    readonly fileName: string;
    readonly mediaType: string;
  };
  /** True where an earlier request under the same Idempotency-Key is answered again. */
  readonly replayed: boolean;
}

export interface DeadLetterEntry {
  readonly topic: Topic;
  readonly position: string;
  readonly reason: string;
  /** Unix seconds. */
  readonly at: number;
  readonly eventId?: string;
  readonly kind?: string;
}

/** A leaf of the service. Times in unix seconds. */
export interface SignerEntry {
  /** Lower-case hex SHA-256 of the certificate (DER). */
  readonly kid: string;
  readonly algorithm: SignatureAlgorithm;
  readonly issuer: string;
  readonly notBefore: number;
  readonly notAfter: number;
  /** Whether it is the one that new proofs are signed with. */
  readonly signs: boolean;
  readonly revocation?: Omit<SignerRevocation, 'kid'>;
}

export interface OperatorOperations {
  listSigners(): Promise<readonly SignerEntry[]>;
  revokeSigner(request: {
    readonly kid: string;
    readonly from: number;
    readonly reason: RevocationReason;
  }): Promise<SignerEntry>;
  reinstateSigner(kid: string): Promise<SignerEntry>;
  listPartners(): Promise<readonly Partner[]>;
  listPlans(): readonly Plan[];
  listPartnerKeys(partnerId: string): Promise<readonly KeyEntry[]>;
  revokeKey(request: { readonly partnerId: string; readonly keyId: string }): Promise<KeyEntry>;
  /** "Said on the operator listener by the side that holds the evidence." */
  supplyEvidence(request: { readonly reviewId: string; readonly requestId: string }): Promise<ReviewView>;
  /** @returns what was stored; `repeated` where the same submission was recorded before */
  recordDeclaration(
    proofId: string,
    declaration: Declaration,
  ): Promise<{ readonly declaration: DeclarationEnvelope; readonly repeated: boolean }>;
  listDeclarations(proofId: string): Promise<readonly CheckedDeclaration[]>;
  /** What is left of a proof: its state, and whether record, deliverable and cases are gone. */
  erasureStatus(proofId: string): Promise<{
    readonly proofId: string;
    readonly state: 'pending' | 'issued' | 'erased';
    readonly erasedAt?: number;
    readonly confirmedAt?: number;
    readonly assetPresent: boolean;
  }>;
  /** Of one topic, or of all, oldest first in each. */
  listDeadLetters(request: {
    readonly topic?: Topic;
    readonly limit: number;
  }): Promise<readonly DeadLetterEntry[]>;
  /** @returns how many were put into their topic again */
  replayDeadLetters(request: { readonly topic: Topic; readonly limit: number }): Promise<number>;
  readAudit(request: {
    readonly partnerId: string;
    readonly fromSequence: number;
    readonly limit: number;
  }): Promise<readonly AuditEntry[]>;
  verifyAudit(partnerId: string): Promise<AuditVerification>;
  createPartner(request: { readonly name: string; readonly plan?: string }): Promise<Partner>;
  /** The secret is in this answer and nowhere else. */
  createKey(request: {
    readonly partnerId: string;
    readonly name: string;
    readonly scopes?: readonly Scope[] /** PEM. */;
    readonly publicKey?: string;
  }): Promise<{ readonly keyId: string; readonly apiKey: string; readonly name: string }>;
  issueProof(request: IssueRequest): Promise<IssueResult>;
  /** `part` sidecar: the sidecar of a pair. */
  readDeliverable(
    proofId: string,
    part: 'audio' | 'sidecar',
  ): Promise<{
    readonly bytes: number;
    readonly fileName: string;
    readonly mediaType: string;
    readonly stream: Readable;
  }>;
  /** PEM of the authority certificates, the current one first. */
  authority(): string;
}
