import { answerWords, type Declaration, DIMENSIONS, type Dimension, SURVEY } from '../domain/declaration.js';
import { MUSICAL_ROLES, ROLES } from '../projections/settle-answers.js';

/** One side of a pair of opposites: answers by dimension. */
type Side = { readonly [Name in Dimension]?: readonly (typeof SURVEY)[Name][number][] };

/** The roles that make up the song. Production also includes work such as mastering, which adds no material. */
const SONG_ROLES = MUSICAL_ROLES.filter((role) => role !== 'production');
const QUARTER_OR_MORE = ['quarter_to_half', 'half_to_three_quarters', 'over_three_quarters'] as const;
const SOME_GENERATED = ['under_quarter', ...QUARTER_OR_MORE] as const;

/**
 * The table of opposites. Each answer on the left excludes each answer on the right (docs/evidence.md).
 * Neighbouring bands are not opposites, because people estimate. Artwork and video do not count, because the
 * share is about the audio.
 */
export const OPPOSITES: readonly (readonly [Side, Side])[] = [
  // Each answer on the left means that nothing is generated. The lowest band is a neighbour of "none".
  [
    { declaredOrigin: ['from_scratch'], manualWork: ['entire'], contributionBand: ['all_self_made'] },
    { aiShareBand: QUARTER_OR_MORE, aiRoles: SONG_ROLES },
  ],
  [
    { declaredOrigin: ['from_scratch', 'own_material'] },
    {
      declaredOrigin: ['third_party_material', 'generated_material'],
      contributionBand: ['minority_self_made'],
    },
  ],
  [{ declaredOrigin: ['from_scratch'] }, { manualWork: ['none'] }],
  [{ declaredOrigin: ['own_material'] }, { aiShareBand: ['over_three_quarters'] }],
  [
    { declaredOrigin: ['generated_material'] },
    { aiShareBand: ['none'], manualWork: ['entire'], contributionBand: ['all_self_made'], aiRoles: ['none'] },
  ],
  [{ declaredOrigin: ['third_party_material'] }, { contributionBand: ['all_self_made'] }],
  [{ aiShareBand: ['none'] }, { aiShareBand: SOME_GENERATED, aiRoles: MUSICAL_ROLES }],
  [{ aiShareBand: ['under_quarter'] }, { aiShareBand: ['half_to_three_quarters', 'over_three_quarters'] }],
  [
    { aiShareBand: ['over_three_quarters'] },
    { aiShareBand: ['quarter_to_half'], contributionBand: ['majority_self_made'] },
  ],
  [{ aiShareBand: SOME_GENERATED }, { aiRoles: ['none'] }],
  [
    { manualWork: ['none'] },
    {
      manualWork: ['some', 'substantial', 'entire'],
      contributionBand: ['all_self_made', 'majority_self_made'],
    },
  ],
  [{ manualWork: ['some'] }, { manualWork: ['entire'] }],
  [{ contributionBand: ['all_self_made'] }, { contributionBand: ['shared', 'minority_self_made'] }],
  [{ contributionBand: ['majority_self_made'] }, { contributionBand: ['minority_self_made'] }],
  [{ disputedAssessment: ['not_disputed'] }, { disputedAssessment: ['disputed'] }],
  [{ aiRoles: ['none'] }, { aiRoles: ROLES }],
];

/** An answer with the first submission that gave it. */
export interface GivenAnswer {
  readonly dimension: Dimension;
  readonly answer: string;
  readonly submissionId: string;
}

/** Returns every given answer once, in the order of the survey, with the first submission that gave it. */
export function givenAnswers(declarations: readonly Declaration[]): readonly GivenAnswer[] {
  return DIMENSIONS.flatMap((dimension) =>
    SURVEY[dimension].flatMap((answer: string) => {
      const first = declarations.find(({ answers }) => answerWords(dimension, answers).includes(answer));
      return first === undefined ? [] : [{ dimension, answer, submissionId: first.submissionId }];
    }),
  );
}

/** Returns the pairs of given answers that exclude each other, each pair once. */
export function findOpposites(
  declarations: readonly Declaration[],
): readonly (readonly [GivenAnswer, GivenAnswer])[] {
  const given = givenAnswers(declarations);
  const on = (side: Side, { dimension, answer }: GivenAnswer): boolean =>
    (side[dimension] as readonly string[] | undefined)?.includes(answer) ?? false;
  return OPPOSITES.flatMap(([left, right]) =>
    given
      .filter((one) => on(left, one))
      .flatMap((one) => given.filter((other) => on(right, other)).map((other) => [one, other] as const)),
  );
}
