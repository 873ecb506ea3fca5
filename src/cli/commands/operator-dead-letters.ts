import { type Command, EXIT } from '../command.js';
import { TOPICS } from '../operator-client.js';
import { formatTime, printable } from '../terminal.js';
import { OPERATOR_DETAILS, withOperator } from './operator-accounts.js';

export const listDeadLetters: Command = {
  name: 'operator dlq list',
  summary: 'Print events that no consumer could take, with the reason, oldest first',
  details: OPERATOR_DETAILS,
  operands: [],
  options: {
    topic: { value: 'topic', help: `${TOPICS.join(', ')} (all)` },
    limit: { value: 'n', help: 'events at most, 1 to 1000 (100)' },
    json: { help: 'one line of JSON for each event' },
  },
  async run(given, surroundings) {
    const { terminal } = surroundings;
    const topic = given.choice('topic', TOPICS);
    const limit = given.count('limit', { min: 1, max: 1000 }) ?? 100;
    const letters = await withOperator(surroundings, (client) => client.listDeadLetters({ topic, limit }));
    for (const letter of letters) {
      if (given.flag('json')) terminal.printJson(letter);
      else
        terminal.print(
          printable(
            `${letter.topic.padEnd(9)}  ${letter.position.padEnd(8)}  ${formatTime(letter.at)}  ${letter.reason}${letter.eventId === undefined ? '' : `  ${letter.eventId}`}`,
          ),
        );
    }
    return EXIT.good;
  },
};

export const replayDeadLetters: Command = {
  name: 'operator dlq replay',
  summary: 'Put the oldest dead letters of a topic into it again',
  details: ['What still cannot be taken comes back as a dead letter.', '', ...OPERATOR_DETAILS],
  operands: [],
  options: {
    topic: { value: 'topic', required: true, help: TOPICS.join(', ') },
    limit: { value: 'n', help: 'events at most, 1 to 10000 (1000)' },
    json: { help: 'how many as one line of JSON' },
  },
  async run(given, surroundings) {
    const { terminal } = surroundings;
    const topic = given.choice('topic', TOPICS)!;
    const limit = given.count('limit', { min: 1, max: 10_000 }) ?? 1000;
    const replayed = await withOperator(surroundings, (client) => client.replayDeadLetters({ topic, limit }));
    if (given.flag('json')) terminal.printJson({ replayed });
    else terminal.print(`${replayed} replayed`);
    return EXIT.good;
  },
};
