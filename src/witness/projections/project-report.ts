import { defined } from '../../core/domain/defined.js';
import type { EvidenceReport } from '../domain/evidence-report.js';
import {
  MUSICAL_ROLES,
  type ProjectionSource,
  RECORDING_ROLES,
  type Role,
  type Settled,
  type SettledAnswers,
  settleAnswers,
  type UnknownReason,
  WORK_ROLES,
} from './settle-answers.js';

/**
 * The version of the projections. It increases with every change of what a projection says about the same
 * report.
 */
export const PROJECTION_VERSION = 2;

/** The vocabularies that a report is projected to, each with its edition. */
export const PROJECTION_FORMATS = {
  'ddex-432': 'DDEX ERN 4.3.2, AVS 12: ContainsAI and AiContribution',
  spotify: 'Spotify AI credits, beta of April 2026',
  apple: 'Apple Music transparency tags, March 2026',
} as const;
export type ProjectionFormat = keyof typeof PROJECTION_FORMATS;

/** A member of a projection: a value with its sources, or `unknown` with the reason. */
export interface ProjectedMember {
  /** The element or tag of the vocabulary. */
  readonly element: string;
  /** The status: `declared` with a value, or `unknown` without one. A delivery omits an unknown element. */
  readonly status: 'declared' | 'unknown';
  readonly value?: string;
  readonly reason?: UnknownReason;
  /** The question to the creator that would settle the member. */
  readonly question?: string;
  /** The sources of the value, or the sources that rule out a value. */
  readonly sources: readonly ProjectionSource[];
}

/** A report in the terms of a vocabulary (docs/disclosure.md). */
export interface Projection {
  readonly projectionVersion: typeof PROJECTION_VERSION;
  readonly format: ProjectionFormat;
  readonly vocabulary: string;
  /** The layout version of the projected report. */
  readonly reportVersion: number;
  /** The status: `needs_review` if a member is unknown for a reason in `REVIEWED`, otherwise `as_declared`. */
  readonly status: 'as_declared' | 'needs_review';
  readonly members: readonly ProjectedMember[];
  /** The declared answers about generated material for which the vocabulary has no element. */
  readonly unmapped: readonly ProjectionSource[];
}

/** The reasons that require a review by a person. A missing answer does not: its element is omitted. */
const REVIEWED: readonly UnknownReason[] = [
  'undisclosed',
  'submissions_disagree',
  'answer_not_known',
  'answers_contradict',
  'conflict',
  'declaration_altered',
  'evidence_altered',
  'attribution_stands_against',
  'assessment_disputed',
];

/**
 * Projects a report to a vocabulary of the industry. Values are taken only from declarations. Activity,
 * coverage and detector likelihoods never become values. Witnessed facts can only remove a value.
 */
export function projectReport(report: EvidenceReport, format: ProjectionFormat): Projection {
  const answers = settleAnswers(report);
  const projected = PROJECTIONS[format](answers);
  const members = projected.map((member) => withhold(member, answers));
  const used = projected.flatMap(({ sources }) => sources);
  return {
    projectionVersion: PROJECTION_VERSION,
    format,
    vocabulary: PROJECTION_FORMATS[format],
    reportVersion: report.version,
    status: members.some(({ reason }) => reason !== undefined && REVIEWED.includes(reason))
      ? 'needs_review'
      : 'as_declared',
    members,
    unmapped: answers.given.flatMap((source) => {
      const roles = rolesWithoutElement(source, format);
      return roles.length > 0 || used.includes(source) ? roles : [source];
    }),
  };
}

/** The roles of the survey for which a vocabulary has no element. */
const WITHOUT_ELEMENT: Readonly<Record<ProjectionFormat, readonly string[]>> = {
  'ddex-432': [],
  spotify: ['composition', 'artwork', 'video'],
  apple: [],
};

/** Returns one source for each role of an answer for which the vocabulary has no element. */
function rolesWithoutElement(
  source: ProjectionSource,
  format: ProjectionFormat,
): readonly ProjectionSource[] {
  if (source.kind !== 'declaration' || source.dimension !== 'aiRoles') return [];
  return source.answer
    .split(',')
    .filter((role) => WITHOUT_ELEMENT[format].includes(role))
    .map((answer) => ({ ...source, answer }));
}

/** Removes the value of a member when the report contradicts itself. */
function withhold(member: ProjectedMember, { blocked }: SettledAnswers): ProjectedMember {
  if (blocked === undefined || member.reason === 'outside_report') return member;
  return unknown(member.element, blocked.reason, blocked.sources);
}

const PROJECTIONS: Readonly<
  Record<ProjectionFormat, (answers: SettledAnswers) => readonly ProjectedMember[]>
> = {
  'ddex-432': (answers) => [
    unknown('Release/ContainsAI', 'outside_report', []),
    recordingContainsAi(answers),
    ...MUSICAL_ROLES.map((role) =>
      // The survey asks the makers of the recording. For a contributor that is not of type GenerativeAI, the
      // vocabulary has only the values None and Partly. If everything may be generated, no such contributor
      // may exist.
      fromRole(
        answers,
        `SoundRecording/Contributor[${role}]/AiContribution`,
        role,
        'None',
        answers.perhapsAll
          ? WHETHER_ALL
          : { value: 'Partly', question: `Was AI-generated material used for the role ${role}?` },
      ),
    ),
    resourceContainsAi(answers, 'Image', 'artwork'),
    resourceContainsAi(answers, 'Text', 'lyrics'),
    resourceContainsAi(answers, 'Video', 'video'),
  ],
  spotify: (answers) =>
    SPOTIFY_ROLES.map(([element, role]) =>
      fromRole(answers, element, role, 'no_credit', {
        question: `Was the role ${element} fully AI-generated?`,
      }),
    ),
  apple: (answers) => [
    fromRole(answers, appleElement('Artwork'), 'artwork', 'no_tag', material('artwork')),
    appleTrack(answers),
    fromRoles(
      answers,
      appleElement('Composition'),
      WORK_ROLES,
      'no_tag',
      material('composition or the lyrics'),
    ),
    fromRole(answers, appleElement('Music Video'), 'video', 'no_tag', material('music video')),
  ],
};

const SPOTIFY_ROLES = [
  ['Lyricist', 'lyrics'],
  ['Vocalist', 'vocals'],
  ['Instrumentalist', 'instruments'],
  ['Producer', 'production'],
] as const satisfies readonly (readonly [string, Role])[];

/** What follows from a named role: a value, or only the question that remains open. */
interface Named {
  readonly value?: string;
  readonly question: string;
}

const WHETHER_ALL: Named = { question: 'Was all of the recording AI-generated?' };

function material(thing: string): Named {
  return { question: `Was a material portion of the ${thing} AI-generated?` };
}

/** Returns the name of a tag within the element `ai_transparencies` of Apple's package. */
function appleElement(tag: 'Artwork' | 'Track' | 'Composition' | 'Music Video'): string {
  return `ai_transparencies[${tag}]`;
}

/**
 * Returns `ContainsAI` of the sound recording. The value is never `All`, because no answer of the survey says
 * that everything was generated. The highest band of the share does not say so either.
 */
function recordingContainsAi({ share, roles, generated, perhapsAll }: SettledAnswers): ProjectedMember {
  const element = 'SoundRecording/ContainsAI';
  const sources = [...share.sources, ...roles.sources, ...generated];
  const silent = firstUnknown([share, roles]);
  if (silent !== undefined) return unknown(element, silent.reason, sources);
  const musical = 'value' in roles && MUSICAL_ROLES.some((role) => roles.value.has(role));
  if (perhapsAll) return unknown(element, 'needs_answer', sources, WHETHER_ALL.question);
  if (musical || generated.length > 0 || ('value' in share && share.value !== 'none'))
    return declared(element, 'Partly', sources);
  if ('value' in share || ('value' in roles && roles.value.size === 0))
    return declared(element, 'None', sources);
  return unknown(element, 'not_declared', sources);
}

/**
 * Returns `ContainsAI` of an image, a text or a video. A named role does not say whether the whole was
 * generated.
 */
function resourceContainsAi(
  answers: SettledAnswers,
  resource: 'Image' | 'Text' | 'Video',
  role: Role,
): ProjectedMember {
  return fromRole(answers, `${resource}/ContainsAI`, role, 'None', {
    question: `Is the whole ${resource.toLowerCase()} (${role}) AI-generated, or a part?`,
  });
}

/**
 * Returns Apple's tag of the track. The share of the audio decides, and the roles decide only without a
 * share.
 */
function appleTrack(answers: SettledAnswers): ProjectedMember {
  const element = appleElement('Track');
  const { share, roles, generated } = answers;
  const sources = [...share.sources, ...roles.sources, ...generated];
  const silent = firstUnknown([share, roles]);
  if (silent !== undefined) return unknown(element, silent.reason, sources);
  // Half of the audio or more is a material portion under every reading. The creator must decide about less.
  if ('value' in share && share.value === 'most') return declared(element, 'tag', sources);
  if (generated.length > 0 || ('value' in share && share.value === 'some'))
    return unknown(element, 'needs_answer', sources, material('track').question);
  if ('value' in share) return declared(element, 'no_tag', sources);
  return fromRoles(answers, element, RECORDING_ROLES, 'no_tag', material('track'));
}

function fromRole(
  answers: SettledAnswers,
  element: string,
  role: Role,
  none: string,
  some: Named,
): ProjectedMember {
  return fromRoles(answers, element, [role], none, some);
}

/**
 * Returns a member that depends on the answer about roles.
 * @param none value when the creator declared that no role has generated material. A role that is not named
 * beside others is unanswered
 * @param some what follows when one of the roles was named
 */
function fromRoles(
  answers: SettledAnswers,
  element: string,
  wanted: readonly Role[],
  none: string,
  { value, question }: Named,
): ProjectedMember {
  const { roles } = answers;
  if ('value' in roles && roles.value.size === 0) return declared(element, none, roles.sources);
  if ('value' in roles && wanted.some((role) => roles.value.has(role)))
    return value === undefined
      ? unknown(element, 'needs_answer', roles.sources, question)
      : declared(element, value, roles.sources);
  if ('reason' in roles && roles.reason !== 'not_declared')
    return unknown(element, roles.reason, roles.sources);
  const audio = generatedAudioWithoutRole(answers);
  return audio.length > 0 && RECORDING_ROLES.some((role) => wanted.includes(role))
    ? unknown(element, 'needs_answer', audio, question)
    : unknown(element, 'not_declared', []);
}

/** Returns the answers that declare generated audio, if no answer names its role. */
function generatedAudioWithoutRole({ share, roles, generated }: SettledAnswers): readonly ProjectionSource[] {
  if ('value' in roles && MUSICAL_ROLES.some((role) => roles.value.has(role))) return [];
  return [...('value' in share && share.value !== 'none' ? share.sources : []), ...generated];
}

/** Returns the first answer that was given but has no value. */
function firstUnknown(
  answers: readonly Settled<unknown>[],
): Extract<Settled<unknown>, { readonly reason: UnknownReason }> | undefined {
  return answers.find((answer) => 'reason' in answer && answer.reason !== 'not_declared') as
    | Extract<Settled<unknown>, { readonly reason: UnknownReason }>
    | undefined;
}

function declared(element: string, value: string, sources: readonly ProjectionSource[]): ProjectedMember {
  return { element, status: 'declared', value, sources };
}

function unknown(
  element: string,
  reason: UnknownReason,
  sources: readonly ProjectionSource[],
  question?: string,
): ProjectedMember {
  return defined({ element, status: 'unknown' as const, reason, question, sources });
}
