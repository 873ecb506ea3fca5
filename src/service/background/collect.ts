import type { AssetStore } from '../ports/assets.js';
import type { ProofStore, Stores } from '../ports/stores.js';
import type { Clock } from '../ports/system.js';

/** The rows that are deleted in one step. Small steps do not delay callers. */
const ROWS = 1000;

/**
 * Deletes the store's remains of failed issuings, with their files and keys.
 * @param graceSeconds how long an issuing may still be running. 0 when no issuing can be running.
 * @throws the first failure of a deletion, after the others were tried
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
  const failures: unknown[] = [];
  await stores.collectReservations(before, (proofId) =>
    unissued.delete(proofId).then(
      () => true,
      (error: unknown) => {
        failures.push(error);
        return false;
      },
    ),
  );
  if (failures.length > 0) throw failures[0];
}

/** Deletes all expired rows. */
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
