import { z } from 'zod';
import {
  BINDING_STATUS,
  DIMENSIONS,
  type Dimension,
  EXCLUSIVE_ROLES,
  MAX_DECLARATIONS,
  SURVEY,
  type SurveyAnswers,
} from '../../domain/declaration.js';
import { EVIDENCE_CODES } from '../../domain/evidence-codes.js';
import {
  CONTENT_CLASS_MEANINGS,
  FACT_STATUS_MEANINGS,
  SUMMARY_STATUS_MEANINGS,
} from '../../domain/reference/values.js';
import {
  describedWords,
  identifierSchema,
  KNOWN_VALUES,
  knownWords,
  timestampSchema,
} from '../primitives.js';
import { importedSourceSchema, sessionSchema, sourceDetailSchema } from './session-schemas.js';

const ANSWERS = {
  declaredOrigin: 'from_scratch',
  aiShareBand: 'none',
  disputedAssessment: 'not_disputed',
  aiRoles: ['none'],
} as const satisfies SurveyAnswers;
const DECLARATION = {
  surveyVersion: '2026-01',
  submissionId: 'sub_4711',
  subject: 'creator_1',
  submittedAt: 1_767_229_200,
  answers: ANSWERS,
};
const ENVELOPE = { ...DECLARATION, recordedAt: 1_767_229_260, bindingStatus: BINDING_STATUS };

const SURVEY_DIMENSIONS = {
  declaredOrigin: 'Where the material came from, as the creator says.',
  aiShareBand: 'Share of generated material, as the creator says.',
  manualWork: 'Work by hand, as the creator says.',
  contributionBand: "The creator's own part of the work, as the creator says.",
  disputedAssessment: 'Whether the creator disputes an assessment of the track.',
};

/** Answers as the survey takes them: closed words (rule 9.12). */
const answers = {
  declaredOrigin: z
    .enum(SURVEY.declaredOrigin)
    .meta({ description: SURVEY_DIMENSIONS.declaredOrigin })
    .exactOptional(),
  aiShareBand: z
    .enum(SURVEY.aiShareBand)
    .meta({ description: SURVEY_DIMENSIONS.aiShareBand })
    .exactOptional(),
  manualWork: z.enum(SURVEY.manualWork).meta({ description: SURVEY_DIMENSIONS.manualWork }).exactOptional(),
  contributionBand: z
    .enum(SURVEY.contributionBand)
    .meta({ description: SURVEY_DIMENSIONS.contributionBand })
    .exactOptional(),
  disputedAssessment: z
    .enum(SURVEY.disputedAssessment)
    .meta({ description: SURVEY_DIMENSIONS.disputedAssessment })
    .exactOptional(),
  aiRoles: z
    .array(z.enum(SURVEY.aiRoles))
    .min(1)
    .max(SURVEY.aiRoles.length)
    .refine((words) => new Set(words).size === words.length, 'must name a role once')
    .refine(
      (words) => words.length === 1 || !EXCLUSIVE_ROLES.some((word) => words.includes(word)),
      'must have none and undisclosed alone',
    )
    .meta({ uniqueItems: true, description: '`none` and `undisclosed` stand alone.' })
    .exactOptional(),
};

/** Answers as they are reported: dimensions and words may be added. */
const reportedAnswers = {
  declaredOrigin: knownWords(SURVEY.declaredOrigin)
    .meta({ description: SURVEY_DIMENSIONS.declaredOrigin })
    .exactOptional(),
  aiShareBand: knownWords(SURVEY.aiShareBand)
    .meta({ description: SURVEY_DIMENSIONS.aiShareBand })
    .exactOptional(),
  manualWork: knownWords(SURVEY.manualWork)
    .meta({ description: SURVEY_DIMENSIONS.manualWork })
    .exactOptional(),
  contributionBand: knownWords(SURVEY.contributionBand)
    .meta({ description: SURVEY_DIMENSIONS.contributionBand })
    .exactOptional(),
  disputedAssessment: knownWords(SURVEY.disputedAssessment)
    .meta({ description: SURVEY_DIMENSIONS.disputedAssessment })
    .exactOptional(),
  aiRoles: z
    .array(knownWords(SURVEY.aiRoles))
    .meta({ description: 'Roles in which generated material was used, as the creator says.' })
    .exactOptional(),
};

const submission = {
  surveyVersion: identifierSchema.meta({ description: 'Edition of the survey that was asked.' }),
  submissionId: identifierSchema.meta({ description: 'Submission that the answers belong to.' }),
  subject: identifierSchema.meta({ description: 'Who or what the answers are about; opaque, never a name.' }),
  submittedAt: timestampSchema.meta({ description: "Unix seconds, by the survey's clock." }),
};

/** Members of an envelope (rule 9.13): identifiers throughout, so that no free text can travel in them. */
export const declareSchema = z
  .strictObject({
    ...submission,
    answers: z
      .strictObject(answers)
      .refine((given) => Object.keys(given).length > 0, 'must answer at least one dimension')
      .meta({ minProperties: 1, description: 'Answers, at least one.' }),
  })
  .meta({ id: 'Declare', examples: [DECLARATION] });

const envelope = {
  ...submission,
  answers: z.object(reportedAnswers).meta({ description: 'Answers, at least one.' }),
  recordedAt: timestampSchema.meta({ description: "Unix seconds, by the service's clock." }),
  bindingStatus: knownWords([BINDING_STATUS]).meta({
    description: 'Recorded after issuance, not part of the original proof signature.',
  }),
};

/** Raw answers of a creator in an authenticated envelope (rule 9.13). */
export const declarationSchema = z.object(envelope).meta({ id: 'Declaration', examples: [ENVELOPE] });

/** Declarations for the operator's side: a record that was altered in the store is shown as not authentic. */
export const declarationListSchema = z
  .object({
    declarations: z
      .array(
        z.object({
          ...envelope,
          authentic: z.boolean().meta({ description: 'False where the record was altered in the store.' }),
        }),
      )
      .max(MAX_DECLARATIONS)
      .meta({ description: 'Declarations, in the order of recording.' }),
  })
  .meta({
    id: 'DeclarationList',
    examples: [{ declarations: [{ ...ENVELOPE, authentic: true }] }, { declarations: [] }],
  });

/** A fact of the report (rule 9.8). */
const factSchema = z
  .object({
    code: z.string().meta({
      description:
        'Stable slug. One that you do not know is rendered as it is. `x-codes` has the meaning of those known today.',
      [KNOWN_VALUES]: EVIDENCE_CODES.map(({ code }) => code),
      'x-codes': EVIDENCE_CODES,
    }),
    contentClass: describedWords(CONTENT_CLASS_MEANINGS).meta({ description: 'Kind of statement.' }),
    status: describedWords(FACT_STATUS_MEANINGS).meta({
      description: 'How it is known. Whether the report asks for a person at all is in `decision.status`.',
    }),
    dimension: knownWords(DIMENSIONS as [Dimension, ...Dimension[]])
      .meta({ description: 'Question of the survey that a declaration answers.' })
      .exactOptional(),
    answer: z
      .string()
      .meta({
        description:
          'Declarations of the creator; favourable and adverse answers alike. Several words are joined by commas.',
      })
      .exactOptional(),
    submissionId: identifierSchema
      .meta({ description: 'Submission that the answer belongs to.' })
      .exactOptional(),
    ruleVersion: z
      .int()
      .min(1)
      .meta({ description: 'Version of the rule that concluded the fact.' })
      .exactOptional(),
    values: z
      .record(z.string(), z.union([z.number(), z.string()]))
      .meta({
        description:
          'What the fact rests on, by name: counts, seconds, words; of a reconciliation both sides. A probability is a ratio from 0 to 1 and never a share of the timeline.',
      })
      .exactOptional(),
  })
  .meta({ id: 'EvidenceFact' });

const fact = (dimension: Dimension, answer: string | readonly string[]) => ({
  code: 'creator_declaration',
  contentClass: 'creator_declaration',
  status: 'declared',
  dimension,
  answer: [answer].flat().join(','),
  submissionId: DECLARATION.submissionId,
});

/** The evidence report, which changes no verdict (rule 9.6). */
export const evidenceReportSchema = z
  .object({
    version: z.int().min(1).meta({ description: 'Version of the layout; it rises when a reader must know.' }),
    facts: z.array(factSchema).meta({
      description:
        'Observations, inferences and declarations: a `creator_declaration` for each answered dimension of each submission, or one with the status `none_recorded`.',
    }),
    conflicts: z
      .array(factSchema)
      .meta({ description: 'What was witnessed or declared and does not go together.' }),
    unverifiable: z.array(factSchema).meta({ description: 'Coverage gaps: what nobody witnessed.' }),
    declarations: z.array(declarationSchema).meta({ description: 'Raw answers, oldest first.' }),
    engine: z
      .object({
        facts: z
          .int()
          .min(1)
          .meta({ description: 'Engine that settled the facts of the trace at issuing.' })
          .exactOptional(),
        overlay: z
          .int()
          .min(1)
          .meta({ description: 'Engine that last concluded conflicts and inferences from declarations.' }),
        revision: z.int().min(0).meta({ description: 'Rises with each change after issuing.' }),
      })
      .meta({ description: 'Versions of the engine behind the report; nothing is made anew in silence.' })
      .exactOptional(),
    session: sessionSchema.exactOptional(),
    importedSources: z
      .array(importedSourceSchema)
      .meta({ description: 'Witnessed imports, in the order of import; long lists are cut.' })
      .exactOptional(),
    importedSourceCount: z
      .int()
      .min(0)
      .meta({ description: 'Count of all witnessed imports, those included that the list leaves out.' })
      .exactOptional(),
    sourceDetail: sourceDetailSchema
      .meta({ description: "Structure of the arrangement, under the creator's consent." })
      .exactOptional(),
  })
  .meta({
    id: 'EvidenceReport',
    description:
      'Report-only. Absent on older proofs that were imported, which is to be read as unavailable source evidence.',
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

/** Counts of a report, in the decision and in lists (rule 9.5). */
export const evidenceCountsSchema = z
  .object({
    declarations: z.int().min(0).meta({ description: 'Answers that creators declared.' }),
    conflicts: z.int().min(0).meta({ description: 'Conflicts.' }),
    unverifiable: z.int().min(0).meta({ description: 'Gaps that nothing can verify.' }),
  })
  .meta({ description: 'Counts of the evidence report; zeros without one.' });

/** Summary of a report in a list's entry (rule 9.30). */
export const evidenceSummarySchema = z
  .object({
    status: describedWords(SUMMARY_STATUS_MEANINGS).meta({ description: 'Outcome of the report.' }),
    counts: evidenceCountsSchema,
    codes: z.array(z.string()).meta({ description: 'Codes of the report, each once.' }),
  })
  .meta({
    id: 'EvidenceSummary',
    examples: [
      {
        status: 'none_recorded',
        counts: { declarations: 0, conflicts: 0, unverifiable: 2 },
        codes: ['rule_inference_unavailable', 'session_evidence_unavailable'],
      },
    ],
  });
