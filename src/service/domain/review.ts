/**
 * The workflow of reviews, which have only metadata. The state machines are tables, so that a test can walk
 * every pair of state and trigger.
 */
import { defined } from '../../core/domain/defined.js';
import type { ErrorReason } from '../../core/domain/errors.js';

/** The lifetime of a review in seconds, counted from its creation. It never changes (rule 12.5). */
export const REVIEW_LIFE_SECONDS = 180 * 24 * 3600;

/**
 * The most reviews that a partner may have at the same time (rule 12.7). Reviews that ended, by age or with
 * their proof, do not count, and neither do reviews of other partners.
 */
export interface ReviewBounds {
  readonly perProof: number;
  readonly perPartner: number;
}
export const REVIEW_BOUNDS: ReviewBounds = { perProof: 1000, perPartner: 100_000 };

export const EVIDENCE_KINDS = ['source_evidence', 'source_licence', 'creator_clarification'] as const;
export type EvidenceKind = (typeof EVIDENCE_KINDS)[number];

export const EVIDENCE_STATUSES = ['requested', 'supplied', 'accepted', 'declined'] as const;
export type EvidenceStatus = (typeof EVIDENCE_STATUSES)[number];

/** The triggers of an evidence request. The operator triggers `supply`, the partner the other two. */
export const EVIDENCE_TRIGGERS = ['supply', 'accept', 'decline'] as const;
export type EvidenceTrigger = (typeof EVIDENCE_TRIGGERS)[number];

export const REVIEW_OUTCOMES = ['accepted', 'held', 'rejected'] as const;
export type ReviewOutcome = (typeof REVIEW_OUTCOMES)[number];

/** The state of a review: open, or resolved with an outcome. */
export type ReviewState = 'open' | ReviewOutcome;
export const REVIEW_STATES = ['open', ...REVIEW_OUTCOMES] as const;

/**
 * A step of a state machine: the next state, which may be the same state, or the reason of the refusal (409).
 */
export type Step<State> = { readonly to: State } | { readonly refused: ErrorReason };

/**
 * The steps of an evidence request (rule 12.11). The partner may also close a request in the state
 * `requested`.
 */
const EVIDENCE_STEPS: Readonly<
  Record<EvidenceStatus, Readonly<Record<EvidenceTrigger, Step<EvidenceStatus>>>>
> = {
  requested: { supply: { to: 'supplied' }, accept: { to: 'accepted' }, decline: { to: 'declined' } },
  supplied: { supply: { to: 'supplied' }, accept: { to: 'accepted' }, decline: { to: 'declined' } },
  accepted: {
    supply: { refused: 'evidence_request_final' },
    accept: { refused: 'evidence_request_final' },
    decline: { refused: 'evidence_request_final' },
  },
  declined: {
    supply: { refused: 'evidence_request_final' },
    accept: { refused: 'evidence_request_final' },
    decline: { refused: 'evidence_request_final' },
  },
};

/** The steps of a review (rule 12.15). */
const REVIEW_STEPS: Readonly<Record<ReviewState, Readonly<Record<ReviewOutcome, Step<ReviewState>>>>> = {
  open: { accepted: { to: 'accepted' }, held: { to: 'held' }, rejected: { to: 'rejected' } },
  held: { accepted: { to: 'accepted' }, held: { to: 'held' }, rejected: { to: 'rejected' } },
  accepted: {
    accepted: { to: 'accepted' },
    held: { refused: 'review_resolved' },
    rejected: { refused: 'review_resolved' },
  },
  rejected: {
    accepted: { refused: 'review_resolved' },
    held: { refused: 'review_resolved' },
    rejected: { to: 'rejected' },
  },
};

/** The partner's own opaque identifiers, never names or e-mail addresses (rule 12.2). */
export interface ReviewBindings {
  readonly creatorId: string;
  readonly accountId: string;
  readonly submissionId: string;
  readonly trackId: string;
}

export interface EvidenceRequest {
  readonly requestId: string;
  readonly kind: EvidenceKind;
  readonly status: EvidenceStatus;
  /** An opaque reference into the partner's own evidence system, with a maximum length. */
  readonly responseReference?: string;
  /** The time of creation in unix seconds. */
  readonly createdAt: number;
  readonly updatedAt: number;
}

export interface ReviewCase {
  readonly reviewId: string;
  readonly partnerId: string;
  readonly proofId: string;
  readonly bindings: ReviewBindings;
  readonly status: 'open' | 'resolved';
  readonly outcome?: ReviewOutcome;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly resolvedAt?: number;
  /**
   * The end of the review in unix seconds, 180 days after its creation. From this second on it does not
   * exist.
   */
  readonly expiresAt: number;
  /** The evidence requests in the order of their creation, at most one of each kind. */
  readonly evidenceRequests: readonly EvidenceRequest[];
}

export function evidenceStep(status: EvidenceStatus, trigger: EvidenceTrigger): Step<EvidenceStatus> {
  return EVIDENCE_STEPS[status][trigger];
}

export function reviewStep(state: ReviewState, outcome: ReviewOutcome): Step<ReviewState> {
  return REVIEW_STEPS[state][outcome];
}

export function stateOf(review: ReviewCase): ReviewState {
  return review.outcome ?? 'open';
}

/**
 * Returns whether a review blocks a new review of the same proof and bindings. `held` is unresolved (rule
 * 12.6).
 */
export function isUnresolved(review: ReviewCase): boolean {
  return review.outcome === undefined || review.outcome === 'held';
}

export function isOpen(request: EvidenceRequest): boolean {
  return request.status === 'requested' || request.status === 'supplied';
}

export type ReviewChange = { readonly review: ReviewCase } | { readonly refused: ErrorReason };

/** Opens an evidence request, once per kind, while the review is open or held (rules 12.8 and 12.9). */
export function openEvidence(
  review: ReviewCase,
  kind: EvidenceKind,
  requestId: string,
  now: number,
): ReviewChange {
  if (!isUnresolved(review)) return { refused: 'review_resolved' };
  if (review.evidenceRequests.some((request) => request.kind === kind))
    return { refused: 'evidence_kind_already_open' };
  return {
    review: {
      ...review,
      updatedAt: now,
      evidenceRequests: [
        ...review.evidenceRequests,
        { requestId, kind, status: 'requested', createdAt: now, updatedAt: now },
      ],
    },
  };
}

/** Applies a trigger to an evidence request. @returns undefined if the review has no such request */
export function stepEvidence(
  review: ReviewCase,
  requestId: string,
  trigger: EvidenceTrigger,
  responseReference: string | undefined,
  now: number,
): ReviewChange | undefined {
  const request = review.evidenceRequests.find((candidate) => candidate.requestId === requestId);
  if (request === undefined) return undefined;
  const step = evidenceStep(request.status, trigger);
  if ('refused' in step) return step;
  if (step.to === request.status) return { review };
  const changed: EvidenceRequest = {
    ...request,
    status: step.to,
    updatedAt: now,
    ...defined({ responseReference }),
  };
  return {
    review: {
      ...review,
      updatedAt: now,
      evidenceRequests: review.evidenceRequests.map((candidate) =>
        candidate === request ? changed : candidate,
      ),
    },
  };
}

/** Resolves a review. Open evidence requests must be closed first (rule 12.14). */
export function resolveReview(review: ReviewCase, outcome: ReviewOutcome, now: number): ReviewChange {
  const step = reviewStep(stateOf(review), outcome);
  if ('refused' in step) return step;
  if (step.to === review.outcome) return { review };
  if (review.evidenceRequests.some(isOpen)) return { refused: 'evidence_requests_open' };
  return { review: { ...review, status: 'resolved', outcome, updatedAt: now, resolvedAt: now } };
}
