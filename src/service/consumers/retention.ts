import { PoisonError } from '../domain/batch-delivery.js';
import { remindersOf } from '../domain/events.js';
import type { EventHandler } from '../ports/bus.js';
import type { ProofStore, RetentionStore } from '../ports/stores.js';
import type { Clock } from '../ports/system.js';

/**
 * Returns the consumer that announces reviews (rule 15.3). The event itself announces the creation, and
 * schedules the reminders. An erasure deletes the reminders of its proof. If the erasure was earlier, the
 * final check of the proof finds it.
 */
export function retentionConsumer({
  stores,
  clock,
}: {
  readonly stores: Pick<RetentionStore, 'scheduleReminders' | 'completeReminder'> &
    Pick<ProofStore, 'getProof'>;
  readonly clock: Clock;
}): EventHandler {
  return async (events) => {
    const reminders = events.flatMap((event) => {
      if (event.topic !== 'retention') throw new PoisonError('not a review event');
      // The other kinds of events are for consumers in other systems.
      return event.kind === 'review_created' ? remindersOf(event) : [];
    });
    if (reminders.length === 0) return;
    await stores.scheduleReminders(reminders, Math.floor(clock.now() / 1000));
    const erased = new Set<string>();
    for (const proofId of new Set(reminders.map((reminder) => reminder.proofId)))
      if ((await stores.getProof(proofId))?.state !== 'issued') erased.add(proofId);
    for (const reminder of reminders)
      if (erased.has(reminder.proofId)) await stores.completeReminder(reminder, undefined);
  };
}
