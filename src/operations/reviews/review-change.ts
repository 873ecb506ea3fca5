import type { AuditAction } from '../../domain/audit.js';
import type { ErrorReason } from '../../domain/errors.js';
import { DomainError } from '../../domain/errors.js';
import type { ReviewCase, ReviewChange } from '../../domain/review.js';
import type { ReviewStore } from '../../ports/stores.js';
import type { ReviewView } from '../operations.js';

const REFUSALS: Readonly<Partial<Record<ErrorReason, string>>> = {
  evidence_kind_already_open: 'This kind of evidence was already requested on the review.',
  evidence_request_final: 'The evidence request has been accepted or declined and does not change any more.',
  evidence_requests_open: 'The review has open evidence requests; complete them first.',
  review_resolved: 'The review has been resolved with another outcome.',
};

/** Another partner's, an expired and a never-created case are all the same. */
export function noSuchReview(): DomainError {
  return new DomainError('not_found', 'There is no such review.');
}

/** One rule applied to one case in one atomic step of the store, with its audit entry. */
export async function changeReview(
  stores: ReviewStore,
  request: {
    readonly partnerId: string;
    readonly reviewId: string;
    readonly now: number;
    readonly actor: string;
    readonly action: AuditAction;
    readonly requestId?: string;
  },
  change: (review: ReviewCase) => ReviewChange | undefined,
): Promise<ReviewView> {
  const { partnerId, reviewId, now, actor, action, requestId } = request;
  const subjects = requestId === undefined ? [reviewId] : [reviewId, requestId];
  const changed = await stores.changeReview(partnerId, reviewId, now, change, {
    partnerId,
    action,
    at: now,
    actor,
    subjects,
  });
  if (changed === undefined) throw noSuchReview();
  if ('refused' in changed)
    throw new DomainError('conflict', REFUSALS[changed.refused] ?? 'The review does not allow this.', {
      reason: changed.refused,
    });
  return reviewView(changed.review);
}

export function reviewView({ partnerId: _owner, ...view }: ReviewCase): ReviewView {
  return view;
}
