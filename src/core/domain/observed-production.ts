/**
 * The production as far as a trace proves it, in the few members that a carrier may contain (rule 10.12):
 * counts, and digests of imports. Signed content cannot be revoked, so source detail is excluded. A count is
 * never zero: an absent count means unknown or none.
 */
export interface ObservedProduction {
  /**
   * True if every channel was watched throughout, the export follows from the witnessed arrangement, rendering it
   * again gave the same samples, no edit followed the export, and every placed import is listed.
   */
  readonly complete: boolean;
  /** True if the session was observed to contain only takes recorded in real time. */
  readonly captured: boolean;
  /** The placed imports in the order of import, at most `MAX_OBSERVED_IMPORTS`. */
  readonly imports: readonly ObservedImport[];
  /** The number of all placed imports, listed or not. */
  readonly importCount?: number;
  /** The number of takes that were observed to be recorded in real time. */
  readonly takes?: number;
  /** The number of notes that were entered or played in. */
  readonly notes?: number;
  /** The number of edits of clips, existing notes, automation, plug-ins and mixer. */
  readonly edits?: number;
}

/** An imported source by its digest. The digest is absent if it is unknown. */
export interface ObservedImport {
  readonly sha256?: string;
  /** What the digest covers: the whole original file, or the samples as stored in the session. */
  readonly of?: 'file' | 'samples';
}

export const MAX_OBSERVED_IMPORTS = 32;

/** The production if nothing was observed: the audio is from elsewhere. */
export const NOTHING_OBSERVED: ObservedProduction = { complete: false, captured: false, imports: [] };
