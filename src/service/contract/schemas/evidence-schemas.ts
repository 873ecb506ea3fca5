import { z } from 'zod';
import {
  BINDING_STATUS,
  DIMENSIONS,
  type Dimension,
  EXCLUSIVE_ROLES,
  MAX_DECLARATIONS,
  SURVEY,
  type SurveyAnswers,
} from '../../../witness/domain/declaration.js';
import { EVIDENCE_CODES } from '../../../witness/domain/evidence-codes.js';
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
  declaredOrigin: 'Origin of the material, as declared by the creator.',
  aiShareBand: 'Share of generated material, as declared by the creator.',
  manualWork: 'Amount of manual work, as declared by the creator.',
  contributionBand: "Size of the creator's own contribution, as declared by the creator.",
  disputedAssessment: 'Whether the creator disputes an assessment of the track.',
};

/** The answers of a request. Only the words of the survey are accepted (rule 9.12). */
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
    .refine((words) => new Set(words).size === words.length, 'must not name a role twice')
    .refine(
      (words) => words.length === 1 || !EXCLUSIVE_ROLES.some((word) => words.includes(word)),
      'must not combine none or undisclosed with any other role',
    )
    .meta({
      uniqueItems: true,
      description:
        'Roles in which generated material was used. `none` and `undisclosed` cannot be combined with other roles.',
    })
    .exactOptional(),
};

/** The answers of a response. Later versions may add dimensions and words. */
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
    .meta({ description: 'Roles in which generated material was used, as declared by the creator.' })
    .exactOptional(),
};

const submission = {
  surveyVersion: identifierSchema.meta({ description: 'Version of the survey that was answered.' }),
  submissionId: identifierSchema.meta({ description: 'Id of the submission that the answers belong to.' }),
  subject: identifierSchema.meta({
    description: 'Opaque id of the person or thing that the answers are about. Never a name.',
  }),
  submittedAt: timestampSchema.meta({
    description: "When the survey was submitted, in unix seconds by the survey's clock.",
  }),
};

/**
 * The request to record a declaration (rule 9.13). All texts are identifiers, so it cannot carry free text.
 */
export const declareSchema = z
  .strictObject({
    ...submission,
    answers: z
      .strictObject(answers)
      .refine((given) => Object.keys(given).length > 0, 'must answer at least one dimension')
      .meta({ minProperties: 1, description: 'The answers. At least one is required.' }),
  })
  .meta({ id: 'Declare', examples: [DECLARATION] });

const envelope = {
  ...submission,
  answers: z.object(reportedAnswers).meta({ description: 'The answers. There is at least one.' }),
  recordedAt: timestampSchema.meta({
    description: "When the service recorded the declaration, in unix seconds by the service's clock.",
  }),
  bindingStatus: knownWords([BINDING_STATUS]).meta({
    description:
      'States that the declaration was recorded after the proof was issued. The signature of the proof does not cover the declaration.',
  }),
};

/** The raw answers of a creator in an authenticated envelope (rule 9.13). */
export const declarationSchema = z.object(envelope).meta({ id: 'Declaration', examples: [ENVELOPE] });

/** The declarations for the operator. A record that was altered in the store is shown as not authentic. */
export const declarationListSchema = z
  .object({
    declarations: z
      .array(
        z.object({
          ...envelope,
          authentic: z.boolean().meta({ description: 'False if the record was altered in the store.' }),
        }),
      )
      .max(MAX_DECLARATIONS)
      .meta({ description: 'Declarations, in the order in which they were recorded.' }),
  })
  .meta({
    id: 'DeclarationList',
    examples: [{ declarations: [{ ...ENVELOPE, authentic: true }] }, { declarations: [] }],
  });

/** The schema of a fact of the report (rule 9.8). */
const factSchema = z
  .object({
    code: z.string().meta({
      description:
        'Stable slug of the fact. If you do not know a code, show the code itself. `x-codes` lists the meaning of each known code.',
      [KNOWN_VALUES]: EVIDENCE_CODES.map(({ code }) => code),
      'x-codes': EVIDENCE_CODES,
    }),
    contentClass: describedWords(CONTENT_CLASS_MEANINGS).meta({
      description: 'Whether the fact is an observation, an inference, a declaration, a conflict or a gap.',
    }),
    status: describedWords(FACT_STATUS_MEANINGS).meta({
      description:
        'How the fact is known. `decision.status` states whether the report needs a human decision.',
    }),
    dimension: knownWords(DIMENSIONS as [Dimension, ...Dimension[]])
      .meta({ description: 'Survey question that the declaration answers.' })
      .exactOptional(),
    answer: z
      .string()
      .meta({
        description: "The creator's answer, favourable or adverse. Several words are joined by commas.",
      })
      .exactOptional(),
    submissionId: identifierSchema
      .meta({ description: 'Id of the submission that the answer belongs to.' })
      .exactOptional(),
    ruleVersion: z
      .int()
      .min(1)
      .meta({ description: 'Version of the rule that inferred the fact.' })
      .exactOptional(),
    values: z
      .record(z.string(), z.union([z.number(), z.string()]))
      .meta({
        description:
          'Named values that support the fact: numbers or words. The meaning of each code in `x-codes` lists the names. A value `ratio` is a probability from 0 to 1, never a share of the timeline.',
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

/** The schema of the evidence report, which never changes the verdict (rule 9.6). */
export const evidenceReportSchema = z
  .object({
    version: z.int().min(1).meta({
      description: 'Version of the layout. It increases with each change that a reader must handle.',
    }),
    facts: z.array(factSchema).meta({
      description:
        'Observations, inferences and declarations. Each answered question of each submission is one fact with the code `creator_declaration`. If no survey was answered, the report has one such fact with the status `none_recorded`.',
    }),
    conflicts: z
      .array(factSchema)
      .meta({ description: 'Observations and declarations that contradict each other.' }),
    unverifiable: z
      .array(factSchema)
      .meta({ description: 'Coverage gaps. Each states something that cannot be verified.' }),
    declarations: z
      .array(declarationSchema)
      .meta({ description: 'Submitted surveys with their answers, oldest first.' }),
    engine: z
      .object({
        facts: z
          .int()
          .min(1)
          .meta({ description: 'Version of the engine that derived the facts of the trace at issuing.' })
          .exactOptional(),
        overlay: z.int().min(1).meta({
          description: 'Version of the engine that last derived conflicts and inferences from declarations.',
        }),
        revision: z
          .int()
          .min(0)
          .meta({ description: 'Number of times that declarations or consents were changed after issuing.' }),
      })
      .meta({
        description:
          'Versions of the rule engine that produced the report. Two copies of the report that have the same versions and the same `revision` have the same content, unless stored facts were damaged (`evidence_facts_altered`).',
      })
      .exactOptional(),
    session: sessionSchema.exactOptional(),
    importedSources: z
      .array(importedSourceSchema)
      .meta({ description: 'Observed imports, in the order of import. A long list is shortened.' })
      .exactOptional(),
    importedSourceCount: z
      .int()
      .min(0)
      .meta({ description: 'Number of all observed imports, including imports that the list omits.' })
      .exactOptional(),
    sourceDetail: sourceDetailSchema
      .meta({ description: "Structure of the arrangement. Present only with the creator's consent." })
      .exactOptional(),
  })
  .meta({
    id: 'EvidenceReport',
    description:
      'For information only: the report never changes the verdict. Proofs that were imported from an earlier registry have no report. If the report is absent, source evidence is not available.',
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

/** The counts of a report, in the decision and in lists (rule 9.5). */
export const evidenceCountsSchema = z
  .object({
    declarations: z.int().min(0).meta({ description: 'Number of answers that creators declared.' }),
    conflicts: z.int().min(0).meta({ description: 'Number of conflicts.' }),
    unverifiable: z.int().min(0).meta({ description: 'Number of coverage gaps.' }),
  })
  .meta({ description: 'Counts of the evidence report. All are 0 without a report.' });

/** The summary of a report in a list's entry (rule 9.30). */
export const evidenceSummarySchema = z
  .object({
    status: describedWords(SUMMARY_STATUS_MEANINGS).meta({
      description: 'Whether the report needs a human decision.',
    }),
    counts: evidenceCountsSchema,
    codes: z.array(z.string()).meta({ description: 'Codes of the facts in the report, without repetition.' }),
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
