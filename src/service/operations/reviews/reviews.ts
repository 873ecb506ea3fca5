import { defined } from '../../../core/domain/defined.js';
import { DomainError, type ErrorReason, limited } from '../../../core/domain/errors.js';
import type { ResultOf } from '../../contract/results.js';
import type { AuditAction } from '../../domain/audit.js';
import {
  REVIEW_LIFE_SECONDS,
  type ReviewBindings,
  type ReviewCase,
  type ReviewChange,
  type ReviewOutcome,
  resolveReview as resolve,
} from '../../domain/review.js';
import type { PartnerStore, ProofStore, ReviewReplay, ReviewStore } from '../../ports/stores.js';
import type { Clock, Ids } from '../../ports/system.js';
import type { Caller } from '../caller.js';
import { idempotencyDigest, idempotencyKeyReused, REPLAY_SECONDS } from '../idempotency.js';
import { type Cursors, cutPage } from '../page.js';
import { findIssued, noSuchProof } from '../proofs/find-proof.js';

/** A review as the partner sees it. */
export type ReviewView = ResultOf<'readReview'>;

export interface CreateReviewDeps {
  readonly stores: ProofStore & ReviewStore;
  readonly clock: Clock;
  readonly ids: Ids;
}

export interface CreateReviewRequest {
  readonly proofId: string;
  readonly bindings: ReviewBindings;
  readonly idempotencyKey?: string;
}

/** A new review, as it was when it was created. */
export type CreatedReview = ReviewView & {
  /** True when an earlier call with the same Idempotency-Key created the review. */
  readonly replayed: boolean;
};

/**
 * Creates a metadata-only review of a registered proof. The proof may belong to any partner of the
 * environment. All calls with one Idempotency-Key return the review that the first of them created.
 */
export async function createReview(
  deps: CreateReviewDeps,
  caller: Caller,
  request: CreateReviewRequest,
): Promise<CreatedReview> {
  const { stores, clock, ids } = deps;
  const { partnerId } = caller;
  const { proofId, idempotencyKey } = request;
  await findIssued(stores, proofId);
  const now = Math.floor(clock.now() / 1000);
  const { creatorId, accountId, submissionId, trackId } = request.bindings;
  const review: ReviewCase = {
    reviewId: ids.next('review'),
    partnerId,
    proofId,
    bindings: { creatorId, accountId, submissionId, trackId },
    status: 'open',
    ...timesOf(now),
    evidenceRequests: [],
  };
  const replay = idempotencyKey === undefined ? undefined : replayOf(caller, request, idempotencyKey, now);
  const created = await stores.createReview(
    review,
    now,
    {
      partnerId,
      action: 'review_created',
      at: now,
      actor: caller.keyId,
      subjects: [review.reviewId, proofId],
    },
    defined({ replay }),
  );
  if (created.outcome === 'key_reused') throw idempotencyKeyReused();
  if (created.outcome === 'exists')
    throw new DomainError(
      'conflict',
      'You already have an unresolved review of this proof with the same bindings.',
      {
        reason: 'review_exists',
        reviewId: created.reviewId,
      },
    );
  if (created.outcome === 'full')
    throw limited('The partner has the maximum number of reviews, on this proof or in total.', {
      reason: 'review_limit',
      limit: 'reviews',
      now,
      retryAfterSeconds: Math.max(1, created.until - now),
    });
  if (created.outcome === 'proof_gone') throw noSuchProof();
  if (created.outcome === 'created') return { ...reviewView(review), replayed: false };
  const { reviewId, createdAt } = created;
  return { ...reviewView(review), reviewId, ...timesOf(createdAt), replayed: true };
}

/** Returns the times of a review that was created at `createdAt`, in unix seconds. */
function timesOf(createdAt: number): Pick<ReviewCase, 'createdAt' | 'updatedAt' | 'expiresAt'> {
  return { createdAt, updatedAt: createdAt, expiresAt: createdAt + REVIEW_LIFE_SECONDS };
}

/** Returns what binds an Idempotency-Key to a request (rule 12.18). */
function replayOf(
  { partnerId }: Caller,
  { proofId, bindings }: CreateReviewRequest,
  idempotencyKey: string,
  now: number,
): ReviewReplay {
  const { creatorId, accountId, submissionId, trackId } = bindings;
  return {
    key: idempotencyDigest('review', partnerId, idempotencyKey),
    requestSha256: idempotencyDigest(proofId, creatorId, accountId, submissionId, trackId),
    expiresAt: now + REPLAY_SECONDS,
  };
}

const DEFAULT_LIMIT = 50;
/** The number of reviews read for a page that is filtered by status. */
const LOOKED_AT = 100;

export interface ReviewQuery {
  readonly limit?: number;
  readonly cursor?: string;
  readonly proofId?: string;
  readonly status?: ReviewCase['status'];
}

interface ListReviewsDeps {
  readonly stores: Pick<ReviewStore, 'listReviews'>;
  readonly cursors: Cursors;
  readonly clock: Clock;
}

/**
 * Returns the partner's own reviews, newest first. A page that is not the last may be short or empty, if
 * reviews have expired or the list is filtered by status (rule 12.19).
 */
export async function listReviews(
  deps: ListReviewsDeps,
  { partnerId }: Pick<Caller, 'partnerId'>,
  query: ReviewQuery,
): Promise<ResultOf<'listReviews'>> {
  const { limit = DEFAULT_LIMIT, cursor, proofId, status } = query;
  const scope = { partnerId, route: 'GET /partner/reviews', filter: [proofId ?? null, status ?? null] };
  const before = cursor === undefined ? undefined : deps.cursors.read(scope, cursor);
  const found = await deps.stores.listReviews(
    partnerId,
    defined({
      // One entry more than the page shows whether another page follows.
      limit: status === undefined ? limit + 1 : LOOKED_AT,
      before: before && { createdAt: before.createdAt, reviewId: before.id },
      proofId,
    }),
    Math.floor(deps.clock.now() / 1000),
  );
  const { entries, last = found.last } = cutPage(
    found.reviews.filter((review) => status === undefined || review.status === status),
    limit,
  );
  return defined({
    reviews: entries.map(reviewView),
    nextCursor: last && deps.cursors.write(scope, { createdAt: last.createdAt, id: last.reviewId }),
  });
}

/**
 * Returns the reviews of one partner, for the operator, as the partner sees them.
 * @throws DomainError `not_found`
 */
export async function listPartnerReviews(
  deps: ListReviewsDeps & { readonly stores: PartnerStore },
  { partnerId, ...query }: ReviewQuery & { readonly partnerId: string },
): Promise<ResultOf<'listReviews'>> {
  if ((await deps.stores.getPartner(partnerId)) === undefined)
    throw new DomainError('not_found', 'There is no such partner.');
  return listReviews(deps, { partnerId }, query);
}

/** Returns a review of any partner, for the operator. */
export async function readPartnerReview(
  deps: { readonly stores: ReviewStore; readonly clock: Clock },
  { reviewId }: { readonly reviewId: string },
): Promise<ResultOf<'readPartnerReview'>> {
  const partnerId = await deps.stores.findReviewPartner(reviewId, Math.floor(deps.clock.now() / 1000));
  if (partnerId === undefined) throw noSuchReview();
  return { partnerId, ...(await readReview(deps, { partnerId }, { reviewId })) };
}

/** Returns a review with its evidence requests, for the partner that created it. */
export async function readReview(
  { stores, clock }: { readonly stores: ReviewStore; readonly clock: Clock },
  { partnerId }: Pick<Caller, 'partnerId'>,
  { reviewId }: { readonly reviewId: string },
): Promise<ReviewView> {
  const review = await stores.getReview(partnerId, reviewId, Math.floor(clock.now() / 1000));
  if (review === undefined) throw noSuchReview();
  return reviewView(review);
}

/**
 * Resolves a review with the partner's own outcome. The outcome makes no statement about authorship or
 * rights.
 */
export async function resolveReview(
  { stores, clock }: { readonly stores: ReviewStore; readonly clock: Clock },
  caller: Caller,
  { reviewId, outcome }: { readonly reviewId: string; readonly outcome: ReviewOutcome },
): Promise<ReviewView> {
  const now = Math.floor(clock.now() / 1000);
  return changeReview(
    stores,
    { partnerId: caller.partnerId, reviewId, now, actor: caller.keyId, action: 'review_resolved' },
    (review) => resolve(review, outcome, now),
  );
}

const MESSAGES: Readonly<Partial<Record<ErrorReason, string>>> = {
  evidence_kind_already_open: 'This kind of evidence was already requested on the review.',
  evidence_request_final: 'The evidence request was already accepted or declined and cannot be changed.',
  evidence_requests_open: 'The review has open evidence requests. Accept or decline each of them first.',
  review_resolved: 'The review was already resolved with a different outcome.',
};

/** Returns the same error for another partner's, an expired and a never-created review. */
export function noSuchReview(): DomainError {
  return new DomainError('not_found', 'There is no such review.');
}

/** Applies a rule to a review in one atomic step of the store, together with its audit entry. */
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
  if (changed === undefined)
    throw action === 'review_evidence_closed' || action === 'review_evidence_supplied'
      ? new DomainError('not_found', 'There is no such review, or no such evidence request in it.')
      : noSuchReview();
  if ('refused' in changed) {
    const message =
      action === 'review_evidence_opened' && changed.refused === 'review_resolved'
        ? 'The review is resolved. No more evidence can be requested.'
        : MESSAGES[changed.refused];
    throw new DomainError('conflict', message ?? 'The review does not allow this.', {
      reason: changed.refused,
    });
  }
  return reviewView(changed.review);
}

function reviewView({ partnerId: _owner, ...view }: ReviewCase): ReviewView {
  return view;
}
