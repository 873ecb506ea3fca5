import { isRecordDamaged } from '../domain/errors.js';
import { reminderDue } from '../domain/events.js';
import type { ProofStore, RetentionStore } from '../ports/stores.js';
import type { Clock } from '../ports/system.js';

/** Reminders read at a time. */
const BATCH = 100;

/**
 * Puts an event into the outbox for every reminder that is due. Reviews end with their proof, so a reminder
 * of an erased proof is completed without an event. Several processes may do this at once: the event's id is
 * the same in each.
 * @returns how many reminders were completed
 * @throws the last damage of a proof, at the end: those behind it need not wait
 */
export async function remindDue({
  stores,
  clock,
}: {
  readonly stores: RetentionStore & Pick<ProofStore, 'getProof'>;
  readonly clock: Clock;
}): Promise<number> {
  const now = Math.floor(clock.now() / 1000);
  /** Reminders that met damage. They stay, and come again before those behind them. */
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
