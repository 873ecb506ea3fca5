import { defined } from '../../core/domain/defined.js';
import { lineOf, operatorCall } from './call-command.js';
import { CASE_FILTERS, CASE_JSON, CASES_JSON, caseColumns, printCase } from './partner-reviews.js';

const listPartnerReviews = operatorCall({
  name: 'operator reviews list',
  summary: 'List the review cases of a partner, newest first',
  details: ['Expired cases and cases of erased proofs are not listed.'],
  options: {
    partner: { value: 'partnerId', required: true, help: 'partner that owns the cases' },
    ...CASE_FILTERS,
  },
  json: CASES_JSON,
  call:
    (_operands, { partner, proof: proofId, status }) =>
    (client) =>
      client.listReviews(partner, defined({ proofId, status })),
  columns: caseColumns,
});

const getPartnerReview = operatorCall({
  name: 'operator reviews get',
  summary: 'Show a review case of any partner and its evidence requests',
  operands: ['<reviewId>'],
  json: CASE_JSON,
  call:
    ([reviewId]) =>
    (client) =>
      client.call('GET reviews/{reviewId}', { path: { reviewId } }),
  print: ([review], terminal) => printCase(terminal, review!, [['partner', review!.partnerId]]),
});

const supplyEvidence = operatorCall({
  name: 'operator reviews supply',
  summary: 'Mark the evidence of a request as supplied',
  details: ['The evidence itself never passes through the service. The partner then accepts or declines it.'],
  operands: ['<reviewId>', '<requestId>'],
  json: CASE_JSON,
  call:
    ([reviewId, requestId]) =>
    (client) =>
      client.call('POST reviews/{reviewId}/evidence-requests/{requestId}/supply', {
        path: { reviewId, requestId },
      }),
  print([review], terminal) {
    const { reviewId, status, proofId, evidenceRequests } = review!;
    terminal.print(lineOf([reviewId, status, `proof ${proofId}`]));
    for (const { requestId, kind, status } of evidenceRequests)
      terminal.print(lineOf([`  ${requestId}`, status.padEnd(9), kind]));
  },
});

export const PARTNER_REVIEW_COMMANDS = [listPartnerReviews, getPartnerReview, supplyEvidence];
