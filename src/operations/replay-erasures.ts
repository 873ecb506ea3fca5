import type { AssetStore } from '../ports/assets.js';
import type { ErasureJournal } from '../ports/journals.js';
import type { ProofStore } from '../ports/stores.js';

/**
 * At start, before anyone is served: "a restored backup brings erased proofs back", and an erasure whose tombstone was never
 * written is finished.
 * @returns how many proofs were erased
 */
export async function replayErasures({ stores, assets, journal }: { readonly stores: ProofStore; readonly assets: AssetStore; readonly journal: ErasureJournal }): Promise<number> {
  let erased = 0;
  for await (const { proofId, partnerId, erasedAt } of journal.read()) {
    if ((await stores.getProof(proofId))?.state !== 'issued') continue;
    // The journal knows no key; whoever started the service erases.
    const erasure = await stores.eraseProof(proofId, partnerId, erasedAt, { partnerId, action: 'proof_erased', at: erasedAt, actor: 'operator', subjects: [proofId] }, 'waived');
    if (erasure === 'not_found') continue;
    await assets.delete(proofId);
    erased += 1;
  }
  return erased;
}
