import { defined } from '../../../core/domain/defined.js';
import { DomainError } from '../../../core/domain/errors.js';
import { remindersOf, reviewCreated } from '../../domain/events.js';
import { BILLED_OPERATIONS, monthOf, monthStart } from '../../domain/usage-window.js';
import type { AuditedStore, AuditPage } from '../../ports/audited-store.js';
import {
  type DayRow,
  following,
  type KeyRange,
  lastPart,
  monthKey,
  partnerKey,
  proofKey,
  reminderKey,
  reviewKey,
  under,
  withinDays,
} from './keys.js';
import type { Rows } from './rows.js';

/** Returns a view of the store of one machine for the auditor. */
export function auditedStore(rows: Rows): AuditedStore {
  /** Returns a page of the last parts of keys, which begins after the last entry of the page before. */
  const page = async (
    range: KeyRange,
    after: string | undefined,
    limit: number,
    keyOf: (name: string) => string,
  ): Promise<AuditPage<string>> => {
    if (after !== undefined && !/^[\x21-\x7e]{1,300}$/.test(after))
      throw new DomainError(
        'invalid_request',
        'The parameter `from` is not a `next` value of an earlier step.',
        { reason: 'invalid_member' },
      );
    const rest = after === undefined ? range : following(range, keyOf(after));
    const names = (await rows.keys(rest, limit)).map(lastPart);
    return { items: names, ...defined({ next: names.length === limit ? names.at(-1) : undefined }) };
  };

  return {
    proofs: (after, limit) => page(under('proof'), after, limit, proofKey),

    // An event leaves the outbox before its consumer confirms the erasure, and a look there would read all of it.
    isErasureWaiting: async () => false,

    reviews: (after, limit) => page(under('review'), after, limit, reviewKey),

    async review(reviewId, now) {
      const review = rows.get(reviewKey(reviewId))?.review;
      if (review === undefined || review.expiresAt <= now) return undefined;
      if (rows.get(proofKey(review.proofId))?.state !== 'issued') return undefined;
      const scheduled = remindersOf(reviewCreated(review)).filter(
        (reminder) => rows.get(reminderKey(reminder)) !== undefined,
      );
      return { review, isWaiting: false, scheduled: scheduled.map(({ kind }) => kind) };
    },

    async months(after, limit, now) {
      const wanted = [monthOf(monthStart(now) - 1), monthOf(now)];
      const partners = await page(under('partner'), after, Math.ceil(limit / wanted.length), partnerKey);
      const items = partners.items
        .flatMap((partnerId) => wanted.map((month) => ({ partnerId, month })))
        .filter(({ partnerId, month }) => rows.get(monthKey(partnerId, month)) !== undefined);
      return { items, ...defined({ next: partners.next }) };
    },

    async difference({ partnerId, month }) {
      const before = rows.get(monthKey(partnerId, month));
      const days = await rows.entries<DayRow>(withinDays(partnerId, month));
      const after = rows.get(monthKey(partnerId, month));
      if (after === undefined || JSON.stringify(before) !== JSON.stringify(after)) return 0;
      const { used, folded = [] } = after;
      const added = folded.reduce((sum, [from, to]) => sum + to - from, 0);
      const waiting = days.reduce(
        (sum, [, { unfolded = {} }]) =>
          sum + BILLED_OPERATIONS.reduce((units, operation) => units + (unfolded[operation] ?? 0), 0),
        0,
      );
      return used - added - waiting;
    },

    lease: async () => true,
  };
}
