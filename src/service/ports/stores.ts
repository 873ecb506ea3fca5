import type { EvidenceOverlay, EvidencePart } from '../../witness/domain/evidence.js';
import type { StoredSummary } from '../../witness/domain/evidence-summary.js';
import type { AuditDraft, AuditEntry } from '../domain/audit.js';
import type { AddedDigests, DigestKind, FoundProof, FurtherDigests } from '../domain/digests.js';
import type { ReviewReminder, ServiceEvent, Topic, UsageEvent } from '../domain/events.js';
import type { KeyRevocation, RevocationRefusal } from '../domain/key-revocation.js';
import type { Partner, PartnerKey, SourceDetailApproval } from '../domain/partner.js';
import type { ErasedProof, IssuedProof, Proof } from '../domain/proof.js';
import type { ProofBrief } from '../domain/proof-brief.js';
import type { ReviewBounds, ReviewCase, ReviewChange } from '../domain/review.js';
import type { UploadFacts, UploadSlot } from '../domain/upload.js';
import type { BilledOperation } from '../domain/usage-window.js';

/**
 * The stores of all persistent state. Every write is durable when its promise resolves. A store that cannot
 * respond throws DomainError `unavailable` / `store_unavailable`, and never returns a value for an outage.
 * All expiry uses the caller's clock: `now` is in unix seconds, and a row with `expiresAt <= now` does not
 * exist.
 */

export interface PartnerStore {
  /**
   * Creates a partner. Repeating the same call is harmless.
   * @throws DomainError `conflict` when another partner has this id
   */
  createPartner(partner: Partner, audit: AuditDraft): Promise<void>;
  getPartner(partnerId: string): Promise<Partner | undefined>;
  listPartners(): Promise<readonly Partner[]>;
  /**
   * Sets a partner's approval for source detail. Undefined revokes it. An approval of the same version is not
   * replaced, and a call without a change is not audited.
   */
  setSourceDetail(
    partnerId: string,
    approval: SourceDetailApproval | undefined,
    audit: AuditDraft,
  ): Promise<'changed' | 'unchanged' | 'not_found'>;
}

/**
 * The stored input for the derivation of a successor key's secret, beside the caller's input. Without the
 * stored input the secret cannot be derived again.
 */
export interface RotationReplay {
  /** The nonce: 32 random bytes as hex. */
  readonly nonce: string;
  /** The id of the service's own secret (purpose `rotation`). */
  readonly secretId: string;
}

/** A completed rotation. The new secret is derived again for each replay and never stored. */
export interface Rotation {
  /** The id of the rotated key. */
  readonly keyId: string;
  readonly partnerId: string;
  /** The id of the successor key. */
  readonly newKeyId: string;
  readonly rotatedAt: number;
  /** The time, in unix seconds, from which the rotated key is not accepted any more. */
  readonly previousKeyExpiresAt: number;
  /** The time, in unix seconds, from which the rotation is not replayed any more. */
  readonly replayUntil: number;
  /** The stored input for the derivation of the new secret. Deleted from the store at `replayUntil`. */
  readonly replay?: RotationReplay;
}

export type RevocationOutcome =
  | {
      readonly outcome: 'revoked' | 'already_revoked';
      /** The revoked key, then its successors, oldest first, if the revocation names them. */
      readonly keyIds: readonly string[];
    }
  | { readonly outcome: 'not_found' | RevocationRefusal };

/** The last use of a key, stored apart from the key's row, because that row is only written conditionally. */
export interface KeyUse {
  readonly partnerId: string;
  readonly keyId: string;
  /** The time of the use in unix seconds. */
  readonly at: number;
}

export interface KeyStore {
  /**
   * Creates a key. Repeating the same call is harmless. Here and in the methods below, the same write appends
   * the audit entry.
   * @throws DomainError `conflict` when another key has this id
   */
  createKey(key: PartnerKey, audit: AuditDraft): Promise<void>;
  /** Returns the key with a single read, because every authenticated request needs it. */
  getKey(keyId: string): Promise<PartnerKey | undefined>;
  /** Lists a partner's keys, oldest first: at most `limit` after `after`, or all without a page. */
  listKeys(
    partnerId: string,
    page?: {
      readonly after?: { readonly createdAt: number; readonly keyId: string };
      readonly limit: number;
    },
  ): Promise<readonly PartnerKey[]>;
  /**
   * Revokes a key, and its successors if the revocation names them. The conditions of rule 4.15 are checked in
   * the same atomic step, against every other revocation of the partner. The first revocation of a key wins,
   * and appends one audit entry.
   * @returns the ids of the key and of the successors, or why nothing was changed. `not_found` is also the
   * outcome for another partner's key
   */
  revokeKey(revocation: KeyRevocation): Promise<RevocationOutcome>;
  getRotation(keyId: string): Promise<Rotation | undefined>;
  /**
   * Creates the only successor of a key in one atomic write: the successor's row, the old key's `expiresAt`,
   * the rotation and the audit entry.
   * @returns the valid rotation, which is this one or an earlier one. Undefined when the old key does not
   * exist or was revoked, so that no successor escapes a revocation.
   */
  rotateKey(rotation: Rotation, successor: PartnerKey, audit: AuditDraft): Promise<Rotation | undefined>;
  /** Records the last use of keys, in batches. The latest time wins. A crash loses at most one batch. */
  touchKeys(uses: readonly KeyUse[]): Promise<void>;
  /** Returns the last uses of a partner's keys, by key id. A key that was never used is absent. */
  getKeyUses(partnerId: string, keyIds: readonly string[]): Promise<ReadonlyMap<string, number>>;
}

export interface UploadStore {
  createSlot(slot: UploadSlot): Promise<void>;
  /** Returns a slot until it expires, or a slot with facts until the facts expire. */
  getUpload(
    uploadId: string,
    now: number,
  ): Promise<{ readonly slot: UploadSlot; readonly facts?: UploadFacts } | undefined>;
  /**
   * Inserts facts conditionally. The first facts of a slot win. An upload that began before its slot expired
   * may end up to an hour after the slot.
   * @throws DomainError `not_found` when the slot does not exist
   */
  putFacts(facts: UploadFacts): Promise<'stored' | 'already_used'>;
}

/** The idempotency record of a completed issuing. A retry of the same request gets the same result. */
export interface IssuingReplay {
  /** The HMAC or digest of the scope (partner) and the Idempotency-Key, never the key itself. */
  readonly key: string;
  /** The SHA-256 of the complete request in lower-case hex. */
  readonly requestSha256: string;
  readonly proofId: string;
  readonly expiresAt: number;
}

/** A part of a proof's evidence that is small enough for the store. */
export interface EvidenceBody {
  readonly part: EvidencePart;
  /** The content, at most 64 KiB. */
  readonly body: Uint8Array;
}

/** The result of a rule that may change a proof's overlay. */
export interface OverlayStep<Result> {
  readonly result: Result;
  /** The overlay to write. Absent when nothing changes. */
  readonly overlay?: EvidenceOverlay;
  /** The summary that includes the overlay. Without it the former summary stays. */
  readonly summary?: StoredSummary;
}

export interface ProofStore {
  /**
   * Reserves an id. Repeating the same call is harmless.
   * @throws DomainError `conflict` when the id is taken
   */
  reserveProof(proofId: string, partnerId: string, now: number): Promise<void>;
  /**
   * Turns a reserved id into an issued proof. One atomic write stores the proof, its indexes, idempotency
   * record and evidence, so no reader finds a proof without its evidence. `replay_exists`: another request
   * completed under the same key first, and nothing was written. Repeating a call with an unknown outcome
   * returns `issued` again.
   * @throws DomainError `conflict` when the id is not, or no longer, reserved for this partner
   */
  issueProof(
    proof: IssuedProof,
    audit: AuditDraft,
    replay?: IssuingReplay,
    evidence?: readonly EvidenceBody[],
  ): Promise<'issued' | 'replay_exists'>;
  /** Returns the content of a part of an issued proof's evidence, or undefined when the store has none. */
  readEvidence(proofId: string, part: EvidencePart): Promise<Uint8Array | undefined>;
  getProof(proofId: string): Promise<Proof | undefined>;
  /**
   * Lists the partner's issued proofs, newest first (createdAt, then proofId, both descending), strictly
   * after `before` in this order. Bounds are in unix seconds, inclusive.
   */
  listProofs(
    partnerId: string,
    query: {
      readonly issuedAfter?: number;
      readonly issuedBefore?: number;
      readonly before?: { readonly createdAt: number; readonly proofId: string };
      readonly limit: number;
    },
  ): Promise<readonly IssuedProof[]>;
  /** Lists as `listProofs` does, but reads only what a list shows of each proof. */
  listBriefs(...list: Parameters<ProofStore['listProofs']>): Promise<readonly ProofBrief[]>;
  /**
   * Lists the environment's issued proofs that have this digest. The newest is first (proofId, descending), at most
   * `limit`.
   */
  findProofs(kind: DigestKind, sha256: string, limit: number): Promise<readonly IssuedProof[]>;
  /**
   * Lists, for each digest, the environment's issued proofs that have it as a digest of any kind. The newest is
   * first (proofId, descending), at most `limit`. A digest that no proof has is absent.
   * @param further returns digests to look for as well, from what was found
   */
  findByDigests(
    digests: readonly string[],
    limit: number,
    further?: FurtherDigests,
  ): Promise<ReadonlyMap<string, readonly FoundProof[]>>;
  /**
   * Adds digests that the record of an issued proof lacks, with their index entries, as one atomic step. A digest that
   * the record has stays. The step is not audited, because digests follow from what is stored.
   * @returns `proof_gone` when the proof is not, or no longer, issued
   */
  addDigests(proofId: string, digests: AddedDigests): Promise<'added' | 'proof_gone'>;
  /**
   * Writes the tombstone. The same write deletes the record with its overlay, evidence and indexes, and adds
   * the event `proof_erased`. From then on no partner can read reviews of the proof. The rows of the reviews
   * remain until `confirmErasure` deletes them. The first erasure wins, and every later call returns its
   * result. Only an issued proof of this partner can be erased.
   * @param capacity `bypass` writes even when the outbox is full. Use `bypass` for an erasure that was
   * promised earlier: the start fails if that erasure fails.
   */
  eraseProof(
    proofId: string,
    partnerId: string,
    at: number,
    audit: AuditDraft,
    capacity?: 'bypass',
  ): Promise<{ readonly outcome: 'erased' | 'already_erased'; readonly proof: ErasedProof } | 'not_found'>;
  /**
   * Finishes an erasure, for the consumer of erasures. Deletes the remaining evidence and reviews with their
   * reminders, in steps that let other calls run between them. Then writes `confirmedAt`, and later calls
   * keep the first time. After a crash the next call continues. `not_erased`: there was no tombstone, and
   * nothing was changed.
   */
  confirmErasure(proofId: string, at: number): Promise<'confirmed' | 'already_confirmed' | 'not_erased'>;
  /**
   * Reads a proof, applies the rule and writes the overlay, as one atomic step. Only a step with an overlay
   * is written and audited. The revision of the overlay follows the previous overlay's revision. Every read
   * of a proof includes its overlay, and an erasure deletes both.
   * @param change the rule, a pure function that may run again
   * @returns the rule's result, or `proof_gone` when the proof is not, or no longer, issued
   */
  changeOverlay<Result>(
    proofId: string,
    change: (proof: IssuedProof) => OverlayStep<Result>,
    audit: AuditDraft,
  ): Promise<Result | 'proof_gone'>;
  /**
   * Reads a proof, applies the rule and writes the summary, as one atomic step. The step is not audited,
   * because a summary follows from what is stored.
   * @param settle the rule, a pure function that may run again. It returns undefined to write nothing
   * @returns `proof_gone` when the proof is not, or no longer, issued
   */
  changeSummary(
    proofId: string,
    settle: (proof: IssuedProof) => { readonly summary: StoredSummary } | undefined,
  ): Promise<'settled' | 'proof_gone'>;
  getIssuingReplay(key: string, now: number): Promise<IssuingReplay | undefined>;
  /**
   * Releases ids that were reserved before `before` (unix seconds). First blocks issuing under an id, then
   * calls `remove`, and only then deletes the id. An id whose removal fails, or was interrupted by a crash,
   * is tried again by a later call.
   * @param remove deletes the files and the key of an id. Returns false when that failed, so that the other
   * ids are still processed.
   */
  collectReservations(before: number, remove: (proofId: string) => Promise<boolean>): Promise<void>;
}

export interface UsageCharge {
  readonly partnerId: string;
  readonly operation: BilledOperation;
  /**
   * The key of a unit that is billed only once. For verify it identifies the upload and the sidecar's digest.
   */
  readonly dedupeKey: string;
  /** The time of the call, in unix seconds. The UTC month and day of this time are the windows. */
  readonly at: number;
  readonly monthlyQuota: number;
  /** The units of the call. All of them are charged, or none. The default is 1. */
  readonly units?: number;
  /** The time, in unix seconds, until which a call with the same dedupeKey is not charged again. */
  readonly dedupeUntil: number;
  /**
   * The SHA-256 of the complete request in lower-case hex, if the dedupeKey comes from an Idempotency-Key. The charge
   * binds the key to this request.
   */
  readonly request?: string;
}

/** The outcome of a charge whose dedupeKey was charged earlier. `key_reused`: for another request. */
export type EarlierCharge = 'already_charged' | 'key_reused';

export interface UsageStore {
  /**
   * Counts the units of a call, once for each dedupeKey of a partner and never beyond the quota. The same write adds
   * the event of the units (see `unitsCounted`). Several charges may share an event. The dedupeKey is checked before
   * the quota, so a repeated call is `already_charged` even in an exhausted month.
   * @returns the outcome, and the partner's count in the month of `at` after the call
   */
  charge(
    charge: UsageCharge,
  ): Promise<{ readonly outcome: 'charged' | EarlierCharge | 'quota_exceeded'; readonly used: number }>;
  /**
   * Returns the outcome that `charge` would have because of an earlier charge, or undefined without one. Charges
   * nothing. Without a request, every earlier charge is `already_charged`.
   */
  findCharge(
    charge: Pick<UsageCharge, 'partnerId' | 'dedupeKey' | 'at' | 'request'>,
  ): Promise<EarlierCharge | undefined>;
  getUsed(partnerId: string, at: number): Promise<number>;
  /**
   * Adds free (unbilled) calls to the usage counts. Each process is its own event source. A batch that is
   * lost in a crash affects no bill. After a failed call the caller must repeat the same batch before any
   * later batch. The batch is then counted once, even if the failed call took effect.
   * @param number the number of the batch in this process, from 1, higher with each batch
   * @throws DomainError `internal` / `record_damaged` when rows of some partners are damaged. The calls of all other
   * partners are counted, and a repetition would count no more.
   */
  meter(
    counts: readonly { readonly partnerId: string; readonly operation: string; readonly count: number }[],
    at: number,
    number: number,
  ): Promise<void>;
  /**
   * Adds events to the daily totals, for the consumer of usage. One conditional write changes an event's
   * interval and the totals. So events may arrive in any order, repeatedly, and at several consumers at once.
   */
  aggregateUsage(events: readonly UsageEvent[]): Promise<void>;
  /**
   * Returns the units by UTC day (`YYYY-MM-DD`) and operation for the requested days, ascending. Days without
   * use are absent. The units include charges that have not reached a consumer yet.
   */
  getDailyUsage(
    partnerId: string,
    fromDay: string,
    toDay: string,
  ): Promise<readonly { readonly day: string; readonly operations: Readonly<Record<string, number>> }[]>;
}

export type ReviewCreation =
  | { readonly outcome: 'created' }
  /**
   * The review already existed before the call. Under an Idempotency-Key it is the review of the key's first
   * call, with another id and time of creation.
   */
  | { readonly outcome: 'kept'; readonly reviewId: string; readonly createdAt: number }
  /** The Idempotency-Key belongs to a review with other data. */
  | { readonly outcome: 'key_reused' }
  /** The partner has an unresolved review for the same proof and bindings. */
  | { readonly outcome: 'exists'; readonly reviewId: string }
  /**
   * The partner has reached its limit of reviews. The oldest review that counts against the limit ends at
   * `until`, in unix seconds.
   */
  | { readonly outcome: 'full'; readonly until: number }
  /** The proof is not issued, or not any more. */
  | { readonly outcome: 'proof_gone' };

/** The Idempotency-Key of a call that creates a review. */
export interface ReviewReplay {
  /** The digest of the scope (partner) and the Idempotency-Key, never the key itself. */
  readonly key: string;
  /** The SHA-256 of the complete request in lower-case hex. */
  readonly requestSha256: string;
  /** The end of the replay in unix seconds. */
  readonly expiresAt: number;
}

/** What `createReview` may be given beside the review. */
export interface ReviewCreationOptions {
  /** The bounds of the number of reviews. The default is `REVIEW_BOUNDS`. */
  readonly bounds?: ReviewBounds;
  readonly replay?: ReviewReplay;
}

/** The position of a review in lists. */
export type ReviewPlace = Pick<ReviewCase, 'createdAt' | 'reviewId'>;

/**
 * Stores reviews. Every call sees only reviews of the calling partner. No call sees a review from the
 * review's `expiresAt` on, or a review of an erased proof.
 */
export interface ReviewStore {
  /**
   * Creates a review and, in the same write, its event `review_created` and the record of its
   * Idempotency-Key. A call that creates nothing writes nothing. Repeating the call for an existing review
   * changes nothing. A record ends with its review, or at its `expiresAt`.
   * @param now the time in unix seconds. A review or record that has ended by then has no effect.
   * @param options the bounds are checked before the write, so simultaneous calls of several processes may
   * exceed them slightly
   */
  createReview(
    review: ReviewCase,
    now: number,
    audit: AuditDraft,
    options?: ReviewCreationOptions,
  ): Promise<ReviewCreation>;
  /**
   * Lists a page of the partner's reviews, newest first (createdAt, then reviewId, both descending), strictly
   * after `before` in this order. Reads at most `limit` entries, and omits reviews that no longer exist.
   * @returns the reviews and the position of the last entry, which is absent when no other entry follows
   */
  listReviews(
    partnerId: string,
    query: { readonly limit: number; readonly before?: ReviewPlace; readonly proofId?: string },
    now: number,
  ): Promise<{ readonly reviews: readonly ReviewCase[]; readonly last?: ReviewPlace }>;
  getReview(partnerId: string, reviewId: string, now: number): Promise<ReviewCase | undefined>;
  /**
   * Reads a review, applies the rule and writes the review, as one atomic step. A review that did not change
   * is neither written nor audited.
   * @param change the rule, a pure function that may run again
   * @returns the rule's result, or undefined when the review, or the request in it, does not exist
   */
  changeReview(
    partnerId: string,
    reviewId: string,
    now: number,
    change: (review: ReviewCase) => ReviewChange | undefined,
    audit: AuditDraft,
  ): Promise<ReviewChange | undefined>;
  /** Returns the partner of a review, for the operator's calls, which have no partner. */
  findReviewPartner(reviewId: string, now: number): Promise<string | undefined>;
}

/** An event that waits to be published. */
export interface WaitingEvent {
  readonly event: ServiceEvent;
  /** The key of the event in the store, without a meaning outside the store. */
  readonly rowKey: string;
}

/**
 * The outbox of events. An event is written together with the state that it reports: erasures, charges, free
 * counts and new reviews. The event stays until it is marked as published, even after a crash. Each topic has
 * its own limit, so that charges cannot block an erasure. At the limit a call that would add an event of the
 * topic throws DomainError `unavailable` / `outbox_full` before it changes anything. A store that several
 * processes share still accepts charges at the limit. Their events are stored without counting as waiting,
 * and the usage includes their units.
 */
export interface OutboxStore {
  /**
   * Returns the first waiting events, oldest first. Returns the same events until they are marked. Events of
   * one key keep the order in which they happened.
   * @param isHeldBack returns true for events to skip. Later events are returned instead.
   */
  waitingEvents(
    limit: number,
    isHeldBack?: (event: ServiceEvent) => boolean,
  ): Promise<readonly WaitingEvent[]>;
  /**
   * Marks events as published. Called after the delivery report. If a crash loses the mark of an event, the
   * event is published twice, with the same id.
   */
  markPublished(events: readonly WaitingEvent[]): Promise<void>;
  /** Returns how many waiting events this process knows of, for one topic or for all. */
  countWaiting(topic?: Topic): number;
  /** Sets the only listener, which is called for every new waiting event. */
  onWaiting(listener: () => void): void;
}

/** Stores reminders of reviews, in the order of time (rule 15.3). */
export interface RetentionStore {
  /** Writes reminders. Repeating the call is harmless. */
  scheduleReminders(reminders: readonly ReviewReminder[], now: number): Promise<void>;
  /** Lists reminders with `dueAt <= now`, at most `limit`, oldest first. */
  dueReminders(now: number, limit: number): Promise<readonly ReviewReminder[]>;
  /** Deletes a reminder, and adds `event` to the outbox if given. Repeating the call is harmless. */
  completeReminder(reminder: ReviewReminder, event: ServiceEvent | undefined): Promise<void>;
}

export interface AuditStore {
  /** Lists entries from `fromSequence` on, oldest first, at most `limit`. */
  readAudit(partnerId: string, fromSequence: number, limit: number): Promise<readonly AuditEntry[]>;
  /**
   * Appends an entry about something that only the log records. The call is not idempotent: a call with an
   * unknown outcome may have appended the entry.
   */
  appendAudit(draft: AuditDraft): Promise<void>;
}

export interface Stores
  extends PartnerStore,
    KeyStore,
    UploadStore,
    ProofStore,
    UsageStore,
    ReviewStore,
    OutboxStore,
    RetentionStore,
    AuditStore {
  /**
   * Deletes expired rows (slots, facts, replays, dedupe keys, reviews of erased proofs). In a store whose
   * rows expire on their own, it completes the unfinished work of crashed processes.
   * @returns how many rows were deleted, at most `limit`. Fewer than `limit` means that none are left.
   */
  collectExpired(now: number, limit: number): Promise<number>;
  /** Resolves when a read and a durable write succeed. */
  ping(): Promise<void>;
  close(): Promise<void>;
}
