import { defined } from '../../domain/defined.js';
import { TOPICS, type Topic } from '../../domain/events.js';
import type { EventBus } from '../../ports/bus.js';

/** An event that no consumer could take, as the bus keeps it: where it is, when and why. */
export interface DeadLetterEntry {
  readonly topic: Topic;
  readonly position: string;
  readonly reason: string;
  /** Unix seconds. */
  readonly at: number;
  readonly eventId?: string;
  readonly kind?: string;
}

/** Dead letters of one topic, or of all, oldest first in each. */
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

/** @returns how many were put into their topic again */
export function replayDeadLetters(
  { bus }: { readonly bus: Pick<EventBus, 'replayDeadLetters'> },
  { topic, limit }: { readonly topic: Topic; readonly limit: number },
): Promise<number> {
  return bus.replayDeadLetters(topic, limit);
}
