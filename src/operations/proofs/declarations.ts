import {
  addDeclaration,
  type Declaration,
  type DeclarationEnvelope,
  type DeclarationStep,
  envelopeOf,
  isAuthentic,
  MAX_DECLARATIONS,
  type StoredDeclaration,
  SUBMISSION_SKEW_SECONDS,
  sealDeclaration,
} from '../../domain/declaration.js';
import { defined } from '../../domain/defined.js';
import { DomainError } from '../../domain/errors.js';
import { ENGINE_VERSION, type StoredConsent } from '../../domain/evidence.js';
import { isOverlayAuthentic, nextOverlay } from '../../domain/evidence-overlay.js';
import type { EvidenceFact } from '../../domain/evidence-report.js';
import type { IssuedProof } from '../../domain/proof.js';
import type { Secrets } from '../../ports/secrets.js';
import type { ProofStore } from '../../ports/stores.js';
import type { Clock } from '../../ports/system.js';
import { findIssued, noSuchProof } from './find-proof.js';

export interface RecordDeclarationDeps {
  readonly stores: ProofStore;
  readonly secrets: Secrets;
  readonly clock: Clock;
}

const MESSAGES = {
  submission_id_reused: 'This submission was recorded with other content.',
  declarations_full: `A proof holds at most ${MAX_DECLARATIONS} declarations.`,
} as const;

/**
 * Records what the operator's side declares of a proof: only an issued proof takes a declaration. A repeated
 * submission changes nothing.
 * @returns what was stored; `repeated` where the same submission was recorded before
 */
export async function recordDeclaration(
  deps: RecordDeclarationDeps,
  proofId: string,
  declaration: Declaration,
): Promise<{ readonly declaration: DeclarationEnvelope; readonly repeated: boolean }> {
  const { partnerId } = await findIssued(deps.stores, proofId);
  const at = Math.floor(deps.clock.now() / 1000);
  if (declaration.submittedAt > at + SUBMISSION_SKEW_SECONDS)
    throw new DomainError('invalid_request', 'submittedAt lies in the future.', { reason: 'invalid_member' });
  const keys = overlayKeys(deps.secrets);
  const sealed = sealDeclaration(keys[0], proofId, declaration, at);
  const step = await deps.stores.changeOverlay<DeclarationStep>(
    proofId,
    ({ overlay }) => {
      const result = addDeclaration(overlay?.declarations ?? [], sealed);
      if (result.outcome !== 'recorded') return { result };
      const { declarations } = result;
      const content = { ...defined({ consent: overlay?.consent }), declarations };
      return {
        result,
        overlay: nextOverlay(keys, proofId, overlay, {
          ...content,
          engineVersion: ENGINE_VERSION,
          facts: overlay?.facts ?? [],
        }),
      };
    },
    {
      partnerId,
      action: 'declaration_recorded',
      at,
      actor: 'operator',
      subjects: [proofId, declaration.submissionId],
    },
  );
  if (step === 'proof_gone') throw noSuchProof();
  if (step.outcome === 'refused')
    throw new DomainError('conflict', MESSAGES[step.reason], { reason: step.reason });
  return step.outcome === 'recorded'
    ? { declaration: envelopeOf(sealed), repeated: false }
    : { declaration: envelopeOf(step.declaration), repeated: true };
}

/** Declarations of an issued proof, in the order of recording. */
export async function listDeclarations(
  { stores, secrets }: { readonly stores: ProofStore; readonly secrets: Secrets },
  proofId: string,
): Promise<readonly CheckedDeclaration[]> {
  const { overlay } = await findIssued(stores, proofId);
  return checkDeclarations(secrets, proofId, overlay?.declarations ?? []);
}

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
  const checked = checkDeclarations(secrets, proofId, overlay.declarations);
  const declarations = checked
    .filter(({ authentic }) => authentic)
    .map(({ authentic: _checked, ...envelope }) => envelope);
  const { revision, engineVersion, consent, facts } = overlay;
  const isWhole = isOverlayAuthentic(overlayKeys(secrets), proofId, overlay);
  const unsound = checked.length - declarations.length;
  return {
    revision,
    engineVersion,
    declarations,
    altered: isWhole && overlay.altered !== true ? unsound : Math.max(1, unsound),
    facts: isWhole ? facts : [],
    ...(isWhole ? defined({ consent }) : {}),
  };
}

/**
 * A declaration as the operator's side sees it: one that was altered in the store is shown as not authentic.
 */
export interface CheckedDeclaration extends DeclarationEnvelope {
  readonly authentic: boolean;
}

function checkDeclarations(
  secrets: Secrets,
  proofId: string,
  declarations: readonly StoredDeclaration[],
): readonly CheckedDeclaration[] {
  const keys = overlayKeys(secrets);
  return declarations.map((stored) => ({
    ...envelopeOf(stored),
    authentic: isAuthentic(keys, proofId, stored),
  }));
}

/**
 * Keys of overlays and declarations, the current one first: those of the audit log, whose purpose is the same,
 * namely that edits of the store are found.
 */
export function overlayKeys(secrets: Secrets): readonly [Uint8Array, ...Uint8Array[]] {
  return [secrets.current('audit').key, ...secrets.all('audit').map(({ key }) => key)];
}
