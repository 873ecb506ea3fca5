import { basename } from 'node:path';
import { namedFile } from '../batch/find-audio.js';
import { defineCommand, EXIT } from '../command.js';
import { printable } from '../terminal.js';
import { PARTNER_DETAILS, withPartner } from './partner-account.js';

export const identify = defineCommand({
  name: 'identify',
  service: 'partner',
  summary: 'Find the issued recordings whose digests match a file',
  details: [
    'Prints one line per match: the proof, the matching part, and the confidence. A match means that',
    'the service knows the bytes. It does not mean that a credential in the file is valid; use',
    '`takemark verify` for that. Each call costs one unit of the quota for each 65 MiB begun of the',
    'file. Exit code 1: no match.',
    '',
    ...PARTNER_DETAILS,
  ],
  operands: ['<file>'],
  options: { json: { help: 'print the matches as one line of JSON' } },
  async run([path], { json }, context) {
    const { terminal, signal } = context;
    const bar = terminal.progressBar(basename(path));
    try {
      const file = await namedFile(path);
      const found = await withPartner(context, (client) =>
        client.identifyFile(file, {
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
