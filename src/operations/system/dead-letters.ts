import { defined } from '../../domain/defined.js';
import { TOPICS, type Topic } from '../../domain/events.js';
import type { EventBus } from '../../ports/bus.js';

/** An event that no consumer could process, as the bus keeps it: its position, time and reason. */
export interface DeadLetterEntry {
  readonly topic: Topic;
  readonly position: string;
  readonly reason: string;
  /** The time in unix seconds. */
  readonly at: number;
  readonly eventId?: string;
  readonly kind?: string;
}

/** Returns the oldest dead letters of one topic, or of all topics, oldest first. */
export async function listDeadLetters(
  { bus }: { readonly bus: Pick<EventBus, 'deadLetters'> },
  { topic, limit }: { readonly topic?: Topic; readonly limit: number },
): Promise<readonly DeadLetterEntry[]> {
  const letters = [];
  for (const each of topic === undefined ? TOPICS : [topic])
    letters.push(...(await bus.deadLetters(each, limit)));
  const oldest = letters.sort((a, b) => a.at - b.at).slice(0, limit);
  return oldest.map(({ id, ...letter }) => defined({ ...letter, eventId: id }));
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
