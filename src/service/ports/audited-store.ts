import type { ReviewReminderKind } from '../domain/events.js';
import type { ReviewCase } from '../domain/review.js';

/** A page of items, in an order of the store's own. */
export interface AuditPage<Item> {
  readonly items: readonly Item[];
  /** The place after the page, absent at the end. A page may be empty without being the last. */
  readonly next?: string;
}

/** The place after which a page begins. Absent for the first page. */
type Place = string | undefined;

/** A review of an issued proof, with its pending announcements. */
export interface AnnouncedReview {
  readonly review: ReviewCase;
  /** True while the event of its creation is not published yet. */
  readonly isWaiting: boolean;
  /** The reminders that are scheduled. */
  readonly scheduled: readonly ReviewReminderKind[];
}

/** One partner in one month. */
export interface AuditedMonth {
  readonly partnerId: string;
  /** The month, as `YYYY-MM`. */
  readonly month: string;
}

/**
 * Serves the reads of the auditor: pages of all items, and single items. Pages are bounded, and the next page
 * can be read after any pause. A place that this store did not create throws DomainError `invalid_request`.
 */
export interface AuditedStore {
  /** Lists the ids of proofs in every state. */
  proofs(after: Place, limit: number): Promise<AuditPage<string>>;
  /** Returns true while the event of a proof's erasure is not published yet. */
  isErasureWaiting(proofId: string): Promise<boolean>;
  /** Lists the ids of reviews. Some reviews may no longer exist. */
  reviews(after: Place, limit: number): Promise<AuditPage<string>>;
  /**
   * Returns the review, or undefined when it does not exist at this time.
   * @throws DomainError `record_damaged`
   */
  review(reviewId: string, now: number): Promise<AnnouncedReview | undefined>;
  /** Lists the current and the previous month of each partner, without months that have no usage row. */
  months(after: Place, limit: number, now: number): Promise<AuditPage<AuditedMonth>>;
  /**
   * Returns the quota units of a month minus the units already summed and the units waiting to be summed.
   * Negative when the quota is lower.
   * @throws DomainError `record_damaged`
   */
  difference(month: AuditedMonth): Promise<number>;
  /**
   * Takes or renews the lease of the background pass, which one process at a time holds. Running without the
   * lease causes extra work but no harm.
   */
  lease(): Promise<boolean>;
}
