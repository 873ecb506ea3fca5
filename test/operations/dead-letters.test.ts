import t from 'tap';
import { defined } from '../../src/domain/defined.js';
import type { Topic } from '../../src/domain/events.js';
import { listDeadLetters } from '../../src/operations/system/dead-letters.js';

const letter = (topic: Topic, at: number) => ({ topic, position: `0:${at}`, reason: 'not an event', at });
const kept: Readonly<Record<Topic, readonly number[]>> = {
  erasure: [3, 4, 9],
  usage: [1, 7],
  retention: [2],
};
const bus = {
  deadLetters: async (topic: Topic, limit: number) =>
    kept[topic].slice(0, limit).map((at) => letter(topic, at)),
};

void t.test('dead letters of all topics are listed oldest first', async (t) => {
  const times = async (topic: Topic | undefined, limit: number) =>
    (await listDeadLetters({ bus }, defined({ topic, limit }))).map(({ at }) => at);
  t.strictSame(await times(undefined, 10), [1, 2, 3, 4, 7, 9]);
  t.strictSame(await times(undefined, 2), [1, 2], 'none is hidden by the letters of another topic');
  t.strictSame(await times('erasure', 2), [3, 4]);
});
