import { TOPICS } from '../domain/events.js';
import type { EventBus } from '../ports/bus.js';
import type { OperatorOperations } from './operations.js';

/** Events that no consumer could take, as the bus keeps them: where they are, when and why. */
export async function listDeadLetters(bus: Pick<EventBus, 'deadLetters'>, { topic, limit }: Parameters<OperatorOperations['listDeadLetters']>[0]): ReturnType<OperatorOperations['listDeadLetters']> {
  const letters = [];
  for (const each of topic === undefined ? TOPICS : [topic]) {
    if (letters.length < limit) letters.push(...(await bus.deadLetters(each, limit - letters.length)));
  }
  return letters.map(({ id, ...letter }) => (id === undefined ? letter : { ...letter, eventId: id }));
}
