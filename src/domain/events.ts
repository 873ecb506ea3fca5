/**
 * What happened, for whoever listens: identifiers, counts and times, never content. An event's id follows
 * from what it tells, so that one which is published twice is known by it. Times are unix seconds.
 */
import type { ReviewCase } from './review.js';
import { monthOf } from './usage-window.js';

export const TOPICS = ['erasure', 'usage', 'retention'] as const;
export type Topic = (typeof TOPICS)[number];

interface EventOf<T extends Topic, Kind extends string, Data> {
  readonly topic: T;
  readonly kind: Kind;
  readonly id: string;
  /** Events of one key keep their order. */
  readonly key: string;
  readonly at: number;
  readonly data: Data;
}

export type ErasureEvent = EventOf<
  'erasure',
  'proof_erased',
  { readonly proofId: string; readonly partnerId: string; readonly erasedAt: number }
>;

/** Units of one operation on one UTC day (`YYYY-MM-DD`). */
export interface UsageCount {
  readonly day: string;
  readonly operation: string;
  readonly units: number;
}

/**
 * Units that a source counted for a partner. A source numbers what it counts without gaps: this event is its
 * numbers after `from`, up to and with `to`, so events of one source never overlap and a consumer knows which
 * it has added. Sources: `billed/<YYYY-MM>`, where the numbers are the units of the month's quota, and
 * `free/<process>`, where they are events.
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

/** How long before its end a case is announced to expire. */
export const EXPIRY_NOTICE_SECONDS = 7 * 24 * 3600;

/** Something to be announced about a case at a time. */
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

export function billedSource(at: number): string {
  return `billed/${monthOf(at)}`;
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

/** What is to be announced later about a case that was created. */
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
