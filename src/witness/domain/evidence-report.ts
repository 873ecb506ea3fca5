/**
 * The evidence report. It keeps its content classes separate and never changes the verdict (rules 9.6 and
 * 9.7).
 */
import { answerWords, type DeclarationEnvelope, DIMENSIONS, type Dimension } from './declaration.js';
import type { ImportedSource, SessionEvidence, SourceDetail } from './session-evidence.js';

/** The content classes (rule 9.7). */
export const CONTENT_CLASSES = [
  'direct_observation',
  'rule_inference',
  'creator_declaration',
  'explicit_conflict',
  'unverifiable_coverage_gap',
] as const;
export type ContentClass = (typeof CONTENT_CLASSES)[number];

/**
 * The status of a fact. `needs_review`: the fact needs a human decision. `observed`: the agent observed it.
 * `inferred`: a rule inferred it. `reported`: the issuing side supplied it.
 */
export type FactStatus =
  | 'observed'
  | 'inferred'
  | 'reported'
  | 'declared'
  | 'none_recorded'
  | 'unverifiable'
  | 'needs_review';

export interface EvidenceFact {
  readonly code: string;
  readonly contentClass: ContentClass;
  readonly status: FactStatus;
  /** The survey dimension. A declaration has it, with answer and submission. */
  readonly dimension?: Dimension;
  /** The word of the answer. Several words are in the survey's order, joined by commas. */
  readonly answer?: string;
  readonly submissionId?: string;
  /** The version of the rule that inferred the fact. */
  readonly ruleVersion?: number;
  /** The named values that support the fact: numbers or words. `EVIDENCE_CODES` lists the names for each code. */
  readonly values?: Readonly<Record<string, number | string>>;
}

export interface EvidenceReport {
  /** The version of this layout. */
  readonly version: 1;
  readonly facts: readonly EvidenceFact[];
  readonly conflicts: readonly EvidenceFact[];
  readonly unverifiable: readonly EvidenceFact[];
  readonly declarations: readonly DeclarationEnvelope[];
  /** The engine versions that derived the facts at issuing and the last overlay. */
  readonly engine?: { readonly facts?: number; readonly overlay: number; readonly revision: number };
  /** The session of a proof that was issued with a capture trace. */
  readonly session?: { readonly evidence: SessionEvidence };
  /**
   * The imported sources in the order of import, at most `REPORT_LIMITS.importedSources`. Placed sources are
   * kept before others. `importedSourceCount` counts all. Absent if imports were not watched.
   */
  readonly importedSources?: readonly ImportedSource[];
  readonly importedSourceCount?: number;
  /** The source detail, only for approved partners and with the creator's consent. */
  readonly sourceDetail?: SourceDetail;
}

/** The gaps of a report without a trace: nothing was observed, so nothing can be inferred (rule 9.11). */
const GAPS = ['session_evidence_unavailable', 'rule_inference_unavailable'];

/** The fact of a proof without a survey (rule 9.9). */
const NONE_RECORDED: EvidenceFact = {
  code: 'creator_declaration',
  contentClass: 'creator_declaration',
  status: 'none_recorded',
};

/**
 * Returns the facts of declarations. If records were altered, "none recorded" is omitted: something was
 * recorded, and only the gap `creator_declaration_altered` reports it.
 */
export function declarationFacts(
  declarations: readonly DeclarationEnvelope[],
  altered: number,
): readonly EvidenceFact[] {
  return declarations.length === 0 && altered === 0 ? [NONE_RECORDED] : declarations.flatMap(factsOf);
}

/** Returns the facts of a submission: one for each answered dimension, favourable or adverse (rule 9.9). */
function factsOf({ submissionId, answers }: DeclarationEnvelope): readonly EvidenceFact[] {
  return DIMENSIONS.flatMap((dimension) => {
    const answer = answerWords(dimension, answers).join(',');
    if (answer === '') return [];
    // A creator who disputes an assessment contradicts its author, so a person must decide.
    return [
      {
        code: 'creator_declaration',
        contentClass: 'creator_declaration',
        status: answer === 'disputed' ? 'needs_review' : 'declared',
        dimension,
        answer,
        submissionId,
      },
    ];
  });
}

/** Returns the gaps of a report that follow from the stored proof: no trace, or altered records. */
export function reportGaps(traced: boolean, altered: number): readonly EvidenceFact[] {
  return [
    ...(traced ? [] : GAPS.map((code) => gap(code, 'unverifiable'))),
    ...(altered === 0 ? [] : [gap('creator_declaration_altered', 'needs_review')]),
  ];
}

function gap(code: string, status: FactStatus): EvidenceFact {
  return { code, contentClass: 'unverifiable_coverage_gap', status };
}

/** Returns whether the report needs a human decision (rule 9.2). */
export function asksForReview({ facts, conflicts, unverifiable }: EvidenceReport): boolean {
  return [...facts, ...conflicts, ...unverifiable].some(({ status }) => status === 'needs_review');
}

/** Returns the counts for the decision envelope (rule 9.5). */
export function countEvidence({ facts, conflicts, unverifiable }: EvidenceReport): {
  readonly declarations: number;
  readonly conflicts: number;
  readonly unverifiable: number;
} {
  const declarations = facts.filter(
    ({ code, status }) => code === 'creator_declaration' && status !== 'none_recorded',
  ).length;
  return { declarations, conflicts: conflicts.length, unverifiable: unverifiable.length };
}

/**
 * The summary of a report in a list's entry (rule 9.30). `recorded`: something was observed or declared, and
 * no human decision is needed.
 */
export interface EvidenceSummary {
  readonly status: 'needs_review' | 'recorded' | 'none_recorded';
  readonly counts: ReturnType<typeof countEvidence>;
  /** The codes of the report, each once, in alphabetical order. */
  readonly codes: readonly string[];
}

export function summariseEvidence(report: EvidenceReport): EvidenceSummary {
  // A fact "none recorded" states that its code does not apply, so it is omitted.
  const listed = [...report.facts, ...report.conflicts, ...report.unverifiable].filter(
    ({ status }) => status !== 'none_recorded',
  );
  const recorded = report.session !== undefined || report.declarations.length > 0;
  return {
    status: asksForReview(report) ? 'needs_review' : recorded ? 'recorded' : 'none_recorded',
    counts: countEvidence(report),
    codes: [...new Set(listed.map(({ code }) => code))].sort(),
  };
}
