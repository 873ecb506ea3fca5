import { isRecordDamaged } from '../domain/errors.js';
import type { AssetStore } from '../ports/assets.js';
import type { ProofStore, Stores } from '../ports/stores.js';
import type { Clock } from '../ports/system.js';

/** Rows that are removed at once, so that callers are never held up. */
const ROWS = 1000;
/** Assets without a proof that are removed at once: kills leave few, and never more than there are others. */
const MOST_ORPHANS = 1000;
const FEW_ORPHANS = 3;

/**
 * Removes what a killed issuing left in the store.
 * @param graceSeconds how long an issuing of another process may be under way; 0 where one process owns the
 * store, so that nothing can still be at work
 */
export async function collectReservations({
  stores,
  clock,
  graceSeconds,
}: {
  readonly stores: ProofStore;
  readonly clock: Clock;
  readonly graceSeconds: number;
}): Promise<void> {
  await stores.collectReservations(Math.floor(clock.now() / 1000) + 1 - graceSeconds);
}

/**
 * Removes the assets that no issued proof has: a kill left them between sending and registering.
 * @param shared whether others may have files there too, as in a bucket
 * @throws Error where so many are unknown that they are another registry's, or this one was put back: nothing
 * is removed then
 */
export async function collectOrphans({
  stores,
  assets,
  shared,
}: {
  readonly stores: Pick<ProofStore, 'getProof'>;
  readonly assets: Pick<AssetStore, 'collectOrphans'>;
  readonly shared: boolean;
}): Promise<void> {
  // An id that is still reserved after the collection of reservations is being issued elsewhere.
  const isKept = async (proofId: string): Promise<boolean> => {
    try {
      return ['issued', 'pending'].includes((await stores.getProof(proofId))?.state ?? 'unknown');
    } catch (error) {
      // Nobody knows what it is, so it stays; readers of the record meet the fault.
      if (isRecordDamaged(error)) return true;
      throw error;
    }
  };
  if (!shared) return void (await assets.collectOrphans(isKept));
  const orphans = new Set<string>();
  let kept = 0;
  await assets.collectOrphans(async (proofId) => {
    if (await isKept(proofId)) kept += 1;
    else if (orphans.size <= MOST_ORPHANS) orphans.add(proofId);
    return true;
  });
  if (orphans.size > Math.min(MOST_ORPHANS, kept + FEW_ORPHANS))
    throw new Error(
      `${orphans.size > MOST_ORPHANS ? `over ${MOST_ORPHANS}` : orphans.size} deliverables are of no proof that the registry knows, ${kept} are: the bucket or its prefix may be another registry's, or this one may have been put back; nothing was removed`,
    );
  if (orphans.size > 0)
    await assets.collectOrphans(async (proofId) => !orphans.has(proofId) || (await isKept(proofId)));
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
