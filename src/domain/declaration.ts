/**
 * Declarations: answers of a creator to the survey about an issued proof (rules 9.12 to 9.15). Closed words
 * and opaque identifiers only; no names and no free text.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';

/**
 * Dimensions of the survey (rule 9.12), and the words that each can be answered with. Favourable and adverse
 * words stand side by side, and `undisclosed` is an answer: to a question that was put and not answered.
 */
export const SURVEY = {
  declaredOrigin: [
    'from_scratch',
    'own_material',
    'third_party_material',
    'generated_material',
    'undisclosed',
  ],
  aiShareBand: [
    'none',
    'under_quarter',
    'quarter_to_half',
    'half_to_three_quarters',
    'over_three_quarters',
    'undisclosed',
  ],
  manualWork: ['none', 'some', 'substantial', 'entire', 'undisclosed'],
  contributionBand: ['all_self_made', 'majority_self_made', 'shared', 'minority_self_made', 'undisclosed'],
  disputedAssessment: ['not_disputed', 'disputed'],
  /** Roles in which generated material was used: the one question with several answers. */
  aiRoles: [
    'lyrics',
    'composition',
    'vocals',
    'instruments',
    'production',
    'artwork',
    'video',
    'none',
    'undisclosed',
  ],
} as const;
export type Dimension = keyof typeof SURVEY;
/** Dimension that is answered by one or more words, each once. */
export type ManifoldDimension = 'aiRoles';
/** Words of `aiRoles` that stand alone. */
export const EXCLUSIVE_ROLES = ['none', 'undisclosed'] as const;
export type SurveyAnswers = {
  readonly [Name in Dimension]?: Name extends ManifoldDimension
    ? readonly (typeof SURVEY)[Name][number][]
    : (typeof SURVEY)[Name][number];
};

export const DIMENSIONS = Object.keys(SURVEY) as readonly Dimension[];

/** Most declarations of a proof. They lie in the proof's row, which every verification of the proof reads. */
export const MAX_DECLARATIONS = 32;

/** Seconds by which the survey's clock may be ahead of the service's. */
export const SUBMISSION_SKEW_SECONDS = 300;

/** A submission of the survey. */
export interface Declaration {
  /** Edition of the survey that was asked; opaque. */
  readonly surveyVersion: string;
  /** Id of the submission; opaque, and unique on its proof. */
  readonly submissionId: string;
  /** Person or thing that the answers are about; opaque, never a name or an e-mail address. */
  readonly subject: string;
  /** Unix seconds, by the survey's clock. */
  readonly submittedAt: number;
  /** Answers, at least one. */
  readonly answers: SurveyAnswers;
}

/** Declaration as it lies in the proof's row. */
export interface StoredDeclaration extends Declaration {
  /** Unix seconds, by the service's clock. */
  readonly recordedAt: number;
  /**
   * HMAC-SHA-256 over the proof's id and all other members, lower-case hex: a row that was edited in the
   * store is noticed.
   */
  readonly mac: string;
}

/**
 * Binding status of every declaration: recorded after issuing, and no part of what the proof's signature
 * covers (rule 9.14).
 */
export const BINDING_STATUS = 'authenticated_post_issuance_record';

/** Raw answers as they are reported (rule 9.13). */
export interface DeclarationEnvelope extends Declaration {
  readonly recordedAt: number;
  readonly bindingStatus: typeof BINDING_STATUS;
}

/** Signs a submission for one proof. */
export function sealDeclaration(
  key: Uint8Array,
  proofId: string,
  declaration: Declaration,
  recordedAt: number,
): StoredDeclaration {
  const sealed = { ...contentOf(declaration), recordedAt };
  return { ...sealed, mac: declarationMac(key, proofId, sealed) };
}

/**
 * Tells whether the declaration was sealed for the proof.
 * @param keys every secret that may have sealed it
 */
export function isAuthentic(
  keys: readonly Uint8Array[],
  proofId: string,
  stored: StoredDeclaration,
): boolean {
  const mac = Buffer.from(stored.mac, 'hex');
  return (
    mac.length === 32 &&
    keys.some((key) => timingSafeEqual(mac, Buffer.from(declarationMac(key, proofId, stored), 'hex')))
  );
}

export function envelopeOf(stored: StoredDeclaration): DeclarationEnvelope {
  return { ...contentOf(stored), recordedAt: stored.recordedAt, bindingStatus: BINDING_STATUS };
}

export type DeclarationStep =
  | { readonly outcome: 'recorded'; readonly declarations: readonly StoredDeclaration[] }
  /** The same submission came before; `declaration` is what was stored. */
  | { readonly outcome: 'already_recorded'; readonly declaration: StoredDeclaration }
  | { readonly outcome: 'refused'; readonly reason: 'submission_id_reused' | 'declarations_full' };

/**
 * Adds a declaration once for a submission id: the same again changes nothing, and other content is refused
 * (rule 9.15). For a store's atomic step.
 */
export function addDeclaration(
  known: readonly StoredDeclaration[],
  declaration: StoredDeclaration,
): DeclarationStep {
  const earlier = known.find(({ submissionId }) => submissionId === declaration.submissionId);
  if (earlier !== undefined)
    return sameContent(earlier, declaration)
      ? { outcome: 'already_recorded', declaration: earlier }
      : { outcome: 'refused', reason: 'submission_id_reused' };
  if (known.length >= MAX_DECLARATIONS) return { outcome: 'refused', reason: 'declarations_full' };
  return { outcome: 'recorded', declarations: [...known, declaration] };
}

/** Words of an answer, several of them each once and in the survey's order. */
export function answerWords(dimension: Dimension, answers: SurveyAnswers): readonly string[] {
  const answer: string | readonly string[] | undefined = answers[dimension];
  if (answer === undefined) return [];
  if (typeof answer === 'string') return [answer];
  const survey: readonly string[] = SURVEY[dimension];
  return [...new Set(answer)].sort((one, other) => survey.indexOf(one) - survey.indexOf(other));
}

/** Content of a submission and nothing else, in one order of members. */
function contentOf({ surveyVersion, submissionId, subject, submittedAt, answers }: Declaration): Declaration {
  const given = DIMENSIONS.filter((dimension) => answers[dimension] !== undefined);
  return {
    surveyVersion,
    submissionId,
    subject,
    submittedAt,
    answers: Object.fromEntries(
      given.map((dimension) => [
        dimension,
        Array.isArray(answers[dimension]) ? answerWords(dimension, answers) : answers[dimension],
      ]),
    ),
  };
}

function sameContent(one: Declaration, other: Declaration): boolean {
  return JSON.stringify(contentOf(one)) === JSON.stringify(contentOf(other));
}

function declarationMac(
  key: Uint8Array,
  proofId: string,
  declaration: Omit<StoredDeclaration, 'mac'>,
): string {
  return createHmac('sha256', key)
    .update(JSON.stringify(['takemark declaration', proofId, contentOf(declaration), declaration.recordedAt]))
    .digest('hex');
}
