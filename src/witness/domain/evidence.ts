/**
 * The evidence of a proof as stored: facts that were derived at issuing and never change, and an overlay of
 * later additions. Each has the version of the engine that made it. Neither is recomputed without a new
 * version or revision.
 */
import type { StoredDeclaration } from './declaration.js';
import type { EvidenceFact } from './evidence-report.js';
import type { ImportedSource, SessionEvidence, SourceDetail } from './session-evidence.js';

/** The version of the engine: replay and rules. It increases with every change of their results. */
export const ENGINE_VERSION = 3;

/** The facts derived from a trace. */
export interface EvidenceFacts {
  readonly engineVersion: number;
  readonly session: SessionEvidence;
  readonly importedSources?: readonly ImportedSource[];
  readonly importedSourceCount?: number;
  /** The number of imports observed in the arrangement, listed or not. Absent if there was none. */
  readonly placedImportCount?: number;
  /** Observations, inferences from the trace only, and gaps. Each has its content class. */
  readonly facts: readonly EvidenceFact[];
  /** The inputs from the trace for rules about declarations. They are small and flat. */
  readonly inputs: RuleInputs;
}

/** The inputs of rules, all from the trace. An absent member is unknown, and no rule treats it as zero. */
export interface RuleInputs {
  readonly imports?: number;
  readonly importPlacements?: number;
  /**
   * The seconds of the exported range that contain imported audio (a lower bound), and the length of the
   * range. Known if the export was shown to follow from the witnessed arrangement.
   */
  readonly importedSeconds?: number;
  readonly exportSeconds?: number;
  /**
   * The number of takes, except takes from an input inside the workstation, plus notes entered or played in.
   * It is 0 if none was seen, and either both were watched throughout or everything exported is from imports.
   */
  readonly entries?: number;
  readonly takesInRealTime?: number;
  /**
   * The number of observed clip edits. Known if clips were watched or everything exported is from imports.
   */
  readonly clipEdits?: number;
  readonly clipEditsOfImports?: number;
  readonly placements?: number;
  readonly editsAfterExport?: number;
  /** The number of imports in the arrangement that the issuing side's detector attributed to a generator. */
  readonly attributedImports?: number;
}
export type RuleInput = keyof RuleInputs;

/** The source detail as stored: the delivered form without the required consent. */
export type StoredSourceDetail = Omit<SourceDetail, 'consentVersion'>;

/** A creator's consent to the delivery of source detail. */
export interface StoredConsent {
  /** The exact version of the text that the creator agreed to. It is opaque. */
  readonly consentVersion: string;
  /** The time of the consent in unix seconds. */
  readonly grantedAt: number;
}

/**
 * The parts of a proof's evidence in the store. `facts` and `detail` are bodies, `trace` is always a file.
 */
export const EVIDENCE_PARTS = ['facts', 'detail', 'trace'] as const;
export type EvidencePart = (typeof EVIDENCE_PARTS)[number];

/** The largest body in a row, in bytes, including what encryption adds. */
export const MAX_EVIDENCE_ROW = 65_536;
/**
 * The largest body in the registry, in bytes. Larger bodies are in the object store, and their digest in the
 * registry.
 */
export const MAX_INLINE_EVIDENCE = MAX_EVIDENCE_ROW - 64;

/** Checks that all bodies fit into rows. @throws RangeError for a body that belongs in the object store */
export function assertInline(bodies: readonly { readonly body: Uint8Array }[]): void {
  if (bodies.some(({ body }) => body.length > MAX_EVIDENCE_ROW))
    throw new RangeError(`the evidence is larger than ${MAX_EVIDENCE_ROW} bytes and does not fit into a row`);
}

/** The reference in the proof's record to the evidence derived at issuing. */
export interface EvidenceReference {
  readonly engineVersion: number;
  readonly traceSha256: string;
  readonly parts: readonly {
    readonly part: EvidencePart;
    readonly bytes: number;
    readonly sha256: string;
    /** Where the body is stored. */
    readonly place: 'registry' | 'objects';
  }[];
}

/** The overlay of a proof: declarations, consent, and what the rules derived from them and the facts. */
export interface EvidenceOverlay {
  /** The number of changes so far. */
  readonly revision: number;
  readonly engineVersion: number;
  readonly declarations: readonly StoredDeclaration[];
  readonly consent?: StoredConsent;
  /** Conflicts and inferences that need declarations. */
  readonly facts: readonly EvidenceFact[];
  /**
   * Present once a change found an overlay that the service did not write. No later change removes this mark.
   */
  readonly altered?: true;
  /** The HMAC over the proof's id and all other members, in lower-case hex. */
  readonly mac: string;
}
