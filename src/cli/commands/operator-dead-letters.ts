import { TOPICS } from '../../service/domain/events.js';
import { defineCommand, EXIT } from '../command.js';
import type { DeadLetter } from '../operator-client.js';
import type { Terminal } from '../terminal.js';
import { formatTime, printable } from '../terminal.js';
import { OPERATOR_DETAILS, withOperator } from './operator-accounts.js';

export const listDeadLetters = defineCommand({
  name: 'operator dlq list',
  service: 'operator',
  summary: 'Print the events that no consumer could process, with the reason, oldest first',
  details: OPERATOR_DETAILS,
  operands: [],
  options: {
    topic: { value: 'topic', choices: TOPICS, help: 'only events of this topic' },
    limit: { value: 'n', range: [1, 1000], help: 'maximum number of events, 1 to 1000 (100)' },
    json: { help: 'print one line of JSON per event' },
  },
  async run(_operands, options, context) {
    const { terminal } = context;
    const topic = options.topic;
    const limit = options.limit ?? 100;
    const letters = await withOperator(context, (client) => client.listDeadLetters({ topic, limit }));
    printLetters(letters, options.json, terminal);
    return EXIT.good;
  },
});

function printLetters(letters: readonly DeadLetter[], asJson: boolean | undefined, terminal: Terminal): void {
  for (const letter of letters) {
    if (asJson) terminal.printJson(letter);
    else terminal.print(letterLine(letter));
  }
}

function letterLine({ topic, position, at, reason, eventId }: DeadLetter): string {
  const id = eventId === undefined ? '' : `  ${eventId}`;
  return printable(`${topic.padEnd(9)}  ${position.padEnd(8)}  ${formatTime(at)}  ${reason}${id}`);
}

export const replayDeadLetters = defineCommand({
  name: 'operator dlq replay',
  service: 'operator',
  summary: 'Publish the oldest dead letters of a topic again',
  details: ['An event that still cannot be processed becomes a new dead letter.', '', ...OPERATOR_DETAILS],
  operands: [],
  options: {
    topic: { value: 'topic', required: true, choices: TOPICS, help: 'topic of the dead letters' },
    limit: { value: 'n', range: [1, 10_000], help: 'maximum number of events, 1 to 10000 (1000)' },
    json: { help: 'print the number of events as one line of JSON' },
  },
  async run(_operands, options, context) {
    const { terminal } = context;
    const topic = options.topic;
    const limit = options.limit ?? 1000;
    const replayed = await withOperator(context, (client) => client.replayDeadLetters({ topic, limit }));
    if (options.json) terminal.printJson({ replayed });
    else terminal.print(`${replayed} replayed`);
    return EXIT.good;
  },
});

export const discardDeadLetters = defineCommand({
  name: 'operator dlq discard',
  service: 'operator',
  summary: 'Discard the oldest dead letters of a topic, for events that can never be processed',
  details: [
    'A discarded event is never processed, and the list does not have it any more. The audit log dead-letters',
    'has an entry for each (takemark operator audit read dead-letters). The oldest dead letter is the first',
    'line of takemark operator dlq list --topic. Fix the cause and use replay if the event is genuine: an',
    'erasure that is discarded is not completed.',
    '',
    ...OPERATOR_DETAILS,
  ],
  operands: [],
  options: {
    topic: { value: 'topic', required: true, choices: TOPICS, help: 'topic of the dead letters' },
    limit: { value: 'n', range: [1, 1000], help: 'maximum number of events, 1 to 1000 (1)' },
    json: { help: 'print one line of JSON per event' },
  },
  async run(_operands, options, context) {
    const { terminal } = context;
    const { topic, limit = 1 } = options;
    const letters = await withOperator(context, (client) => client.discardDeadLetters({ topic, limit }));
    printLetters(letters, options.json, terminal);
    return EXIT.good;
  },
});
