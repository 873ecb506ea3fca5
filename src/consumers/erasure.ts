import { eachOf } from '../async/each-of.js';
import { PoisonError } from '../domain/batch-delivery.js';
import { DomainError } from '../domain/errors.js';
import type { ErasureEvent, ServiceEvent } from '../domain/events.js';
import type { AssetStore } from '../ports/assets.js';
import type { EventHandler } from '../ports/bus.js';
import type { ErasureJournal } from '../ports/journals.js';
import type { ProofStore } from '../ports/stores.js';
import type { Clock } from '../ports/system.js';

export interface ErasureConsumerDeps {
  readonly stores: Pick<ProofStore, 'getProof' | 'eraseProof' | 'confirmErasure'>;
  readonly assets: Pick<AssetStore, 'delete' | 'size'>;
  readonly journal: Pick<ErasureJournal, 'record'>;
  readonly clock: Clock;
}

/** Proofs that one process removes at once. */
const PROOFS_AT_ONCE = 16;

/**
 * Notes an erasure in the journal, removes everything derived from the proof and confirms it (rule 11.12). Proofs are independent of each
 * other; the events of one keep their order.
 */
export function erasureConsumer(deps: ErasureConsumerDeps, atOnce = PROOFS_AT_ONCE): EventHandler {
  return async (events) => {
    const proofs = new Map<string, ServiceEvent[]>();
    for (const event of events) {
      const ofProof = proofs.get(event.key);
      if (ofProof === undefined) proofs.set(event.key, [event]);
      else ofProof.push(event);
    }
    const poisoned: PoisonError[] = [];
    await eachOf(proofs.values(), atOnce, async (ofProof) => {
      try {
        for (const event of ofProof) {
          if (event.topic !== 'erasure') throw new PoisonError('not an erasure');
          await finishErasure(deps, event.data);
        }
      } catch (error) {
        // A failure of the world ends the batch; poison is told of once nothing else is wrong.
        if (!(error instanceof PoisonError)) throw error;
        poisoned.push(error);
      }
    });
    if (poisoned[0] !== undefined) throw poisoned[0];
  };
}

/** Brings one erasure to its end, however far it came. */
export async function finishErasure(
  { stores, assets, journal, clock }: ErasureConsumerDeps,
  { proofId, partnerId, erasedAt }: ErasureEvent['data'],
): Promise<void> {
  let proof = await stores.getProof(proofId);
  if (proof?.state === 'issued') {
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
    proof = erasure.proof;
  } else if (proof?.state !== 'erased') {
    // A store that was restored from before the proof came to be holds nothing of the proof.
    return;
  } else if (proof.confirmedAt !== undefined && (await assets.size(proofId)) === undefined) return;
  // The call that erased may not have come as far as the journal.
  await journal.record({ proofId, partnerId: proof.partnerId, erasedAt: proof.erasedAt });
  await assets.delete(proofId);
  if ((await assets.size(proofId)) !== undefined)
    throw unfinished('The asset of an erased proof is still there.');
  // The tombstone was seen above: whoever does not see it now reads from before it.
  if ((await stores.confirmErasure(proofId, Math.floor(clock.now() / 1000))) === 'not_erased')
    throw unfinished('The tombstone of an erased proof is not there.');
}

/** The event comes again. */
function unfinished(message: string): DomainError {
  return new DomainError('unavailable', message, { reason: 'store_unavailable' });
}
