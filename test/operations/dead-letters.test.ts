import t from 'tap';
import { defined } from '../../src/core/domain/defined.js';
import type { AuditDraft } from '../../src/service/domain/audit.js';
import type { Topic } from '../../src/service/domain/events.js';
import { discardDeadLetters, listDeadLetters } from '../../src/service/operations/system/dead-letters.js';

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

void t.test('a dead letter is recorded in the audit log before it is discarded', async (t) => {
  const entries: AuditDraft[] = [];
  const steps: string[] = [];
  const discard = (append: (draft: AuditDraft) => Promise<void>) =>
    discardDeadLetters(
      {
        bus: {
          discardDeadLetters: async (topic, limit, record) => {
            const letters = kept[topic]
              .slice(0, limit)
              .map((at) => ({ ...letter(topic, at), id: `id-${at}` }));
            await record(letters);
            steps.push('discarded');
            return letters;
          },
        },
        stores: { appendAudit: append, readAudit: async () => [] },
        clock: { now: () => 5500 },
      },
      { topic: 'erasure', limit: 2 },
    );
  const discarded = await discard(async (draft) => {
    steps.push('recorded');
    entries.push(draft);
  });
  t.strictSame(
    discarded.map(({ position, eventId }) => [position, eventId]),
    [
      ['0:3', 'id-3'],
      ['0:4', 'id-4'],
    ],
  );
  t.strictSame(steps, ['recorded', 'recorded', 'discarded']);
  t.strictSame(entries[0], {
    partnerId: 'dead-letters',
    action: 'dead_letter_discarded',
    at: 5,
    actor: 'operator',
    subjects: ['erasure', '0:3', 'id-3'],
  });
  steps.length = 0;
  await t.rejects(discard(() => Promise.reject(new Error('the store is away'))));
  t.strictSame(steps, [], 'nothing is discarded when the entry cannot be written');
});
