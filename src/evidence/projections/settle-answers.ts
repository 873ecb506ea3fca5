import type { DeclarationEnvelope } from '../../domain/declaration.js';
import type { EvidenceFact, EvidenceReport } from '../../domain/evidence-report.js';

/** Place in the report that a member rests on. */
export type ProjectionSource =
  | {
      readonly kind: 'declaration';
      readonly submissionId: string;
      readonly dimension: string;
      /** The answer as it was given; several words of one answer are joined by a comma. */
      readonly answer: string;
    }
  | { readonly kind: 'fact'; readonly code: string; readonly contentClass: string };

/** Reason for which a member has no value. */
export type UnknownReason =
  /** The survey was not answered, or did not ask. */
  | 'not_declared'
  | 'undisclosed'
  /** Submissions give different answers. */
  | 'submissions_disagree'
  /** An answer that this version does not know. */
  | 'answer_not_known'
  /** Answers to two questions exclude each other. */
  | 'answers_contradict'
  /** The report holds an explicit conflict. */
  | 'conflict'
  /** A declaration was altered in the store, so that what is left is not all that was declared. */
  | 'declaration_altered'
  /** Facts of the trace were altered or are gone, and what might have stood against an answer with them. */
  | 'evidence_altered'
  /** A detection attributes an imported source to a generator, and the answer denies generated material. */
  | 'attribution_stands_against'
  /** The answer does not say what the vocabulary asks; `question` says what to ask the creator. */
  | 'needs_answer'
  /** The report is about one recording, and the member about more. */
  | 'outside_report';

/** Roles of the survey that the sound recording is made of, and those of the work behind it. */
export const RECORDING_ROLES = ['vocals', 'instruments', 'production'] as const;
export const WORK_ROLES = ['lyrics', 'composition'] as const;
export const ROLES = [...WORK_ROLES, ...RECORDING_ROLES, 'artwork', 'video'] as const;
export type Role = (typeof ROLES)[number];

/** Words of `aiShareBand` that say that some of the audio is generated. */
const SOME = ['under_quarter', 'quarter_to_half', 'half_to_three_quarters', 'over_three_quarters'];

/** Answer to one question of the survey, over all submissions. */
export type Settled<Value> =
  | { readonly value: Value; readonly sources: readonly ProjectionSource[] }
  | { readonly reason: UnknownReason; readonly sources: readonly ProjectionSource[] };

/** Answers that the projections rest on. */
export interface SettledAnswers {
  /** Present where nothing may be said at all. */
  readonly blocked?: { readonly reason: UnknownReason; readonly sources: readonly ProjectionSource[] };
  readonly share: Settled<'none' | 'some' | 'most'>;
  /** Roles in which generated material was declared; an empty set where none of them was. */
  readonly roles: Settled<ReadonlySet<Role>>;
  /** True where the answers leave open whether all of the recording was generated. */
  readonly perhapsAll: boolean;
}

/** Settles what the creators declared, without choosing between answers that differ. */
export function settleAnswers(report: EvidenceReport): SettledAnswers {
  const { declarations } = report;
  const share = settle(declarations, 'aiShareBand', ([word, ...more]) => {
    if (more.length > 0) return undefined;
    if (word === 'none') return 'none';
    // The uppermost band reaches to the whole, and does not say that it is the whole.
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
  const uppermost = given(declarations, 'aiShareBand').some(({ answer }) => answer === 'over_three_quarters');
  const blocked = blockedBy(report, share, roles, generated);
  return {
    ...(blocked === undefined ? {} : { blocked }),
    share,
    roles,
    perhapsAll: uppermost && generated.length > 0 && noWork.length > 0,
  };
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
  const musical = [...WORK_ROLES, ...RECORDING_ROLES];
  const claims = [
    ...('value' in share && share.value !== 'none' ? share.sources : []),
    // Artwork and video are no part of the audio whose share is asked for.
    ...('value' in roles && musical.some((role) => roles.value.has(role)) ? roles.sources : []),
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
 * Settles one question. Order and repetition of words in an answer say nothing.
 * @param read gives the value of an answer, or undefined for one that is not known
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
  // A creator who keeps back one of several words has not disclosed the others either.
  if (words.includes('undisclosed')) return { reason: 'undisclosed', sources };
  const value = read(words);
  return value === undefined ? { reason: 'answer_not_known', sources } : { value, sources };
}

/** Answers to a question, as they were given. */
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
