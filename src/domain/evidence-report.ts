/**
 * "The structured evidence report is report-only. It separates observed facts, rule inferences, creator
 * declarations, conflicts and unverifiable coverage gaps. It never changes credential validity."
 */
import { type DeclarationEnvelope, DIMENSIONS, type Dimension } from './declaration.js';

/**
 * "Content classes: direct system observations, rule inferences, creator declarations, explicit conflicts,
 * unverifiable coverage gaps."
 */
export const CONTENT_CLASSES = [
  'direct_observation',
  'rule_inference',
  'creator_declaration',
  'explicit_conflict',
  'unverifiable_coverage_gap',
] as const;
export type ContentClass = (typeof CONTENT_CLASSES)[number];

/** `needs_review` asks for a human decision. */
export const FACT_STATUSES = ['declared', 'none_recorded', 'unverifiable', 'needs_review'] as const;
export type FactStatus = (typeof FACT_STATUSES)[number];

export interface EvidenceFact {
  readonly code: string;
  readonly contentClass: ContentClass;
  readonly status: FactStatus;
  /** Of a declaration: what was asked, what was answered, and in which submission. */
  readonly dimension?: Dimension;
  readonly answer?: string;
  readonly submissionId?: string;
}

export interface EvidenceReport {
  /** Of this layout. */
  readonly version: 1;
  readonly facts: readonly EvidenceFact[];
  readonly conflicts: readonly EvidenceFact[];
  readonly unverifiable: readonly EvidenceFact[];
  readonly declarations: readonly DeclarationEnvelope[];
}

/** Nothing was witnessed, and so nothing inferred: both classes are empty, and the report says so. */
const GAPS = ['session_evidence_unavailable', 'rule_inference_unavailable'];

/**
 * The report of what creators declared. No declaration is measured against another: the one conflict the
 * contract knows needs a directly witnessed import.
 * @param declarations authentic ones, oldest first
 * @param altered how many records were left out, because they are not what the service wrote
 */
export function reportEvidence(declarations: readonly DeclarationEnvelope[], altered = 0): EvidenceReport {
  const gaps = GAPS.map((code) => gap(code, 'unverifiable'));
  return {
    version: 1,
    facts: declarations.length === 0 ? [NONE_RECORDED] : declarations.flatMap(factsOf),
    conflicts: [],
    unverifiable: altered === 0 ? gaps : [...gaps, gap('creator_declaration_altered', 'needs_review')],
    declarations,
  };
}

/** "A missing survey is shown as an explicit "none recorded" state." */
const NONE_RECORDED: EvidenceFact = {
  code: 'creator_declaration',
  contentClass: 'creator_declaration',
  status: 'none_recorded',
};

/** "One fact per answered creator-survey dimension, favourable and adverse alike." */
function factsOf({ submissionId, answers }: DeclarationEnvelope): readonly EvidenceFact[] {
  return DIMENSIONS.flatMap((dimension) => {
    const answer = answers[dimension];
    if (answer === undefined) return [];
    // A creator who disputes an assessment contradicts someone: which of them is right is for a person to
    // say.
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

function gap(code: string, status: FactStatus): EvidenceFact {
  return { code, contentClass: 'unverifiable_coverage_gap', status };
}

/** "Evidence report asks for a human decision; not a credential failure." */
export function asksForReview({ facts, conflicts, unverifiable }: EvidenceReport): boolean {
  return [...facts, ...conflicts, ...unverifiable].some(({ status }) => status === 'needs_review');
}

/** "Counts of declarations, conflicts and unverifiable facts." */
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
