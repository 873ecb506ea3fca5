/**
 * The events that the service publishes: identifiers, counts and times, never content. An event's id is
 * derived from its data, so consumers recognise a duplicate event by its id. Times are unix seconds.
 */
import type { ReviewCase } from './review.js';

const BILLED = 'billed/';

export const TOPICS = ['erasure', 'usage', 'retention'] as const;
export type Topic = (typeof TOPICS)[number];

interface EventOf<T extends Topic, Kind extends string, Data> {
  readonly topic: T;
  readonly kind: Kind;
  readonly id: string;
  /** The ordering key. Events with the same key keep their order. */
  readonly key: string;
  readonly at: number;
  readonly data: Data;
}

export type ErasureEvent = EventOf<
  'erasure',
  'proof_erased',
  { readonly proofId: string; readonly partnerId: string; readonly erasedAt: number }
>;

/** The units of one operation on one UTC day (`YYYY-MM-DD`). */
export interface UsageCount {
  readonly day: string;
  readonly operation: string;
  readonly units: number;
}

/**
 * The units that a source counted for a partner. A source numbers its units without gaps. The event has the
 * numbers after `from`, up to and including `to`. So events of one source never overlap, and a consumer knows
 * which events it has added. A source of billed units is `billed/<YYYY-MM>`, or `billed/<YYYY-MM>/<epoch>`
 * after a restore. It numbers the units of the month's quota. A source of free units is `free/<process>`, and
 * numbers events.
 */
export type UsageEvent = EventOf<
  'usage',
  'units_counted',
  {
    readonly partnerId: string;
    readonly source: string;
    readonly from: number;
    readonly to: number;
    readonly counts: readonly UsageCount[];
  }
>;

export const REVIEW_REMINDERS = ['review_expiring', 'review_expired'] as const;
export type ReviewReminderKind = (typeof REVIEW_REMINDERS)[number];

export type RetentionEvent = EventOf<
  'retention',
  'review_created' | ReviewReminderKind,
  {
    readonly reviewId: string;
    readonly partnerId: string;
    readonly proofId: string;
    readonly expiresAt: number;
  }
>;

export type ServiceEvent = ErasureEvent | UsageEvent | RetentionEvent;

/** The seconds from the announcement of a review's expiry to the expiry. */
export const EXPIRY_NOTICE_SECONDS = 7 * 24 * 3600;

/** A reminder: an announcement about a review at a given time. */
export interface ReviewReminder {
  readonly kind: ReviewReminderKind;
  readonly dueAt: number;
  readonly reviewId: string;
  readonly partnerId: string;
  readonly proofId: string;
  readonly expiresAt: number;
}

export function proofErased({ proofId, partnerId, erasedAt }: ErasureEvent['data']): ErasureEvent {
  return {
    topic: 'erasure',
    kind: 'proof_erased',
    id: `proof_erased/${proofId}`,
    key: proofId,
    at: erasedAt,
    data: { proofId, partnerId, erasedAt },
  };
}

/**
 * Returns the source of the units of a month's quota.
 * @param epoch 0 before the first restore of a store, and higher after each restore. A restored store reuses
 * the numbers of units that consumers have already added. The epoch distinguishes the new units from the old
 * units.
 */
export function billedSource(month: string, epoch = 0): string {
  return epoch === 0 ? `${BILLED}${month}` : `${BILLED}${month}/${epoch}`;
}

/** Returns the month and epoch of a source of billed units, or undefined for any other source. */
export function billedUnitsOf(
  source: string,
): { readonly month: string; readonly epoch: number } | undefined {
  if (!source.startsWith(BILLED)) return undefined;
  const [month = '', epoch = '0'] = source.slice(BILLED.length).split('/');
  return { month, epoch: Number(epoch) };
}

export function freeSource(process: string): string {
  return `free/${process}`;
}

export function unitsCounted(data: UsageEvent['data'], at: number): UsageEvent {
  const { partnerId, source, from, to, counts } = data;
  return {
    topic: 'usage',
    kind: 'units_counted',
    id: `units_counted/${partnerId}/${source}/${from}`,
    key: partnerId,
    at,
    data: { partnerId, source, from, to, counts },
  };
}

export function reviewCreated({
  reviewId,
  partnerId,
  proofId,
  createdAt,
  expiresAt,
}: Pick<ReviewCase, 'reviewId' | 'partnerId' | 'proofId' | 'createdAt' | 'expiresAt'>): RetentionEvent {
  return {
    topic: 'retention',
    kind: 'review_created',
    id: `review_created/${reviewId}`,
    key: reviewId,
    at: createdAt,
    data: { reviewId, partnerId, proofId, expiresAt },
  };
}

/** Returns the reminders of a new review. */
export function remindersOf({ data }: RetentionEvent): readonly ReviewReminder[] {
  return [
    { kind: 'review_expiring', dueAt: data.expiresAt - EXPIRY_NOTICE_SECONDS, ...data },
    { kind: 'review_expired', dueAt: data.expiresAt, ...data },
  ];
}

export function reminderDue({
  kind,
  dueAt,
  reviewId,
  partnerId,
  proofId,
  expiresAt,
}: ReviewReminder): RetentionEvent {
  return {
    topic: 'retention',
    kind,
    id: `${kind}/${reviewId}`,
    key: reviewId,
    at: dueAt,
    data: { reviewId, partnerId, proofId, expiresAt },
  };
}
