import { z } from 'zod';
import {
  BINDING_STATUS,
  type Dimension,
  MAX_DECLARATIONS,
  SURVEY,
  type SurveyAnswers,
} from '../../domain/declaration.js';
import { CONTENT_CLASSES, FACT_STATUSES } from '../../domain/evidence-report.js';
import { identifierSchema, timestampSchema } from '../primitives.js';

const ANSWERS = {
  declaredOrigin: 'from_scratch',
  aiShareBand: 'none',
  disputedAssessment: 'not_disputed',
} as const satisfies SurveyAnswers;
const DECLARATION = {
  surveyVersion: '2026-01',
  submissionId: 'sub_4711',
  subject: 'creator_1',
  submittedAt: 1_767_229_200,
  answers: ANSWERS,
};
const ENVELOPE = { ...DECLARATION, recordedAt: 1_767_229_260, bindingStatus: BINDING_STATUS };

const dimensionSchema = z.enum(Object.keys(SURVEY) as [Dimension, ...Dimension[]]);

const answers = {
  declaredOrigin: z.enum(SURVEY.declaredOrigin).exactOptional(),
  aiShareBand: z.enum(SURVEY.aiShareBand).exactOptional(),
  manualWork: z.enum(SURVEY.manualWork).exactOptional(),
  contributionBand: z.enum(SURVEY.contributionBand).exactOptional(),
  disputedAssessment: z.enum(SURVEY.disputedAssessment).exactOptional(),
};

/** Members of an envelope (rule 9.13): identifiers throughout, so that no free text can travel in them. */
export const declareSchema = z
  .strictObject({
    surveyVersion: identifierSchema,
    submissionId: identifierSchema,
    subject: identifierSchema,
    submittedAt: timestampSchema,
    answers: z
      .strictObject(answers)
      .refine((given) => Object.keys(given).length > 0, 'at least one dimension is answered')
      .meta({ minProperties: 1 }),
  })
  .meta({ id: 'Declare', examples: [DECLARATION] });

const envelope = {
  surveyVersion: identifierSchema,
  submissionId: identifierSchema,
  subject: identifierSchema,
  submittedAt: timestampSchema,
  answers: z.object(answers),
  recordedAt: timestampSchema,
  bindingStatus: z
    .literal(BINDING_STATUS)
    .meta({ description: 'Recorded after issuance, not part of the original proof signature.' }),
};

/** Raw answers of a creator in an authenticated envelope (rule 9.13). */
export const declarationSchema = z.object(envelope).meta({ id: 'Declaration', examples: [ENVELOPE] });

/** Declarations for the operator's side: a record that was altered in the store is shown as not authentic. */
export const declarationListSchema = z
  .object({ declarations: z.array(z.object({ ...envelope, authentic: z.boolean() })).max(MAX_DECLARATIONS) })
  .meta({
    id: 'DeclarationList',
    examples: [{ declarations: [{ ...ENVELOPE, authentic: true }] }, { declarations: [] }],
  });

/** A fact of the report (rule 9.8). */
const factSchema = z
  .object({
    code: z.string().meta({ description: 'Stable slug. One that you do not know is rendered as it is.' }),
    contentClass: z.enum(CONTENT_CLASSES),
    status: z.enum(FACT_STATUSES).meta({ description: '`needs_review` asks for a human decision.' }),
    dimension: dimensionSchema.exactOptional(),
    answer: z
      .string()
      .meta({ description: 'Declarations of the creator; favourable and adverse answers alike.' })
      .exactOptional(),
    submissionId: identifierSchema.exactOptional(),
  })
  .meta({ id: 'EvidenceFact' });

const fact = (dimension: Dimension, answer: string) => ({
  code: 'creator_declaration',
  contentClass: 'creator_declaration',
  status: 'declared',
  dimension,
  answer,
  submissionId: DECLARATION.submissionId,
});

/** The evidence report, which changes no verdict (rule 9.6). */
export const evidenceReportSchema = z
  .looseObject({
    version: z.literal(1),
    facts: z
      .array(factSchema)
      .meta({ description: 'A `creator_declaration` for each answered dimension of each submission.' }),
    conflicts: z.array(factSchema),
    unverifiable: z.array(factSchema).meta({ description: 'Coverage gaps: what nobody witnessed.' }),
    declarations: z.array(declarationSchema),
  })
  .meta({
    id: 'EvidenceReport',
    description:
      'Report-only; absent where nothing was declared, which is to be read as unavailable source evidence.',
    examples: [
      {
        version: 1,
        facts: Object.entries(ANSWERS).map(([dimension, answer]) => fact(dimension as Dimension, answer)),
        conflicts: [],
        unverifiable: [
          {
            code: 'session_evidence_unavailable',
            contentClass: 'unverifiable_coverage_gap',
            status: 'unverifiable',
          },
          {
            code: 'rule_inference_unavailable',
            contentClass: 'unverifiable_coverage_gap',
            status: 'unverifiable',
          },
        ],
        declarations: [ENVELOPE],
      },
    ],
  });
