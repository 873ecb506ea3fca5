import { defined } from '../../../core/domain/defined.js';
import type { ResultOf } from '../../contract/results.js';
import { TOPICS, type Topic } from '../../domain/events.js';
import { discardEntry } from '../../domain/service-logs.js';
import type { DeadLetter, EventBus } from '../../ports/bus.js';
import type { AuditStore } from '../../ports/stores.js';
import type { Clock } from '../../ports/system.js';

type DeadLetterEntry = ResultOf<'listDeadLetters'>['deadLetters'][number];

/** Returns the oldest dead letters of one topic, or of all topics, oldest first. */
export async function listDeadLetters(
  { bus }: { readonly bus: Pick<EventBus, 'deadLetters'> },
  { topic, limit }: { readonly topic?: Topic; readonly limit: number },
): Promise<readonly DeadLetterEntry[]> {
  const letters = [];
  for (const each of topic === undefined ? TOPICS : [topic])
    letters.push(...(await bus.deadLetters(each, limit)));
  const oldest = letters.sort((a, b) => a.at - b.at).slice(0, limit);
  return oldest.map(entryOf);
}

function entryOf({ id, ...letter }: DeadLetter): DeadLetterEntry {
  return defined({ ...letter, eventId: id });
}

/**
 * Discards the oldest dead letters of a topic, for events that can never be processed. The audit log
 * `dead-letters` has an entry for each. An entry is written first, so nothing is discarded without one.
 * @returns the discarded letters
 */
export async function discardDeadLetters(
  {
    bus,
    stores,
    clock,
  }: {
    readonly bus: Pick<EventBus, 'discardDeadLetters'>;
    readonly stores: AuditStore;
    readonly clock: Clock;
  },
  { topic, limit }: { readonly topic: Topic; readonly limit: number },
): Promise<readonly DeadLetterEntry[]> {
  const discarded = await bus.discardDeadLetters(topic, limit, async (letters) => {
    const at = Math.floor(clock.now() / 1000);
    for (const letter of letters) await stores.appendAudit(discardEntry(letter, at));
  });
  return discarded.map(entryOf);
}

/**
 * Publishes dead letters to their topic again.
 * @returns the number of republished events
 */
export function replayDeadLetters(
  { bus }: { readonly bus: Pick<EventBus, 'replayDeadLetters'> },
  { topic, limit }: { readonly topic: Topic; readonly limit: number },
): Promise<number> {
  return bus.replayDeadLetters(topic, limit);
}
