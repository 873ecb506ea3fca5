import { basename } from 'node:path';
import { defineCommand, EXIT } from '../command.js';
import { printable } from '../terminal.js';
import { PARTNER_DETAILS, withPartner } from './partner-account.js';

export const identify = defineCommand({
  name: 'identify',
  service: 'partner',
  summary: 'Ask which issued recordings a file is, by the digests of its bytes',
  details: [
    'Prints a line for each match: the proof, what is the same, and the confidence. A match says that',
    'the bytes are known, not that a credential in the file holds: `takemark verify` says that.',
    'Each call counts towards the quota. Exit code 1: no match.',
    '',
    ...PARTNER_DETAILS,
  ],
  operands: ['<file>'],
  options: { json: { help: 'the matches as one line of JSON' } },
  async run([path], { json }, context) {
    const { terminal, signal } = context;
    const bar = terminal.progressBar(basename(path));
    try {
      const found = await withPartner(context, (client) =>
        client.identifyFile(path, {
          signal,
          onProgress: ({ sentBytes, totalBytes }) => bar.update(sentBytes, totalBytes),
        }),
      );
      bar.end();
      if (json) terminal.printJson(found);
      else if (found.matches.length === 0) terminal.note('no match');
      else
        for (const { proofId, type, confidence } of found.matches)
          terminal.print(printable(`${proofId}  ${type}  ${confidence}`));
      return found.matches.length > 0 ? EXIT.good : EXIT.notGood;
    } finally {
      bar.end();
    }
  },
});
