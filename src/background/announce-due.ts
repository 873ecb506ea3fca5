import { isRecordDamaged } from '../domain/errors.js';
import { reminderDue } from '../domain/events.js';
import type { Clock } from '../ports/clock.js';
import type { ProofStore, RetentionStore } from '../ports/stores.js';

/** Reminders read at a time. */
const BATCH = 100;

/**
 * Announces what is due. Cases end with their proof, so nothing is said of one that was erased meanwhile.
 * Several processes may do this at once: the event's id is the same in each.
 * @returns how many notices were settled
 */
export async function announceDue({
  stores,
  clock,
}: {
  readonly stores: RetentionStore & Pick<ProofStore, 'getProof'>;
  readonly clock: Clock;
}): Promise<number> {
  const now = Math.floor(clock.now() / 1000);
  for (let settled = 0; ; ) {
    const notices = await stores.dueReminders(now, BATCH);
    let damage: unknown;
    for (const notice of notices) {
      try {
        const proof = await stores.getProof(notice.proofId);
        await stores.completeReminder(notice, proof?.state === 'issued' ? reminderDue(notice) : undefined);
        settled += 1;
      } catch (error) {
        // It stays, and those behind it need not.
        if (!isRecordDamaged(error)) throw error;
        damage = error;
      }
    }
    if (damage !== undefined) throw damage;
    if (notices.length < BATCH) return settled;
  }
}
