/** A review case as both listeners return it. */
export const REVIEW = {
  reviewId: 'rev_1',
  proofId: 'prf_1',
  bindings: { creatorId: 'c', accountId: 'a', submissionId: 's', trackId: 't' },
  status: 'open',
  createdAt: 1_767_225_600,
  updatedAt: 1_767_225_600,
  expiresAt: 1_782_777_600,
  evidenceRequests: [
    {
      requestId: 'req_1',
      kind: 'source_licence',
      status: 'supplied',
      createdAt: 1_767_225_600,
      updatedAt: 1_767_225_600,
    },
  ],
};
