import type { Client, PartnerReviewCase } from '../../client/index.js';
import { type Context, defineCommand, EXIT } from '../command.js';
import { formatTime, printable, type Terminal } from '../terminal.js';
import { PARTNER_DETAILS, withPartner } from './partner-account.js';
import { printFacts } from './partner-proofs.js';

const JSON_OPTION = { help: 'print the case as one line of JSON' };
/** The options of every list of cases. */
export const CASE_FILTERS = {
  proof: { value: 'id', help: 'only cases of this proof' },
  status: { value: 'status', choices: ['open', 'resolved'], help: 'only cases with this status' },
  json: { help: 'print one line of JSON per case' },
} as const;

export const createReview = defineCommand({
  name: 'reviews create',
  service: 'partner',
  summary: 'Open a review case about a proof, with your own identifiers',
  details: [
    'The identifiers must be opaque, so never names or e-mail addresses. A case is kept for 180 days.',
    'A second open case with the same identifiers is refused; the error names the existing case.',
    '',
    ...PARTNER_DETAILS,
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
    json: JSON_OPTION,
  },
  async run([proofId], { creator, account, submission, track, idempotencyKey, json }, context) {
    const bindings = { creatorId: creator, accountId: account, submissionId: submission, trackId: track };
    return showCase(json, context, (client, { signal }) =>
      client.createReview({ proofId, bindings }, { idempotencyKey, signal }),
    );
  },
});

export const listReviews = defineCommand({
  name: 'reviews list',
  service: 'partner',
  summary: 'List your review cases, newest first',
  details: ['Expired cases and cases of erased proofs are not listed.', '', ...PARTNER_DETAILS],
  operands: [],
  options: CASE_FILTERS,
  async run(_operands, { proof: proofId, status, json }, context) {
    const { terminal, signal } = context;
    await withPartner(context, async (client) => {
      let isEmpty = true;
      for await (const review of client.listReviews({ proofId, status, signal })) {
        isEmpty = false;
        if (json) terminal.printJson(review);
        else terminal.print(caseLine(review));
      }
      if (isEmpty) terminal.note('no review cases');
    });
    return EXIT.good;
  },
});

export const getReview = defineCommand({
  name: 'reviews get',
  service: 'partner',
  summary: 'Show a review case and its evidence requests',
  details: PARTNER_DETAILS,
  operands: ['<reviewId>'],
  options: { json: JSON_OPTION },
  async run([reviewId], { json }, context) {
    return showCase(json, context, (client, { signal }) => client.readReview(reviewId, { signal }));
  },
});

export const askEvidence = defineCommand({
  name: 'reviews ask',
  service: 'partner',
  summary: 'Request evidence in a review case; each kind can be requested once',
  details: PARTNER_DETAILS,
  operands: ['<reviewId>'],
  options: {
    kind: {
      value: 'kind',
      required: true,
      choices: ['source_evidence', 'source_licence', 'creator_clarification'],
      help: 'kind of evidence',
    },
    json: JSON_OPTION,
  },
  async run([reviewId], { kind, json }, context) {
    return showCase(json, context, (client, { signal }) =>
      client.openEvidence(reviewId, { kind }, { signal }),
    );
  },
});

export const answerEvidence = defineCommand({
  name: 'reviews answer',
  service: 'partner',
  summary: 'Accept or decline the evidence of a request; this cannot be changed later',
  details: PARTNER_DETAILS,
  operands: ['<reviewId>', '<requestId>'],
  options: {
    status: { value: 'status', required: true, choices: ['accepted', 'declined'], help: 'your answer' },
    reference: { value: 'id', help: 'opaque reference to a record in your own evidence system' },
    json: JSON_OPTION,
  },
  async run([reviewId, requestId], { status, reference, json }, context) {
    const request = { status, ...(reference === undefined ? {} : { responseReference: reference }) };
    return showCase(json, context, (client, { signal }) =>
      client.closeEvidence(reviewId, requestId, request, { signal }),
    );
  },
});

export const resolveReview = defineCommand({
  name: 'reviews resolve',
  service: 'partner',
  summary: 'Record your outcome of a review case that has no open evidence request',
  details: ['`held` can later be changed to `accepted` or `rejected`.', '', ...PARTNER_DETAILS],
  operands: ['<reviewId>'],
  options: {
    outcome: {
      value: 'outcome',
      required: true,
      choices: ['accepted', 'held', 'rejected'],
      help: 'your outcome',
    },
    json: JSON_OPTION,
  },
  async run([reviewId], { outcome, json }, context) {
    return showCase(json, context, (client, { signal }) =>
      client.resolveReview(reviewId, { outcome }, { signal }),
    );
  },
});

async function showCase(
  json: boolean,
  context: Context,
  call: (client: Client, context: Context) => Promise<PartnerReviewCase>,
): Promise<number> {
  const { terminal } = context;
  const review = await withPartner(context, (client) => call(client, context));
  if (json) terminal.printJson(review);
  else printCase(terminal, review);
  return EXIT.good;
}

/** Returns the line of a case in a list. */
export function caseLine(review: PartnerReviewCase): string {
  const { reviewId, createdAt, proofId } = review;
  return printable(`${reviewId}  ${formatTime(createdAt)}  ${statusOf(review).padEnd(18)}  ${proofId}`);
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
    terminal.print(printable(`${requestId}  ${kind}  ${state}  ${formatTime(updatedAt)}`));
}

function statusOf({ status, outcome }: PartnerReviewCase): string {
  return outcome === undefined ? status : `${status}, ${outcome}`;
}
