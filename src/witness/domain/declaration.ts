/**
 * Declarations: a creator's answers to the survey about an issued proof (rules 9.12 to 9.15). They contain
 * only closed words and opaque identifiers, no names and no free text.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';

/**
 * The dimensions of the survey (rule 9.12), and the words that answer each dimension. Favourable and adverse
 * words have equal rank. `undisclosed` is an answer too: the question was asked and the creator did not
 * disclose.
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
  /** The roles in which generated material was used. This is the only question with several answers. */
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
/** A dimension that is answered by one or more words, each once. */
export type ManifoldDimension = 'aiRoles';
/** The words of `aiRoles` that cannot be combined with other words. */
export const EXCLUSIVE_ROLES = ['none', 'undisclosed'] as const;
export type SurveyAnswers = {
  readonly [Name in Dimension]?: Name extends ManifoldDimension
    ? readonly (typeof SURVEY)[Name][number][]
    : (typeof SURVEY)[Name][number];
};

export const DIMENSIONS = Object.keys(SURVEY) as readonly Dimension[];

/** The most declarations of a proof. They are stored in the proof's row, which every verification reads. */
export const MAX_DECLARATIONS = 32;

/** The most seconds that the survey's clock may be ahead of the service's clock. */
export const SUBMISSION_SKEW_SECONDS = 300;

/** A submission of the survey. */
export interface Declaration {
  /** The version of the survey. It is opaque. */
  readonly surveyVersion: string;
  /** The id of the submission. It is opaque, and unique for its proof. */
  readonly submissionId: string;
  /** The opaque id of the person or thing that the answers are about, never a name or an e-mail address. */
  readonly subject: string;
  /** The time of submission in unix seconds, by the survey's clock. */
  readonly submittedAt: number;
  /** The answers, at least one. */
  readonly answers: SurveyAnswers;
}

/** A declaration as stored in the proof's row. */
export interface StoredDeclaration extends Declaration {
  /** The time of recording in unix seconds, by the service's clock. */
  readonly recordedAt: number;
  /**
   * The HMAC-SHA-256 over the proof's id and all other members, in lower-case hex. It reveals a row that was
   * edited in the store.
   */
  readonly mac: string;
}

/**
 * The binding status of every declaration: recorded after issuing and not covered by the proof's signature
 * (rule 9.14).
 */
export const BINDING_STATUS = 'authenticated_post_issuance_record';

/** The raw answers as reported (rule 9.13). */
export interface DeclarationEnvelope extends Declaration {
  readonly recordedAt: number;
  readonly bindingStatus: typeof BINDING_STATUS;
}

/** Returns the submission with a MAC for one proof. */
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
 * Returns whether the declaration was sealed for the proof.
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
  /** The same submission was recorded earlier. `declaration` is the stored declaration. */
  | { readonly outcome: 'already_recorded'; readonly declaration: StoredDeclaration }
  | { readonly outcome: 'refused'; readonly reason: 'submission_id_reused' | 'declarations_full' };

/**
 * Adds a declaration, once per submission id. A repeat changes nothing, and different content is refused
 * (rule 9.15). Stores call this inside an atomic step.
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

/** Returns the words of an answer, each once and in the survey's order. */
export function answerWords(dimension: Dimension, answers: SurveyAnswers): readonly string[] {
  const answer: string | readonly string[] | undefined = answers[dimension];
  if (answer === undefined) return [];
  if (typeof answer === 'string') return [answer];
  const survey: readonly string[] = SURVEY[dimension];
  return [...new Set(answer)].sort((one, other) => survey.indexOf(one) - survey.indexOf(other));
}

/** Returns only the content of a submission, with a fixed order of members. */
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
