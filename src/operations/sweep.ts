import type { AssetStore } from '../ports/assets.js';
import type { Clock } from '../ports/clock.js';
import type { ProofStore, Stores } from '../ports/stores.js';

/** Rows that one sweep removes at most, so that it never holds up the callers. */
const SWEEP_ROWS = 1_000;

/**
 * At start: what a killed issuing left in the store.
 * @param graceSeconds how long an issuing of another process may be under way; 0 where one process owns the store, so that
 * nothing can still be at work
 */
export async function sweepUnfinished({ stores, clock, graceSeconds }: { readonly stores: ProofStore; readonly clock: Clock; readonly graceSeconds: number }): Promise<void> {
  await stores.sweepPending(Math.floor(clock.now() / 1000) + 1 - graceSeconds);
}

/** Deliverables that no issued proof has: what a kill left between sending and registering. */
export async function sweepOrphans({ stores, assets }: { readonly stores: ProofStore; readonly assets: AssetStore }): Promise<void> {
  await assets.sweep(async (proofId) => {
    const state = (await stores.getProof(proofId))?.state;
    // What is still reserved after the sweep of reserved ids is being issued elsewhere.
    return state === 'issued' || state === 'pending';
  });
}

/** Now and then: everything whose time has passed. */
export async function sweepExpired({ stores, clock }: { readonly stores: Pick<Stores, 'sweepExpired'>; readonly clock: Clock }): Promise<void> {
  const now = Math.floor(clock.now() / 1000);
  while ((await stores.sweepExpired(now, SWEEP_ROWS)) === SWEEP_ROWS);
}
