import { TOPICS } from '../../service/domain/events.js';
import type { ResponseAt } from '../operator-client.js';
import { formatTime } from '../terminal.js';
import { operatorCall } from './call-command.js';

const listDeadLetters = operatorCall({
  name: 'operator dlq list',
  summary: 'Print the events that no consumer could process, with the reason, oldest first',
  options: {
    topic: { value: 'topic', choices: TOPICS, help: 'only events of this topic' },
    limit: { value: 'n', range: [1, 1000], help: 'maximum number of events, 1 to 1000 (100)' },
  },
  json: 'print one line of JSON per event',
  call:
    (_operands, { topic, limit = 100 }) =>
    (client) =>
      client.list('GET dead-letters', 'deadLetters', { query: { topic, limit } }),
  columns: columnsOf,
});

const replayDeadLetters = operatorCall({
  name: 'operator dlq replay',
  summary: 'Publish the oldest dead letters of a topic again',
  details: ['An event that still cannot be processed becomes a new dead letter.'],
  options: {
    topic: { value: 'topic', required: true, choices: TOPICS, help: 'topic of the dead letters' },
    limit: { value: 'n', range: [1, 10_000], help: 'maximum number of events, 1 to 10000 (1000)' },
  },
  json: 'print the number of events as one line of JSON',
  call:
    (_operands, { topic, limit = 1000 }) =>
    (client) =>
      client.call('POST dead-letters/replay', { json: { topic, limit } }),
  columns: ({ replayed }) => [`${replayed} replayed`],
});

const discardDeadLetters = operatorCall({
  name: 'operator dlq discard',
  summary: 'Discard the oldest dead letters of a topic, for events that can never be processed',
  details: [
    'A discarded event is never processed, and the list does not have it any more. The audit log dead-letters',
    'has an entry for each (takemark operator audit read dead-letters). The oldest dead letter is the first',
    'line of takemark operator dlq list --topic. Fix the cause and use replay if the event is genuine: an',
    'erasure that is discarded is not completed.',
  ],
  options: {
    topic: { value: 'topic', required: true, choices: TOPICS, help: 'topic of the dead letters' },
    limit: { value: 'n', range: [1, 1000], help: 'maximum number of events, 1 to 1000 (1)' },
  },
  json: 'print one line of JSON per event',
  call:
    (_operands, { topic, limit = 1 }) =>
    async (client) =>
      (await client.call('POST dead-letters/discard', { json: { topic, limit } })).deadLetters,
  columns: columnsOf,
});

export const DEAD_LETTER_COMMANDS = [listDeadLetters, replayDeadLetters, discardDeadLetters];

type DeadLetter = ResponseAt<'GET dead-letters'>['deadLetters'][number];

function columnsOf({ topic, position, at, reason, eventId }: DeadLetter): readonly (string | undefined)[] {
  return [topic.padEnd(9), position.padEnd(8), formatTime(at), reason, eventId];
}
