/** Proofs of an earlier registry, which come in by an import (rule 9.28). */

/** Most characters of the values that older proofs carry. */
export const LEGACY_LIMITS = { classification: 100, grade: 100, interpretation: 2000 } as const;

/** Calibration of an older proof as it was told then: compatibility data, and no share of authorship or work. */
export interface LegacyValues {
  readonly classification?: string;
  readonly grade?: string;
  readonly interpretation?: string;
}

/** Mark of an imported proof: it has no report of its own, and its file is not kept here. */
export interface LegacyMark extends LegacyValues {
  /** Unix seconds. */
  readonly importedAt: number;
}

/** Values of an imported proof, without the mark's own members. */
export function legacyValues(mark: LegacyMark | undefined): LegacyValues {
  if (mark === undefined) return {};
  const { importedAt: _importedAt, ...values } = mark;
  return values;
}
