/**
 * What a creator answered to the survey about an issued proof. Closed words and opaque identifiers only: "the
 * service stores workflow state and bounded opaque references only, never source files, licences, creator
 * names or free-form notes".
 */
import { createHmac, timingSafeEqual } from 'node:crypto';

/**
 * The survey's dimensions, as the contract names them: "declared origin, AI share band, manual work,
 * contribution band, disputed assessment", and the words that each can be answered with. Favourable and
 * adverse ones stand side by side, and `undisclosed` is an answer: a question that was put and not answered.
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
} as const;
export type Dimension = keyof typeof SURVEY;
export type SurveyAnswers = { readonly [Name in Dimension]?: (typeof SURVEY)[Name][number] };

export const DIMENSIONS = Object.keys(SURVEY) as readonly Dimension[];

/** Bounds the proof's row, which every verification of the proof reads. */
export const MAX_DECLARATIONS = 32;

/** How far the survey's clock may be ahead of the service's. */
export const SUBMISSION_SKEW_SECONDS = 300;

/** One submission of the survey. */
export interface Declaration {
  /** Opaque: which edition of the survey was asked. */
  readonly surveyVersion: string;
  /** Opaque; one for each submission on a proof. */
  readonly submissionId: string;
  /** Opaque: whom or what the answers are about. Never a name or an e-mail address. */
  readonly subject: string;
  /** Unix seconds, by the survey's clock. */
  readonly submittedAt: number;
  /** At least one. */
  readonly answers: SurveyAnswers;
}

/** As it lies in the proof's row. */
export interface StoredDeclaration extends Declaration {
  /** Unix seconds, by the service's clock. */
  readonly recordedAt: number;
  /**
   * HMAC-SHA-256 over the proof's id and all of the above, lower-case hex: a row that was edited in the store
   * is noticed.
   */
  readonly mac: string;
}

/** "Recorded after issuance, not part of the original proof signature." */
export const BINDING_STATUS = 'authenticated_post_issuance_record';

/**
 * "Creator's raw survey answers as authenticated envelopes carrying survey version, submission time,
 * submission id, subject and a binding status."
 */
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

/** @param keys every secret that may have signed it */
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
  /** The same submission came before; this is what was stored of it. */
  | { readonly outcome: 'already_recorded'; readonly declaration: StoredDeclaration }
  | { readonly outcome: 'refused'; readonly reason: 'submission_id_reused' | 'declarations_full' };

/**
 * Once for a submission id: said again it changes nothing, and with other content it is refused. For a
 * store's atomic step.
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

/** What was said, and nothing else, in one order of members. */
function contentOf({ surveyVersion, submissionId, subject, submittedAt, answers }: Declaration): Declaration {
  const given = DIMENSIONS.filter((dimension) => answers[dimension] !== undefined);
  return {
    surveyVersion,
    submissionId,
    subject,
    submittedAt,
    answers: Object.fromEntries(given.map((dimension) => [dimension, answers[dimension]])),
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
