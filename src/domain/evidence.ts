/**
 * Evidence of a proof as it is stored: facts that were settled when the proof was issued and never change, and an
 * overlay of what came after. Each names the version of the engine that made it, and neither is made anew in silence.
 */
import type { StoredDeclaration } from './declaration.js';
import type { EvidenceFact } from './evidence-report.js';
import type { ImportedSource, SessionEvidence, SourceDetail } from './session-evidence.js';

/** Version of the engine: replay and rules. It rises with every change of what they say. */
export const ENGINE_VERSION = 2;

/** Facts of a trace. */
export interface EvidenceFacts {
  readonly engineVersion: number;
  readonly session: SessionEvidence;
  readonly importedSources?: readonly ImportedSource[];
  readonly importedSourceCount?: number;
  /** Imports that were seen to lie in the arrangement, listed or not; absent where none was. */
  readonly placedImportCount?: number;
  /** Observations, inferences from the trace alone, and gaps, each in its class. */
  readonly facts: readonly EvidenceFact[];
  /** Inputs from the trace for rules about declarations; small and flat. */
  readonly inputs: RuleInputs;
}

/** Inputs of rules, all from the trace. A member that is absent is not known, and no rule takes it for zero. */
export interface RuleInputs {
  readonly imports?: number;
  readonly importPlacements?: number;
  /**
   * Seconds of the exported range over which imported audio lies at the least, and the length of that range; known where
   * the arrangement was as it was exported.
   */
  readonly importedSeconds?: number;
  readonly exportSeconds?: number;
  /**
   * Takes, without those from an input inside the workstation, and notes that were entered or played in. 0 where both
   * were watched throughout, or none was seen and all that was exported shows imports alone.
   */
  readonly entries?: number;
  readonly takesInRealTime?: number;
  /** Edits of clips that were seen; known where clips were watched, or all that was exported shows imports alone. */
  readonly clipEdits?: number;
  readonly clipEditsOfImports?: number;
  readonly placements?: number;
  readonly editsAfterExport?: number;
  /** Imports that lie in the arrangement and were attributed to a generator by the issuing side's detector. */
  readonly attributedImports?: number;
}
export type RuleInput = keyof RuleInputs;

/** Source detail as it is stored: the delivered form without the consent that it needs. */
export type StoredSourceDetail = Omit<SourceDetail, 'consentVersion'>;

/** Consent of a creator to the delivery of source detail. */
export interface StoredConsent {
  /** Exact version of the text that was agreed to; opaque. */
  readonly consentVersion: string;
  /** Unix seconds. */
  readonly grantedAt: number;
}

/** Part of a proof's evidence in the store. `facts` and `detail` are bodies, `trace` is a file alone. */
export const EVIDENCE_PARTS = ['facts', 'detail', 'trace'] as const;
export type EvidencePart = (typeof EVIDENCE_PARTS)[number];

/** Bytes of a body in a row, with what encryption adds to it. */
export const MAX_EVIDENCE_ROW = 65_536;
/** Bodies above this many bytes lie in the object store, and only their digest in the registry. */
export const MAX_INLINE_EVIDENCE = MAX_EVIDENCE_ROW - 64;

/** @throws RangeError for a body that belongs into the object store */
export function assertInline(bodies: readonly { readonly body: Uint8Array }[]): void {
  if (bodies.some(({ body }) => body.length > MAX_EVIDENCE_ROW))
    throw new RangeError(`evidence of more than ${MAX_EVIDENCE_ROW} bytes is no body for a store of rows`);
}

/** Reference in the proof's record to evidence that was settled at issuing. */
export interface EvidenceReference {
  readonly engineVersion: number;
  readonly traceSha256: string;
  readonly parts: readonly {
    readonly part: EvidencePart;
    readonly bytes: number;
    readonly sha256: string;
    /** Where the body lies. */
    readonly place: 'registry' | 'objects';
  }[];
}

/** Overlay of a proof: declarations, consent, and what the rules made of them together with the facts. */
export interface EvidenceOverlay {
  /** Rises by one with each change. */
  readonly revision: number;
  readonly engineVersion: number;
  readonly declarations: readonly StoredDeclaration[];
  readonly consent?: StoredConsent;
  /** Conflicts and inferences that need declarations. */
  readonly facts: readonly EvidenceFact[];
  /**
   * Present from the first change on that found an overlay which was not what the service wrote: no later change
   * heals it in silence.
   */
  readonly altered?: true;
  /** HMAC over the proof's id and all other members, lower-case hex. */
  readonly mac: string;
}
