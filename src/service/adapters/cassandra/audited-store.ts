import { defined } from '../../../core/domain/defined.js';
import { remindersOf, reviewCreated } from '../../domain/events.js';
import { monthOf, monthStart } from '../../domain/usage-window.js';
import type { AuditedStore } from '../../ports/audited-store.js';
import { ACT } from './commit/decisions.js';
import type { Blobs } from './driver/blobs.js';
import { Lease } from './driver/lease.js';
import { type Session, textIn } from './driver/session.js';
import { tokenPage } from './driver/token-pages.js';
import type { ProofRows } from './proofs/proof-rows.js';
import { isScheduled } from './reviews/reminders.js';
import { ReviewRows } from './reviews/review-rows.js';
import { balanceOfMonth } from './usage/usage.js';

export interface AuditedParts {
  readonly session: Session;
  readonly blobs: Blobs;
  readonly proofs: ProofRows;
  readonly usage: Parameters<typeof balanceOfMonth>[0];
  /** The ids of all partners. A scan of the charges for them would read over dedupe rows that have ended. */
  readonly partnerIds: () => Promise<readonly string[]>;
}

const GET_MONTHS = 'SELECT item FROM charge WHERE partner_id = ? AND item IN ?';
/**
 * The life of the lease in seconds. It is longer than a step of a pass, and short enough that another process goes on
 * soon.
 */
const LEASE_SECONDS = 120;

/** Reads of a cluster's store for the auditor, by whole keys or by ranges of tokens. */
export function auditedStore({ session, blobs, proofs, usage, partnerIds }: AuditedParts): AuditedStore {
  const reviews = new ReviewRows(session, blobs, proofs);
  const lease = new Lease(session, 'audit', LEASE_SECONDS);

  /** Returns true if an operation's act exists: it stays beside what it decided until its event was published. */
  const hasAct = async (proofId: string, op: string): Promise<boolean> => {
    const { rows } = await proofs.parts(proofId, ACT + op);
    return rows.has(ACT + op);
  };

  return {
    proofs: (after, limit) => tokenPage(session, { table: 'record', column: 'proof_id' }, after, limit),

    async isErasureWaiting(proofId) {
      const op = (await proofs.head(proofId))?.eraseOp;
      return op !== undefined && (await hasAct(proofId, op));
    },

    reviews: (after, limit) =>
      tokenPage(session, { table: 'review_proof', column: 'review_id' }, after, limit),

    async review(reviewId, now) {
      const proofId = await reviews.proofOf(reviewId);
      if (proofId === undefined) return undefined;
      const { head, stored } = await reviews.get(proofId, reviewId);
      if (head?.state !== 'issued' || stored === undefined || stored.review.expiresAt <= now)
        return undefined;
      const { review, createOp } = stored;
      const isWaiting = await hasAct(proofId, createOp);
      const reminders = remindersOf(reviewCreated(review));
      const waits = await Promise.all(reminders.map((reminder) => isScheduled(session, reminder)));
      return {
        review,
        isWaiting,
        scheduled: reminders.filter((_, i) => waits[i]).map(({ kind }) => kind),
      };
    },

    async months(after, limit, now) {
      const wanted = [monthOf(monthStart(now) - 1), monthOf(now)];
      const count = Math.ceil(limit / wanted.length);
      const rest = (await partnerIds()).filter((partnerId) => after === undefined || partnerId > after);
      const page = rest.slice(0, count);
      const found = await Promise.all(
        page.map(async (partnerId) => {
          const rows = await session.rows(GET_MONTHS, [partnerId, wanted.map((month) => `month/${month}`)]);
          return rows.map((row) => ({ partnerId, month: textIn(row, 'item')!.slice('month/'.length) }));
        }),
      );
      return { items: found.flat(), ...defined({ next: rest.length > count ? page.at(-1) : undefined }) };
    },

    difference: async ({ partnerId, month }) => (await balanceOfMonth(usage, partnerId, month)).difference,

    lease: () => lease.hold(),
  };
}
