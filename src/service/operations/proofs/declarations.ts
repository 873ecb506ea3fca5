import { DomainError } from '../../../core/domain/errors.js';
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
} from '../../../witness/domain/declaration.js';
import type { AssetStore } from '../../ports/assets.js';
import type { Secrets } from '../../ports/secrets.js';
import type { ProofStore } from '../../ports/stores.js';
import type { Clock } from '../../ports/system.js';
import { readFacts } from './evidence-parts.js';
import { findIssued, noSuchProof } from './find-proof.js';
import { overlayKeys, reviseProof } from './overlay.js';

export interface RecordDeclarationDeps {
  readonly stores: ProofStore;
  readonly assets: Pick<AssetStore, 'read'>;
  readonly secrets: Secrets;
  readonly clock: Clock;
}

const MESSAGES = {
  submission_id_reused: 'This submissionId was already used with different answers.',
  declarations_full: `A proof can have at most ${MAX_DECLARATIONS} declarations.`,
} as const;

/**
 * Records a declaration of the operator's side about an issued proof. Repeating a submission changes nothing.
 * @returns the stored declaration. `repeated` is true when the same submission was recorded before
 * @throws DomainError `not_found`, `invalid_request`, or `conflict` / `submission_id_reused`,
 * `declarations_full`
 */
export async function recordDeclaration(
  deps: RecordDeclarationDeps,
  proofId: string,
  declaration: Declaration,
): Promise<{ readonly declaration: DeclarationEnvelope; readonly repeated: boolean }> {
  const issued = await findIssued(deps.stores, proofId);
  const { partnerId } = issued;
  const at = Math.floor(deps.clock.now() / 1000);
  if (declaration.submittedAt > at + SUBMISSION_SKEW_SECONDS)
    throw new DomainError('invalid_request', 'submittedAt is in the future.', { reason: 'invalid_member' });
  const sealed = sealDeclaration(deps.secrets.current('audit').key, proofId, declaration, at);
  // Facts never change, so they are read before the atomic step.
  const facts = await readFacts(deps, issued);
  const step = await deps.stores.changeOverlay<DeclarationStep>(
    proofId,
    (proof) => {
      const result = addDeclaration(proof.overlay?.declarations ?? [], sealed);
      if (result.outcome !== 'recorded') return { result };
      return {
        result,
        ...reviseProof(deps.secrets, proof, facts, { declarations: result.declarations }),
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

/** Returns the declarations of an issued proof, in the order of recording. */
export async function listDeclarations(
  { stores, secrets }: { readonly stores: ProofStore; readonly secrets: Secrets },
  proofId: string,
): Promise<readonly CheckedDeclaration[]> {
  const { overlay } = await findIssued(stores, proofId);
  return checkDeclarations(secrets, proofId, overlay?.declarations ?? []);
}

/**
 * A declaration as the operator's side sees it. `authentic` is false for a declaration that was altered in
 * the store.
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
