import {
  type DeclarationEnvelope,
  envelopeOf,
  isAuthentic,
  type StoredDeclaration,
} from '../../domain/declaration.js';
import { defined } from '../../domain/defined.js';
import {
  ENGINE_VERSION,
  type EvidenceFacts,
  type EvidenceOverlay,
  type StoredConsent,
} from '../../domain/evidence.js';
import { isOverlayAuthentic, nextOverlay } from '../../domain/evidence-overlay.js';
import type { EvidenceFact } from '../../domain/evidence-report.js';
import type { IssuedProof } from '../../domain/proof.js';
import { evaluateOverlay } from '../../evidence/overlay.js';
import type { Secrets } from '../../ports/secrets.js';

/** The believed content of a proof's overlay. */
export interface CheckedOverlay {
  readonly revision: number;
  readonly engineVersion: number;
  /** Authentic declarations, oldest first. */
  readonly declarations: readonly DeclarationEnvelope[];
  /** Number of records that are not what the service wrote; an overlay altered as a whole is at least one. */
  readonly altered: number;
  /** Absent, too, where the overlay was altered: nobody can say then what the creator agreed to. */
  readonly consent?: StoredConsent;
  /** Conflicts and inferences; none where the overlay was altered. */
  readonly facts: readonly EvidenceFact[];
}

/**
 * Checks the overlay of a proof that was read already; no store is asked.
 * @returns undefined where nothing came after issuing
 */
export function checkOverlay(secrets: Secrets, proof: IssuedProof): CheckedOverlay | undefined {
  const { proofId, overlay } = proof;
  if (overlay === undefined) return undefined;
  const declarations = authenticOf(secrets, proofId, overlay.declarations).map(envelopeOf);
  const { revision, engineVersion, consent, facts } = overlay;
  const isWhole = isOverlayAuthentic(overlayKeys(secrets), proofId, overlay);
  const unsound = overlay.declarations.length - declarations.length;
  return {
    revision,
    engineVersion,
    declarations,
    altered: isWhole && overlay.altered !== true ? unsound : Math.max(1, unsound),
    facts: isWhole ? facts : [],
    ...(isWhole ? defined({ consent }) : {}),
  };
}

/** Changed content of an overlay; what is absent stays. */
export interface OverlayChange {
  readonly declarations?: readonly StoredDeclaration[];
  /** Consent that is granted; null takes it back. */
  readonly consent?: StoredConsent | null;
}

/**
 * The overlay of a proof after a change. Rules are asked anew, of the authentic declarations alone. An altered
 * declaration stays as it lies, and no consent is taken over from an overlay that was altered.
 * @param facts settled facts of the proof's trace; undefined where there are none, or they were altered
 */
export function reviseOverlay(
  secrets: Secrets,
  { proofId, overlay }: IssuedProof,
  facts: EvidenceFacts | undefined,
  change: OverlayChange,
): EvidenceOverlay {
  const keys = overlayKeys(secrets);
  const { declarations = overlay?.declarations ?? [] } = change;
  const isWhole = overlay !== undefined && isOverlayAuthentic(keys, proofId, overlay);
  const consent = change.consent === undefined ? (isWhole ? overlay.consent : undefined) : change.consent;
  return nextOverlay(keys, proofId, overlay, {
    engineVersion: ENGINE_VERSION,
    declarations,
    facts: evaluateOverlay(facts, authenticOf(secrets, proofId, declarations)),
    ...(consent == null ? {} : { consent }),
  });
}

export function authenticOf(
  secrets: Secrets,
  proofId: string,
  declarations: readonly StoredDeclaration[],
): readonly StoredDeclaration[] {
  const keys = overlayKeys(secrets);
  return declarations.filter((stored) => isAuthentic(keys, proofId, stored));
}

/**
 * Keys of overlays and declarations, the current one first: those of the audit log, whose purpose is the same,
 * namely that edits of the store are found.
 */
export function overlayKeys(secrets: Secrets): readonly [Uint8Array, ...Uint8Array[]] {
  return [secrets.current('audit').key, ...secrets.all('audit').map(({ key }) => key)];
}
