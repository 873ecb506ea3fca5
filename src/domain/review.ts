/**
 * The review workflow: metadata only. State machines are tables, so that every (state, trigger) pair has an
 * answer that a test can walk.
 */
import type { ErrorReason } from './errors.js';

/** "Review metadata expires automatically after 180 days": counted from creation, never moved. */
export const REVIEW_LIFE_SECONDS = 180 * 24 * 3600;

/**
 * Cases that a partner may have at once. One that ended, by its age or with its proof, does not count, nor do
 * other partners' cases.
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

/** `supply` is the operator side's; the other two are the partner's. */
export const EVIDENCE_TRIGGERS = ['supply', 'accept', 'decline'] as const;
export type EvidenceTrigger = (typeof EVIDENCE_TRIGGERS)[number];

export const REVIEW_OUTCOMES = ['accepted', 'held', 'rejected'] as const;
export type ReviewOutcome = (typeof REVIEW_OUTCOMES)[number];

/** What a case's state is made of: open, or resolved with an outcome. */
export type ReviewState = 'open' | ReviewOutcome;
export const REVIEW_STATES = ['open', ...REVIEW_OUTCOMES] as const;

/** A transition, `unchanged` (the same thing said again), or the reason of the refusal (409). */
export type Step<State> = { readonly to: State } | { readonly refused: ErrorReason };

/**
 * "`accepted` and `declined` are terminal and immutable"; the partner may close a request from `requested`
 * too.
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

/**
 * "`held` may later become `accepted` or `rejected`; those two are final. Resolve again with the same
 * outcome: 200, unchanged."
 */
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

/** The partner's own opaque identifiers: never names or e-mail addresses. */
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
  /** A bounded opaque reference into the partner's own evidence system. */
  readonly responseReference?: string;
  /** Unix seconds. */
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
  /** Creation and 180 days; from this second on the case is not there. */
  readonly expiresAt: number;
  /** In the order of their creation; one for each kind at most. */
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

/** A case that blocks another one for the same proof and bindings: `held` counts as unresolved. */
export function isUnresolved(review: ReviewCase): boolean {
  return review.outcome === undefined || review.outcome === 'held';
}

export function isOpen(request: EvidenceRequest): boolean {
  return request.status === 'requested' || request.status === 'supplied';
}

export type ReviewChange = { readonly review: ReviewCase } | { readonly refused: ErrorReason };

/** "A review can open each evidence kind once": evidence can be requested while the case is open or held. */
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

/** @returns undefined where the case has no such request */
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
    ...(responseReference === undefined ? {} : { responseReference }),
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

/** "`resolve` requires that open evidence requests have been completed first." */
export function resolveReview(review: ReviewCase, outcome: ReviewOutcome, now: number): ReviewChange {
  const step = reviewStep(stateOf(review), outcome);
  if ('refused' in step) return step;
  if (step.to === review.outcome) return { review };
  if (review.evidenceRequests.some(isOpen)) return { refused: 'evidence_requests_open' };
  return { review: { ...review, status: 'resolved', outcome, updatedAt: now, resolvedAt: now } };
}
