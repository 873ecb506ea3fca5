import type { Partner, PartnerKey } from '../domain/partner.js';
import type { IssuedProof, Proof } from '../domain/proof.js';
import type { UploadFacts, UploadSlot } from '../domain/upload.js';

/**
 * What the rules need kept. Every write is durable when its promise resolves. A store that cannot answer throws DomainError
 * `unavailable` / `store_unavailable`: a failure of the world never becomes a value.
 * All expiry is by the caller's clock: `now` is unix seconds, a row whose `expiresAt <= now` is not there.
 */

export interface PartnerStore {
  /** @throws DomainError `conflict` where another partner has this id; repeating the same call is harmless, here and in `createKey`. */
  createPartner(partner: Partner): Promise<void>;
  getPartner(partnerId: string): Promise<Partner | undefined>;
  listPartners(): Promise<readonly Partner[]>;
}

export interface KeyStore {
  createKey(key: PartnerKey): Promise<void>;
  /** Hot path: one read. */
  getKey(keyId: string): Promise<PartnerKey | undefined>;
}

export interface UploadStore {
  createSlot(slot: UploadSlot): Promise<void>;
  /** The slot while it lives, or until its facts expire. */
  getUpload(uploadId: string, now: number): Promise<{ readonly slot: UploadSlot; readonly facts?: UploadFacts } | undefined>;
  /**
   * Conditional insert: the first facts of a slot win. A post that began while its slot lived may end up to an hour after it.
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
   * `replay_exists`: another request completed under the same key first; nothing was written. Repeating a call whose outcome
   * is not known gives `issued` again.
   * @throws DomainError `conflict` where the id is not reserved for this partner (any more)
   */
  issueProof(proof: IssuedProof, replay?: IssuingReplay): Promise<'issued' | 'replay_exists'>;
  getProof(proofId: string): Promise<Proof | undefined>;
  getIssuingReplay(key: string, now: number): Promise<IssuingReplay | undefined>;
  /** Ids reserved before `before` (unix seconds): an issuing that was killed. Removes them and returns their ids, so that staged assets can be swept. */
  sweepPending(before: number): Promise<readonly string[]>;
}

export interface UsageCharge {
  readonly partnerId: string;
  readonly operation: 'verify' | 'identify';
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
   * Counts one unit, once for each dedupeKey of a partner, never beyond the quota, durable when it resolves.
   * `used` is the partner's count in the month of `at` after the call. Quota is looked at after dedupeKey: a repeated call is
   * `already_charged` in a month that is full, too.
   */
  charge(charge: UsageCharge): Promise<{ readonly outcome: 'charged' | 'already_charged' | 'quota_exceeded'; readonly used: number }>;
  getUsed(partnerId: string, at: number): Promise<number>;
  /** Units per UTC day (`YYYY-MM-DD`) and operation, for the days asked for, ascending; days without use are absent. */
  getDailyUsage(partnerId: string, fromDay: string, toDay: string): Promise<readonly { readonly day: string; readonly operations: Readonly<Record<string, number>> }[]>;
}

export interface Stores extends PartnerStore, KeyStore, UploadStore, ProofStore, UsageStore {
  /**
   * Removes rows whose time has passed (slots, facts, replays, dedupe keys), at most `limit` of them. Returns how many; fewer
   * than `limit` means done. A store that lets rows expire by itself has nothing to do.
   */
  sweepExpired(now: number, limit: number): Promise<number>;
  /** Resolves when a read and a durable write succeed. */
  ping(): Promise<void>;
  close(): Promise<void>;
}
