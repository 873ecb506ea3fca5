import { isRecordDamaged } from '../../core/domain/errors.js';
import { reminderDue } from '../domain/events.js';
import type { ProofStore, RetentionStore } from '../ports/stores.js';
import type { Clock } from '../ports/system.js';

/** The number of reminders that are read at a time. */
const BATCH = 100;

/**
 * Adds an event to the outbox for every due reminder. Reviews end with their proof, so a reminder of an
 * erased proof is completed without an event. Several processes may run this at once, because they create the
 * same event id.
 * @returns how many reminders were completed
 * @throws the last damage of a proof, after all other reminders were tried
 */
export async function remindDue({
  stores,
  clock,
}: {
  readonly stores: RetentionStore & Pick<ProofStore, 'getProof'>;
  readonly clock: Clock;
}): Promise<number> {
  const now = Math.floor(clock.now() / 1000);
  /**
   * The reminders whose proof is damaged. These reminders remain stored, and are read again before later
   * reminders.
   */
  const damaged = new Set<string>();
  let damage: unknown;
  for (let completed = 0; ; ) {
    const limit = BATCH + damaged.size;
    const reminders = await stores.dueReminders(now, limit);
    for (const reminder of reminders) {
      const name = `${reminder.reviewId}/${reminder.kind}`;
      if (damaged.has(name)) continue;
      try {
        const proof = await stores.getProof(reminder.proofId);
        const event = proof?.state === 'issued' ? reminderDue(reminder) : undefined;
        await stores.completeReminder(reminder, event);
        completed += 1;
      } catch (error) {
        if (!isRecordDamaged(error)) throw error;
        damaged.add(name);
        damage = error;
      }
    }
    if (reminders.length < limit) {
      if (damage !== undefined) throw damage;
      return completed;
    }
  }
}
