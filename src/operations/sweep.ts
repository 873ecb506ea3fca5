import type { AssetStore } from '../ports/assets.js';
import type { Clock } from '../ports/clock.js';
import type { ProofStore, Stores } from '../ports/stores.js';

/** Rows that one sweep removes at most, so that it never holds up the callers. */
const SWEEP_ROWS = 1_000;

/** At start: what a killed issuing left in the store. One process owns it, so nothing of it can still be at work. */
export async function sweepUnfinished({ stores, clock }: { readonly stores: ProofStore; readonly clock: Clock }): Promise<void> {
  await stores.sweepPending(Math.floor(clock.now() / 1000) + 1);
}

/** Deliverables that no issued proof has: what a kill left between sending and registering. */
export async function sweepOrphans({ stores, assets }: { readonly stores: ProofStore; readonly assets: AssetStore }): Promise<void> {
  await assets.sweep(async (proofId) => (await stores.getProof(proofId))?.state === 'issued');
}

/** Now and then: everything whose time has passed. */
export async function sweepExpired({ stores, clock }: { readonly stores: Pick<Stores, 'sweepExpired'>; readonly clock: Clock }): Promise<void> {
  const now = Math.floor(clock.now() / 1000);
  while ((await stores.sweepExpired(now, SWEEP_ROWS)) === SWEEP_ROWS);
}
