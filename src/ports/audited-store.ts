import type { ReviewReminderKind } from '../domain/events.js';
import type { ReviewCase } from '../domain/review.js';

/** A stretch of what there is, in an order of the store's own. */
export interface AuditPage<Item> {
  readonly items: readonly Item[];
  /** Place behind the page; absent at the end. A page may be empty and not the last. */
  readonly next?: string;
}

/** Place of a page; absent for the first one. */
type Place = string | undefined;

/** A review of an issued proof, with what is there of its announcements. */
export interface AnnouncedReview {
  readonly review: ReviewCase;
  /** The event of its creation was not published yet. */
  readonly isWaiting: boolean;
  /** Reminders that wait for their time. */
  readonly scheduled: readonly ReviewReminderKind[];
}

/** Units of a partner's month. */
export interface AuditedMonth {
  readonly partnerId: string;
  /** As `YYYY-MM`. */
  readonly month: string;
}

/**
 * Reads of the auditor: pages of all that is there, bounded and to be gone on with after any pause, and looks at
 * single things. A place that is not the store's own is DomainError `invalid_request`.
 */
export interface AuditedStore {
  /** Ids of proofs, in whatever state. */
  proofs(after: Place, limit: number): Promise<AuditPage<string>>;
  /** Tells whether the event of a proof's erasure was not published yet. */
  isErasureWaiting(proofId: string): Promise<boolean>;
  /** Ids of reviews; some may not be there. */
  reviews(after: Place, limit: number): Promise<AuditPage<string>>;
  /** The review; undefined where there is none at this time. @throws DomainError `record_damaged` */
  review(reviewId: string, now: number): Promise<AnnouncedReview | undefined>;
  /** The present month and the one before it, of every partner that has one. */
  months(after: Place, limit: number, now: number): Promise<AuditPage<AuditedMonth>>;
  /**
   * Units by which a month's quota is above what was added to its sums and what waits to be; negative where it is
   * below. @throws DomainError `record_damaged`
   */
  difference(month: AuditedMonth): Promise<number>;
  /**
   * Takes or keeps the lease of the pass that runs in the background: one process at a time has it. Work without
   * the lease costs, and harms nothing.
   */
  lease(): Promise<boolean>;
}
