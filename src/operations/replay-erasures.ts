import type { AssetStore } from '../ports/assets.js';
import type { ErasureJournal } from '../ports/journals.js';
import type { ProofStore } from '../ports/stores.js';

type Erasure = Parameters<ErasureJournal['record']>[0];

/** Lines of the journal that are held against the store at once, and share what it writes. */
const BATCH = 64;

/**
 * At start, before anyone is served: every line of the journal is held against the store, because a backup of any age may have come
 * back, and an erasure whose tombstone was never written is finished. Only tombstones are written, and the deliverables taken away;
 * what else a proof had is removed later, while others are served.
 * @returns how many proofs were erased
 */
export async function replayErasures({ stores, assets, journal }: { readonly stores: ProofStore; readonly assets: AssetStore; readonly journal: ErasureJournal }): Promise<number> {
  const replay = async ({ proofId, partnerId, erasedAt }: Erasure): Promise<boolean> => {
    if ((await stores.getProof(proofId))?.state !== 'issued') return false;
    // The journal knows no key; whoever started the service erases.
    const erasure = await stores.eraseProof(proofId, partnerId, erasedAt, { partnerId, action: 'proof_erased', at: erasedAt, actor: 'operator', subjects: [proofId] }, 'waived');
    if (erasure === 'not_found') return false;
    await assets.delete(proofId);
    return true;
  };
  let erased = 0;
  let batch: Erasure[] = [];
  const settle = async (): Promise<void> => {
    for (const wasErased of await Promise.all(batch.map(replay))) if (wasErased) erased += 1;
    batch = [];
  };
  for await (const erasure of journal.read()) {
    batch.push(erasure);
    if (batch.length === BATCH) await settle();
  }
  await settle();
  return erased;
}
