/**
 * Rules of the engine, as data: what follows from the facts of a trace and from declarations. A rule that changes gets a
 * new version, and `ENGINE_VERSION` rises; what was concluded before stays as it is stored (rule 9.29).
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
  /** `needs_review` where a person has to decide, `inferred` where the conclusion alone asks for nobody. */
  readonly status: FactStatus;
  /** Inputs of the trace that the rule reads. Where one of them is not known, the rule concludes nothing. */
  readonly inputs: readonly RuleInput[];
  /** Dimensions of the survey that the rule reads; a rule without any is settled with the trace. */
  readonly dimensions: readonly Dimension[];
  /** Values of each fact that follows; none where the rule does not apply. */
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
    // Mixes are corrected after an export as a matter of course; the digest tells whether the issued audio is that export.
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
    version: 1,
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

/** Facts that follow by rules from a trace alone; they are settled with it. */
export function concludeFromTrace(inputs: RuleInputs): readonly EvidenceFact[] {
  return conclude(
    EVIDENCE_RULES.filter(({ dimensions }) => dimensions.length === 0),
    inputs,
    [],
  );
}

/**
 * Facts that need declarations, for the overlay.
 * @param inputs absent where no trace is known
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
    // The rule is handed what it lists and nothing else.
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
