/**
 * The findings of the auditor, which compares the stores. The auditor reports a finding and never repairs it.
 */

/** The parts of the stores, in the order of a pass. */
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
  /**
   * The id of the proof or review, or the partner and month. Only operators may see it, so it is never
   * logged.
   */
  readonly subject: string;
  /** A description that contains nothing from a caller. */
  readonly detail: string;
}

/** One step of a pass. */
export interface AuditStep {
  readonly findings: readonly Finding[];
  /** The number of checked items. */
  readonly looked: number;
  /** Where the next step starts. Absent at the end of the pass. */
  readonly next?: string;
}
