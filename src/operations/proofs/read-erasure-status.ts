import type { AssetStore } from '../../ports/assets.js';
import type { ProofStore } from '../../ports/stores.js';
import type { OperatorOperations } from '../operations.js';
import { noSuchProof } from './find-proof.js';

/** What is left of a proof; an erased one is a tombstone with no content. */
export async function readErasureStatus(
  { stores, assets }: { readonly stores: ProofStore; readonly assets: AssetStore },
  proofId: string,
): ReturnType<OperatorOperations['erasureStatus']> {
  const proof = await stores.getProof(proofId);
  if (proof === undefined) throw noSuchProof();
  const assetPresent = (await assets.size(proofId)) !== undefined;
  if (proof.state !== 'erased') return { proofId, state: proof.state, assetPresent };
  const { state, erasedAt, confirmedAt } = proof;
  return { proofId, state, erasedAt, ...(confirmedAt === undefined ? {} : { confirmedAt }), assetPresent };
}
