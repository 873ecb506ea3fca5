import { isRecordDamaged } from '../domain/errors.js';
import { noticeDue, noticesOf } from '../domain/events.js';
import { type EventHandler, PoisonError } from '../ports/bus.js';
import type { Clock } from '../ports/clock.js';
import type { ProofStore, RetentionStore } from '../ports/stores.js';

/** Notices of one look. */
const BATCH = 100;

/**
 * "Announces cases at creation, before expiry and after it": the creation is the event itself, the others are
 * scheduled by it. An erasure takes the notices of its proof with it; one that was first is seen by the look
 * that comes last.
 */
export function retentionConsumer({
  stores,
  clock,
}: {
  readonly stores: Pick<RetentionStore, 'scheduleNotices' | 'settleNotice'> & Pick<ProofStore, 'getProof'>;
  readonly clock: Clock;
}): EventHandler {
  return async (events) => {
    const notices = events.flatMap((event) => {
      if (event.topic !== 'retention') throw new PoisonError('not about a case');
      // The other kinds are for whoever listens elsewhere.
      return event.kind === 'review_created' ? noticesOf(event) : [];
    });
    if (notices.length === 0) return;
    await stores.scheduleNotices(notices, Math.floor(clock.now() / 1000));
    const erased = new Set<string>();
    for (const proofId of new Set(notices.map((notice) => notice.proofId)))
      if ((await stores.getProof(proofId))?.state !== 'issued') erased.add(proofId);
    for (const notice of notices)
      if (erased.has(notice.proofId)) await stores.settleNotice(notice, undefined);
  };
}

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
    const notices = await stores.dueNotices(now, BATCH);
    let damage: unknown;
    for (const notice of notices) {
      try {
        const proof = await stores.getProof(notice.proofId);
        await stores.settleNotice(notice, proof?.state === 'issued' ? noticeDue(notice) : undefined);
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
