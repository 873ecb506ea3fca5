import { z } from 'zod';
import {
  EVIDENCE_KIND_MEANINGS,
  EVIDENCE_STATUS_MEANINGS,
  REVIEW_OUTCOME_MEANINGS,
  REVIEW_STATUS_MEANINGS,
} from '../../domain/reference/values.js';
import { EVIDENCE_KINDS, REVIEW_OUTCOMES } from '../../domain/review.js';
import {
  cursorSchema,
  describedWords,
  identifierSchema,
  queryInteger,
  timestampSchema,
} from '../primitives.js';

const BINDINGS = {
  creatorId: 'creator-4711',
  accountId: 'account-42',
  submissionId: 'submission-2026-0117',
  trackId: 'track-3',
};
/** The values of the status filter. */
const STATUSES = ['open', 'resolved'] as const;
const CASE = {
  reviewId: 'rev_01JZ7Q4W8YB2M6R9T3V5X7Z1A2',
  proofId: 'prf_01JZ7Q4W8YB2M6R9T3V5X7Z1A2',
  bindings: BINDINGS,
  status: 'open',
  createdAt: 1_767_225_600,
  updatedAt: 1_767_225_600,
  expiresAt: 1_782_777_600,
  evidenceRequests: [],
};

/** The partner's own identifiers. All four are required (rule 12.2). */
const bindingsSchema = z
  .strictObject({
    creatorId: identifierSchema.meta({ description: 'Identifier of the creator in your own systems.' }),
    accountId: identifierSchema.meta({ description: 'Identifier of the account in your own systems.' }),
    submissionId: identifierSchema.meta({ description: 'Identifier of the submission in your own systems.' }),
    trackId: identifierSchema.meta({ description: 'Identifier of the track in your own systems.' }),
  })
  .meta({
    id: 'ReviewBindings',
    description:
      "Opaque identifiers of the case in the partner's own systems. Never send names or e-mail addresses.",
    examples: [BINDINGS],
  });

export const createReviewSchema = z
  .strictObject({
    proofId: identifierSchema.meta({
      description: 'Id of a registered proof. It may belong to any partner.',
    }),
    bindings: bindingsSchema.meta({
      description: 'Identifiers of the case in your own systems. All four are required.',
    }),
  })
  .meta({
    id: 'CreateReview',
    examples: [{ proofId: 'prf_01JZ7Q4W8YB2M6R9T3V5X7Z1A2', bindings: BINDINGS }],
  });

/** The query of the list of reviews (rule 12.19). */
export const listReviewsQuerySchema = z
  .strictObject({
    limit: queryInteger(1, 100).meta({ description: 'Maximum number of entries per page.' }).exactOptional(),
    cursor: cursorSchema.meta({ description: '`nextCursor` of the previous page.' }).exactOptional(),
    proofId: identifierSchema.meta({ description: 'Return only cases for this proof.' }).exactOptional(),
    status: z.enum(STATUSES).meta({ description: 'Return only cases with this status.' }).exactOptional(),
  })
  .meta({ id: 'ListReviewsQuery', examples: [{}, { limit: 20, status: 'open' }, { proofId: CASE.proofId }] });

export const openEvidenceSchema = z
  .strictObject({
    kind: z
      .enum(EVIDENCE_KINDS)
      .meta({ description: 'Kind of evidence to request. Each kind can be requested once per case.' }),
  })
  .meta({ id: 'OpenEvidence', examples: EVIDENCE_KINDS.map((kind) => ({ kind })) });

/** An opaque reference into the partner's evidence system (rule 12.12). */
const responseReferenceSchema = z
  .string()
  .min(1)
  .max(256)
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._:/-]*$/,
    'must contain only letters, digits, dots, underscores, colons, slashes and hyphens, and start with a letter or digit',
  )
  .meta({
    description: "Opaque reference to a record in the partner's own evidence system, at most 256 characters.",
    examples: ['evidence/2026/0117-3'],
  });

export const closeEvidenceSchema = z
  .strictObject({
    status: z.enum(['accepted', 'declined']).meta({ description: 'Final status of the request.' }),
    responseReference: responseReferenceSchema.exactOptional(),
  })
  .meta({
    id: 'CloseEvidence',
    examples: [{ status: 'accepted', responseReference: 'evidence/2026/0117-3' }, { status: 'declined' }],
  });

export const resolveReviewSchema = z
  .strictObject({
    outcome: z.enum(REVIEW_OUTCOMES).meta({
      description:
        'Outcome that you decided. `held` may later become `accepted` or `rejected`. `accepted` and `rejected` are final.',
    }),
  })
  .meta({ id: 'ResolveReview', examples: REVIEW_OUTCOMES.map((outcome) => ({ outcome })) });

export const reviewParamsSchema = z
  .strictObject({ reviewId: identifierSchema.meta({ description: 'Id of the review.' }) })
  .meta({ examples: [{ reviewId: CASE.reviewId }] });

export const evidenceParamsSchema = z
  .strictObject({
    reviewId: identifierSchema.meta({ description: 'Id of the review.' }),
    requestId: identifierSchema.meta({ description: 'Id of the evidence request.' }),
  })
  .meta({ examples: [{ reviewId: CASE.reviewId, requestId: 'req_01JZ7Q4W8YB2M6R9T3V5X7Z1A2' }] });

const evidenceRequestSchema = z
  .object({
    requestId: identifierSchema.meta({ description: 'Id of the evidence request.' }),
    kind: describedWords(EVIDENCE_KIND_MEANINGS).meta({ description: 'Kind of evidence requested.' }),
    status: describedWords(EVIDENCE_STATUS_MEANINGS).meta({ description: 'Status of the request.' }),
    responseReference: responseReferenceSchema.exactOptional(),
    createdAt: timestampSchema.meta({ description: 'Creation time, in unix seconds.' }),
    updatedAt: timestampSchema.meta({ description: 'Time of the last change, in unix seconds.' }),
  })
  .meta({ id: 'EvidenceRequest' });

export const reviewCaseSchema = z
  .object({
    reviewId: identifierSchema.meta({ description: 'Id of the review.' }),
    proofId: identifierSchema.meta({ description: 'Id of the proof under review.' }),
    // A response may gain members, a request may not.
    bindings: z.object(bindingsSchema.shape).meta({
      description: 'Identifiers of the case in your own systems, as sent when the case was created.',
    }),
    status: describedWords(REVIEW_STATUS_MEANINGS).meta({ description: 'Status of the case.' }),
    outcome: describedWords(REVIEW_OUTCOME_MEANINGS)
      .meta({
        description:
          'Outcome that the partner recorded. Absent if there is none yet. It makes no claim about authorship or rights.',
      })
      .exactOptional(),
    createdAt: timestampSchema.meta({ description: 'Creation time, in unix seconds.' }),
    updatedAt: timestampSchema.meta({ description: 'Time of the last change, in unix seconds.' }),
    resolvedAt: timestampSchema
      .meta({ description: 'When the outcome was recorded, in unix seconds. Absent if there is none yet.' })
      .exactOptional(),
    expiresAt: timestampSchema.meta({
      description:
        'When the case ends, in unix seconds: 180 days after its creation. This time never changes. After this time, every call for the case is 404.',
    }),
    evidenceRequests: z
      .array(evidenceRequestSchema)
      .max(EVIDENCE_KINDS.length)
      .meta({ description: 'Evidence requests, oldest first.' }),
  })
  .meta({
    id: 'PartnerReviewCase',
    examples: [
      CASE,
      {
        ...CASE,
        status: 'resolved',
        outcome: 'accepted',
        resolvedAt: 1_767_312_000,
        updatedAt: 1_767_312_000,
        evidenceRequests: [
          {
            requestId: 'req_01JZ7Q4W8YB2M6R9T3V5X7Z1A2',
            kind: 'source_evidence',
            status: 'accepted',
            responseReference: 'evidence/2026/0117-3',
            createdAt: 1_767_229_200,
            updatedAt: 1_767_308_400,
          },
        ],
      },
    ],
  });

export const reviewPageSchema = z
  .object({
    reviews: z.array(reviewCaseSchema).meta({ description: 'Cases of the page, newest first.' }),
    nextCursor: cursorSchema
      .meta({
        description:
          'Cursor of the next page. Absent on the last page. Even an empty page may have a cursor.',
      })
      .exactOptional(),
  })
  .meta({ id: 'ReviewPage', examples: [{ reviews: [CASE] }, { reviews: [], nextCursor: 'b3BhcXVl' }] });

/** A review as the operator reads it. */
export const partnerReviewSchema = z
  .object({
    partnerId: identifierSchema.meta({ description: 'Id of the partner that opened the case.' }),
    ...reviewCaseSchema.shape,
  })
  .meta({ id: 'OperatorReviewCase', examples: [{ partnerId: 'ptr_01JZ7Q4W8YB2M6R9T3V5X7Z1A2', ...CASE }] });
