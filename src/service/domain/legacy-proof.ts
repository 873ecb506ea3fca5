/** Proofs that are imported from an earlier registry (rule 9.28). */

/** The most characters of the values of older proofs. */
export const LEGACY_LIMITS = { classification: 100, grade: 100, interpretation: 2000 } as const;

/**
 * The calibration values of an older proof: compatibility data that do not state a share of authorship or
 * work.
 */
export interface LegacyValues {
  readonly classification?: string;
  readonly grade?: string;
  readonly interpretation?: string;
}

/** The mark of an imported proof. The proof has no report, and its file is not stored here. */
export interface LegacyMark extends LegacyValues {
  /** The time of the import in unix seconds. */
  readonly importedAt: number;
}

/** Returns the values of an imported proof, without the other members of the mark. */
export function legacyValues(mark: LegacyMark | undefined): LegacyValues {
  if (mark === undefined) return {};
  const { importedAt: _importedAt, ...values } = mark;
  return values;
}
