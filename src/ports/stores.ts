import type { AuditDraft, AuditEntry } from '../domain/audit.js';
import type { ReviewReminder, ServiceEvent, Topic, UsageEvent } from '../domain/events.js';
import type { EvidenceOverlay, EvidencePart } from '../domain/evidence.js';
import type { Partner, PartnerKey, SourceDetailApproval } from '../domain/partner.js';
import type { ErasedProof, IssuedProof, Proof } from '../domain/proof.js';
import type { ReviewBounds, ReviewCase, ReviewChange } from '../domain/review.js';
import type { UploadFacts, UploadSlot } from '../domain/upload.js';
import type { BilledOperation } from '../domain/usage-window.js';

/**
 * Stores of all that the rules need kept. Every write is durable when its promise resolves. A store that
 * cannot answer throws DomainError `unavailable` / `store_unavailable`: a failure of the world never becomes
 * a value. All expiry is by the caller's clock: `now` is unix seconds, and a row whose `expiresAt <= now` is
 * not there.
 */

export interface PartnerStore {
  /**
   * Creates a partner. Repeating the same call is harmless.
   * @throws DomainError `conflict` where another partner has this id
   */
  createPartner(partner: Partner, audit: AuditDraft): Promise<void>;
  getPartner(partnerId: string): Promise<Partner | undefined>;
  listPartners(): Promise<readonly Partner[]>;
  /**
   * Sets a partner's approval for source detail; undefined takes it back. An approval of the same version stays
   * as it is, and what did not change is not audited.
   */
  setSourceDetail(
    partnerId: string,
    approval: SourceDetailApproval | undefined,
    audit: AuditDraft,
  ): Promise<'changed' | 'unchanged' | 'not_found'>;
}

/**
 * Material of a successor's secret beside what its caller sends. Without this material nobody can derive the
 * secret again.
 */
export interface RotationReplay {
  /** Random bytes, 32 of them as hex. */
  readonly nonce: string;
  /** Id of the service's own secret (purpose `rotation`). */
  readonly secretId: string;
}

/** A completed rotation. The new secret is derived anew for each replay and never stored. */
export interface Rotation {
  /** The key that was rotated. */
  readonly keyId: string;
  readonly partnerId: string;
  /** The successor. */
  readonly newKeyId: string;
  readonly rotatedAt: number;
  /** Unix seconds from which the key that was rotated does not work any more. */
  readonly previousKeyExpiresAt: number;
  /** Unix seconds from which nothing is replayed any more. */
  readonly replayUntil: number;
  /** Material of the new secret; removed from the store once `replayUntil` has come. */
  readonly replay?: RotationReplay;
}

/** Use of a key, kept beside the key's row: the row is written under conditions, a use is not. */
export interface KeyUse {
  readonly partnerId: string;
  readonly keyId: string;
  /** Unix seconds. */
  readonly at: number;
}

export interface KeyStore {
  /**
   * Creates a key. Repeating the same call is harmless. The audit entry is appended in the same write, here
   * and below.
   * @throws DomainError `conflict` where another key has this id
   */
  createKey(key: PartnerKey, audit: AuditDraft): Promise<void>;
  /** The key, by one read: every authenticated request asks for it. */
  getKey(keyId: string): Promise<PartnerKey | undefined>;
  /** A partner's keys, oldest first: at most `limit` behind `after`, or all without a page. */
  listKeys(
    partnerId: string,
    page?: {
      readonly after?: { readonly createdAt: number; readonly keyId: string };
      readonly limit: number;
    },
  ): Promise<readonly PartnerKey[]>;
  /** Revokes a key; the first revocation wins. `not_found` is said of another partner's key as well. */
  revokeKey(
    partnerId: string,
    keyId: string,
    at: number,
    audit: AuditDraft,
  ): Promise<'revoked' | 'already_revoked' | 'not_found'>;
  getRotation(keyId: string): Promise<Rotation | undefined>;
  /**
   * Gives a key its one successor, in one atomic write: the successor's row, the old key's `expiresAt`, the
   * rotation, the audit entry.
   * @returns the rotation that holds, which is this one or one that came first; undefined where the old key
   * is not there or has been revoked, so that a revocation is never outrun by a successor
   */
  rotateKey(rotation: Rotation, successor: PartnerKey, audit: AuditDraft): Promise<Rotation | undefined>;
  /**
   * Notes when keys were last used, in batches; the latest time wins. A crash loses at most one batch.
   */
  touchKeys(uses: readonly KeyUse[]): Promise<void>;
  /** Last uses of a partner's keys, by key id; a key that was never used is absent. */
  getKeyUses(partnerId: string, keyIds: readonly string[]): Promise<ReadonlyMap<string, number>>;
}

export interface UploadStore {
  createSlot(slot: UploadSlot): Promise<void>;
  /** The slot while it lives, and with its facts until these expire. */
  getUpload(
    uploadId: string,
    now: number,
  ): Promise<{ readonly slot: UploadSlot; readonly facts?: UploadFacts } | undefined>;
  /**
   * Inserts facts under a condition: the first facts of a slot win. A post that began while its slot lived
   * may end up to an hour after the slot.
   * @throws DomainError `not_found` where there is no such slot
   */
  putFacts(facts: UploadFacts): Promise<'stored' | 'already_used'>;
}

/** Idempotency record of a completed issuing: a retry of the same request gets the same result. */
export interface IssuingReplay {
  /** HMAC or digest of the scope (partner) and Idempotency-Key; never the key itself. */
  readonly key: string;
  /** SHA-256 of the complete request, lower-case hex. */
  readonly requestSha256: string;
  readonly proofId: string;
  readonly expiresAt: number;
}

/** Part of a proof's evidence that is small enough for the store. */
export interface EvidenceBody {
  readonly part: EvidencePart;
  /** At most 64 KiB. */
  readonly body: Uint8Array;
}

/** Result of a rule about a proof's overlay. */
export interface OverlayStep<Result> {
  readonly result: Result;
  /** Overlay to be written; absent where nothing changes. */
  readonly overlay?: EvidenceOverlay;
}

export interface ProofStore {
  /** Reserves an id. Repeating the same call is harmless. @throws DomainError `conflict` where it is taken */
  reserveProof(proofId: string, partnerId: string, now: number): Promise<void>;
  /**
   * Turns a reserved id into an issued proof, with its indexes, idempotency record and evidence, in one atomic
   * write: whoever finds the proof finds its evidence. `replay_exists`: another request completed under the
   * same key first, and nothing was written. Repeating a call whose outcome is not known gives `issued` again.
   * @throws DomainError `conflict` where the id is not reserved for this partner (any more)
   */
  issueProof(
    proof: IssuedProof,
    audit: AuditDraft,
    replay?: IssuingReplay,
    evidence?: readonly EvidenceBody[],
  ): Promise<'issued' | 'replay_exists'>;
  /** Body of a part of an issued proof's evidence; undefined where the store has none. */
  readEvidence(proofId: string, part: EvidencePart): Promise<Uint8Array | undefined>;
  getProof(proofId: string): Promise<Proof | undefined>;
  /**
   * The partner's issued proofs, newest first (createdAt, then proofId, both descending), strictly behind
   * `before`. Bounds in unix seconds, inclusive.
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
  /**
   * Issued proofs of the environment whose bound or original audio has this digest, newest first (proofId,
   * descending), at most `limit`.
   */
  findProofs(kind: 'bound' | 'original', sha256: string, limit: number): Promise<readonly IssuedProof[]>;
  /**
   * Writes the tombstone. The same write removes the record with its overlay, evidence and indexes, and adds the
   * event `proof_erased`. From then on the reviews of all partners on the proof are not there any more; their
   * rows, however many, stay for `confirmErasure`. The first erasure wins and is the result of every later
   * one. Only an issued proof of this partner can be erased.
   * @param capacity `bypass`: even where the outbox is full. For an erasure that was promised before: a start
   * that could not keep the promise would fail
   */
  eraseProof(
    proofId: string,
    partnerId: string,
    at: number,
    audit: AuditDraft,
    capacity?: 'bypass',
  ): Promise<{ readonly outcome: 'erased' | 'already_erased'; readonly proof: ErasedProof } | 'not_found'>;
  /**
   * Finishes an erasure, for the consumer of erasures: removes evidence and reviews that are left beside the
   * tombstone, with their reminders, in steps between which other calls have their turn. Then `confirmedAt`
   * is written; the first time stays. After a crash the next call goes on. `not_erased`: there is no
   * tombstone, and nothing was touched.
   */
  confirmErasure(proofId: string, at: number): Promise<'confirmed' | 'already_confirmed' | 'not_erased'>;
  /**
   * Reads, applies the rule and writes, as one atomic step. Only a step with an overlay is written and audited;
   * its revision follows that of the overlay before it. An overlay is part of the proof wherever the proof is
   * read, and goes with its erasure.
   * @param change the rule, a pure function that may run again
   * @returns the rule's result; `proof_gone`: the proof is not issued, or not any more
   */
  changeOverlay<Result>(
    proofId: string,
    change: (proof: IssuedProof) => OverlayStep<Result>,
    audit: AuditDraft,
  ): Promise<Result | 'proof_gone'>;
  getIssuingReplay(key: string, now: number): Promise<IssuingReplay | undefined>;
  /**
   * Takes back ids that were reserved before `before` (unix seconds): first nothing can be issued under an id any
   * more, then `remove` is called, and only then is the id forgotten. One whose removal fails, or was cut short by
   * a kill, comes again with a later call.
   * @param remove removes the files and the key of an id; false where that failed, so that the others have their turn
   */
  collectReservations(before: number, remove: (proofId: string) => Promise<boolean>): Promise<void>;
}

export interface UsageCharge {
  readonly partnerId: string;
  readonly operation: BilledOperation;
  /** Key of what is billed once: for verify, the upload and the sidecar's digest. */
  readonly dedupeKey: string;
  /** Unix seconds of the call; its UTC month and day are the windows. */
  readonly at: number;
  readonly monthlyQuota: number;
  /** Unix seconds until which the same dedupeKey may come again. */
  readonly dedupeUntil: number;
}

export interface UsageStore {
  /**
   * Counts one unit, once for each dedupeKey of a partner, never beyond the quota. The unit's event is
   * written together with it (see `unitsCounted`; charges may share an event). The dedupeKey is looked at
   * before the quota: a repeated call is `already_charged` in a month that is full, too.
   * @returns the outcome, and the partner's count in the month of `at` after the call
   */
  charge(
    charge: UsageCharge,
  ): Promise<{ readonly outcome: 'charged' | 'already_charged' | 'quota_exceeded'; readonly used: number }>;
  getUsed(partnerId: string, at: number): Promise<number>;
  /**
   * Counts calls that are metered but free, as events of a source of this process alone. Counts come in
   * batches; a batch that a crash loses costs nobody anything. One whose call failed comes again as it was, before
   * any later one: it is counted once, whatever became of the call that failed.
   * @param number number of the batch in this process, from 1; higher with each batch
   */
  meter(
    counts: readonly { readonly partnerId: string; readonly operation: string; readonly count: number }[],
    at: number,
    number: number,
  ): Promise<void>;
  /**
   * Adds events to the days' totals, for the consumer of usage. An event's interval and the totals change in
   * one conditional write, so events may come in any order, any number of times, and to several consumers at
   * once.
   */
  aggregateUsage(events: readonly UsageEvent[]): Promise<void>;
  /**
   * Units by UTC day (`YYYY-MM-DD`) and operation, for the days asked for, ascending; days without use are
   * absent. The units include charges that are still on their way to a consumer.
   */
  getDailyUsage(
    partnerId: string,
    fromDay: string,
    toDay: string,
  ): Promise<readonly { readonly day: string; readonly operations: Readonly<Record<string, number>> }[]>;
}

export type ReviewCreation =
  | { readonly outcome: 'created' }
  /** The review was there before the call. */
  | { readonly outcome: 'kept' }
  /** The partner has an unresolved review for the same proof and bindings. */
  | { readonly outcome: 'exists'; readonly reviewId: string }
  /**
   * The partner has as many reviews as it may. The oldest that counts for the bound ends at `until`, in unix
   * seconds.
   */
  | { readonly outcome: 'full'; readonly until: number }
  /** The proof is not issued, or not any more. */
  | { readonly outcome: 'proof_gone' };

/** Use of an Idempotency-Key for the creation of a review. */
export interface ReviewReplay {
  /** Digest of the scope (partner) and Idempotency-Key; never the key itself. */
  readonly key: string;
  /** SHA-256 of the complete request, lower-case hex. */
  readonly requestSha256: string;
  readonly proofId: string;
  /** Id that the review gets, whichever call creates it. */
  readonly reviewId: string;
  /** Unix seconds. */
  readonly expiresAt: number;
}

/** Place of a review in lists. */
export type ReviewPlace = Pick<ReviewCase, 'createdAt' | 'reviewId'>;

/**
 * Reviews. Every call sees only reviews of the calling partner, none from its `expiresAt` on, and none of an
 * erased proof.
 */
export interface ReviewStore {
  /**
   * Creates a review, and its event `review_created` in the same write. Again for a review that is there it
   * changes nothing.
   * @param now in unix seconds: what has ended by then keeps no place and counts for no bound. `createdAt` may be up
   * to a day earlier, as an Idempotency-Key has it
   * @param bounds `REVIEW_BOUNDS` by default; looked at before the write, so that simultaneous calls of
   * several processes may pass them by a little
   */
  createReview(
    review: ReviewCase,
    now: number,
    audit: AuditDraft,
    bounds?: ReviewBounds,
  ): Promise<ReviewCreation>;
  /**
   * Takes an Idempotency-Key, before the review is created: all calls under it create the one review.
   * @returns the record that stands: an earlier one, until its `expiresAt`, or this one. `proofId` is that of the
   * review where the data are the same
   */
  takeReviewKey(record: ReviewReplay, now: number): Promise<ReviewReplay>;
  /**
   * A stretch of the partner's reviews, newest first (createdAt, then reviewId, both descending), strictly behind
   * `before`. At most `limit` entries are looked at; those that are not there any more are left out.
   * @returns with the reviews the place of the last entry; absent where no other one follows
   */
  listReviews(
    partnerId: string,
    query: { readonly limit: number; readonly before?: ReviewPlace; readonly proofId?: string },
    now: number,
  ): Promise<{ readonly reviews: readonly ReviewCase[]; readonly last?: ReviewPlace }>;
  getReview(partnerId: string, reviewId: string, now: number): Promise<ReviewCase | undefined>;
  /**
   * Reads, applies the rule and writes, as one atomic step. A review that did not change is not written and
   * not audited.
   * @param change the rule, a pure function that may run again
   * @returns the rule's result; undefined where there is no such review, or no such request in it
   */
  changeReview(
    partnerId: string,
    reviewId: string,
    now: number,
    change: (review: ReviewCase) => ReviewChange | undefined,
    audit: AuditDraft,
  ): Promise<ReviewChange | undefined>;
  /** The partner of a review, for the operator's side, which knows no partner. */
  findReviewPartner(reviewId: string, now: number): Promise<string | undefined>;
}

/** An event that waits to be published. */
export interface WaitingEvent {
  readonly event: ServiceEvent;
  /** Key of the event in the store, without meaning outside of it. */
  readonly rowKey: string;
}

/**
 * Outbox of events, which are written together with the state that they report: erasures, charges, free
 * counts, new reviews. An event waits here until it is marked as published, whatever dies meanwhile. Each
 * topic has a bound of its own, so that no charges refuse an erasure. At the bound a call that would add an
 * event of the topic throws DomainError `unavailable` / `outbox_full` before it changes anything. A store of
 * several processes charges on: the event lies there without waiting here, and its units are in the usage.
 */
export interface OutboxStore {
  /**
   * The first waiting events, oldest first, the same ones until they are marked. Events of one key come in
   * the order in which they happened.
   * @param isHeldBack tells which events are passed over, and those behind them come instead
   */
  waitingEvents(
    limit: number,
    isHeldBack?: (event: ServiceEvent) => boolean,
  ): Promise<readonly WaitingEvent[]>;
  /**
   * Marks events as published; called after the delivery report. An event whose mark a crash loses is
   * published twice, under the same id.
   */
  markPublished(events: readonly WaitingEvent[]): Promise<void>;
  /** Count of the waiting events that this process knows of: of a topic, or of all. */
  countWaiting(topic?: Topic): number;
  /** Sets the one listener, which is called whenever a new event waits. */
  onWaiting(listener: () => void): void;
}

/** Reminders of reviews, in the order of time (rule 15.3). */
export interface RetentionStore {
  /** Writes reminders. Repeating the call is harmless. */
  scheduleReminders(reminders: readonly ReviewReminder[], now: number): Promise<void>;
  /** Reminders with `dueAt <= now`, at most `limit`, oldest first. */
  dueReminders(now: number, limit: number): Promise<readonly ReviewReminder[]>;
  /** Removes a reminder, and has `event` published where there is one. Repeating the call is harmless. */
  completeReminder(reminder: ReviewReminder, event: ServiceEvent | undefined): Promise<void>;
}

export interface AuditStore {
  /** Entries from `fromSequence` on, oldest first, at most `limit`. */
  readAudit(partnerId: string, fromSequence: number, limit: number): Promise<readonly AuditEntry[]>;
  /**
   * Appends an entry about something of which only the log tells. Not idempotent: a call whose outcome is not
   * known may have appended.
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
   * Removes rows whose time has passed (slots, facts, replays, dedupe keys, reviews of erased proofs). In a
   * store whose rows expire by themselves it finishes what crashed processes left.
   * @returns how many were removed, at most `limit`; fewer means that none are left
   */
  collectExpired(now: number, limit: number): Promise<number>;
  /** Resolves when a read and a durable write succeed. */
  ping(): Promise<void>;
  close(): Promise<void>;
}
