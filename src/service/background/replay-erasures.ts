import { isRecordDamaged } from '../../core/domain/errors.js';
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

/** The number of journal entries that are compared with the store at once, and share its writes. */
const BATCH = 64;

/**
 * Applies every entry of the journal to the store. Runs at start, before any call is served, because a backup
 * of any age may have been restored. Only tombstones are written, and the assets deleted. All other data of a
 * proof is deleted later, while calls are served. A proof with a damaged row is skipped and reported. A
 * damaged row is never served, and the other proofs need not wait.
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
    // The journal has no key, so the operator is recorded as the actor.
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
