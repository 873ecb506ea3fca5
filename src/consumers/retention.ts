import { PoisonError } from '../domain/batch-delivery.js';
import { remindersOf } from '../domain/events.js';
import type { EventHandler } from '../ports/bus.js';
import type { Clock } from '../ports/clock.js';
import type { ProofStore, RetentionStore } from '../ports/stores.js';

/**
 * "Announces cases at creation, before expiry and after it": the creation is the event itself, the others are
 * scheduled by it. An erasure takes the notices of its proof with it; one that was first is seen by the look
 * that comes last.
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
    const notices = events.flatMap((event) => {
      if (event.topic !== 'retention') throw new PoisonError('not about a case');
      // The other kinds are for whoever listens elsewhere.
      return event.kind === 'review_created' ? remindersOf(event) : [];
    });
    if (notices.length === 0) return;
    await stores.scheduleReminders(notices, Math.floor(clock.now() / 1000));
    const erased = new Set<string>();
    for (const proofId of new Set(notices.map((notice) => notice.proofId)))
      if ((await stores.getProof(proofId))?.state !== 'issued') erased.add(proofId);
    for (const notice of notices)
      if (erased.has(notice.proofId)) await stores.completeReminder(notice, undefined);
  };
}
