/**
 * Rules of the engine, as data. They derive facts from a trace and from declarations. A changed rule gets a
 * new version, and `ENGINE_VERSION` increases. Stored conclusions stay unchanged (rule 9.29).
 */
import type { Declaration, Dimension } from '../domain/declaration.js';
import type { RuleInput, RuleInputs } from '../domain/evidence.js';
import type { ContentClass, EvidenceFact, FactStatus } from '../domain/evidence-report.js';
import { findOpposites, type GivenAnswer, givenAnswers } from './opposites.js';

type Values = NonNullable<EvidenceFact['values']>;

export interface EvidenceRule {
  readonly code: string;
  readonly version: number;
  readonly contentClass: ContentClass;
  /** The status: `needs_review` if a person has to decide, `inferred` if the conclusion alone needs no decision. */
  readonly status: FactStatus;
  /** The inputs of the trace that the rule reads. If one of them is unknown, the rule concludes nothing. */
  readonly inputs: readonly RuleInput[];
  /**
   * The dimensions of the survey that the rule reads. A rule without dimensions is settled with the trace.
   */
  readonly dimensions: readonly Dimension[];
  /** Returns the values of each resulting fact. Returns none when the rule does not apply. */
  applies(
    inputs: Readonly<Record<RuleInput, number>>,
    declarations: readonly Declaration[],
  ): readonly Values[];
}

export const EVIDENCE_RULES: readonly EvidenceRule[] = [
  {
    code: 'placements_without_recording_or_midi_entry',
    version: 2,
    contentClass: 'rule_inference',
    status: 'needs_review',
    inputs: ['placements', 'entries'],
    dimensions: [],
    applies: ({ placements, entries }) => (placements > 0 && entries === 0 ? [{ placements }] : []),
  },
  {
    code: 'imports_cover_most_of_export',
    version: 2,
    contentClass: 'rule_inference',
    status: 'needs_review',
    inputs: ['importedSeconds', 'exportSeconds'],
    dimensions: [],
    applies: ({ importedSeconds, exportSeconds }) =>
      importedSeconds * 2 > exportSeconds ? [{ importedSeconds, exportSeconds }] : [],
  },
  {
    // Corrections of a mix after an export are normal. The digest shows whether the issued audio is that
    // export.
    code: 'activity_after_export',
    version: 1,
    contentClass: 'rule_inference',
    status: 'inferred',
    inputs: ['editsAfterExport'],
    dimensions: [],
    applies: ({ editsAfterExport }) => (editsAfterExport > 0 ? [{ edits: editsAfterExport }] : []),
  },
  {
    code: 'edits_only_of_imported_material',
    version: 2,
    contentClass: 'rule_inference',
    status: 'inferred',
    inputs: ['clipEdits', 'clipEditsOfImports'],
    dimensions: [],
    applies: ({ clipEdits, clipEditsOfImports }) =>
      clipEdits > 0 && clipEditsOfImports === clipEdits ? [{ clipEdits }] : [],
  },
  {
    code: 'observed_import_vs_creator_origin_declaration',
    version: 1,
    contentClass: 'explicit_conflict',
    status: 'needs_review',
    inputs: ['imports'],
    dimensions: ['declaredOrigin', 'contributionBand'],
    applies: ({ imports }, declarations) =>
      imports === 0
        ? []
        : given(declarations, {
            declaredOrigin: ['from_scratch'],
            contributionBand: ['all_self_made', 'majority_self_made'],
          }).map((answer) => ({ imports, ...answer })),
  },
  {
    code: 'declared_manual_work_vs_witnessed_input',
    version: 2,
    contentClass: 'explicit_conflict',
    status: 'needs_review',
    inputs: ['entries'],
    dimensions: ['manualWork'],
    applies: ({ entries }, declarations) =>
      entries > 0
        ? []
        : given(declarations, { manualWork: ['substantial', 'entire'] }).map((answer) => ({ ...answer })),
  },
  {
    code: 'attributed_import_vs_creator_ai_declaration',
    version: 1,
    contentClass: 'explicit_conflict',
    status: 'needs_review',
    inputs: ['attributedImports'],
    dimensions: ['aiShareBand', 'aiRoles'],
    applies: ({ attributedImports }, declarations) =>
      attributedImports === 0
        ? []
        : given(declarations, { aiShareBand: ['none'], aiRoles: ['none'] }).map((answer) => ({
            sources: attributedImports,
            ...answer,
          })),
  },
  {
    code: 'contradictory_declarations',
    version: 2,
    contentClass: 'explicit_conflict',
    status: 'needs_review',
    inputs: [],
    dimensions: [
      'declaredOrigin',
      'aiShareBand',
      'manualWork',
      'contributionBand',
      'disputedAssessment',
      'aiRoles',
    ],
    applies: (_inputs, declarations) =>
      findOpposites(declarations).map(([one, other]) => ({
        ...one,
        otherDimension: other.dimension,
        otherAnswer: other.answer,
        otherSubmissionId: other.submissionId,
      })),
  },
];

/** Returns the facts that follow from a trace alone. They are settled with the trace. */
export function concludeFromTrace(inputs: RuleInputs): readonly EvidenceFact[] {
  return conclude(
    EVIDENCE_RULES.filter(({ dimensions }) => dimensions.length === 0),
    inputs,
    [],
  );
}

/**
 * Returns the facts that need declarations, for the overlay.
 * @param inputs absent when no trace is known
 */
export function concludeFromDeclarations(
  inputs: RuleInputs | undefined,
  declarations: readonly Declaration[],
): readonly EvidenceFact[] {
  return conclude(
    EVIDENCE_RULES.filter(({ dimensions }) => dimensions.length > 0),
    inputs ?? {},
    declarations,
  );
}

function conclude(
  rules: readonly EvidenceRule[],
  inputs: RuleInputs,
  declarations: readonly Declaration[],
): readonly EvidenceFact[] {
  return rules.flatMap((rule) => {
    const known = rule.inputs.flatMap((name) => {
      const value = inputs[name];
      return value === undefined ? [] : [[name, value] as const];
    });
    if (known.length < rule.inputs.length) return [];
    const { code, contentClass, status, version: ruleVersion } = rule;
    // The rule gets only the inputs that it lists.
    const handed = Object.fromEntries(known) as Record<RuleInput, number>;
    return rule
      .applies(handed, declarations)
      .map((values) => ({ code, contentClass, status, ruleVersion, values }));
  });
}

function given(
  declarations: readonly Declaration[],
  words: Partial<Record<Dimension, readonly string[]>>,
): readonly GivenAnswer[] {
  return givenAnswers(declarations).filter(
    ({ dimension, answer }) => words[dimension]?.includes(answer) ?? false,
  );
}
