import type { PartnerReviewCase } from '../../client/index.js';
import { formatTime, type Terminal } from '../terminal.js';
import { lineOf, partnerCall } from './call-command.js';
import { printFacts } from './partner-proofs.js';

export const CASE_JSON = 'print the case as one line of JSON';
export const CASES_JSON = 'print one line of JSON per case';
/** The options of every list of cases. */
export const CASE_FILTERS = {
  proof: { value: 'id', help: 'only cases of this proof' },
  status: { value: 'status', choices: ['open', 'resolved'], help: 'only cases with this status' },
} as const;
/** What the commands that print one case have in common. */
const ONE_CASE = {
  json: CASE_JSON,
  print: ([review]: readonly PartnerReviewCase[], terminal: Terminal) => printCase(terminal, review!),
};

const createReview = partnerCall({
  name: 'reviews create',
  summary: 'Open a review case about a proof, with your own identifiers',
  details: [
    'The identifiers must be opaque, so never names or e-mail addresses. A case is kept for 180 days.',
    'A second open case with the same identifiers is refused; the error names the existing case.',
  ],
  operands: ['<proofId>'],
  options: {
    creator: { value: 'id', required: true, help: 'identifier of the creator in your own systems' },
    account: { value: 'id', required: true, help: 'identifier of the account in your own systems' },
    submission: { value: 'id', required: true, help: 'identifier of the submission in your own systems' },
    track: { value: 'id', required: true, help: 'identifier of the track in your own systems' },
    'idempotency-key': {
      value: 'key',
      help: '16 to 128 characters; for 24 hours the same key and identifiers return the same case',
    },
  },
  ...ONE_CASE,
  call([proofId], { creator, account, submission, track, idempotencyKey }, { signal }) {
    const bindings = { creatorId: creator, accountId: account, submissionId: submission, trackId: track };
    return (client) => client.createReview({ proofId, bindings }, { idempotencyKey, signal });
  },
});

const listReviews = partnerCall({
  name: 'reviews list',
  summary: 'List your review cases, newest first',
  details: ['Expired cases and cases of erased proofs are not listed.'],
  options: CASE_FILTERS,
  json: CASES_JSON,
  call:
    (_operands, { proof: proofId, status }, { signal }) =>
    (client) =>
      client.listReviews({ proofId, status, signal }),
  columns: caseColumns,
  empty: 'no review cases',
});

const getReview = partnerCall({
  name: 'reviews get',
  summary: 'Show a review case and its evidence requests',
  operands: ['<reviewId>'],
  ...ONE_CASE,
  call:
    ([reviewId], _options, { signal }) =>
    (client) =>
      client.readReview(reviewId, { signal }),
});

const askEvidence = partnerCall({
  name: 'reviews ask',
  summary: 'Request evidence in a review case; each kind can be requested once',
  operands: ['<reviewId>'],
  options: {
    kind: {
      value: 'kind',
      required: true,
      choices: ['source_evidence', 'source_licence', 'creator_clarification'],
      help: 'kind of evidence',
    },
  },
  ...ONE_CASE,
  call:
    ([reviewId], { kind }, { signal }) =>
    (client) =>
      client.openEvidence(reviewId, { kind }, { signal }),
});

const answerEvidence = partnerCall({
  name: 'reviews answer',
  summary: 'Accept or decline the evidence of a request; this cannot be changed later',
  operands: ['<reviewId>', '<requestId>'],
  options: {
    status: { value: 'status', required: true, choices: ['accepted', 'declined'], help: 'your answer' },
    reference: { value: 'id', help: 'opaque reference to a record in your own evidence system' },
  },
  ...ONE_CASE,
  call([reviewId, requestId], { status, reference }, { signal }) {
    const answer = { status, ...(reference === undefined ? {} : { responseReference: reference }) };
    return (client) => client.closeEvidence(reviewId, requestId, answer, { signal });
  },
});

const resolveReview = partnerCall({
  name: 'reviews resolve',
  summary: 'Record your outcome of a review case that has no open evidence request',
  details: ['`held` can later be changed to `accepted` or `rejected`.'],
  operands: ['<reviewId>'],
  options: {
    outcome: {
      value: 'outcome',
      required: true,
      choices: ['accepted', 'held', 'rejected'],
      help: 'your outcome',
    },
  },
  ...ONE_CASE,
  call:
    ([reviewId], { outcome }, { signal }) =>
    (client) =>
      client.resolveReview(reviewId, { outcome }, { signal }),
});

export const REVIEW_COMMANDS = [
  createReview,
  getReview,
  listReviews,
  askEvidence,
  answerEvidence,
  resolveReview,
];

export function caseColumns(review: PartnerReviewCase): readonly string[] {
  return [review.reviewId, formatTime(review.createdAt), statusOf(review).padEnd(18), review.proofId];
}

/** @param more facts to print after the id */
export function printCase(
  terminal: Terminal,
  review: PartnerReviewCase,
  more: readonly (readonly [string, string])[] = [],
): void {
  const { bindings, createdAt, expiresAt, resolvedAt, evidenceRequests } = review;
  printFacts(terminal, [
    ['review', review.reviewId],
    ...more,
    ['proof', review.proofId],
    ['status', statusOf(review)],
    ['creator', bindings.creatorId],
    ['account', bindings.accountId],
    ['submission', bindings.submissionId],
    ['track', bindings.trackId],
    ['created', formatTime(createdAt)],
    ['resolved', resolvedAt === undefined ? undefined : formatTime(resolvedAt)],
    ['kept until', formatTime(expiresAt)],
  ]);
  for (const { requestId, kind, status: state, updatedAt } of evidenceRequests)
    terminal.print(lineOf([requestId, kind, state, formatTime(updatedAt)]));
}

function statusOf({ status, outcome }: PartnerReviewCase): string {
  return outcome === undefined ? status : `${status}, ${outcome}`;
}
