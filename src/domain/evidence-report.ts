/**
 * Evidence report: it only reports, keeps its classes of content apart, and changes no verdict (rules 9.6 and
 * 9.7).
 */
import { answerWords, type DeclarationEnvelope, DIMENSIONS, type Dimension } from './declaration.js';
import type { ImportedSource, SessionEvidence, SourceDetail } from './session-evidence.js';

/** Classes of content (rule 9.7). */
export const CONTENT_CLASSES = [
  'direct_observation',
  'rule_inference',
  'creator_declaration',
  'explicit_conflict',
  'unverifiable_coverage_gap',
] as const;
export type ContentClass = (typeof CONTENT_CLASSES)[number];

/**
 * Status of a fact. `needs_review` asks for a human decision; `observed` was witnessed, `inferred` follows by a rule,
 * `reported` was supplied by the issuing side.
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
  /** Dimension asked about; present, with answer and submission, for a declaration. */
  readonly dimension?: Dimension;
  /** Word of the answer; several of them in the survey's order, joined by commas. */
  readonly answer?: string;
  readonly submissionId?: string;
  /** Version of the rule that concluded the fact. */
  readonly ruleVersion?: number;
  /** Values that the fact rests on, by name: counts, seconds, words; of a reconciliation both sides. */
  readonly values?: Readonly<Record<string, number | string>>;
}

export interface EvidenceReport {
  /** Version of this layout. */
  readonly version: 1;
  readonly facts: readonly EvidenceFact[];
  readonly conflicts: readonly EvidenceFact[];
  readonly unverifiable: readonly EvidenceFact[];
  readonly declarations: readonly DeclarationEnvelope[];
  /** Versions of the engine that settled the facts at issuing and that last made the overlay. */
  readonly engine?: { readonly facts?: number; readonly overlay: number; readonly revision: number };
  /** Session of a proof that was issued with a capture trace. */
  readonly session?: { readonly evidence: SessionEvidence };
  /**
   * In the order of import, at most `REPORT_LIMITS.importedSources`, placed ones before others; `importedSourceCount`
   * counts all. Absent where nobody looks.
   */
  readonly importedSources?: readonly ImportedSource[];
  readonly importedSourceCount?: number;
  /** For approved partners, with the creator's consent. */
  readonly sourceDetail?: SourceDetail;
}

/** Gaps of a report without a trace: nothing was witnessed, and so nothing inferred (rule 9.11). */
const GAPS = ['session_evidence_unavailable', 'rule_inference_unavailable'];

/** Fact of a proof without a survey (rule 9.9). */
const NONE_RECORDED: EvidenceFact = {
  code: 'creator_declaration',
  contentClass: 'creator_declaration',
  status: 'none_recorded',
};

/**
 * Facts of what was declared. Nothing reads as "none recorded" where records were altered: something was recorded then,
 * and the gap `creator_declaration_altered` says so alone.
 */
export function declarationFacts(
  declarations: readonly DeclarationEnvelope[],
  altered: number,
): readonly EvidenceFact[] {
  return declarations.length === 0 && altered === 0 ? [NONE_RECORDED] : declarations.flatMap(factsOf);
}

/** Facts of a submission: one for each answered dimension, favourable or adverse (rule 9.9). */
function factsOf({ submissionId, answers }: DeclarationEnvelope): readonly EvidenceFact[] {
  return DIMENSIONS.flatMap((dimension) => {
    const answer = answerWords(dimension, answers).join(',');
    if (answer === '') return [];
    // A creator who disputes an assessment contradicts someone: a person has to say which of them is right.
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

/** Gaps of a report that lie in what the proof has: no trace, and records that were altered. */
export function reportGaps(traced: boolean, altered: number): readonly EvidenceFact[] {
  return [
    ...(traced ? [] : GAPS.map((code) => gap(code, 'unverifiable'))),
    ...(altered === 0 ? [] : [gap('creator_declaration_altered', 'needs_review')]),
  ];
}

function gap(code: string, status: FactStatus): EvidenceFact {
  return { code, contentClass: 'unverifiable_coverage_gap', status };
}

/** Tells whether the report asks for a human decision (rule 9.2). */
export function asksForReview({ facts, conflicts, unverifiable }: EvidenceReport): boolean {
  return [...facts, ...conflicts, ...unverifiable].some(({ status }) => status === 'needs_review');
}

/** Counts for the decision envelope (rule 9.5). */
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
 * Summary of a report, as a list's entry has it (rule 9.30). `recorded`: something was witnessed or declared, and nothing
 * asks for a decision.
 */
export interface EvidenceSummary {
  readonly status: 'needs_review' | 'recorded' | 'none_recorded';
  readonly counts: ReturnType<typeof countEvidence>;
  /** Codes of the report, each once, in alphabetical order. */
  readonly codes: readonly string[];
}

export function summariseEvidence(report: EvidenceReport): EvidenceSummary {
  // "None recorded" is the absence of what its code names.
  const told = [...report.facts, ...report.conflicts, ...report.unverifiable].filter(
    ({ status }) => status !== 'none_recorded',
  );
  const recorded = report.session !== undefined || report.declarations.length > 0;
  return {
    status: asksForReview(report) ? 'needs_review' : recorded ? 'recorded' : 'none_recorded',
    counts: countEvidence(report),
    codes: [...new Set(told.map(({ code }) => code))].sort(),
  };
}
