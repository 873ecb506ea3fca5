import type { AssetStore } from '../../ports/assets.js';
import type { Clock } from '../../ports/clock.js';
import type { ErasureJournal } from '../../ports/journals.js';
import type { ProofStore } from '../../ports/stores.js';
import type { Caller } from '../operations.js';
import { requireScope } from '../require-scope.js';
import { findOwn, noSuchProof } from './find-proof.js';

export interface EraseProofDeps {
  readonly stores: ProofStore;
  readonly assets: AssetStore;
  readonly journal: ErasureJournal;
  readonly clock: Clock;
}

/**
 * Journal, tombstone, deliverable, in this order: from the journal's word on every start finishes what a
 * crash cut short. "A repeat call returns an outcome of `already_erased`", and takes away a deliverable that
 * the first call could not.
 */
export async function eraseProof(
  deps: EraseProofDeps,
  caller: Caller,
  proofId: string,
): Promise<{
  readonly proofId: string;
  readonly outcome: 'erased' | 'already_erased';
  readonly erasedAt: number;
}> {
  requireScope(caller, 'erase');
  const proof = await findOwn(deps.stores, caller, proofId);
  if (proof.state === 'erased') {
    await deps.assets.delete(proofId);
    return { proofId, outcome: 'already_erased', erasedAt: proof.erasedAt };
  }
  const at = Math.floor(deps.clock.now() / 1000);
  const { partnerId } = caller;
  await deps.journal.record({ proofId, partnerId, erasedAt: at });
  const erasure = await deps.stores.eraseProof(proofId, partnerId, at, {
    partnerId,
    action: 'proof_erased',
    at,
    actor: caller.keyId,
    subjects: [proofId],
  });
  if (erasure === 'not_found') throw noSuchProof();
  await deps.assets.delete(proofId);
  return { proofId, outcome: erasure.outcome, erasedAt: erasure.proof.erasedAt };
}
