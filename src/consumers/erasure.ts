import { PoisonError } from '../domain/batch-delivery.js';
import type { ServiceEvent } from '../domain/events.js';
import type { AssetStore } from '../ports/assets.js';
import type { EventHandler } from '../ports/bus.js';
import type { ProofStore } from '../ports/stores.js';
import type { Clock } from '../ports/system.js';

export interface ErasureConsumerDeps {
  readonly stores: Pick<ProofStore, 'getProof' | 'eraseProof' | 'confirmErasure'>;
  readonly assets: Pick<AssetStore, 'delete' | 'size'>;
  readonly clock: Clock;
}

/** Removes everything derived from an erased proof and confirms it (rule 11.12). */
export function erasureConsumer(deps: ErasureConsumerDeps): EventHandler {
  return async (events) => {
    for (const event of events) await finishErasure(deps, event);
  };
}

async function finishErasure(
  { stores, assets, clock }: ErasureConsumerDeps,
  event: ServiceEvent,
): Promise<void> {
  if (event.topic !== 'erasure') throw new PoisonError('not an erasure');
  const { proofId, partnerId, erasedAt } = event.data;
  const state = (await stores.getProof(proofId))?.state;
  if (state === 'issued') {
    // A restored backup brought the proof back. Event and journal name no key, so the operator is the actor
    // of the erasure.
    const erasure = await stores.eraseProof(proofId, partnerId, erasedAt, {
      partnerId,
      action: 'proof_erased',
      at: erasedAt,
      actor: 'operator',
      subjects: [proofId],
    });
    if (erasure === 'not_found')
      throw new PoisonError('the proof is not of the partner that the event names');
  } else if (state !== 'erased') {
    // A store that was restored from before the proof came to be holds nothing of the proof.
    return;
  }
  await assets.delete(proofId);
  if ((await assets.size(proofId)) !== undefined)
    throw new Error('the asset of an erased proof is still there');
  await stores.confirmErasure(proofId, Math.floor(clock.now() / 1000));
}
