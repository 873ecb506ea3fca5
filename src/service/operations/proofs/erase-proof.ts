import { defined } from '../../../core/domain/defined.js';
import type { AssetStore } from '../../ports/assets.js';
import type { ErasureJournal } from '../../ports/journals.js';
import type { ProofStore } from '../../ports/stores.js';
import type { Clock } from '../../ports/system.js';
import type { Caller } from '../caller.js';
import { noSuchProof } from './find-proof.js';

export interface EraseProofDeps {
  readonly stores: ProofStore;
  readonly assets: AssetStore;
  readonly journal: ErasureJournal;
  readonly clock: Clock;
}

/**
 * Erases a proof.
 * 1. The store writes the tombstone. From then on the proof is erased, even if a later step fails.
 * 2. The journal records the erasure, so that a restored backup does not bring the proof back.
 * 3. The asset and its key are deleted.
 * The call succeeds only after all three steps. A repeated call completes an interrupted one, and so does the
 * consumer of erasures.
 */
export async function eraseProof(
  { stores, assets, journal, clock }: EraseProofDeps,
  { partnerId, keyId }: Caller,
  { proofId }: { readonly proofId: string },
): Promise<{
  readonly proofId: string;
  readonly outcome: 'erased' | 'already_erased';
  readonly erasedAt: number;
}> {
  const at = Math.floor(clock.now() / 1000);
  const erasure = await stores.eraseProof(proofId, partnerId, at, {
    partnerId,
    action: 'proof_erased',
    at,
    actor: keyId,
    subjects: [proofId],
  });
  if (erasure === 'not_found') throw noSuchProof();
  const { outcome, proof } = erasure;
  const { erasedAt, confirmedAt } = proof;
  // Already confirmed erasures are in the journal. Repeated calls must not append them again.
  if (confirmedAt === undefined) await journal.record({ proofId, partnerId, erasedAt });
  await assets.delete(proofId);
  return { proofId, outcome, erasedAt };
}

/**
 * Returns the state of a proof, and whether its asset still exists. An erased proof is a tombstone without
 * content.
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
