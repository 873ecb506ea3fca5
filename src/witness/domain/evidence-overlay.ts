/** Seals, checks and changes the overlay of a proof's evidence. */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { defined } from '../../core/domain/defined.js';
import type { StoredDeclaration } from './declaration.js';
import type { EvidenceOverlay, StoredConsent } from './evidence.js';
import type { EvidenceFact } from './evidence-report.js';

/**
 * The most changes of an overlay. The proof's row counts all changes, so they need a bound. Revoking a
 * consent is allowed beyond the bound.
 */
export const MAX_OVERLAY_REVISIONS = 256;

/** The content that a change sets. All other members of the overlay are derived. */
export interface OverlayContent {
  readonly engineVersion: number;
  readonly declarations: readonly StoredDeclaration[];
  readonly consent?: StoredConsent;
  readonly facts: readonly EvidenceFact[];
}

/**
 * Returns the overlay that follows `former` (undefined: there is none yet), sealed for one proof.
 * @param keys every secret that may have sealed the former overlay. The first secret seals the new overlay.
 */
export function nextOverlay(
  keys: readonly [Uint8Array, ...Uint8Array[]],
  proofId: string,
  former: EvidenceOverlay | undefined,
  content: OverlayContent,
): EvidenceOverlay {
  const { engineVersion, declarations, consent, facts } = content;
  const wasAltered =
    former !== undefined && (former.altered === true || !isOverlayAuthentic(keys, proofId, former));
  const sealed = defined({
    revision: (former?.revision ?? 0) + 1,
    engineVersion,
    declarations,
    consent,
    facts,
    altered: wasAltered ? (true as const) : undefined,
  });
  return { ...sealed, mac: overlayMac(keys[0], proofId, sealed) };
}

/**
 * Returns whether the whole overlay was sealed for the proof.
 * @param keys every secret that may have sealed it
 */
export function isOverlayAuthentic(
  keys: readonly Uint8Array[],
  proofId: string,
  overlay: EvidenceOverlay,
): boolean {
  const mac = Buffer.from(overlay.mac, 'hex');
  return (
    mac.length === 32 &&
    keys.some((key) => timingSafeEqual(mac, Buffer.from(overlayMac(key, proofId, overlay), 'hex')))
  );
}

function overlayMac(key: Uint8Array, proofId: string, overlay: Omit<EvidenceOverlay, 'mac'>): string {
  const { revision, engineVersion, declarations, consent, facts, altered } = overlay;
  const covered = [
    'takemark overlay',
    proofId,
    revision,
    engineVersion,
    declarations,
    consent ?? null,
    facts,
    altered ?? false,
  ];
  return createHmac('sha256', key).update(JSON.stringify(covered, inOneOrder)).digest('hex');
}

/** Sorts members by name, because a store may return them in any order. */
function inOneOrder(_name: string, value: unknown): unknown {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)))
    : value;
}
