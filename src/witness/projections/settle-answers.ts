import type { DeclarationEnvelope } from '../domain/declaration.js';
import type { EvidenceFact, EvidenceReport } from '../domain/evidence-report.js';

/** A place in the report that a member is based on. */
export type ProjectionSource =
  | {
      readonly kind: 'declaration';
      readonly submissionId: string;
      readonly dimension: string;
      /** The answer as given. Several words of one answer are joined by commas. */
      readonly answer: string;
    }
  | { readonly kind: 'fact'; readonly code: string; readonly contentClass: string };

/** The reason why a member has no value. */
export type UnknownReason =
  /** The survey was not answered, or did not include the question. */
  | 'not_declared'
  | 'undisclosed'
  /** The submissions give different answers. */
  | 'submissions_disagree'
  /** This version does not know the answer. */
  | 'answer_not_known'
  /** The answers to two questions exclude each other. */
  | 'answers_contradict'
  /** The report contains an explicit conflict. */
  | 'conflict'
  /** A declaration was altered in the store, so the remaining declarations are incomplete. */
  | 'declaration_altered'
  /** The facts of the trace were altered or are missing, so facts against an answer may be missing too. */
  | 'evidence_altered'
  /** A detection attributes an imported source to a generator, but the answer denies generated material. */
  | 'attribution_stands_against'
  /** The creator disputes an assessment, so an answer that denies generated material is not delivered. */
  | 'assessment_disputed'
  /** The answer does not contain what the vocabulary requires. `question` is the question for the creator. */
  | 'needs_answer'
  /** The report covers one recording, but the member covers more. */
  | 'outside_report';

/**
 * The roles of the survey that belong to the sound recording, and the roles that belong to the underlying
 * work.
 */
export const RECORDING_ROLES = ['vocals', 'instruments', 'production'] as const;
export const WORK_ROLES = ['lyrics', 'composition'] as const;
export const ROLES = [...WORK_ROLES, ...RECORDING_ROLES, 'artwork', 'video'] as const;
export const MUSICAL_ROLES = [...WORK_ROLES, ...RECORDING_ROLES] as const;
export type Role = (typeof ROLES)[number];

/** The values of `aiShareBand` that declare some generated audio. */
const SOME = ['under_quarter', 'quarter_to_half', 'half_to_three_quarters', 'over_three_quarters'];

/** The answer to one question of the survey, over all submissions. */
export type Settled<Value> =
  | { readonly value: Value; readonly sources: readonly ProjectionSource[] }
  | { readonly reason: UnknownReason; readonly sources: readonly ProjectionSource[] };

/** The answers that the projections are based on. */
export interface SettledAnswers {
  /** Present when the projection may state no value at all. */
  readonly blocked?: { readonly reason: UnknownReason; readonly sources: readonly ProjectionSource[] };
  readonly share: Settled<'none' | 'some' | 'most'>;
  /** The roles with declared generated material. The set is empty when the creator declared none. */
  readonly roles: Settled<ReadonlySet<Role>>;
  /** The answers that name generated material as the origin of the recording. They do not say how much. */
  readonly generated: readonly ProjectionSource[];
  /** Every answer about generated material, as given. */
  readonly given: readonly ProjectionSource[];
  /** True when the answers leave open whether the whole recording was generated. */
  readonly perhapsAll: boolean;
}

/** Settles the answers of the creators, without choosing between different answers. */
export function settleAnswers(report: EvidenceReport): SettledAnswers {
  const { declarations } = report;
  const share = settle(declarations, 'aiShareBand', ([word, ...more]) => {
    if (more.length > 0) return undefined;
    if (word === 'none') return 'none';
    // The highest band includes the whole, but does not say that it is the whole.
    return SOME.includes(word!)
      ? word === 'under_quarter' || word === 'quarter_to_half'
        ? 'some'
        : 'most'
      : undefined;
  });
  const roles = settle(declarations, 'aiRoles', (words): ReadonlySet<Role> | undefined => {
    if (words.length === 1 && words[0] === 'none') return new Set();
    return words.every(isRole) ? new Set(words) : undefined;
  });
  const generated = given(declarations, 'declaredOrigin').filter(
    ({ answer }) => answer === 'generated_material',
  );
  const noWork = given(declarations, 'manualWork').filter(({ answer }) => answer === 'none');
  const shares = given(declarations, 'aiShareBand').map(({ answer }) => answer);
  const mayBeWhole = shares.length === 0 || shares.includes('over_three_quarters');
  const disputes = given(declarations, 'disputedAssessment').filter(({ answer }) => answer === 'disputed');
  const blocked = blockedBy(report, share, roles, generated);
  return {
    ...(blocked === undefined ? {} : { blocked }),
    share: withoutDisputed(share, (value) => value === 'none', disputes),
    roles: withoutDisputed(roles, (value) => value.size === 0, disputes),
    generated,
    given: [...share.sources, ...roles.sources, ...generated],
    perhapsAll: mayBeWhole && generated.length > 0 && noWork.length > 0,
  };
}

/** Removes a denial of generated material if the creator disputes an assessment. */
function withoutDisputed<Value>(
  answer: Settled<Value>,
  denies: (value: Value) => boolean,
  disputes: readonly ProjectionSource[],
): Settled<Value> {
  return disputes.length > 0 && 'value' in answer && denies(answer.value)
    ? { reason: 'assessment_disputed', sources: [...answer.sources, ...disputes] }
    : answer;
}

function blockedBy(
  { facts, conflicts, unverifiable }: EvidenceReport,
  share: Settled<string>,
  roles: Settled<ReadonlySet<Role>>,
  generated: readonly ProjectionSource[],
): SettledAnswers['blocked'] {
  const all = [...conflicts, ...facts, ...unverifiable];
  const conflicting = all.filter(
    (fact) => conflicts.includes(fact) || fact.contentClass === 'explicit_conflict',
  );
  if (conflicting.length > 0) return { reason: 'conflict', sources: conflicting.map(sourceOf) };
  const altered = all.filter(({ code }) => code === 'creator_declaration_altered');
  if (altered.length > 0) return { reason: 'declaration_altered', sources: altered.map(sourceOf) };
  const gone = all.filter(({ code }) => code === 'evidence_facts_altered');
  if (gone.length > 0) return { reason: 'evidence_altered', sources: gone.map(sourceOf) };
  const denials = [
    ...('value' in share && share.value === 'none' ? share.sources : []),
    ...('value' in roles && roles.value.size === 0 ? roles.sources : []),
  ];
  const claims = [
    ...('value' in share && share.value !== 'none' ? share.sources : []),
    // Artwork and video do not count, because the share is about the audio.
    ...('value' in roles && MUSICAL_ROLES.some((role) => roles.value.has(role)) ? roles.sources : []),
    ...generated,
  ];
  if (denials.length > 0 && claims.length > 0)
    return { reason: 'answers_contradict', sources: [...denials, ...claims] };
  const attributions = all.filter(({ code }) => code === 'AiLikelySource');
  if (denials.length > 0 && attributions.length > 0)
    return { reason: 'attribution_stands_against', sources: [...denials, ...attributions.map(sourceOf)] };
  return undefined;
}

/**
 * Settles one question. The order and repetition of words in an answer do not matter.
 * @param read returns the value of an answer, or undefined for an unknown answer
 */
function settle<Value>(
  declarations: readonly DeclarationEnvelope[],
  dimension: string,
  read: (words: readonly string[]) => Value | undefined,
): Settled<Value> {
  const sources = given(declarations, dimension);
  const answers = new Set(sources.map(({ answer }) => answer));
  const [answer] = answers;
  if (answer === undefined) return { reason: 'not_declared', sources };
  if (answers.size > 1) return { reason: 'submissions_disagree', sources };
  const words = answer.split(',');
  // A creator who withholds one of several words has not disclosed the others either.
  if (words.includes('undisclosed')) return { reason: 'undisclosed', sources };
  const value = read(words);
  return value === undefined ? { reason: 'answer_not_known', sources } : { value, sources };
}

/** Returns the answers to a question, as given. */
function given(
  declarations: readonly DeclarationEnvelope[],
  dimension: string,
): readonly Extract<ProjectionSource, { readonly kind: 'declaration' }>[] {
  return declarations.flatMap(({ submissionId, answers }) => {
    const answer: unknown = (answers as Readonly<Record<string, unknown>>)[dimension];
    if (answer === undefined) return [];
    const words = [...new Set((Array.isArray(answer) ? answer : [answer]).map(String))].sort();
    return [{ kind: 'declaration', submissionId, dimension, answer: words.join(',') }];
  });
}

function sourceOf({ code, contentClass }: EvidenceFact): ProjectionSource {
  return { kind: 'fact', code, contentClass };
}

function isRole(word: string): word is Role {
  return (ROLES as readonly string[]).includes(word);
}
