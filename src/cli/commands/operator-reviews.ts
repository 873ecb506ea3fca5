import { defined } from '../../core/domain/defined.js';
import { defineCommand, EXIT } from '../command.js';
import { printable } from '../terminal.js';
import { OPERATOR_DETAILS, withOperator } from './operator-accounts.js';
import { CASE_FILTERS, caseLine, printCase } from './partner-reviews.js';

const CASE_JSON = { help: 'print the case as one line of JSON' } as const;

export const listPartnerReviews = defineCommand({
  name: 'operator reviews list',
  service: 'operator',
  summary: 'List the review cases of a partner, newest first',
  details: ['Expired cases and cases of erased proofs are not listed.', '', ...OPERATOR_DETAILS],
  operands: [],
  options: {
    partner: { value: 'partnerId', required: true, help: 'partner that owns the cases' },
    ...CASE_FILTERS,
  },
  async run(_operands, { partner, proof: proofId, status, json }, context) {
    const { terminal } = context;
    await withOperator(context, async (client) => {
      for await (const review of client.listReviews(partner, defined({ proofId, status })))
        if (json) terminal.printJson(review);
        else terminal.print(caseLine(review));
    });
    return EXIT.good;
  },
});

export const getPartnerReview = defineCommand({
  name: 'operator reviews get',
  service: 'operator',
  summary: 'Show a review case of any partner and its evidence requests',
  details: OPERATOR_DETAILS,
  operands: ['<reviewId>'],
  options: { json: CASE_JSON },
  async run([reviewId], { json }, context) {
    const { terminal } = context;
    const review = await withOperator(context, (client) => client.readReview(reviewId));
    if (json) terminal.printJson(review);
    else printCase(terminal, review, [['partner', review.partnerId]]);
    return EXIT.good;
  },
});

export const supplyEvidence = defineCommand({
  name: 'operator reviews supply',
  service: 'operator',
  summary: 'Mark the evidence of a request as supplied',
  details: [
    'The evidence itself never passes through the service. The partner then accepts or declines it.',
    '',
    ...OPERATOR_DETAILS,
  ],
  operands: ['<reviewId>', '<requestId>'],
  options: { json: CASE_JSON },
  async run([reviewId, requestId], options, context) {
    const { terminal } = context;
    const review = await withOperator(context, (client) => client.supplyEvidence(reviewId, requestId));
    if (options.json) {
      terminal.printJson(review);
      return EXIT.good;
    }
    terminal.print(printable(`${review.reviewId}  ${review.status}  proof ${review.proofId}`));
    for (const { requestId, kind, status } of review.evidenceRequests)
      terminal.print(printable(`  ${requestId}  ${status.padEnd(9)}  ${kind}`));
    return EXIT.good;
  },
});
