import type { AuditDraft, AuditEntry } from '../domain/audit.js';
import type { BilledOperation } from '../domain/billing.js';
import type { DeclarationStep, StoredDeclaration } from '../domain/declaration.js';
import type { ReviewReminder, ServiceEvent, UsageEvent } from '../domain/events.js';
import type { Partner, PartnerKey } from '../domain/partner.js';
import type { ErasedProof, IssuedProof, Proof } from '../domain/proof.js';
import type { ReviewBounds, ReviewCase, ReviewChange } from '../domain/review.js';
import type { UploadFacts, UploadSlot } from '../domain/upload.js';

/**
 * What the rules need kept. Every write is durable when its promise resolves. A store that cannot answer
 * throws DomainError `unavailable` / `store_unavailable`: a failure of the world never becomes a value. All
 * expiry is by the caller's clock: `now` is unix seconds, a row whose `expiresAt <= now` is not there.
 */

export interface PartnerStore {
  /**
   * @throws DomainError `conflict` where another partner has this id; repeating the same call is harmless,
   * here and in `createKey`.
   */
  createPartner(partner: Partner, audit: AuditDraft): Promise<void>;
  getPartner(partnerId: string): Promise<Partner | undefined>;
  listPartners(): Promise<readonly Partner[]>;
}

/**
 * What goes into a successor's secret beside what its caller sends. Without it nobody can derive that secret
 * again.
 */
export interface RotationReplay {
  /** 32 random bytes as hex. */
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
  /** When the calling key stops working. */
  readonly previousKeyExpiresAt: number;
  /** Unix seconds; from then on nothing is replayed. */
  readonly replayUntil: number;
  /** Removed from the store once `replayUntil` has come: a swept row, or one that lives no longer. */
  readonly replay?: RotationReplay;
}

/** Kept beside the key's row and not in it: the row is written under conditions, this is not. */
export interface KeyUse {
  readonly partnerId: string;
  readonly keyId: string;
  /** Unix seconds. */
  readonly at: number;
}

export interface KeyStore {
  /** `audit` is appended to the partner's log in the same write, here and below. */
  createKey(key: PartnerKey, audit: AuditDraft): Promise<void>;
  /** Hot path: one read. */
  getKey(keyId: string): Promise<PartnerKey | undefined>;
  /** Oldest first, at most `limit` after the position; all without one. */
  listKeys(
    partnerId: string,
    page?: {
      readonly after?: { readonly createdAt: number; readonly keyId: string };
      readonly limit: number;
    },
  ): Promise<readonly PartnerKey[]>;
  /** The first revocation wins; `not_found` for another partner's key as well. */
  revokeKey(
    partnerId: string,
    keyId: string,
    at: number,
    audit: AuditDraft,
  ): Promise<'revoked' | 'already_revoked' | 'not_found'>;
  getRotation(keyId: string): Promise<Rotation | undefined>;
  /**
   * One successor for a key, in one atomic write: the successor's row, the old key's `expiresAt`, the
   * rotation, the audit entry.
   * @returns the rotation that holds: this one, or the one that came first; undefined where the old key is
   * not there or has been revoked, so that a revocation is never outrun by a successor
   */
  rotateKey(rotation: Rotation, successor: PartnerKey, audit: AuditDraft): Promise<Rotation | undefined>;
  /**
   * Notes when keys were last used: in batches, the latest time wins. What a crash loses of it is at most a
   * batch.
   */
  touchKeys(uses: readonly KeyUse[]): Promise<void>;
  /** Last uses of these keys of a partner; a key that was never used is absent. */
  getKeyUses(partnerId: string, keyIds: readonly string[]): Promise<ReadonlyMap<string, number>>;
}

export interface UploadStore {
  createSlot(slot: UploadSlot): Promise<void>;
  /** The slot while it lives, or until its facts expire. */
  getUpload(
    uploadId: string,
    now: number,
  ): Promise<{ readonly slot: UploadSlot; readonly facts?: UploadFacts } | undefined>;
  /**
   * Conditional insert: the first facts of a slot win. A post that began while its slot lived may end up to
   * an hour after it.
   * @throws DomainError `not_found` where there is no such slot
   */
  putFacts(facts: UploadFacts): Promise<'stored' | 'already_used'>;
}

/** The answer of a completed issuing, bound to its request, kept so that a retry gets the same one. */
export interface IssuingReplay {
  /** HMAC or digest of the scope (partner) and Idempotency-Key; never the key itself. */
  readonly key: string;
  /** SHA-256 of the complete request, lower-case hex. */
  readonly requestSha256: string;
  readonly proofId: string;
  readonly expiresAt: number;
}

export interface ProofStore {
  /** Reserves an id. @throws DomainError `conflict` where it is taken; repeating the same call is harmless */
  reserveProof(proofId: string, partnerId: string, now: number): Promise<void>;
  /**
   * Turns a reserved id into an issued proof, with its indexes and replay record, in one atomic write.
   * `replay_exists`: another request completed under the same key first; nothing was written. Repeating a
   * call whose outcome is not known gives `issued` again.
   * @throws DomainError `conflict` where the id is not reserved for this partner (any more)
   */
  issueProof(
    proof: IssuedProof,
    audit: AuditDraft,
    replay?: IssuingReplay,
  ): Promise<'issued' | 'replay_exists'>;
  getProof(proofId: string): Promise<Proof | undefined>;
  /**
   * The partner's issued proofs, newest first (createdAt, then proofId, both descending), strictly before the
   * position. Bounds in unix seconds, inclusive.
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
   * Writes the tombstone, and in the same write removes the record with its declarations and its indexes; the
   * event `proof_erased` is written with it. The review cases of all partners on the proof are not there any
   * more from then on; however many they are, their rows stay for `confirmErasure`. The first erasure wins
   * and is the answer of every later one. Only an issued proof of this partner can be erased.
   * @param capacity `bypass`: even where the outbox is full. For an erasure that was promised before: a start that
   * could not keep the promise would fail
   */
  eraseProof(
    proofId: string,
    partnerId: string,
    at: number,
    audit: AuditDraft,
    capacity?: 'bypass',
  ): Promise<{ readonly outcome: 'erased' | 'already_erased'; readonly proof: ErasedProof } | 'not_found'>;
  /**
   * For the consumer of erasures: removes the cases that a tombstone still has beside it, with what is to be
   * announced of them, in steps between which others have their turn, and then writes `confirmedAt`; the
   * first time stays. What a crash cuts short goes on with the next call. `not_erased`: there is no
   * tombstone, nothing was touched.
   */
  confirmErasure(proofId: string, at: number): Promise<'confirmed' | 'already_confirmed' | 'not_erased'>;
  /**
   * Reads, applies `addDeclaration`, writes, as one atomic step; only what was `recorded` is written and
   * audited. `proof_gone`: the proof is not issued (any more). What was recorded is part of the proof
   * wherever it is read, and goes with its erasure.
   */
  recordDeclaration(
    proofId: string,
    declaration: StoredDeclaration,
    audit: AuditDraft,
  ): Promise<DeclarationStep | { readonly outcome: 'proof_gone' }>;
  getIssuingReplay(key: string, now: number): Promise<IssuingReplay | undefined>;
  /**
   * Ids reserved before `before` (unix seconds): an issuing that was killed. Removes them and returns their
   * ids, so that staged assets can be swept.
   */
  collectReservations(before: number): Promise<readonly string[]>;
}

export interface UsageCharge {
  readonly partnerId: string;
  readonly operation: BilledOperation;
  /** What is billed once: for verify, the upload and the sidecar's digest. */
  readonly dedupeKey: string;
  /** Unix seconds of the call; its UTC month and day are the windows. */
  readonly at: number;
  readonly monthlyQuota: number;
  /** Unix seconds until which the same dedupeKey may come again. */
  readonly dedupeUntil: number;
}

export interface UsageStore {
  /**
   * Counts one unit, once for each dedupeKey of a partner, never beyond the quota, durable when it resolves;
   * the event of it is written together with it (see `unitsCounted`; charges may share one). `used` is the
   * partner's count in the month of `at` after the call. Quota is looked at after dedupeKey: a repeated call
   * is `already_charged` in a month that is full, too.
   */
  charge(
    charge: UsageCharge,
  ): Promise<{ readonly outcome: 'charged' | 'already_charged' | 'quota_exceeded'; readonly used: number }>;
  getUsed(partnerId: string, at: number): Promise<number>;
  /**
   * Counts calls that are metered but free, as events of a source of this process alone. They come in
   * batches; what a crash loses of them costs nobody anything.
   */
  meter(
    counts: readonly { readonly partnerId: string; readonly operation: string; readonly count: number }[],
    at: number,
  ): Promise<void>;
  /**
   * For the consumer of usage: adds what has not been added yet to the days' totals. An event's span and the
   * totals move in one conditional write, so events may come in any order, any number of times, and to
   * several consumers at once.
   */
  aggregateUsage(events: readonly UsageEvent[]): Promise<void>;
  /**
   * Units per UTC day (`YYYY-MM-DD`) and operation, for the days asked for, ascending; days without use are
   * absent. What was folded, and what was charged and is still on its way to a consumer.
   */
  getDailyUsage(
    partnerId: string,
    fromDay: string,
    toDay: string,
  ): Promise<readonly { readonly day: string; readonly operations: Readonly<Record<string, number>> }[]>;
}

export type ReviewCreation =
  | { readonly outcome: 'created' }
  /** The partner has an unresolved case for the same proof and bindings. */
  | { readonly outcome: 'exists'; readonly reviewId: string }
  /**
   * The partner has as many as it may; the oldest that counts for that bound ends at `until`, in unix
   * seconds.
   */
  | { readonly outcome: 'full'; readonly until: number }
  /** The proof is not issued (any more). */
  | { readonly outcome: 'proof_gone' };

/**
 * All review calls see only the calling partner's cases, none from its `expiresAt` on, and none of an erased
 * proof.
 */
export interface ReviewStore {
  /**
   * Its event, `review_created`, is written with it.
   * @param bounds `REVIEW_BOUNDS` where they are not given; looked at before the write, so that simultaneous
   * calls of several processes may pass them by a little
   */
  createReview(review: ReviewCase, audit: AuditDraft, bounds?: ReviewBounds): Promise<ReviewCreation>;
  getReview(partnerId: string, reviewId: string, now: number): Promise<ReviewCase | undefined>;
  /**
   * Reads, applies the rule, writes, as one atomic step. `change` is a pure function and may run again. An
   * unchanged case is not written and not audited. undefined: there is no such case (or `change` found no
   * such request).
   */
  changeReview(
    partnerId: string,
    reviewId: string,
    now: number,
    change: (review: ReviewCase) => ReviewChange | undefined,
    audit: AuditDraft,
  ): Promise<ReviewChange | undefined>;
  /** For the operator's side, which knows no partner. */
  findReviewPartner(reviewId: string, now: number): Promise<string | undefined>;
}

/** An event that waits to be published. `position` is the store's own. */
export interface WaitingEvent {
  readonly event: ServiceEvent;
  readonly rowKey: string;
}

/**
 * Events are written together with the state they tell of: erasures, charges, free counts, new cases. They
 * wait here until they are marked, whatever dies meanwhile. At its bound a call that would add one throws
 * DomainError `unavailable` / `outbox_full` before it changes anything.
 */
export interface OutboxStore {
  /**
   * Oldest first, the same ones until they are marked; events of one key in the order in which they happened.
   */
  waitingEvents(limit: number): Promise<readonly WaitingEvent[]>;
  /**
   * Called after the delivery report. A mark that a crash loses has the event published twice, under the same
   * id.
   */
  markPublished(events: readonly WaitingEvent[]): Promise<void>;
  /** As far as this process knows. */
  countWaiting(): number;
  /** One listener; called whenever something new waits. */
  onWaiting(listener: () => void): void;
}

/** "On time although TTL expiry itself is silent": what is to be announced later, in the order of time. */
export interface RetentionStore {
  /** Idempotent. */
  scheduleReminders(notices: readonly ReviewReminder[], now: number): Promise<void>;
  /** Those with `dueAt <= now`, at most `limit`, oldest first. */
  dueReminders(now: number, limit: number): Promise<readonly ReviewReminder[]>;
  /** Takes a notice off, and has `event` published where there is one. Repeating it is harmless. */
  completeReminder(notice: ReviewReminder, event: ServiceEvent | undefined): Promise<void>;
}

export interface AuditStore {
  /** Oldest first, at most `limit` from `fromSequence` on. */
  readAudit(partnerId: string, fromSequence: number, limit: number): Promise<readonly AuditEntry[]>;
  /**
   * For what no row tells of but the log itself. Not idempotent: a call whose outcome is not known may have
   * appended.
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
   * Removes rows whose time has passed (slots, facts, replays, dedupe keys, cases of erased proofs), at most
   * `limit` of them. Returns how many; fewer than `limit` means done. A store that lets rows expire by itself
   * has nothing to do.
   */
  collectExpired(now: number, limit: number): Promise<number>;
  /** Resolves when a read and a durable write succeed. */
  ping(): Promise<void>;
  close(): Promise<void>;
}
