import {
  type Declaration,
  type DeclarationEnvelope,
  envelopeOf,
  MAX_DECLARATIONS,
  SUBMISSION_SKEW_SECONDS,
  sealDeclaration,
} from '../../domain/declaration.js';
import { DomainError } from '../../domain/errors.js';
import type { Clock } from '../../ports/clock.js';
import type { Secrets } from '../../ports/secrets.js';
import type { ProofStore } from '../../ports/stores.js';
import { findIssued, noSuchProof } from './find-proof.js';

export interface RecordDeclarationDeps {
  readonly stores: ProofStore;
  readonly secrets: Secrets;
  readonly clock: Clock;
}

const REFUSALS = {
  submission_id_reused: 'This submission was recorded with other content.',
  declarations_full: `A proof holds at most ${MAX_DECLARATIONS} declarations.`,
} as const;

/**
 * "Recorded after issuance, not part of the original proof signature": only an issued proof takes a
 * declaration. Said again it changes nothing.
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
  const sealed = sealDeclaration(deps.secrets.current('audit').key, proofId, declaration, at);
  const subjects = [proofId, declaration.submissionId];
  const step = await deps.stores.recordDeclaration(proofId, sealed, {
    partnerId,
    action: 'declaration_recorded',
    at,
    actor: 'operator',
    subjects,
  });
  if (step.outcome === 'proof_gone') throw noSuchProof();
  if (step.outcome === 'refused')
    throw new DomainError('conflict', REFUSALS[step.reason], { reason: step.reason });
  return step.outcome === 'recorded'
    ? { declaration: envelopeOf(sealed), repeated: false }
    : { declaration: envelopeOf(step.declaration), repeated: true };
}
