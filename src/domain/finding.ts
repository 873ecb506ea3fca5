/** Findings of the auditor, which holds the stores against each other. A finding is told, never mended. */

/** Parts of the stores, in the order in which a pass goes through them. */
export const AUDITED_PARTS = ['proofs', 'objects', 'reviews', 'months'] as const;
export type AuditedPart = (typeof AUDITED_PARTS)[number];

export const FINDING_KINDS = [
  'erasure_unfinished',
  'object_missing',
  'object_left',
  'key_left',
  'review_unannounced',
  'month_differs',
  'record_damaged',
] as const;
export type FindingKind = (typeof FINDING_KINDS)[number];

export interface Finding {
  readonly kind: FindingKind;
  /** Id of the proof, the review, or the partner with the month. For operators: in no log. */
  readonly subject: string;
  /** Words that hold nothing of a caller. */
  readonly detail: string;
}

/** Step of a pass. */
export interface AuditStep {
  readonly findings: readonly Finding[];
  /** Things that were looked at. */
  readonly looked: number;
  /** Where the next step begins; absent at the end of the pass. */
  readonly next?: string;
}
