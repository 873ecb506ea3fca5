import { TOPICS } from '../../domain/events.js';
import type { EventBus } from '../../ports/bus.js';
import type { OperatorOperations } from '../operations.js';

/** Events that no consumer could take, as the bus keeps them: where they are, when and why. */
export async function listDeadLetters(
  bus: Pick<EventBus, 'deadLetters'>,
  { topic, limit }: Parameters<OperatorOperations['listDeadLetters']>[0],
): ReturnType<OperatorOperations['listDeadLetters']> {
  const letters = [];
  for (const each of topic === undefined ? TOPICS : [topic])
    letters.push(...(await bus.deadLetters(each, limit)));
  const oldest = letters.sort((a, b) => a.at - b.at).slice(0, limit);
  return oldest.map(({ id, ...letter }) => (id === undefined ? letter : { ...letter, eventId: id }));
}
