import { defined } from '../../domain/defined.js';
import type { AssetStore } from '../../ports/assets.js';
import type { ErasureJournal } from '../../ports/journals.js';
import type { ProofStore } from '../../ports/stores.js';
import type { Clock } from '../../ports/system.js';
import type { Caller } from '../caller.js';
import { findOwn, noSuchProof } from './find-proof.js';

export interface EraseProofDeps {
  readonly stores: ProofStore;
  readonly assets: AssetStore;
  readonly journal: ErasureJournal;
  readonly clock: Clock;
}

/**
 * Erases a proof: journal, tombstone, asset, in this order, so no backup of the store brings back what was
 * acknowledged. What a crash or a refusal of the store cut short behind the journal's entry is finished by the
 * next start of a single service, and in a cluster by a repeat of the call. A repeated call removes an asset that
 * the first call could not.
 */
export async function eraseProof(
  deps: EraseProofDeps,
  caller: Caller,
  { proofId }: { readonly proofId: string },
): Promise<{
  readonly proofId: string;
  readonly outcome: 'erased' | 'already_erased';
  readonly erasedAt: number;
}> {
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

/**
 * State of a proof, and whether its asset is gone. An erased proof is a tombstone with no content.
 */
export async function erasureStatus(
  { stores, assets }: Pick<EraseProofDeps, 'stores' | 'assets'>,
  proofId: string,
): Promise<{
  readonly proofId: string;
  readonly state: 'pending' | 'issued' | 'erased';
  readonly erasedAt?: number;
  readonly confirmedAt?: number;
  readonly assetPresent: boolean;
}> {
  const proof = await stores.getProof(proofId);
  if (proof === undefined) throw noSuchProof();
  const assetPresent = (await assets.size(proofId)) !== undefined;
  if (proof.state !== 'erased') return { proofId, state: proof.state, assetPresent };
  const { state, erasedAt, confirmedAt } = proof;
  return defined({ proofId, state, erasedAt, confirmedAt, assetPresent });
}
