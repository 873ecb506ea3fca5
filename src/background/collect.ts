import type { AssetStore } from '../ports/assets.js';
import type { ProofStore, Stores } from '../ports/stores.js';
import type { Clock } from '../ports/system.js';

/** Rows that are removed at once, so that callers are never held up. */
const ROWS = 1000;

/**
 * Removes what a killed issuing left in the store, and its files.
 * @param graceSeconds how long an issuing of another process may be under way; 0 where one process owns the
 * store, so that nothing can still be at work
 */
export async function collectReservations({
  stores,
  unissued,
  clock,
  graceSeconds,
}: {
  readonly stores: Pick<ProofStore, 'collectReservations'>;
  readonly unissued: Pick<AssetStore, 'delete'>;
  readonly clock: Clock;
  readonly graceSeconds: number;
}): Promise<void> {
  const before = Math.floor(clock.now() / 1000) + 1 - graceSeconds;
  for (const proofId of await stores.collectReservations(before)) await unissued.delete(proofId);
}

/** Removes everything whose time has passed. */
export async function collectExpired({
  stores,
  clock,
}: {
  readonly stores: Pick<Stores, 'collectExpired'>;
  readonly clock: Clock;
}): Promise<void> {
  const now = Math.floor(clock.now() / 1000);
  while ((await stores.collectExpired(now, ROWS)) === ROWS);
}
