import { eachOf } from '../../core/async/each-of.js';
import { DomainError } from '../../core/domain/errors.js';
import { PoisonError } from '../domain/batch-delivery.js';
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

/** The number of proofs that one process erases at once. */
const PROOFS_AT_ONCE = 16;

/**
 * Returns the consumer of erasures. The consumer records an erasure in the journal, deletes everything
 * derived from the proof and confirms the erasure (rule 11.12). Proofs are processed independently. The
 * events of one proof keep their order.
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
        // An outage ends the batch at once. A poisoned event is reported only after all other proofs were
        // processed.
        if (!(error instanceof PoisonError)) throw error;
        poisoned.push(error);
      }
    });
    if (poisoned[0] !== undefined) throw poisoned[0];
  };
}

/** Completes one erasure, from any intermediate state. */
export async function finishErasure(
  { stores, assets, journal, clock }: ErasureConsumerDeps,
  { proofId, partnerId, erasedAt }: ErasureEvent['data'],
): Promise<void> {
  let proof = await stores.getProof(proofId);
  if (proof?.state === 'issued') {
    // A restored backup contained the proof again. The event and the journal have no key, so the operator is
    // recorded as the actor.
    const erasure = await stores.eraseProof(proofId, partnerId, erasedAt, {
      partnerId,
      action: 'proof_erased',
      at: erasedAt,
      actor: 'operator',
      subjects: [proofId],
    });
    if (erasure === 'not_found')
      throw new PoisonError('the proof does not belong to the partner of the event');
    proof = erasure.proof;
  } else if (proof?.state !== 'erased') {
    // A backup from before the proof was issued holds nothing of the proof.
    return;
  } else if (proof.confirmedAt !== undefined && (await assets.size(proofId)) === undefined) return;
  // The call that erased the proof may have failed before it wrote the journal.
  await journal.record({ proofId, partnerId: proof.partnerId, erasedAt: proof.erasedAt });
  await assets.delete(proofId);
  if ((await assets.size(proofId)) !== undefined)
    throw unfinished('The asset of an erased proof still exists.');
  // The tombstone was read above. If it is missing now, this read returned an older state.
  if ((await stores.confirmErasure(proofId, Math.floor(clock.now() / 1000))) === 'not_erased')
    throw unfinished('The tombstone of an erased proof is missing.');
}

/** Returns an error after which the event is delivered again. */
function unfinished(message: string): DomainError {
  return new DomainError('unavailable', message, { reason: 'store_unavailable' });
}
