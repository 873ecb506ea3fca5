import { isRecordDamaged } from '../domain/errors.js';
import type { AssetStore } from '../ports/assets.js';
import type { ErasureJournal } from '../ports/journals.js';
import type { Observer } from '../ports/observer.js';
import type { ProofStore } from '../ports/stores.js';

export interface ReplayDeps {
  readonly stores: ProofStore;
  readonly assets: AssetStore;
  readonly journal: ErasureJournal;
  readonly observer: Pick<Observer, 'fault'>;
}

type Erasure = Parameters<ErasureJournal['record']>[0];

/** Lines of the journal that are held against the store at once, and share what it writes. */
const BATCH = 64;

/**
 * Holds every line of the journal against the store, at start, before anyone is served: a backup of any age
 * may have come back. Only tombstones are written, and the assets removed; what else a proof had is removed
 * later, while others are served. A proof whose row is damaged is passed over and reported: nobody is served
 * it, and the others need not wait.
 * @returns how many proofs were erased
 */
export async function replayErasures({ stores, assets, journal, observer }: ReplayDeps): Promise<number> {
  const replay = async ({ proofId, partnerId, erasedAt }: Erasure): Promise<boolean> => {
    const proof = await stores.getProof(proofId).catch((error: unknown) => {
      if (!isRecordDamaged(error)) throw error;
      observer.fault('erasures', error);
      return undefined;
    });
    if (proof?.state !== 'issued') return false;
    // The journal knows no key; whoever started the service erases.
    const erasure = await stores.eraseProof(
      proofId,
      partnerId,
      erasedAt,
      { partnerId, action: 'proof_erased', at: erasedAt, actor: 'operator', subjects: [proofId] },
      'bypass',
    );
    if (erasure === 'not_found') return false;
    await assets.delete(proofId);
    return true;
  };
  let erased = 0;
  let batch: Erasure[] = [];
  const finish = async (): Promise<void> => {
    for (const wasErased of await Promise.all(batch.map(replay))) if (wasErased) erased += 1;
    batch = [];
  };
  for await (const erasure of journal.read()) {
    batch.push(erasure);
    if (batch.length === BATCH) await finish();
  }
  await finish();
  return erased;
}
