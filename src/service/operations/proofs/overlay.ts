import { defined } from '../../../core/domain/defined.js';
import {
  type DeclarationEnvelope,
  envelopeOf,
  isAuthentic,
  type StoredDeclaration,
} from '../../../witness/domain/declaration.js';
import {
  ENGINE_VERSION,
  type EvidenceFacts,
  type EvidenceOverlay,
  type StoredConsent,
} from '../../../witness/domain/evidence.js';
import { isOverlayAuthentic, nextOverlay } from '../../../witness/domain/evidence-overlay.js';
import { type EvidenceFact, summariseEvidence } from '../../../witness/domain/evidence-report.js';
import { settleSummary } from '../../../witness/domain/evidence-summary.js';
import { composeReport } from '../../../witness/report/compose-report.js';
import type { StoredEvidence } from '../../../witness/report/compose-stored.js';
import { evaluateOverlay } from '../../../witness/report/overlay.js';
import type { IssuedProof } from '../../domain/proof.js';
import type { Secrets } from '../../ports/secrets.js';
import type { OverlayStep } from '../../ports/stores.js';

/** The content of a proof's overlay that passed its check. */
export interface CheckedOverlay {
  readonly revision: number;
  readonly engineVersion: number;
  /** The authentic declarations, oldest first. */
  readonly declarations: readonly DeclarationEnvelope[];
  /**
   * The number of records that the service did not write. An overlay that was altered as a whole counts as at
   * least one.
   */
  readonly altered: number;
  /**
   * The creator's consent. Absent also when the overlay was altered, because the consent cannot be trusted
   * then.
   */
  readonly consent?: StoredConsent;
  /** The conflicts and inferences. Empty when the overlay was altered. */
  readonly facts: readonly EvidenceFact[];
}

/**
 * Checks the overlay of a proof that was already read, without reading a store.
 * @returns undefined when nothing was added after issuing
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

/** A change of an overlay. Absent members stay unchanged. */
export interface OverlayChange {
  readonly declarations?: readonly StoredDeclaration[];
  /** The granted consent. Null revokes it. */
  readonly consent?: StoredConsent | null;
}

/** Returns the content of a report that is in the proof's record. */
export function contentOf(
  overlay: CheckedOverlay | undefined,
): Pick<StoredEvidence, 'overlay' | 'declarations' | 'altered'> {
  const { declarations = [], altered = 0 } = overlay ?? {};
  return defined({ overlay, declarations, altered });
}

/**
 * Returns the overlay of a proof after a change, with the summary that includes it.
 * @param facts facts of the proof's trace. Undefined when there are none, or they were altered
 */
export function reviseProof(
  secrets: Secrets,
  proof: IssuedProof,
  facts: EvidenceFacts | undefined,
  change: OverlayChange,
): Omit<OverlayStep<unknown>, 'result'> {
  const overlay = reviseOverlay(secrets, proof, facts, change);
  // Without sound facts the next list settles the summary.
  if (proof.evidence !== undefined && facts === undefined) return { overlay };
  const content = contentOf(checkOverlay(secrets, { ...proof, overlay }));
  const report = composeReport(facts === undefined ? content : { ...content, facts });
  return { overlay, summary: settleSummary(summariseEvidence(report), overlay.mac, facts?.session.device) };
}

/**
 * Returns the overlay of a proof after a change. Rules are evaluated again over the authentic declarations
 * only. An altered declaration is kept as stored. The consent of an altered overlay is not carried over.
 * @param facts facts of the proof's trace. Undefined when there are none, or they were altered
 */
function reviseOverlay(
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
 * Returns the keys of overlays and declarations, the current one first. They are the keys of the audit log,
 * because they serve the same purpose: they reveal edits of the store.
 */
export function overlayKeys(secrets: Secrets): readonly [Uint8Array, ...Uint8Array[]] {
  return [secrets.current('audit').key, ...secrets.all('audit').map(({ key }) => key)];
}
